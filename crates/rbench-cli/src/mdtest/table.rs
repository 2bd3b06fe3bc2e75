//! The options of `rbench mdtest`: one record each.

use std::ffi::OsStr;
use std::path::PathBuf;

use self::Takes::{Digits, Nothing, Text, Value};
use super::{Line, help};
use crate::{Print, values};

/// An option.
pub struct Opt {
    /// `-n`
    pub letter: Option<char>,
    /// `--verify-read`, without the dashes.
    pub long: Option<&'static str>,
    /// What follows it, and what is done with it.
    pub takes: Takes,
    /// Its help, one line.
    pub help: &'static str,
}

/// Takes a value into the line, or says in a clause what is wrong with it.
type Read = fn(&mut Line, &OsStr) -> Result<(), String>;

/// What follows an option.
#[derive(Clone, Copy)]
pub enum Takes {
    /// Nothing.
    Nothing(fn(&mut Line)),
    /// A value, by its name in the help.
    Value(&'static str, Read),
    /// Nothing, or a number that is attached to the letter.
    Digits(fn(&mut Line), Read),
    /// Nothing: prints a text and runs nothing.
    Text(fn() -> String),
}

impl Takes {
    /// The name of the value in the help; empty: there is none.
    pub fn value_name(self) -> &'static str {
        match self {
            Takes::Nothing(_) | Takes::Text(_) => "",
            Takes::Digits(..) => "N",
            Takes::Value(name, _) => name,
        }
    }

    /// Whether the option is wrong without a value.
    pub fn needs_value(self) -> bool {
        matches!(self, Takes::Value(..))
    }

    /// Whether what follows the letter in the same word is its value, and not
    /// more letters.
    pub fn claims(self, rest: &[u8]) -> bool {
        match (self, rest.first()) {
            (_, None) => false,
            (_, Some(b'=')) | (Takes::Value(..), _) => true,
            (Takes::Digits(..), Some(first)) => first.is_ascii_digit(),
            (Takes::Nothing(_) | Takes::Text(_), _) => false,
        }
    }
}

/// Options under a heading of the help.
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The options, in the help's order.
    pub options: &'static [Opt],
}

const fn short(letter: char, takes: Takes, help: &'static str) -> Opt {
    Opt {
        letter: Some(letter),
        long: None,
        takes,
        help,
    }
}

const fn named(long: &'static str, takes: Takes, help: &'static str) -> Opt {
    Opt {
        letter: None,
        long: Some(long),
        takes,
        help,
    }
}

const fn both(letter: char, long: &'static str, takes: Takes, help: &'static str) -> Opt {
    Opt {
        letter: Some(letter),
        long: Some(long),
        takes,
        help,
    }
}

/// Fills a field with what `read` makes of a word.
fn put<T>(
    field: &mut Option<T>,
    word: &OsStr,
    read: fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    *field = Some(read(text(word)?)?);
    Ok(())
}

/// Fills a field with a path, which may be any bytes.
fn put_path(field: &mut Option<PathBuf>, word: &OsStr) -> Result<(), String> {
    *field = Some(values::path(word)?);
    Ok(())
}

fn text(word: &OsStr) -> Result<&str, String> {
    word.to_str().ok_or_else(|| "it is not UTF-8".to_owned())
}

fn version() -> String {
    concat!("rbench ", env!("CARGO_PKG_VERSION"), "\n").to_owned()
}

/// Every option.
pub const GROUPS: &[Group] = &[
    Group {
        title: "Tree and items",
        options: TREE,
    },
    Group {
        title: "Phases",
        options: PHASES,
    },
    Group {
        title: "Data of files",
        options: DATA,
    },
    Group {
        title: "Order and time",
        options: ORDER,
    },
    Group {
        title: "Ranks and backend",
        options: RANKS,
    },
    Group {
        title: "Output",
        options: OUTPUT,
    },
    Group {
        title: "Additions of rbench",
        options: OWN,
    },
    Group {
        title: "Help",
        options: HELP,
    },
];

