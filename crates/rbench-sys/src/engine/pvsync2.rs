//! The engine `pvsync2`: `preadv2` and `pwritev2` with one element and the flags of
//! its options, one request at a time. It needs Linux 4.6: before, the C library
//! makes the calls of `pvsync` instead. Unknown flags in the kernel or the file
//! system give `EOPNOTSUPP`.

use nix::errno::Errno;
use nix::libc;
use rbench_core::EngineOptions;
use rbench_core::random::Stream;

use super::contract::EngineInfo;
use super::synchronous::{self, Calls, Rest, bytes};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "pvsync2",
    ..EngineInfo::of(|config| {
        let calls = Pvsync2::new(&config.options);
        synchronous::make(config, calls)
    })
};

/// Seed of the choice of polled calls.
const CHOICE: u64 = 0x7076_7332;

struct Pvsync2 {
    read_flags: libc::c_int,
    write_flags: libc::c_int,
    /// With `hipri`: the percentage of calls with RWF_HIPRI, unless it is 100.
    polled: Option<(u64, Stream)>,
}

impl Pvsync2 {
    fn new(options: &EngineOptions) -> Pvsync2 {
        let flag = |on: bool, flag| if on { flag } else { 0 };
        let all = options.hipri && options.hipri_percentage >= 100;
        let both = flag(all, libc::RWF_HIPRI)
            | flag(options.uncached, libc::RWF_DONTCACHE)
            | flag(options.nowait, libc::RWF_NOWAIT);
        let some = options.hipri && !all;
        Pvsync2 {
            read_flags: both,
            write_flags: both | flag(options.atomic, libc::RWF_ATOMIC),
            polled: some.then(|| (u64::from(options.hipri_percentage), Stream::new(&[CHOICE]))),
        }
    }

    /// RWF_HIPRI if the random choice selects this call.
    #[inline]
    fn polled(&mut self) -> libc::c_int {
        let chosen = |(percentage, stream): &mut (u64, Stream)| stream.below(100) < *percentage;
        match self.polled.as_mut().is_some_and(chosen) {
            true => libc::RWF_HIPRI,
            false => 0,
        }
    }
}

/// The offset: -1 would mean the file's own position. -2 is refused with EINVAL, as
/// preadv refuses both.
#[inline]
fn offset(rest: &Rest) -> libc::off_t {
    if rest.offset == -1 { -2 } else { rest.offset }
}

impl Calls for Pvsync2 {
    #[inline]
    fn read(&mut self, rest: &Rest) -> Result<usize, Errno> {
        let flags = self.read_flags | self.polled();
        // SAFETY: the one element is the memory of `rest`, which is valid, and
        // nothing else uses it.
        bytes(unsafe { libc::preadv2(rest.fd, &rest.vector(), 1, offset(rest), flags) })
    }

    #[inline]
    fn write(&mut self, rest: &Rest) -> Result<usize, Errno> {
        let flags = self.write_flags | self.polled();
        // SAFETY: as in `read`; nothing else writes to the memory.
        bytes(unsafe { libc::pwritev2(rest.fd, &rest.vector(), 1, offset(rest), flags) })
    }
}
