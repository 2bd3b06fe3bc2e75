//! The values that all outputs of an entry share: directions, rates, percentiles and distributions.
//! The outputs only format them.

use std::borrow::Cow;

use rbench_core::job::{DirectionOutcome, JobOutcome};
use rbench_core::priority::AtPriority;
use rbench_core::{Latency, Nanos, Unified};

use super::FioRun;
use super::numbers::percent;
use crate::schema::{FioEntry, FioShown};

/// A direction in the outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// All directions together.
    Mixed,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Write => "write",
            Way::Trim => "trim",
            Way::Mixed => "mixed",
        }
    }
}

/// One direction of an entry.
#[derive(Debug)]
pub struct Direction<'a> {
    pub way: Way,
    /// The recorded values.
    pub raw: Cow<'a, DirectionOutcome>,
    pub rates: Rates,
    /// Percentage of its group's bandwidth, by the samples.
    pub of_group: f64,
}

impl<'a> Direction<'a> {
    fn of(way: Way, raw: Cow<'a, DirectionOutcome>) -> Direction<'a> {
        Direction {
            way,
            rates: Rates::of(raw.ios, raw.bytes, raw.runtime),
            of_group: 0.0,
            raw,
        }
    }
}

/// Rates over a whole number of milliseconds, so that they match the displayed amounts and run
/// time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Run time, ms, rounded up.
    pub runtime_ms: u64,
    pub bytes_per_s: u64,
    pub iops: f64,
}

impl Rates {
    fn of(ios: u64, bytes: u64, runtime: Nanos) -> Rates {
        let runtime_ms = runtime.0.div_ceil(1_000_000);
        let over = |amount: u64| match runtime_ms {
            0 => 0,
            ms => u128::from(amount) * 1000 / u128::from(ms),
        };
        Rates {
            runtime_ms,
            bytes_per_s: over(bytes) as u64,
            iops: match runtime_ms {
                0 => 0.0,
                ms => ios as f64 * 1000.0 / ms as f64,
            },
        }
    }

    /// Whole KiB per second.
    pub fn kib_per_s(self) -> u64 {
        self.bytes_per_s / 1024
    }
}

/// The displayed form of an entry.
#[derive(Debug)]
pub struct Shown<'a> {
    pub entry: &'a FioEntry,
    /// Read, write and trim, or mixed.
    pub directions: Vec<Direction<'a>>,
    pub spread: Spread,
}

/// A direction of all entries of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupTotal {
    pub way: Way,
    pub bytes: u64,
    /// All bytes over the longest run time.
    pub bytes_per_s: u64,
    /// Lowest and highest rate of an entry.
    pub bytes_per_s_range: (u64, u64),
    pub runtime_ms_range: (u64, u64),
}

/// All entries, in their order.
pub fn entries(run: &FioRun) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown> = run.entries.iter().map(shown).collect();
    for group in groups(run) {
        let totals = totals(&all, group);
        let members = all.iter_mut().filter(|s| s.entry.group == group);
        for direction in members.flat_map(|s| &mut s.directions) {
            let of_all = totals.iter().find(|t| t.way == direction.way);
            let kib_per_s = of_all.map_or(0.0, |t| t.bytes_per_s as f64 / 1024.0);
            if kib_per_s > 0.0 {
                // From whole KiB, like in fio.
                let share = 100.0 * direction.raw.bw.mean().trunc() / kib_per_s;
                direction.of_group = share.min(100.0);
            }
        }
    }
    all
}

