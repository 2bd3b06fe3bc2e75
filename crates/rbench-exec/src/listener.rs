//! Who hears of what a run yields, and how it ended.

use std::path::PathBuf;

use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::machine::HostUse;
use rbench_core::outcome::{Details, PhaseOutcome, ReplayTotals};

use crate::group::{Group, StopReason};

/// How a workload ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunEnd {
    /// Whether every phase ran to its end.
    pub complete: bool,
    /// Why it could not go on, as a sentence; finished phases keep their rows.
    pub trouble: Option<String>,
    /// At rank 0: what could not be removed, as sentences.
    pub left: Vec<String>,
    /// With `--keep`: the directory that was left.
    pub kept: Option<PathBuf>,
}

/// Who takes what a run yields while it goes on.
pub trait Listener {
    /// At rank 0, once the directory is there and before the first phase:
    /// whether all hosts share it.
    ///
    /// # Errors
    /// A sentence: the run ends before its first phase.
    fn begun(&mut self, shared: bool) -> Result<(), String>;

    /// At rank 0: something to know before trusting the rows, by the code of
    /// the warning; of the target before anything is made there.
    fn warning(&mut self, code: &'static str, message: String);

    /// At rank 0: a row of the report.
    fn row(&mut self, outcome: PhaseOutcome);

    /// At rank 0, behind each pass of a plan that says when passes are enough: whether
    /// there is to be another one.
    fn another(&mut self) -> bool;

    /// At rank 0, when the group was asked to stop: no more rows will come.
    /// What can take long, such as removing a large tree, has not begun.
    fn stopped(&mut self);

    /// On every rank, where there is something: what stays with it of the phase
    /// with these rows in pass `iteration`.
    fn details(&mut self, iteration: u32, rows: &[&str], details: Details);

    /// At rank 0, behind the rows of each group of jobs: what each worker did,
    /// those of a rank merged where the job reports as a group; by job and
    /// worker.
    fn jobs(&mut self, outcomes: Vec<JobOutcome>);

    /// At rank 0, behind each group of jobs that asks for it: what the hosts did meanwhile.
    fn machine(&mut self, hosts: Vec<HostUse>);

    /// At rank 0, behind the rows of a pass of a replay: what it was as a whole.
    fn replayed(&mut self, totals: ReplayTotals);

    /// On every rank, where there is something: the logs of its workers.
    fn job_logs(&mut self, logs: Vec<JobLog>);
}

/// The warning of a run that a signal ended.
pub const STOPPED_BY_SIGNAL: &str = "stopped-by-signal";

/// At rank 0, when a stop was asked for and no more rows will come: says by what.
pub(crate) fn tell_stopped(group: &Group<'_>, listener: &mut dyn Listener) {
    if let Some(signal) = group.stop_signal() {
        let message = format!("{signal} ended the run early.");
        listener.warning(STOPPED_BY_SIGNAL, message);
    }
    listener.stopped();
}

/// Why a group that nobody interrupted has stopped.
pub(crate) fn stopped_by_itself(group: &Group<'_>) -> Option<String> {
    let limits = group.limits();
    match (group.stop_reason()?, limits.errors) {
        (StopReason::Signal(_) | StopReason::Trigger, _) => None,
        (StopReason::Errors, Some(0) | None) => {
            Some("an operation failed, which ends the run (--on-error stop)".to_owned())
        }
        (StopReason::Errors, Some(most)) => Some(format!(
            "more than {most} operations failed (--max-errors {most})"
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
