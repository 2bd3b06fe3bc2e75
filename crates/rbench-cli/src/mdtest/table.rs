//! The options of `rbench mdtest`: one record each.

use std::ffi::OsStr;

use rbench_plan::values;

use super::Line;
use crate::Print;
use crate::definition::Group;
use crate::letters::Takes::{Digits, Nothing, Value};
use crate::letters::{Opt, Own, Table, help, text};

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

/// The options of the command.
pub const TABLE: Table<Line> = Table {
    command: "mdtest",
    head: HEAD,
    groups: GROUPS,
    refused: REFUSED,
};

/// Every option.
const GROUPS: &[Group<Opt<Line>>] = &[
    Group::new("Tree and items", TREE),
    Group::new("Phases", PHASES),
    Group::new("Data of files", DATA),
    Group::new("Order and time", ORDER),
    Group::new("Ranks and backend", RANKS),
    Group::new("Output", OUTPUT),
    Group::new("Additions of rbench", Own::<Line>::OPTIONS),
    Group::new("Help", HELP),
];

const TREE: &[Opt<Line>] = rows! { ()
    d: takes(Value("DIR", directories)),
        "Test directory; A@B: ranks in turn [default: RBENCH_DIR, else ./out]";
    n => spec.items: word("N", values::count), "Directories and files per rank [default: 0]";
    I => spec.items_per_dir: word("N", values::count),
        "Items per tree directory [default: -n spread over the tree]";
    b => spec.branch: word("N", values::count),
        "Branching factor: children of each tree directory [default: 1]";
    z => spec.depth: word("N", values::count),
        "Depth: levels of the tree below its root [default: 0]";
    L => spec.leaf_only: on, "Create items only in the lowest level of the tree";
    u => spec.unique_dir: on, "Give each rank its own tree";
    F => spec.files_only: on, "Test files only (the tree itself is always created)";
    D => spec.dirs_only: on, "Test directories only";
    S => spec.shared: on, "Use the same files on all ranks; not with -u or -c";
    c => spec.collective: on, "Let rank 0 create and remove everything for all ranks";
};

const PHASES: &[Opt<Line>] = rows! { ()
    C => spec.create: on, "Create [default: all phases, unless one of -C -T -E -r -U is given]";
    T => spec.stat: on, "Stat";
    E => spec.read: on, "Read";
    r => spec.remove: on, "Remove";
    U => spec.rename: on, "Rename directories; needs at least two items";
    k => spec.mknod: on, "Create files with mknod; not with -w";
};

const DATA: &[Opt<Line>] = rows! { ()
    w => spec.write_bytes: word("SIZE", values::bytes),
        "Bytes to write to each file, in one call [default: 0]";
    e => spec.read_bytes: word("SIZE", values::bytes),
        "Bytes to read per file, in one call; 0: open and close [default: 0]";
    y => spec.fsync: on, "Call fsync after each write";
    X "verify-read" => spec.verify_read: on, "Verify the data that is read";
    "verify-write" => spec.verify_write: on,
        "Read back and verify each file right after it is written";
    G => spec.data_seed: word("N", values::signed),
        "Seed of the data; use the same one to verify files of an earlier run";
    "dataPacketType" => spec.packet: word("TYPE", values::packet),
        "Content: timestamp, offset, incompressible, random, unique [default: t]";
};

const ORDER: &[Opt<Line>] = rows! { ()
    i => spec.iterations: word("N", values::count), "Iterations of the whole test [default: 1]";
    R: takes(Digits(|l| l.spec.random = true, seed)),
        "Stat and read in random order; an attached N is the seed";
    "random-seed": takes(Value("N", seed)), "Same as -R, with this seed";
    W => spec.stonewall: word("TIME", values::time),
        "Stop creating files after TIME (s); then all ranks match the fastest";
    x => spec.status_file: path("FILE"),
        "File that stores the items of a -W run, for runs without -C";
    p => spec.pause: word("TIME", values::time),
        "Pause before the directory tests and the file tests (s) [default: 0]";
    t: takes(Nothing(|_| {})), "Accepted: directory lookups are always timed";
    Y => spec.sync: on, "Call sync after each phase, timed as part of it";
    B => spec.no_barriers: on, "Run phases without barriers between them";
    "run-cmd-before-phase" => spec.before: word("COMMAND", values::owned),
        "Run a shell command on every rank before each phase, untimed";
    "run-cmd-after-phase" => spec.after: word("COMMAND", values::owned),
        "Run a shell command on every rank after each phase, timed with it";
};

