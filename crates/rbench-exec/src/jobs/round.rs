//! A group of jobs that run together, as a phase.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rbench_core::outcome::PhaseOutcome;
use rbench_core::random::key;
use rbench_core::{Failure, Nanos, Rank};
use rbench_plan::jobs::{JobPlan, JobsPlan};
use rbench_plan::pattern::file_path;
use rbench_sys::residency::Part;

use super::layout::{self, Whose};
use super::others::Shared;
use super::own::OwnPhase;
use super::{Common, Member, expected, find, rows};
use crate::blocks::{self, Report, Sink, WorkerContext};
use crate::caches::drop_caches;
use crate::extents;
use crate::group::{ExecError, Group, Ranks};
use crate::listener::Listener;
use crate::phase::{Before, Looking, OpRow, Phase, SteadyEnd};
use crate::round::{self, PhaseEnd};
use crate::worker::MakeRunner;

/// One group of jobs that run together.
pub(crate) struct JobRound<'w> {
    pub(super) common: &'w Common<'w>,
    pub(super) number: usize,
    pub(super) iteration: u32,
    pub(super) members: Vec<Member>,
    lanes: Vec<OpRow>,
    /// Files of this rank's workers that could not be made ready, and why:
    /// those workers do nothing but fail.
    pub(super) unmade: RefCell<BTreeMap<PathBuf, Failure>>,
    /// After a part of the layout with failures on any rank: its rows, at rank 0.
    pub(super) failed_layout: RefCell<Option<Vec<PhaseOutcome>>>,
    /// Present if its files are the run's own.
    pub(super) own: Option<OwnPhase>,
}

