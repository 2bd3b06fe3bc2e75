//! The only crate that touches the target: metadata operations ([`Fs`]), I/O engines
//! ([`engine`]), and the creation and removal of rbench's own directory on it.
//!
//! Nothing here measures, waits for other ranks or prints.

pub mod anchor;
pub mod background;
pub mod between;
mod buffer;
pub mod caches;
mod calls;
pub mod command;
mod dirents;
pub mod disks;
pub mod engine;
pub mod fault;
pub mod files;
pub mod fs;
mod guarded;
pub mod identity;
pub mod in_use;
pub mod inputs;
pub mod limits;
pub mod mountinfo;
mod null_fs;
pub mod own_files;
pub mod posix;
mod proc;
pub mod processes;
pub mod promises;
mod remove;
pub mod residency;
pub mod round_trip;
pub mod senders;
mod shell;
mod space;
pub mod speed;
pub mod standing;
pub mod surroundings;
pub mod testdir;
pub mod thread;
pub mod trace;
pub mod waiting;
pub mod walk;
pub mod workdir;

pub use buffer::{AlignedBuffer, BlockMemory, LockedMemory};
pub use engine::{Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, Transfer};
pub use fault::FaultFs;
pub use fs::{Data, Fs, NO_FILE, Operands};
pub use in_use::InUse;
pub use mountinfo::MountInfo;
pub use null_fs::NullFs;
pub use posix::{HeldFs, PosixFs};
pub use remove::{Entry, Part, Removal, RemoveError};
pub use space::{Space, space};
pub use standing::{Standing, standing};
pub use trace::{TraceEvent, TraceFs};
pub use workdir::{SetupError, WorkDir};
