//! The cost of the file system's client in a phase, in the result file.

use rbench_core::client::{ClientCost, HostClient};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most hosts of a phase that are named.
const MOST_HOSTS: usize = 256;

/// Usage of the processes of the file system's client on all hosts, from right before the common
/// start until every worker had come to its end, for any process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCostResult {
    /// The number or name of `--watch`; `None`: the processes that serve the mount.
    pub watch: Option<String>,
    /// Operations of all rows of the phase, failed ones included; `None` where others that
    /// no row counts came before or between them (a ramp, reading back), or workers were given up.
    pub operations: Option<u64>,
    /// CPU time on all hosts, s; `None` unless that of each is known.
    pub cpu_s: Option<f64>,
    /// cpu_s / operations, us; `None` where either is unknown, and without operations.
    pub cpu_us_per_operation: Option<f64>,
    /// Hosts in the order of their first ranks; of more than 256 those with the most CPU
    /// time, and those where it is not known first.
    pub hosts: Vec<HostClientResult>,
}

/// The client of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostClientResult {
    /// The host's name.
    pub host: String,
    /// Reason why its usage is unknown: `absent` (no such process at the start of the phase, or
    /// none that can be seen), `replaced` (one ended while the phase ran, or another of that name
    /// was started), `silent` (looking took too long); absent where the rest is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Number of processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// CPU time of all their threads in the phase, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// The part of it in their own code, s, in whole ticks of the kernel's clock (10 ms as a
    /// rule): with `system_s` it may miss `cpu_s` by some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_s: Option<f64>,
    /// The part of it in the kernel, s, in the same ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_s: Option<f64>,
    /// Their resident memory when the phase had ended, bytes; what they share counts for
    /// each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    /// The most that was ever resident since each was started, not in this phase alone,
    /// added up, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_resident_bytes: Option<u64>,
}

impl From<&ClientCost> for ClientCostResult {
    fn from(cost: &ClientCost) -> ClientCostResult {
        let ClientCost {
            watch,
            operations,
            hosts,
        } = cost;
        let mut named: Vec<(usize, &HostClient)> = hosts.iter().enumerate().collect();
        if named.len() > MOST_HOSTS {
            let cpu = |host: &HostClient| host.used.map_or(u64::MAX, |used| used.cpu.0);
            named.sort_by_key(|(_, host)| std::cmp::Reverse(cpu(host)));
            named.truncate(MOST_HOSTS);
            named.sort_by_key(|(place, _)| *place);
        }
        ClientCostResult {
            watch: watch.as_ref().map(ToString::to_string),
            operations: *operations,
            cpu_s: cost.cpu().map(|cpu| cpu.as_secs_f64()),
            cpu_us_per_operation: cost.per_operation_ns().map(|ns| ns / 1e3),
            hosts: named
                .into_iter()
                .map(|(_, host)| HostClientResult::from(host))
                .collect(),
        }
    }
}

impl From<&HostClient> for HostClientResult {
    fn from(client: &HostClient) -> HostClientResult {
        let HostClient { host, used } = client;
        let known = used.ok();
        HostClientResult {
            host: host.clone(),
            unknown: used.err().map(|gap| gap.name().to_owned()),
            processes: known.map(|used| used.processes),
            cpu_s: known.map(|used| used.cpu.as_secs_f64()),
            user_s: known.map(|used| used.user.as_secs_f64()),
            system_s: known.map(|used| used.system.as_secs_f64()),
            resident_bytes: known.map(|used| used.resident.0),
            peak_resident_bytes: known.map(|used| used.peak.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use rbench_core::client::{ClientGap, ClientUse};
    use rbench_core::{Bytes, Nanos};

    use super::*;

    #[test]
    fn of_too_many_hosts_those_that_matter_are_named() {
        let used = |cpu: u64| {
            Ok(ClientUse {
                processes: 1,
                cpu: Nanos(cpu),
                user: Nanos(0),
                system: Nanos(0),
                resident: Bytes(7),
                peak: Bytes(9),
            })
        };
        let mut cost = ClientCost {
            watch: None,
            operations: Some(1000),
            hosts: (0..300)
                .map(|n| HostClient {
                    host: format!("h{n}"),
                    used: used(1_000_000 * n),
                })
                .collect(),
        };
        let result = ClientCostResult::from(&cost);
        let names: Vec<&str> = result.hosts.iter().map(|h| h.host.as_str()).collect();
        assert_eq!((names[0], names[255], names.len()), ("h44", "h299", 256));
        // 0 + 1 + … + 299 ms.
        assert_eq!(result.cpu_s, Some(44.85));
        assert_eq!(result.cpu_us_per_operation, Some(44_850.0));
        cost.hosts[3].used = Err(ClientGap::Replaced);
        let result = ClientCostResult::from(&cost);
        assert_eq!((result.cpu_s, result.cpu_us_per_operation), (None, None));
        let unknown = &result.hosts[0];
        assert_eq!(unknown.host, "h3");
        assert_eq!(unknown.unknown.as_deref(), Some("replaced"));
        assert_eq!((unknown.processes, unknown.cpu_s), (None, None));
        assert_eq!(result.hosts[1].resident_bytes, Some(7));
        assert_eq!(result.hosts[1].peak_resident_bytes, Some(9));
    }
}