impl<'w> JobRound<'w> {
    /// The group with this number; before it come `first` jobs with `before` workers on each rank.
    pub(crate) fn new(
        common: &'w Common<'w>,
        plan: &JobsPlan,
        number: usize,
        (first, mut before): (u32, u64),
    ) -> JobRound<'w> {
        let mut lanes: Vec<OpRow> = Vec::new();
        let mut members = Vec::new();
        // This is the same in each iteration.
        let once: Vec<&JobPlan> = plan.once().iter().flatten().collect();
        for (index, job) in (first..).zip(&plan.rounds[number]) {
            // Rows of jobs of the same name, in whatever groups, are distinguished by their
            // position.
            let twice = once.iter().filter(|other| other.name == job.name).count() > 1;
            let position = index as usize % once.len().max(1) + 1;
            let (name, title) = match (twice, &job.label) {
                (false, _) => (job.name.clone(), job.title().to_owned()),
                (true, None) => {
                    let name = format!("{}-{position}", job.name);
                    (name.clone(), name)
                }
                (true, Some(label)) => (
                    format!("{}-{position}", job.name),
                    format!("{label} ({position})"),
                ),
            };
            let (rows, own) = rows::rows(job, &name, &title);
            members.push(Member {
                name,
                engine: find(job),
                lanes: own,
                lane_numbers: lanes.len()..lanes.len() + rows.len(),
                job: Arc::new(job.clone()),
                index,
                before,
            });
            lanes.extend(rows);
            before += u64::from(job.numjobs);
        }
        JobRound {
            common,
            number,
            iteration: plan.iteration(number),
            members,
            lanes,
            unmade: RefCell::default(),
            failed_layout: RefCell::default(),
            own: None,
        }
    }

    /// The round in a pass whose files are the run's own.
    pub(crate) fn with_own(self, iteration: u32, own: OwnPhase) -> JobRound<'w> {
        JobRound {
            iteration,
            own: Some(own),
            ..self
        }
    }

    /// Lets jobs that ask for it do as many operations as workers of an earlier round were
    /// left with.
    pub(super) fn limit_to(&mut self, most: Option<u64>) {
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
    pub(super) fn workers(&self) -> u32 {
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

    /// Runs, and hands over the rows.
    ///
    /// # Errors
    /// When a journal is not complete, or the ranks cannot talk.
    pub(crate) async fn measure(
        &self,
        group: &Group<'_>,
        sink: &Sink,
        listener: &mut dyn Listener,
    ) -> Result<PhaseEnd, ExecError> {
        let plan = self.common.run.plan;
        if self.members.iter().any(Member::reads) {
            extents::look(group, self.parts_read(group), &self.title(), listener).await?;
            if plan.drop_caches {
                drop_caches(group).await?;
            }
        }
        let watch = self.watch(group).await?;
        self.set_trap(group).await?;
        let phase = self.phase(group, sink);
        let mut end = round::run(group, &phase).await?;
        let hosts = match watch {
            Some(watch) => watch.end(group).await?,
            None => Vec::new(),
        };
        let noted = self.common.journals.check(group).await;
        self.warn_of_ramps(group, &end.rows, listener);
        if self.members.iter().any(|m| m.job.framing.is_timed()) {
            rows::tell_access(&mut end.rows);
        }
        if self.own.is_some() {
            // Rows tell of what is damaged.
            end.details.damaged.clear();
        }
        end.tell_details(&phase, listener);
        for row in std::mem::take(&mut end.rows) {
            let complete = row.complete && noted.is_ok();
            listener.row(PhaseOutcome { complete, ..row });
        }
        // Before the jobs, whose reports name devices as well.
        if !hosts.is_empty() {
            listener.machine(hosts);
        }
        noted.map(|()| end)
    }

    /// The job of a phase of `rbench io`, which runs alone.
    fn io_phase(&self) -> Option<&Member> {
        self.members.iter().find(|m| m.job.label.is_some())
    }

    /// The deadline, if time ends all of them.
    fn deadline(&self) -> Option<Nanos> {
        let wears_out = self.members.iter().find(|m| m.job.pace.wear_out);
        let pace = &wears_out.or(self.io_phase())?.job.pace;
        Some(Nanos(pace.ramp.0.saturating_add(pace.runtime?.0)))
    }

    /// Operations that are due in a second, where nothing else is counted with them.
    fn offered(&self) -> Option<f64> {
        let job = &self.io_phase()?.job;
        let syncs = job.syncing.fsync > 0 || job.syncing.close;
        let alone = !syncs && job.small.is_none() && !job.pace.ramps();
        job.pace.together.filter(|_| alone).map(|open| open.rate)
    }

    /// The rule by which a phase of `rbench io` ends once it is steady.
    fn steady(&self) -> Option<SteadyEnd> {
        let pace = &self.io_phase()?.job.pace;
        let from = pace.ramp;
        pace.steady.map(|rule| SteadyEnd { rule, from })
    }

    /// Its jobs, for people.
    pub(super) fn title(&self) -> String {
        let titles: Vec<&str> = self.members.iter().map(|m| m.job.title()).collect();
        titles.join(", ")
    }

    /// The parts of files that this rank reads; for parts that all share, the first rank of each
    /// host answers.
    fn parts_read(&self, here: &Ranks<'_>) -> Vec<Part> {
        let reads =
            |m: &&Member| m.reads() && m.job.pattern.directions.read && m.job.small.is_none();
        let ranks = here.world.size();
        let base = self.own.as_ref().map_or(self.common.base, |own| &own.held);
        let mut parts = Vec::new();
        for member in self.members.iter().filter(reads) {
            let job = &member.job;
            let own = Whose::Own(job.files.owner(here.rank(), ranks));
            parts.extend(layout::parts(job, base, own));
            if here.is_leader() {
                parts.extend(layout::parts(job, base, Whose::Shared { ranks }));
            }
        }
        parts
    }

    /// Data that the workers of a job of this rank share.
    fn context(
        &self,
        group: &Group<'_>,
        member: &Member,
        (sink, shared): (&Sink, &mut Shared<'_, '_>),
    ) -> WorkerContext {
        let (job, ranks) = (&member.job, group.world.size());
        let run = self.common.run;
        let base = self.common.base.to_owned();
        WorkerContext {
            open_loop: self.is_open(),
            together: blocks::together(job, group.rank(), ranks),
            // Writes of an earlier group are not writes of this one.
            run: match self.own {
                Some(_) => run.key,
                None => key(&[run.key, self.number as u64]),
            },
            report: job.report.as_ref().map(|_| Report {
                index: member.index,
                before: member.before * u64::from(ranks),
                sink: Arc::clone(sink),
                live: run.place.live.clone(),
                aux: self.common.base.join(&self.common.whole.aux),
            }),
            kept: self.own.as_ref().map(|own| own.kept.clone()),
            logs: self.common.journals.of(member.index),
            iologs: self.common.iologs.of(member.index),
            unmade: match &self.own {
                Some(own) => Arc::clone(&own.unmade),
                None => Arc::new(self.unmade_of(job, group.rank())),
            },
            others: shared.of(member),
            ..WorkerContext::new(
                JobPlan::clone(job),
                member.lanes,
                base,
                (group.rank(), ranks),
            )
        }
    }

    /// Returns true if any job has intended starts.
    fn is_open(&self) -> bool {
        let rated = |job: &JobPlan| {
            let (pace, stalls) = (&job.pace, job.replay.as_ref().map(|replay| replay.stalls));
            let rates = [pace.rate_iops, pace.rate_bytes];
            let mut rates = rates.iter().flat_map(|rate| rate.all());
            stalls == Some(true) || pace.together.is_some() || rates.any(|rate| rate.is_some())
        };
        self.members.iter().any(|member| rated(&member.job))
    }

    pub(super) fn phase(&self, group: &Group<'_>, sink: &Sink) -> Phase {
        let mut first = group.host.rank().0 * self.workers();
        let mut shared = Shared::new(self.common.ends, (self.iteration, self.number), group);
        let mut contexts = Vec::new();
        for member in &self.members {
            contexts.push(WorkerContext {
                first_on_host: first,
                ..self.context(group, member, (sink, &mut shared))
            });
            first += member.job.numjobs;
        }
        let make: MakeRunner = Arc::new(move |thread| {
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
        });
        let pauses = self.members.iter().map(|m| m.job.pace.pause);
        let framing = self.members.iter().map(|m| m.job.framing);
        Phase {
            iteration: self.iteration,
            open_loop: self.is_open(),
            offered: self.offered(),
            deadline: self.deadline(),
            steady: self.steady(),
            wear_out: self.members.iter().any(|m| m.job.pace.wear_out),
            // Such jobs run alone.
            framing: framing.max().unwrap_or_default(),
            cache: self.looking(),
            total: self.expected(group.world.size()),
            lanes_of: self.lanes_of(),
            log_operations: self.common.run.plan.log,
            before: Before {
                pause: pauses.max().unwrap_or_default(),
                // Only these are phases for the commands of all hosts.
                name: self.io_phase().map(|m| m.name.clone()),
                ..Before::default()
            },
            ..Phase::new(self.title(), self.lanes.clone(), self.workers(), make)
        }
    }

    /// The workers of a job on this rank whose files could not be made ready.
    fn unmade_of(&self, job: &JobPlan, rank: Rank) -> BTreeMap<u64, Failure> {
        let unmade = self.unmade.borrow();
        if unmade.is_empty() {
            return BTreeMap::new();
        }
        let why = |jobnum| {
            let mut paths = (0..job.files.count).map(|file| file_path(job, jobnum, file));
            let failure = paths.find_map(|path| unmade.get(&self.common.base.join(path)))?;
            Some((jobnum, failure.clone()))
        };
        job.workers_of(rank).filter_map(why).collect()
    }

    /// Observations around jobs that read. It is unknown who has used files that the user named.
    fn looking(&self) -> Option<Looking> {
        // A job's own lanes are numbered from 0.
        let row = |m: &Member| Some(m.lane_numbers.start + m.lanes.read?);
        let real = self.members.iter().filter(|m| m.reads());
        let readers: Vec<(&Member, usize)> = real.filter_map(|m| Some((m, row(m)?))).collect();
        let checks = readers.iter().filter(|(m, _)| m.job.verify.is_some());
        (!readers.is_empty()).then(|| Looking {
            shares: self.own.as_ref().map(|own| own.shares.clone()),
            dropped: self.common.run.plan.drop_caches,
            direct: readers.iter().all(|(member, _)| member.job.direct),
            verifies: checks.map(|(_, lane)| *lane).collect(),
            ramps: readers.iter().any(|(m, _)| m.job.pace.ramps()),
            opens: false,
        })
    }

    /// The directories of the files that this rank's workers read.
    pub(super) fn directories(&self, here: &Ranks<'_>) -> Vec<PathBuf> {
        let mut all = BTreeSet::new();
        for member in self.members.iter().filter(|m| m.engine.uses_files) {
            let paths = layout::used(here, &member.job, self.common.base, true);
            all.extend(paths.iter().filter_map(|p| p.parent()).map(Path::to_owned));
        }
        all.into_iter().collect()
    }

    /// Operations of all ranks, where they are known.
    pub(super) fn expected(&self, ranks: u32) -> Option<u64> {
        let each: Option<Vec<u64>> = self.members.iter().map(|m| expected(&m.job)).collect();
        each.map(|each| each.iter().sum::<u64>().saturating_mul(u64::from(ranks)))
    }
}
