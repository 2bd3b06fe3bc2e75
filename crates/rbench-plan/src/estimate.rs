//! Estimated duration of a run, before anything about the target is known.

use rbench_core::Nanos;

use crate::arrival::OpenLoop;
use crate::io::IoPlan;
use crate::jobs::{JobPlan, JobsPlan};
use crate::meta::{MetaPlan, PhaseKind, PhasePlan};
use crate::mix::MixPlan;
use crate::resolve::{Plan, Work};

/// Assumed operations on names per second of a worker.
pub const OPERATIONS_PER_S: f64 = 500.0;
/// Assumed bytes per second of a host.
pub const BYTES_PER_S: f64 = 200.0 * 1_048_576.0;
/// Seconds for preparation and removal.
const AROUND_S: f64 = 1.0;

/// The estimated duration in seconds: operations at the workers' rate, plus bytes at the hosts'
/// rate. A phase with a time limit takes at most that.
pub fn estimate_s(plan: &Plan) -> f64 {
    let pass = match &plan.work {
        Work::Meta(meta) => of_items(plan, meta),
        Work::Io(io) => of_blocks(plan, io),
        Work::Jobs(jobs) => of_jobs(plan, jobs),
        Work::Mix(mix) => of_mix(plan, mix),
        // The number of entries or of a trace's operations is unknown.
        Work::Find(_) | Work::Replay(_) => 0.0,
    };
    AROUND_S + f64::from(plan.passes()) * pass
}

fn workers(plan: &Plan) -> f64 {
    plan.workers().max(1) as f64
}

/// The time of operations and bytes of all ranks at the assumed rates.
fn work_s(plan: &Plan, operations: f64, bytes: f64) -> f64 {
    let hosts = plan.host_of.iter().max().map_or(1, |last| last + 1);
    operations / (OPERATIONS_PER_S * workers(plan)) + bytes / (BYTES_PER_S * f64::from(hosts))
}

/// The time of operations that take `work` seconds without their intended starts.
fn paced(open: Option<OpenLoop>, operations: f64, work: f64) -> f64 {
    open.map_or(work, |open| work.max(operations / open.rate))
}

fn of_items(plan: &Plan, meta: &MetaPlan) -> f64 {
    let most = meta.items_per_rank as f64 * f64::from(plan.ranks);
    let nodes = meta.nodes.saturating_mul(meta.loops) as f64 * f64::from(plan.ranks);
    let items = |phase: &PhasePlan| {
        let info = phase.kind.info();
        if info.items.is_none() || phase.kind == PhaseKind::DirList {
            return nodes;
        }
        // A deadline of creation bounds the items of all phases that use them.
        let mut creations = meta.phases.iter().filter(|other| {
            let other = other.kind.info();
            other.creates() && other.items == info.items
        });
        let deadline = creations.find_map(|creation| creation.deadline);
        deadline.map_or(most, |deadline| {
            most.min(OPERATIONS_PER_S * workers(plan) * deadline.as_secs_f64())
        })
    };
    let phases = meta.phases.iter().map(|phase| {
        let part = phase.part.map(|part| part.again.unwrap_or(part.items));
        let operations = part.map_or_else(|| items(phase), |each| each as f64 * workers(plan));
        let bytes = match phase.kind {
            PhaseKind::FileCreate => operations * meta.file_bytes() as f64,
            PhaseKind::FileRead => operations * meta.read.0 as f64,
            _ => 0.0,
        };
        let work = work_s(plan, operations, bytes);
        match phase.deadline.map(Nanos::as_secs_f64) {
            Some(deadline) if phase.open_loop.is_some() => deadline,
            Some(deadline) => deadline.min(work),
            None => paced(phase.open_loop, operations, work),
        }
    });
    phases.sum()
}

fn of_blocks(plan: &Plan, io: &IoPlan) -> f64 {
    let phases = io.phases.len() as f64;
    let data = plan.data_bytes() as f64;
    let pace = &io.job.pace;
    match pace.runtime {
        // Data that is read was written before.
        Some(time) => phases * Nanos(time.0 + pace.ramp.0).as_secs_f64() + work_s(plan, 0.0, data),
        None => {
            let files = io.job.small.map_or(0, |small| small.files);
            let work = work_s(plan, files as f64 * workers(plan), data);
            phases * paced(pace.together, io.operations() as f64 * workers(plan), work)
        }
    }
}

