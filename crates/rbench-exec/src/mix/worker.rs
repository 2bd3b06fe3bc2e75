//! A worker of a mix: its course, and when each round begins. One round is in flight, or several
//! that know nothing of each other but which names are in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rbench_core::{Call, Clock as _, FailureKind, Nanos, Script};
use rbench_plan::MixPlan;
use rbench_plan::arrival::Schedule;
use rbench_plan::mix::Role;
use rbench_plan::mix::course::{Came, Chosen, Course, On, Turn};
use rbench_plan::mix::names::Tree;

use super::TARGET;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::steps::{Coming, Names, Source, Step, Verdict};

/// Time between checks of the others' progress by a worker that waits for them.
const LOOK: Nanos = Nanos(5_000_000);

/// Rounds without any operation before a worker takes its time.
const IDLE_MAX: u32 = 64;

/// Progress of the workers of a rank, by role.
pub(super) struct Counters {
    /// Rounds that all workers have done.
    rounds: Vec<AtomicU64>,
    /// Rounds that followers have started.
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

/// Measurements of a round.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    intended: Option<Nanos>,
    /// Start of its first operation, and end of its last.
    span: Option<(Nanos, Nanos)>,
    bytes: u64,
}

/// A round in flight, and what comes between it and the next one.
#[derive(Debug, Clone, Copy, Default)]
struct Flight {
    round: Round,
    /// Nothing starts before that.
    not_before: Option<Nanos>,
    /// The next step is the first of its round.
    first: bool,
    /// The first operation found no name, and is passed over when it is due: its row.
    lacks: Option<usize>,
    /// The next round does not begin before that.
    rest: Option<Nanos>,
    /// The round of other roles that the next round waits for.
    ticket: Option<u64>,
    /// Rounds without any operation, one after the other.
    idle: u32,
    /// End of the last operation.
    ended: Nanos,
    /// Bytes of the operation that has ended, if it was done.
    done: Option<(Span, u64)>,
}

/// The steps of a worker.
pub(super) struct MixSource {
    mix: Arc<MixPlan>,
    role: usize,
    course: Course,
    trees: Vec<Arc<Tree>>,
    schedule: Option<Arc<Schedule>>,
    counters: Arc<Counters>,
    /// The worker's own among those of its role.
    within: u32,
    /// Rounds, or operations drawn, that it has started.
    begun: u64,
    /// The intended start that was taken from the schedule, if its round has not started.
    due: Option<Nanos>,
    flights: Vec<Flight>,
    /// It is counted as a running worker.
    counted: bool,
}

impl Drop for MixSource {
    fn drop(&mut self) {
        // Others would wait for one that could not be prepared.
        self.count_out();
    }
}

impl MixSource {
    pub(super) fn new(
        (mix, role, within): (Arc<MixPlan>, usize, u32),
        course: Course,
        trees: Vec<Arc<Tree>>,
        schedule: Option<Arc<Schedule>>,
        counters: Arc<Counters>,
    ) -> MixSource {
        // All are prepared before any of them runs.
        counters.running[role].fetch_add(1, Ordering::Relaxed);
        MixSource {
            flights: vec![Flight::default(); mix.rounds_in_flight()],
            mix,
            role,
            course,
            trees,
            schedule,
            counters,
            within,
            begun: 0,
            due: None,
            counted: true,
        }
    }

