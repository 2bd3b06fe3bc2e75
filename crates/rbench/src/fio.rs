//! Inputs and outputs of `rbench fio` beyond the common path: job files, fio's outputs, status reports, and logs.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use rbench_cli::{FioView, IdleReport, Output};
use rbench_core::job::{JobLog, JobOutcome, Series};
use rbench_core::machine::HostUse;
use rbench_core::{Latency, Nanos, Rank};
use rbench_exec::LiveStats;
use rbench_plan::Plan;
use rbench_plan::jobs::{ByPriority, ContinueOn, Errors, FioReport, JobPlan, JobsPlan, LeftOut};
use rbench_plan::resolve::Work;
use rbench_report::RunResult;
use rbench_report::fio::{FioRun, Machine, TERSE_VERSION, add};
use rbench_report::journal;
use rbench_report::schema::{FioEntry, FioShown, FioSteady, FioTarget, Forms};

use crate::console::{complain, print};
use crate::exit::SUCCESS;
use crate::files::{self, Written};
use crate::front::{Done, FrontEnd, Scope};
use crate::show::render;
use crate::trouble::all_of;

mod debug;
mod known;
mod logs;
mod rates;
mod tools;

use known::is_report;
pub use tools::tool;

/// The version in fio's outputs: parsers look for a version of fio whose format they know.
const VERSION: &str = concat!("fio-3.33-rbench-", env!("CARGO_PKG_VERSION"));

/// The front end of `rbench fio`: its output options and the reports during the run.
pub struct Front {
    view: FioView,
    status: Option<Status>,
    /// Logs shared by several workers that this run has started.
    begun: logs::Begun,
    report_file: ReportFile,
    /// Resource use of the hosts in the groups that have ended.
    hosts: Vec<HostUse>,
}

impl Front {
    /// A front end with these output options.
    pub fn new(view: FioView) -> Front {
        Front {
            view,
            status: None,
            begun: logs::Begun::new(),
            report_file: ReportFile::default(),
            hosts: Vec::new(),
        }
    }

    /// The report, after the output of `--debug`.
    fn text(&self, scope: Scope<'_>, run: &FioRun) -> String {
        let kinds = &self.view.debug;
        let mut text = debug::of_plan(scope, kinds);
        text.push_str(&debug::of_machine(&run.machine, kinds));
        text.push_str(&texts(run, &self.view));
        text
    }

    /// Results of these jobs, up to the end of the run or until now.
    fn run(&self, scope: Scope<'_>, Done { result, jobs }: Done<'_>) -> Option<FioRun> {
        let Work::Jobs(plan) = &scope.plan.work else {
            return None;
        };
        let hosts = result.world.hosts.iter();
        let machine = Machine {
            names: hosts.map(|host| host.name.clone()).collect(),
            hosts: self.hosts.clone(),
            each_cpu: self.view.idle == Some(IdleReport::EachCpu),
        };
        let finished = result.run.finished.as_deref();
        let ended = finished.and_then(|at| at.parse().ok());
        let ended_ms = ms(ended.unwrap_or_else(jiff::Timestamp::now));
        let mut run = run(plan, scope, machine, jobs, ended_ms);
        run.terse_version = self.view.terse_version.unwrap_or(TERSE_VERSION);
        Some(run)
    }
}

