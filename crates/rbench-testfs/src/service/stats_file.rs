//! The file `.stats` in the root: the numbers of requests in JuiceFS's format, for
//! programs that read such a file. It is found by name, but not listed, and its
//! content is created when it is opened.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo};
use nix::errno::Errno;
use nix::unistd::{getegid, geteuid};
use parking_lot::Mutex;

use crate::config::RootStats;
use crate::kind::Kind;
use crate::stats::{KindStats, Snapshot};
use crate::store::{Answer, Place};

/// Its name at the root.
pub(super) const NAME: &str = ".stats";

/// An inode number that no back end uses.
const INO: u64 = 0xffff_ffff_ffff_fff0;

/// The statistics file of a mount.
#[derive(Debug)]
pub(super) struct OwnFile {
    /// True if requests about it are counted, too.
    pub(super) counted: bool,
    /// The content for each handle.
    open: Mutex<HashMap<u64, Vec<u8>>>,
    handles: AtomicU64,
}

impl OwnFile {
    pub(super) fn new(wanted: RootStats) -> Option<OwnFile> {
        let counted = match wanted {
            RootStats::Off => return None,
            RootStats::Silent => false,
            RootStats::Counted => true,
        };
        Some(OwnFile {
            counted,
            open: Mutex::default(),
            handles: AtomicU64::new(1),
        })
    }

    pub(super) fn is_at(&self, place: Place<'_>) -> bool {
        place.parent == INodeNo::ROOT.0 && place.name == OsStr::new(NAME)
    }

    pub(super) fn is(&self, ino: u64) -> bool {
        ino == INO
    }

    pub(super) fn attr(&self) -> FileAttr {
        let epoch = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: INodeNo(INO),
            size: 0,
            blocks: 0,
            atime: epoch,
            mtime: epoch,
            ctime: epoch,
            crtime: epoch,
            kind: FileType::RegularFile,
            perm: 0o444,
            nlink: 1,
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Opens a handle with the content of `snapshot`.
    pub(super) fn open(&self, flags: i32, snapshot: &Snapshot) -> Answer<u64> {
        if flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0 {
            return Err(Errno::EACCES);
        }
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(handle, text(snapshot).into_bytes());
        Ok(handle)
    }

    /// Returns at most `size` bytes from `offset` on.
    pub(super) fn read(&self, handle: u64, offset: u64, size: u32) -> Answer<Vec<u8>> {
        let open = self.open.lock();
        let content = open.get(&handle).ok_or(Errno::EBADF)?;
        let start = usize::try_from(offset).map_or(content.len(), |at| at.min(content.len()));
        let end = content.len().min(start + size as usize);
        Ok(content[start..end].to_vec())
    }

    pub(super) fn release(&self, handle: u64) {
        self.open.lock().remove(&handle);
    }
}

/// One `NAME VALUE` per line, like JuiceFS: numbers and seconds by kind, and their
/// totals. `forget` is omitted, as in JuiceFS.
fn text(snapshot: &Snapshot) -> String {
    let known = Kind::ALL.iter().filter(|kind| **kind != Kind::Forget);
    let kinds: Vec<(Kind, &KindStats)> = known
        .filter_map(|kind| Some((*kind, snapshot.kind(*kind)?)))
        .collect();
    let seconds = |stats: &KindStats| {
        let requests = stats.counts.requests as f64;
        stats.latency.mean_ns() * requests / 1e9
    };
    let all: u64 = kinds.iter().map(|(_, stats)| stats.counts.requests).sum();
    let all_seconds: f64 = kinds.iter().map(|(_, stats)| seconds(stats)).sum();
    let mut out = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "juicefs_fuse_ops_{name} {value}");
    };
    line("durations_histogram_seconds_total", &all);
    line("durations_histogram_seconds_sum", &all_seconds);
    for (kind, stats) in &kinds {
        line(&format!("durations_seconds_{kind}"), &seconds(stats));
    }
    for (kind, stats) in &kinds {
        line(&format!("total_{kind}"), &stats.counts.requests);
    }
    out
}
