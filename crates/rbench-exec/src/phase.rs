//! One phase of the whole group: prepare, agree, start together, wait, top
//! up, and reduce.

use std::cell::RefCell;

use rbench_comm::Combine;
use rbench_core::outcome::{Cache, PhaseOutcome, Stonewall, WorkerOutcome};
use rbench_core::{Nanos, OpKind};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::group::{ExecError, Group};
use crate::reduce::{self, Part};
use crate::worker::{Command, Crew, MakeRunner, Report, Worker, spawn};

/// What a lane is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneInfo {
    /// Its operation.
    pub op: OpKind,
    /// For machines: `file-create`.
    pub name: String,
    /// For people: `File creation`.
    pub label: String,
}

/// A phase to run. The same on every rank but for `make`.
pub struct Phase {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// For people, while it runs.
    pub label: String,
    /// A row of the report for each kind of operation.
    pub lanes: Vec<LaneInfo>,
    /// Whether intended starts are given.
    pub open_loop: bool,
    /// Stop issuing after this time.
    pub deadline: Option<Nanos>,
    /// After the deadline top up to the worker with the most.
    pub wear_out: bool,
    /// What the caches could do.
    pub cache: Option<Cache>,
    /// Operations of all workers; `None` when time decides.
    pub total: Option<u64>,
    /// Workers of each rank.
    pub threads: u32,
    /// Makes each worker's runner.
    pub make: MakeRunner,
}

/// What a phase gave, beside its rows at rank 0.
#[derive(Debug)]
pub struct PhaseEnd {
    /// A row for each lane, at rank 0; empty elsewhere.
    pub rows: Vec<PhaseOutcome>,
    /// Whether every worker of every rank did all it had without error.
    pub covered: bool,
    /// After a stonewall: operations that the worker with the most issued.
    pub most: Option<u64>,
    /// Whether the group was asked to stop.
    pub stopped: bool,
}

/// The workers of this rank in one phase.
struct Hands {
    workers: Vec<Worker>,
    reports: RefCell<UnboundedReceiver<Report>>,
}

impl Hands {
    fn tell(&self, command: Command) {
        for worker in &self.workers {
            // A worker that failed to prepare has gone; it is known by then.
            let _ = worker.commands.send(command);
        }
    }

    fn items(&self) -> u64 {
        self.workers.iter().map(|w| w.tally.items()).sum()
    }

    /// Gives every worker of this rank an order and waits for their answers;
    /// all ranks agree that all were given.
    async fn order<T>(
        &self,
        group: &Group<'_>,
        command: Command,
        take: impl FnMut(Report) -> Option<T>,
    ) -> Result<Vec<T>, ExecError> {
        self.tell(command);
        let answers = group.attend(self.collect(take), || self.items()).await?;
        group.agree(answers).await
    }

    /// One report of each worker, as far as `take` accepts them.
    async fn collect<T>(
        &self,
        mut take: impl FnMut(Report) -> Option<T>,
    ) -> Result<Vec<T>, String> {
        let mut taken = Vec::with_capacity(self.workers.len());
        while taken.len() < self.workers.len() {
            match self.next().await.and_then(&mut take) {
                Some(value) => taken.push(value),
                None => return Err("a worker thread ended unexpectedly".to_owned()),
            }
        }
        Ok(taken)
    }

    async fn next(&self) -> Option<Report> {
        std::future::poll_fn(|context| self.reports.borrow_mut().poll_recv(context)).await
    }

    /// Lets the workers go and waits until all have ended, so that what they
    /// hold open is closed.
    async fn dismiss(self) {
        drop(self.workers);
        let mut reports = self.reports.into_inner();
        while reports.recv().await.is_some() {}
    }
}

/// Runs `phase` on every rank of the group.
///
/// # Errors
/// When a worker could not be prepared on some rank (the same error on every
/// rank) or the ranks cannot talk.
pub async fn run(group: &Group<'_>, phase: &Phase) -> Result<PhaseEnd, ExecError> {
    let cpu_before = cpu();
    group.begin_phase(&phase.label, phase.total);
    let (hands, planned) = prepare(group, phase).await?;
    if group.stopped().await? {
        group.attend(hands.dismiss(), || 0).await?;
        return Ok(PhaseEnd {
            rows: Vec::new(),
            covered: false,
            most: None,
            stopped: true,
        });
    }
    let start = group.common_start().await?;
    let deadline = phase.deadline.map(|d| Nanos(start.0.saturating_add(d.0)));
    let reached = hands
        .order(group, Command::Run { start, deadline }, reached_counts)
        .await?;
    let stonewall = match (phase.wear_out, phase.deadline) {
        (true, Some(deadline)) => wear_out(group, &hands, &reached, planned, deadline).await?,
        _ => None,
    };
    let ended = hands.order(group, Command::Finish, ended).await?;
    let mine_covered = ended.iter().all(|(_, covered)| *covered);
    let outcomes: Vec<WorkerOutcome> = ended.into_iter().map(|(outcome, _)| outcome).collect();
    group.attend(hands.dismiss(), || 0).await?;
    let stopped = group.stopped().await?;
    let covered = all(group, mine_covered).await?;
    // Every rank is done by here: waiting for the slowest one is counted.
    let cpu = cpu().since(cpu_before);
    let part = Part {
        outcomes,
        cpu,
        stonewall,
        complete: !stopped,
    };
    let rows = reduce::reduce(group, phase, part).await?;
    Ok(PhaseEnd {
        rows,
        covered,
        most: stonewall.map(|s| s.most),
        stopped,
    })
}

