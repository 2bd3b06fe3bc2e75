//! One file for each engine; the table is [`crate::engine::ENGINES`].

mod buffers;
mod faults;
mod fd_table;
pub mod io_uring;
pub mod mmap;
pub mod null;
mod progress;
pub mod psync;
pub mod pvsync;
pub mod pvsync2;
pub mod sync;
mod synchronous;
pub mod vsync;
