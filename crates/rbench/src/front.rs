//! Front ends: the differences between the command lines of rbench, mdtest and fio, apart from
//! their plans. [`crate::run`] knows none of them by name.

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

/// The run that a front end serves.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    /// The plan.
    pub plan: &'s Plan,
    /// Its launch.
    pub launch: &'s Launch,
}

/// Results that a front end reports.
#[derive(Clone, Copy)]
pub struct Done<'r> {
    /// Those of the run.
    pub result: &'r RunResult,
    /// Those of its jobs.
    pub jobs: &'r [JobOutcome],
}

/// Steps of a front end beside the common path. The defaults are those of the native commands.
pub trait FrontEnd {
    /// Runs a command that needs no run, and returns its exit code. `ranks`: number of ranks.
    ///
    /// # Errors
    /// A sentence that names the option with which no run is possible.
    fn instead(&self, _ranks: u32, _root: bool) -> Result<Option<u8>, String> {
        Ok(None)
    }

    /// Returns true if progress is printed even when standard error is not a terminal.
    fn shows_progress(&self) -> bool {
        true
    }

    /// The file with the number of items of an earlier run's stonewall, and the option that names
    /// it.
    fn status_to_read(&self) -> Option<(&'static str, PathBuf)> {
        None
    }

    /// Maximum number of ranks and hosts with rows of their own.
    fn rows(&self) -> RowLimits {
        RowLimits::default()
    }

    /// Opens or checks the files that this rank will write, so that errors are found before the
    /// measurement.
    ///
    /// # Errors
    /// One sentence that names option and file.
    fn open(&mut self, _scope: Scope<'_>, _rank: Rank) -> Result<(), String> {
        Ok(())
    }

    /// Removes the files that it created and that are still empty.
    fn discard(&mut self) {}

    /// Starts the run. Returns where workers publish their live statistics, if shown.
    fn begin(&mut self, _scope: Scope<'_>) -> Option<Arc<LiveStats>> {
        None
    }

    /// Ends the run.
    fn end(&mut self) {}

    /// Logs the operations of a phase with these rows, on the rank that did them.
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

    /// At rank 0: adds the hosts' resource use while a group of jobs ran.
    fn machine(&mut self, _hosts: Vec<HostUse>) {}

    /// At rank 0: figures of these jobs that only this front end's report needs and the rest of the
    /// result does not hold.
    fn forms(&self, _scope: Scope<'_>, _done: Done<'_>) -> Forms {
        Forms::default()
    }

    /// At rank 0: the journal's line about a group of jobs, if it is kept beside the phases.
    fn journal_line(&self, _scope: Scope<'_>, _done: Done<'_>) -> Option<String> {
        None
    }

    /// Writes the logs of this rank's workers.
    ///
    /// # Errors
    /// One sentence that names the file.
    fn job_logs(&mut self, _scope: Scope<'_>, _logs: &[JobLog]) -> Result<(), String> {
        Ok(())
    }

    /// At rank 0, after the run: writes its result files.
    ///
    /// # Errors
    /// One sentence that names the file.
    fn finish(&mut self, _result: &RunResult) -> Result<(), String> {
        Ok(())
    }

    /// Prints the report and returns the exit code.
    ///
    /// # Errors
    /// One sentence that names the file that cannot be written.
    fn report(&self, scope: Scope<'_>, output: &Output, done: Done<'_>) -> Result<u8, String>;

    /// At rank 0: the outcomes of jobs that did not run, for this reason.
    fn failed_jobs(&self, _scope: Scope<'_>, _why: &str) -> Vec<JobOutcome> {
        Vec::new()
    }

    /// At rank 0: reports that the run could not be set up.
    fn without_result(&mut self, _scope: Scope<'_>, _result: &RunResult, _why: &str) {}

    /// Returns true if its report lists failed operations.
    fn tells_failures(&self) -> bool {
        true
    }
}
