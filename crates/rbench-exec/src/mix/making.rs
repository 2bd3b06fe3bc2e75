//! The start of a mix: directories, and the names that exist at the start.

use std::sync::Arc;

use rbench_core::{Call, FailureKind, Nanos, OpKind, OpenFlags, Script, script};
use rbench_plan::MixPlan;
use rbench_plan::mix::SetKind;
use rbench_plan::mix::course::all_of;
use rbench_plan::mix::names::Tree;
use rbench_plan::mix::share::is_prepared;

use super::TARGET;
use crate::meter::Meter;
use crate::pace::Gate;
use crate::steps::{Coming, Names, Source, Step, Verdict};

/// Bytes of a call.
pub(super) const CHUNK: u64 = 1 << 20;

/// A worker's part of things by number: every `step`-th.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The next one.
    pub next: u64,
    /// Distance between them.
    pub step: u64,
    /// Number of them, of all workers.
    pub of: u64,
}

impl Iterator for Part {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let number = Some(self.next).filter(|next| *next < self.of)?;
        self.next += self.step;
        Some(number)
    }
}

/// The things to make.
enum What {
    /// The directories of that level.
    Directories(usize),
    /// Names of the sets, each with that many owners.
    Names(Arc<MixPlan>, Vec<u64>, u64),
}

/// Makes a worker's part of the sets, one after the other.
pub(super) struct Making {
    what: What,
    trees: Vec<Arc<Tree>>,
    parts: Vec<Part>,
    /// The set that it has come to.
    set: usize,
    /// Bytes that the file that is open still needs; `None`: none is.
    writes: Option<u64>,
}

impl Making {
    /// Directories of a level of each set.
    pub(super) fn directories(trees: Vec<Arc<Tree>>, level: usize, parts: Vec<Part>) -> Making {
        Making {
            what: What::Directories(level),
            trees,
            parts,
            set: 0,
            writes: None,
        }
    }

    /// Names that are there at the start; `seed` is that of the sizes.
    pub(super) fn names(
        (mix, trees): (Arc<MixPlan>, Vec<Arc<Tree>>),
        parts: Vec<Part>,
        owners: Vec<u64>,
        seed: u64,
    ) -> Making {
        Making {
            what: What::Names(mix, owners, seed),
            trees,
            parts,
            set: 0,
            writes: None,
        }
    }

    /// The next set and number; `None`: all is made.
    fn advance(&mut self) -> Option<(usize, u64)> {
        loop {
            let set = self.set;
            let part = self.parts.get_mut(set)?;
            let is_there = |number: &u64| match &self.what {
                What::Directories(_) => true,
                What::Names(mix, owners, _) => {
                    is_prepared(*number, owners[set], mix.sets[set].prepared)
                }
            };
            match part.find(is_there) {
                Some(number) => return Some((set, number)),
                None => self.set += 1,
            }
        }
    }

    /// The call that makes a name, and the number of bytes that its file still needs once it is
    /// open.
    fn first(&self, set: usize, number: u64) -> (Script, Option<u64>) {
        let What::Names(mix, _, seed) = &self.what else {
            return (Script::of(Call::MKDIR), None);
        };
        let new = OpenFlags::CREATE_NEW;
        match mix.sets[set].kind {
            SetKind::Directories => (Script::of(Call::MKDIR), None),
            SetKind::Links => (Script::of(Call::Symlink), None),
            SetKind::Files => match mix.sets[set].sizes.of(&[*seed, set as u64, number]) {
                bytes if bytes <= CHUNK => (Script::whole(new, all_of(bytes), CHUNK), None),
                // Piece by piece, so that a stop need not wait for a large file.
                bytes => (Script::of(Call::Open(new)), Some(bytes)),
            },
        }
    }
}

impl Source for Making {
    fn next(&mut self, _: usize, names: &mut Names, _: &Gate, _: &mut Meter) -> Coming {
        let step = |script, op| {
            Coming::Step(Step {
                script,
                op,
                lane: 0,
                flight: 0,
                begins: false,
                slot: 0,
                intended: None,
                not_before: None,
            })
        };
        match self.writes {
            Some(0) => {
                self.writes = None;
                return step(Script::of(Call::Close), OpKind::Close);
            }
            Some(left) => {
                let bytes = left.min(CHUNK);
                self.writes = Some(left - bytes);
                let write = Script::new(Some(script::Part::once(Call::Write)), bytes);
                return step(write, OpKind::Write);
            }
            None => {}
        }
        let Some((set, number)) = self.advance() else {
            return Coming::End;
        };
        let (script, writes) = self.first(set, number);
        self.writes = writes;
        let tree = &self.trees[set];
        names.path.set(|to| match &self.what {
            What::Directories(level) => tree.directory(level + 1, number, to),
            What::Names(..) => tree.name(number, to),
        });
        if script == Script::of(Call::Symlink) {
            names.other.set(|to| to.extend(TARGET));
        }
        let op = match script.only() {
            Some(Call::Mkdir(_)) => OpKind::Mkdir,
            Some(Call::Symlink) => OpKind::Symlink,
            _ => OpKind::Create,
        };
        step(script, op)
    }

    fn put_back(&mut self, _: usize) {}

    fn ended(
        &mut self,
        step: &Step,
        outcome: Result<u64, FailureKind>,
        _time: (Nanos, Nanos),
    ) -> Verdict {
        if outcome.is_err() && self.writes.is_some() {
            // A file that could not be opened has nothing to close; the rest of a file that could
            // not be written would only fail as well.
            self.writes = match step.script.leaves_open() {
                true => None,
                false => Some(0),
            };
        }
        Verdict::Plain
    }
}
