//! Reports of a run's phases to the live status.

use rbench_core::timeline::IntervalPart;
use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use rbench_exec::Progress;
use rbench_exec::intervals::{IntervalRow, Span};
use rbench_report::intervals::IntervalOf;
use rbench_report::schema::LiveProgress;

use super::Feed;

/// Converts the row of an interval for the report.
pub fn interval_of(row: &IntervalRow, interval: Nanos) -> IntervalOf<'_> {
    IntervalOf {
        iteration: row.iteration,
        name: &row.name,
        label: &row.label,
        op: row.op,
        open_loop: row.open_loop,
        interval,
    }
}

/// The intervals of a phase.
impl Feed {
    /// Announces a phase with these rows.
    pub fn begun(&self, rows: &[IntervalRow], interval: Nanos) {
        let rows = rows.to_vec();
        self.tell(move |live| {
            rows.iter()
                .for_each(|row| live.row(interval_of(row, interval)))
        });
    }

    /// Forwards a row's interval, or a part of it.
    pub fn interval(&self, row: &IntervalRow, span: Span, part: &IntervalPart) {
        let (row, part) = (row.clone(), part.clone());
        self.tell(move |live| live.interval(interval_of(&row, span.interval), span.length, &part));
    }

    /// Forwards a host's interval.
    pub fn of_host(&self, host: &str, row: &IntervalRow, interval: Nanos, part: &IntervalPart) {
        let (host, row, part) = (host.to_owned(), row.clone(), part.clone());
        self.tell(move |live| live.of_host(&host, interval_of(&row, interval), &part));
    }

    /// Forwards the CPU time that a rank and its host's client have used.
    pub fn used(&self, rank: Rank, host: &str, tool: Nanos, client: Option<Nanos>) {
        let (host, now) = (host.to_owned(), MonotonicClock.now());
        self.tell(move |live| live.used(rank, &host, (tool, client), now));
    }
}

/// Progress of a phase; `None` before its workers have started.
pub fn progress(progress: &Progress) -> Option<LiveProgress> {
    let Progress {
        items,
        failed,
        bytes,
        total,
        elapsed,
        rate,
        bandwidth,
        left,
        backlog,
    } = *progress;
    Some(LiveProgress {
        elapsed_s: elapsed?.as_secs_f64(),
        left_s: left.map(Nanos::as_secs_f64),
        items,
        // The total may be too low an estimate.
        total: total.map(|total| total.max(items)),
        failed,
        bytes,
        rate,
        bandwidth,
        backlog,
    })
}
