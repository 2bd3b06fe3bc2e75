//! Sources of a worker's next operation, and reading back written blocks.
//!
//! Of the writes of a pass, only those that failed are remembered: the pattern is made again. The
//! n-th write of a worker carries n, so a block must have the number of the write that is replayed,
//! or of a later one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use rbench_core::{Clock as _, Direction, Failure, FailureKind, Nanos, OpKind, errno_of};
use rbench_plan::pattern::{Step, Steps};

use super::checkers::{self, Block, Verdict};
use super::progress::Dump;
use super::renewal::Through;
use super::stretch::Kind;
use super::{BlockRunner, Kind as Does, Planned};
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::verify::{Expected, Generations};

/// Number of remembered writes above which those that were overwritten are left out.
const ROOM: usize = 1 << 16;

/// The source of operations.
pub(super) enum Source {
    /// The job's pattern.
    Work,
    /// The pattern again: its writes, as reads.
    Replay {
        /// From where the pass began.
        steps: Box<Steps>,
        /// Operations of the pass that are still to be replayed.
        left: u64,
        /// Number of the last write before.
        generation: u64,
    },
    /// The latest writes, from this one on up to that one.
    Backlog(usize, usize),
    /// This many of the blocks that are to be trimmed.
    Trims(u64),
}

/// A block that was written, or trimmed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) length: usize,
    pub(super) generation: u64,
    /// The block was trimmed, or is to be.
    pub(super) trimmed: bool,
}

impl Written {
    /// The block of an operation.
    pub(super) fn of(what: &Planned, trimmed: bool) -> Written {
        Written {
            file: what.file,
            offset: what.offset,
            length: what.length,
            generation: what.generation,
            trimmed,
        }
    }

    /// An operation on it by itself.
    fn operation(&self, kind: Does) -> Planned {
        Planned {
            kind,
            file: self.file,
            offset: self.offset,
            length: self.length,
            generation: self.generation,
            // With files that take turns, it was closed before.
            last: true,
            ..Planned::default()
        }
    }

    /// Reading it back.
    fn check(&self) -> Planned {
        self.operation(match self.trimmed {
            true => Does::CheckZeros,
            false => Does::Check,
        })
    }

    /// Its trim.
    pub(super) fn trim(&self) -> Planned {
        self.operation(Does::Trim)
    }
}

impl BlockRunner {
    /// The next operation that is not drawn from the pattern.
    #[cold]
    pub(super) fn next_other(&mut self, meter: &mut Meter) -> Option<Planned> {
        if self.pattern.next.is_some() {
            return self.pattern.next.take();
        }
        if matches!(self.pattern.source, Source::Trims(_)) {
            return self.draw_trim();
        }
        loop {
            let mut what = self.draw_check()?;
            let Planned { file, offset, .. } = what;
            if self.ends_at(&what) {
                return None;
            }
            if matches!(self.pattern.source, Source::Replay { .. }) {
                self.leave_out_write(&what);
            }
            // A block whose write failed is not checked.
            if !self
                .checks
                .unwritten
                .touches(file, offset, what.length as u64)
            {
                self.draw_priority(&mut what);
                return Some(what);
            }
            if let Some(lane) = self.context.lanes.read {
                meter.unchecked(lane);
            }
            if what.last && self.how.turns && self.files.end_without(file) {
                self.close(file, meter);
            }
        }
    }

    /// Counts the write of a block that is only checked.
    pub(super) fn leave_out_write(&mut self, what: &Planned) {
        if self.only_checks()
            && let Some(stats) = &mut self.accounts.stats
        {
            stats.would_write(what.length as u64);
        }
    }

    /// The next block that was to be written.
    fn draw_check(&mut self) -> Option<Planned> {
        match &mut self.pattern.source {
            Source::Work | Source::Trims(_) => None,
            Source::Replay {
                steps,
                left,
                generation,
            } => {
                while *left > 0 {
                    *left -= 1;
                    let step = steps.next()?;
                    if step.direction == Direction::Write {
                        *generation += 1;
                        return Some(planned(&step, Does::Check, *generation));
                    }
                }
                None
            }
            Source::Backlog(next, end) => {
                let written = self.checks.backlog.get(*next).filter(|_| next < end)?;
                *next += 1;
                Some(written.check())
            }
        }
    }

