//! The environment of a run on a host. `None` (`null`): unknown, or there is
//! none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts that may affect a host's numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    /// Frequency governors of its processors, each once; empty where the
    /// kernel sets no frequencies.
    #[serde(default)]
    pub governors: Vec<String>,
    /// The clock source of its kernel: `tsc`, `kvm-clock` …
    #[serde(default)]
    pub clock_source: Option<String>,
    /// The kernel's clock discipline.
    #[serde(default)]
    pub ntp: Option<NtpState>,
    /// CPU limit of the process's control groups, in CPUs; `None`: no limit.
    #[serde(default)]
    pub cpu_limit: Option<f64>,
    /// Their memory limit, page cache included, bytes; `None`: no limit.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// This host's mount at the target.
    #[serde(default)]
    pub mount: Option<HostMount>,
    /// The connection of a FUSE mount.
    #[serde(default)]
    pub fuse: Option<FuseSettings>,
    /// The program that serves it.
    #[serde(default)]
    pub client: Option<ClientProgram>,
}

/// The state of a clock from adjtimex(2).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NtpState {
    /// True if the kernel counts the clock as synchronised.
    pub synchronised: bool,
    /// Maximum error of the clock, us.
    pub max_error_us: u64,
    /// Estimated error, us.
    pub estimated_error_us: u64,
    /// Correction of its rate, parts per million.
    pub frequency_ppm: f64,
}

/// A mount as one host sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostMount {
    /// Type of the file system.
    pub fs_type: String,
    /// Source of the mount, without credentials.
    pub source: String,
    /// Options, comma-separated.
    pub options: String,
    /// Directory at which it is mounted.
    pub point: String,
}

/// A FUSE connection as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FuseSettings {
    /// Its number in `/sys/fs/fuse/connections`.
    pub connection: u64,
    /// Most requests in the background.
    pub max_background: Option<u64>,
    /// Number of them at which the file system counts as congested.
    pub congestion_threshold: Option<u64>,
}

/// The program that serves a FUSE mount.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientProgram {
    /// Its process on that host.
    pub process: u32,
    /// The name of the process.
    pub name: String,
    /// The program's file.
    pub program: Option<String>,
    /// Its command line; `***` replaces words that may be secret.
    pub command: Vec<String>,
    /// Its version, if the mount itself has it.
    pub version: Option<String>,
    /// Time for which the kernel may cache attributes, s, from the command line.
    pub attr_timeout_s: Option<f64>,
    /// Time for which the kernel may cache names, s, from the command line.
    pub entry_timeout_s: Option<f64>,
    /// True if the command line turns on the kernel's write-back cache.
    pub writeback_cache: Option<bool>,
}
