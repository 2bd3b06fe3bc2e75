//! Configuration of a test file system, and the texts of the command line that set
//! it. Faults have their own module.

use std::path::PathBuf;
use std::str::FromStr;

use rbench_core::units::ParseQuantityError;
use rbench_core::{Bytes, Nanos};

use crate::broken::BrokenPromise;
use crate::fault::{Action, Fault};
use crate::kind::{Kind, UnknownKind};
use crate::observed::Observer;

/// The place where the data lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// In the memory of the process.
    Memory {
        /// Limit for data, extended attributes and 1 KiB for each inode together.
        /// Beyond it, operations fail with ENOSPC.
        cap: Bytes,
    },
    /// In a folder, to which every operation is forwarded. Nothing outside the folder
    /// can be reached.
    Passthrough(PathBuf),
}

/// The least time from a request's arrival to its reply, for each kind of request.
/// The default is zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latencies([Nanos; Kind::COUNT]);

impl Default for Latencies {
    fn default() -> Self {
        Latencies([Nanos(0); Kind::COUNT])
    }
}

impl Latencies {
    /// The latency of `kind`.
    #[inline]
    pub fn get(&self, kind: Kind) -> Nanos {
        self.0[kind.index()]
    }

    /// Sets the latency of `kind`. A latency of a request without a reply has
    /// no effect.
    pub fn set(&mut self, kind: Kind, latency: Nanos) {
        self.0[kind.index()] = latency;
    }

    /// Sets the latency of every kind that has a reply.
    pub fn set_all(&mut self, latency: Nanos) {
        for kind in Kind::ALL.iter().filter(|kind| kind.has_reply()) {
            self.set(*kind, latency);
        }
    }
}

/// The reason why latencies could not be read. Its text is a clause that can follow
/// the name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseLatencyError {
    /// A part that is not of the form KIND=TIME.
    #[error("'{0}' is not of the form KIND=TIME (such as create=2ms or all=100us)")]
    Form(String),
    /// An unknown name of a request.
    #[error(transparent)]
    Kind(#[from] UnknownKind),
    /// A request without a reply.
    #[error("'{0}' has no reply that could be delayed")]
    NoReply(Kind),
    /// A time that cannot be read.
    #[error("the latency of '{0}': {1}")]
    Time(String, #[source] ParseQuantityError),
}

impl FromStr for Latencies {
    type Err = ParseLatencyError;

    /// Reads `create=2ms,read=100us`. `all=1ms` sets every kind that no other part names; later
    /// parts override earlier ones.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut latencies = Latencies::default();
        // A kind by its name counts wherever `all` stands.
        let mut parts: Vec<&str> = text.split(',').map(str::trim).collect();
        parts.sort_by_key(|part| !part.starts_with("all="));
        for part in parts {
            let (name, time) = part
                .split_once('=')
                .ok_or_else(|| ParseLatencyError::Form(part.to_owned()))?;
            let wrong = |error| ParseLatencyError::Time(name.to_owned(), error);
            let latency = time.parse().map_err(wrong)?;
            if name == "all" {
                latencies.set_all(latency);
                continue;
            }
            let kind: Kind = name.parse()?;
            if !kind.has_reply() {
                return Err(ParseLatencyError::NoReply(kind));
            }
            latencies.set(kind, latency);
        }
        Ok(latencies)
    }
}

/// The file `.stats` in the root of a mount, with the number of requests by kind in
/// JuiceFS's format. Listings omit it, and a file of that name in the back end takes
/// precedence. Injected latency and faults do not affect it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RootStats {
    /// No such file.
    Off,
    /// The file exists, and requests about it are not counted.
    #[default]
    Silent,
    /// Like in JuiceFS: requests about it are counted like any other.
    Counted,
}

/// A text that is not a [`RootStats`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not one of off, silent, counted")]
pub struct ParseRootStatsError(String);

impl FromStr for RootStats {
    type Err = ParseRootStatsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(RootStats::Off),
            "silent" => Ok(RootStats::Silent),
            "counted" => Ok(RootStats::Counted),
            other => Err(ParseRootStatsError(other.to_owned())),
        }
    }
}