const RANKS: &[Opt<Line>] = rows! { ()
    N => spec.stride: word("N", values::count),
        "Use the items of the rank N further on, to avoid caching [default: 0]";
    f => spec.first: word("N", values::count),
        "Smallest number of ranks to run with [default: that of -l]";
    l => spec.last: word("N", values::count), "Largest number of ranks to run with [default: all]";
    s => spec.task_stride: word("N", values::count), "Step from -f to -l [default: 1]";
    a => spec.backend: word("BACKEND", values::backend),
        "Backend: POSIX, or DUMMY, which does nothing [default: POSIX]";
    "engine" => spec.in_flight.engine: word("NAME", values::owned),
        "sync: one call at a time; io_uring: several in flight [default: sync]";
    "iodepth" => spec.in_flight.depth: word("N", values::count),
        "Operations in flight per rank with io_uring [default: 1]";
    "posix.odirect" => spec.direct: on, "Open files with O_DIRECT";
};

const OUTPUT: &[Opt<Line>] = rows! { ()
    v => view.verbosity: count, "Print more; may be repeated";
    V => view.verbosity: word("N", values::count), "Verbosity: same as N times -v";
    Z: takes(Nothing(print_times)), "Print times instead of rates";
    P: takes(Nothing(|l| l.view.print = Print::Both)), "Print rates and times";
    "print-all-procs" => view.all_ranks: on, "Print the result of every rank";
    "showRankStatistics" => view.rank_statistics: on, "Print maximum, minimum and mean over ranks";
    "saveRankPerformanceDetails" => spec.save_ranks: path("FILE"),
        "Write the results of every rank to FILE (CSV)";
    "savePerOpDataCSV" => spec.save_operations: path("PREFIX"),
        "Write the time of each operation to PREFIX-<rank>.csv";
    "warningAsErrors" => spec.warnings_are_errors: on, "End the run at the first warning";
};

const HELP: &[Opt<Line>] = rows! { ()
    h "help": prints(help::<Line>), "Print help";
    "version": prints(values::version), "Print version";
};

fn directories(line: &mut Line, word: &OsStr) -> Result<(), String> {
    line.spec.dirs = values::dirs(word);
    Ok(())
}

fn seed(line: &mut Line, word: &OsStr) -> Result<(), String> {
    line.spec.random = true;
    line.spec.seed = Some(values::count(text(word)?)?);
    Ok(())
}

fn print_times(line: &mut Line) {
    if line.view.print == Print::Rates {
        line.view.print = Print::Times;
    }
}

const NO_GPU: &str = "this build has no GPU buffers";

/// Known but unsupported options by the beginning of their names, and why.
const REFUSED: &[(&str, &str)] = &[
    (
        "-g",
        "rbench does not set Lustre's layout of directories (mdtest 4.1's -g)",
    ),
    (
        "--posix.rangelocks",
        "operations take no locks; rbench check --only locks tests them",
    ),
    (
        "--dummy.",
        "-a DUMMY does nothing, and takes no time for it",
    ),
    ("--mmap.", "rbench mdtest has the backends POSIX and DUMMY"),
    ("--mpiio.", "rbench mdtest has the backends POSIX and DUMMY"),
    ("--gpu", NO_GPU),
    ("--allocateBufferOnGPU", NO_GPU),
    ("--posix.lustre.", "Lustre hints are not implemented"),
    ("--posix.gpfs.", "GPFS hints are not implemented"),
    ("--posix.beegfs.", "BeeGFS hints are not implemented"),
];
