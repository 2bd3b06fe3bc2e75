//! How operations on names are made: one after the other, or several in flight.

use clap::Args as ClapArgs;
use rbench_plan::spec;

#[derive(Debug, ClapArgs)]
pub struct InFlight {
    /// How to issue operations: sync or io_uring [default: sync]
    ///
    /// sync makes one system call after the other; io_uring keeps several operations per
    /// worker in flight (docs/reference/in-flight.md).
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// With --engine io_uring: operations (in rbench mix, rounds) in flight per worker, up
    /// to 4096 [default: 1]
    #[arg(long, value_name = "N")]
    iodepth: Option<u32>,
}

impl From<InFlight> for spec::InFlight {
    fn from(given: InFlight) -> spec::InFlight {
        let InFlight { engine, iodepth } = given;
        spec::InFlight {
            engine,
            depth: iodepth,
        }
    }
}
