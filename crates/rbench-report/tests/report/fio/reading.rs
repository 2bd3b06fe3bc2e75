//! Parses fio's output into a [`FioRun`], so that our renderers can format numbers that fio
//! measured. The result must match fio's text.

use rbench_core::job::{DirectionOutcome, JobOutcome, Series};
use rbench_core::latency::BUCKETS;
use rbench_core::machine::{CpuIdle, DiskUse, HostUse};
use rbench_core::priority::AtPriority;
use rbench_core::steady::Criterion;
use rbench_core::{IoPriority, Latency, Nanos, Unified};
use rbench_report::fio::{FioRun, Machine};
use rbench_report::schema::{FioEntry, FioShown, FioSteady, FioTarget};
use serde_json::Value;

/// The parts of `--output-format=normal,terse,json+`.
pub struct Output<'a> {
    pub terse: Vec<&'a str>,
    pub json: &'a str,
    pub normal: &'a str,
}

impl<'a> Output<'a> {
    pub fn of(text: &'a str) -> Output<'a> {
        let begin = text.find("\n{\n").expect("JSON begins") + 1;
        let end = text.find("\n}\n").expect("JSON ends") + 3;
        Output {
            terse: text[..begin]
                .lines()
                .filter(|l| l.starts_with("3;"))
                .collect(),
            json: &text[begin..end],
            normal: &text[end..],
        }
    }
}

/// The run that `output` reports.
pub fn run(output: &Output) -> FioRun {
    let json: Value = serde_json::from_str(output.json).expect("JSON");
    let ended_ms = int(&json["timestamp_ms"]);
    let jobs = json["jobs"].as_array().expect("jobs");
    let heads = output.normal.lines().filter(|l| l.contains(": (groupid="));
    let mut options = blocks(output.json, "\"job options\" : {");
    let entries = jobs.iter().zip(heads).map(|(job, head)| {
        let typed = options.next().expect("options of each job");
        entry(job, typed, head)
    });
    let entries: Vec<FioEntry> = entries.collect();
    assert_eq!(entries.len(), jobs.len(), "each job has its lines");
    FioRun {
        version: "fio-3.33".to_owned(),
        terse_version: 3,
        started_ms: ended_ms - 1000 * int(&jobs[0]["elapsed"]),
        ended_ms,
        utc_offset_s: 0,
        global_options: blocks(output.json, "\"global options\" : {")
            .next()
            .unwrap_or_default(),
        entries,
        machine: machine(&json),
    }
}

/// The devices and processors of fio's host.
fn machine(json: &Value) -> Machine {
    let disks = json.get("disk_util").and_then(Value::as_array);
    let idle = json.get("cpu_idleness").and_then(Value::as_object);
    let cpus = idle.into_iter().flatten().filter_map(|(key, percent)| {
        Some(CpuIdle {
            cpu: key.strip_prefix("cpu-")?.parse().expect("a number"),
            idle: (float(percent) * 1e6).round() as u64,
            all: 100_000_000,
        })
    });
    Machine {
        names: Vec::new(),
        hosts: vec![HostUse {
            disks: disks.into_iter().flatten().map(disk).collect(),
            cpus: cpus.collect(),
            ..HostUse::default()
        }],
        each_cpu: true,
    }
}

fn disk(json: &Value) -> DiskUse {
    let both = |name: &str| ["read", "write"].map(|way| int(&json[format!("{way}_{name}")]));
    DiskUse {
        name: json["name"].as_str().expect("a name").to_owned(),
        ios: both("ios"),
        // Only later versions have these.
        sectors: [0; 2],
        merges: both("merges"),
        ticks_ms: both("ticks"),
        in_queue_ms: int(&json["in_queue"]),
        busy_ms: (float(&json["util"]) * 1e6).round() as u64,
        span_ms: 100_000_000,
        parts: Vec::new(),
    }
}

fn int(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("not whole: {value}"))
}

