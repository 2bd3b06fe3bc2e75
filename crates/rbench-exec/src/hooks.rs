//! Steps around the operations of a phase that belong to its time: `sync`, and the user's command.

use std::sync::Arc;

use rbench_core::residency::Pages;
use rbench_core::{Call, Clock as _, Failure, FailureKind, Nanos, OpKind};
use rbench_sys::{Fs, command};

use crate::meter::Meter;
use crate::pace::Gate;
use crate::worker::Runner;

/// Steps after the operations.
#[derive(Clone)]
pub struct After {
    /// Run `sync` on the host.
    pub sync: bool,
    /// A shell command.
    pub command: Option<String>,
    /// Target of `sync`.
    pub fs: Arc<dyn Fs>,
}

impl After {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        !self.sync && self.command.is_none()
    }
}

/// A runner with steps after its operations, in the phase's time.
pub struct Followed {
    inner: Box<dyn Runner>,
    after: After,
    /// The operations may continue after the deadline, to top up: the steps wait for the end.
    tops_up: bool,
    /// Gate and clock at the end of the operations.
    gate: Option<Gate>,
}

impl Followed {
    /// Creates the runner: `inner`, then `after`. `tops_up`: `inner` may run twice.
    pub fn new(inner: Box<dyn Runner>, after: After, tops_up: bool) -> Followed {
        Followed {
            inner,
            after,
            tops_up,
            gate: None,
        }
    }

    fn follow(&self, gate: &Gate, meter: &mut Meter) {
        let begun = gate.clock.now();
        if self.after.sync {
            // It cannot fail.
            let _ = self.after.fs.on_path(Call::Sync, c"");
        }
        let mut took = gate.clock.now().since(begun);
        if let Some(text) = &self.after.command {
            let ran = command::run(text, &|| gate.stop.is_raised());
            // Without the time to start and end it.
            let ran_for = u64::try_from(ran.took.as_nanos()).unwrap_or(u64::MAX);
            took = Nanos(took.0.saturating_add(ran_for));
            if let Err(detail) = ran.result {
                meter.failed_untimed(
                    0,
                    Failure {
                        op: OpKind::Command,
                        path: text.clone(),
                        kind: FailureKind::Command,
                        detail,
                    },
                );
            }
        }
        // Neither part of the operations' time, nor of the tool's.
        gate.waits.add(begun, gate.clock.now());
        let end = gate.start.0 + meter.last_end().0 + took.0;
        meter.extend_to(Nanos(end));
    }
}

impl Runner for Followed {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, upto: Option<u64>) {
        self.inner.run(gate, meter, upto);
        if self.tops_up {
            self.gate = Some(gate.clone());
        } else if !gate.stop.is_raised() {
            self.follow(gate, meter);
        }
    }

    fn open(&mut self, gate: &Gate, meter: &mut Meter) {
        self.inner.open(gate, meter);
    }

    fn close(&mut self, gate: &Gate, meter: &mut Meter) {
        self.inner.close(gate, meter);
    }

    fn issued(&self) -> u64 {
        self.inner.issued()
    }

    fn planned(&self) -> u64 {
        self.inner.planned()
    }

    fn look(&mut self, ended: bool) -> Pages {
        self.inner.look(ended)
    }

    fn once(&self) -> Option<u64> {
        self.inner.once()
    }

    fn covered(&self) -> bool {
        self.inner.covered()
    }

    fn finish(&mut self, meter: &mut Meter) {
        if let Some(gate) = self.gate.take().filter(|gate| !gate.stop.is_raised()) {
            self.follow(&gate, meter);
        }
        self.inner.finish(meter);
    }
}
