//! Options on the kernel's view of a job's threads, and on commands before and after the job.

use super::{Given, text};

options! {
    /// Processors, memory, priorities, user.
    PROCESS: Job () {
    cpus_allowed => plan.process.cpus: of("LIST", Given::numbers),
        "Processors that workers may run on, as in 0-3,7";
    cpumask => plan.process.cpus: of("MASK", Given::bits),
        "Like cpus_allowed, as a number with one bit per processor";
    cpus_allowed_policy => plan.process.split: words("shared|split", "shared" = false,
            "split" = true) = "shared",
        "shared: each worker may run on all of them; split: one per worker";
    numa_cpu_nodes => plan.process.nodes: of("LIST|all", Given::nodes),
        "NUMA nodes on whose processors workers may run";
    numa_mem_policy => plan.process.memory: of("MODE[:LIST]", Given::memory_policy),
        "NUMA memory policy: default, prefer, bind, interleave, local";
    nice => plan.process.nice: of("N", |g| g.integer(-20, 19)) = "0",
        "Value to add to the niceness of workers, -20 to 19";
    prio: within(0, 7), "I/O priority of workers, 0 to 7";
    prioclass: within(0, 3), "I/O class: 0 none, 1 real time, 2 best effort, 3 idle";
    priohint: within(0, 1023), "Hint of the I/O priority, 0 to 1023";
    uid => plan.process.user: of("ID", id), "User ID of workers during the job";
    gid => plan.process.group: of("ID", id), "Group ID of workers during the job";
    comm => plan.process.name: of("NAME", text), "Name of the workers' threads";
    exec_prerun => plan.process.before: of("COMMAND", text),
        "Command that each worker runs first, with output in JOB.prerun.txt";
    exec_postrun => plan.process.after: of("COMMAND", text),
        "Command that each worker runs last, with output in JOB.postrun.txt";
}}

fn id(g: Given<'_>) -> Result<u32, String> {
    g.count(0)
}
