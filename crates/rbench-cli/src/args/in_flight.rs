//! How operations on names are made: one after the other, or several in flight.

use clap::Args as ClapArgs;
use rbench_plan::spec;

#[derive(Debug, ClapArgs)]
pub struct InFlight {
    /// How operations are made: sync (system calls, one after the other), io_uring (several of
    /// each worker in flight, see docs/reference/in-flight.md) [default: sync]
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// With --engine io_uring: operations in flight per worker, of a mix rounds, up to 4096 [default: 1]
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
