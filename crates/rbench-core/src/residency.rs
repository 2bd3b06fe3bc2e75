//! What answered the operations of a phase that reads, stats or lists: what
//! was measured around it, and the verdict that these measurements carry.
//!
//! All counts are integers of one cache (the memory of one kernel for one
//! mounted file system) and are added up; the verdict is made of them at the
//! end, by [`Residency::verdict`] alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::operations::OpKind;
use crate::parts::Cache;
use crate::units::Nanos;

/// The kind of request under which a counter counts that knows no kinds.
pub const TOTAL: &str = "total";

/// Up to this share of what would have been asked, nothing was asked.
const NEXT_TO_NONE: f64 = 0.02;
/// From this share on, everything was asked.
const NEXT_TO_ALL: f64 = 0.9;
/// From this share of resident pages on, reads need nothing else.
const ALL_PAGES: f64 = 0.95;
/// Bytes that one read request brings at most.
pub const LARGEST_REQUEST: u64 = 1 << 20;
/// Bytes that one read request brings where nobody has asked for more.
const USUAL_REQUEST: u64 = 128 << 10;

/// What lies between this program and the target's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Evidence {
    /// The files themselves lie in this host's memory (tmpfs, ramfs).
    Memory,
    /// The kernel's caches and nothing else of this host: what they do not
    /// have comes from a block device or a server.
    Kernel,
    /// A client program (FUSE) behind the kernel's caches, with caches of its
    /// own that nobody here can see or drop.
    Client,
    /// Nobody knows.
    #[default]
    Unknown,
}

impl Evidence {
    /// By the type of the file system as the kernel names it.
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

/// Whose items the ranks of one cache work on in a phase, counted in parts:
/// one part is what one rank makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Parts worked on; 0: no rank of this cache has anything to do.
    pub parts: u64,
    /// Of these, made by ranks of this cache earlier in the run.
    pub made: u64,
    /// Of the others, those that ranks of this cache have used since.
    pub touched: u64,
}

impl Share {
    /// Adds the parts of others.
    pub fn add(&mut self, other: Share) {
        let Share {
            parts,
            made,
            touched,
        } = other;
        self.parts += parts;
        self.made += made;
        self.touched += touched;
    }

    /// Parts that this cache has had to do with.
    pub fn known(self) -> u64 {
        self.made + self.touched
    }
}

/// What of some files the page cache held at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pages {
    /// Files looked at; one that several workers have open counts for each.
    pub files: u64,
    /// Files that the phase works on, in the same count.
    pub of: u64,
    /// Pages of the files looked at.
    pub pages: u64,
    /// Of these, those in memory.
    pub cached: u64,
}

impl Pages {
    /// Adds other files.
    pub fn add(&mut self, other: Pages) {
        let Pages {
            files,
            of,
            pages,
            cached,
        } = other;
        self.files += files;
        self.of += of;
        self.pages += pages;
        self.cached += cached;
    }

    /// The share of the pages in memory, 0 to 1; `None` without any page.
    pub fn share(self) -> Option<f64> {
        (self.pages > 0).then(|| self.cached as f64 / self.pages as f64)
    }
}

/// Requests that reached a file system during a phase, whoever made them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// Who counts, for people.
    pub source: String,
    /// By the name of the FUSE request; [`TOTAL`] alone where kinds are not
    /// told apart.
    pub by_kind: BTreeMap<String, u64>,
}

impl Requests {
    /// Those that an operation of the kind `op` sends when no memory answers
    /// it; of an `empty` file there is nothing to read.
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

/// What one cache's part in a phase measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheLook {
    /// The first host of the cache.
    pub host: String,
    /// Operations of the row, failed ones included.
    pub operations: u64,
    /// Bytes that they returned.
    pub bytes: u64,
    /// Operations of the same kind in all rows of the phase: the requests and
    /// the fetched bytes are theirs together.
    pub asked: u64,
    /// Bytes that these returned.
    pub returned: u64,
    /// Whose items they were; `None`: nobody knows who has used them.
    pub share: Option<Share>,
    /// The page cache just before the start; no pages: not looked at.
    pub before: Pages,
    /// The page cache just after the end.
    pub after: Pages,
    /// Requests that reached the file system; `None`: nothing counts them.
    pub requests: Option<Requests>,
    /// Bytes that the reads made a block device of this host deliver; `None`
    /// where that cannot be told.
    pub fetched: Option<u64>,
}

/// That workers had used everything they have once and went over it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// When the first of them came round, after the common start.
    pub after: Nanos,
    /// Operations of one pass over everything, of all that came round.
    pub once: u64,
    /// Operations that these did in all.
    pub done: u64,
}

impl Round {
    /// The earlier of two, with the operations of both.
    pub fn join(a: Option<Round>, b: Option<Round>) -> Option<Round> {
        match (a, b) {
            (Some(a), Some(b)) => Some(Round {
                after: a.after.min(b.after),
                once: a.once + b.once,
                done: a.done + b.done,
            }),
            (a, b) => a.or(b),
        }
    }
}

/// What was seen around the operations of one row, over all caches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Residency {
    /// What lies between this program and the files.
    pub ground: Evidence,
    /// The kernel's caches were dropped on every host just before.
    pub dropped: bool,
    /// Files were opened with O_DIRECT.
    pub direct: bool,
    /// What was read is compared with what was written.
    pub verifies: bool,
    /// Where time decides: whether workers went over their part again.
    pub round: Option<Round>,
    /// Each cache that took part.
    pub caches: Vec<CacheLook>,
}

