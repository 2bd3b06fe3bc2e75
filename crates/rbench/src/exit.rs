//! The exit codes.

use rbench_exec::{Group, StopReason};

/// Success.
pub const SUCCESS: u8 = 0;
/// Usage error: the command line is wrong or cannot be carried out.
pub const USAGE: u8 = 2;
/// The run failed, or some of its operations did.
pub const FAILED: u8 = 1;

/// The exit code after a signal: 128 + its number, as in shells.
pub fn stop_code(group: &Group<'_>) -> Option<u8> {
    match group.stop_reason()? {
        StopReason::Signal(number) => Some(128 + number as u8),
        StopReason::Errors
        | StopReason::Stuck
        | StopReason::Start
        | StopReason::Trigger
        | StopReason::DeadMount => None,
    }
}

/// The exit code at rank 0 of a run that ended `well` or not; `printed` is the code of its output.
pub fn exit_code(group: &Group<'_>, well: bool, printed: u8) -> u8 {
    stop_code(group).unwrap_or(if well { printed } else { FAILED })
}
