//! `rbench ops`: the rows of the per-operation table as phases of a metadata workload.
//! Each row is a phase under the row's name; its prerequisites run before it, untimed.

use rbench_core::OpKind;
use rbench_core::operations::{OPS_ROWS, OpsRow};

use super::{PlanError, nonzero_time};
use crate::meta::{
    ItemOwner, MetaPlan, Part, PhaseInfo, PhaseKind, PhasePlan, Showing, UNTIL_THE_DEADLINE,
    with_needed,
};
use crate::shift;
use crate::spec::{self, Ops};
use crate::tree::Shape;

/// Default number of operations of each row and worker.
const OPERATIONS: u64 = 1000;
/// Directories of each worker that are filled with 10 entries.
const FEW_ENTRIES: u64 = 100;
/// Directories of each worker that are filled with 1000 entries.
const MANY_ENTRIES: u64 = 4;

pub(super) fn resolve(
    ops: &Ops,
    common: &spec::Common,
    threads: u32,
    ranks: u32,
) -> Result<MetaPlan, PlanError> {
    refuse_if! {
        ops.operations.is_some() && ops.time.is_some() => "--ops and --time cannot be combined";
        ops.operations == Some(0) => "--ops must be at least 1";
    }
    let time = nonzero_time("--time", ops.time)?;
    let asked = |row: &&OpsRow| ops.only.as_ref().is_none_or(|only| only.contains(row));
    let rows: Vec<&'static OpsRow> = OPS_ROWS.iter().filter(asked).collect();
    let kinds: Vec<PhaseKind> = rows.iter().filter_map(|row| row.phase).collect();
    if kinds.is_empty() {
        refuse!("--only newchunk leaves no row to measure: it makes no system call");
    }
    let each = match (time, ops.operations) {
        (Some(_), _) => UNTIL_THE_DEADLINE,
        (None, operations) => operations.unwrap_or(OPERATIONS),
    };
    let items = match time {
        Some(_) => UNTIL_THE_DEADLINE,
        None => each.saturating_mul(u64::from(threads)),
    };
    if items > UNTIL_THE_DEADLINE {
        refuse!("--ops {each} is more than 2^40, the most operations of a rank");
    }
    // The first of a phase's rows names it, requested or not.
    let named = |kind: PhaseKind| {
        let first = kind.info().rows[0].filter(|_| kinds.contains(&kind));
        first.map(|row| row.name)
    };
    let plan = |info: &&PhaseInfo| {
        let ahead = shift::ahead(common.shift.unwrap_or(0), info.step, ranks);
        PhasePlan {
            deadline: time.filter(|_| named(info.kind).is_some() || info.creates()),
            showing: named(info.kind).map_or(Showing::Untimed, Showing::Row),
            part: part(info.kind, each),
            ..PhasePlan::new(info.kind, ItemOwner::Each { ahead })
        }
    };
    Ok(MetaPlan {
        phases: with_needed(&kinds).iter().map(plan).collect(),
        time,
        rows: rows.iter().map(|row| row.name).collect(),
        ..MetaPlan::bare(Shape::flat(items), items)
    })
}

/// The items of a phase. Filling directories takes long, so only a few are listed,
/// repeatedly.
fn part(kind: PhaseKind, each: u64) -> Option<Part> {
    let info = kind.info();
    let most = match info.entries? {
        0..=100 => FEW_ENTRIES,
        _ => MANY_ENTRIES,
    };
    Some(Part {
        items: each.min(most),
        again: (info.op == OpKind::List).then_some(each),
    })
}
