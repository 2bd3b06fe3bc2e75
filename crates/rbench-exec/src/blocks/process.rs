//! Settings of a worker's thread before it works, and the commands around it.

use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use rbench_core::{Failure, FailureKind, OpKind};
use rbench_plan::jobs::JobPlan;
use rbench_plan::process::{MemoryPolicy, Nodes, Process};
use rbench_sys::{LockedMemory, command, thread};

/// Makes the calling thread what `job` says. It is the worker with that number among
/// those on this host; `base` is the working directory; when `stopped`, its command is ended. What it has locked comes back.
///
/// # Errors
/// What cannot be had, with the option's name.
pub(super) fn enter(
    job: &JobPlan,
    number: u32,
    base: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<LockedMemory>, Failure> {
    let process = &job.process;
    if *process == Process::default() && job.memory.locked == 0 {
        return Ok(None);
    }
    let refused = |option: &str, kind: FailureKind, detail: String| {
        let path = format!("job '{}': {option}", job.name);
        Failure::new(OpKind::Open, path, kind).with(detail)
    };
    let errno =
        |option: &'static str| move |errno: Errno| refused(option, errno.into(), String::new());
    let clause = |option: &'static str| move |why| refused(option, Errno::EINVAL.into(), why);
    if let Some(name) = &process.name {
        thread::set_name(name).map_err(errno("comm"))?;
    }
    let cpus = cpus(process, number).map_err(clause("numa_cpu_nodes"))?;
    if !cpus.is_empty() {
        thread::stay_on_any(&cpus).map_err(clause("cpus_allowed"))?;
    }
    // Before it may become somebody who must not.
    let locked = match job.memory.locked {
        0 => None,
        bytes => Some(
            LockedMemory::new(bytes)
                .map_err(|(errno, why)| refused("lockmem", errno.into(), why))?,
        ),
    };
    if let Some(memory) = &process.memory {
        set_memory(memory).map_err(errno("numa_mem_policy"))?;
    }
    if let Some(priority) = process.io_priority {
        thread::set_io_priority(priority).map_err(errno("prio"))?;
    }
    if process.nice != 0 {
        thread::add_nice(process.nice).map_err(errno("nice"))?;
    }
    thread::become_user(process.user, process.group).map_err(errno("uid, gid"))?;
    if let Some(before) = &process.before {
        run(job, before, "prerun", base, stopped)
            .map_err(|why| refused("exec_prerun", FailureKind::Command, why))?;
    }
    Ok(locked)
}

/// Checks, before anything is made, that this host has the processors of `job`.
///
/// # Errors
/// A sentence that names job and option.
pub fn check(job: &JobPlan) -> Result<(), String> {
    let failed = |option: &str, why: String| format!("job '{}': {option}: {why}", job.name);
    let cpus = cpus(&job.process, 0).map_err(|why| failed("numa_cpu_nodes", why))?;
    thread::are_there(&cpus).map_err(|why| failed("cpus_allowed", why))?;
    thread::are_there(&job.process.cpus).map_err(|why| failed("cpus_allowed", why))
}

/// Runs the command that follows the job's worker. Like in fio, its exit status is ignored. It is
/// run after a stop, too; one that comes meanwhile (`stopped`) ends it.
pub(super) fn leave(job: &JobPlan, base: &Path, stopped: &dyn Fn() -> bool) {
    if let Some(after) = &job.process.after {
        let before = stopped();
        let _ = run(job, after, "postrun", base, &|| !before && stopped());
    }
}

/// Runs a command; its output is added to `JOB.WHEN.txt`, like in fio.
fn run(
    job: &JobPlan,
    command: &str,
    when: &str,
    base: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    // A name of a job may hold what separates directories.
    let name = job.name.replace('/', "_");
    let path = base.join(format!("{name}.{when}.txt"));
    command::run_in(base, command, &path, stopped)
}

/// The processors of the worker with that number on its host; empty: all.
fn cpus(process: &Process, number: u32) -> Result<Vec<u32>, String> {
    let all = match &process.nodes {
        None | Some(Nodes::All) => process.cpus.clone(),
        Some(Nodes::Some(nodes)) => {
            let mut all = Vec::new();
            for node in nodes {
                all.extend(thread::cpus_of_node(*node)?);
            }
            all
        }
    };
    Ok(match (process.split, all.len()) {
        (true, count @ 1..) => vec![all[number as usize % count]],
        _ => all,
    })
}

fn set_memory(policy: &MemoryPolicy) -> Result<(), Errno> {
    let of = |nodes: &Nodes| match nodes {
        Nodes::All => thread::nodes(),
        Nodes::Some(nodes) => nodes.clone(),
    };
    match policy {
        MemoryPolicy::Default => thread::set_memory_policy(libc::MPOL_DEFAULT, &[]),
        MemoryPolicy::Local => thread::set_memory_policy(libc::MPOL_LOCAL, &[]),
        MemoryPolicy::Prefer(node) => thread::set_memory_policy(libc::MPOL_PREFERRED, &[*node]),
        MemoryPolicy::Bind(nodes) => thread::set_memory_policy(libc::MPOL_BIND, &of(nodes)),
        MemoryPolicy::Interleave(nodes) => {
            thread::set_memory_policy(libc::MPOL_INTERLEAVE, &of(nodes))
        }
    }
}
