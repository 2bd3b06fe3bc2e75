//! `rbench check`: its options.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_core::Nanos;

use super::StartArgs;
use crate::{Check, CheckFormat, Invocation, Stop, invocation, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each promise is tested in its own directory below DIR, which is removed again; nothing else \
    is touched. As root, rbench also tests with other users' credentials. Under mpirun, every host tests for \
    itself; then the groups coherence, locks-between and races test what one client sees of another. A client \
    is the first rank of each host, or, with several directories (mounts of one file system), as many ranks of \
    each host as there are directories.\nThe exit code is 0 if nothing is broken or undecided except what \
    --expect allows. docs/reference/check.md describes the groups, the presets and the \
    verdicts.\n\nExamples:\n  rbench check --dir /mnt/fs\n  rbench check --dir /mnt/fs --only \
    rename,locks.flock --format tap\n  rbench check --dir /mnt/jfs --expect juicefs --format junit > \
    check.xml\n  mpirun --host a,b,c rbench check --dir /mnt/fs --only coherence,locks-between,races\n  mpirun \
    -np 2 rbench check --dir /mnt/one,/mnt/other --under-load"
)]
pub(super) struct CheckArgs {
    /// Directory on the mount, or on several mounts of one file system [default:
    /// RBENCH_DIR]
    ///
    /// The ranks of a host take several directories in turn.
    #[arg(long, value_name = "DIR,…", value_parser = values::directory(), value_delimiter = ',')]
    dir: Vec<PathBuf>,
    /// Number of hosts that take part [default: all]
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Test the promises between clients while each client works on its own files
    #[arg(long)]
    under_load: bool,
    /// Test only these groups or promises; * matches any part of a name
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Print the groups and the promises without testing any
    #[arg(long)]
    list: bool,
    /// Known deviations that do not fail the check: a file, or glusterfs, juicefs, moosefs,
    /// nfs, s3fs
    #[arg(long, value_name = "FILE|NAME")]
    expect: Option<PathBuf>,
    /// Seed of all random choices [default: random, recorded in the report]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Time limit of one promise (s); beyond it the promise is undecided [default: 20]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time_limit: Option<Nanos>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: CheckFormat,
    /// Show no progress on stderr
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
