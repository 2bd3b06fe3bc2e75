//! Compares reports of whole runs with the built-in file system's own figures: request counts
//! exactly, injected latency as a lower bound. `timing` tests what only a clock can decide.

mod needs_fuse;
