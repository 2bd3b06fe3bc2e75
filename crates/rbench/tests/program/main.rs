//! Tests of the program from a user's view.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

mod common;
mod devices;
mod foreign;
mod inputs;
mod measured;
mod mounts;
mod outputs;
mod runs;
mod series;
mod shown;
mod traced;
#[path = "../../../rbench-report/tests/valid/mod.rs"]
mod valid;
