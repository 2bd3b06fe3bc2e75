//! Recording of an operation that has ended: rows, statistics, journal, failures.

use nix::errno::Errno;
use rbench_core::job::JobOutcome;
use rbench_core::{Direction, Failure, FailureKind, Nanos, OpKind};
use rbench_plan::jobs::{ErrorOf, Errors};
use rbench_sys::engine::EngineCounts;
use rbench_sys::limits::{Usage, thread_usage};

use super::extras::Extras;
use super::stats::{self, Done, Times, error_code};
use super::{BlockRunner, Kind, Planned, Source, checkers};
use crate::ack::{self, Record};
use crate::meter::{Meter, Span};

impl BlockRunner {
    /// Notes a failure and decides whether the worker goes on.
    #[cold]
    pub(super) fn trouble(&mut self, failure: Failure, span: Option<Span>, meter: &mut Meter) {
        // Operations that ended before it and are still being checked come first.
        self.note_checked(meter, true);
        if self.is_full(&failure) {
            meter.went_on();
            return self.accounts.give_up(None);
        }
        if let (Some(span), Some(stats)) = (span, &mut self.accounts.stats) {
            stats.failed(span);
        }
        self.context.note_failed(self.part.worker, &failure);
        let lanes = self.context.lanes;
        let writes = match failure.op {
            OpKind::Write | OpKind::Trim | OpKind::Fsync | OpKind::Sync => true,
            // Data that a close loses was written.
            OpKind::Close => lanes.write.is_some(),
            op if self.context.job.names.map(|names| names.op) == Some(op) => lanes.write.is_some(),
            _ => false,
        };
        let wrong = failure.kind == FailureKind::Mismatch;
        let errno = error_code(failure.kind);
        let of = match (wrong, writes) {
            (true, _) => ErrorOf::Verify,
            (false, true) => ErrorOf::Write,
            (false, false) => ErrorOf::Read,
        };
        let tolerated = match &self.context.job.errors {
            Errors::Count => true,
            Errors::End(but) => but.tolerates(of, errno),
        };
        let lane = match failure.op {
            OpKind::Fsync | OpKind::Sync => lanes.sync,
            OpKind::Trim => lanes.trim,
            OpKind::Close if span.is_some() => lanes.close,
            OpKind::Open if span.is_some() => lanes.open,
            _ if writes => lanes.write,
            _ => lanes.read,
        };
        match (lane.or(lanes.write).or(lanes.read).or(lanes.trim), span) {
            (Some(lane), Some(span)) => meter.failed(lane, span, failure),
            (Some(lane), None) => meter.failed_untimed(lane, failure),
            // A job without operations has no row: its own error reports the failure.
            (None, _) => {}
        }
        if tolerated {
            self.accounts.ended.errors += 1;
            if self.accounts.ended.first_error == 0 {
                self.accounts.ended.first_error = errno;
            }
            return;
        }
        if self.accounts.ended.error == 0 {
            self.accounts.ended.error = errno;
        }
        let verify = self.context.job.verify.as_ref();
        self.accounts.over |= !wrong || verify.is_some_and(|v| v.fatal);
    }

    /// Returns true if a job that fills a file system has done so.
    fn is_full(&self, failure: &Failure) -> bool {
        let full = [Errno::ENOSPC, Errno::EDQUOT].map(FailureKind::from);
        self.context.job.files.fill && full.contains(&failure.kind)
    }

    /// Usage of this thread and of those of its engine.
    #[cold]
    pub(super) fn used(&self) -> Usage {
        thread_usage().with(self.engine.usage())
    }

    /// Reports the intermediate result.
    #[cold]
    fn publish(&mut self, now: Nanos, meter: &Meter) {
        let counts = self.engine.counts();
        self.accounts.ended.usage = self.used().since(self.accounts.ended.usage_before);
        let live = self.context.report.as_ref().and_then(|r| r.live.as_ref());
        if let (Some(stats), Some(live)) = (&self.accounts.stats, live) {
            live.put(self.outcome(stats.so_far(now, self.rows(meter)), counts));
        }
    }

