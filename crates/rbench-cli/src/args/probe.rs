//! `rbench probe`: its options.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::StartArgs;
use crate::{Format, Invocation, Probe, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Each ability is tried in a directory of its own below DIR, which is removed at the end; nothing else is \
    touched. Under mpirun every host tries for itself, hosts that differ are named, and each looks for files that the others \
    make. docs/reference/probe.md has the abilities and how each is tried.\n\nExample:\n  mpirun -np 3 --hostfile myhost rbench probe /mnt/fs"
)]
pub(super) struct ProbeArgs {
    /// A directory of the mount
    #[arg(value_parser = values::directory())]
    dir: PathBuf,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    /// No progress on stderr
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
