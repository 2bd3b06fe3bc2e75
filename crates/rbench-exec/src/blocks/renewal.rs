//! `invalidate` of a job that goes over its files more than once: their cached pages are dropped
//! before each pass, as fio drops them, so that every pass asks the file system and not the
//! first one alone.
//!
//! With `time_based` fio drops the pages of a file when its own blocks are through, otherwise (`loops`,
//! `io_size`) those of all files when all are; and none where random blocks may repeat, since these
//! are never through.

use rbench_plan::jobs::{Distribution, JobPlan};
use rbench_sys::engine::EngineInfo;

use super::BlockRunner;

/// The point at which pages are dropped again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Never,
    /// The pages of each file at its end.
    File,
    /// The pages of all files when all are at their end.
    Round,
}

/// The pages to drop next.
#[derive(Debug, Clone, Copy)]
enum Due {
    File(u64),
    All,
}

/// The file and the pass that a step ends. By value: a step whose address is taken is kept in memory, and
/// a null operation then takes 45 ns in place of 36.
#[derive(Debug, Clone, Copy)]
pub(super) struct Through {
    /// This file.
    pub(super) file: Option<u64>,
    /// The pass.
    pub(super) pass: bool,
}

/// The dropping of pages of one worker.
#[derive(Debug)]
pub(super) struct Renewal {
    when: When,
    /// Files of this round that are through.
    through: u64,
    due: Option<Due>,
}

impl Renewal {
    /// The renewal of `job`, whose engine is `engine`.
    pub(super) fn of(job: &JobPlan, engine: &EngineInfo) -> Renewal {
        let files = &job.files;
        let drops = engine.uses_files
            && job.names.is_none()
            && files.invalidate
            // Pages that were just read on purpose are not dropped again.
            && !files.pre_read;
        let pattern = &job.pattern;
        let repeats = pattern.repeats || pattern.distribution != Distribution::Uniform;
        let when = match job.pace.time_based {
            _ if !drops || job.replay.is_some() => When::Never,
            _ if pattern.directions.random && repeats => When::Never,
            true => When::File,
            false => When::Round,
        };
        Renewal {
            when,
            through: 0,
            due: None,
        }
    }

    /// Returns true if anything is dropped.
    pub(super) fn is_some(&self) -> bool {
        self.when != When::Never
    }

    /// Notes a step of a worker that has this many files.
    fn note(&mut self, step: Through, files: u64) {
        let Through { file, pass } = step;
        self.through += u64::from(file.is_some());
        match (self.when, file) {
            (When::Never, _) => {}
            (When::File, Some(file)) => self.due = Some(Due::File(file)),
            (When::Round, _) if pass || self.through >= files => {
                self.through = 0;
                self.due = Some(Due::All);
            }
            (When::File | When::Round, _) => {}
        }
    }
}

impl BlockRunner {
    /// A step ends a file or a pass.
    #[cold]
    pub(super) fn note_through(&mut self, step: Through) {
        self.pattern.renewal.note(step, self.files.count());
        self.pattern.stops = step.pass && self.how.stops_at_pass;
        self.pattern.pass_over = self.pattern.stops || self.pattern.renewal.due.is_some();
    }

    /// Before the step that follows such a one: whether there is none in this pass.
    #[cold]
    pub(super) fn is_pass_over(&mut self) -> bool {
        if !self.pattern.stops {
            self.drop_pages();
            self.pattern.pass_over = false;
        }
        self.pattern.stops
    }

    /// Drops what is due, if anything is still to be done with it.
    pub(super) fn drop_pages(&mut self) {
        let due = self
            .pattern
            .renewal
            .due
            .take()
            .filter(|_| !self.pattern.steps.is_over());
        match due {
            None => {}
            Some(Due::File(file)) => self.files.drop_pages(file),
            Some(Due::All) => (0..self.files.count()).for_each(|file| self.files.drop_pages(file)),
        }
    }

    /// Drops all pages of what was written, before it is read back, as fio does.
    pub(super) fn drop_before_reading_back(&self) {
        (0..self.files.count()).for_each(|file| self.files.drop_pages(file));
    }
}
