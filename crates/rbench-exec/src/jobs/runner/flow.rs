//! Issuing and reaping: what lies between the clock readings, and what
//! happens around them.

use nix::errno::Errno;
use rbench_core::{Clock as _, Failure, FailureKind, Nanos, OpKind};
use rbench_sys::engine::Completion;
use rbench_sys::{Request, Transfer};

use super::super::book::{Done, Times, Verdict};
use super::super::verify::Origin;
use super::{JobRunner, Kind, Planned, Slot, Source, Written};
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::queue::Wait;

/// Why issuing pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// As many requests as may be are under way.
    Full,
    /// The next one is not due yet.
    Early,
    /// Written data is to be synced.
    Sync,
    /// It is time to think.
    Think,
    /// Written blocks are to be checked.
    Check,
    /// There is no further operation in this pass.
    End,
    /// No further operation may start.
    Closed,
}

impl JobRunner {
    /// Does operations from the present source until there is none or the gate
    /// closes; none is under way then. Whether the gate is open.
    pub(super) fn pump(&mut self, gate: &Gate, meter: &mut Meter) -> bool {
        loop {
            match self.issue(gate, meter) {
                Pause::Full | Pause::Early => self.reap(gate, meter, false),
                Pause::Sync => {
                    self.drain(gate, meter);
                    self.sync_written(gate, meter);
                }
                Pause::Think => {
                    self.drain(gate, meter);
                    self.think(gate);
                }
                Pause::Check => {
                    self.drain(gate, meter);
                    self.check_backlog(gate, meter);
                }
                Pause::End => {
                    self.drain(gate, meter);
                    return true;
                }
                Pause::Closed => {
                    self.put_back();
                    self.drain(gate, meter);
                    return false;
                }
            }
        }
    }

    /// Prepares and submits what may start now.
    fn issue(&mut self, gate: &Gate, meter: &mut Meter) -> Pause {
        let pause = loop {
            if self.over {
                break Pause::Closed;
            }
            let slot = match self.held {
                Some(slot) => slot,
                None => match self.ready(meter) {
                    Ok(slot) => slot,
                    Err(pause) => break pause,
                },
            };
            let mut now = gate.clock.now();
            if gate.closed(now) {
                break Pause::Closed;
            }
            if let Some(at) = self.slots[slot].what.intended
                && at > now
            {
                if !self.queue.is_idle() {
                    break Pause::Early;
                }
                if !gate.wait(at) {
                    break Pause::Closed;
                }
                now = gate.clock.now();
            }
            self.submit(slot, now);
            if self.careful {
                self.commit(gate);
                self.poll(gate);
            } else if self.pending.len() >= self.scene.job.batch_submit as usize {
                self.commit(gate);
            }
        };
        self.commit(gate);
        pause
    }

    /// Readies the next operation in a free slot, or says why there is none
    /// now.
    fn ready(&mut self, meter: &mut Meter) -> Result<usize, Pause> {
        let depth = self.slots.len();
        if self.queue.taken() >= self.book().depth_limit(depth) {
            return Err(Pause::Full);
        }
        if self.next.is_none() {
            self.next = self.draw(meter);
        }
        let Some(what) = self.next else {
            // Behind the last one as well: its time is the job's, as with fio.
            return Err(match self.thinks_now() {
                true => Pause::Think,
                false => Pause::End,
            });
        };
        if let Some(pause) = self.interlude() {
            return Err(pause);
        }
        // The file is opened before the clock is read.
        let fd = match self.files.fd(what.file, self.engine.as_mut()) {
            Ok(fd) => fd,
            Err(failure) => {
                let errno = match failure.kind {
                    FailureKind::Errno(code) => Errno::from_raw(code),
                    _ => Errno::EIO,
                };
                self.trouble(failure, None, meter);
                self.give_up(Some(errno));
                return Err(Pause::Closed);
            }
        };
        self.next = None;
        let slot = self.queue.take().unwrap_or_default();
        self.fill(slot, &what);
        self.account(&what);
        self.slots[slot] = Slot {
            what,
            fd,
            start: Nanos(0),
            submitted: Nanos(0),
            depth: 0,
        };
        self.held = Some(slot);
        Ok(slot)
    }

    /// Takes back what was readied and will not start now.
    fn put_back(&mut self) {
        let Some(slot) = self.held.take() else {
            return;
        };
        let what = self.slots[slot].what;
        self.queue.give_back(slot);
        self.files.end(what.file, false);
        self.next = Some(what);
        if matches!(self.source, Source::Work) {
            self.pass_steps -= 1;
            let latest = self.backlog.last().map(|written| written.generation);
            if what.kind == Kind::Write && latest == Some(what.generation) {
                self.backlog.pop();
            }
        }
    }

