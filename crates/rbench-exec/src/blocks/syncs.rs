//! The steps between a worker's operations and after them: syncs, closes, pauses.

use nix::errno::Errno;
use rbench_core::clock::spin_cycles;
use rbench_core::operations::NameEngine;
use rbench_core::{Clock as _, Failure, IoPriority, MonotonicClock, Nanos, OpKind};
use rbench_plan::jobs::RangeSync;
use rbench_sys::{Request, Transfer};

use super::stats::error_code;
use super::{BlockRunner, Kind, Source};
use crate::ack;
use crate::meter::{Meter, Span};
use crate::pace::Gate;

/// A step before the next operation, with nothing in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interlude {
    /// Written data is to be synced.
    Sync,
    /// It is time to think.
    Think,
    /// Written blocks are to be checked.
    Check,
    /// Written blocks are to be trimmed.
    Trim,
    /// The log that is replayed has something else than an operation.
    Event,
    /// It is the turn of the others of its flow.
    Flow,
}

impl BlockRunner {
    /// The step that has to come before the next operation.
    #[inline]
    pub(super) fn interlude(&mut self) -> Option<Interlude> {
        let due = match self.pattern.source {
            Source::Work => self.due(),
            _ => None,
        };
        // Last: what may be done counts.
        due.or_else(|| {
            let waits = self.flow.as_mut().is_some_and(|flow| !flow.take());
            waits.then_some(Interlude::Flow)
        })
    }

    /// The step of its own work that has to come before the next operation.
    fn due(&self) -> Option<Interlude> {
        let job = &self.context.job;
        let reached = |count: u64, every: u64| every > 0 && count >= every;
        let backlog = job.verify.as_ref().and_then(|v| v.backlog).unwrap_or(0);
        let waiting = self.checks.backlog.len() as u64;
        if reached(waiting, backlog) || self.checks.batch_left > 0 && waiting > 0 {
            Some(Interlude::Check)
        } else if self
            .checks
            .trims
            .as_ref()
            .is_some_and(|trims| trims.is_due())
        {
            Some(Interlude::Trim)
        } else if self.is_sync_due() {
            Some(Interlude::Sync)
        } else if self.thinks_now() {
            Some(Interlude::Think)
        } else {
            None
        }
    }

    /// The step after the last operation of a pass, in the job's time like in fio: a pause, and the
    /// sync of a last write that leaves a rest shorter than a block in its file.
    pub(super) fn after_last(&self) -> Option<Interlude> {
        if self.thinks_now() {
            return Some(Interlude::Think);
        }
        let works = matches!(self.pattern.source, Source::Work) && self.pattern.replayed.is_none();
        let syncs = works && self.is_sync_due() && self.pattern.steps.leaves_rest();
        syncs.then_some(Interlude::Sync)
    }

    /// Takes its time; nothing is in flight.
    pub(super) fn take_time_for(&mut self, what: Interlude, gate: &Gate, meter: &mut Meter) {
        match what {
            Interlude::Sync => self.sync_in(0, gate, meter),
            Interlude::Check => self.check_backlog(gate, meter),
            Interlude::Think => self.think(gate),
            Interlude::Trim => self.trim_batch(gate, meter),
            Interlude::Event => self.take_event(gate, meter),
            Interlude::Flow => self.wait_for_turn(gate),
        }
    }

    pub(super) fn thinks_now(&self) -> bool {
        let pace = &self.context.job.pace;
        let every = pace.think_blocks;
        let worked = self.accounts.since.ended.since(self.accounts.since.thought);
        let due = every > 0 && self.accounts.since.think >= every
            || self.accounts.since.think > 0 && pace.think_after.is_some_and(|time| worked >= time);
        pace.thinks() && due && matches!(self.pattern.source, Source::Work)
    }

