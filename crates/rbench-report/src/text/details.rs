//! Sections after the table: hosts, ranks, stonewalls, errors, warnings, and completeness.

use rbench_core::outcome::RankOutcome;
use rbench_core::units::{human_count, human_rate};

use super::{failure, for_phases, in_iteration, iterations, label, seconds, time};
use crate::schema::{ErrorExample, HostResult, PhaseResult, RunResult};
use crate::summary::{is_short, over_time, rate_per_rank, slowest_rank};
use crate::table::{NONE, Table, left, or_none, right, sentence, titled};
use crate::view::View;

/// Maximum number of hosts of a phase that are all shown.
const MOST_HOSTS: usize = 16;
/// With more hosts, number of hosts shown at each end.
const ENDS: usize = 4;
/// Spread of a rate over time above which several iterations are recommended.
const VARIED: f64 = 0.05;

/// Results of searches.
pub fn found(result: &RunResult, view: View) -> String {
    let mut out = String::new();
    for found in result
        .phases
        .iter()
        .filter_map(|phase| phase.found.as_ref())
    {
        let text = format!(
            "{} of {} files and {} directories match; {} files checked per second",
            human_count(found.matches),
            human_count(found.files),
            human_count(found.directories),
            human_rate(found.files_per_s),
        );
        out.push_str(&sentence(view, "FOUND  ", &text));
    }
    out
}

/// Relative deviation from the median host's rate per rank at which a host is shown even without
/// details.
const OFF_MEDIAN: f64 = 0.2;
/// Factor over the median rank's time at which a rank is shown even without details.
const SLOW_RANK: f64 = 1.2;

/// Rows for each phase and host, if there are several hosts. Without details, only hosts that
/// deviate from the median.
pub fn by_host(result: &RunResult, view: View) -> String {
    if result.world.hosts.len() < 2 {
        return String::new();
    }
    let mut table = Table::new([
        left("BY HOST"),
        left("Host"),
        right("Items"),
        right("Items/s"),
        right("of median"),
        right("p50"),
        right("p99").minor(1),
        right("Max"),
        right("Errors"),
    ]);
    for_phases(result, &mut table, |phase, table| {
        let mut name = label(phase);
        let median = median_rate(result, phase);
        let share = |host: &HostResult| Some(rate_per_rank(result, phase, host)? / median?);
        for line in shown_hosts(phase) {
            let cells = match line {
                HostLine::Host(host) => {
                    let share = share(host);
                    let off = share.is_some_and(|share| (share - 1.0).abs() > OFF_MEDIAN);
                    let apart = off && !is_short(phase) && !phase.one_each;
                    if !view.details && !apart {
                        continue;
                    }
                    host_cells(&mut name, host, share)
                }
                HostLine::Gap(_) if !view.details => continue,
                HostLine::Gap(n) => {
                    let mut cells = vec![String::new(); 9];
                    cells[1] = format!("({n} more hosts)");
                    cells
                }
            };
            table.row(cells);
        }
    });
    table.render(view)
}

enum HostLine<'a> {
    Host(&'a HostResult),
    /// This many hosts between the slowest and the fastest are not shown.
    Gap(u64),
}

/// All hosts or, if there are many, the slowest and the fastest.
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

/// Rate of the median host. For an even number: the slower of the two in the middle, but the faster
/// of only two hosts.
fn median_rate(result: &RunResult, phase: &PhaseResult) -> Option<f64> {
    if let Some(crowd) = &phase.host_crowd {
        // Not every host has a row; assumes that ranks are spread evenly.
        let ranks = f64::from(result.world.ranks) / result.world.hosts.len().max(1) as f64;
        return Some(crowd.rate.p50 / ranks.max(1.0)).filter(|rate| *rate > 0.0);
    }
    let rates = phase.hosts.iter();
    let rates = rates.filter_map(|host| rate_per_rank(result, phase, host));
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    let middle = match rates.len() {
        2 => 1,
        all => all.checked_sub(1)? / 2,
    };
    Some(rates[middle]).filter(|rate| *rate > 0.0)
}

/// Cells of a host's row. `name` is taken, so that only the first row shows it.
fn host_cells(name: &mut String, host: &HostResult, share: Option<f64>) -> Vec<String> {
    let some = |text: String| if host.items > 0 { text } else { NONE.into() };
    vec![
        std::mem::take(name),
        host.host.clone(),
        some(human_count(host.items)),
        some(human_rate(host.rate())),
        or_none(share.map(|share| format!("{:.0}%", 100.0 * share))),
        time(&host.latency, "p50"),
        time(&host.latency, "p99"),
        time(&host.latency, "max"),
        human_count(host.errors),
    ]
}

