//! Logs of I/O around jobs: those that are replayed are looked through before anything else is
//! done, and say then what their jobs do; those that are written get their names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rbench_core::Rank;
use rbench_plan::iolog::{Found, Replay};
use rbench_plan::jobs::{BlockSizes, Each, FileNames, FileService, JobPlan, JobsPlan};
use rbench_sys::inputs;

use crate::blocks::{Iolog, Iologs, gcd};
use crate::group::{ExecError, Group};

/// The logs of this rank's workers of each job, by its position.
#[derive(Debug, Default)]
pub struct AllIologs {
    of: Vec<Iologs>,
}

/// A log to read in advance, with the way in which it is replayed.
type Wanted = (PathBuf, Replay);

impl AllIologs {
    /// Looks through what this rank's workers replay; the plan with what was found.
    ///
    /// # Errors
    /// A sentence with the file, and the line where it is one that is wrong; the same on every
    /// rank.
    pub async fn look_through<'p>(
        group: &Group<'_>,
        plan: &'p JobsPlan,
        base: &Path,
    ) -> Result<(Cow<'p, JobsPlan>, AllIologs), ExecError> {
        let ranks = group.world.size();
        let jobs = || plan.rounds.iter().flatten();
        let mut all = AllIologs::default();
        for (index, job) in (0..).zip(jobs()) {
            let workers = job.workers_of(group.rank());
            let written = workers.filter_map(|n| plan.iolog_of(index, n, ranks));
            all.of.push(Iologs {
                replayed: Vec::new(),
                written: written.map(PathBuf::from).collect(),
            });
        }
        if jobs().all(|job| job.replay.is_none()) {
            return Ok((Cow::Borrowed(plan), all));
        }
        let wanted = jobs().map(|job| wanted(job, group.rank(), base));
        let wanted: Vec<Vec<Wanted>> = wanted.collect();
        let ranks = (0..).zip(&group.host_of);
        let here = group.host_of.get(group.rank().0 as usize);
        let ranks: Vec<(u32, bool)> = ranks.map(|(r, host)| (r, Some(host) == here)).collect();
        let readers = readers(jobs(), &ranks, base);
        let looked = group.agree_in_thread(move || match shared_input(&readers) {
            Some(why) => Err(why),
            None => look(wanted),
        });
        let found = looked.await.map_err(|e| group.as_usage(e))?;
        let mut plan = plan.clone();
        let jobs = plan.rounds.iter_mut().flatten();
        for ((job, logs), own) in jobs.zip(found).zip(&mut all.of) {
            if job.replay.is_some() {
                let interval = group.agree(interval_of(job, &logs)).await;
                let interval = interval.map_err(|e| group.as_usage(e))?;
                if let (Some(verify), Some(interval)) = (&mut job.verify, interval) {
                    verify.interval = interval;
                }
                complete(group, job, &logs).await?;
                own.replayed = logs;
            }
        }
        Ok((Cow::Owned(plan), all))
    }

    /// The logs of the job with that position.
    pub fn of(&self, job: u32) -> Iologs {
        self.of.get(job as usize).cloned().unwrap_or_default()
    }
}

/// The distance of headers in the writes of a log that are verified, where any are.
fn interval_of(job: &JobPlan, logs: &[Arc<Iolog>]) -> Result<Option<u64>, String> {
    let (Some(_), Some(replay)) = (&job.verify, &job.replay) else {
        return Ok(None);
    };
    let name = &job.name;
    if logs.iter().any(|log| log.counts.is_none()) {
        return Err(format!(
            "job '{name}': verify needs an I/O log that can be read before it is replayed"
        ));
    }
    let mut all = logs.iter().filter_map(|log| log.writes);
    let Some(first) = all.next() else {
        return Ok(None);
    };
    let (least, most, divisor) = all.fold(first, |(least, most, divisor), other| {
        (least.min(other.0), most.max(other.1), gcd(divisor, other.2))
    });
    let divisor = u64::from(divisor);
    match replay.verify_interval {
        Some(given) if given > 0 && divisor % given == 0 => Ok(Some(given)),
        None if least == most => Ok(Some(divisor)),
        _ => Err(format!(
            "job '{name}': the log's writes have {least} to {most} bytes: give a \
             verify_interval that divides all of them"
        )),
    }
}

/// The logs of a job's workers on a rank, in their order.
fn wanted(job: &JobPlan, rank: Rank, base: &Path) -> Vec<Wanted> {
    let Some(replay) = &job.replay else {
        return Vec::new();
    };
    let own = job.workers_of(rank);
    let of = |worker: u64| {
        // Numbered like in fio: the first of its clones is the last.
        let turn = match worker - own.start {
            0 => worker,
            clone => own.end - clone,
        };
        let name = replay
            .logs
            .get((turn % (replay.logs.len() as u64).max(1)) as usize);
        (base.join(name.map_or("", String::as_str)), replay.clone())
    };
    own.clone().map(of).collect()
}

