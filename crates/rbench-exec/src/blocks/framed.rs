//! Opens and closes that are part of what is timed, and when each kind of operation was.

use rbench_core::outcome::Measured;
use rbench_core::{Clock as _, Nanos};

use super::BlockRunner;
use crate::meter::{Meter, Span};
use crate::pace::Gate;

/// The spans of a worker's kinds of operations, from the start of the first to the end of the last.
#[derive(Debug)]
pub(super) struct Framed {
    opens: Measured,
    transfers: Measured,
    syncs: Measured,
    closes: Measured,
}

impl Default for Framed {
    fn default() -> Framed {
        Framed {
            opens: Measured::NOTHING,
            transfers: Measured::NOTHING,
            syncs: Measured::NOTHING,
            closes: Measured::NOTHING,
        }
    }
}

fn from_to(from: Nanos, to: Nanos) -> Measured {
    Measured {
        from,
        to: to.max(from),
        aside: Nanos(0),
    }
}

impl BlockRunner {
    /// Opens all files.
    pub(super) fn open_framed(&mut self, gate: &Gate, meter: &mut Meter) {
        let begun = gate.clock.now();
        for file in 0..self.files.count() {
            let start = gate.clock.now();
            // Other checks during the open are not timed. Engines without files open none.
            let mut end = start;
            let note = || end = gate.clock.now();
            let opened = self.files.fd_noting(file, self.engine.as_mut(), note);
            let span = Span::new(start, end);
            match (opened, self.context.lanes.open) {
                (Ok(_), Some(lane)) => meter.done(lane, span, 0),
                (Ok(_), None) => meter.went_on(),
                (Err(failure), _) => self.cannot_open(failure, Some(span), meter),
            }
        }
        if let Some(framed) = &mut self.framed {
            framed.opens = from_to(begun, meter.last_end_at());
        }
    }

    /// Notes that operations were done since `begun`: what topped up goes on where the
    /// deadline ended the others.
    pub(super) fn transferred(&mut self, begun: Nanos, meter: &Meter) {
        if let Some(framed) = &mut self.framed {
            let now = from_to(begun, meter.last_end_at());
            framed.transfers = framed.transfers.joined(now);
            framed.transfers.aside = Nanos(0);
        }
    }

    /// Syncs what was written, as far as that is asked for, and closes all files.
    pub(super) fn close_framed(&mut self, gate: &Gate, meter: &mut Meter) {
        if self.framed.is_none() {
            return;
        }
        let begun = gate.clock.now();
        self.end_writes(gate, meter);
        let synced = from_to(begun, meter.last_end_at());
        let closing = gate.clock.now();
        self.close_timed(gate, meter);
        let closed = from_to(closing, meter.last_end_at());
        if let Some(framed) = &mut self.framed {
            framed.syncs = match self.context.job.syncing.fsync {
                0 => synced,
                // They came between the writes.
                _ => framed.transfers.joined(synced),
            };
            framed.closes = closed;
        }
    }

    /// Tells the meter when each kind of operation was done.
    pub(super) fn tell_framed(&mut self, meter: &mut Meter) {
        let Some(framed) = &self.framed else {
            return;
        };
        let lanes = self.context.lanes;
        let rows = [
            (lanes.open, framed.opens),
            (lanes.read, framed.transfers),
            (lanes.write, framed.transfers),
            (lanes.sync, framed.syncs),
            (lanes.close, framed.closes),
        ];
        for (lane, measured) in rows {
            if let Some(lane) = lane {
                let used = meter.lane(lane).operations() > 0;
                meter.measured(lane, if used { measured } else { Measured::NOTHING });
            }
        }
    }
}
