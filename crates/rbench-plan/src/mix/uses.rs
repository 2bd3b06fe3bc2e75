//! Names in use by a worker's rounds in flight, so that no round removes a name that another one
//! uses.
//!
//! A name is in use while a step on it is in progress and while the round has it open. It stays
//! in use while the round may come back to it (`last`). If the round may come back to change it,
//! it counts as changing it from the first step on.

use std::collections::HashMap;

use super::{Role, Step};

/// Kind of use of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is read or written.
    Looks,
    /// It is created, removed or renamed.
    Changes,
}

/// A set and a name of it.
type Name = (usize, u64);

/// The names in use. With one round in flight nobody asks, so nothing is recorded.
#[derive(Debug)]
pub struct Uses {
    /// Number of uses of each name, and of those that change it.
    all: HashMap<Name, (u32, u32)>,
    /// The uses of each round in flight.
    of: Vec<Vec<(Name, Use)>>,
    /// True if steps come back to the last used file, for each set.
    comes_back: Vec<bool>,
    /// True if they come back to change it, for each set.
    changes: Vec<bool>,
}

impl Uses {
    /// Creates an empty record for `flights` rounds of a role with `sets` sets.
    pub fn new(flights: usize, role: &Role, sets: usize) -> Uses {
        // Names of the current step, of open files, and of last used files.
        let most = 2 * sets + 2;
        let of = if flights > 1 { flights } else { 0 };
        let back = |set| move |step: &&Step| step.set == set && step.last;
        let comes = |set| role.all_steps().any(|step| back(set)(&step));
        let changes = |set| {
            let mut steps = role.all_steps().filter(back(set));
            steps.any(|step| step.verb.changes_names())
        };
        Uses {
            all: HashMap::with_capacity(of * most),
            of: (0..of).map(|_| Vec::with_capacity(most)).collect(),
            comes_back: (0..sets).map(comes).collect(),
            changes: (0..sets).map(changes).collect(),
        }
    }

    /// True if anything is in use.
    pub fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// True if other rounds in flight use the name, or change it if that is what `what` asks for.
    #[inline]
    pub fn by_others(&self, flight: usize, name: Name, what: Use) -> bool {
        let Some((uses, changes)) = self.all.get(&name) else {
            return false;
        };
        let own = self.of[flight].iter().filter(|(used, _)| *used == name);
        match what {
            Use::Looks => own.count() < *uses as usize,
            Use::Changes => own.filter(|(_, how)| *how == what).count() < *changes as usize,
        }
    }

    /// Adds a use of a name by a round.
    pub fn begin(&mut self, flight: usize, name: Name, what: Use) {
        let Some(own) = self.of.get_mut(flight) else {
            return;
        };
        let what = if self.changes[name.0] {
            Use::Changes
        } else {
            what
        };
        own.push((name, what));
        let (uses, changes) = self.all.entry(name).or_default();
        *uses += 1;
        *changes += u32::from(what == Use::Changes);
    }

    /// Removes all uses of a round.
    pub fn end(&mut self, flight: usize) {
        let Some(own) = self.of.get_mut(flight) else {
            return;
        };
        for (name, what) in own.drain(..) {
            let Some((uses, changes)) = self.all.get_mut(&name) else {
                continue;
            };
            *uses -= 1;
            *changes -= u32::from(what == Use::Changes);
            if *uses == 0 {
                self.all.remove(&name);
            }
        }
    }

    /// Ends a step of a round. For each set, the round keeps its open files, and its last used
    /// file if it may come back to it.
    pub fn keep(
        &mut self,
        flight: usize,
        open: impl Iterator<Item = Option<u64>>,
        last: &[Option<u64>],
    ) {
        if self.of.is_empty() {
            return;
        }
        self.end(flight);
        for (set, (open, last)) in open.zip(last).enumerate() {
            let last = last.filter(|_| self.comes_back[set]);
            for name in open.into_iter().chain(last) {
                self.begin(flight, (set, name), Use::Looks);
            }
        }
    }
}
