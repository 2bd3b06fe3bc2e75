//! Hosts and clock offsets, on made-up hosts of one machine.

use std::time::Duration;

use rbench_comm::{Clocks, CommError, Communicator, Identity, Topology, compare, topology};
use rbench_core::{Clock, MonotonicClock, Nanos, Rank};

use crate::checks::{Checks, Outcome, ensure, passed};

/// Largest deviation of the estimate beyond its own error: none in theory, this much for a machine
/// under load.
const TOLERANCE_NS: u64 = 50_000;

pub async fn check_all(comm: &dyn Communicator, checks: &mut Checks<'_>) -> Result<(), CommError> {
    let outcome = hosts(comm).await;
    checks
        .record("ranks with the same host name share a host", outcome)
        .await?;
    let outcome = containers(comm).await;
    checks
        .record("containers of one kernel share a clock", outcome)
        .await?;
    let outcome = namesakes(comm).await;
    checks
        .record("machines of the same name are told apart", outcome)
        .await?;
    let outcome = same_clock(comm).await;
    checks
        .record("one machine's clocks are found to be equal", outcome)
        .await?;
    let outcome = shifted_clocks(comm).await;
    checks
        .record("clocks that differ are found to differ as much", outcome)
        .await
}

/// The made-up host of a rank: three hosts, not in the order of their names.
fn host_name(rank: u32) -> String {
    format!("client{}", 9 - rank % 3)
}

/// A machine of its own for each name.
fn identity(name: &str) -> Identity {
    Identity {
        node: name.to_owned(),
        kernel: format!("boot of {name}"),
        clock: format!("clock of {name}"),
    }
}

async fn hosts(comm: &dyn Communicator) -> Outcome {
    let found = topology(comm, &identity(&host_name(comm.rank().0))).await?;
    ensure!(
        found
            .host_of
            .iter()
            .copied()
            .eq((0..comm.size()).map(|rank| rank % 3)),
        "{found:?}"
    );
    for (index, host) in (0..).zip(&found.hosts) {
        let ranks = (index..comm.size()).step_by(3).map(Rank);
        ensure!(host.name == host_name(index), "{found:?}");
        ensure!(host.ranks.iter().copied().eq(ranks), "{found:?}");
    }
    ensure!(found.clock_of == found.host_of, "{found:?}");
    let one = topology(comm, &identity("here")).await?;
    ensure!(one.hosts.len() == 1, "{one:?}");
    ensure!(one.hosts[0].ranks.len() as u32 == comm.size(), "{one:?}");
    passed()
}

/// Containers of one kernel: as many hosts, one clock.
async fn containers(comm: &dyn Communicator) -> Outcome {
    let container = Identity {
        node: host_name(comm.rank().0),
        ..identity("machine")
    };
    let found = topology(comm, &container).await?;
    ensure!(found.hosts.len() as u32 == comm.size().min(3), "{found:?}");
    ensure!(found.clock_of.iter().all(|clock| *clock == 0), "{found:?}");
    ensure!(Clocks::of(&found).others().is_empty(), "{found:?}");
    passed()
}

/// Machines that have the same name, one for each rank.
async fn namesakes(comm: &dyn Communicator) -> Outcome {
    let machine = Identity {
        node: "node".to_owned(),
        ..identity(&comm.rank().0.to_string())
    };
    let found = topology(comm, &machine).await?;
    for (rank, host) in (0..comm.size()).zip(&found.hosts) {
        let name = match rank {
            0 => "node".to_owned(),
            rank => format!("node({})", rank + 1),
        };
        ensure!(host.name == name && host.ranks == [Rank(rank)], "{found:?}");
    }
    let own = 0..comm.size();
    ensure!(found.clock_of.iter().copied().eq(own), "{found:?}");
    passed()
}

/// A clock that is ahead of the machine's.
struct Ahead(u64);

impl Clock for Ahead {
    fn now(&self) -> Nanos {
        Nanos(MonotonicClock.now().0 + self.0)
    }
}

async fn same_clock(comm: &dyn Communicator) -> Outcome {
    offsets(comm, |_| 0).await
}

async fn shifted_clocks(comm: &dyn Communicator) -> Outcome {
    offsets(comm, |host| {
        [5_000_000_000, 0, 7_000_000_000][host as usize]
    })
    .await
}

/// Measures with a clock of host h that is `ahead_ns(h)` ahead.
async fn offsets(comm: &dyn Communicator, ahead_ns: fn(u32) -> u64) -> Outcome {
    let hosts: Topology = topology(comm, &identity(&host_name(comm.rank().0))).await?;
    let clock = Ahead(ahead_ns(hosts.clock_of[comm.rank().0 as usize]));
    let clocks = Clocks::of(&hosts);
    let start = MonotonicClock.now();
    let found = compare(comm, clocks.others(), &clock).await?;
    let took = Duration::from_nanos(MonotonicClock.now().0 - start.0);
    ensure!(found.len() + 1 == hosts.hosts.len(), "{found:?}");
    let (begun, ended) = (
        start.0 + ahead_ns(0),
        start.0 + ahead_ns(0) + took.as_nanos() as u64,
    );
    for (host, comparison) in (1..).zip(&found) {
        let offset = comparison.offset;
        if comm.rank() == Rank(0) {
            let at = comparison.at.0;
            ensure!(
                begun <= at && at <= ended,
                "{comparison:?}: {begun} to {ended}"
            );
        }
        let truth = ahead_ns(0) as i64 - ahead_ns(host) as i64;
        let wrong_by = (offset.offset_ns - truth).unsigned_abs();
        ensure!(
            wrong_by <= offset.error_ns + TOLERANCE_NS,
            "{offset:?} of host {host} is wrong by {wrong_by} ns"
        );
    }
    if found.is_empty() {
        return Ok("one host only".to_owned());
    }
    let worst = found
        .iter()
        .map(|c| c.offset.error_ns)
        .max()
        .unwrap_or_default();
    Ok(format!("± {worst} ns, took {took:.1?}"))
}
