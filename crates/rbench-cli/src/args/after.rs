//! Commands for what a run or a crash left behind.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::StartArgs;
use crate::values;
use crate::{Clean, Format, Invocation, Verify};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Every block in the journals is read and found to be as acknowledged, allowed (in flight or \
    never synced), untouched, lost (although synced), corrupt or unreadable. Exit code: 0 if nothing is lost, \
    corrupt or unreadable, else 1; 2 if a journal cannot be read, is damaged or is none.\n\nExample:\n  rbench io --dir /mnt/fs --bs 4k --rw randwrite --fsync every=100 \
    --time 60 --verify --ack-journal /var/tmp/acks\n  (the file system crashes and is mounted again)\n  \
    rbench verify /var/tmp/acks.*"
)]
pub struct VerifyArgs {
    /// Journals of --ack-journal
    #[arg(required = true, value_name = "FILE")]
    journals: Vec<PathBuf>,
    /// Where the tested directory is now [default: where it was during the run]
    #[arg(long, value_name = "DIR", value_parser = values::directory())]
    dir: Option<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Under mpirun all ranks remove together. Nothing is followed out of a run's directory: no symbolic link, \
    no mount.\n\nExample:\n  mpirun -np 12 --hostfile myhost rbench clean /mnt/fs"
)]
pub struct CleanArgs {
    /// The directory that was tested
    #[arg(value_parser = values::directory())]
    dir: PathBuf,
    /// Also remove what runs of other hosts left; make sure first that those
    /// have ended
    #[arg(long)]
    force: bool,
    /// Also remove what runs with --keep or --ack-journal have left on purpose
    #[arg(long)]
    kept: bool,
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Threads of each rank that remove
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = values::threads)]
    threads: u32,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    pub(super) start: StartArgs,
}

impl VerifyArgs {
    pub fn invocation(self) -> Invocation {
        Invocation::Verify(Verify {
            journals: self.journals,
            dir: self.dir,
            format: self.format,
        })
    }
}

impl CleanArgs {
    pub fn invocation(self) -> Invocation {
        Invocation::Clean(Clean {
            dir: self.dir,
            force: self.force,
            kept: self.kept,
            dry_run: self.dry_run,
            threads: self.threads,
            quiet: self.quiet,
        })
    }
}
