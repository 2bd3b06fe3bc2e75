//! `rbench probe`: its options.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::StartArgs;
use crate::{Format, Invocation, Probe, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each ability is tested in its own directory below DIR, which is removed at the end; nothing \
    else is touched. Under mpirun, every host tests for itself, hosts that differ are named, and each host \
    checks for files that the others create. docs/reference/probe.md describes the abilities and their \
    tests.\n\nExample:\n  mpirun -np 3 --hostfile myhost rbench probe /mnt/fs"
)]
pub(super) struct ProbeArgs {
    /// Directory on the mount
    #[arg(value_parser = values::directory())]
    dir: PathBuf,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    /// Show no progress on stderr
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    pub(super) start: StartArgs,
}

impl ProbeArgs {
    pub(super) fn invocation(self) -> Invocation {
        let ProbeArgs {
            dir, format, quiet, ..
        } = self;
        Invocation::Probe(Probe { dir, format, quiet })
    }
}
