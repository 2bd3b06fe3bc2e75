//! Residency of a phase that reads, stats or lists: measurements of what answered its
//! operations, and the verdict from them.
//!
//! All counts are integers of one cache (one kernel's memory for one mounted file system),
//! and are added up. [`Residency::verdict`] alone derives the verdict from the sums.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::operations::OpKind;
use crate::parts::Cache;
use crate::units::Nanos;

/// The kind of request for a counter that does not distinguish kinds.
pub const TOTAL: &str = "total";

/// Up to this share of the expected requests, memory answered everything.
const NEXT_TO_NONE: f64 = 0.02;
/// From this share on, memory answered nothing.
const NEXT_TO_ALL: f64 = 0.9;
/// From this share of resident pages on, memory answers all reads.
const ALL_PAGES: f64 = 0.95;
/// Most bytes that one read request fetches.
pub const LARGEST_REQUEST: u64 = 1 << 20;
/// Bytes that one read request usually fetches.
const USUAL_REQUEST: u64 = 128 << 10;

/// Layers between this program and the target's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Evidence {
    /// The files themselves lie in this host's memory (tmpfs, ramfs).
    Memory,
    /// Only this host's kernel caches: anything else comes from a block device or a
    /// server.
    Kernel,
    /// The kernel's caches and a client program (FUSE), which has caches that rbench can
    /// neither see nor drop.
    Client,
    /// Unknown.
    #[default]
    Unknown,
}

impl Evidence {
    /// The layers of a file system, by the kernel's name of its type.
    pub fn of(fs_type: &str) -> Evidence {
        match fs_type {
            "tmpfs" | "ramfs" => Evidence::Memory,
            "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" | "f2fs" | "jfs" | "nilfs2" | "vfat"
            | "exfat" | "ntfs3" | "bcachefs" | "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" => {
                Evidence::Kernel
            }
            fuse if fuse.starts_with("fuse") => Evidence::Client,
            _ => Evidence::Unknown,
        }
    }

    /// The name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Memory => "memory",
            Evidence::Kernel => "kernel",
            Evidence::Client => "client",
            Evidence::Unknown => "unknown",
        }
    }
}

/// Share of the items that one cache's ranks work on in a phase and that they have used
/// before. It is counted in parts; each part is what one rank creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Parts that the ranks work on; 0 if no rank of this cache has work.
    pub parts: u64,
    /// Number of these parts that ranks of this cache created earlier in the run.
    pub made: u64,
    /// Number of the other parts that ranks of this cache have used since.
    pub touched: u64,
}

impl Share {
    /// Adds the parts of another cache.
    pub fn add(&mut self, other: Share) {
        merge!(self, &other => Share { add: parts made touched; });
    }

    /// Parts that ranks of this cache have created or used.
    pub fn known(self) -> u64 {
        self.made + self.touched
    }
}

/// Pages of some files in the page cache at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pages {
    /// Inspected files; a file that several workers have open counts for each.
    pub files: u64,
    /// Files that the phase works on, counted in the same way.
    pub of: u64,
    /// Pages of the inspected files.
    pub pages: u64,
    /// Number of these pages that were in memory.
    pub cached: u64,
}

impl Pages {
    /// Adds the pages of other files.
    pub fn add(&mut self, other: Pages) {
        merge!(self, &other => Pages { add: files of pages cached; });
    }

    /// The share of the pages in memory, 0 to 1; `None` without pages.
    pub fn share(self) -> Option<f64> {
        (self.pages > 0).then(|| self.cached as f64 / self.pages as f64)
    }
}

/// Requests that reached a file system during a phase, from any process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// Name of the counter, for people.
    pub source: String,
    /// Counts by the name of the FUSE request; [`TOTAL`] alone if kinds are not
    /// distinguished.
    pub by_kind: BTreeMap<String, u64>,
}

