//! `rbench find`

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_plan::find::SizeTest;
use rbench_plan::spec::{self, Spec, Workload};

use super::{Common, repeats};
use crate::{Invocation, Stop, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "All workers read the directories near the root, each checking its part of the entries. \
    Directories further down are distributed over the ranks. Symbolic links are not followed, and other file \
    systems are not entered. An entry is stat'ed only if its name matches and does not already decide the \
    result. docs/reference/find.md describes rows and figures. The tests can also be written as in find: \
    -newer, -size, -name.\n\nExample:\n  mpirun -np 12 --hostfile myhost rbench find /mnt/fs -newer stamp \
    -size 3901c -name '*01*'"
)]
pub struct FindArgs {
    /// Directory to search
    #[arg(value_name = "DIR", value_parser = values::directory(), conflicts_with = "dir")]
    start: Option<PathBuf>,
    /// Find only entries that were modified after FILE
    #[arg(long, value_name = "FILE")]
    newer: Option<PathBuf>,
    /// Find only entries of this size, as in find: 3901c, +10k, -1M
    ///
    /// Units: c (1 byte), w (2), b (512), k, M, G; a bare number is in blocks of 512 bytes.
    #[arg(long, value_name = "N", value_parser = values::size_test, allow_hyphen_values = true)]
    size: Option<SizeTest>,
    /// Find only names that match this pattern, such as '*01*'
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    name: Option<OsString>,
    #[command(flatten)]
    repeats: repeats::Count,
    #[command(flatten)]
    pub(super) common: Common,
}

impl FindArgs {
    pub(super) fn invocation(mut self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        self.common.dir = self.start.or(self.common.dir);
        let (mut common, output) = self.common.split(env_dir)?;
        self.repeats.tell(&mut common);
        let workload = Workload::Find(spec::Find {
            newer: self.newer,
            size: self.size,
            name: self.name,
        });
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}
