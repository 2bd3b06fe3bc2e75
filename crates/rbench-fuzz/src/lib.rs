//! What has to hold for every input that people and files bring to rbench.
//!
//! One function for each fuzz target; it panics when a property does not hold.
//! The fuzzer (`targets`) and the tests (`tests`) call the same functions.

mod fio;
mod mdtest;
mod plans;
mod quantities;
mod refusal;
mod result_file;
mod seals;

pub use fio::{fio_line, job_file};
pub use mdtest::mdtest_line;
pub use quantities::quantities;
pub use result_file::result_file;
pub use seals::seals;

/// A fuzz target: what checks an input.
pub type Property = fn(&[u8]);

/// Every target by the name of its corpus.
pub const TARGETS: &[(&str, Property)] = &[
    ("fio_line", fio_line),
    ("job_file", job_file),
    ("mdtest_line", mdtest_line),
    ("quantities", quantities),
    ("result_file", result_file),
    ("seals", seals),
];
