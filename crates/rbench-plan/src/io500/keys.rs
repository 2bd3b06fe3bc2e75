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

/// Keys by section, a row each: `"name" = "default": takes, "help";`.
macro_rules! keys {
    ($([$section:literal] $($name:literal = $default:literal: $takes:expr, $help:expr;)*)*) => {
        &[$($(Key {
            section: $section,
            name: $name,
            default: $default,
            takes: $takes,
            help: $help,
        },)*)*]
    };
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
    keys! {
        ["global"]
        "datadir" = "": Dir, "Directory to test; --dir overrides it";
        "timestamp-datadir" = "TRUE": Switch, TIMESTAMP;
        "resultdir" = "": Dir, "Directory of the result file, created if missing; --out overrides it";
        "timestamp-resultdir" = "TRUE": Switch, TIMESTAMP;
        "api" = "POSIX": Interface, "Interface of all phases";
        "drop-caches" = "FALSE": Switch, "Drop the kernel's caches before phases that read or stat";
        "drop-caches-cmd" = "": DropCommand,
            "Must be a command that writes to /proc/sys/vm/drop_caches; not run, rbench writes itself";
        "io-buffers-on-gpu" = "FALSE": Only(NO_GPU), "Not supported";
        "verbosity" = "1": Anything, "No effect: the result file has everything";
        "scc" = "FALSE": Switch, "Apply the rules of the Student Cluster Competition: 30 s are enough";
        "dataPacketType" = "timestamp": Packet,
            "Type of the data: timestamp, offset, incompressible, random, unique";
        ["debug"]
        "stonewall-time" = "300": Seconds, "Duration of phases that write, s";
        "pause-dir" = "": Only(NO_PAUSE), "Not supported";
        ["ior-easy"]
        "transferSize" = "2m": Size, "Bytes per transfer";
        "blockSize" = "9920000m": Size, "Most bytes that a rank writes; a multiple of transferSize";
        "filePerProc" = "TRUE": Switch, "Give each rank its own file";
        "uniqueDir" = "FALSE": Only(NO_DIRS), "Not supported";
        "hintsFileName" = "": Only(NO_HINTS), "Not supported";
        "verbosity" = "": Anything, "No effect";
        ["mdtest-easy"]
        "n" = "1000000": Count, "Most files per rank";
        "files-per-dir" = "": Count, "Files per directory; makes the run invalid";
        ["ior-hard"]
        "segmentCount" = "10000000": Count, "Most transfers per rank";
        "collective" = "FALSE": Only(NO_COLLECTIVE), "Not supported";
        "hintsFileName" = "": Only(NO_HINTS), "Not supported";
        "verbosity" = "": Anything, "No effect";
        ["ior-hard-write"]
        "collective" = "FALSE": Only(NO_COLLECTIVE), "Not supported";
        ["ior-hard-read"]
        "collective" = "FALSE": Only(NO_COLLECTIVE), "Not supported";
        ["mdtest-hard"]
        "n" = "1000000": Count, "Most files per rank";
        "files-per-dir" = "": Count, "Files per directory; makes the run invalid";
        ["find"]
        "external-script" = "": Only(NO_SCRIPT), "Not supported";
        "external-mpi-args" = "": Only(NO_SCRIPT), "Not supported";
        "external-extra-args" = "": Only(NO_SCRIPT), "Not supported";
        "nproc" = "": Count, "Number of ranks that search; empty: all";
        "pfind-queue-length" = "10000": Anything, SCHEDULING;
        "pfind-steal-next" = "FALSE": Anything, SCHEDULING;
        "pfind-parallelize-single-dir-access-using-hashing" = "FALSE": Anything, SCHEDULING;
    }
};

/// The keys of every phase and of every set of files.
const OF_PHASES: &[Key] = keys! {
    [""]
    "run" = "TRUE": Takes::Switch, "Run this phase";
    "noRun" = "FALSE": Takes::Switch, "Skip this phase (older name of run = FALSE)";
    "API" = "": Takes::Interface, "POSIX; with --posix.odirect, bypass the page cache";
    "posix.odirect" = "FALSE": Takes::Switch, "Bypass the page cache (O_DIRECT)";
};

/// Sections of IO500's extended mode, which are not part of the score.
pub(super) const EXTENDED: &str = "find-easy find-hard mdworkbench mdworkbench-create \
    mdworkbench-bench mdworkbench-delete ior-rnd4K ior-rnd4K-write ior-rnd4K-read ior-rnd1MB \
    ior-rnd1MB-write ior-rnd1MB-read ior-rnd-write ior-rnd-read concurrent";

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
        _ => OF_PHASES,
    };
    own.chain(common).collect()
}
