//! Counters of the requests that reached a file system, if it has such counters.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use rbench_core::mountinfo::unescape;

use crate::mountinfo;

/// Requests to one mount of this host, from all processes, and the kind of all requests of a counter
/// that does not distinguish kinds. Kinds that FUSE does not have keep their own name in lower case.
pub use rbench_core::residency::{Requests, TOTAL};

/// Number of readings for measuring the cost of a reading.
const TRIALS: usize = 6;

/// Limit for the size of a counter's file (bytes).
const LONGEST: usize = 4 << 20;

/// Source of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// JuiceFS's file `.stats`, with lines `juicefs_fuse_ops_total_KIND`. Versions
    /// without kinds only have `juicefs_fuse_ops_durations_histogram_seconds`.
    /// rbench's built-in file system has a file of the same form.
    JuiceFs,
    /// MooseFS's file `.stats`, with lines `fuse_ops.KIND`. A request that the client
    /// answers from its own memory counts, as it reached the client.
    MooseFs,
    /// The kernel's `/proc/self/mountstats`: calls to the server by kind.
    Nfs,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::JuiceFs => "JuiceFS .stats",
            Source::MooseFs => "MooseFS .stats",
            Source::Nfs => "mountstats",
        })
    }
}

/// A counter of one mount.
///
/// Reading the file of a FUSE file system itself causes requests (open, read, flush,
/// release). A descriptor holds the file, so a reading causes no lookup. The cost of
/// one reading is measured first, by several readings in a row; later readings are
/// net of it. A reading may be wrong by one, as a client may count the last release
/// before or after the next reading.
///
/// While this value lives, the mount cannot be unmounted, only detached.
#[derive(Debug)]
pub struct RequestCounter {
    place: Place,
    source: Source,
    /// Requests that one reading adds, by kind.
    own: BTreeMap<String, u64>,
    /// Number of readings up to now.
    readings: u64,
}

#[derive(Debug)]
enum Place {
    /// The file at the root of the mount, by an O_PATH descriptor.
    File(OwnedFd),
    /// The mount point in the kernel's statistics.
    Kernel(PathBuf),
}

impl RequestCounter {
    /// Finds the counter of the mount that contains `dir`, and reads it several
    /// times. `None` without a counter, or if its form is unknown.
    pub fn find(dir: &Path) -> Option<RequestCounter> {
        let mount = mountinfo::of(dir).ok()?;
        let place = if mount.fs_type.starts_with("nfs") {
            Place::Kernel(mount.mount_point)
        } else if mount.fs_type.starts_with("fuse") {
            Place::File(stats_file(&mount.mount_point)?)
        } else {
            return None;
        };
        let (source, first) = place.read().ok()?;
        let mut counter = RequestCounter {
            place,
            source,
            own: BTreeMap::new(),
            readings: 0,
        };
        counter.calibrate(first)?;
        Some(counter)
    }

    /// Measures the cost of a reading: for each kind, the median of several
    /// differences, so that a request of another process does no harm.
    fn calibrate(&mut self, first: BTreeMap<String, u64>) -> Option<()> {
        let mut readings = vec![first];
        for _ in 1..TRIALS {
            readings.push(self.place.read().ok()?.1);
        }
        for kind in readings.last()?.keys() {
            let at = |i: usize| readings[i].get(kind).copied().unwrap_or(0);
            let mut steps: Vec<u64> = (1..TRIALS)
                .map(|i| at(i).saturating_sub(at(i - 1)))
                .collect();
            steps.sort_unstable();
            let median = steps[steps.len() / 2];
            if median > 0 {
                self.own.insert(kind.clone(), median);
            }
        }
        Some(())
    }

