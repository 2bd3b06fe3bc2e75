//! Reports of whole runs held against the built-in file system's own account: requests as exact
//! counts, injected latency as a lower bound. What only a clock can decide is in `timing`.

mod needs_fuse;