    /// The next step of the pattern, where that has one.
    #[inline(always)]
    fn step(&mut self, asked: Option<Direction>) -> Option<Step> {
        let Some(step) = self.pattern.steps.next_as(asked) else {
            self.pattern.exhausted = true;
            return None;
        };
        if step.ends_file && self.how.renews || step.ends_pass && self.how.heeds_passes {
            self.note_through(Through {
                file: step.ends_file.then_some(step.file),
                pass: step.ends_pass,
            });
        }
        Some(step)
    }

    /// The next operation of the pattern: only what it is and where it goes.
    #[inline(always)]
    pub(super) fn draw_bare(&mut self) -> Option<Planned> {
        if self.pattern.pass_over && self.is_pass_over() {
            return None;
        }
        let step = self.step(None)?;
        Some(planned(&step, kind_of(step.direction), 0))
    }

    /// The next operation of the pattern, or of the log that takes its place.
    #[inline(always)]
    pub(super) fn draw(&mut self, gate: &Gate) -> Option<Planned> {
        if self.pattern.pass_over && self.is_pass_over() {
            return None;
        }
        if self.pattern.replayed.is_some() {
            return self.draw_replayed();
        }
        let start = self.accounts.start;
        let first = (self.pattern.arrivals).first(|| gate.clock.now().since(start));
        let step = self.step(first)?;
        // A mix may read blocks that are not written yet.
        let checks = self.checks.headers.is_some() && !self.context.job.pattern.directions.write;
        let kind = match kind_of(step.direction) {
            Does::Read if checks => Does::Check,
            kind => kind,
        };
        let mut what = planned(&step, kind, 0);
        if step.direction == Direction::Write {
            if self.pattern.generation < self.pattern.generation_max {
                self.pattern.generation += 1;
            }
            what.generation = self.pattern.generation;
        }
        if kind == Does::Check && self.ends_at(&what) {
            self.pattern.exhausted = true;
            return None;
        }
        if let Some(at) = self.pattern.arrivals.next(step.direction, step.length) {
            what.intended = Some(Nanos(self.accounts.start.0.saturating_add(at.0)));
        }
        self.draw_priority(&mut what);
        Some(what)
    }

    /// Draws the priority of an operation, where those of the job do.
    #[inline(always)]
    pub(super) fn draw_priority(&mut self, what: &mut Planned) {
        if let Some(draws) = &mut self.pattern.priorities {
            what.priority = draws.draw(what.kind.direction(), what.length as u64);
        }
    }

    /// Returns true if the blocks of each pass are read back by making its pattern again.
    pub(super) fn reads_back(&self) -> bool {
        let verify = self.context.job.verify.as_ref();
        verify.is_some_and(|v| v.read_back) && !self.how.remembers
    }

    /// Returns true if verifying ends before this block: an earlier run was stopped there.
    fn ends_at(&mut self, what: &Planned) -> bool {
        let progress = self.checks.progress.as_mut();
        progress.is_some_and(|progress| progress.ends_at(what.file, what.offset))
    }

    /// Reads back the writes of the pass that began with `steps` and write
    /// number `generation`. A deadline does not end it: data that was not
    /// checked would look like data that is right.
    pub(super) fn read_back(
        &mut self,
        steps: Steps,
        generation: u64,
        gate: &Gate,
        meter: &mut Meter,
    ) {
        let left = self.pattern.pass_steps;
        if self.context.report.is_some() && self.context.job.files.invalidate {
            self.drop_before_reading_back();
        }
        if self.context.job.verify.as_ref().is_some_and(|v| v.once) {
            self.remember_pass(steps, left, generation);
            self.rest_of_backlog(gate, meter);
            return;
        }
        let source = Source::Replay {
            steps: Box::new(steps),
            left,
            generation,
        };
        self.verify_from(source, Kind::ReadBack, gate, meter);
    }

    /// Puts the writes and trims among the next `operations` into the backlog; the first write is the
    /// one after number `generation`. Returns the number of the last.
    fn remember_pass(&mut self, steps: Steps, operations: u64, mut generation: u64) -> u64 {
        let repeats = self.context.job.verify.as_ref().is_some_and(|v| v.once);
        let mut room = ROOM;
        for step in steps.take(usize::try_from(operations).unwrap_or(usize::MAX)) {
            let trimmed = match step.direction {
                Direction::Read => continue,
                Direction::Write => {
                    generation += 1;
                    false
                }
                Direction::Trim => true,
            };
            let what = planned(&step, Does::Check, generation);
            // Like fio, which counts the writes of a pass only if it may write a block twice.
            if repeats && !trimmed {
                self.leave_out_write(&what);
            }
            self.checks.backlog.push(Written::of(&what, trimmed));
            // A pass may write few blocks very often.
            if self.checks.backlog.len() >= room {
                self.checks.backlog = latest(std::mem::take(&mut self.checks.backlog));
                room = ROOM.max(2 * self.checks.backlog.len());
            }
        }
        generation
    }

