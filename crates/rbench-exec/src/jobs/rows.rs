//! The rows of a job, and what the parts of one whose opens and closes are timed took together.

use rbench_core::outcome::{Access, PhaseOutcome};
use rbench_core::{Nanos, OpKind};
use rbench_plan::jobs::JobPlan;

use super::find;
use crate::blocks::Lanes;
use crate::phase::OpRow;

/// The lanes that a job has: reads, writes, trims, syncs.
fn directions(job: &JobPlan) -> [bool; 4] {
    let directions = job.pattern.directions;
    let verify = job.verify.as_ref();
    let reads_back = verify.is_some_and(|v| v.read_back || v.backlog.is_some() || v.only);
    let runs = !job.files.create_only;
    let writes = directions.write && !verify.is_some_and(|v| v.only);
    let trims = directions.trim && !verify.is_some_and(|v| v.only);
    let trims_some = verify.is_some_and(|v| v.trims.is_some());
    let syncs = writes
        && (job.syncing.fsync > 0 || job.syncing.fdatasync > 0 || job.syncing.range.is_some());
    let found = job.replay.as_ref().and_then(|replay| replay.found);
    let syncs = syncs || found.is_some_and(|found| found.syncs);
    [
        runs && (directions.read || reads_back),
        runs && writes,
        runs && (trims || trims_some),
        runs && syncs,
    ]
}

/// The rows of a job that is called `name`, and `title` for people, and which is whose:
/// numbered from 0.
pub fn rows(job: &JobPlan, name: &str, title: &str) -> (Vec<OpRow>, Lanes) {
    let mut all: Vec<OpRow> = Vec::new();
    let (framed, phase) = (job.framing.is_timed(), job.label.is_some());
    let [read, write, trim, sync] = directions(job);
    // IOR's have one direction, and most phases of `rbench io`: which is what they are called by.
    let alone = framed || phase && !(read && write);
    let mut lane = |wanted: bool, (op, suffix, words): (OpKind, &str, &str)| {
        use OpKind::{Read, ReadFile, Write, WriteFile};
        let moves = matches!(op, Read | Write | ReadFile | WriteFile);
        let writes = matches!(op, Write | WriteFile);
        wanted.then(|| {
            let (name, label) = match alone && moves {
                true => (name.to_owned(), title.to_owned()),
                false => (format!("{name}-{suffix}"), format!("{title}: {words}")),
            };
            all.push(OpRow {
                unsynced: writes && find(job).moves_data && !job.syncing.any(),
                aside: matches!(suffix, "closing" | "flush"),
                ..OpRow::new(op, name, label)
            });
            all.len() - 1
        })
    };
    if job.small.is_some() {
        let lanes = Lanes {
            read: lane(read, (OpKind::ReadFile, "read", "reads")),
            write: lane(write, (OpKind::WriteFile, "write", "writes")),
            ..Lanes::default()
        };
        return (all, lanes);
    }
    let of = |data: (OpKind, &'static str, &'static str)| match job.names {
        None => data,
        Some(names) => (names.op, names.op.name(), names.words),
    };
    let syncing = &job.syncing;
    let in_run_time = framed || phase;
    let syncs = sync || in_run_time && write && syncing.end_fsync;
    let flushes = syncing.end_fsync || syncing.end_syncfs || syncing.fsync_on_close;
    let flushes = !in_run_time && write && flushes;
    let moves = job.names.is_none() && find(job).uses_files;
    let closes = !framed && moves && (read || write || trim) && !(phase && syncing.close);
    let (sync_name, sync_words) = match (framed, phase) {
        (true, _) => ("fsync", "fsyncs"),
        (false, true) => ("fsync", "fsync"),
        (false, false) => ("sync", "syncs"),
    };
    let close_words = if framed { "closes" } else { "close" };
    let lanes = Lanes {
        open: lane(framed, (OpKind::Open, "open", "opens")),
        read: lane(read, of((OpKind::Read, "read", "reads"))),
        write: lane(write, of((OpKind::Write, "write", "writes"))),
        trim: lane(trim, of((OpKind::Trim, "trim", "trims"))),
        sync: lane(syncs, (OpKind::Fsync, sync_name, sync_words)),
        close: lane(
            in_run_time && syncing.close,
            (OpKind::Close, "close", close_words),
        ),
        flushing: lane(flushes, (OpKind::Fsync, "flush", "fsync at the end")),
        closing: lane(closes, (OpKind::Close, "closing", "closing")),
    };
    (all, lanes)
}

/// Tells the row of the transfers among `rows`, those of one round, what opens, transfers and
/// closes took together. A stonewall is that of the transfers alone.
pub fn tell_access(rows: &mut [PhaseOutcome]) {
    let span = |row: &PhaseOutcome| {
        let from = row.measured_from;
        (from, Nanos(from.0.saturating_add(row.elapsed.0)))
    };
    let used = |op: OpKind| {
        let of = |row: &&PhaseOutcome| row.op == op && row.items + row.failures.total() > 0;
        rows.iter().find(of).map(span)
    };
    let data = used(OpKind::Write).or(used(OpKind::Read));
    let (Some(opens), Some(transfers)) = (used(OpKind::Open), data) else {
        return;
    };
    let closes = used(OpKind::Close);
    let moved = used(OpKind::Fsync).map_or(transfers.1, |sync| sync.1.max(transfers.1));
    let end = closes.map_or(moved, |close| close.1.max(moved));
    let access = Access {
        open: opens.1.since(opens.0),
        transfer: moved.since(transfers.0),
        close: closes.map_or(Nanos(0), |close| close.1.since(close.0)),
        total: end.since(opens.0),
    };
    for row in rows {
        match row.op {
            OpKind::Read | OpKind::Write => row.access = Some(access),
            _ => row.stonewall = None,
        }
    }
}
