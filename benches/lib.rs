//! Package of the benchmarks in this directory; it has no code of its own.
