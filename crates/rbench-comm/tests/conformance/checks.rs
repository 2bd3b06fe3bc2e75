//! Output of a check, and the ranks' agreement on it.

use std::error::Error;

use rbench_comm::{Combine, CommError, Communicator};
use rbench_core::Rank;

/// A remark (often empty) of a check that passed, or why it did not.
pub type Outcome = Result<String, Box<dyn Error>>;

/// A check that passed without a remark.
pub fn passed() -> Outcome {
    Ok(String::new())
}

/// Fails the check with a text when a condition does not hold.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if $condition {
        } else {
            return Err(format!($($text)+).into());
        }
    };
}
pub(crate) use ensure;

/// The checks of one rank.
pub struct Checks<'a> {
    comm: &'a dyn Communicator,
    passed: bool,
}

impl<'a> Checks<'a> {
    pub fn new(comm: &'a dyn Communicator) -> Checks<'a> {
        Checks { comm, passed: true }
    }

    pub fn passed(&self) -> bool {
        self.passed
    }

    /// Agrees with the other ranks on the outcome of a check. Rank 0 prints
    /// the line, each rank that failed the reason.
    pub async fn record(&mut self, name: &str, outcome: Outcome) -> Result<(), CommError> {
        let comm = self.comm;
        if let Err(error) = &outcome {
            eprintln!("  rank {}: {name}: {error}", comm.rank());
        }
        let failures = vec![u64::from(outcome.is_err())];
        let failures = comm.all_reduce(Combine::Sum, failures).await?[0];
        self.passed &= failures == 0;
        if comm.rank() == Rank(0) {
            let verdict = if failures == 0 { "ok" } else { "FAILED" };
            let remark = outcome.unwrap_or_default();
            let remark = if remark.is_empty() {
                remark
            } else {
                format!(" ({remark})")
            };
            println!(
                "{} with {}: {name}: {verdict}{remark}",
                comm.kind(),
                comm.size()
            );
        }
        Ok(())
    }
}
