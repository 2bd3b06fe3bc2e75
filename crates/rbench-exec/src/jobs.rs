//! The job workload (`rbench fio`): group after group of jobs, each laid out, started together on
//! all ranks, and reported.
//!
//! It has no directory of its own: files are where the user named them, and stay there unless the
//! job removes them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rbench_core::Nanos;
use rbench_plan::jobs::{JobPlan, JobsPlan, Whole};
use rbench_plan::pattern::{Steps, file_size};
use rbench_sys::engine::EngineInfo;

use crate::blocks::{self, Lanes, Sink, engine_of};
use crate::group::{ExecError, Group, StopReason};
use crate::listener::{Listener, RunEnd, stopped_by_itself, tell_stopped};
use crate::needs::{Need, Needs};
use crate::residency;
use crate::room::Demands;
use crate::round::PhaseEnd;
use crate::spots::Spot;
use crate::worker::Runner;
use crate::workload::{Run, Running, Workload};

mod apart;
mod guard;
mod iologs;
mod journals;
mod laying;
mod layout;
mod machine;
mod others;
mod own;
mod places;
mod removal;
mod report;
mod room;
mod round;
mod rows;
mod seen;
mod standing;
mod trigger;

use others::Ends;
use removal::remove;

pub(crate) use iologs::AllIologs;
pub(crate) use journals::Journals;
pub(crate) use own::OwnFiles;
pub(crate) use round::JobRound;

impl Workload for JobsPlan {
    fn spots(&self, run: Run<'_>) -> Vec<Spot> {
        places::spots(self, run.place.parent, run.plan.ranks)
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        for job in self.rounds.iter().flatten() {
            let (does, what) = (&job.pattern.directions, format!("job {}", job.name));
            let maps = job.engine == "mmap" && does.changes();
            needs.add(job.direct, Need::Direct, &what);
            needs.add(maps, Need::SharedMapping, &what);
            needs.add(does.write && does.random, Need::RandomWrites, &what);
            needs.add(does.trim, Need::Trims, &what);
        }
        needs
    }

    /// Its files, and a ring.
    fn open_files_each(&self) -> u32 {
        let jobs = self.rounds.iter().flatten();
        let most = jobs.map(|job| job.files.window()).max().unwrap_or(0);
        u32::try_from(most).unwrap_or(u32::MAX).saturating_add(2)
    }

    fn demands(&self, run: Run<'_>, spots: Vec<(PathBuf, Vec<u32>)>) -> Demands {
        let (jobs, base) = (self.clone(), run.place.parent.to_owned());
        let ranks = spots.into_iter().next().map_or(Vec::new(), |spot| spot.1);
        Box::new(move |looks| room::demands(&jobs, &base, &ranks, looks))
    }

    fn bare_loop(&self, operations: u64) -> Option<Box<dyn Runner>> {
        blocks::bare_loop(self.rounds.iter().flatten().next()?, operations)
    }

    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a> {
        Box::pin(carry_out(run, self, listener))
    }
}

/// A job, with its properties known before it runs.
struct Member {
    job: Arc<JobPlan>,
    /// Name of its rows.
    name: String,
    /// Its position among all jobs of the plan.
    index: u32,
    /// Workers of earlier jobs on a rank.
    before: u64,
    engine: &'static EngineInfo,
    /// Rows of each of its workers, numbered from 0.
    lanes: Lanes,
    /// Its rows among those of the group.
    lane_numbers: Range<usize>,
}

impl Member {
    /// Returns whether the devices below its files are reported.
    fn reports_disks(&self) -> bool {
        let report = self.job.report.as_ref();
        self.engine.uses_files && report.is_some_and(|report| report.disks)
    }

    /// Returns whether it reads file contents.
    fn reads(&self) -> bool {
        self.engine.moves_data && self.lanes.read.is_some()
    }
}

/// State common to all groups of jobs of a run.
pub(crate) struct Common<'w> {
    pub run: Run<'w>,
    /// Base of relative paths.
    pub base: &'w Path,
    pub journals: &'w Journals,
    pub iologs: &'w AllIologs,
    /// Options besides the jobs.
    pub whole: Whole,
    ends: Ends,
}

