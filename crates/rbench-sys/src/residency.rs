//! Residency of the data of a result: pages of a file in the page cache, data that
//! reads fetched from storage, and requests that reached the file system.
//!
//! None of this is part of a timed section. All of it may block on the file system: a
//! control plane that must not block uses a separate thread.

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
