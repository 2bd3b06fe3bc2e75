//! The options of `rbench mdtest`: one record each.

use super::Line;
use crate::letters::Takes::{Digits, Nothing, Text, Value};
use crate::letters::{Group, Opt, Own, Table, both, help, named, put, put_path, short, text};
use crate::{Print, values};

const HEAD: &str = "\
Run mdtest's command line, with mdtest's tree, phases and summary table

Usage: rbench mdtest [OPTIONS]

What differs from mdtest:
  - a failed operation is an error, does not count in the rate, and makes the exit code 1
  - -B, values attached to their letter (-w1k), and -u together with -N and -z work
  - files are opened read-only for reading
  - --rbench-report adds latency percentiles, errors and a row per host to mdtest's tables;
    --out writes everything to a file

A value follows its option or is attached to it (-n 100, -n100, -n=100, --out=FILE); letters can be
bundled (-Fun100). Suffixes k, m, g, t and p are powers of 1024; times are in seconds or have a unit
(500ms). If an option is given twice, the last one counts.
";

/// All of them.
pub const TABLE: Table<Line> = Table {
    command: "mdtest",
    head: HEAD,
    groups: GROUPS,
    refused: REFUSED,
};

/// Every option.
const GROUPS: &[Group<Line>] = &[
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
        options: Own::<Line>::OPTIONS,
    },
    Group {
        title: "Help",
        options: HELP,
    },
];

const TREE: &[Opt<Line>] = &[
    short(
        'd',
        Value("DIR", |l, v| {
            l.spec.dirs = values::dirs(v);
            Ok(())
        }),
        "Test directory; A@B: ranks in turn [default: RBENCH_DIR, else ./out]",
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
        "Give each rank its own tree",
    ),
    short(
        'F',
        Nothing(|l| l.spec.files_only = true),
        "Test files only (the tree itself is always created)",
    ),
    short(
        'D',
        Nothing(|l| l.spec.dirs_only = true),
        "Test directories only",
    ),
    short(
        'S',
        Nothing(|l| l.spec.shared = true),
        "Use the same files on all ranks; not with -u or -c",
    ),
    short(
        'c',
        Nothing(|l| l.spec.collective = true),
        "Let rank 0 create and remove everything for all ranks",
    ),
];

const PHASES: &[Opt<Line>] = &[
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

const DATA: &[Opt<Line>] = &[
    short(
        'w',
        Value("SIZE", |l, v| {
            put(&mut l.spec.write_bytes, v, values::bytes)
        }),
        "Bytes to write to each file, in one call [default: 0]",
    ),
    short(
        'e',
        Value("SIZE", |l, v| put(&mut l.spec.read_bytes, v, values::bytes)),
        "Bytes to read per file, in one call; 0: open and close [default: 0]",
    ),
    short(
        'y',
        Nothing(|l| l.spec.fsync = true),
        "Call fsync after each write",
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
        "Seed of the data; use the same one to verify files of an earlier run",
    ),
    named(
        "dataPacketType",
        Value("TYPE", |l, v| put(&mut l.spec.packet, v, values::packet)),
        "Content: timestamp, offset, incompressible, random, unique [default: t]",
    ),
];

const ORDER: &[Opt<Line>] = &[
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
        "Stat and read in random order; an attached N is the seed",
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
        "Stop creating files after TIME (s); then all ranks match the fastest",
    ),
    short(
        'x',
        Value("FILE", |l, v| put_path(&mut l.spec.status_file, v)),
        "File that stores the items of a -W run, for runs without -C",
    ),
    short(
        'p',
        Value("TIME", |l, v| put(&mut l.spec.pause, v, values::time)),
        "Pause before the directory tests and the file tests (s) [default: 0]",
    ),
    short(
        't',
        Nothing(|_| {}),
        "Accepted: directory lookups are always timed",
    ),
    short(
        'Y',
        Nothing(|l| l.spec.sync = true),
        "Call sync after each phase, timed as part of it",
    ),
    short(
        'B',
        Nothing(|l| l.spec.no_barriers = true),
        "Run phases without barriers between them",
    ),
    named(
        "run-cmd-before-phase",
        Value("COMMAND", |l, v| {
            put(&mut l.spec.before, v, |text| Ok(text.to_owned()))
        }),
        "Run a shell command on every rank before each phase, untimed",
    ),
    named(
        "run-cmd-after-phase",
        Value("COMMAND", |l, v| {
            put(&mut l.spec.after, v, |text| Ok(text.to_owned()))
        }),
        "Run a shell command on every rank after each phase, timed with it",
    ),
];

const RANKS: &[Opt<Line>] = &[
    short(
        'N',
        Value("N", |l, v| put(&mut l.spec.stride, v, values::count)),
        "Use the items of the rank N further on, to avoid caching [default: 0]",
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
        "engine",
        Value("NAME", |l, v| {
            put(&mut l.spec.in_flight.engine, v, |text| Ok(text.to_owned()))
        }),
        "sync: one call at a time; io_uring: several in flight [default: sync]",
    ),
    named(
        "iodepth",
        Value("N", |l, v| {
            put(&mut l.spec.in_flight.depth, v, values::count)
        }),
        "Operations in flight per rank with io_uring [default: 1]",
    ),
    named(
        "posix.odirect",
        Nothing(|l| l.spec.direct = true),
        "Open files with O_DIRECT",
    ),
];

const OUTPUT: &[Opt<Line>] = &[
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

const HELP: &[Opt<Line>] = &[
    both('h', "help", Text(help::<Line>), "Print help"),
    named("version", Text(values::version), "Print version"),
];

const NO_GPU: &str = "this build has no GPU buffers";

/// Options that are known and not supported, by the beginning of
/// their names, and why.
const REFUSED: &[(&str, &str)] = &[
    (
        "-g",
        "rbench does not set Lustre's layout of directories (mdtest 4.1's -g)",
    ),
    ("--gpu", NO_GPU),
    ("--allocateBufferOnGPU", NO_GPU),
    ("--posix.lustre.", "Lustre hints are not implemented"),
    ("--posix.gpfs.", "GPFS hints are not implemented"),
    ("--posix.beegfs.", "BeeGFS hints are not implemented"),
];
