//! What a rank has of the file system to look at, around phases.

use std::cell::{Cell, RefCell};

use rbench_core::residency::Evidence;
use rbench_sys::mountinfo::MountInfo;
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
}
