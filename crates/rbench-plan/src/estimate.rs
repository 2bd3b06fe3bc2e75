//! Estimated duration of a run, before anything about the target is known.

use rbench_core::Nanos;

use crate::jobs::JobPlan;
use crate::meta::PhaseKind;
use crate::resolve::{Plan, Work};

/// Assumed operations on names per second of a worker.
pub const OPERATIONS_PER_S: f64 = 500.0;
/// Assumed bytes per second of a host.
pub const BYTES_PER_S: f64 = 200.0 * 1_048_576.0;
/// Seconds for preparation and removal.
const AROUND_S: f64 = 1.0;

/// The estimated duration in seconds: the time of timed phases, plus operations at
/// the workers' rate, plus bytes at the hosts' rate.
pub fn estimate_s(plan: &Plan) -> f64 {
    let hosts = plan.host_of.iter().max().map_or(1, |last| last + 1);
    let workers = plan.workers().max(1) as f64;
    let passes = f64::from(plan.passes());
    let (timed, operations, bytes) = match &plan.work {
        Work::Meta(_) => of_items(plan),
        Work::Io(_) => of_blocks(plan),
        Work::Jobs(_) => of_jobs(plan),
        Work::Mix(mix) => {
            let (names, _) = mix.prepared();
            let sets = if mix.shared {
                1.0
            } else {
                f64::from(plan.ranks)
            };
            let bytes = plan.data_bytes() as f64;
            (mix.time.map_or(0.0, seconds), names as f64 * sets, bytes)
        }
        // The number of entries or of a trace's operations is unknown.
        Work::Find(_) | Work::Replay(_) => (0.0, 0.0, 0.0),
    };
    let moved = bytes / (BYTES_PER_S * f64::from(hosts));
    AROUND_S + passes * (timed + operations / (OPERATIONS_PER_S * workers) + moved)
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

/// Seconds, operations and bytes of one pass.
fn of_items(plan: &Plan) -> (f64, f64, f64) {
    let Work::Meta(meta) = &plan.work else {
        return (0.0, 0.0, 0.0);
    };
    let items = meta.items_per_rank as f64 * f64::from(plan.ranks);
    let (mut timed, mut operations, mut bytes) = (0.0, 0.0, 0.0);
    for phase in &meta.phases {
        if let Some(deadline) = phase.deadline {
            timed += seconds(deadline);
            continue;
        }
        operations += items;
        bytes += match phase.kind {
            PhaseKind::FileCreate => items * meta.file_bytes() as f64,
            PhaseKind::FileRead => items * meta.read.0 as f64,
            _ => 0.0,
        };
    }
    (timed, operations, bytes)
}

fn of_blocks(plan: &Plan) -> (f64, f64, f64) {
    let Work::Io(io) = &plan.work else {
        return (0.0, 0.0, 0.0);
    };
    let phases = io.phases.len() as f64;
    let data = plan.data_bytes() as f64;
    match io.time {
        // Data that is read was written before.
        Some(time) => (phases * seconds(Nanos(time.0 + io.ramp.0)), 0.0, data),
        None => {
            let files = io.small.map_or(0, |small| small.files);
            let files = files as f64 * plan.workers() as f64;
            (0.0, phases * files, phases * data)
        }
    }
}

fn of_jobs(plan: &Plan) -> (f64, f64, f64) {
    let Work::Jobs(jobs) = &plan.work else {
        return (0.0, 0.0, 0.0);
    };
    let mut timed = 0.0;
    for round in &jobs.rounds {
        let bounded = |job: &&JobPlan| job.pace.time_based || job.pace.wear_out;
        let times = round.iter().filter(bounded);
        let times = times.filter_map(|job| job.pace.runtime);
        timed += times.map(seconds).fold(0.0, f64::max);
    }
    let reads = jobs
        .rounds
        .iter()
        .flatten()
        .any(|job| job.pattern.directions.read);
    let data = jobs.data_bytes(plan.ranks).0 as f64;
    // Data that is read was written before.
    (timed, 0.0, if reads { 2.0 * data } else { data })
}
