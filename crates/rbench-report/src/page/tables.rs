//! The tables of the page.

use maud::{Markup, html};

use crate::schema::{HostResult, PhaseResult, RankResult, RunResult};
use crate::summary::{BYTES_PER_S, is_short};
use crate::table::{NONE, printable};
use crate::text::client::{Shared, of_phase, watched};
use crate::text::{iterations, latencies, replay, row, steady};
use crate::warnings::STRAGGLER_FACTOR;
use rbench_core::units::{human_bandwidth, human_count, human_nanos, human_rate};

/// Most ranks of an operation with a row each; of more only the slowest.
const RANKS: usize = 64;

/// All operations, as in the text report.
pub fn operations(result: &RunResult) -> Markup {
    let several = iterations(result) > 1;
    let open_loop = result.phases.iter().any(|p| p.latency.response.is_some());
    let rows: Vec<Vec<String>> = result.phases.iter().map(row).collect();
    let has = |i: usize| rows.iter().any(|cells| cells[i] != NONE);
    let (bandwidth, cache) = (has(4), has(11));
    let time = if open_loop { "Service time" } else { "Latency" };
    let mut last = None;
    html! {
        @if rows.is_empty() { p { "No phase has finished." } } @else {
        div.wide { table {
            thead {
                tr {
                    th rowspan="2" { "Operation" } th rowspan="2" { "Items" }
                    th.group colspan="2" { "Items per second" }
                    @if bandwidth { th rowspan="2" { "Bandwidth" } }
                    th.group colspan="5" { (time) }
                    th rowspan="2" { "Errors" }
                    @if cache { th.left rowspan="2" { "Cache" } }
                }
                tr { @for title in ["last done", "first done", "Mean", "p50", "p99", "p99.9", "Max"] { th { (title) } } }
            }
            tbody { @for (phase, cells) in result.phases.iter().zip(&rows) {
                @if several && last.replace(phase.iteration) != Some(phase.iteration) {
                    tr { th colspan="12" { "Iteration " (phase.iteration.saturating_add(1)) } }
                }
                tr { @for (i, cell) in cells.iter().enumerate() {
                    @if (i != 4 || bandwidth) && (i != 11 || cache) {
                        td.left[i == 11] { (printable(cell)) }
                    }
                } }
                @if let Some(response) = &phase.latency.response {
                    tr.sub {
                        td { "response time" } td {} td {} td {}
                        @if bandwidth { td {} }
                        @for cell in latencies(response) { td { (cell) } }
                        td {} @if cache { td {} }
                    }
                }
            } }
        } }
        @if result.phases.iter().any(|p| !p.complete) { p.note { "* stopped early" } }
        @if result.phases.iter().any(|p| p.unsynced) {
            p.note { "~ not synced: some of the data may not have reached storage" }
        }
        }
    }
}

/// Statistics over the iterations; nothing with a single one.
pub fn summary(result: &RunResult) -> Markup {
    // Single operations have a time, and no rate.
    let has_rate = |name: &str| result.phases.iter().any(|p| p.name == name && !p.one_each);
    let rows = result.summary.iter().filter(|row| has_rate(&row.name));
    let rows: Vec<_> = rows.filter(|_| iterations(result) > 1).collect();
    html! { @if !rows.is_empty() {
        h4 { "Over the iterations" }
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
    } }
}

/// Whether phases became steady that end then; nothing without any.
pub fn steady(result: &RunResult) -> Markup {
    let lines = steady::lines(result);
    html! { @if !lines.is_empty() {
        h4 { "Steady state" }
        ul { @for line in &lines { li { (printable(line)) } } }
    } }
}

