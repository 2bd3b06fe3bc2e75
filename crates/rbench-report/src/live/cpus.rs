//! Number of busy processors, from the CPU time of ranks and clients.

use std::collections::{BTreeMap, VecDeque};

use rbench_core::{Nanos, Rank};

/// Averaging window.
const OVER: Nanos = Nanos(3_000_000_000);

/// A rank's latest samples: time, and CPU time used by then.
#[derive(Debug, Clone, Default)]
struct Accounts {
    host: String,
    tool: VecDeque<(Nanos, Nanos)>,
    client: VecDeque<(Nanos, Nanos)>,
}

/// The latest samples of all ranks.
#[derive(Debug, Clone, Default)]
pub struct Cpus(BTreeMap<Rank, Accounts>);

impl Cpus {
    /// Adds a sample of the CPU time of a rank on `host` and, at the host's leader, of the client.
    pub fn used(&mut self, rank: Rank, host: &str, used: (Nanos, Option<Nanos>), now: Nanos) {
        let accounts = self.0.entry(rank).or_default();
        host.clone_into(&mut accounts.host);
        add(&mut accounts.tool, now, used.0);
        match used.1 {
            Some(client) => add(&mut accounts.client, now, client),
            None => accounts.client.clear(),
        }
    }

    /// Processors that the ranks of a host, or of all hosts, keep busy; `None` while unknown.
    pub fn tool(&self, host: Option<&str>) -> Option<f64> {
        self.sum(host, |accounts| &accounts.tool)
    }

    /// Processors that the file system's clients keep busy.
    pub fn client(&self, host: Option<&str>) -> Option<f64> {
        self.sum(host, |accounts| &accounts.client)
    }

    fn sum(
        &self,
        host: Option<&str>,
        of: impl Fn(&Accounts) -> &VecDeque<(Nanos, Nanos)>,
    ) -> Option<f64> {
        let ranks = self.0.values();
        let ranks = ranks.filter(|rank| host.is_none_or(|host| rank.host == host));
        let busy = ranks.filter_map(|rank| busy(of(rank)));
        busy.reduce(|sum, more| sum + more)
    }
}

fn add(accounts: &mut VecDeque<(Nanos, Nanos)>, now: Nanos, used: Nanos) {
    // Another process has replaced it.
    if accounts.back().is_some_and(|(_, before)| *before > used) {
        accounts.clear();
    }
    accounts.push_back((now, used));
    while accounts.len() > 2 && now.since(accounts[1].0) >= OVER {
        accounts.pop_front();
    }
}

fn busy(accounts: &VecDeque<(Nanos, Nanos)>) -> Option<f64> {
    let ((from, before), (until, after)) = (accounts.front()?, accounts.back()?);
    let over = until.since(*from);
    (over > Nanos(0)).then(|| after.since(*before).as_secs_f64() / over.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn processors_that_are_busy_are_time_used_over_time_and_add_up() {
        let mut cpus = Cpus::default();
        assert_eq!(cpus.tool(None), None);
        for second in 0..20 {
            let now = Nanos(second * SECOND);
            // Half of a processor, after the tenth second a whole one.
            let used = Nanos(second * SECOND / 2 + second.saturating_sub(10) * SECOND / 2);
            cpus.used(Rank(0), "a", (used, Some(Nanos(second * SECOND))), now);
            cpus.used(Rank(1), "a", (Nanos(7), None), now);
            cpus.used(Rank(2), "b", (used, Some(Nanos(0))), now);
        }
        assert_eq!(cpus.tool(Some("a")), Some(1.0));
        assert_eq!(cpus.tool(None), Some(2.0));
        assert_eq!(cpus.client(Some("a")), Some(1.0));
        assert_eq!(cpus.client(None), Some(1.0));
        // A restarted client has no history.
        cpus.used(Rank(2), "b", (Nanos(20 * SECOND), None), Nanos(20 * SECOND));
        assert_eq!(cpus.client(Some("b")), None);
    }
}
