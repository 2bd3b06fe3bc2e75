//! Summaries of ranks and hosts that are too many to list one by one: the spread of
//! each quantity over them, and the outliers.
//!
//! Every value is exact, because all are sorted. Only the owners of the values in
//! between are left out.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parts::{RankOutcome, per_second};
use crate::units::{InSeconds, Nanos, seconds};

/// Most ranks and hosts with a row of their own in an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimits {
    /// Ranks.
    pub ranks: usize,
    /// Hosts, each with a distribution.
    pub hosts: usize,
}

impl Default for RowLimits {
    fn default() -> RowLimits {
        RowLimits {
            ranks: 1024,
            hosts: 256,
        }
    }
}

/// Most rows of a large run that are listed by name.
pub const NAMED_MAX: usize = 64;

/// Number of rows listed by name at either end of each quantity.
const ENDS: usize = 4;

/// Spread of a column over ranks or hosts: the quantile q is the ⌈q·n⌉-th smallest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QuantilesResult")]
pub struct Quantiles<T> {
    /// The smallest.
    pub min: T,
    /// 1st percentile.
    pub p1: T,
    /// 5th percentile.
    pub p5: T,
    /// 25th percentile.
    pub p25: T,
    /// Median.
    pub p50: T,
    /// 75th percentile.
    pub p75: T,
    /// 95th percentile.
    pub p95: T,
    /// 99th percentile.
    pub p99: T,
    /// The largest.
    pub max: T,
}

impl<T> Quantiles<T> {
    fn map<U>(self, of: impl Fn(T) -> U) -> Quantiles<U> {
        Quantiles {
            min: of(self.min),
            p1: of(self.p1),
            p5: of(self.p5),
            p25: of(self.p25),
            p50: of(self.p50),
            p75: of(self.p75),
            p95: of(self.p95),
            p99: of(self.p99),
            max: of(self.max),
        }
    }
}

impl InSeconds for Quantiles<Nanos> {
    type Seconds = Quantiles<f64>;

    fn in_seconds(&self) -> Quantiles<f64> {
        self.map(|time| time.in_seconds())
    }

    fn of_seconds(seconds: Quantiles<f64>) -> Quantiles<Nanos> {
        seconds.map(Nanos::of_seconds)
    }
}

impl<T: Copy + Default> Quantiles<T> {
    /// The quantiles of values in ascending order; all zero without values.
    pub fn of_sorted(values: &[T]) -> Quantiles<T> {
        if values.is_empty() {
            return Quantiles::default();
        }
        let percents = Quantiles {
            min: 0,
            p1: 1,
            p5: 5,
            p25: 25,
            p50: 50,
            p75: 75,
            p95: 95,
            p99: 99,
            max: 100,
        };
        percents.map(|percent| values[(values.len() * percent).div_ceil(100).max(1) - 1])
    }
}

/// All ranks of a phase, when there are too many for a row each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    rename = "CrowdResult",
    description = "All ranks of a phase, when there are too many for a row each; columns as in\n[`super::RankResult`]."
)]
pub struct RankSpread {
    /// Number of ranks.
    pub ranks: u64,
    /// Number of ranks that had something to do.
    pub busy: u64,
    /// Median of the elapsed times of the busy ones, s; 0 if there is none.
    #[serde(rename = "busy_elapsed_p50_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub busy_median: Nanos,
    /// Operations done without error.
    pub items: Quantiles<u64>,
    /// Failed operations.
    pub errors: Quantiles<u64>,
    /// The end of the last worker after the common start, s.
    #[serde(rename = "elapsed_s", with = "seconds")]
    #[schemars(with = "Quantiles<f64>")]
    pub elapsed: Quantiles<Nanos>,
    /// Median service time, ns.
    #[serde(rename = "p50_ns")]
    pub p50: Quantiles<Nanos>,
    /// 99th percentile of the service time, ns.
    #[serde(rename = "p99_ns")]
    pub p99: Quantiles<Nanos>,
    /// Longest service time, ns.
    #[serde(rename = "max_ns")]
    pub max: Quantiles<Nanos>,
    /// CPU time, user and system, that the process used, s.
    #[serde(rename = "cpu_s", with = "seconds")]
    #[schemars(with = "Quantiles<f64>")]
    pub cpu: Quantiles<Nanos>,
}

