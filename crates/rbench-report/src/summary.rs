//! Statistics over iterations, and over the ranks of one phase.

use rbench_core::outcome::RankOutcome;

use crate::schema::{HostResult, IterationResult, PhaseResult, RunResult, SummaryRow};
use crate::stats::Estimate;
use crate::table::grouped;

/// Shortest phase whose rate, ranks and hosts are worth comparing, s.
pub(crate) const SHORTEST_S: f64 = 0.010;

/// Number of judgements of the iterations before they are enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// Once: the number was given.
    Once,
    /// After each iteration: `--iterations auto`.
    EachTime,
}

impl Looks {
    /// The level of significance of Student's t at which intervals contain the true rate in 95 % of
    /// runs. Stopping at a narrow interval favours runs that underrate the spread. At a level of 5
    /// % such intervals contain the rate in only 90 to 94 % (simulated below).
    fn level(self) -> f64 {
        match self {
            Looks::Once => 0.05,
            Looks::EachTime => 0.02,
        }
    }
}

/// The unit of rates.
pub const OPS_PER_S: &str = "ops/s";
/// The unit of bandwidths.
pub const BYTES_PER_S: &str = "bytes/s";

/// One row for each phase name in the order of first appearance, and a second one in bytes/s if the
/// phase moved bytes. Excludes phases that were stopped or idle; a phase whose operations all
/// failed counts as 0.
pub fn over_iterations(phases: &[PhaseResult], looks: Looks) -> Vec<SummaryRow> {
    let enters = |p: &&PhaseResult| p.complete && (p.items > 0 || p.error_count() > 0);
    let entering = phases.iter().filter(enters);
    let mut rows: Vec<SummaryRow> = Vec::new();
    for (_, same) in grouped(entering.map(|phase| (&phase.name, phase))) {
        let phase = same[0];
        let each = |value: fn(&PhaseResult) -> f64| {
            let each = same.iter().map(|p| IterationResult::of(p, value(p)));
            each.collect::<Vec<_>>()
        };
        rows.extend(row(phase, OPS_PER_S, looks, each(|p| p.rate)));
        if same.iter().any(|p| p.bandwidth.is_some()) {
            let bandwidths = each(|p| p.bandwidth.unwrap_or(0.0));
            rows.extend(row(phase, BYTES_PER_S, looks, bandwidths));
        }
    }
    rows
}

/// Makes a row; `None` if the file's rates have a spread that no number can express.
fn row(
    phase: &PhaseResult,
    unit: &str,
    looks: Looks,
    each: Vec<IterationResult>,
) -> Option<SummaryRow> {
    let values: Vec<f64> = each.iter().map(|one| one.value).collect();
    let Spread {
        max,
        min,
        mean,
        stddev,
    } = spread(&values);
    let finite = [max, min, mean, stddev].into_iter().all(f64::is_finite);
    finite.then(|| SummaryRow {
        name: phase.name.clone(),
        label: phase.label.clone(),
        unit: unit.to_owned(),
        iterations: values.len() as u32,
        max,
        min,
        mean,
        stddev,
        precision: Estimate::of_samples(&values).and_then(|mean| mean.precision(looks.level())),
        each,
    })
}

/// The spread of some values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// The highest.
    pub max: f64,
    /// The lowest.
    pub min: f64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Their sample standard deviation; 0 for one value.
    pub stddev: f64,
}

