//! The results of `rbench check`, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Surroundings;

/// The name of the schema.
pub const CHECK_SCHEMA: &str = "rbench.check/1";

/// The promises that a file system keeps, on each host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// The name and version of this schema.
    #[schemars(regex(pattern = r"^rbench\.check/1(\..+)?$"))]
    pub schema: String,
    /// Version of rbench.
    pub version: String,
    /// The directory, as an absolute path.
    pub directory: String,
    /// Start: UTC, RFC 3339.
    pub started: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Source of the allowed deviations: a file or the name of a preset; `None`: none are allowed.
    pub expect: Option<String>,
    /// True if every requirement is met on every host: nothing is broken or undecided except
    /// allowed deviations, something holds or is allowed, and all files that it created are
    /// removed.
    pub passed: bool,
    /// True if everything was tried; `false` after a stop.
    pub complete: bool,
    /// Each client: the first rank of each host, or one for each mount of it.
    pub hosts: Vec<HostChecksResult>,
    /// Promises to be tried between clients; empty where there is one only and nobody asked for it
    /// by name.
    #[serde(default)]
    pub between: Vec<BetweenResult>,
    /// Largest difference between instants of two clients that count as equal, where they were
    /// compared, ns: a smaller lateness is not counted.
    #[serde(default)]
    pub clock_error_ns: u64,
    /// Load of the clients while it was tried; `None`: none.
    #[serde(default)]
    pub load: Option<CheckLoadResult>,
}

/// Load of the clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLoadResult {
    /// Files that were made, read, renamed, and half of them removed.
    pub files: u64,
    /// Error of the load; `None`: none.
    pub error: Option<String>,
}

/// A promise between clients that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BetweenResult {
    /// The promise and its verdict.
    pub promise: PromiseResult,
    /// Number of tries that could have failed: observations, wanted names, listings, records, locks
    /// that were taken.
    pub tries: u64,
    /// Number of tries that failed.
    pub violations: u64,
    /// The times of all pairs.
    pub times: Option<SeenAfterResult>,
    /// The pairs of clients, where it is about pairs.
    pub pairs: Vec<PairResult>,
}

/// Counts between two clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairResult {
    /// The client that did something, or had the lock: its number in `hosts`, from 0.
    pub from: usize,
    /// The one that looked, or got the lock next.
    pub to: usize,
    /// Like in `BetweenResult`; with locks, the number of times that it went from one to the other.
    pub tries: u64,
    /// Like in `BetweenResult`.
    pub violations: u64,
    /// Violations that are worse than a late observation: nothing seen, a change seen before it was
    /// made, or not for good, another state; two holders of a lock at once. A state that was stale
    /// to the end counts as late.
    pub worse: u64,
    /// Start of the last look that did not see the change, at the latest, after the end of the
    /// change, ns.
    pub late_ns: u64,
    /// The times; `None`: there are none.
    pub times: Option<SeenAfterResult>,
}

/// Time from the return of the last call of one client to the start of another one's look that saw
/// the change; 0 where no look after it saw anything else. With locks: from the start of the call
/// that released it to the acquisition by the next one, if that waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenAfterResult {
    /// Number of times.
    pub count: u64,
    /// The shortest, ns.
    pub min_ns: u64,
    /// The median, ns: the smallest that half of them do not exceed.
    pub median_ns: u64,
    /// The smallest that 99 % of them do not exceed, ns.
    pub p99_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Each is known to so much, ns: the longest time from the last look that did not see it, or
    /// from the end of what was done, to the beginning of the look that did. Of locks: how far they
    /// may be off, by the clocks of both.
    pub resolution_ns: u64,
}

impl SeenAfterResult {
    /// Summary of these times, ns, in any order; `None` without any.
    pub fn of(mut times: Vec<u64>, resolution_ns: u64) -> Option<SeenAfterResult> {
        times.sort_unstable();
        let rank = |hundredths: usize| times[(times.len() * hundredths).div_ceil(100) - 1];
        let (min, max) = (*times.first()?, *times.last()?);
        Some(SeenAfterResult {
            count: times.len() as u64,
            min_ns: min,
            median_ns: rank(50),
            p99_ns: rank(99),
            max_ns: max,
            resolution_ns,
        })
    }
}

/// Results of one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostChecksResult {
    /// The host's name.
    pub host: String,
    /// The rank that tried it.
    #[serde(default)]
    pub rank: u32,
    /// The directory there, as an absolute path.
    #[serde(default)]
    pub directory: String,
    /// Its kernel.
    pub kernel: String,
    /// The mount, and the program that serves it.
    pub surroundings: Surroundings,
    /// True if it was tried as root.
    pub root: bool,
    /// The promises that were tried.
    pub promises: Vec<PromiseResult>,
}

/// A promise that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseResult {
    /// Its name, such as `rename.over-existing.keeps-one`.
    pub name: String,
    /// The promise.
    pub says: String,
    /// Its verdict.
    pub verdict: PromiseVerdict,
    /// The expected result, where something else was seen.
    pub expected: Option<String>,
    /// The observed result, or the reason why there is none; if the promise holds, the amount that
    /// was tried, where that depends on the time.
    pub seen: Option<String>,
    /// The system call that says so.
    pub call: Option<String>,
    /// With what it failed, such as `EINVAL`; `None`: it did something else.
    pub errno: Option<String>,
    /// Path of the call.
    pub path: Option<String>,
    /// Reason why this deviation is allowed; `None`: it is not.
    pub allowed: Option<String>,
    /// Duration, ns.
    pub took_ns: u64,
}

/// Verdict on a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromiseVerdict {
    /// It is.
    Holds,
    /// It is not.
    Broken,
    /// The file system says that it has no such thing.
    Unsupported,
    /// It could not be decided.
    Undecided,
    /// It was not tried.
    LeftOut,
}

impl PromiseVerdict {
    /// Its words.
    pub fn name(self) -> &'static str {
        match self {
            PromiseVerdict::Holds => "holds",
            PromiseVerdict::Broken => "broken",
            PromiseVerdict::Unsupported => "not supported",
            PromiseVerdict::Undecided => "undecided",
            PromiseVerdict::LeftOut => "left out",
        }
    }

    /// Returns true if the promise cannot be counted on, unless that is allowed.
    pub fn fails(self) -> bool {
        matches!(self, PromiseVerdict::Broken | PromiseVerdict::Undecided)
    }
}

impl PromiseResult {
    /// Returns true if it keeps the check from passing.
    pub fn fails(&self) -> bool {
        self.verdict.fails() && self.allowed.is_none()
    }
}