const TREE: &[Opt] = &[
    short(
        'd',
        Value("DIR", |l, v| {
            l.spec.dirs = values::dirs(v);
            Ok(())
        }),
        "Where to work; A@B: ranks in turn [default: RBENCH_DIR, else ./out]",
    ),
    short(
        'n',
        Value("N", |l, v| put(&mut l.spec.items, v, values::count)),
        "Directories and files per rank [default: 0]",
    ),
    short(
        'I',
        Value("N", |l, v| put(&mut l.spec.items_per_dir, v, values::count)),
        "Items per tree directory [default: -n spread over the tree]",
    ),
    short(
        'b',
        Value("N", |l, v| put(&mut l.spec.branch, v, values::count)),
        "Branching factor: children of each tree directory [default: 1]",
    ),
    short(
        'z',
        Value("N", |l, v| put(&mut l.spec.depth, v, values::count)),
        "Depth: levels of the tree below its root [default: 0]",
    ),
    short(
        'L',
        Nothing(|l| l.spec.leaf_only = true),
        "Create items only in the lowest level of the tree",
    ),
    short(
        'u',
        Nothing(|l| l.spec.unique_dir = true),
        "Each rank has a tree of its own",
    ),
    short(
        'F',
        Nothing(|l| l.spec.files_only = true),
        "Test files only (the tree itself is always made)",
    ),
    short(
        'D',
        Nothing(|l| l.spec.dirs_only = true),
        "Test directories only",
    ),
    short(
        'S',
        Nothing(|l| l.spec.shared = true),
        "All ranks use the same files; not with -u or -c",
    ),
    short(
        'c',
        Nothing(|l| l.spec.collective = true),
        "Rank 0 creates and removes everything for all ranks",
    ),
];

const PHASES: &[Opt] = &[
    short(
        'C',
        Nothing(|l| l.spec.create = true),
        "Create [default: all phases, unless one of -C -T -E -r -U is given]",
    ),
    short('T', Nothing(|l| l.spec.stat = true), "Stat"),
    short('E', Nothing(|l| l.spec.read = true), "Read"),
    short('r', Nothing(|l| l.spec.remove = true), "Remove"),
    short(
        'U',
        Nothing(|l| l.spec.rename = true),
        "Rename directories; needs at least two items",
    ),
    short(
        'k',
        Nothing(|l| l.spec.mknod = true),
        "Create files with mknod; not with -w",
    ),
];

const DATA: &[Opt] = &[
    short(
        'w',
        Value("SIZE", |l, v| {
            put(&mut l.spec.write_bytes, v, values::bytes)
        }),
        "Bytes written to each file, in one call [default: 0]",
    ),
    short(
        'e',
        Value("SIZE", |l, v| put(&mut l.spec.read_bytes, v, values::bytes)),
        "Bytes read from each file, in one call; 0: open and close [default: 0]",
    ),
    short(
        'y',
        Nothing(|l| l.spec.fsync = true),
        "fsync after each write",
    ),
    both(
        'X',
        "verify-read",
        Nothing(|l| l.spec.verify_read = true),
        "Verify the data that is read",
    ),
    named(
        "verify-write",
        Nothing(|l| l.spec.verify_write = true),
        "Read back and verify each file right after it is written",
    ),
    short(
        'G',
        Value("N", |l, v| put(&mut l.spec.data_seed, v, values::signed)),
        "Seed of the data; give the same one to verify files of an earlier run",
    ),
    named(
        "dataPacketType",
        Value("TYPE", |l, v| put(&mut l.spec.packet, v, values::packet)),
        "Content: timestamp, offset, incompressible, random, unique [default: t]",
    ),
];

