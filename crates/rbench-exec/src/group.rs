//! The ranks together: agreeing on trouble, waiting while signals, notes and
//! progress are attended to, and asking everybody to stop.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use rbench_comm::{Combine, CommError, Communicator, NOTE_WORDS, Note};
use rbench_core::{MonotonicClock, Nanos, Rank};

use crate::pace::StopFlag;

/// How long the others may be silent once the group was asked to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How often each rank tells rank 0 how far it is.
const TELL_EVERY: Duration = Duration::from_millis(500);

const NOTE_STOP: u64 = 1;
const NOTE_PROGRESS: u64 = 2;
/// "I was asked to stop and am still at it": sent while a rank ends its own
/// work, such as a long fsync or the removal of a large tree.
const NOTE_BUSY: u64 = 3;

/// Why the group was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A signal with this number reached one of the ranks.
    Signal(i32),
}

/// Why a run ended before its time. The text is one sentence, the same on
/// every rank where the group still answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The plan cannot be done on these hosts: misuse.
    #[error("{0}")]
    Usage(String),
    /// Something needed could not be set up.
    #[error("{0}")]
    SetUp(String),
    /// The ranks can no longer talk.
    #[error("{0}")]
    Comm(#[from] CommError),
    /// Other ranks did not answer a request to stop.
    #[error("the other ranks did not answer for {} s after the request to stop", STOP_PATIENCE.as_secs())]
    NoAnswer,
}

/// Someone who asks for a stop from outside: the signals of the process.
pub trait Interrupts {
    /// Ready with the next signal's number.
    fn next(&self) -> std::pin::Pin<Box<dyn Future<Output = i32> + '_>>;
}

/// How far a phase is, as rank 0 knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Operations done by all ranks.
    pub items: u64,
    /// Operations planned by all ranks; `None` when time decides.
    pub total: Option<u64>,
}

/// Where rank 0 shows what goes on.
pub trait Show {
    /// Set-up work has begun that may take a while.
    fn step(&self, text: &str);
    /// A phase has begun.
    fn phase(&self, label: &str, total: Option<u64>);
    /// A phase is so far.
    fn progress(&self, progress: Progress);
}

/// The ranks of a run and what each keeps to talk to the others.
pub struct Group<'a> {
    /// All ranks.
    pub world: &'a dyn Communicator,
    /// The ranks of this host.
    pub host: Box<dyn Communicator>,
    /// The leaders of the hosts; only meaningful at a leader.
    pub leaders: Box<dyn Communicator>,
    /// Names of the hosts.
    pub host_names: Vec<String>,
    /// The host of each rank.
    pub host_of: Vec<u32>,
    /// Rank 0's clock minus this rank's, in ns.
    pub offset_ns: i64,
    /// The clock of all timing.
    pub clock: MonotonicClock,
    interrupts: &'a dyn Interrupts,
    show: &'a dyn Show,
    stop: RefCell<StopFlag>,
    reason: Cell<Option<StopReason>>,
    /// When another rank was last heard of.
    last_word: Cell<Instant>,
    phase_number: Cell<u64>,
    /// Rank 0: items of each rank in this phase, and the sum planned.
    heard: RefCell<Vec<u64>>,
    total: Cell<Option<u64>>,
}

