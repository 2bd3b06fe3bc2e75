//! A rank's view of the file system, observed around phases.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use rbench_core::client::Watch;
use rbench_core::residency::Evidence;
use rbench_sys::mountinfo::MountInfo;
use rbench_sys::processes::Process;
use rbench_sys::residency::RequestCounter;

/// A rank's view of the file system.
#[derive(Default)]
pub struct Sight {
    /// Kind of the file system.
    pub ground: Cell<Evidence>,
    /// Its mount, if it has one.
    pub mount: RefCell<Option<MountInfo>>,
    /// Counter of the requests that reach it.
    pub counter: RefCell<Option<RequestCounter>>,
    /// Watched processes of the client, known at the leader of each host; `None` on all ranks:
    /// none.
    pub client: RefCell<Option<Watched>>,
}

/// The processes of the file system's client on this host.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Requested processes; `None`: those that serve the mounts below `dirs`.
    pub watch: Option<Watch>,
    /// The directories that the run works in.
    pub dirs: Vec<PathBuf>,
    /// Excluded processes: the ranks of this host.
    pub ranks: Vec<u32>,
    /// Set if another host of the run numbers the same processes.
    pub numbers_shared: bool,
    /// Processes found, ascending by number.
    pub processes: Vec<Process>,
}
