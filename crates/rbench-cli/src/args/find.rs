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
    after_help = "Directories near the root are read by all workers, each of which looks at its part of the entries; further \
    down they are dealt to the ranks. No symbolic link is followed, and no other file system entered. An entry is only \
    stat'ed if its name fits and that does not decide. docs/reference/find.md has the rows and figures. The tests can be written as in \
    find: -newer, -size, -name.\n\nExample:\n  mpirun -np 12 --hostfile myhost rbench find /mnt/fs -newer stamp -size 3901c \
    -name '*01*'"
)]
pub struct FindArgs {
    /// Directory to search
    #[arg(value_name = "DIR", value_parser = values::directory(), conflicts_with = "dir")]
    start: Option<PathBuf>,
    /// Only what was modified after FILE was
    #[arg(long, value_name = "FILE")]
    newer: Option<PathBuf>,
    /// Only what has this size: 3901c, +10k, -1M, as in find (c bytes, w 2, b 512, k, M, G;
    /// a bare number is in blocks of 512 bytes)
    #[arg(long, value_name = "N", value_parser = values::size_test, allow_hyphen_values = true)]
    size: Option<SizeTest>,
    /// Only what has a name like this: '*01*'
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
