//! fio's JSON, with keys, order and kinds of numbers like fio 3.33, and `job_start`, which later
//! versions added.
//!
//! Like in fio, `disk_util` is absent if the target is not on a block device.

use rbench_core::job::Series;
use rbench_core::priority::AtPriority;
use rbench_core::steady::{self, Criterion, max_deviation};
use rbench_core::{Latency, Unified};

use super::measured::{
    self, BATCHES, DEPTHS, Direction, Priorities, Shown, Way, bounds, of_time, parts, percentiles,
    stddev_ns,
};
use super::tree::Json;
use super::{FioRun, mean};
use crate::schema::{FioEntry, FioSteady};

/// The JSON document. Has the bins of distributions if `plus` (json+). Ends with a newline.
pub fn json(run: &FioRun, plus: bool) -> String {
    let mut fields = vec![
        ("fio version", Json::from(run.version.as_str())),
        ("timestamp", Json::from(run.ended_ms / 1000)),
        ("timestamp_ms", Json::from(run.ended_ms)),
        ("time", Json::from(run.date().as_str())),
    ];
    if !run.global_options.is_empty() {
        fields.push(("global options", options(&run.global_options)));
    }
    let entries = measured::entries(run);
    let jobs = entries.iter().map(|shown| job(run, shown, plus)).collect();
    fields.push(("jobs", Json::List(jobs)));
    let disks = run.machine.disks_as_json();
    fields.extend(disks.map(|disks| ("disk_util", disks)));
    let idle = run.machine.idle_as_json();
    fields.extend(idle.map(|idle| ("cpu_idleness", idle)));
    Json::map(fields).document()
}

fn options(all: &[(String, String)]) -> Json {
    Json::map(
        all.iter()
            .map(|(k, v)| (k.as_str(), Json::from(v.as_str()))),
    )
}

fn job(run: &FioRun, shown: &Shown, plus: bool) -> Json {
    let entry = shown.entry;
    let outcome = &entry.outcome;
    let elapsed_s = run.ended_ms.saturating_sub(run.started_ms).div_ceil(1000);
    let mut fields = vec![
        ("jobname", Json::from(entry.name.as_str())),
        ("groupid", Json::from(u64::from(entry.group))),
        ("job_start", Json::from(outcome.start_ms)),
        ("error", errno(outcome.error)),
        ("eta", Json::from(0_u64)),
        ("elapsed", Json::from(elapsed_s)),
        ("job options", options(&entry.options)),
    ];
    let (mixed, apart): (Vec<_>, Vec<_>) = shown
        .directions
        .iter()
        .map(|one| (one.way, (one.way.name(), direction(one, entry, plus))))
        .partition(|(way, _)| *way == Way::Mixed);
    fields.extend(apart.into_iter().map(|(_, field)| field));
    if entry.shown.unified != Unified::Mixed {
        let sync = &outcome.sync;
        let wanted = entry.shown.clat_percentiles || entry.shown.lat_percentiles;
        let latencies = latency(sync, wanted.then_some(&entry.shown.percentiles), plus);
        let count = Json::from(sync.count());
        fields.push((
            "sync",
            Json::map([("total_ios", count), ("lat_ns", latencies)]),
        ));
    }
    fields.extend(mixed.into_iter().map(|(_, field)| field));
    fields.extend([
        ("job_runtime", Json::from(outcome.elapsed_sum.0 / 1_000_000)),
        ("usr_cpu", Json::from(of_time(outcome.cpu_user, entry))),
        ("sys_cpu", Json::from(of_time(outcome.cpu_system, entry))),
        ("ctx", Json::from(outcome.switches)),
        ("majf", Json::from(outcome.faults_major)),
        ("minf", Json::from(outcome.faults_minor)),
        ("iodepth_level", table(DEPTHS, parts(&outcome.depths))),
        ("iodepth_submit", table(BATCHES, parts(&outcome.submits))),
        (
            "iodepth_complete",
            table(BATCHES, parts(&outcome.completes)),
        ),
    ]);
    fields.extend(distribution(shown));
    if entry.shown.continue_on_error {
        fields.push(("total_err", Json::from(outcome.errors)));
        fields.push(("first_error", errno(outcome.first_error)));
    }
    fields.extend(target(entry));
    if let Some(text) = run.description(entry) {
        fields.push(("desc", Json::from(text)));
    }
    if let Some(steady) = &entry.steady {
        fields.push(("steadystate", steadystate(steady)));
    }
    if let Some(host) = &entry.host {
        fields.push(("hostname", Json::from(host.as_str())));
    }
    Json::map(fields)
}

