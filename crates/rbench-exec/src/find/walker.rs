//! One worker of a search.
//!
//! Ranks do not exchange the directories that they find. Directories near the root are read by all
//! workers, each of them checks those entries whose names fall to it (by a hash), so that a
//! directory with millions of entries keeps all of them busy. As soon as a level has enough
//! directories, these are dealt to the ranks, each with its subtree; there the workers of a rank
//! take one directory after the other from their shared queue. The tree must not change meanwhile.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_core::{Clock as _, Failure, OpKind};
use rbench_plan::find::SizeTest;
use rbench_sys::walk::{self, Attributes, Directory, Kind, entries};
use xxhash_rust::xxh3::xxh3_64;

use super::queue::Queue;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::worker::Runner;

/// The rows: kind, name, label.
pub const ROWS: [(OpKind, &str, &str); 3] = [
    (OpKind::Open, "find-opendir", "find: opens of directories"),
    (OpKind::Readdir, "find-readdir", "find: readdir"),
    (OpKind::Stat, "find-stat", "find: stat"),
];
const OPEN: usize = 0;
const READ: usize = 1;
const STAT: usize = 2;

/// Number of directories for each rank from which a level is dealt.
const ENOUGH: u64 = 4;

/// Most directories of a level that every worker knows.
const KNOWN: usize = 1 << 16;

/// The search of all workers of a rank.
#[derive(Debug)]
pub struct Search {
    /// Its start.
    pub root: PathBuf,
    /// The file system that is not left.
    pub device: u64,
    /// Entries must be modified after that.
    pub newer_than: Option<(i64, i64)>,
    /// Condition on the size.
    pub size: Option<SizeTest>,
    /// Pattern of names.
    pub name: Option<CString>,
    /// This rank.
    pub rank: u32,
    /// Ranks of the run, and workers of each.
    pub ranks: u32,
    /// See `ranks`.
    pub threads: u32,
    /// Directories that this rank has still to read.
    pub queue: Queue,
    /// Totals of its workers.
    pub totals: Totals,
}

/// Files, directories, matches.
#[derive(Debug, Default)]
pub struct Totals([AtomicU64; 3]);

