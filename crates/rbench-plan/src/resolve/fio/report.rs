//! The report of a job of fio: defaults of its options on reports and logs.

use rbench_core::Nanos;
use rbench_core::job::FioShown;

use crate::jobs::{FioReport, JobPlan, LeftOut, Logs, WindowValue};
use crate::resolve::PlanError;
use crate::spec::fio::{Job, Settings};

/// Length of a sample of bandwidth or operations per second, as in fio.
const SAMPLED_EVERY: Nanos = Nanos(500_000_000);

/// The report of `job`, which belongs to `group`.
pub(super) fn report(job: &Job, group: u32, notes: &mut Vec<String>) -> FioReport {
    let s = &job.settings;
    let every = |given: Option<Nanos>| given.filter(|time| time.0 > 0).unwrap_or(SAMPLED_EVERY);
    if let Some(clock) = &s.clocksource {
        notes.push(format!(
            "clocksource={clock} has no effect: times come from CLOCK_MONOTONIC, which reads \
             the processor's counter where the kernel uses it"
        ));
    }
    FioReport {
        group,
        logs: logs(&s.report.logs, &job.name),
        shown: FioShown {
            percentiles: percentiles(s),
            ..s.report.shown.clone()
        },
        left_out: left_out(s),
        sampled_every: [every(s.bwavgtime), every(s.iopsavgtime)],
        options: job.options.clone(),
        ..s.report.clone()
    }
}

/// Logs without a prefix have the job's name.
fn logs(given: &Logs, job: &str) -> Logs {
    let named = |prefix: &Option<String>| {
        prefix.as_ref().map(|prefix| match prefix.as_str() {
            "" => job.to_owned(),
            prefix => prefix.to_owned(),
        })
    };
    Logs {
        bandwidth: named(&given.bandwidth),
        iops: named(&given.iops),
        latency: named(&given.latency),
        histogram: named(&given.histogram),
        ..given.clone()
    }
}

/// With `--bandwidth-log`: stretches as short as any job's `bwavgtime`.
pub(super) fn log_together(rounds: &mut [Vec<JobPlan>]) {
    let jobs = rounds.iter().flatten();
    let least = jobs.map(|job| job.sampled_every()[0]).min();
    for job in rounds.iter_mut().flatten() {
        if let (Some(report), Some(least)) = (&mut job.report, least) {
            report.moved_every = least;
        }
    }
}

/// Checks that logs can be written as requested.
pub(super) fn check_logs(s: &Settings) -> Result<(), PlanError> {
    let logs = &s.report.logs;
    if logs.histogram.is_some() && logs.histogram_every.0 == 0 {
        refuse!("write_hist_log needs log_hist_msec, the time between two histograms");
    }
    if logs.issue_time && !(logs.latency.is_some() && logs.offsets) {
        refuse!("log_issue_time needs write_lat_log and log_offset=1");
    }
    let room = !logs.issue_time && logs.values != WindowValue::Both;
    refuse_if! {
        logs.compressed && !room =>
            "log_store_compressed: records hold one value, so it cannot be combined with \
             log_window_value=both or log_issue_time";
    }
    Ok(())
}

/// `gtod_reduce` is all of them but `stats`.
fn left_out(s: &Settings) -> LeftOut {
    let given = s.report.left_out;
    match s.gtod_reduce {
        Some(true) => LeftOut {
            all: given.all,
            slat: true,
            clat: true,
            lat: true,
            samples: true,
        },
        Some(false) | None => given,
    }
}

fn percentiles(s: &Settings) -> Vec<f64> {
    let mut list = s.report.shown.percentiles.clone();
    list.sort_by(f64::total_cmp);
    list.dedup();
    list
}
