//! Communication of ranks: the few collective operations of the control plane, which use little CPU
//! while waiting.
//!
//! Two communicators behave alike: [`threads`] (one rank, or several for tests, in one process) and
//! `mpi` (feature `mpi`). One conformance suite runs on both. This is the only crate that knows MPI,
//! and nothing here touches a file system.
//!
//! All futures are driven by a tokio current-thread runtime (with its timer) on the rank's main
//! thread. MPI is called from that thread only (FUNNELED). At most one collective of a communicator
//! may be pending at a rank, and any number of notes.

mod arrival;
mod chosen;
mod communicator;
pub mod drift;
pub mod hosts;
pub mod launcher;
#[cfg(feature = "mpi")]
mod mpi;
pub mod offsets;
pub mod threads;
mod world;

pub use arrival::Arrival;
pub use chosen::Chosen;
pub use communicator::{Combine, CommError, Communicator, NOTE_BYTES, Note, Wait};
pub use drift::{Clocks, Drift};
pub use hosts::{Host, Identity, Topology, sharing, topology};
pub use offsets::{ClockOffset, Comparison, compare};
pub use world::{Choice, World, start};

/// First line of the MPI library's version string; `None` without MPI (feature `mpi`). Works before
/// MPI is started.
pub fn mpi_library() -> Option<String> {
    #[cfg(feature = "mpi")]
    return mpi::library();
    #[cfg(not(feature = "mpi"))]
    return None;
}
