//! A worker: an OS thread that prepares, waits for the common start, runs the bare loop, perhaps
//! tops up, and hands over its outcome.

use std::sync::Arc;
use std::sync::mpsc;

use rbench_core::outcome::WorkerOutcome;
use rbench_core::residency::Pages;
use rbench_core::timeline::IntervalPart;
use rbench_core::{Clock as _, CpuClock, Failure, Nanos, OpKind, Rank};
use tokio::sync::mpsc::UnboundedSender;

use rbench_sys::limits;
use rbench_sys::own_files::OwnFiles;

use crate::meter::{ErrorBudget, LaneKind, Meter, Tally};
use crate::pace::{Gate, StopFlag};
use crate::repeats::note_rewritten;

/// The work of one worker in one phase.
pub trait Runner {
    /// Issues operations until the work is done, the gate closes, or (when topping up) `upto`
    /// operations have been issued in total.
    fn run(&mut self, gate: &Gate, meter: &mut Meter, upto: Option<u64>);

    /// Opens files before the run, if that is timed.
    fn open(&mut self, _gate: &Gate, _meter: &mut Meter) {}

    /// Syncs and closes files after the run, if that is timed.
    fn close(&mut self, _gate: &Gate, _meter: &mut Meter) {}

    /// Returns the operations issued until now, failed ones included: those that its `meter` has,
    /// unless some of them are not recorded there.
    fn issued(&self, meter: &Meter) -> u64 {
        meter.attempted()
    }

    /// Returns the operations that it would issue without a deadline, if known; zero: nothing to
    /// do.
    fn planned(&self) -> u64 {
        0
    }

    /// Returns whether all of its work was done once without error.
    fn covered(&self, meter: &Meter) -> bool {
        meter.is_sound()
    }

    /// Returns the pages of its files in the page cache, untimed: before the run, and again when it
    /// has `ended`.
    fn look(&mut self, _ended: bool) -> Pages {
        Pages::default()
    }

    /// Returns the operations of one pass over its part if it repeats the part in the same order;
    /// `None` otherwise.
    fn once(&self) -> Option<u64> {
        None
    }

    /// Closes files and the like, untimed; failures are recorded nevertheless.
    fn finish(&mut self, _meter: &mut Meter) {}
}

/// Placeholder for a runner that could not be created; fails once.
struct Unable {
    /// The first lane of its worker; `None` without lanes.
    lane: Option<usize>,
    /// Taken when it is counted.
    failure: Option<Failure>,
}

impl Runner for Unable {
    fn run(&mut self, _gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        if let (Some(lane), Some(failure)) = (self.lane, self.failure.take()) {
            meter.failed_untimed(lane, failure);
        }
    }

    fn covered(&self, _meter: &Meter) -> bool {
        false
    }
}

/// Placeholder for a runner without work: everything is done.
pub struct Idle;

impl Runner for Idle {
    fn run(&mut self, _gate: &Gate, _meter: &mut Meter, _upto: Option<u64>) {}
}

/// A runner, or the reason why it could not be created.
pub type Prepared = Result<Box<dyn Runner>, Failure>;

/// Creates the runner of the worker with that number within its rank, in the worker's thread: opens
/// files, allocates buffers; untimed.
pub type MakeRunner = Arc<dyn Fn(u32) -> Prepared + Send + Sync>;

/// Stage at which a worker waits for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its files are open.
    Opened,
    /// Its operations are done, or their time is over.
    Worked,
    /// Its writes are synced and its files are closed, if these are timed.
    Closed,
}

/// A command of the control plane to a worker. A worker whose channel is closed ends without an
/// outcome.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    /// Run from the common start on.
    Run {
        /// The clock of all timing.
        clock: CpuClock,
        /// The common start on this host's clock.
        start: Nanos,
        /// Stop issuing at this instant.
        deadline: Option<Nanos>,
        /// Last stage of this command.
        upto: Stage,
    },
    /// Continue to that stage.
    Go(Stage),
    /// Continue until this number of operations has been issued.
    TopUp(u64),
    /// Inspect memory: before the run, and when it has `ended`.
    Look {
        /// Set after the run.
        ended: bool,
    },
    /// Hand over the outcome and end.
    Finish,
}