/// All hosts of a phase, when there are too many for a row each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    rename = "HostCrowdResult",
    description = "All hosts of a phase, when there are too many for a row each; columns as in\n[`super::HostResult`]."
)]
pub struct HostSpread {
    /// Number of hosts.
    pub hosts: u64,
    /// Operations done without error.
    pub items: Quantiles<u64>,
    /// Bytes that these moved.
    pub bytes: Quantiles<u64>,
    /// Failed operations.
    pub errors: Quantiles<u64>,
    /// The end of the last worker after the common start, s.
    #[serde(rename = "elapsed_s", with = "seconds")]
    #[schemars(with = "Quantiles<f64>")]
    pub elapsed: Quantiles<Nanos>,
    /// items / elapsed_s of the host.
    pub rate: Quantiles<f64>,
    /// Median service time, ns.
    #[serde(rename = "p50_ns")]
    pub p50: Quantiles<Nanos>,
    /// 99th percentile of the service time, ns.
    #[serde(rename = "p99_ns")]
    pub p99: Quantiles<Nanos>,
    /// Longest service time, ns.
    #[serde(rename = "max_ns")]
    pub max: Quantiles<Nanos>,
}

/// Summary of a host of a crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSummary {
    /// Its ranks.
    pub ranks: u64,
    /// Items done without error.
    pub items: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Failed operations.
    pub errors: u64,
    /// Time during which its own operations were measured.
    pub elapsed: Nanos,
    /// Median service time.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// Longest service time.
    pub max: Nanos,
}

impl HostSummary {
    fn rate(&self) -> f64 {
        per_second(self.items, self.elapsed)
    }
}

/// The spread of all `rows`, and the ascending indexes of the rows to list by name.
/// These are at the ends of items, elapsed time, p99 and maximum (idle ranks only for
/// items), then those with the most failed operations.
pub fn of_ranks(rows: &[RankOutcome]) -> (Vec<usize>, RankSpread) {
    let busy = |row: &RankOutcome| row.items > 0 || row.errors > 0;
    let mut elapsed: Vec<Nanos> = rows.iter().filter(|r| busy(r)).map(|r| r.elapsed).collect();
    elapsed.sort_unstable();
    let crowd = RankSpread {
        ranks: rows.len() as u64,
        busy: elapsed.len() as u64,
        busy_median: median(&elapsed),
        items: spread(rows, |r| r.items),
        errors: spread(rows, |r| r.errors),
        elapsed: spread(rows, |r| r.elapsed),
        p50: spread(rows, |r| r.p50),
        p99: spread(rows, |r| r.p99),
        max: spread(rows, |r| r.max),
        cpu: spread(rows, |r| r.cpu),
    };
    let measures: [Measure<RankOutcome>; 4] = [
        |r| Some(r.items as f64),
        |r| (r.items > 0 || r.errors > 0).then_some(r.elapsed.0 as f64),
        |r| (r.items > 0).then_some(r.p99.0 as f64),
        |r| (r.items > 0).then_some(r.max.0 as f64),
    ];
    (outliers(rows, &measures, |r| r.errors), crowd)
}

