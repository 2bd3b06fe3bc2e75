//! The ground truth: numbers, results and durations of requests of each kind. A
//! duration is from the arrival at the file system to just before the reply. It
//! always lies within the duration that a client measures.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use parking_lot::Mutex;
use rbench_core::{Latency, Nanos};
use serde::{Deserialize, Serialize};

use crate::fault::table::FaultTable;
use crate::kind::Kind;

/// Statistics of one kind of request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindStats {
    /// Their numbers.
    pub counts: Counts,
    /// Time from arrival to just before the reply.
    pub latency: Latency,
}

/// Counts of one kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Finished requests, including failed ones.
    pub requests: u64,
    /// Requests with an error as reply, including lookups of missing names.
    pub errors: u64,
    /// Bytes read or written.
    pub bytes: u64,
}

/// The recorders of one or few threads, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(Mutex<[Option<Box<KindStats>>; Kind::COUNT]>);

impl Shard {
    fn new() -> Shard {
        Shard(Mutex::new([const { None }; Kind::COUNT]))
    }
}

thread_local! {
    /// Number of this thread's shard, drawn at its first record.
    static SLOT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The statistics of an active file system. Recording only locks the thread's own
/// shard.
#[derive(Debug)]
pub struct Stats {
    shards: Box<[Shard]>,
    slots_taken: AtomicUsize,
    faults: FaultTable,
}

impl Stats {
    /// Creates statistics for `threads` recording threads; more may record, but share
    /// shards.
    pub(crate) fn new(threads: usize, faults: FaultTable) -> Stats {
        Stats {
            shards: (0..threads.max(1)).map(|_| Shard::new()).collect(),
            slots_taken: AtomicUsize::new(0),
            faults,
        }
    }

    pub(crate) fn faults(&self) -> &FaultTable {
        &self.faults
    }

    /// Adds a finished request, which read or wrote `bytes`.
    #[inline]
    pub(crate) fn record(&self, kind: Kind, failed: bool, bytes: u64, took: Nanos) {
        let slot = SLOT.get().unwrap_or_else(|| {
            let slot = self.slots_taken.fetch_add(1, Ordering::Relaxed);
            SLOT.set(Some(slot));
            slot
        });
        let mut kinds = self.shards[slot % self.shards.len()].0.lock();
        let stats = kinds[kind.index()].get_or_insert_default();
        stats.counts.requests += 1;
        stats.counts.errors += u64::from(failed);
        stats.counts.bytes += bytes;
        stats.latency.record(took);
    }

    /// All statistics up to now. A client that has the reply to a request finds the
    /// request here.
    pub fn snapshot(&self) -> Snapshot {
        let mut kinds: BTreeMap<Kind, KindStats> = BTreeMap::new();
        for shard in &self.shards {
            let shard = shard.0.lock();
            for (kind, stats) in Kind::ALL.iter().zip(shard.iter()) {
                if let Some(stats) = stats {
                    kinds.entry(*kind).or_default().merge(stats);
                }
            }
        }
        Snapshot {
            kinds,
            fired: self.faults.fired(),
        }
    }
}

impl KindStats {
    fn merge(&mut self, other: &KindStats) {
        let KindStats { counts, latency } = other;
        let Counts {
            requests,
            errors,
            bytes,
        } = counts;
        self.counts.requests += requests;
        self.counts.errors += errors;
        self.counts.bytes += bytes;
        self.latency.merge(latency);
    }
}

/// The statistics at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    kinds: BTreeMap<Kind, KindStats>,
    fired: Vec<(String, u64)>,
}

impl Snapshot {
    /// The statistics of `kind`; `None` without such requests.
    pub fn kind(&self, kind: Kind) -> Option<&KindStats> {
        self.kinds.get(&kind)
    }

    /// The counts of `kind`.
    pub fn counts(&self, kind: Kind) -> Counts {
        self.kind(kind)
            .map_or(Counts::default(), |stats| stats.counts)
    }

    /// Each fault with the number of requests for which it fired; then the quota and the power cut.
    pub fn faults_fired(&self) -> &[(String, u64)] {
        &self.fired
    }

