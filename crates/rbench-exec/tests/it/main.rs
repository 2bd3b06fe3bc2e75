//! Whole runs of the execution crate on real directories: ranks are threads,
//! the target is a temporary directory or the built-in FUSE file system.

mod group;
mod io;
mod meta;
mod truth;
