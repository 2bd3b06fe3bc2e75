//! Options that are only for the command line.

use std::path::PathBuf;

use rbench_core::Nanos;

use super::{Does, Given, Line, Opt, Takes};
use crate::fio::help;
use crate::given::{Base, one_of};
use crate::{FioFormat, Progress, live, values};

/// The least of `--eta-interval`, as in fio.
const ETA_LEAST: Nanos = Nanos(250_000_000);

type SetLine = fn(&mut Line, &str) -> Result<(), String>;

pub(super) const fn value(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    set: SetLine,
) -> Opt {
    Opt {
        name,
        aliases: &[],
        takes: Takes::Value(value),
        default: "",
        help,
        does: Does::Line(set),
    }
}

pub(super) const fn plain(name: &'static str, help: &'static str, set: SetLine) -> Opt {
    Opt {
        takes: Takes::Nothing,
        ..value(name, "", help, set)
    }
}

/// What fio prints, and where.
pub const OUTPUT: &[Opt] = &[
    value(
        "output",
        "FILE",
        "Write the report to FILE instead of standard output",
        |l, v| {
            l.view.output = Some(path(v)?);
            Ok(())
        },
    ),
    value(
        "output-format",
        "LIST",
        "Report formats, separated by commas: normal, terse, json, json+",
        |l, v| {
            l.view.formats = v.split(',').map(format).collect::<Result<_, String>>()?;
            Ok(())
        },
    )
    .default("normal"),
    plain("minimal", "Same as output-format=terse", |l, _| {
        l.view.formats = vec![FioFormat::Terse];
        Ok(())
    }),
    plain(
        "append-terse",
        "Print terse output after the other formats",
        |l, _| {
            l.append_terse = true;
            Ok(())
        },
    ),
    value(
        "terse-version",
        "N",
        "Version of the terse format: 2, 3, 4 or 5",
        |l, v| {
            let versions = [2, 3, 4, 5].map(|version: u8| (version.to_string(), version));
            let versions = versions
                .each_ref()
                .map(|(word, version)| (word.as_str(), *version));
            l.view.terse_version = Some(one_of(v, &versions)?);
            Ok(())
        },
    )
    .default("3"),
    value(
        "status-interval",
        "TIME",
        "Print a report at this interval during the run (s)",
        |l, v| {
            l.view.status_interval = Some(seconds(v)?);
            Ok(())
        },
    ),
    value(
        "eta",
        "WHEN",
        "Show progress on stderr: auto, always, never",
        |l, v| {
            // As in fio, any other word leaves the choice to the program.
            l.output.progress = match v {
                "always" => Progress::Plain,
                "never" => Progress::Off,
                _ => Progress::Auto,
            };
            Ok(())
        },
    )
    .default("auto"),
    value(
        "eta-newline",
        "TIME",
        "Print progress as lines at this interval (s)",
        |l, v| {
            l.view.progress_every = Some(seconds(v)?);
            l.output.progress = Progress::Plain;
            Ok(())
        },
    ),
    value(
        "eta-interval",
        "TIME",
        "Interval between updates of the progress (s)",
        |l, v| {
            let every = seconds(v)?;
            if every < ETA_LEAST {
                return Err("it must be at least 250 ms".to_owned());
            }
            l.view.progress_every = Some(every);
            Ok(())
        },
    ),
    plain("readonly", "Refuse jobs that write or trim", |l, _| {
        l.fio.readonly = true;
        Ok(())
    }),
    value(
        "section",
        "NAME",
        "Run only this section of job files; may be repeated",
        |l, v| {
            l.sections.push(v.to_owned());
            Ok(())
        },
    ),
    plain(
        "showcmd",
        "Print the jobs as a command line and exit",
        |l, _| {
            l.show_command = true;
            Ok(())
        },
    ),
    plain("parse-only", "Check the options and exit", |l, _| {
        l.view.parse_only = true;
        Ok(())
    }),
    plain(
        "warnings-fatal",
        "Accepted: a mistake is always an error",
        |_, _| Ok(()),
    ),
    value(
        "max-jobs",
        "N",
        "Accepted: rbench has no such limit",
        |_, v| count(v),
    ),
    value(
        "alloc-size",
        "N",
        "Accepted: memory is allocated as needed",
        |_, v| count(v),
    ),
];