    /// What has to come before the next operation.
    fn interlude(&self) -> Option<Pause> {
        if !matches!(self.source, Source::Work) {
            return None;
        }
        let job = &self.scene.job;
        let reached = |count: u64, every: u64| every > 0 && count >= every;
        let backlog = job.verify.as_ref().and_then(|v| v.backlog).unwrap_or(0);
        if reached(self.backlog.len() as u64, backlog) {
            Some(Pause::Check)
        } else if reached(self.since_fsync, job.syncing.fsync)
            || reached(self.since_datasync, job.syncing.fdatasync)
        {
            Some(Pause::Sync)
        } else if self.thinks_now() {
            Some(Pause::Think)
        } else {
            None
        }
    }

    fn thinks_now(&self) -> bool {
        let pace = &self.scene.job.pace;
        let every = pace.think_blocks;
        let due = every > 0 && self.since_think >= every;
        pace.think.0 > 0 && due && matches!(self.source, Source::Work)
    }

    /// Puts the data of a write into the slot's buffer.
    #[inline]
    fn fill(&mut self, slot: usize, what: &Planned) {
        if what.kind != Kind::Write {
            self.filler.spoil(slot);
            return;
        }
        let block = &mut self.engine.buffer(slot)[..what.length];
        match &self.marks {
            Some(marks) => marks.stamp(
                block,
                &Origin {
                    run: self.scene.run,
                    file: self.files.key(what.file),
                    offset: what.offset,
                    generation: what.generation,
                    worker: self.mark,
                },
            ),
            None => self.filler.ready(slot, block),
        }
    }

    #[inline]
    fn submit(&mut self, slot: usize, now: Nanos) {
        self.held = None;
        let depth = self.queue.taken();
        let place = &mut self.slots[slot];
        self.submitted += 1;
        (place.start, place.submitted, place.depth) = (now, now, depth);
        let Slot { what, fd, .. } = *place;
        let transfer = match what.kind {
            Kind::Write => Transfer::Write,
            Kind::Read | Kind::Check => Transfer::Read,
        };
        self.engine.submit(
            slot,
            Request {
                transfer,
                fd,
                offset: what.offset,
                length: what.length,
                at: 0,
            },
        );
        self.queue.submitted(1, now);
        if self.asynchronous {
            self.pending.push(slot);
        }
    }

    /// Hands what was submitted to the kernel, and notes when that was.
    #[inline]
    fn commit(&mut self, gate: &Gate) {
        if self.pending.is_empty() {
            return;
        }
        let flushed = self.engine.flush();
        let now = gate.clock.now();
        for slot in self.pending.drain(..) {
            self.slots[slot].submitted = now;
        }
        if let Err(errno) = flushed {
            self.queue.fail(errno, now, self.held);
            self.give_up(Some(errno));
        }
    }

    /// Takes in what is complete, without waiting.
    fn poll(&mut self, gate: &Gate) {
        if self.queue.in_flight() > 0 {
            self.take_in(gate, Wait::Poll);
        }
    }

    /// Takes in what is complete; an engine that fails ends the job.
    #[inline]
    fn take_in(&mut self, gate: &Gate, wait: Wait) {
        let engine = self.engine.as_mut();
        if let Err(errno) = self.queue.reap(engine, gate.clock, wait, self.held) {
            self.give_up(Some(errno));
        }
    }

    /// Waits for completions, not past the next intended start but when
    /// `draining`, and notes as many as are replaced at a time: what takes the
    /// place of the first should not wait for the notes on the last.
    fn reap(&mut self, gate: &Gate, meter: &mut Meter, draining: bool) {
        let (job, waiting) = (&self.scene.job, self.queue.in_flight());
        let at_a_time = job.batch_submit.max(job.batch_complete_min).max(1);
        if self.slots.len() == 1 && waiting > 0 {
            match self.queue.reap_one(self.engine.as_mut(), gate.clock) {
                Ok(Some((completion, end))) => self.complete(completion, end, gate, meter),
                Ok(None) => {}
                Err(errno) => self.give_up(Some(errno)),
            }
            return;
        }
        if self.queue.all_noted() && waiting > 0 {
            let next = self.held.and_then(|slot| self.slots[slot].what.intended);
            let wait = match next {
                Some(at) if !draining => Wait::For(at.since(gate.clock.now())),
                _ => Wait::Least((job.batch_complete_min as usize).min(waiting)),
            };
            self.take_in(gate, wait);
        }
        for _ in 0..at_a_time {
            let Some((completion, end)) = self.queue.next() else {
                break;
            };
            self.complete(completion, end, gate, meter);
            if self.careful {
                self.poll(gate);
            }
        }
    }

    pub(super) fn drain(&mut self, gate: &Gate, meter: &mut Meter) {
        while !self.queue.is_idle() {
            self.reap(gate, meter, true);
        }
    }