/// The numbers of the groups, ascending.
pub fn groups(run: &FioRun) -> Vec<u32> {
    let mut all: Vec<u32> = run.entries.iter().map(|e| e.group).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The used directions of a group.
pub fn totals(all: &[Shown], group: u32) -> Vec<GroupTotal> {
    let total = |way: Way| {
        let members = all.iter().filter(|s| s.entry.group == group);
        let mut total: Option<GroupTotal> = None;
        for one in members.flat_map(|s| &s.directions) {
            let Rates {
                runtime_ms,
                bytes_per_s,
                iops: _,
            } = one.rates;
            if one.way != way || runtime_ms == 0 {
                continue;
            }
            let sum = total.get_or_insert(GroupTotal {
                way,
                bytes: 0,
                bytes_per_s: 0,
                bytes_per_s_range: (bytes_per_s, bytes_per_s),
                runtime_ms_range: (runtime_ms, runtime_ms),
            });
            sum.bytes += one.raw.bytes;
            widen(&mut sum.bytes_per_s_range, bytes_per_s);
            widen(&mut sum.runtime_ms_range, runtime_ms);
        }
        let mut total = total?;
        let longest = Nanos(total.runtime_ms_range.1 * 1_000_000);
        total.bytes_per_s = Rates::of(0, total.bytes, longest).bytes_per_s;
        Some(total)
    };
    let ways = [Way::Read, Way::Write, Way::Trim, Way::Mixed];
    ways.into_iter().filter_map(total).collect()
}

fn widen(range: &mut (u64, u64), value: u64) {
    *range = (range.0.min(value), range.1.max(value));
}

fn shown(entry: &FioEntry) -> Shown<'_> {
    let JobOutcome {
        read, write, trim, ..
    } = &entry.outcome;
    let latencies = [&read.clat, &write.clat, &trim.clat];
    // Operations on names have fewer latencies than I/Os.
    let timed = latencies.iter().map(|clat| clat.count()).sum::<u64>();
    let spread = Spread::of(latencies, timed.min(read.ios + write.ios + trim.ios));
    let apart = || {
        [
            Direction::of(Way::Read, Cow::Borrowed(read)),
            Direction::of(Way::Write, Cow::Borrowed(write)),
            Direction::of(Way::Trim, Cow::Borrowed(trim)),
        ]
    };
    let mixed = || {
        let mut all = read.clone();
        all.merge(write);
        all.merge(trim);
        [Direction::of(Way::Mixed, Cow::Owned(all))]
    };
    let directions = match entry.shown.unified {
        Unified::Apart => apart().into(),
        Unified::Mixed => mixed().into(),
        Unified::Both => apart().into_iter().chain(mixed()).collect(),
    };
    Shown {
        entry,
        directions,
        spread,
    }
}

/// The latencies of a direction by priority.
#[derive(Debug)]
pub struct Priorities<'r> {
    /// The latency: `clat`, or `lat`.
    pub name: &'static str,
    /// True if its percentiles are shown.
    pub percentiles: bool,
    /// Each priority that an operation had.
    pub all: Vec<&'r AtPriority>,
}

impl Priorities<'_> {
    /// Those of `raw`, if there are several.
    pub fn of<'r>(raw: &'r DirectionOutcome, shown: &FioShown) -> Option<Priorities<'r>> {
        let used = raw.priorities.iter().filter(|one| !one.latency.is_empty());
        let all: Vec<&AtPriority> = used.collect();
        let (name, percentiles) = match shown.lat_percentiles && !raw.lat.is_empty() {
            true => ("lat", true),
            false => ("clat", shown.clat_percentiles),
        };
        (all.len() > 1).then_some(Priorities {
            name,
            percentiles,
            all,
        })
    }
}

/// The sample standard deviation, ns; 0 for fewer than two values.
pub fn stddev_ns(latency: &Latency) -> f64 {
    let n = latency.count() as f64;
    if n < 2.0 {
        return 0.0;
    }
    latency.stddev_ns() * (n / (n - 1.0)).sqrt()
}

/// The values at these percentiles (0 to 100), ns.
pub fn percentiles(latency: &Latency, wanted: &[f64]) -> Vec<u64> {
    // Slightly less, so that 99.9 percent of 1000 is 999 and not 1000 because of the rounding of
    // 99.9 / 100.
    let at = |p: &f64| latency.quantile(p / 100.0 * (1.0 - 1e-12)).0;
    wanted.iter().map(at).collect()
}

/// Upper bounds of the columns of each unit of the latency distribution.
pub const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// The columns of a unit in words; ms have two more than the others.
pub fn bounds() -> impl Iterator<Item = String> {
    let more = ["2000", ">=2000"].map(str::to_owned);
    BOUNDS.iter().map(u64::to_string).chain(more)
}

/// Depths of requests in flight, up to each.
pub const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Requests that are submitted or completed together, up to each.
pub const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Completion latencies of all directions in columns, in percent of all
/// operations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spread {
    /// Below each of [`BOUNDS`] ns.
    pub ns: [f64; 10],
    /// Below each of them in us.
    pub us: [f64; 10],
    /// Below each of them in ms, then below 2000 ms, then above.
    pub ms: [f64; 12],
    /// `us` with all of `ns` in its first column, for the terse output.
    pub us_with_ns: [f64; 10],
}

