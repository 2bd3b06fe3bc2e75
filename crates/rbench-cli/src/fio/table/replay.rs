//! Options of jobs: logs of I/O, recorded and replayed.

use rbench_plan::iolog::Skip;

use super::{Given, text};

options! {
    /// Logs of I/O.
    REPLAY: Job () {
    write_iolog => plan.iolog: of("FILE", text),
        "Record each worker's I/O for replay: FILE, FILE.1, ...";
    read_iolog => replay.logs: of("LIST", logs),
        "Replay these I/O logs, which workers take in turn";
    read_iolog_chunked => replay.chunked: flag = "0", "Read the log in pieces during the replay";
    replay_no_stall => replay.stalls: inverted = "0",
        "Ignore the times of the log: replay one operation after the other";
    replay_time_scale => replay.speed: of("PERCENT", |g| g.within(1, i32::MAX as u64)) = "100",
        "Speed of the replay: 200 is twice as fast as recorded";
    replay_redirect => replay.redirect: of("FILE", text),
        "Replay all operations of the log on this file";
    replay_scale => replay.scale: within(0, i32::MAX as u64) = "1",
        "Divide the log's offsets by this";
    replay_align => replay.align: of("SIZE", alignment) = "0",
        "Round the log's offsets down to multiples of this power of 2";
    replay_skip => replay.skip: of("LIST", skip),
        "Operations to leave out: read, write, trim, sync";
}}

/// Reads names between colons; none may be empty.
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