/// A line for each phase: duration, start skew, slowest rank. Without details, only phases with a
/// slow rank. Nothing for a single worker.
pub fn ranks(result: &RunResult, view: View) -> String {
    let one_worker = |p: &PhaseResult| p.has_one_worker(&result.world);
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
        columns.push(left("First done").minor(1));
    }
    let mut table = Table::new(columns);
    for_phases(result, &mut table, |phase, table| {
        if !view.details && !has_slow_rank(phase) {
            return;
        }
        let mut cells = vec![
            label(phase),
            seconds(phase.elapsed_s),
            seconds(phase.start_skew_s),
        ];
        if many {
            cells.extend(match slowest_rank(phase) {
                Some((slowest, median)) => [
                    seconds(median),
                    seconds(slowest.elapsed.as_secs_f64()),
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
    if table.is_empty() {
        return String::new();
    }
    let crowds = result.phases.iter().filter_map(|p| p.crowd.as_ref());
    let crowd = crowds.map(|crowd| crowd.ranks).max().map(|ranks| {
        let text =
            "ranks: the result file has the spread over all of them, and names the outliers.";
        sentence(view, "", &format!("{} {text}", human_count(ranks)))
    });
    table.render(view) + &crowd.unwrap_or_default()
}

/// Returns true if a rank took clearly longer than the median rank.
fn has_slow_rank(phase: &PhaseResult) -> bool {
    let slow =
        |(slowest, median): (&RankOutcome, f64)| slowest.elapsed.as_secs_f64() > SLOW_RANK * median;
    !is_short(phase) && !phase.one_each && slowest_rank(phase).is_some_and(slow)
}

/// The host that finished long before the others, and its time.
fn early(result: &RunResult, phase: &PhaseResult) -> Option<String> {
    const LONG: f64 = 1.5;
    let first = phase.first_done.as_ref()?;
    let several = result.world.hosts.len() > 1 && !first.host.is_empty();
    let elapsed_s = first.elapsed.as_secs_f64();
    let long = elapsed_s * LONG < phase.elapsed_s;
    (several && long).then(|| format!("{} on {}", seconds(elapsed_s), first.host))
}

/// A line for each phase that was stopped by its stonewall.
pub fn stonewalls(result: &RunResult, view: View) -> String {
    let mut table = Table::new([
        left("STONEWALL"),
        right("Deadline"),
        right("Items started by then"),
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
                seconds(wall.deadline.as_secs_f64()),
                human_count(wall.items),
                human_count(wall.least),
                human_count(wall.most),
            ]);
        }
    });
    table.render(view)
}

/// The first failure of each kind, except those of dead mounts.
pub fn errors(result: &RunResult, view: View) -> String {
    let lines = result.phases.iter().flat_map(|phase| {
        let examples = phase.error_examples.iter();
        let others = examples.filter(|e| !result.is_of_dead_mounts(phase, &e.error, e.count));
        others.map(move |example| error_line(result, phase, example, view))
    });
    titled("ERRORS", lines)
}

fn error_line(result: &RunResult, phase: &PhaseResult, e: &ErrorExample, view: View) -> String {
    let place = label(phase) + &in_iteration(phase, iterations(result));
    sentence(view, "- ", &failure(&place, e))
}

/// All warnings.
pub fn warnings(result: &RunResult, view: View) -> String {
    let lines = result.warnings.iter();
    titled("WARNINGS", lines.map(|w| sentence(view, "- ", &w.message)))
}

/// The last line: complete, or not.
pub fn ending(result: &RunResult, view: View) -> String {
    let counts = result.phases.iter().map(PhaseResult::error_count);
    let failed = counts.fold(0, u64::saturating_add);
    let errors = match failed {
        0 => "no operation failed".to_owned(),
        1 => "1 operation failed".to_owned(),
        n => format!("{} operations failed", human_count(n)),
    };
    if result.complete {
        let repeat = repetition(result).unwrap_or_default();
        sentence(view, "", &format!("The run is complete; {errors}.{repeat}"))
    } else {
        let text = "The run is INCOMPLETE: it ended before all phases were done";
        sentence(view, "", &format!("{text}; {errors}."))
    }
}

/// Recommends iterations if the only one varied, and names the phase that varied most.
fn repetition(result: &RunResult) -> Option<String> {
    // Workloads without iterations do not have this setting.
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
    use crate::table::sentence;
    use crate::view::View;

    #[test]
    fn a_bulleted_sentence_hangs_under_its_first_word() {
        let text = sentence(View::default(), "- ", &"word ".repeat(40));
        assert!(text.starts_with("- word"));
        assert!(text.lines().nth(1).is_some_and(|l| l.starts_with("  word")));
    }
}
