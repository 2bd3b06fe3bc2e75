//! Holds the benchmarks beside it together; it has no code of its own.
