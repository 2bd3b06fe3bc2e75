//! The honest label of a phase: whether its host's client could answer from
//! what it had seen earlier in the run.

use std::collections::HashSet;

use rbench_core::Rank;
use rbench_core::outcome::Cache;

use crate::shift::owner;

/// Follows which host has seen which rank's items.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// (host, owner of the items)
    pairs: HashSet<(u32, u32)>,
}

impl Seen {
    /// Forgets everything: caches were dropped on every host.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Labels a phase in which each rank works at `distance`, and remembers
    /// that its host has then seen those items. `hosts[r]` is rank r's host.
    /// Warm as soon as one rank meets items that its host has seen.
    pub fn visit(&mut self, hosts: &[u32], distance: u32) -> Cache {
        let ranks = hosts.len() as u32;
        let visits: Vec<(u32, u32)> = hosts
            .iter()
            .enumerate()
            .map(|(r, host)| (*host, owner(Rank(r as u32), distance, ranks).0))
            .collect();
        let warm = visits.iter().any(|pair| self.pairs.contains(pair));
        self.pairs.extend(visits);
        if warm { Cache::Warm } else { Cache::Cold }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE_HOSTS: [u32; 12] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];

    #[test]
    fn own_items_are_warm_and_another_hosts_are_cold_once() {
        let mut seen = Seen::default();
        seen.visit(&THREE_HOSTS, 0);
        assert_eq!(seen.visit(&THREE_HOSTS, 0), Cache::Warm);
        assert_eq!(seen.visit(&THREE_HOSTS, 4), Cache::Cold);
        assert_eq!(seen.visit(&THREE_HOSTS, 4), Cache::Warm);
    }

    #[test]
    fn a_shift_within_the_host_stays_warm() {
        let mut seen = Seen::default();
        seen.visit(&THREE_HOSTS, 0);
        assert_eq!(seen.visit(&THREE_HOSTS, 1), Cache::Warm);
    }

    #[test]
    fn dropped_caches_have_seen_nothing() {
        let mut seen = Seen::default();
        seen.visit(&THREE_HOSTS, 0);
        seen.clear();
        assert_eq!(seen.visit(&THREE_HOSTS, 0), Cache::Cold);
    }
}
