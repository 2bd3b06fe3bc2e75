//! A whole run of the group: set up, workload, removal.

use rbench_plan::meta::{Backend, Location};
use rbench_plan::{Plan, Work};

use crate::group::{ExecError, Group};
use crate::removal::Remover;
use crate::target::{Place, Target, Workspace};
use crate::testdirs::TestDirs;
use crate::warm_up::WarmUp;
use crate::workload::{Ending, Listener, Pass, stopped_by_itself, tell_stopped};
use crate::{find, io, jobs, meta, mix, needs, replay, residency, room, spots};

/// The warning of a run that comes near what is free.
pub const NEARLY_FULL: &str = "nearly-full";

/// Carries out `plan`.
///
/// # Errors
/// When nothing could be set up (one sentence, the same on every rank; what
/// was made is removed), or the ranks cannot talk.
pub async fn execute(
    group: &Group<'_>,
    plan: &Plan,
    place: &Place<'_>,
    run_key: u64,
    listener: &mut dyn Listener,
) -> Result<Ending, ExecError> {
    let ended = carry_out(group, plan, place, run_key, listener).await;
    let broken = match &ended {
        Ok(ending) => ending.trouble.is_some(),
        Err(ExecError::SetUp(_)) => true,
        // Nothing was begun, or the ranks can no longer talk.
        Err(_) => return ended,
    };
    group.examine_mounts_if(broken).await?;
    ended
}

async fn carry_out(
    group: &Group<'_>,
    plan: &Plan,
    place: &Place<'_>,
    run_key: u64,
    listener: &mut dyn Listener,
) -> Result<Ending, ExecError> {
    preflight(group, plan).await?;
    let spots = spots::of(plan, place);
    if !plan.leave.private_dirs {
        spots::compare(group, &spots, place.name).await?;
    }
    needs::check(group, plan, &spots, place.name).await?;
    for warning in room::check(group, plan, place.parent, &spots).await? {
        listener.warning(NEARLY_FULL, warning);
    }
    match &plan.work {
        Work::Meta(work) if work.site != Location::Own => {
            let ground = TestDirs::set_up(group, work, place).await?;
            if let (Location::TestDirs(dirs), Backend::Posix) = (&work.site, work.backend) {
                residency::turn_to(group, dirs.clone()).await?;
            }
            let shared = ground.shared();
            let pass = |i| meta::pass(plan, work, i);
            iterate(group, plan, ground, shared, listener, pass).await
        }
        Work::Meta(work) => {
            let ground = Target::set_up(group, place).await?;
            in_own_directory(group, plan, ground, listener, |i| meta::pass(plan, work, i)).await
        }
        Work::Io(work) => {
            let ground = Target::set_up(group, place).await?;
            let pass = |i| io::pass(plan, work, run_key, i);
            in_own_directory(group, plan, ground, listener, pass).await
        }
        Work::Mix(work) => {
            let ground = Target::set_up(group, place).await?;
            in_own_directory(group, plan, ground, listener, |i| mix::pass(plan, work, i)).await
        }
        Work::Replay(work) => {
            let looked = replay::look_through(group, plan, work, place.parent).await?;
            let ground = Target::set_up(group, place).await?;
            let pass = |i| replay::pass(plan, work, &looked, i);
            in_own_directory(group, plan, ground, listener, pass).await
        }
        Work::Find(work) => find::execute(group, (plan, work), place.parent, listener).await,
        Work::Jobs(work) => {
            let live = place.live.clone();
            jobs::execute(group, (plan, work), place.parent, run_key, live, listener).await
        }
    }
}

/// Runs the passes of a workload that has a directory of its own.
async fn in_own_directory<P: Pass<Target>>(
    group: &Group<'_>,
    plan: &Plan,
    ground: Target,
    listener: &mut dyn Listener,
    pass: impl Fn(u32) -> P,
) -> Result<Ending, ExecError> {
    let (shared, path) = (ground.shared(), ground.path().to_owned());
    group.hooks.work_in(&path);
    residency::turn_to(group, vec![path.clone()]).await?;
    let ending = iterate(group, plan, ground, shared, listener, pass).await?;
    Ok(Ending {
        kept: plan.keep.then_some(path),
        ..ending
    })
}

