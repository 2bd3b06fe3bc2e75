//! Tests jobs that run only on the built-in file system.

mod faults;
