//! Tidy tables: one row an operation, a host, a rank, an interval or a mark; columns are
//! named as the fields of the result file, so that a table needs no explanation
//! of its own. What is unknown is empty.

use rbench_core::plain::cell;

use crate::figures;
use crate::hist::Hist;
use crate::schema::{MarkResult, PhaseResult, RunResult};

/// One row for each operation of each phase and iteration.
pub fn operations(results: &[RunResult]) -> String {
    let mut table = Table::new(&[
        "run",
        "started",
        "labels",
        "target",
        "ranks",
        "hosts",
        "iteration",
        "name",
        "label",
        "op",
        "complete",
        "items",
        "bytes",
        "errors",
        "unissued",
        "missed",
        "elapsed_s",
        "rate",
        "bandwidth",
        "first_done_rate",
        "start_skew_s",
        "busy",
        "cache",
        "client_cpu_s",
        "client_cpu_us_per_operation",
    ]);
    table.distribution("service");
    table.distribution("response");
    for result in results {
        for phase in &result.phases {
            table.row(operation(result, phase));
        }
    }
    table.finish()
}

fn operation(result: &RunResult, phase: &PhaseResult) -> Vec<String> {
    let run = &result.run;
    let labels = run
        .labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let mut cells = vec![
        run.id.clone(),
        run.started.clone(),
        labels.collect::<Vec<_>>().join(" "),
        result.target.path.clone(),
        result.world.ranks.to_string(),
        result.world.hosts.len().to_string(),
        phase.iteration.to_string(),
        phase.name.clone(),
        phase.label.clone(),
        phase.op.clone(),
        phase.complete.to_string(),
        phase.items.to_string(),
        phase.bytes.to_string(),
        phase.error_count().to_string(),
        phase.unissued.to_string(),
        phase.missed.to_string(),
        phase.elapsed_s.to_string(),
        // Single operations have a time and no rate.
        some((!phase.one_each).then_some(phase.rate)),
        some(phase.bandwidth),
        some(phase.first_done.as_ref().map(|first| first.rate)),
        phase.start_skew_s.to_string(),
        some(phase.busy),
        figures::verdict(phase).unwrap_or_default(),
        some(phase.client.as_ref().and_then(|client| client.cpu_s)),
        some(
            phase
                .client
                .as_ref()
                .and_then(|client| client.cpu_us_per_operation),
        ),
    ];
    cells.extend(distribution(Some(&phase.latency.service)));
    cells.extend(distribution(phase.latency.response.as_ref()));
    cells
}

/// One row for each host of each operation.
pub fn hosts(results: &[RunResult]) -> String {
    let mut table = Table::new(&[
        "run",
        "iteration",
        "name",
        "host",
        "items",
        "bytes",
        "errors",
        "elapsed_s",
        "rate",
        "client_cpu_s",
        "client_resident_bytes",
    ]);
    table.distribution("service");
    table.distribution("response");
    for (result, phase) in phases(results) {
        for host in &phase.hosts {
            let mut cells = key(result, phase);
            cells.extend([
                host.host.clone(),
                host.items.to_string(),
                host.bytes.to_string(),
                host.errors.to_string(),
                host.elapsed_s.to_string(),
                some((!phase.one_each).then(|| host.rate())),
            ]);
            let client = phase.client.as_ref();
            let client = client.and_then(|c| c.hosts.iter().find(|one| one.host == host.host));
            cells.extend([
                some(client.and_then(|one| one.cpu_s)),
                some(client.and_then(|one| one.resident_bytes)),
            ]);
            cells.extend(distribution(Some(&host.latency)));
            cells.extend(distribution(host.response.as_ref()));
            table.row(cells);
        }
    }
    table.finish()
}

/// One row for each rank of each operation; of very many ranks those that the
/// result file has.
pub fn ranks(results: &[RunResult]) -> String {
    let mut table = Table::new(&[
        "run",
        "iteration",
        "name",
        "rank",
        "host",
        "items",
        "errors",
        "elapsed_s",
        "p50_ns",
        "p99_ns",
        "max_ns",
        "cpu_s",
    ]);
    for (result, phase) in phases(results) {
        for rank in &phase.ranks {
            let mut cells = key(result, phase);
            cells.extend([
                rank.rank.to_string(),
                rank.host.clone(),
                rank.items.to_string(),
                rank.errors.to_string(),
                rank.elapsed_s.to_string(),
                rank.p50_ns.to_string(),
                rank.p99_ns.to_string(),
                rank.max_ns.to_string(),
                rank.cpu_s.to_string(),
            ]);
            table.row(cells);
        }
    }
    table.finish()
}

/// One row for each slice of the timeline of each operation.
pub fn intervals(results: &[RunResult]) -> String {
    let mut table = Table::new(&[
        "run",
        "iteration",
        "name",
        "t_s",
        "step_s",
        "items",
        "bytes",
        "errors",
        "service_p50_ns",
        "service_p99_ns",
        "service_max_ns",
        "response_p50_ns",
        "response_p99_ns",
        "response_max_ns",
    ]);
    for (result, phase) in phases(results) {
        for row in &phase.timeline {
            let mut cells = key(result, phase);
            let done = |ns: u64| some((row.items > 0).then_some(ns));
            let response = row.response.filter(|_| row.items > 0);
            cells.extend([
                row.t_s.to_string(),
                phase.timeline_step_s.to_string(),
                row.items.to_string(),
                row.bytes.to_string(),
                row.errors.to_string(),
                done(row.p50_ns),
                done(row.p99_ns),
                done(row.max_ns),
                some(response.map(|times| times.p50_ns)),
                some(response.map(|times| times.p99_ns)),
                some(response.map(|times| times.max_ns)),
            ]);
            table.row(cells);
        }
    }
    table.finish()
}