    /// The counts of every kind with requests since `earlier`, a snapshot of the same
    /// file system.
    pub fn since(&self, earlier: &Snapshot) -> BTreeMap<Kind, Counts> {
        let difference = |(kind, now): (&Kind, &KindStats)| {
            let then = earlier.counts(*kind);
            let counts = Counts {
                requests: now.counts.requests - then.requests,
                errors: now.counts.errors - then.errors,
                bytes: now.counts.bytes - then.bytes,
            };
            (counts.requests > 0).then_some((*kind, counts))
        };
        self.kinds.iter().filter_map(difference).collect()
    }

    /// Converts to the content of a statistics file.
    pub fn to_file(&self) -> StatsFile {
        let request =
            |(kind, stats): (&Kind, &KindStats)| (kind.name().to_owned(), RequestStats::new(stats));
        let fired = |(fault, count)| FaultFired { fault, count };
        StatsFile {
            schema: StatsFile::SCHEMA.to_owned(),
            requests: self.kinds.iter().map(request).collect(),
            faults_fired: self.fired.iter().cloned().map(fired).collect(),
            process: ProcessStats::now(),
        }
    }
}

/// The content of a statistics file, schema `rbench.testfs/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatsFile {
    /// [`StatsFile::SCHEMA`].
    pub schema: String,
    /// By [`Kind::name`]; kinds without requests are absent.
    pub requests: BTreeMap<String, RequestStats>,
    /// Every configured fault, even if it never fired; then `quota` and `power-cut`
    /// if configured.
    pub faults_fired: Vec<FaultFired>,
    /// Resources that the serving process has used since its start, by getrusage(2).
    pub process: ProcessStats,
}

/// Resources used by a process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProcessStats {
    /// CPU time in its own code.
    pub user_s: f64,
    /// CPU time in the kernel on its behalf.
    pub system_s: f64,
    /// Peak of the resident memory.
    pub peak_resident_bytes: u64,
}

impl ProcessStats {
    /// The resources that this process has used until now.
    fn now() -> ProcessStats {
        let used = getrusage(UsageWho::RUSAGE_SELF).expect("every Linux knows it");
        let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
        ProcessStats {
            user_s: seconds(used.user_time()),
            system_s: seconds(used.system_time()),
            peak_resident_bytes: u64::try_from(used.max_rss()).unwrap_or(0) << 10,
        }
    }
}

/// One kind of request in a statistics file; times are from the arrival to just
/// before the reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the schema say it")]
pub struct RequestStats {
    pub count: u64,
    pub errors: u64,
    pub bytes: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub mean_ns: f64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
}

/// Number of times that a fault fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultFired {
    /// The fault, as its text.
    pub fault: String,
    /// The number of requests for which it fired.
    pub count: u64,
}

impl RequestStats {
    fn new(stats: &KindStats) -> RequestStats {
        let latency = &stats.latency;
        RequestStats {
            count: stats.counts.requests,
            errors: stats.counts.errors,
            bytes: stats.counts.bytes,
            min_ns: latency.min().0,
            max_ns: latency.max().0,
            mean_ns: latency.mean_ns(),
            p50_ns: latency.quantile(0.5).0,
            p90_ns: latency.quantile(0.9).0,
            p95_ns: latency.quantile(0.95).0,
            p99_ns: latency.quantile(0.99).0,
            p999_ns: latency.quantile(0.999).0,
        }
    }
}

impl StatsFile {
    /// Name of the schema.
    pub const SCHEMA: &'static str = "rbench.testfs/1";