/// Runs pass after pass; each leaves nothing behind that the plan does not
/// leave.
async fn iterate<G: Workspace, P: Pass<G>>(
    group: &Group<'_>,
    plan: &Plan,
    mut ground: G,
    shared: bool,
    listener: &mut dyn Listener,
    pass: impl Fn(u32) -> P,
) -> Result<Ending, ExecError> {
    let mut ending = Ending::default();
    let ready = if group.is_root() {
        listener.begun(shared)
    } else {
        Ok(())
    };
    let mut broken_off = ending.trouble_of(group.agree(ready).await.map(|()| false))?;
    let last = plan.iterations;
    // Passes that do not count have the numbers behind those of all that may.
    let warmup = last..plan.passes();
    for iteration in warmup.chain(0..last) {
        if broken_off {
            break;
        }
        let counts = iteration < last;
        group.intervals.pause(!counts);
        let mut pass = pass(iteration);
        let own = pass.own_dirs(group.rank());
        let result = match counts {
            true => pass.run(group, &mut ground, listener).await,
            false => {
                let mut unheard = WarmUp(&mut *listener);
                pass.run(group, &mut ground, &mut unheard).await
            }
        };
        broken_off = ending.trouble_of(result)?;
        if broken_off && ending.trouble.is_none() {
            ending.trouble = stopped_by_itself(group);
        }
        if broken_off && ending.trouble.is_none() && group.is_root() {
            tell_stopped(group, listener);
        }
        group.share_dead_mounts().await?;
        if broken_off && group.any_stuck().await? {
            // Removing would wait as well.
            ending.left = ground.leave(group).await?;
            return Ok(ending);
        }
        if !plan.keep {
            group.begin_phase("removal", pass.left(), None);
            group.begin_work(group.clock.now());
            let remover = Remover::new(plan.workers_of(group.rank()));
            let left = ground
                .close(group, iteration, own, broken_off, &remover)
                .await?;
            ending.left.extend(left);
        }
        let asks = plan.until.is_some() && counts && !broken_off;
        if asks && !group.decided(|| listener.another()).await? {
            break;
        }
    }
    ending.complete = !broken_off;
    if !plan.keep {
        let remover = Remover::new(plan.workers_of(group.rank()));
        ending.left.extend(ground.end(group, &remover).await?);
    }
    Ok(ending)
}

impl Ending {
    /// Whether a pass was broken off; notes the trouble that did it.
    fn trouble_of(&mut self, result: Result<bool, ExecError>) -> Result<bool, ExecError> {
        match result {
            Err(ExecError::SetUp(message)) => {
                self.trouble = Some(message);
                Ok(true)
            }
            other => other,
        }
    }
}

/// Checks what the plan needs of every host, before anything is made.
async fn preflight(group: &Group<'_>, plan: &Plan) -> Result<(), ExecError> {
    let limit = rbench_sys::limits::raise_open_files()
        .map_err(|e| format!("cannot read the limit on open files: {e}"));
    let limit = group.agree(limit).await?;
    let needed = u64::from(plan.threads) * u64::from(open_files_each(plan)) + 64;
    let enough = if needed > limit {
        Err(format!(
            "{} {needed} open files per rank, but the limit is {limit} (ulimit -n)",
            match in_flight(plan) {
                Some(depth) => format!("--threads {} and --iodepth {depth} need", plan.threads),
                None => format!("--threads {} needs", plan.threads),
            }
        ))
    } else if plan.drop_caches && !nix::unistd::geteuid().is_root() {
        Err("--drop-caches needs root on every host".to_owned())
    } else {
        Ok(())
    };
    group.agree(enough).await.map_err(|error| match error {
        ExecError::SetUp(message) => ExecError::Usage(message),
        other => other,
    })
}

/// Operations on names that each worker has in flight, where a ring has them.
fn in_flight(plan: &Plan) -> Option<u32> {
    match &plan.work {
        Work::Meta(meta) => meta.in_flight,
        Work::Mix(mix) => mix.in_flight,
        _ => None,
    }
}

/// Descriptors that one worker holds at a time: its file, or those in flight, and a ring.
fn open_files_each(plan: &Plan) -> u32 {
    match &plan.work {
        Work::Meta(_) => in_flight(plan).map_or(1, |depth| depth + 1),
        Work::Find(_) | Work::Replay(_) => 1,
        Work::Io(_) => 2,
        // One of each set and each round in flight, and a directory that is listed, or a ring.
        Work::Mix(mix) => {
            // What a role's first steps leave open, and a file for each round of its own.
            let (sets, depth) = (mix.sets.len() as u32, in_flight(plan).unwrap_or(1));
            let held = if depth > 1 { sets } else { 0 };
            sets.saturating_mul(depth) + held + 1
        }
        Work::Jobs(jobs) => jobs::open_files_each(jobs),
    }
}
