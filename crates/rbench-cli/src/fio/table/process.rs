//! Options that say what a job's threads are to the kernel, and the commands around
//! them.

use super::{Opt, put, text};
use crate::given::one_of;

/// Processors, memory, priorities, user.
pub const PROCESS: &[Opt] = &[
    Opt::job(
        "cpus_allowed",
        "LIST",
        "Processors that workers may run on, as in 0-3,7",
        |s, g| put(&mut s.cpus_allowed, g.numbers()),
    ),
    Opt::job(
        "cpumask",
        "MASK",
        "Like cpus_allowed, as a number with one bit per processor",
        |s, g| put(&mut s.cpus_allowed, g.bits()),
    ),
    Opt::job(
        "cpus_allowed_policy",
        "shared|split",
        "shared: each worker may run on all of them; split: one per worker",
        |s, g| {
            let policies = [("shared", false), ("split", true)];
            put(&mut s.cpus_split, one_of(g.text, &policies))
        },
    )
    .default("shared"),
    Opt::job(
        "numa_cpu_nodes",
        "LIST|all",
        "NUMA nodes on whose processors workers may run",
        |s, g| put(&mut s.numa_cpu_nodes, g.nodes()),
    ),
    Opt::job(
        "numa_mem_policy",
        "MODE[:LIST]",
        "NUMA memory policy: default, prefer, bind, interleave, local",
        |s, g| put(&mut s.numa_mem_policy, g.memory_policy()),
    ),
    Opt::job(
        "nice",
        "N",
        "Value to add to the niceness of workers, -20 to 19",
        |s, g| put(&mut s.nice, g.integer(-20, 19)),
    )
    .default("0"),
    Opt::job("prio", "N", "I/O priority of workers, 0 to 7", |s, g| {
        put(&mut s.prio, g.within(0, 7))
    }),
    Opt::job(
        "prioclass",
        "N",
        "I/O class: 0 none, 1 real time, 2 best effort, 3 idle",
        |s, g| put(&mut s.prioclass, g.within(0, 3)),
    ),
    Opt::job(
        "priohint",
        "N",
        "Hint of the I/O priority, 0 to 1023",
        |s, g| put(&mut s.priohint, g.within(0, 1023)),
    ),
    Opt::job("uid", "ID", "User ID of workers during the job", |s, g| {
        put(&mut s.uid, g.count(0))
    }),
    Opt::job("gid", "ID", "Group ID of workers during the job", |s, g| {
        put(&mut s.gid, g.count(0))
    }),
    Opt::job("comm", "NAME", "Name of the workers' threads", |s, g| {
        put(&mut s.comm, text(g))
    }),
    Opt::job(
        "exec_prerun",
        "COMMAND",
        "Command that each worker runs first, with output in JOB.prerun.txt",
        |s, g| put(&mut s.exec_prerun, text(g)),
    ),
    Opt::job(
        "exec_postrun",
        "COMMAND",
        "Command that each worker runs last, with output in JOB.postrun.txt",
        |s, g| put(&mut s.exec_postrun, text(g)),
    ),
];
