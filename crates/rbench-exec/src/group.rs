//! The ranks as a group: they agree on errors, wait while handling signals, notes and progress, and
//! ask all to stop.
//!
//! All waits for other ranks fail when the ranks can no longer communicate.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use rbench_comm::{Clocks, CommError, Communicator, Note};
use rbench_core::message::decode;
use rbench_core::outcome::CommonStart;
use rbench_core::spread::RowLimits;
use rbench_core::timeline::INTERVAL;
use rbench_core::{Clock, Counter, MonotonicClock, Nanos, Rank};
use rbench_plan::Limits;

use crate::intervals::Intervals;
use crate::marks::Marks;
use crate::mounts::Mounts;
use crate::pace::{Exits, StopFlag};
use crate::sight::Sight;
use crate::trap::Trap;

/// Time that other ranks may be silent after the group was asked to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Interval of each rank's progress reports to rank 0.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// Time without a heartbeat after which a rank is declared dead while phases run.
const SILENCE: Duration = Duration::from_secs(7);

/// A rank that has not checked for this long was itself suspended, perhaps. It cannot know how long
/// others were silent meanwhile.
const AWAY: Duration = Duration::from_secs(2);

/// Heartbeat interval.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// Reason why a run ended early. The text is one sentence, the same on every rank if the group
/// still answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The plan cannot run on these hosts: misuse.
    #[error("{0}")]
    Usage(String),
    /// Something needed could not be set up.
    #[error("{0}")]
    SetUp(String),
    /// The ranks can no longer communicate.
    #[error("{0}")]
    Comm(#[from] CommError),
    /// A rank is silent: it, its host or the network is down.
    #[error("{0}")]
    Lost(String),
    /// Other ranks did not answer a request to stop.
    #[error("the other ranks did not answer for {} s after the request to stop", STOP_PATIENCE.as_secs())]
    NoAnswer,
}

/// Resources of each worker's own that threads of a process otherwise share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerResources {
    /// A processor, if there are enough.
    pub pinned: bool,
    /// A file descriptor table, if the system permits it. Files that the rest of the process has
    /// open stay open in it until the worker's end.
    pub own_files: bool,
}

/// Source of stop requests from outside: the signals of the process.
pub trait Interrupts {
    /// Resolves with the next signal's number.
    fn next(&self) -> std::pin::Pin<Box<dyn Future<Output = i32> + '_>>;

    /// Resolves when a mark is to be set.
    fn mark(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::pending())
    }

    /// Describes the signal by its name, with its sender if known.
    fn told(&self, signal: i32) -> String {
        format!("signal {signal}")
    }
}

/// Display of rank 0.
pub trait Show {
    /// Reports the start of set-up work that may take a while.
    fn step(&self, text: &str);
    /// Reports the start of a phase; `total`: operations planned by all ranks, if known.
    fn phase(&self, label: &str, total: Option<u64>);
    /// Reports the progress of a phase.
    fn progress(&self, progress: Progress);
    /// Reports that the group was asked to stop.
    fn stopping(&self);
    /// Reports, on any rank, a problem with its operations or its group, as a sentence.
    fn trouble(&self, text: &str);
    /// Reports the first failed operation of a run.
    fn failure(&self, text: &str) {
        self.trouble(text);
    }
}

/// Early end of a run, or of a phase.
#[derive(Default)]
pub(crate) struct RunControl {
    stop: RefCell<StopFlag>,
    /// Stop flag of the current phase.
    phase_stop: RefCell<StopFlag>,
    reason: Cell<Option<StopReason>>,
    /// The first known stop signal: its name, sender and rank.
    signal: RefCell<Option<String>>,
    /// The call that was given up, as a sentence: nothing on the target is touched any more.
    stuck: RefCell<Option<String>>,
    /// Failed operations of each rank up to now (at other ranks only their own), and this rank's
    /// before the phase.
    failed: RefCell<Vec<u64>>,
    failed_before: Cell<u64>,
    /// At rank 0: triggers that end the run early.
    pub(crate) trap: Trap,
    /// Jobs that the end of a job ends.
    pub(crate) exits: Arc<Exits>,
}

