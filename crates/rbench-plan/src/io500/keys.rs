//! The table of sections and keys, with their possible and default values.

use super::phases::PHASES;

/// Possible values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// `TRUE` or `FALSE`.
    Switch,
    /// A number from 1 on, or nothing if the default is nothing.
    Count,
    /// A number of seconds from 1 on.
    Seconds,
    /// A size with a suffix, or in bytes.
    Size,
    /// A directory.
    Dir,
    /// `POSIX`, with or without the page cache.
    Interface,
    /// A type of data.
    Packet,
    /// A command that drops the kernel's caches.
    DropCommand,
    /// Anything: rbench ignores it, or does the same in another way.
    Anything,
    /// Only the default; the reason.
    Only(&'static str),
}

/// A key of a section.
pub(super) struct Key {
    pub section: &'static str,
    pub name: &'static str,
    /// The default; may be empty.
    pub default: &'static str,
    pub takes: Takes,
    /// A description in a line.
    pub help: &'static str,
}

const fn key(
    section: &'static str,
    name: &'static str,
    default: &'static str,
    takes: Takes,
    help: &'static str,
) -> Key {
    Key {
        section,
        name,
        default,
        takes,
        help,
    }
}

const NO_SCRIPT: &str = "rbench has its own search";
const NO_PAUSE: &str = "rbench does not pause between phases";
const NO_GPU: &str = "rbench does not support GPU buffers";
const NO_COLLECTIVE: &str = "collective operations need MPI-IO, and rbench supports POSIX only";
const NO_HINTS: &str = "hints need MPI-IO, and rbench supports POSIX only";
const NO_DIRS: &str = "rbench ior does not create a directory for each rank";
const SCHEDULING: &str = "No effect: rbench find distributes work in its own way";
pub(super) const TIMESTAMP: &str = "No effect: each run has its own directory and result file";

