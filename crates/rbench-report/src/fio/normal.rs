//! fio's normal output, for people and for scripts that search it.

use std::fmt::Write as _;

use rbench_core::failure::FailureKind;
use rbench_core::job::Series;
use rbench_core::{IoPriority, Latency, Nanos};

use super::measured::{
    self, BATCHES, DEPTHS, Direction, GroupTotal, Priorities, Shown, Way, bounds, of_time, parts,
    percentiles, stddev_ns,
};
use super::numbers::{BINARY, DECIMAL, Form, Unit, short};
use super::{FioRun, mean};
use crate::schema::{FioEntry, FioSteady};

/// Maximum width of a row of percentiles.
const COLUMNS: usize = 80;
/// errno of a block that fails verification.
const EILSEQ: i32 = 84;

/// The normal output: the entries, then a block for each group. Starts with an
/// empty line.
pub fn normal(run: &FioRun) -> String {
    let (date, all) = (run.date(), measured::entries(run));
    let mut out = String::from("\n");
    for shown in &all {
        push_entry(&mut out, run, shown, &date);
    }
    for group in measured::groups(run) {
        let _ = writeln!(out, "\nRun status group {group} (all jobs):");
        let first = all.iter().find(|shown| shown.entry.group == group);
        let form = first.map_or_else(Form::default, |shown| shown.entry.form());
        for total in measured::totals(&all, group) {
            push_total(&mut out, &total, form);
        }
    }
    out.push_str(&run.machine.disks_as_text());
    out.push_str(&run.machine.idle_as_text());
    out
}

fn push_entry(out: &mut String, run: &FioRun, shown: &Shown, date: &str) {
    let FioEntry {
        name,
        group,
        outcome,
        ..
    } = shown.entry;
    let (jobs, error, pid) = (outcome.workers, err(outcome.error), outcome.pid);
    let _ = writeln!(
        out,
        "{name}: (groupid={group}, jobs={jobs}): err={error}: pid={pid}: {date}"
    );
    if let Some(text) = run.description(shown.entry) {
        let _ = writeln!(out, "  Description  : [{text}]");
    }
    let ran = shown.directions.iter().filter(|d| d.rates.runtime_ms > 0);
    ran.for_each(|direction| push_direction(out, direction, shown.entry));
    push_spread(out, shown);
    push_sync(out, shown.entry);
    push_details(out, shown);
}

/// `" 0"`, or the number and its meaning.
fn err(code: i32) -> String {
    if code == 0 {
        return " 0".to_owned();
    }
    let function = if code == EILSEQ {
        "verify"
    } else {
        "io_u error"
    };
    let meaning = FailureKind::Errno(code).describe();
    format!("{code:2} (file:rbench, func={function}, error={meaning})")
}

fn push_direction(out: &mut String, direction: &Direction, entry: &FioEntry) {
    let (raw, rates, form) = (&direction.raw, direction.rates, entry.form());
    let _ = writeln!(
        out,
        "  {}: IOPS={}, BW={}({}/{}msec){}",
        direction.way.name(),
        form.short(rates.iops as u64),
        form.bandwidth(rates.bytes_per_s),
        form.bytes(raw.bytes, BINARY),
        rates.runtime_ms,
        if direction.way == Way::Write {
            "; 0 zone resets"
        } else {
            ""
        },
    );
    if let Some(slat) = &raw.slat {
        push_latency(out, "slat", slat);
    }
    push_latency(out, "clat", &raw.clat);
    push_latency(out, " lat", &raw.lat);
    let priorities = Priorities::of(raw, &entry.shown);
    if let Some(Priorities { name, all, .. }) = &priorities {
        for one in all {
            let title = format!("{name} prio {}", priority(one.priority));
            push_latency(out, &title, &one.latency);
        }
    }
    if let (true, Some(slat)) = (entry.shown.slat_percentiles, &raw.slat) {
        push_percentiles(out, "slat", slat, &entry.shown.percentiles);
    }
    if entry.shown.clat_percentiles {
        push_percentiles(out, "clat", &raw.clat, &entry.shown.percentiles);
    }
    if entry.shown.lat_percentiles {
        push_percentiles(out, "lat", &raw.lat, &entry.shown.percentiles);
    }
    if let Some(priorities) = priorities.filter(|priorities| priorities.percentiles) {
        push_priorities(out, &priorities, &entry.shown.percentiles);
    }
    push_samples(out, direction);
}

/// `class/level`, or `class/level/hint` if there is a hint.
fn priority(of: IoPriority) -> String {
    let (class, level) = (of.class(), of.level());
    match of.hint() {
        0 => format!("{class}/{level}"),
        hint => format!("{class}/{level}/{hint}"),
    }
}

