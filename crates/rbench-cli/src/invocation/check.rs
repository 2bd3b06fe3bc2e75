//! Commands that test the abilities and the promises of a directory's file system.

use std::path::PathBuf;

use clap::Args;
use rbench_core::Nanos;
use rbench_plan::values;

use crate::output::{Format, Start};

/// `rbench check`
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[command(
    after_help = "Each promise is tested in its own directory below DIR, which is removed again; nothing else \
    is touched. As root, rbench also tests with other users' credentials. Under mpirun, every host tests for \
    itself; then the groups coherence, locks-between and races test what the file system's client on one host sees \
    of another's changes. With several directories (mounts of one file system), each mount is a client, and each host \
    needs a rank for each.\nThe exit code is 0 if nothing is broken or undecided except what \
    --expect allows. docs/reference/check.md describes the groups, the presets and the \
    verdicts.\n\nExamples:\n  rbench check --dir /mnt/fs\n  rbench check --dir /mnt/fs --only \
    rename,locks.flock --format tap\n  rbench check --dir /mnt/jfs --expect juicefs --format junit > \
    check.xml\n  mpirun --host a,b,c rbench check --dir /mnt/fs --only coherence,locks-between,races\n  mpirun \
    -np 2 rbench check --dir /mnt/one,/mnt/other --under-load"
)]
pub struct Check {
    /// Directory on the mount, or on several mounts of one file system [default:
    /// RBENCH_DIR]
    ///
    /// The ranks of a host take several directories in turn.
    #[arg(id = "dir", long = "dir", value_name = "DIR,…", value_parser = values::directory(), value_delimiter = ',')]
    pub dirs: Vec<PathBuf>,
    /// Number of hosts that take part [default: all]
    #[arg(long, value_name = "N")]
    pub hosts: Option<u32>,
    /// Test the promises between clients while each client works on its own files
    #[arg(long)]
    pub under_load: bool,
    /// Test only these groups or promises; * matches any part of a name
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Print the groups and the promises without testing any
    #[arg(long)]
    pub list: bool,
    /// Known deviations that do not fail the check: a file, or glusterfs, juicefs, moosefs,
    /// nfs, s3fs
    #[arg(long, value_name = "FILE|NAME")]
    pub expect: Option<PathBuf>,
    /// Seed of all random choices [default: random, recorded in the report]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Time limit of one promise (s); beyond it the promise is undecided [default: 20]
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<Nanos>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: CheckFormat,
    /// Show no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
    /// Start of the ranks.
    #[command(flatten)]
    pub start: Start,
}

/// The format of the report of `rbench check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum CheckFormat {
    /// Tables for people
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// JUnit's XML
    Junit,
    /// The Test Anything Protocol
    Tap,
}

/// `rbench probe`
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(
    after_help = "Each ability is tested in its own directory below DIR, which is removed at the end; nothing \
    else is touched. Under mpirun, every host tests for itself, hosts that differ are named, and each host \
    checks for files that the others create. docs/reference/probe.md describes the abilities and their \
    tests.\n\nExample:\n  mpirun -np 3 --hostfile myhost rbench probe /mnt/fs"
)]
pub struct Probe {
    /// Directory on the mount
    #[arg(value_parser = values::directory())]
    pub dir: PathBuf,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Show no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
    /// Start of the ranks.
    #[command(flatten)]
    pub start: Start,
}
