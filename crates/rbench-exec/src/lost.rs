//! What failed in a phase on mounts that no longer answer, brought to rank 0 row by row.

use std::collections::BTreeMap;

use nix::errno::Errno;
use rbench_core::outcome::WorkerOutcome;
use rbench_core::wire::{Reader, Writer};
use rbench_core::{FailureKind, Rank};

use crate::group::{ExecError, Group};
use crate::mounts::{DeadMount, Mounts, RowErrors};
use crate::phase::Phase;

/// Operations that failed, by row of the phase and errno.
type Counts = BTreeMap<(u64, u64), u64>;

/// On all ranks, behind a phase in which operations failed on some of them: rank 0 learns of
/// dead mounts, and what failed there.
///
/// # Errors
/// When the ranks cannot talk.
pub async fn gather(
    group: &Group<'_>,
    phase: &Phase,
    outcomes: &[WorkerOutcome],
) -> Result<(), ExecError> {
    let dead = group.probes.mounts.dead();
    let mut message = Writer::default();
    message.text(&dead.map_or(String::new(), |dead| dead.to_text()));
    for ((row, errno), count) in counts(outcomes, &group.probes.mounts) {
        message.number(row).number(errno).number(count);
    }
    let all = group.world.gather(Rank(0), message.finish());
    let all = group.quietly(all).await?.unwrap_or_default();
    let mut told: Vec<(Rank, Reader<'_>)> = Vec::new();
    for (rank, bytes) in (0..).map(Rank).zip(&all) {
        let mut reader = Reader::new(bytes);
        let text = reader.text().unwrap_or_default();
        let at = group.now();
        DeadMount::of_text(group.host_name_of(rank), &text, at)
            .into_iter()
            .for_each(|dead| group.hear_of_dead_mount(dead));
        told.push((rank, reader));
    }
    // All dead mounts are known now, also to ranks that have not found out themselves.
    for (rank, mut reader) in told {
        let host = group.host_name_of(rank);
        while read_row(&mut reader, phase)
            .map(|row| group.probes.mounts.add_errors(host, row))
            .is_some()
        {}
    }
    Ok(())
}

/// What of it may have come of a lost mount. Where it is no longer mounted, also what was not
/// found: paths then lead to the directory below it.
fn counts(outcomes: &[WorkerOutcome], mounts: &Mounts) -> Counts {
    let is_absent = |kind: FailureKind| kind == Errno::ENOENT.into();
    let lanes = || outcomes.iter().flat_map(|outcome| &outcome.lanes);
    let any_absent = lanes().any(|lane| lane.failures.iter().any(|(kind, ..)| is_absent(kind)));
    let unmounted = any_absent && mounts.is_one_unmounted();
    let mut counts = Counts::new();
    for outcome in outcomes {
        for (row, lane) in (outcome.first_lane..).zip(&outcome.lanes) {
            for (kind, count, _) in lane.failures.iter() {
                if let FailureKind::Errno(errno) = kind
                    && (kind.may_be_of_a_lost_mount() || unmounted && is_absent(kind))
                {
                    let key = (row as u64, u64::from(errno.unsigned_abs()));
                    *counts.entry(key).or_default() += count;
                }
            }
        }
    }
    counts
}

fn read_row(reader: &mut Reader<'_>, phase: &Phase) -> Option<RowErrors> {
    let (row, errno, count) = (reader.number()?, reader.number()?, reader.number()?);
    let row = phase.lanes.get(usize::try_from(row).ok()?)?;
    Some(RowErrors {
        iteration: phase.iteration,
        name: row.name.clone(),
        label: row.label.clone(),
        kinds: vec![(FailureKind::Errno(i32::try_from(errno).ok()?), count)],
    })
}