    /// Idles, at first with the CPU busy.
    pub(super) fn think(&mut self, gate: &Gate) {
        self.accounts.since.think = 0;
        let pace = &self.context.job.pace;
        let begun = gate.clock.now();
        spin_cycles(pace.think_cycles);
        let now = gate.clock.now();
        gate.waits.add(begun, now);
        let busy_until = Nanos(now.0.saturating_add(pace.think_spin.0));
        while gate.clock.now() < busy_until {
            std::hint::spin_loop();
        }
        gate.waits.add(now, busy_until);
        // A closed gate is seen before the next operation.
        let _ = gate.wait(Nanos(now.0.saturating_add(pace.think.0)));
        let over = gate.clock.now();
        self.accounts.since.thought = over;
        if pace.rate_ignores_think {
            let pause = over.since(begun);
            self.pattern.arrivals.put_off(pause);
            let next = self
                .pattern
                .next
                .as_mut()
                .and_then(|next| next.intended.as_mut());
            if let Some(at) = next {
                at.0 = at.0.saturating_add(pause.0);
            }
        }
    }

    /// The next file cannot be opened, and so the work ends.
    #[cold]
    pub(super) fn cannot_open(&mut self, failure: Failure, span: Option<Span>, meter: &mut Meter) {
        let errno = Errno::from_raw(error_code(failure.kind));
        self.trouble(failure, span, meter);
        self.accounts.give_up(Some(errno));
    }

    /// Syncs that belong to the time of the writes, after the last of them.
    pub(super) fn end_writes(&mut self, gate: &Gate, meter: &mut Meter) {
        let syncing = self.context.job.syncing;
        let wanted = syncing.end_fsync || syncing.end_syncfs || syncing.fsync_on_close;
        let synced = wanted && !gate.stop.is_of_all() && self.requests.queue.failed().is_none();
        if synced {
            if syncing.end_syncfs {
                self.sync_file_systems(gate, meter);
            }
            for file in self.files.dirty() {
                self.sync_file(gate, (file, Transfer::Fsync, 0), false, meter);
            }
        }
        if !synced && self.accounts.stats.is_none() {
            return;
        }
        let end = gate.clock.now();
        if synced && self.accounts.stats.is_some() {
            meter.extend_to(end);
        }
        if let Some(stats) = &mut self.accounts.stats {
            if synced {
                stats.end_writes(end);
            }
            stats.end_stretch(end);
        }
    }

    /// Brings the file systems of all files that were written to stable storage, each by
    /// one call.
    fn sync_file_systems(&mut self, gate: &Gate, meter: &mut Meter) {
        let mut done = Vec::new();
        for file in self.files.dirty() {
            let opened = self.files.fd(file, self.engine.as_mut()).map(drop);
            let start = gate.clock.now();
            let synced = opened.and_then(|()| self.files.sync_file_system(file, &mut done));
            let span = Span::new(start, gate.clock.now());
            // A failed sync is not tried again.
            self.files.clean(file);
            self.note_covered(synced.is_ok());
            match (synced, self.context.lanes.flushing) {
                (Ok(()), Some(lane)) => meter.aside(lane, span),
                (Ok(()), None) => meter.went_on(),
                (Err(failure), _) => self.trouble(failure, Some(span), meter),
            }
        }
    }

    /// Before a further pass: drops cached pages and removes the files, where that was asked for.
    pub(super) fn begin_again(&mut self, meter: &mut Meter) {
        self.drop_pages();
        let job = &self.context.job;
        if !job.files.unlink_each_loop
            || self.pattern.steps.is_over()
            || !self.context.engine.uses_files
        {
            return;
        }
        let directories = job.names.is_some_and(NameEngine::of_directories);
        for file in 0..self.files.count() {
            self.close(file, meter);
            self.files.clean(file);
            match self.files.remove(file, directories) {
                Ok(()) => meter.went_on(),
                Err(failure) => self.trouble(failure, None, meter),
            }
        }
    }

    /// Closes a file in the middle of the work, after the sync that is asked for.
    pub(super) fn close_in_order(&mut self, file: u64, gate: &Gate, meter: &mut Meter) {
        if self.context.job.syncing.fsync_on_close && self.files.is_dirty(file) {
            self.sync_file(gate, (file, Transfer::Fsync, 0), false, meter);
        }
        self.close(file, meter);
    }

