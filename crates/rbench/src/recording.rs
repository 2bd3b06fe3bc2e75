//! Records what a run yields as soon as it is known: rows in the result and its
//! journal, data of a single rank in that rank's files.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rbench_cli::{Output, Progress};
use rbench_comm::Clocks;
use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::machine::HostUse;
use rbench_core::outcome::{CommonStart, Details, PhaseOutcome, ReplayTotals};
use rbench_core::timeline::IntervalPart;
use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use rbench_exec::group::PhaseHooks;
use rbench_exec::intervals::{IntervalRow, Observer, Span};
use rbench_exec::mounts::Mounts;
use rbench_exec::{ExecError, Group, Listener, RunEnd};
use rbench_report::intervals::IntervalLine;
use rbench_report::schema::{ClientCounters, PhaseMark, Warning};
use rbench_report::{PhaseResult, journal, repetition};

use crate::console::complain;
use crate::data_size;
use crate::dead_mounts;
use crate::files::{OVERWRITE, Replace, ResultFile, SharedFile, out_is_free};
use crate::front::{Done, FrontEnd, Scope};
use crate::hlog::{self, IntervalLog};
use crate::launch::Launch;
use crate::live::{self, Feed};
use crate::marks::{MarkList, MarkRecorder, not_run};
use crate::progress::Display;
use crate::publish::{LEFT_BEHIND, publish};
use crate::report::{Report, SharedLog, Sink};
use crate::result::{Frame, note_drifts};
use crate::trouble::note_trouble;

/// The warning of a command of `--after-phase` that failed.
const AFTER_PHASE_FAILED: &str = "after-phase-failed";

/// Time for which commands of `--event` may go on when all phases are over.
const COMMANDS_TURN: Duration = Duration::from_secs(10);

/// The run and where its results go.
pub struct Job<'j> {
    /// The plan, and how it was launched.
    pub scope: Scope<'j>,
    /// Destination of the results.
    pub output: &'j Output,
    /// The front end of its command line.
    pub front: Box<dyn FrontEnd>,
    /// The series that takes the result, if the run is a cell of one.
    pub cell: Option<Sink>,
    /// To who watches.
    pub feed: Feed,
}

/// Writes the intervals of the phase that runs to the journal and to the log, and tells who
/// watches.
struct Written {
    file: SharedFile,
    log: SharedLog,
    watched: Option<Feed>,
}

impl Observer for Written {
    fn interval(&self, row: &IntervalRow, span: Span, part: &IntervalPart) {
        let of = live::interval_of(row, span.interval);
        if let Some(file) = self.file.borrow_mut().as_mut() {
            // The whole row follows at the end of the phase, and says so if it cannot be
            // written either.
            let _ = file.note(&journal::interval_line(&IntervalLine::of(of, part)));
        }
        if let Some(log) = self.log.borrow_mut().as_mut() {
            log.add(row, span, part);
        }
        if let Some(watched) = &self.watched {
            watched.interval(row, span, part);
        }
    }

    fn begun(&self, rows: &[IntervalRow], interval: Nanos) {
        if let Some(watched) = &self.watched {
            watched.begun(rows, interval);
        }
    }

    fn of_host(&self, host: &str, row: &IntervalRow, interval: Nanos, part: &IntervalPart) {
        if let Some(watched) = &self.watched {
            watched.of_host(host, row, interval, part);
        }
    }

    fn used(&self, rank: Rank, host: &str, tool: Nanos, client: Option<Nanos>) {
        if let Some(watched) = &self.watched {
            watched.used(rank, host, tool, client);
        }
    }
}

/// Records what a run yields on one rank.
pub struct Recording<'r> {
    scope: Scope<'r>,
    display: &'r Display,
    feed: Feed,
    frame: &'r Frame<'r>,
    output: &'r Output,
    rank: Rank,
    host: &'r str,
    report: Report,
    /// The common start of each phase of the result.
    starts: Vec<Option<CommonStart>>,
    /// Notes from before the start of the result, each once.
    noted: Vec<Warning>,
    /// At rank 0: the marks until now.
    marks: Rc<MarkList>,
    /// Mounts that no longer answer, as the group knows of them.
    mounts: Rc<Mounts>,
    /// The commands around phases, and their errors.
    hooks: Rc<PhaseHooks>,
    begun: Nanos,
}

