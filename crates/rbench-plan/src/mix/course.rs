//! Course of a mix's worker: its next step and the names that it uses. Pure, except for its
//! knowledge of existing names.
//!
//! A worker has one or several rounds in flight, each with its own position in the list and open
//! files. The number of a round determines its content: the drawn operation, lengths and offsets.
//! The files depend on those that other workers leave to it. It never uses a file that another
//! round in flight uses (`uses.rs`).

use std::sync::Arc;

use rbench_core::random::Stream;
use rbench_core::{By, Call, Nanos, OpKind, OpenFlags, Part, Script, Times, linux};

use super::share::Share;
use super::uses::{Use, Uses};
use super::{CHUNK, MixPlan, Need, Place, Role, SetKind, Step, Verb};

/// Writes `bytes`, unless that is 0.
pub fn all_of(bytes: u64) -> Option<Part> {
    (bytes > 0).then_some(Part {
        call: Call::Write,
        times: Times::UntilWritten(bytes),
    })
}

/// Number of attempts to draw another name.
const DRAWS: u32 = 16;
/// Permissions that are set in turn.
const MODES: [u32; 2] = [0o644, 0o664];
/// Base of the times that are set, in the year 2001.
const TIMES: u64 = 1_000_000_000;

/// A step with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The calls.
    pub script: Script,
    /// Its kind.
    pub op: OpKind,
    /// Its row among those of the role.
    pub row: usize,
    /// The set.
    pub set: usize,
    /// The path.
    pub on: On,
    /// The number of the second name, if any.
    pub other: Option<u64>,
}

/// Path of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// No path: the file is open.
    Slot,
    /// The name with that number.
    Name(u64),
    /// The directory of the set with that number.
    Directory(u64),
}

/// Next action of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Perform this step.
    Do(Chosen),
    /// Skip the operation of this row, as it found no name.
    Lacks(usize),
    /// A pause.
    Pause(Nanos),
    /// The steps before the first round are complete.
    Ready,
    /// The round is over; true if all of it was done.
    RoundOver(bool),
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// Without error.
    Done,
    /// The name did not exist, or an open file was removed.
    Gone,
    /// The name already existed.
    Exists,
    /// With another error.
    Failed,
}

/// A worker's open file of a set.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    open: bool,
    name: u64,
    /// Offset of the next sequential read or write.
    next: u64,
}

/// A round in flight.
#[derive(Debug, Default)]
struct Flight {
    /// Its own open files.
    slots: Vec<Slot>,
    /// The name that was used last, for each set.
    last: Vec<Option<u64>>,
    /// The next step of the list.
    at: usize,
    /// True if the last attempt used a name that was removed: the next one takes a name of the
    /// worker.
    again: bool,
    /// True if all steps of the round were done until now.
    whole: bool,
    /// The step in progress.
    current: Option<(Step, Chosen)>,
    /// Seed of the round's content.
    seed: u64,
    /// Random stream of the round, created when it is needed.
    draws: Option<Stream>,
}

impl Flight {
    fn draws(&mut self) -> &mut Stream {
        let seed = self.seed;
        self.draws.get_or_insert_with(|| Stream::new(&[seed]))
    }
}

/// Position of a worker in its list.
#[derive(Debug)]
pub struct Course {
    plan: Arc<MixPlan>,
    role: usize,
    /// Number of directories that contain names, for each set.
    leaves: Vec<u64>,
    seed: u64,
    /// Stream that draws names.
    names: Stream,
    /// Stream of the rounds' seeds.
    rounds: Stream,
    shares: Vec<Share>,
    /// True if workers of any kind add, remove or rename names, for each set.
    changed: Vec<bool>,
    /// True if all rounds share a file that was opened before the first, for each set.
    held: Vec<bool>,
    /// Open files of all rounds: shared ones, and the positions of drawn operations.
    slots: Vec<Slot>,
    flights: Vec<Flight>,
    uses: Uses,
    /// True before the first round.
    first: bool,
    /// Number of changes of attributes until now.
    changes: u64,
}

