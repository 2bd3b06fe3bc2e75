//! What a figure measured: what of a file the page cache holds, what reads
//! fetched from the storage, and which requests reached the file system.
//!
//! Nothing here is part of a timed section. All of it may wait for the file
//! system: a control plane that must not block asks from a thread of its own.

mod client;
mod extents;
mod fetched;
mod memory;
mod pages;
mod requests;

pub use client::client_counters;
pub use extents::{Extents, Part, extents};
pub use fetched::{Fetched, fetched};
pub use memory::memory;
pub use pages::{Resident, resident};
pub use requests::{RequestCounter, Requests, Source, TOTAL};
