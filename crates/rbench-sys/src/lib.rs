//! The only crate that touches the target: metadata operations ([`Fs`]), I/O
//! engines ([`engine`]), and what prepares and removes rbench's own directory
//! on it.
//!
//! Nothing here measures, waits for other ranks or prints.

pub mod engine;
pub mod engines;
pub mod fs;

pub use engine::{Engine, EngineInfo, Request, Transfer};
pub use fs::Fs;