fn of_jobs(plan: &Plan, jobs: &JobsPlan) -> f64 {
    let bounded = |job: &&JobPlan| job.pace.time_based || job.pace.wear_out;
    let timed = jobs.rounds.iter().map(|round| {
        let times = round.iter().filter(bounded);
        let times = times.filter_map(|job| job.pace.runtime);
        times.map(Nanos::as_secs_f64).fold(0.0, f64::max)
    });
    let mut all = jobs.rounds.iter().flatten();
    let reads = all.any(|job| job.pattern.directions.read);
    let data = jobs.data_bytes(plan.ranks).0 as f64;
    // Data that is read was written before.
    let bytes = if reads { 2.0 * data } else { data };
    timed.sum::<f64>() + work_s(plan, 0.0, bytes)
}

fn of_mix(plan: &Plan, mix: &MixPlan) -> f64 {
    let (names, _) = mix.prepared();
    let sets = mix.copies(plan.ranks) as f64;
    let prepared = work_s(plan, names as f64 * sets, plan.data_bytes() as f64);
    let rounds = mix.rounds.unwrap_or(0) as f64 * workers(plan);
    let paced = paced(mix.open_loop, rounds, 0.0);
    mix.time.map_or(paced, Nanos::as_secs_f64) + prepared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Rw;
    use crate::resolve::Facts;
    use crate::spec::{Common, Io, Meta, Ops, Workload};
    use rbench_core::Bytes;

    fn estimate(workload: Workload, threads: u32) -> f64 {
        let common = Common {
            dir: Some("/mnt".into()),
            threads: Some(threads),
            ..Common::default()
        };
        estimate_s(&Facts::on(&[0]).plan(common, workload).expect("a plan"))
    }

    fn second() -> Option<Nanos> {
        Some(Nanos::SECOND)
    }

    #[test]
    fn a_phase_with_a_time_limit_takes_at_most_that() {
        let creation = |time, stonewall, items| {
            let meta = Meta {
                phases: Some(vec![PhaseKind::FileCreate]),
                depth: Some(0),
                time,
                stonewall,
                items,
                ..Meta::default()
            };
            estimate(Workload::Meta(meta), 4)
        };
        let without = creation(None, None, Some(20_000));
        assert!(without > 10.0, "{without}");
        for limited in [
            creation(second(), None, None),
            creation(second(), None, Some(20_000)),
        ] {
            assert!((1.9..without).contains(&limited), "{limited}");
        }
        // What later phases find is bounded by the time of its creation.
        let meta = Meta {
            phases: Some(vec![PhaseKind::FileCreate, PhaseKind::FileStat]),
            depth: Some(0),
            items: Some(1_000_000),
            stonewall: second(),
            ..Meta::default()
        };
        let followed = estimate(Workload::Meta(meta), 4);
        assert!(followed < 12.0, "{followed}");
        let few = creation(None, Some(Nanos(100_000_000_000)), Some(100));
        assert!(few < 3.0, "{few}");
        let ops = Ops {
            time: second(),
            ..Ops::default()
        };
        let all = estimate(Workload::Ops(ops), 4);
        let rows = rbench_core::operations::OPS_ROWS.len() as f64;
        assert!((rows..4.0 * rows).contains(&all), "{all} for {rows} rows");
    }

    #[test]
    fn an_open_loop_takes_as_long_as_its_rate_says() {
        let io = |rate| Io {
            rw: Some(vec![Rw::Write]),
            size: Some(Bytes(1 << 20)),
            block: Some(Bytes(4096)),
            rate,
            ..Io::default()
        };
        let estimate = |rate| estimate(Workload::Io(Box::new(io(rate))), 1);
        let (free, slow) = (estimate(None), estimate(Some(64.0)));
        // 256 operations.
        assert!(free < 1.5 && (4.0..6.0).contains(&slow), "{free} {slow}");
    }
}