const ORDER: &[Opt] = &[
    short(
        'i',
        Value("N", |l, v| put(&mut l.spec.iterations, v, values::count)),
        "Iterations of the whole test [default: 1]",
    ),
    short(
        'R',
        Digits(
            |l| l.spec.random = true,
            |l, v| {
                l.spec.random = true;
                put(&mut l.spec.seed, v, values::count)
            },
        ),
        "Stat and read in random order; N, attached, is the seed",
    ),
    named(
        "random-seed",
        Value("N", |l, v| {
            l.spec.random = true;
            put(&mut l.spec.seed, v, values::count)
        }),
        "Same as -R, with this seed",
    ),
    short(
        'W',
        Value("TIME", |l, v| put(&mut l.spec.stonewall, v, values::time)),
        "Stop creating files after TIME (s); all ranks then match the fastest",
    ),
    short(
        'x',
        Value("FILE", |l, v| put_path(&mut l.spec.status_file, v)),
        "File with the number of items of a -W run, for runs without -C",
    ),
    short(
        'p',
        Value("TIME", |l, v| put(&mut l.spec.pause, v, values::time)),
        "Pause before the tests of directories and of files (s) [default: 0]",
    ),
    short(
        't',
        Nothing(|_| {}),
        "Accepted: the time of looking up directories is always included",
    ),
    short(
        'Y',
        Nothing(|l| l.spec.sync = true),
        "Call sync after each phase, timed with it",
    ),
    short(
        'B',
        Nothing(|l| l.spec.no_barriers = true),
        "No barriers between phases",
    ),
    named(
        "run-cmd-before-phase",
        Value("COMMAND", |l, v| {
            put(&mut l.spec.before, v, |text| Ok(text.to_owned()))
        }),
        "Shell command on every rank before each phase, not timed",
    ),
    named(
        "run-cmd-after-phase",
        Value("COMMAND", |l, v| {
            put(&mut l.spec.after, v, |text| Ok(text.to_owned()))
        }),
        "Shell command on every rank after each phase, timed with it",
    ),
];

const RANKS: &[Opt] = &[
    short(
        'N',
        Value("N", |l, v| put(&mut l.spec.stride, v, values::count)),
        "Work on what the rank N further on made, against caching [default: 0]",
    ),
    short(
        'f',
        Value("N", |l, v| put(&mut l.spec.first, v, values::count)),
        "Smallest number of ranks to run with [default: that of -l]",
    ),
    short(
        'l',
        Value("N", |l, v| put(&mut l.spec.last, v, values::count)),
        "Largest number of ranks to run with [default: all]",
    ),
    short(
        's',
        Value("N", |l, v| put(&mut l.spec.task_stride, v, values::count)),
        "Step from -f to -l [default: 1]",
    ),
    short(
        'a',
        Value("BACKEND", |l, v| {
            l.spec.backend = values::backend(text(v)?)?;
            Ok(())
        }),
        "Backend: POSIX, or DUMMY, which does nothing [default: POSIX]",
    ),
    named(
        "posix.odirect",
        Nothing(|l| l.spec.direct = true),
        "Open files with O_DIRECT",
    ),
];

const OUTPUT: &[Opt] = &[
    short(
        'v',
        Nothing(|l| l.view.verbosity = l.view.verbosity.saturating_add(1)),
        "Print more; may be repeated",
    ),
    short(
        'V',
        Value("N", |l, v| {
            l.view.verbosity = values::count(text(v)?)?;
            Ok(())
        }),
        "Verbosity: same as N times -v",
    ),
    short(
        'Z',
        Nothing(|l| {
            if l.view.print == Print::Rates {
                l.view.print = Print::Times;
            }
        }),
        "Print times instead of rates",
    ),
    short(
        'P',
        Nothing(|l| l.view.print = Print::Both),
        "Print rates and times",
    ),
    named(
        "print-all-procs",
        Nothing(|l| l.view.all_ranks = true),
        "Print the result of every rank",
    ),
    named(
        "showRankStatistics",
        Nothing(|l| l.view.rank_statistics = true),
        "Print maximum, minimum and mean over ranks",
    ),
    named(
        "saveRankPerformanceDetails",
        Value("FILE", |l, v| put_path(&mut l.spec.save_ranks, v)),
        "Write the results of every rank to FILE (CSV)",
    ),
    named(
        "savePerOpDataCSV",
        Value("PREFIX", |l, v| put_path(&mut l.spec.save_operations, v)),
        "Write the time of each operation to PREFIX-<rank>.csv",
    ),
    named(
        "warningAsErrors",
        Nothing(|l| l.spec.warnings_are_errors = true),
        "End the run at the first warning",
    ),
];