/// Times of the last heartbeats.
struct Heartbeat {
    /// Start of the heartbeat watch, and the last heartbeat of each rank.
    guarded: Cell<Option<Instant>>,
    alive: RefCell<Vec<Instant>>,
    told_alive: Cell<Instant>,
    /// Time of this rank's last heartbeat check.
    looked: Cell<Instant>,
    /// Time of the last word from another rank.
    last_word: Cell<Instant>,
}

/// The common time of the ranks.
pub struct RunClock {
    /// The clock of common instants.
    pub clock: Rc<dyn Clock>,
    /// Workers read the same time from this counter.
    pub counter: Counter,
    /// Known state of the clocks of all ranks.
    clocks: RefCell<Clocks>,
    /// The common start of the current phase, and the same by this host's clock.
    start: Cell<Option<CommonStart>>,
    starts_here: Cell<Option<Nanos>>,
}

/// Observers of a run, and actions around its phases.
#[derive(Default)]
pub struct Probes {
    /// View of the file system that the phases work on.
    pub sight: Sight,
    /// Work done in each interval.
    pub intervals: Intervals,
    /// Marks of the run, at rank 0.
    pub marks: Marks,
    /// Mounts that no longer answer.
    pub mounts: Rc<Mounts>,
    /// Commands run around phases, the same on all ranks.
    pub hooks: Rc<PhaseHooks>,
}

/// The ranks of a run, and this rank's means to communicate with the others.
pub struct Group<'a> {
    ranks: Ranks<'a>,
    pub(crate) control: RunControl,
    heartbeat: Heartbeat,
    /// The time.
    pub time: RunClock,
    /// Observers of the run.
    pub probes: Probes,
    /// Limits for rows per rank and per host, the same on all ranks.
    pub rows: RowLimits,
    /// Limits at which the group stops.
    pub limits: Limits,
    /// Distinguishes notes of this run from late ones of an earlier run on the same ranks; equal on
    /// all ranks.
    run: u64,
    interrupts: &'a dyn Interrupts,
    show: &'a dyn Show,
    /// The current phase, for all ranks and for people.
    phase_number: Cell<u64>,
    label: RefCell<String>,
    /// Progress of the phase: at rank 0 of all ranks, at others only their own.
    pub(crate) progress: ProgressBook,
    interval: Nanos,
    /// Resources of this rank's workers.
    pub seats: WorkerResources,
}

/// A group acts as its ranks.
impl<'a> std::ops::Deref for Group<'a> {
    type Target = Ranks<'a>;

    fn deref(&self) -> &Ranks<'a> {
        &self.ranks
    }
}

