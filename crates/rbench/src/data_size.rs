//! The data that each host reads, compared with the memory that may hold it.

use std::collections::BTreeMap;

use rbench_cli::Output;
use rbench_core::OpKind;
use rbench_exec::{ExecError, Group};
use rbench_plan::jobs::{JobPlan, JobsPlan, Whole};
use rbench_plan::meta::{Backend, PhaseKind};
use rbench_plan::{MetaPlan, Plan, Work};
use rbench_report::RunResult;
use rbench_report::schema::{DataSize, PhaseResult, Warning};
use rbench_sys::residency::memory;

use crate::round_trip::{has_a_place, moves};

/// Data this many times as large as a memory cannot mostly come from that memory.
const FACTOR: u64 = 2;

/// Operations that read data of files.
const READS: [OpKind; 2] = [OpKind::Read, OpKind::ReadFile];

/// Bytes that the plan reads at most on each host, and the host's memory, at rank 0. Empty if the
/// plan reads nothing or no output shows it.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn gather(
    group: &Group<'_>,
    plan: &Plan,
    output: &Output,
) -> Result<Vec<DataSize>, ExecError> {
    let each = read_bytes(plan) / u64::from(plan.ranks.max(1));
    if each == 0 || !has_a_place(output) {
        return Ok(Vec::new());
    }
    let mine = group.is_leader().then(|| DataSize {
        host: group.host_name().to_owned(),
        read_bytes: each.saturating_mul(u64::from(group.host.size())),
        memory_bytes: memory().map(|memory| memory.0).filter(|known| *known > 0),
        client_cache_bytes: output.client_cache.map(|size| size.0),
    });
    let all = group.quietly(group.world.gather_values(&mine)).await?;
    Ok(all.into_iter().flatten().flatten().collect())
}

/// Adds to a result the data that each host has read, at most what was `planned` for it, and the
/// warnings about it.
pub fn note(plan: &Plan, planned: &[DataSize], result: &mut RunResult) {
    let read = |size: &DataSize| DataSize {
        read_bytes: size.read_bytes.min(bytes_read(&result.phases, &size.host)),
        ..size.clone()
    };
    let sizes = planned.iter().map(read).filter(|size| size.read_bytes > 0);
    let sizes: Vec<DataSize> = sizes.collect();
    result.warnings.extend(warnings(plan, &sizes));
    result.target.data_sizes = sizes;
}

/// Bytes that a host has read: those of the iteration with the most, and each once where workers
/// covered everything and went on.
fn bytes_read(phases: &[PhaseResult], host: &str) -> u64 {
    let mut of_iterations = BTreeMap::new();
    let reads = |phase: &&PhaseResult| READS.iter().any(|op| phase.op == op.name());
    for phase in phases.iter().filter(reads) {
        let bytes = match phase.hosts.iter().find(|own| own.host == host) {
            Some(own) => own.bytes,
            // Of very many hosts, the row has only the outliers.
            None => (phase.host_crowd.as_ref()).map_or(0, |crowd| phase.bytes / crowd.hosts.max(1)),
        };
        let round = phase.residency.as_ref().and_then(|r| r.came_round.as_ref());
        let (once, done) = round.map_or((1, 1), |round| (round.once, round.done.max(1)));
        let distinct = u128::from(bytes) * u128::from(once.min(done)) / u128::from(done);
        *of_iterations.entry(phase.iteration).or_insert(0) += distinct as u64;
    }
    of_iterations.into_values().max().unwrap_or(0)
}

