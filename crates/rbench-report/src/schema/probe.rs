//! The results of `rbench probe`, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Surroundings;

/// The name of the schema.
pub const PROBE_SCHEMA: &str = "rbench.probe/1";

/// Properties and abilities of a mount on each host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeResult {
    /// The name and version of this schema.
    #[schemars(regex(pattern = r"^rbench\.probe/1(\..+)?$"))]
    pub schema: String,
    /// Version of rbench.
    pub version: String,
    /// The directory, as an absolute path.
    pub directory: String,
    /// Time of the probe: UTC, RFC 3339.
    pub started: String,
    /// Each host.
    pub hosts: Vec<HostProbeResult>,
    /// True if all hosts see the same directory there; `true` with one host.
    pub shared: bool,
    /// Each pair of hosts: one of them made a file that the other one looked for.
    pub sights: Vec<SightResult>,
}

/// A mount as one host finds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostProbeResult {
    /// The host's name.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// The mount, and the program that serves it.
    pub surroundings: Surroundings,
    /// The cheapest call that the file system has to answer itself, such as `statx`;
    /// `None`: none was seen to arrive.
    pub round_trip_call: Option<String>,
    /// Its median, ns.
    pub round_trip_ns: Option<u64>,
    /// The abilities that were tried.
    pub abilities: Vec<AbilityResult>,
    /// The ability at which the file system did not answer within 20 s; nothing was tried
    /// after it.
    pub silent_at: Option<String>,
}

/// An ability that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbilityResult {
    /// Its name, such as `rename-over`.
    pub name: String,
    /// Its description.
    pub about: String,
    /// Its verdict.
    pub verdict: AbilityVerdict,
    /// Further details: a limit, or what the file system did instead.
    pub detail: String,
    /// The system call that says so; `None` where the verdict is `yes`.
    pub call: Option<String>,
    /// With what it failed, such as `EINVAL`; `None`: it did something else than it should.
    pub errno: Option<String>,
}

/// Verdict on an ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AbilityVerdict {
    /// It can.
    Yes,
    /// It cannot.
    No,
    /// The attempt could not be prepared.
    Unknown,
}

impl AbilityVerdict {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            AbilityVerdict::Yes => "yes",
            AbilityVerdict::No => "no",
            AbilityVerdict::Unknown => "unknown",
        }
    }
}

/// A file of one host, looked for by another one that had looked for the name before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SightResult {
    /// The host that made it.
    pub maker: String,
    /// The host that looked.
    pub looker: String,
    /// From the word that the file is closed to the first look that found it, ns; a look
    /// every millisecond. `None`: not within 10 s.
    pub seen_after_ns: Option<u64>,
    /// True if its content was there as well.
    pub whole: bool,
}
