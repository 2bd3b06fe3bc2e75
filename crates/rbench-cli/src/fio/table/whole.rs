//! Options of the command line on the machine, on ending a run, and on fio's tools.

use rbench_plan::jobs::Checksum;
use rbench_plan::values;

use super::line::{path, seconds};
use super::{Given, Line};
use crate::{FioTool, IdleReport};

/// fio's names for kinds of messages.
#[rustfmt::skip]
pub const DEBUG: &[&str] = &[
    "process", "file", "io", "mem", "blktrace", "verify", "random", "parse", "diskutil", "job",
    "mutex", "profile", "time", "net", "rate", "compress", "steadystate", "helperthread", "zbd",
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

options! {
    /// Options on monitoring, on ending a run, and tools.
    WHOLE: Line () {
    "bandwidth-log" => fio.whole.rates: sets(true),
        "Log the total bandwidth of all workers to agg-read_bw.log etc.";
    "idle-prof": set("WHICH", idle),
        "Report idle CPU time: system, percpu; calibrate: measure CPU speed";
    "aux-path" => fio.whole.aux: word("DIR", path),
        "Directory for states and dumps of verified jobs";
    "trigger-file" => fio.whole.trigger.file: word("FILE", path),
        "End the run when this file exists; an empty one is removed";
    "trigger-timeout": set("TIME", trigger_timeout), "End the run after this time (s); 0: never";
    trigger => fio.whole.trigger.command: word("COMMAND", values::owned),
        "Command that rank 0 runs after a trigger, before the report";
    "trigger-remote" => fio.whole.trigger.remote: word("COMMAND", values::owned),
        "Command that each other host runs after a trigger";
    debug: set("TYPES", debug), "Print more before the report: help, all, or some of fio's types";
    "inflate-log" => tool: word("FILE", |file| path(file).map(FioTool::Inflate)),
        "Print a log of log_store_compressed as text and exit";
    crctest: optional("TYPES", checksums),
        "Measure the speed of checksums and exit; help: list them";
    "cpuclock-test" => tool: sets(FioTool::ClockTest),
        "Check whether the processors' counters agree and exit";
}}

fn idle(l: &mut Line, g: Given<'_>) -> Result<(), String> {
    l.view.idle = match g.text {
        "system" => Some(IdleReport::System),
        "percpu" => Some(IdleReport::EachCpu),
        "calibrate" => {
            l.tool = Some(FioTool::Calibrate);
            return Ok(());
        }
        word => return Err(format!("'{word}' is not one of system, percpu, calibrate")),
    };
    l.fio.whole.idle = true;
    Ok(())
}

fn trigger_timeout(l: &mut Line, g: Given<'_>) -> Result<(), String> {
    l.fio.whole.trigger.after = match g.text {
        "0" => None,
        text => Some(seconds(text)?),
    };
    Ok(())
}

fn debug(l: &mut Line, g: Given<'_>) -> Result<(), String> {
    if g.text == "help" {
        l.tool = Some(FioTool::Print(format!("{},all\n", DEBUG.join(","))));
        return Ok(());
    }
    for one in g.text.split(',') {
        let known = DEBUG.iter().filter(|known| one == "all" || one == **known);
        let known: Vec<&'static str> = known.copied().collect();
        if known.is_empty() {
            return Err(format!("'{one}' is not one of {}, all", DEBUG.join(", ")));
        }
        l.view.debug.extend(known);
    }
    Ok(())
}

fn checksums(l: &mut Line, g: Given<'_>) -> Result<(), String> {
    let names = || SUMS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let find = |one: &str| {
        let found = SUMS.iter().find(|(name, _)| *name == one);
        let unknown = || format!("'{one}' is not one of {}", names().join(", "));
        found.copied().ok_or_else(unknown)
    };
    l.tool = Some(match g.text {
        "" | "1" => FioTool::Checksums(SUMS.to_vec()),
        "help" => FioTool::Print(names().join("\n") + "\n"),
        list => FioTool::Checksums(list.split(',').map(find).collect::<Result<_, _>>()?),
    });
    Ok(())
}
