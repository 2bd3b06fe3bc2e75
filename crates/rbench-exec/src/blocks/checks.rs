//! Where a worker's next operation comes from, and reading back what was
//! written.
//!
//! Nothing is remembered of the writes of a pass but those that failed: the
//! pattern is made again. The n-th write of a worker carries n, so a block must
//! have the number of the write that is replayed, or of a later one.

use std::collections::BTreeMap;

use rbench_core::{Clock as _, FailureKind, Nanos};
use rbench_plan::pattern::{Step, Steps};
use rbench_sys::{Request, Transfer};

use super::checkers::{Block, Verdict};
use super::stretch::Kind;
use super::{BlockRunner, JOB_SHIFT, Kind as Does, Planned};
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::verify::{Expected, Generations};

/// Blocks that tell which run wrote a file.
const SAMPLE: usize = 9;

/// What the operations come from.
pub(super) enum Source {
    /// The job's pattern.
    Work,
    /// The pattern once more: its writes, as reads.
    Replay {
        /// From where the pass began.
        steps: Box<Steps>,
        /// Operations of the pass that are still to be replayed.
        left: u64,
        /// Number of the last write before.
        generation: u64,
    },
    /// The latest writes, from this one on.
    Backlog(usize),
}

/// A block that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) length: usize,
    pub(super) generation: u64,
}

impl BlockRunner {
    /// The next operation; `None` when the pass or the source is at its end.
    // A large value that is passed through memory costs as much as the whole loop: the
    // usual way is inlined.
    #[inline(always)]
    pub(super) fn next_operation(&mut self, meter: &mut Meter) -> Option<Planned> {
        match self.source {
            Source::Work if self.next.is_none() => self.draw::<false>(),
            _ => self.next_other(meter),
        }
    }