/// Bytes of the files that are read, summed over all ranks. 0 if no file is read or the sizes are
/// those of existing files.
fn read_bytes(plan: &Plan) -> u64 {
    match &plan.work {
        Work::Meta(meta) if reads_files(meta) => meta
            .items_per_rank
            .saturating_mul(meta.read.0)
            .saturating_mul(u64::from(plan.ranks)),
        Work::Meta(_) => 0,
        Work::Io(io) if moves(&io.job.engine) && io.phases.iter().any(|rw| rw.reads()) => {
            plan.data_bytes()
        }
        Work::Mix(mix) if mix.reads() => plan.data_bytes(),
        Work::Io(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => 0,
        Work::Jobs(jobs) => {
            let reading = |wave: &Vec<JobPlan>| wave.iter().filter(reads).cloned().collect();
            let reading = JobsPlan {
                rounds: jobs.rounds.iter().map(reading).collect(),
                iterations: jobs.iterations,
                ack_journal: None,
                global_options: Vec::new(),
                whole: Whole::default(),
            };
            reading.data_bytes(plan.ranks).0
        }
    }
}

fn reads_files(meta: &MetaPlan) -> bool {
    meta.backend == Backend::Posix && meta.runs(PhaseKind::FileRead)
}

fn reads(job: &&JobPlan) -> bool {
    job.pattern.directions.read && moves(&job.engine)
}

/// Returns true if the page cache cannot serve the plan's reads.
fn goes_around_memory(plan: &Plan) -> bool {
    plan.drop_caches
        || match &plan.work {
            Work::Meta(meta) => meta.direct,
            Work::Io(io) => io.job.direct,
            Work::Mix(mix) => !mix.reads(),
            // Find reads no data; a replay reads what its trace says.
            Work::Find(_) | Work::Replay(_) => true,
            Work::Jobs(jobs) => {
                let mut reading = jobs.rounds.iter().flatten().filter(reads);
                reading.all(|job| job.direct)
            }
        }
}

/// Warnings about data that is too small for the memory.
fn warnings(plan: &Plan, sizes: &[DataSize]) -> Vec<Warning> {
    if plan.embedded() {
        return Vec::new();
    }
    let around = goes_around_memory(plan);
    let memory = small(sizes, |size| size.memory_bytes.filter(|_| !around));
    let cache = small(sizes, |size| size.client_cache_bytes);
    let memory = memory.map(|found| {
        let message = format!("{found} of memory: reads may come from memory.");
        Warning::new("fits-in-memory", message)
    });
    let cache = cache.map(|found| {
        let message = format!(
            "{found} of the file system client's cache (--client-cache): reads may come from that cache."
        );
        Warning::new("fits-in-client-cache", message)
    });
    memory.into_iter().chain(cache).collect()
}

/// Describes the hosts that read too little for their memory.
fn small(sizes: &[DataSize], room: impl Fn(&DataSize) -> Option<u64>) -> Option<String> {
    let is_small = |size: &&DataSize| {
        room(size).is_some_and(|room| size.read_bytes < room.saturating_mul(FACTOR))
    };
    let hosts: Vec<&DataSize> = sizes.iter().filter(is_small).collect();
    let first = hosts.first()?;
    Some(format!(
        "The distinct data read {} is {}, less than {FACTOR} times its {}",
        place(&hosts),
        about(first.read_bytes),
        about(room(first)?)
    ))
}

/// Formats bytes for people: `1.5 GiB`.
fn about(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    let digits = usize::from(unit != "B" && value < 100.0);
    format!("{value:.digits$} {unit}")
}

/// `on client1`, `on each of client1 and 2 more`.
fn place(found: &[&DataSize]) -> String {
    match found {
        [] => String::new(),
        [one] => format!("on {}", one.host),
        [first, rest @ ..] => format!("on each of {} and {} more", first.host, rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, read: u64, memory: Option<u64>, cache: Option<u64>) -> DataSize {
        DataSize {
            host: name.to_owned(),
            read_bytes: read,
            memory_bytes: memory,
            client_cache_bytes: cache,
        }
    }

    #[test]
    fn data_below_twice_the_room_is_small_and_no_other() {
        let room = |size: &DataSize| size.memory_bytes;
        let of = |hosts: &[DataSize]| small(hosts, room);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[host("a", 200, Some(100), None)]), None);
        assert_eq!(of(&[host("a", 1, None, Some(100))]), None);
        let one = of(&[
            host("a", 200, Some(100), None),
            host("b", 199, Some(100), None),
        ]);
        let expect = "The distinct data read on b is 199 B, less than 2 times its 100 B";
        assert_eq!(one.as_deref(), Some(expect));
        let both = of(&[
            host("a", 1 << 30, Some(3 << 30), None),
            host("b", 0, Some(1), None),
        ]);
        let expect = "The distinct data read on each of a and 1 more is 1.0 GiB, less than 2 times its 3.0 GiB";
        assert_eq!(both.as_deref(), Some(expect));
    }

    #[test]
    fn bytes_are_rounded_for_people() {
        assert_eq!(about(1023), "1023 B");
        assert_eq!(about(1 << 20), "1.0 MiB");
        assert_eq!(about(25_275_195_392), "23.5 GiB");
        assert_eq!(about(512 << 30), "512 GiB");
    }
}
