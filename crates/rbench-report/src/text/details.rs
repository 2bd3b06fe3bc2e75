//! What follows the table: hosts, ranks, stonewalls, errors, warnings,
//! and whether the run is complete.

use rbench_core::units::{human_count, human_rate};

use super::{failure, for_phases, iterations, label, percentile, seconds, time_of};
use std::fmt::Write as _;

use crate::schema::{ErrorExample, HostResult, PhaseResult, RunResult};
use crate::summary::{over_time, slowest_rank};
use crate::table::{NONE, Table, left, right, wrapped};

/// Most hosts of a phase that are all shown.
const MOST_HOSTS: usize = 16;
/// Of more hosts, how many are shown at each end.
const ENDS: usize = 4;
/// Spread of a rate over time above which one iteration is too few.
const VARIED: f64 = 0.05;

/// What searches have found.
pub fn found(result: &RunResult) -> String {
    let mut out = String::new();
    for found in result
        .phases
        .iter()
        .filter_map(|phase| phase.found.as_ref())
    {
        let _ = writeln!(
            out,
            "FOUND  {} of {} files and {} directories match; {} files looked at per second",
            human_count(found.matches),
            human_count(found.files),
            human_count(found.directories),
            human_rate(found.files_per_s),
        );
    }
    out
}

/// Rows for each phase and host, when there is more than one host.
pub fn by_host(result: &RunResult) -> String {
    if result.world.hosts.len() < 2 {
        return String::new();
    }
    let mut table = Table::new([
        left("BY HOST"),
        left("Host"),
        right("Items"),
        right("Items/s"),
        right("p50"),
        right("p99"),
        right("Max"),
        right("Errors"),
    ]);
    for_phases(result, &mut table, |phase, table| {
        let mut name = label(phase);
        for line in shown_hosts(phase) {
            let name = std::mem::take(&mut name);
            table.row(match line {
                HostLine::Host(host) => host_cells(name, host),
                HostLine::Gap(n) => {
                    let mut cells = vec![String::new(); 8];
                    cells[1] = format!("({n} more hosts)");
                    cells
                }
            });
        }
    });
    if table.is_empty() {
        String::new()
    } else {
        table.render()
    }
}

enum HostLine<'a> {
    Host(&'a HostResult),
    /// This many hosts, neither the slowest nor the fastest, are not shown.
    Gap(u64),
}

/// All hosts, or of many the slowest and the fastest.
fn shown_hosts(phase: &PhaseResult) -> Vec<HostLine<'_>> {
    let mut hosts: Vec<&HostResult> = phase.hosts.iter().collect();
    if hosts.len() <= MOST_HOSTS && phase.host_crowd.is_none() || hosts.len() < 2 * ENDS {
        return hosts.into_iter().map(HostLine::Host).collect();
    }
    hosts.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    let between = HostLine::Gap(phase.host_count().saturating_sub(2 * ENDS as u64));
    let slowest = hosts[..ENDS].iter().map(|h| HostLine::Host(h));
    let fastest = hosts[hosts.len() - ENDS..]
        .iter()
        .map(|h| HostLine::Host(h));
    slowest.chain([between]).chain(fastest).collect()
}

fn host_cells(name: String, host: &HostResult) -> Vec<String> {
    let some = |text: String| if host.items > 0 { text } else { NONE.into() };
    vec![
        name,
        host.host.clone(),
        some(human_count(host.items)),
        some(human_rate(host.rate())),
        percentile(&host.latency, host.latency.p50_ns, 2),
        percentile(&host.latency, host.latency.p99_ns, 100),
        time_of(&host.latency, host.latency.max_ns as f64),
        human_count(host.errors),
    ]
}

/// A line for each phase: how long it took, start skew, the slowest rank.
/// Nothing for a single worker.
pub fn ranks(result: &RunResult) -> String {
    let one_worker = |p: &PhaseResult| p.rank_count() < 2 && p.start_skew_s == 0.0;
    if result.phases.iter().all(one_worker) {
        return String::new();
    }
    let many = result.phases.iter().any(|p| p.rank_count() > 1);
    let early = result.phases.iter().any(|p| early(result, p).is_some());
    let mut columns = vec![left("BY RANK"), right("Elapsed"), right("Start skew")];
    if many {
        columns.extend([right("Median rank"), right("Slowest rank"), left("")]);
    }
    if early {
        columns.push(left("First done"));
    }
    let mut table = Table::new(columns);
    for_phases(result, &mut table, |phase, table| {
        let mut cells = vec![
            label(phase),
            seconds(phase.elapsed_s),
            seconds(phase.start_skew_s),
        ];
        if many {
            cells.extend(match slowest_rank(phase) {
                Some((slowest, median)) => [
                    seconds(median),
                    seconds(slowest.elapsed_s),
                    format!("rank {} on {}", slowest.rank, slowest.host),
                ],
                None => [NONE.to_owned(), NONE.to_owned(), String::new()],
            });
        }
        if let Some(first) = self::early(result, phase) {
            cells.push(first);
        } else if early {
            cells.push(String::new());
        }
        table.row(cells);
    });
    let crowds = result.phases.iter().filter_map(|p| p.crowd.as_ref());
    let crowd = crowds.map(|crowd| crowd.ranks).max().map(|ranks| {
        format!(
            "{} ranks: the result file has the spread over all of them, and names the outliers.\n",
            human_count(ranks)
        )
    });
    table.render() + &crowd.unwrap_or_default()
}