/// Adds the percentiles of each priority.
fn push_priorities(out: &mut String, Priorities { name, all, .. }: &Priorities, wanted: &[f64]) {
    let ios = all.iter().map(|one| one.latency.count()).sum::<u64>();
    for one in all {
        let share = 100.0 * one.latency.count() as f64 / ios as f64;
        let title = format!(
            "{name} prio {} ({share:.2}% of IOs)",
            priority(one.priority)
        );
        push_percentiles(out, &title, &one.latency, wanted);
    }
}

/// Adds a latency; nothing if none was recorded.
fn push_latency(out: &mut String, name: &str, latency: &Latency) {
    if latency.is_empty() {
        return;
    }
    let (Nanos(min), Nanos(max), stddev) = (latency.min(), latency.max(), stddev_ns(latency));
    let unit = Unit::of(min, max, Some(stddev));
    let scaled = |ns: f64| ns / unit.ns as f64;
    let _ = writeln!(
        out,
        "    {name} ({}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        unit.name,
        short(min / unit.ns, 6),
        short(max / unit.ns, 6),
        scaled(latency.mean_ns()),
        scaled(stddev),
    );
}

fn push_percentiles(out: &mut String, name: &str, latency: &Latency, wanted: &[f64]) {
    if latency.is_empty() || wanted.is_empty() {
        return;
    }
    let values = percentiles(latency, wanted);
    let (least, most) = (values[0], values[values.len() - 1]);
    let unit = Unit::of(least, most, None);
    // fio rounds percentiles up and the maximum down, so that the largest percentile may exceed the
    // maximum.
    let max = latency.max().0 / unit.ns;
    let texts: Vec<String> = values
        .iter()
        .map(|ns| unit.up(*ns).min(max).to_string())
        .collect();
    let digits = texts.iter().map(String::len).fold(5, usize::max);
    let decimals = wanted.iter().map(|p| decimals_of(*p)).max().unwrap_or(0);
    let dot = usize::from(decimals > 0);
    let (before, cell) = (2 + dot + decimals, 9 + dot + decimals + digits);
    let _ = writeln!(out, "    {name} percentiles ({}):", unit.name);
    let cells: Vec<String> = wanted
        .iter()
        .zip(&texts)
        .map(|(p, value)| format!(" {p:before$.decimals$}th=[{value:>digits$}]"))
        .collect();
    let rows = cells.chunks((COLUMNS - 6) / cell);
    let rows: Vec<String> = rows.map(|row| format!("     |{}", row.join(","))).collect();
    let _ = writeln!(out, "{}", rows.join(",\n"));
}

/// Decimals that a percentile needs, at most 9.
fn decimals_of(percentile: f64) -> usize {
    let text = format!("{percentile:.9}");
    let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
    decimals.trim_end_matches('0').len()
}

/// Adds bandwidth and IOPS from the samples.
fn push_samples(out: &mut String, direction: &Direction) {
    let (bw, iops) = (&direction.raw.bw, &direction.raw.iops);
    if bw.samples > 0 {
        // In bytes, whatever `unit_base` says, like in fio.
        let (unit, scale) = match bw.mean() > 1_048_576.0 {
            true => ("MiB/s", 1024.0),
            false => ("KiB/s", 1.0),
        };
        let share = format!("per={:.2}%, ", direction.of_group);
        let _ = writeln!(out, "   bw (  {unit}): {}", samples(bw, scale, &share));
    }
    if iops.samples > 0 {
        let _ = writeln!(out, "   iops        : {}", samples(iops, 1.0, ""));
    }
}

fn samples(series: &Series, scale: f64, share: &str) -> String {
    // fio's samples are whole numbers, as in JSON, and their larger units are cut.
    let whole = |value: f64| (value.round() / scale) as u64;
    format!(
        "min={:5}, max={:5}, {share}avg={:5.2}, stdev={:5.2}, samples={}",
        whole(series.min),
        whole(series.max),
        series.mean() / scale,
        series.stddev() / scale,
        series.samples,
    )
}

/// Adds the columns that are not empty, five per line.
fn push_spread(out: &mut String, shown: &Shown) {
    let spread = &shown.spread;
    let units: [(&str, &[f64]); 3] = [
        ("nsec", &spread.ns),
        ("usec", &spread.us),
        ("msec", &spread.ms),
    ];
    for (unit, values) in units {
        let cells: Vec<String> = bounds()
            .zip(values)
            .filter(|(_, percent)| **percent > 0.0)
            .map(|(key, percent)| format!("{key}={percent:.2}%"))
            .collect();
        for row in cells.chunks(5) {
            let _ = writeln!(out, "  lat ({unit})   : {}", row.join(", "));
        }
    }
}

