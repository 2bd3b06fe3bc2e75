//! Existing names of a set, as far as a worker knows.
//!
//! The workers of a rank share a bit for each name. Bits of names that workers of the rank own
//! are up to date. Bits of names that other ranks own show the state at the start. Only the
//! owner changes a name, so it knows exactly which of its names exist.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rbench_core::random::Stream;

/// The bits of a set, shared by the workers of a rank.
#[derive(Debug, Default)]
pub struct Existence(Vec<AtomicU64>);

impl Existence {
    /// Creates the bits of `number` names; `there` returns true for names that exist.
    pub fn new(number: u64, there: impl Fn(u64) -> bool) -> Existence {
        let word = |first: u64| {
            let bits = (0..64).filter(|bit| first + bit < number && there(first + bit));
            AtomicU64::new(bits.fold(0, |word, bit| word | 1 << bit))
        };
        Existence((0..number.div_ceil(64)).map(|at| word(at * 64)).collect())
    }

    fn is_there(&self, name: u64) -> bool {
        let word = self.0[(name / 64) as usize].load(Ordering::Relaxed);
        word >> (name % 64) & 1 == 1
    }

    /// An existing name that is not taken, if any. The search starts at a random word and goes
    /// around once.
    fn search(&self, draws: &mut Stream, taken: impl Fn(u64) -> bool) -> Option<u64> {
        let words = self.0.len() as u64;
        let from = draws.below(words.max(1));
        let (at, word) = (0..words).find_map(|behind| {
            let at = (from + behind) % words;
            let word = self.0[at as usize].load(Ordering::Relaxed);
            let (mut left, mut free) = (word, 0_u64);
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if !taken(at * 64 + u64::from(bit)) {
                    free |= 1 << bit;
                }
            }
            (free != 0).then_some((at, free))
        })?;
        let lower = draws.below(word.count_ones().into());
        let rest = (0..lower).fold(word, |word, _| word & (word - 1));
        Some(at * 64 + u64::from(rest.trailing_zeros()))
    }

    fn set(&self, name: u64, there: bool) {
        let (word, bit) = (&self.0[(name / 64) as usize], 1 << (name % 64));
        match there {
            true => word.fetch_or(bit, Ordering::Relaxed),
            false => word.fetch_and(!bit, Ordering::Relaxed),
        };
    }
}

/// True if a name exists at the start, when `percent` of them do. These are spread evenly over
/// the names of each of the `owners`.
pub fn is_prepared(name: u64, owners: u64, percent: u32) -> bool {
    let (nth, percent) = (name / owners, u64::from(percent));
    (nth + 1) * percent / 100 > nth * percent / 100
}

/// Number of names drawn from all before the worker takes one of its own, or searches if it
/// has none.
const TRIES: u32 = 16;

/// A worker's knowledge of a set.
#[derive(Debug)]
pub struct Share {
    all: Arc<Existence>,
    number: u64,
    owners: u64,
    /// Its number among the owners.
    me: Option<u64>,
    /// Its own names, by their numbers among these; existing ones come first.
    own: Vec<u32>,
    /// The index in `own` of each.
    place: Vec<u32>,
    /// Number of its names that exist.
    there: usize,
}

impl Share {
    /// Creates the knowledge of the owner `me` of `owners` at the start.
    pub fn new(
        all: Arc<Existence>,
        number: u64,
        (me, owners): (Option<u64>, u64),
        percent: u32,
    ) -> Share {
        let count = me.map_or(0, |me| (number + owners - 1 - me) / owners) as u32;
        let name = |nth: u32| u64::from(nth) * owners + me.unwrap_or(0);
        let prepared = |nth: &u32| is_prepared(name(*nth), owners, percent);
        let (mut own, free): (Vec<u32>, Vec<u32>) = (0..count).partition(prepared);
        let prepared_count = own.len();
        own.extend(free);
        let mut place = vec![0; own.len()];
        for (at, nth) in own.iter().enumerate() {
            place[*nth as usize] = at as u32;
        }
        Share {
            all,
            number,
            owners,
            me,
            own,
            place,
            there: prepared_count,
        }
    }

    /// True if the worker owns the name.
    pub fn owns(&self, name: u64) -> bool {
        self.me == Some(name % self.owners)
    }

    /// True if one of its own names exists.
    pub fn has_own_there(&self) -> bool {
        self.there > 0
    }

    fn name(&self, at: usize) -> u64 {
        u64::from(self.own[at]) * self.owners + self.me.unwrap_or(0)
    }

    /// One of its own names that exists and is not taken.
    pub fn own_there(&self, draws: &mut Stream, taken: impl Fn(u64) -> bool) -> Option<u64> {
        self.own_of(0..self.there, draws, taken)
    }

    /// One of its own names that does not exist and is not taken.
    pub fn own_free(&self, draws: &mut Stream, taken: impl Fn(u64) -> bool) -> Option<u64> {
        self.own_of(self.there..self.own.len(), draws, taken)
    }

    /// One of its own names at these positions. The search starts at a random one and goes
    /// around once.
    fn own_of(
        &self,
        places: Range<usize>,
        draws: &mut Stream,
        taken: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let count = places.len();
        if count == 0 {
            return None;
        }
        let from = draws.below(count as u64) as usize;
        // No more names are skipped than are taken.
        let mut names = (0..count).map(|behind| self.name(places.start + (from + behind) % count));
        names.find(|name| !taken(*name))
    }

