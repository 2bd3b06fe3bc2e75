//! The logs of jobs: which files there are, and how workers come to write into them.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rbench_core::Rank;
use rbench_core::job::JobLog;
use rbench_plan::Plan;
use rbench_plan::iolog::Version;
use rbench_plan::jobs::{JobPlan, WindowValue};
use rbench_plan::resolve::Work;
use rbench_report::fio::{compressed, logs as form};

use super::on_clock;
use crate::files;

/// Checks where this rank's logs will go: they replace logs of earlier runs, as in fio, and
/// nothing else.
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
                let found = files::find(&path, is_log);
                found.map_err(|why| format!("the log {} {why}", path.display()))?;
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

/// Checks where a log of I/O will go: in the place of an earlier one, or where nothing is.
fn check_iolog(path: &Path) -> Result<(), String> {
    let found = files::find(path, |start| Version::of(start).is_ok());
    let linked = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    let found = match (found, linked) {
        (_, true) => Err("is a symbolic link".to_owned()),
        (Ok(files::Place::Stream(_)), _) => Err("is no file".to_owned()),
        (found, _) => found.map(drop),
    };
    found.map_err(|why| format!("write_iolog: {} {why}", path.display()))
}

/// Whether a file starts as fio's logs do: a line of numbers between commas.
pub fn is_log(start: &[u8]) -> bool {
    if compressed::is_stored(start) {
        return true;
    }
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let known = |byte: &u8| byte.is_ascii_hexdigit() || b", x\r".contains(byte);
    line.first().is_some_and(u8::is_ascii_digit) && line.contains(&b',') && line.iter().all(known)
}

/// Writes the logs of this rank's workers below `cwd`, overwriting those of
/// earlier runs, as fio does, and nothing else.
///
/// # Errors
/// One sentence that names the file.
pub fn write(
    plan: &Plan,
    cwd: &Path,
    all: &[JobLog],
    begun: &mut BTreeSet<PathBuf>,
) -> Result<(), String> {
    let Work::Jobs(jobs) = &plan.work else {
        return Ok(());
    };
    let jobs: Vec<&JobPlan> = jobs.rounds.iter().flatten().collect();
    for log in all {
        let before = jobs.iter().take(log.job as usize);
        let before: u64 = before
            .map(|job| u64::from(job.numjobs) * u64::from(plan.ranks))
            .sum();
        if let Some(job) = jobs.get(log.job as usize) {
            write_log(job, log, before + log.worker + 1, (cwd, begun))?;
        }
    }
    Ok(())
}

fn write_log(
    job: &JobPlan,
    log: &JobLog,
    number: u64,
    (cwd, begun): (&Path, &mut BTreeSet<PathBuf>),
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
    for (kind, path) in log_paths(job, number, cwd) {
        // A file that all share is emptied before the first of them.
        let adds = asked.one_file && !begun.insert(path.clone());
        match kind {
            None => {
                let lines = log.histograms.iter();
                write_lines(
                    &path,
                    adds,
                    lines.map(|one| form::histogram_line(one, form)),
                )?;
            }
            Some(kind) => {
                let none = kind == Kind::Slat && !asynchronous(job);
                let samples = log.samples.iter().filter(|_| !none);
                if asked.compressed {
                    let stored = compressed::store(kind, samples, form);
                    let stored =
                        stored.map_err(|why| format!("the log {}: {why}", path.display()))?;
                    write_file(&path, adds, &mut |file| file.write_all(&stored))?;
                    continue;
                }
                let lines = samples.map(|sample| form::line(kind, sample, form));
                write_lines(&path, adds, lines)?;
            }
        }
    }
    Ok(())
}

/// The logs that a worker of `job` writes: of a kind, or of histograms.
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

/// Whether its engine keeps requests in flight while the worker goes on.
fn asynchronous(job: &JobPlan) -> bool {
    rbench_sys::engine::find(&job.engine).is_some_and(|e| e.depth_max > 1 && e.moves_data)
}

/// Writes a log; `adds`: behind what this run has written to it.
pub fn write_lines(
    path: &Path,
    adds: bool,
    mut lines: impl Iterator<Item = String>,
) -> Result<(), String> {
    write_file(path, adds, &mut |file| {
        lines.try_for_each(|line| file.write_all(line.as_bytes()))
    })
}

fn write_file(
    path: &Path,
    adds: bool,
    put: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), String> {
    let written = match adds {
        true => OpenOptions::new()
            .append(true)
            .open(path)
            .and_then(|mut file| put(&mut file))
            .map_err(|e| format!("cannot be written: {e}")),
        false => files::write_over(path, is_log, |file| put(file)),
    };
    written.map_err(|why| format!("the log {} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_log_of_fio_is_written_over() {
        for ours in [
            "0, 117, 0, 4096, 0\n1, 2",
            "12, 0, 4096, 1, 0, 3",
            "0, 1, 1, 4096, 0x1f\n",
        ] {
            assert!(is_log(ours.as_bytes()), "{ours}");
        }
        for other in ["time,value\n0, 1\n", "3\n", "[1, 2]\n", "", "\n1, 2\n"] {
            assert!(!is_log(other.as_bytes()), "{other}");
        }
    }
}
