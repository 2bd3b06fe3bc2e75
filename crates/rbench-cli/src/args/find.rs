//! `rbench find`

use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_plan::{spec, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "All workers read the directories near the root, each checking its part of the entries. \
    Directories further down are distributed over the ranks. Symbolic links are not followed, and other file \
    systems are not entered. An entry is stat'ed only if its name matches and another test needs it, \
    or if the directory does not give its type. docs/reference/find.md describes rows and figures. The tests can also be written as in find: \
    -newer, -size, -name.\n\nExample:\n  mpirun -np 12 --hostfile myhost rbench find /mnt/fs -newer stamp \
    -size 3901c -name '*01*'"
)]
pub struct FindArgs {
    /// Directory to search
    #[arg(value_name = "DIR", value_parser = values::directory(), conflicts_with = "dir")]
    pub start: Option<PathBuf>,
    /// The options of the search.
    #[command(flatten)]
    pub find: spec::Find,
}
