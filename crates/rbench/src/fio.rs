//! What `rbench fio` reads and writes besides the common path: job files, fio's
//! outputs, status reports, and logs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rbench_cli::fio::{Surroundings, files_named, read, variables_named};
use rbench_cli::{FioFormat, FioView, Invocation, Output, Stop};
use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Nanos, Rank};
use rbench_exec::LiveStats;
use rbench_plan::Plan;
use rbench_plan::jobs::{ContinueOn, Errors, FioReport, JobPlan, JobsPlan};
use rbench_plan::resolve::Work;
use rbench_report::RunResult;
use rbench_report::fio::{FioEntry, FioRun, Steadiness, Target, json, logs, normal, terse};
use rbench_sys::limits::{host_facts, page_size};

use crate::files;
use crate::front::{FrontEnd, Scope};
use crate::launch::Launch;
use crate::run::Refusal;
use crate::show::render;
use crate::{SUCCESS, USAGE, print};

/// The version in fio's outputs: programs look for the version of fio whose
/// format they know.
const VERSION: &str = concat!("fio-3.33-rbench-", env!("CARGO_PKG_VERSION"));

/// What a command line of fio refers to, read by rank 0 for all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFiles {
    files: BTreeMap<PathBuf, Vec<u8>>,
    variables: Vec<(String, String)>,
    page_size: u64,
    cpus: u64,
    /// A file that could not be read, as a sentence.
    trouble: String,
}

impl JobFiles {
    /// Reads what this command line names; nothing for other commands.
    pub fn read(argv: &[OsString]) -> JobFiles {
        let mut found = JobFiles {
            page_size: page_size(),
            cpus: host_facts().map_or(1, |facts| u64::from(facts.cpus)),
            ..JobFiles::default()
        };
        loop {
            let missing = files_named(argv, &found.files);
            for file in &missing {
                match content(file) {
                    Ok(bytes) => found.files.insert(file.clone(), bytes),
                    Err(error) => {
                        found.trouble = format!("{} cannot be read: {error}", file.display());
                        return found;
                    }
                };
            }
            if missing.is_empty() {
                break;
            }
        }
        let names = variables_named(&found.files).into_iter();
        let set = |name: String| Some((name.clone(), std::env::var(name).ok()?));
        found.variables = names.filter_map(set).collect();
        found
    }

    /// Into a message.
    pub fn encode(&self, w: &mut Writer) {
        let JobFiles {
            files,
            variables,
            page_size,
            cpus,
            trouble,
        } = self;
        w.number(files.len() as u64);
        for (path, bytes) in files {
            w.bytes(path.as_os_str().as_bytes()).bytes(bytes);
        }
        w.number(variables.len() as u64);
        for (name, value) in variables {
            w.text(name).text(value);
        }
        w.number(*page_size).number(*cpus).text(trouble);
    }

    /// From a message; `None` when it did not arrive whole.
    pub fn decode(r: &mut Reader<'_>) -> Option<JobFiles> {
        let mut found = JobFiles::default();
        for _ in 0..r.number()? {
            let path = PathBuf::from(OsString::from_vec(r.bytes()?.to_vec()));
            found.files.insert(path, r.bytes()?.to_vec());
        }
        for _ in 0..r.number()? {
            found.variables.push((r.text()?, r.text()?));
        }
        (found.page_size, found.cpus) = (r.number()?, r.number()?);
        found.trouble = r.text()?;
        Some(found)
    }

    /// One file, for tests.
    #[cfg(test)]
    pub fn of_one(path: &str, bytes: &[u8]) -> JobFiles {
        JobFiles {
            files: BTreeMap::from([(path.into(), bytes.to_vec())]),
            variables: vec![("A".to_owned(), "b".to_owned())],
            page_size: 4096,
            cpus: 2,
            trouble: "none".to_owned(),
        }
    }
}

