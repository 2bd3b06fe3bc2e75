//! Which ranks share a host.
//!
//! The names are passed in by the caller: this module asks no kernel.

use std::collections::HashMap;

use rbench_core::Rank;

use crate::{CommError, Communicator};

/// A host and the ranks on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name, as its ranks gave it.
    pub name: String,
    /// Its ranks, ascending; at least one.
    pub ranks: Vec<Rank>,
}

impl Host {
    /// The lowest rank, which acts for the host.
    pub fn leader(&self) -> Rank {
        self.ranks[0]
    }
}

/// The hosts of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// In the order of their first ranks, so rank 0's host comes first.
    pub hosts: Vec<Host>,
    /// For each rank the index of its host in `hosts`.
    pub host_of: Vec<u32>,
}

impl Topology {
    /// Groups ranks by the names of their hosts, given in the order of ranks.
    pub fn new(names: Vec<String>) -> Topology {
        let mut hosts: Vec<Host> = Vec::new();
        let mut index_of: HashMap<String, u32> = HashMap::new();
        let mut host_of = Vec::with_capacity(names.len());
        for (rank, name) in (0..).map(Rank).zip(names) {
            let index = *index_of.entry(name).or_insert_with_key(|name| {
                hosts.push(Host {
                    name: name.clone(),
                    ranks: Vec::new(),
                });
                hosts.len() as u32 - 1
            });
            hosts[index as usize].ranks.push(rank);
            host_of.push(index);
        }
        Topology { hosts, host_of }
    }

    /// The host that `rank` runs on.
    pub fn host(&self, rank: Rank) -> &Host {
        &self.hosts[self.host_of[rank.0 as usize] as usize]
    }

    /// Whether `rank` acts for its host.
    pub fn is_leader(&self, rank: Rank) -> bool {
        self.host(rank).leader() == rank
    }
}

/// Finds out which ranks of `comm` share a host; a collective call in which
/// each rank gives the name of its own host.
pub async fn topology(comm: &dyn Communicator, name: &str) -> Result<Topology, CommError> {
    let names = comm.gather(Rank(0), name.as_bytes().to_vec()).await?;
    let encoded = names.map(|names| encode(&names)).unwrap_or_default();
    let encoded = comm.broadcast(Rank(0), encoded).await?;
    Ok(Topology::new(decode(&encoded)))
}

/// Each name as its length (4 bytes, little endian) and its bytes.
fn encode(names: &[Vec<u8>]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for name in names {
        encoded.extend_from_slice(&(name.len() as u32).to_le_bytes());
        encoded.extend_from_slice(name);
    }
    encoded
}

/// Reads what [`encode`] wrote.
fn decode(mut encoded: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((length, rest)) = encoded.split_first_chunk::<4>() {
        let (name, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        names.push(String::from_utf8_lossy(name).into_owned());
        encoded = rest;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], hosts: &[(&str, &[u32])], host_of: &[u32]) {
        let bytes: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let topology = Topology::new(decode(&encode(&bytes)));
        let expected: Vec<Host> = hosts
            .iter()
            .map(|(name, ranks)| Host {
                name: (*name).to_owned(),
                ranks: ranks.iter().copied().map(Rank).collect(),
            })
            .collect();
        assert_eq!(topology.hosts, expected);
        assert_eq!(topology.host_of, host_of);
    }

    #[test]
    fn hosts_come_in_the_order_of_their_first_ranks() {
        check(&["a"], &[("a", &[0])], &[0]);
        check(
            &["b", "a", "b", "c", "a"],
            &[("b", &[0, 2]), ("a", &[1, 4]), ("c", &[3])],
            &[0, 1, 0, 2, 1],
        );
    }

    #[test]
    fn names_may_be_empty_or_of_any_script() {
        check(
            &["", "höst", ""],
            &[("", &[0, 2]), ("höst", &[1])],
            &[0, 1, 0],
        );
    }

    #[test]
    fn the_lowest_rank_of_a_host_is_its_leader() {
        let names = ["b", "a", "b", "a"].map(str::to_owned).to_vec();
        let topology = Topology::new(names);
        let leaders: Vec<bool> = (0..4).map(|r| topology.is_leader(Rank(r))).collect();
        assert_eq!(leaders, [true, true, false, false]);
        assert_eq!(topology.host(Rank(3)).name, "a");
    }
}
