//! `rbench check`: its options.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_core::Nanos;

use super::StartArgs;
use crate::{Check, CheckFormat, Invocation, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each promise is tried in a directory of its own below DIR, which is removed again; nothing else is touched. \
    Under mpirun every host tries for itself. As root, other users' credentials are tried too.\nThe exit code is 0 when nothing is \
    broken or undecided but what --expect allows. docs/check.md has the groups, the presets and how to read a verdict.\n\nExamples:\n  \
    rbench check --dir /mnt/fs\n  rbench check --dir /mnt/fs --only rename,locks.flock --format tap\n  rbench check --dir /mnt/jfs \
    --expect juicefs --format junit > check.xml"
)]
pub(super) struct CheckArgs {
    /// A directory of the mount [default: RBENCH_DIR]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only these groups or promises; * stands for any part of a name
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Print the groups and the promises, and try none
    #[arg(long)]
    list: bool,
    /// Deviations that are known and do not fail the check: a file, or juicefs,
    /// nfs, s3fs
    #[arg(long, value_name = "FILE|NAME")]
    expect: Option<PathBuf>,
    /// Seed of everything random [default: random, noted in the report]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How long one promise may take (s); what takes longer is undecided
    /// [default: 20]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time_limit: Option<Nanos>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: CheckFormat,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    pub(super) start: StartArgs,
}

impl CheckArgs {
    pub(super) fn invocation(self, env_dir: Option<&OsStr>) -> Invocation {
        let CheckArgs {
            dir,
            only,
            list,
            expect,
            seed,
            time_limit,
            format,
            quiet,
            start: _,
        } = self;
        Invocation::Check(Check {
            dir: dir.or_else(|| values::env_dir(env_dir)),
            only,
            list,
            expect,
            seed,
            time_limit,
            format,
            quiet,
        })
    }
}
