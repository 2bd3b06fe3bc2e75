//! `rbench nn`: NNBench's operations with more and more workers.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_core::Bytes;
use rbench_plan::nn::Asked;
use rbench_plan::values;

use super::SeriesOptions;
use crate::Invocation;
use crate::series::Course;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each number of workers is a separate run in new directories, one per worker: create_write \
    (create a file, write its bytes, close it), open_read (open, read all, close), rename, delete. Workers are \
    spread over the launched ranks as evenly as possible; ranks without a worker are idle. \
    docs/reference/nn.md defines every figure.\n\nExamples:\n  rbench nn --dir /mnt/fs --ladder \
    1,2,4,8,16\n  mpirun -np 12 --hostfile myhost rbench nn --dir /mnt/fs --out nn.json"
)]
pub struct NnArgs {
    /// Total numbers of workers of all ranks, in rising order [default: 10,20,…,100]
    #[arg(long, value_name = "N1,N2,…", value_delimiter = ',')]
    ladder: Option<Vec<u32>>,
    /// Files per worker [default: 200]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    files: Option<u64>,
    /// Bytes to write to each file, in one call, and to read from it [default: 0]
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(long, value_name = "DIR", value_parser = values::directory(), help_heading = "Run")]
    dir: Option<PathBuf>,
    /// Drop the kernel's caches on every host before files are read (needs root)
    #[arg(long, help_heading = "Run")]
    drop_caches: bool,
    /// Call fsync after each write
    #[arg(long)]
    fsync: bool,
    /// Allow each host its own file system at the target; otherwise all hosts must see the
    /// same one
    #[arg(long, help_heading = "Run")]
    private_dirs: bool,
    #[command(flatten)]
    pub options: SeriesOptions,
}

impl NnArgs {
    /// Converts the options into an invocation.
    pub fn invocation(self) -> Invocation {
        let switches = [
            ("drop-caches", self.drop_caches),
            ("fsync", self.fsync),
            ("private-dirs", self.private_dirs),
        ];
        let given = switches.into_iter().filter(|(_, given)| *given);
        let asked = Asked {
            ladder: self.ladder,
            files: self.files,
            bytes: self.bytes,
            dir: self.dir,
            switches: given.map(|(name, _)| name).collect(),
        };
        self.options.with(Course::Nn(asked))
    }
}