/// Computes the spread of `values`; all 0 without values.
pub fn spread(values: &[f64]) -> Spread {
    if values.is_empty() {
        return Spread::default();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Spread {
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        mean,
        stddev: sample_stddev(values, mean),
    }
}

/// Computes √(Σ(x − mean)² / (n − 1)); 0 for fewer than two values.
fn sample_stddev(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Returns true if a phase is too short to compare its ranks, hosts and rate.
pub(crate) fn is_short(phase: &PhaseResult) -> bool {
    phase.elapsed_s < SHORTEST_S
}

fn ranks_on(host: &str, result: &RunResult, phase: &PhaseResult) -> usize {
    if phase.crowd.is_none() {
        return phase.ranks.iter().filter(|r| r.host == host).count();
    }
    // Not every rank has a row.
    let place = result.world.hosts.iter().find(|h| h.name == host);
    place.map_or(0, |place| place.ranks.len())
}

/// A host's rate for each of its ranks; `None` for an idle host.
pub(crate) fn rate_per_rank(
    result: &RunResult,
    phase: &PhaseResult,
    host: &HostResult,
) -> Option<f64> {
    let ranks = ranks_on(&host.host, result, phase).max(1) as f64;
    let rate = host.rate() / ranks;
    (host.items > 0 && rate.is_finite()).then_some(rate)
}

/// Number of intervals whose rates [`over_time`] compares.
const SLICES: usize = 10;
/// Items per interval, on average, below which rounding to whole items makes
/// rates differ.
const ITEMS_A_SLICE: u64 = 100;

/// Variation of the rate during a phase: the relative standard deviation of the items in up to 10
/// equal intervals of the timeline. Excludes the last row of the timeline, which the end of the
/// phase cuts short. `None` with too few items.
pub fn over_time(phase: &PhaseResult) -> Option<f64> {
    let (_, whole) = phase.timeline.split_last()?;
    // Intervals of equal length; the remainder is left out.
    let rows = whole.len() / SLICES;
    if rows == 0 {
        return None;
    }
    let items: Vec<u64> = whole
        .chunks_exact(rows)
        .take(SLICES)
        .map(|stretch| {
            stretch
                .iter()
                .map(|row| row.items)
                .fold(0, u64::saturating_add)
        })
        .collect();
    let total = items.iter().copied().fold(0, u64::saturating_add);
    if total < ITEMS_A_SLICE * SLICES as u64 {
        return None;
    }
    let counts: Vec<f64> = items.iter().map(|n| *n as f64).collect();
    let Spread { mean, stddev, .. } = spread(&counts);
    Some(stddev / mean)
}

/// The ranks that were busy in a phase, if they have rows.
fn busy_ranks(phase: &PhaseResult) -> impl Iterator<Item = &RankOutcome> {
    phase.ranks.iter().filter(|r| r.items > 0 || r.errors > 0)
}

/// The busy rank that finished last (the lowest number among equals) and the
/// median of the busy ranks' elapsed times in s; `None` if none was busy.
pub fn slowest_rank(phase: &PhaseResult) -> Option<(&RankOutcome, f64)> {
    let median = match &phase.crowd {
        // The rank that finished last has a row; the median is that of all.
        Some(crowd) => crowd.busy_median.as_secs_f64(),
        None => median_elapsed(phase)?,
    };
    let slower =
        |a: &&RankOutcome, b: &&RankOutcome| a.elapsed.cmp(&b.elapsed).then(b.rank.cmp(&a.rank));
    busy_ranks(phase).max_by(slower).map(|rank| (rank, median))
}

fn median_elapsed(phase: &PhaseResult) -> Option<f64> {
    let mut elapsed: Vec<f64> = busy_ranks(phase).map(|r| r.elapsed.as_secs_f64()).collect();
    elapsed.sort_by(f64::total_cmp);
    let middle = elapsed.len() / 2;
    match elapsed.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some((elapsed[middle - 1] + elapsed[middle]) / 2.0),
        _ => Some(elapsed[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::random::Stream;

    /// Share of runs whose interval contains the true rate, among those that reach the precision.
    fn covered(looks: Looks, (noise, precision): (f64, f64)) -> f64 {
        let mut rng = Stream::new(&[5]);
        let mut normal =
            || (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
        let (mut ended, mut held) = (0, 0);
        for _ in 0..1500 {
            let mut rates: Vec<f64> = Vec::new();
            while rates.len() < 50 {
                rates.push((noise * normal()).exp());
                let known = Estimate::of_samples(&rates).and_then(|e| e.precision(looks.level()));
                let Some(known) = known.filter(|known| *known <= precision) else {
                    continue;
                };
                let logs = rates.iter().map(|rate| rate.ln());
                let mean = logs.sum::<f64>() / rates.len() as f64;
                ended += 1;
                held += u32::from(mean.abs() <= (1.0 + known).ln());
                break;
            }
        }
        f64::from(held) / f64::from(ended)
    }

    #[test]
    fn iterations_that_end_when_they_are_precise_hold_the_true_rate_as_often_as_is_said() {
        for case in [(0.01, 0.02), (0.03, 0.02), (0.05, 0.05), (0.05, 0.03)] {
            let share = covered(Looks::EachTime, case);
            // Three standard deviations.
            assert!(share > 0.95 - 0.017, "{case:?}: {share}");
        }
        // Judged as if only once.
        assert!(covered(Looks::Once, (0.05, 0.03)) < 0.93);
    }
}
