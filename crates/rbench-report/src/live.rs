//! The live state of a run ([`Live`]): built from the messages at rank 0, shown as a line for
//! `rbench watch` and as metrics.

use std::collections::{BTreeMap, VecDeque};

use rbench_core::coarse::CoarseLatency;
use rbench_core::timeline::{Bin, IntervalPart};
use rbench_core::{Nanos, Rank};

use crate::intervals::{IntervalOf, RowSoFar, relevant};
use crate::schema::{
    CURVE_MAX, FINISHED_MAX, HOSTS_MAX, LIVE_SCHEMA, LiveFigures, LiveFinished, LiveHost,
    LiveProgress, LiveResult, LiveRow, LiveState, NOTES_MAX,
};
use crate::{PhaseResult, RunResult, openmetrics};

mod cpus;

use cpus::Cpus;

/// Usual delay until all parts of an interval have reached rank 0.
const SETTLED: Nanos = Nanos(400_000_000);

/// A row and its last intervals.
#[derive(Debug, Clone)]
struct Row {
    so_far: RowSoFar,
    recent: Recent,
    /// The last interval with a report of this row.
    told: Option<u64>,
    /// Hosts' parts of later intervals. They count once the row's own part arrives, so that both
    /// cover the same intervals.
    waiting: Vec<(String, IntervalPart)>,
}

/// The last intervals, by number.
#[derive(Debug, Clone, Default)]
struct Recent(BTreeMap<u64, (Bin, CoarseLatency)>);

impl Recent {
    fn add(&mut self, part: &IntervalPart, times: &CoarseLatency) {
        let (bin, latency) = self.0.entry(part.number).or_default();
        bin.merge(part.bin);
        latency.merge(times);
        while self.0.len() > CURVE_MAX + 2 {
            self.0.pop_first();
        }
    }
}

impl Row {
    fn new(of: IntervalOf<'_>) -> Row {
        Row {
            so_far: RowSoFar::new(of),
            recent: Recent::default(),
            told: None,
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, part: &IntervalPart) {
        self.so_far.add(part);
        let times = relevant(&part.latencies, self.so_far.open_loop);
        self.recent.add(part, times);
        self.told = self.told.max(Some(part.number));
    }

    /// Removes the waiting parts of intervals that the row now has.
    fn take_waiting(&mut self) -> Vec<(String, IntervalPart)> {
        let told = self.told;
        let due = self
            .waiting
            .extract_if(.., |(_, part)| Some(part.number) <= told);
        due.collect()
    }
}

/// A host in the running phase: all rows together, and each row.
#[derive(Debug, Clone, Default)]
struct Host {
    all: Bin,
    times: CoarseLatency,
    recent: Recent,
    rows: BTreeMap<String, RowSoFar>,
}

/// The live state of a run.
#[derive(Debug, Clone, Default)]
pub struct Live {
    run: Option<RunResult>,
    state: LiveState,
    label: String,
    phase: bool,
    progress: Option<LiveProgress>,
    interval: Nanos,
    /// The last, shorter interval of a phase: its number and its length.
    shorter: Option<(u64, Nanos)>,
    rows: Vec<Row>,
    hosts: BTreeMap<String, Host>,
    first_error: Option<String>,
    notes: VecDeque<String>,
    failed: Option<String>,
    cpus: Cpus,
}

impl Live {
    /// Starts a run, or a cell of a series; forgets the previous one.
    pub fn run(&mut self, run: RunResult) {
        let again = self
            .run
            .as_ref()
            .is_some_and(|known| known.run.id == run.run.id);
        if !again {
            self.first_error = None;
            self.notes.clear();
            self.cpus = Cpus::default();
            self.leave();
        }
        self.run = Some(run);
    }

    /// Starts a phase, or work between phases.
    pub fn begin(&mut self, label: &str, phase: bool) {
        self.leave();
        label.clone_into(&mut self.label);
        self.phase = phase;
    }

    fn leave(&mut self) {
        self.progress = None;
        self.shorter = None;
        self.rows.clear();
        self.hosts.clear();
    }

    /// Updates the progress of the phase.
    pub fn progress(&mut self, progress: Option<LiveProgress>) {
        // Work between phases has no count.
        self.progress = progress.filter(|_| self.phase);
    }

    /// Adds a row to the phase that starts.
    pub fn row(&mut self, of: IntervalOf<'_>) {
        self.interval = of.interval;
        self.rows.push(Row::new(of));
        // A host that never reports must rank as the worst.
        let hosts = self.run.iter().flat_map(|run| &run.world.hosts);
        for host in hosts {
            self.hosts.entry(host.name.clone()).or_default();
        }
    }

    /// Adds a row's interval of this length, or a part of it; parts are summed.
    pub fn interval(&mut self, of: IntervalOf<'_>, length: Nanos, part: &IntervalPart) {
        self.interval = of.interval;
        if length < of.interval {
            self.shorter = Some((part.number, length));
        }
        let row = self.row_of(of);
        row.add(part);
        for (host, part) in row.take_waiting() {
            self.count_host(&host, of, &part);
        }
    }

