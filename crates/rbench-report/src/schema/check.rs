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
    /// Each host.
    pub hosts: Vec<HostChecksResult>,
}

/// What one host found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostChecksResult {
    /// The host's name.
    pub host: String,
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
