//! fio's JSON, with keys, order and kinds of numbers like fio 3.33, and `job_start`, which later
//! versions added.
//!
//! Like in fio, `disk_util` is absent if the target is not on a block device.

use rbench_core::priority::AtPriority;
use rbench_core::steady::{self, Criterion, max_deviation};
use rbench_core::{Latency, Unified};

use super::measured::{
    self, BATCHES, DEPTHS, Direction, Priorities, Shown, Way, bounds, of_time, parts, percentiles,
    stddev_ns,
};
use super::tree::{Fields, Json};
use super::{FioRun, mean};
use crate::schema::{FioEntry, FioSteady};

/// The JSON document. Has the bins of distributions if `plus` (json+). Ends with a newline.
pub fn json(run: &FioRun, plus: bool) -> String {
    let entries = measured::entries(run);
    let jobs = entries.iter().map(|shown| job(run, shown, plus));
    let global = Some(&run.global_options).filter(|all| !all.is_empty());
    let document = Fields::default()
        .with("fio version", &*run.version)
        .with("timestamp", run.ended_ms / 1000)
        .with("timestamp_ms", run.ended_ms)
        .with("time", &*run.date())
        .with_some("global options", global.map(|all| options(all)))
        .with("jobs", Json::List(jobs.collect()))
        .with_some("disk_util", run.machine.disks_as_json())
        .with_some("cpu_idleness", run.machine.idle_as_json());
    Json::from(document).document()
}

fn options(all: &[(String, String)]) -> Json {
    Json::map(all.iter().map(|(key, value)| (key, Json::from(&**value))))
}

fn job(run: &FioRun, shown: &Shown, plus: bool) -> Json {
    let entry = shown.entry;
    let outcome = &entry.outcome;
    let elapsed_s = run.ended_ms.saturating_sub(run.started_ms).div_ceil(1000);
    let is_mixed = |one: &&Direction| one.way == Way::Mixed;
    let all = || shown.directions.iter();
    let sync = (entry.shown.unified != Unified::Mixed).then(|| {
        let wanted = entry.shown.clat_percentiles || entry.shown.lat_percentiles;
        let percentiles = wanted.then_some(&*entry.shown.percentiles);
        Fields::default()
            .with("total_ios", outcome.sync.count())
            .with("lat_ns", latency(&outcome.sync, percentiles, plus))
    });
    let mut fields = Fields::default()
        .with("jobname", &*entry.name)
        .with("groupid", u64::from(entry.group))
        .with("job_start", outcome.start_ms)
        .with("error", errno(outcome.error))
        .with("eta", 0_u64)
        .with("elapsed", elapsed_s)
        .with("job options", options(&entry.options));
    for one in all().filter(|one| !is_mixed(one)) {
        fields = fields.with(one.way.name(), direction(one, entry, plus));
    }
    fields = fields.with_some("sync", sync);
    for one in all().filter(is_mixed) {
        fields = fields.with(one.way.name(), direction(one, entry, plus));
    }
    let errors = entry.shown.continue_on_error.then_some(outcome);
    let (target_ns, window_us, percentile) = entry.target_fields();
    fields
        .with("job_runtime", outcome.elapsed_sum.0 / 1_000_000)
        .with("usr_cpu", of_time(outcome.cpu_user, entry))
        .with("sys_cpu", of_time(outcome.cpu_system, entry))
        .with("ctx", outcome.switches)
        .with("majf", outcome.faults_major)
        .with("minf", outcome.faults_minor)
        .with("iodepth_level", table(DEPTHS, parts(&outcome.depths)))
        .with("iodepth_submit", table(BATCHES, parts(&outcome.submits)))
        .with(
            "iodepth_complete",
            table(BATCHES, parts(&outcome.completes)),
        )
        .with("latency_ns", by_bound(&shown.spread.ns))
        .with("latency_us", by_bound(&shown.spread.us))
        .with("latency_ms", by_bound(&shown.spread.ms))
        .with_some("total_err", errors.map(|outcome| outcome.errors))
        .with_some(
            "first_error",
            errors.map(|outcome| errno(outcome.first_error)),
        )
        // The keys of fio 3.33, and those of later versions for the same values.
        .with("latency_depth", u64::from(entry.depth_reached()))
        .with("latency_target", target_ns)
        .with("latency_target_ns", target_ns)
        .with("latency_percentile", percentile)
        .with("latency_window", window_us)
        .with("latency_window_us", window_us)
        .with_some("desc", run.description(entry))
        .with_some("steadystate", entry.steady.as_ref().map(steadystate))
        .with_some("hostname", entry.host.as_deref())
        .into()
}

/// errno values are positive.
fn errno(code: i32) -> u64 {
    u64::from(code.unsigned_abs())
}