fn float(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Options in the order of the text, which a JSON map does not preserve.
fn blocks<'a>(json: &'a str, title: &'a str) -> impl Iterator<Item = Vec<(String, String)>> + 'a {
    json.split(title).skip(1).map(|rest| {
        let lines = rest
            .lines()
            .skip(1)
            .take_while(|l| l.trim_end_matches(',').trim() != "}");
        let pairs = lines.filter_map(|line| line.trim().trim_end_matches(',').split_once(" : "));
        let word = |text: &str| text.trim_matches('"').to_owned();
        pairs.map(|(k, v)| (word(k), word(v))).collect()
    })
}

fn entry(job: &Value, options: Vec<(String, String)>, head: &str) -> FioEntry {
    let number_after = |mark: &str| -> u64 {
        let (_, rest) = head.split_once(mark).expect("a mark of the heading");
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|d| d.parse().ok()).expect("a number")
    };
    let unified = match (job.get("mixed"), job.get("read")) {
        (Some(_), Some(_)) => Unified::Both,
        (Some(_), None) => Unified::Mixed,
        (None, _) => Unified::Apart,
    };
    let first = if unified == Unified::Mixed {
        "mixed"
    } else {
        "read"
    };
    let read = direction(&job[first], &options);
    let write = match unified {
        Unified::Mixed => DirectionOutcome::default(),
        Unified::Apart | Unified::Both => direction(&job["write"], &options),
    };
    let trim = match unified {
        Unified::Mixed => DirectionOutcome::default(),
        Unified::Apart | Unified::Both => direction(&job["trim"], &options),
    };
    let ios = read.ios + write.ios + trim.ios;
    let mut outcome = JobOutcome {
        pid: number_after(": pid=") as u32,
        workers: number_after(", jobs="),
        read,
        write,
        trim,
        error: int(&job["error"]) as i32,
        errors: job.get("total_err").map_or(0, int),
        first_error: job.get("first_error").map_or(0, int) as i32,
        elapsed_sum: Nanos(int(&job["job_runtime"]) * 1_000_000),
        switches: int(&job["ctx"]),
        faults_major: int(&job["majf"]),
        faults_minor: int(&job["minf"]),
        depths: parts(
            &job["iodepth_level"],
            ["1", "2", "4", "8", "16", "32", ">=64"],
        ),
        submits: parts(
            &job["iodepth_submit"],
            ["0", "4", "8", "16", "32", "64", ">=64"],
        ),
        completes: parts(
            &job["iodepth_complete"],
            ["0", "4", "8", "16", "32", "64", ">=64"],
        ),
        ..JobOutcome::default()
    };
    let cpu = |percent: &Value| {
        let ns = float(percent) / 100.0 * outcome.elapsed_sum.0 as f64;
        Nanos(ns.round() as u64)
    };
    (outcome.cpu_user, outcome.cpu_system) = (cpu(&job["usr_cpu"]), cpu(&job["sys_cpu"]));
    if let Some(sync) = job.get("sync") {
        outcome.sync = latency(&sync["lat_ns"]);
    }
    distribute(&mut outcome, job, ios);
    let target = int(&job["latency_target"]);
    FioEntry {
        name: job["jobname"].as_str().expect("a name").to_owned(),
        group: int(&job["groupid"]) as u32,
        group_reporting: false,
        shown: FioShown {
            percentiles: wanted(&options),
            clat_percentiles: option(&options, "clat_percentiles") != Some("0"),
            lat_percentiles: option(&options, "lat_percentiles") == Some("1"),
            slat_percentiles: option(&options, "slat_percentiles") == Some("1"),
            significant_figures: option(&options, "significant_figures")
                .map_or(4, |digits| digits.parse().expect("a number")),
            bits: option(&options, "unit_base") == Some("1"),
            unified,
            continue_on_error: job.get("total_err").is_some(),
        },
        depth: int(&job["latency_depth"]) as u32,
        target: (target > 0).then(|| FioTarget {
            latency: Nanos(target),
            window: Nanos(int(&job["latency_window"]) * 1000),
            percentile: float(&job["latency_percentile"]),
        }),
        steady: job.get("steadystate").map(steady),
        host: None,
        options,
        outcome,
    }
}

fn option<'a>(options: &'a [(String, String)], key: &str) -> Option<&'a str> {
    let entry = options.iter().find(|(k, _)| k == key);
    entry.map(|(_, value)| value.as_str())
}

fn wanted(options: &[(String, String)]) -> Vec<f64> {
    let list = option(options, "percentile_list");
    let list = list.unwrap_or("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99");
    list.split(':')
        .map(|p| p.parse().expect("a percentile"))
        .collect()
}

/// Shares converted to counts of a large total.
fn parts(shares: &Value, keys: [&str; 7]) -> [u64; 7] {
    keys.map(|key| (float(&shares[key]) * 1e6).round() as u64)
}