    fn row_of(&mut self, of: IntervalOf<'_>) -> &mut Row {
        let known = |row: &Row| row.so_far.iteration == of.iteration && row.so_far.name == of.name;
        let place = self.rows.iter().position(known);
        let place = place.unwrap_or_else(|| {
            self.rows.push(Row::new(of));
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// Adds a host's interval of a row, or a part of it; parts are summed.
    pub fn of_host(&mut self, host: &str, of: IntervalOf<'_>, part: &IntervalPart) {
        let row = self.row_of(of);
        match row.told >= Some(part.number) {
            true => self.count_host(host, of, part),
            false => row.waiting.push((host.to_owned(), part.clone())),
        }
    }

    fn count_host(&mut self, host: &str, of: IntervalOf<'_>, part: &IntervalPart) {
        let host = self.hosts.entry(host.to_owned()).or_default();
        let times = relevant(&part.latencies, of.open_loop);
        host.all.merge(part.bin);
        host.times.merge(times);
        host.recent.add(part, times);
        let row = host.rows.entry(of.name.to_owned());
        row.or_insert_with(|| RowSoFar::new(of)).add(part);
    }

    /// Records the CPU time that a rank on this host and its file system's client have used by
    /// `now`, on any clock.
    pub fn used(
        &mut self,
        rank: Rank,
        host: &str,
        (tool, client): (Nanos, Option<Nanos>),
        now: Nanos,
    ) {
        self.cpus.used(rank, host, (tool, client), now);
    }

    /// Replaces a running row by its result.
    pub fn ended(&mut self, phase: PhaseResult) {
        self.rows
            .retain(|row| row.so_far.iteration != phase.iteration || row.so_far.name != phase.name);
        if self.rows.is_empty() {
            self.hosts.clear();
        }
        if let Some(run) = self.run.as_mut() {
            // Timelines and figures of ranks are only in the result file.
            run.phases.push(PhaseResult {
                timeline: Vec::new(),
                ranks: Vec::new(),
                ..phase
            });
        }
    }

    /// Adds a problem. `first_error`: it is the first failed operation.
    pub fn note(&mut self, text: String, first_error: bool) {
        if first_error && self.first_error.is_none() {
            self.first_error = Some(text);
            return;
        }
        self.notes.push_back(text);
        while self.notes.len() > NOTES_MAX {
            self.notes.pop_front();
        }
    }

    /// Records why the run ends early.
    pub fn fail(&mut self, why: String) {
        self.failed = Some(why);
    }

    /// Sets the state of the run.
    pub fn turn(&mut self, state: LiveState) {
        self.state = state;
    }

    /// The state of the run.
    pub fn state(&self) -> LiveState {
        self.state
    }

    /// Id of the run, for stop requests.
    pub fn run_id(&self) -> &str {
        self.run.as_ref().map_or("", |run| &run.run.id)
    }

    /// Time since the common start.
    fn elapsed(&self) -> Nanos {
        let s = self.progress.map_or(0.0, |progress| progress.elapsed_s);
        Nanos((s * 1e9) as u64)
    }

    /// The last interval that is usually complete.
    fn last(&self) -> Option<u64> {
        if self.interval == Nanos(0) {
            return None;
        }
        let over = self.elapsed().since(SETTLED).0 / self.interval.0;
        let reported = self
            .rows
            .iter()
            .filter_map(|row| row.recent.0.keys().next_back());
        // Reported intervals have ended, even if the elapsed time arrives late.
        let reported = reported.copied().max();
        over.checked_sub(1).max(reported)
    }

    /// The state for viewers.
    pub fn snapshot(&self) -> LiveResult {
        let run = self.run.as_ref();
        let last = self.last();
        let of_run = |of: fn(&RunResult) -> String| run.map(of).unwrap_or_default();
        LiveResult {
            schema: LIVE_SCHEMA.to_owned(),
            run: of_run(|run| run.run.id.clone()),
            command: run.map_or_else(Vec::new, |run| run.run.command.clone()),
            target: of_run(|run| run.target.path.clone()),
            fs_type: run.and_then(|run| run.target.fs_type.clone()),
            ranks: run.map_or(0, |run| run.world.ranks),
            hosts_total: run.map_or(0, |run| run.world.hosts.len() as u64),
            state: self.state,
            label: self.label.clone(),
            phase: self.phase,
            progress: self.progress,
            interval_s: self.interval.as_secs_f64(),
            rows: self.rows.iter().map(|row| self.shown(row, last)).collect(),
            hosts: self.worst_hosts(last),
            finished: run.map_or_else(Vec::new, finished),
            first_error: self.first_error.clone(),
            notes: self.notes.iter().cloned().collect(),
            failed: self.failed.clone(),
            tool_cpus: self.cpus.tool(None),
            client_cpus: self.cpus.client(None),
        }
    }

    /// The state as OpenMetrics text: metrics of finished rows and of running ones.
    pub fn metrics(&self) -> String {
        let result = self.run.clone().map(|mut run| {
            run.complete = false;
            run.phases
                .extend(self.rows.iter().filter_map(|row| self.phase_of(row)));
            run
        });
        openmetrics::render_live(result.as_slice(), &self.snapshot())
    }

    /// The row of a running phase, with its hosts.
    fn phase_of(&self, row: &Row) -> Option<PhaseResult> {
        let over = self.over();
        let mut outcome = row.so_far.outcome(over)?;
        let hosts = self.hosts.iter();
        let hosts = hosts.filter_map(|(name, host)| Some((name, host.rows.get(&row.so_far.name)?)));
        outcome.hosts = hosts.map(|(name, row)| row.of_host(name, over)).collect();
        Some(row.so_far.result(&outcome, &[]))
    }

    /// End of the time range that is complete.
    fn over(&self) -> Nanos {
        let intervals = self.last().map_or(0, |last| last.saturating_add(1));
        Nanos(self.interval.0.saturating_mul(intervals)).min(self.elapsed())
    }

    fn shown(&self, row: &Row, last: Option<u64>) -> LiveRow {
        let Row { so_far, recent, .. } = row;
        let curve = |last: u64| (last + 1).saturating_sub(CURVE_MAX as u64)..=last;
        let curve = last.map(curve).into_iter().flatten();
        let each = curve.map(|number| self.in_interval(recent, Some(number)));
        let each: Vec<LiveFigures> = each.collect();
        LiveRow {
            name: so_far.name.clone(),
            label: so_far.label.clone(),
            response: so_far.open_loop,
            last: self.in_interval(recent, last),
            all: figures(
                &so_far.all,
                so_far.times(),
                so_far.all.last.max(self.over()),
            ),
            longest_gap_s: so_far
                .longest_gap(self.elapsed().since(SETTLED))
                .map(|gap| gap.length.as_secs_f64()),
            rates: each.iter().map(|figures| figures.rate).collect(),
            p99s_ns: each.iter().map(|figures| figures.p99_ns).collect(),
        }
    }

    fn in_interval(&self, recent: &Recent, number: Option<u64>) -> LiveFigures {
        let shorter = self.shorter.filter(|(shorter, _)| Some(*shorter) == number);
        let length = shorter.map_or(self.interval, |(_, length)| length);
        match number.and_then(|number| recent.0.get(&number)) {
            Some((bin, latency)) => figures(bin, latency, length),
            None => figures(&Bin::default(), &CoarseLatency::default(), length),
        }
    }

    /// The hosts with the longest waits first: the 99th percentile of the last interval, or a
    /// silence longer than an interval.
    fn worst_hosts(&self, last: Option<u64>) -> Vec<LiveHost> {
        let known = self.elapsed().since(SETTLED);
        let host = |(name, host): (&String, &Host)| LiveHost {
            host: name.clone(),
            last: self.in_interval(&host.recent, last),
            all: figures(&host.all, &host.times, host.all.last.max(self.over())),
            silent_s: known.since(host.all.last).as_secs_f64(),
            tool_cpus: self.cpus.tool(Some(name)),
            client_cpus: self.cpus.client(Some(name)),
        };
        let mut hosts: Vec<LiveHost> = self.hosts.iter().map(host).collect();
        let interval_s = self.interval.as_secs_f64();
        let waits = |host: &LiveHost| {
            let silent = Some(host.silent_s).filter(|silent| *silent > interval_s);
            (host.last.p99_ns as f64 / 1e9).max(silent.unwrap_or(0.0))
        };
        hosts.sort_by(|a, b| waits(b).total_cmp(&waits(a)));
        hosts.truncate(HOSTS_MAX);
        hosts
    }
}

fn figures(bin: &Bin, times: &CoarseLatency, over: Nanos) -> LiveFigures {
    let per_second = |amount: u64| match over {
        Nanos(0) => 0.0,
        over => amount as f64 / over.as_secs_f64(),
    };
    let quantile = |quantile: f64| match times.is_empty() {
        true => 0,
        false => times.quantile(quantile).0,
    };
    LiveFigures {
        items: bin.items,
        errors: bin.errors,
        rate: per_second(bin.items),
        bandwidth: per_second(bin.bytes),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
        max_ns: times.max().0,
    }
}

/// The rows that ended last.
fn finished(run: &RunResult) -> Vec<LiveFinished> {
    let first = run.phases.len().saturating_sub(FINISHED_MAX);
    let row = |phase: &PhaseResult| {
        let response = phase.latency.response.as_ref();
        let hist = response.unwrap_or(&phase.latency.service);
        LiveFinished {
            iteration: phase.iteration,
            name: phase.name.clone(),
            label: phase.label.clone(),
            complete: phase.complete,
            response: response.is_some(),
            one_each: phase.one_each,
            all: LiveFigures {
                items: phase.items,
                errors: phase.error_count(),
                rate: phase.rate,
                bandwidth: phase.bandwidth.unwrap_or(0.0),
                p50_ns: hist.p50_ns,
                p99_ns: hist.p99_ns,
                p999_ns: hist.p999_ns,
                max_ns: hist.max_ns,
            },
            longest_gap_s: phase.longest_gap.as_ref().map(|gap| gap.length_s),
            cache: phase.residency.as_ref().map(|found| found.verdict.clone()),
        }
    };
    run.phases[first..].iter().map(row).collect()
}
