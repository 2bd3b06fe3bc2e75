//! A replay of traces, complete: which, how they are read, when operations start.

use std::path::PathBuf;

use rbench_core::Nanos;

use crate::trace::names::Names;
use crate::trace::{Format, Reading};

/// What is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayPlan {
    /// The traces; together they are one load.
    pub traces: Vec<PathBuf>,
    /// Their form; `None`: each tells its own.
    pub format: Option<Format>,
    /// How they are read.
    pub reading: Reading,
    /// Whether a line that cannot be read ends the run; else it is left out.
    pub strict: bool,
    /// When operations start.
    pub pace: Pace,
    /// So many side by side, each in a directory of its own.
    pub copies: u32,
}

/// When operations start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As long after the start as they were recorded, divided by this speed.
    Recorded(f64),
    /// Each as soon as the one before it, of the same worker, has ended.
    AsFastAsPossible,
}

/// No operation is waited for that long: its time is damaged.
const SPAN_MAX: Nanos = Nanos(30 * 24 * 3600 * 1_000_000_000);

impl Pace {
    /// Whether nobody waits for what was recorded so long after the start: a sentence, then.
    ///
    /// # Errors
    /// It is meant to start more than 30 days after the start of the replay.
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

    /// When what was recorded so long after the start is meant to start; `None`: at once.
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
    /// How a trace is read whose first process, as it says itself, was at `cwd`.
    pub fn reading(&self, cwd: Option<Vec<u8>>) -> Reading {
        let given = self.reading.cwd.clone();
        Reading {
            cwd: given.or(cwd),
            ..self.reading.clone()
        }
    }

    /// Which names are replayed.
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
