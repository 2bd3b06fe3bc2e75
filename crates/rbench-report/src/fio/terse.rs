//! fio's terse output, versions 2 to 5: a line for each entry, fields separated by
//! semicolons, latencies in whole us.

use std::fmt::{Display, Write as _};

use rbench_core::Latency;
use rbench_core::job::Series;

use super::FioRun;
use super::measured::{self, Direction, Shown, Way, of_time, parts, percentiles, stddev_ns};
use crate::schema::FioEntry;

/// Number of percentiles of a direction; unused ones are `0%=0`.
const PERCENTILES: usize = 20;

/// The terse output: a line for each entry.
pub fn terse(run: &FioRun) -> String {
    measured::entries(run)
        .iter()
        .map(|shown| line(run, shown))
        .collect()
}

fn line(run: &FioRun, shown: &Shown) -> String {
    let entry = shown.entry;
    let outcome = &entry.outcome;
    let version = run.terse_version;
    let mut out = version.to_string();
    if version > 2 {
        push(&mut out, &run.version);
    }
    push(&mut out, &entry.name);
    push(&mut out, entry.group);
    push(&mut out, outcome.error);
    // Version 3 has no trims.
    let trims = version != 3;
    let shown_ways = shown.directions.iter();
    for direction in shown_ways.filter(|d| trims || d.way != Way::Trim) {
        push_direction(&mut out, direction, entry, version > 4);
    }
    for cpu in [outcome.cpu_user, outcome.cpu_system] {
        let _ = write!(out, ";{:.6}%", of_time(cpu, entry));
    }
    for count in [outcome.switches, outcome.faults_major, outcome.faults_minor] {
        push(&mut out, count);
    }
    for percent in parts(&outcome.depths) {
        let _ = write!(out, ";{percent:.1}%");
    }
    for percent in shown.spread.us_with_ns.iter().chain(&shown.spread.ms) {
        let _ = write!(out, ";{percent:.2}%");
    }
    if version > 2 {
        out.push_str(&run.machine.disks_as_fields());
    }
    if entry.shown.continue_on_error {
        let _ = write!(out, ";{};{}", outcome.errors, outcome.first_error);
    }
    if let Some(text) = run.description(entry) {
        if version == 2 {
            out.push('\n');
        }
        push(&mut out, text);
    }
    out.push('\n');
    out
}

fn push(out: &mut String, field: impl Display) {
    let _ = write!(out, ";{field}");
}

fn push_direction(out: &mut String, direction: &Direction, entry: &FioEntry, samples: bool) {
    let (raw, rates) = (&direction.raw, direction.rates);
    push(out, raw.bytes / 1024);
    push(out, rates.kib_per_s());
    push(out, rates.iops as u64);
    push(out, rates.runtime_ms);
    push_latency(out, raw.slat.as_ref().unwrap_or(&Latency::new()));
    push_latency(out, &raw.clat);
    let of = match (entry.shown.clat_percentiles, entry.shown.lat_percentiles) {
        (_, true) => Some(&raw.lat),
        (true, false) => Some(&raw.clat),
        (false, false) => None,
    };
    push_percentiles(out, of, &entry.shown.percentiles);
    push_latency(out, &raw.lat);
    let Series { min, max, .. } = raw.bw;
    let (mean, stddev) = (raw.bw.mean(), raw.bw.stddev());
    let share = direction.of_group;
    let _ = write!(out, ";{min:.0};{max:.0};{share:.6}%;{mean:.6};{stddev:.6}");
    if samples {
        let Series { min, max, .. } = raw.iops;
        let (mean, stddev) = (raw.iops.mean(), raw.iops.stddev());
        push(out, raw.bw.samples);
        let _ = write!(out, ";{min:.0};{max:.0};{mean:.6};{stddev:.6}");
        push(out, raw.iops.samples);
    }
}

/// Adds minimum, maximum, mean and deviation.
fn push_latency(out: &mut String, latency: &Latency) {
    push(out, latency.min().0 / 1000);
    push(out, latency.max().0 / 1000);
    push(out, format_args!("{:.6}", latency.mean_ns() / 1000.0));
    push(out, format_args!("{:.6}", stddev_ns(latency) / 1000.0));
}

fn push_percentiles(out: &mut String, latency: Option<&Latency>, wanted: &[f64]) {
    let values = latency.map_or_else(Vec::new, |all| percentiles(all, wanted));
    let shown = wanted.iter().zip(&values).take(PERCENTILES);
    for (percentile, ns) in shown {
        let _ = write!(out, ";{percentile:.6}%={}", ns / 1000);
    }
    for _ in values.len()..PERCENTILES {
        out.push_str(";0%=0");
    }
}
