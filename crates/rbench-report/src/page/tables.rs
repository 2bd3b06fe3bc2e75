//! The tables of the page.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use maud::{Markup, html};
use rbench_core::outcome::RankOutcome;
use rbench_core::units::{human_bandwidth, human_count, human_nanos, human_rate};

use super::list;
use crate::figures::{Figure, Output, Row, about, quantity};
use crate::ops;
use crate::schema::{HostResult, PhaseResult, RunResult, SummaryRow};
use crate::summary::{BYTES_PER_S, OPS_PER_S, is_short};
use crate::table::{NONE, printable};
use crate::text::client::{Shared, of_phase, watched};
use crate::text::operations::{CELLS, lines, others as others_of};
use crate::text::{iterations, replay, time};
use crate::warnings::STRAGGLER_FACTOR;

/// All operations, like in the text report: with several iterations all of them together, rates
/// with their intervals, and each iteration in a fold.
pub fn operations(result: &RunResult) -> Markup {
    let one = |phase| Row::of(vec![phase]);
    if iterations(result) < 2 {
        return table(result, "Operation", result.phases.iter().map(one).collect());
    }
    let reached: BTreeSet<u32> = result.phases.iter().map(|phase| phase.iteration).collect();
    let rows = Row::all(result);
    let has_interval = |row: &Row<'_>| precision(result, row, OPS_PER_S).is_some();
    let known = !ops::is_table(result) && rows.iter().any(has_interval);
    html! {
        (table(result, "All iterations", rows))
        p.note {
            "Rates are means over the iterations" @if known { ", with the 95% confidence interval" }
            "; times are those of all operations together."
        }
        @for iteration in reached {
            @let phases = result.phases.iter().filter(|phase| phase.iteration == iteration);
            details {
                summary { "Iteration " (iteration.saturating_add(1)) }
                (table(result, "Operation", phases.map(one).collect()))
            }
        }
    }
}

/// Possible error of the mean of a rate, as a share of it.
fn precision(result: &RunResult, row: &Row<'_>, unit: &str) -> Option<f64> {
    let mut summary = result.summary.iter();
    let own = |one: &&SummaryRow| row.phases.first().is_some_and(|p| p.name == one.name);
    summary.find(|one| own(one) && one.unit == unit)?.precision
}

/// The lines of a row, of several iterations with intervals.
fn lines_of(result: &RunResult, row: &Row<'_>) -> Vec<Vec<String>> {
    let mut lines = lines(row);
    for (cell, text) in CELLS.iter().zip(lines[0].iter_mut().skip(1)) {
        let unit = match cell.alone {
            // Its iterations have no interval by the workers' own time.
            "Items/s" if ops::is_table(result) => {
                *text = row.text(ops::rate(result), "");
                continue;
            }
            "Items/s" => OPS_PER_S,
            "Bandwidth" => BYTES_PER_S,
            _ => continue,
        };
        let known = precision(result, row, unit).filter(|_| row.phases.len() > 1 && text != NONE);
        if let Some(known) = known {
            text.push_str(&format!(" ±{:.1}%", 100.0 * known));
        }
    }
    lines
}

fn table(result: &RunResult, first: &str, rows: Vec<Row<'_>>) -> Markup {
    let open_loop = rows.iter().any(|row| row.has("response"));
    let all: Vec<Vec<Vec<String>>> = rows.iter().map(|row| lines_of(result, row)).collect();
    // Places in a line, after the name.
    let kept =
        |i: &usize| !CELLS[*i - 1].is_optional() || all.iter().any(|lines| lines[0][*i] != NONE);
    let kept: Vec<usize> = (1..=CELLS.len()).filter(kept).collect();
    let group = |i: &usize| CELLS[*i - 1].group(open_loop);
    let groups = || kept.chunk_by(|a, b| !group(a).is_empty() && group(a) == group(b));
    html! {
        @if rows.is_empty() { p { "No phase has finished." } } @else {
        div.wide { table {
            thead {
                tr {
                    th rowspan="2" { (first) }
                    @for cells in groups() { @if group(&cells[0]).is_empty() {
                        @let cell = &CELLS[cells[0] - 1];
                        th.left[cell.is_left()] rowspan="2" title=(cell.about()) { (cell.title) }
                    } @else { th.group colspan=(cells.len()) { (group(&cells[0])) } } }
                }
                tr { @for i in groups().flatten().filter(|i| !group(i).is_empty()) {
                    @let cell = &CELLS[*i - 1];
                    @let is_rate = cell.alone == "Items/s" && ops::is_table(result);
                    @if is_rate { th title=(about(ops::rate(result), "")) { "while active" } }
                    @else { th title=(cell.about()) { (cell.title) } }
                } }
            }
            tbody { @for lines in &all { @for (n, line) in lines.iter().enumerate() { tr.sub[n > 0] {
                td { (printable(&line[0])) }
                @for i in &kept { td.left[CELLS[*i - 1].is_left()] { (printable(&line[*i])) } }
            } } } }
        } }
        @let phases = || rows.iter().flat_map(|row| &row.phases);
        @if phases().any(|p| !p.complete) { p.note { "* stopped early" } }
        @if phases().any(|p| p.unsynced) {
            p.note { "~ not synced: some of the data may not have reached storage" }
        }
        }
    }
}

