//! The hosts of a run, before there is a plan.

use rbench_comm::{Clocks, Communicator, Host, Identity, Topology, compare};
use rbench_core::{Clock as _, MonotonicClock};
use rbench_exec::{ExecError, Group};
use rbench_sys::identity::identity;
use rbench_sys::limits::{HostFacts, host_facts};

use crate::progress::Display;
use crate::refusal::Refusal;
use crate::signals::Signals;

/// The hosts of the run, the same on every rank.
pub struct Hosts {
    /// The host of each rank.
    pub topology: Topology,
    /// The clocks, as compared at the start.
    pub clocks: Clocks,
    /// Facts about each host; known at rank 0.
    pub facts: Vec<HostFacts>,
}

impl Hosts {
    /// Looked for by all ranks together.
    pub async fn find(comm: &dyn Communicator) -> Result<Hosts, Refusal> {
        let here = identity();
        // uname and sysconf cannot fail on Linux.
        let mine = host_facts().unwrap_or_else(|_| HostFacts {
            name: here.node.clone(),
            kernel: "unknown".to_owned(),
            cpus: 1,
        });
        let here = Identity {
            node: here.node,
            kernel: here.kernel,
            clock: here.clock,
        };
        let topology = rbench_comm::topology(comm, &here).await?;
        let mut clocks = Clocks::of(&topology);
        let begun = MonotonicClock.now();
        let found = compare(comm, clocks.others(), &MonotonicClock).await?;
        clocks.learn(&found, MonotonicClock.now().since(begun));
        let all = comm.gather_values(&mine).await?.unwrap_or_default();
        let own = |host: &Host| {
            let facts = all.get(host.leader().0 as usize)?;
            Some(HostFacts {
                name: host.name.clone(),
                ..facts.clone()
            })
        };
        let facts = topology.hosts.iter().filter_map(own).collect();
        Ok(Hosts {
            topology,
            clocks,
            facts,
        })
    }

    /// The group of all ranks on them.
    pub async fn group<'a>(
        &self,
        comm: &'a dyn Communicator,
        signals: &'a Signals,
        display: &'a Display,
    ) -> Result<Group<'a>, ExecError> {
        let names = self.topology.hosts.iter().map(|h| h.name.clone());
        let (names, host_of) = (names.collect(), self.topology.host_of.clone());
        Group::form(comm, names, host_of, self.clocks.clone(), signals, display).await
    }

    /// The kernel of a host; known at rank 0.
    pub fn kernel(&self, host: usize) -> String {
        self.facts
            .get(host)
            .map_or_else(String::new, |facts| facts.kernel.clone())
    }
}