/// Number of times that the logs of jobs are read, each with the first job that reads it. `ranks`:
/// with a flag for those on this host, whose files and pipes are its own; standard input is that of
/// the run.
fn readers<'p>(
    jobs: impl Iterator<Item = &'p JobPlan>,
    ranks: &[(u32, bool)],
    base: &Path,
) -> BTreeMap<PathBuf, (String, u64)> {
    let mut all: BTreeMap<PathBuf, (String, u64)> = BTreeMap::new();
    // A log that is kept is read once on a rank for all who replay it alike.
    let mut kept: BTreeMap<(u32, PathBuf), Vec<Replay>> = BTreeMap::new();
    for job in jobs {
        let Some(replay) = &job.replay else { continue };
        let of_all = replay
            .logs
            .iter()
            .any(|name| inputs::is_stdin(Path::new(name)));
        for (rank, here) in ranks.iter().filter(|(_, here)| *here || of_all) {
            for (path, replay) in wanted(job, Rank(*rank), base) {
                if !here && !inputs::is_stdin(&path) {
                    continue;
                }
                if !replay.chunked {
                    let known = kept.entry((*rank, path.clone())).or_default();
                    if known.contains(&replay) {
                        continue;
                    }
                    known.push(replay);
                }
                let entry = all.entry(path).or_insert_with(|| (job.name.clone(), 0));
                entry.1 += 1;
            }
        }
    }
    all
}

/// The reason why logs cannot be replayed as the plan says, if one that can be read only once is to
/// be read more often.
fn shared_input(readers: &BTreeMap<PathBuf, (String, u64)>) -> Option<String> {
    let mut once: BTreeMap<Option<(u64, u64)>, u64> = BTreeMap::new();
    readers.iter().find_map(|(path, (job, count))| {
        let found = match inputs::is_stdin(path) {
            true => None,
            // A log without metadata is reported when it is read.
            false => Some(path.metadata().ok().filter(|found| !found.is_file())?),
        };
        let sum = once
            .entry(found.map(|found| (found.dev(), found.ino())))
            .or_default();
        *sum += count;
        let path = path.display();
        (*sum > 1).then(|| {
            format!(
                "job '{job}': read_iolog={path} can be read only once, but {sum} workers would read it"
            )
        })
    })
}

/// Looks logs through, each once.
fn look(wanted: Vec<Vec<Wanted>>) -> Result<Vec<Vec<Arc<Iolog>>>, String> {
    let mut known: BTreeMap<PathBuf, Vec<(Replay, Arc<Iolog>)>> = BTreeMap::new();
    let mut of = |(path, replay): Wanted| {
        let same = known.entry(path.clone()).or_default();
        if let Some((_, log)) = same.iter().find(|(how, _)| *how == replay) {
            return Ok(Arc::clone(log));
        }
        let log = Arc::new(Iolog::look_through(&path, &replay)?);
        same.push((replay, Arc::clone(&log)));
        Ok(log)
    };
    let of_job = |logs: Vec<Wanted>| logs.into_iter().map(&mut of).collect();
    wanted.into_iter().map(of_job).collect()
}

/// Gives a job what the logs say that its workers do: the directions of all ranks, the sizes
/// and files of this one.
async fn complete(
    group: &Group<'_>,
    job: &mut JobPlan,
    logs: &[Arc<Iolog>],
) -> Result<(), ExecError> {
    // A log that cannot be read in advance may contain everything.
    let unseen = logs.iter().any(|log| log.counts.is_none());
    let mut sums = [0, 0, 0, 0, u64::from(unseen)];
    for log in logs {
        let counts = match log.counts {
            Some(counts) => [counts.read, counts.write, counts.trim, counts.sync],
            None => [1; 4],
        };
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let sums = group.sums(sums.to_vec()).await?;
    let has = |which: usize| sums.get(which).is_some_and(|sum| *sum > 0);
    let skip = job
        .replay
        .as_ref()
        .map(|replay| replay.skip)
        .unwrap_or_default();
    let directions = &mut job.pattern.directions;
    directions.read = has(0) && !skip.read;
    directions.write = has(1) && !skip.write;
    directions.trim = has(2) && !skip.trim;
    let workers = u64::from(job.numjobs) * u64::from(group.world.size());
    let transfers: u64 = sums.iter().take(3).sum();
    if let Some(replay) = &mut job.replay {
        replay.found = Some(Found {
            syncs: has(3),
            operations: (!has(4)).then(|| transfers.div_ceil(workers.max(1))),
        });
    }
    let largest = logs.iter().map(|log| log.largest).max().unwrap_or(0);
    job.pattern.sizes = Each::same(BlockSizes::Fixed(u64::from(largest.max(1))));
    let names: BTreeSet<&String> = logs.iter().flat_map(|log| &log.names).collect();
    let files = &mut job.files;
    files.more_directories.clear();
    files.count = names.len() as u64;
    files.open = files.count;
    files.service = FileService::RoundRobin(1);
    files.names = FileNames::Given(names.into_iter().cloned().collect());
    Ok(())
}