/// errno values are positive.
fn errno(code: i32) -> Json {
    Json::from(u64::from(code.unsigned_abs()))
}

fn table<const N: usize>(keys: [&'static str; N], values: [f64; N]) -> Json {
    Json::map(keys.into_iter().zip(values.map(Json::from)))
}

fn direction(one: &Direction, entry: &FioEntry, plus: bool) -> Json {
    let (raw, rates) = (&one.raw, one.rates);
    let shown_of = |wanted: bool| wanted.then_some(entry.shown.percentiles.as_slice());
    let slat = raw.slat.as_ref();
    let mut fields = vec![
        ("io_bytes", Json::from(raw.bytes)),
        ("io_kbytes", Json::from(raw.bytes / 1024)),
        ("bw_bytes", Json::from(rates.bytes_per_s)),
        ("bw", Json::from(rates.kib_per_s())),
        ("iops", Json::from(rates.iops)),
        ("runtime", Json::from(rates.runtime_ms)),
        ("total_ios", Json::from(raw.ios)),
        ("short_ios", Json::from(raw.short)),
        ("drop_ios", Json::from(0_u64)),
        (
            "slat_ns",
            latency(
                slat.unwrap_or(&Latency::new()),
                shown_of(entry.shown.slat_percentiles),
                plus,
            ),
        ),
        (
            "clat_ns",
            latency(&raw.clat, shown_of(entry.shown.clat_percentiles), plus),
        ),
        (
            "lat_ns",
            latency(&raw.lat, shown_of(entry.shown.lat_percentiles), plus),
        ),
    ];
    if let Some(Priorities {
        name,
        percentiles,
        all,
    }) = Priorities::of(raw, &entry.shown)
    {
        let wanted = shown_of(percentiles);
        let all = all
            .into_iter()
            .map(|one| at_priority(one, name, wanted, plus));
        fields.push(("prios", Json::List(all.collect())));
    }
    let whole = |value: f64| Json::from(value.round() as u64);
    let samples = |series: &Series| {
        let Series {
            samples, min, max, ..
        } = series;
        (whole(*min), whole(*max), Json::from(*samples))
    };
    let (min, max, count) = samples(&raw.bw);
    fields.extend([
        ("bw_min", min),
        ("bw_max", max),
        ("bw_agg", Json::from(one.of_group)),
        ("bw_mean", Json::from(raw.bw.mean())),
        ("bw_dev", Json::from(raw.bw.stddev())),
        ("bw_samples", count),
    ]);
    let (min, max, count) = samples(&raw.iops);
    fields.extend([
        ("iops_min", min),
        ("iops_max", max),
        ("iops_mean", Json::from(raw.iops.mean())),
        ("iops_stddev", Json::from(raw.iops.stddev())),
        ("iops_samples", count),
    ]);
    Json::map(fields)
}

/// The latencies of one priority. Hints came after fio 3.33, so one of 0 has no key.
fn at_priority(one: &AtPriority, name: &str, wanted: Option<&[f64]>, plus: bool) -> Json {
    let AtPriority { priority, latency } = one;
    let mut fields = vec![
        ("prioclass", Json::from(u64::from(priority.class()))),
        ("prio", Json::from(u64::from(priority.level()))),
    ];
    if priority.hint() > 0 {
        fields.push(("priohint", Json::from(u64::from(priority.hint()))));
    }
    let fields = fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    let latency = self::latency(latency, wanted, plus);
    Json::map(fields.chain([(format!("{name}_ns"), latency)]))
}

/// A distribution with these percentiles; with json+ also its bins, each identified by its
/// midpoint.
fn latency(all: &Latency, shown: Option<&[f64]>, plus: bool) -> Json {
    let mut fields = vec![
        ("min", Json::from(all.min().0)),
        ("max", Json::from(all.max().0)),
        ("mean", Json::from(all.mean_ns())),
        ("stddev", Json::from(stddev_ns(all))),
        ("N", Json::from(all.count())),
    ];
    let Some(wanted) = shown.filter(|_| !all.is_empty()) else {
        return Json::map(fields);
    };
    if !wanted.is_empty() {
        let keys = wanted.iter().map(|p| format!("{p:.6}"));
        let values = percentiles(all, wanted).into_iter().map(Json::from);
        fields.push(("percentile", Json::map(keys.zip(values))));
    }
    if plus {
        fields.push(("bins", bins(all)));
    }
    Json::map(fields)
}

fn bins(all: &Latency) -> Json {
    let max = all.max().0;
    let middle = |low: u64, high: u64| (low + (high - low).div_ceil(2)).min(max);
    let inside = all
        .ranges()
        .map(|(low, high, n)| (middle(low.0, high.0), n));
    let beyond = (all.above() > 0).then_some((max, all.above()));
    Json::map(
        inside
            .chain(beyond)
            .map(|(ns, n)| (ns.to_string(), Json::from(n))),
    )
}

fn distribution(shown: &Shown) -> [(&'static str, Json); 3] {
    let by_bound = |values: &[f64]| Json::map(bounds().zip(values.iter().copied().map(Json::from)));
    [
        ("latency_ns", by_bound(&shown.spread.ns)),
        ("latency_us", by_bound(&shown.spread.us)),
        ("latency_ms", by_bound(&shown.spread.ms)),
    ]
}

/// The keys of fio 3.33, and the keys of later versions for the same values.
fn target(entry: &FioEntry) -> [(&'static str, Json); 6] {
    let (latency, window_us, percentile) = entry.target_fields();
    [
        (
            "latency_depth",
            Json::from(u64::from(entry.depth_reached())),
        ),
        ("latency_target", Json::from(latency)),
        ("latency_target_ns", Json::from(latency)),
        ("latency_percentile", Json::from(percentile)),
        ("latency_window", Json::from(window_us)),
        ("latency_window_us", Json::from(window_us)),
    ]
}

fn steadystate(found: &FioSteady) -> Json {
    let Criterion { slope, limit, .. } = found.criterion;
    let (criterion, sign) = (found.criterion.name(), found.criterion.sign());
    let text = |value: f64| format!("{value:.6}{sign}");
    let whole_mean = |all: &[u64]| Json::from(mean(all) as u64);
    let list = |all: &[u64]| Json::List(all.iter().copied().map(Json::from).collect());
    let data = Json::map([
        ("bw_mean", whole_mean(&found.bytes_per_s)),
        ("iops_mean", whole_mean(&found.iops)),
        ("iops", list(&found.iops)),
        ("bw", list(&found.bytes_per_s)),
    ]);
    let of = |this: bool, value: f64| Json::from(if this { value } else { 0.0 });
    Json::map([
        (
            "ss",
            Json::from(format!("{criterion}:{}", text(limit)).as_str()),
        ),
        ("duration", Json::from(found.duration.0 / 1_000_000_000)),
        ("attained", Json::from(u64::from(found.attained))),
        ("criterion", Json::from(text(found.reached()).as_str())),
        ("max_deviation", of(!slope, max_deviation(found.values()))),
        ("slope", of(slope, steady::slope(found.values()))),
        ("data", data),
    ])
}
