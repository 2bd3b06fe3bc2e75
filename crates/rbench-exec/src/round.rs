//! One phase of the whole group: prepare, agree, start together, wait, top
//! up, and reduce.

use std::cell::RefCell;
use std::sync::Arc;

use rbench_core::Nanos;
use rbench_core::outcome::{Details, PhaseOutcome, Stonewall, WorkerOutcome};
use rbench_core::residency::Pages;
use rbench_plan::jobs::Framing;
use rbench_sys::limits;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::client;
use crate::group::{ExecError, Group, StopReason, WorkerResources};
use crate::listener::Listener;
use crate::lost;
use crate::meter::LaneKind;
use crate::phase::{OpRow, Phase};
use crate::reduce::{self, Part};
use crate::residency::{self, Glance, Seen};
use crate::stuck::StuckDetector;
use crate::worker::{Command, OwnLanes, Report, Stage, Worker, WorkerConfig, spawn};

mod around;

/// Results of a phase, besides its rows at rank 0.
#[derive(Debug, Default)]
pub struct PhaseEnd {
    /// A row for each lane, at rank 0; empty elsewhere.
    pub rows: Vec<PhaseOutcome>,
    /// True if every worker of every rank did all of its work without error.
    pub covered: bool,
    /// After a deadline that cut workers off: the minimum of operations that each has issued.
    pub each: Option<u64>,
    /// Set if the group was asked to stop.
    pub stopped: bool,
    /// Set if any operation failed on any rank.
    pub failed: bool,
    /// Details that stay with this rank.
    pub details: Details,
}

impl PhaseEnd {
    /// Hands over the rows with failures, of a phase that only prepares others.
    pub fn tell_failures(&mut self, listener: &mut dyn Listener) {
        let rows = std::mem::take(&mut self.rows).into_iter();
        rows.filter(|row| row.failures.total() > 0)
            .for_each(|row| listener.row(row));
    }

    /// Hands over the details that stay with this rank, if there are any.
    pub fn tell_details(&mut self, phase: &Phase, listener: &mut dyn Listener) {
        let details = std::mem::take(&mut self.details);
        if phase.log_operations || !details.is_empty() {
            listener.details(phase.iteration, &phase.row_names(), details);
        }
    }
}

/// Preparation state of this rank's workers.
#[derive(Debug, Default)]
struct Ready {
    /// Sum of their planned operations.
    planned: u64,
    /// True if any of them can work.
    able: bool,
    /// The reason of the first that cannot work.
    trouble: Option<String>,
}

/// The workers of this rank in one phase.
struct WorkerPool {
    workers: Vec<Worker>,
    reports: RefCell<UnboundedReceiver<(u32, Report)>>,
    watch: StuckDetector,
}

impl WorkerPool {
    fn tell(&self, command: Command) {
        if let Command::Run { start, .. } = command {
            self.watch.begun(start);
        }
        for worker in &self.workers {
            // A worker that failed to prepare has gone; this is known by then.
            let _ = worker.commands.send(command);
        }
    }

    /// Returns the operations done until now; reports failed ones and bytes to the group.
    fn items(&self, group: &Group<'_>) -> u64 {
        group.count_failed(self.workers.iter().map(|w| w.tally.failed()).sum());
        let bytes = self.workers.iter().map(|w| w.tally.bytes()).sum();
        group.progress.bytes.set(bytes);
        self.workers.iter().map(|w| w.tally.items()).sum()
    }

    /// Gives every worker of this rank an order and waits for their answers; all ranks agree that
    /// all were given. `None`: the worker was given up.
    async fn order<T>(
        &self,
        group: &Group<'_>,
        command: Command,
        take: impl FnMut(Report) -> Option<T>,
    ) -> Result<Vec<Option<T>>, ExecError> {
        self.tell(command);
        let answers = self.collect(group, take);
        let answers = group.attend(answers, || self.items(group)).await?;
        group.agree(answers).await
    }

