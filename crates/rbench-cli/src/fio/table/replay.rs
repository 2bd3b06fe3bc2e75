//! Options of jobs: logs of I/O, recorded and replayed.

use rbench_plan::iolog::Skip;

use super::{Given, Opt, put, text};

/// Logs of I/O.
pub const REPLAY: &[Opt] = &[
    Opt::job(
        "write_iolog",
        "FILE",
        "Record each worker's I/O for replay: FILE, FILE.1, ...",
        |s, g| put(&mut s.write_iolog, text(g)),
    ),
    Opt::job(
        "read_iolog",
        "LIST",
        "Replay these I/O logs, which workers take in turn",
        |s, g| put(&mut s.read_iolog, logs(g)),
    ),
    Opt::job(
        "read_iolog_chunked",
        "0|1",
        "Read the log in pieces during the replay",
        |s, g| put(&mut s.read_iolog_chunked, g.flag()),
    )
    .default("0"),
    Opt::job(
        "replay_no_stall",
        "0|1",
        "Ignore the times of the log: replay one operation after the other",
        |s, g| put(&mut s.replay_no_stall, g.flag()),
    )
    .default("0"),
    Opt::job(
        "replay_time_scale",
        "PERCENT",
        "Speed of the replay: 200 is twice as fast as recorded",
        |s, g| put(&mut s.replay_time_scale, g.within(1, i32::MAX as u64)),
    )
    .default("100"),
    Opt::job(
        "replay_redirect",
        "FILE",
        "Replay all operations of the log on this file",
        |s, g| put(&mut s.replay_redirect, text(g)),
    ),
    Opt::job(
        "replay_scale",
        "N",
        "Divide the log's offsets by this",
        |s, g| put(&mut s.replay_scale, g.within(0, i32::MAX as u64)),
    )
    .default("1"),
    Opt::job(
        "replay_align",
        "SIZE",
        "Round the log's offsets down to multiples of this power of 2",
        |s, g| put(&mut s.replay_align, alignment(g)),
    )
    .default("0"),
    Opt::job(
        "replay_skip",
        "LIST",
        "Operations to leave out: read, write, trim, sync",
        |s, g| put(&mut s.replay_skip, skip(g)),
    ),
];

/// Names between colons, none of them empty.
fn logs(g: Given<'_>) -> Result<Vec<String>, String> {
    let names = g.names();
    match names.iter().any(String::is_empty) {
        true => Err(format!("'{}' has an empty name", g.text)),
        false => Ok(names),
    }
}

fn alignment(g: Given<'_>) -> Result<u64, String> {
    let bytes = g.number()?;
    match bytes == 0 || bytes.is_power_of_two() {
        true => Ok(bytes),
        false => Err(format!("{bytes} is not a power of two")),
    }
}

fn skip(g: Given<'_>) -> Result<Skip, String> {
    let mut skip = Skip::default();
    for word in g.text.split(',').map(str::trim) {
        match word {
            "read" => skip.read = true,
            "write" => skip.write = true,
            "trim" => skip.trim = true,
            "sync" => skip.sync = true,
            _ => return Err(format!("'{word}' is not read, write, trim or sync")),
        }
    }
    Ok(skip)
}
