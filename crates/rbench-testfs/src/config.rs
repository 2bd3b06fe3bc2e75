//! What a test file system is made of, and the texts of the command line that
//! set it. Faults have their own module.

use std::path::PathBuf;
use std::str::FromStr;

use rbench_core::units::ParseQuantityError;
use rbench_core::{Bytes, Nanos};

use crate::broken::BrokenPromise;
use crate::fault::{Action, Fault};
use crate::kind::{Kind, UnknownKind};
use crate::observed::Observer;

/// Where the data lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// In the memory of the process.
    Memory {
        /// What data, extended attributes and 1 KiB for each inode may take
        /// together; beyond it, operations fail with ENOSPC.
        cap: Bytes,
    },
    /// In a folder, to which every operation is forwarded. Nothing outside
    /// the folder is ever reached.
    Passthrough(PathBuf),
}

/// How long each kind of request takes at least, from its arrival to the
/// reply; zero where nothing is set.
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

/// Why latencies could not be read. The text is a clause that fits behind the
/// name of a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseLatencyError {
    /// A part that is not of the form KIND=TIME.
    #[error("'{0}' is not of the form KIND=TIME (such as create=2ms or all=100us)")]
    Form(String),
    /// A name that no request has.
    #[error(transparent)]
    Kind(#[from] UnknownKind),
    /// A request without a reply.
    #[error("'{0}' has no reply that could be delayed")]
    NoReply(Kind),
    /// A time that cannot be read.
    #[error("the latency of '{kind}': {source}")]
    Time {
        /// Whose latency it would have been.
        kind: String,
        /// What is wrong with it.
        source: ParseQuantityError,
    },
}

impl FromStr for Latencies {
    type Err = ParseLatencyError;

    /// Reads `create=2ms,read=100us`; `all=1ms` sets every kind, and what
    /// comes later overrides what came before.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut latencies = Latencies::default();
        for part in text.split(',').map(str::trim) {
            let (name, time) = part
                .split_once('=')
                .ok_or_else(|| ParseLatencyError::Form(part.to_owned()))?;
            let latency = time.parse().map_err(|source| ParseLatencyError::Time {
                kind: name.to_owned(),
                source,
            })?;
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

/// The file `.stats` at the root of a mount, with the number of requests by
/// kind in the form of JuiceFS's. Listings leave it out; a file of that name
/// that the back end has comes first. Injected latency and faults do not touch
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RootStats {
    /// There is none.
    Off,
    /// There is one, and requests about it are in no statistics.
    #[default]
    Silent,
    /// As JuiceFS's: requests about it are counted like any other.
    Counted,
}

/// Why a text is no [`RootStats`].
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

/// A test file system.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the data lies.
    pub backing: Backing,
    /// Injected latency.
    pub latency: Latencies,
    /// Injected faults; more than one may hit the same request.
    pub faults: Vec<Fault>,
    /// Promises that are broken. In memory only.
    pub broken: Vec<BrokenPromise>,
    /// For how long the kernel may answer from attributes it has seen; zero
    /// makes every call reach the file system.
    pub attr_timeout: Nanos,
    /// The same for names. What comes with one time for both (the replies to
    /// create and readdirplus) gets the shorter one.
    pub entry_timeout: Nanos,
    /// Threads that serve requests, at least 1.
    pub threads: usize,
    /// Requests with a latency that are served at a time, at least 1: a further one
    /// waits for one of them, and the latency counts from then on. So many divided by
    /// the latency is the most that the file system answers in a second. `None`: any
    /// number.
    pub servers: Option<usize>,
    /// The source that the mount table shows.
    pub source: String,
    /// Whether users other than the one who mounts are let in. The kernel
    /// then checks permissions, which may add getattr requests. An ordinary
    /// user needs `user_allow_other` in /etc/fuse.conf for it.
    pub allow_other: bool,
    /// What the faults derive from: which requests a probability hits, and
    /// which bytes are damaged.
    pub seed: u64,
    /// Makes every file be read and written around the kernel's page cache,
    /// so that each call is one request (up to 1 MiB), whatever the caller's
    /// flags. A fault `read:short` implies it, see
    /// [`Config::bypasses_page_cache`].
    pub direct_io: bool,
    /// What the data of all files may take, in blocks of 4 KiB; writes beyond
    /// it fail with ENOSPC. In memory only.
    pub quota: Option<Bytes>,
    /// Keeps, beside the files, what is durable of them, for
    /// [`crate::Mounted::power_cut`]; takes that memory again, outside the
    /// cap. In memory only.
    pub power_cut: bool,
    /// The file that gets a line for each fault that fired
    /// ([`crate::FaultRecord`]). It must not lie below the mount point.
    pub fault_log: Option<PathBuf>,
    /// Lets the kernel keep the pages of a file when it is opened again
    /// (FOPEN_KEEP_CACHE); without it each open drops them.
    pub keep_cache: bool,
    /// Whether there is a file `.stats` at the root.
    pub stats_file: RootStats,
    /// Who hears of each request. Of a folder that is passed through only.
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

    /// Whether every file is read and written around the page cache: where
    /// it is asked for, and where reads are cut short. The kernel takes a
    /// short read into its page cache for the end of the file and goes on
    /// with zeros.
    pub fn bypasses_page_cache(&self) -> bool {
        let cuts = |fault: &Fault| fault.kind == Kind::Read && fault.action == Action::Short;
        self.direct_io || self.faults.iter().any(cuts)
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
        assert_eq!(
            read("readdirplus=3us").map(|l| l.get(Kind::Readdir)),
            Ok(Nanos(3000))
        );
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
