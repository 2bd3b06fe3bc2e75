//! Syncing and closing files, between a job's operations and behind them.

use rbench_core::{Clock as _, Failure, OpKind};
use rbench_sys::Transfer;

use super::JobRunner;
use crate::meter::{Meter, Span};
use crate::pace::Gate;

impl JobRunner {
    /// What belongs to the time of the writes behind the last of them.
    pub(super) fn end_writes(&mut self, gate: &Gate, meter: &mut Meter) {
        let syncing = self.scene.job.syncing;
        let wanted = syncing.end_fsync || syncing.fsync_on_close;
        if !wanted || gate.stop.is_raised() {
            let now = gate.clock.now();
            self.book().end_stretch(now);
            return;
        }
        for file in self.files.dirty() {
            match self.sync_file(gate, file, Transfer::Fsync, 0) {
                Ok(_) => meter.went_on(),
                Err((failure, _)) => self.trouble(failure, None, meter),
            }
        }
        let end = gate.clock.now();
        meter.extend_to(end);
        self.book().end_writes(end);
        self.book().end_stretch(end);
    }

    /// Closes a file, untimed.
    pub(super) fn close(&mut self, file: u64, meter: &mut Meter) {
        match self.files.close(file, self.engine.as_mut()) {
            Ok(()) => meter.went_on(),
            Err(failure) => self.trouble(failure, None, meter),
        }
    }

    /// Closes a file that is done, after the sync that is due.
    pub(super) fn leave(&mut self, slot: usize, file: u64, gate: &Gate, meter: &mut Meter) {
        if !self.steps.takes_turns() {
            return;
        }
        let syncing = self.scene.job.syncing;
        let every = |count: u64, n: u64| n > 0 && count >= n;
        if every(self.since_fsync, syncing.fsync) || every(self.since_datasync, syncing.fdatasync) {
            self.last_written = file;
            self.sync_in(slot, gate, meter);
        }
        if syncing.fsync_on_close
            && self.files.is_dirty(file)
            && let Err((failure, _)) = self.sync_file(gate, file, Transfer::Fsync, slot)
        {
            self.trouble(failure, None, meter);
        }
        self.close(file, meter);
    }

    /// Syncs the file that was written last; nothing is under way.
    pub(super) fn sync_written(&mut self, gate: &Gate, meter: &mut Meter) {
        self.sync_in(0, gate, meter);
    }

    fn sync_in(&mut self, slot: usize, gate: &Gate, meter: &mut Meter) {
        let syncing = self.scene.job.syncing;
        let due = [
            (self.since_fsync, syncing.fsync, Transfer::Fsync),
            (self.since_datasync, syncing.fdatasync, Transfer::DataSync),
        ];
        for (count, every, transfer) in due {
            if every == 0 || count < every {
                continue;
            }
            if transfer == Transfer::Fsync {
                self.since_fsync = 0;
            } else {
                self.since_datasync = 0;
            }
            match self.sync_file(gate, self.last_written, transfer, slot) {
                Ok(span) => {
                    meter.went_on();
                    let book = self.book();
                    if book.records(span.start) {
                        book.synced(span);
                        if let Some(lane) = self.scene.lanes.sync {
                            meter.done(lane, span, 0);
                        }
                    }
                }
                Err((failure, span)) => self.trouble(failure, span, meter),
            }
        }
    }

    /// Brings a file to stable storage by way of a slot that is free; how long
    /// it took. Why not, and how long that took if it could be tried.
    fn sync_file(
        &mut self,
        gate: &Gate,
        file: u64,
        transfer: Transfer,
        slot: usize,
    ) -> Result<Span, (Failure, Option<Span>)> {
        if let Some(errno) = self.queue.failed() {
            let path = self.files.path(file).to_string_lossy();
            return Err((Failure::new(OpKind::Fsync, path, errno), None));
        }
        let fd = self.files.fd(file, self.engine.as_mut());
        let fd = fd.map_err(|failure| (failure, None))?;
        let request = rbench_sys::Request {
            transfer,
            fd,
            offset: 0,
            length: 0,
            at: 0,
        };
        let start = gate.clock.now();
        self.queue.submitted(1, start);
        self.engine.submit(slot, request);
        let engine = self.engine.as_mut();
        let (result, end) = self.queue.reap_slot(engine, gate.clock, slot);
        let span = Span {
            intended: None,
            start,
            end,
        };
        self.queue.took(end.since(start));
        match result {
            Ok(_) => {
                self.files.clean(file);
                Ok(span)
            }
            Err(errno) => {
                let path = self.files.path(file).to_string_lossy();
                Err((Failure::new(OpKind::Fsync, path, errno), Some(span)))
            }
        }
    }
}
