//! The result file and the report, seen from outside: one binary for all
//! integration tests of the crate.

mod fixtures;
mod golden;
mod hdr;
mod journal;
mod schema;
mod summary;
mod warnings;
