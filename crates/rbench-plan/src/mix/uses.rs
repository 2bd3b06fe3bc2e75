//! Which names the rounds of a worker that are in flight use, so that none takes away what another
//! one works on.
//!
//! A name is in use while a step on it is under way, while the round has it open, and as long as
//! the round may come back to it (`last`). Who may come back to change it changes it from the
//! first step on.

use std::collections::HashMap;

use super::{Role, Step};

/// How a name is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is looked at, read or written.
    Looks,
    /// It is made, removed or renamed.
    Changes,
}

/// A set and a name of it.
type Name = (usize, u64);

/// The names that are in use. With one round in flight nobody asks, and nothing is kept.
#[derive(Debug)]
pub struct Uses {
    /// Of each name: so many uses, and those that change it.
    all: HashMap<Name, (u32, u32)>,
    /// Those of each round in flight.
    of: Vec<Vec<(Name, Use)>>,
    /// Of each set: whether steps come back to the file that was used last.
    comes_back: Vec<bool>,
    /// Of each set: whether they come back to change it.
    changes: Vec<bool>,
}

impl Uses {
    /// None, of so many rounds in flight of a role, which has as many sets.
    pub fn new(flights: usize, role: &Role, sets: usize) -> Uses {
        // What a step works on, what is open, what was used last.
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

    /// Whether anything is in use.
    pub fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether other rounds in flight than this one use the name: any, or those that change it.
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

    /// A round begins to use a name.
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

    /// A round uses nothing any more.
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

    /// A step of a round is over: of each set it uses what it has open, and what was used last
    /// where it may come back to that.
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
