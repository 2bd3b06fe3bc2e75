//! Record of the ranks' items that each cache has seen: for each cache, it counts the
//! ranks whose items its own ranks have created or used.

use std::collections::HashMap;

use rbench_core::residency::Share;

use crate::meta::ItemOwner;

/// Use of one rank's items by a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tie {
    Touched,
    Made,
}

/// Record of the ranks' items that each cache has seen. A cache is the memory of one
/// kernel for one mounted file system; ranks that share one have the same number.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Uses by (cache, owner of the items).
    ties: HashMap<(u32, u32), Tie>,
}

impl Seen {
    /// Records that the ranks create the items of `who`. `caches[r]` is rank r's
    /// cache.
    pub fn make(&mut self, caches: &[u32], who: ItemOwner) {
        for visit in visits(caches, who) {
            self.ties.insert(visit, Tie::Made);
        }
    }

    /// Records that the ranks use the items of `who`. Counts, for each cache, the
    /// ranks whose items they are, and those whose items it has seen before.
    pub fn visit(&mut self, caches: &[u32], who: ItemOwner) -> Vec<Share> {
        let number = caches.iter().max().map_or(0, |last| *last as usize + 1);
        let mut shares = vec![Share::default(); number];
        for (cache, owner) in visits(caches, who) {
            let tie = self.ties.get(&(cache, owner));
            shares[cache as usize].add(Share {
                parts: 1,
                made: u64::from(tie == Some(&Tie::Made)),
                touched: u64::from(tie == Some(&Tie::Touched)),
            });
        }
        // Recorded afterwards: ranks of one cache that share items do not warm them
        // for each other before the phase.
        for visit in visits(caches, who) {
            self.ties.entry(visit).or_insert(Tie::Touched);
        }
        shares
    }

    /// Like [`Seen::visit`], for items that all ranks have in common: every cache has
    /// seen them.
    pub fn visit_common(caches: &[u32], who: ItemOwner) -> Vec<Share> {
        let mut all = Seen::default();
        let mut shares = all.visit(caches, who);
        for share in &mut shares {
            share.touched = share.parts;
        }
        shares
    }
}

/// (cache, owner of the items) of every rank with work, once for each owner.
fn visits(caches: &[u32], who: ItemOwner) -> Vec<(u32, u32)> {
    let ranks = caches.len() as u32;
    let first = caches.first().copied().unwrap_or(0);
    match who {
        ItemOwner::Each { ahead } => (0..ranks)
            .zip(caches)
            .map(|(rank, cache)| (*cache, (rank + ahead) % ranks))
            .collect(),
        ItemOwner::FirstForAll => (0..ranks).map(|owner| (first, owner)).collect(),
        ItemOwner::First => vec![(first, 0)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE_HOSTS: [u32; 12] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];

    /// Each rank works on the items of the rank `distance` below it.
    fn at(distance: u32) -> ItemOwner {
        ItemOwner::Each {
            ahead: (12 - distance) % 12,
        }
    }

    fn shares(parts: u64, made: u64, touched: u64) -> Vec<Share> {
        let one = Share {
            parts,
            made,
            touched,
        };
        vec![one; 3]
    }

    #[test]
    fn what_one_rank_made_for_all_is_new_to_the_other_hosts() {
        let mut seen = Seen::default();
        seen.make(&THREE_HOSTS, ItemOwner::FirstForAll);
        let all = seen.visit(&THREE_HOSTS, at(0));
        let parts_made: Vec<u64> = all.iter().map(|share| share.made).collect();
        // Rank 0's own host has created them.
        assert_eq!(parts_made, [4, 0, 0]);
        assert!(all.iter().all(|share| share.parts == 4));
        let mut seen = Seen::default();
        seen.make(&[0, 1], ItemOwner::First);
        let all = seen.visit(&[0, 1], ItemOwner::Each { ahead: 1 });
        assert!(all.iter().all(|share| share.known() == 0));
    }

    #[test]
    fn own_items_are_made_and_another_hosts_are_new_once() {
        let mut seen = Seen::default();
        seen.make(&THREE_HOSTS, at(0));
        assert_eq!(seen.visit(&THREE_HOSTS, at(0)), shares(4, 4, 0));
        assert_eq!(seen.visit(&THREE_HOSTS, at(4)), shares(4, 0, 0));
        assert_eq!(seen.visit(&THREE_HOSTS, at(4)), shares(4, 0, 4));
    }

    #[test]
    fn a_shift_within_the_host_is_counted_in_part() {
        let mut seen = Seen::default();
        seen.make(&THREE_HOSTS, at(0));
        assert_eq!(seen.visit(&THREE_HOSTS, at(1)), shares(4, 3, 0));
        // The next distance meets two owners whose items were just used.
        assert_eq!(seen.visit(&THREE_HOSTS, at(2)), shares(4, 2, 1));
    }

    #[test]
    fn mdtests_stride_of_one_comes_back_to_the_own_items_on_two_hosts() {
        let mut seen = Seen::default();
        seen.make(&[0, 1], ItemOwner::Each { ahead: 0 });
        let stat = seen.visit(&[0, 1], ItemOwner::Each { ahead: 1 });
        assert!(stat.iter().all(|share| share.known() == 0));
        let read = seen.visit(&[0, 1], ItemOwner::Each { ahead: 0 });
        assert!(read.iter().all(|share| share.made == share.parts));
    }

    #[test]
    fn ranks_of_one_cache_do_not_warm_each_others_items_in_the_same_phase() {
        let mut seen = Seen::default();
        seen.make(&[0, 1, 1], ItemOwner::Each { ahead: 0 });
        let all = seen.visit(&[0, 0, 0], ItemOwner::Each { ahead: 1 });
        assert_eq!((all[0].parts, all[0].made), (3, 1));
    }

    #[test]
    fn what_all_have_in_common_is_known_to_all_that_work() {
        let all = Seen::visit_common(&[0, 1], ItemOwner::First);
        assert_eq!((all[0].known(), all[0].parts), (1, 1));
        assert_eq!((all[1].known(), all[1].parts), (0, 0));
    }
}