/// The figures that no other table has, in a fold: of several iterations together.
pub fn others(result: &RunResult) -> Markup {
    let rows = Row::all(result);
    let some =
        |row: &Row<'_>, figure: &Figure| row.number(figure.name, "").is_some_and(|n| n != 0.0);
    let figures = others_of(Output::Page).filter(|figure| rows.iter().any(|row| some(row, figure)));
    let figures: Vec<&Figure> = figures.collect();
    html! { @if !figures.is_empty() { details {
        summary { "All other figures" }
        div.wide { table {
            thead { tr { th { "Figure" } @for row in &rows { th { (printable(row.label())) } } } }
            tbody { @for figure in figures { tr {
                td title=(figure.about) { (figure.title) }
                @for row in &rows { td { (row.text(figure.name, "")) } }
            } } }
        } }
    } } }
}

/// The spread of rates over the iterations, in a fold; nothing with a single one.
pub fn summary(result: &RunResult) -> Markup {
    // Single operations have a time, and no rate.
    let has_rate = |name: &str| result.phases.iter().any(|p| p.name == name && !p.one_each);
    let rows = result.summary.iter().filter(|row| has_rate(&row.name));
    let rows: Vec<_> = rows.filter(|_| iterations(result) > 1).collect();
    html! { @if !rows.is_empty() { details {
        summary { "Spread over the iterations" }
        div.wide { table {
            thead { tr { @for title in ["Operation", "Iterations", "Max", "Min", "Mean", "Std dev"] { th { (title) } } } }
            tbody { @for row in rows {
                @let show: fn(f64) -> String = if row.unit == BYTES_PER_S { human_bandwidth } else { human_rate };
                tr {
                    td { (printable(&row.label)) @if row.unit == BYTES_PER_S { " (bandwidth)" } }
                    td { (row.iterations) }
                    @for value in [row.max, row.min, row.mean] { td { (show(value)) } }
                    td { @if row.iterations > 1 { (show(row.stddev)) } @else { (NONE) } }
                }
            } }
        } }
    } } }
}

/// The facts about a replay, and each row compared with the recording; empty without a replay.
pub fn replay(result: &RunResult) -> Markup {
    let lines = replay::lines(result);
    html! { @if !lines.is_empty() {
        (list("Replay", &lines))
        div.wide { table {
            thead { tr { th.left { "Operation" } @for title in replay::TITLES { th { (title) } } } }
            tbody { @for phase in &result.phases {
                @if let Some(cells) = replay::cells(phase) { tr {
                    td.left { (printable(&phase.label)) }
                    @for cell in cells { td { (printable(&cell)) } }
                } }
            } }
        } }
    } }
}

/// The cost of the file system's client; empty if none was watched.
pub fn client(result: &RunResult) -> Markup {
    let all = watched(result);
    html! { @if !all.is_empty() {
        h4 { "The file system's client" }
        div.wide { table {
            thead { tr {
                th { "Operation" } (head("CPU/op", "client_cpu_us_per_operation")) (head("CPU time", "client_cpu_s"))
                th title="CPU time in the client's own code" { "User" }
                th title="CPU time in the kernel" { "System" }
                th title="resident memory when the phase had ended" { "Resident" }
                th title="processes of the client" { "Processes" } th {}
            } }
            tbody { @for Shared { label, cost, .. } in all { tr {
                @for cell in of_phase(label, cost) { td { (printable(&cell)) } }
            } } }
        } }
    } }
}

/// The hosts and ranks of the iterations of an operation, slow ones marked; of each iteration at
/// most this many.
pub fn places(result: &RunResult, phases: &[&PhaseResult], most: usize) -> Markup {
    let hosts = result.world.hosts.len() > 1;
    let ranks = phases.iter().any(|phase| phase.rank_count() > 1);
    html! {
        @if hosts { (hosts_of(phases, most)) }
        @if ranks { (ranks_of(phases, most)) }
    }
}

/// Number of ranks of a phase that took much longer than the median.
pub fn stragglers(phase: &PhaseResult) -> usize {
    let Some((_, median)) = crate::summary::slowest_rank(phase) else {
        return 0;
    };
    phase
        .ranks
        .iter()
        .filter(|rank| is_straggler(phase, rank, median))
        .count()
}

