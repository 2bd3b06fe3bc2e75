//! How the intended starts of an open loop are spread.

use clap::ValueEnum;
use rbench_plan::arrival::Arrival;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ArrivalArg {
    /// Equal gaps
    Uniform,
    /// Exponential gaps
    Poisson,
}

impl From<ArrivalArg> for Arrival {
    fn from(arrival: ArrivalArg) -> Arrival {
        match arrival {
            ArrivalArg::Uniform => Arrival::Uniform,
            ArrivalArg::Poisson => Arrival::Poisson,
        }
    }
}