    /// It runs no more.
    fn count_out(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.counters.running[self.role].fetch_sub(1, Ordering::Release);
        }
    }

    fn role(&self) -> &Role {
        &self.mix.roles[self.role]
    }

    /// Prepares a round. Returns what comes in its place if there is none any more, or not yet.
    fn begin_round(&mut self, flight: usize, gate: &Gate) -> Option<Coming> {
        if let Some(at) = self.flights[flight].rest.take() {
            return Some(Coming::Later(at));
        }
        if self.mix.rounds.is_some_and(|most| self.begun >= most) {
            return Some(Coming::End);
        }
        if let Some(instead) = self.look_at_others(flight, gate) {
            return Some(instead);
        }
        if let Some(every) = self.role().every {
            // Workers of a role do not all begin at once.
            let threads = u64::from(self.role().threads.max(1));
            let behind = every.0 / threads * u64::from(self.within);
            let at = every.0.saturating_mul(self.begun).saturating_add(behind);
            self.wait_until(flight, Nanos(gate.start.0.saturating_add(at)));
        }
        let due = self.due.take();
        let intended = due.or_else(|| {
            let at = self.schedule.as_ref()?.next_start();
            Some(Nanos(gate.start.0.saturating_add(at.0)))
        });
        self.begun += 1;
        let flight = &mut self.flights[flight];
        flight.round = Round {
            intended,
            ..Round::default()
        };
        flight.first = true;
        None
    }

    /// Checks if those that the role follows have done their rounds. If not, returns when to look
    /// again, or that they have ended.
    fn look_at_others(&mut self, flight: usize, gate: &Gate) -> Option<Coming> {
        let per = self.role().per?;
        let counters = &self.counters;
        let own = &counters.begun[self.role];
        let ticket = *self.flights[flight]
            .ticket
            .get_or_insert_with(|| own.fetch_add(1, Ordering::Relaxed) + 1);
        let wanted = ticket.saturating_mul(per.rounds);
        // In this order: who has ended has counted its rounds before.
        let alone = counters.running[per.role].load(Ordering::Acquire) == 0;
        if counters.rounds[per.role].load(Ordering::Acquire) >= wanted {
            self.flights[flight].ticket = None;
            return None;
        }
        Some(match alone {
            true => Coming::End,
            false => Coming::Later(Nanos(gate.clock.now().0.saturating_add(LOOK.0))),
        })
    }

    /// Pauses for this time, after any wait that is pending.
    fn pause(&mut self, flight: usize, time: Nanos, gate: &Gate) {
        let Flight {
            ended, not_before, ..
        } = self.flights[flight];
        let from = ended.max(gate.start).max(not_before.unwrap_or(Nanos(0)));
        self.wait_until(flight, Nanos(from.0.saturating_add(time.0)));
    }

    fn wait_until(&mut self, flight: usize, at: Nanos) {
        let not_before = &mut self.flights[flight].not_before;
        *not_before = (*not_before).max(Some(at));
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
            None if chosen.script == Script::of(Call::Symlink) => {
                names.other.set(|to| to.extend(TARGET))
            }
            None => {}
        }
    }

    /// A round is over: notes it, if all of it was done.
    fn end_round(&mut self, flight: usize, whole: bool, gate: &Gate, meter: &mut Meter) {
        let over = &mut self.flights[flight];
        over.first = false;
        let Round {
            intended,
            span,
            bytes,
        } = std::mem::take(&mut over.round);
        if span.is_some() {
            self.counters.rounds[self.role].fetch_add(1, Ordering::Release);
        }
        if let (Some(row), Some((start, end))) = (self.role().row_of_rounds(), span) {
            match whole {
                true => meter.as_well(row, Span::due(intended, start, end), bytes),
                false => meter.lacked(row),
            }
        }
        if self.mix.think.0 > 0 {
            self.pause(flight, self.mix.think, gate);
        }
        if span.is_some() {
            return;
        }
        // Nothing could be done: its pauses are made all the same, and it is neither in a hurry
        // for long, nor for ever.
        let over = &mut self.flights[flight];
        over.idle = over.idle.saturating_add(1);
        let now = gate.clock.now();
        let hurry = match over.idle < IDLE_MAX {
            true => now,
            false => Nanos(now.0.saturating_add(LOOK.0)),
        };
        over.rest = over.not_before.take().max(Some(hurry));
    }
}