    /// Reads back writes of the backlog, in the middle of the work.
    pub(super) fn check_backlog(&mut self, gate: &Gate, meter: &mut Meter) {
        let batch = match self.checks.batch_left {
            0 => (self.context.job.verify.as_ref()).map_or(0, |v| v.backlog_batch),
            left => left,
        };
        self.leave_once();
        let now = usize::try_from(batch).unwrap_or(usize::MAX);
        let now = now.min(self.checks.backlog.len());
        self.checks.batch_left = batch - now as u64;
        self.verify_from(Source::Backlog(0, now), Kind::Backlog, gate, meter);
        self.checks.backlog.drain(..now);
        if let Some(stats) = &mut self.accounts.stats {
            stats.begin_stretch(Kind::Work, gate.clock.now());
        }
    }

    /// At the end of a pass: what the backlog still holds.
    pub(super) fn rest_of_backlog(&mut self, gate: &Gate, meter: &mut Meter) {
        let wanted = self
            .context
            .job
            .verify
            .as_ref()
            .is_some_and(|v| v.read_back);
        if wanted && !self.checks.backlog.is_empty() {
            self.leave_once();
            let all = Source::Backlog(0, self.checks.backlog.len());
            self.verify_from(all, Kind::ReadBack, gate, meter);
            self.checks.backlog.clear();
        }
    }

    /// Keeps only the last write of each place in the backlog, in the order of files and offsets; a
    /// trimmed block counts too, where those are read back.
    fn leave_once(&mut self) {
        let verify = self.context.job.verify.as_ref().filter(|v| v.once);
        if let Some(verify) = verify {
            self.checks.backlog = latest(std::mem::take(&mut self.checks.backlog));
            if !verify.trimmed_is_zero {
                self.checks.backlog.retain(|written| !written.trimmed);
            }
        }
    }

    /// Checks what an earlier run wrote: one pass where time decided how many it made, and each block
    /// once where random writes of a pass may repeat.
    pub(super) fn verify_only(&mut self, gate: &Gate, meter: &mut Meter) {
        let steps = self.pattern.steps.clone();
        self.pattern.generation = u64::MAX;
        let left = match steps.expected() {
            Some(_) => u64::MAX,
            None => pass_length(steps.clone()),
        };
        self.pattern.exhausted = true;
        let repeats = self.context.job.verify.as_ref().is_some_and(|v| v.once);
        // A saved state names the write up to which an earlier run came.
        if (repeats || steps.revisits()) && self.checks.progress.is_none() {
            return self.verify_passes_only(steps, gate, meter);
        }
        let source = Source::Replay {
            steps: Box::new(steps),
            left,
            generation: 0,
        };
        self.verify_from(source, Kind::ReadBack, gate, meter);
    }

    /// Checks what an earlier run wrote pass by pass, in each pass every block once. A block that a
    /// later pass overwrote in part is not checked.
    fn verify_passes_only(&mut self, mut steps: Steps, gate: &Gate, meter: &mut Meter) {
        let repeats = self.context.job.verify.as_ref().is_some_and(|v| v.once);
        let endless = steps.expected().is_none();
        let standing = (!endless).then(|| standing(steps.clone()));
        let mut generation = 0;
        while steps.clone().next().is_some() && !gate.stop.is_raised() && !self.accounts.over {
            // A number of operations may end the last pass early.
            let operations = match pass_length(steps.clone()) {
                0 => u64::MAX,
                operations => operations,
            };
            generation = self.remember_pass(steps.clone(), operations, generation);
            if repeats {
                self.leave_once();
            } else {
                let mut all = latest(std::mem::take(&mut self.checks.backlog));
                all.retain(|written| !written.trimmed);
                for written in &all {
                    self.leave_out_write(&written.check());
                }
                self.checks.backlog = all;
            }
            if let Some(standing) = &standing {
                let now = |w: &Written| standing.get(&(w.file, w.offset));
                let stands = |w: &Written| now(w) == Some(&(w.length, w.trimmed));
                self.checks.backlog.retain(stands);
            }
            let all = Source::Backlog(0, self.checks.backlog.len());
            self.verify_from(all, Kind::ReadBack, gate, meter);
            self.checks.backlog.clear();
            if endless || operations == u64::MAX {
                break;
            }
            steps.nth(usize::try_from(operations - 1).unwrap_or(usize::MAX));
        }
    }

