//! The honest label of a phase: whether its client could answer from what its
//! cache had seen earlier in the run.

use std::collections::HashSet;

use rbench_core::outcome::Cache;

use crate::meta::Who;

/// Follows which cache has seen which rank's items. Ranks on several hosts may
/// share one: containers of one kernel on the same mount.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// (cache, owner of the items)
    pairs: HashSet<(u32, u32)>,
}

impl Seen {
    /// Forgets everything: caches were dropped on every host.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Labels a phase in which the ranks work on the items of `who`, and
    /// remembers that their caches have then seen those. `caches[r]` is rank
    /// r's. Warm as soon as one rank meets items that its cache has seen.
    pub fn visit(&mut self, caches: &[u32], who: Who) -> Cache {
        let ranks = caches.len() as u32;
        let first = caches.first().copied().unwrap_or(0);
        let visits: Vec<(u32, u32)> = match who {
            Who::Each { ahead } => (0..ranks)
                .zip(caches)
                .map(|(rank, cache)| (*cache, (rank + ahead) % ranks))
                .collect(),
            Who::FirstForAll => (0..ranks).map(|owner| (first, owner)).collect(),
            Who::First => vec![(first, 0)],
        };
        let warm = visits.iter().any(|pair| self.pairs.contains(pair));
        self.pairs.extend(visits);
        if warm { Cache::Warm } else { Cache::Cold }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE_HOSTS: [u32; 12] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];

    /// Each rank on the items of the rank `distance` below it.
    fn at(distance: u32) -> Who {
        Who::Each {
            ahead: (12 - distance) % 12,
        }
    }

    #[test]
    fn what_one_rank_made_for_all_is_cold_on_the_other_hosts() {
        let mut seen = Seen::default();
        seen.visit(&THREE_HOSTS, Who::FirstForAll);
        // Rank 0's own host has seen them, so the phase as a whole is warm.
        assert_eq!(seen.visit(&THREE_HOSTS, at(0)), Cache::Warm);
        let mut seen = Seen::default();
        seen.visit(&[0, 1], Who::First);
        assert_eq!(seen.visit(&[0, 1], Who::Each { ahead: 1 }), Cache::Cold);
    }

    #[test]
    fn own_items_are_warm_and_another_hosts_are_cold_once() {
        let mut seen = Seen::default();
        seen.visit(&THREE_HOSTS, at(0));
        assert_eq!(seen.visit(&THREE_HOSTS, at(0)), Cache::Warm);
        assert_eq!(seen.visit(&THREE_HOSTS, at(4)), Cache::Cold);
        assert_eq!(seen.visit(&THREE_HOSTS, at(4)), Cache::Warm);
    }

    #[test]
    fn a_shift_within_the_host_stays_warm() {
        let mut seen = Seen::default();
        seen.visit(&THREE_HOSTS, at(0));
        assert_eq!(seen.visit(&THREE_HOSTS, at(1)), Cache::Warm);
    }

    #[test]
    fn dropped_caches_have_seen_nothing() {
        let mut seen = Seen::default();
        seen.visit(&THREE_HOSTS, at(0));
        seen.clear();
        assert_eq!(seen.visit(&THREE_HOSTS, at(0)), Cache::Cold);
    }
}
