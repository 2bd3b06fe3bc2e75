//! `rbench meta --workers`: the total number of workers of all ranks.

use super::{Facts, PlanError};
use crate::meta::{Layout, PHASES, PhaseKind};
use crate::spec;

/// Workers of each rank, and the ranks that have one less; `None` if the option was not
/// given.
pub(super) fn of(
    meta: &spec::Meta,
    common: &spec::Common,
    facts: &Facts,
) -> Result<Option<(u32, Vec<u32>)>, PlanError> {
    let Some(workers) = meta.workers else {
        return Ok(None);
    };
    let ranks = facts.ranks();
    refuse_if! {
        common.threads.is_some() => "--workers and --threads cannot be combined";
        workers < ranks => "--workers {workers} is less than one for each of the {ranks} ranks";
    }
    let threads = workers.div_ceil(ranks);
    let missing = u64::from(threads) * u64::from(ranks) - u64::from(workers);
    if missing > 0 {
        // These would need items that nobody creates, or count a rate of missing
        // workers.
        let by_default = || PHASES.iter().filter(|p| p.by_default).map(|p| p.kind);
        let lists = match &meta.phases {
            Some(phases) => phases.contains(&PhaseKind::DirList),
            None => !meta.files_only && by_default().any(|kind| kind == PhaseKind::DirList),
        };
        let conflict = [
            ("--layout shared", meta.layout == Some(Layout::Shared)),
            ("--shift", common.shift.is_some_and(|shift| shift > 0)),
            ("--rate", meta.rate.is_some()),
            ("--time", meta.time.is_some()),
            ("the phase dir-list", lists),
        ];
        if let Some((what, _)) = conflict.iter().find(|(_, there)| *there) {
            refuse!(
                "--workers {workers} is not a multiple of the {ranks} ranks, but {what} needs the same number in each rank"
            );
        }
    }
    Ok(Some((
        threads,
        last_in_turn(&facts.host_of, missing as usize),
    )))
}

/// The last `count` ranks in this order: each host's first rank, then each host's second, and
/// so on. Returned in ascending order.
fn last_in_turn(host_of: &[u32], count: usize) -> Vec<u32> {
    let mut seen = std::collections::BTreeMap::new();
    let mut turns: Vec<(u32, u32)> = (0_u32..)
        .zip(host_of)
        .map(|(rank, host)| {
            let turn = seen.entry(host).and_modify(|n| *n += 1).or_insert(0_u32);
            (*turn, rank)
        })
        .collect();
    turns.sort_unstable();
    let mut last: Vec<u32> = turns.iter().rev().take(count).map(|(_, r)| *r).collect();
    last.sort_unstable();
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_over_is_spread_over_the_hosts() {
        let host_of = [0, 0, 0, 1, 1, 1, 2, 2, 2];
        assert_eq!(last_in_turn(&host_of, 0), [] as [u32; 0]);
        // One worker more than three per host: at each host's first rank.
        assert_eq!(last_in_turn(&host_of, 6), [1, 2, 4, 5, 7, 8]);
        assert_eq!(last_in_turn(&host_of, 2), [5, 8]);
    }
}