impl Requests {
    /// Requests since `earlier`, a reading of the same counter. Kinds without any are
    /// left out, also those that decreased ([`Requests::restarted`]).
    pub fn since(&self, earlier: &Requests) -> Requests {
        let difference = |(kind, now): (&String, &u64)| {
            let then = earlier.by_kind.get(kind).copied().unwrap_or(0);
            let count = now.saturating_sub(then);
            (count > 0).then(|| (kind.clone(), count))
        };
        Requests {
            source: self.source.clone(),
            by_kind: self.by_kind.iter().filter_map(difference).collect(),
        }
    }

    /// True if the counter decreased since `earlier`, like that of a restarted
    /// client: differences are then invalid.
    pub fn restarted(&self, earlier: &Requests) -> bool {
        let now = |kind| self.by_kind.get(kind).copied().unwrap_or(0);
        earlier.by_kind.iter().any(|(kind, then)| now(kind) < *then)
    }

    /// Requests of all kinds.
    pub fn total(&self) -> u64 {
        self.by_kind.values().sum()
    }

    /// True if kinds are distinguished.
    pub fn has_kinds(&self) -> bool {
        !self.by_kind.contains_key(TOTAL)
    }

    /// Requests that operations of the kind `op` send if no memory answers; `empty` files
    /// need no read requests.
    pub fn answering(&self, op: OpKind, empty: bool) -> u64 {
        let of = |kinds: &[&str]| {
            kinds
                .iter()
                .filter_map(|kind| self.by_kind.get(*kind))
                .sum()
        };
        if let Some(total) = self.by_kind.get(TOTAL) {
            return *total;
        }
        match op {
            OpKind::Stat | OpKind::Lookup => of(&["lookup", "getattr", "statx"]),
            OpKind::Getattr => of(&["getattr", "statx"]),
            OpKind::Access => of(&["lookup", "getattr", "access"]),
            OpKind::Readlink => of(&["readlink"]),
            OpKind::Statfs => of(&["statfs"]),
            OpKind::Getxattr => of(&["getxattr"]),
            OpKind::Listxattr => of(&["listxattr"]),
            OpKind::List => of(&["readdir", "readdirplus"]),
            OpKind::ReadFile if empty => of(&["open"]),
            _ => of(&["read"]),
        }
    }
}

/// Measurements of one cache's part in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheLook {
    /// The first host of the cache.
    pub host: String,
    /// Operations of the row, failed ones included.
    pub operations: u64,
    /// Bytes that they returned.
    pub bytes: u64,
    /// Operations of the same kind in all rows of the phase. The requests and the fetched
    /// bytes belong to all of them.
    pub asked: u64,
    /// Bytes that these returned.
    pub returned: u64,
    /// The share of items that were created or used on this host; `None` if that is
    /// unknown.
    pub share: Option<Share>,
    /// The page cache just before the start; no pages if it was not inspected.
    pub before: Pages,
    /// The page cache just after the end.
    pub after: Pages,
    /// Requests that reached the file system; `None` if nothing counts those of these operations alone.
    pub requests: Option<Requests>,
    /// Bytes that reads fetched from a block device of this host; `None` if that cannot be
    /// determined.
    pub fetched: Option<u64>,
}

/// A second pass: workers had used all their items once and started over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Time at which the first of them started again, after the common start.
    pub after: Nanos,
    /// Operations of one pass over everything, of all workers that started again.
    pub once: u64,
    /// Total operations of these workers.
    pub done: u64,
}

impl Round {
    /// Joins two: the earlier time, and the operations of both.
    pub fn join(a: Option<Round>, b: Option<Round>) -> Option<Round> {
        a.into_iter().chain(b).reduce(|a, b| Round {
            after: a.after.min(b.after),
            once: a.once + b.once,
            done: a.done + b.done,
        })
    }
}