impl<'a> Group<'a> {
    /// Forms the group; every rank calls this together.
    ///
    /// # Errors
    /// When the ranks cannot talk.
    pub async fn form(
        world: &'a dyn Communicator,
        host_names: Vec<String>,
        host_of: Vec<u32>,
        offset_ns: i64,
        interrupts: &'a dyn Interrupts,
        show: &'a dyn Show,
    ) -> Result<Group<'a>, ExecError> {
        let my_host = host_of[world.rank().0 as usize];
        let host = world.split(my_host).await?;
        let leaders = world.split(u32::from(host.rank() != Rank(0))).await?;
        let ranks = world.size() as usize;
        Ok(Group {
            world,
            host,
            leaders,
            host_names,
            host_of,
            offset_ns,
            clock: MonotonicClock,
            interrupts,
            show,
            stop: RefCell::new(StopFlag::default()),
            reason: Cell::new(None),
            last_word: Cell::new(Instant::now()),
            phase_number: Cell::new(0),
            heard: RefCell::new(vec![0; ranks]),
            total: Cell::new(None),
        })
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.world.rank()
    }

    /// Whether this is rank 0.
    pub fn is_root(&self) -> bool {
        self.rank() == Rank(0)
    }

    /// Whether this rank acts for its host.
    pub fn is_leader(&self) -> bool {
        self.host.rank() == Rank(0)
    }

    /// The name of this rank's host.
    pub fn host_name(&self) -> &str {
        self.host_name_of(self.rank())
    }

    /// The name of a rank's host.
    pub fn host_name_of(&self, rank: Rank) -> &str {
        &self.host_names[self.host_of[rank.0 as usize] as usize]
    }

    /// Where rank 0 shows what goes on; silent at the others.
    pub fn step(&self, text: &str) {
        if self.is_root() {
            self.show.step(text);
        }
    }

    /// The flag that ends the workers' loops.
    pub fn stop_flag(&self) -> StopFlag {
        self.stop.borrow().clone()
    }

    /// Why the group was asked to stop, as far as this rank has heard.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.reason.get()
    }

    /// Begins phase after phase at the same place on all ranks, so that late
    /// progress notes are told from new ones.
    pub fn begin_phase(&self, label: &str, total: Option<u64>) {
        self.phase_number.set(self.phase_number.get() + 1);
        self.heard.borrow_mut().fill(0);
        self.total.set(total);
        if self.is_root() {
            self.show.phase(label, total);
        }
    }

    /// Waits for work of this rank itself while signals, notes and the progress
    /// tick are attended to; `done` tells the items this rank has done so far.
    /// Takes as long as it takes: a second signal ends the program.
    ///
    /// # Errors
    /// When the ranks cannot talk.
    pub async fn attend<T>(
        &self,
        work: impl Future<Output = T>,
        done: impl Fn() -> u64,
    ) -> Result<T, ExecError> {
        let work = async { Ok::<T, ExecError>(work.await) };
        self.serve(work, done, None).await
    }

    /// Waits for other ranks, attending to the same.
    ///
    /// # Errors
    /// Those of `wait`, and [`ExecError::NoAnswer`] when the group was asked
    /// to stop and the others are silent.
    pub async fn quietly<T, E: Into<ExecError>>(
        &self,
        wait: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ExecError> {
        let mine = self.heard.borrow()[self.rank().0 as usize];
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
        self.last_word.set(Instant::now());
        loop {
            tokio::select! {
                biased;
                out = &mut wait => return out.map_err(Into::into),
                signal = self.interrupts.next() => self.ask_to_stop(StopReason::Signal(signal)),
                note = self.world.next_note() => self.hear(note?),
                _ = tick.tick() => {
                    self.tell(done());
                    if self.reason.get().is_none() {
                        self.last_word.set(Instant::now());
                    } else if patience.is_some_and(|p| self.last_word.get().elapsed() > p) {
                        return Err(ExecError::NoAnswer);
                    } else if patience.is_none() {
                        self.post_to_others(NOTE_BUSY, [0; NOTE_WORDS]);
                    }
                }
            }
        }
    }

    /// Asks every rank to end the phase at the next operation.
    fn ask_to_stop(&self, reason: StopReason) {
        let StopReason::Signal(number) = reason;
        self.note_stop(reason);
        self.post_to_others(NOTE_STOP, [number as u64, 0, 0, 0, 0, 0]);
    }

    fn post_to_others(&self, kind: u64, words: [u64; NOTE_WORDS]) {
        for rank in (0..self.world.size())
            .map(Rank)
            .filter(|r| *r != self.rank())
        {
            self.world.post(rank, kind, words);
        }
    }

    fn note_stop(&self, reason: StopReason) {
        if self.reason.get().is_none() {
            self.reason.set(Some(reason));
        }
        self.stop.borrow().raise();
    }

    fn hear(&self, note: Note) {
        self.last_word.set(Instant::now());
        match note.kind {
            NOTE_STOP => self.note_stop(StopReason::Signal(note.words[0] as i32)),
            NOTE_PROGRESS if note.words[0] == self.phase_number.get() => {
                self.heard.borrow_mut()[note.from.0 as usize] = note.words[1];
            }
            _ => {}
        }
    }

    /// Tells rank 0 how far this rank is; rank 0 shows the sum.
    fn tell(&self, done: u64) {
        let mine = self.rank();
        let changed =
            std::mem::replace(&mut self.heard.borrow_mut()[mine.0 as usize], done) != done;
        if self.is_root() {
            let items = self.heard.borrow().iter().sum();
            self.show.progress(Progress {
                items,
                total: self.total.get(),
            });
        } else if changed {
            self.world.post(
                Rank(0),
                NOTE_PROGRESS,
                [self.phase_number.get(), done, 0, 0, 0, 0],
            );
        }
    }

    /// Agrees on whether something went well everywhere: the same result on
    /// every rank, the error that of the lowest rank, with its host's name
    /// when there are several hosts.
    ///
    /// # Errors
    /// [`ExecError::SetUp`] when it failed on some rank.
    pub async fn agree<T>(&self, result: Result<T, String>) -> Result<T, ExecError> {
        let failed = u64::from(result.is_err());
        let sum = self
            .quietly(self.world.all_reduce(Combine::Max, vec![failed]))
            .await?;
        if sum[0] == 0 {
            return result.map_err(ExecError::SetUp);
        }
        let text = result.err().map_or(Vec::new(), |message| {
            let place = if self.host_names.len() > 1 {
                format!("on {}: ", self.host_name())
            } else {
                String::new()
            };
            format!("{place}{message}").into_bytes()
        });
        let all = self.quietly(self.world.gather(Rank(0), text)).await?;
        let first = all
            .and_then(|texts| texts.into_iter().find(|t| !t.is_empty()))
            .unwrap_or_default();
        let shared = self.quietly(self.world.broadcast(Rank(0), first)).await?;
        Err(ExecError::SetUp(
            String::from_utf8_lossy(&shared).into_owned(),
        ))
    }

    /// Whether any rank was asked to stop: the same answer on every rank.
    ///
    /// # Errors
    /// When the ranks cannot talk.
    pub async fn stopped(&self) -> Result<bool, ExecError> {
        let number = match self.reason.get() {
            Some(StopReason::Signal(number)) => number as u64 + 1,
            None => 0,
        };
        let highest = self
            .quietly(self.world.all_reduce(Combine::Max, vec![number]))
            .await?[0];
        if highest > 0 {
            self.note_stop(StopReason::Signal(highest as i32 - 1));
        }
        Ok(highest > 0)
    }

    /// The common start of a phase on this rank's clock: rank 0 names an
    /// instant far enough ahead for everybody to hear of it.
    ///
    /// # Errors
    /// When the ranks cannot talk.
    pub async fn common_start(&self) -> Result<Nanos, ExecError> {
        use rbench_core::Clock as _;
        let now = self.clock.now();
        let lead = if self.world.size() == 1 {
            Nanos(1_000_000)
        } else {
            // A waiting rank looks every 2 ms at the latest; news takes
            // log2(ranks) hops.
            let hops = u64::from(u32::BITS - self.world.size().leading_zeros());
            Nanos(6_000_000 + hops * 3_000_000)
        };
        let at = (now.0 + lead.0).to_le_bytes().to_vec();
        let heard = self.quietly(self.world.broadcast(Rank(0), at)).await?;
        let at = heard
            .first_chunk::<8>()
            .map_or(now.0, |b| u64::from_le_bytes(*b));
        Ok(Nanos(at.saturating_add_signed(-self.offset_ns)))
    }
}