    /// Collects one report of each worker that `take` accepts; `None` for those that were given up.
    async fn collect<T>(
        &self,
        group: &Group<'_>,
        mut take: impl FnMut(Report) -> Option<T>,
    ) -> Result<Vec<Option<T>>, String> {
        let mut taken: Vec<Option<T>> = self.workers.iter().map(|_| None).collect();
        let mut look = self.watch.pace(group);
        let missing = |taken: &[Option<T>]| {
            let mut all = taken.iter().enumerate();
            all.any(|(worker, answer)| answer.is_none() && !self.watch.gave_up(worker))
        };
        while missing(&taken) {
            group.tell_exits();
            tokio::select! {
                biased;
                report = self.next() => {
                    let answer = match report {
                        // It has come back, and nobody waits for it any more.
                        Some((worker, _)) if self.watch.gave_up(worker as usize) => continue,
                        Some((_, Report::Interval { row, part })) => {
                            group.add_interval(row as u64, &part);
                            continue;
                        }
                        Some((worker, Report::Passed(interval))) => {
                            group.worker_passed(worker, interval);
                            continue;
                        }
                        Some((_, Report::Failed(failure))) => {
                            group.tell_failure(&failure);
                            group.doubt_mount(&failure);
                            continue;
                        }
                        Some((worker, report)) => take(report).map(|answer| (worker, answer)),
                        None => None,
                    };
                    match answer {
                        Some((worker, answer)) => taken[worker as usize] = Some(answer),
                        None => return Err("a worker thread ended unexpectedly".to_owned()),
                    }
                }
                _ = look.tick() => {
                    let waits = |worker: usize| taken[worker].is_none();
                    self.watch.look(group, waits);
                }
            }
        }
        group.tell_exits();
        Ok(taken)
    }

    /// Waits until each is prepared, or has reported why it cannot be.
    async fn ready(&self, group: &Group<'_>) -> Result<Ready, String> {
        let all = self
            .collect(group, |report| match report {
                Report::Ready(result) => Some(result),
                _ => None,
            })
            .await?;
        let mut ready = Ready::default();
        for result in all.into_iter().flatten() {
            match result {
                Ok(planned) => {
                    ready.able = true;
                    ready.planned = ready.planned.saturating_add(planned);
                }
                Err(failure) => {
                    group.doubt_mount(&failure);
                    ready.trouble.get_or_insert_with(|| failure.to_string());
                }
            }
        }
        Ok(ready)
    }

    /// Returns the outcomes of all workers; those that were given up only have the call that they
    /// waited for.
    fn outcomes(
        &self,
        group: &Group<'_>,
        phase: &Phase,
        ended: Vec<Option<(WorkerOutcome, bool)>>,
    ) -> Vec<(WorkerOutcome, bool)> {
        let all = ended.into_iter().enumerate();
        all.map(|(worker, end)| {
            end.unwrap_or_else(|| {
                let outcome = self.watch.outcome(group, worker, phase);
                (outcome, false)
            })
        })
        .collect()
    }

    async fn next(&self) -> Option<(u32, Report)> {
        std::future::poll_fn(|context| self.reports.borrow_mut().poll_recv(context)).await
    }

    /// Dismisses the workers and waits until all have ended, so that their open files are closed;
    /// not if one was given up, which never ends.
    async fn dismiss(self, group: &Group<'_>) -> Result<(), ExecError> {
        drop(self.workers);
        let (watch, mut reports) = (self.watch, self.reports.into_inner());
        let ended = async {
            let mut look = watch.pace(group);
            while !watch.gave_up_any() {
                tokio::select! {
                    biased;
                    report = reports.recv() => {
                        if report.is_none() {
                            break;
                        }
                    }
                    _ = look.tick() => watch.look(group, |_| true),
                }
            }
        };
        group.attend(ended, || 0).await
    }
}

/// Runs `phase` on every rank of the group.
///
/// # Errors
/// When no worker of any rank could be prepared (the same error on every rank)
/// or the ranks cannot communicate.
pub async fn run(group: &Group<'_>, phase: &Phase) -> Result<PhaseEnd, ExecError> {
    let hooked = around::before_phase(group, phase).await?;
    let end = measure(group, phase).await?;
    around::after_phase(group, phase, end.stopped).await?;
    // Processes that the command before the phase left running end with the phase.
    drop(hooked);
    Ok(end)
}

