//! What surrounds the phases of every workload: when the run ends by itself, and what is run
//! before and after each phase.

use rbench_core::Nanos;

use super::{PlanError, nonzero_time};
use crate::spec::{self, OnError};

/// How long a command around a phase may take.
const PATIENCE: Nanos = Nanos(60_000_000_000);

/// Limits at which a run stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Failed operations of all ranks that are still borne; `None`: any
    /// number.
    pub errors: Option<u64>,
    /// Longest time of one operation; `None`: it may take as long as it takes.
    pub operation: Option<Nanos>,
    /// Whether the run goes on where a mount no longer answers.
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

/// Commands of the user's around each phase that is reported, on every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseCommands {
    /// Before it; shell.
    pub before: Option<String>,
    /// After it; shell.
    pub after: Option<String>,
    /// How long each may take.
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
    /// Whether there are none.
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
