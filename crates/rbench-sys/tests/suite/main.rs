//! Tests of rbench-sys against the running kernel.
//!
//! `conformance` runs every engine, `system_calls` looks on with strace,
//! `workdir`, `testdir` and `host` change real (private) mounts.

mod allocations;
mod conformance;
mod host;
mod support;
mod system_calls;
mod testdir;
mod workdir;
