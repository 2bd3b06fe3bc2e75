//! Tidy tables: one row for each operation, host, rank, interval or mark. Columns are named like
//! the fields of the result file, so that tables need no explanation. Unknown values are empty.

use rbench_core::hist::Hist;
use rbench_core::outcome::RankOutcome;
use rbench_core::plain::cell;

use crate::figures::{self, Output, QUANTITIES, Read, Value};
use crate::schema::{
    GapResult, HostClientResult, HostResult, MarkCommand, MarkCost, MarkResult, PhaseResult,
    RunResult, TimelineRow,
};

/// Adds columns to those of such rows: name and cell.
macro_rules! columns {
    ($columns:ident: $row:ty; $($name:literal => $cell:expr),* $(,)?) => {
        $columns.extend([$(column::<$row, _>($name, $cell)),*])
    };
}

/// One row for each operation of each phase and iteration.
pub fn operations(results: &[RunResult]) -> String {
    let mut columns = Vec::new();
    columns! { columns: Phase<'_>;
        "run" => |row| row.run.run.id.clone(),
        "started" => |row| row.run.run.started.clone(),
        "labels" => |row| labels(row.run),
        "target" => |row| row.run.target.path.clone(),
        "ranks" => |row| row.run.world.ranks,
        "hosts" => |row| row.run.world.hosts.len(),
        "iteration" => |row| row.phase.iteration,
        "name" => |row| row.phase.name.clone(),
        "label" => |row| row.phase.label.clone(),
        "op" => |row| row.phase.op.clone(),
        "complete" => |row| row.phase.complete,
    }
    for (figure, name) in figures::listed(Output::Csv) {
        match figure.read {
            Read::Times(read) => {
                columns.extend(times(name, move |row: &Phase<'_>| read(row.phase)))
            }
            _ => columns.push(column(name, |row: &Phase<'_>| match figure.of(row.phase) {
                Some(Value::Count(n)) => n.to_string(),
                Some(Value::Number(number)) => number.to_string(),
                Some(Value::Word(word)) => word,
                _ => String::new(),
            })),
        }
    }
    table(&columns, phases(results))
}

fn labels(result: &RunResult) -> String {
    let labels = result.run.labels.iter();
    let labels = labels.map(|(name, value)| format!("{name}={value}"));
    labels.collect::<Vec<_>>().join(" ")
}

/// One row for each host of each operation.
pub fn hosts(results: &[RunResult]) -> String {
    type Host<'r> = (Phase<'r>, &'r HostResult, Option<&'r HostClientResult>);
    let mut columns = keys(|row: &Host<'_>| row.0);
    columns! { columns: Host<'_>;
        "host" => |row| row.1.host.clone(),
        "items" => |row| row.1.items,
        "bytes" => |row| row.1.bytes,
        "errors" => |row| row.1.errors,
        "elapsed_s" => |row| row.1.elapsed_s,
        "rate" => |row| some((!row.0.phase.one_each).then(|| row.1.rate())),
        "client_cpu_s" => |row| some(row.2.and_then(|one| one.cpu_s)),
        "client_resident_bytes" => |row| some(row.2.and_then(|one| one.resident_bytes)),
    }
    columns.extend(times("service", |row: &Host<'_>| Some(&row.1.latency)));
    columns.extend(times("response", |row: &Host<'_>| row.1.response.as_ref()));
    columns! { columns: Host<'_>;
        "longest_gap_s" => |row| some(row.1.longest_gap.as_ref().map(|gap| gap.length_s)),
        "longest_gap_from_s" => |row| some(row.1.longest_gap.as_ref().map(|gap| gap.from_s)),
    }
    let rows = phases(results).flat_map(|row| {
        row.phase.hosts.iter().map(move |host| {
            let client = row.phase.client.as_ref();
            let client = client.and_then(|c| c.hosts.iter().find(|one| one.host == host.host));
            (row, host, client)
        })
    });
    table(&columns, rows)
}

/// One row for each rank of each operation; of very many ranks only those in the result file.
pub fn ranks(results: &[RunResult]) -> String {
    type Rank<'r> = (Phase<'r>, &'r RankOutcome);
    let mut columns = keys(|row: &Rank<'_>| row.0);
    columns! { columns: Rank<'_>;
        "rank" => |row| row.1.rank,
        "host" => |row| row.1.host.clone(),
        "items" => |row| row.1.items,
        "errors" => |row| row.1.errors,
        "elapsed_s" => |row| row.1.elapsed.as_secs_f64(),
        "p50_ns" => |row| row.1.p50.0,
        "p99_ns" => |row| row.1.p99.0,
        "max_ns" => |row| row.1.max.0,
        "cpu_s" => |row| row.1.cpu.as_secs_f64(),
    }
    let rows = phases(results).flat_map(|row| row.phase.ranks.iter().map(move |rank| (row, rank)));
    table(&columns, rows)
}

/// One row for each slice of the timeline of each operation.
pub fn intervals(results: &[RunResult]) -> String {
    type Slice<'r> = (Phase<'r>, &'r TimelineRow);
    fn done<'r>(row: &Slice<'r>) -> Option<&'r TimelineRow> {
        Some(row.1).filter(|slice| slice.items > 0)
    }
    let mut columns = keys(|row: &Slice<'_>| row.0);
    columns! { columns: Slice<'_>;
        "t_s" => |row| row.1.t_s,
        "step_s" => |row| row.0.phase.timeline_step_s,
        "items" => |row| row.1.items,
        "bytes" => |row| row.1.bytes,
        "errors" => |row| row.1.errors,
        "service_p50_ns" => |row| some(done(row).map(|slice| slice.p50_ns)),
        "service_p99_ns" => |row| some(done(row).map(|slice| slice.p99_ns)),
        "service_max_ns" => |row| some(done(row).map(|slice| slice.max_ns)),
        "response_p50_ns" => |row| some(done(row).and_then(|slice| Some(slice.response?.p50_ns))),
        "response_p99_ns" => |row| some(done(row).and_then(|slice| Some(slice.response?.p99_ns))),
        "response_max_ns" => |row| some(done(row).and_then(|slice| Some(slice.response?.max_ns))),
    }
    let rows =
        phases(results).flat_map(|row| row.phase.timeline.iter().map(move |slice| (row, slice)));
    table(&columns, rows)
}

/// A mark, in a phase or outside of all.
struct Mark<'r> {
    run: &'r RunResult,
    mark: &'r MarkResult,
    phase: Option<&'r PhaseResult>,
}

impl<'r> Mark<'r> {
    /// Its cost to the phase.
    fn cost(&self) -> Option<&'r MarkCost> {
        let mut marks = self.phase?.marks.iter();
        marks.find(|cost| cost.name == self.mark.name)
    }

    fn gap(&self) -> Option<&'r GapResult> {
        self.cost()?.longest_gap.as_ref()
    }

    fn command(&self) -> Option<&'r MarkCommand> {
        self.mark.command.as_ref()
    }
}

/// One row for each mark of each operation, and one for a mark outside of all phases.
pub fn marks(results: &[RunResult]) -> String {
    let mut columns = Vec::new();
    columns! { columns: Mark<'_>;
        "run" => |row| row.run.run.id.clone(),
        "iteration" => |row| some(row.phase.map(|phase| phase.iteration)),
        "name" => |row| some(row.phase.map(|phase| &phase.name)),
        "mark" => |row| row.mark.name.clone(),
        "at" => |row| row.mark.at.clone(),
        "t_s" => |row| some(row.mark.t_s),
        "gap_s" => |row| some(row.gap().map(|gap| gap.length_s)),
        "gap_from_s" => |row| some(row.gap().map(|gap| gap.from_s)),
        "gap_rank" => |row| some(row.gap().and_then(|gap| gap.rank)),
        "gap_host" => |row| some(row.gap().map(|gap| &gap.host)),
        "standstill_s" => |row| some(row.cost().and_then(|cost| Some(cost.standstill?.length_s))),
        "standstill_from_s" => |row| some(row.cost().and_then(|cost| Some(cost.standstill?.from_s))),
        "empty_share" => |row| some(row.cost().and(row.phase).and_then(|phase| phase.empty_share)),
        "interval_s" => |row| some(row.cost().map(|cost| cost.interval_s)),
        "intervals_before" => |row| some(row.cost().map(|cost| cost.intervals_before)),
        "p99_before_ns" => |row| some(row.cost().and_then(|cost| cost.p99_before_ns)),
        "intervals_after" => |row| some(row.cost().map(|cost| cost.intervals_after)),
        "recovered_s" => |row| some(row.cost().and_then(|cost| cost.recovered_s)),
        "command" => |row| some(row.command().map(|one| &one.command)),
        "command_took_s" => |row| some(row.command().and_then(|one| one.took_s)),
        "command_status" => |row| some(row.command().and_then(|one| one.status)),
        "command_signal" => |row| some(row.command().and_then(|one| one.signal)),
    }
    let each = results
        .iter()
        .flat_map(|run| run.marks.iter().map(move |mark| (run, mark)));
    let rows = each.flat_map(|(run, mark)| {
        let phases = run.phases.iter();
        let phases = phases.filter(|phase| mark.is_in(phase.iteration, &phase.name));
        let outside = mark.rows.is_empty().then_some(None);
        let phases = phases.map(Some).chain(outside);
        phases.map(move |phase| Mark { run, mark, phase })
    });
    table(&columns, rows)
}

/// An operation of a run.
#[derive(Clone, Copy)]
struct Phase<'r> {
    run: &'r RunResult,
    phase: &'r PhaseResult,
}