fn push_sync(out: &mut String, entry: &FioEntry) {
    let sync = &entry.outcome.sync;
    if !sync.is_empty() {
        out.push_str("  fsync/fdatasync/sync_file_range:\n");
        push_latency(out, "sync", sync);
        push_percentiles(out, "sync", sync, &entry.shown.percentiles);
    }
}

/// Adds the lines on CPU, depths, amounts, target and steady state.
fn push_details(out: &mut String, shown: &Shown) {
    let entry = shown.entry;
    let outcome = &entry.outcome;
    let _ = writeln!(
        out,
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}",
        of_time(outcome.cpu_user, entry),
        of_time(outcome.cpu_system, entry),
        outcome.switches,
        outcome.faults_major,
        outcome.faults_minor,
    );
    let row = |keys: [&str; 7], counts: &[u64; 7]| {
        let cells = keys.iter().zip(parts(counts));
        let cells: Vec<String> = cells.map(|(k, p)| format!("{k}={p:.1}%")).collect();
        cells.join(", ")
    };
    let _ = writeln!(out, "  IO depths    : {}", row(DEPTHS, &outcome.depths));
    let _ = writeln!(out, "     submit    : {}", row(BATCHES, &outcome.submits));
    let _ = writeln!(out, "     complete  : {}", row(BATCHES, &outcome.completes));
    let by_way = |way: Way| shown.directions.iter().find(|d| d.way == way);
    let first = by_way(Way::Read).or(by_way(Way::Mixed)).map(|d| &d.raw);
    let [writes, trims] = [Way::Write, Way::Trim].map(|way| by_way(way).map(|d| &d.raw));
    let [reads, writes, trims] =
        [first, writes, trims].map(|raw| raw.map_or((0, 0), |raw| (raw.ios, raw.short)));
    let _ = writeln!(
        out,
        "     issued rwts: total={},{},{},{} short={},{},{},0 dropped=0,0,0,0",
        reads.0,
        writes.0,
        trims.0,
        outcome.sync.count(),
        reads.1,
        writes.1,
        trims.1,
    );
    if entry.shown.continue_on_error {
        let (total, first) = (outcome.errors, outcome.first_error);
        let meaning = match first {
            0 => "Success".to_owned(),
            code => FailureKind::Errno(code).describe(),
        };
        let _ = writeln!(
            out,
            "     errors    : total={total}, first_error={first}/<{meaning}>"
        );
    }
    let (latency, window_us, percentile) = entry.target_fields();
    let depth = entry.depth_reached();
    let _ = writeln!(
        out,
        "     latency   : target={latency}, window={window_us}, percentile={percentile:.2}%, depth={depth}"
    );
    if let Some(steady) = &entry.steady {
        push_steady(out, steady, entry.form());
    }
}

fn push_steady(out: &mut String, steady: &FioSteady, form: Form) {
    let of = if steady.criterion.bandwidth {
        "bw"
    } else {
        "iops"
    };
    let by = if steady.criterion.slope {
        "slope"
    } else {
        "mean dev"
    };
    let _ = writeln!(
        out,
        "  steadystate  : attained={}, bw={}, iops={}, {of} {by}={:.3}{}",
        if steady.attained { "yes" } else { "no" },
        form.bandwidth(mean(&steady.bytes_per_s) as u64),
        form.short(mean(&steady.iops) as u64),
        steady.reached(),
        steady.criterion.sign(),
    );
}

fn push_total(out: &mut String, total: &GroupTotal, form: Form) {
    let (slowest, fastest) = total.bytes_per_s_range;
    let (shortest, longest) = total.runtime_ms_range;
    let _ = writeln!(
        out,
        "{:>7}: bw={}, {}-{} ({}-{}), io={} ({}), run={shortest}-{longest}msec",
        total.way.name().to_uppercase(),
        form.bandwidth(total.bytes_per_s),
        form.rate(slowest, BINARY),
        form.rate(fastest, BINARY),
        form.rate(slowest, DECIMAL),
        form.rate(fastest, DECIMAL),
        form.bytes(total.bytes, BINARY),
        form.bytes(total.bytes, DECIMAL),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_rounded_and_their_larger_units_cut() {
        let of = |value: f64, scale| {
            let mut series = Series::default();
            series.add(value);
            samples(&series, scale, "")
        };
        let ends = ", stdev= 0.00, samples=1";
        assert_eq!(
            of(2.9997, 1.0),
            format!("min=    3, max=    3, avg= 3.00{ends}")
        );
        assert_eq!(
            of(2047.0, 1024.0),
            format!("min=    1, max=    1, avg= 2.00{ends}")
        );
    }
}
