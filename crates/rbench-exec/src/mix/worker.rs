//! A worker of a mix: its course, and when each round begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_core::{Clock as _, FailureKind, Nanos};
use rbench_plan::MixPlan;
use rbench_plan::arrival::Schedule;
use rbench_plan::mix::Role;
use rbench_plan::mix::course::{Came, Chosen, Course, On, Turn};
use rbench_plan::mix::names::Tree;
use rbench_plan::step::Action;

use super::TARGET;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::single::Next;
use crate::steps::{Names, Script, Step, Verdict};

/// How often who waits for others looks at how far they are.
const LOOK: Nanos = Nanos(5_000_000);

/// Rounds without any operation before a worker takes its time.
const IDLE_MAX: u32 = 64;

/// How far the workers of a rank are, by role.
pub(super) struct Counters {
    /// Rounds that all workers have done.
    rounds: Vec<AtomicU64>,
    /// Rounds that those who follow have begun.
    begun: Vec<AtomicU64>,
    /// Workers that were prepared and have not ended.
    running: Vec<AtomicU64>,
}

impl Counters {
    pub(super) fn new(mix: &MixPlan) -> Counters {
        let none = || mix.roles.iter().map(|_| AtomicU64::new(0)).collect();
        Counters {
            rounds: none(),
            begun: none(),
            running: none(),
        }
    }
}

/// The round that is under way.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    intended: Option<Nanos>,
    /// When its first operation started, and its last ended.
    span: Option<(Nanos, Nanos)>,
    bytes: u64,
}

/// The steps of a worker.
pub(super) struct MixScript {
    mix: Arc<MixPlan>,
    role: usize,
    course: Course,
    trees: Vec<Arc<Tree>>,
    schedule: Option<Schedule>,
    counters: Arc<Counters>,
    /// The worker's own among those of its role.
    within: u32,
    /// Rounds, or operations drawn, that it has begun.
    begun: u64,
    /// The intended start that was taken from the schedule, if its round has not begun.
    due: Option<Nanos>,
    round: Round,
    /// Nothing starts before that.
    not_before: Option<Nanos>,
    /// The next step is the first of its round.
    first: bool,
    /// Which of other roles' rounds the next round waits for.
    ticket: Option<u64>,
    /// Rounds without any operation, one after the other.
    idle: u32,
    /// When the last operation ended.
    ended: Nanos,
    /// Bytes of the operation that has ended, if it was done.
    done: Option<(Span, u64)>,
}

impl MixScript {
    pub(super) fn new(
        (mix, role, within): (Arc<MixPlan>, usize, u32),
        course: Course,
        trees: Vec<Arc<Tree>>,
        schedule: Option<Schedule>,
        counters: Arc<Counters>,
    ) -> MixScript {
        // All are prepared before any of them runs.
        counters.running[role].fetch_add(1, Ordering::Relaxed);
        MixScript {
            mix,
            role,
            course,
            trees,
            schedule,
            counters,
            within,
            begun: 0,
            due: None,
            round: Round::default(),
            not_before: None,
            first: false,
            ticket: None,
            idle: 0,
            ended: Nanos(0),
            done: None,
        }
    }

    fn role(&self) -> &Role {
        &self.mix.roles[self.role]
    }

    /// Gets ready for a round; `None`: there is none any more.
    fn begin_round(&mut self, gate: &Gate) -> Option<()> {
        if self.mix.rounds.is_some_and(|most| self.begun >= most) {
            return None;
        }
        if !self.wait_for_others(gate) {
            return None;
        }
        if let Some(every) = self.role().every {
            // Workers of a role do not all begin at once.
            let threads = u64::from(self.role().threads.max(1));
            let behind = every.0 / threads * u64::from(self.within);
            let at = every.0.saturating_mul(self.begun).saturating_add(behind);
            self.wait_until(Nanos(gate.start.0.saturating_add(at)));
        }
        let due = self.due.take();
        self.round = Round {
            intended: due.or_else(|| {
                let at = self.schedule.as_mut()?.next_start();
                Some(Nanos(gate.start.0.saturating_add(at.0)))
            }),
            ..Round::default()
        };
        self.begun += 1;
        self.first = true;
        Some(())
    }

    /// Waits until those that the role follows have done their rounds; whether they have.
    fn wait_for_others(&mut self, gate: &Gate) -> bool {
        let Some(per) = self.role().per else {
            return true;
        };
        let counters = Arc::clone(&self.counters);
        let own = &counters.begun[self.role];
        let ticket = *self
            .ticket
            .get_or_insert_with(|| own.fetch_add(1, Ordering::Relaxed) + 1);
        let wanted = ticket.saturating_mul(per.rounds);
        loop {
            // In this order: who has ended has counted its rounds before.
            let alone = counters.running[per.role].load(Ordering::Acquire) == 0;
            if counters.rounds[per.role].load(Ordering::Acquire) >= wanted {
                self.ticket = None;
                return true;
            }
            let at = Nanos(gate.clock.now().0.saturating_add(LOOK.0));
            if alone || !gate.nap_until(at) {
                return false;
            }
        }
    }

    /// The round was got ready for and does not begin.
    fn not_begun(&mut self) {
        self.due = self.round.intended;
        self.begun -= 1;
    }

    /// Pauses for so long, behind what is waited for already.
    fn pause(&mut self, time: Nanos, gate: &Gate) {
        let from = self.ended.max(gate.start);
        let from = from.max(self.not_before.unwrap_or(Nanos(0)));
        self.wait_until(Nanos(from.0.saturating_add(time.0)));
    }

    fn wait_until(&mut self, at: Nanos) {
        self.not_before = self.not_before.max(Some(at));
    }