/// A report of a worker to the control plane.
#[derive(Debug)]
pub enum Report {
    /// Prepared, with the number of planned operations; or not prepared: then its outcome will be
    /// that failure.
    Ready(Result<u64, Failure>),
    /// Stopped running.
    Reached {
        /// Operations issued until now, failed ones included.
        issued: u64,
        /// Operations done without error until now.
        done: u64,
    },
    /// Work in an interval that has ended; not an answer to a command.
    Interval {
        /// The number of the row among those of the phase.
        row: usize,
        /// Work in the interval.
        part: Box<IntervalPart>,
    },
    /// All work before that interval was handed over; not an answer to a command.
    Passed(u64),
    /// The first failed operation, or the first that indicates a lost mount; not an answer to a
    /// command.
    Failed(Box<Failure>),
    /// Inspected.
    Looked {
        /// Pages of its files in the page cache.
        pages: Pages,
        /// [`Runner::once`]
        once: Option<u64>,
    },
    /// Ended.
    Ended {
        /// Results of the worker.
        outcome: Box<WorkerOutcome>,
        /// True if all of its work was done once without error.
        covered: bool,
    },
    /// Ended without an outcome: it panicked.
    Lost,
}

/// Configuration common to all workers of a rank in a phase.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// This rank.
    pub rank: Rank,
    /// Its host.
    pub host: String,
    /// The interval of the timelines.
    pub interval: Nanos,
    /// Set if each interval is handed over at its end.
    pub hands_over: bool,
    /// Set if each worker reports the interval before which everything was handed over.
    pub judged: bool,
    /// The request to end the phase.
    pub stop: StopFlag,
    /// Set if start and duration of each operation are kept.
    pub log_operations: bool,
    /// A worker with more failed operations ends the phase.
    pub errors_max: Option<u64>,
    /// The processors to stay on, by worker; empty: the kernel decides.
    pub cpus: Vec<usize>,
    /// Set if each has a file descriptor table of its own.
    pub own_files: bool,
}

impl WorkerConfig {
    /// Gives a worker its own resources, until the value is dropped.
    fn seat(&self, thread: u32, lanes: &[LaneKind]) -> Result<Option<OwnFiles>, Failure> {
        if let Some(cpu) = self.cpus.get(thread as usize) {
            limits::stay_on(*cpu).map_err(|errno| {
                let op = lanes.first().map_or(OpKind::Read, |lane| lane.op);
                Failure::new(op, "", errno).with(format!("--pin: staying on processor {cpu}"))
            })?;
        }
        // A refusal only costs speed.
        Ok(self.own_files.then(|| OwnFiles::new().ok()).flatten())
    }
}

/// The control plane's end of a worker's thread.
#[derive(Debug)]
pub struct Worker {
    /// Commands to it; dropping this ends it.
    pub commands: mpsc::Sender<Command>,
    /// Its running count.
    pub tally: Arc<Tally>,
}

/// The way back to the control plane: each report with the worker's number.
#[derive(Debug, Clone)]
struct Reports {
    thread: u32,
    reports: UnboundedSender<(u32, Report)>,
}

impl Reports {
    /// Sends a report; returns whether the control plane still exists.
    fn send(&self, report: Report) -> bool {
        self.reports.send((self.thread, report)).is_ok()
    }
}

/// Reports a worker that ends without a report of its own.
struct LostGuard(Option<Reports>);

impl Drop for LostGuard {
    fn drop(&mut self) {
        if let Some(reports) = self.0.take() {
            // This fails only if the control plane has gone as well.
            reports.send(Report::Lost);
        }
    }
}

/// The lanes of one worker among those of its phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnLanes {
    /// The number of the first; the others follow it.
    pub first: usize,
    /// All of them.
    pub kinds: Vec<LaneKind>,
}