/// CPU time of this process so far; zero where the kernel does not tell.
fn cpu() -> Nanos {
    rbench_sys::limits::process_cpu().unwrap_or_default()
}

/// Starts the workers and waits until all of them, everywhere, are prepared;
/// with the operations that this rank's workers plan.
async fn prepare(group: &Group<'_>, phase: &Phase) -> Result<(Hands, u64), ExecError> {
    let crew = Crew {
        rank: group.rank(),
        host: group.host_name().to_owned(),
        ops: phase.lanes.iter().map(|lane| lane.op).collect(),
        open_loop: phase.open_loop,
        stop: group.stop_flag(),
    };
    let (sender, reports) = unbounded_channel();
    let spawned: Result<Vec<Worker>, String> = (0..phase.threads)
        .map(|thread| spawn(&crew, thread, phase.make.clone(), sender.clone()))
        .collect::<Result<_, _>>()
        .map_err(|e| format!("cannot start {} worker threads: {e}", phase.threads));
    drop(sender);
    let workers = group.agree(spawned).await?;
    let hands = Hands {
        workers,
        reports: RefCell::new(reports),
    };
    let ready = hands.collect(|report| match report {
        Report::Ready(result) => Some(result),
        _ => None,
    });
    let ready = group.attend(ready, || 0).await?.and_then(|all| {
        all.into_iter().try_fold(0_u64, |sum, result| {
            let planned = result.map_err(|failure| failure.to_string())?;
            Ok(sum.saturating_add(planned))
        })
    });
    match group.agree(ready).await {
        Ok(planned) => Ok((hands, planned)),
        Err(error) => {
            group.attend(hands.dismiss(), || 0).await?;
            Err(error)
        }
    }
}

/// What a worker had issued and done when it stopped running.
fn reached_counts(report: Report) -> Option<(u64, u64)> {
    match report {
        Report::Reached { issued, done } => Some((issued, done)),
        _ => None,
    }
}

fn ended(report: Report) -> Option<(WorkerOutcome, bool)> {
    match report {
        Report::Ended { outcome, covered } => Some((*outcome, covered)),
        _ => None,
    }
}

/// If the deadline cut some worker off: lets every worker top up to what the
/// worker with the most had issued by then. `planned` is what this rank's
/// workers would have issued in all.
async fn wear_out(
    group: &Group<'_>,
    hands: &Hands,
    reached: &[(u64, u64)],
    planned: u64,
    deadline: Nanos,
) -> Result<Option<Stonewall>, ExecError> {
    let issued = reached.iter().map(|(issued, _)| *issued);
    let cut_off = u64::from(issued.clone().sum::<u64>() < planned);
    let most = issued.clone().max().unwrap_or(0);
    let least = issued.min().unwrap_or(0);
    // The smallest is the complement of the largest complement: one reduction.
    let bounds = group
        .quietly(
            group
                .world
                .all_reduce(Combine::Max, vec![most, !least, cut_off]),
        )
        .await?;
    let done = reached.iter().map(|(_, done)| done).sum();
    let items = group
        .quietly(group.world.all_reduce(Combine::Sum, vec![done]))
        .await?[0];
    if bounds[2] == 0 {
        return Ok(None);
    }
    let stonewall = Stonewall {
        deadline,
        items,
        least: !bounds[1],
        most: bounds[0],
    };
    hands
        .order(group, Command::TopUp(stonewall.most), reached_counts)
        .await?;
    Ok(Some(stonewall))
}

async fn all(group: &Group<'_>, mine: bool) -> Result<bool, ExecError> {
    Ok(group
        .quietly(group.world.all_reduce(Combine::Min, vec![u64::from(mine)]))
        .await?[0]
        == 1)
}
