//! `rbench check`: its options.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_core::Nanos;

use super::StartArgs;
use crate::{Check, CheckFormat, Invocation, Stop, invocation, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each promise is tried in a directory of its own below DIR, which is removed again; nothing else is touched. \
    As root, other users' credentials are tried too. Under mpirun every host tries for itself, and then what one client sees of \
    another one is tried between them: coherence, locks-between, races. A client is the first rank of each host, or with several \
    directories (mounts of one file system) as many of its ranks.\nThe exit code is 0 when nothing is \
    broken or undecided but what --expect allows. docs/reference/check.md has the groups, the presets and how to read a verdict.\n\nExamples:\n  \
    rbench check --dir /mnt/fs\n  rbench check --dir /mnt/fs --only rename,locks.flock --format tap\n  rbench check --dir /mnt/jfs \
    --expect juicefs --format junit > check.xml\n  mpirun --host a,b,c rbench check --dir /mnt/fs --only coherence,locks-between,races\n  \
    mpirun -np 2 rbench check --dir /mnt/one,/mnt/other --under-load"
)]
pub(super) struct CheckArgs {
    /// A directory of the mount, or of several mounts of one file system, which
    /// the ranks of a host take in turn [default: RBENCH_DIR]
    #[arg(long, value_name = "DIR,…", value_parser = values::directory(), value_delimiter = ',')]
    dir: Vec<PathBuf>,
    /// How many of the hosts take part [default: all]
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Try what is between clients while each of them works on files of its own
    #[arg(long)]
    under_load: bool,
    /// Only these groups or promises; * stands for any part of a name
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Print the groups and the promises, and try none
    #[arg(long)]
    list: bool,
    /// Deviations that are known and do not fail the check: a file, or glusterfs,
    /// juicefs, moosefs, nfs, s3fs
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
    pub(super) fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let CheckArgs {
            dir,
            hosts,
            under_load,
            only,
            list,
            expect,
            seed,
            time_limit,
            format,
            quiet,
            start: _,
        } = self;
        Ok(Invocation::Check(Check {
            dirs: match dir.is_empty() {
                true => invocation::env_dir(env_dir)?.into_iter().collect(),
                false => dir,
            },
            hosts,
            under_load,
            only,
            list,
            expect,
            seed,
            time_limit,
            format,
            quiet,
        }))
    }
}