impl Course {
    /// Creates the course of a worker with `flights` rounds in flight; `shares` and `leaves` are
    /// per set.
    pub fn new(
        (plan, flights): (Arc<MixPlan>, usize),
        role: usize,
        seed: u64,
        mut draws: Stream,
        (shares, leaves): (Vec<Share>, Vec<u64>),
    ) -> Course {
        let sets = plan.sets.len();
        let changed = |set| plan.roles.iter().any(|role| role.changes(set));
        let own = &plan.roles[role];
        let mut rounds = Stream::new(&[draws.next_u64()]);
        let before = rounds.next_u64();
        let flight = |_| Flight {
            slots: vec![Slot::default(); sets],
            last: vec![None; sets],
            whole: true,
            seed: before,
            ..Flight::default()
        };
        let all = (0..flights).map(flight).collect();
        Course {
            changed: (0..sets).map(changed).collect(),
            held: (0..sets).map(|set| own.holds(set)).collect(),
            slots: vec![Slot::default(); sets],
            flights: all,
            uses: Uses::new(flights, own, sets),
            first: !own.first.is_empty(),
            rounds,
            names: draws,
            plan,
            role,
            leaves,
            seed,
            shares,
            changes: 0,
        }
    }

    fn role(&self) -> &Role {
        &self.plan.roles[self.role]
    }

    /// True while the steps before the first round are not complete.
    pub fn comes_before_rounds(&self) -> bool {
        self.first
    }

    /// True if the next step starts a round.
    pub fn begins_round(&self, flight: usize) -> bool {
        let flight = &self.flights[flight];
        !self.first && flight.at == 0 && !flight.again
    }

    /// True if the next step repeats the last one with another name.
    pub fn tries_again(&self, flight: usize) -> bool {
        self.flights[flight].again
    }

    /// True if all steps of a round are done.
    pub fn ends_round(&self, flight: usize) -> bool {
        let (role, flight) = (self.role(), &self.flights[flight]);
        let steps = if role.draws() { 1 } else { role.steps.len() };
        !self.first && flight.at >= steps
    }

    /// The number of the open file of a set, below the rounds in flight times the sets.
    pub fn file(&self, flight: usize, set: usize) -> usize {
        match self.held[set] {
            true => set,
            false => flight * self.plan.sets.len() + set,
        }
    }

    /// State of a set's open file in a round.
    fn slot(&mut self, flight: usize, set: usize) -> &mut Slot {
        match self.held[set] || self.drawn() {
            true => &mut self.slots[set],
            false => &mut self.flights[flight].slots[set],
        }
    }

    /// The next action of a round. Before the first round, it is called for flight 0 until those
    /// steps are complete.
    pub fn turn(&mut self, flight: usize) -> Turn {
        if self.begins_round(flight) {
            let round = &mut self.flights[flight];
            (round.seed, round.draws) = (self.rounds.next_u64(), None);
        }
        let step = loop {
            let Some(step) = self.step(flight) else {
                return self.round_over(flight);
            };
            // Steps on a file that could not be opened are skipped, up to its close.
            let open = self.slot(flight, step.set).open || self.whole_of(&step);
            if step.verb.need() != Need::Open || open {
                break step;
            }
            self.pass_over(flight);
        };
        if let Verb::Think(time) = step.verb {
            self.flights[flight].at += 1;
            return Turn::Pause(time);
        }
        match self.choose(flight, &step) {
            Some(chosen) => {
                self.flights[flight].current = Some((step, chosen));
                Turn::Do(chosen)
            }
            None => {
                self.pass_over(flight);
                Turn::Lacks(step.row)
            }
        }
    }

    /// The next step of a round; `None` if the round is over.
    fn step(&mut self, flight: usize) -> Option<Step> {
        let role = &self.plan.roles[self.role];
        let round = &mut self.flights[flight];
        if self.first {
            return role.first.get(round.at).copied();
        }
        match (role.draws(), round.current) {
            // The same operation again.
            (true, Some((step, _))) if round.again => Some(step),
            (true, _) if round.at > 0 => None,
            (true, _) => Some(role.steps[draw(&role.weights, &mut self.rounds)]),
            (false, _) => role.steps.get(round.at).copied(),
        }
    }

    fn round_over(&mut self, flight: usize) -> Turn {
        let first = std::mem::take(&mut self.first);
        let several = self.flights.len() > 1;
        let round = &mut self.flights[flight];
        let whole = std::mem::replace(&mut round.whole, true);
        round.at = 0;
        if several {
            // Other workers may remove it from now on.
            round.last.fill(None);
        }
        self.uses.end(flight);
        match first {
            true => Turn::Ready,
            false => Turn::RoundOver(whole),
        }
    }