/// All keys except those of every phase ([`OF_PHASES`]).
const KEYS: &[Key] = {
    use Takes::{
        Anything, Count, Dir, DropCommand, Interface, Only, Packet, Seconds, Size, Switch,
    };
    &[
        key(
            "global",
            "datadir",
            "",
            Dir,
            "Directory to test; --dir overrides it",
        ),
        key("global", "timestamp-datadir", "TRUE", Switch, TIMESTAMP),
        key(
            "global",
            "resultdir",
            "",
            Dir,
            "Directory of the result file, created if missing; --out overrides it",
        ),
        key("global", "timestamp-resultdir", "TRUE", Switch, TIMESTAMP),
        key(
            "global",
            "api",
            "POSIX",
            Interface,
            "Interface of all phases",
        ),
        key(
            "global",
            "drop-caches",
            "FALSE",
            Switch,
            "Drop the kernel's caches before phases that read or stat",
        ),
        key(
            "global",
            "drop-caches-cmd",
            "",
            DropCommand,
            "Must be a command that writes to /proc/sys/vm/drop_caches; not run, rbench writes itself",
        ),
        key(
            "global",
            "io-buffers-on-gpu",
            "FALSE",
            Only(NO_GPU),
            "Not supported",
        ),
        key(
            "global",
            "verbosity",
            "1",
            Anything,
            "No effect: the result file has everything",
        ),
        key(
            "global",
            "scc",
            "FALSE",
            Switch,
            "Apply the rules of the Student Cluster Competition: 30 s are enough",
        ),
        key(
            "global",
            "dataPacketType",
            "timestamp",
            Packet,
            "Type of the data: timestamp, offset, incompressible, random, unique",
        ),
        key(
            "debug",
            "stonewall-time",
            "300",
            Seconds,
            "Duration of phases that write, s",
        ),
        key("debug", "pause-dir", "", Only(NO_PAUSE), "Not supported"),
        key("ior-easy", "transferSize", "2m", Size, "Bytes per transfer"),
        key(
            "ior-easy",
            "blockSize",
            "9920000m",
            Size,
            "Most bytes that a rank writes; a multiple of transferSize",
        ),
        key(
            "ior-easy",
            "filePerProc",
            "TRUE",
            Switch,
            "Give each rank its own file",
        ),
        key(
            "ior-easy",
            "uniqueDir",
            "FALSE",
            Only(NO_DIRS),
            "Not supported",
        ),
        key(
            "ior-easy",
            "hintsFileName",
            "",
            Only(NO_HINTS),
            "Not supported",
        ),
        key("ior-easy", "verbosity", "", Anything, "No effect"),
        key("mdtest-easy", "n", "1000000", Count, "Most files per rank"),
        key(
            "mdtest-easy",
            "files-per-dir",
            "",
            Count,
            "Files per directory; makes the run invalid",
        ),
        key(
            "ior-hard",
            "segmentCount",
            "10000000",
            Count,
            "Most transfers per rank",
        ),
        key(
            "ior-hard",
            "collective",
            "FALSE",
            Only(NO_COLLECTIVE),
            "Not supported",
        ),
        key(
            "ior-hard",
            "hintsFileName",
            "",
            Only(NO_HINTS),
            "Not supported",
        ),
        key("ior-hard", "verbosity", "", Anything, "No effect"),
        key(
            "ior-hard-write",
            "collective",
            "FALSE",
            Only(NO_COLLECTIVE),
            "Not supported",
        ),
        key(
            "ior-hard-read",
            "collective",
            "FALSE",
            Only(NO_COLLECTIVE),
            "Not supported",
        ),
        key("mdtest-hard", "n", "1000000", Count, "Most files per rank"),
        key(
            "mdtest-hard",
            "files-per-dir",
            "",
            Count,
            "Files per directory; makes the run invalid",
        ),
        key(
            "find",
            "external-script",
            "",
            Only(NO_SCRIPT),
            "Not supported",
        ),
        key(
            "find",
            "external-mpi-args",
            "",
            Only(NO_SCRIPT),
            "Not supported",
        ),
        key(
            "find",
            "external-extra-args",
            "",
            Only(NO_SCRIPT),
            "Not supported",
        ),
        key(
            "find",
            "nproc",
            "",
            Count,
            "Number of ranks that search; empty: all",
        ),
        key("find", "pfind-queue-length", "10000", Anything, SCHEDULING),
        key("find", "pfind-steal-next", "FALSE", Anything, SCHEDULING),
        key(
            "find",
            "pfind-parallelize-single-dir-access-using-hashing",
            "FALSE",
            Anything,
            SCHEDULING,
        ),
    ]
};

/// The keys of every phase and of every set of files.
const OF_PHASES: [Key; 4] = [
    key("", "run", "TRUE", Takes::Switch, "Run this phase"),
    key(
        "",
        "noRun",
        "FALSE",
        Takes::Switch,
        "Skip this phase (older name of run = FALSE)",
    ),
    key(
        "",
        "API",
        "",
        Takes::Interface,
        "POSIX; with --posix.odirect, bypass the page cache",
    ),
    key(
        "",
        "posix.odirect",
        "FALSE",
        Takes::Switch,
        "Bypass the page cache (O_DIRECT)",
    ),
];

/// Sections of IO500's extended mode, which are not part of the score.
pub(super) const EXTENDED: [&str; 15] = [
    "find-easy",
    "find-hard",
    "mdworkbench",
    "mdworkbench-create",
    "mdworkbench-bench",
    "mdworkbench-delete",
    "ior-rnd4K",
    "ior-rnd4K-write",
    "ior-rnd4K-read",
    "ior-rnd1MB",
    "ior-rnd1MB-write",
    "ior-rnd1MB-read",
    "ior-rnd-write",
    "ior-rnd-read",
    "concurrent",
];

/// The sections, in the order in which they are printed.
pub(super) fn sections() -> Vec<&'static str> {
    let mut all = vec!["global", "debug"];
    for phase in &PHASES {
        for name in [phase.files, phase.name] {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

/// The keys of a section.
pub(super) fn keys_of(section: &str) -> Vec<&'static Key> {
    let own = KEYS.iter().filter(|key| key.section == section);
    let common: &[Key] = match section {
        "global" | "debug" => &[],
        "find" => &OF_PHASES[..2],
        _ => &OF_PHASES,
    };
    own.chain(common).collect()
}
