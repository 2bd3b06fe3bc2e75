//! Settings of the workers' threads in the kernel.

use rbench_core::IoPriority;

use crate::process::Process;
use crate::resolve::PlanError;
use crate::spec::fio::Settings;

/// From a job's options.
pub(super) fn process(s: &Settings) -> Result<Process, PlanError> {
    let given = &s.plan.process;
    if !given.cpus.is_empty() && given.nodes.is_some() {
        refuse!("cpus_allowed and numa_cpu_nodes cannot be combined");
    }
    let io_priority = match (s.prioclass, s.prio, s.priohint) {
        (None, None, None) => None,
        (class, level, hint) => {
            // Like in fio, no class is the usual one, best effort.
            let class = class.filter(|class| *class > 0).unwrap_or(2);
            Some(IoPriority::new(
                class,
                level.unwrap_or(0),
                hint.unwrap_or(0),
            ))
        }
    };
    Ok(Process {
        io_priority,
        ..given.clone()
    })
}