    /// The names of a step.
    fn name(&self, chosen: &Chosen, names: &mut Names) {
        let tree = &self.trees[chosen.set];
        match chosen.on {
            On::Slot => {}
            On::Name(number) => names.path.set(|to| tree.name(number, to)),
            On::Directory(number) => names.path.set(|to| tree.leaf(number, to)),
        }
        match chosen.other {
            Some(number) => names.other.set(|to| tree.name(number, to)),
            None if chosen.action == Action::Symlink => names.other.set(|to| to.extend(TARGET)),
            None => {}
        }
    }

    /// A round is over: notes it, if all of it was done.
    fn end_round(&mut self, whole: bool, gate: &Gate, meter: &mut Meter) -> bool {
        self.first = false;
        let Round {
            intended,
            span,
            bytes,
        } = std::mem::take(&mut self.round);
        if span.is_some() {
            self.counters.rounds[self.role].fetch_add(1, Ordering::Release);
        }
        if let (Some(row), Some((start, end))) = (self.role().row_of_rounds(), span) {
            match whole {
                true => {
                    let span = Span {
                        intended,
                        start,
                        end,
                    };
                    meter.as_well(row, span, bytes);
                }
                false => meter.lacked(row),
            }
        }
        if self.mix.think.0 > 0 {
            self.pause(self.mix.think, gate);
        }
        if span.is_some() {
            return true;
        }
        // Nothing could be done: its pauses are made all the same.
        if let Some(at) = self.not_before.take()
            && !gate.nap_until(at)
        {
            return false;
        }
        // Neither in a hurry for long, nor for ever.
        self.idle = self.idle.saturating_add(1);
        let now = gate.clock.now();
        match self.idle < IDLE_MAX {
            true => !gate.closed(now),
            false => gate.nap_until(Nanos(now.0.saturating_add(LOOK.0))),
        }
    }
}

impl Script for MixScript {
    fn next(&mut self, names: &mut Names, gate: &Gate, meter: &mut Meter) -> Next<Step> {
        if self.course.begins_round() && !self.first && self.begin_round(gate).is_none() {
            return Next::End(true);
        }
        match self.course.turn() {
            Turn::Do(chosen) => {
                self.name(&chosen, names);
                let intended = self.round.intended.filter(|_| self.first);
                Next::Operation(Step {
                    action: chosen.action,
                    op: chosen.op,
                    lane: chosen.row,
                    slot: chosen.set,
                    intended,
                    not_before: self.not_before.take(),
                })
            }
            Turn::Lacks(row) => {
                // What is passed over is due at its time as well.
                if let Some(at) = self.round.intended.filter(|_| self.first)
                    && !gate.wait(at)
                {
                    self.not_begun();
                    return Next::End(false);
                }
                self.first = false;
                meter.lacked(row);
                Next::Again
            }
            Turn::Pause(time) => {
                self.pause(time, gate);
                Next::Again
            }
            Turn::Ready => Next::Again,
            Turn::RoundOver(whole) => match self.end_round(whole, gate, meter) {
                true => Next::Again,
                false => Next::End(false),
            },
        }
    }

    fn put_back(&mut self, _step: Step) {
        if self.first {
            self.not_begun();
        }
    }

    fn ended(
        &mut self,
        step: &Step,
        outcome: Result<u64, FailureKind>,
        (start, end): (Nanos, Nanos),
    ) -> Verdict {
        self.ended = end;
        self.idle = 0;
        let bytes = outcome.unwrap_or(0);
        let from = self.round.span.map_or(start, |(start, _)| start);
        self.round.span = Some((from, end));
        self.round.bytes += bytes;
        let span = Span {
            intended: step.intended,
            start,
            end,
        };
        self.done = outcome.is_ok().then_some((span, bytes));
        let gone = [Errno::ENOENT, Errno::ESTALE].map(FailureKind::from);
        let came = match outcome {
            Ok(_) => Came::Done,
            Err(kind) if gone.contains(&kind) => Came::Gone,
            Err(kind) if kind == Errno::EEXIST.into() => Came::Exists,
            Err(_) => Came::Failed,
        };
        let missed = self.course.ended(came);
        // What is tried again is still what was due.
        self.first &= self.course.tries_again();
        match missed {
            true => Verdict::Missed,
            false => Verdict::Plain,
        }
    }

    fn recorded(&mut self, _step: &Step, _gate: &Gate, meter: &mut Meter) {
        if let Some((span, bytes)) = self.done.take() {
            meter.as_well(self.role().row_of_all(), span, bytes);
        }
    }

    fn lane_of_close(&self) -> usize {
        self.role().row_of_closes()
    }

    fn over(&mut self, gate: &Gate, meter: &mut Meter) {
        self.counters.running[self.role].fetch_sub(1, Ordering::Release);
        let Some(schedule) = &mut self.schedule else {
            return;
        };
        let next = self
            .due
            .unwrap_or_else(|| Nanos(gate.start.0.saturating_add(schedule.next_start().0)));
        let left = self
            .mix
            .rounds
            .map_or(u64::MAX, |most| most - self.begun.min(most));
        let missed = gate.missed(schedule, next, left);
        let role = &self.mix.roles[self.role];
        match role.row_of_rounds() {
            Some(row) => meter.unissued(row, missed),
            // Nobody knows what would have been drawn.
            None => meter.unissued(role.row_of_all(), missed),
        }
    }

    fn planned(&self) -> u64 {
        let role = self.role();
        let each = if role.draws() {
            1
        } else {
            role.steps.len() as u64
        };
        self.mix.rounds.unwrap_or(0).saturating_mul(each)
    }
}