/// Starts worker `thread` of the config with lanes of its own; it prepares at once and then takes
/// commands.
///
/// # Errors
/// When the system cannot start another thread.
pub fn spawn(
    config: &Arc<WorkerConfig>,
    thread: u32,
    lanes: OwnLanes,
    make: MakeRunner,
    reports: UnboundedSender<(u32, Report)>,
) -> std::io::Result<Worker> {
    let (commands, inbox) = mpsc::channel();
    let tally = Arc::new(Tally::default());
    let mut meter = Meter::new(
        config.rank,
        &config.host,
        &lanes.kinds,
        config.interval,
        Arc::clone(&tally),
        ErrorBudget {
            errors: config.errors_max,
            stop: config.stop.of_all(),
        },
    );
    let reports = Reports { thread, reports };
    if config.hands_over {
        let first = lanes.first;
        meter.hand_over(|lane| {
            let to = reports.clone();
            Box::new(move |part| {
                let (row, part) = (first + lane, Box::new(part));
                // This fails only if nobody listens any more.
                to.send(Report::Interval { row, part });
            })
        });
    }
    if config.judged {
        let to = reports.clone();
        meter.tell_passes(move |interval| {
            to.send(Report::Passed(interval));
        });
    }
    let to = reports.clone();
    meter.tell_first(move |failure| {
        // This fails only if nobody listens any more.
        to.send(Report::Failed(Box::new(failure.clone())));
    });
    let (stop, log_operations) = (config.stop.clone(), config.log_operations);
    let config = Arc::clone(config);
    let here = Arc::clone(&tally);
    std::thread::Builder::new()
        .name(format!("worker-{thread}"))
        .spawn(move || {
            here.is_here();
            let mut guard = LostGuard(Some(reports.clone()));
            let seat = config.seat(thread, &lanes.kinds);
            let prepare = || match &seat {
                Ok(_) => make(thread),
                Err(failure) => Err(failure.clone()),
            };
            // Failures that keep a worker from its operations count with the first kind of them.
            let lane = (!lanes.kinds.is_empty()).then_some(0);
            let prepared = (&prepare as &dyn Fn() -> Prepared, log_operations);
            work(prepared, (lanes.first, lane), meter, stop, &inbox, &reports);
            // Frees its own resources before the reports end. Before that it drops the runner's
            // parts, while its table still has their files: nobody else may hold them any more.
            drop(make);
            drop(seat);
            guard.0 = None;
        })?;
    Ok(Worker { commands, tally })
}

fn work(
    (make, log_operations): (&dyn Fn() -> Prepared, bool),
    (first_lane, lane): (usize, Option<usize>),
    mut meter: Meter,
    stop: StopFlag,
    inbox: &mpsc::Receiver<Command>,
    reports: &Reports,
) {
    // Without it the kernel may add 50 us to every sleep before an intended
    // start; a refusal only costs precision, which the start skew shows.
    let _ = rbench_sys::limits::set_timer_slack(Nanos(1));
    let (mut runner, ready) = match make() {
        Ok(runner) => {
            let planned = runner.planned();
            (runner, Ok(planned))
        }
        Err(failure) => {
            let unable: Box<dyn Runner> = Box::new(Unable {
                lane,
                failure: Some(failure.clone()),
            });
            (unable, Err(failure))
        }
    };
    if log_operations {
        meter.log_operations(runner.planned());
    }
    if !reports.send(Report::Ready(ready)) {
        return;
    }
    let mut gate = Gate {
        stop,
        ..Gate::new(CpuClock::KERNEL, Nanos(0))
    };
    let mut started_ns = 0;
    let mut stage = None;
    while let Ok(command) = inbox.recv() {
        match command {
            Command::Run {
                clock,
                start,
                deadline,
                upto,
            } => {
                gate.clock = clock.of_worker(reports.thread);
                (gate.start, gate.deadline) = (start, deadline);
                meter.start_at(start);
                // A worker stopped before the start has not started early.
                started_ns = gate.wait_for_start();
                go(runner.as_mut(), (&mut stage, upto), &gate, &mut meter);
            }
            Command::Go(upto) => go(runner.as_mut(), (&mut stage, upto), &gate, &mut meter),
            Command::TopUp(upto) => {
                gate.deadline = None;
                meter.stonewall();
                let begun = gate.clock.now();
                runner.run(&gate, &mut meter, Some(upto));
                meter.ran(begun, &gate);
            }
            Command::Look { ended } => {
                let (pages, once) = (runner.look(ended), runner.once());
                reports.send(Report::Looked { pages, once });
                continue;
            }
            Command::Finish => {
                runner.finish(&mut meter);
                let (covered, busy) = (runner.covered(&meter), runner.issued(&meter) > 0);
                let finished = meter.last_end();
                let (mut lanes, mut details) = meter.into_parts();
                // The meter numbers its own lanes, the log those of the phase.
                for operation in &mut details.operations {
                    operation.row += first_lane as u32;
                }
                note_rewritten(&mut lanes, runner.once());
                let outcome = WorkerOutcome {
                    started_ns,
                    finished,
                    busy,
                    lanes,
                    details,
                    first_lane,
                };
                reports.send(Report::Ended {
                    outcome: Box::new(outcome),
                    covered,
                });
                return;
            }
        }
        meter.pause();
        reports.send(Report::Reached {
            issued: runner.issued(&meter),
            done: meter.items(),
        });
    }
    // Dismissed without an outcome: open files are closed nevertheless.
    runner.finish(&mut meter);
}