fn direction(json: &Value, options: &[(String, String)]) -> DirectionOutcome {
    let asynchronous = ["io_uring", "libaio"];
    let engine = option(options, "ioengine").unwrap_or("psync");
    let (bw, iops) = (
        ["bw_min", "bw_max", "bw_mean", "bw_dev", "bw_samples"],
        [
            "iops_min",
            "iops_max",
            "iops_mean",
            "iops_stddev",
            "iops_samples",
        ],
    );
    DirectionOutcome {
        ios: int(&json["total_ios"]),
        bytes: int(&json["io_bytes"]),
        short: int(&json["short_ios"]),
        runtime: Nanos(int(&json["runtime"]) * 1_000_000),
        slat: asynchronous
            .contains(&engine)
            .then(|| latency(&json["slat_ns"])),
        clat: latency(&json["clat_ns"]),
        lat: latency(&json["lat_ns"]),
        priorities: priorities(json),
        response: None,
        bw: series(json, bw),
        iops: series(json, iops),
    }
}

/// The latencies by priority, of the only kind that fio reports.
fn priorities(json: &Value) -> Vec<AtPriority> {
    let all = json.get("prios").and_then(Value::as_array);
    let one = |json: &Value| AtPriority {
        priority: IoPriority::new(int(&json["prioclass"]) as u8, int(&json["prio"]) as u8, 0),
        latency: latency(json.get("lat_ns").unwrap_or(&json["clat_ns"])),
    };
    all.into_iter().flatten().map(one).collect()
}

fn series(json: &Value, keys: [&str; 5]) -> Series {
    let [min, max, mean, stddev, samples] = keys.map(|key| float(&json[key]));
    let sum = mean * samples;
    Series {
        samples: samples as u64,
        min,
        max,
        sum,
        squares: stddev * stddev * (samples - 1.0).max(0.0) + sum * mean,
    }
}

/// (value, count) of each bin; without bins, everything at the mean.
fn bins(json: &Value) -> Vec<(u64, u64)> {
    let one = |(ns, count): (&String, &Value)| (ns.parse().expect("ns"), int(count));
    match json.get("bins").and_then(Value::as_object) {
        Some(bins) => bins.iter().map(one).collect(),
        None => vec![(float(&json["mean"]) as u64, int(&json["N"]))],
    }
}

fn latency(json: &Value) -> Latency {
    from_bins(&bins(json), json)
}

/// Splits bins that contain a bound of the latency distribution, so that each side has the number
/// of values that fio reports.
fn distribute(outcome: &mut JobOutcome, job: &Value, ios: u64) {
    let ways: &[&str] = match job.get("read") {
        Some(_) => &["read", "write", "trim"],
        None => &["mixed"],
    };
    let ways = ways.to_vec();
    let mut all: Vec<Way> = ways.iter().map(|w| Way::of(&job[*w]["clat_ns"])).collect();
    let mut below = 0;
    for (bound, count) in counts(job, ios, &all) {
        below += count;
        part(&mut all, bound, below);
    }
    for (way, Way { bins, .. }) in ways.into_iter().zip(all) {
        let direction = match way {
            "write" => &mut outcome.write,
            "trim" => &mut outcome.trim,
            _ => &mut outcome.read,
        };
        direction.clat = from_bins(&bins, &job[way]["clat_ns"]);
    }
}

/// The latencies of a direction, ns: bins, and extremes that fio assigned to a side of each bound.
struct Way {
    bins: Vec<(u64, u64)>,
    min: u64,
    max: u64,
}

impl Way {
    fn of(json: &Value) -> Way {
        Way {
            bins: bins(json),
            min: int(&json["min"]),
            max: int(&json["max"]),
        }
    }
}

/// The bounds of fio's latency distribution, ns, and the number of values from the previous bound
/// up to each. fio prints 0.01 % for every smaller share: such a count is the number that the bins
/// certainly show. The rest belongs to bins that contain a bound.
fn counts(job: &Value, ios: u64, all: &[Way]) -> Vec<(u64, u64)> {
    const TRACE: f64 = 0.01;
    let units = [
        ("latency_ns", 1),
        ("latency_us", 1_000),
        ("latency_ms", 1_000_000),
    ];
    let mut shares = Vec::new();
    for (unit, scale) in units {
        for bound in [2_u64, 4, 10, 20, 50, 100, 250, 500, 750, 1000] {
            shares.push((bound * scale, float(&job[unit][bound.to_string()])));
        }
    }
    shares.push((2_000_000_000, float(&job["latency_ms"]["2000"])));
    shares.push((u64::MAX, float(&job["latency_ms"][">=2000"])));
    let most = ((TRACE / 100.0 * ios as f64) as u64).max(1);
    let of_bins = |wanted: &dyn Fn(u64, u64) -> bool| -> u64 {
        let bins = all.iter().flat_map(|way| &way.bins);
        let wanted = bins.filter(|(ns, _)| {
            let (low, high) = bin(*ns);
            wanted(low, high)
        });
        wanted.map(|(_, n)| n).sum()
    };
    let certain = |from, to| of_bins(&|low, high| from <= low && high < to);
    let possible = |from, to| of_bins(&|low, high| from <= high && low < to);
    let mut from = 0;
    let mut counts = Vec::new();
    for (to, share) in &shares {
        let count = match *share == TRACE {
            true => certain(from, *to).clamp(1, most),
            false => (share / 100.0 * ios as f64).round() as u64,
        };
        counts.push((*to, count));
        from = *to;
    }
    let known: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut over = ios.saturating_sub(known);
    let mut from = 0;
    for ((to, count), (_, share)) in counts.iter_mut().zip(&shares) {
        if *share == TRACE {
            let may = possible(from, *to).min(most);
            let more = over.min(may.saturating_sub(*count));
            (*count, over) = (*count + more, over - more);
        }
        from = *to;
    }
    counts
}

