//! Criterion benchmarks; see the files beside this folder.
