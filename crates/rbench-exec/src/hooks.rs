//! Steps after the operations of a phase that belong to its time: `sync`, and the user's command.

use rbench_core::{Call, Clock as _, Failure, FailureKind, Nanos, OpKind};
use rbench_sys::{Fs, command};

use crate::meter::Meter;
use crate::pace::Gate;

/// Steps after the operations.
#[derive(Clone)]
pub struct After {
    /// Run `sync` on the host.
    pub sync: bool,
    /// A shell command.
    pub command: Option<String>,
    /// The operations may continue after the deadline, to top up: the steps wait for the end.
    pub tops_up: bool,
}

impl After {
    /// Performs them; their time counts for the phase.
    pub fn follow(&self, fs: &dyn Fs, gate: &Gate, meter: &mut Meter) {
        let begun = gate.clock.now();
        if self.sync {
            // It cannot fail.
            let _ = fs.on_path(Call::Sync, c"");
        }
        let mut took = gate.clock.now().since(begun);
        if let Some(text) = &self.command {
            let ran = command::run(text, &|| gate.stop.is_raised());
            // Without the time to start and end it.
            let ran_for = u64::try_from(ran.took.as_nanos()).unwrap_or(u64::MAX);
            took = Nanos(took.0.saturating_add(ran_for));
            if let Err(detail) = ran.result {
                let failure = Failure::new(OpKind::Command, text, FailureKind::Command);
                meter.failed_untimed(0, failure.with(detail));
            }
        }
        // Neither part of the operations' time, nor of the tool's.
        gate.waits.add(begun, gate.clock.now());
        let end = gate.start.0 + meter.last_end().0 + took.0;
        meter.extend_to(Nanos(end));
    }
}