/// While alive, ranks that stop sending heartbeats are declared dead.
pub struct Guard<'g>(&'g Cell<Option<Instant>>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl<'a> Group<'a> {
    /// Forms the group; every rank calls this together.
    pub async fn form(
        world: &'a dyn Communicator,
        host_names: Vec<String>,
        host_of: Vec<u32>,
        clocks: Clocks,
        interrupts: &'a dyn Interrupts,
        show: &'a dyn Show,
    ) -> Result<Group<'a>, ExecError> {
        let ranks = Ranks::form(world, host_names, host_of).await?;
        let run = number_of_run(world).await?;
        let (size, now) = (world.size() as usize, Instant::now());
        Ok(Group {
            ranks,
            control: RunControl {
                failed: RefCell::new(vec![0; size]),
                ..RunControl::default()
            },
            heartbeat: Heartbeat {
                guarded: Cell::new(None),
                alive: RefCell::new(vec![now; size]),
                told_alive: Cell::new(now),
                looked: Cell::new(now),
                last_word: Cell::new(now),
            },
            time: RunClock {
                clock: Rc::new(MonotonicClock),
                counter: Counter::begin(rbench_sys::limits::counter_is_kept()),
                clocks: RefCell::new(clocks),
                start: Cell::new(None),
                starts_here: Cell::default(),
            },
            probes: Probes::default(),
            rows: RowLimits::default(),
            limits: Limits::default(),
            run,
            interrupts,
            show,
            phase_number: Cell::new(0),
            label: RefCell::default(),
            progress: ProgressBook::new(size),
            interval: INTERVAL,
            seats: WorkerResources::default(),
        })
    }

    /// Sets the interval of the timelines, the same on all ranks.
    pub fn with_interval(self, interval: Nanos) -> Group<'a> {
        Group { interval, ..self }
    }

    /// Returns the interval of the timelines.
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// Sets the caches of the ranks, the same on all of them.
    pub fn with_caches(mut self, cache_of: Vec<u32>) -> Group<'a> {
        self.ranks.cache_of = cache_of;
        self
    }

    /// Returns the time by this rank's clock.
    pub fn now(&self) -> Nanos {
        self.time.clock.now()
    }

    /// From now on declares silent ranks dead, until the guard is dropped. All ranks have just met,
    /// and none blocks its main thread for long.
    pub fn guard(&self) -> Guard<'_> {
        let now = Instant::now();
        self.heartbeat.alive.borrow_mut().fill(now);
        self.heartbeat.looked.set(now);
        self.heartbeat.guarded.set(Some(now));
        Guard(&self.heartbeat.guarded)
    }

    /// Reports trouble to people.
    pub fn trouble(&self, text: &str) {
        self.show.trouble(text);
    }

    /// Shows a step at rank 0; silent at the others.
    pub fn step(&self, text: &str) {
        if self.is_root() {
            self.show.step(text);
        }
    }

    /// Returns the flag that ends the workers' loops.
    pub fn stop_flag(&self) -> StopFlag {
        self.control.stop.borrow().clone()
    }

    /// Returns the flag that ends the workers' loops in the current phase: with the group's, or by
    /// itself.
    pub fn phase_stop(&self) -> StopFlag {
        self.control.phase_stop.borrow().clone()
    }

    /// Returns why the group was asked to stop, if this rank knows.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.control.reason.get()
    }

    /// Starts a phase at the same point on all ranks, to distinguish late progress notes from new
    /// ones.
    pub fn begin_phase(&self, label: &str, total: Option<u64>, deadline: Option<Nanos>) {
        self.phase_number.set(self.phase_number.get() + 1);
        self.progress.begin(total, deadline);
        self.control
            .failed_before
            .set(self.control.failed.borrow()[self.rank().0 as usize]);
        self.time.start.set(None);
        self.probes.marks.left();
        self.probes.mounts.begin();
        label.clone_into(&mut self.label.borrow_mut());
        *self.control.phase_stop.borrow_mut() = self.control.stop.borrow().follower();
        self.time.starts_here.set(None);
        if self.is_root() {
            self.show.phase(label, total);
        }
    }

    /// Waits for work of this rank while handling signals, notes and the progress tick; `done`
    /// returns the items that this rank has done. Has no time limit: a second signal ends the
    /// program.
    pub async fn attend<T>(
        &self,
        work: impl Future<Output = T>,
        done: impl Fn() -> u64,
    ) -> Result<T, ExecError> {
        let work = async { Ok::<T, ExecError>(work.await) };
        self.serve(work, done, None).await
    }

    /// Waits for other ranks, handling the same.
    ///
    /// # Errors
    /// Those of `wait`, and [`ExecError::NoAnswer`] when the group was asked
    /// to stop and the others are silent.
    pub async fn quietly<T, E: Into<ExecError>>(
        &self,
        wait: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ExecError> {
        let mine = self.progress.items_of(self.rank());
        self.serve(wait, || mine, Some(STOP_PATIENCE)).await
    }

    async fn serve<T, E: Into<ExecError>>(
        &self,
        wait: impl Future<Output = Result<T, E>>,
        done: impl Fn() -> u64,
        patience: Option<Duration>,
    ) -> Result<T, ExecError> {
        let mut wait = std::pin::pin!(wait);
        let mut tick = tokio::time::interval(TELL_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick.reset();
        self.heartbeat.last_word.set(Instant::now());
        // Each of many successive waits may end before the first tick.
        self.say_alive(Instant::now());
        loop {
            tokio::select! {
                biased;
                out = &mut wait => return out.map_err(Into::into),
                signal = self.interrupts.next() => self.interrupted(signal),
                note = self.world.next_note() => self.hear(&note?),
                () = self.probes.intervals.due() => self.pass_on(false),
                () = self.interrupts.mark(), if self.is_root() => self.probes.marks.signalled(self.now()),
                happening = self.probes.marks.next() => self.probes.marks.take(happening, self.now()),
                verdict = self.probes.mounts.next() => self.mount_answered(verdict),
                () = self.control.trap.sprung() => self.ask_to_stop(StopReason::Trigger),
                _ = tick.tick() => {
                    self.tell(done());
                    self.tell_used();
                    self.live(Instant::now())?;
                    if self.control.reason.get().is_none() {
                        self.heartbeat.last_word.set(Instant::now());
                    } else if patience.is_some_and(|p| self.heartbeat.last_word.get().elapsed() > p) {
                        return Err(ExecError::NoAnswer);
                    } else if patience.is_none() {
                        self.post_to_others(&Word::Busy);
                    }
                }
            }
        }
    }

    /// Asks every rank to end the phase at the next operation.
    pub fn ask_to_stop(&self, reason: StopReason) {
        self.note_stop(reason);
        self.post_to_others(&Word::Stop(reason, None));
    }

    /// Handles a signal to this rank.
    fn interrupted(&self, signal: i32) {
        let (rank, host) = (self.rank(), self.host_name());
        let text = format!("{} to rank {rank} on {host}", self.interrupts.told(signal));
        let reason = StopReason::Signal(signal);
        let word = Word::Stop(reason, Some(fitting(&text)));
        self.control.signal.borrow_mut().get_or_insert(text);
        self.note_stop(reason);
        self.post_to_others(&word);
    }

    /// Returns the signal that ended the run early, with its sender and rank, if this rank knows.
    pub fn stop_signal(&self) -> Option<String> {
        self.control.signal.borrow().clone()
    }

    /// Reports to the other ranks which jobs have ended others here.
    pub fn tell_exits(&self) {
        for id in self.control.exits.news() {
            self.post_to_others(&Word::End(id));
        }
    }

    /// Records how many operations of this rank have failed in the current phase.
    pub fn count_failed(&self, failed: u64) {
        let mine = self.rank().0 as usize;
        self.control.failed.borrow_mut()[mine] = self.control.failed_before.get() + failed;
    }

    /// Stops the group if too many operations failed; called on all ranks at the end of a phase.
    pub async fn settle_errors(&self) -> Result<(), ExecError> {
        let Some(most) = self.limits.errors else {
            return Ok(());
        };
        let mine = self.control.failed.borrow()[self.rank().0 as usize];
        if self.sums(vec![mine]).await?[0] > most {
            self.note_stop(StopReason::Errors);
        }
        Ok(())
    }

    /// Stops the group if too many operations failed. Each rank knows its own at once; rank 0
    /// receives the others'.
    fn check_errors(&self) {
        // The sum is lazy: this runs at every note.
        let too_many = |most: u64| self.control.failed.borrow().iter().sum::<u64>() > most;
        if self.control.reason.get().is_none() && self.limits.errors.is_some_and(too_many) {
            self.ask_to_stop(StopReason::Errors);
        }
    }

    /// Sends a note marked with the run; one that is too long is left out.
    fn post(&self, to: Rank, word: &Word) {
        if let Some(content) = content(self.run, word) {
            self.world.post(to, content);
        }
    }

    fn post_to_others(&self, word: &Word) {
        self.others().for_each(|rank| self.post(rank, word));
    }

    /// Sends news of the current phase.
    fn post_news(&self, to: Rank, news: News) {
        self.post(to, &Word::News(self.phase_number.get(), news));
    }

    fn note_stop(&self, reason: StopReason) {
        if self.control.reason.get().is_none() {
            self.control.reason.set(Some(reason));
            if self.is_root() {
                self.show.stopping();
            }
        }
        self.control.stop.borrow().raise();
    }

    fn hear(&self, note: &Note) {
        let Some((run, word)) = decode::<(u64, Word)>(&note.content) else {
            return;
        };
        // The sender may not be part of this run.
        if run != self.run {
            return;
        }
        self.heartbeat.last_word.set(Instant::now());
        self.heartbeat.alive.borrow_mut()[note.from.0 as usize] = Instant::now();
        match word {
            Word::Stop(reason, signal) => {
                if let Some(text) = signal {
                    self.control.signal.borrow_mut().get_or_insert(text);
                }
                self.note_stop(reason);
            }
            Word::Busy | Word::Alive => {}
            Word::End(id) => self.control.exits.heard(id),
            Word::News(phase, news) if phase == self.phase_number.get() => {
                self.hear_news(note.from, news);
            }
            Word::News(..) => {}
            Word::Used { tool, client } => self.hear_used(note.from, tool, client),
            Word::Failed(text) => self.show_failure(&text),
            Word::DeadMount(dead) => self.hear_of_dead_mount(dead),
            Word::AllFail(text) => self.every_fails(note.from, &text),
        }
    }

    fn hear_news(&self, from: Rank, news: News) {
        match news {
            News::Interval(letter) => self.hear_interval(from, letter),
            News::IntervalsEnd => self.probes.intervals.one_ended(),
            News::Passed(interval) => {
                self.probes.intervals.rank_passed(from, interval);
                self.end_if_steady();
            }
            News::PhaseEnd(after) => self.end_phase(after),
            News::Progress { counts, failed } => {
                self.hear_progress(from, counts);
                self.control.failed.borrow_mut()[from.0 as usize] = failed;
                self.check_errors();
            }
        }
    }

    /// Agrees on success of all ranks: the same result on every rank. The error is that of the
    /// lowest rank, with its host's name if there are several hosts.
    ///
    /// # Errors
    /// [`ExecError::SetUp`] when it failed on some rank.
    pub async fn agree<T>(&self, result: Result<T, String>) -> Result<T, ExecError> {
        if !self.any(result.is_err()).await? {
            return result.map_err(ExecError::SetUp);
        }
        let text = result.err().map(|message| match self.host_names.len() {
            1 => message,
            _ => format!("on {}: {message}", self.host_name()),
        });
        let first = self.gather(&text).await?.into_iter().flatten().next();
        let first = self.broadcast(&first).await?;
        Err(ExecError::SetUp(first.unwrap_or_default()))
    }

    /// Returns rank 0's decision, on all ranks; `decide` is called only there.
    pub async fn decided(&self, decide: impl FnOnce() -> bool) -> Result<bool, ExecError> {
        self.any(self.is_root() && decide()).await
    }

    /// Returns whether any rank was asked to stop: the same answer on every rank.
    pub async fn stopped(&self) -> Result<bool, ExecError> {
        let number = self.control.reason.get().map_or(0, StopReason::code);
        let highest = self.largest(vec![number]).await?[0];
        if highest > 0 {
            self.note_stop(StopReason::of_code(highest));
        }
        Ok(highest > 0)
    }
}

mod alive;
mod beside;
mod events;
mod hooks;
mod intervals;
mod mounts;
mod progress;
mod ranks;
mod reason;
mod steady;
mod time;
mod together;
mod word;

pub use hooks::{HookedPhase, PhaseHooks};
pub use progress::Progress;
use progress::ProgressBook;
pub use ranks::Ranks;
pub use reason::StopReason;
use time::number_of_run;
use word::{News, Word, content, fitting};

#[cfg(test)]
mod tests;