impl FrontEnd for Front {
    /// Carries out `--showcmd` and `--parse-only`.
    fn instead(&self, ranks: u32, root: bool) -> Result<Option<u8>, String> {
        if self.view.status_interval.is_some() && ranks > 1 {
            return Err(format!(
                "--status-interval needs all workers in one process, but this run has {ranks} ranks"
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

    /// Checks the paths of this rank's logs and, at rank 0, of the report (`--output`). Only reports and logs of
    /// earlier runs may be overwritten, as in fio.
    fn open(&mut self, scope: Scope<'_>, rank: Rank) -> Result<(), String> {
        let cwd = Path::new(&scope.launch.cwd);
        logs::check(scope.plan, cwd, rank)?;
        check_aux(scope.plan, cwd)?;
        if rank == Rank(0) {
            rates::check(scope.plan, cwd)?;
        }
        match &self.view.output {
            Some(path) if rank == Rank(0) => {
                let path = cwd.join(path);
                let unwritable = |e| format!("cannot be written: {e}");
                files::find(&path, is_report)
                    .and_then(|place| place.can_be_written().map_err(unwritable))
                    .map_err(|why| format!("--output {} {why}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Starts the status reports of `--status-interval`.
    fn begin(&mut self, scope: Scope<'_>) -> Option<Arc<LiveStats>> {
        let every = self.view.status_interval?;
        let Work::Jobs(jobs) = &scope.plan.work else {
            return None;
        };
        let live = Arc::new(LiveStats::of(jobs));
        self.status = Some(Status::begin(
            &self.view,
            every,
            scope,
            (Arc::clone(&live), Arc::clone(&self.report_file)),
        ));
        Some(live)
    }

    fn end(&mut self) {
        if let Some(status) = self.status.take() {
            status.end();
        }
    }

    fn machine(&mut self, hosts: Vec<HostUse>) {
        for host in hosts {
            match self.hosts.iter_mut().find(|known| known.host == host.host) {
                Some(known) => known.add(&host),
                None => self.hosts.push(host),
            }
        }
    }

    fn forms(&self, scope: Scope<'_>, done: Done<'_>) -> Forms {
        let run = self.run(scope, done);
        Forms {
            fio: run.map(|run| run.form(&self.view.formats)),
            ..Forms::default()
        }
    }

    fn journal_line(&self, scope: Scope<'_>, done: Done<'_>) -> Option<String> {
        let form = self.run(scope, done)?.form(&[]);
        Some(journal::fio_line(&form.entries, &form.hosts))
    }

    fn job_logs(&mut self, scope: Scope<'_>, logs: &[JobLog]) -> Result<(), String> {
        logs::write(
            scope.plan,
            Path::new(&scope.launch.cwd),
            logs,
            &mut self.begun,
        )
    }

    fn report(&self, scope: Scope<'_>, output: &Output, done: Done<'_>) -> Result<u8, String> {
        let own = self
            .view
            .report
            .then(|| render(done.result, output.format, false));
        let rates = rates::write(scope, done.jobs);
        let Some(run) = self.run(scope, done) else {
            return rates.map(|()| SUCCESS);
        };
        let cwd = Path::new(&scope.launch.cwd);
        let text = self.text(scope, &run);
        let written = emit(&self.view, cwd, &text, &self.report_file);
        let kept = self.report_file.lock();
        if written.is_err() && kept.unwrap_or_else(PoisonError::into_inner).is_none() {
            // Without its file, the report goes to standard output.
            print(&text);
        }
        // On standard output for people, not in a file that programs read.
        let printed = own.map_or(SUCCESS, |own| print(&format!("\n{own}")));
        let code = *written.as_ref().unwrap_or(&SUCCESS);
        all_of([written.map(drop), rates])?;
        Ok(code.max(printed))
    }

    fn tells_failures(&self) -> bool {
        false
    }

    fn failed_jobs(&self, scope: Scope<'_>, why: &str) -> Vec<JobOutcome> {
        let Work::Jobs(plan) = &scope.plan.work else {
            return Vec::new();
        };
        let mut jobs = Vec::new();
        for (index, job) in (0..).zip(plan.once().iter().flatten()) {
            let workers = scope.plan.host_of.len() as u64 * u64::from(job.numjobs);
            jobs.extend((0..workers).map(|worker| JobOutcome {
                job: index,
                worker,
                workers: 1,
                pid: std::process::id(),
                error: errno_in(why),
                ..JobOutcome::default()
            }));
        }
        jobs
    }

    /// Writes a report with the error, like fio: otherwise an earlier run's report could be mistaken for this run's.
    fn without_result(&mut self, scope: Scope<'_>, result: &RunResult, why: &str) {
        let jobs = &self.failed_jobs(scope, why);
        let Some(run) = self.run(scope, Done { result, jobs }) else {
            return;
        };
        let cwd = Path::new(&scope.launch.cwd);
        let text = self.text(scope, &run);
        if let Err(why) = emit(&self.view, cwd, &text, &self.report_file) {
            complain(&why);
        }
    }
}

/// The error that a message names as `(ENOENT)`; EIO if it names none.
fn errno_in(why: &str) -> i32 {
    /// The highest errno of Linux.
    const LAST: i32 = 133;
    let named = |code: &i32| why.contains(&format!("({:?})", Errno::from_raw(*code)));
    (1..=LAST).find(named).unwrap_or(Errno::EIO as i32)
}

/// Checks that the directory of `--aux-path` exists on this host.
fn check_aux(plan: &Plan, cwd: &Path) -> Result<(), String> {
    let Work::Jobs(jobs) = &plan.work else {
        return Ok(());
    };
    let aux = cwd.join(&jobs.whole.aux);
    match aux.is_dir() {
        true => Ok(()),
        false => Err(format!("--aux-path {} is not a directory", aux.display())),
    }
}

/// The file of `--output`, once a report was written.
type ReportFile = Arc<Mutex<Option<Written>>>;

/// Writes a report. The first one replaces an earlier run's report, which so survives a run that is refused or reports
/// nothing. Later ones are appended to the same file.
fn emit(view: &FioView, cwd: &Path, text: &str, kept: &ReportFile) -> Result<u8, String> {
    let Some(path) = view.output.as_ref().map(|path| cwd.join(path)) else {
        return Ok(print(text));
    };
    let named = |why: String| format!("--output {} {why}", path.display());
    let unwritable = |e| named(format!("cannot be written: {e}"));
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let written = match &mut *kept {
        Some(written) => {
            let added = written.file.write_all(text.as_bytes());
            added.map_err(unwritable)?;
            written
        }
        none => {
            let put = |file: &mut dyn std::io::Write| file.write_all(text.as_bytes());
            none.insert(files::write_over(&path, is_report, put).map_err(named)?)
        }
    };
    written
        .moved
        .clone()
        .map_or(Ok(SUCCESS), |why| Err(named(why)))
}

fn texts(run: &FioRun, view: &FioView) -> String {
    let all = view.formats.iter();
    all.filter_map(|name| rbench_report::fio::render(run, name))
        .collect()
}

/// Milliseconds since the epoch.
fn ms(at: jiff::Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

/// Results of the jobs until `ended_ms`.
fn run(
    jobs: &JobsPlan,
    Scope { plan, launch }: Scope<'_>,
    machine: Machine,
    outcomes: &[JobOutcome],
    ended_ms: u64,
) -> FioRun {
    let all: Vec<&JobPlan> = jobs.rounds.iter().flatten().collect();
    let mut entries: Vec<FioEntry> = Vec::new();
    for outcome in outcomes {
        let job = all.get(outcome.job as usize);
        let Some((job, report)) = job.and_then(|job| Some((job, job.report.as_ref()?))) else {
            continue;
        };
        if report.left_out.all {
            continue;
        }
        let mut outcome = without(&in_units(outcome, report.io_unit), report.left_out);
        match report.by_priority() {
            Some(ByPriority::Clat) => outcome.at_own_priority(job.own_priority(), |of| &of.clat),
            Some(ByPriority::Lat) => outcome.at_own_priority(job.own_priority(), |of| &of.lat),
            None => outcome.leave_out_priorities(),
        }
        // On several hosts, a worker with an entry of its own gets its host's name.
        let host = host_of(job, &outcome, plan, &machine.names);
        let host = host.filter(|_| !report.group_reporting);
        add(&mut entries, entry(job, report, &outcome, host));
    }
    for entry in &mut entries {
        entry.outcome.leave_out_single_priority();
    }
    let started = launch.started.parse::<jiff::Timestamp>();
    FioRun {
        version: VERSION.to_owned(),
        terse_version: TERSE_VERSION,
        started_ms: started.map_or(0, ms),
        ended_ms,
        utc_offset_s: jiff::Zoned::now().offset().seconds(),
        global_options: jobs.global_options.clone(),
        entries: entries
            .into_iter()
            .map(|entry| with_steadiness(entry, &all))
            .collect(),
        machine,
    }
}

/// Counts I/Os in units of `unit` bytes instead of operations.
fn in_units(outcome: &JobOutcome, unit: Option<u64>) -> JobOutcome {
    let mut shown = outcome.clone();
    let Some(unit) = unit.filter(|unit| *unit > 0) else {
        return shown;
    };
    for direction in [&mut shown.read, &mut shown.write] {
        let units = direction.bytes / unit;
        let each = units as f64 / direction.ios.max(1) as f64;
        direction.iops = direction.iops.times(each);
        direction.ios = units;
    }
    shown
}

/// Removes the figures that the job's report leaves out.
fn without(outcome: &JobOutcome, left_out: LeftOut) -> JobOutcome {
    let mut shown = outcome.clone();
    for direction in [&mut shown.read, &mut shown.write, &mut shown.trim] {
        if left_out.slat {
            direction.slat = None;
        }
        if left_out.clat {
            direction.clat = Latency::new();
        }
        if left_out.lat {
            direction.lat = Latency::new();
        }
        if left_out.samples {
            (direction.bw, direction.iops) = (Series::default(), Series::default());
        }
    }
    shown
}

/// Converts ms since the epoch to the clock with this number in clock_gettime(2). Unchanged if the clock does not
/// exist.
fn on_clock(since_epoch_ms: u64, clock: i32) -> u64 {
    if clock == ClockId::CLOCK_REALTIME.as_raw() {
        return since_epoch_ms;
    }
    let now = |id: ClockId| clock_gettime(id).ok().map(Duration::from);
    let both = (now(ClockId::CLOCK_REALTIME), now(ClockId::from_raw(clock)));
    let (Some(real), Some(other)) = both else {
        return since_epoch_ms;
    };
    // Rounded once: the difference of two truncated times would depend on the moment.
    let away_ns = other.as_nanos() as i128 - real.as_nanos() as i128;
    let away_ms = (away_ns + 500_000).div_euclid(1_000_000);
    (i128::from(since_epoch_ms) + away_ms).max(0) as u64
}

/// The host of a worker, if there are several hosts.
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
        group_reporting: report.group_reporting,
        options: report.options.clone(),
        outcome: JobOutcome {
            start_ms: on_clock(outcome.start_ms, report.job_start_clock),
            ..outcome.clone()
        },
        shown: FioShown {
            continue_on_error: job.errors != Errors::End(ContinueOn::default()),
            ..report.shown.clone()
        },
        depth: job.depth,
        target: job.pace.latency_target.map(|target| FioTarget {
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
        FioSteady {
            criterion: rule.criterion,
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
    /// Reports the state of `live` every `every`, to the place where [`emit`] writes.
    fn begin(
        view: &FioView,
        every: Nanos,
        scope: Scope<'_>,
        (live, file): (Arc<LiveStats>, ReportFile),
    ) -> Status {
        let (end, ended) = mpsc::channel();
        let (plan, launch, view) = (scope.plan.clone(), scope.launch.clone(), view.clone());
        let thread = std::thread::spawn(move || {
            let Work::Jobs(jobs) = &plan.work else {
                return;
            };
            while ended.recv_timeout(Duration::from(every)) == Err(mpsc::RecvTimeoutError::Timeout)
            {
                let scope = Scope {
                    plan: &plan,
                    launch: &launch,
                };
                let now = ms(jiff::Timestamp::now());
                let mut run = run(jobs, scope, Machine::default(), &live.outcomes(), now);
                run.terse_version = view.terse_version.unwrap_or(TERSE_VERSION);
                // The report at the end reports write errors.
                let _ = emit(&view, Path::new(&launch.cwd), &texts(&run, &view), &file);
            }
        });
        Status { end, thread }
    }

    /// Stops reporting.
    fn end(self) {
        drop(self.end);
        // The thread ends with its channel; a panic in it was already printed.
        let _ = self.thread.join();
    }
}
