//! Runs the jobs of `rbench fio`. Compares them with the files that remain, with the built-in file
//! system, and with fio 3.33 for the same command lines.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rbench_cli::Invocation;
use rbench_core::job::JobOutcome;
use rbench_exec::ExecError;
use rbench_plan::spec::{Common, Fio, Workload};

use crate::group::{Outcome, Run, check_adds_up};

mod buffers;
mod course;
mod depth;
mod engines;
mod files;
mod filled;
mod iologs;
mod machine;
mod names;
mod needs_fuse;
mod pace;
mod parts;
mod pattern;
mod priorities;
mod process;
mod ranks;
mod trims;
mod verify;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Parses a command line, given without the program's name: fio's options and the common ones.
fn fio(line: &str) -> (Fio, Common) {
    let words = ["rbench", "fio"].into_iter().chain(line.split_whitespace());
    let words: Vec<OsString> = words.map(OsString::from).collect();
    match rbench_cli::parse(&words, None) {
        Ok(Invocation::Run(spec, _)) => match spec.workload {
            Workload::Fio(fio) => (*fio, spec.common),
            other => panic!("{line}: {other:?}"),
        },
        Ok(other) => panic!("{line}: {other:?}"),
        Err(stop) => panic!("{line}: {}", stop.text),
    }
}

pub fn job<'r>(hosts: &'r [u32], dir: &'r Path, line: &str) -> Run<'r> {
    let (fio, common) = fio(line);
    let mut run = Run::fio(hosts, dir, fio);
    run.common.leave = common.leave;
    run.common.leave.untried = true;
    (run.common.shift, run.common.drop_caches) = (common.shift, common.drop_caches);
    run.common.iterations = common.iterations;
    run
}

/// Runs a command line in `dir` on one rank, to its end.
fn run(dir: &Path, line: &str) -> Outcome {
    run_on(&[0], dir, line)
}

/// Like `run`, with ranks on these hosts.
fn run_on(hosts: &[u32], dir: &Path, line: &str) -> Outcome {
    finish(job(hosts, dir, line), line)
}

/// Executes a run, which must reach its end.
fn finish(run: Run<'_>, line: &str) -> Outcome {
    let outcome = match run.go() {
        Ok(outcome) => outcome,
        Err(error) => panic!("{line}: {error}"),
    };
    assert!(
        outcome.complete && outcome.trouble.is_none() && outcome.left.is_empty(),
        "{line}: {:?} {:?}",
        outcome.trouble,
        outcome.left
    );
    outcome
}

/// Like `run`, without any failure.
fn run_well(dir: &Path, line: &str) -> Outcome {
    let outcome = run(dir, line);
    check_sound(&outcome, line);
    outcome
}

fn check_sound(outcome: &Outcome, line: &str) {
    for row in &outcome.rows {
        assert!(row.failures.is_empty(), "{line}: {:?}", row.failures);
        if row.items > 0 {
            check_adds_up(row);
        }
    }
    for job in &outcome.jobs {
        assert_eq!((job.error, job.errors), (0, 0), "{line}: job {}", job.job);
    }
}

/// The reason why a command line is refused.
fn refusal(dir: &Path, line: &str) -> String {
    match job(&[0], dir, line).go() {
        Err(ExecError::SetUp(message) | ExecError::Usage(message)) => message,
        Err(other) => panic!("{line}: {other}"),
        Ok(outcome) => match outcome.trouble {
            Some(message) => message,
            None => panic!("{line}: it was done"),
        },
    }
}

/// The single entry of the report.
fn only(outcome: &Outcome) -> &JobOutcome {
    match outcome.jobs.as_slice() {
        [job] => job,
        all => panic!("{} outcomes", all.len()),
    }
}

/// (reads, bytes read, writes, bytes written) of all jobs.
fn counts(outcome: &Outcome) -> (u64, u64, u64, u64) {
    outcome.jobs.iter().fold((0, 0, 0, 0), |sum, job| {
        (
            sum.0 + job.read.ios,
            sum.1 + job.read.bytes,
            sum.2 + job.write.ios,
            sum.3 + job.write.bytes,
        )
    })
}

/// Names and lengths of the files in `dir`.
fn listing(dir: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(dir).expect("listing");
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.metadata().expect("metadata").len())
    };
    entries.map(entry).collect()
}

fn tempdir() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary directory")
}

fn data(dir: &Path, name: &str) -> Vec<u8> {
    fs::read(dir.join(name)).expect("the file is there")
}
