//! Properties of fio's command line and job files, up to the plan and its first operations.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rbench_cli::fio::{Surroundings, files_named, read, variables_named};
use rbench_cli::{Invocation, Tool};
use rbench_core::Nanos;
use rbench_plan::jobs::{JobPlan, JobsPlan, Whole};
use rbench_plan::pattern::{Steps, largest, smallest};
use rbench_plan::resolve::{Work, resolve};
use rbench_plan::spec::Workload;

use crate::{plans, refusal};

/// Start of a line that names the next file of an input.
const MARK: &[u8] = b"%file ";

/// Tests `input` as a job file; a line `%file NAME` starts another file that it may include. The
/// result must be a refusal, or a plan that `--showcmd` prints as a command line of the same jobs.
pub fn job_file(input: &[u8]) {
    let argv: [OsString; 3] = ["rbench", "fio", "job.fio"].map(Into::into);
    whole_way(&argv, &files(input), input.len());
}

/// Tests `input` as the words of `rbench fio`, one per line, like [`job_file`].
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

/// Processes a command line with job files like the program.
fn whole_way(argv: &[OsString], disk: &BTreeMap<PathBuf, Vec<u8>>, input: usize) {
    // Missing files count as empty, so that more of the input is parsed.
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
    let names = variables_named(&known);
    for name in &names {
        assert!(!name.contains('}'), "{name}");
    }
    let included: usize = known.values().map(Vec::len).sum();
    let set = names.into_iter().filter(|name| name != "UNSET");
    let around = Surroundings {
        files: known,
        variables: set
            .map(|name| (name.clone(), format!("v{}", name.len())))
            .collect(),
        page_size: 4096,
        cpus: 2,
        memory_mib: 1024,
        ..Surroundings::default()
    };
    let invocation = match read(argv, &around) {
        // Not jobs.
        Ok(Invocation::Tool(Tool::Fio(_))) => return,
        Ok(invocation) => invocation,
        Err(stop) => return refusal::of_line(&stop),
    };
    let (spec, _) = plans::workload(invocation);
    let Workload::Fio(fio) = &spec.workload else {
        panic!("fio became {:?}", spec.workload);
    };
    // No command line can express a section whose files have one name and whose report has another.
    let renamed = fio.jobs.iter().any(|job| job.name != job.files);
    let again = printed(argv, &around);
    let again = read(&again, &around).unwrap_or_else(|stop| {
        panic!("{again:?} was printed, and is refused: {}", stop.text);
    });
    let (again, _) = plans::workload(again);
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
fn printed(argv: &[OsString], around: &Surroundings) -> Vec<OsString> {
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

/// Splits a line into words like a shell: blanks, quotes and backslashes.
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
/// belong to no job (such as `--iterations`).
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

/// Checks that the first operations of the first and the last worker are inside their files.
fn operations(job: &JobPlan) {
    /// Larger numbers of files take too long to check.
    const FILES_MAX: u64 = 1000;
    /// The order of mixed sizes is computed in memory, for stretches of this many smallest blocks.
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