impl<'w> Common<'w> {
    /// For jobs that are independent of each other.
    pub fn new(
        run: Run<'w>,
        base: &'w Path,
        journals: &'w Journals,
        iologs: &'w AllIologs,
    ) -> Self {
        Common {
            run,
            base,
            journals,
            iologs,
            whole: Whole::default(),
            ends: Ends::default(),
        }
    }
}

/// State left by a group of jobs for the next one.
#[derive(Default)]
struct State {
    /// Set once the listener knows of the run.
    begun: bool,
    /// Files to remove that did not exist before the run, if this rank removes them.
    made: BTreeSet<PathBuf>,
    /// With a deadline at the writes: the number of operations of each worker.
    most: Option<u64>,
}

/// Carries out the jobs of `plan`.
async fn carry_out(
    run: Run<'_>,
    plan: &JobsPlan,
    listener: &mut dyn Listener,
) -> Result<RunEnd, ExecError> {
    let (group, base) = (run.group, run.place.parent);
    let mut end = RunEnd::default();
    check_directories(group, plan, base).await?;
    let (plan, iologs) = AllIologs::look_through(group, plan, base).await?;
    let plan = &*plan;
    apart::check(group, plan, base).await?;
    standing::check(group, plan, base).await?;
    guard::check(group, plan, base).await?;
    let journals = Journals::open(group, plan, base, run.key).await?;
    let common = Common {
        whole: plan.whole.clone(),
        ends: Ends::of(plan),
        ..Common::new(run, base, &journals, &iologs)
    };
    let mut before = (0, 0);
    let mut state = State::default();
    let begun = group.now();
    for (number, jobs) in plan.rounds.iter().enumerate() {
        let mut round = JobRound::new(&common, plan, number, before);
        round.limit_to(state.most);
        let begins = number.is_multiple_of(plan.once().len().max(1));
        let took = group.now().since(begun);
        if begins && number > 0 && is_over(group, plan.whole.time_max, took).await? {
            break;
        }
        before.0 += jobs.len() as u32;
        before.1 += jobs.iter().map(|job| u64::from(job.numjobs)).sum::<u64>();
        let ended = match round.go(group, listener, &mut state).await {
            Ok(ended) => common.ends.agree(group).await.map(|()| ended),
            Err(error) => Err(error),
        };
        match ended {
            Ok((stopped, left)) => {
                end.left.extend(left);
                if stopped {
                    end.complete = trigger::fire(group, &plan.whole.trigger).await?;
                    end.trouble = stopped_by_itself(group);
                    let left = standing::give_up(group, plan, base, &state.made).await?;
                    end.left.extend(left);
                    return Ok(end);
                }
            }
            // Results of earlier groups are reported nevertheless.
            Err(ExecError::SetUp(message)) if state.begun => {
                end.trouble = Some(message);
                let left = standing::give_up(group, plan, base, &state.made).await?;
                end.left.extend(left);
                return Ok(end);
            }
            Err(error) => return Err(error),
        }
    }
    end.complete = true;
    Ok(end)
}

/// Returns the engine of a job.
fn find(job: &JobPlan) -> &'static EngineInfo {
    engine_of(&job.engine)
}

/// Returns the operations of a job on each rank, if they are predictable.
fn expected(job: &JobPlan) -> Option<u64> {
    let each = match (&job.small, &job.replay) {
        (Some(small), _) => Some(small.files),
        (None, Some(replay)) => replay.found.and_then(|found| found.operations),
        (None, None) => Steps::new(job, 0, |file| file_size(job, 0, file)).expected(),
    };
    let each = each.filter(|_| job.pace.runtime.is_none() && !job.files.fill)?;
    Some(each.saturating_mul(u64::from(job.numjobs)))
}

