//! The job workload (`rbench fio`): group after group of jobs, each laid out,
//! started together on all ranks, and reported.
//!
//! There is no directory of our own here: files lie where the user named
//! them, and stay there unless the job says otherwise.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rbench_comm::Combine;
use rbench_core::random::key;
use rbench_core::{Failure, Nanos, OpKind, Rank};
use rbench_plan::Plan;
use rbench_plan::jobs::{Framing, JobPlan, JobsPlan, Whole};
use rbench_plan::pattern::{Steps, file_path, file_size};
use rbench_sys::engine::{self, EngineInfo};
use rbench_sys::residency::Part;

use crate::blocks::{self, Lanes, Report, Sink, WorkerContext};
use crate::caches::drop_caches;
use crate::extents;
use crate::group::{ExecError, Group, StopReason};
use crate::live::LiveStats;
use crate::phase::{Before, Looking, OpRow, Phase, Starts};
use crate::residency;
use crate::round;
use crate::target::{gather_texts, left_behind};
use crate::thread::in_thread;
use crate::workload::{Ending, Listener, stopped_by_itself, tell_stopped};

mod apart;
mod guard;
mod iologs;
mod journals;
mod layout;
mod machine;
mod others;
mod removal;
mod report;
pub(crate) mod room;
mod rows;
mod seen;
mod standing;
mod trigger;
mod wire;

use iologs::AllIologs;
use journals::Journals;
use layout::{Needs, Task, Tasks, Unmade, Whose};
use others::{Ends, Shared};
use removal::{left_as_they_are, remove};

/// Most threads that lay out files on one rank.
const LAYOUT_THREADS: u32 = 32;

/// Descriptors that one worker holds at a time: its files, and a ring.
pub(crate) fn open_files_each(plan: &JobsPlan) -> u32 {
    let most = plan
        .rounds
        .iter()
        .flatten()
        .map(|job| job.files.window())
        .max()
        .unwrap_or(0);
    u32::try_from(most).unwrap_or(u32::MAX).saturating_add(2)
}

/// A job with what is known of it before it runs.
struct Member {
    job: Arc<JobPlan>,
    /// Its position among all jobs of the plan.
    index: u32,
    /// Workers that a rank has of the jobs before it.
    before: u64,
    engine: &'static EngineInfo,
    /// Numbered from 0 on, as each of its workers has them.
    lanes: Lanes,
    /// Which of the group's they are.
    lane_numbers: Range<usize>,
}

impl Member {
    /// Whether the devices below its files are reported.
    fn reports_disks(&self) -> bool {
        let report = self.job.report.as_ref();
        self.engine.uses_files && report.is_some_and(|report| report.disks)
    }
}

/// What groups of jobs leave for the next one.
#[derive(Default)]
struct State {
    /// Whether the listener knows of the run.
    begun: bool,
    /// Files to be removed that were not there before the run, as far as this
    /// rank removes them.
    made: BTreeSet<PathBuf>,
    /// Where a deadline ended the writes: operations that each worker was left with.
    most: Option<u64>,
}

/// One group of jobs that run together.
struct JobRound<'w> {
    number: usize,
    iteration: u32,
    members: Vec<Member>,
    lanes: Vec<OpRow>,
    base: &'w Path,
    run: u64,
    live: Option<Arc<LiveStats>>,
    /// Whether caches are dropped before those that read.
    drops_caches: bool,
    journals: &'w Journals,
    iologs: &'w AllIologs,
    /// What is asked for beside the jobs.
    whole: Whole,
    ends: Ends,
    /// Files of this rank's workers that could not be made ready, and why:
    /// those workers do nothing but fail.
    unmade: RefCell<BTreeMap<PathBuf, Failure>>,
}