/// Like `of_ranks`, for hosts: at the ends of items, rate, rate per rank, elapsed time, p99 and
/// maximum.
pub fn of_hosts(rows: &[HostSummary]) -> (Vec<usize>, HostSpread) {
    let mut rates: Vec<f64> = rows.iter().map(HostSummary::rate).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let crowd = HostSpread {
        hosts: rows.len() as u64,
        items: spread(rows, |h| h.items),
        bytes: spread(rows, |h| h.bytes),
        errors: spread(rows, |h| h.errors),
        elapsed: spread(rows, |h| h.elapsed),
        rate: Quantiles::of_sorted(&rates),
        p50: spread(rows, |h| h.p50),
        p99: spread(rows, |h| h.p99),
        max: spread(rows, |h| h.max),
    };
    let measures: [Measure<HostSummary>; 6] = [
        |h| Some(h.items as f64),
        |h| (h.items > 0).then(|| h.rate()),
        |h| (h.items > 0).then(|| h.rate() / h.ranks.max(1) as f64),
        |h| (h.items > 0 || h.errors > 0).then_some(h.elapsed.0 as f64),
        |h| (h.items > 0).then_some(h.p99.0 as f64),
        |h| (h.items > 0).then_some(h.max.0 as f64),
    ];
    (outliers(rows, &measures, |h| h.errors), crowd)
}

fn spread<R, T: Copy + Ord + Default>(rows: &[R], of: impl Fn(&R) -> T) -> Quantiles<T> {
    let mut values: Vec<T> = rows.iter().map(of).collect();
    values.sort_unstable();
    Quantiles::of_sorted(&values)
}

fn median(sorted: &[Nanos]) -> Nanos {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => Nanos(0),
        n if n.is_multiple_of(2) => Nanos(sorted[middle - 1].0.midpoint(sorted[middle].0)),
        _ => sorted[middle],
    }
}

/// Value by which rows are compared; `None` if a row does not have it.
type Measure<R> = fn(&R) -> Option<f64>;

