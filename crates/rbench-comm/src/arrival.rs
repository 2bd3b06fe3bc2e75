//! What ranks say of themselves at the start.

use std::time::Duration;

/// What ranks tell each other before anything else, and how long they wait for that.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The name of this host.
    pub host: String,
    /// Version and commit of this program: the same everywhere.
    pub program: String,
    /// After this time it is said who is missing.
    pub notice: Duration,
    /// After this time the process ends; `None`: never.
    pub limit: Option<Duration>,
    /// Where it is said: one sentence.
    pub say: fn(&str),
    /// How the process ends after `limit`. It must not run what others have registered for the
    /// end of the process: MPI's part of that may wait like the rest.
    pub end: fn() -> !,
}
