//! The announcement that each rank sends at the start.

use std::time::Duration;

/// The announcement of a rank before anything else, and its time limits.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Name of this host.
    pub host: String,
    /// Version and commit of this program; must be identical on all ranks.
    pub program: String,
    /// Missing ranks are listed after this time.
    pub notice: Duration,
    /// The process exits after this time; `None`: never.
    pub limit: Option<Duration>,
    /// Prints a sentence.
    pub say: fn(&str),
    /// Ends the process after `limit`. Must not run exit handlers: MPI's handler may hang as well.
    pub end: fn() -> !,
}