/// Runs the phase without the commands around it.
async fn measure(group: &Group<'_>, phase: &Phase) -> Result<PhaseEnd, ExecError> {
    let cpu_before = cpu();
    group.begin_phase(&phase.label, phase.total, phase.deadline);
    group.progress.offered.set(phase.offered);
    group
        .probes
        .intervals
        .begin(phase.interval_rows(), group.interval());
    if let Some(judge) = phase.judge(group.interval()) {
        group.judge_by(judge, phase.threads);
    }
    if phase.before.pause > Nanos(0) || phase.before.command.is_some() {
        let passed = around::go_before(group, &phase.before).await?;
        group.agree(passed).await?;
    }
    let (hands, planned) = prepare(group, phase).await?;
    if group.stopped().await? {
        hands.dismiss(group).await?;
        return Ok(PhaseEnd {
            stopped: true,
            ..PhaseEnd::default()
        });
    }
    let before = glance(group, phase, &hands, false).await?;
    let client = client::begin(group).await?;
    group.keep_time().await?;
    let _guard = group.guard();
    let start = match group.common_start().await? {
        Ok(start) => start,
        Err(message) => {
            // The others have started: they see it like any stop.
            group.ask_to_stop(StopReason::Start);
            hands.dismiss(group).await?;
            return group.agree(Err(message)).await;
        }
    };
    let deadline = phase.deadline.map(|d| Nanos(start.0.saturating_add(d.0)));
    let upto = first_stage(phase);
    let run = Command::Run {
        clock: group.time.counter.clock(),
        start,
        deadline,
        upto,
    };
    let mut reached = hands.order(group, run, reached_counts).await?;
    if upto < Stage::Worked {
        let go = Command::Go(Stage::Worked);
        reached = hands.order(group, go, reached_counts).await?;
    }
    let reached: Vec<(u64, u64)> = reached.into_iter().flatten().collect();
    let stonewall = match (phase.wear_out, phase.deadline) {
        (true, Some(deadline)) => {
            let tops_up = !phase.open_loop;
            let stopped = group.now().since(start);
            let walls = (deadline, stopped);
            wear_out(group, &hands, (&reached, planned), walls, tops_up).await?
        }
        _ => None,
    };
    if upto < Stage::Closed {
        let go = Command::Go(Stage::Closed);
        hands.order(group, go, reached_counts).await?;
    }
    let client = client::end(group, client).await?;
    let after = glance(group, phase, &hands, true).await?;
    let ended = hands.order(group, Command::Finish, ended).await?;
    let ended = hands.outcomes(group, phase, ended);
    hands.items(group);
    hands.dismiss(group).await?;
    group.settle_intervals().await?;
    group.settle_errors().await?;
    group.settle_mounts().await?;
    let stopped = group.stopped().await?;
    // Every rank is done here: waiting for the slowest one is counted.
    let glances = before.zip(after).map(|(before, after)| [before, after]);
    let mine = Mine {
        glances,
        client,
        ..Mine::new(ended, cpu().since(cpu_before))
    };
    // Without topping up it is an ordinary end.
    let each = stonewall.map(|wall| {
        if phase.open_loop {
            wall.least
        } else {
            wall.most
        }
    });
    let stonewall = stonewall.filter(|_| !phase.open_loop);
    let steady = group
        .probes
        .intervals
        .found((!stopped).then_some(phase.deadline));
    let mut end = merge(group, phase, mine, stonewall, !stopped, stopped).await?;
    phase.tell_steadiness(&mut end.rows, steady);
    phase.drop_asides(&mut end.rows);
    Ok(PhaseEnd { each, ..end })
}

/// Returns the stage at which workers first wait for each other.
fn first_stage(phase: &Phase) -> Stage {
    match phase.framing {
        Framing::Apart => Stage::Opened,
        // Files that are topped up are closed after that.
        Framing::Timed if phase.wear_out => Stage::Worked,
        Framing::Timed | Framing::Untimed => Stage::Closed,
    }
}

/// Inspects memory, if the phase asks for it. Before it, all ranks wait until workers have inspected
/// their files and one rank of each cache has read its counters; when all workers have `ended`, before
/// they close their files, the counters come first.
async fn glance(
    group: &Group<'_>,
    phase: &Phase,
    hands: &WorkerPool,
    ended: bool,
) -> Result<Option<Glance>, ExecError> {
    if phase.cache.is_none() {
        return Ok(None);
    }
    if ended {
        let counts = residency::count(group).await?;
        let workers = look(group, hands, ended).await?;
        return Ok(Some(Glance { workers, counts }));
    }
    let workers = look(group, hands, ended).await?;
    let counts = residency::count(group).await?;
    group.meet().await?;
    Ok(Some(Glance { workers, counts }))
}