/// Measurements around the operations of one row, over all caches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Residency {
    /// The layers between this program and the files.
    pub ground: Evidence,
    /// True if the kernel's caches were dropped on every host just before.
    pub dropped: bool,
    /// True if files were opened with `O_DIRECT`.
    pub direct: bool,
    /// True if the data that is read is compared with the data that was written.
    pub verifies: bool,
    /// Repetition of work, if time ends the phase.
    pub round: Option<Round>,
    /// Each cache with operations of the row.
    pub caches: Vec<CacheLook>,
}

/// Conclusion from the measurements of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Measured: memory of this host answered.
    Memory,
    /// The host had created or used the items, and no measurement shows whether its memory
    /// answered.
    Perhaps,
    /// No memory of this host could answer, or none was seen to answer.
    Cold,
    /// Cold until the first worker started again, from memory afterwards.
    ColdThenMemory,
    /// Cold until the first worker started again. Afterwards memory may have answered;
    /// that was not measured.
    ColdThenPerhaps,
    /// Hosts, or parts of the data that a host read, differ.
    Mixed,
    /// The calls themselves bypass the caches.
    Forced,
    /// Unknown.
    Unknown,
}

/// Reason of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The file system lies in memory.
    InMemory,
    /// Almost no requests reached the file system.
    NoRequest,
    /// Almost nothing was fetched from the device.
    NothingFetched,
    /// The pages were in memory beforehand.
    Resident,
    /// Part of the data came from memory, by the measurement.
    Partly,
    /// The host had neither created nor used the items.
    Untouched,
    /// Operations reached the server or the device.
    Reached,
    /// Operations reached the client program, which had used the items before.
    ReachedClient,
    /// The kernel's caches were dropped or bypassed, and there are no others.
    Emptied,
    /// The host had created or used the items; nothing was measured.
    Touched,
    /// The host had created or used some of the items; nothing was measured.
    TouchedPartly,
    /// `AT_STATX_FORCE_SYNC`: no attribute cache may answer.
    Forced,
    /// The hosts differ.
    Hosts,
    /// Neither the users of the items nor the source of the answers is known.
    NotKnown,
}

impl Reason {
    /// The reason in a few words; docs/reference/caches.md has the full text.
    pub fn words(self) -> &'static str {
        match self {
            Reason::InMemory => "files lie in memory",
            Reason::NoRequest => "no requests",
            Reason::NothingFetched => "nothing fetched",
            Reason::Resident => "pages were in memory",
            Reason::Partly => "a part from memory",
            Reason::Untouched => "others' items",
            Reason::Reached => "storage was asked",
            Reason::ReachedClient => "client was asked",
            Reason::Emptied => "caches were empty",
            Reason::Touched => "own items, unmeasured",
            Reason::TouchedPartly => "partly own items",
            Reason::Forced => "past the caches",
            Reason::Hosts => "hosts differ",
            Reason::NotKnown => "not known",
        }
    }
}

impl Verdict {
    /// The name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Memory => "memory",
            Verdict::Perhaps => "perhaps",
            Verdict::Cold => "cold",
            Verdict::ColdThenMemory => "cold-then-memory",
            Verdict::ColdThenPerhaps => "cold-then-perhaps",
            Verdict::Mixed => "mixed",
            Verdict::Forced => "forced",
            Verdict::Unknown => "unknown",
        }
    }

    /// The label of the row's cache state.
    pub fn cache(self) -> Option<Cache> {
        match self {
            Verdict::Memory => Some(Cache::Warm),
            Verdict::Cold => Some(Cache::Cold),
            Verdict::ColdThenMemory | Verdict::ColdThenPerhaps | Verdict::Mixed => {
                Some(Cache::Mixed)
            }
            Verdict::Perhaps | Verdict::Forced | Verdict::Unknown => None,
        }
    }
}

/// Result of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measured {
    Nothing,
    Memory(Reason),
    Partly,
    Reached,
}

