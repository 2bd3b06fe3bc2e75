//! `rbench replay`

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use rbench_core::Nanos;
use rbench_plan::spec::{self, Spec, Workload};
use rbench_plan::trace::Format;

use super::{Common, repeats};
use crate::{Invocation, Stop, values};

/// A form of traces, or whichever each trace tells.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatArg {
    /// Detected from the first lines of each trace
    Auto,
    /// fio's I/O log, version 2 or 3
    Iolog,
    /// JuiceFS's access log: cat MOUNT/.accesslog
    Juicefs,
    /// strace -f -ttt -T -o TRACE PROGRAM; -tt, without a date, is read too
    Strace,
    /// Output of darshan-dxt-parser
    Dxt,
    /// Trace of rbench record
    Rbench,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Files that existed before the trace are created first, untimed, with their sizes. Then the \
    operations of each process run in order, at the recorded times, in the run's own directory; all names of \
    the trace are placed below it, whatever they are. Processes are spread over the workers of all ranks. With \
    one worker (the default), all operations run in the order of their recorded starts. \
    docs/reference/replay.md describes the formats, the figures and what is left out.\n\nExamples:\n  strace \
    -f -ttt -T -o clone.strace git clone /src/repo copy\n  rbench replay clone.strace --dir /mnt/fs --below \
    \"$PWD\"\n  mpirun -np 12 rbench replay app.accesslog --dir /mnt/fs --threads 8 --copies 12 --time-scale 2"
)]
pub struct ReplayArgs {
    /// Traces; several are replayed together as one load
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Format of all traces
    #[arg(
        long = "trace-format",
        visible_alias = "from",
        value_enum,
        value_name = "FORM",
        default_value = "auto"
    )]
    form: FormatArg,
    /// Replay speed: 2 is twice as fast as recorded [default: 1]
    #[arg(long, value_name = "FACTOR")]
    time_scale: Option<f64>,
    /// Ignore the recorded times: start each operation when the one before it has ended
    #[arg(long)]
    as_fast_as_possible: bool,
    /// Number of parallel copies, each in its own directory [default: 1]
    #[arg(long, value_name = "N")]
    copies: Option<u32>,
    /// Unit of the times in fio's logs of version 3 [default: 1us]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    time_unit: Option<Nanos>,
    /// Replay only operations below this directory of the trace
    #[arg(long, value_name = "PATH")]
    below: Option<PathBuf>,
    /// strace: directory in which the program was started [default: taken from the trace]
    #[arg(long, value_name = "PATH")]
    cwd: Option<PathBuf>,
    /// Refuse a trace with an unreadable line [default: skip and count such lines]
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    repeats: repeats::Count,
    #[command(flatten)]
    pub(super) common: Common,
}

impl ReplayArgs {
    pub(super) fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let (mut common, output) = self.common.split(env_dir)?;
        self.repeats.tell(&mut common);
        let workload = Workload::Replay(spec::Replay {
            traces: self.traces,
            format: match self.form {
                FormatArg::Auto => None,
                FormatArg::Iolog => Some(Format::Iolog),
                FormatArg::Juicefs => Some(Format::Juicefs),
                FormatArg::Strace => Some(Format::Strace),
                FormatArg::Dxt => Some(Format::Dxt),
                FormatArg::Rbench => Some(Format::Rbench),
            },
            time_scale: self.time_scale,
            as_fast_as_possible: self.as_fast_as_possible,
            copies: self.copies,
            time_unit: self.time_unit,
            below: self.below,
            cwd: self.cwd,
            strict: self.strict,
        });
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}