/// Carries out the jobs of `plan`; relative paths are below `base`, an
/// absolute path. `run` stands for the run in verified blocks; `live` is told
/// how far the workers are.
///
/// # Errors
/// As [`crate::execute`].
pub async fn execute(
    group: &Group<'_>,
    (all, plan): (&Plan, &JobsPlan),
    base: &Path,
    run: u64,
    live: Option<Arc<LiveStats>>,
    listener: &mut dyn Listener,
) -> Result<Ending, ExecError> {
    let mut ending = Ending::default();
    check_directories(group, plan, base).await?;
    let (plan, iologs) = AllIologs::look_through(group, plan, base).await?;
    let plan = &*plan;
    apart::check(group, plan, base).await?;
    standing::check(group, plan, base).await?;
    guard::check(group, plan, base).await?;
    let journals = Journals::open(group, plan, base, run).await?;
    let mut before = (0, 0);
    let mut state = State::default();
    let begun = group.clock.now();
    let ends = Ends::of(plan);
    for (number, jobs) in plan.rounds.iter().enumerate() {
        let mut round = JobRound::new((number, before), plan, (&journals, &iologs), base, run);
        round.live.clone_from(&live);
        round.drops_caches = all.drop_caches;
        round.iteration = plan.iteration(number);
        round.whole.clone_from(&plan.whole);
        round.ends = ends;
        round.limit_to(state.most);
        let begins = number.is_multiple_of(plan.once().len().max(1));
        let took = group.clock.now().since(begun);
        if begins && number > 0 && is_over(group, plan.whole.time_max, took).await? {
            break;
        }
        before.0 += jobs.len() as u32;
        before.1 += jobs.iter().map(|job| u64::from(job.numjobs)).sum::<u64>();
        let ended = round.go(group, listener, &mut state).await;
        let noted = match ended {
            Ok(_) => match ends.agree(group).await {
                Ok(()) => journals.check(group, plan).await,
                Err(error) => Err(error),
            },
            Err(_) => Ok(()),
        };
        match ended.and_then(|end| noted.map(|()| end)) {
            Ok((stopped, left)) => {
                ending.left.extend(left);
                if stopped {
                    ending.complete = trigger::fire(group, &plan.whole.trigger).await?;
                    ending.trouble = stopped_by_itself(group);
                    if !group.any_stuck().await? {
                        let left = standing::give_up(group, plan, base, &state.made).await?;
                        ending.left.extend(left);
                    }
                    return Ok(ending);
                }
            }
            // What earlier groups measured is reported all the same.
            Err(ExecError::SetUp(message)) if state.begun => {
                ending.trouble = Some(message);
                let left = standing::give_up(group, plan, base, &state.made).await?;
                ending.left.extend(left);
                return Ok(ending);
            }
            Err(error) => return Err(error),
        }
    }
    ending.complete = true;
    Ok(ending)
}

/// Whether no further iteration is to begin, on any rank.
async fn is_over(
    group: &Group<'_>,
    time_max: Option<Nanos>,
    took: Nanos,
) -> Result<bool, ExecError> {
    let Some(time_max) = time_max else {
        return Ok(false);
    };
    let over = vec![u64::from(took >= time_max)];
    let any = group.world.all_reduce(Combine::Max, over);
    Ok(group.quietly(any).await?[0] > 0)
}

async fn check_directories(
    group: &Group<'_>,
    plan: &JobsPlan,
    base: &Path,
) -> Result<(), ExecError> {
    let mut all = plan.rounds.iter().flatten();
    let checked = all.try_for_each(|job| {
        blocks::check_process(job)?;
        if find(job).uses_files {
            layout::check_directory(job, base)
        } else {
            Ok(())
        }
    });
    group.agree(checked).await
}

/// The engine of a job: plans only name those of the table.
fn find(job: &JobPlan) -> &'static EngineInfo {
    engine::find(&job.engine).unwrap_or(&engine::ENGINES[0])
}

