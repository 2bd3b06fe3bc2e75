//! A whole run of the group: set up, workload, removal.

use rbench_plan::{Plan, Work};

use crate::group::{ExecError, Group};
use crate::listener::{Listener, RunEnd};
use crate::target::Place;
use crate::workload::{self, Run, Workload};
use crate::{needs, room, spots};

/// Code of the warning: the run nearly fills the free space.
pub const NEARLY_FULL: &str = "nearly-full";

/// Carries out `plan`.
///
/// # Errors
/// When nothing could be set up (one sentence, the same on every rank; created
/// files are removed), or the ranks cannot communicate.
pub async fn execute(
    group: &Group<'_>,
    plan: &Plan,
    place: &Place<'_>,
    run_key: u64,
    listener: &mut dyn Listener,
) -> Result<RunEnd, ExecError> {
    let run = Run {
        group,
        plan,
        place,
        key: run_key,
    };
    let ended = carry_out(run, workload::of(&plan.work), listener).await;
    let broken = match &ended {
        Ok(end) => end.trouble.is_some(),
        Err(ExecError::SetUp(_)) => true,
        // Nothing was started, or the ranks can no longer communicate.
        Err(_) => return ended,
    };
    group.examine_mounts_if(broken).await?;
    ended
}

async fn carry_out(
    run: Run<'_>,
    work: &dyn Workload,
    listener: &mut dyn Listener,
) -> Result<RunEnd, ExecError> {
    let Run {
        group, plan, place, ..
    } = run;
    check_limits(run, work).await?;
    let spots = work.spots(run);
    if !plan.leave.private_dirs {
        spots::compare(group, &spots, place.name).await?;
    }
    if let Some(names) = work.in_flight() {
        needs::names_in_flight(group, plan, names).await?;
    }
    if !plan.leave.untried {
        needs::check(group, &work.needs(), &spots, place.name).await?;
    }
    if !plan.leave.overfill && !spots.is_empty() {
        let here = room::judged_here(group, plan.leave.private_dirs, &spots);
        let demands = (!here.is_empty()).then(|| work.demands(run, here));
        for warning in room::check(group, demands, size_option(plan)).await? {
            listener.warning(NEARLY_FULL, warning);
        }
    }
    work.run(run, listener).await
}

/// Checks the plan's needs on every host, before anything is created.
async fn check_limits(run: Run<'_>, work: &dyn Workload) -> Result<(), ExecError> {
    let Run { group, plan, .. } = run;
    let limit = rbench_sys::limits::raise_open_files()
        .map_err(|e| format!("cannot read the limit on open files: {e}"));
    let limit = group.agree(limit).await?;
    let needed = u64::from(plan.threads) * u64::from(work.open_files_each()) + 64;
    let enough = if needed > limit {
        let threads = plan.threads;
        let what = match work.in_flight() {
            Some(names) => format!("--threads {threads} and --iodepth {} need", names.depth),
            None => format!("--threads {threads} needs"),
        };
        Err(format!(
            "{what} {needed} open files per rank, but the limit is {limit} (ulimit -n)"
        ))
    } else if plan.drop_caches && !nix::unistd::geteuid().is_root() {
        Err("--drop-caches needs root on every host".to_owned())
    } else {
        Ok(())
    };
    group.agree(enough).await.map_err(|e| group.as_usage(e))
}

/// The option that sets the amount of data; `None` if there are several.
fn size_option(plan: &Plan) -> Option<&'static str> {
    match &plan.work {
        Work::Io(io) if io.job.small.is_some() => Some("--files, --file-size"),
        Work::Io(_) => Some("--size"),
        Work::Meta(_) | Work::Jobs(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => None,
    }
}