impl Source for MixSource {
    fn next(&mut self, flight: usize, names: &mut Names, gate: &Gate, meter: &mut Meter) -> Coming {
        if let Some(row) = self.flights[flight].lacks.take() {
            self.flights[flight].first = false;
            meter.lacked(row);
            return Coming::Again;
        }
        if self.course.begins_round(flight)
            && !self.flights[flight].first
            && let Some(instead) = self.begin_round(flight, gate)
        {
            return instead;
        }
        let turn = self.course.turn(flight);
        let own = &mut self.flights[flight];
        let intended = own.round.intended.filter(|_| own.first);
        match turn {
            Turn::Do(chosen) => {
                let (not_before, begins) = (own.not_before.take(), own.first);
                self.name(&chosen, names);
                Coming::Step(Step {
                    script: chosen.script,
                    op: chosen.op,
                    lane: chosen.row,
                    flight,
                    begins,
                    slot: self.course.file(flight, chosen.set),
                    intended,
                    not_before,
                })
            }
            Turn::Lacks(row) => {
                own.lacks = Some(row);
                // A round that is passed over is due at its time as well.
                intended.map_or(Coming::Again, Coming::Due)
            }
            Turn::Pause(time) => {
                self.pause(flight, time, gate);
                Coming::Again
            }
            Turn::Ready => Coming::Again,
            Turn::RoundOver(whole) => {
                self.end_round(flight, whole, gate, meter);
                // A place that rests does not keep others from starting what is due.
                let rests = self.is_paced() && self.flights.len() > 1;
                let own = &mut self.flights[flight];
                let rest = own.rest.max(own.not_before).filter(|_| rests);
                if rest.is_some() {
                    (own.rest, own.not_before) = (None, None);
                }
                Coming::RoundOver(rest)
            }
        }
    }

    /// A round that was got ready for and does not begin.
    fn put_back(&mut self, flight: usize) {
        let own = &mut self.flights[flight];
        // A round that is tried again has started.
        if std::mem::take(&mut own.first) && own.round.span.is_none() {
            let due = [self.due, own.round.intended];
            self.due = due.into_iter().flatten().min();
            self.begun -= 1;
        }
    }

    fn ended(
        &mut self,
        step: &Step,
        outcome: Result<u64, FailureKind>,
        (start, end): (Nanos, Nanos),
    ) -> Verdict {
        let own = &mut self.flights[step.flight];
        own.ended = end;
        own.idle = 0;
        let bytes = outcome.unwrap_or(0);
        let from = own.round.span.map_or(start, |(start, _)| start);
        own.round.span = Some((from, end));
        own.round.bytes += bytes;
        let span = Span::due(step.intended, start, end);
        own.done = outcome.is_ok().then_some((span, bytes));
        let gone = [Errno::ENOENT, Errno::ESTALE].map(FailureKind::from);
        let came = match outcome {
            Ok(_) => Came::Done,
            Err(kind) if gone.contains(&kind) => Came::Gone,
            Err(kind) if kind == Errno::EEXIST.into() => Came::Exists,
            Err(_) => Came::Failed,
        };
        let missed = self.course.ended(step.flight, came);
        // A round that is tried again keeps its intended start.
        own.first &= self.course.tries_again(step.flight);
        match missed {
            true => Verdict::Missed,
            false => Verdict::Plain,
        }
    }

    fn recorded(&mut self, step: &Step, _gate: &Gate, meter: &mut Meter) {
        if let Some((span, bytes)) = self.flights[step.flight].done.take() {
            meter.as_well(self.role().row_of_all(), span, bytes);
        }
    }

    fn lane_of_close(&self) -> usize {
        self.role().row_of_closes()
    }

    fn over(&mut self, gate: &Gate, meter: &mut Meter) {
        self.count_out();
        let leader = self.role().per.map(|per| &self.mix.roles[per.role]);
        let follows_times = leader.is_some_and(|leader| leader.every.is_some());
        if self.is_paced() || follows_times {
            meter.extend_to(gate.end_of_time().unwrap_or_default());
        }
        let Some(schedule) = &self.schedule else {
            return;
        };
        let left = self
            .mix
            .rounds
            .map_or(u64::MAX, |most| most - self.begun.min(most));
        let missed = gate.missed(schedule, self.due, left);
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

    fn comes_before_rounds(&self) -> bool {
        self.course.comes_before_rounds()
    }

    fn ends_round(&self, flight: usize) -> bool {
        self.course.ends_round(flight)
    }

    fn is_paced(&self) -> bool {
        self.schedule.is_some() || self.role().every.is_some()
    }
}
