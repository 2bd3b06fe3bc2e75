//! The ranks of a run, and the hosts that they are on.

use rbench_comm::Communicator;
use rbench_core::Rank;

use super::ExecError;

/// The ranks of a run as one of them sees them.
pub struct Ranks<'a> {
    /// All ranks.
    pub world: &'a dyn Communicator,
    /// The ranks of this host.
    pub host: Box<dyn Communicator>,
    /// The leaders of the hosts, rank 0 as the first; only meaningful at a
    /// leader.
    pub leaders: Box<dyn Communicator>,
    /// Names of the hosts.
    pub host_names: Vec<String>,
    /// The host of each rank.
    pub host_of: Vec<u32>,
    /// The cache of each rank: the ranks for which one kernel keeps the same
    /// files in memory have the same number, from 0 in the order of their first
    /// ranks. Each host's own unless [`super::Group::with_caches`] says otherwise.
    pub cache_of: Vec<u32>,
}

impl<'a> Ranks<'a> {
    /// Forms a world whose ranks are on these hosts; every rank calls this together.
    pub(super) async fn form(
        world: &'a dyn Communicator,
        host_names: Vec<String>,
        host_of: Vec<u32>,
    ) -> Result<Ranks<'a>, ExecError> {
        let host = world.split(host_of[world.rank().0 as usize]).await?;
        let leaders = world.part(host.rank() == Rank(0)).await?;
        Ok(Ranks {
            world,
            host,
            leaders,
            host_names,
            cache_of: host_of.clone(),
            host_of,
        })
    }
}

impl Ranks<'_> {
    /// This rank.
    pub fn rank(&self) -> Rank {
        self.world.rank()
    }

    /// Returns true for rank 0.
    pub fn is_root(&self) -> bool {
        self.rank() == Rank(0)
    }

    /// Returns true if this rank acts for its host.
    pub fn is_leader(&self) -> bool {
        self.host.rank() == Rank(0)
    }

    /// Returns true if this rank, the lowest one of them, acts for all that share its cache.
    pub fn is_cache_leader(&self) -> bool {
        let mine = self.rank().0 as usize;
        let cache = self.cache_of[mine];
        self.cache_of[..mine].iter().all(|other| *other != cache)
    }

    /// The number of this rank's host.
    pub fn host_number(&self) -> u32 {
        self.host_of[self.rank().0 as usize]
    }

    /// The name of this rank's host.
    pub fn host_name(&self) -> &str {
        self.host_name_of(self.rank())
    }

    /// The name of a rank's host.
    pub fn host_name_of(&self, rank: Rank) -> &str {
        &self.host_names[self.host_of[rank.0 as usize] as usize]
    }

    pub(super) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let mine = self.rank();
        (0..self.world.size()).map(Rank).filter(move |r| *r != mine)
    }
}