    /// Closes a file, outside the time of the operations.
    pub(super) fn close(&mut self, file: u64, meter: &mut Meter) {
        let lane = self
            .context
            .lanes
            .closing
            .filter(|_| self.files.is_open(file));
        let start = lane.map_or(Nanos(0), |_| MonotonicClock.now());
        match (self.files.close(file, self.engine.as_mut()), lane) {
            (Ok(()), Some(lane)) => {
                let span = Span::new(start, MonotonicClock.now());
                meter.aside(lane, span);
            }
            (Ok(()), None) => meter.went_on(),
            (Err(failure), _) => {
                self.not_closed(file);
                self.trouble(failure, None, meter);
            }
        }
    }

    /// Closes all files in run time, where that was asked for.
    pub(super) fn close_timed(&mut self, gate: &Gate, meter: &mut Meter) {
        let stopped = gate.stop.is_raised() || self.requests.queue.failed().is_some();
        if !self.context.job.syncing.close || stopped || self.accounts.submitted == 0 {
            return;
        }
        if !self.context.engine.uses_files {
            return;
        }
        for file in 0..self.files.count() {
            self.files.detach(file, self.engine.as_mut());
            let start = gate.clock.now();
            let closed = self.files.close_detached(file);
            let end = gate.clock.now();
            let span = Span::new(start, end);
            self.requests.queue.called(start, end);
            match (closed, self.context.lanes.close) {
                (Ok(()), Some(lane)) => meter.done(lane, span, 0),
                (Ok(()), None) => meter.went_on(),
                (Err(failure), _) => {
                    self.not_closed(file);
                    self.trouble(failure, Some(span), meter);
                }
            }
        }
    }

    /// Closing a file failed, which reports that writes were lost.
    fn not_closed(&self, file: u64) {
        if let Some(log) = &self.checks.log {
            log.synced(false, self.files.key(file));
        }
    }

    /// Closes a file that is done, after the sync that is due.
    pub(super) fn leave(&mut self, slot: usize, file: u64, gate: &Gate, meter: &mut Meter) {
        if !self.how.turns {
            return;
        }
        if self.is_sync_due() {
            self.accounts.last_written = file;
            self.sync_in(slot, gate, meter);
        }
        if self.context.job.syncing.fsync_on_close && self.files.is_dirty(file) {
            self.sync_file(gate, (file, Transfer::Fsync, slot), false, meter);
        }
        self.record_close(file, gate.clock.now());
        self.close(file, meter);
    }

    fn is_sync_due(&self) -> bool {
        let syncing = self.context.job.syncing;
        let reached = |count: u64, every: u64| every > 0 && count >= every;
        reached(self.accounts.since.fsync, syncing.fsync)
            || reached(self.accounts.since.datasync, syncing.fdatasync)
            || syncing
                .range
                .is_some_and(|range| reached(self.accounts.since.range, range.every))
    }

    /// Syncs the file that was written last, by way of a slot that is free.
    fn sync_in(&mut self, slot: usize, gate: &Gate, meter: &mut Meter) {
        let syncing = self.context.job.syncing;
        let due = [
            (self.accounts.since.fsync, syncing.fsync, Transfer::Fsync),
            (
                self.accounts.since.datasync,
                syncing.fdatasync,
                Transfer::DataSync,
            ),
        ];
        for (count, every, transfer) in due {
            if every == 0 || count < every {
                continue;
            }
            match transfer {
                Transfer::Fsync => self.accounts.since.fsync = 0,
                _ => self.accounts.since.datasync = 0,
            }
            self.sync_file(
                gate,
                (self.accounts.last_written, transfer, slot),
                true,
                meter,
            );
        }
        if let Some(how) = syncing.range
            && self.accounts.since.range >= how.every
        {
            self.sync_range(how, gate, meter);
        }
    }

    /// Has what was written since the last time in the file that was written last on its
    /// way to the disk.
    fn sync_range(&mut self, how: RangeSync, gate: &Gate, meter: &mut Meter) {
        self.accounts.since.range = 0;
        let (file, (from, to)) = (
            self.accounts.since.range_file,
            self.accounts.since.range_part,
        );
        let opened = self.files.fd(file, self.engine.as_mut()).map(drop);
        let start = gate.clock.now();
        let part = (from, to.saturating_sub(from));
        let synced = opened.and_then(|()| self.files.sync_range(file, part, how));
        let end = gate.clock.now();
        let span = Span::new(start, end);
        self.requests.queue.called(start, end);
        match synced {
            Err(failure) => self.trouble(failure, Some(span), meter),
            Ok(()) => self.note_synced(span, true, meter),
        }
    }