    /// Skips the current step.
    fn pass_over(&mut self, flight: usize) {
        let round = &mut self.flights[flight];
        (round.at, round.again, round.whole) = (round.at + 1, false, false);
    }

    /// A name of a set to read: one that no other round in flight uses, or else one that no round
    /// changes. `own` selects the worker's own names.
    fn look(&mut self, flight: usize, set: usize, own: bool) -> Option<u64> {
        let (share, uses, names) = (&self.shares[set], &self.uses, &mut self.names);
        let mut name = |what| {
            let taken = |name| uses.by_others(flight, (set, name), what);
            match own {
                true => share.own_there(names, taken),
                false => share.any_there(names, taken),
            }
        };
        let free = name(Use::Looks);
        match free.is_none() && uses.any() {
            true => name(Use::Changes),
            false => free,
        }
    }

    /// A name of the worker to change, existing or not, that no other round in flight uses.
    fn change(&mut self, flight: usize, set: usize, there: bool) -> Option<u64> {
        let (share, uses) = (&self.shares[set], &self.uses);
        let taken = |name| uses.by_others(flight, (set, name), Use::Looks);
        match there {
            true => share.own_there(&mut self.names, taken),
            false => share.own_free(&mut self.names, taken),
        }
    }

    /// The names of a step; `None` if there is none for it.
    fn choose(&mut self, flight: usize, step: &Step) -> Option<Chosen> {
        let set = step.set;
        let whole = self.whole_of(step);
        let round = &self.flights[flight];
        let again = round.again;
        let last = round.last[set].filter(|_| step.last && !again);
        let own = last.filter(|last| self.shares[set].owns(*last));
        let need = step.verb.need();
        let other = match need {
            Need::Copy | Need::Move => Some(self.change(flight, set, false)?),
            Need::Over => {
                let from = own?;
                // A file is not renamed to itself.
                let mut all = (0..DRAWS).filter_map(|_| self.change(flight, set, true));
                Some(all.find(|to| *to != from)?)
            }
            _ => None,
        };
        let name = match (need, last, own) {
            (Need::There | Need::Copy, Some(last), _) => Some(last),
            (Need::There | Need::Copy, None, _) => Some(self.look(flight, set, again)?),
            (Need::OwnThere | Need::Move | Need::Over, _, Some(own)) => Some(own),
            (Need::OwnThere | Need::Move, _, None) => Some(self.change(flight, set, true)?),
            (Need::OwnFree, ..) => Some(self.change(flight, set, false)?),
            (Need::Open, ..) if whole => Some(self.look(flight, set, again)?),
            (Need::Open | Need::Nothing | Need::Directory | Need::Over, ..) => None,
        };
        let on = match (name, need) {
            (Some(name), _) => On::Name(name),
            (None, Need::Directory) => On::Directory(self.names.below(self.leaves[set].max(1))),
            (None, _) => On::Slot,
        };
        let script = self.script(flight, step, name);
        let directories = self.plan.sets[set].kind == SetKind::Directories;
        let op = step.verb.word(directories)?.op;
        let what = match step.verb.changes_names() {
            true => Use::Changes,
            false => Use::Looks,
        };
        for name in name.into_iter().chain(other) {
            self.uses.begin(flight, (set, name), what);
        }
        Some(Chosen {
            script,
            op,
            row: step.row,
            set,
            on,
            other,
        })
    }

    /// True if operations are drawn now; they open their files themselves.
    fn drawn(&self) -> bool {
        self.role().draws() && !self.first
    }

    /// True if the step opens and closes its file itself.
    fn whole_of(&self, step: &Step) -> bool {
        self.drawn() && step.verb.need() == Need::Open
    }

    fn size_of(&self, set: usize, name: u64) -> u64 {
        self.plan.sets[set].sizes.of(&[self.seed, set as u64, name])
    }