/// Applies the rule of the warning.
fn is_straggler(phase: &PhaseResult, rank: &RankOutcome, median_s: f64) -> bool {
    let compares = !is_short(phase) && !phase.one_each && median_s > 0.0;
    compares && rank.elapsed.as_secs_f64() > STRAGGLER_FACTOR * median_s
}

/// The head of a column that explains itself.
fn head(title: &str, figure: &str) -> Markup {
    html! { th title=(about(figure, "")) { (title) } }
}

fn times() -> Markup {
    html! { @for (title, of) in [("p50", "p50"), ("p99", "p99"), ("Max", "max")] { th title=(about("service", of)) { (title) } } }
}

fn share(value: f64, most: f64) -> f64 {
    if most > 0.0 {
        (100.0 * value / most).clamp(0.0, 100.0)
    } else {
        0.0
    }
}

/// The heading of an iteration in a table, if there are several; `late`: with a slow row.
fn iteration(phases: &[&PhaseResult], phase: &PhaseResult, late: bool) -> Markup {
    html! { @if phases.len() > 1 {
        tr.some[late] { th.left colspan="9" { "Iteration " (phase.iteration.saturating_add(1)) } }
    } }
}

/// The first ones in an order, as many as are shown.
fn first<T>(all: &[T], most: usize, order: impl Fn(&T, &T) -> Ordering) -> Vec<&T> {
    let mut all: Vec<&T> = all.iter().collect();
    if all.len() > most {
        all.sort_by(|a, b| order(a, b));
        all.truncate(most);
    }
    all
}

/// A note that not all of some number are shown.
fn outliers(
    what: &str,
    phases: &[&PhaseResult],
    all: fn(&PhaseResult) -> u64,
    shown: impl Fn(&PhaseResult) -> usize,
) -> Markup {
    let all = phases.iter().map(|phase| all(phase)).max().unwrap_or(0);
    let shown = phases.iter().map(|phase| shown(phase)).max().unwrap_or(0);
    html! { @if all > shown as u64 { p.note { (human_count(all)) " " (what) ": only outliers are shown." } } }
}

fn hosts_of(phases: &[&PhaseResult], most: usize) -> Markup {
    html! { div.wide { table {
        thead { tr { th { "Host" } (head("Items", "items")) (head("Items/s", "rate")) th {} (times()) (head("Errors", "errors")) } }
        tbody { @for phase in phases {
            @let fastest = phase.hosts.iter().map(HostResult::rate).fold(0.0, f64::max);
            @let is_late = |host: &HostResult| !is_short(phase) && host.items > 0 && host.rate() * 2.0 < fastest;
            (iteration(phases, phase, phase.hosts.iter().any(is_late)))
            @for host in first(&phase.hosts, most, |a, b| a.rate().total_cmp(&b.rate())) { tr.late[is_late(host)] {
                td { (printable(&host.host)) }
                td { (human_count(host.items)) }
                td { (human_rate(host.rate())) }
                td.bar { span style=(format!("width:{:.0}%", share(host.rate(), fastest))) {} }
                @for of in ["p50", "p99", "max"] { td { (time(&host.latency, of)) } }
                td { (human_count(host.errors)) }
            } }
        } }
    } }
    (outliers("hosts", phases, PhaseResult::host_count, |phase| most.min(phase.hosts.len())))
    }
}

fn ranks_of(phases: &[&PhaseResult], most: usize) -> Markup {
    html! { div.wide { table {
        thead { tr { th { "Rank" } th.left { "Host" } (head("Items", "items")) (head("Elapsed", "elapsed_s")) th {} (times()) (head("Errors", "errors")) } }
        tbody { @for phase in phases {
            @let median = crate::summary::slowest_rank(phase).map_or(0.0, |(_, median)| median);
            @let longest = phase.ranks.iter().map(|rank| rank.elapsed).max().unwrap_or_default();
            (iteration(phases, phase, stragglers(phase) > 0))
            @for rank in first(&phase.ranks, most, |a, b| b.elapsed.cmp(&a.elapsed)) { tr.late[is_straggler(phase, rank, median)] {
                td { (rank.rank.0) }
                td.left { (printable(&rank.host)) }
                td { (human_count(rank.items)) }
                td { (human_nanos(rank.elapsed.0 as f64)) }
                td.bar { span style=(format!("width:{:.0}%", share(rank.elapsed.0 as f64, longest.0 as f64))) {} }
                @for (of, time) in [("p50", rank.p50), ("p99", rank.p99), ("max", rank.max)] {
                    @let enough = quantity(of).is_some_and(|quantity| rank.items >= quantity.least);
                    td { @if enough { (human_nanos(time.0 as f64)) } @else { (NONE) } }
                }
                td { (human_count(rank.errors)) }
            } }
        } }
    } }
    (outliers("ranks", phases, PhaseResult::rank_count, |phase| most.min(phase.ranks.len())))
    }
}
