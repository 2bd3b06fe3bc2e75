//! What the outcome of a phase is made of: the part of a host, that of a rank,
//! and what the caches could do.

use crate::latency::Latency;
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
#[derive(Debug, Clone, PartialEq)]
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
}

/// One rank's part in a phase.
#[derive(Debug, Clone, PartialEq)]
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

/// `n` a second over `elapsed`; zero when no time passed.
pub fn per_second(n: u64, elapsed: Nanos) -> f64 {
    if elapsed.0 == 0 {
        0.0
    } else {
        n as f64 / elapsed.as_secs_f64()
    }
}
