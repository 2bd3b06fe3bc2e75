//! Settings around the phases of every workload: the limits at which the run stops by
//! itself, and the commands before and after each phase.

use rbench_core::Nanos;

use super::{PlanError, nonzero_time};
use crate::spec::{self, OnError};

/// Default time limit of a command around a phase.
const PATIENCE: Nanos = Nanos(60_000_000_000);

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

/// User's commands around each reported phase, on every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseCommands {
    /// Shell command before it.
    pub before: Option<String>,
    /// Shell command after it.
    pub after: Option<String>,
    /// Time limit of each command.
    pub patience: Nanos,
}

impl Default for PhaseCommands {
    fn default() -> PhaseCommands {
        PhaseCommands {
            before: None,
            after: None,
            patience: PATIENCE,
        }
    }
}

impl PhaseCommands {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }
}

pub(super) fn commands(given: &spec::CommandOptions) -> Result<PhaseCommands, PlanError> {
    let spec::CommandOptions {
        before,
        after,
        timeout,
    } = given;
    let commands = PhaseCommands {
        before: before.clone(),
        after: after.clone(),
        patience: nonzero_time("--hook-timeout", *timeout)?.unwrap_or(PATIENCE),
    };
    if timeout.is_some() && commands.is_empty() {
        refuse!("--hook-timeout needs --before-phase or --after-phase");
    }
    Ok(commands)
}
