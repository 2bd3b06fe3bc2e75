//! Whole runs of the execution crate on real directories: ranks are threads,
//! the target is a temporary directory or the built-in FUSE file system.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests look at and damage files behind the back of a run"
)]

mod clock;
mod crowd;
mod group;
mod io;
mod jobs;
mod limits;
mod mdtest;
mod meta;
mod truth;
