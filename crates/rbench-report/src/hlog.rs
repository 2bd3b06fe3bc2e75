//! The interval log of HdrHistogram (`--hlog`), for HistogramLogAnalyzer, HistogramLogProcessor and
//! similar tools. It has a line with the distribution of each row in each interval.
//!
//! A line's tag is the name of the row; with `.response` after it the times count from the intended
//! start. Values are the ends of their buckets, 64 to a power of two, but never above the longest.
//! Percentiles are those of the result file's timeline.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use rbench_core::Nanos;
use rbench_core::coarse::CoarseLatency;
use rbench_core::hist::histogram;

/// The first line; a second line identifies a log of rbench.
const FORMAT: &str = "[Histogram log format version 1.3]";
/// The start of the second line.
const MADE_BY: &str = "[rbench ";
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
/// The column of the largest value is in ms.
const MAX_DIVISOR: f64 = 1e6;

/// The first bytes of a log of rbench.
pub fn beginning() -> String {
    format!("#{FORMAT}\n#{MADE_BY}")
}

/// The lines before the intervals of a run that started at `start`, to which times refer.
pub fn header(version: &str, run_id: &str, start: SystemTime) -> String {
    let mut text = Vec::new();
    IntervalLogWriterBuilder::new()
        .add_comment(FORMAT)
        .add_comment(&format!("{MADE_BY}{version}, run {run_id}]"))
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(MAX_DIVISOR)
        .begin_log_with(&mut text, &mut V2DeflateSerializer::new())
        .expect("writing to memory does not fail");
    String::from_utf8_lossy(&text).into_owned() + LEGEND
}

/// A comment line, which readers skip.
pub fn comment(text: &str) -> String {
    format!("#{}\n", text.replace(['\n', '\r'], " "))
}

/// The line of the row `name` in the interval that started this long after the run; empty without
/// values.
pub fn line(name: &str, begin: Duration, length: Nanos, latency: &CoarseLatency) -> String {
    if latency.is_empty() {
        return String::new();
    }
    let name = name.replace([',', ' ', '\n', '\r'], "_");
    let mut text = Vec::new();
    IntervalLogWriterBuilder::new()
        .with_max_value_divisor(MAX_DIVISOR)
        .begin_log_with(&mut text, &mut V2DeflateSerializer::new())
        .expect("writing to memory does not fail")
        .write_histogram(
            &histogram(&latency.to_latency()),
            begin,
            length.into(),
            Tag::new(&name),
        )
        .expect("writing to memory does not fail and counts are below 2^63");
    let text = String::from_utf8_lossy(&text);
    // The lines before repeat the header.
    let line = text.lines().last().unwrap_or_default();
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use rbench_core::coarse::CoarseRecorder;
    use rbench_core::hist::Histogram;

    #[test]
    fn the_librarys_reader_finds_what_was_written() {
        let mut recorder = CoarseRecorder::default();
        let values = [800, 1_000_000, 1_020_000, 7_000_000_123];
        values.iter().for_each(|ns| recorder.record(Nanos(*ns)));
        let latency = recorder.take();
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250);
        let log = header("0.1.0", "20250102-031415-abcd", start)
            + &line(
                "read, all",
                Duration::from_millis(2_500),
                Nanos(1_000_000_000),
                &latency,
            )
            + &line("none", Duration::ZERO, Nanos(1), &CoarseLatency::default());
        assert!(log.starts_with(&beginning()), "{log}");
        let entries: Vec<LogEntry<'_>> = IntervalLogIterator::new(log.as_bytes())
            .map(|entry| entry.expect("a log"))
            .collect();
        let [
            LogEntry::StartTime(first),
            LogEntry::BaseTime(base),
            LogEntry::Interval(interval),
        ] = entries.as_slice()
        else {
            panic!("{entries:?}");
        };
        assert_eq!(first, base);
        assert_eq!(*first, Duration::from_millis(1_700_000_000_250));
        assert_eq!(interval.tag().map(|tag| tag.as_str()), Some("read__all"));
        assert_eq!(interval.start_timestamp(), Duration::from_millis(2_500));
        assert_eq!(interval.duration(), Duration::from_secs(1));
        let bytes = STANDARD.decode(interval.encoded_histogram());
        let found: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.expect("base64").as_slice())
            .expect("a histogram");
        assert_eq!(found.len(), 4);
        for quantile in [0.1, 0.5, 0.75, 1.0] {
            let (ours, theirs) = (
                latency.quantile(quantile).0,
                found.value_at_quantile(quantile),
            );
            assert!(
                found.equivalent(ours, theirs),
                "{quantile}: {ours} {theirs}"
            );
        }
    }
}