    /// Notes for the state of a verified job what a sync has covered: all writes, once no
    /// file has any left.
    fn note_covered(&mut self, ok: bool) {
        let Some(progress) = &mut self.checks.progress else {
            return;
        };
        // The next one is drawn, and the one after it may be held: neither is written.
        let waiting = self
            .pattern
            .next
            .is_some_and(|next| next.kind == Kind::Write);
        let held = self
            .requests
            .held
            .is_some_and(|slot| self.requests.slots[slot].what.kind == Kind::Write);
        let written = self.pattern.generation - u64::from(waiting) - u64::from(held);
        match ok {
            false => progress.synced(Err(())),
            true if self.files.dirty().is_empty() => progress.synced(Ok(written)),
            true => {}
        }
    }

    /// Notes a sync that went well. `reported`: whether fio counts it.
    fn note_synced(&mut self, span: Span, reported: bool, meter: &mut Meter) {
        let recorded = match &mut self.accounts.stats {
            None => span.start >= self.accounts.records_from,
            Some(stats) if reported && stats.records(span.start) => {
                stats.synced(span);
                true
            }
            Some(stats) if reported => {
                stats.synced_in_ramp(span);
                false
            }
            Some(_) => false,
        };
        let lanes = self.context.lanes;
        match (lanes.sync, lanes.flushing) {
            (Some(lane), _) if recorded => meter.done(lane, span, 0),
            (_, Some(lane)) if !reported => meter.aside(lane, span),
            _ => meter.went_on(),
        }
    }

    /// Brings a file to stable storage by way of a slot that is free, and notes how
    /// that went. `reported`: whether fio counts it among the job's syncs.
    pub(super) fn sync_file(
        &mut self,
        gate: &Gate,
        (file, transfer, slot): (u64, Transfer, usize),
        reported: bool,
        meter: &mut Meter,
    ) {
        // An engine without files has nothing to sync, but fio's null counts it.
        if !self.context.engine.uses_files && self.context.report.is_none() {
            self.files.clean(file);
            return;
        }
        if let Some(errno) = self.requests.queue.failed() {
            let failure = Failure::new(OpKind::Fsync, self.files.path(file), errno);
            return self.trouble(failure, None, meter);
        }
        let fd = match self.files.fd(file, self.engine.as_mut()) {
            Ok(fd) => fd,
            Err(failure) => return self.trouble(failure, None, meter),
        };
        let key = self.files.key(file);
        if let Some(log) = &self.checks.log
            && !log.file(ack::Kind::SyncStarted, key)
        {
            self.accounts.over = true;
            return;
        }
        let request = Request {
            transfer,
            fd,
            offset: 0,
            length: 0,
            at: 0,
            priority: IoPriority::default(),
        };
        // A sync counts as a write to those who lock the file.
        self.lock_file(file, Kind::Write, gate);
        let start = gate.clock.now();
        self.requests.queue.submitted(1, start);
        self.engine.submit(slot, request);
        let engine = self.engine.as_mut();
        let (result, end) = self.requests.queue.reap_slot(engine, gate.clock, slot);
        self.unlock_file();
        self.requests.queue.took(end.since(start));
        let span = Span::new(start, end);
        if reported {
            self.record_sync(file, transfer, start);
        }
        if let Some(log) = &self.checks.log {
            log.synced(result.is_ok(), key);
        }
        // A failed sync is not tried again: the next success would prove nothing about it.
        self.files.clean(file);
        self.note_covered(result.is_ok());
        if let Err(errno) = result {
            let failure = Failure::new(OpKind::Fsync, self.files.path(file), errno);
            self.trouble(failure, Some(span), meter);
            if self.requests.queue.failed().is_some() {
                self.accounts.give_up(Some(errno));
            }
            return;
        }
        self.note_synced(span, reported, meter);
    }
}