impl Totals {
    fn add(&self, counts: [u64; 3]) {
        for (total, count) in self.0.iter().zip(counts) {
            total.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// For a reduction.
    pub fn words(&self) -> Vec<u64> {
        self.0
            .iter()
            .map(|total| total.load(Ordering::Relaxed))
            .collect()
    }
}

/// The directories of a level.
#[derive(Debug, Default)]
struct Level {
    count: u64,
    /// All of them; of very many only those of this rank.
    known: Vec<PathBuf>,
    dealt: bool,
}

impl Level {
    fn add(&mut self, path: PathBuf, (rank, ranks): (u32, u32)) {
        let own = |path: &PathBuf| {
            xxh3_64(path.as_os_str().as_bytes()) % u64::from(ranks) == u64::from(rank)
        };
        self.count += 1;
        if self.dealt && !own(&path) {
            return;
        }
        self.known.push(path);
        if !self.dealt && self.known.len() > KNOWN {
            self.dealt = true;
            self.known.retain(own);
        }
    }

    /// The directories of this rank.
    fn deal(mut self, (rank, ranks): (u32, u32)) -> Vec<PathBuf> {
        if self.dealt {
            return self.known;
        }
        // Not every rank reads them in the same order.
        self.known.sort_unstable();
        let all = self.known.into_iter();
        all.skip(rank as usize)
            .step_by(ranks.max(1) as usize)
            .collect()
    }
}

/// Destination of the directories found in one.
enum Into<'l> {
    /// All workers read the level.
    Level(&'l mut Level),
    /// The queue of this rank's workers: all entries are this worker's.
    Queue,
}

/// One worker.
pub struct Walker {
    search: Arc<Search>,
    thread: u32,
    buffer: Vec<u8>,
    counts: [u64; 3],
}

impl Walker {
    /// The worker `thread` of a rank.
    pub fn new(search: Arc<Search>, thread: u32) -> Walker {
        search.queue.join();
        Walker {
            search,
            thread,
            buffer: vec![0; walk::BUFFER],
            counts: [0; 3],
        }
    }

    /// Returns true if an entry with this name in a directory that all workers read is its own.
    fn owns(&self, name: &CStr) -> bool {
        let search = &self.search;
        let workers = u64::from(search.ranks) * u64::from(search.threads);
        let me = u64::from(search.rank) * u64::from(search.threads) + u64::from(self.thread);
        xxh3_64(name.to_bytes()) % workers.max(1) == me
    }

    /// Checks the start of the search, which is not an entry of a directory.
    fn visit_root(&mut self, gate: &Gate, meter: &mut Meter) {
        let search = Arc::clone(&self.search);
        let name = search.root.file_name().unwrap_or(OsStr::new("/"));
        let name = CString::new(name.as_bytes()).unwrap_or_default();
        if !self.owns(&name) {
            return;
        }
        self.counts[1] += 1;
        if !self.name_fits(&name) {
            return;
        }
        let root = &search.root;
        let looks = || walk::attributes(root).map(|(attributes, _)| attributes);
        let attributes = match self.asks() {
            true => timed(STAT, (gate, meter), looks, || root.clone()),
            false => None,
        };
        self.judge(attributes);
    }

    fn name_fits(&self, name: &CStr) -> bool {
        let pattern = self.search.name.as_ref();
        pattern.is_none_or(|pattern| walk::fits(pattern, name))
    }

    /// Returns true if attributes are needed for an entry whose name matches.
    fn asks(&self) -> bool {
        self.search.newer_than.is_some() || self.search.size.is_some()
    }

    /// Counts an entry whose name fits, if the other tests hold.
    fn judge(&mut self, attributes: Option<Attributes>) {
        let holds = match attributes {
            None => !self.asks(),
            Some(found) => {
                let newer = self.search.newer_than;
                newer.is_none_or(|time| found.modified > time)
                    && self.search.size.is_none_or(|test| test.holds(found.size))
            }
        };
        self.counts[2] += u64::from(holds);
    }

    /// Reads a directory to its end, and checks those of its entries that are its own.
    fn read(&mut self, path: &Path, mut into: Into<'_>, gate: &Gate, meter: &mut Meter) {
        let device = self.search.device;
        let open = || {
            let open = Directory::open(path)?;
            Ok((open.device()? == device).then_some(open))
        };
        if gate.stop.is_raised() {
            return;
        }
        let opened = timed(OPEN, (gate, meter), open, || path.to_owned());
        // Mount points are not entered.
        let Some(Some(mut directory)) = opened else {
            return;
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        while !gate.stop.is_raised() {
            let read = || directory.read(&mut buffer);
            let bytes = timed(READ, (gate, meter), read, || path.to_owned());
            let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
                break;
            };
            for entry in entries(&buffer[..bytes]) {
                match entry {
                    Ok((name, kind)) => {
                        let place = (path, &directory);
                        self.entry(place, (name, kind), &mut into, (gate, meter));
                    }
                    Err(errno) => {
                        let path = path.to_string_lossy();
                        meter.failed_untimed(READ, Failure::new(OpKind::Readdir, path, errno));
                    }
                }
            }
        }
        self.buffer = buffer;
    }

    fn entry(
        &mut self,
        (path, directory): (&Path, &Directory),
        (name, kind): (&CStr, Kind),
        into: &mut Into<'_>,
        (gate, meter): (&Gate, &mut Meter),
    ) {
        let own = match into {
            Into::Level(_) => self.owns(name),
            Into::Queue => true,
        };
        let below = || path.join(OsStr::from_bytes(name.to_bytes()));
        let mut attributes = None;
        let is_directory = match kind {
            Kind::Directory => true,
            Kind::Other => false,
            Kind::Unknown => {
                let stat = || directory.stat(name);
                attributes = timed(STAT, (gate, meter), stat, below);
                match attributes {
                    Some(found) => found.is_directory,
                    None => return,
                }
            }
        };
        if own {
            self.counts[usize::from(is_directory)] += 1;
            if self.name_fits(name) {
                if attributes.is_none() && self.asks() {
                    let stat = || directory.stat(name);
                    attributes = timed(STAT, (gate, meter), stat, below);
                }
                self.judge(attributes);
            }
        }
        if is_directory {
            let Search { rank, ranks, .. } = *self.search;
            match into {
                Into::Level(level) => level.add(below(), (rank, ranks)),
                Into::Queue => self.search.queue.add([below()]),
            }
        }
    }

    /// Reads level after level with all others, until there are enough directories: those
    /// of this rank.
    fn levels(&mut self, gate: &Gate, meter: &mut Meter) -> Vec<PathBuf> {
        let place = (self.search.rank, self.search.ranks);
        let enough = ENOUGH * u64::from(self.search.ranks);
        let mut level = vec![self.search.root.clone()];
        while !level.is_empty() && !gate.stop.is_raised() {
            let mut next = Level::default();
            for path in &level {
                self.read(path, Into::Level(&mut next), gate, meter);
            }
            // Of a dealt level, no rank knows all directories.
            if next.count >= enough || next.dealt {
                return next.deal(place);
            }
            level = next.known;
        }
        Vec::new()
    }
}

/// Makes a call of that row, and notes how it went.
fn timed<T>(
    lane: usize,
    (gate, meter): (&Gate, &mut Meter),
    call: impl FnOnce() -> Result<T, Errno>,
    path: impl FnOnce() -> PathBuf,
) -> Option<T> {
    let start = gate.clock.now();
    let result = call();
    let span = Span::new(start, gate.clock.now());
    match result {
        Ok(value) => {
            meter.done(lane, span, 0);
            Some(value)
        }
        Err(errno) => {
            let path = path();
            let failure = Failure::new(ROWS[lane].0, path.to_string_lossy(), errno);
            meter.failed(lane, span, failure);
            None
        }
    }
}

impl Runner for Walker {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        let search = Arc::clone(&self.search);
        self.visit_root(gate, meter);
        let own = self.levels(gate, meter);
        search.queue.begin(own);
        let mut waits_from = gate.clock.now();
        while let Some(path) = search.queue.next(gate) {
            gate.waits.add(waits_from, gate.clock.now());
            self.read(&path, Into::Queue, gate, meter);
            waits_from = gate.clock.now();
        }
    }

    fn finish(&mut self, _meter: &mut Meter) {
        self.search.totals.add(std::mem::take(&mut self.counts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dealt(count: usize, ranks: u32) -> Vec<PathBuf> {
        let of = |rank: u32| {
            let mut level = Level::default();
            let mut all: Vec<usize> = (0..count).collect();
            // Each rank reads in another order.
            all.rotate_left(rank as usize * 7 % count.max(1));
            for n in all {
                level.add(PathBuf::from(format!("d{n}")), (rank, ranks));
            }
            assert_eq!(level.count, count as u64);
            level.deal((rank, ranks))
        };
        let mut all: Vec<PathBuf> = (0..ranks).flat_map(of).collect();
        all.sort();
        all
    }

    #[test]
    fn each_directory_of_a_level_is_dealt_to_one_rank() {
        for (count, ranks) in [(0, 3), (10, 3), (KNOWN + 1000, 5)] {
            let all = dealt(count, ranks);
            let mut once = all.clone();
            once.dedup();
            assert_eq!((all.len(), once.len()), (count, count));
        }
    }
}