fn table<const N: usize>(keys: [&'static str; N], values: [f64; N]) -> Json {
    Json::map(keys.into_iter().zip(values.map(Json::from)))
}

fn by_bound(values: &[f64]) -> Json {
    Json::map(bounds().zip(values.iter().copied().map(Json::from)))
}

fn direction(one: &Direction, entry: &FioEntry, plus: bool) -> Fields {
    let (raw, rates, shown) = (&one.raw, one.rates, &entry.shown);
    let shown_of = |wanted: bool| wanted.then_some(shown.percentiles.as_slice());
    let latency = |all: &Latency, wanted: bool| latency(all, shown_of(wanted), plus);
    let none = Latency::new();
    let slat = raw.slat.as_ref().unwrap_or(&none);
    let priorities = Priorities::of(raw, shown).map(|priorities| {
        let wanted = shown_of(priorities.percentiles);
        let all = priorities.all.into_iter();
        let all = all.map(|of| at_priority(of, priorities.name, wanted, plus));
        Json::List(all.collect())
    });
    let whole = |value: f64| value.round() as u64;
    let (bw, iops) = (&raw.bw, &raw.iops);
    Fields::default()
        .with("io_bytes", raw.bytes)
        .with("io_kbytes", raw.bytes / 1024)
        .with("bw_bytes", rates.bytes_per_s)
        .with("bw", rates.kib_per_s())
        .with("iops", rates.iops)
        .with("runtime", rates.runtime_ms)
        .with("total_ios", raw.ios)
        .with("short_ios", raw.short)
        .with("drop_ios", 0_u64)
        .with("slat_ns", latency(slat, shown.slat_percentiles))
        .with("clat_ns", latency(&raw.clat, shown.clat_percentiles))
        .with("lat_ns", latency(&raw.lat, shown.lat_percentiles))
        .with_some("prios", priorities)
        .with("bw_min", whole(bw.min))
        .with("bw_max", whole(bw.max))
        .with("bw_agg", one.of_group)
        .with("bw_mean", bw.mean())
        .with("bw_dev", bw.stddev())
        .with("bw_samples", bw.samples)
        .with("iops_min", whole(iops.min))
        .with("iops_max", whole(iops.max))
        .with("iops_mean", iops.mean())
        .with("iops_stddev", iops.stddev())
        .with("iops_samples", iops.samples)
}

/// The latencies of one priority. Hints came after fio 3.33, so one of 0 has no key.
fn at_priority(one: &AtPriority, name: &str, wanted: Option<&[f64]>, plus: bool) -> Json {
    let AtPriority { priority, latency } = one;
    let hint = Some(priority.hint()).filter(|hint| *hint > 0);
    Fields::default()
        .with("prioclass", u64::from(priority.class()))
        .with("prio", u64::from(priority.level()))
        .with_some("priohint", hint.map(u64::from))
        .with(format!("{name}_ns"), self::latency(latency, wanted, plus))
        .into()
}

/// A distribution with these percentiles; with json+ also its bins, each identified by its
/// midpoint.
fn latency(all: &Latency, shown: Option<&[f64]>, plus: bool) -> Json {
    let shown = shown.filter(|_| !all.is_empty());
    let percentiles = shown.filter(|wanted| !wanted.is_empty()).map(|wanted| {
        let keys = wanted.iter().map(|p| format!("{p:.6}"));
        let values = percentiles(all, wanted).into_iter().map(Json::from);
        Json::map(keys.zip(values))
    });
    Fields::default()
        .with("min", all.min().0)
        .with("max", all.max().0)
        .with("mean", all.mean_ns())
        .with("stddev", stddev_ns(all))
        .with("N", all.count())
        .with_some("percentile", percentiles)
        .with_some("bins", shown.filter(|_| plus).map(|_| bins(all)))
        .into()
}

fn bins(all: &Latency) -> Json {
    let max = all.max().0;
    let middle = |low: u64, high: u64| (low + (high - low).div_ceil(2)).min(max);
    let inside = all.ranges();
    let inside = inside.map(|(low, high, n)| (middle(low.0, high.0), n));
    let beyond = (all.above() > 0).then_some((max, all.above()));
    let bins = inside.chain(beyond);
    Json::map(bins.map(|(ns, n)| (ns.to_string(), Json::from(n))))
}

fn steadystate(found: &FioSteady) -> Fields {
    let Criterion { slope, limit, .. } = found.criterion;
    let (criterion, sign) = (found.criterion.name(), found.criterion.sign());
    let text = |value: f64| format!("{value:.6}{sign}");
    let whole_mean = |all: &[u64]| mean(all) as u64;
    let list = |all: &[u64]| Json::List(all.iter().copied().map(Json::from).collect());
    let data = Fields::default()
        .with("bw_mean", whole_mean(&found.bytes_per_s))
        .with("iops_mean", whole_mean(&found.iops))
        .with("iops", list(&found.iops))
        .with("bw", list(&found.bytes_per_s));
    let of = |this: bool, value: f64| if this { value } else { 0.0 };
    Fields::default()
        .with("ss", &*format!("{criterion}:{}", text(limit)))
        .with("duration", found.duration.0 / 1_000_000_000)
        .with("attained", u64::from(found.attained))
        .with("criterion", &*text(found.reached()))
        .with("max_deviation", of(!slope, max_deviation(found.values())))
        .with("slope", of(slope, steady::slope(found.values())))
        .with("data", data)
}