fn phases(results: &[RunResult]) -> impl Iterator<Item = Phase<'_>> {
    let of = |run| move |phase| Phase { run, phase };
    results
        .iter()
        .flat_map(move |run| run.phases.iter().map(of(run)))
}

fn some<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A column of a table with a row for each `T`.
struct Column<'c, T> {
    name: String,
    cell: Box<dyn Fn(&T) -> String + 'c>,
}

fn column<'c, T, R: ToString>(
    name: impl Into<String>,
    cell: impl Fn(&T) -> R + 'c,
) -> Column<'c, T> {
    Column {
        name: name.into(),
        cell: Box::new(move |row| cell(row).to_string()),
    }
}

/// The columns that identify the operation of a row.
fn keys<'r, T: 'r>(of: fn(&T) -> Phase<'r>) -> Vec<Column<'r, T>> {
    vec![
        column("run", move |row| of(row).run.run.id.clone()),
        column("iteration", move |row| of(row).phase.iteration),
        column("name", move |row| of(row).phase.name.clone()),
    ]
}

/// The columns of a distribution.
fn times<'c, T>(
    prefix: &str,
    of: impl Fn(&T) -> Option<&Hist> + Copy + 'c,
) -> impl Iterator<Item = Column<'c, T>> {
    QUANTITIES.iter().map(move |quantity| {
        let cell = move |row: &T| match of(row) {
            // Without times there is nothing but their number.
            Some(hist) if hist.count > 0 || quantity.least == 0 => {
                (quantity.field)(hist).to_string()
            }
            _ => String::new(),
        };
        column(format!("{prefix}_{}", quantity.column), cell)
    })
}

fn table<T>(columns: &[Column<'_, T>], rows: impl Iterator<Item = T>) -> String {
    let titles = columns.iter().map(|column| column.name.clone()).collect();
    let rows = rows.map(|row| columns.iter().map(|column| (column.cell)(&row)).collect());
    written([titles].into_iter().chain(rows))
}

/// Writes rows of as many cells each. Escapes control characters, and what a spreadsheet would take
/// for a formula.
pub(crate) fn written(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for cells in rows {
        let cells = cells.iter().map(|text| cell(text).into_owned());
        writer
            .write_record(cells)
            .expect("every row has as many cells, and memory takes them");
    }
    let bytes = writer.into_inner().expect("memory takes it");
    String::from_utf8(bytes).expect("the cells are text")
}