/// One row for each mark of each operation; of a mark outside of all phases one.
pub fn marks(results: &[RunResult]) -> String {
    let mut table = Table::new(&[
        "run",
        "iteration",
        "name",
        "mark",
        "at",
        "t_s",
        "gap_s",
        "gap_from_s",
        "gap_rank",
        "gap_host",
        "standstill_s",
        "standstill_from_s",
        "empty_share",
        "interval_s",
        "intervals_before",
        "p99_before_ns",
        "intervals_after",
        "recovered_s",
        "command",
        "command_took_s",
        "command_status",
        "command_signal",
    ]);
    for result in results {
        for mark in &result.marks {
            let rows = result
                .phases
                .iter()
                .filter(|phase| mark.is_in(phase.iteration, &phase.name));
            let mut rows = rows.map(Some).collect::<Vec<Option<&PhaseResult>>>();
            if mark.rows.is_empty() {
                rows.push(None);
            }
            for phase in rows {
                table.row(of_mark(result, mark, phase));
            }
        }
    }
    table.finish()
}

fn of_mark(result: &RunResult, mark: &MarkResult, phase: Option<&PhaseResult>) -> Vec<String> {
    let mut cells = match phase {
        Some(phase) => key(result, phase),
        None => vec![result.run.id.clone(), String::new(), String::new()],
    };
    let cost = phase.and_then(|phase| phase.marks.iter().find(|cost| cost.name == mark.name));
    let gap = cost.and_then(|cost| cost.longest_gap.as_ref());
    let standstill = cost.and_then(|cost| cost.standstill);
    let command = mark.command.as_ref();
    cells.extend([
        mark.name.clone(),
        mark.at.clone(),
        some(mark.t_s),
        some(gap.map(|gap| gap.length_s)),
        some(gap.map(|gap| gap.from_s)),
        some(gap.and_then(|gap| gap.rank)),
        some(gap.map(|gap| &gap.host)),
        some(standstill.map(|still| still.length_s)),
        some(standstill.map(|still| still.from_s)),
        some(cost.and(phase).and_then(|phase| phase.empty_share)),
        some(cost.map(|cost| cost.interval_s)),
        some(cost.map(|cost| cost.intervals_before)),
        some(cost.and_then(|cost| cost.p99_before_ns)),
        some(cost.map(|cost| cost.intervals_after)),
        some(cost.and_then(|cost| cost.recovered_s)),
        some(command.map(|command| &command.command)),
        some(command.and_then(|command| command.took_s)),
        some(command.and_then(|command| command.status)),
        some(command.and_then(|command| command.signal)),
    ]);
    cells
}

fn phases(results: &[RunResult]) -> impl Iterator<Item = (&RunResult, &PhaseResult)> {
    let of = |result| move |phase| (result, phase);
    let all = results.iter();
    all.flat_map(move |result| result.phases.iter().map(of(result)))
}

/// What says to which operation a row belongs.
fn key(result: &RunResult, phase: &PhaseResult) -> Vec<String> {
    vec![
        result.run.id.clone(),
        phase.iteration.to_string(),
        phase.name.clone(),
    ]
}

fn some<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The columns of a distribution.
const COLUMNS: [&str; 11] = [
    "count",
    "min_ns",
    "mean_ns",
    "stddev_ns",
    "p50_ns",
    "p90_ns",
    "p95_ns",
    "p99_ns",
    "p999_ns",
    "p9999_ns",
    "max_ns",
];

fn distribution(hist: Option<&Hist>) -> Vec<String> {
    let Some(hist) = hist else {
        return vec![String::new(); COLUMNS.len()];
    };
    if hist.count == 0 {
        let mut cells = vec![String::new(); COLUMNS.len()];
        cells[0] = "0".to_owned();
        return cells;
    }
    vec![
        hist.count.to_string(),
        hist.min_ns.to_string(),
        hist.mean_ns.to_string(),
        hist.stddev_ns.to_string(),
        hist.p50_ns.to_string(),
        hist.p90_ns.to_string(),
        hist.p95_ns.to_string(),
        hist.p99_ns.to_string(),
        hist.p999_ns.to_string(),
        hist.p9999_ns.to_string(),
        hist.max_ns.to_string(),
    ]
}

struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(columns: &[&str]) -> Table {
        Table {
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds the columns of a distribution.
    fn distribution(&mut self, of: &str) {
        let names = COLUMNS.iter().map(|name| format!("{of}_{name}"));
        self.columns.extend(names);
    }

    fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    fn finish(self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            let cells = row.iter().map(|text| cell(text).into_owned());
            writer
                .write_record(cells)
                .expect("every row has as many cells, and memory takes them");
        }
        let bytes = writer.into_inner().expect("memory takes it");
        String::from_utf8(bytes).expect("the cells are text")
    }
}
