//! Connections between the jobs of a plan on this rank: jobs that end others, flows, and ramps that
//! several share.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbench_plan::jobs::{ExitWhat, JobPlan, JobsPlan};

use super::Member;
use crate::blocks::{Exit, InFlight, Locks, Others};
use crate::group::{ExecError, Group};
use crate::pace::{Flow, RampBytes};

/// The numbers of the ends that jobs of a plan can cause: groups of the report, then iterations,
/// then rounds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    groups: u64,
    iterations: u64,
    /// A job ends others.
    used: bool,
}

impl Ends {
    pub(super) fn of(plan: &JobsPlan) -> Ends {
        let jobs = || plan.rounds.iter().flatten();
        let groups = jobs().map(|job| group_of(job) + 1).max().unwrap_or(0);
        Ends {
            groups,
            iterations: u64::from(plan.iterations),
            used: jobs().any(|job| job.others.exit.is_some()),
        }
    }

    /// Numbers of the ends that stop a job of that iteration and round.
    fn with(self, job: &JobPlan, iteration: u32, round: usize) -> [u64; 3] {
        let iterations = self.groups + u64::from(iteration);
        let rounds = self.groups + self.iterations + round as u64;
        [group_of(job), iterations, rounds]
    }

    /// After a round: all ranks learn the ends that may concern later rounds. A note could come
    /// after their start.
    pub(super) async fn agree(self, group: &Group<'_>) -> Result<(), ExecError> {
        group.control.exits.leave();
        if !self.used || group.world.size() == 1 {
            return Ok(());
        }
        let ids = 0..self.groups + self.iterations;
        let mine = ids
            .map(|id| u64::from(group.control.exits.has_ended(id)))
            .collect();
        for (id, ended) in (0..).zip(group.largest(mine).await?) {
            if ended > 0 {
                group.control.exits.heard(id);
            }
        }
        Ok(())
    }
}

fn group_of(job: &JobPlan) -> u64 {
    job.report.as_ref().map_or(0, |r| u64::from(r.group))
}

/// Objects that jobs of a round share on this rank, in the making.
pub(super) struct Shared<'g, 'a> {
    ends: Ends,
    iteration: u32,
    round: usize,
    group: &'g Group<'a>,
    flows: BTreeMap<u64, Arc<Flow>>,
    ramps: BTreeMap<u64, Arc<RampBytes>>,
    blocks: Arc<InFlight>,
    locks: Arc<Locks>,
}

impl<'g, 'a> Shared<'g, 'a> {
    pub(super) fn new(
        ends: Ends,
        (iteration, round): (u32, usize),
        group: &'g Group<'a>,
    ) -> Shared<'g, 'a> {
        Shared {
            ends,
            iteration,
            round,
            group,
            flows: BTreeMap::new(),
            ramps: BTreeMap::new(),
            blocks: Arc::default(),
            locks: Arc::default(),
        }
    }

    /// The shared objects of one job's workers.
    pub(super) fn of(&mut self, member: &Member) -> Others {
        let job = &member.job;
        let with = self.ends.with(job, self.iteration, self.round);
        let stop = self.ends.used.then(|| {
            let stop = self.group.stop_flag().follower();
            self.group.control.exits.enter(with, stop.clone());
            stop
        });
        let exit = job.others.exit.map(|exit| Exit {
            exits: Arc::clone(&self.group.control.exits),
            id: match exit.what {
                ExitWhat::Group => with[0],
                ExitWhat::All => with[1],
                ExitWhat::Stonewall => with[2],
            },
            always: exit.always,
        });
        let flow = job.others.flow;
        let flow = flow.map(|flow| Arc::clone(self.flows.entry(flow.id).or_default()));
        let grouped = job.report.as_ref().is_some_and(|r| r.group_reporting);
        let ramp = (grouped && job.pace.ramp_bytes > 0).then(|| {
            // Each rank moves its part.
            let part = job
                .pace
                .ramp_bytes
                .div_ceil(u64::from(self.group.world.size()));
            let new = || Arc::new(RampBytes::new(part));
            Arc::clone(self.ramps.entry(group_of(job)).or_insert_with(new))
        });
        Others {
            stop,
            run_stop: self.group.stop_flag(),
            exit,
            flow,
            ramp,
            // Like in fio, only a job with threads of its own is serialized with the others.
            blocks: (job.submission.serialize && job.submission.offload)
                .then(|| Arc::clone(&self.blocks)),
            locks: Arc::clone(&self.locks),
        }
    }
}