    /// The calls of a step.
    fn script(&mut self, flight: usize, step: &Step, name: Option<u64>) -> Script {
        let (set, verb, drawn) = (step.set, step.verb, self.drawn());
        match verb {
            Verb::Create(flags) if drawn => {
                let bytes = self.size_of(set, name.unwrap_or(0));
                Script::whole(flags, all_of(bytes), CHUNK)
            }
            Verb::Open(flags) if drawn => Script::whole(flags, None, 0),
            Verb::Plain(word, _) if word.op == OpKind::Chmod => {
                self.changes += 1;
                Script::of(Call::Chmod(By::Path, MODES[(self.changes % 2) as usize]))
            }
            Verb::Plain(word, _) if word.op == OpKind::Utimes => {
                self.changes += 1;
                Script::of(Call::Utimes(By::Link, Some((TIMES + self.changes) as i64)))
            }
            Verb::Close => Script::of(Call::Close),
            verb if verb.need() == Need::Open => {
                let name = name.unwrap_or(self.slot(flight, set).name);
                let (part, length) = self.on_open(flight, verb, (set, name));
                match drawn {
                    true => Script::whole(flags_of(verb), part, length),
                    false => Script::new(part, length),
                }
            }
            verb => {
                let directories = self.plan.sets[set].kind == SetKind::Directories;
                let call = verb.call(directories);
                Script::new(call.map(Part::once), verb.call_bytes())
            }
        }
    }

    /// The call of a step on an open file, and its length in bytes.
    fn on_open(
        &mut self,
        flight: usize,
        verb: Verb,
        (set, name): (usize, u64),
    ) -> (Option<Part>, u64) {
        let (call, length) = match verb {
            Verb::ReadWhole(chunk) => {
                let read = Part {
                    call: Call::Read,
                    times: Times::UntilShort,
                };
                return (Some(read), chunk);
            }
            Verb::WriteWhole(chunk) => return (all_of(self.size_of(set, name)), chunk),
            Verb::Read(bytes, place) => {
                let at = self.place(flight, place, set, (bytes, name));
                (Some(Call::ReadAt(at)), bytes)
            }
            Verb::Write(bytes, place) => {
                let at = self.place(flight, place, set, (bytes, name));
                (Some(Call::WriteAt(at)), bytes)
            }
            Verb::Append(least, most) => {
                let more = self.flights[flight].draws().below(most - least + 1);
                (Some(Call::Write), least + more)
            }
            verb => (verb.call(false), verb.call_bytes()),
        };
        (call.map(Part::once), length)
    }

    /// The offset of the next transfer of `bytes` bytes.
    fn place(&mut self, flight: usize, place: Place, set: usize, (bytes, name): (u64, u64)) -> u64 {
        let size = self.size_of(set, name);
        match place {
            Place::Random => self.flights[flight].draws().below((size / bytes).max(1)) * bytes,
            Place::Next => {
                let slot = self.slot(flight, set);
                // A transfer that no longer fits starts at the beginning again.
                let at = if slot.next + bytes > size {
                    0
                } else {
                    slot.next
                };
                slot.next = at + bytes;
                at
            }
        }
    }

    /// Takes the result of a round's current step. Returns true for a miss: another worker was
    /// faster, which is not an error.
    pub fn ended(&mut self, flight: usize, came: Came) -> bool {
        let Some((step, chosen)) = self.flights[flight].current else {
            return false;
        };
        let set = step.set;
        let name = match chosen.on {
            On::Name(name) => name,
            On::Slot => self.slot(flight, set).name,
            On::Directory(_) => 0,
        };
        let need = step.verb.need();
        let looks = matches!(need, Need::There | Need::Open | Need::Copy);
        // A missing name that no other worker may remove was lost by the file system.
        let taken = self.changed[set] && !self.shares[set].owns(name);
        let missed = came == Came::Gone && looks && taken;
        // Repeat it with a name that no other worker removes, if there is one.
        let of_name = matches!(chosen.on, On::Name(_));
        let once_more = missed && !self.flights[flight].again && of_name;
        if once_more && self.shares[set].has_own_there() {
            self.flights[flight].again = true;
            self.keep_uses(flight);
            return true;
        }
        if of_name {
            self.correct(need, came, (set, name));
        }
        let round = &mut self.flights[flight];
        (round.again, round.at) = (false, round.at + 1);
        round.whole &= came == Came::Done;
        if step.verb == Verb::Close {
            self.slot(flight, set).open = false;
        }
        if came == Came::Done {
            self.note(flight, &step, (&chosen, name));
        }
        self.keep_uses(flight);
        missed
    }

    /// Releases the names that the round no longer uses after a step: all except those of open
    /// files and those it may come back to.
    fn keep_uses(&mut self, flight: usize) {
        let round = &self.flights[flight];
        let open = round
            .slots
            .iter()
            .map(|slot| slot.open.then_some(slot.name));
        self.uses.keep(flight, open, &round.last);
    }