    /// Reads and checks all that `source` names, as a stretch of its own.
    fn verify_from(&mut self, source: Source, kind: Kind, gate: &Gate, meter: &mut Meter) {
        if self.accounts.over || gate.stop.is_raised() {
            return;
        }
        let waiting = self.pattern.next.take();
        // Written blocks are checked to the end.
        let gate = Gate {
            deadline: None,
            ..gate.clone()
        };
        if let Some(stats) = &mut self.accounts.stats {
            let now = gate.clock.now();
            stats.end_stretch(now);
            stats.begin_stretch(kind, now);
        }
        self.pattern.source = source;
        self.pump(&gate, meter);
        self.pattern.source = Source::Work;
        self.pattern.next = waiting;
        if let Some(stats) = &mut self.accounts.stats {
            stats.end_stretch(gate.clock.now());
        }
    }

    /// Compares the block in `slot`(`moved` bytes were read) with the content that it must have, or
    /// gives it to a thread that does; `None`: the result is noted later.
    pub(super) fn check(
        &mut self,
        slot: usize,
        what: Planned,
        moved: usize,
        span: Span,
        meter: &mut Meter,
    ) -> Option<Verdict> {
        if !self.context.engine.uses_files {
            return Some(Ok(()));
        }
        if moved < what.length {
            let (end, offset, length) = (what.offset + moved as u64, what.offset, what.length);
            let text = format!(
                "truncated: expected {length} bytes at offset {offset}, but the file ends at {end}"
            );
            return Some(Err((FailureKind::Mismatch, text)));
        }
        if what.kind == Does::CheckZeros {
            return Some(self.check_zeros(slot, &what));
        }
        let block = Block {
            lane: self.lane(Direction::Read),
            span,
            length: what.length,
            expected: self.expected(&what),
            file: what.file,
        };
        if self.checks.checkers.is_some() {
            self.note_checked(meter, false);
        }
        let engine = self.engine.as_mut();
        if let Some(checkers) = &mut self.checks.checkers
            && checkers.give(
                engine,
                (self.requests.slots.len() > 1).then_some(slot),
                &block,
            )
        {
            // In a job, the read is done; a wrong block is noted later.
            return self.accounts.stats.is_some().then_some(Ok(()));
        }
        // Blocks that were read before are noted before.
        self.note_checked(meter, true);
        let headers = self.checks.headers.as_ref()?;
        let read = &self.engine.buffer(slot)[..what.length];
        let (verdict, dump) = checkers::check(headers, &block.expected, read);
        self.dump(what.file, dump, meter);
        Some(verdict)
    }

    /// Checks that the block in `slot`, which was trimmed, has only zeros.
    fn check_zeros(&mut self, slot: usize, what: &Planned) -> Verdict {
        let read = &self.engine.buffer(slot)[..what.length];
        match read.iter().position(|byte| *byte != 0) {
            None => Ok(()),
            Some(at) => {
                let (offset, place) = (what.offset, what.offset + at as u64);
                let text = format!(
                    "at offset {offset}: the block was trimmed, but the byte at {place} is not zero"
                );
                Err((FailureKind::Mismatch, text))
            }
        }
    }

    /// The content that a block must have.
    fn expected(&self, what: &Planned) -> Expected {
        let file = self.files.key(what.file);
        let verify = self.context.job.verify.as_ref();
        let kept = self.context.kept.as_ref();
        if let (Some(stamps), Source::Work) =
            (kept.and_then(|k| k.stamps.as_ref()), &self.pattern.source)
        {
            return stamps.expected(file, what.offset);
        }
        // Blocks that the kernel does not order have no order of their own either.
        let ordered = self.requests.slots.len() == 1 || !self.context.job.pattern.repeats;
        let own = match self.pattern.source {
            Source::Work => None,
            _ if ordered => Some(what.generation),
            _ => Some(1),
        };
        let only = verify.is_some_and(|v| v.only);
        // Like fio: the author of existing blocks is unknown.
        let own = own.filter(|_| !only);
        Expected {
            run: own.map(|_| self.context.run),
            file,
            offset: what.offset,
            generations: own.map(|least| Generations {
                worker: self.checks.mark,
                mask: u64::MAX,
                range: least..=self.pattern.generation,
                likely: least,
            }),
        }
    }