/// Has each worker inspect its files.
async fn look(
    group: &Group<'_>,
    hands: &WorkerPool,
    ended: bool,
) -> Result<Vec<(Pages, Option<u64>)>, ExecError> {
    let workers = hands.order(group, Command::Look { ended }, looked).await?;
    Ok(workers.into_iter().map(Option::unwrap_or_default).collect())
}

/// Runs `phases` in sequence without waiting for the other ranks in between: each rank's times
/// count from its own start. Rows come at the end, also those from before some rank could not
/// continue. The second value is the reason of that, the same on every rank.
pub async fn run_freely(
    group: &Group<'_>,
    phases: &[Phase],
) -> Result<(Vec<PhaseEnd>, Option<String>), ExecError> {
    let mut done: Vec<Mine> = Vec::new();
    let mut trouble = Ok(());
    group.meet().await?;
    let _guard = group.guard();
    for phase in phases {
        group.begin_phase(&phase.label, phase.total, phase.deadline);
        // Each rank counts from its own start.
        group.probes.intervals.begin(Vec::new(), group.interval());
        match alone(group, phase).await? {
            Ok(mine) => done.push(mine),
            Err(message) => {
                trouble = Err(message);
                break;
            }
        }
        if group.phase_stop().is_raised() {
            break;
        }
    }
    let trouble = match group.agree(trouble).await {
        Ok(()) => None,
        Err(ExecError::SetUp(message)) => Some(message),
        Err(error) => return Err(error),
    };
    group.settle_errors().await?;
    group.settle_mounts().await?;
    let stopped = group.stopped().await?;
    let mut ends = Vec::new();
    let mut done = done.into_iter();
    for phase in phases {
        let mine = done.next();
        let complete = group.all(!stopped && mine.is_some()).await?;
        let mine = mine.unwrap_or_else(|| Mine::idle(phase, group.interval()));
        ends.push(merge(group, phase, mine, None, complete, stopped).await?);
    }
    Ok((ends, trouble))
}

/// Runs one phase of this rank by itself.
async fn alone(group: &Group<'_>, phase: &Phase) -> Result<Result<Mine, String>, ExecError> {
    let cpu_before = cpu();
    if let Err(message) = around::go_before(group, &phase.before).await? {
        return Ok(Err(message));
    }
    let hands = match spawn_workers(group, phase) {
        Ok(hands) => hands,
        Err(message) => return Ok(Err(message)),
    };
    let work = async {
        hands.ready(group).await?;
        let start = group.now();
        group.begin_work(start);
        let deadline = phase.deadline.map(|d| Nanos(start.0.saturating_add(d.0)));
        hands.tell(Command::Run {
            clock: group.time.counter.clock(),
            start,
            deadline,
            upto: Stage::Closed,
        });
        hands.collect(group, reached_counts).await?;
        hands.tell(Command::Finish);
        hands.collect(group, ended).await
    };
    let ended = group.attend(work, || hands.items(group)).await?;
    let ended = ended.map(|ended| hands.outcomes(group, phase, ended));
    hands.items(group);
    hands.dismiss(group).await?;
    Ok(ended.map(|ended| Mine::new(ended, cpu().since(cpu_before))))
}

/// Results of this rank's workers in a phase.
struct Mine {
    outcomes: Vec<WorkerOutcome>,
    covered: bool,
    cpu: Nanos,
    /// Observations before and after.
    glances: Option<[Glance; 2]>,
    /// Use of the client, if it is watched.
    client: client::Seen,
}

impl Mine {
    fn new(ended: Vec<(WorkerOutcome, bool)>, cpu: Nanos) -> Mine {
        Mine {
            covered: ended.iter().all(|(_, covered)| *covered),
            outcomes: ended.into_iter().map(|(outcome, _)| outcome).collect(),
            cpu,
            glances: None,
            client: None,
        }
    }

