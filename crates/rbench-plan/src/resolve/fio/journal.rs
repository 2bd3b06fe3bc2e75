//! `--ack-journal`: jobs whose blocks `rbench verify` can judge after a crash. They carry
//! the stamps of `rbench io`, in files that nothing was in before.

use rbench_core::plain;
use std::path::PathBuf;

use super::super::PlanError;
use super::verify::divisor;
use crate::jobs::JobPlan;
use crate::pattern::{shares_files, smallest};
use crate::verify::Verify;

/// Bytes of a block at least, for its stamp.
const BLOCK_MIN: u64 = 512;

/// Gives the blocks of the jobs that write the stamps by which they are judged.
pub(super) fn journal(
    rounds: &mut [Vec<JobPlan>],
    asked: Option<&PathBuf>,
    (iterations, ranks): (u32, u32),
    notes: &mut Vec<String>,
) -> Result<Option<PathBuf>, PlanError> {
    let Some(path) = asked else {
        return Ok(None);
    };
    refuse_if! {
        path.file_name().is_none() => "--ack-journal {} is not a file name", path.display();
        iterations > 1 =>
            "--ack-journal and --iterations cannot be combined: every iteration writes the same files";
        rounds.iter().flatten().any(|job| job.replay.is_some()) =>
            "--ack-journal and read_iolog cannot be combined: a replay may write one place twice at a time";
    }
    let mut writers = 0;
    for job in rounds.iter_mut().flatten() {
        if !job.pattern.directions.write {
            continue;
        }
        if let Err(PlanError(why)) = check(job, ranks) {
            refuse!("job '{}': --ack-journal {why}", plain(&job.name));
        }
        job.verify = Some(Verify::stamped(divisor(&job.pattern.sizes.write)));
        writers += 1;
    }
    refuse_if!(writers == 0 => "--ack-journal needs a job that writes");
    notes.push(
        "--ack-journal: blocks are filled with the stamps that rbench verify checks; \
         buffer_pattern, buffer_compress_percentage and the like are ignored"
            .to_owned(),
    );
    Ok(Some(path.clone()))
}

/// Checks that a journal can cover the blocks of `job`. The reason is the rest of a sentence.
fn check(job: &JobPlan, ranks: u32) -> Result<(), PlanError> {
    let block = divisor(&job.pattern.sizes.write);
    let (files, pattern, shares) = (&job.files, &job.pattern, &job.files.shares);
    let workers = u64::from(job.numjobs) * u64::from(ranks);
    let increment = match workers {
        1 => 0,
        _ => files.offset_increment,
    };
    let mut places = [files.offset, increment, pattern.align.write].into_iter();
    refuse_if! {
        pattern.directions.read || pattern.directions.trim =>
            "needs jobs that only write: rw=write or randwrite";
        job.names.is_some() => "needs an engine that writes data";
        job.verify.is_some() =>
            "and verify cannot be combined: both write their headers into the blocks";
        files.size.1 == 0 => "needs size";
        shares.offset.is_some() || shares.increment.is_some() || shares.append =>
            "needs offset and offset_increment in bytes, and no file_append";
        shares_files(files) && workers > 1 =>
            "needs separate files for each worker: give no filename, or use $jobnum in filename_format";
        files.overwrite =>
            "and overwrite cannot be combined: files that are laid out have no stamps";
        files.unlink || files.unlink_each_loop =>
            "cannot be combined with unlink or unlink_each_loop: the synced data would be removed";
        files.fill => "and fill_device cannot be combined: the final file size is unknown";
        !pattern.course.is_plain() =>
            "needs sequential or random blocks, without a number after rw, zones or bs_is_seq_rand";
        block < BLOCK_MIN =>
            "needs block sizes (bs) that are multiples of {BLOCK_MIN} bytes, for the stamps";
        block != smallest(&pattern.sizes.write) =>
            "needs block sizes (bs) that are multiples of the smallest one";
        places.any(|place| !place.is_multiple_of(block)) =>
            "needs offset, offset_increment and blockalign to be multiples of the block size (bs)";
    }
    Ok(())
}
