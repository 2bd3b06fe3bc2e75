//! A replay of traces, complete: the traces, their parsing, and the starts of operations.

use std::path::PathBuf;

use rbench_core::Nanos;

use crate::trace::names::Names;
use crate::trace::{Format, Reading};

/// Plan of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayPlan {
    /// The traces, which form one load.
    pub traces: Vec<PathBuf>,
    /// Their form; `None`: detected for each.
    pub format: Option<Format>,
    /// Options of the parsing.
    pub reading: Reading,
    /// True if an unreadable line ends the run; otherwise it is left out.
    pub strict: bool,
    /// Starts of operations.
    pub pace: Pace,
    /// Number of parallel copies, each in its own directory.
    pub copies: u32,
}

/// Pace of the operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// The recorded times, divided by this speed.
    Recorded(f64),
    /// Each starts as soon as the previous one of the same worker has ended.
    AsFastAsPossible,
}

/// Longest plausible wait for an operation: beyond it, its time is damaged.
const SPAN_MAX: Nanos = Nanos(30 * 24 * 3600 * 1_000_000_000);

impl Pace {
    /// Checks that an operation recorded at this time is not too late to wait for it.
    ///
    /// # Errors
    /// It would start more than 30 days after the start of the replay.
    pub fn comes(self, recorded: Nanos) -> Result<(), String> {
        match self.at(recorded).is_some_and(|at| at > SPAN_MAX) {
            false => Ok(()),
            true => Err(
                "it starts more than 30 days after the first operation: if its time is not damaged, \
                 use --as-fast-as-possible or --time-scale"
                    .to_owned(),
            ),
        }
    }

    /// Intended start of an operation recorded at this time; `None`: at once.
    #[inline]
    pub fn at(self, recorded: Nanos) -> Option<Nanos> {
        match self {
            Pace::Recorded(1.0) => Some(recorded),
            Pace::Recorded(speed) => Some(Nanos((recorded.0 as f64 / speed) as u64)),
            Pace::AsFastAsPossible => None,
        }
    }
}

impl ReplayPlan {
    /// Parsing options for a trace whose first process was in `cwd`, according to the trace.
    pub fn reading(&self, cwd: Option<Vec<u8>>) -> Reading {
        let given = self.reading.cwd.clone();
        Reading {
            cwd: given.or(cwd),
            ..self.reading.clone()
        }
    }

    /// The names to replay.
    pub fn names(&self) -> &Names {
        &self.reading.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_damaged_time() {
        let day = |n: u64| Nanos(n * 24 * 3600 * 1_000_000_000);
        assert_eq!(Pace::Recorded(1.0).comes(day(30)), Ok(()));
        assert!(Pace::Recorded(1.0).comes(day(31)).is_err());
        assert!(Pace::Recorded(2.0).comes(day(59)).is_ok());
        assert!(Pace::Recorded(0.5).comes(day(16)).is_err());
        assert!(Pace::Recorded(0.5).comes(Nanos(u64::MAX)).is_err());
        assert!(Pace::AsFastAsPossible.comes(Nanos(u64::MAX)).is_ok());
    }
}
