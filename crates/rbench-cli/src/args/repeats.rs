//! Options for the number of iterations.

use clap::Args as ClapArgs;
use rbench_core::Nanos;
use rbench_plan::spec;

use rbench_plan::values::{self, Iterations};

/// Options that set iterations.
pub trait Repeated {
    /// Stores the options in `common`.
    fn tell(&self, common: &mut spec::Common);
}

/// A number of iterations, or as many as their rates need.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Run")]
pub struct Repeats {
    /// Number of repetitions of all phases, or auto [default: 1]
    ///
    /// auto repeats at least 3 times, until the 95 % confidence interval of each row's rate
    /// is within --precision.
    #[arg(long, value_name = "N|auto", value_parser = values::iterations)]
    iterations: Option<Iterations>,
    /// With --iterations auto: allowed error of each rate [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = values::precision)]
    precision: Option<f64>,
    /// With --iterations auto: maximum number of iterations [default: 30]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,
    /// With --iterations auto: start no further iteration after this time (s) [default: no
    /// limit]
    #[arg(long, value_name = "TIME")]
    max_time: Option<Nanos>,
}

impl Repeated for Repeats {
    fn tell(&self, common: &mut spec::Common) {
        common.iterations = match self.iterations {
            Some(Iterations::Count(count)) => Some(count),
            Some(Iterations::Auto) | None => None,
        };
        common.auto = spec::AutoIterations {
            wanted: self.iterations == Some(Iterations::Auto),
            precision: self.precision,
            max_iterations: self.max_iterations,
            max_time: self.max_time,
        };
    }
}

/// A number of iterations.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Run")]
pub struct Count {
    /// Repetitions of all phases [default: 1]
    #[arg(long, value_name = "N")]
    iterations: Option<u32>,
}

impl Repeated for Count {
    fn tell(&self, common: &mut spec::Common) {
        common.iterations = self.iterations;
    }
}
