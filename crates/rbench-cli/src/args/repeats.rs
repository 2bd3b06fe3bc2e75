//! Options for the number of iterations.

use clap::Args as ClapArgs;
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
    #[command(flatten)]
    auto: spec::AutoIterations,
}

impl Repeated for Repeats {
    fn tell(&self, common: &mut spec::Common) {
        common.iterations = match self.iterations {
            Some(Iterations::Count(count)) => Some(count),
            Some(Iterations::Auto) | None => None,
        };
        common.auto = spec::AutoIterations {
            wanted: self.iterations == Some(Iterations::Auto),
            ..self.auto
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
