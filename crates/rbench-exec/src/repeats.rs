//! Workers that cover the same part more than once.

use rbench_core::outcome::OpStats;
use rbench_core::residency::Round;
use rbench_core::{OpKind, Timeline};

/// Returns when and how often a worker repeated its part.
pub fn round<'l>(lanes: impl Iterator<Item = &'l OpStats>, once: Option<u64>) -> Option<Round> {
    let once = once.filter(|once| *once > 0)?;
    let (mut line, mut done): (Option<Timeline>, u64) = (None, 0);
    for lane in lanes.filter(|lane| !matches!(lane.op, OpKind::Fsync | OpKind::Close)) {
        match &mut line {
            Some(line) => line.merge(&lane.timeline),
            None => line = Some(lane.timeline.clone()),
        }
        done += lane.items + lane.failures.total();
    }
    (done > once).then(|| Round {
        after: line.and_then(|line| line.when(once)).unwrap_or_default(),
        once,
        done,
    })
}

/// Records that a worker that only wrote has written its whole part after `once` operations, and
/// overwrote it from then on.
pub fn note_rewritten(lanes: &mut [OpStats], once: Option<u64>) {
    if lanes.iter().any(|lane| lane.op.asks()) {
        return;
    }
    let found = round(lanes.iter(), once);
    let writes = |lane: &&mut OpStats| matches!(lane.op, OpKind::Write | OpKind::WriteFile);
    if let Some(lane) = lanes.iter_mut().find(writes) {
        lane.rewritten = found;
    }
}
