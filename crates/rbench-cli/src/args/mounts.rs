//! The commands that look at a mount beside the workloads: what it can do, what a crash left of
//! it, what interrupted runs left on it.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::{Clean, Communicator, Format, Invocation, Probe, Verify};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Every block in the journals is read and found to be as acknowledged, allowed (in flight or \
    never synced), untouched, lost (although synced), corrupt or unreadable. Exit code: 0 if nothing is lost, \
    corrupt or unreadable, else 1.\n\nExample:\n  rbench io --dir /mnt/fs --bs 4k --rw randwrite --fsync every=100 \
    --time 60 --verify --ack-journal /var/tmp/acks\n  (the file system crashes and is mounted again)\n  \
    rbench verify /var/tmp/acks.*"
)]
pub(super) struct VerifyArgs {
    /// Journals of --ack-journal
    #[arg(required = true, value_name = "FILE")]
    journals: Vec<PathBuf>,
    /// Where the tested directory is now [default: where it was during the run]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each ability is tried in a directory of its own below DIR, which is removed at the end; nothing else is \
    touched. Under mpirun every host tries for itself, hosts that differ are named, and each looks for files that the others \
    make. docs/probe.md has the abilities and how each is tried.\n\nExample:\n  mpirun -np 3 --hostfile myhost rbench probe /mnt/fs"
)]
pub(super) struct ProbeArgs {
    /// A directory of the mount
    dir: PathBuf,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// How the ranks communicate
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    pub(super) communicator: Communicator,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CleanArgs {
    /// The directory that was tested
    dir: PathBuf,
    /// Also remove what runs of other hosts left; make sure first that those
    /// have ended
    #[arg(long)]
    force: bool,
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
}

impl VerifyArgs {
    pub(super) fn invocation(self) -> Invocation {
        let VerifyArgs {
            journals,
            dir,
            format,
        } = self;
        Invocation::Verify(Verify {
            journals,
            dir,
            format,
        })
    }
}

impl ProbeArgs {
    pub(super) fn invocation(self) -> Invocation {
        let ProbeArgs {
            dir, format, quiet, ..
        } = self;
        Invocation::Probe(Probe { dir, format, quiet })
    }
}

impl CleanArgs {
    pub(super) fn invocation(self) -> Invocation {
        let CleanArgs {
            dir,
            force,
            dry_run,
        } = self;
        Invocation::Clean(Clean {
            dir,
            force,
            dry_run,
        })
    }
}
