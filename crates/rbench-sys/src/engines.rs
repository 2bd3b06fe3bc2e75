//! One file for each engine; the table is [`crate::engine::ENGINES`].

pub mod io_uring;
pub mod null;
pub mod psync;
