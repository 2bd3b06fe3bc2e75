//! Log files of a job: names and lines in the format of fio 3.33.
//!
//! A line is `ms, value, direction, bs[, offset], priority`: direction 0 for reads, 1 for writes, 2
//! for trims; priority 1 for a real-time one and 0 for others, or with `log_prio` the priority
//! itself. Latencies are ns, bandwidth is KiB/s. A line of an averaging interval has no block size,
//! no offset and no priority: all are 0.

use std::fmt::Write as _;

use rbench_core::job::{LogHistogram, LogSample};
use rbench_core::{Direction, IoPriority, Nanos};

/// The value that a log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bandwidth, KiB/s.
    Bandwidth,
    /// Operations: 1 for each operation, or per second with an interval.
    Iops,
    /// Time from preparation to submission, ns. With synchronous engines fio creates the file, too,
    /// but leaves it empty.
    Slat,
    /// Time from submission to completion, ns.
    Clat,
    /// Both together, ns.
    Lat,
}

impl Kind {
    /// The name within the file name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bandwidth => "bw",
            Kind::Iops => "iops",
            Kind::Slat => "slat",
            Kind::Clat => "clat",
            Kind::Lat => "lat",
        }
    }
}

/// `prefix_bw.N.log`, where N counts the workers of all jobs from 1; `None`: one file for
/// all of them, `prefix_bw.log`.
pub fn file_name(prefix: &str, kind: Kind, number: Option<u64>) -> String {
    named(prefix, kind.name(), number)
}

/// `prefix_clat_hist.N.log`, the same way.
pub fn histogram_file_name(prefix: &str, number: Option<u64>) -> String {
    named(prefix, "clat_hist", number)
}

fn named(prefix: &str, what: &str, number: Option<u64>) -> String {
    let number = number.map_or(String::new(), |number| format!(".{number}"));
    format!("{prefix}_{what}{number}.log")
}

/// The content of a line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Its time, ms.
    pub ms: u64,
    /// Its value.
    pub value: u64,
    /// The second value of an interval that has both.
    pub largest: Option<u64>,
    /// The direction of the operation.
    pub direction: Direction,
    /// Block size, bytes.
    pub block: u64,
    /// Offset, bytes.
    pub offset: u64,
    /// Priority.
    pub priority: IoPriority,
}

impl Line {
    /// Makes the line of one operation or interval.
    pub fn of(kind: Kind, sample: &LogSample, form: Form) -> Line {
        let [slat, clat, lat] = sample.max.map(|time| time.0);
        let [iops, bandwidth] = sample.max_rates;
        // The last sample of an interval may be incomplete.
        let rates = |amount: u64, max: u64| {
            let rate = u64::try_from(per_second(amount, sample.span)).unwrap_or(u64::MAX);
            (rate, max.max(rate))
        };
        let (value, largest) = match kind {
            Kind::Bandwidth => {
                let (mean, max) = rates(sample.bytes, bandwidth);
                form.of_window(mean / 1024, max / 1024)
            }
            Kind::Iops if form.averaged => {
                let (mean, max) = rates(sample.ios, iops);
                form.of_window(mean, max)
            }
            Kind::Iops => (sample.ios, None),
            Kind::Slat => form.of_window(sample.slat.0, slat),
            Kind::Clat => form.of_window(sample.clat.0, clat),
            Kind::Lat => form.of_window(sample.lat.0, lat),
        };
        // An interval has neither.
        let (block, offset) = match form.averaged {
            true => (0, 0),
            false => (sample.block, sample.offset),
        };
        Line {
            ms: form.time_ms(sample.at),
            value,
            largest,
            direction: sample.direction,
            block,
            offset,
            priority: sample.priority,
        }
    }
}

/// The format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// True if a line covers an interval, not one operation.
    pub averaged: bool,
    /// `log_offset`: a column of offsets.
    pub offsets: bool,
    /// `log_window_value`: intervals have the mean of their values, or only the largest.
    pub mean: bool,
    /// Intervals have the largest value, after the mean if both are on.
    pub max: bool,
    /// `log_prio`: the last column is a priority in fio's format.
    pub priority: bool,
    /// `log_issue_time`: the last column is the time of submission, ns. Like in fio it is 0 in all
    /// logs except slat and clat.
    pub issue_time: bool,
    /// `log_hist_coarseness`: a column of a histogram combines 2 to this power.
    pub coarseness: u32,
    /// Offset of all times, ms before the start of the job.
    pub epoch_ms: u64,
}