/// What the measurements say of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Measured: memory of this host answered.
    Memory,
    /// The host had made or used the items, and nothing measured says whether
    /// its memory answered.
    Perhaps,
    /// No memory of this host could answer, or none was seen to.
    Cold,
    /// Cold until the first worker came round, from memory then.
    ColdThenMemory,
    /// Cold until the first worker came round; whether memory answered then is
    /// not measured.
    ColdThenPerhaps,
    /// Hosts, or parts of what a host read, differ.
    Mixed,
    /// The calls themselves ask past the caches.
    Forced,
    /// Nothing is known.
    Unknown,
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The file system lies in memory.
    InMemory,
    /// Next to no request reached the file system.
    NoRequest,
    /// Next to nothing was fetched from the device.
    NothingFetched,
    /// The pages were in memory before.
    Resident,
    /// Some of it came from memory, by the measurement.
    Partly,
    /// The host had neither made nor used the items.
    Untouched,
    /// Operations reached the server or the device.
    Reached,
    /// Operations reached the client program, which had seen the items before.
    ReachedClient,
    /// The kernel's caches were dropped or passed by, and there are no others.
    Emptied,
    /// The host had made or used the items; nothing was measured.
    Touched,
    /// The host had made or used some of the items; nothing was measured.
    TouchedPartly,
    /// `AT_STATX_FORCE_SYNC`: no cache of attributes may answer.
    Forced,
    /// The hosts differ.
    Hosts,
    /// Neither who has used the items nor what answered is known.
    NotKnown,
}

impl Reason {
    /// In a few words; docs/reference/report.md has them in full.
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

    /// The label of the row.
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

/// What a measurement says of who answered.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measured {
    Nothing,
    Memory(Reason),
    Partly,
    Reached,
}

impl Measured {
    /// By the share of what would have been asked that was asked.
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
    /// Adds what another cache saw; its host is not named.
    fn add(&mut self, other: &CacheLook) {
        let CacheLook {
            host: _,
            operations,
            bytes,
            asked,
            returned,
            share,
            before,
            after,
            requests,
            fetched,
        } = other;
        self.operations += operations;
        self.bytes += bytes;
        self.asked += asked;
        self.returned += returned;
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

    /// What the requests say.
    fn by_requests(&self, op: OpKind) -> Measured {
        let Some(requests) = self.requests.as_ref().filter(|_| self.asked > 0) else {
            return Measured::Nothing;
        };
        let count = requests.answering(op, self.returned == 0);
        if op != OpKind::Read {
            return Measured::by_share(count as f64 / self.asked as f64, Reason::NoRequest);
        }
        // The kernel reads ahead, and cuts what is large: a request may answer
        // many operations, and an operation may need several.
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

    /// What the fetched bytes say.
    fn by_fetched(&self) -> Measured {
        match self.fetched {
            Some(fetched) if self.returned > 0 => Measured::by_share(
                fetched as f64 / self.returned as f64,
                Reason::NothingFetched,
            ),
            _ => Measured::Nothing,
        }
    }

    /// What the page cache said before, where it can answer.
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
    /// What all caches that took part saw together; what one of them does not
    /// know nobody knows of all.
    pub fn total(&self) -> CacheLook {
        let mut all = self.caches.iter().filter(|look| look.operations > 0);
        let mut total = all.next().cloned().unwrap_or_default();
        all.for_each(|look| total.add(look));
        total
    }

    /// What the row as a whole is.
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

    /// What the part of one cache is.
    pub fn judge(&self, op: OpKind, look: &CacheLook) -> (Verdict, Reason) {
        if self.ground == Evidence::Memory {
            return (Verdict::Memory, Reason::InMemory);
        }
        if op == OpKind::Getattr {
            // What the file system does with it the requests tell, where they are counted.
            return match look.by_requests(op) {
                Measured::Memory(reason) => (Verdict::Memory, reason),
                Measured::Partly => (Verdict::Mixed, Reason::Partly),
                Measured::Reached | Measured::Nothing => (Verdict::Forced, Reason::Forced),
            };
        }
        let pages = look.by_pages(op, self.direct);
        let over_all = [look.by_requests(op), look.by_fetched()]
            .into_iter()
            .find(|m| *m != Measured::Nothing)
            .unwrap_or(Measured::Nothing);
        if self.round.is_some() && !self.passes_by(op) {
            let first = self.conclude(op, look, pages);
            // What is there as a whole at the end was not fetched twice.
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
                // Pages were there, or nobody knows: the whole row decides.
                _ => self.conclude(op, look, strongest(over_all, pages)),
            };
        }
        self.conclude(op, look, strongest(over_all, pages))
    }

    /// Whether operations go past the only caches there are.
    fn passes_by(&self, op: OpKind) -> bool {
        let reads = matches!(op, OpKind::Read | OpKind::ReadFile);
        self.ground == Evidence::Kernel && self.direct && reads
    }

    /// From what was measured, and whose items they are.
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

/// The first that says something.
fn strongest(a: Measured, b: Measured) -> Measured {
    if a == Measured::Nothing { b } else { a }
}

#[cfg(test)]
mod tests;