    #[cold]
    fn next_other(&mut self, meter: &mut Meter) -> Option<Planned> {
        if self.next.is_some() {
            return self.next.take();
        }
        loop {
            let what = self.draw_check()?;
            let Planned { file, offset, .. } = what;
            // What could not be written is no block to be checked.
            if !self.unwritten.touches(file, offset, what.length as u64) {
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

    /// The next block that was to be written.
    fn draw_check(&mut self) -> Option<Planned> {
        match &mut self.source {
            Source::Work => None,
            Source::Replay {
                steps,
                left,
                generation,
            } => {
                while *left > 0 {
                    *left -= 1;
                    let step = steps.next()?;
                    if step.write {
                        *generation += 1;
                        return Some(planned(&step, Does::Check, *generation));
                    }
                }
                None
            }
            Source::Backlog(next) => {
                let written = self.backlog.get(*next)?;
                *next += 1;
                Some(Planned {
                    kind: Does::Check,
                    file: written.file,
                    offset: written.offset,
                    length: written.length,
                    generation: written.generation,
                    // Where files take turns it was closed before.
                    last: true,
                    intended: None,
                })
            }
        }
    }

    /// The next operation of the pattern. `BARE`: nobody asks for more of it than what
    /// it is and where it goes.
    #[inline(always)]
    pub(super) fn draw<const BARE: bool>(&mut self) -> Option<Planned> {
        if self.pass_over {
            return None;
        }
        let write = match BARE {
            true => None,
            false => self.arrivals.first(),
        };
        let Some(step) = self.steps.next_as(write) else {
            self.exhausted = true;
            return None;
        };
        self.pass_over = step.ends_pass && self.how.stops_at_pass;
        let kind = match (step.write, !BARE && self.headers.is_some()) {
            (true, _) => Does::Write,
            (false, true) => Does::Check,
            (false, false) => Does::Read,
        };
        let mut what = planned(&step, kind, 0);
        if BARE {
            return Some(what);
        }
        if step.write {
            if self.generation < self.generation_max {
                self.generation += 1;
            }
            what.generation = self.generation;
        }
        if let Some(at) = self.arrivals.next(step.write, step.length) {
            what.intended = Some(Nanos(self.start.0.saturating_add(at.0)));
        }
        Some(what)
    }

    /// Whether the blocks of each pass are read back by making its pattern
    /// again.
    pub(super) fn reads_back(&self) -> bool {
        let verify = self.context.job.verify.as_ref();
        verify.is_some_and(|v| v.read_back && v.backlog.is_none())
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
        self.verify_from(
            Source::Replay {
                steps: Box::new(steps),
                left: self.pass_steps,
                generation,
            },
            Kind::ReadBack,
            gate,
            meter,
        );
    }

    /// Reads back the writes of the backlog, in the middle of the work.
    pub(super) fn check_backlog(&mut self, gate: &Gate, meter: &mut Meter) {
        self.verify_from(Source::Backlog(0), Kind::Backlog, gate, meter);
        self.backlog.clear();
        if let Some(stats) = &mut self.stats {
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
        if wanted && !self.backlog.is_empty() {
            self.verify_from(Source::Backlog(0), Kind::ReadBack, gate, meter);
            self.backlog.clear();
        }
    }

    /// Checks what an earlier run wrote: one pass where time decided how many
    /// it made.
    pub(super) fn verify_only(&mut self, gate: &Gate, meter: &mut Meter) {
        let steps = self.steps.clone();
        self.generation = u64::MAX;
        self.run_found = self.prevailing_run(meter);
        let left = match steps.expected() {
            Some(_) => u64::MAX,
            None => pass_length(steps.clone()),
        };
        self.verify_from(
            Source::Replay {
                steps: Box::new(steps),
                left,
                generation: 0,
            },
            Kind::ReadBack,
            gate,
            meter,
        );
        self.exhausted = true;
    }

    /// The run that most of the first blocks are of: any one of them may be
    /// left from an earlier run.
    fn prevailing_run(&mut self, meter: &mut Meter) -> Option<u64> {
        let steps = self.steps.clone().filter(|step| step.write);
        let steps: Vec<Step> = steps.take(SAMPLE).collect();
        let mut runs: BTreeMap<u64, usize> = BTreeMap::new();
        for step in &steps {
            if let Some(run) = self.run_of(step, meter) {
                *runs.entry(run).or_default() += 1;
            }
        }
        let most = runs.into_iter().max_by_key(|(_, blocks)| *blocks);
        most.map(|(run, _)| run)
    }

    /// The run that wrote a block, if the block is sound.
    fn run_of(&mut self, step: &Step, meter: &mut Meter) -> Option<u64> {
        let fd = self.files.fd(step.file, self.engine.as_mut()).ok()?;
        let length = step.length as usize;
        let request = Request {
            transfer: Transfer::Read,
            fd,
            offset: step.offset,
            length,
            at: 0,
        };
        let moved = self.engine.perform(request, &mut Vec::new()).ok()?.ok()?;
        if self.how.turns {
            self.close(step.file, meter);
        }
        let any = Expected {
            run: None,
            file: self.files.key(step.file),
            offset: step.offset,
            generations: None,
        };
        let block = self.engine.buffer(0).get(..length.min(moved))?;
        self.headers.as_ref()?.check(block, &any).ok()?
    }

    /// Reads and checks all that `source` names, as a stretch of its own.
    fn verify_from(&mut self, source: Source, kind: Kind, gate: &Gate, meter: &mut Meter) {
        if self.over || gate.stop.is_raised() {
            return;
        }
        let waiting = self.next.take();
        // What was written is checked to the end.
        let gate = Gate {
            deadline: None,
            ..gate.clone()
        };
        if let Some(stats) = &mut self.stats {
            let now = gate.clock.now();
            stats.end_stretch(now);
            stats.begin_stretch(kind, now);
        }
        self.source = source;
        self.pump(&gate, meter);
        self.source = Source::Work;
        self.next = waiting;
        if let Some(stats) = &mut self.stats {
            stats.end_stretch(gate.clock.now());
        }
    }

    /// Compares the block in `slot`, of which `moved` bytes were read, with what it
    /// must be, or gives it to a thread that does; `None`: that is noted later.
    pub(super) fn check(
        &mut self,
        slot: usize,
        what: Planned,
        moved: usize,
        span: Span,
        meter: &mut Meter,
    ) -> Option<Verdict> {
        if moved < what.length {
            let (end, offset, length) = (what.offset + moved as u64, what.offset, what.length);
            let text = format!(
                "truncated: at offset {offset} {length} bytes were expected, and the file ends at {end}"
            );
            return Some(Err((FailureKind::Mismatch, text)));
        }
        let block = Block {
            lane: self.lane(false),
            span,
            length: what.length,
            expected: self.expected(&what),
            file: what.file,
        };
        if self.checkers.is_some() {
            self.note_checked(meter, false);
        }
        let engine = self.engine.as_mut();
        if let Some(checkers) = &mut self.checkers
            && checkers.give(engine, &block)
        {
            return None;
        }
        // Those that were read before are noted before.
        self.note_checked(meter, true);
        let headers = self.headers.as_ref()?;
        let read = &self.engine.buffer(slot)[..what.length];
        Some(match headers.check(read, &block.expected) {
            Ok(run) => {
                self.run_found = self.run_found.or(run);
                Ok(())
            }
            Err(wrong) => Err((FailureKind::Mismatch, wrong.to_string())),
        })
    }

    /// What a block must be.
    fn expected(&self, what: &Planned) -> Expected {
        let file = self.files.key(what.file);
        let verify = self.context.job.verify.as_ref();
        let kept = self.context.kept.as_ref();
        if let (Some(stamps), Source::Work) = (kept.and_then(|k| k.stamps.as_ref()), &self.source) {
            return stamps.expected(file, what.offset);
        }
        // What the kernel does not order has no order of its own either.
        let ordered = self.slots.len() == 1 || !self.context.job.pattern.repeats;
        let own = match self.source {
            Source::Work => None,
            _ if ordered => Some(what.generation),
            _ => Some(1),
        };
        let only = verify.is_some_and(|v| v.only);
        let run = match own {
            None => None,
            Some(_) if only => self.run_found,
            Some(_) => Some(self.context.run),
        };
        Expected {
            run,
            file,
            offset: what.offset,
            generations: own.map(|least| Generations {
                // An earlier run may have had other jobs beside it.
                worker: if only { self.part.worker } else { self.mark },
                mask: if only { (1 << JOB_SHIFT) - 1 } else { u64::MAX },
                range: least..=self.generation,
                likely: least,
            }),
        }
    }

    /// Notes the blocks that are checked by now; with `all` waits for all of them.
    pub(super) fn note_checked(&mut self, meter: &mut Meter, all: bool) {
        while let Some(checkers) = &mut self.checkers {
            let Some((block, verdict)) = checkers.take(all) else {
                return;
            };
            match verdict {
                Ok(()) if block.span.start < self.records_from => meter.went_on(),
                Ok(()) => meter.done(block.lane, block.span, block.length as u64),
                Err(why) => {
                    self.ended.errors += 1;
                    let failure = self.failure(Does::Check, block.file, why);
                    meter.failed(block.lane, block.span, failure);
                }
            }
        }
    }
}

/// Operations up to the end of the pass.
fn pass_length(mut steps: Steps) -> u64 {
    let last = steps.position(|step| step.ends_pass);
    last.map_or(0, |last| last as u64 + 1)
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
        intended: None,
    }
}
