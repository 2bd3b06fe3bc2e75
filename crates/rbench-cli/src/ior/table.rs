//! The options of `rbench ior`: one record each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rbench_plan::spec::{OnError, Segments};

use super::Line;
use crate::given::one_of;
use crate::letters::Takes::{Nothing, Switch, Text, Value};
use crate::letters::{
    Group, Opt, Own, Table, both, directive, help, named, put, put_path, short, text,
};
use crate::{IorSummary as Summary, values};

const HEAD: &str = "\
Run IOR's command line, with IOR's file layout and tables

Usage: rbench ior [OPTIONS]

What differs from IOR:
  - existing files are not overwritten without -E
  - files that this run did not create are not removed
  - a failed operation is an error, does not count in the rate, and makes the exit code 1
  - without -l the data is incompressible, and different at every offset of every file
  - --rbench-report adds latency percentiles, errors and a row per host to IOR's tables;
    --out writes everything to a file

A value follows its option or is attached to it (-t 1m, -t1m, -t=1m, --transferSize=1m); letters
can be bundled (-Fwk). -O name=value, several separated by commas, takes every long name in any
case; a switch is 1 or 0. Suffixes k, m, g, t and p are powers of 1024; times are in seconds or
have a unit (500ms). If an option is given twice, the last one counts.
";

/// All of them.
pub const TABLE: Table<Line> = Table {
    command: "ior",
    head: HEAD,
    groups: GROUPS,
    refused: REFUSED,
};

