//! What a job has to do with those beside it, and its requests with each other.

use rbench_core::Nanos;

/// What binds a job to others; the default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    /// It ends others.
    pub exit: Option<Exit>,
    /// Its operations are in a ratio to those of others.
    pub flow: Option<Flow>,
}

/// Which jobs end with a job, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Whom it ends.
    pub what: ExitWhat,
    /// Whenever one of its workers ends (`exitall`); else only when one ends with an
    /// error (`exitall_on_error`).
    pub always: bool,
}

/// `exit_what`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// The jobs that are reported as one group with it.
    #[default]
    Group,
    /// Those that run beside it.
    Stonewall,
    /// All, also those that have not begun.
    All,
}

/// `flow`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// `flow_id`
    pub id: u64,
    /// `flow`, 1 or more.
    pub weight: u32,
    /// `flow_sleep`: how long to wait for the others; 0: until it is its turn.
    pub sleep: Nanos,
}

/// How a worker's requests come to the engine; the default: by itself, whatever blocks
/// they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Submission {
    /// `io_submit_mode=offload`: as many threads as requests may be in flight make them.
    pub offload: bool,
    /// `serialize_overlap`: none is in flight beside another one of the same place; with
    /// `offload` also of other workers of the rank.
    pub serialize: bool,
}
