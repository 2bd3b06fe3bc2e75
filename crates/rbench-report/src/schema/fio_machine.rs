//! What block devices and processors of a host did while jobs ran, as fio
//! reports it.

use rbench_core::machine::{CpuIdle, DiskUse, HostUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amounts::{amount, amounts};

/// What the devices and processors of one host did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostUseResult {
    /// Its position among the hosts of the run.
    pub host: u32,
    /// Its devices, in the order in which they were found.
    pub disks: Vec<DiskUseResult>,
    /// Its processors, ascending; empty: nobody asked.
    pub cpus: Vec<CpuIdleResult>,
    /// How long a piece of work takes on each of its processors, us.
    pub unit_us: Vec<f64>,
}

/// What a block device did, whoever used it; pairs are reads and writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUseResult {
    /// Its name: `sda`, `dm-0`.
    pub name: String,
    /// Requests that were completed.
    #[serde(deserialize_with = "amounts")]
    pub ios: [u64; 2],
    /// What they moved, sectors of 512 bytes.
    #[serde(deserialize_with = "amounts")]
    pub sectors: [u64; 2],
    /// Requests that became part of others.
    #[serde(deserialize_with = "amounts")]
    pub merges: [u64; 2],
    /// Time that all requests together took, ms.
    #[serde(deserialize_with = "amounts")]
    pub ticks_ms: [u64; 2],
    /// The same of both, also of requests that are not complete, ms.
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

/// How long one processor had nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuIdleResult {
    /// Its number.
    pub cpu: u32,
    /// Time without work, in units that the kernel counts in.
    #[serde(deserialize_with = "amount")]
    pub idle: u64,
    /// All of the time, in the same.
    #[serde(deserialize_with = "amount")]
    pub all: u64,
}

impl From<&HostUse> for HostUseResult {
    fn from(used: &HostUse) -> HostUseResult {
        let HostUse {
            host,
            disks,
            cpus,
            unit_us,
        } = used;
        let cpu = |one: &CpuIdle| {
            let CpuIdle { cpu, idle, all } = *one;
            CpuIdleResult { cpu, idle, all }
        };
        HostUseResult {
            host: *host,
            disks: disks.iter().map(DiskUseResult::from).collect(),
            cpus: cpus.iter().map(cpu).collect(),
            unit_us: unit_us.clone(),
        }
    }
}

impl From<&HostUseResult> for HostUse {
    fn from(used: &HostUseResult) -> HostUse {
        let HostUseResult {
            host,
            disks,
            cpus,
            unit_us,
        } = used;
        let cpu = |one: &CpuIdleResult| {
            let CpuIdleResult { cpu, idle, all } = *one;
            CpuIdle { cpu, idle, all }
        };
        HostUse {
            host: *host,
            disks: disks.iter().map(DiskUse::from).collect(),
            cpus: cpus.iter().map(cpu).collect(),
            unit_us: unit_us.clone(),
        }
    }
}

/// Both have the same fields.
macro_rules! disk_use {
    ($from:ty, $to:ident) => {
        impl From<&$from> for $to {
            fn from(disk: &$from) -> $to {
                let disk = disk.clone();
                $to {
                    name: disk.name,
                    ios: disk.ios,
                    sectors: disk.sectors,
                    merges: disk.merges,
                    ticks_ms: disk.ticks_ms,
                    in_queue_ms: disk.in_queue_ms,
                    busy_ms: disk.busy_ms,
                    span_ms: disk.span_ms,
                    parts: disk.parts,
                }
            }
        }
    };
}

disk_use!(DiskUse, DiskUseResult);
disk_use!(DiskUseResult, DiskUse);
