//! One file for each engine; the table is [`crate::engine::ENGINES`].

mod buffers;
pub mod io_uring;
pub mod null;
mod progress;
pub mod psync;
