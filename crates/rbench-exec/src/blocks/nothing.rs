//! The loop of blocks over an engine that does nothing: the cost of the tool itself.

use std::path::PathBuf;

use rbench_core::{Failure, Nanos, Rank};
use rbench_plan::jobs::{
    BlockSizes, Course, Directions, Each, FileNames, FioReport, Framing, JobPlan, Logs, Pace,
    Shares, Syncing,
};
use rbench_plan::process::Process;

use super::BlockRunner;
use super::context::{How, Lanes, Report, Sink, WorkerContext, runner};
use crate::worker::Runner;

/// Length of a block: there is nothing that would move it.
pub(crate) const BLOCK: u64 = 4096;

/// More requests at a time only take memory here.
const DEPTH_MAX: u32 = 64;

/// The loop of a job, for this many operations; `None` where there is not the memory.
pub(crate) fn bare_loop(job: &JobPlan, operations: u64) -> Option<Box<dyn Runner>> {
    let depth = job.depth.clamp(1, DEPTH_MAX);
    let made = over_nothing(job, (operations, BLOCK), depth);
    made.ok().map(|runner| Box::new(runner) as Box<dyn Runner>)
}

/// Sequential reads of a job like `job` with the null engine: this many of that length, with this
/// queue depth.
///
/// # Errors
/// When there is not the memory.
pub(crate) fn over_nothing(
    job: &JobPlan,
    (operations, length): (u64, u64),
    depth: u32,
) -> Result<BlockRunner, Failure> {
    let report = job.report.is_some().then(|| Report {
        before: 0,
        index: 0,
        sink: Sink::default(),
        live: None,
        aux: PathBuf::new(),
    });
    let lanes = Lanes {
        read: Some(0),
        ..Lanes::default()
    };
    let alone = |job| WorkerContext {
        report: report.clone(),
        ..WorkerContext::new(job, lanes, PathBuf::new(), (Rank(0), 1))
    };
    let asked = alone(job.clone());
    // A job with more tasks around its operations is not measured without them.
    let bare = How::new(
        &asked,
        depth as usize,
        length as usize,
        job.verify.is_some(),
    )
    .bare;
    let mut job = job.clone();
    (job.engine, job.depth, job.direct) = ("null".to_owned(), depth, false);
    (job.depth_low, job.names) = (None, None);
    (job.numjobs, job.verify) = (1, None);
    (job.replay, job.iolog) = (None, None);
    job.pattern.directions = Directions::READ;
    // Gaps would end it early.
    job.pattern.course = Course::default();
    job.pattern.sizes = Each::same(BlockSizes::Fixed(length));
    let size = operations.saturating_mul(length);
    (job.files.count, job.files.size) = (1, (size, size));
    (job.files.offset, job.files.offset_increment) = (0, 0);
    job.files.shares = Shares::default();
    (job.files.ahead, job.files.interleave) = (0, 0);
    job.framing = Framing::Untimed;
    (job.files.create_only, job.files.names) = (false, FileNames::Format("none".to_owned()));
    job.syncing = Syncing::default();
    job.report = job.report.map(|report| FioReport {
        logs: Logs::default(),
        moved_every: Nanos(0),
        ..report
    });
    job.pace = Pace {
        loops: 1,
        ..Pace::default()
    };
    job.process = Process::default();
    (job.memory, job.others) = Default::default();
    let mut made = runner(alone(job), 0)?;
    made.how.bare &= bare;
    Ok(made)
}
