//! fio's command line and job files, up to the plan and its first operations.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rbench_cli::Invocation;
use rbench_cli::fio::{Surroundings, files_named, read, variables_named};
use rbench_core::Nanos;
use rbench_plan::jobs::{JobPlan, JobsPlan, Whole};
use rbench_plan::pattern::{Steps, largest, smallest};
use rbench_plan::resolve::{Work, resolve};
use rbench_plan::spec::Workload;

use crate::{plans, refusal};

/// Begins the line that names the next file of an input.
const MARK: &[u8] = b"%file ";

/// `input` as a job file; a line `%file NAME` begins another that it may
/// include. A refusal, or a plan, which `--showcmd` prints as a command line
/// of the same jobs.
pub fn job_file(input: &[u8]) {
    let argv: [OsString; 3] = ["rbench", "fio", "job.fio"].map(Into::into);
    whole_way(&argv, &files(input), input.len());
}

/// `input` as the words of `rbench fio`, one a line. As [`job_file`].
pub fn fio_line(input: &[u8]) {
    let argv = plans::words(&["rbench", "fio"], input);
    whole_way(&argv, &BTreeMap::new(), input.len());
}

/// The files of an input by name.
fn files(input: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut name = PathBuf::from("job.fio");
    let mut content = Vec::new();
    for line in input.split_inclusive(|b| *b == b'\n') {
        match line.strip_prefix(MARK) {
            Some(next) => {
                let next = String::from_utf8_lossy(next.trim_ascii()).into_owned();
                let before = std::mem::replace(&mut name, next.into());
                all.insert(before, std::mem::take(&mut content));
            }
            None => content.extend_from_slice(line),
        }
    }
    all.insert(name, content);
    all
}

/// The command line with job files as the program goes it.
fn whole_way(argv: &[OsString], disk: &BTreeMap<PathBuf, Vec<u8>>, input: usize) {
    // What is named and is not there is empty: more is read so.
    let mut known = BTreeMap::new();
    loop {
        let missing = files_named(argv, &known);
        if missing.is_empty() {
            break;
        }
        for file in missing {
            let content = disk.get(&file).cloned().unwrap_or_default();
            known.insert(file, content);
        }
    }
    for name in variables_named(&known) {
        assert!(!name.contains('}'), "{name}");
    }
    let around = Surroundings {
        files: &known,
        unreadable: &BTreeMap::new(),
        variable: &|name| (name != "UNSET").then(|| format!("v{}", name.len())),
        page_size: 4096,
        cpus: 2,
        memory_mib: 1024,
    };
    let invocation = match read(argv, &around) {
        // Something else than jobs.
        Ok(Invocation::Fio(_)) => return,
        Ok(invocation) => invocation,
        Err(stop) => return refusal::of_line(&stop),
    };
    let (spec, _) = plans::workload(invocation);
    let Workload::Fio(fio) = &spec.workload else {
        panic!("fio became {:?}", spec.workload);
    };
    // No command line names files after a section and the report after its `name`.
    let renamed = fio.jobs.iter().any(|job| job.name != job.files);
    let again = printed(argv, &around);
    let again = read(&again, &around).unwrap_or_else(|stop| {
        panic!("{again:?} was printed, and is refused: {}", stop.text);
    });
    let (again, _) = plans::workload(again);
    let included: usize = known.values().map(Vec::len).sum();
    for facts in plans::worlds() {
        let Some(plan) = plans::plan(&spec, &facts, (input + included) * 16) else {
            continue;
        };
        let Work::Jobs(jobs) = plan.work else {
            panic!("fio became {:?}", plan.work);
        };
        assert!(jobs.rounds.iter().all(|round| !round.is_empty()));
        match resolve(&again, &facts).map(|plan| plan.work) {
            Ok(Work::Jobs(_)) if renamed => {}
            Ok(Work::Jobs(again)) => assert_eq!(bare(again), bare(jobs.clone()), "printed"),
            other => panic!("{again:?} was printed, and became {other:?}"),
        }
        for job in jobs.rounds.iter().flatten() {
            operations(job);
        }
    }
}

/// The command line that `--showcmd` prints for `argv`.
fn printed(argv: &[OsString], around: &Surroundings<'_>) -> Vec<OsString> {
    let mut argv = argv.to_vec();
    argv.insert(2, "--showcmd".into());
    let invocation = read(&argv, around).expect("it was read before");
    let (_, output) = plans::workload(invocation);
    let view = output.fio.expect("it is fio's");
    let text = view.show.expect("it was asked for");
    let mut words = vec![OsString::from("rbench")];
    words.extend(shell_words(&text).into_iter().map(OsString::from));
    words
}

/// The words of a line as a shell reads it: blanks, quotes and backslashes.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if !quoted => word.get_or_insert_default().extend(chars.next()),
            ' ' | '\n' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The first iteration of a plan, without the words of the command line and without options that
/// belong to no job (`--iterations` is one).
fn bare(mut plan: JobsPlan) -> JobsPlan {
    plan.rounds.truncate(plan.once().len());
    plan.iterations = 1;
    plan.global_options.clear();
    plan.whole = Whole::default();
    plan.rounds
        .iter_mut()
        .flatten()
        .filter_map(|job| job.report.as_mut())
        .for_each(|report| {
            report.options.clear();
            report.moved_every = Nanos(0);
        });
    plan
}

/// The first operations of the first and the last worker lie where they may.
fn operations(job: &JobPlan) {
    /// More files than this take a while to look through.
    const FILES_MAX: u64 = 1000;
    /// The order of mixed sizes is made in memory, a stretch of this many of
    /// the smallest blocks at a time.
    const MIX_MAX: u64 = 1 << 20;
    let sizes = job.pattern.sizes.all();
    let length_max = Steps::length_max(job).max(largest(sizes[2]));
    let length_min = sizes.map(smallest).into_iter().min().unwrap_or(0);
    if job.files.count > FILES_MAX || length_max / length_min.max(1) > MIX_MAX {
        return;
    }
    for jobnum in [0, u64::from(job.numjobs) - 1] {
        let size = |file| rbench_plan::pattern::file_size(job, jobnum, file);
        let mut steps = Steps::new(job, jobnum, size);
        let _ = steps.expected();
        for _ in 0..20 {
            let Some(step) = steps.next() else { break };
            assert!(step.length >= 1 && step.length <= length_max, "{step:?}");
            assert!(step.file < job.files.count, "{step:?}");
            let path = rbench_plan::pattern::file_path(job, jobnum, step.file);
            assert_ne!(path, Path::new(""));
        }
    }
}
