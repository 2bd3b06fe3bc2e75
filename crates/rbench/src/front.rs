//! Front ends: what differs between the command lines of rbench, mdtest and fio
//! beside the plan that they resolve to. [`crate::run`] knows none of them by
//! name.

use std::path::PathBuf;
use std::sync::Arc;

use rbench_cli::Output;
use rbench_core::Rank;
use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::machine::HostUse;
use rbench_core::outcome::OpTime;
use rbench_core::spread::RowLimits;
use rbench_exec::LiveStats;
use rbench_plan::Plan;
use rbench_report::RunResult;
use rbench_report::schema::Forms;

use crate::launch::Launch;

/// A run as a front end sees it.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    /// The plan.
    pub plan: &'s Plan,
    /// How it was launched.
    pub launch: &'s Launch,
}

/// What a front end does beside the common path; what it does not say is as with
/// the native commands.
pub trait FrontEnd {
    /// What is done instead of a run of so many ranks: its exit code.
    ///
    /// # Errors
    /// A sentence that names the option with which there can be no run.
    fn instead(&self, _ranks: u32, _root: bool) -> Result<Option<u8>, String> {
        Ok(None)
    }

    /// Whether progress is shown where nobody watches, as by the tool's
    /// namesake.
    fn shows_progress(&self) -> bool {
        true
    }

    /// The file with the number of items of an earlier run's stonewall, and the option that
    /// names it.
    fn status_to_read(&self) -> Option<(&'static str, PathBuf)> {
        None
    }

    /// Most ranks and hosts with rows of their own.
    fn rows(&self) -> RowLimits {
        RowLimits::default()
    }

    /// Opens or checks the files that this rank will write, so that one that
    /// cannot be written is known before anything is measured.
    ///
    /// # Errors
    /// One sentence that names option and file.
    fn open(&mut self, _scope: Scope<'_>, _rank: Rank) -> Result<(), String> {
        Ok(())
    }

    /// Removes the files that it made and that hold nothing.
    fn discard(&mut self) {}

    /// The run begins: where workers write how far they are, if that is shown.
    fn begin(&mut self, _scope: Scope<'_>) -> Option<Arc<LiveStats>> {
        None
    }

    /// The run has ended.
    fn end(&mut self) {}

    /// Writes the operations of a phase with these rows, on the rank that did them.
    ///
    /// # Errors
    /// One sentence that names the file.
    fn log(
        &mut self,
        _iteration: u32,
        _rows: &[&str],
        _operations: &[OpTime],
    ) -> Result<(), String> {
        Ok(())
    }

    /// At rank 0: what the hosts did while a group of jobs ran.
    fn machine(&mut self, _hosts: Vec<HostUse>) {}

    /// At rank 0: what its own form of the report needs and the rest of the result
    /// does not hold, after these jobs.
    fn forms(&self, _scope: Scope<'_>, _result: &RunResult, _jobs: &[JobOutcome]) -> Forms {
        Forms::default()
    }

    /// At rank 0: the line of the journal with what a group of jobs did, if that is
    /// kept beside its phases.
    fn journal_line(
        &self,
        _scope: Scope<'_>,
        _result: &RunResult,
        _jobs: &[JobOutcome],
    ) -> Option<String> {
        None
    }

    /// Writes the logs of this rank's workers.
    ///
    /// # Errors
    /// One sentence that names the file.
    fn job_logs(&mut self, _scope: Scope<'_>, _logs: &[JobLog]) -> Result<(), String> {
        Ok(())
    }

    /// At rank 0, when the run has ended: writes its files of results.
    ///
    /// # Errors
    /// One sentence that names the file.
    fn finish(&mut self, _result: &RunResult) -> Result<(), String> {
        Ok(())
    }

    /// Prints the report; returns the exit code.
    ///
    /// # Errors
    /// One sentence that names the file that cannot be written.
    fn report(
        &self,
        scope: Scope<'_>,
        output: &Output,
        result: &RunResult,
        jobs: &[JobOutcome],
    ) -> Result<u8, String>;

    /// At rank 0: the run could not be set up, for this reason, and there is no report.
    fn without_result(&mut self, _scope: Scope<'_>, _result: &RunResult, _why: &str) {}

    /// Whether its report has room for failed operations.
    fn tells_failures(&self) -> bool {
        true
    }
}
