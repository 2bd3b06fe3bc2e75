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

impl Pace {
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
