//! Finds the ranks that share a host, and those that share a clock.
//!
//! The caller passes in the identities: this module makes no system calls.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use rbench_core::Rank;
use serde::{Deserialize, Serialize};

use crate::{CommError, Communicator};

/// The place where a rank says that it runs. The texts are only compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Identity {
    /// Name of the machine or container; not necessarily unique.
    pub node: String,
    /// The running kernel; changes with every boot.
    pub kernel: String,
    /// The clock: identical for all ranks whose clocks show the same time.
    pub clock: String,
}

/// A host and its ranks: one node name on one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Unique name, from its ranks; the second host with a name becomes `name(2)`.
    pub name: String,
    /// Its ranks, ascending; at least one.
    pub ranks: Vec<Rank>,
    /// Its kernel, from its ranks.
    pub kernel: String,
}

impl Host {
    /// The lowest rank, which acts for the host.
    pub fn leader(&self) -> Rank {
        self.ranks[0]
    }
}

/// The hosts and the clocks of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// In the order of their first ranks; rank 0's host comes first.
    pub hosts: Vec<Host>,
    /// The index in `hosts` of each rank's host.
    pub host_of: Vec<u32>,
    /// The clock number of each rank, from 0 in the order of first ranks; rank 0's clock is 0.
    pub clock_of: Vec<u32>,
}

/// Numbers the distinct values from 0 in order of appearance.
fn numbered<T: Hash + Eq>(values: impl IntoIterator<Item = T>) -> Vec<u32> {
    let mut known: HashMap<T, u32> = HashMap::new();
    let number = |value| {
        let next = known.len() as u32;
        *known.entry(value).or_insert(next)
    };
    values.into_iter().map(number).collect()
}

/// Makes `name` unique by appending the lowest free number from 2.
fn unlike(name: &str, taken: &HashSet<String>) -> String {
    let mut own = name.to_owned();
    let mut number = 2_u64;
    while taken.contains(&own) {
        own = format!("{name}({number})");
        number += 1;
    }
    own
}

impl Topology {
    /// Groups ranks by their identities, given in rank order. A host is a kernel and a node name.
    pub fn new(identities: &[Identity]) -> Topology {
        let host_of = numbered(identities.iter().map(|id| (&id.kernel, &id.node)));
        let clock_of = numbered(identities.iter().map(|id| &id.clock));
        let mut hosts: Vec<Host> = Vec::new();
        let mut taken = HashSet::new();
        for ((rank, identity), index) in (0..).map(Rank).zip(identities).zip(&host_of) {
            if *index as usize == hosts.len() {
                let name = unlike(&identity.node, &taken);
                taken.insert(name.clone());
                hosts.push(Host {
                    name,
                    ranks: Vec::new(),
                    kernel: identity.kernel.clone(),
                });
            }
            hosts[*index as usize].ranks.push(rank);
        }
        Topology {
            hosts,
            host_of,
            clock_of,
        }
    }

    /// The host of `rank`.
    pub fn host(&self, rank: Rank) -> &Host {
        &self.hosts[self.host_of[rank.0 as usize] as usize]
    }

    /// Returns true if `rank` acts for its host.
    pub fn is_leader(&self, rank: Rank) -> bool {
        self.host(rank).leader() == rank
    }
}

/// Finds the ranks of `comm` that share a host or a clock. A collective call in which each rank
/// passes its identity.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn topology(comm: &dyn Communicator, identity: &Identity) -> Result<Topology, CommError> {
    Ok(Topology::new(&comm.all_values(identity).await?))
}

/// Groups ranks that share a key, directly or through other ranks. Groups are numbered from 0 in
/// the order of their first ranks. A collective call in which each rank passes its keys; a rank
/// without keys is alone.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn sharing(comm: &dyn Communicator, keys: &[String]) -> Result<Vec<u32>, CommError> {
    Ok(joined(&comm.all_values(&keys.to_vec()).await?))
}

