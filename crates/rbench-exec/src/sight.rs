//! What a rank has of the file system to look at, around phases.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use rbench_core::client::Watch;
use rbench_core::residency::Evidence;
use rbench_sys::mountinfo::MountInfo;
use rbench_sys::processes::Process;
use rbench_sys::residency::RequestCounter;

/// What a rank has of the file system to look at.
#[derive(Default)]
pub struct Sight {
    /// What kind of file system it is.
    pub ground: Cell<Evidence>,
    /// Its mount, where there is one.
    pub mount: RefCell<Option<MountInfo>>,
    /// Counts the requests that reach it.
    pub counter: RefCell<Option<RequestCounter>>,
    /// Whose processes are watched, at the leader of each host what is known of them; `None`
    /// on all ranks: nobody's.
    pub client: RefCell<Option<Watched>>,
}

/// The processes of the file system's client on this host.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Which were asked for; `None`: those that serve the mounts below `dirs`.
    pub watch: Option<Watch>,
    /// The directories that the run works in.
    pub dirs: Vec<PathBuf>,
    /// Processes that are none of them: the ranks of this host.
    pub ranks: Vec<u32>,
    /// Whether another host of the run numbers the same processes.
    pub numbers_shared: bool,
    /// Those that were found, ascending by number.
    pub processes: Vec<Process>,
}