fn content(file: &Path) -> std::io::Result<Vec<u8>> {
    if file != Path::new("-") {
        return std::fs::read(file);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The invocation of a command line of fio; `None` if it is another command.
pub fn parse(launch: &Launch) -> Result<Option<Invocation>, Refusal> {
    if launch.argv.get(1).is_none_or(|command| command != "fio") {
        return Ok(None);
    }
    let around = &launch.job_files;
    if !around.trouble.is_empty() {
        return Err(Refusal::Cli(Stop {
            text: format!("error: the file {}\n", around.trouble),
            code: USAGE.into(),
        }));
    }
    let variable = |name: &str| {
        let mut all = around.variables.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let around = Surroundings {
        files: &around.files,
        variable: &variable,
        page_size: around.page_size,
        cpus: around.cpus,
    };
    read(&launch.argv, &around).map(Some).map_err(Refusal::Cli)
}

/// The front end: what it prints, and how reports on the way are shown.
pub struct Front {
    view: FioView,
    status: Option<Status>,
}

impl Front {
    /// The front end that prints so.
    pub fn new(view: FioView) -> Front {
        Front { view, status: None }
    }
}

impl FrontEnd for Front {
    /// What `--showcmd` and `--parse-only` do.
    fn instead(&self, ranks: u32, root: bool) -> Result<Option<u8>, String> {
        if self.view.status_interval.is_some() && ranks > 1 {
            return Err(format!(
                "--status-interval needs all workers in one process, and this run has {ranks} ranks"
            ));
        }
        Ok(match &self.view.show {
            Some(text) if root => Some(print(text)),
            Some(_) => Some(SUCCESS),
            None => self.view.parse_only.then_some(SUCCESS),
        })
    }

    fn shows_progress(&self) -> bool {
        false
    }

    /// Empties the file of `--output` at rank 0 and checks where this rank's logs
    /// will go. Reports and logs of earlier runs may be overwritten, as in fio,
    /// and nothing else.
    fn open(&mut self, scope: Scope<'_>, rank: Rank) -> Result<(), String> {
        let cwd = Path::new(&scope.launch.cwd);
        check_logs(scope.plan, cwd, rank)?;
        match &self.view.output {
            Some(path) if rank == Rank(0) => {
                let path = cwd.join(path);
                let unwritable = |e| format!("cannot be written: {e}");
                files::find(&path, is_report)
                    .and_then(|place| place.open().map(drop).map_err(unwritable))
                    .map_err(|why| format!("--output {} {why}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// With `--status-interval`.
    fn begin(&mut self, scope: Scope<'_>) -> Option<Arc<LiveStats>> {
        let every = self.view.status_interval?;
        let Work::Jobs(jobs) = &scope.plan.work else {
            return None;
        };
        let live = Arc::new(LiveStats::of(jobs));
        self.status = Some(Status::begin(&self.view, every, scope, Arc::clone(&live)));
        Some(live)
    }

    fn end(&mut self) {
        if let Some(status) = self.status.take() {
            status.end();
        }
    }

    fn job_logs(&mut self, scope: Scope<'_>, logs: &[JobLog]) -> Result<(), String> {
        write_logs(scope.plan, Path::new(&scope.launch.cwd), logs)
    }

    fn report(
        &self,
        scope: Scope<'_>,
        output: &Output,
        result: &RunResult,
        jobs: &[JobOutcome],
    ) -> Result<u8, String> {
        let own = self.view.report.then(|| render(result, output.format));
        let hosts = result.world.hosts.iter();
        let hosts: Vec<String> = hosts.map(|host| host.name.clone()).collect();
        report(scope, &hosts, &self.view, jobs, own)
    }

    fn tells_failures(&self) -> bool {
        false
    }
}

/// Whether a file starts as fio's reports do, in any format.
fn is_report(start: &[u8]) -> bool {
    let has = |words: &str| start.windows(words.len()).any(|w| w == words.as_bytes());
    ["\"fio version\"", ";fio-", "(groupid=", ": (g="]
        .into_iter()
        .any(has)
}

/// Whether a file starts as fio's logs do: a line of numbers between commas.
fn is_log(start: &[u8]) -> bool {
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let known = |byte: &u8| byte.is_ascii_hexdigit() || b", x\r".contains(byte);
    line.first().is_some_and(u8::is_ascii_digit) && line.contains(&b',') && line.iter().all(known)
}

fn check_logs(plan: &Plan, cwd: &Path, rank: Rank) -> Result<(), String> {
    let Work::Jobs(jobs) = &plan.work else {
        return Ok(());
    };
    let mut before = 0;
    for job in jobs.rounds.iter().flatten() {
        let workers = u64::from(job.numjobs);
        let first = before + u64::from(rank.0) * workers + 1;
        before += workers * u64::from(plan.ranks);
        for number in first..first + workers {
            for (_, path) in log_paths(job, number, cwd) {
                let found = files::find(&path, is_log);
                found.map_err(|why| format!("the log {} {why}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// Appends to what is there already.
fn emit(view: &FioView, cwd: &Path, text: &str) -> Result<u8, String> {
    let Some(path) = view.output.as_ref().map(|path| cwd.join(path)) else {
        return Ok(print(text));
    };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map(|()| SUCCESS)
        .map_err(|e| format!("--output {} cannot be written: {e}", path.display()))
}

/// Prints fio's report of what the jobs did, followed by `own`; returns the exit
/// code.
///
/// # Errors
/// One sentence that names the file of `--output`.
fn report(
    Scope { plan, launch }: Scope<'_>,
    hosts: &[String],
    view: &FioView,
    outcomes: &[JobOutcome],
    own: Option<String>,
) -> Result<u8, String> {
    let Work::Jobs(jobs) = &plan.work else {
        return Ok(SUCCESS);
    };
    let run = run(jobs, plan, launch, hosts, outcomes);
    let code = emit(view, Path::new(&launch.cwd), &texts(&run, view))?;
    // On standard output, where people look, not in a file that programs read.
    Ok(own.map_or(code, |own| code.max(print(&format!("\n{own}")))))
}

fn texts(run: &FioRun, view: &FioView) -> String {
    let text = |format: &FioFormat| match format {
        FioFormat::Normal => normal(run),
        FioFormat::Terse => terse(run),
        FioFormat::Json => json(run, false),
        FioFormat::JsonPlus => json(run, true),
    };
    view.formats.iter().map(text).collect()
}

fn run(
    jobs: &JobsPlan,
    plan: &Plan,
    launch: &Launch,
    hosts: &[String],
    outcomes: &[JobOutcome],
) -> FioRun {
    let all: Vec<&JobPlan> = jobs.rounds.iter().flatten().collect();
    let mut entries: Vec<(FioEntry, bool)> = Vec::new();
    for outcome in outcomes {
        let job = all.get(outcome.job as usize);
        let Some((job, report)) = job.and_then(|job| Some((job, job.report.as_ref()?))) else {
            continue;
        };
        match entries.last_mut() {
            Some((last, true)) if report.group_reporting && last.group == report.group => {
                last.outcome.merge(outcome);
            }
            _ => {
                // Of several hosts that of a worker which has an entry of its own.
                let host = host_of(job, outcome, plan, hosts);
                let host = host.filter(|_| !report.group_reporting);
                entries.push((entry(job, report, outcome, host), report.group_reporting));
            }
        }
    }
    let started = launch.started.parse::<jiff::Timestamp>();
    let ms = |at: jiff::Timestamp| u64::try_from(at.as_millisecond()).unwrap_or(0);
    FioRun {
        version: VERSION.to_owned(),
        started_ms: started.map_or(0, ms),
        ended_ms: ms(jiff::Timestamp::now()),
        utc_offset_s: jiff::Zoned::now().offset().seconds(),
        global_options: jobs.global_options.clone(),
        entries: entries
            .into_iter()
            .map(|(entry, _)| with_steadiness(entry, &all))
            .collect(),
    }
}

/// The host of a worker, if there are several.
fn host_of(job: &JobPlan, outcome: &JobOutcome, plan: &Plan, hosts: &[String]) -> Option<String> {
    if hosts.len() < 2 {
        return None;
    }
    let rank = usize::try_from(outcome.worker / u64::from(job.numjobs)).ok()?;
    hosts.get(*plan.host_of.get(rank)? as usize).cloned()
}

fn entry(
    job: &JobPlan,
    report: &FioReport,
    outcome: &JobOutcome,
    host: Option<String>,
) -> FioEntry {
    FioEntry {
        name: job.name.clone(),
        group: report.group,
        options: report.options.clone(),
        outcome: outcome.clone(),
        percentiles: report.percentiles.clone(),
        clat_percentiles: report.clat_percentiles,
        lat_percentiles: report.lat_percentiles,
        unified: report.unified,
        depth: job.depth,
        continue_on_error: job.errors != Errors::End(ContinueOn::default()),
        target: job.pace.latency_target.map(|target| Target {
            latency: target.target,
            window: target.window,
            percentile: target.percentile,
        }),
        steady: None,
        host,
    }
}

fn with_steadiness(entry: FioEntry, all: &[&JobPlan]) -> FioEntry {
    let job = all.get(entry.outcome.job as usize);
    let rule = job.and_then(|job| job.pace.steady);
    let steady = rule.map(|rule| {
        let window = &entry.outcome.steady_window;
        Steadiness {
            bandwidth: rule.bandwidth,
            slope: rule.slope,
            limit: rule.limit,
            percent: rule.percent,
            duration: rule.duration,
            attained: entry.outcome.steady == Some(true),
            iops: window.iter().map(|(ios, _)| *ios).collect(),
            bytes_per_s: window.iter().map(|(_, bytes)| *bytes).collect(),
        }
    });
    FioEntry { steady, ..entry }
}

/// Reports during a run (`--status-interval`).
struct Status {
    /// Dropped to end the thread.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Status {
    /// Reports from now on what `live` says.
    fn begin(view: &FioView, every: Nanos, scope: Scope<'_>, live: Arc<LiveStats>) -> Status {
        let (end, ended) = mpsc::channel();
        let (plan, launch, view) = (scope.plan.clone(), scope.launch.clone(), view.clone());
        let thread = std::thread::spawn(move || {
            let Work::Jobs(jobs) = &plan.work else {
                return;
            };
            while ended.recv_timeout(Duration::from(every)) == Err(mpsc::RecvTimeoutError::Timeout)
            {
                let run = run(jobs, &plan, &launch, &[], &live.outcomes());
                // The report at the end says if it cannot be written.
                let _ = emit(&view, Path::new(&launch.cwd), &texts(&run, &view));
            }
        });
        Status { end, thread }
    }

    /// Stops reporting.
    fn end(self) {
        drop(self.end);
        // It ends with its channel; a panic in it was already printed.
        let _ = self.thread.join();
    }
}

/// Writes the logs of this rank's workers below `cwd`, overwriting those of
/// earlier runs, as fio does, and nothing else.
///
/// # Errors
/// One sentence that names the file.
fn write_logs(plan: &Plan, cwd: &Path, all: &[JobLog]) -> Result<(), String> {
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
            write_log(job, log, before + log.worker + 1, cwd)?;
        }
    }
    Ok(())
}

fn write_log(job: &JobPlan, log: &JobLog, number: u64, cwd: &Path) -> Result<(), String> {
    use logs::Kind;
    let Some(asked) = job.logs() else {
        return Ok(());
    };
    let form = logs::Form {
        averaged: asked.average.0 > 0,
        offsets: asked.offsets,
    };
    for (kind, path) in log_paths(job, number, cwd) {
        match kind {
            None => write_lines(&path, log.histograms.iter().map(logs::histogram_line))?,
            Some(kind) => {
                let none = kind == Kind::Slat && !asynchronous(job);
                let samples = log.samples.iter().filter(|_| !none);
                write_lines(&path, samples.map(|sample| logs::line(kind, sample, form)))?;
            }
        }
    }
    Ok(())
}

/// The logs that a worker of `job` writes: of a kind, or of histograms.
fn log_paths(job: &JobPlan, number: u64, cwd: &Path) -> Vec<(Option<logs::Kind>, PathBuf)> {
    use logs::Kind;
    let Some(asked) = job.logs() else {
        return Vec::new();
    };
    let wanted = [
        (&asked.bandwidth, &[Kind::Bandwidth][..]),
        (&asked.iops, &[Kind::Iops]),
        (&asked.latency, &[Kind::Slat, Kind::Clat, Kind::Lat]),
    ];
    let mut all = Vec::new();
    for (prefix, kinds) in wanted {
        let Some(prefix) = prefix else { continue };
        let path = |kind| cwd.join(logs::file_name(prefix, kind, number));
        all.extend(kinds.iter().map(|kind| (Some(*kind), path(*kind))));
    }
    if let Some(prefix) = &asked.histogram {
        all.push((None, cwd.join(logs::histogram_file_name(prefix, number))));
    }
    all
}

/// Whether its engine keeps requests in flight while the worker goes on.
fn asynchronous(job: &JobPlan) -> bool {
    rbench_sys::engine::find(&job.engine).is_some_and(|e| e.depth_max > 1 && e.moves_data)
}

fn write_lines(path: &Path, mut lines: impl Iterator<Item = String>) -> Result<(), String> {
    files::write_over(path, is_log, |file| {
        lines.try_for_each(|line| file.write_all(line.as_bytes()))
    })
    .map_err(|why| format!("the log {} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_report_of_fio_is_written_over() {
        for ours in [
            "{\n  \"fio version\" : \"fio-3.33\",\n",
            "fio: a note\n{\n  \"fio version\" : \"x\"",
            "3;fio-3.33;a;0;0;",
            "a: (g=0): rw=write, bs=(R) 4096B",
            "\na: (groupid=0, jobs=1): err= 0: pid=1: Sun",
        ] {
            assert!(is_report(ours.as_bytes()), "{ours}");
        }
        for other in ["My thesis", "{\"fio\": 1}", "a;fio;b"] {
            assert!(!is_report(other.as_bytes()), "{other}");
        }
    }

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
