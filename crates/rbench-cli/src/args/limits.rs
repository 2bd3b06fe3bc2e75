//! When a run ends by itself: options of the native commands.

use clap::Args;
use rbench_core::Nanos;
use rbench_plan::spec::{LimitOptions, OnError};

use crate::values;

#[derive(Debug, Args)]
pub struct LimitArgs {
    /// What to do after a failed operation [default: continue]
    #[arg(long, value_name = "continue|stop", value_parser = values::on_error, help_heading = "Run")]
    on_error: Option<OnError>,
    /// End the run after more than N failed operations [default: no limit]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>, help_heading = "Run")]
    max_errors: Option<u64>,
    /// Give up on an operation that takes longer than this (s) [default: never]
    ///
    /// The run then ends and reports what was measured.
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Run")]
    op_timeout: Option<Nanos>,
    /// What to do when a mount no longer answers on a host [default: stop]
    ///
    /// stop ends the run when the other hosts have finished the phase; continue goes on.
    #[arg(long, value_name = "stop|continue", value_parser = values::on_error, help_heading = "Run")]
    on_dead_mount: Option<OnError>,
}

impl From<LimitArgs> for LimitOptions {
    fn from(args: LimitArgs) -> LimitOptions {
        LimitOptions {
            on_error: args.on_error,
            max_errors: args.max_errors,
            op_timeout: args.op_timeout,
            on_dead_mount: args.on_dead_mount,
        }
    }
}
