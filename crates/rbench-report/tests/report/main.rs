//! Tests of the result file and the reports through the public interface: one binary for all
//! integration tests of the crate.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests read and accept golden files"
)]

mod client;
mod compare;
mod compare_series;
mod crowd;
mod dead_mounts;
mod figures;
mod fio;
mod fixtures;
mod golden;
mod hdr;
mod io500;
mod journal;
mod json_schema;
mod knee;
mod live;
mod marks;
mod mdtest;
mod nn;
mod ops;
mod page;
mod repetition;
mod residency;
mod round_trip;
mod schema;
mod series;
mod summary;
mod warning_pairs;
mod warnings;
mod width;

#[path = "../valid/mod.rs"]
mod valid;
