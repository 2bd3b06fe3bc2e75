//! Commands for data left behind by a run or a crash.

use std::path::PathBuf;

use clap::Args;
use rbench_plan::values;

use crate::output::{Format, Start};

/// `rbench verify`
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(
    after_help = "Every block in the journals is read and classified: as acknowledged, allowed (in flight or \
    never synced), untouched, lost (although synced), corrupt or unreadable. Exit code: 0 if nothing is lost, \
    corrupt or unreadable, else 1; 2 if a file cannot be read, is damaged or is not a \
    journal.\n\nExample:\n  rbench io --dir /mnt/fs --bs 4k --rw randwrite --fsync every=100 \\\n    --time 60 \
    --verify --ack-journal /var/tmp/acks\n  (the file system crashes and is mounted again)\n  rbench verify \
    /var/tmp/acks.*"
)]
pub struct Verify {
    /// Journals written by --ack-journal
    #[arg(required = true, value_name = "FILE")]
    pub journals: Vec<PathBuf>,
    /// Current path of the tested directory [default: its path during the run]
    #[arg(long, value_name = "DIR", value_parser = values::directory())]
    pub dir: Option<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// `rbench clean`
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(
    after_help = "Under mpirun, all ranks share the work. Neither symbolic links nor mounts are followed out \
    of a run's directory.\n\nExample:\n  mpirun -np 12 --hostfile myhost rbench clean /mnt/fs"
)]
pub struct Clean {
    /// Directory that was tested
    #[arg(value_parser = values::directory())]
    pub dir: PathBuf,
    /// Also remove directories of runs on other hosts; make sure first that those runs have
    /// ended
    #[arg(long)]
    pub force: bool,
    /// Also remove directories that runs with --keep or --ack-journal left on purpose
    #[arg(long)]
    pub kept: bool,
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Removal threads per rank
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = values::threads)]
    pub threads: u32,
    /// Show no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
    /// Start of the ranks.
    #[command(flatten)]
    pub start: Start,
}
