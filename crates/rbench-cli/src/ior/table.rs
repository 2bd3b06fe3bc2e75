//! The options of `rbench ior`: one record each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rbench_plan::spec::{OnError, Segments};
use rbench_plan::values;

use super::Line;
use crate::IorSummary as Summary;
use crate::definition::Group;
use crate::letters::Takes::{Nothing, Switch, Value};
use crate::letters::{Opt, Own, Table, directive, help, text};
use rbench_plan::given::one_of;

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

/// The options of the command.
pub const TABLE: Table<Line> = Table {
    command: "ior",
    head: HEAD,
    groups: GROUPS,
    refused: REFUSED,
};

const GROUPS: &[Group<Opt<Line>>] = &[
    Group::new("Files and their layout", FILES),
    Group::new("Phases", PHASES),
    Group::new("Data and access", DATA),
    Group::new("Order and time", ORDER),
    Group::new("Ranks and output", RANKS),
    Group::new("Additions of rbench", Own::<Line>::OPTIONS),
    Group::new("Help", HELP),
];

const FILES: &[Opt<Line>] = rows! { ()
    o "testFile": takes(Value("FILE", files)),
        "Test file; A@B with -F: ranks take them in turn [default: testFile]";
    F "filePerProc" => spec.file_per_process: switch,
        "Use one file per rank, FILE.<rank with 8 digits>";
    b "blockSize" => spec.block: word("SIZE", values::bytes),
        "Contiguous bytes per rank in a segment [default: 1m]";
    t "transferSize" => spec.transfer: word("SIZE", values::bytes),
        "Bytes per transfer; -b must be a multiple of it [default: 256k]";
    s "segmentCount" => spec.segments: word("N", segments),
        "Segments, each one block per rank; -1: as in the files [default: 1]";
    m "multiFile" => spec.multi_file: switch, "Use new files in each repetition: FILE.<repetition>";
    E "useExistingTestFile" => spec.use_existing: switch, "Overwrite existing files";
    k "keepFile" => spec.keep: switch, "Keep the files at the end";
};

const PHASES: &[Opt<Line>] = rows! { ()
    w "writeFile" => spec.write: switch,
        "Write [default: -w -r, unless one of -w -r -W -R is given]";
    r "readFile" => spec.read: switch, "Read";
    W "checkWrite" => spec.check_write: switch,
        "Read back and check the data after the writes, in a separate phase";
    R "checkRead" => spec.check_read: switch, "Read and check the data";
};

const DATA: &[Opt<Line>] = rows! { ()
    e "fsync" => spec.fsync: switch, "Call fsync after the last write, timed";
    Y "fsyncPerWrite" => spec.fsync_each: switch, "Call fsync after each write";
    "posix.odirect" => spec.direct: on, "Open files with O_DIRECT";
    "useO_DIRECT" => spec.direct: switch, "Same as posix.odirect (older name)";
    G "setTimeStampSignature" => spec.data_seed: word("N", values::signed),
        "Seed of the data; use the same one to check files of an earlier run";
    l "dataPacketType" => spec.packet: word("TYPE", values::packet),
        "Content: timestamp, offset, incompressible, random, unique [default: u]";
};

const ORDER: &[Opt<Line>] = rows! { ()
    C "reorderTasksConstant" => spec.reorder: switch,
        "Read the data that a rank of another node wrote";
    "reorderTasks" => spec.reorder: switch, "Same as reorderTasksConstant";
    Q "taskPerNodeOffset" => spec.task_offset: word("N", values::count),
        "With -C: distance to that node, in nodes [default: 1]";
    Z "reorderTasksRandom" => spec.reorder_random: switch,
        "Read the data of a randomly chosen other rank";
    X "reorderTasksRandomSeed" => spec.reorder_seed: word("N", values::signed),
        "Seed of -Z; negative: a different choice in each repetition";
    z "randomOffset" => spec.random: count,
        "Transfers of each rank in random order; -z -z: blocks at random places";
    "random-offset-seed" => spec.random_seed: word("N", values::signed),
        "Seed of -z, for the same order in each phase [default: other orders]";
    g "intraTestBarriers" => spec.barriers: switch,
        "Synchronise ranks between open, transfers and close";
    D "deadlineForStonewalling" => spec.deadline: word("TIME", values::time),
        "Stop writes and reads after TIME (s) [default: 0, never]";
    "stoneWallingWearOut" => spec.wear_out: switch,
        "With -D: then let all ranks catch up with the one that did most";
    "stoneWallingWearOutIterations" => spec.transfers_max: word("N", values::count),
        "Read at most N transfers per rank";
    "stoneWallingStatusFile" => spec.status_file: path("FILE"),
        "File that stores each rank's transfers, for runs that only read";
    "minTimeDuration" => spec.time_min: word("TIME", values::time),
        "Repeat reads from the start until TIME has passed (s)";
    T "maxTimeDuration" => spec.minutes_max: word("MINUTES", values::count),
        "Start no further repetition after this time [default: 0, no limit]";
    i "repetitions" => spec.repetitions: word("N", values::count),
        "Repetitions of the whole test [default: 1]";
    d "interTestDelay" => spec.delay: word("TIME", values::time),
        "Pause before each phase but the first (s) [default: 0]";
};