    /// The meter's rows of reads, writes and trims.
    pub(super) fn rows<'m>(&self, meter: &'m Meter) -> stats::Rows<'m> {
        let lanes = self.context.lanes;
        [lanes.read, lanes.write, lanes.trim].map(|lane| lane.map(|lane| meter.lane(lane)))
    }

    /// With who did it, and what the engine knows of it.
    pub(super) fn outcome(&self, mut outcome: JobOutcome, counts: EngineCounts) -> JobOutcome {
        // Like fio: a transfer that came in parts is short, too.
        outcome.read.short += counts.again.read.continued;
        outcome.write.short += counts.again.write.continued;
        let ended = &self.accounts.ended;
        JobOutcome {
            submits: counts.submits,
            completes: counts.completes,
            job: self.context.report.as_ref().map_or(0, |r| r.index),
            worker: self.part.worker,
            pid: std::process::id(),
            error: ended.error,
            errors: ended.errors,
            first_error: ended.first_error,
            start_ms: ended.start_ms,
            cpu_user: ended.usage.user,
            cpu_system: ended.usage.system,
            switches: ended.usage.switches,
            faults_major: ended.usage.faults_major,
            faults_minor: ended.usage.faults_minor,
            ..outcome
        }
    }

    /// Records in the journal that a write is about to start; whether that could be
    /// done: else it is not written, and the worker ends.
    pub(super) fn announce(&mut self, what: Planned) -> bool {
        match &self.checks.log {
            Some(log) if what.kind == Kind::Write => {
                let noted = log.note(self.journaled(&what));
                self.accounts.over |= !noted;
                noted
            }
            _ => true,
        }
    }

    /// The start of a write as a journal names it.
    fn journaled(&self, what: &Planned) -> Record {
        Record {
            kind: ack::Kind::WriteStarted,
            file: self.files.key(what.file),
            offset: what.offset,
            generation: what.generation,
            length: what.length as u32,
        }
    }

    /// Notes how an operation ended. Its block lies in the buffer of `slot`.
    #[inline(always)]
    pub(super) fn complete<E: Extras>(
        &mut self,
        slot: usize,
        what: Planned,
        times: Times,
        result: Result<usize, Errno>,
        meter: &mut Meter,
    ) {
        let Times { start, end, .. } = times;
        self.requests.queue.took(end.since(start));
        // A loop that is open only for others has its start as intended.
        let intended = E::due(&what).or(E::asks(self.context.open_loop).then_some(start));
        let span = Span::due(intended, start, end);
        let moved = match result {
            Ok(moved) if !E::asks(!self.how.plain) && moved == what.length => moved,
            _ => match self.examine(slot, what, span, result, meter) {
                Some(moved) => moved,
                None => return,
            },
        };
        let direction = what.kind.direction();
        // fio's data of a name is not data.
        let bytes = match E::asks(self.how.names) {
            true => 0,
            false => moved as u64,
        };
        if let Some(stats) = &mut self.accounts.stats {
            let done = Done {
                direction,
                offset: what.offset,
                length: what.length as u64,
                moved: moved as u64,
                priority: what.priority,
            };
            if !stats.records(start) {
                stats.done_in_ramp(done, times);
                let late = stats.is_too_late(end.since(start));
                meter.went_on();
                // Checked operations end no ramp: its loop would take that for the end of the work.
                if self.accounts.ramp.goes_on() && matches!(self.pattern.source, Source::Work) {
                    self.climb(bytes);
                }
                if late {
                    self.accounts.give_up(Some(Errno::ETIMEDOUT));
                }
                return;
            }
            if E::asks(self.pattern.priorities.is_some()) {
                stats.done_at_priority((direction, what.priority), times.latencies());
            }
            let attend = stats.done(done, times) || self.how.ramps;
            meter.done(self.lane(direction), span, bytes);
            if attend {
                self.attend(end, meter);
            }
            return;
        }
        if E::asks(start < self.accounts.records_from) {
            meter.went_on();
            return;
        }
        meter.done(self.lane(direction), span, bytes);
    }

    /// The row of a direction; what a worker does has one.
    #[inline(always)]
    pub(super) fn lane(&self, direction: Direction) -> usize {
        self.context.lanes.of(direction).unwrap_or(0)
    }

    /// Occasional tasks that the statistics ask for.
    #[cold]
    fn attend(&mut self, now: Nanos, meter: &Meter) {
        if self.how.ramps {
            // Usage of the thread up to here does not belong to the job.
            self.how.ramps = false;
            self.accounts.ended.usage_before = self.used();
        }
        let Some(stats) = &mut self.accounts.stats else {
            return;
        };
        let (verdict, sampled) = (stats.verdict(), stats.sampled());
        let live = self.context.report.as_ref().and_then(|r| r.live.as_ref());
        if sampled && live.is_some() {
            self.publish(now, meter);
        }
        match verdict {
            None => {}
            Some(stats::Verdict::Steady | stats::Verdict::Found) => self.accounts.give_up(None),
            Some(stats::Verdict::TooSlow) => self.accounts.give_up(Some(Errno::EIO)),
            Some(stats::Verdict::TooLate) => self.accounts.give_up(Some(Errno::ETIMEDOUT)),
        }
    }

    /// Bytes moved by an operation that may have failed, has to be checked or to be
    /// recorded; `None` when that is noted already, or will be.
    #[inline(never)]
    fn examine(
        &mut self,
        slot: usize,
        what: Planned,
        span: Span,
        result: Result<usize, Errno>,
        meter: &mut Meter,
    ) -> Option<usize> {
        let judged = match result {
            Ok(moved) => self.judge(slot, what, moved, span, meter)?.map(|()| moved),
            Err(errno) => Err((errno.into(), refusal(&what, errno))),
        };
        if what.kind == Kind::Write {
            // When the engine itself fails, the result of a write is unknown.
            if let Some(log) = &self.checks.log
                && (judged.is_ok() || self.requests.queue.failed().is_none())
            {
                log.written(judged.is_ok(), self.journaled(&what));
            }
            if self.checks.headers.is_some() {
                self.remember(&what, span, result.is_ok_and(|moved| moved >= what.length));
                if let Some(progress) = self.checks.progress.as_mut().filter(|_| judged.is_ok()) {
                    progress.completed(what.file, what.offset);
                }
                if judged.is_ok() {
                    self.may_be_trimmed(&what);
                }
            }
        }
        if what.kind == Kind::Trim && self.checks.headers.is_some() {
            match judged {
                Ok(_) => self.note_trimmed(&what),
                // Some of it may be.
                Err(_) => self.remember(&what, span, false),
            }
        }
        match judged {
            Ok(moved) => Some(moved),
            Err(why) => {
                let failure = self.failure(what.kind, what.file, why);
                self.trouble(failure, Some(span), meter);
                let took = span.end.since(span.start);
                if self
                    .accounts
                    .stats
                    .as_ref()
                    .is_some_and(|stats| stats.is_too_late(took))
                {
                    self.accounts.give_up(Some(Errno::ETIMEDOUT));
                }
                None
            }
        }
    }

    /// Returns the error of a request that the engine completed without error, if its result is
    /// wrong; `None` when another thread checks it.
    fn judge(
        &mut self,
        slot: usize,
        what: Planned,
        moved: usize,
        span: Span,
        meter: &mut Meter,
    ) -> Option<checkers::Verdict> {
        let (offset, length) = (what.offset, what.length);
        if self.how.whole && moved < length {
            let detail = format!("{moved} of {length} bytes at offset {offset}");
            return Some(Err((FailureKind::Short, detail)));
        }
        if matches!(what.kind, Kind::Check | Kind::CheckZeros) {
            return self.check(slot, what, moved, span, meter);
        }
        Some(match moved {
            0 if length > 0 => {
                let detail = format!("no data at offset {offset}: the file ends there");
                Err((FailureKind::Short, detail))
            }
            _ => Ok(()),
        })
    }

    /// Notes for the check what a write has made of its block.
    fn remember(&mut self, what: &Planned, span: Span, done: bool) {
        let length = what.length as u64;
        if !done {
            self.checks
                .unwritten
                .add(what.file, what.offset, length, span.end);
        } else if !self.checks.unwritten.is_empty() {
            self.checks
                .unwritten
                .written(what.file, what.offset, length, span.start);
        }
    }

    #[cold]
    pub(super) fn failure(&self, what: Kind, file: u64, why: (FailureKind, String)) -> Failure {
        let (kind, detail) = why;
        if let Some(names) = self.context.job.names {
            return Failure::new(names.op, self.files.path(file), kind);
        }
        let op = match what {
            Kind::Write => OpKind::Write,
            Kind::Trim => OpKind::Trim,
            Kind::Read | Kind::Check | Kind::CheckZeros => OpKind::Read,
        };
        Failure::new(op, self.files.path(file), kind).with(detail)
    }
}

/// The offset at which an operation was refused, and the reason as far as it is known beyond errno.
#[cold]
fn refusal(what: &Planned, errno: Errno) -> String {
    let offset = what.offset;
    match (what.kind, errno) {
        (Kind::Trim, Errno::EOPNOTSUPP) => {
            format!("at offset {offset}: holes cannot be punched there (fallocate)")
        }
        _ => format!("at offset {offset}"),
    }
}