/// Continues from the reached stage to `upto`.
fn go(
    runner: &mut dyn Runner,
    (reached, upto): (&mut Option<Stage>, Stage),
    gate: &Gate,
    meter: &mut Meter,
) {
    let begun = gate.clock.now();
    for stage in [Stage::Opened, Stage::Worked, Stage::Closed] {
        if Some(stage) <= *reached || stage > upto {
            continue;
        }
        match stage {
            Stage::Opened => runner.open(gate, meter),
            Stage::Worked => runner.run(gate, meter, None),
            Stage::Closed => runner.close(gate, meter),
        }
        *reached = Some(stage);
    }
    meter.ran(begun, gate);
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use nix::fcntl::{FcntlArg, fcntl};
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// Part of a runner, like a journal: a file that was opened before the worker started.
    struct Held {
        file: File,
        gone: mpsc::Sender<bool>,
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let open = fcntl(&self.file, FcntlArg::F_GETFD).is_ok();
            let _ = self.gone.send(open);
        }
    }

    /// Makes a worker the last holder of its runner's parts. Returns whether the file in them was
    /// still open at the drop, and whether that was before the worker's reports ended.
    fn last_to_hold(cpus: Vec<usize>) -> (bool, bool) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = nix::fcntl::open(
            folder.path(),
            nix::fcntl::OFlag::O_RDONLY,
            nix::sys::stat::Mode::empty(),
        );
        let (gone, heard) = mpsc::channel();
        let held = Held {
            file: file.expect("it is there").into(),
            gone,
        };
        let make: MakeRunner = Arc::new(move |_| {
            assert!(held.file.metadata().is_ok_and(|found| found.is_dir()));
            Ok(Box::new(Idle))
        });
        let config = WorkerConfig {
            rank: Rank(0),
            host: "here".to_owned(),
            interval: Nanos(1_000_000_000),
            hands_over: false,
            judged: false,
            stop: StopFlag::default(),
            log_operations: false,
            errors_max: None,
            cpus,
            own_files: true,
        };
        let (sender, mut reports) = unbounded_channel();
        let lanes = OwnLanes {
            first: 0,
            kinds: vec![LaneKind::plain(OpKind::Read)],
        };
        let worker =
            spawn(&Arc::new(config), 0, lanes, make, sender).expect("a thread is to be had");
        drop(worker.commands);
        while reports.blocking_recv().is_some() {}
        let first = heard.try_recv();
        let open = first.or_else(|_| heard.recv()).expect("it lets go");
        (open, first.is_ok())
    }

    #[test]
    fn what_a_runner_is_made_of_is_let_go_while_its_files_are_open_and_before_the_reports_end() {
        assert_eq!(last_to_hold(Vec::new()), (true, true));
        // A worker that cannot take its seat, for want of that processor.
        assert_eq!(last_to_hold(vec![100_000]), (true, true));
    }
}
