//! `rbench record`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::Record;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "DIR is mounted at MOUNTPOINT, every request is passed on to it and recorded, with the data that is \
    written. The program runs with this one's standard streams and in its working directory; what it does below MOUNTPOINT is \
    in the trace. It is unmounted when the program ends, whose exit code is this one's. docs/reference/replay.md has the form of \
    the trace.\n\nExample:\n  rbench record data mnt --trace clone.trace -- git clone /src/repo mnt/repo\n  \
    rbench replay clone.trace --dir /mnt/fs"
)]
pub struct RecordArgs {
    /// The directory with the files
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// An empty directory to mount it on
    mountpoint: PathBuf,
    /// The file of the trace, which must not exist [default: rbench.trace]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The program and its arguments, behind --
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
