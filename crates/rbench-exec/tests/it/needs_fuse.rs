//! Runs on the built-in file system alone.

mod synced;
mod truth;