impl<'r> Recording<'r> {
    /// Nothing yet.
    pub fn new(
        frame: &'r Frame<'r>,
        job: Job<'r>,
        display: &'r Display,
        group: &'r Group<'_>,
    ) -> Recording<'r> {
        let Job {
            scope,
            output,
            front,
            cell,
            feed,
        } = job;
        let run = frame.result(true);
        feed.tell(move |live| live.run(run));
        Recording {
            scope,
            display,
            feed,
            frame,
            output,
            rank: group.rank(),
            host: group.host_name(),
            report: Report {
                result: frame.result(true),
                file: SharedFile::default(),
                log: SharedLog::default(),
                front,
                jobs: Vec::new(),
                trouble: None,
                kept: None,
                begun: false,
                broken: None,
                published: None,
                cell,
                signalled: false,
            },
            starts: Vec::new(),
            noted: Vec::new(),
            marks: Rc::default(),
            mounts: Rc::clone(&group.probes.mounts),
            hooks: Rc::clone(&group.probes.hooks),
            begun: MonotonicClock.now(),
        }
    }

    /// From now on takes the intervals of phases that run, if somebody wants them, and the
    /// marks.
    pub fn observe(&self, group: &Group<'_>) {
        let file = || Rc::clone(&self.report.file);
        let looked_on = self.output.serve.at.is_some() || self.output.progress == Progress::Live;
        if looked_on {
            group.probes.intervals.looked_on.set(true);
        }
        if self.output.out.is_some() || self.output.hlog.is_some() || looked_on {
            let written = || -> Rc<dyn Observer> {
                Rc::new(Written {
                    file: file(),
                    log: Rc::clone(&self.report.log),
                    watched: self.feed.if_heard(),
                })
            };
            group
                .probes
                .intervals
                .observe(group.is_root().then(written));
        }
        if group.is_root() {
            let recorder = MarkRecorder {
                list: Rc::clone(&self.marks),
                file: file(),
            };
            group
                .probes
                .marks
                .observe(&self.output.events, Rc::new(recorder));
        }
    }

    /// Adds what is known of the clocks at the end: how they drifted, and how
    /// exact the common starts were.
    pub fn settle_clocks(&mut self, clocks: &Clocks) {
        note_drifts(&mut self.report.result, clocks);
        for (phase, start) in self.report.result.phases.iter_mut().zip(&self.starts) {
            let missed_by = start.map(|start| clocks.missed_by(start.at));
            phase.start_error_s = missed_by.map(|by| by.as_secs_f64());
        }
    }

    /// Destination of the results.
    pub fn output(&self) -> &'r Output {
        self.output
    }

    /// Adds what the file system's clients counted.
    pub fn clients(&mut self, counters: Vec<ClientCounters>) {
        self.report.result.client_counters = counters;
    }

    /// Ends what commands of `--event` have started, and adds what is known of them; if the
    /// run has come to its own end, they may come to theirs.
    pub async fn end_commands(&mut self, group: &Group<'_>, well: bool) {
        let patience = match group.stop_reason() {
            None if well => COMMANDS_TURN,
            _ => Duration::ZERO,
        };
        group.end_commands(patience).await;
        let mut found = self.marks.warnings();
        let result = &mut self.report.result;
        found.retain(|warning| !result.warnings.contains(warning));
        if self.report.published.is_some() {
            // Failed commands only: after an interrupt, those that never started are expected.
            let complaints = found.iter().map(|warning| &warning.message);
            complaints.for_each(|message| complain(message));
            return;
        }
        result.warnings.extend(found);
        result
            .warnings
            .extend(not_run(&group.probes.marks.not_started()));
        result.marks = self.marks.all();
    }

    /// Adds what went wrong with commands after phases.
    fn note_hooks(&mut self) {
        let failed = self.hooks.warnings.take().into_iter();
        let failed = failed.map(|text| Warning::new(AFTER_PHASE_FAILED, format!("{text}.")));
        // Phases of several iterations fail alike.
        for warning in failed {
            if !self.report.result.warnings.contains(&warning) {
                self.report.result.warnings.push(warning);
            }
        }
    }

    /// Adds how much data each host has read.
    fn note_data_sizes(&mut self) {
        let result = &mut self.report.result;
        data_size::note(self.scope.plan, &self.frame.data_sizes, result);
    }

    /// Nothing more will be measured.
    pub fn ended(&mut self) {
        self.report.front.end();
    }

    /// The report of the run after this outcome.
    pub fn end(mut self, outcome: Result<RunEnd, ExecError>) -> Report {
        self.note_hooks();
        if self.report.published.is_none() {
            self.note_data_sizes();
        }
        let mut report = self.report;
        report.result.dead_mounts = dead_mounts::results(self.mounts.found());
        match outcome {
            Ok(ending) => {
                report.kept = ending.kept;
                report.result.complete = ending.complete;
                if report.published.is_some() {
                    ending.left.iter().for_each(|left| complain(left));
                }
                let left = ending.left.into_iter();
                let left = left.map(|left| Warning::new(LEFT_BEHIND, left));
                report.result.warnings.extend(left);
                report.broken = ending.trouble.map(ExecError::SetUp);
            }
            Err(error) => report.broken = Some(error),
        }
        report
    }
}