/// The lowest and the highest value of fio's bin that contains this one, ns.
pub fn bin(ns: u64) -> (u64, u64) {
    let width = 1_u64 << (u64::BITS - (ns | 64).leading_zeros() - 7);
    let low = ns / width * width;
    (low, low + width - 1)
}

/// Moves values of the bins that contain `bound` across it until `below` values are below it.
/// Extremes stay on their side.
fn part(all: &mut [Way], bound: u64, below: u64) {
    let values = all.iter().flat_map(|way| &way.bins);
    let values = values.filter(|(ns, _)| *ns < bound);
    let have: u64 = values.map(|(_, n)| n).sum();
    let (down, mut missing) = (have < below, have.abs_diff(below));
    for Way { bins, min, max } in all {
        let holds = |ns: u64| {
            let (low, high) = bin(ns);
            (low < bound && bound <= high).then_some((low, high))
        };
        let wrong = |(ns, _): &&mut (u64, u64)| (*ns < bound) != down && holds(*ns).is_some();
        if let Some((ns, n)) = bins.iter_mut().find(wrong) {
            let (low, high) = holds(*ns).unwrap_or((*ns, *ns));
            let stays = match down {
                true => (bound..=high).contains(max),
                false => (low..bound).contains(min),
            };
            let moved = missing.min(n.saturating_sub(u64::from(stays)));
            (*n, missing) = (*n - moved, missing - moved);
            bins.push((if down { low } else { high }, moved));
        }
    }
}

/// The distribution of these bins with fio's extremes, mean and deviation. fio's bins are wider
/// than ours, so their value may be outside the extremes.
fn from_bins(bins: &[(u64, u64)], json: &Value) -> Latency {
    let n = int(&json["N"]) as f64;
    if n == 0.0 {
        return Latency::new();
    }
    let (min, max) = (int(&json["min"]), int(&json["max"]));
    let mut counts = vec![0_u64; BUCKETS];
    for (ns, count) in bins {
        let mut one = Latency::new();
        one.record(Nanos(*ns.clamp(&min, &max)));
        let index = one.used().next().map(|(index, _)| index);
        counts[index.expect("below an hour")] += count;
    }
    let (mean, stddev) = (float(&json["mean"]), float(&json["stddev"]));
    let sum = (mean * n).round() as u128;
    let squares = (stddev * stddev * (n - 1.0) + mean * mean * n).round() as u128;
    let piece = |value: u128, i: usize| ((value >> (32 * i)) & 0xffff_ffff) as u64;
    let mut sums = [0; 9];
    for i in 0..4 {
        (sums[1 + i], sums[5 + i]) = (piece(sum, i), piece(squares, i));
    }
    Latency::from_parts(0, &counts, sums, (min, max)).expect("between the extremes")
}

fn steady(json: &Value) -> FioSteady {
    let (criterion, limit) = json["ss"]
        .as_str()
        .and_then(|text| text.split_once(':'))
        .expect("criterion:limit");
    let list = |key: &str| {
        let values = json["data"][key].as_array().expect("a list");
        values.iter().map(int).collect()
    };
    FioSteady {
        criterion: Criterion {
            bandwidth: criterion.starts_with("bw"),
            slope: criterion.ends_with("slope"),
            limit: limit.trim_end_matches('%').parse().expect("a number"),
            percent: limit.ends_with('%'),
        },
        duration: Nanos(int(&json["duration"]) * 1_000_000_000),
        attained: int(&json["attained"]) == 1,
        iops: list("iops"),
        bytes_per_s: list("bw"),
    }
}
