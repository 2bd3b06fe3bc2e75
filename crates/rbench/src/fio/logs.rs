//! The logs of jobs: their files, and how workers write into them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rbench_core::Rank;
use rbench_core::job::JobLog;
use rbench_plan::Plan;
use rbench_plan::iolog::Version;
use rbench_plan::jobs::{JobPlan, WindowValue};
use rbench_plan::resolve::Work;
use rbench_report::fio::{compressed, logs as form};

use super::known::is_log;
use super::on_clock;
use crate::files::{self, Written};
use crate::trouble::all_of;

/// Checks the paths of this rank's logs. Only logs of earlier runs may be replaced, as in fio.
///
/// # Errors
/// One sentence that names the file.
pub fn check(plan: &Plan, cwd: &Path, rank: Rank) -> Result<(), String> {
    let Work::Jobs(jobs) = &plan.work else {
        return Ok(());
    };
    let mut before = 0;
    for (index, job) in (0..).zip(jobs.rounds.iter().flatten()) {
        let workers = u64::from(job.numjobs);
        let first = before + u64::from(rank.0) * workers + 1;
        before += workers * u64::from(plan.ranks);
        for number in first..first + workers {
            for (_, path) in log_paths(job, number, cwd) {
                let place = files::find(&path, is_log);
                place.map_err(|why| format!("the log {} {why}", path.display()))?;
            }
        }
        let first = u64::from(rank.0) * workers;
        for worker in first..first + workers {
            if let Some(name) = jobs.iolog_of(index, worker, plan.ranks) {
                check_iolog(&cwd.join(name))?;
            }
        }
    }
    Ok(())
}

/// Checks the path of an I/O log: free, or an earlier I/O log.
fn check_iolog(path: &Path) -> Result<(), String> {
    let place = match files::find(path, |start| Version::of(start).is_ok()) {
        Ok(files::Place::Stream(_)) => Err("is not a file".to_owned()),
        place => place.map(drop),
    };
    place.map_err(|why| format!("write_iolog: {} {why}", path.display()))
}

/// Writes the logs of this rank's workers below `cwd`. Overwrites only those of earlier runs, like
/// fio.
///
/// # Errors
/// One sentence that names the file.
pub fn write(plan: &Plan, cwd: &Path, all: &[JobLog], begun: &mut Begun) -> Result<(), String> {
    let Work::Jobs(jobs) = &plan.work else {
        return Ok(());
    };
    let jobs: Vec<&JobPlan> = jobs.rounds.iter().flatten().collect();
    all_of(all.iter().map(|log| {
        let before = jobs.iter().take(log.job as usize);
        let before: u64 = before
            .map(|job| u64::from(job.numjobs) * u64::from(plan.ranks))
            .sum();
        match jobs.get(log.job as usize) {
            Some(job) => write_log(job, log, before + log.worker + 1, (cwd, &mut *begun)),
            None => Ok(()),
        }
    }))
}

fn write_log(
    job: &JobPlan,
    log: &JobLog,
    number: u64,
    (cwd, begun): (&Path, &mut Begun),
) -> Result<(), String> {
    use form::Kind;
    let Some(asked) = job.logs() else {
        return Ok(());
    };
    let form = form::Form {
        averaged: asked.average.0 > 0,
        offsets: asked.offsets,
        mean: asked.values != WindowValue::Max,
        max: asked.values != WindowValue::Average,
        priority: asked.priority,
        issue_time: asked.issue_time,
        coarseness: asked.coarseness,
        epoch_ms: match asked.of_clock {
            true => on_clock(log.start_ms, asked.clock),
            false => 0,
        },
    };
    all_of(log_paths(job, number, cwd).into_iter().map(|(kind, path)| {
        // A shared log is replaced once, before its first worker writes.
        let shared = asked.one_file.then_some(&mut *begun);
        match kind {
            None => {
                let lines = log.histograms.iter();
                let lines = lines.map(|one| form::histogram_line(one, form));
                write_lines(&path, shared, lines)
            }
            Some(kind) => {
                let none = kind == Kind::Slat && !asynchronous(job);
                let samples = log.samples.iter().filter(|_| !none);
                if asked.compressed {
                    let stored = compressed::store(kind, samples, form);
                    let stored =
                        stored.map_err(|why| format!("the log {}: {why}", path.display()))?;
                    return write_file(&path, shared, &mut |file| file.write_all(&stored));
                }
                let lines = samples.map(|sample| form::line(kind, sample, form));
                write_lines(&path, shared, lines)
            }
        }
    }))
}

/// The logs that a worker of `job` writes: their kind (`None` for histograms) and path.
fn log_paths(job: &JobPlan, number: u64, cwd: &Path) -> Vec<(Option<form::Kind>, PathBuf)> {
    use form::Kind;
    let Some(asked) = job.logs() else {
        return Vec::new();
    };
    let number = (!asked.one_file).then_some(number);
    let wanted = [
        (&asked.bandwidth, &[Kind::Bandwidth][..]),
        (&asked.iops, &[Kind::Iops]),
        (&asked.latency, &[Kind::Slat, Kind::Clat, Kind::Lat]),
    ];
    let mut all = Vec::new();
    for (prefix, kinds) in wanted {
        let Some(prefix) = prefix else { continue };
        let path = |kind| {
            let name = form::file_name(prefix, kind, number);
            cwd.join(match asked.compressed {
                true => compressed::file_name(&name),
                false => name,
            })
        };
        all.extend(kinds.iter().map(|kind| (Some(*kind), path(*kind))));
    }
    if let Some(prefix) = &asked.histogram {
        all.push((None, cwd.join(form::histogram_file_name(prefix, number))));
    }
    all
}

/// Returns true if the job's engine keeps requests in flight while the worker goes on.
fn asynchronous(job: &JobPlan) -> bool {
    rbench_sys::engine::find(&job.engine).is_some_and(|e| e.depth_max > 1 && e.moves_data)
}

/// Logs shared by several workers, once this run has written to them.
pub type Begun = BTreeMap<PathBuf, Written>;

/// Writes a log, or appends to one that several workers share (`shared`).
pub fn write_lines(
    path: &Path,
    shared: Option<&mut Begun>,
    mut lines: impl Iterator<Item = String>,
) -> Result<(), String> {
    write_file(path, shared, &mut |file| {
        lines.try_for_each(|line| file.write_all(line.as_bytes()))
    })
}

fn write_file(
    path: &Path,
    shared: Option<&mut Begun>,
    put: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), String> {
    let named = |why: String| format!("the log {} {why}", path.display());
    let fresh = |put: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>| {
        files::write_over(path, is_log, |file| put(file)).map_err(named)
    };
    let Some(written_logs) = shared else {
        return fresh(put)?.moved.map_or(Ok(()), |why| Err(named(why)));
    };
    let written = match written_logs.entry(path.to_owned()) {
        Entry::Vacant(none) => none.insert(fresh(put)?),
        Entry::Occupied(there) => {
            let written = there.into_mut();
            let mut file = io::BufWriter::new(&written.file);
            let added = put(&mut file).and_then(|()| file.flush());
            drop(file);
            added.map_err(|e| named(format!("cannot be written: {e}")))?;
            written
        }
    };
    written.moved.clone().map_or(Ok(()), |why| Err(named(why)))
}