/// What a replay was, and each row beside what was recorded; nothing without one.
pub fn replay(result: &RunResult) -> Markup {
    let lines = replay::lines(result);
    html! { @if !lines.is_empty() {
        h4 { "Replay" }
        ul { @for line in &lines { li { (printable(line)) } } }
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

/// What the file system's client cost; nothing where none was watched.
pub fn client(result: &RunResult) -> Markup {
    let all = watched(result);
    html! { @if !all.is_empty() {
        h4 { "The file system's client" }
        div.wide { table {
            thead { tr { @for title in ["Operation", "CPU/op", "CPU time", "User", "System", "Resident", "Processes", ""] {
                th { (title) }
            } } }
            tbody { @for Shared { label, cost, .. } in all { tr {
                @for cell in of_phase(label, cost) { td { (printable(&cell)) } }
            } } }
        } }
    } }
}

/// The operations of several results beside each other.
pub fn beside(results: &[RunResult], names: &[String]) -> Markup {
    let mut rows: Vec<(&str, &str, u32)> = Vec::new();
    for phase in results.iter().flat_map(|result| &result.phases) {
        let key = (phase.name.as_str(), phase.iteration);
        if !rows.iter().any(|(name, _, i)| (*name, *i) == key) {
            rows.push((&phase.name, &phase.label, phase.iteration));
        }
    }
    let several = rows.iter().any(|(_, _, iteration)| *iteration > 0);
    html! { div.wide { table.beside {
        thead {
            tr { th rowspan="2" { "Operation" } @for name in names { th.group colspan="3" { (name) } } }
            tr { @for _ in names { th { "Items/s" } th { "p50" } th { "p99" } } }
        }
        tbody { @for (name, label, iteration) in &rows { tr {
            td { (printable(label)) @if several { " (iteration " (iteration.saturating_add(1)) ")" } }
            @for result in results {
                @match result.phases.iter().find(|p| p.name == *name && p.iteration == *iteration) {
                    Some(phase) => {
                        @let cells = row(phase);
                        @for i in [2, 6, 7] { td { (cells[i]) } }
                    },
                    None => { @for _ in 0..3 { td { (NONE) } } },
                }
            }
        } } }
    } } }
}

/// The hosts and ranks of an operation, slow ones marked; nothing of a single rank.
pub fn places(result: &RunResult, phase: &PhaseResult) -> Markup {
    let hosts = result.world.hosts.len() > 1;
    let ranks = phase.rank_count() > 1;
    html! { @if hosts || ranks {
        @if hosts { (hosts_of(phase)) }
        @if ranks { (ranks_of(phase)) }
    } }
}

/// How many ranks of a phase took much longer than the median.
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

/// By the rule of the warning.
fn is_straggler(phase: &PhaseResult, rank: &RankResult, median_s: f64) -> bool {
    let compares = !is_short(phase) && !phase.one_each && median_s > 0.0;
    compares && rank.elapsed_s > STRAGGLER_FACTOR * median_s
}

fn share(value: f64, most: f64) -> f64 {
    if most > 0.0 {
        (100.0 * value / most).clamp(0.0, 100.0)
    } else {
        0.0
    }
}

fn hosts_of(phase: &PhaseResult) -> Markup {
    let most = phase.hosts.iter().map(HostResult::rate).fold(0.0, f64::max);
    html! { div.wide { table {
        thead { tr { th { "Host" } th { "Items" } th { "Items/s" } th {} th { "p50" } th { "p99" } th { "Max" } th { "Errors" } } }
        tbody { @for host in &phase.hosts { tr.late[!is_short(phase) && host.items > 0 && host.rate() * 2.0 < most] {
            td { (printable(&host.host)) }
            td { (human_count(host.items)) }
            td { (human_rate(host.rate())) }
            td.bar { span style=(format!("width:{:.0}%", share(host.rate(), most))) {} }
            @let cells = latencies(&host.latency);
            @for i in [1, 2, 4] { td { (cells[i]) } }
            td { (human_count(host.errors)) }
        } } }
    } }
    @if phase.host_count() > phase.hosts.len() as u64 {
        p.note { (human_count(phase.host_count())) " hosts: only outliers are shown." }
    } }
}

fn ranks_of(phase: &PhaseResult) -> Markup {
    let median = crate::summary::slowest_rank(phase).map_or(0.0, |(_, median)| median);
    let mut ranks: Vec<&RankResult> = phase.ranks.iter().collect();
    let all = ranks.len();
    if all > RANKS {
        ranks.sort_by(|a, b| b.elapsed_s.total_cmp(&a.elapsed_s));
        ranks.truncate(RANKS);
    }
    let most = ranks.iter().map(|rank| rank.elapsed_s).fold(0.0, f64::max);
    html! { div.wide { table {
        thead { tr { th { "Rank" } th.left { "Host" } th { "Items" } th { "Elapsed" } th {} th { "p50" } th { "p99" } th { "Max" } th { "Errors" } } }
        tbody { @for rank in ranks { tr.late[is_straggler(phase, rank, median)] {
            td { (rank.rank) }
            td.left { (printable(&rank.host)) }
            td { (human_count(rank.items)) }
            td { (human_nanos(rank.elapsed_s * 1e9)) }
            td.bar { span style=(format!("width:{:.0}%", share(rank.elapsed_s, most))) {} }
            @for ns in [rank.p50_ns, rank.p99_ns, rank.max_ns] {
                td { @if rank.items > 0 { (human_nanos(ns as f64)) } @else { (NONE) } }
            }
            td { (human_count(rank.errors)) }
        } } }
    } }
    @if phase.rank_count() > RANKS.min(all) as u64 {
        p.note { (human_count(phase.rank_count())) " ranks: only outliers are shown." }
    } }
}
