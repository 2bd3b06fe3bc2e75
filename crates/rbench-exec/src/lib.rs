//! Carries out a plan: workers that issue operations, phases that start and
//! end together, pacing, verification, and the exact reduction to the rows of
//! the report.
//!
//! The control plane is async on each rank's main thread ([`group`],
//! [`phase`]); the data plane is plain threads ([`worker`], [`ops`], [`blocks`])
//! with nothing but the operation between two clock readings. Nothing here
//! prints, reads the command line, or knows MPI.

pub mod ack;
pub mod blocks;
pub mod caches;
pub mod calibrate;
pub mod check;
pub mod client;
mod content;
mod creation;
pub mod data;
mod extents;
mod find;
pub mod group;
mod hooks;
mod in_flight;
mod inbox;
pub mod intervals;
mod io;
mod jobs;
mod listener;
mod live;
mod lost;
pub mod marks;
mod meta;
pub mod meter;
mod mix;
pub mod mounts;
mod needs;
pub mod ops;
mod overdue;
pub mod pace;
mod passes;
pub mod phase;
pub mod probe;
mod queue;
pub mod reduce;
pub mod removal;
mod repeats;
mod replay;
pub mod residency;
mod room;
pub mod round;
mod run;
mod sight;
mod single;
mod spots;
pub mod steps;
mod stuck;
pub mod target;
mod testdirs;
pub mod thread;
mod trap;
pub mod verify;
mod warm_up;
pub mod worker;
mod workload;

pub use caches::caches;
pub use calibrate::Calibration;
pub use group::{ExecError, Group, Interrupts, Progress, Show, StopReason};
pub use listener::{Listener, RunEnd};
pub use live::LiveStats;
pub use run::execute;
pub use target::Place;
pub use warm_up::WARM_UP_ERRORS;