impl Form {
    /// The value of an operation or interval, and the second value if there is one.
    fn of_window(self, mean: u64, max: u64) -> (u64, Option<u64>) {
        match (self.averaged, self.mean, self.max) {
            (true, true, true) => (mean, Some(max)),
            (true, false, true) => (max, None),
            _ => (mean, None),
        }
    }

    /// Submission time of an operation, ns; 0 for an interval.
    fn issued_ns(self, sample: &LogSample) -> u64 {
        let at = self
            .epoch_ms
            .saturating_mul(1_000_000)
            .saturating_add(sample.at.0);
        match self.averaged {
            true => 0,
            false => at.saturating_sub(sample.clat.0),
        }
    }

    /// A time of the job in the form of the log, ms.
    fn time_ms(self, at: Nanos) -> u64 {
        self.epoch_ms.saturating_add(at.0 / 1_000_000)
    }
}

/// The line of one operation or interval; ends with a newline.
pub fn line(kind: Kind, sample: &LogSample, form: Form) -> String {
    let Line {
        ms,
        value,
        largest,
        direction,
        block,
        offset,
        priority,
    } = Line::of(kind, sample, form);
    let mut out = format!("{ms}, {value}, ");
    if let Some(largest) = largest {
        let _ = write!(out, "{largest}, ");
    }
    let _ = write!(out, "{}, {block}, ", direction.number());
    if form.offsets {
        let _ = write!(out, "{offset}, ");
    }
    let _ = match form.priority {
        true => write!(out, "0x{:04x}", priority.0),
        false => write!(out, "{}", u8::from(priority.is_real_time())),
    };
    if form.issue_time {
        let issued = match kind {
            Kind::Slat | Kind::Clat => form.issued_ns(sample),
            Kind::Lat | Kind::Bandwidth | Kind::Iops => 0,
        };
        let _ = write!(out, ", {issued}");
    }
    out.push('\n');
    out
}

fn per_second(amount: u64, span: Nanos) -> u128 {
    u128::from(amount) * 1_000_000_000 / u128::from(span.0.max(1))
}

/// Columns of a histogram: 29 groups of 64.
const COLUMNS: usize = 29 * 64;

/// The column of a latency: one per value up to 127 ns, then 64 for each power of two. Latencies
/// above 17 s are in the last.
fn column(ns: u64) -> usize {
    let shift = (u64::BITS - (ns | 64).leading_zeros() - 7) as usize;
    let column = match shift {
        0 => ns as usize,
        _ => (shift + 1) * 64 + ((ns >> shift) as usize & 63),
    };
    column.min(COLUMNS - 1)
}