    /// Corrects the knowledge of an own name after a failed step, so that the error is reported
    /// only once.
    fn correct(&mut self, need: Need, came: Came, (set, name): (usize, u64)) {
        let share = &mut self.shares[set];
        if !share.owns(name) {
            return;
        }
        match (came, need) {
            (Came::Exists, Need::OwnFree) => share.note(name, true),
            (_, Need::OwnFree | Need::Directory | Need::Nothing) => {}
            (Came::Gone, _) => share.note(name, false),
            _ => {}
        }
    }

    /// Records the changes of the step.
    fn note(&mut self, flight: usize, step: &Step, (chosen, name): (&Chosen, u64)) {
        let set = step.set;
        let drawn = self.drawn();
        let share = &mut self.shares[set];
        let last = &mut self.flights[flight].last[set];
        match step.verb.need() {
            Need::OwnFree => share.note(name, true),
            Need::Copy => {
                if let Some(other) = chosen.other {
                    share.note(other, true);
                }
            }
            Need::OwnThere => {
                share.note(name, false);
                *last = last.filter(|last| *last != name);
                return;
            }
            Need::Move | Need::Over => {
                share.note(name, false);
                if let Some(other) = chosen.other {
                    share.note(other, true);
                    *last = Some(other);
                }
                return;
            }
            _ => {}
        }
        if matches!(chosen.on, On::Name(_)) {
            *last = Some(name);
        }
        if let (Verb::Create(_) | Verb::Open(_), false) = (step.verb, drawn) {
            *self.slot(flight, set) = Slot {
                open: true,
                name,
                next: 0,
            };
        }
    }
}

/// Flags with which a drawn operation opens its file.
fn flags_of(verb: Verb) -> OpenFlags {
    let appends = matches!(verb, Verb::Append(..));
    let writes = verb.changes_file() || verb.syncs();
    let appending = if appends { linux::APPEND } else { 0 };
    OpenFlags::NONE.access(!writes, writes).with(appending)
}