/// What fio does not have.
pub const OWN: &[Opt] = &[
    plain(
        "rbench-report",
        "Print rbench's own report after fio's",
        |l, _| {
            l.view.report = true;
            Ok(())
        },
    ),
    value(
        "out",
        "FILE",
        "Write the result (JSON) to FILE, which may be a directory",
        |l, v| {
            l.output.out = Some(path(v)?);
            Ok(())
        },
    ),
    plain(
        "rbench-overwrite",
        "Replace the file of --out if rbench wrote it",
        |l, _| {
            l.output.overwrite = true;
            Ok(())
        },
    ),
    value(
        "label",
        "K=V",
        "Add the label key=value to the result; may be repeated",
        |l, v| {
            l.output.labels.push(values::label(v)?);
            Ok(())
        },
    ),
    value(
        "on-error",
        "WHAT",
        "What to do after a failed operation of any job: continue, stop",
        |l, v| {
            l.limits.on_error = Some(values::on_error(v)?);
            Ok(())
        },
    )
    .default("continue"),
    value(
        "max-errors",
        "N",
        "End the run after more than N failed operations",
        |l, v| {
            l.limits.max_errors = Some(given(v).number()?);
            Ok(())
        },
    ),
    plain(
        "rbench-no-round-trip",
        "Do not measure the round trip to the file system at the start",
        |l, _| {
            l.output.no_round_trip = true;
            Ok(())
        },
    ),
    value(
        "rbench-client-cache",
        "SIZE",
        "Size of the file system client's own cache on each host (bytes)",
        |l, v| {
            l.output.client_cache = Some(values::bytes(v)?);
            Ok(())
        },
    ),
    value(
        "rbench-watch",
        "PID|NAME",
        "Report CPU time and memory of the client, by PID or process name",
        |l, v| {
            l.output.watch = Some(values::watch(v)?);
            Ok(())
        },
    ),
    value(
        "rbench-event",
        "NAME[@TIME]=CMD",
        "Run CMD and set mark NAME at TIME in the first phase; may be repeated",
        |l, v| {
            l.output.events.push(values::event(v)?);
            Ok(())
        },
    ),
    value(
        "iterations",
        "N",
        "Run all jobs N times, each time as separate groups",
        |l, v| {
            l.iterations = Some(given(v).count(1)?);
            Ok(())
        },
    )
    .default("1"),
    value(
        "shift",
        "N",
        "Let jobs that only read use the files of rank r-N, then r-2N, ...",
        |l, v| {
            l.shift = Some(given(v).count(0)?);
            Ok(())
        },
    ),
    value(
        "ack-journal",
        "PREFIX",
        "Record writes and syncs in PREFIX.0.WORKER, for rbench verify",
        |l, v| {
            l.fio.ack_journal = Some(path(v)?);
            Ok(())
        },
    ),
    plain(
        "drop-caches",
        "Drop the kernel's caches on every host before jobs that read (root)",
        |l, _| {
            l.drop_caches = true;
            Ok(())
        },
    ),
    value(
        "op-timeout",
        "TIME",
        "Give up on an operation that takes longer than this (s)",
        |l, v| {
            l.limits.op_timeout = Some(seconds(v)?);
            Ok(())
        },
    ),
    value(
        "on-dead-mount",
        "WHAT",
        "When a mount no longer answers: stop, continue",
        |l, v| {
            l.limits.on_dead_mount = Some(values::on_error(v)?);
            Ok(())
        },
    )
    .default("stop"),
    plain(
        "private-dirs",
        "Allow each host its own file system for the files",
        |l, _| {
            l.leave.private_dirs = true;
            Ok(())
        },
    ),
    plain(
        "overfill",
        "Start even if there is less free space than the jobs write",
        |l, _| {
            l.leave.overfill = true;
            Ok(())
        },
    ),
    plain(
        "untried",
        "Skip the initial test of the file system features the jobs need",
        |l, _| {
            l.leave.untried = true;
            Ok(())
        },
    ),
    value(
        "progress",
        "HOW",
        "How rank 0 shows progress on stderr: auto, plain, live, off",
        |l, v| {
            l.output.progress = values::choice(v)?;
            Ok(())
        },
    )
    .default("auto"),
    value(
        "serve",
        "ADDR",
        "Serve the run's state to rbench watch at ADDRESS:PORT or unix:PATH",
        |l, v| {
            l.output.serve.at = Some(live::serve_at(v)?);
            Ok(())
        },
    ),
    plain(
        "serve-remote",
        "Allow --serve at an address that other hosts can reach",
        |l, _| {
            l.output.serve.remote = true;
            Ok(())
        },
    ),
    plain(
        "quiet",
        "Print only reports and errors: no progress, no notes",
        |l, _| {
            l.output.quiet = true;
            Ok(())
        },
    ),
    value(
        "communicator",
        "WHICH",
        "How ranks communicate: auto, solo (no MPI), mpi",
        |l, v| {
            l.output.start.communicator = values::choice(v)?;
            Ok(())
        },
    )
    .default("auto"),
    value(
        "start-timeout",
        "TIME",
        "Give up if ranks are missing after this time; 0: never",
        |l, v| {
            l.output.start.timeout = Some(values::time(v)?);
            Ok(())
        },
    )
    .default("120s"),
];

/// Options that print a text.
pub const HELP: &[Opt] = &[
    text("help", Takes::Nothing, "Print help", |_| Ok(help::help())).or(&["h"]),
    text(
        "cmdhelp",
        Takes::Optional("OPTION"),
        "Print help on one option, or on 'all'",
        help::command,
    ),
    text(
        "enghelp",
        Takes::Optional("ENGINE[,OPTION]"),
        "Print the engines, the options of one, or help on one option",
        help::engine,
    ),
    text(
        "version",
        Takes::Nothing,
        "Print version",
        |_| Ok(version()),
    )
    .or(&["v"]),
];

const fn text(
    name: &'static str,
    takes: Takes,
    help: &'static str,
    text: fn(&str) -> Result<String, String>,
) -> Opt {
    Opt {
        takes,
        does: Does::Text(text),
        ..plain(name, help, |_, _| Ok(()))
    }
}

/// The version of fio whose command line and outputs these are, and our own.
fn version() -> String {
    concat!("fio-3.33-rbench-", env!("CARGO_PKG_VERSION"), "\n").to_owned()
}

fn format(word: &str) -> Result<FioFormat, String> {
    one_of(
        word,
        &[
            ("normal", FioFormat::Normal),
            ("terse", FioFormat::Terse),
            ("minimal", FioFormat::Terse),
            ("json", FioFormat::Json),
            ("json+", FioFormat::JsonPlus),
        ],
    )
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    values::path(text.as_ref())
}

fn given(text: &str) -> Given<'_> {
    Given {
        text,
        base: Base::Binary,
        files: None,
        notes: None,
    }
}

pub(super) fn seconds(text: &str) -> Result<Nanos, String> {
    match given(text).time(Nanos::SECOND)? {
        Nanos(0) => Err("it must be more than 0".to_owned()),
        time => Ok(time),
    }
}

fn count(text: &str) -> Result<(), String> {
    given(text).number().map(drop)
}
