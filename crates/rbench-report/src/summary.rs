//! Statistics over iterations, and over the ranks of one phase.

use crate::schema::{IterationResult, PhaseResult, RankResult, SummaryRow};
use crate::stats::Estimate;

/// The level of significance of a row's precision: 95 % intervals.
const LEVEL: f64 = 0.05;

/// The unit of rates.
pub const OPS_PER_S: &str = "ops/s";
/// The unit of bandwidths.
pub const BYTES_PER_S: &str = "bytes/s";

/// One row for each phase name in the order of first appearance, and a second
/// one in bytes/s where the phase moved bytes. Phases that were stopped or had
/// nothing to do are left out; one whose operations all failed counts as 0.
pub fn over_iterations(phases: &[PhaseResult]) -> Vec<SummaryRow> {
    let enters = |p: &&PhaseResult| p.complete && (p.items > 0 || p.error_count() > 0);
    let entering: Vec<&PhaseResult> = phases.iter().filter(enters).collect();
    let mut rows: Vec<SummaryRow> = Vec::new();
    for phase in &entering {
        if rows.iter().any(|row| row.name == phase.name) {
            continue;
        }
        let same = || entering.iter().filter(|p| p.name == phase.name);
        let each = |value: fn(&PhaseResult) -> f64| {
            same()
                .map(|p| IterationResult::of(p, value(p)))
                .collect::<Vec<_>>()
        };
        rows.extend(row(phase, OPS_PER_S, each(|p| p.rate)));
        if same().any(|p| p.bandwidth.is_some()) {
            let bandwidths = each(|p| p.bandwidth.unwrap_or(0.0));
            rows.extend(row(phase, BYTES_PER_S, bandwidths));
        }
    }
    rows
}

/// `None` where a file holds rates whose spread no number can express.
fn row(phase: &PhaseResult, unit: &str, each: Vec<IterationResult>) -> Option<SummaryRow> {
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
        precision: Estimate::of_samples(&values).and_then(|mean| mean.precision(LEVEL)),
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

/// The spread of `values`; all 0 if there is none.
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

/// √(Σ(x − mean)² / (n − 1)); 0 for fewer than two values.
fn sample_stddev(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Number of intervals whose rates [`over_time`] compares.
const SLICES: usize = 10;
/// Items per interval, on average, below which rounding to whole items makes
/// rates differ.
const ITEMS_A_SLICE: u64 = 100;

/// How much the rate of a phase varied while it went on: the sample standard
/// deviation of the items that ended in each of up to 10 equal intervals of the
/// timeline, divided by their mean. The last row of the timeline, which the end
/// of the phase cuts short, is left out. `None` with too few items.
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

/// The ranks that had something to do in a phase, as far as they have rows.
fn busy_ranks(phase: &PhaseResult) -> impl Iterator<Item = &RankResult> {
    phase.ranks.iter().filter(|r| r.items > 0 || r.errors > 0)
}

/// The busy rank that finished last (the lowest number among equals) and the
/// median of the busy ranks' elapsed times in s; `None` if none was busy.
pub fn slowest_rank(phase: &PhaseResult) -> Option<(&RankResult, f64)> {
    let median = match &phase.crowd {
        // The rank that finished last has a row; the median is that of all.
        Some(crowd) => crowd.busy_elapsed_p50_s,
        None => median_elapsed(phase)?,
    };
    let slower = |a: &&RankResult, b: &&RankResult| {
        a.elapsed_s
            .total_cmp(&b.elapsed_s)
            .then(b.rank.cmp(&a.rank))
    };
    busy_ranks(phase).max_by(slower).map(|rank| (rank, median))
}

fn median_elapsed(phase: &PhaseResult) -> Option<f64> {
    let mut elapsed: Vec<f64> = busy_ranks(phase).map(|r| r.elapsed_s).collect();
    elapsed.sort_by(f64::total_cmp);
    let middle = elapsed.len() / 2;
    match elapsed.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some((elapsed[middle - 1] + elapsed[middle]) / 2.0),
        _ => Some(elapsed[middle]),
    }
}
