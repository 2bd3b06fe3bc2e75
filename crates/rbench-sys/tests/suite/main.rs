//! Tests of rbench-sys against the running kernel.
//!
//! `conformance` runs every engine; `engines` and `options` test special features.
//! `system_calls` checks with strace. `workdir`, `testdir` and `host` change real (private)
//! mounts.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

mod allocations;
mod anchor;
mod blocks;
mod conformance;
mod engines;
mod files;
mod host;
mod in_flight;
mod offload;
mod options;
mod residency;
mod support;
mod system_calls;
mod testdir;
mod trims;
mod workdir;