const OWN: &[Opt] = &[
    named(
        "rbench-report",
        Nothing(|l| l.view.report = true),
        "Print rbench's own report after mdtest's, with latency percentiles",
    ),
    named(
        "out",
        Value("FILE", |l, v| put_path(&mut l.output.out, v)),
        "Write the result (JSON) to FILE, or into it if it is a directory",
    ),
    named(
        "overwrite",
        Nothing(|l| l.output.overwrite = true),
        "Replace the result that --out names, if rbench wrote it",
    ),
    named(
        "label",
        Value("K=V", |l, v| {
            l.output.labels.push(values::label(text(v)?)?);
            Ok(())
        }),
        "Add the label key=value to the result; may be repeated",
    ),
    named(
        "on-error",
        Value("WHAT", |l, v| {
            put(&mut l.limits.on_error, v, values::on_error)
        }),
        "What to do after a failed operation: continue, stop [default: continue]",
    ),
    named(
        "max-errors",
        Value("N", |l, v| put(&mut l.limits.max_errors, v, values::count)),
        "End the run after more than N failed operations [default: no limit]",
    ),
    named(
        "op-timeout",
        Value("TIME", |l, v| {
            put(&mut l.limits.op_timeout, v, values::time)
        }),
        "Give up on an operation that takes longer (s) [default: never]",
    ),
    named(
        "no-round-trip",
        Nothing(|l| l.output.no_round_trip = true),
        "Do not measure the round trip to the file system at the start",
    ),
    named(
        "client-cache",
        Value("SIZE", |l, v| {
            put(&mut l.output.client_cache, v, values::bytes)
        }),
        "Size of the file system client's own cache on each host (bytes)",
    ),
    named(
        "private-dirs",
        Nothing(|l| l.leave.private_dirs = true),
        "Allow each host a file system of its own at -d",
    ),
    named(
        "overfill",
        Nothing(|l| l.leave.overfill = true),
        "Start even when the free space is less than the run writes",
    ),
    named(
        "progress",
        Value("HOW", |l, v| {
            l.output.progress = values::choice(text(v)?)?;
            Ok(())
        }),
        "How rank 0 shows progress on stderr: auto, plain, off [default: auto]",
    ),
    named(
        "quiet",
        Nothing(|l| l.output.quiet = true),
        "Print only tables and errors: no progress, no notes",
    ),
    named(
        "communicator",
        Value("WHICH", |l, v| {
            l.output.communicator = values::choice(text(v)?)?;
            Ok(())
        }),
        "How ranks communicate: auto, solo (no MPI), mpi [default: auto]",
    ),
];

const HELP: &[Opt] = &[
    both('h', "help", Text(help), "Print help"),
    named("version", Text(version), "Print version"),
];

const NO_GPU: &str = "this build has no GPU buffers";

/// Options of mdtest that are known and not supported, by the beginning of
/// their names, and why.
const REFUSED: &[(&str, &str)] = &[
    ("-g", NO_GPU),
    ("--gpu", NO_GPU),
    ("--allocateBufferOnGPU", NO_GPU),
    ("--posix.lustre.", "Lustre hints are not implemented"),
    ("--posix.gpfs.", "GPFS hints are not implemented"),
    ("--posix.beegfs.", "BeeGFS hints are not implemented"),
];

/// Every option, in the help's order.
pub fn options() -> impl Iterator<Item = &'static Opt> {
    GROUPS.iter().flat_map(|group| group.options)
}

/// The option with this letter.
pub fn letter(letter: u8) -> Option<&'static Opt> {
    options().find(|option| option.letter == Some(char::from(letter)))
}

/// The option with this long name, without dashes.
pub fn long(name: &str) -> Option<&'static Opt> {
    options().find(|option| option.long == Some(name))
}

/// Why an option of mdtest is not supported, by its name with dashes.
pub fn refusal(name: &str) -> Option<&'static str> {
    REFUSED
        .iter()
        .find(|(beginning, _)| name.starts_with(beginning))
        .map(|(_, why)| *why)
}