    /// Reads the counter, net of the readings since it was found. Only differences of
    /// two readings have a meaning.
    ///
    /// # Errors
    /// A sentence if the counter is missing or its source differs from the first
    /// reading's.
    pub fn read(&mut self) -> Result<Requests, String> {
        let (source, mut by_kind) = self.place.read()?;
        if source != self.source {
            return Err(format!(
                "the request counter was {} and is now {source}",
                self.source
            ));
        }
        for (kind, own) in &self.own {
            if let Some(count) = by_kind.get_mut(kind) {
                *count = count.saturating_sub(own * self.readings);
            }
        }
        self.readings += 1;
        Ok(Requests {
            source: source.to_string(),
            by_kind,
        })
    }
}

impl Place {
    fn read(&self) -> Result<(Source, BTreeMap<String, u64>), String> {
        match self {
            Place::File(file) => {
                let text = content(file).map_err(|errno| {
                    format!("cannot read the file system's .stats: {}", errno.desc())
                })?;
                of_file(&text).ok_or_else(|| {
                    "the file system's .stats has no request counters in a known format".to_owned()
                })
            }
            Place::Kernel(mount_point) => {
                let failed = |why: io::Error| format!("/proc/self/mountstats: {why}");
                let text = fs::read("/proc/self/mountstats").map_err(failed)?;
                let text = String::from_utf8_lossy(&text);
                let counts = of_mountstats(&text, mount_point).ok_or_else(|| {
                    let point = mount_point.display();
                    format!("/proc/self/mountstats has no call counters for {point}")
                })?;
                Ok((Source::Nfs, counts))
            }
        }
    }
}

/// The file `.stats` of the mount at `mount_point`, as an O_PATH descriptor.
pub(super) fn stats_file(mount_point: &Path) -> Option<OwnedFd> {
    // Does not follow a link that a user created there.
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    open(&mount_point.join(".stats"), flags, Mode::empty()).ok()
}

/// Reads the file of `path` (O_PATH). It opens the file again, because the file
/// system creates the content at open. It reads with large requests until one is not
/// filled.
pub(super) fn content(path: &OwnedFd) -> Result<String, Errno> {
    let name = format!("/proc/self/fd/{}", path.as_raw_fd());
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = open(name.as_str(), flags, Mode::empty())?;
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while bytes.len() < LONGEST {
        let read = nix::unistd::read(&file, &mut buffer)?;
        bytes.extend_from_slice(&buffer[..read]);
        if read < buffer.len() {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Source and requests of the file's text.
fn of_file(text: &str) -> Option<(Source, BTreeMap<String, u64>)> {
    of_juicefs(text)
        .map(|found| (Source::JuiceFs, found))
        .or_else(|| of_moosefs(text).map(|found| (Source::MooseFs, found)))
}

/// Reads lines `NAME VALUE`. Only `…_total_KIND` and the `…_total` of the histogram
/// are numbers of requests; sums of seconds have similar names.
fn of_juicefs(text: &str) -> Option<BTreeMap<String, u64>> {
    const KINDS: &str = "juicefs_fuse_ops_total_";
    const ALL: &str = "juicefs_fuse_ops_durations_histogram_seconds_total";
    let mut kinds = BTreeMap::new();
    let mut all = None;
    for line in text.lines() {
        let Some((name, value)) = line.trim().split_once(' ') else {
            continue;
        };
        if name == ALL {
            all = number(value);
        } else if let Some(kind) = name.strip_prefix(KINDS) {
            add(&mut kinds, kind, number(value)?);
        }
    }
    if !kinds.is_empty() {
        return Some(kinds);
    }
    Some(BTreeMap::from([(TOTAL.to_owned(), all?)]))
}

/// Reads a number of a metrics file: a float by type, an integer by value.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let value: f64 = text.parse().ok()?;
        let whole = value.is_finite() && value >= 0.0 && value < 2f64.powi(63);
        whole.then_some(value as u64)
    })
}

