//! What the outcome of a phase is made of: the part of a host, that of a rank,
//! and what the caches could do.

use serde::{Deserialize, Serialize};

use crate::latency::Latency;
use crate::timeline::Gap;
use crate::units::{Nanos, Rank};

/// Whether the client's caches could answer the operations of a phase, as the
/// measurements around it say ([`crate::residency::Residency::verdict`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The host had not touched the items, or its caches were empty.
    Cold,
    /// The host's memory answered, or the host had made or touched the items
    /// earlier in the run and nothing says that it did not.
    Warm,
    /// Hosts, parts of the items or stretches of time differ.
    Mixed,
}

impl Cache {
    /// The name in reports and result files.
    pub fn name(self) -> &'static str {
        match self {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
            Cache::Mixed => "mixed",
        }
    }
}

/// What opening, transferring and closing took together, over all ranks: IOR's times. Each is
/// from the begin of the first such operation of any rank to the end of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Of the opens.
    pub open: Nanos,
    /// Of the transfers and of the syncs behind them.
    pub transfer: Nanos,
    /// Of the closes.
    pub close: Nanos,
    /// From the begin of the first open to the end of the last close.
    pub total: Nanos,
}

/// What a search of a tree has looked at, each once, over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Entries that are no directories.
    pub files: u64,
    /// Directories, the first one included.
    pub directories: u64,
    /// Entries of both kinds for which all tests hold.
    pub matches: u64,
}

/// One host's part in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostOutcome {
    /// Its name.
    pub host: String,
    /// Items done without error.
    pub items: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Failed operations.
    pub errors: u64,
    /// The time in which its own operations were measured.
    pub elapsed: Nanos,
    /// Service times of its workers.
    pub service: Latency,
    /// Response times of its workers; in an open loop only.
    pub response: Option<Latency>,
    /// The longest time in which none of its workers finished an operation, failed ones
    /// included, from the start of measuring to the last end.
    pub gap: Option<Gap>,
}

/// The rank that had the longest time without a finished operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankGap {
    /// The rank.
    pub rank: Rank,
    /// Its host.
    pub host: String,
    /// From the start of measuring or its last finished operation to its next one.
    pub gap: Gap,
}

/// One rank's part in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankOutcome {
    /// Its number.
    pub rank: Rank,
    /// Its host.
    pub host: String,
    /// Items done without error.
    pub items: u64,
    /// Failed operations.
    pub errors: u64,
    /// The time in which its own operations were measured.
    pub elapsed: Nanos,
    /// Median service time.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// Longest service time.
    pub max: Nanos,
    /// CPU time, user and system, that its process used from the start of the
    /// phase's set-up to the end of the phase.
    pub cpu: Nanos,
}

/// How late operations with an intended start did start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Operations that had one.
    pub operations: u64,
    /// Sum over them of the actual start less the intended one.
    /// In nanoseconds.
    pub sum: u128,
    /// The largest.
    pub max: Nanos,
}

impl Lateness {
    /// Notes one more.
    #[inline]
    pub fn record(&mut self, late: Nanos) {
        self.operations += 1;
        self.sum += u128::from(late.0);
        self.max = self.max.max(late);
    }

    /// Adds those of others.
    pub fn merge(&mut self, other: Lateness) {
        let Lateness {
            operations,
            sum,
            max,
        } = other;
        self.operations += operations;
        self.sum += sum;
        self.max = self.max.max(max);
    }

    /// The mean; 0 of none.
    pub fn mean(&self) -> Nanos {
        let mean = self.sum.checked_div(u128::from(self.operations));
        Nanos(u64::try_from(mean.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}

/// Of a row of a replay: what the trace says of these operations, and how the replay differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Operations of that kind in the traces, of all copies.
    pub wanted: u64,
    /// How long they took when they were recorded, of one copy, failed ones included; `None`: the
    /// traces do not say.
    pub recorded: Option<Latency>,
    /// Results that differ.
    pub differ: Differ,
    /// Operations that were not done: their file was not open in the replay.
    pub unopened: u64,
}

/// Results of a replay that are not those of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Differ {
    /// Failed, and had worked.
    pub failed: u64,
    /// Worked, and had failed.
    pub worked: u64,
    /// Failed with another error.
    pub error: u64,
    /// Moved another number of bytes.
    pub length: u64,
}

impl Differ {
    /// All of them.
    pub fn total(self) -> u64 {
        let Differ {
            failed,
            worked,
            error,
            length,
        } = self;
        failed + worked + error + length
    }
}

/// Up to how much later than intended operations of a replay are counted together.
pub const LATE_LIMITS: [Nanos; 6] = [
    Nanos(10_000),
    Nanos(100_000),
    Nanos(1_000_000),
    Nanos(10_000_000),
    Nanos(100_000_000),
    Nanos(1_000_000_000),
];

/// How late operations of a replay started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Late {
    /// Operations up to each of [`LATE_LIMITS`], and behind the last of them.
    pub counts: [u64; 7],
    /// The latest.
    pub max: Nanos,
}

impl Late {
    /// Notes an operation that started so late.
    #[inline]
    pub fn record(&mut self, late: Nanos) {
        let place = LATE_LIMITS.iter().position(|limit| late <= *limit);
        self.counts[place.unwrap_or(LATE_LIMITS.len())] += 1;
        self.max = self.max.max(late);
    }

    /// Adds those of others.
    pub fn merge(&mut self, other: &Late) {
        let Late { counts, max } = other;
        for (count, more) in self.counts.iter_mut().zip(counts) {
            *count += more;
        }
        self.max = self.max.max(*max);
    }

    /// All operations.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of operations that were at most so late, one of [`LATE_LIMITS`]; of none all.
    pub fn within(&self, limit: Nanos) -> f64 {
        let pairs = LATE_LIMITS.iter().zip(&self.counts);
        let within: u64 = pairs
            .filter(|(at, _)| **at <= limit)
            .map(|(_, count)| count)
            .sum();
        match self.total() {
            0 => 1.0,
            total => within as f64 / total as f64,
        }
    }
}

/// Of a replay as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayTotals {
    /// The pass, from 0.
    pub iteration: u32,
    /// The form of each trace, by its name.
    pub traces: Vec<(String, String)>,
    /// Operations in the traces, what is left out included.
    pub found: u64,
    /// Operations to be replayed, of one copy.
    pub wanted: u64,
    /// How many copies.
    pub copies: u32,
    /// Operations that were done, of all copies; failed ones included.
    pub done: u64,
    /// What was left out, of one copy, and why.
    pub left_out: Vec<(String, u64)>,
    /// Places in which the traces miss something.
    pub gaps: u64,
    /// Processes in the traces, of one copy.
    pub processes: u64,
    /// Groups of processes that share open files: no more workers have work, of one copy.
    pub groups: u64,
    /// From the first recorded start to the last one, at the speed of the replay.
    pub span: Nanos,
    /// Files, directories and links that were made before, of one copy.
    pub prepared: u64,
    /// Their bytes.
    pub prepared_bytes: u64,
    /// How late operations started; `None`: they were not to wait.
    pub late: Option<Late>,
}

/// `n` a second over `elapsed`; zero when no time passed.
pub fn per_second(n: u64, elapsed: Nanos) -> f64 {
    if elapsed.0 == 0 {
        0.0
    } else {
        n as f64 / elapsed.as_secs_f64()
    }
}
