//! Receivers of a run's results, and the end of a run.

use std::path::PathBuf;

use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::machine::HostUse;
use rbench_core::outcome::{Details, PhaseOutcome, ReplayTotals};
use rbench_core::units::counted;

use crate::group::{Group, StopReason};

/// End of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunEnd {
    /// True if every phase ran to its end.
    pub complete: bool,
    /// Reason why it could not continue, as a sentence; finished phases keep their rows.
    pub trouble: Option<String>,
    /// At rank 0: files that could not be removed, as sentences.
    pub left: Vec<String>,
    /// With `--keep`: the directory left behind.
    pub kept: Option<PathBuf>,
}

/// Receiver of the results of a run while it goes on.
pub trait Listener {
    /// At rank 0, called when the directory exists and before the first phase; `shared`: all hosts
    /// share it.
    ///
    /// # Errors
    /// A sentence: the run ends before its first phase.
    fn begun(&mut self, shared: bool) -> Result<(), String>;

    /// At rank 0: takes a warning about the rows, by its code; or about the target, before anything
    /// is created there.
    fn warning(&mut self, code: &'static str, message: String);

    /// At rank 0: takes a row of the report.
    fn row(&mut self, outcome: PhaseOutcome);

    /// At rank 0, after each pass of a plan with a rule for enough passes: returns whether to run
    /// another one.
    fn another(&mut self) -> bool;

    /// At rank 0, called when the group was asked to stop: no more rows will come. Slow work, such
    /// as removing a large tree, has not started.
    fn stopped(&mut self);

    /// On every rank with details: takes those of the phase with these rows in pass `iteration`.
    fn details(&mut self, _iteration: u32, _rows: &[&str], _details: Details) {}

    /// At rank 0, after the rows of each group of jobs: takes the results of workers, by job and
    /// worker. Those of a rank are merged if the job reports as a group.
    fn jobs(&mut self, _outcomes: Vec<JobOutcome>) {}

    /// At rank 0, after each group of jobs that asks for it: takes the use of the hosts.
    fn machine(&mut self, _hosts: Vec<HostUse>) {}

    /// At rank 0, after the rows of a pass of a replay: takes its totals.
    fn replayed(&mut self, _totals: ReplayTotals) {}

    /// On every rank with logs: takes the logs of its workers.
    fn job_logs(&mut self, _logs: Vec<JobLog>) {}
}

/// Code of the warning for a run that a signal ended.
pub const STOPPED_BY_SIGNAL: &str = "stopped-by-signal";

/// At rank 0, when a stop was requested and no more rows will come: reports the reason.
pub(crate) fn tell_stopped(group: &Group<'_>, listener: &mut dyn Listener) {
    if let Some(signal) = group.stop_signal() {
        let message = format!("{signal} ended the run early.");
        listener.warning(STOPPED_BY_SIGNAL, message);
    }
    listener.stopped();
}

/// Returns why a group has stopped that nobody interrupted.
pub(crate) fn stopped_by_itself(group: &Group<'_>) -> Option<String> {
    let limits = group.limits;
    match (group.stop_reason()?, limits.errors) {
        (StopReason::Signal(_) | StopReason::Trigger, _) => None,
        (StopReason::Errors, Some(0) | None) => {
            Some("an operation failed, which ends the run (--on-error stop)".to_owned())
        }
        (StopReason::Errors, Some(most)) => Some(format!(
            "more than {} failed (--max-errors {most})",
            counted(most, "operation")
        )),
        (StopReason::Stuck, _) => {
            Some("an operation did not return within --op-timeout".to_owned())
        }
        (StopReason::DeadMount, _) => Some(format!(
            "{}, which ends the run (--on-dead-mount stop)",
            match &group.probes.mounts.found()[..] {
                [] => "a mount no longer answers".to_owned(),
                [dead, others @ ..] => {
                    let others = match others.len() {
                        0 => String::new(),
                        several => format!(" (and neither do mounts on {several} other hosts)"),
                    };
                    format!(
                        "the mount {} on {} no longer answers{others}",
                        dead.mount, dead.host
                    )
                }
            }
        )),
        (StopReason::Start, _) => Some("a rank could not start with the others".to_owned()),
    }
}