const RANKS: &[Opt<Line>] = rows! { ()
    N "numTasks" => spec.tasks: word("N", values::count),
        "Number of ranks that take part [default: all]";
    a "api": takes(Value("API", api)), "Interface: POSIX";
    q "quitOnError": takes(Switch(quit_on_error)),
        "End the run at the first failed operation: --on-error stop";
    v "verbose" => view.verbosity: count,
        "Accepted: --rbench-report and --out have all details";
    "summaryFormat" => view.summary_format: word("FORMAT", summary_format),
        "Report format: default (text), JSON or CSV, with IOR's keys and columns";
    "warningAsErrors": takes(Nothing(|_| {})),
        "Accepted: what cannot be done as asked is always an error";
    "summaryFile" => spec.summary_file: path("FILE"),
        "Write the summary to FILE, which must not exist";
    "saveRankPerformanceDetailsCSV" => spec.rank_file: path("FILE"),
        "Write times and throughput of every rank to FILE (CSV)";
    "format" => shared.output.format: word("FORMAT", values::choice),
        "Format of rbench's report: text, or json as in --out [default: text]";
    f => script: path("SCRIPT"), "Read options from an IOR script with one test as well";
    O "option": takes(Value("NAME=VALUE", directives)), "Set options by their long names";
};

const HELP: &[Opt<Line>] = rows! { ()
    h "help": prints(help::<Line>), "Print help";
    "version": prints(values::version), "Print version";
};

fn files(line: &mut Line, word: &OsStr) -> Result<(), String> {
    line.spec.files = values::dirs(word);
    Ok(())
}

fn api(_: &mut Line, word: &OsStr) -> Result<(), String> {
    match text(word)?.eq_ignore_ascii_case("POSIX") {
        true => Ok(()),
        false => Err("rbench measures mounted file systems through POSIX only".to_owned()),
    }
}

fn quit_on_error(line: &mut Line, on: bool) {
    line.shared.common.limits.on_error = on.then_some(OnError::Stop);
}

fn summary_format(word: &str) -> Result<Summary, String> {
    let formats = [
        ("default", Summary::Text),
        ("json", Summary::Json),
        ("csv", Summary::Csv),
    ];
    one_of(&word.to_lowercase(), &formats)
}

fn directives(line: &mut Line, words: &OsStr) -> Result<(), String> {
    let mut all = words.as_bytes().split(|byte| *byte == b',');
    all.try_for_each(|word| directive(line, OsStr::from_bytes(word)))
}

/// Reads the value of `-s`.
fn segments(text: &str) -> Result<Segments, String> {
    match text {
        "-1" => Ok(Segments::AsInFiles),
        text => values::count(text).map(Segments::Count),
    }
}

const NO_POSIX: &str = "it belongs to another interface than POSIX";
const NO_DIRECTORY: &str = "rbench does not create directories; name an existing one with -o";
const NO_PREFILL: &str = "write the file before, in a run of its own: -w -k, and then -E -z";
const NO_GPU: &str = "this build has no GPU buffers";

/// Known but unsupported options by the beginning of their names, and why.
const REFUSED: &[(&str, &str)] = &[
    ("-A", "results have no reference number; use --label"),
    ("-B", "use --posix.odirect, as in newer versions of IOR"),
    ("-c", NO_POSIX),
    ("--collective", NO_POSIX),
    ("collective", NO_POSIX),
    ("-H", NO_POSIX),
    ("-I", NO_POSIX),
    ("-j", "use --rbench-report, whose percentiles show outliers"),
    ("-J", NO_POSIX),
    ("-K", "use -k to keep files"),
    ("-M", "rbench does not occupy memory; use a larger -s"),
    ("-n", NO_POSIX),
    ("-p", "rbench does not reserve space in advance"),
    ("-P", NO_POSIX),
    ("-S", NO_POSIX),
    ("-u", NO_DIRECTORY),
    ("--uniqueDir", NO_DIRECTORY),
    ("uniqueDir", NO_DIRECTORY),
    ("-U", NO_POSIX),
    ("-V", NO_POSIX),
    ("-x", "a short transfer is always an error"),
    (
        "-y",
        "ranks take several mounts in turn: -F with -o MOUNT/FILE@OTHER/FILE",
    ),
    (
        "--dryRun",
        "rbench prints no figures of a run that did nothing; it checks all options before a run",
    ),
    ("--randomPrefill", NO_PREFILL),
    ("randomPrefill", NO_PREFILL),
    (
        "--posix.rangelocks",
        "transfers take no locks; rbench check --only locks tests them",
    ),
    ("--dummy.", NO_POSIX),
    ("--mmap.", NO_POSIX),
    ("--mpiio.", NO_POSIX),
    ("--gpu", NO_GPU),
    ("--allocateBufferOnGPU", NO_GPU),
    ("--posix.lustre.", "Lustre hints are not implemented"),
    ("--posix.gpfs.", "GPFS hints are not implemented"),
    ("--posix.beegfs.", "BeeGFS hints are not implemented"),
];
