//! Passes before those that count.

use rbench_core::outcome::PhaseOutcome;

use crate::listener::Listener;

/// Code of the warning for operations that failed where nothing was counted.
pub const WARM_UP_ERRORS: &str = "warm-up-errors";

/// Hides the results of a pass from the listener. Failures become a warning: later passes may not
/// have started from the intended state.
pub(crate) struct WarmUp<'l>(pub &'l mut dyn Listener);

impl Listener for WarmUp<'_> {
    fn begun(&mut self, shared: bool) -> Result<(), String> {
        self.0.begun(shared)
    }

    fn warning(&mut self, code: &'static str, message: String) {
        self.0.warning(code, message);
    }

    fn row(&mut self, outcome: PhaseOutcome) {
        let failed = outcome.failures.total();
        if failed > 0 {
            let label = &outcome.label;
            let message = format!(
                "Operations failed in the warm-up, which is not part of any figure: {label} ({failed})."
            );
            self.0.warning(WARM_UP_ERRORS, message);
        }
    }

    fn another(&mut self) -> bool {
        self.0.another()
    }

    fn stopped(&mut self) {
        self.0.stopped();
    }
}