    /// Writes the file at `path` in one step: readers see the old or the new content.
    /// A special file (a device, a pipe) is written to, and not replaced.
    ///
    /// # Errors
    /// Fails if the temporary file beside it cannot be written or renamed.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return self.write_to(&OpenOptions::new().write(true).open(path)?);
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        // An existing file is not written to, least of all through a symbolic link.
        let new = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let temporary = tempfile::Builder::new()
            .prefix(".stats.")
            .make_in(folder.unwrap_or(Path::new(".")), new)?;
        self.write_to(temporary.as_file())?;
        temporary.persist(path)?;
        Ok(())
    }

    fn write_to(&self, mut file: &File) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        file.write_all(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;
    use crate::fault::log::{FaultLog, FaultRecord};
    use crate::fault::table::QUOTA;

    fn stats(faults: &[Fault]) -> Stats {
        let log = FaultLog::default();
        Stats::new(3, FaultTable::new(faults, 0, log).with(QUOTA))
    }

    #[test]
    fn threads_record_apart_and_a_snapshot_adds_them_up() {
        let stats = stats(&[]);
        let mut expect = Latency::new();
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let stats = &stats;
                scope.spawn(move || {
                    for i in 0..1000 {
                        stats.record(Kind::Read, i % 10 == 0, 4096, Nanos(thread * 1000 + i));
                    }
                });
            }
        });
        (0..8000).for_each(|took| expect.record(Nanos(took)));
        let expect = KindStats {
            counts: Counts {
                requests: 8000,
                errors: 800,
                bytes: 8000 * 4096,
            },
            latency: expect,
        };
        let snapshot = stats.snapshot();
        assert_eq!(snapshot.kind(Kind::Read), Some(&expect));
        assert_eq!(snapshot.kind(Kind::Write), None);
    }

    #[test]
    fn snapshots_subtract_to_what_happened_between_them() {
        let stats = stats(&[]);
        stats.record(Kind::Read, false, 10, Nanos(1));
        stats.record(Kind::Open, false, 0, Nanos(1));
        let earlier = stats.snapshot();
        stats.record(Kind::Read, true, 5, Nanos(1));
        stats.record(Kind::Mkdir, false, 0, Nanos(1));
        let one = |errors, bytes| Counts {
            requests: 1,
            errors,
            bytes,
        };
        let expect = BTreeMap::from([(Kind::Read, one(1, 5)), (Kind::Mkdir, one(0, 0))]);
        assert_eq!(stats.snapshot().since(&earlier), expect);
    }

    #[test]
    fn the_file_holds_the_schema_and_replaces_the_former_one() {
        let fault: Fault = "read:stall=500ms@nth=2".parse().expect("well formed");
        let stats = stats(&[fault]);
        for hit in (0..2).flat_map(|_| stats.faults().judge(Kind::Read)) {
            stats.faults().fire(hit, FaultRecord::default());
        }
        stats.record(Kind::Create, false, 0, Nanos(2_000_000));
        stats.record(Kind::Create, true, 0, Nanos(4_000_000));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("stats.json");
        std::fs::write(&path, "before").expect("writable");
        let written = stats.snapshot().to_file();
        written.write(&path).expect("writable");

        let text = std::fs::read_to_string(&path).expect("readable");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let close = stats
            .snapshot()
            .kind(Kind::Create)
            .map(|s| s.latency.clone());
        let p50 = close.expect("recorded").quantile(0.5).0;
        let expect = serde_json::json!({
            "schema": "rbench.testfs/1",
            "requests": {"create": {
                "count": 2, "errors": 1, "bytes": 0,
                "min_ns": 2_000_000, "max_ns": 4_000_000, "mean_ns": 3_000_000.0,
                "p50_ns": p50, "p90_ns": 4_000_000, "p95_ns": 4_000_000,
                "p99_ns": 4_000_000, "p999_ns": 4_000_000,
            }},
            "faults_fired": [
                {"fault": "read:stall=500ms@nth=2", "count": 1},
                {"fault": "quota", "count": 0},
            ],
            "process": {
                "user_s": written.process.user_s,
                "system_s": written.process.system_s,
                "peak_resident_bytes": written.process.peak_resident_bytes,
            },
        });
        assert!(written.process.peak_resident_bytes > 0);
        assert_eq!(value, expect);
        let back: StatsFile = serde_json::from_str(&text).expect("the schema");
        assert_eq!(back, written);
        let names = std::fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(names, 1, "no temporary file is left");
    }

    #[test]
    fn what_is_no_regular_file_is_written_to_and_not_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("pipe");
        let mode = nix::sys::stat::Mode::S_IRWXU;
        nix::unistd::mkfifo(&path, mode).expect("new");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || std::fs::read(path).expect("readable")
        });
        let file = stats(&[]).snapshot().to_file();
        file.write(&path).expect("writable");
        let text = reader.join().expect("no panic");
        let back: StatsFile = serde_json::from_slice(&text).expect("the schema");
        assert_eq!(back, file);
        assert!(!path.metadata().expect("there").is_file());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let empty = stats(&[]).snapshot().to_file();
        assert!(empty.write(Path::new("/nowhere/stats.json")).is_err());
        assert!(empty.write(Path::new("/")).is_err());
    }
}
