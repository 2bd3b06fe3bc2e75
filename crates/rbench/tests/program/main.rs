//! The program as a user meets it.

mod common;
mod devices;
mod measured;
mod outputs;
mod runs;
mod shown;
#[path = "../../../rbench-report/tests/valid/mod.rs"]
mod valid;
