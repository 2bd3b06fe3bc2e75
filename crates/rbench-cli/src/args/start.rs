//! How ranks come together: options of every command that may run under MPI.

use clap::Args;
use rbench_core::Nanos;

use crate::{Communicator, Start, values};

#[derive(Debug, Clone, Copy, Args)]
pub struct StartArgs {
    /// How ranks communicate
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHICH",
        help_heading = "Run"
    )]
    communicator: Communicator,
    /// Give up if not all ranks have joined after this time; 0: never [default: 120s]
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Run")]
    start_timeout: Option<Nanos>,
}

impl From<StartArgs> for Start {
    fn from(args: StartArgs) -> Start {
        Start {
            communicator: args.communicator,
            timeout: args.start_timeout,
        }
    }
}