/// Reads lines `fuse_ops.KIND: NUMBER`. A name with a further dot is a part of the
/// number above it, so it is left out; `getattr-cached` adds to `getattr`.
/// `readdirplus` is left out, as `readdir` includes it: a listing of two requests,
/// one with attributes, adds 1 and 2.
fn of_moosefs(text: &str) -> Option<BTreeMap<String, u64>> {
    let mut kinds = BTreeMap::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        let Some(kind) = name.strip_prefix("fuse_ops.") else {
            continue;
        };
        if !kind.contains('.') && kind != "readdirplus" {
            let kind = kind.strip_suffix("-cached").unwrap_or(kind);
            add(&mut kinds, kind, number(value)?);
        }
    }
    (!kinds.is_empty()).then_some(kinds)
}

/// Reads the block of the mount: `device SERVER mounted on POINT with fstype nfs4
/// statvers=1.1`. It contains `per-op statistics` with lines `KIND: operations
/// transmissions …`. If several mounts share a mount point, the last is on top.
fn of_mountstats(text: &str, mount_point: &Path) -> Option<BTreeMap<String, u64>> {
    use std::os::unix::ffi::OsStrExt as _;
    let is_head = |line: &str| line.starts_with("device ");
    let is_ours = |line: &str| {
        let point = line.split_once(" mounted on ").map(|(_, rest)| rest);
        let point = point.and_then(|rest| Some(rest.rsplit_once(" with fstype ")?.0));
        point.is_some_and(|point| unescape(point.as_bytes()) == mount_point.as_os_str().as_bytes())
    };
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().rposition(|l| is_head(l) && is_ours(l))?;
    let block = lines[head + 1..].iter().take_while(|line| !is_head(line));
    let calls = block.skip_while(|line| line.trim() != "per-op statistics");
    let mut kinds = BTreeMap::new();
    for line in calls.skip(1) {
        let Some((name, numbers)) = line.trim().split_once(':') else {
            break;
        };
        let Some(count) = numbers.split_whitespace().next().and_then(number) else {
            break;
        };
        add(&mut kinds, &name.to_ascii_lowercase(), count);
    }
    (!kinds.is_empty()).then_some(kinds)
}

