//! Front ends: what differs between the command lines of rbench, mdtest and fio
//! beside the plan that they resolve to. [`crate::run`] knows none of them by
//! name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rbench_cli::series::Series;
use rbench_cli::{Check, Clean, Invocation, Output, Probe};
use rbench_comm::Communicator;
use rbench_core::Rank;
use rbench_core::event::check_events;
use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::machine::HostUse;
use rbench_core::outcome::OpTime;
use rbench_core::spread::RowLimits;
use rbench_exec::LiveStats;
use rbench_plan::spec::{MixText, Workload};
use rbench_plan::{Plan, Spec};
use rbench_report::RunResult;
use rbench_report::schema::Forms;

use crate::launch::Launch;
use crate::operations::OperationLog;
use crate::run::Refusal;
use crate::show::render;
use crate::status;
use crate::{fio, ior, mdtest, print};

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

/// The native commands.
struct Native {
    /// `--log`
    prefix: Option<PathBuf>,
    log: Option<OperationLog>,
}

impl FrontEnd for Native {
    fn open(&mut self, _scope: Scope<'_>, rank: Rank) -> Result<(), String> {
        self.log = match &self.prefix {
            Some(prefix) => Some(OperationLog::create("--log", prefix, rank)?),
            None => None,
        };
        Ok(())
    }

    fn discard(&mut self) {
        if let Some(log) = self.log.take() {
            log.discard();
        }
    }

    fn log(&mut self, iteration: u32, rows: &[&str], operations: &[OpTime]) -> Result<(), String> {
        match &mut self.log {
            Some(log) => log.add(iteration, rows, operations),
            None => Ok(()),
        }
    }

    fn report(
        &self,
        _scope: Scope<'_>,
        output: &Output,
        result: &RunResult,
        _jobs: &[JobOutcome],
    ) -> Result<u8, String> {
        Ok(print(&render(result, output.format, output.details)))
    }
}

/// The front end of a command line.
pub fn of(spec: &Spec, output: &Output) -> Box<dyn FrontEnd> {
    match (&spec.workload, &output.mdtest, &output.fio) {
        (Workload::Mdtest(options), Some(view), _) => {
            Box::new(mdtest::Front::new(options.as_ref().clone(), view.clone()))
        }
        (_, _, Some(view)) => Box::new(fio::Front::new(view.clone())),
        (Workload::Ior(options), _, _) => {
            let view = output.ior.clone().unwrap_or_default();
            Box::new(ior::Front::new(options.as_ref().clone(), view))
        }
        _ => Box::new(Native {
            prefix: spec.common.log.clone(),
            log: None,
        }),
    }
}

/// What a command line asks of the ranks.
pub enum Asked {
    /// One run.
    Run(Box<(Spec, Output)>),
    /// Several, one after the other.
    Series(Box<Series>),
    /// What a mount can do.
    Probe(Probe),
    /// Which promises a mount keeps.
    Check(Check),
    /// What runs left behind goes.
    Clean(Clean),
}

/// Reads the command line; its paths start in rank 0's working directory.
pub fn read(launch: &Launch) -> Result<Asked, Refusal> {
    let cwd = Path::new(&launch.cwd);
    let invocation = match fio::parse(launch)? {
        Some(invocation) => invocation,
        None => {
            let argv = ior::with_script(launch).map_err(Refusal::Usage)?;
            rbench_cli::parse(&argv, launch.env_dir.as_deref()).map_err(Refusal::Cli)?
        }
    };
    match invocation {
        Invocation::Run(_, output) if output.hlog.is_some() && output.hlog == output.out => Err(
            Refusal::Usage("--hlog and --out name the same file".to_owned()),
        ),
        Invocation::Run(mut spec, output) => {
            check_events(&output.events).map_err(Refusal::Usage)?;
            mdtest::anchor(&mut spec, cwd);
            ior::anchor(&mut spec, cwd);
            spec.common.log = spec.common.log.take().map(|prefix| cwd.join(prefix));
            let journal = match &mut spec.workload {
                Workload::Io(io) => Some(&mut io.ack_journal),
                Workload::Fio(fio) => Some(&mut fio.ack_journal),
                Workload::Find(find) => {
                    find.newer = find.newer.take().map(|file| cwd.join(file));
                    None
                }
                Workload::Mix(mix) => {
                    if let MixText::Profile { name, text } = &mut mix.text {
                        *text = launch.job_files.text(Path::new(name));
                    }
                    None
                }
                Workload::Replay(replay) => {
                    for trace in &mut replay.traces {
                        *trace = cwd.join(&trace);
                    }
                    None
                }
                Workload::Meta(_) | Workload::Ops(_) | Workload::Mdtest(_) | Workload::Ior(_) => {
                    None
                }
            };
            if let Some(journal) = journal {
                *journal = journal.take().map(|base| cwd.join(base));
            }
            Ok(Asked::Run(Box::new((*spec, output))))
        }
        Invocation::Series(series) => Ok(Asked::Series(series)),
        Invocation::Probe(probe) => Ok(Asked::Probe(probe)),
        Invocation::Check(check) => Ok(Asked::Check(check)),
        Invocation::Clean(clean) => Ok(Asked::Clean(clean)),
        Invocation::Testfs(_)
        | Invocation::HoldLock { .. }
        | Invocation::Watch(_)
        | Invocation::Record(_)
        | Invocation::Show(_)
        | Invocation::Report(_)
        | Invocation::Completions(_)
        | Invocation::Man { .. }
        | Invocation::Compare(_)
        | Invocation::Version
        | Invocation::Fio(_)
        | Invocation::Verify(_) => Err(Refusal::Usage(
            "this command runs on one rank only".to_owned(),
        )),
    }
}

/// Items that an earlier run's stonewall left to each rank, the same on every
/// rank; `None` where it is not asked for or not known.
pub async fn stonewalled(
    comm: &dyn Communicator,
    front: &dyn FrontEnd,
) -> Result<Option<u64>, Refusal> {
    match front.status_to_read() {
        Some((option, path)) => status::read(comm, option, &path).await,
        None => Ok(None),
    }
}