    fn complete(&mut self, completion: Completion, end: Nanos, gate: &Gate, meter: &mut Meter) {
        let Completion { slot, result } = completion;
        let place = self.slots[slot];
        self.queue.give_back(slot);
        let what = place.what;
        self.queue.took(end.since(place.start));
        // A loop that is open only for others has its start as intended.
        let start = self.scene.open_loop.then_some(place.start);
        let span = Span {
            intended: what.intended.or(start),
            start: place.start,
            end,
        };
        match self.judge(slot, &what, result) {
            Ok(moved) => self.note(&place, span, moved, meter),
            Err(failure) => self.trouble(failure, Some(span), meter),
        }
        if what.kind == Kind::Write && self.marks.is_some() {
            self.remember(&what, span, result.is_ok_and(|moved| moved >= what.length));
        }
        let limit = self.scene.job.pace.latency_max;
        if limit.is_some_and(|limit| end.since(place.start) > limit) {
            self.give_up(Some(Errno::ETIMEDOUT));
        }
        if self.files.end(what.file, what.last) {
            self.leave(slot, what.file, gate, meter);
        }
    }

    /// Counts an operation that is about to start.
    #[inline]
    fn account(&mut self, what: &Planned) {
        self.files.begin(what.file, what.kind == Kind::Write);
        if !matches!(self.source, Source::Work) {
            return;
        }
        self.pass_steps += 1;
        self.since_think += 1;
        if what.kind == Kind::Write {
            self.last_written = what.file;
            self.since_fsync += 1;
            self.since_datasync += 1;
            if self.backlog.len() < self.backlog.capacity() {
                self.backlog.push(Written {
                    file: what.file,
                    offset: what.offset,
                    length: what.length,
                    generation: what.generation,
                });
            }
        }
    }

    /// Bytes moved, or what is wrong with the result.
    #[inline]
    fn judge(
        &mut self,
        slot: usize,
        what: &Planned,
        result: Result<usize, Errno>,
    ) -> Result<usize, Failure> {
        match result {
            Ok(moved) if what.kind == Kind::Check => {
                self.check(slot, what, moved)
                    .map_err(|detail| self.failure(what, FailureKind::Mismatch, detail))?;
                Ok(moved)
            }
            Ok(0) if what.length > 0 => {
                let detail = format!("nothing at offset {}: the file ends there", what.offset);
                Err(self.failure(what, FailureKind::Short, detail))
            }
            Ok(moved) => Ok(moved),
            Err(errno) => {
                let detail = format!("at offset {}", what.offset);
                Err(self.failure(what, errno.into(), detail))
            }
        }
    }

    /// Notes for the check what a write has made of its block.
    #[inline]
    fn remember(&mut self, what: &Planned, span: Span, done: bool) {
        let length = what.length as u64;
        if !done {
            self.unwritten.add(what.file, what.offset, length, span.end);
        } else if !self.unwritten.is_empty() {
            self.unwritten
                .written(what.file, what.offset, length, span.start);
        }
    }

    #[cold]
    fn failure(&self, what: &Planned, kind: FailureKind, detail: String) -> Failure {
        Failure {
            op: if what.kind == Kind::Write {
                OpKind::Write
            } else {
                OpKind::Read
            },
            path: self.files.path(what.file).to_string_lossy().into_owned(),
            kind,
            detail,
        }
    }

    #[inline]
    fn note(&mut self, place: &Slot, span: Span, moved: usize, meter: &mut Meter) {
        let Slot {
            what,
            start,
            submitted,
            depth,
            ..
        } = *place;
        let lanes = self.scene.lanes;
        let write = what.kind == Kind::Write;
        let book = self.book();
        if !book.records(start) {
            meter.went_on();
            return;
        }
        if self.ramps {
            self.leave_ramp();
        }
        let book = self.book();
        book.depth(depth);
        book.done(
            Done {
                write,
                offset: what.offset,
                length: what.length as u64,
                moved: moved as u64,
            },
            Times {
                intended: what.intended,
                start,
                submitted,
                end: span.end,
            },
        );
        let verdict = book.verdict();
        let sampled = book.sampled();
        if let Some(lane) = if write { lanes.write } else { lanes.read } {
            meter.done(lane, span, moved as u64);
        }
        if sampled && self.scene.board.is_some() {
            self.publish(span.end);
        }
        match verdict {
            None => {}
            Some(Verdict::Steady | Verdict::Found) => self.give_up(None),
            Some(Verdict::TooSlow) => self.give_up(Some(Errno::EIO)),
        }
    }

    /// Idles, at first with the CPU busy.
    fn think(&mut self, gate: &Gate) {
        self.since_think = 0;
        let pace = &self.scene.job.pace;
        let now = gate.clock.now();
        let busy_until = Nanos(now.0.saturating_add(pace.think_spin.0));
        while gate.clock.now() < busy_until {
            std::hint::spin_loop();
        }
        gate.waits.add(now, busy_until);
        // A closed gate is seen before the next operation.
        let _ = gate.wait(Nanos(now.0.saturating_add(pace.think.0)));
    }
}
