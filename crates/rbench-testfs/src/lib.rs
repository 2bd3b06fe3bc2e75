//! The built-in FUSE file system of rbench: in memory, or a folder passed through. It
//! can inject latency and faults, and it counts every request exactly.
//!
//! Reports are compared with it as the ground truth: its time for a request lies
//! within the time that a client measures. It is also the target of rbench when no
//! directory is given.
//!
//! Linux only. As root it mounts without other programs, as an ordinary user with
//! fusermount3.

mod broken;
mod config;
mod control;
mod cut;
mod damage;
mod delay;
mod fault;
mod hang;
mod kind;
mod memory;
mod mount;
mod observed;
mod passthrough;
mod paths;
mod serve;
mod servers;
mod service;
mod session;
mod stats;
mod store;
mod sync;

pub use broken::{BrokenPromise, UnknownPromise};
pub use config::{Backing, Config, Latencies, ParseLatencyError, ParseRootStatsError, RootStats};
pub use cut::{PowerCutError, Survivors};
pub use fault::log::{Damage, FaultRecord, OtherPlace};
pub use fault::{Action, Fault, ParseFaultError, Trigger};
pub use kind::{Kind, UnknownKind};
pub use mount::{MountError, SUBTYPE};
pub use observed::Observer;
pub use serve::{ServeError, ServeOptions, serve};
pub use session::{Mounted, mount, require_nothing_hidden};
pub use stats::{Counts, FaultFired, KindStats, RequestStats, Snapshot, Stats, StatsFile};
