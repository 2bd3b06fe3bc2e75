//! CPU time and memory of the processes of a file system's client while a phase runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// The watched processes of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// The one with this number.
    Process(u32),
    /// All with this name: that of the process (`comm`), or the file name of the first word
    /// of its command line.
    Name(String),
}

impl FromStr for Watch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Watch, &'static str> {
        if text.is_empty() || text.contains('/') {
            return Err("expected a process ID, or a name without '/'");
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().ok().filter(|number| *number > 0);
            return number.map(Watch::Process).ok_or("not a valid process ID");
        }
        Ok(Watch::Name(text.to_owned()))
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Watch::Process(number) => write!(f, "{number}"),
            Watch::Name(name) => f.write_str(name),
        }
    }
}

/// Usage of the watched processes of a host while a phase ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientUse {
    /// Number of processes.
    pub processes: u64,
    /// CPU time of all their threads, those that ended meanwhile included.
    pub cpu: Nanos,
    /// The part of it in their own code, in whole ticks of the kernel's clock.
    pub user: Nanos,
    /// The part of it in the kernel, in the same.
    pub system: Nanos,
    /// Resident memory at the end of the phase.
    pub resident: Bytes,
    /// The most that was ever resident since each process was started, added up.
    pub peak: Bytes,
}

/// Reasons why their usage is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientGap {
    /// There was no such process at the start of the phase, or it cannot be seen.
    Absent,
    /// A process ended while the phase ran, or another of that name was started.
    Replaced,
    /// The kernel did not answer in time.
    Silent,
}

impl ClientGap {
    /// For machines.
    pub fn name(self) -> &'static str {
        match self {
            ClientGap::Absent => "absent",
            ClientGap::Replaced => "replaced",
            ClientGap::Silent => "silent",
        }
    }
}

/// The client of one host in a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostClient {
    /// The host's name.
    pub host: String,
    /// Its usage, or the reason why that is unknown.
    pub used: Result<ClientUse, ClientGap>,
}

/// The cost of the file system's client in a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCost {
    /// The requested processes; `None`: those that serve the mount.
    pub watch: Option<Watch>,
    /// Operations of all rows of the phase, failed ones included; `None` where the phase
    /// did more than its rows count.
    pub operations: Option<u64>,
    /// Every host, in the order of their first ranks.
    pub hosts: Vec<HostClient>,
}

impl ClientCost {
    /// CPU time on all hosts; `None` unless that of each is known.
    pub fn cpu(&self) -> Option<Nanos> {
        let each = self.hosts.iter().map(|host| Some(host.used.ok()?.cpu.0));
        each.sum::<Option<u64>>().map(Nanos)
    }

    /// CPU time for each operation, ns; `None` without operations.
    pub fn per_operation_ns(&self) -> Option<f64> {
        let operations = self.operations.filter(|n| *n > 0)?;
        Some(self.cpu()?.0 as f64 / operations as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cpu: u64) -> Result<ClientUse, ClientGap> {
        Ok(ClientUse {
            processes: 2,
            cpu: Nanos(cpu),
            user: Nanos(1),
            system: Nanos(2),
            resident: Bytes(3),
            peak: Bytes(4),
        })
    }

    fn cost(operations: Option<u64>, hosts: &[Result<ClientUse, ClientGap>]) -> ClientCost {
        let host = |used: &Result<ClientUse, ClientGap>| HostClient {
            host: "a".to_owned(),
            used: *used,
        };
        ClientCost {
            watch: None,
            operations,
            hosts: hosts.iter().map(host).collect(),
        }
    }

    #[test]
    fn a_watched_process_has_a_number_or_a_name() {
        let check = |text: &str, expect| assert_eq!(text.parse().ok(), expect, "{text}");
        check("17", Some(Watch::Process(17)));
        check("mfsmount", Some(Watch::Name("mfsmount".to_owned())));
        check("3fs", Some(Watch::Name("3fs".to_owned())));
        for wrong in ["", "0", "99999999999", "/usr/bin/mfsmount"] {
            check(wrong, None);
        }
    }

    #[test]
    fn an_operation_costs_what_all_hosts_used_if_each_is_known() {
        let check = |cost: ClientCost, expect| assert_eq!(cost.per_operation_ns(), expect);
        check(cost(Some(4), &[used(10), used(20)]), Some(7.5));
        check(cost(Some(4), &[used(10), Err(ClientGap::Replaced)]), None);
        check(cost(Some(0), &[used(10)]), None);
        check(cost(None, &[used(10)]), None);
    }
}