/// Configuration of a test file system.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The place where the data lies.
    pub backing: Backing,
    /// Injected latency.
    pub latency: Latencies,
    /// Injected faults; more than one may hit the same request.
    pub faults: Vec<Fault>,
    /// Broken promises; only in memory.
    pub broken: Vec<BrokenPromise>,
    /// Time for which the kernel may answer from attributes that it has seen. With
    /// zero every call reaches the file system.
    pub attr_timeout: Nanos,
    /// Like `attr_timeout`, for names. A reply with a single time for both (to create and
    /// readdirplus) gets the shorter one.
    pub entry_timeout: Nanos,
    /// Threads that serve requests, at least 1.
    pub threads: usize,
    /// Most requests with a latency that are served at once, at least 1. A further
    /// one waits for one of them to end, and its latency starts then. The file system
    /// answers at most this number, divided by the latency, per second. `None`: no
    /// limit.
    pub servers: Option<usize>,
    /// The source that the mount table shows.
    pub source: String,
    /// True if users other than the one who mounts have access. The kernel then
    /// checks permissions, which may add getattr requests. An ordinary user needs
    /// `user_allow_other` in /etc/fuse.conf.
    pub allow_other: bool,
    /// Seed of the faults: it decides which requests a probability hits, and which
    /// bytes are damaged.
    pub seed: u64,
    /// Makes every file bypass the kernel's page cache, so that each call is one
    /// request (up to 1 MiB), whatever the caller's flags. A fault `read:short`
    /// implies it, see [`Config::bypasses_page_cache`].
    pub direct_io: bool,
    /// Limit for the data of all files, in blocks of 4 KiB. Writes beyond it fail
    /// with ENOSPC. Only in memory.
    pub quota: Option<Bytes>,
    /// Keeps a durable copy of the files for [`crate::Mounted::power_cut`]. It takes
    /// the same memory again, outside the cap. Only in memory.
    pub power_cut: bool,
    /// The file that gets a line for each fault that fired ([`crate::FaultRecord`]).
    /// It must not lie below the mount point.
    pub fault_log: Option<PathBuf>,
    /// Lets the kernel keep the pages of a file when it is opened again
    /// (FOPEN_KEEP_CACHE). Otherwise each open drops them.
    pub keep_cache: bool,
    /// The file `.stats` in the root.
    pub stats_file: RootStats,
    /// The receiver of a record of each request without an injected error, and of every release.
    pub observer: Option<Observer>,
}

impl Config {
    /// `backing` without latency and faults, cache times of 1 s, and a
    /// thread for each CPU but at least 4.
    pub fn new(backing: Backing) -> Config {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Config {
            backing,
            latency: Latencies::default(),
            faults: Vec::new(),
            broken: Vec::new(),
            attr_timeout: Nanos::SECOND,
            entry_timeout: Nanos::SECOND,
            threads: cpus.max(4),
            servers: None,
            source: "rbench-testfs".to_owned(),
            allow_other: false,
            seed: 0,
            direct_io: false,
            quota: None,
            power_cut: false,
            fault_log: None,
            keep_cache: false,
            stats_file: RootStats::default(),
            observer: None,
        }
    }

    /// An in-memory file system of `cap` bytes.
    pub fn memory(cap: Bytes) -> Config {
        Config::new(Backing::Memory { cap })
    }

    /// A file system that forwards to `folder`.
    pub fn passthrough(folder: impl Into<PathBuf>) -> Config {
        Config::new(Backing::Passthrough(folder.into()))
    }

    /// Sets both cache times to zero, so that every call reaches the file
    /// system.
    pub fn uncached(mut self) -> Config {
        self.attr_timeout = Nanos(0);
        self.entry_timeout = Nanos(0);
        self
    }

    /// True if every file bypasses the page cache: on request, or because reads are cut
    /// short. The kernel takes a short read into its page cache as the end of the file, and
    /// continues with zeros.
    pub fn bypasses_page_cache(&self) -> bool {
        let cuts = |fault: &Fault| fault.kind == Kind::Read && fault.action == Action::Short;
        self.direct_io || self.faults.iter().any(cuts)
    }

    /// True if a fault has this action.
    pub(crate) fn injects(&self, action: Action) -> bool {
        self.faults.iter().any(|fault| fault.action == action)
    }

    /// The mount option that lets other users in; the kernel then checks permissions.
    pub(crate) fn access(&self) -> &'static str {
        match self.allow_other {
            true => ",allow_other,default_permissions",
            false => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Latencies, String> {
        text.parse().map_err(|e: ParseLatencyError| e.to_string())
    }

    #[test]
    fn kinds_take_their_own_latency_and_the_last_word_counts() {
        let latencies = read("all=1ms, create=2ms,read=100us,read=0").expect("well formed");
        assert_eq!(latencies.get(Kind::Create), Nanos(2_000_000));
        assert_eq!(latencies.get(Kind::Read), Nanos(0));
        assert_eq!(latencies.get(Kind::Unlink), Nanos::MILLISECOND);
        assert_eq!(latencies.get(Kind::Forget), Nanos(0));
        let create = read("create=2ms,all=1ms").map(|l| l.get(Kind::Create));
        assert_eq!(create, Ok(Nanos(2_000_000)));
        let list = read("readdirplus=3us").map(|l| l.get(Kind::Readdir));
        assert_eq!(list, Ok(Nanos(3000)));
    }

    #[test]
    fn a_bad_latency_names_the_offending_part() {
        let check = |text: &str, part: &str| {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        };
        check("", "'' is not of the form");
        check("create", "'create' is not of the form");
        check("create=2ms,", "'' is not of the form");
        check("stat=2ms", "'stat' is not a FUSE request");
        check("read=5parsecs", "the latency of 'read': '5parsecs'");
        check("forget=1ms", "'forget' has no reply");
    }
}
