//! A worker's effects on others: it ends them, or waits for its turn among them; and the ramp that
//! ends when enough was moved.

use std::sync::Arc;

use rbench_core::{Clock as _, Nanos};

use super::BlockRunner;
use super::order::{InFlight, Locks};
use crate::pace::{Exits, Flow, FlowShare, Gate, RampBytes, StopFlag};

/// Time for which a worker polls for its turn without sleeping between two checks.
const LOOKS: Nanos = Nanos(20_000);
const SLEEP: Nanos = Nanos(50_000);

/// Objects that the workers of a job on a rank share with those of other jobs.
#[derive(Debug, Clone, Default)]
pub struct Others {
    /// Raised when another job ends this one, and when the run is stopped; `None`: only
    /// the run can be.
    pub stop: Option<StopFlag>,
    /// Raised when the run is stopped.
    pub run_stop: StopFlag,
    /// The effect of its end on others.
    pub exit: Option<Exit>,
    /// Its flow.
    pub flow: Option<Arc<Flow>>,
    /// With `ramp_size` of a whole group: its ramp.
    pub ramp: Option<Arc<RampBytes>>,
    /// Blocks whose requests do not overlap with those of the other workers.
    pub blocks: Option<Arc<InFlight>>,
    /// The locks of all files.
    pub locks: Arc<Locks>,
}

/// The effect of the end of a job's worker.
#[derive(Debug, Clone)]
pub struct Exit {
    /// The registry of ends.
    pub exits: Arc<Exits>,
    /// Number of the group, round or iteration that ends.
    pub id: u64,
    /// Also where the worker has no error.
    pub always: bool,
}

/// Progress of a ramp of bytes.
#[derive(Debug, Default)]
pub(super) enum Ramp {
    /// There is none, or it is over.
    #[default]
    None,
    /// It goes on.
    Climbs(Arc<RampBytes>),
    /// Enough was moved: what is in flight completes, then recording begins.
    Reached,
}

impl Ramp {
    /// The ramp of a worker with these others, which may share it.
    pub(super) fn of(bytes: u64, others: &Others) -> Ramp {
        match (bytes, &others.ramp) {
            (0, _) => Ramp::None,
            (_, Some(together)) => Ramp::Climbs(Arc::clone(together)),
            (bytes, None) => Ramp::Climbs(Arc::new(RampBytes::new(bytes))),
        }
    }

    /// Returns true if it is not over.
    pub(super) fn goes_on(&self) -> bool {
        !matches!(self, Ramp::None)
    }
}

impl BlockRunner {
    /// Its part in a flow, from the time on when it is prepared.
    pub(super) fn join_flow(&mut self) {
        let flow = self.context.others.flow.as_ref();
        let plan = self.context.job.others.flow;
        self.flow = flow
            .zip(plan)
            .map(|(flow, plan)| FlowShare::new(Arc::clone(flow), plan.weight));
    }

    /// Waits until the others of its flow have done their part, or for as long as
    /// `flow_sleep` says.
    pub(super) fn wait_for_turn(&mut self, gate: &Gate) {
        let begun = gate.clock.now();
        let sleep = self.context.job.others.flow.map_or(Nanos(0), |f| f.sleep);
        if sleep.0 > 0 {
            // A closed gate is seen before the next operation.
            let _ = gate.wait(Nanos(begun.0.saturating_add(sleep.0)));
            return;
        }
        let mut now = begun;
        while self.flow.as_ref().is_some_and(FlowShare::is_ahead) && !gate.closed(now) {
            match now.since(begun) < LOOKS {
                true => std::hint::spin_loop(),
                false => std::thread::sleep(SLEEP.into()),
            }
            now = gate.clock.now();
        }
        gate.waits.add(begun, now);
    }

    /// The worker has ended: others go on without it, or end as well.
    pub(super) fn end_others(&mut self, gate: &Gate) {
        self.flow = None;
        if let Some(exit) = &self.context.others.exit
            && (exit.always || self.accounts.ended.error != 0)
            && !gate.stop.is_raised()
        {
            exit.exits.end(exit.id);
        }
    }

    /// Counts what was moved before the end of a ramp of bytes.
    #[cold]
    pub(super) fn climb(&mut self, moved: u64) {
        if let Ramp::Climbs(ramp) = &self.accounts.ramp
            && ramp.add(moved)
        {
            self.accounts.ramp = Ramp::Reached;
            // Ends the loop; nothing is in flight then.
            self.accounts.over = true;
        }
    }

    /// Begins to record, if the ramp is over: from here on run time counts. Whether it
    /// goes on with `gate`.
    pub(super) fn end_ramp(&mut self, gate: &mut Gate) -> bool {
        if !matches!(self.accounts.ramp, Ramp::Reached) {
            return false;
        }
        self.accounts.ramp = Ramp::None;
        let now = gate.clock.now();
        let runtime = self.context.job.pace.runtime;
        gate.deadline = runtime.map(|runtime| Nanos(now.0.saturating_add(runtime.0)));
        self.accounts.records_from = now;
        if let Some(stats) = &mut self.accounts.stats {
            stats.end_ramp(now);
        }
        // An error may have come with the last of the ramp.
        self.accounts.over = self.accounts.ended.error != 0;
        !self.accounts.over
    }
}
