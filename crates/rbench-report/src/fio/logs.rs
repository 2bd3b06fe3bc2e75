//! Log files of a job: their names and lines, as fio 3.33 writes them.
//!
//! A line is `ms, value, direction, bs[, offset], priority`: direction 0 for
//! reads and 1 for writes, the priority always 0. Latencies are ns, bandwidth
//! is KiB/s. A line of an averaging interval has no block size and no offset:
//! both are 0.

use std::fmt::Write as _;

use rbench_core::Nanos;
use rbench_core::job::{LogHistogram, LogSample};

/// What a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bandwidth, KiB/s.
    Bandwidth,
    /// Operations: 1 for each one, per second with an interval.
    Iops,
    /// Prepare to submit, ns. fio makes this file with synchronous engines,
    /// too, and leaves it empty.
    Slat,
    /// Submit to completion, ns.
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

/// `prefix_bw.N.log`, where N counts the workers of all jobs from 1.
pub fn file_name(prefix: &str, kind: Kind, number: u64) -> String {
    format!("{prefix}_{}.{number}.log", kind.name())
}

/// `prefix_clat_hist.N.log`, the same way.
pub fn histogram_file_name(prefix: &str, number: u64) -> String {
    format!("{prefix}_clat_hist.{number}.log")
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// A line stands for an interval, not for one operation.
    pub averaged: bool,
    /// `log_offset`: a column of offsets.
    pub offsets: bool,
}

/// The line of one operation or interval; ends with a newline.
pub fn line(kind: Kind, sample: &LogSample, form: Form) -> String {
    let value = match kind {
        Kind::Bandwidth => per_second(u128::from(sample.bytes), sample.span) / 1024,
        Kind::Iops if form.averaged => per_second(u128::from(sample.ios), sample.span),
        Kind::Iops => u128::from(sample.ios),
        Kind::Slat => u128::from(sample.slat.0),
        Kind::Clat => u128::from(sample.clat.0),
        Kind::Lat => u128::from(sample.lat.0),
    };
    let (block, offset) = match form.averaged {
        true => (0, 0),
        false => (sample.block, sample.offset),
    };
    let ms = sample.at.0 / 1_000_000;
    let mut out = format!("{ms}, {value}, {}, {block}, ", u8::from(sample.write));
    if form.offsets {
        let _ = write!(out, "{offset}, ");
    }
    out.push_str("0\n");
    out
}

fn per_second(amount: u128, span: Nanos) -> u128 {
    amount * 1_000_000_000 / u128::from(span.0.max(1))
}

/// Columns of a histogram: 29 groups of 64.
const COLUMNS: usize = 29 * 64;

/// The column of a latency: its own up to 127 ns, then 64 for each power of
/// two; what is above 17 s is in the last.
fn column(ns: u64) -> usize {
    let shift = (u64::BITS - (ns | 64).leading_zeros() - 7) as usize;
    let column = match shift {
        0 => ns as usize,
        _ => (shift + 1) * 64 + ((ns >> shift) as usize & 63),
    };
    column.min(COLUMNS - 1)
}

/// The line of one interval: `ms, direction, bs`, then the count of each of
/// the 1856 columns; ends with a newline.
pub fn histogram_line(interval: &LogHistogram) -> String {
    let mut counts = vec![0_u64; COLUMNS];
    for (lowest, _, count) in &interval.buckets {
        // Each of our buckets is within one column.
        counts[column(lowest.0)] += count;
    }
    let (ms, direction) = (interval.at.0 / 1_000_000, u8::from(interval.write));
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
    use rbench_core::Latency;

    const WRITE: LogSample = LogSample {
        at: Nanos(3_999_999),
        write: true,
        ios: 1,
        bytes: 4096,
        block: 4096,
        offset: 28_672,
        span: Nanos(12_118),
        slat: Nanos(411),
        clat: Nanos(11_707),
        lat: Nanos(12_118),
    };

    #[test]
    fn names_count_from_one() {
        assert_eq!(file_name("out/x", Kind::Bandwidth, 1), "out/x_bw.1.log");
        assert_eq!(histogram_file_name("x", 12), "x_clat_hist.12.log");
    }

    #[test]
    fn each_operation_has_a_line() {
        let check =
            |kind: Kind, expect: &str| assert_eq!(line(kind, &WRITE, Form::default()), expect);
        check(Kind::Clat, "3, 11707, 1, 4096, 0\n");
        check(Kind::Slat, "3, 411, 1, 4096, 0\n");
        check(Kind::Lat, "3, 12118, 1, 4096, 0\n");
        check(Kind::Iops, "3, 1, 1, 4096, 0\n");
        // 4 KiB in 12.118 us.
        check(Kind::Bandwidth, "3, 330087, 1, 4096, 0\n");
    }

    #[test]
    fn offsets_stand_before_the_priority() {
        let form = Form {
            offsets: true,
            ..Form::default()
        };
        assert_eq!(
            line(Kind::Lat, &WRITE, form),
            "3, 12118, 1, 4096, 28672, 0\n"
        );
    }

    #[test]
    fn an_interval_has_rates_and_no_block() {
        let second = LogSample {
            at: Nanos(1_001_000_000),
            write: false,
            ios: 5047,
            bytes: 5047 * 4096,
            span: Nanos(500_000_000),
            ..WRITE
        };
        let form = Form {
            averaged: true,
            offsets: true,
        };
        assert_eq!(line(Kind::Iops, &second, form), "1001, 10094, 0, 0, 0, 0\n");
        assert_eq!(
            line(Kind::Bandwidth, &second, form),
            "1001, 40376, 0, 0, 0, 0\n"
        );
        let form = Form {
            averaged: true,
            offsets: false,
        };
        assert_eq!(line(Kind::Clat, &second, form), "1001, 11707, 0, 0, 0\n");
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
        // Midpoints that fio's json+ names: each in the middle of its column.
        let check = |low: u64, high: u64| {
            let at = column(low);
            assert_eq!(column(high), at, "{low}");
            assert_eq!(
                (column(low - 1), column(high + 1)),
                (at - 1, at + 1),
                "{low}"
            );
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
        let values: Vec<u64> = (0..44)
            .flat_map(|b| [1_u64 << b, (3 << b) / 2 + 1])
            .collect();
        let mut latency = Latency::new();
        values.iter().for_each(|v| latency.record(Nanos(*v)));
        let text = histogram_line(&LogHistogram {
            at: Nanos(513_000_000),
            write: true,
            block: 4096,
            buckets: latency.ranges().collect(),
        });
        let fields: Vec<u64> = text
            .trim_end()
            .split(", ")
            .map(|f| f.parse().expect("a number"))
            .collect();
        assert_eq!(fields[..3], [513, 1, 4096]);
        let mut expect = vec![0; COLUMNS];
        // Above one hour no bucket holds a value.
        let held = values.iter().filter(|v| **v <= 3_600_000_000_000);
        held.for_each(|v| expect[column(*v)] += 1);
        assert_eq!(fields[3..], expect);
    }
}