/// Existing files that the outputs of a run may replace.
fn may_replace(output: &Output, launch: &Launch) -> Replace {
    let command = launch.argv.get(1);
    match output.overwrite {
        true => Replace::Ours,
        false if command.is_some_and(|word| word == "fio") => {
            Replace::Nothing("--rbench-overwrite")
        }
        false => Replace::Nothing(OVERWRITE),
    }
}

/// Checks before a run that its result and its log can be written.
///
/// # Errors
/// One sentence that names the file.
pub fn outputs_are_free(output: &Output, launch: &Launch) -> Result<(), String> {
    let replace = may_replace(output, launch);
    let place = |file: &PathBuf| Path::new(&launch.cwd).join(file);
    if let Some(out) = &output.out {
        out_is_free(&place(out), replace)?;
    }
    match &output.hlog {
        Some(log) => hlog::is_free(&place(log), replace),
        None => Ok(()),
    }
}

impl Listener for Recording<'_> {
    fn begun(&mut self, shared: bool) -> Result<(), String> {
        self.begun = MonotonicClock.now();
        self.report.result = self.frame.result(shared);
        self.report
            .result
            .warnings
            .extend(self.noted.iter().cloned());
        let run = self.report.result.clone();
        self.feed.tell(move |live| live.run(run));
        let report = &mut self.report;
        let done = Done {
            result: &report.result,
            jobs: &[],
        };
        report.result.forms = report.front.forms(self.scope, done);
        let place = |file: &PathBuf| Path::new(&self.scope.launch.cwd).join(file);
        let replace = may_replace(self.output, self.scope.launch);
        if let Some(out) = &self.output.out {
            let path = place(out);
            let header = journal::header_line(&self.report.result);
            *self.report.file.borrow_mut() = Some(ResultFile::begin(&path, &header, replace)?);
        }
        if let Some(log) = &self.output.hlog {
            let log = IntervalLog::begin(&place(log), &self.scope.launch.run_id, replace)?;
            *self.report.log.borrow_mut() = Some(log);
        }
        self.report.begun = true;
        Ok(())
    }

    fn warning(&mut self, code: &'static str, message: String) {
        let warning = Warning::new(code, message);
        // A repeated phase finds the same.
        if !self.noted.contains(&warning) {
            self.noted.push(warning.clone());
            self.report.result.warnings.push(warning);
        }
    }

    fn row(&mut self, outcome: PhaseOutcome) {
        let marks = PhaseMark::of(&self.marks.all(), outcome.iteration, &outcome.name);
        let phase = PhaseResult::with_marks(&outcome, &marks);
        let line = journal::phase_line(&phase);
        if let Some(file) = self.report.file.borrow_mut().as_mut() {
            note_trouble(&mut self.report.trouble, file.append(&line));
        }
        let row = phase.clone();
        self.feed.tell(move |live| live.ended(row));
        self.report.result.phases.push(phase);
        self.note_hooks();
        self.starts.push(outcome.start);
    }

    fn another(&mut self) -> bool {
        let elapsed = MonotonicClock.now().since(self.begun);
        !repetition::enough(&mut self.report.result, elapsed)
    }

    /// The report first: a user who interrupts may not wait until a large tree is removed.
    fn stopped(&mut self) {
        self.display.end();
        self.report.signalled = true;
        self.report.result.marks = self.marks.all();
        self.report.result.dead_mounts = dead_mounts::results(self.mounts.found());
        self.report.result.warnings.extend(self.marks.warnings());
        self.note_data_sizes();
        publish(&mut self.report, self.scope, self.output);
    }

    fn jobs(&mut self, outcomes: Vec<JobOutcome>) {
        let report = &mut self.report;
        if let Some(file) = report.file.borrow_mut().as_mut() {
            let (result, jobs) = (&report.result, outcomes.as_slice());
            if let Some(line) = report.front.journal_line(self.scope, Done { result, jobs }) {
                note_trouble(&mut report.trouble, file.append(&line));
            }
        }
        self.report.jobs.extend(outcomes);
    }

    fn machine(&mut self, hosts: Vec<HostUse>) {
        self.report.front.machine(hosts);
    }

    fn replayed(&mut self, totals: ReplayTotals) {
        self.report.result.replays.push(totals);
    }

    fn job_logs(&mut self, logs: Vec<JobLog>) {
        let written = self.report.front.job_logs(self.scope, &logs);
        note_trouble(&mut self.report.trouble, written);
    }

    fn details(&mut self, iteration: u32, rows: &[&str], details: Details) {
        for failure in &details.damaged {
            complain(&format!("rank {} on {}: {failure}", self.rank.0, self.host));
        }
        let logged = self.report.front.log(iteration, rows, &details.operations);
        note_trouble(&mut self.report.trouble, logged);
    }
}
