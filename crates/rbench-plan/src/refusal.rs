//! Refusals: sentences that say what cannot be done, and why.

use rbench_core::plain;

/// The reason why something cannot be done: one sentence that names the option or key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl PlanError {
    /// Escapes control characters, as names from the user may contain anything.
    pub(crate) fn plain(self) -> PlanError {
        PlanError(plain(&self.0).into_owned())
    }
}

/// Refuses with this sentence.
macro_rules! refuse {
    ($($arg:tt)*) => { return Err($crate::PlanError(format!($($arg)*))) };
}

/// Refuses the first of these conditions that holds: `condition => "sentence";`, a row each.
macro_rules! refuse_if {
    ($($wrong:expr => $sentence:literal $(, $value:expr)*);+ $(;)?) => {
        $(if $wrong {
            refuse!($sentence $(, $value)*);
        })+
    };
}