/// Adds to the FUSE name of the kind.
fn add(kinds: &mut BTreeMap<String, u64>, kind: &str, count: u64) {
    let kind = match kind {
        "readdirplus" => "readdir",
        "fsstat" => "statfs",
        "remove" => "unlink",
        "commit" => "fsync",
        "close" => "release",
        "open_noattr" => "open",
        other => other,
    };
    *kinds.entry(kind.to_owned()).or_default() += count;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        let owned = pairs.iter().map(|(kind, n)| ((*kind).to_owned(), *n));
        owned.collect()
    }

    #[test]
    fn a_counter_that_went_back_was_started_again() {
        let at = |pairs: &[(&str, u64)]| Requests {
            source: Source::JuiceFs.to_string(),
            by_kind: map(pairs),
        };
        let earlier = at(&[("open", 5), ("read", 7)]);
        assert!(!at(&[("open", 5), ("read", 9), ("stat", 1)]).restarted(&earlier));
        assert!(at(&[("open", 6), ("read", 2)]).restarted(&earlier));
        assert!(at(&[("open", 6)]).restarted(&earlier));
    }

    #[test]
    fn juicefs_counts_are_told_from_sums_of_seconds() {
        let text = "juicefs_fuse_ops_durations_histogram_seconds_total 123\n\
            juicefs_fuse_ops_durations_seconds_create 5.782717721999997\n\
            juicefs_fuse_ops_total_create 5608\n\
            juicefs_fuse_ops_total_readdir 1.0e+06\n\
            juicefs_meta_ops_total_GetAttr 31905\n\
            juicefs_fuse_open_handlers 1\n";
        let expect = map(&[("create", 5608), ("readdir", 1_000_000)]);
        assert_eq!(of_file(text), Some((Source::JuiceFs, expect)));
    }

    #[test]
    fn a_juicefs_without_kinds_says_a_total() {
        let text = "juicefs_fuse_ops_durations_histogram_seconds_total 123\n\
            juicefs_fuse_ops_durations_seconds_create 5.78\n";
        let expect = map(&[(TOTAL, 123)]);
        assert_eq!(of_file(text), Some((Source::JuiceFs, expect)));
        assert_eq!(of_file("juicefs_fuse_ops_durations_seconds_read 5\n"), None);
    }

    #[test]
    fn moosefs_counts_each_request_once() {
        let text = "fuse_ops: 136\nfuse_ops.statfs: 34\nfuse_ops.lookup: 15\n\
            fuse_ops.lookup.internal: 2\nfuse_ops.lookup.master.positive: 5\n\
            fuse_ops.getattr-cached: 3\nfuse_ops.getattr: 8\nsymlink_cache.inserts: 9\n\
            fuse_ops.readdirplus: 3\nfuse_ops.readdir: 6\nmaster.usec_timediff: [3112]\n";
        let expect = map(&[
            ("statfs", 34),
            ("lookup", 15),
            ("getattr", 11),
            ("readdir", 6),
        ]);
        assert_eq!(of_file(text), Some((Source::MooseFs, expect)));
    }

    #[test]
    fn other_files_of_that_name_count_nothing() {
        for text in ["", "hello\n", "fuse_ops: 3\n", "fuse_ops.read: many\n"] {
            assert_eq!(of_file(text), None, "{text}");
        }
    }

    const MOUNTSTATS: &str = "\
device rootfs mounted on / with fstype rootfs
device host:/a mounted on /mnt/with\\040blank with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2
	bytes:	1 2 3
	RPC iostats version: 1.1  p/v: 100003/4 (nfs)
	xprt:	tcp 0 1 2
	per-op statistics
	        NULL: 1 1 0 44 24 3 0 3 0
	        READ: 7 9 0 1 2 3 4 5 0
	     READDIR: 2 2 0 1 2 3 4 5 0
	 READDIRPLUS: 3 3 0 1 2 3 4 5 0
	      REMOVE: 4 4 0 1 2 3 4 5 0
	GETATTR: 11 11 0 1 2 3 4 5 0

device host:/b mounted on /mnt/b with fstype nfs statvers=1.1
	per-op statistics
	        READ: 1 1 0 1 2 3 4 5 0
";

    #[test]
    fn the_calls_of_one_nfs_mount_are_read() {
        let counts = of_mountstats(MOUNTSTATS, Path::new("/mnt/with blank"));
        let expect = map(&[
            ("null", 1),
            ("read", 7),
            ("readdir", 5),
            ("unlink", 4),
            ("getattr", 11),
        ]);
        assert_eq!(counts, Some(expect));
        let other = of_mountstats(MOUNTSTATS, Path::new("/mnt/b"));
        assert_eq!(other, Some(map(&[("read", 1)])));
        assert_eq!(of_mountstats(MOUNTSTATS, Path::new("/")), None);
        assert_eq!(of_mountstats(MOUNTSTATS, Path::new("/mnt")), None);
    }

    #[test]
    fn the_difference_leaves_out_what_did_not_happen() {
        let at = |pairs| Requests {
            source: Source::JuiceFs.to_string(),
            by_kind: map(pairs),
        };
        let earlier = at(&[("read", 5), ("open", 2), ("flush", 9)]);
        let now = at(&[("read", 8), ("open", 2), ("flush", 1), ("create", 4)]);
        let since = now.since(&earlier);
        assert_eq!(since, at(&[("read", 3), ("create", 4)]));
        assert_eq!(since.total(), 7);
        assert!(since.has_kinds());
        assert!(!at(&[(TOTAL, 1)]).has_kinds());
    }

    #[test]
    fn a_directory_without_a_counter_has_none() {
        assert!(RequestCounter::find(Path::new("/proc")).is_none());
        assert!(RequestCounter::find(Path::new("/missing")).is_none());
    }
}