/// The line of one interval: `ms, direction, bs`, then the count of each of
/// the 1856 columns, fewer with `log_hist_coarseness`; ends with a newline.
pub fn histogram_line(interval: &LogHistogram, form: Form) -> String {
    let mut counts = vec![0_u64; COLUMNS >> form.coarseness];
    for (lowest, _, count) in &interval.buckets {
        // Each bucket of rbench lies within one column.
        counts[column(lowest.0) >> form.coarseness] += count;
    }
    let (ms, direction) = (form.time_ms(interval.at), interval.direction.number());
    let mut out = format!("{ms}, {direction}, {}", interval.block);
    for count in counts {
        let _ = write!(out, ", {count}");
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::{Direction, Latency};

    const WRITE: LogSample = LogSample {
        at: Nanos(3_999_999),
        direction: Direction::Write,
        ios: 1,
        bytes: 4096,
        block: 4096,
        offset: 28_672,
        span: Nanos(12_118),
        slat: Nanos(411),
        clat: Nanos(11_707),
        lat: Nanos(12_118),
        max: [Nanos(500), Nanos(20_000), Nanos(20_500)],
        priority: IoPriority(0),
        max_rates: [120_000, 480 << 20],
    };

    #[test]
    fn names_count_from_one() {
        let first = file_name("out/x", Kind::Bandwidth, Some(1));
        assert_eq!(first, "out/x_bw.1.log");
        assert_eq!(file_name("x", Kind::Lat, None), "x_lat.log");
        assert_eq!(histogram_file_name("x", Some(12)), "x_clat_hist.12.log");
    }

    fn check(kind: Kind, sample: &LogSample, form: Form, expect: &str) {
        assert_eq!(line(kind, sample, form), format!("{expect}\n"));
    }

    #[test]
    fn each_operation_has_a_line() {
        for (kind, expect) in [
            (Kind::Clat, "3, 11707, 1, 4096, 0"),
            (Kind::Slat, "3, 411, 1, 4096, 0"),
            (Kind::Lat, "3, 12118, 1, 4096, 0"),
            (Kind::Iops, "3, 1, 1, 4096, 0"),
            // 4 KiB in 12.118 us.
            (Kind::Bandwidth, "3, 330087, 1, 4096, 0"),
        ] {
            check(kind, &WRITE, Form::default(), expect);
        }
    }

    #[test]
    fn directions_have_fios_numbers() {
        for (direction, expect) in Direction::ALL.into_iter().zip(0..) {
            let sample = LogSample { direction, ..WRITE };
            let expect = format!("3, 11707, {expect}, 4096, 0");
            check(Kind::Clat, &sample, Form::default(), &expect);
        }
    }

    #[test]
    fn offsets_stand_before_the_priority() {
        let form = Form {
            offsets: true,
            ..Form::default()
        };
        check(Kind::Lat, &WRITE, form, "3, 12118, 1, 4096, 28672, 0");
    }

    #[test]
    fn slat_and_clat_may_have_the_time_of_submission_behind_all_and_others_a_zero() {
        let form = Form {
            offsets: true,
            issue_time: true,
            ..Form::default()
        };
        let expect = "3, 11707, 1, 4096, 28672, 0, 3988292";
        check(Kind::Clat, &WRITE, form, expect);
        for (kind, value) in [
            (Kind::Iops, "1"),
            (Kind::Bandwidth, "330087"),
            (Kind::Lat, "12118"),
        ] {
            let expect = format!("3, {value}, 1, 4096, 28672, 0, 0");
            check(kind, &WRITE, form, &expect);
        }
        let later = Form {
            epoch_ms: 1_795_364_912_000,
            ..form
        };
        let text = line(Kind::Clat, &WRITE, later);
        assert!(text.ends_with(", 0, 1795364912003988292\n"), "{text}");
        let averaged = Form {
            averaged: true,
            ..form
        };
        assert!(line(Kind::Clat, &WRITE, averaged).ends_with(", 0, 0, 0, 0\n"));
    }

    #[test]
    fn an_interval_has_rates_and_no_block() {
        let second = LogSample {
            at: Nanos(1_001_000_000),
            direction: Direction::Read,
            ios: 5047,
            bytes: 5047 * 4096,
            span: Nanos(500_000_000),
            ..WRITE
        };
        let form = Form {
            averaged: true,
            offsets: true,
            ..Form::default()
        };
        check(Kind::Iops, &second, form, "1001, 10094, 0, 0, 0, 0");
        check(Kind::Bandwidth, &second, form, "1001, 40376, 0, 0, 0, 0");
        let form = Form {
            averaged: true,
            ..Form::default()
        };
        check(Kind::Clat, &second, form, "1001, 11707, 0, 0, 0");
    }

    #[test]
    fn times_priorities_and_values_have_the_form_that_was_asked_for() {
        let form = Form {
            epoch_ms: 1_795_364_912_000,
            priority: true,
            max: true,
            ..Form::default()
        };
        // Written by fio 3.33 with log_unix_epoch=1 and log_prio=1; a single operation has no
        // largest value.
        let expect = "1795364912003, 12118, 1, 4096, 0x0000";
        check(Kind::Lat, &WRITE, form, expect);
        let window = Form {
            averaged: true,
            ..form
        };
        let expect = "1795364912003, 20500, 1, 0, 0x0000";
        check(Kind::Lat, &WRITE, window, expect);
        let both = Form {
            mean: true,
            epoch_ms: 0,
            ..window
        };
        for (kind, values) in [
            (Kind::Slat, "411, 500"),
            (Kind::Iops, "82521, 120000"),
            (Kind::Bandwidth, "330087, 491520"),
        ] {
            check(kind, &WRITE, both, &format!("3, {values}, 1, 0, 0x0000"));
        }
        let expect = "1795364912003, 120000, 1, 0, 0x0000";
        check(Kind::Iops, &WRITE, window, expect);
    }

    #[test]
    fn the_last_column_is_the_priority_or_that_it_is_a_real_time_one() {
        // As fio 3.33 wrote with prio=4, with cmdprio_class=1, and with neither.
        let shown = Form {
            priority: true,
            ..Form::default()
        };
        for (priority, high, all) in [
            (IoPriority::new(2, 4, 0), "0", "0x4004"),
            (IoPriority::new(1, 0, 0), "1", "0x2000"),
            (IoPriority::default(), "0", "0x0000"),
        ] {
            let sample = LogSample { priority, ..WRITE };
            let expect = |last: &str| format!("3, 11707, 1, 4096, {last}");
            check(Kind::Clat, &sample, Form::default(), &expect(high));
            check(Kind::Clat, &sample, shown, &expect(all));
        }
    }

    #[test]
    fn coarser_histograms_have_the_same_counts_in_fewer_columns() {
        let histogram = LogHistogram {
            at: Nanos(1_000_000),
            direction: Direction::Write,
            block: 4096,
            buckets: vec![
                (Nanos(0), Nanos(0), 1),
                (Nanos(7), Nanos(7), 2),
                (Nanos(8), Nanos(8), 4),
            ],
        };
        let form = Form {
            coarseness: 3,
            ..Form::default()
        };
        let text = histogram_line(&histogram, form);
        let fields: Vec<&str> = text.trim_end().split(", ").collect();
        // fio 3.33 wrote as many.
        assert_eq!(fields.len(), 235);
        assert_eq!(fields[..6], ["1", "1", "4096", "3", "4", "0"]);
    }

    #[test]
    fn an_operation_in_no_time_has_a_line() {
        let instant = LogSample {
            span: Nanos(0),
            ..WRITE
        };
        assert!(line(Kind::Bandwidth, &instant, Form::default()).starts_with("3, 4000000000"));
    }

    #[test]
    fn columns_are_those_of_fio() {
        // Midpoints in fio's json+, each in the middle of its column.
        let check = |low: u64, high: u64| {
            let at = column(low);
            assert_eq!(column(high), at, "{low}");
            let beside = (column(low - 1), column(high + 1));
            assert_eq!(beside, (at - 1, at + 1), "{low}");
        };
        check(127, 127);
        check(128, 129);
        check(2_096 - 16, 2_096 + 15);
        check(50_944 - 256, 50_944 + 255);
        check(4_177_920 - 16_384, 4_177_920 + 16_383);
        assert_eq!((column(0), column(63), column(64)), (0, 63, 64));
        assert_eq!((column(17_179_869_183), column(u64::MAX)), (1855, 1855));
    }

    #[test]
    fn a_histogram_keeps_every_value_in_its_column() {
        let values = (0..44).flat_map(|b| [1_u64 << b, (3 << b) / 2 + 1]);
        let values: Vec<u64> = values.collect();
        let mut latency = Latency::new();
        values.iter().for_each(|v| latency.record(Nanos(*v)));
        let histogram = LogHistogram {
            at: Nanos(513_000_000),
            direction: Direction::Write,
            block: 4096,
            buckets: latency.ranges().collect(),
        };
        let text = histogram_line(&histogram, Form::default());
        let fields = text.trim_end().split(", ");
        let fields: Vec<u64> = fields.map(|f| f.parse().expect("a number")).collect();
        assert_eq!(fields[..3], [513, 1, 4096]);
        let mut expect = vec![0; COLUMNS];
        // Buckets hold no values above one hour.
        let held = values.iter().filter(|v| **v <= 3_600_000_000_000);
        held.for_each(|v| expect[column(*v)] += 1);
        assert_eq!(fields[3..], expect);
    }
}
