//! Properties of a job's worker threads in the kernel (name, processors, memory
//! nodes, priorities, user), and the commands around them.

use rbench_core::IoPriority;

/// Properties of each worker of a job; by default unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// `comm`: the thread's name; the kernel keeps 15 bytes of it.
    pub name: Option<String>,
    /// `cpus_allowed`, `cpumask`: processors on which it may run; empty: all.
    pub cpus: Vec<u32>,
    /// `numa_cpu_nodes`: the nodes on whose processors it may run, instead.
    pub nodes: Option<Nodes>,
    /// `cpus_allowed_policy=split`: each worker has one of `cpus`, in turn.
    pub split: bool,
    /// `numa_mem_policy`
    pub memory: Option<MemoryPolicy>,
    /// `nice`: added to its current niceness.
    pub nice: i32,
    /// `prioclass`, `priohint` and `prio`
    pub io_priority: Option<IoPriority>,
    /// `uid`
    pub user: Option<u32>,
    /// `gid`
    pub group: Option<u32>,
    /// `exec_prerun`: a command before it starts.
    pub before: Option<String>,
    /// `exec_postrun`: a command after it has ended.
    pub after: Option<String>,
}

/// Memory nodes of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// All of them.
    All,
    /// These.
    Some(Vec<u32>),
}

/// Source of memory (set_mempolicy(2)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The policy of the process.
    Default,
    /// From the node on which the thread runs.
    Local,
    /// From this node while it has free memory.
    Prefer(u32),
    /// Only from these.
    Bind(Nodes),
    /// From these in turn.
    Interleave(Nodes),
}