    /// Notes the blocks that are checked by now; with `all` waits for all of them.
    pub(super) fn note_checked(&mut self, meter: &mut Meter, all: bool) {
        while let Some(checkers) = &mut self.checks.checkers {
            let Some((block, verdict, dump)) = checkers.take(all) else {
                return;
            };
            self.dump(block.file, dump, meter);
            match verdict {
                Ok(()) if self.accounts.stats.is_some() => {}
                Err(why) if self.accounts.stats.is_some() => {
                    let failure = self.failure(Does::Check, block.file, why);
                    self.trouble(failure, None, meter);
                }
                Ok(()) if block.span.start < self.accounts.records_from => meter.went_on(),
                Ok(()) => meter.done(block.lane, block.span, block.length as u64),
                Err(why) => {
                    self.accounts.ended.errors += 1;
                    let failure = self.failure(Does::Check, block.file, why);
                    meter.failed(block.lane, block.span, failure);
                }
            }
        }
    }
}

impl BlockRunner {
    /// Puts a wrong block into files, where that is asked for.
    fn dump(&mut self, file: u64, dump: Option<Dump>, meter: &mut Meter) {
        let Some(dump) = dump else {
            return;
        };
        let path = self.files.path(file).into_owned();
        let report = self.context.report.as_ref();
        let place = report.map_or(&self.context.base, |report| &report.aux);
        if let Err(error) = dump.write(place, Path::new(&path)) {
            self.not_kept(&path, "verify_dump", &error, meter);
        }
    }

    /// Writes the state of a verified job.
    pub(super) fn save_progress(&mut self, meter: &mut Meter) {
        let Some(mut progress) = self.checks.progress.take() else {
            return;
        };
        if let Err((path, error)) = progress.save(self.pattern.generation) {
            let path = path.to_string_lossy();
            self.not_kept(&path, "verify_state_save", &error, meter);
        }
    }

    /// Notes that a file beside the job's own could not be written.
    pub(super) fn not_kept(
        &mut self,
        path: &str,
        option: &str,
        error: &io::Error,
        meter: &mut Meter,
    ) {
        let failure = Failure::new(OpKind::Write, path, errno_of(error, Errno::EEXIST));
        self.trouble(failure.with(format!("{option}: {error}")), None, meter);
    }
}

/// The last write of each place, in the order of files and offsets.
fn latest(all: Vec<Written>) -> Vec<Written> {
    let mut last = BTreeMap::new();
    all.into_iter().for_each(|written| put(&mut last, written));
    last.into_values().collect()
}

/// The blocks that all of `steps` leave, by file and offset: their lengths, and whether they are
/// trimmed.
fn standing(steps: Steps) -> BTreeMap<(u64, u64), (usize, bool)> {
    let mut last = BTreeMap::new();
    for step in steps.filter(|step| step.direction != Direction::Read) {
        let trimmed = step.direction == Direction::Trim;
        put(
            &mut last,
            Written::of(&planned(&step, Does::Check, 0), trimmed),
        );
    }
    let blocks = last.into_iter();
    let blocks = blocks.map(|(place, written)| (place, (written.length, written.trimmed)));
    blocks.collect()
}

/// Adds the next write to the last ones of each place. Like fio: a block that overlaps with a later
/// one has changed.
fn put(last: &mut BTreeMap<(u64, u64), Written>, written: Written) {
    let Written { file, offset, .. } = written;
    let end = offset.saturating_add(written.length as u64);
    while let Some((place, before)) = last.range(..(file, end)).next_back()
        && place.0 == file
        && place.1.saturating_add(before.length as u64) > offset
    {
        let place = *place;
        last.remove(&place);
    }
    last.insert((file, offset), written);
}

/// Operations up to the end of the pass.
fn pass_length(mut steps: Steps) -> u64 {
    let last = steps.position(|step| step.ends_pass);
    last.map_or(0, |last| last as u64 + 1)
}

/// The kind of a step's operation, unless it checks.
#[inline(always)]
fn kind_of(direction: Direction) -> Does {
    match direction {
        Direction::Read => Does::Read,
        Direction::Write => Does::Write,
        Direction::Trim => Does::Trim,
    }
}

#[inline(always)]
fn planned(step: &Step, kind: Does, generation: u64) -> Planned {
    Planned {
        kind,
        file: step.file,
        offset: step.offset,
        length: step.length as usize,
        generation,
        last: step.ends_file,
        ..Planned::default()
    }
}