const GROUPS: &[Group<Line>] = &[
    Group {
        title: "Files and their layout",
        options: FILES,
    },
    Group {
        title: "Phases",
        options: PHASES,
    },
    Group {
        title: "Data and access",
        options: DATA,
    },
    Group {
        title: "Order and time",
        options: ORDER,
    },
    Group {
        title: "Ranks and output",
        options: RANKS,
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

const FILES: &[Opt<Line>] = &[
    both(
        'o',
        "testFile",
        Value("FILE", |l, v| {
            l.spec.files = values::dirs(v);
            Ok(())
        }),
        "Test file; A@B with -F: ranks take them in turn [default: testFile]",
    ),
    both(
        'F',
        "filePerProc",
        Switch(|l, on| l.spec.file_per_process = on),
        "Use one file per rank, FILE.<rank with 8 digits>",
    ),
    both(
        'b',
        "blockSize",
        Value("SIZE", |l, v| put(&mut l.spec.block, v, values::bytes)),
        "Contiguous bytes per rank in a segment [default: 1m]",
    ),
    both(
        't',
        "transferSize",
        Value("SIZE", |l, v| put(&mut l.spec.transfer, v, values::bytes)),
        "Bytes per transfer; -b must be a multiple of it [default: 256k]",
    ),
    both(
        's',
        "segmentCount",
        Value("N", |l, v| put(&mut l.spec.segments, v, segments)),
        "Segments, each one block per rank; -1: as in the files [default: 1]",
    ),
    both(
        'm',
        "multiFile",
        Switch(|l, on| l.spec.multi_file = on),
        "Use new files in each repetition: FILE.<repetition>",
    ),
    both(
        'E',
        "useExistingTestFile",
        Switch(|l, on| l.spec.use_existing = on),
        "Overwrite existing files",
    ),
    both(
        'k',
        "keepFile",
        Switch(|l, on| l.spec.keep = on),
        "Keep the files at the end",
    ),
];

const PHASES: &[Opt<Line>] = &[
    both(
        'w',
        "writeFile",
        Switch(|l, on| l.spec.write = on),
        "Write [default: -w -r, unless one of -w -r -W -R is given]",
    ),
    both('r', "readFile", Switch(|l, on| l.spec.read = on), "Read"),
    both(
        'W',
        "checkWrite",
        Switch(|l, on| l.spec.check_write = on),
        "Read back and check the data after the writes, in a separate phase",
    ),
    both(
        'R',
        "checkRead",
        Switch(|l, on| l.spec.check_read = on),
        "Read and check the data",
    ),
];

const DATA: &[Opt<Line>] = &[
    both(
        'e',
        "fsync",
        Switch(|l, on| l.spec.fsync = on),
        "Call fsync after the last write, timed",
    ),
    both(
        'Y',
        "fsyncPerWrite",
        Switch(|l, on| l.spec.fsync_each = on),
        "Call fsync after each write",
    ),
    named(
        "posix.odirect",
        Nothing(|l| l.spec.direct = true),
        "Open files with O_DIRECT",
    ),
    named(
        "useO_DIRECT",
        Switch(|l, on| l.spec.direct = on),
        "Same as posix.odirect (older name)",
    ),
    both(
        'G',
        "setTimeStampSignature",
        Value("N", |l, v| put(&mut l.spec.data_seed, v, values::signed)),
        "Seed of the data; use the same one to check files of an earlier run",
    ),
    both(
        'l',
        "dataPacketType",
        Value("TYPE", |l, v| put(&mut l.spec.packet, v, values::packet)),
        "Content: timestamp, offset, incompressible, random, unique [default: u]",
    ),
];

const ORDER: &[Opt<Line>] = &[
    both(
        'C',
        "reorderTasksConstant",
        Switch(|l, on| l.spec.reorder = on),
        "Read the data that a rank of another node wrote",
    ),
    named(
        "reorderTasks",
        Switch(|l, on| l.spec.reorder = on),
        "Same as reorderTasksConstant",
    ),
    both(
        'Q',
        "taskPerNodeOffset",
        Value("N", |l, v| put(&mut l.spec.task_offset, v, values::count)),
        "With -C: distance to that node, in nodes [default: 1]",
    ),
    both(
        'Z',
        "reorderTasksRandom",
        Switch(|l, on| l.spec.reorder_random = on),
        "Read the data of a randomly chosen other rank",
    ),
    both(
        'X',
        "reorderTasksRandomSeed",
        Value("N", |l, v| put(&mut l.spec.reorder_seed, v, values::signed)),
        "Seed of -Z; negative: a different choice in each repetition",
    ),
    both(
        'z',
        "randomOffset",
        Switch(|l, on| l.spec.random = on),
        "Do the transfers of each rank in random order, each once",
    ),
    both(
        'g',
        "intraTestBarriers",
        Switch(|l, on| l.spec.barriers = on),
        "Synchronise ranks between open, transfers and close",
    ),
    both(
        'D',
        "deadlineForStonewalling",
        Value("TIME", |l, v| put(&mut l.spec.deadline, v, values::time)),
        "Stop writes and reads after TIME (s) [default: 0, never]",
    ),
    named(
        "stoneWallingWearOut",
        Switch(|l, on| l.spec.wear_out = on),
        "With -D: then let all ranks catch up with the one that did most",
    ),
    named(
        "stoneWallingWearOutIterations",
        Value("N", |l, v| put(&mut l.spec.transfers_max, v, values::count)),
        "Read at most N transfers per rank",
    ),
    named(
        "stoneWallingStatusFile",
        Value("FILE", |l, v| put_path(&mut l.spec.status_file, v)),
        "File that stores each rank's transfers, for runs that only read",
    ),
    named(
        "minTimeDuration",
        Value("TIME", |l, v| put(&mut l.spec.time_min, v, values::time)),
        "Repeat reads from the start until TIME has passed (s)",
    ),
    both(
        'T',
        "maxTimeDuration",
        Value("MINUTES", |l, v| {
            put(&mut l.spec.minutes_max, v, values::count)
        }),
        "Start no further repetition after this time [default: 0, no limit]",
    ),
    both(
        'i',
        "repetitions",
        Value("N", |l, v| put(&mut l.spec.repetitions, v, values::count)),
        "Repetitions of the whole test [default: 1]",
    ),
    both(
        'd',
        "interTestDelay",
        Value("TIME", |l, v| put(&mut l.spec.delay, v, values::time)),
        "Pause before each phase but the first (s) [default: 0]",
    ),
];

const RANKS: &[Opt<Line>] = &[
    both(
        'N',
        "numTasks",
        Value("N", |l, v| put(&mut l.spec.tasks, v, values::count)),
        "Number of ranks that take part [default: all]",
    ),
    both(
        'a',
        "api",
        Value("API", |_, v| match text(v)?.eq_ignore_ascii_case("POSIX") {
            true => Ok(()),
            false => Err("rbench measures mounted file systems through POSIX only".to_owned()),
        }),
        "Interface: POSIX",
    ),
    both(
        'q',
        "quitOnError",
        Switch(|l, on| l.shared.limits.on_error = on.then_some(OnError::Stop)),
        "End the run at the first failed operation: --on-error stop",
    ),
    both(
        'v',
        "verbose",
        Nothing(|l| l.view.verbosity = l.view.verbosity.saturating_add(1)),
        "Accepted: --rbench-report and --out have all details",
    ),
    named(
        "summaryFormat",
        Value("FORMAT", |l, v| {
            let formats = [
                ("default", Summary::Text),
                ("json", Summary::Json),
                ("csv", Summary::Csv),
            ];
            let word = text(v)?.to_lowercase();
            l.view.summary_format = one_of(&word, &formats)?;
            Ok(())
        }),
        "Report format: default (text), JSON or CSV, with IOR's keys and columns",
    ),
    named(
        "summaryFile",
        Value("FILE", |l, v| put_path(&mut l.spec.summary_file, v)),
        "Write the summary to FILE, which must not exist",
    ),
    named(
        "saveRankPerformanceDetailsCSV",
        Value("FILE", |l, v| put_path(&mut l.spec.rank_file, v)),
        "Write times and throughput of every rank to FILE (CSV)",
    ),
    named(
        "format",
        Value("FORMAT", |l, v| {
            l.shared.output.format = values::choice(text(v)?)?;
            Ok(())
        }),
        "Format of rbench's report: text, or json as in --out [default: text]",
    ),
    short(
        'f',
        Value("SCRIPT", |l, v| put_path(&mut l.script, v)),
        "Read options from an IOR script with one test as well",
    ),
    both(
        'O',
        "option",
        Value("NAME=VALUE", |l, v| {
            let mut all = v.as_bytes().split(|byte| *byte == b',');
            all.try_for_each(|word| directive(l, OsStr::from_bytes(word)))
        }),
        "Set options by their long names",
    ),
];

const HELP: &[Opt<Line>] = &[
    both('h', "help", Text(help::<Line>), "Print help"),
    named("version", Text(values::version), "Print version"),
];

/// `-s`
fn segments(text: &str) -> Result<Segments, String> {
    match text {
        "-1" => Ok(Segments::AsInFiles),
        text => values::count(text).map(Segments::Count),
    }
}

const NO_MPIIO: &str = "it belongs to another interface than POSIX";
const NO_GPU: &str = "this build has no GPU buffers";

/// Options that are known and not supported, by the beginning of
/// their names, and why.
const REFUSED: &[(&str, &str)] = &[
    ("-A", "results have no reference number; use --label"),
    ("-B", "use --posix.odirect, as in newer versions of IOR"),
    ("-c", NO_MPIIO),
    ("--collective", NO_MPIIO),
    ("collective", NO_MPIIO),
    ("-H", NO_MPIIO),
    ("-I", NO_MPIIO),
    ("-j", "use --rbench-report, whose percentiles show outliers"),
    ("-J", NO_MPIIO),
    ("-K", "use -k to keep files"),
    ("-M", "rbench does not occupy memory; use a larger -s"),
    ("-n", NO_MPIIO),
    ("-p", "rbench does not reserve space in advance"),
    ("-P", NO_MPIIO),
    ("-S", NO_MPIIO),
    (
        "-u",
        "rbench does not create directories; name an existing one with -o",
    ),
    (
        "--uniqueDir",
        "rbench does not create directories; name an existing one with -o",
    ),
    (
        "uniqueDir",
        "rbench does not create directories; name an existing one with -o",
    ),
    ("-U", NO_MPIIO),
    ("-V", NO_MPIIO),
    ("-x", "a short transfer is always an error"),
    ("--gpu", NO_GPU),
    ("--allocateBufferOnGPU", NO_GPU),
    ("--posix.lustre.", "Lustre hints are not implemented"),
    ("--posix.gpfs.", "GPFS hints are not implemented"),
    ("--posix.beegfs.", "BeeGFS hints are not implemented"),
];
