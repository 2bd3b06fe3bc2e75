//! Tests whole runs of the execution crate on real directories: ranks are threads, the target is a
//! temporary directory or the built-in FUSE file system.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the tests look at and damage files behind the back of a run"
)]

mod accounts;
mod caches;
mod children;
mod clock;
mod clocks;
mod crowd;
mod effort;
mod group;
mod hosts;
mod in_flight;
mod io;
mod ior;
mod jobs;
mod limits;
mod mdtest;
mod meta;
mod mix;
mod mix_in_flight;
mod mounts;
mod needs;
mod needs_fuse;
mod ops;
mod probe;
mod steady;
mod testfs;
mod unanswered;
mod unprepared;
mod verify_threads;

fn runtime() -> tokio::runtime::Runtime {
    let builder = tokio::runtime::Builder::new_current_thread();
    { builder }.enable_all().build().expect("a runtime")
}

/// A directory that is not in memory, unlike the temporary directory of some test commands.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory in the build directory")
}