    /// Any name that exists, as far as is known, and is not taken.
    pub fn any_there(&self, draws: &mut Stream, taken: impl Fn(u64) -> bool) -> Option<u64> {
        for _ in 0..TRIES {
            let name = draws.below(self.number);
            if self.all.is_there(name) && !taken(name) {
                return Some(name);
            }
        }
        let own = self.own_there(draws, &taken);
        own.or_else(|| self.all.search(draws, taken))
    }

    /// Records that one of its own names exists, or no longer exists.
    pub fn note(&mut self, name: u64, there: bool) {
        self.all.set(name, there);
        let at = self.place[(name / self.owners) as usize] as usize;
        if (at < self.there) == there {
            return;
        }
        // The border moves by one, and the name is swapped with the one at the border.
        let border = if there { self.there } else { self.there - 1 };
        self.own.swap(at, border);
        for moved in [at, border] {
            self.place[self.own[moved] as usize] = moved as u32;
        }
        self.there = if there { border + 1 } else { border };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shares(number: u64, owners: u64, percent: u32) -> Vec<Share> {
        let exists = |name| is_prepared(name, owners, percent);
        let all = Arc::new(Existence::new(number, exists));
        (0..owners)
            .map(|me| Share::new(Arc::clone(&all), number, (Some(me), owners), percent))
            .collect()
    }

    #[test]
    fn owners_have_all_names_and_each_its_part_of_those_that_are_there() {
        for (number, owners, percent) in [(1000, 5, 80), (103, 7, 33), (64, 1, 100), (10, 3, 0)] {
            let all = shares(number, owners, percent);
            let names: BTreeSet<u64> = all
                .iter()
                .flat_map(|share| (0..share.own.len()).map(|at| share.name(at)))
                .collect();
            assert_eq!(names, (0..number).collect());
            for share in &all {
                let expect = share.own.len() * percent as usize / 100;
                assert_eq!(share.there, expect);
                let existing = (0..share.there).all(|at| share.all.is_there(share.name(at)));
                let free =
                    (share.there..share.own.len()).all(|at| !share.all.is_there(share.name(at)));
                assert!(existing && free);
            }
        }
    }

    #[test]
    fn what_is_noted_is_what_is_drawn() {
        let mut share = shares(300, 3, 50).remove(1);
        let mut existing: BTreeSet<u64> = (0..share.there).map(|at| share.name(at)).collect();
        let mut draws = Stream::new(&[1]);
        for turn in 0..10_000 {
            if turn % 3 == 0 {
                if let Some(name) = share.own_there(&mut draws, |_| false) {
                    assert!(existing.remove(&name));
                    share.note(name, false);
                }
            } else if let Some(name) = share.own_free(&mut draws, |_| false) {
                assert!(share.owns(name) && existing.insert(name));
                share.note(name, true);
            }
            assert_eq!(share.there, existing.len());
        }
        while let Some(name) = share.own_free(&mut draws, |_| false) {
            assert!(existing.insert(name));
            share.note(name, true);
        }
        assert_eq!(existing.len(), 100);
        for name in 0..300 {
            let known = share.all.is_there(name);
            assert_eq!(
                known,
                existing.contains(&name) || (name % 3 != 1 && is_prepared(name, 3, 50))
            );
        }
    }

    #[test]
    fn what_is_taken_is_not_drawn_and_all_else_is() {
        let share = shares(300, 3, 50).remove(2);
        let taken = |name: u64| !matches!(name, 5 | 80 | 2 | 298 | 299);
        let mut draws = Stream::new(&[4]);
        let mut own_names = BTreeSet::new();
        for _ in 0..500 {
            own_names.extend(share.own_there(&mut draws, taken));
            own_names.extend(share.own_free(&mut draws, taken));
        }
        assert_eq!(own_names, [2, 5, 80, 299].into());
        let mut all_names = BTreeSet::new();
        for _ in 0..500 {
            all_names.extend(share.any_there(&mut draws, taken));
        }
        let expect = [2, 5, 80, 298, 299].into_iter();
        assert_eq!(
            all_names,
            expect.filter(|name| is_prepared(*name, 3, 50)).collect()
        );
        assert!(share.any_there(&mut draws, |_| true).is_none());
        assert!(share.own_free(&mut draws, |_| true).is_none());
    }

    #[test]
    fn who_only_looks_finds_what_is_there_and_nothing_else() {
        let mut owner = shares(2, 1, 100).remove(0);
        let looker = Share::new(Arc::clone(&owner.all), 2, (None, 1), 100);
        let mut draws = Stream::new(&[2]);
        owner.note(1, false);
        assert!((0..100).all(|_| {
            looker
                .any_there(&mut draws, |_| false)
                .is_none_or(|name| name == 0)
        }));
        owner.note(0, false);
        assert_eq!(looker.any_there(&mut draws, |_| false), None);
        assert_eq!(owner.any_there(&mut draws, |_| false), None);
    }

    #[test]
    fn who_only_looks_finds_the_few_that_are_there_among_many() {
        let few: BTreeSet<u64> = [3, 70, 71, 127, 9_999].into();
        let all = Arc::new(Existence::new(10_000, |name| few.contains(&name)));
        let looker = Share::new(all, 10_000, (None, 1), 0);
        let mut draws = Stream::new(&[3]);
        let drawn = (0..2000).map(|_| {
            looker
                .any_there(&mut draws, |_| false)
                .expect("one is there")
        });
        assert_eq!(drawn.collect::<BTreeSet<u64>>(), few);
    }
}
