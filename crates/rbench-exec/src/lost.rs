//! Failures of a phase on mounts that no longer answer, sent to rank 0 row by row.

use std::collections::BTreeMap;

use nix::errno::Errno;
use rbench_core::outcome::WorkerOutcome;
use rbench_core::{FailureKind, Rank};

use crate::group::{ExecError, Group};
use crate::mounts::{Mounts, RowErrors};
use crate::phase::Phase;

/// Operations that failed, by row of the phase and errno.
type Counts = BTreeMap<(usize, i32), u64>;

/// On all ranks, after a phase with failed operations on some of them: reports dead mounts, and the
/// failures there, to rank 0.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn gather(
    group: &Group<'_>,
    phase: &Phase,
    outcomes: &[WorkerOutcome],
) -> Result<(), ExecError> {
    let mine = (
        group.probes.mounts.dead(),
        counts(outcomes, &group.probes.mounts),
    );
    let all = group.gather(&mine).await?;
    let mut told = Vec::new();
    for (rank, (dead, counts)) in (0..).map(Rank).zip(all) {
        if let Some(dead) = dead {
            group.hear_of_dead_mount(dead);
        }
        told.push((rank, counts));
    }
    // All dead mounts are known now, also to ranks that have not detected them.
    for (rank, counts) in told {
        let host = group.host_name_of(rank);
        for ((row, errno), count) in counts {
            if let Some(row) = phase.lanes.get(row) {
                let row = RowErrors {
                    iteration: phase.iteration,
                    name: row.name.clone(),
                    label: row.label.clone(),
                    kinds: vec![(FailureKind::Errno(errno), count)],
                };
                group.probes.mounts.add_errors(host, row);
            }
        }
    }
    Ok(())
}

/// Counts failures that a lost mount may have caused. For an unmounted one also those of missing
/// files: paths then lead to the directory below it.
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
                    *counts.entry((row, errno)).or_default() += count;
                }
            }
        }
    }
    counts
}