impl<'w> JobRound<'w> {
    fn new(
        (number, (first, workers)): (usize, (u32, u64)),
        plan: &JobsPlan,
        (journals, iologs): (&'w Journals, &'w AllIologs),
        base: &'w Path,
        run: u64,
    ) -> JobRound<'w> {
        let mut lanes: Vec<OpRow> = Vec::new();
        let mut members = Vec::new();
        let mut before = workers;
        // The same in each iteration.
        let once: Vec<&JobPlan> = plan.once().iter().flatten().collect();
        for (index, job) in (first..).zip(&plan.rounds[number]) {
            // Rows of jobs of the same name, in whatever groups, are told apart by their position.
            let twice = once.iter().filter(|other| other.name == job.name).count() > 1;
            let name = if twice {
                let position = index as usize % once.len().max(1);
                format!("{}-{}", job.name, position + 1)
            } else {
                job.name.clone()
            };
            let first_lane = lanes.len();
            let (rows, own) = rows::rows(job, &name);
            lanes.extend(rows);
            members.push(Member {
                engine: find(job),
                lanes: own,
                lane_numbers: first_lane..lanes.len(),
                job: Arc::new(job.clone()),
                index,
                before,
            });
            before += u64::from(job.numjobs);
        }
        JobRound {
            number,
            iteration: 0,
            members,
            lanes,
            base,
            run,
            live: None,
            drops_caches: false,
            journals,
            iologs,
            whole: Whole::default(),
            ends: Ends::default(),
            unmade: RefCell::default(),
        }
    }

    /// Lets jobs that ask for it do as many operations as workers of an earlier round were
    /// left with.
    fn limit_to(&mut self, most: Option<u64>) {
        let Some(most) = most else {
            return;
        };
        for member in &mut self.members {
            if member.job.pace.as_many_as_written {
                let pace = &mut Arc::make_mut(&mut member.job).pace;
                pace.number_ios = Some(pace.number_ios.unwrap_or(u64::MAX).min(most));
            }
        }
    }

    /// Workers of each rank.
    fn workers(&self) -> u32 {
        self.members.iter().map(|member| member.job.numjobs).sum()
    }

    /// The lanes of each worker of a rank.
    fn lanes_of(&self) -> Vec<Range<usize>> {
        let of = |m: &Member| {
            (0..m.job.numjobs).map({
                let own = m.lane_numbers.clone();
                move |_| own.clone()
            })
        };
        self.members.iter().flat_map(of).collect()
    }

    /// Lays out, runs and reports; whether it was stopped, and what could not
    /// be removed.
    async fn go(
        &self,
        group: &Group<'_>,
        listener: &mut dyn Listener,
        state: &mut State,
    ) -> Result<(bool, Vec<String>), ExecError> {
        let Some(shared) = self.lay_out(group, &mut state.made).await? else {
            return Ok((true, Vec::new()));
        };
        if !state.begun {
            let ready = if group.is_root() {
                listener.begun(shared)
            } else {
                Ok(())
            };
            group.agree(ready).await?;
            state.begun = true;
        }
        extents::look(group, self.parts_read(group), &self.names(), listener).await?;
        self.check_shifts(group, shared).await?;
        if self.drops_caches && self.looking().is_some() {
            drop_caches(group).await?;
        }
        residency::turn_to(group, self.directories(group)).await?;
        let sink = Sink::default();
        let watch = self.watch(group).await?;
        self.set_trap(group).await?;
        let end = round::run(group, &self.phase(group, &sink)).await?;
        let hosts = match watch {
            Some(watch) => watch.end(group).await?,
            None => Vec::new(),
        };
        // What is read is what this repetition has written.
        if self.members.iter().any(|m| m.job.pattern.directions.write) {
            state.most = end.each;
        }
        let mut rows = end.rows;
        self.warn_of_ramps(group, &rows, listener);
        if self.members.iter().any(|m| m.job.framing.is_timed()) {
            rows::tell_access(&mut rows);
        }
        rows.into_iter().for_each(|row| listener.row(row));
        if !end.details.is_empty() {
            listener.details(self.iteration, &[], end.details);
        }
        // Before the jobs, whose reports name devices as well.
        if !hosts.is_empty() {
            listener.machine(hosts);
        }
        self.report(group, &sink, listener).await?;
        let interrupted = matches!(group.stop_reason(), Some(StopReason::Signal(_)));
        if end.stopped && group.is_root() && interrupted {
            tell_stopped(group, listener);
        }
        group.share_dead_mounts().await?;
        let paths = self.to_remove(group, &state.made);
        let left = if end.stopped && group.any_stuck().await? {
            // Removing would wait as well.
            let texts = left_as_they_are(&paths, left_behind);
            gather_texts(group, texts.into_iter().collect()).await?
        } else {
            remove(group, paths).await?
        };
        Ok((end.stopped, left))
    }

    /// Workers that use the files of other ranks have to see them.
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

    /// When all are to go on to where the one with the most is.
    fn wears_out(&self) -> Option<Nanos> {
        let mut wearing = self.members.iter().filter(|m| m.job.pace.wear_out);
        wearing.find_map(|m| m.job.pace.runtime)
    }

    /// Such jobs run alone.
    fn framing(&self) -> Framing {
        let framing = self.members.iter().map(|m| m.job.framing);
        framing.max().unwrap_or_default()
    }

    /// The names of its jobs.
    fn names(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|m| m.job.name.as_str()).collect();
        names.join(", ")
    }

    /// What this rank reads of files; of those that all share, the first rank of
    /// each host answers.
    fn parts_read(&self, group: &Group<'_>) -> Vec<Part> {
        let reads = |m: &&Member| m.engine.moves_data && m.job.pattern.directions.read;
        let ranks = group.world.size();
        let mut parts = Vec::new();
        for member in self.members.iter().filter(reads) {
            let job = &member.job;
            let own = Whose::Own(job.files.owner(group.rank(), ranks));
            parts.extend(layout::parts(job, self.base, own));
            if group.is_leader() {
                parts.extend(layout::parts(job, self.base, Whose::Shared { ranks }));
            }
        }
        parts
    }

    fn phase(&self, group: &Group<'_>, sink: &Sink) -> Phase {
        let rated = |job: &JobPlan| {
            let pace = &job.pace;
            job.replay.as_ref().is_some_and(|replay| replay.stalls)
                || [pace.rate_iops, pace.rate_bytes]
                    .iter()
                    .any(|rate| rate.all().into_iter().any(Option::is_some))
        };
        let open_loop = self.members.iter().any(|member| rated(&member.job));
        let mut first = group.host.rank().0 * self.workers();
        let mut first_on_host = |job: &JobPlan| {
            let before = first;
            first += job.numjobs;
            before
        };
        let mut shared = Shared::new(self.ends, (self.iteration, self.number), group);
        let contexts: Vec<WorkerContext> = self
            .members
            .iter()
            .map(|member| WorkerContext {
                first_on_host: first_on_host(&member.job),
                job: Arc::clone(&member.job),
                engine: member.engine,
                lanes: member.lanes,
                open_loop,
                together: blocks::together(&member.job, group.rank(), group.world.size()),
                base: self.base.to_owned(),
                // What an earlier group wrote is not what this one wrote.
                run: key(&[self.run, self.number as u64]),
                rank: group.rank(),
                ranks: group.world.size(),
                report: member.job.report.as_ref().map(|_| Report {
                    index: member.index,
                    before: member.before * u64::from(group.world.size()),
                    sink: Arc::clone(sink),
                    live: self.live.clone(),
                    aux: self.base.join(&self.whole.aux),
                }),
                kept: None,
                logs: self.journals.of(member.index),
                iologs: self.iologs.of(member.index),
                unmade: Arc::new(self.unmade_of(&member.job, group.rank())),
                others: shared.of(member),
            })
            .collect();
        Phase {
            iteration: self.iteration,
            label: self.names(),
            shown: true,
            lanes: self.lanes.clone(),
            open_loop,
            offered: None,
            deadline: self.wears_out(),
            steady: None,
            wear_out: self.wears_out().is_some(),
            framing: self.framing(),
            cache: self.looking(),
            total: self.expected(group.world.size()),
            threads: self.workers(),
            lanes_of: self.lanes_of(),
            log_operations: false,
            before: Before {
                pause: self
                    .members
                    .iter()
                    .map(|m| m.job.pace.pause)
                    .max()
                    .unwrap_or_default(),
                command: None,
                name: None,
            },
            make: Arc::new(move |thread| {
                let mut clone = thread;
                for context in &contexts {
                    if clone < context.job.numjobs {
                        let prepared = blocks::prepare(context, clone);
                        return prepared
                            .inspect_err(|failure| blocks::unprepared(context, clone, failure));
                    }
                    clone -= context.job.numjobs;
                }
                unreachable!("there are as many workers as clones of jobs")
            }),
        }
    }

    /// The workers of a job on this rank whose files could not be made ready.
    fn unmade_of(&self, job: &JobPlan, rank: Rank) -> BTreeMap<u64, Failure> {
        let unmade = self.unmade.borrow();
        if unmade.is_empty() {
            return BTreeMap::new();
        }
        let first = u64::from(rank.0) * u64::from(job.numjobs);
        let why = |jobnum| {
            let mut paths = (0..job.files.count).map(|file| file_path(job, jobnum, file));
            let failure = paths.find_map(|path| unmade.get(&self.base.join(path)))?;
            Some((jobnum, failure.clone()))
        };
        let workers = first..first + u64::from(job.numjobs);
        workers.filter_map(why).collect()
    }

    /// What is looked at around jobs that read. Who has used files that the
    /// user named is not known.
    fn looking(&self) -> Option<Looking> {
        // A job's own lanes are numbered from 0.
        let row = |m: &Member| Some(m.lane_numbers.start + m.lanes.read?);
        let real = self.members.iter().filter(|m| m.engine.moves_data);
        let readers: Vec<(&Member, usize)> = real.filter_map(|m| Some((m, row(m)?))).collect();
        let checks = readers.iter().filter(|(m, _)| m.job.verify.is_some());
        (!readers.is_empty()).then(|| Looking {
            shares: None,
            dropped: self.drops_caches,
            direct: readers.iter().all(|(member, _)| member.job.direct),
            verifies: checks.map(|(_, lane)| *lane).collect(),
            ramps: readers.iter().any(|(m, _)| m.job.pace.ramps()),
            opens: false,
        })
    }

    /// The directories of the files that this rank's workers read.
    fn directories(&self, group: &Group<'_>) -> Vec<PathBuf> {
        let ranks = group.world.size();
        let mut all = BTreeSet::new();
        for member in self.members.iter().filter(|m| m.engine.uses_files) {
            for whose in [Whose::Own(group.rank()), Whose::Shared { ranks }] {
                let paths = layout::paths(&member.job, self.base, whose);
                all.extend(paths.iter().filter_map(|p| p.parent()).map(Path::to_owned));
            }
        }
        all.into_iter().collect()
    }

    /// Operations of all ranks, where they can be told.
    fn expected(&self, ranks: u32) -> Option<u64> {
        let of = |job: &JobPlan| {
            let steps = Steps::new(job, 0, |file| file_size(job, 0, file));
            let each = match &job.replay {
                None => steps.expected(),
                Some(replay) => replay.found.and_then(|found| found.operations),
            };
            let each = each.filter(|_| job.pace.runtime.is_none() && !job.files.fill)?;
            Some(each.saturating_mul(u64::from(job.numjobs)))
        };
        let each: Option<Vec<u64>> = self.members.iter().map(|m| of(&m.job)).collect();
        each.map(|each| each.iter().sum::<u64>().saturating_mul(u64::from(ranks)))
    }

    /// Makes what the jobs need; whether all hosts see the same files, or
    /// `None` when it was stopped.
    async fn lay_out(
        &self,
        group: &Group<'_>,
        made: &mut BTreeSet<PathBuf>,
    ) -> Result<Option<bool>, ExecError> {
        group.step("checking files");
        let ranks = group.world.size();
        let (mut own, mut shared) = (Needs::default(), Needs::default());
        for member in self.members.iter().filter(|m| m.engine.uses_files) {
            let mapped = member.engine.mapped;
            own.add(&member.job, mapped, self.base, Whose::Own(group.rank()));
            shared.add(&member.job, mapped, self.base, Whose::Shared { ranks });
        }
        made.extend(self.missing(group).await?);
        let mut first = own.clone();
        if group.is_root() {
            first.join(shared.clone());
        }
        if self.make(group, first, &shared).await? {
            return Ok(None);
        }
        let one_view = self.is_seen_everywhere(group).await?;
        // Where the hosts do not see the same files each has its own.
        if group.host_names.len() > 1 {
            let elsewhere = group.is_leader() && !group.is_root();
            let second = if elsewhere {
                shared.clone()
            } else {
                Needs::default()
            };
            if self.make(group, second, &shared).await? {
                return Ok(None);
            }
        }
        if group.is_leader() {
            own.join(shared.clone());
        }
        let label = "reading files once (untimed)";
        let stopped = self.tasks(group, own.reads(), label, &shared).await?;
        Ok((!stopped).then_some(one_view))
    }

    /// Makes the files that this rank is to make; whether it was stopped.
    async fn make(
        &self,
        group: &Group<'_>,
        needs: Needs,
        shared: &Needs,
    ) -> Result<bool, ExecError> {
        let survey = in_thread(move || needs.survey());
        let surveyed = group.attend(survey, || 0).await?;
        let (tasks, failed) = group.agree(surveyed).await?;
        self.do_without(group, failed, shared).await?;
        // Files are there before any part of them is filled.
        let (makes, fills): (Vec<Task>, Vec<Task>) =
            tasks.into_iter().partition(Task::makes_the_file);
        if self
            .tasks(group, makes, "creating files (untimed)", shared)
            .await?
        {
            return Ok(true);
        }
        let unmade = self.unmade.borrow().clone();
        let fills = fills.into_iter().filter(|task| !task.is_of(&unmade));
        self.tasks(group, fills.collect(), "laying out files (untimed)", shared)
            .await
    }

    /// Goes on without the files of this rank's workers that could not be made
    /// ready: these workers count as failed. Nobody can go on without a file
    /// that all workers share.
    async fn do_without(
        &self,
        group: &Group<'_>,
        failed: Vec<Unmade>,
        shared: &Needs,
    ) -> Result<(), ExecError> {
        let of_all = failed.iter().find(|(path, _)| shared.has(path));
        let of_all = of_all.map_or(Ok(()), |(_, failure)| {
            Err(format!("the files could not be prepared: {failure}"))
        });
        for (path, failure) in failed {
            self.unmade.borrow_mut().entry(path).or_insert(failure);
        }
        group.agree(of_all).await
    }

    /// Does the tasks of all ranks as a phase; whether it was stopped.
    async fn tasks(
        &self,
        group: &Group<'_>,
        tasks: Vec<Task>,
        label: &str,
        shared: &Needs,
    ) -> Result<bool, ExecError> {
        let pieces = tasks.iter().map(Task::pieces).sum();
        let all = group.world.all_reduce(Combine::Sum, vec![pieces]);
        let total = group.quietly(all).await?[0];
        if total == 0 {
            return group.stopped().await;
        }
        let tasks = Tasks::new(tasks);
        let done = Arc::clone(&tasks);
        let seed = key(&[self.run, self.number as u64, u64::from(group.rank().0)]);
        let phase = Phase {
            iteration: 0,
            label: label.to_owned(),
            shown: false,
            lanes: vec![OpRow {
                op: OpKind::Write,
                name: "layout".to_owned(),
                label: "Layout".to_owned(),
                unsynced: true,
                aside: false,
                starts: Starts::ByKind,
            }],
            open_loop: false,
            offered: None,
            deadline: None,
            steady: None,
            wear_out: false,
            framing: Framing::Untimed,
            cache: None,
            total: Some(total),
            threads: self.workers().clamp(1, LAYOUT_THREADS),
            lanes_of: Vec::new(),
            log_operations: false,
            before: Before::default(),
            make: Arc::new(move |thread| {
                layout::prepare(Arc::clone(&tasks), &[seed, u64::from(thread)])
            }),
        };
        let end = round::run(group, &phase).await?;
        let failure = end.rows.first().and_then(|row| row.failures.iter().next());
        let failed = failure.map_or(Ok(()), |(_, _, example)| {
            Err(format!(
                "the files could not be prepared: {}",
                example.failure
            ))
        });
        if let Some(refused) = done.refused() {
            group.trouble(&format!(
                "{refused}: the file is written without preallocation"
            ));
        }
        // Where a failure was to end the run, it is told.
        if end.stopped {
            group.agree(failed).await?;
        }
        self.do_without(group, done.failed(), shared).await?;
        Ok(end.stopped)
    }
}
