//! Jobs on the built-in file system alone.

mod faults;
