//! System calls that the safe bindings lack: extended attributes, raw directory entries, and
//! requests through /proc on a descriptor that only names a file (O_PATH).

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, INodeNo, TimeOrNow};
use nix::errno::Errno;
use nix::sys::stat::FileStat;
use nix::sys::time::TimeSpec;

use crate::store::{Answer, file_type};

/// The path under which `fd` can be opened again, or passed to calls that take no
/// descriptor. It leads to the file itself, even if it was renamed.
pub(crate) fn path_of(fd: impl AsFd) -> CString {
    let mut path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()).into_bytes();
    path.push(0);
    // The text has no zero byte but the last.
    CString::from_vec_with_nul(path).unwrap_or_default()
}

fn c_string(text: &OsStr) -> Answer<CString> {
    CString::new(text.as_bytes()).map_err(|_| Errno::EINVAL)
}

/// The result of a call that returns a length or -1.
fn length(result: isize) -> Answer<usize> {
    usize::try_from(Errno::result(result)?).map_err(|_| Errno::EIO)
}

/// Reads the result of `call` into a buffer of the size that it asks for. `call` gets
/// a pointer and a size, which is 0 to query the size.
fn sized(mut call: impl FnMut(*mut u8, usize) -> isize) -> Answer<Vec<u8>> {
    loop {
        let size = length(call(std::ptr::null_mut(), 0))?;
        let mut buffer = vec![0; size];
        match length(call(buffer.as_mut_ptr(), size)) {
            Ok(n) => {
                buffer.truncate(n);
                return Ok(buffer);
            }
            // It grew between the two calls.
            Err(Errno::ERANGE) => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn get_xattr(fd: BorrowedFd<'_>, name: &OsStr) -> Answer<Vec<u8>> {
    let (path, name) = (path_of(fd), c_string(name)?);
    sized(|place, size| {
        // SAFETY: both texts end with a zero byte; `place` has room for
        // `size` bytes, and is not written to when that is 0.
        unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), place.cast(), size) }
    })
}

pub(crate) fn list_xattr(fd: BorrowedFd<'_>) -> Answer<Vec<u8>> {
    let path = path_of(fd);
    sized(|place, size| {
        // SAFETY: the text ends with a zero byte; `place` has room for `size`
        // bytes, and is not written to when that is 0.
        unsafe { libc::listxattr(path.as_ptr(), place.cast(), size) }
    })
}

pub(crate) fn set_xattr(fd: BorrowedFd<'_>, name: &OsStr, value: &[u8], flags: i32) -> Answer<()> {
    let (path, name) = (path_of(fd), c_string(name)?);
    // SAFETY: both texts end with a zero byte, and `value` is `value.len()`
    // bytes long.
    let result = unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            flags,
        )
    };
    Errno::result(result).map(drop)
}

pub(crate) fn remove_xattr(fd: BorrowedFd<'_>, name: &OsStr) -> Answer<()> {
    let (path, name) = (path_of(fd), c_string(name)?);
    // SAFETY: both texts end with a zero byte.
    Errno::result(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
}

/// A time to set; `None` leaves it unchanged.
pub(crate) fn timespec(time: Option<TimeOrNow>) -> TimeSpec {
    let (seconds, nanos) = match time {
        None => return TimeSpec::UTIME_OMIT,
        Some(TimeOrNow::Now) => return TimeSpec::UTIME_NOW,
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (after.as_secs() as i64, i64::from(after.subsec_nanos())),
            Err(before) => {
                // Seconds round down; nanoseconds count up from there.
                let before = before.duration();
                let nanos = i64::from(before.subsec_nanos());
                let up = i64::from(nanos > 0);
                let seconds = -(before.as_secs() as i64) - up;
                (seconds, up * 1_000_000_000 - nanos)
            }
        },
    };
    TimeSpec::new(seconds, nanos)
}

fn system_time(seconds: i64, nanos: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let nanos = Duration::from_nanos(nanos.unsigned_abs());
    let time = if seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    time.map_or(UNIX_EPOCH, |time| time + nanos)
}

/// The attributes of a file in the protocol's form, with the inode number `ino`.
pub(crate) fn attr(stat: &FileStat, ino: u64) -> Answer<FileAttr> {
    Ok(FileAttr {
        ino: INodeNo(ino),
        size: stat.st_size.unsigned_abs(),
        blocks: stat.st_blocks.unsigned_abs(),
        atime: system_time(stat.st_atime, stat.st_atime_nsec),
        mtime: system_time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: system_time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: file_type(stat.st_mode)?,
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        // The protocol has 32 bits for a device: 12 major, 20 minor.
        rdev: device_number(stat.st_rdev),
        blksize: stat.st_blksize as u32,
        flags: 0,
    })
}

/// A device number in the kernel's 32-bit encoding.
fn device_number(rdev: u64) -> u32 {
    let (major, minor) = (libc::major(rdev), libc::minor(rdev));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The device number of the kernel's 32-bit encoding.
pub(crate) fn device_of(rdev: u32) -> u64 {
    let major = (rdev & 0xfff00) >> 8;
    let minor = (rdev & 0xff) | ((rdev >> 12) & 0xfff00);
    libc::makedev(major, minor)
}

/// Fills `buffer` with raw directory entries; returns the bytes used, 0 at
/// the end.
pub(crate) fn read_entries(directory: BorrowedFd<'_>, buffer: &mut [u8]) -> Answer<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes to the buffer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            directory.as_raw_fd(),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    length(result as isize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_survive_both_ways() {
        let check = |seconds, nanos| {
            let time = system_time(seconds, nanos);
            let back = timespec(Some(TimeOrNow::SpecificTime(time)));
            assert_eq!((back.tv_sec(), back.tv_nsec()), (seconds, nanos));
        };
        check(0, 0);
        check(1_700_000_000, 123_456_789);
        check(-1, 0);
        check(-1, 999_999_999);
        check(-86_400, 1);
    }

    #[test]
    fn device_numbers_survive_both_ways() {
        for (major, minor) in [(8, 1), (259, 70_000), (4095, 1_048_575)] {
            let device = libc::makedev(major, minor);
            assert_eq!(device_of(device_number(device)), device);
        }
    }
}
