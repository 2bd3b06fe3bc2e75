//! Options of the command line on the machine, on what ends a run, and on tools that fio has
//! beside its jobs.

use rbench_core::Nanos;
use rbench_plan::jobs::Checksum;

use super::line::{path, plain, seconds, value};
use super::{Opt, Takes};
use crate::{FioTool, IdleReport};

/// fio's kinds of messages.
pub const DEBUG: &[&str] = &[
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
];

/// The checksums whose speed can be measured, in fio's order.
const SUMS: &[(&str, Checksum)] = &[
    ("md5", Checksum::Md5),
    ("crc64", Checksum::Crc64),
    ("crc32", Checksum::Crc32),
    ("crc32c", Checksum::Crc32c),
    ("crc16", Checksum::Crc16),
    ("crc7", Checksum::Crc7),
    ("sha1", Checksum::Sha1),
    ("sha256", Checksum::Sha256),
    ("sha512", Checksum::Sha512),
    ("xxhash", Checksum::Xxhash),
    ("sha3-224", Checksum::Sha3_224),
    ("sha3-256", Checksum::Sha3_256),
    ("sha3-384", Checksum::Sha3_384),
    ("sha3-512", Checksum::Sha3_512),
];

/// What is watched, what ends a run, and tools.
pub const WHOLE: &[Opt] = &[
    plain(
        "bandwidth-log",
        "Log the total bandwidth of all workers to agg-read_bw.log etc.",
        |l, _| {
            l.fio.whole.rates = true;
            Ok(())
        },
    ),
    value(
        "idle-prof",
        "WHICH",
        "Report idle CPU time: system, percpu; calibrate: measure CPU speed",
        |l, v| {
            l.view.idle = match v {
                "system" => Some(IdleReport::System),
                "percpu" => Some(IdleReport::EachCpu),
                "calibrate" => {
                    l.tool = Some(FioTool::Calibrate);
                    return Ok(());
                }
                _ => return Err(format!("'{v}' is not one of system, percpu, calibrate")),
            };
            l.fio.whole.idle = true;
            Ok(())
        },
    ),
    value(
        "aux-path",
        "DIR",
        "Directory for states and dumps of verified jobs",
        |l, v| {
            l.fio.whole.aux = path(v)?;
            Ok(())
        },
    ),
    value(
        "trigger-file",
        "FILE",
        "End the run when this file exists; an empty one is removed",
        |l, v| {
            l.fio.whole.trigger.file = Some(path(v)?);
            Ok(())
        },
    ),
    value(
        "trigger-timeout",
        "TIME",
        "End the run after this time (s); 0: never",
        |l, v| {
            l.fio.whole.trigger.after = time(v)?;
            Ok(())
        },
    ),
    value(
        "trigger",
        "COMMAND",
        "Command that rank 0 runs after a trigger, before the report",
        |l, v| {
            l.fio.whole.trigger.command = Some(v.to_owned());
            Ok(())
        },
    ),
    value(
        "trigger-remote",
        "COMMAND",
        "Command that each other host runs after a trigger",
        |l, v| {
            l.fio.whole.trigger.remote = Some(v.to_owned());
            Ok(())
        },
    ),
    value(
        "debug",
        "TYPES",
        "Print more before the report: help, all, or some of fio's types",
        |l, v| {
            if v == "help" {
                l.tool = Some(FioTool::Print(format!("{},all\n", DEBUG.join(","))));
                return Ok(());
            }
            for one in v.split(',') {
                let known = DEBUG.iter().filter(|known| one == "all" || one == **known);
                let known: Vec<&'static str> = known.copied().collect();
                if known.is_empty() {
                    return Err(format!("'{one}' is not one of {}, all", DEBUG.join(", ")));
                }
                l.view.debug.extend(known);
            }
            Ok(())
        },
    ),
    value(
        "inflate-log",
        "FILE",
        "Print a log of log_store_compressed as text and exit",
        |l, v| {
            l.tool = Some(FioTool::Inflate(path(v)?));
            Ok(())
        },
    ),
    Opt {
        takes: Takes::Optional("TYPES"),
        ..plain(
            "crctest",
            "Measure the speed of checksums and exit; help: list them",
            |l, v| {
                l.tool = Some(checksums(v)?);
                Ok(())
            },
        )
    },
    plain(
        "cpuclock-test",
        "Check whether the processors' counters agree and exit",
        |l, _| {
            l.tool = Some(FioTool::ClockTest);
            Ok(())
        },
    ),
];

/// A time; `None`: 0.
fn time(text: &str) -> Result<Option<Nanos>, String> {
    match text {
        "0" => Ok(None),
        text => seconds(text).map(Some),
    }
}

fn checksums(text: &str) -> Result<FioTool, String> {
    let names = || SUMS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    match text {
        "" | "1" => return Ok(FioTool::Checksums(SUMS.to_vec())),
        "help" => return Ok(FioTool::Print(names().join("\n") + "\n")),
        _ => {}
    }
    let find = |one: &str| {
        let found = SUMS.iter().find(|(name, _)| *name == one);
        let unknown = || format!("'{one}' is not one of {}", names().join(", "));
        found.copied().ok_or_else(unknown)
    };
    let all: Result<Vec<_>, String> = text.split(',').map(find).collect();
    all.map(FioTool::Checksums)
}
