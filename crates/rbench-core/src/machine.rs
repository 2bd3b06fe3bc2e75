//! Activity of block devices and processors of a host while jobs ran, by any process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amounts::{amount, amounts};

/// Activity of a block device, by any process; pairs are reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DiskUseResult")]
pub struct DiskUse {
    /// Its name: `sda`, `dm-0`.
    pub name: String,
    /// Requests that were completed.
    #[serde(deserialize_with = "amounts")]
    pub ios: [u64; 2],
    /// Their size, sectors of 512 bytes.
    #[serde(deserialize_with = "amounts")]
    pub sectors: [u64; 2],
    /// Requests that became part of others.
    #[serde(deserialize_with = "amounts")]
    pub merges: [u64; 2],
    /// Time that all requests together took, ms.
    #[serde(deserialize_with = "amounts")]
    pub ticks_ms: [u64; 2],
    /// Time of both in the queue, also of requests that are not complete, ms.
    #[serde(deserialize_with = "amount")]
    pub in_queue_ms: u64,
    /// Time in which there was any request, ms.
    #[serde(deserialize_with = "amount")]
    pub busy_ms: u64,
    /// The time that all of this is of, ms.
    #[serde(deserialize_with = "amount")]
    pub span_ms: u64,
    /// Names of the devices that it is made of.
    pub parts: Vec<String>,
}

impl DiskUse {
    /// The part of the time in which there was any request, 0 to 100 percent.
    pub fn percent_busy(&self) -> f64 {
        match self.span_ms {
            0 => 0.0,
            span => (100.0 * self.busy_ms as f64 / span as f64).min(100.0),
        }
    }

    /// Adds what it did at another time.
    pub fn add(&mut self, other: &DiskUse) {
        merge!(self, other => DiskUse {
            add: in_queue_ms busy_ms span_ms;
            each: ios sectors merges ticks_ms;
            kept: name;
            own: parts;
        });
        self.parts.clone_from(parts);
    }
}

/// Idle time of one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CpuIdleResult")]
pub struct CpuIdle {
    /// Its number.
    pub cpu: u32,
    /// Time without work, in units that the kernel counts in.
    #[serde(deserialize_with = "amount")]
    pub idle: u64,
    /// All of the time, in the same.
    #[serde(deserialize_with = "amount")]
    pub all: u64,
}

impl CpuIdle {
    /// The idle part, 0 to 100 percent.
    pub fn percent(&self) -> f64 {
        match self.all {
            0 => 0.0,
            all => (100.0 * self.idle as f64 / all as f64).min(100.0),
        }
    }
}

/// Activity of the devices and processors of one host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HostUseResult")]
pub struct HostUse {
    /// Its position among the hosts of the run.
    pub host: u32,
    /// Its devices, in the order in which they were found.
    pub disks: Vec<DiskUse>,
    /// Its processors, ascending; empty: nobody asked.
    pub cpus: Vec<CpuIdle>,
    /// Time of a piece of work on each of its processors, us.
    pub unit_us: Vec<f64>,
}

impl HostUse {
    /// Adds what the same host did at another time.
    pub fn add(&mut self, other: &HostUse) {
        let HostUse {
            host: _,
            disks,
            cpus,
            unit_us,
        } = other;
        for disk in disks {
            match self.disks.iter_mut().find(|mine| mine.name == disk.name) {
                Some(mine) => mine.add(disk),
                None => self.disks.push(disk.clone()),
            }
        }
        for cpu in cpus {
            match self.cpus.iter_mut().find(|mine| mine.cpu == cpu.cpu) {
                Some(mine) => {
                    mine.idle += cpu.idle;
                    mine.all += cpu.all;
                }
                None => self.cpus.push(*cpu),
            }
        }
        if self.unit_us.is_empty() {
            self.unit_us.clone_from(unit_us);
        }
    }

    /// Takes what another process of the same host saw at the same time: what both saw is
    /// the same.
    pub fn join(&mut self, other: HostUse) {
        for disk in other.disks {
            if self.disks.iter().all(|mine| mine.name != disk.name) {
                self.disks.push(disk);
            }
        }
        if self.cpus.is_empty() {
            self.cpus = other.cpus;
        }
        if self.unit_us.is_empty() {
            self.unit_us = other.unit_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str, ios: u64) -> DiskUse {
        DiskUse {
            name: name.to_owned(),
            ios: [ios, 2],
            sectors: [8 * ios, 16],
            merges: [3, 4],
            ticks_ms: [5, 6],
            in_queue_ms: 7,
            busy_ms: 50,
            span_ms: 200,
            parts: vec!["sda".to_owned()],
        }
    }

    fn host() -> HostUse {
        let cpu = |cpu, idle| CpuIdle {
            cpu,
            idle,
            all: 400,
        };
        HostUse {
            host: 3,
            disks: vec![disk("dm-0", 1), disk("sda", 9)],
            cpus: vec![cpu(0, 100), cpu(7, 300)],
            unit_us: vec![1.5, 2.5],
        }
    }

    #[test]
    fn times_add_up_and_are_seen_once() {
        let mut sum = host();
        sum.add(&host());
        assert_eq!((sum.disks[0].ios, sum.disks[0].busy_ms), ([2, 4], 100));
        assert_eq!(sum.disks[0].sectors, [16, 32]);
        assert_eq!(sum.disks[0].percent_busy(), 25.0);
        assert_eq!((sum.cpus[1].idle, sum.cpus[1].all), (600, 800));
        assert_eq!(sum.cpus[1].percent(), 75.0);
        let mut seen = HostUse {
            disks: vec![disk("sda", 9)],
            ..HostUse::default()
        };
        seen.join(host());
        let names: Vec<&str> = seen.disks.iter().map(|d| d.name.as_str()).collect();
        assert_eq!((names, seen.disks[0].ios), (vec!["sda", "dm-0"], [9, 2]));
        assert_eq!(seen.cpus.len(), 2);
    }

    #[test]
    fn no_part_is_more_than_the_whole() {
        let full = DiskUse {
            busy_ms: 250,
            ..disk("sda", 0)
        };
        assert_eq!(full.percent_busy(), 100.0);
        assert_eq!(DiskUse::default().percent_busy(), 0.0);
        assert_eq!(CpuIdle::default().percent(), 0.0);
    }
}