/// The group number of each list; lists with a common key are in the same group.
fn joined(lists: &[Vec<String>]) -> Vec<u32> {
    /// The lowest list in the group of `list`.
    fn lowest(of: &[usize], mut list: usize) -> usize {
        while of[list] != list {
            list = of[list];
        }
        list
    }
    let mut of: Vec<usize> = (0..lists.len()).collect();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (list, keys) in lists.iter().enumerate() {
        for key in keys {
            let other = *first.entry(key).or_insert(list);
            let (a, b) = (lowest(&of, list), lowest(&of, other));
            of[a.max(b)] = a.min(b);
            // Path compression.
            of[list] = a.min(b);
        }
    }
    numbered((0..lists.len()).map(|list| lowest(&of, list)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each place as `node kernel clock`.
    fn found(places: &[&str]) -> Topology {
        let identity = |place: &&str| {
            let mut words = place.split(' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            Identity {
                node: word(),
                kernel: word(),
                clock: word(),
            }
        };
        Topology::new(&places.iter().map(identity).collect::<Vec<_>>())
    }

    fn check(places: &[&str], hosts: &[(&str, &[u32])], host_of: &[u32], clock_of: &[u32]) {
        let topology = found(places);
        let named: Vec<(&str, Vec<u32>)> = topology
            .hosts
            .iter()
            .map(|host| (host.name.as_str(), host.ranks.iter().map(|r| r.0).collect()))
            .collect();
        let expected: Vec<(&str, Vec<u32>)> = hosts
            .iter()
            .map(|(n, ranks)| (*n, ranks.to_vec()))
            .collect();
        assert_eq!(named, expected);
        assert_eq!(topology.host_of, host_of);
        assert_eq!(topology.clock_of, clock_of);
    }

    #[test]
    fn hosts_come_in_the_order_of_their_first_ranks() {
        check(&["a k k"], &[("a", &[0])], &[0], &[0]);
        check(
            &["b k1 k1", "a k2 k2", "b k1 k1", "c k3 k3", "a k2 k2"],
            &[("b", &[0, 2]), ("a", &[1, 4]), ("c", &[3])],
            &[0, 1, 0, 2, 1],
            &[0, 1, 0, 2, 1],
        );
    }

    #[test]
    fn names_may_be_empty_or_of_any_script() {
        check(
            &[" k k", "höst k k", " k k"],
            &[("", &[0, 2]), ("höst", &[1])],
            &[0, 1, 0],
            &[0, 0, 0],
        );
    }

    #[test]
    fn two_machines_of_the_same_name_are_two_hosts_with_two_clocks() {
        check(
            &["node k1 k1", "node k2 k2", "node k1 k1", "node k3 k3"],
            &[("node", &[0, 2]), ("node(2)", &[1]), ("node(3)", &[3])],
            &[0, 1, 0, 2],
            &[0, 1, 0, 2],
        );
    }

    #[test]
    fn a_number_behind_a_name_is_one_that_no_host_has() {
        check(
            &["node(2) k1 k1", "node k1 k1", "node k2 k2"],
            &[("node(2)", &[0]), ("node", &[1]), ("node(3)", &[2])],
            &[0, 1, 2],
            &[0, 0, 1],
        );
    }

    #[test]
    fn containers_on_one_kernel_are_hosts_that_share_a_clock() {
        check(
            &["a k k/time1", "b k k/time1", "a k k/time1", "b k k/time2"],
            &[("a", &[0, 2]), ("b", &[1, 3])],
            &[0, 1, 0, 1],
            &[0, 0, 0, 1],
        );
    }

    #[test]
    fn who_has_a_key_in_common_shares_directly_or_through_others() {
        let check = |lists: &[&str], expect: &[u32]| {
            let split = |keys: &&str| keys.split_whitespace().map(str::to_owned).collect();
            let lists: Vec<Vec<String>> = lists.iter().map(split).collect();
            assert_eq!(joined(&lists), expect, "{lists:?}");
        };
        check(&["a", "a", "b", "a"], &[0, 0, 1, 0]);
        check(&["a", "b", "c"], &[0, 1, 2]);
        check(&["a", "b", "c", "b a"], &[0, 0, 1, 0]);
        check(
            &["a", "b", "c", "d", "c d", "d b", ""],
            &[0, 1, 1, 1, 1, 1, 2],
        );
        check(&["", ""], &[0, 1]);
    }

    #[test]
    fn the_lowest_rank_of_a_host_is_its_leader() {
        let topology = found(&["b", "a", "b", "a"]);
        let leaders: Vec<bool> = (0..4).map(|r| topology.is_leader(Rank(r))).collect();
        assert_eq!(leaders, [true, true, false, false]);
        assert_eq!(topology.host(Rank(3)).name, "a");
    }
}
