//! Options for the command line only.

use std::path::PathBuf;

use rbench_core::Nanos;
use rbench_plan::spec;
use rbench_plan::values;

use super::{Given, Line};
use crate::fio::help;
use crate::{Progress, live};
use rbench_plan::given::one_of;

/// Smallest `--eta-interval`, like in fio.
const ETA_LEAST: Nanos = Nanos(250_000_000);

options! {
    /// Contents and place of fio's output.
    OUTPUT: Line () {
    output => view.output: word("FILE", path),
        "Write the report to FILE instead of standard output";
    "output-format" => view.formats: word("LIST", formats) = "normal",
        "Report formats, separated by commas: normal, terse, json, json+";
    minimal => view.formats: sets(vec!["terse"]), "Same as output-format=terse";
    "append-terse" => append_terse: sets(true), "Print terse output after the other formats";
    "terse-version" => view.terse_version: words("N", "2" = 2, "3" = 3, "4" = 4, "5" = 5) = "3",
        "Version of the terse format: 2, 3, 4 or 5";
    "status-interval" => view.status_interval: word("TIME", seconds),
        "Print a report at this interval during the run (s)";
    eta => output.progress: word("WHEN", eta) = "auto",
        "Show progress on stderr: auto, always, never";
    "eta-newline": set("TIME", eta_newline), "Print progress as lines at this interval (s)";
    "eta-interval" => view.progress_every: word("TIME", eta_interval),
        "Interval between updates of the progress (s)";
    readonly => fio.readonly: sets(true), "Refuse jobs that write or trim";
    section => sections: more("NAME", values::owned),
        "Run only this section of job files; may be repeated";
    showcmd => show_command: sets(true), "Print the jobs as a command line and exit";
    "parse-only" => view.parse_only: sets(true), "Check the options and exit";
    "warnings-fatal": accept(sets(())), "Accepted: a mistake is always an error";
    "max-jobs": accept(number), "Accepted: rbench has no such limit";
    "alloc-size": accept(number), "Accepted: memory is allocated as needed";
}}

options! {
    /// Options that fio does not have.
    OWN: Line () {
    "rbench-report" => view.report: sets(true), "Print rbench's own report after fio's";
    out => output.out: word("FILE", path),
        "Write the result (JSON) to FILE, which may be a directory";
    "rbench-overwrite" => output.overwrite: sets(true),
        "Replace the file of --out if rbench wrote it";
    label => output.labels: more("K=V", values::label),
        "Add the label key=value to the result; may be repeated";
    "on-error" => common.limits.on_error: word("WHAT", spec::on_error) = "continue",
        "What to do after a failed operation of any job: continue, stop";
    "max-errors" => common.limits.max_errors: number,
        "End the run after more than N failed operations";
    "rbench-no-round-trip" => output.no_round_trip: sets(true),
        "Do not measure the round trip to the file system at the start";
    "rbench-client-cache" => output.client_cache: word("SIZE", values::bytes),
        "Size of the file system client's own cache on each host (bytes)";
    "rbench-watch" => output.watch: word("PID|NAME", values::watch),
        "Report CPU time and memory of the client, by PID or process name";
    "rbench-event" => output.events: more("NAME[@TIME]=CMD", values::event),
        "Run CMD and set mark NAME at TIME in the first phase; may be repeated";
    iterations => common.iterations: number(1) = "1",
        "Run all jobs N times, each time as separate groups";
    shift => common.shift: number,
        "Let jobs that only read use the files of rank r-N, then r-2N, ...";
    "ack-journal" => fio.ack_journal: word("PREFIX", path),
        "Record writes and syncs in PREFIX.0.WORKER, for rbench verify";
    "drop-caches" => common.drop_caches: sets(true),
        "Drop the kernel's caches on every host before jobs that read (root)";
    "op-timeout" => common.limits.op_timeout: word("TIME", seconds),
        "Give up on an operation that takes longer than this (s)";
    "on-dead-mount" => common.limits.on_dead_mount: word("WHAT", spec::on_error) = "stop",
        "When a mount no longer answers: stop, continue";
    "private-dirs" => common.leave.private_dirs: sets(true),
        "Allow each host its own file system for the files";
    overfill => common.leave.overfill: sets(true),
        "Start even if there is less free space than the jobs write";
    untried => common.leave.untried: sets(true),
        "Skip the initial test of the file system features the jobs need";
    progress => output.progress: word("HOW", values::choice) = "auto",
        "How rank 0 shows progress on stderr: auto, plain, live, off";
    serve => output.serve.at: word("ADDR", live::serve_at),
        "Serve the run's state to rbench watch at ADDRESS:PORT or unix:PATH";
    "serve-remote" => output.serve.remote: sets(true),
        "Allow --serve at an address that other hosts can reach";
    quiet => output.quiet: sets(true), "Print only reports and errors: no progress, no notes";
    communicator => output.start.communicator: word("WHICH", values::choice) = "auto",
        "How ranks communicate: auto, solo (no MPI), mpi";
    "start-timeout" => output.start.timeout: word("TIME", values::time) = "120s",
        "Give up if ranks are missing after this time; 0: never";
}}

options! {
    /// Options that print a text.
    HELP: Line () {
    help | h: prints(|_| Ok(help::help())), "Print help";
    cmdhelp: prints_of("OPTION", help::command), "Print help on one option, or on 'all'";
    enghelp: prints_of("ENGINE[,OPTION]", help::engine),
        "Print the engines, the options of one, or help on one option";
    version | v: prints(version), "Print version";
}}

/// The version of fio that command line and outputs follow, and rbench's own.
fn version(_: &str) -> Result<String, String> {
    Ok(concat!("fio-3.33-rbench-", env!("CARGO_PKG_VERSION"), "\n").to_owned())
}

fn formats(list: &str) -> Result<Vec<&'static str>, String> {
    let known = [
        ("normal", "normal"),
        ("terse", "terse"),
        ("minimal", "terse"),
        ("json", "json"),
        ("json+", "json+"),
    ];
    list.split(',').map(|word| one_of(word, &known)).collect()
}

/// Reads `--eta`; like in fio, any other word leaves the choice to the program.
fn eta(word: &str) -> Result<Progress, String> {
    Ok(match word {
        "always" => Progress::Plain,
        "never" => Progress::Off,
        _ => Progress::Auto,
    })
}

fn eta_newline(l: &mut Line, g: Given<'_>) -> Result<(), String> {
    l.view.progress_every = Some(seconds(g.text)?);
    l.output.progress = Progress::Plain;
    Ok(())
}

fn eta_interval(text: &str) -> Result<Nanos, String> {
    match seconds(text)? {
        every if every < ETA_LEAST => Err("it must be at least 250 ms".to_owned()),
        every => Ok(every),
    }
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    values::path(text.as_ref())
}

pub(super) fn seconds(text: &str) -> Result<Nanos, String> {
    match Given::alone(text).time(Nanos::SECOND)? {
        Nanos(0) => Err("it must be more than 0".to_owned()),
        time => Ok(time),
    }
}