impl Measured {
    /// Result from the share of the expected requests that were made.
    fn by_share(asked: f64, none: Reason) -> Measured {
        if asked <= NEXT_TO_NONE {
            Measured::Memory(none)
        } else if asked < NEXT_TO_ALL {
            Measured::Partly
        } else {
            Measured::Reached
        }
    }
}

impl CacheLook {
    /// Adds the measurements of another cache, without its host.
    fn add(&mut self, other: &CacheLook) {
        merge!(self, other => CacheLook {
            add: operations bytes asked returned;
            kept: host;
            own: share before after requests fetched;
        });
        self.share = self.share.zip(*share).map(|(mut mine, theirs)| {
            mine.add(theirs);
            mine
        });
        self.before.add(*before);
        self.after.add(*after);
        self.fetched = self.fetched.zip(*fetched).map(|(a, b)| a + b);
        let both = self.requests.take().zip(requests.as_ref());
        self.requests = both.map(|(mut mine, theirs)| {
            let Requests { source: _, by_kind } = theirs;
            for (kind, count) in by_kind {
                *mine.by_kind.entry(kind.clone()).or_default() += count;
            }
            mine
        });
    }

    /// Result from the requests.
    fn by_requests(&self, op: OpKind) -> Measured {
        let Some(requests) = self.requests.as_ref().filter(|_| self.asked > 0) else {
            return Measured::Nothing;
        };
        let count = requests.answering(op, self.returned == 0);
        if op != OpKind::Read {
            return Measured::by_share(count as f64 / self.asked as f64, Reason::NoRequest);
        }
        // The kernel reads ahead and splits large requests. So a request may answer many
        // operations, and an operation may need several.
        let (count, returned) = (count as f64, self.returned as f64);
        let most = count * LARGEST_REQUEST as f64 / returned.max(1.0);
        let needed = (returned / USUAL_REQUEST as f64).max(self.asked as f64);
        if most < NEXT_TO_ALL {
            Measured::by_share(most, Reason::NoRequest)
        } else if count >= NEXT_TO_ALL * needed {
            Measured::Reached
        } else {
            Measured::Nothing
        }
    }

    /// Result from the fetched bytes.
    fn by_fetched(&self) -> Measured {
        match self.fetched {
            Some(fetched) if self.returned > 0 => Measured::by_share(
                fetched as f64 / self.returned as f64,
                Reason::NothingFetched,
            ),
            _ => Measured::Nothing,
        }
    }

    /// Result from the page cache before the start, if it can answer.
    fn by_pages(&self, op: OpKind, direct: bool) -> Measured {
        let reads = matches!(op, OpKind::Read | OpKind::ReadFile);
        match self.before.share() {
            Some(share) if reads && !direct => {
                if share >= ALL_PAGES {
                    Measured::Memory(Reason::Resident)
                } else if share > 1.0 - ALL_PAGES {
                    Measured::Partly
                } else {
                    Measured::Reached
                }
            }
            _ => Measured::Nothing,
        }
    }
}

impl Residency {
    /// Sum of the measurements of all caches with operations. A value that is unknown for
    /// one cache is unknown for the sum.
    pub fn total(&self) -> CacheLook {
        let mut all = self.caches.iter().filter(|look| look.operations > 0);
        let mut total = all.next().cloned().unwrap_or_default();
        all.for_each(|look| total.add(look));
        total
    }

    /// The verdict on the row as a whole.
    pub fn verdict(&self, op: OpKind) -> (Verdict, Reason) {
        let mut all = self
            .caches
            .iter()
            .filter(|look| look.operations > 0)
            .map(|look| self.judge(op, look));
        let Some(first) = all.next() else {
            return (Verdict::Unknown, Reason::NotKnown);
        };
        all.fold(first, |a, b| {
            let verdict = match (a.0, b.0) {
                (x, y) if x == y => x,
                (Verdict::Unknown, _) | (_, Verdict::Unknown) => Verdict::Unknown,
                (Verdict::Memory, Verdict::Perhaps) | (Verdict::Perhaps, Verdict::Memory) => {
                    Verdict::Perhaps
                }
                _ => Verdict::Mixed,
            };
            let reason = match (verdict, a.1 == b.1) {
                (_, true) => a.1,
                (Verdict::Unknown, _) => Reason::NotKnown,
                _ => Reason::Hosts,
            };
            (verdict, reason)
        })
    }

