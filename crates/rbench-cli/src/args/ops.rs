//! `rbench ops`

use std::ffi::OsStr;

use clap::Args as ClapArgs;
use rbench_core::Nanos;
use rbench_core::operations::OpsRow;
use rbench_plan::spec::{self, Spec, Workload};

use super::{Common, repeats};
use crate::{Invocation, Stop, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each row of the table is one operation, measured through its own system call. The items it \
    works on are prepared before, untimed. The row newchunk is always n/a: no system call triggers it. \
    docs/reference/ops.md defines every row.\n\nExamples:\n  rbench ops --dir /mnt/fs\n  rbench ops --dir \
    /mnt/fs --only mkdir,rename,lookup --ops 10000 --drop-caches\n  mpirun -np 12 --hostfile myhost rbench ops \
    --dir /mnt/fs --time 10 --out ops.json"
)]
pub(super) struct Ops {
    /// Measure only these rows, separated by commas [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::ops_row)]
    only: Option<Vec<&'static OpsRow>>,
    /// Operations per row and worker [default: 1000]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    ops: Option<u64>,
    /// Instead of --ops: stop each row after this time (s)
    ///
    /// The items of a row are prepared for the same time. A row ends early when they are
    /// used up.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time: Option<Nanos>,
    #[command(flatten)]
    repeats: repeats::Count,
    #[command(flatten)]
    pub(super) common: Common,
}

impl Ops {
    pub(super) fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let (mut common, output) = self.common.split(env_dir)?;
        self.repeats.tell(&mut common);
        let ops = spec::Ops {
            only: self.only,
            operations: self.ops,
            time: self.time,
        };
        let workload = Workload::Ops(ops);
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}
