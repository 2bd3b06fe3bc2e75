//! Priorities of single requests: fio's `cmdprio` options.

use rbench_core::{Direction, IoPriority};

use super::super::PlanError;
use crate::jobs::{Directions, Each, Priorities, PriorityShare};
use crate::spec::fio::{Cmdprio, Settings};

/// The class without `cmdprio_class`, as in fio: the highest.
const CLASS: u8 = 1;

/// The priorities that requests draw; `None`: they have that of the job.
pub(super) fn priorities(
    s: &Settings,
    does: Directions,
    notes: &mut Vec<String>,
) -> Result<Option<Priorities>, PlanError> {
    let Cmdprio {
        percentage,
        split,
        class,
        level,
        hint,
    } = &s.cmdprio;
    // Trims have none, as in fio.
    let directions = [Direction::Read, Direction::Write];
    let any = |given: &dyn Fn(Direction) -> bool| directions.into_iter().any(given);
    let percent = |direction| percentage.of(direction).unwrap_or(0);
    let splits = any(&|direction| split.of(direction).is_some());
    if splits && any(&|direction| percent(direction) > 0) {
        refuse!("cmdprio_percentage and cmdprio_bssplit cannot be combined");
    }
    let shares = |direction| {
        let usual = IoPriority::new(
            class.of(direction).unwrap_or(CLASS),
            level.of(direction).unwrap_or(0),
            hint.of(direction).unwrap_or(0),
        );
        let all: Vec<PriorityShare> = match split.of(direction) {
            Some(entries) => entries
                .iter()
                .map(|entry| PriorityShare {
                    block: Some(entry.block),
                    percent: entry.percent,
                    priority: entry.priority.unwrap_or(usual),
                })
                .collect(),
            None => vec![PriorityShare {
                block: None,
                percent: percent(direction),
                priority: usual,
            }],
        };
        let mut used: Vec<_> = all.into_iter().filter(|share| share.percent > 0).collect();
        // The report lists priorities in fio's order.
        used.sort_by_key(|share| share.block);
        used
    };
    // Like in fio, a direction that the job does not have draws none, even if verification reads. A
    // log that is replayed may have both.
    let of = |direction, does| match does || !s.replay.logs.is_empty() {
        true => shares(direction),
        false => Vec::new(),
    };
    let shares = Each {
        read: of(Direction::Read, does.read),
        write: of(Direction::Write, does.write),
        trim: Vec::new(),
    };
    for all in shares.all() {
        add_up(all)?;
    }
    if shares.all().into_iter().any(|all| !all.is_empty()) {
        return Ok(Some(Priorities { shares }));
    }
    if any(&|direction| {
        class.of(direction).is_some()
            || level.of(direction).is_some()
            || hint.of(direction).is_some()
    }) {
        notes.push(
            "cmdprio, cmdprio_class and cmdprio_hint have no effect without cmdprio_percentage or \
             cmdprio_bssplit"
                .to_owned(),
        );
    }
    Ok(None)
}

/// Checks that blocks of one size have no more than 100 percent.
fn add_up(shares: &[PriorityShare]) -> Result<(), PlanError> {
    for PriorityShare { block, .. } in shares {
        let same = shares.iter().filter(|share| share.block == *block);
        let sum: u32 = same.map(|share| share.percent).sum();
        let bytes = block.unwrap_or(0);
        refuse_if! {
            sum > 100 =>
                "cmdprio_bssplit: the percentages of blocks of {bytes} bytes add up to {sum}, more than 100";
        }
    }
    Ok(())
}
