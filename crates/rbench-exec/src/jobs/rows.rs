//! The rows of a job, and what the parts of one whose opens and closes are timed took together.

use rbench_core::outcome::{Access, PhaseOutcome};
use rbench_core::{Nanos, OpKind};
use rbench_plan::jobs::JobPlan;

use super::find;
use crate::blocks::Lanes;
use crate::phase::{OpRow, Starts};

/// Which lanes a job has: reads, writes, trims, syncs.
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

/// The rows of a job that is called `name`, and which is whose: numbered from 0.
pub fn rows(job: &JobPlan, name: &str) -> (Vec<OpRow>, Lanes) {
    let mut all: Vec<OpRow> = Vec::new();
    let framed = job.framing.is_timed();
    let mut lane = |wanted: bool, (op, suffix, words): (OpKind, &str, &str)| {
        let aside = matches!(suffix, "closing" | "flush");
        let moves = matches!(op, OpKind::Read | OpKind::Write);
        wanted.then(|| {
            all.push(OpRow {
                op,
                // Such a job has one direction, which is what it is called by.
                name: match framed && moves {
                    true => name.to_owned(),
                    false => format!("{name}-{suffix}"),
                },
                label: match framed && moves {
                    true => name.to_owned(),
                    false => format!("{name}: {words}"),
                },
                unsynced: op == OpKind::Write && find(job).moves_data && !job.syncing.any(),
                aside,
                starts: Starts::ByKind,
            });
            all.len() - 1
        })
    };
    let [read, write, trim, sync] = directions(job);
    let of = |data: (OpKind, &'static str, &'static str)| match job.names {
        None => data,
        Some(op) => (op.kind(), op.row().0, op.row().1),
    };
    let syncs = sync || framed && write && job.syncing.end_fsync;
    let syncing = &job.syncing;
    let flushes = syncing.end_fsync || syncing.end_syncfs || syncing.fsync_on_close;
    let flushes = !framed && write && flushes;
    let moves = job.names.is_none() && find(job).uses_files;
    let closes = !framed && moves && (read || write || trim);
    let words = if framed {
        ("fsync", "fsyncs")
    } else {
        ("sync", "syncs")
    };
    let lanes = Lanes {
        open: lane(framed, (OpKind::Open, "open", "opens")),
        read: lane(read, of((OpKind::Read, "read", "reads"))),
        write: lane(write, of((OpKind::Write, "write", "writes"))),
        trim: lane(trim, (OpKind::Trim, "trim", "trims")),
        sync: lane(syncs, (OpKind::Fsync, words.0, words.1)),
        close: lane(
            framed && job.syncing.close,
            (OpKind::Close, "close", "closes"),
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
