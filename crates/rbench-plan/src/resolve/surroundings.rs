//! Settings around the phases of every workload: the limits at which the run stops by
//! itself, and the commands before and after each phase.

use rbench_core::Nanos;

use super::{PlanError, nonzero_time};
use crate::spec::{self, OnError};

/// Limits at which a run stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Most failed operations of all ranks that do not stop the run; `None`: any number.
    pub errors: Option<u64>,
    /// Longest time of one operation; `None`: no limit.
    pub operation: Option<Nanos>,
    /// True if the run continues when a mount no longer answers.
    pub outlives_dead_mounts: bool,
}

pub(super) fn limits(given: &spec::LimitOptions) -> Result<Limits, PlanError> {
    let errors = match (given.on_error, given.max_errors) {
        (Some(OnError::Stop), Some(_)) => {
            refuse!("--on-error stop and --max-errors cannot be combined")
        }
        (Some(OnError::Stop), None) => Some(0),
        (_, most) => most,
    };
    Ok(Limits {
        errors,
        operation: nonzero_time("--op-timeout", given.op_timeout)?,
        outlives_dead_mounts: given.on_dead_mount == Some(OnError::Continue),
    })
}

/// Checks the commands around phases.
pub(super) fn commands(given: &spec::CommandOptions) -> Result<spec::CommandOptions, PlanError> {
    let timeout = nonzero_time("--hook-timeout", given.timeout)?;
    refuse_if! {
        timeout.is_some() && given.is_empty() =>
            "--hook-timeout needs --before-phase or --after-phase";
    }
    Ok(given.clone())
}