impl Spread {
    fn of(latencies: [&Latency; 3], ios: u64) -> Spread {
        let mut counts = [0_u64; 32];
        for latency in latencies {
            for (low, high, n) in latency.ranges() {
                // Bounds such as 50 us lie within a bucket: its middle decides.
                counts[column(low.0 + (high.0 - low.0) / 2)] += n;
            }
            counts[31] += latency.above();
        }
        let below_us: u64 = counts[..10].iter().sum();
        let part = |n: u64| percent(n, ios, 0.01);
        Spread {
            ns: std::array::from_fn(|i| part(counts[i])),
            us: std::array::from_fn(|i| part(counts[10 + i])),
            ms: std::array::from_fn(|i| part(counts[20 + i])),
            us_with_ns: std::array::from_fn(|i| match i {
                0 => part(below_us + counts[10]),
                i => part(counts[10 + i]),
            }),
        }
    }
}

/// The column of a latency: ten each for ns and us, twelve for ms.
fn column(ns: u64) -> usize {
    let scales = [(0, 1), (10, 1_000), (20, 1_000_000)];
    for (first, scale) in scales {
        if let Some(i) = BOUNDS.iter().position(|bound| ns < bound * scale) {
            return first + i;
        }
    }
    if ns < 2_000_000_000 { 30 } else { 31 }
}

/// Depths or batch sizes as percentages of their sum.
pub fn parts(counts: &[u64; 7]) -> [f64; 7] {
    let all = counts.iter().sum();
    counts.map(|n| percent(n, all, 0.1))
}

/// `part` of the workers' time, in percent.
pub fn of_time(part: Nanos, entry: &FioEntry) -> f64 {
    match entry.outcome.elapsed_sum.0 {
        0 => 0.0,
        all => 100.0 * part.0 as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut all = Latency::new();
        values.into_iter().for_each(|v| all.record(Nanos(v)));
        all
    }

    #[test]
    fn rates_follow_from_amounts_and_whole_milliseconds() {
        // Amounts and rates of a run of fio.
        let rates = Rates::of(1426, 5_840_896, Nanos(104_200_000));
        assert_eq!(rates.runtime_ms, 105);
        assert_eq!((rates.bytes_per_s, rates.kib_per_s()), (55_627_580, 54_323));
        assert_eq!(format!("{:.6}", rates.iops), "13580.952381");
        let nothing = Rates::of(0, 0, Nanos(0));
        assert_eq!((nothing.bytes_per_s, nothing.iops), (0, 0.0));
    }

    #[test]
    fn a_percentile_is_the_value_of_its_rank() {
        let all = recorded(1..=1000);
        assert_eq!(
            percentiles(&all, &[0.1, 50.0, 99.0, 99.9, 100.0]),
            [1, 500, 990, 999, 1000]
        );
        assert_eq!(percentiles(&recorded([8082, 48_121]), &[50.0])[0], 8083);
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let deviation = stddev_ns(&recorded([150_234_368, 150_606_664]));
        assert_eq!(format!("{deviation:.3}"), "263253.026");
        assert_eq!(stddev_ns(&recorded([5])), 0.0);
    }

    #[test]
    fn a_latency_counts_below_the_bound_above_it() {
        let check = |ns: u64, expect: usize| assert_eq!(column(ns), expect, "{ns} ns");
        check(0, 0);
        check(1, 0);
        check(2, 1);
        check(999, 9);
        check(1_000, 10);
        check(1_999, 10);
        check(2_000, 11);
        check(999_999, 19);
        check(1_000_000, 20);
        check(1_999_999_999, 30);
        check(2_000_000_000, 31);
    }

    #[test]
    fn columns_of_all_latencies_make_up_everything() {
        let (read, write) = (
            recorded([1, 300, 5_000, 5_000]),
            recorded([70_000_000, 4_000_000_000_000]),
        );
        let spread = Spread::of([&read, &write, &Latency::new()], 6);
        let sum = |all: &[f64]| all.iter().sum::<f64>();
        assert!((sum(&spread.ns) + sum(&spread.us) + sum(&spread.ms) - 100.0).abs() < 1e-9);
        assert_eq!(spread.us[2], 200.0 / 6.0);
        assert_eq!((spread.ms[5], spread.ms[11]), (100.0 / 6.0, 100.0 / 6.0));
        assert_eq!(spread.us_with_ns[0], 200.0 / 6.0);
    }
}