    /// Creates the result of a rank that did not reach `phase`.
    fn idle(phase: &Phase, interval: Nanos) -> Mine {
        let outcome = WorkerOutcome {
            started_ns: 0,
            finished: Nanos(0),
            busy: false,
            lanes: phase.empty_lanes(interval, 0..phase.lanes.len()),
            details: Details::default(),
            first_lane: 0,
        };
        Mine::new(vec![(outcome, false)], Nanos(0))
    }
}

/// Combines the results of all ranks.
async fn merge(
    group: &Group<'_>,
    phase: &Phase,
    mine: Mine,
    stonewall: Option<Stonewall>,
    complete: bool,
    stopped: bool,
) -> Result<PhaseEnd, ExecError> {
    let mut outcomes = mine.outcomes;
    let mut details = Details::default();
    for outcome in &mut outcomes {
        details.append(std::mem::take(&mut outcome.details));
    }
    let failures = |o: &WorkerOutcome| o.lanes.iter().map(|l| l.failures.total()).sum::<u64>();
    let sound = outcomes.iter().map(failures).sum::<u64>() == 0;
    let covered = group.all(mine.covered).await?;
    let failed = !group.all(sound).await?;
    let seen = Seen::new(phase, &outcomes, mine.glances);
    let part = Part {
        outcomes,
        cpu: mine.cpu,
        stonewall,
        complete,
    };
    if failed {
        lost::gather(group, phase, &part.outcomes).await?;
    }
    let mut rows = reduce::reduce(group, phase, part).await?;
    residency::gather(group, phase, seen, &mut rows).await?;
    client::gather(group, &phase.lanes, mine.client, &mut rows).await?;
    Ok(PhaseEnd {
        rows,
        covered,
        each: None,
        stopped,
        failed,
        details,
    })
}

/// Returns the CPU time of this process until now; zero if the kernel does not report it.
fn cpu() -> Nanos {
    limits::process_cpu().unwrap_or_default()
}

/// Assigns a processor to each of `threads` workers: in turn those that the rank may use. If the
/// launcher gave the rank only some of the host's `online` ones, it has placed the other ranks as
/// well. Otherwise the workers of the host's ranks are counted; this is rank `nth` among them.
fn cpus(allowed: &[usize], online: usize, nth: u32, threads: u32) -> Vec<usize> {
    let before = if allowed.len() < online {
        0
    } else {
        nth as usize * threads as usize
    };
    let in_turn = allowed.iter().copied().cycle();
    let skipped = before % allowed.len().max(1);
    in_turn.skip(skipped).take(threads as usize).collect()
}

/// Starts this rank's workers; they prepare at once.
fn spawn_workers(group: &Group<'_>, phase: &Phase) -> Result<WorkerPool, String> {
    let WorkerResources { pinned, own_files } = group.seats;
    let cpus = if pinned {
        let unknown = |errno| format!("--pin: cannot determine the processors: {errno}");
        let allowed = limits::allowed_cpus().map_err(unknown)?;
        let online = limits::host_facts().map_err(unknown)?.cpus as usize;
        cpus(&allowed, online, group.host.rank().0, phase.threads)
    } else {
        Vec::new()
    };
    let config = WorkerConfig {
        rank: group.rank(),
        host: group.host_name().to_owned(),
        interval: group.interval(),
        hands_over: group.probes.intervals.wanted(),
        judged: group.probes.intervals.judged(),
        stop: group.phase_stop(),
        log_operations: phase.log_operations,
        errors_max: group.limits.errors,
        cpus,
        own_files,
    };
    let config = Arc::new(config);
    let own = |thread: u32| {
        let numbers = phase.own_lanes(thread as usize);
        let kind = |lane: &OpRow| LaneKind {
            op: lane.op,
            aside: lane.aside,
            starts: lane.has_responses(phase.open_loop),
        };
        OwnLanes {
            first: numbers.start,
            kinds: phase.lanes[numbers].iter().map(kind).collect(),
        }
    };
    let (sender, reports) = unbounded_channel();
    let workers = (0..phase.threads)
        .map(|thread| {
            let (make, sender) = (phase.make.clone(), sender.clone());
            spawn(&config, thread, own(thread), make, sender)
        })
        .collect::<Result<Vec<Worker>, _>>()
        .map_err(|e| format!("cannot start {} worker threads: {e}", phase.threads))?;
    Ok(WorkerPool {
        watch: StuckDetector::new(&workers),
        workers,
        reports: RefCell::new(reports),
    })
}