/// The indexes of the rows at the ends of each measure, then of those with the most
/// errors; of equal rows the first ones.
fn outliers<R>(rows: &[R], measures: &[Measure<R>], errors: fn(&R) -> u64) -> Vec<usize> {
    let mut named = BTreeSet::new();
    for measure in measures {
        let all = rows.iter().enumerate();
        let mut order: Vec<(f64, usize)> = all
            .filter_map(|(i, row)| Some((measure(row)?, i)))
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        named.extend(order.iter().take(ENDS).map(|(_, place)| *place));
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        named.extend(order.iter().take(ENDS).map(|(_, place)| *place));
    }
    let mut failing: Vec<usize> = (0..rows.len()).filter(|i| errors(&rows[*i]) > 0).collect();
    failing.sort_by_key(|i| Reverse(errors(&rows[*i])));
    for place in failing {
        if named.len() >= NAMED_MAX {
            break;
        }
        named.insert(place);
    }
    named.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rank;
    use proptest::prelude::*;

    /// Ranks with values that are a permutation of 0 … n − 1, times 10.
    fn ranks(n: u64) -> Vec<RankOutcome> {
        let value = |rank: u64| (rank * 7 + 3) % n * 10;
        let row = |rank: u64| RankOutcome {
            rank: Rank(rank as u32),
            host: format!("h{}", rank / 32),
            items: value(rank),
            errors: 0,
            elapsed: Nanos(value(rank)),
            p50: Nanos(value(rank) + 1),
            p99: Nanos(value(rank) + 2),
            max: Nanos(value(rank) + 3),
            cpu: Nanos(value(rank) + 4),
        };
        (0..n).map(row).collect()
    }

    #[test]
    fn the_quantiles_of_1025_ranks_are_those_of_the_sorted_values() {
        let (_, crowd) = of_ranks(&ranks(1025));
        // ⌈q·1025⌉ - 1: 10, 51, 256, 512, 768, 973, 1014.
        let expected = |more: u64| Quantiles {
            min: more,
            p1: 100 + more,
            p5: 510 + more,
            p25: 2560 + more,
            p50: 5120 + more,
            p75: 7680 + more,
            p95: 9730 + more,
            p99: 10140 + more,
            max: 10240 + more,
        };
        assert_eq!(crowd.items, expected(0));
        assert_eq!(crowd.errors, Quantiles::default());
        let p99 = crowd.p99;
        assert_eq!(
            (p99.min.0, p99.p1.0, p99.p99.0, p99.max.0),
            (2, 102, 10142, 10242)
        );
        assert_eq!((crowd.cpu.p50, crowd.max.p95), (Nanos(5124), Nanos(9733)));
        assert_eq!((crowd.ranks, crowd.busy), (1025, 1024));
        // Median of 10, 20 … 10240.
        assert_eq!(crowd.busy_median, Nanos(5125));
    }

    #[test]
    fn ranks_at_the_ends_and_those_that_failed_are_named() {
        let mut rows = ranks(2000);
        rows[77].errors = 5;
        let (named, _) = of_ranks(&rows);
        assert!(named.len() <= NAMED_MAX && named.is_sorted());
        assert!(named.contains(&77));
        let ends = |row: &RankOutcome| row.items <= 30 || row.items >= 19960;
        let expected = rows.iter().filter(|r| ends(r)).count();
        let named_ends = named.iter().filter(|i| ends(&rows[**i])).count();
        assert_eq!((named_ends, expected), (8, 8));
    }

    #[test]
    fn of_many_that_failed_those_with_the_most_errors_are_named() {
        let mut rows = ranks(4096);
        for (rank, row) in rows.iter_mut().enumerate() {
            row.errors = rank as u64;
        }
        let (named, crowd) = of_ranks(&rows);
        assert_eq!(named.len(), NAMED_MAX);
        assert!((4060..4096).all(|rank| named.contains(&rank)), "{named:?}");
        assert_eq!(crowd.errors.max, 4095);
    }

    #[test]
    fn an_idle_rank_is_no_fast_one() {
        let mut rows = ranks(1500);
        for row in &mut rows[1..] {
            (row.items, row.elapsed) = (0, Nanos(0));
        }
        rows[0].elapsed = Nanos(800);
        let (named, crowd) = of_ranks(&rows);
        assert!(named.contains(&0));
        assert_eq!((crowd.busy, crowd.busy_median), (1, Nanos(800)));
        assert_eq!(crowd.elapsed.p99, Nanos(0));
    }

    #[test]
    fn hosts_at_the_ends_of_the_rate_per_rank_are_named() {
        let host = |i: u64| HostSummary {
            ranks: if i == 150 { 100 } else { 1 + i % 2 },
            items: 1000 * (1 + i % 2) + i,
            bytes: 0,
            errors: 0,
            elapsed: Nanos(1_000_000_000),
            p50: Nanos(i),
            p99: Nanos(2 * i),
            max: Nanos(3 * i),
        };
        let rows: Vec<HostSummary> = (0..300).map(host).collect();
        let (named, crowd) = of_hosts(&rows);
        assert!(named.len() <= NAMED_MAX);
        // The ranks of that host share 1150 items.
        assert!(named.contains(&150) && named.contains(&0) && named.contains(&299));
        assert_eq!(crowd.rate.min, 1000.0);
        assert_eq!(crowd.rate.max, 2299.0);
        assert_eq!((crowd.hosts, crowd.max.p50), (300, Nanos(447)));
    }

    proptest! {
        #[test]
        fn a_quantile_is_a_value_with_so_many_below_or_at_it(mut values in prop::collection::vec(0_u64..1000, 1..3000)) {
            values.sort_unstable();
            let all = Quantiles::of_sorted(&values);
            for (percent, value) in [(1, all.p1), (5, all.p5), (25, all.p25), (50, all.p50), (99, all.p99)] {
                let at_most = values.iter().filter(|v| **v <= value).count();
                let below = values.iter().filter(|v| **v < value).count();
                prop_assert!(100 * at_most >= percent * values.len() && 100 * below < percent * values.len());
            }
            prop_assert_eq!((all.min, Some(&all.max)), (values[0], values.last()));
        }
    }
}
