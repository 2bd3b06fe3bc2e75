//! What `rbench check` found, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Surroundings;

/// The name of the schema.
pub const CHECK_SCHEMA: &str = "rbench.check/1";

/// Which promises a file system keeps, on each host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// The name and version of this schema.
    #[schemars(regex(pattern = r"^rbench\.check/1(\..+)?$"))]
    pub schema: String,
    /// Version of rbench.
    pub version: String,
    /// The directory, as an absolute path.
    pub directory: String,
    /// When it began: UTC, RFC 3339.
    pub started: String,
    /// What was drawn at random follows from it.
    pub seed: u64,
    /// What says which deviations are allowed: a file or the name of a preset; `None`: none are.
    pub expect: Option<String>,
    /// Whether all that is demanded holds on every host: nothing is broken or undecided but
    /// what is allowed, something holds or is allowed, and what was made is removed.
    pub passed: bool,
    /// Whether everything was tried; `false` after a stop.
    pub complete: bool,
    /// Each client: the first rank of each host, or one for each mount of it.
    pub hosts: Vec<HostChecksResult>,
    /// What was to be tried between clients; empty where there is one only and nobody asked for
    /// it by name.
    #[serde(default)]
    pub between: Vec<BetweenResult>,
    /// How far the instants of two clients may have been apart at worst that are told to be the
    /// same, when it was judged by them, ns: what is less late is not taken for late.
    #[serde(default)]
    pub clock_error_ns: u64,
    /// What clients did besides while it was tried; `None`: nothing.
    #[serde(default)]
    pub load: Option<CheckLoadResult>,
}

/// What clients did besides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLoadResult {
    /// Files that were made, read, renamed, and half of them removed.
    pub files: u64,
    /// What went wrong with that; `None`: nothing.
    pub error: Option<String>,
}

/// A promise between clients that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BetweenResult {
    /// The promise and what came of it.
    pub promise: PromiseResult,
    /// What could have gone wrong so often: things that were looked at, names that were wanted,
    /// listings, records, locks that were taken.
    pub tries: u64,
    /// What did.
    pub violations: u64,
    /// The times of all pairs.
    pub times: Option<SeenAfterResult>,
    /// The pairs of clients, where it is about pairs.
    pub pairs: Vec<PairResult>,
}

/// What was counted between two clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairResult {
    /// The client that did something, or had the lock: its number in `hosts`, from 0.
    pub from: usize,
    /// The one that looked, or got the lock next.
    pub to: usize,
    /// As of all pairs; of locks how often it went from one to the other.
    pub tries: u64,
    /// As of all pairs.
    pub violations: u64,
    /// Of them are worse than that something was seen late: nothing seen, before it was done, not
    /// for good, something else; two holders of a lock at once. What was stale as long as it was
    /// looked for is late.
    pub worse: u64,
    /// The last look that did not see it began at most so long behind the end of what was done, ns.
    pub late_ns: u64,
    /// The times; `None`: there are none.
    pub times: Option<SeenAfterResult>,
}

/// How long after the last call of one client had returned another one's look began that saw
/// what it did; 0 where no look behind it saw anything else. Of locks: from the beginning of the
/// call that let it go to when the next one, who waited, had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenAfterResult {
    /// How many.
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
    /// Of these times, ns, in any order; `None` of none.
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

/// What one client found.
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
    /// What is mounted there, and the program that serves it.
    pub surroundings: Surroundings,
    /// Whether it was tried as root.
    pub root: bool,
    /// What was tried.
    pub promises: Vec<PromiseResult>,
}

/// A promise that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseResult {
    /// Its name, such as `rename.over-existing.keeps-one`.
    pub name: String,
    /// What is promised.
    pub says: String,
    /// What came of it.
    pub verdict: PromiseVerdict,
    /// What should have been seen, where something else was.
    pub expected: Option<String>,
    /// What was seen, or why nothing was; of one that holds how much was tried, where that
    /// depends on the time.
    pub seen: Option<String>,
    /// The system call that says so.
    pub call: Option<String>,
    /// With what it failed, such as `EINVAL`; `None`: it did something else.
    pub errno: Option<String>,
    /// What the call was about.
    pub path: Option<String>,
    /// Why this deviation is allowed; `None`: it is not.
    pub allowed: Option<String>,
    /// How long it took, ns.
    pub took_ns: u64,
}

/// Whether a promise is kept.
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

    /// Whether the promise cannot be counted on, unless that is allowed.
    pub fn fails(self) -> bool {
        matches!(self, PromiseVerdict::Broken | PromiseVerdict::Undecided)
    }
}

impl PromiseResult {
    /// Whether it keeps the check from passing.
    pub fn fails(&self) -> bool {
        self.verdict.fails() && self.allowed.is_none()
    }
}
