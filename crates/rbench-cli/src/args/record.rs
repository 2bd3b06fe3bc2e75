//! `rbench record`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::Record;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "DIR is mounted at MOUNTPOINT. Every request is passed on to it and recorded, including the \
    data written. The program has the same standard streams and working directory as rbench; the trace has its \
    operations below MOUNTPOINT. When the program ends, MOUNTPOINT is unmounted, and rbench exits with the \
    program's exit code. docs/reference/replay.md describes the format of the trace.\n\nExample:\n  rbench \
    record data mnt --trace clone.trace -- git clone /src/repo mnt/repo\n  rbench replay clone.trace --dir \
    /mnt/fs"
)]
pub struct RecordArgs {
    /// Directory with the files
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Empty directory to mount it on
    mountpoint: PathBuf,
    /// Trace file to write, which must not exist [default: rbench.trace]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Program and its arguments, after --
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<OsString>,
}

impl From<RecordArgs> for Record {
    fn from(args: RecordArgs) -> Record {
        Record {
            folder: args.folder,
            mountpoint: args.mountpoint,
            trace: args.trace,
            command: args.command,
        }
    }
}
