//! Relations of a job to other jobs, and of its requests to each other.

use rbench_core::Nanos;

/// Relations of a job to others; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    /// Jobs that end with it.
    pub exit: Option<Exit>,
    /// Ratio of its operations to those of others.
    pub flow: Option<Flow>,
}

/// Jobs that end with a job, and the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The jobs that it ends.
    pub what: ExitWhat,
    /// True if they end whenever one of its workers ends (`exitall`), false if only
    /// after an error (`exitall_on_error`).
    pub always: bool,
}

/// `exit_what`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// The jobs of its group in the report.
    #[default]
    Group,
    /// The jobs that run beside it.
    Stonewall,
    /// All jobs, including those that have not started.
    All,
}

/// `flow`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// `flow_id`
    pub id: u64,
    /// `flow`, 1 or more.
    pub weight: u32,
    /// `flow_sleep`: time to wait for the others; 0: until it is its turn.
    pub sleep: Nanos,
}

/// Submission of a worker's requests; by default by the worker itself, regardless of
/// overlaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Submission {
    /// `io_submit_mode=offload`: threads submit the requests, one for each that may be
    /// in flight.
    pub offload: bool,
    /// `serialize_overlap`: overlapping requests are not in flight at the same time;
    /// with `offload`, this includes other workers of the rank.
    pub serialize: bool,
}
