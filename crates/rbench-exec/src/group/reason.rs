//! Reasons why a group stops.

use serde::{Deserialize, Serialize};

/// The reason why the group was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// A signal with this number reached one of the ranks.
    Signal(i32),
    /// More operations failed than may.
    Errors,
    /// An operation did not return in the time it may take.
    Stuck,
    /// A rank could not start together with the others.
    Start,
    /// The trigger that ends the run early has fired.
    Trigger,
    /// A mount no longer answers.
    DeadMount,
}

impl StopReason {
    /// Encodes it as a number above 0, for reductions.
    pub(super) fn code(self) -> u64 {
        match self {
            StopReason::Signal(number) => u64::from(number.unsigned_abs()),
            StopReason::Errors => 1000,
            StopReason::Stuck => 1001,
            StopReason::Start => 1002,
            StopReason::Trigger => 1003,
            StopReason::DeadMount => 1004,
        }
    }

    pub(super) fn of_code(code: u64) -> StopReason {
        match code {
            1000 => StopReason::Errors,
            1001 => StopReason::Stuck,
            1002 => StopReason::Start,
            1003 => StopReason::Trigger,
            1004 => StopReason::DeadMount,
            number => StopReason::Signal(number as i32),
        }
    }
}