/// Draws the number of a step by weight.
fn draw(weights: &[u64], draws: &mut Stream) -> usize {
    let total: u64 = weights.iter().sum();
    let mut left = draws.below(total.max(1));
    for (number, weight) in weights.iter().enumerate() {
        if left < *weight {
            return number;
        }
        left -= weight;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::share::{Existence, is_prepared};
    use crate::resolve::{Facts, Work};
    use crate::spec::{Common, Mix, MixText, Workload};

    /// The courses of the only rank's workers, with one round in flight each.
    fn courses(mix: Mix, threads: u32) -> Vec<Course> {
        courses_in_flight(mix, threads, 1)
    }

    fn courses_in_flight(mix: Mix, threads: u32, flights: usize) -> Vec<Course> {
        let common = Common {
            dir: Some("/mnt".into()),
            threads: Some(threads),
            ..Common::default()
        };
        let plan = Facts::on(&[0]).plan(common, Workload::Mix(Box::new(mix)));
        let Work::Mix(plan) = plan.expect("it can be done").work else {
            panic!("it is no mix");
        };
        let plan = Arc::new(plan);
        let all: Vec<Arc<Existence>> = (0..plan.sets.len())
            .map(|set| {
                let (of, owners) = (&plan.sets[set], plan.owners(set));
                let exists = |name| is_prepared(name, owners, of.prepared);
                Arc::new(Existence::new(of.number, exists))
            })
            .collect();
        let course = |thread| {
            let shares = plan.sets.iter().enumerate().map(|(set, of)| {
                let me = (plan.owner(set, thread), plan.owners(set));
                Share::new(Arc::clone(&all[set]), of.number, me, of.prepared)
            });
            let role = plan.role_of(thread).0;
            let draws = Stream::new(&[5, u64::from(thread)]);
            let leaves = vec![1; plan.sets.len()];
            Course::new(
                (Arc::clone(&plan), flights),
                role,
                1,
                draws,
                (shares.collect(), leaves),
            )
        };
        (0..threads).map(course).collect()
    }

    fn list(text: &str) -> Mix {
        half_of_forty(MixText::List(text.to_owned()))
    }

    fn ops(text: &str) -> Mix {
        half_of_forty(MixText::Ops(text.to_owned()))
    }

    fn half_of_forty(text: MixText) -> Mix {
        Mix {
            text,
            files: Some(40),
            prepared: Some(50),
            ..Mix::default()
        }
    }

    fn name_of(chosen: &Chosen) -> Option<u64> {
        match chosen.on {
            On::Name(name) => Some(name),
            On::Slot | On::Directory(_) => None,
        }
    }

    fn creates(chosen: &Chosen) -> bool {
        matches!(chosen.script.only(), Some(Call::Open(flags)) if flags.creates())
    }

    /// Checks with a model of the existing names that every step of an owner finds what it needs.
    #[test]
    fn steps_meet_what_they_need_as_long_as_nobody_else_changes_it() {
        let text = "create, append 1k, close, create, close, stat last, open, read whole, close, rename, delete, delete last";
        let mut all = courses(list(text), 3);
        let mut names: std::collections::BTreeSet<u64> =
            (0..40).filter(|name| is_prepared(*name, 3, 50)).collect();
        for turn in 0..6000 {
            let course = &mut all[turn % 3];
            let Turn::Do(chosen) = course.turn(0) else {
                continue;
            };
            let Some(name) = name_of(&chosen) else {
                assert!(!course.ended(0, Came::Done));
                continue;
            };
            let known = match chosen.script.only() {
                _ if creates(&chosen) => names.insert(name),
                Some(Call::Rename(_)) => {
                    names.remove(&name) && names.insert(chosen.other.expect("a second name"))
                }
                Some(Call::Unlink) => names.remove(&name),
                _ => names.contains(&name),
            };
            assert!(known, "{chosen:?}");
            assert!(!course.ended(0, Came::Done));
        }
        assert!(!names.is_empty());
    }

    /// Model of the rounds in flight, whose steps end in any order.
    #[derive(Default)]
    struct Model {
        there: std::collections::BTreeSet<u64>,
        /// The step and the open file of each round.
        under_way: Vec<Option<Chosen>>,
        open: Vec<Option<u64>>,
        steps: u64,
    }

    impl Model {
        fn changes(chosen: &Chosen) -> bool {
            let call = chosen.script.only();
            matches!(call, Some(Call::Rename(_) | Call::Unlink)) || creates(chosen)
        }

        /// Starts a step: no other round changes its names, and a step that changes names is
        /// alone on them.
        fn begins(&mut self, flight: usize, chosen: Chosen) {
            let names = |chosen: &Chosen| -> Vec<u64> {
                name_of(chosen).into_iter().chain(chosen.other).collect()
            };
            let own = names(&chosen);
            for (other, step) in self.under_way.iter().enumerate() {
                let Some(step) = step.as_ref().filter(|_| other != flight) else {
                    continue;
                };
                let both = names(step).iter().any(|name| own.contains(name));
                let change = Self::changes(step) || Self::changes(&chosen);
                assert!(!(both && change), "{chosen:?} beside {step:?}");
            }
            let others = self.open.iter().enumerate();
            let mut others = others.filter(|(other, _)| *other != flight);
            let held = others.any(|(_, name)| name.is_some_and(|name| own.contains(&name)));
            assert!(!(held && Self::changes(&chosen)), "{chosen:?} is open");
            if let Some(name) = name_of(&chosen) {
                assert_eq!(self.there.contains(&name), !creates(&chosen), "{chosen:?}");
            }
            let free = chosen.other.is_none_or(|to| !self.there.contains(&to));
            assert!(free, "{chosen:?}");
            self.under_way[flight] = Some(chosen);
        }

        fn ends(&mut self, flight: usize) {
            let Some(chosen) = self.under_way[flight].take() else {
                return;
            };
            self.steps += 1;
            match (chosen.script.only(), chosen.on) {
                (Some(Call::Open(_)), On::Name(name)) => {
                    self.there.insert(name);
                    self.open[flight] = Some(name);
                }
                (Some(Call::Close), _) => self.open[flight] = None,
                (Some(Call::Unlink), On::Name(name)) => drop(self.there.remove(&name)),
                (Some(Call::Rename(_)), On::Name(name)) => {
                    self.there.remove(&name);
                    self.there.extend(chosen.other);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn rounds_in_flight_take_away_no_name_from_each_other_in_whatever_order_they_end() {
        let text = "create, append 1k, close, stat last, open, read whole, close, rename, delete, open last, close, \
                    create, close, delete last, delete";
        for flights in [2, 5, 9] {
            let mut all = courses_in_flight(list(text), 1, flights);
            let course = &mut all[0];
            let mut model = Model {
                there: (0..40).filter(|name| is_prepared(*name, 1, 50)).collect(),
                under_way: vec![None; flights],
                open: vec![None; flights],
                steps: 0,
            };
            let mut order = Stream::new(&[flights as u64]);
            for _ in 0..20_000 {
                let flight = order.below(flights as u64) as usize;
                if model.under_way[flight].is_some() {
                    model.ends(flight);
                    assert!(!course.ended(flight, Came::Done));
                }
                if let Turn::Do(chosen) = course.turn(flight) {
                    model.begins(flight, chosen);
                }
            }
            assert!(model.steps > 15_000, "{}", model.steps);
        }
    }

    #[test]
    fn what_rounds_do_does_not_depend_on_how_many_are_in_flight() {
        let mix = || Mix {
            files: Some(400),
            ..ops("append 1..9k=3,create=2,delete=2,stat=3,read 1k random=2")
        };
        let run = |flights: usize| {
            let mut all = courses_in_flight(mix(), 1, flights);
            let mut order = Stream::new(&[9, flights as u64]);
            let (mut kinds, mut begun) = (std::collections::BTreeMap::new(), 0);
            let mut bytes = 0;
            while begun < 3000 {
                let flight = order.below(flights as u64) as usize;
                if all[0].begins_round(flight) {
                    begun += 1;
                }
                if let Turn::Do(chosen) = all[0].turn(flight) {
                    *kinds.entry(chosen.op.name()).or_insert(0) += 1;
                    if let Some((_, all)) = chosen.script.writes() {
                        bytes += all;
                    }
                    all[0].ended(flight, Came::Done);
                }
            }
            (kinds, bytes)
        };
        let expect = run(1);
        assert!(expect.0.len() == 5 && expect.1 > 1_000_000, "{expect:?}");
        assert_eq!(run(7), expect);
    }

    #[test]
    fn a_file_that_all_rounds_look_at_is_shared_where_there_is_no_other() {
        let mix = Mix {
            files: Some(2),
            prepared: Some(100),
            ..list("open, read whole, close")
        };
        let mut all = courses_in_flight(mix, 1, 4);
        let mut taken = Vec::new();
        for flight in 0..4 {
            let Turn::Do(chosen) = all[0].turn(flight) else {
                panic!("there is a file");
            };
            taken.extend(name_of(&chosen));
        }
        // A name that no other round uses is taken while there is one.
        assert_ne!(taken[0], taken[1]);
        assert_eq!(taken.len(), 4);
    }

    #[test]
    fn a_name_that_has_gone_is_missed_once_and_one_of_its_own_taken() {
        let mut all = courses(list("open, read whole, close, delete, create, close"), 2);
        let course = &mut all[0];
        let mut rounds = Vec::new();
        let mut missed = 0;
        for _ in 0..2000 {
            match course.turn(0) {
                Turn::Do(chosen) => {
                    let of_others = |name: u64| name % 2 == 1;
                    let opens = matches!(chosen.script.only(), Some(Call::Open(_)));
                    let gone =
                        opens && !creates(&chosen) && name_of(&chosen).is_some_and(of_others);
                    let came = if gone { Came::Gone } else { Came::Done };
                    assert_eq!(course.ended(0, came), gone);
                    missed += u32::from(gone);
                }
                Turn::RoundOver(whole) => rounds.push(whole),
                other => panic!("{other:?}"),
            }
        }
        assert!(missed > 50 && rounds.iter().all(|whole| *whole));
        // Its own names are never missed: that would be an error of the file system.
        let own = loop {
            match course.turn(0) {
                Turn::Do(chosen) if chosen.script == Script::of(Call::Unlink) => {
                    break course.ended(0, Came::Gone);
                }
                Turn::Do(_) => assert!(!course.ended(0, Came::Done)),
                _ => {}
            }
        };
        assert!(!own);
    }

    #[test]
    fn who_owns_no_name_misses_once_and_looks_no_further() {
        let text = "[set.files]\nnumber = 40\n[[worker]]\nlist = \"stat\"\n\
            [[worker]]\nname = \"changer\"\nlist = \"delete, create, close\"\n";
        let mix = Mix {
            text: MixText::Profile {
                name: "mine.toml".to_owned(),
                text: Some(Ok(text.to_owned())),
            },
            ..Mix::default()
        };
        let mut all = courses(mix, 2);
        let looker = &mut all[0];
        for _ in 0..20 {
            assert!(matches!(looker.turn(0), Turn::Do(_)));
            assert!(looker.ended(0, Came::Gone) && !looker.tries_again(0));
            assert_eq!(looker.turn(0), Turn::RoundOver(false));
        }
    }

    #[test]
    fn what_is_gone_of_a_set_that_nobody_changes_is_an_error() {
        let mut all = courses(list("open, read whole, close, stat"), 2);
        let course = &mut all[0];
        for _ in 0..40 {
            if let Turn::Do(_) = course.turn(0) {
                assert!(!course.ended(0, Came::Gone));
            }
        }
    }

    #[test]
    fn what_follows_an_open_that_failed_is_passed_over_up_to_its_close() {
        let mut all = courses(list("open, read whole, fsync, close, stat"), 1);
        let course = &mut all[0];
        let Turn::Do(open) = course.turn(0) else {
            panic!("an open comes first");
        };
        assert!(matches!(open.script.only(), Some(Call::Open(_))));
        course.ended(0, Came::Failed);
        assert!(matches!(
            course.turn(0),
            Turn::Do(chosen) if chosen.script == Script::of(Call::Stat(By::Link))
        ));
        course.ended(0, Came::Done);
        assert_eq!(course.turn(0), Turn::RoundOver(false));
        assert!(course.begins_round(0));
    }

    #[test]
    fn a_name_that_is_there_against_all_knowledge_is_an_error_once() {
        let mut all = courses(list("create, close"), 1);
        let mut names = std::collections::BTreeSet::new();
        let mut lacks = false;
        while !lacks {
            match all[0].turn(0) {
                Turn::Do(chosen) => {
                    assert!(matches!(chosen.on, On::Name(name) if names.insert(name)));
                    assert!(!all[0].ended(0, Came::Exists));
                }
                Turn::Lacks(_) => lacks = true,
                Turn::RoundOver(whole) => assert!(!whole),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(names.len(), 20);
    }

    #[test]
    fn an_operation_on_a_whole_file_that_is_gone_is_an_error_once() {
        let mut all = courses(ops("read whole=1,delete=1"), 1);
        let mut gone = std::collections::BTreeSet::new();
        for _ in 0..400 {
            if let Turn::Do(chosen) = all[0].turn(0) {
                assert!(matches!(chosen.on, On::Name(name) if gone.insert(name)));
                assert!(!all[0].ended(0, Came::Gone));
            }
        }
        assert_eq!(gone.len(), 20);
    }

    #[test]
    fn operations_are_drawn_by_weight_and_lack_what_is_not_there() {
        let mut all = courses(ops("stat=60,create=30,delete=10"), 1);
        let course = &mut all[0];
        let (mut stats, mut changes, mut lacks) = (0, 0, 0);
        for _ in 0..20_000 {
            match course.turn(0) {
                Turn::Do(chosen) => {
                    match chosen.script.only() {
                        Some(Call::Stat(_)) => stats += 1,
                        _ => changes += 1,
                    }
                    course.ended(0, Came::Done);
                }
                Turn::Lacks(_) => lacks += 1,
                Turn::RoundOver(_) => {}
                other => panic!("{other:?}"),
            }
        }
        let all = f64::from(stats + changes + lacks);
        assert!((f64::from(stats) / all - 0.6).abs() < 0.02);
        // Soon all names exist: then files are only created as often as they are removed.
        let right = (f64::from(lacks) / all - 0.2).abs() < 0.02;
        assert!(right, "{lacks} of {all}");
    }

    #[test]
    fn blocks_of_a_file_are_inside_it() {
        let mix = Mix {
            sizes: Some(crate::mix::sizes::Sizes::Fixed(rbench_core::Bytes(10_000))),
            prepared: Some(100),
            ..list("open, 5x (read 4k), 5x (read 4k random), close")
        };
        let mut all = courses(mix, 1);
        let mut offsets = Vec::new();
        for _ in 0..13 {
            if let Turn::Do(chosen) = all[0].turn(0) {
                if let Some(Call::ReadAt(at)) = chosen.script.only() {
                    offsets.push(at);
                }
                all[0].ended(0, Came::Done);
            }
        }
        assert_eq!(offsets[..5], [0, 4096, 0, 4096, 0]);
        assert!(offsets[5..].iter().all(|at| [0, 4096].contains(at)));
    }
}