/// Starts the workers and waits until all of them, everywhere, are prepared; returns them with the
/// operations that this rank's workers plan. A worker that cannot prepare counts as one failed
/// operation as long as any other can work.
async fn prepare(group: &Group<'_>, phase: &Phase) -> Result<(WorkerPool, u64), ExecError> {
    let hands = group.agree(spawn_workers(group, phase)).await?;
    let ready = group.attend(hands.ready(group), || 0).await?;
    let able = ready.as_ref().is_ok_and(|ready| ready.able);
    let any = group.any(able).await?;
    let ready = ready.and_then(|ready| match ready.trouble {
        Some(trouble) if !any => Err(trouble),
        _ => Ok(ready.planned),
    });
    match group.agree(ready).await {
        Ok(planned) => Ok((hands, planned)),
        Err(error) => {
            hands.dismiss(group).await?;
            group.settle_mounts().await?;
            group.stopped().await?;
            Err(error)
        }
    }
}

/// Returns the issued and done operations of a worker when it stopped running.
fn reached_counts(report: Report) -> Option<(u64, u64)> {
    match report {
        Report::Reached { issued, done } => Some((issued, done)),
        _ => None,
    }
}

/// Returns a worker's observations of its files.
fn looked(report: Report) -> Option<(Pages, Option<u64>)> {
    match report {
        Report::Looked { pages, once } => Some((pages, once)),
        _ => None,
    }
}

fn ended(report: Report) -> Option<(WorkerOutcome, bool)> {
    match report {
        Report::Ended { outcome, covered } => Some((*outcome, covered)),
        _ => None,
    }
}

/// If the deadline cut some worker off: lets every worker top up to the highest number issued by
/// then. Operations with intended starts are excluded: none is meant to start after the deadline.
/// `planned` is the number that this rank's workers would have issued in total, `stopped` the time
/// when the last of them stopped.
async fn wear_out(
    group: &Group<'_>,
    hands: &WorkerPool,
    (reached, planned): (&[(u64, u64)], u64),
    (deadline, stopped): (Nanos, Nanos),
    tops_up: bool,
) -> Result<Option<Stonewall>, ExecError> {
    let issued = reached.iter().map(|(issued, _)| *issued);
    // A worker that ended because its mount is dead was not cut off by the deadline.
    let lost = group.probes.mounts.dead().is_some() && !group.limits.outlives_dead_mounts;
    let cut_off = u64::from(!lost && issued.clone().sum::<u64>() < planned);
    let most = issued.clone().max().unwrap_or(0);
    let least = issued.min().unwrap_or(0);
    // The smallest is the complement of the largest complement: one reduction.
    let bounds = vec![most, !least, cut_off, stopped.0];
    let bounds = group.largest(bounds).await?;
    let done = reached.iter().map(|(_, done)| done).sum();
    let items = group.sums(vec![done]).await?[0];
    if bounds[2] == 0 {
        return Ok(None);
    }
    let stonewall = Stonewall {
        deadline,
        stopped: Nanos(bounds[3]),
        items,
        least: !bounds[1],
        most: bounds[0],
    };
    if tops_up {
        hands
            .order(group, Command::TopUp(stonewall.most), reached_counts)
            .await?;
    }
    Ok(Some(stonewall))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_the_processors_in_turn() {
        let check = |allowed: &[usize], online, nth, threads, expect: &[usize]| {
            assert_eq!(cpus(allowed, online, nth, threads), expect);
        };
        // All processors are available to all ranks of the host.
        check(&[0, 1, 2, 3], 4, 0, 2, &[0, 1]);
        check(&[0, 1, 2, 3], 4, 1, 2, &[2, 3]);
        check(&[0, 1, 2, 3], 4, 2, 2, &[0, 1]);
        check(&[0, 1], 2, 3, 3, &[1, 0, 1]);
        // The launcher has given each rank its own.
        check(&[5, 9], 16, 3, 2, &[5, 9]);
        check(&[5], 16, 3, 2, &[5, 5]);
    }
}
