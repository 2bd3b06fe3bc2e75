//! Tests of rbench-testfs on real mounts. Tests of `serve` in its own process are
//! another test program.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

mod common;

/// Tests that mount the file system.
mod needs_fuse {
    mod faults;
    mod lateness;
    mod mounts;
    mod posix;
    mod power;
    mod truth;
}
