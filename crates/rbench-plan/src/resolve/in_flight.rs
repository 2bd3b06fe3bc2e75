//! `--engine` and `--iodepth` of operations on names: the number in flight per worker, and
//! the phases that support it.

use rbench_core::engine::NAMES_IN_FLIGHT_MAX;

use super::PlanError;
use crate::meta::{Backend, Making, MetaPlan, PhaseInfo, PhaseKind, Showing};
use crate::spec::{self, InFlight};

/// Operations of a worker in flight; `None`: system calls, one after the other.
pub(super) fn of(given: &InFlight) -> Result<Option<u32>, PlanError> {
    let depth = given.depth.unwrap_or(1);
    refuse_if!(depth == 0 => "--iodepth must be at least 1");
    match given.engine.as_deref() {
        Some("io_uring") if depth > NAMES_IN_FLIGHT_MAX => refuse!(
            "--iodepth {depth} is more than {NAMES_IN_FLIGHT_MAX}, the most operations that a worker can have in flight"
        ),
        Some("io_uring") => Ok(Some(depth)),
        Some("sync") | None if depth > 1 => refuse!(
            "--iodepth {depth} needs --engine io_uring: system calls are made one at a time"
        ),
        Some("sync") | None => Ok(None),
        Some(other) => refuse!("--engine {other} is not one of sync, io_uring"),
    }
}

/// The usual phases that the engine can perform. Omitted phases are noted.
pub(super) fn performed(
    usual: impl Iterator<Item = &'static PhaseInfo>,
    meta: &spec::Meta,
    notes: &mut Vec<String>,
) -> Result<Vec<PhaseKind>, PlanError> {
    let in_a_ring = of(&meta.in_flight)?.is_some();
    let (performed, left_out): (Vec<&PhaseInfo>, Vec<_>) =
        usual.partition(|phase| phase.in_a_ring() || !in_a_ring);
    for info in left_out {
        notes.push(format!(
            "--engine io_uring does not perform {}: it is left out",
            info.name
        ));
    }
    Ok(performed.iter().map(|phase| phase.kind).collect())
}

/// Checks that a ring can perform all measured phases.
pub(super) fn check(plan: &MetaPlan) -> Result<(), PlanError> {
    if plan.in_flight.is_none() {
        return Ok(());
    }
    let measured = plan.phases.iter().filter(|p| p.showing != Showing::Untimed);
    let mut others = measured
        .map(|phase| phase.kind.info())
        .filter(|info| !info.in_a_ring());
    if let Some(info) = others.next() {
        refuse!(
            "--engine io_uring does not perform {}: use --engine sync",
            info.name
        );
    }
    refuse_if! {
        plan.backend == Backend::Dummy =>
            "--engine io_uring and -a DUMMY cannot be combined: DUMMY submits nothing to a ring";
        plan.making == Making::Node =>
            "--engine io_uring does not perform mknod, with which -k creates files";
        plan.verify_write =>
            "--engine io_uring and --verify-write cannot be combined: each file is read back on its own";
    }
    Ok(())
}