/// Returns why files could not be laid out, at rank 0.
fn why_unmade(end: &PhaseEnd, what: &str) -> Result<(), String> {
    let failure = end.rows.first().and_then(|row| row.failures.iter().next());
    failure.map_or(Ok(()), |(_, _, example)| {
        Err(format!(
            "the files could not be {what}: {}",
            example.failure
        ))
    })
}

/// Returns whether no further iteration is to start, on any rank.
async fn is_over(
    group: &Group<'_>,
    time_max: Option<Nanos>,
    took: Nanos,
) -> Result<bool, ExecError> {
    let Some(time_max) = time_max else {
        return Ok(false);
    };
    group.any(took >= time_max).await
}

async fn check_directories(
    group: &Group<'_>,
    plan: &JobsPlan,
    base: &Path,
) -> Result<(), ExecError> {
    let of_job = |job: &JobPlan| {
        let directories = job.files.directories().filter(|_| find(job).uses_files);
        let directories: Vec<PathBuf> = directories.map(|path| base.join(path)).collect();
        (blocks::check_process(job), job.name.clone(), directories)
    };
    let jobs: Vec<_> = plan.rounds.iter().flatten().map(of_job).collect();
    let checked = group.agree_on_target(move || {
        jobs.into_iter()
            .try_for_each(|(process, job, directories)| {
                process?;
                let mut all = directories.iter();
                all.try_for_each(|path| layout::check_directory(path, &job))
            })
    });
    // The exit code is 1, like fio's.
    checked.await
}

impl JobRound<'_> {
    /// Lays out, runs and reports; returns whether it was stopped, and what could not be removed.
    async fn go(
        &self,
        group: &Group<'_>,
        listener: &mut dyn Listener,
        state: &mut State,
    ) -> Result<(bool, Vec<String>), ExecError> {
        let laid_out = self.lay_out(group, &mut state.made).await;
        let ends = matches!(laid_out, Ok(None) | Err(ExecError::SetUp(_)));
        if let Some(rows) = self.failed_layout.take().filter(|_| ends) {
            // No row depends on whether all hosts see the same files.
            self.begin(group, (listener, state), true).await?;
            rows.into_iter().for_each(|row| listener.row(row));
        }
        let Some(shared) = laid_out? else {
            return Ok((true, Vec::new()));
        };
        self.begin(group, (listener, state), shared).await?;
        self.check_shifts(group, shared).await?;
        residency::turn_to(group, self.directories(group)).await?;
        let sink = Sink::default();
        let end = self.measure(group, &sink, listener).await?;
        // Reads use the data that this repetition has written.
        if self.members.iter().any(|m| m.job.pattern.directions.write) {
            state.most = end.each;
        }
        self.report(group, &sink, listener).await?;
        let interrupted = matches!(group.stop_reason(), Some(StopReason::Signal(_)));
        if end.stopped && group.is_root() && interrupted {
            tell_stopped(group, listener);
        }
        group.share_dead_mounts().await?;
        if end.stopped {
            // Removing would block, too, if a call has not returned.
            group.any_stuck().await?;
        }
        let left = remove(group, self.to_remove(group, &state.made)).await?;
        Ok((end.stopped, left))
    }

    /// Tells the listener of the run, once.
    async fn begin(
        &self,
        group: &Group<'_>,
        (listener, state): (&mut dyn Listener, &mut State),
        shared: bool,
    ) -> Result<(), ExecError> {
        if state.begun {
            return Ok(());
        }
        let ready = match group.is_root() {
            true => listener.begun(shared),
            false => Ok(()),
        };
        group.agree(ready).await?;
        state.begun = true;
        Ok(())
    }

    /// Checks that workers that use the files of other ranks can see them.
    async fn check_shifts(&self, group: &Group<'_>, shared: bool) -> Result<(), ExecError> {
        let shifted = self.members.iter().find(|m| m.job.files.shifts());
        group
            .agree(match shifted {
                Some(member) if !shared => Err(format!(
                    "job '{}': --shift needs files that all hosts see, but another host does not \
                     see those of rank 0",
                    member.job.name
                )),
                _ => Ok(()),
            })
            .await
    }
}