/// Which host finished long before the others, and when.
fn early(result: &RunResult, phase: &PhaseResult) -> Option<String> {
    const LONG: f64 = 1.5;
    let first = phase.first_done.as_ref()?;
    let several = result.world.hosts.len() > 1 && !first.host.is_empty();
    let long = first.elapsed_s * LONG < phase.elapsed_s;
    (several && long).then(|| format!("{} on {}", seconds(first.elapsed_s), first.host))
}

/// A line for each phase that was stopped by its stonewall.
pub fn stonewalls(result: &RunResult) -> String {
    let mut table = Table::new([
        left("STONEWALL"),
        right("Deadline"),
        right("Items by then"),
        right("Least").under("Items of a worker"),
        right("Most").under("Items of a worker"),
    ]);
    if result.phases.iter().all(|p| p.stonewall.is_none()) {
        return String::new();
    }
    for_phases(result, &mut table, |phase, table| {
        if let Some(wall) = &phase.stonewall {
            table.row([
                label(phase),
                seconds(wall.deadline_s),
                human_count(wall.items),
                human_count(wall.least),
                human_count(wall.most),
            ]);
        }
    });
    table.render()
}

/// The first failure of each kind.
pub fn errors(result: &RunResult) -> String {
    let mut lines = String::new();
    for phase in &result.phases {
        for example in &phase.error_examples {
            lines.push_str(&error_line(result, phase, example));
        }
    }
    section("ERRORS", lines)
}

fn error_line(result: &RunResult, phase: &PhaseResult, e: &ErrorExample) -> String {
    let iteration = match iterations(result) {
        0 | 1 => String::new(),
        _ => format!(" in iteration {}", phase.iteration.saturating_add(1)),
    };
    bullet(&failure(&format!("{}{iteration}", label(phase)), e))
}

/// All warnings.
pub fn warnings(result: &RunResult) -> String {
    let lines = result.warnings.iter();
    section("WARNINGS", lines.map(|w| bullet(&w.message)).collect())
}

fn section(title: &str, lines: String) -> String {
    if lines.is_empty() {
        lines
    } else {
        format!("{title}\n{lines}")
    }
}

fn bullet(text: &str) -> String {
    wrapped("- ", &words(text), " ")
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// The last line: whether the run is complete.
pub fn ending(result: &RunResult) -> String {
    let counts = result.phases.iter().map(PhaseResult::error_count);
    let failed = counts.fold(0, u64::saturating_add);
    let errors = match failed {
        0 => "no operation failed".to_owned(),
        1 => "1 operation failed".to_owned(),
        n => format!("{} operations failed", human_count(n)),
    };
    if result.complete {
        let repeat = repetition(result).unwrap_or_default();
        wrapped(
            "",
            &words(&format!("The run is complete; {errors}.{repeat}")),
            " ",
        )
    } else {
        format!("The run is INCOMPLETE: it ended before all phases were done; {errors}.\n")
    }
}

/// Recommends iterations where the only one varied, and names the phase that
/// varied most.
fn repetition(result: &RunResult) -> Option<String> {
    // Workloads without iterations do not name their number.
    let single = result.spec.contains_key("iterations") && iterations(result) == 1;
    let varied = result
        .phases
        .iter()
        .filter_map(|phase| Some((over_time(phase)?, phase)));
    let (share, phase) = varied.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (single && share > VARIED).then(|| {
        format!(
            " A rate varied by {:.0}% over time ({}): --iterations 3 or more would show how far it can be trusted.",
            share * 100.0,
            phase.label
        )
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_bulleted_sentence_hangs_under_its_first_word() {
        let text = super::bullet(&"word ".repeat(40));
        assert!(text.starts_with("- word"));
        assert!(text.lines().nth(1).is_some_and(|l| l.starts_with("  word")));
    }
}
