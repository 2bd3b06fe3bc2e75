//! Options on the kernel's view of a job's threads, and on commands before and after the job.

use super::{Given, text};

options! {
    /// Processors, memory, priorities, user.
    PROCESS: Job () {
    cpus_allowed: of("LIST", Given::numbers), "Processors that workers may run on, as in 0-3,7";
    cpumask => cpus_allowed: of("MASK", Given::bits),
        "Like cpus_allowed, as a number with one bit per processor";
    cpus_allowed_policy => cpus_split: words("shared|split", "shared" = false,
            "split" = true) = "shared",
        "shared: each worker may run on all of them; split: one per worker";
    numa_cpu_nodes: of("LIST|all", Given::nodes), "NUMA nodes on whose processors workers may run";
    numa_mem_policy: of("MODE[:LIST]", Given::memory_policy),
        "NUMA memory policy: default, prefer, bind, interleave, local";
    nice: of("N", |g| g.integer(-20, 19)) = "0",
        "Value to add to the niceness of workers, -20 to 19";
    prio: within(0, 7), "I/O priority of workers, 0 to 7";
    prioclass: within(0, 3), "I/O class: 0 none, 1 real time, 2 best effort, 3 idle";
    priohint: within(0, 1023), "Hint of the I/O priority, 0 to 1023";
    uid: of("ID", id), "User ID of workers during the job";
    gid: of("ID", id), "Group ID of workers during the job";
    comm: of("NAME", text), "Name of the workers' threads";
    exec_prerun: of("COMMAND", text),
        "Command that each worker runs first, with output in JOB.prerun.txt";
    exec_postrun: of("COMMAND", text),
        "Command that each worker runs last, with output in JOB.postrun.txt";
}}

fn id(g: Given<'_>) -> Result<u32, String> {
    g.count(0)
}
