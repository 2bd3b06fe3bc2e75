//! Tests that run only on the built-in file system.

mod synced;
mod truth;
