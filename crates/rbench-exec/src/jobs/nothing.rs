//! The loop of jobs with nothing behind it: what the tool itself costs.

use std::path::PathBuf;
use std::sync::Arc;

use rbench_core::Rank;
use rbench_plan::jobs::{BlockSizes, Directions, Each, FileNames, JobPlan, Logs, Pace, Syncing};

use super::find;
use super::runner::{self, Lanes, Scene, Sink};
use crate::worker::Prepared;

/// Sequential reads of a job like `job` with the null engine: so many of that
/// length, so many at a time.
///
/// # Errors
/// When there is not the memory.
pub(crate) fn over_nothing(
    job: &JobPlan,
    (operations, length): (u64, u64),
    depth: u32,
) -> Prepared {
    let mut job = job.clone();
    (job.engine, job.depth, job.direct) = ("null".to_owned(), depth, false);
    (job.numjobs, job.verify) = (1, None);
    job.pattern.directions = Directions {
        read: true,
        write: false,
        random: false,
    };
    let sizes = || BlockSizes::Fixed(length);
    job.pattern.sizes = Each {
        read: sizes(),
        write: sizes(),
    };
    let size = operations.saturating_mul(length);
    (job.files.count, job.files.size) = (1, (size, size));
    (job.files.offset, job.files.offset_increment) = (0, 0);
    (job.files.create_only, job.files.names) = (false, FileNames::Format("none".to_owned()));
    (job.syncing, job.logs) = (Syncing::default(), Logs::default());
    job.pace = Pace {
        loops: 1,
        ..Pace::default()
    };
    let scene = Scene {
        engine: find(&job),
        job: Arc::new(job),
        index: 0,
        lanes: Lanes {
            read: Some(0),
            ..Lanes::default()
        },
        open_loop: false,
        base: PathBuf::new(),
        run: 0,
        rank: Rank(0),
        sink: Sink::default(),
        board: None,
        unmade: Arc::default(),
    };
    runner::prepare(scene, 0)
}