    /// The verdict on the part of one cache.
    pub fn judge(&self, op: OpKind, look: &CacheLook) -> (Verdict, Reason) {
        if self.ground == Evidence::Memory {
            return (Verdict::Memory, Reason::InMemory);
        }
        if op == OpKind::Getattr {
            // The requests, if counted, show how the file system handles it.
            return match look.by_requests(op) {
                Measured::Memory(reason) => (Verdict::Memory, reason),
                Measured::Partly => (Verdict::Mixed, Reason::Partly),
                Measured::Reached | Measured::Nothing => (Verdict::Forced, Reason::Forced),
            };
        }
        let pages = look.by_pages(op, self.direct);
        let over_all = strongest(look.by_requests(op), look.by_fetched());
        if self.round.is_some() && !self.passes_by(op) {
            let first = self.conclude(op, look, pages);
            // Data that is completely in memory at the end was not fetched twice.
            let kept = look.after.share().is_some_and(|share| share >= ALL_PAGES);
            let over_all = match over_all {
                Measured::Nothing if kept && !self.direct => Measured::Partly,
                other => other,
            };
            return match (first.0, over_all) {
                (Verdict::Cold, Measured::Reached) if self.ground == Evidence::Kernel => {
                    (Verdict::Cold, Reason::Reached)
                }
                (Verdict::Cold, Measured::Memory(_) | Measured::Partly) => {
                    (Verdict::ColdThenMemory, first.1)
                }
                (Verdict::Cold, _) => (Verdict::ColdThenPerhaps, first.1),
                // The pages were in memory, or that is unknown: the row as a whole
                // decides.
                _ => self.conclude(op, look, strongest(over_all, pages)),
            };
        }
        self.conclude(op, look, strongest(over_all, pages))
    }

    /// True if operations bypass the only caches that exist.
    fn passes_by(&self, op: OpKind) -> bool {
        let reads = matches!(op, OpKind::Read | OpKind::ReadFile);
        self.ground == Evidence::Kernel && self.direct && reads
    }

    /// The verdict from a measurement and the earlier use of the items.
    fn conclude(&self, op: OpKind, look: &CacheLook, measured: Measured) -> (Verdict, Reason) {
        let emptied = self.passes_by(op) || self.dropped && self.ground == Evidence::Kernel;
        let known = look.share.filter(|share| share.parts > 0);
        let untouched = known.is_some_and(|share| share.known() == 0);
        let all_touched = known.is_some_and(|share| share.known() == share.parts);
        match measured {
            Measured::Memory(reason) => (Verdict::Memory, reason),
            Measured::Partly => (Verdict::Mixed, Reason::Partly),
            _ if untouched => (Verdict::Cold, Reason::Untouched),
            Measured::Reached if self.ground == Evidence::Kernel => {
                (Verdict::Cold, Reason::Reached)
            }
            Measured::Nothing if emptied => (Verdict::Cold, Reason::Emptied),
            Measured::Reached if all_touched => (Verdict::Perhaps, Reason::ReachedClient),
            Measured::Nothing if all_touched => (Verdict::Perhaps, Reason::Touched),
            _ if known.is_some() => (Verdict::Mixed, Reason::TouchedPartly),
            _ => (Verdict::Unknown, Reason::NotKnown),
        }
    }
}

/// The first conclusive measurement.
fn strongest(a: Measured, b: Measured) -> Measured {
    if a == Measured::Nothing { b } else { a }
}

#[cfg(test)]
mod tests;
