//! Tests of rbench-testfs on real mounts. `serve`, where it is a process of its own, is another test
//! program.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

mod common;

/// All of these mount the file system.
mod needs_fuse {
    mod faults;
    mod lateness;
    mod mounts;
    mod posix;
    mod power;
    mod truth;
}
