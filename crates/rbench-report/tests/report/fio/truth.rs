//! Tests our renderers against fio: given fio's measurements, they must print fio's text.
//!
//! The output of fio 3.33 is in `fio/recorded`, one file for each of `RUNS`. `living_fio` runs fio
//! and compares its new numbers; with `RBENCH_RECORD=1` it writes the files.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rbench_report::fio::{json, normal, terse};

use super::reading::{self, Output};

mod living_fio;

/// Options that precede those of a run.
const FORMS: &str = "--output-format=normal,terse,json+";

/// Name and options of each run.
const RUNS: &[(&str, &str)] = &[
    ("read", "--name=r --rw=read --bs=64k --size=4M"),
    (
        "mix",
        "--name=m --rw=randrw --rwmixread=70 --bs=4k --size=4M --directory=.",
    ),
    (
        "workers",
        "--name=w --rw=write --bs=256k --size=4M --numjobs=3 --end_fsync=1",
    ),
    (
        "workers-together",
        "--name=w --rw=write --bs=256k --size=4M --numjobs=3 --end_fsync=1 --group_reporting",
    ),
    (
        "groups",
        "--bs=8k --size=1M --name=one --rw=write --name=two --stonewall --rw=read \
         --name=three --stonewall --rw=randrw",
    ),
    (
        "verify",
        "--name=v --rw=write --bs=16k --size=2M --verify=crc32c",
    ),
    ("syncs", "--name=s --rw=write --bs=4k --size=128k --fsync=4"),
    (
        "rates-together",
        "--ioengine=null --zero_buffers --rw=write --bs=16k --size=1g --time_based \
         --runtime=1200ms --group_reporting --name=a --rate=10m --name=b --rate=30m",
    ),
    (
        "rate-high",
        "--ioengine=null --zero_buffers --rw=write --bs=16m --size=100g --time_based \
         --runtime=1200ms --name=fast --rate=3g",
    ),
    (
        "depth",
        "--name=d --rw=randread --bs=4k --size=2M --ioengine=libaio --iodepth=8 --direct=1",
    ),
    (
        "depth-percentiles",
        "--name=d --rw=randread --bs=4k --size=2M --ioengine=libaio --iodepth=8 --direct=1 \
         --slat_percentiles=1 --lat_percentiles=1",
    ),
    (
        "priorities",
        "--name=p --rw=randrw --bs=4k --size=2M --ioengine=libaio --iodepth=8 \
         --cmdprio_percentage=30,60 --cmdprio_class=2 --cmdprio=5 --prio=3",
    ),
    (
        "priorities-lat",
        "--name=p --rw=randrw --bs=4k --size=1M --ioengine=io_uring --iodepth=4 \
         --cmdprio_bssplit=4k/30/2/7:4k/30/2/1,4k/50/3/0 --lat_percentiles=1 \
         --unified_rw_reporting=both",
    ),
    (
        "priorities-together",
        "--name=a --rw=randread --bs=4k --size=1M --ioengine=libaio --iodepth=4 --prio=4 \
         --group_reporting --name=b --rw=randread --bs=4k --size=1M --ioengine=libaio \
         --iodepth=4 --cmdprio_percentage=50 --cmdprio_class=2 --group_reporting",
    ),
    (
        "figures-7",
        "--name=f --ioengine=null --zero_buffers --rw=write --bs=16k --size=1g --rate=10m \
         --time_based --runtime=1200ms --significant_figures=7",
    ),
    (
        "figures-3",
        "--name=f --ioengine=null --zero_buffers --rw=write --bs=16k --size=1g --rate=10m \
         --time_based --runtime=1200ms --significant_figures=3",
    ),
    (
        "bits",
        "--name=f --ioengine=null --zero_buffers --rw=write --bs=16k --size=1g --rate=10m \
         --time_based --runtime=1200ms --unit_base=1",
    ),
    (
        "percentiles-lat",
        "--name=p --rw=randread --bs=4k --size=4M --lat_percentiles=1",
    ),
    (
        "percentiles-1",
        "--name=p --rw=read --bs=4k --size=1300k --percentile_list=50",
    ),
    (
        "percentiles-4",
        "--name=p --rw=read --bs=4k --size=1300k --percentile_list=0.5:50:99.999:99.9999",
    ),
    (
        "percentiles-11",
        "--name=p --rw=read --bs=4k --size=1300k \
         --percentile_list=1:2:3:4:5:6:7.125:8:9:10:11",
    ),
    (
        "unified",
        "--name=u --rw=randrw --bs=4k --size=2M --unified_rw_reporting=1",
    ),
    (
        "unified-rate",
        "--name=u --ioengine=null --zero_buffers --rw=randrw --norandommap --bs=16k --size=1g \
         --rate=10m,20m --time_based --runtime=1200ms --unified_rw_reporting=1",
    ),
    (
        "trim",
        "--name=t --ioengine=falloc --rw=trim --bs=4k --size=1M",
    ),
    (
        "trim-random",
        "--name=t --ioengine=falloc --rw=randtrimwrite --bs=8k --size=1M --numjobs=2",
    ),
    (
        "trim-together",
        "--name=t --ioengine=falloc --rw=trimwrite --size=1M --numjobs=2 --group_reporting",
    ),
    (
        "trim-unified",
        "--name=t --ioengine=falloc --rw=trimwrite --size=1M --unified_rw_reporting=1",
    ),
    (
        "trim-rate",
        "--name=t --ioengine=null --rw=trim --bs=16k --size=1g --rate=,,10m --time_based \
         --runtime=1200ms",
    ),
    (
        "both",
        "--name=u --rw=randrw --bs=4k --size=1M --unified_rw_reporting=both",
    ),
    (
        "disk",
        "--name=d --rw=randrw --bs=4k --size=4M --fsync=8 --time_based --runtime=1200ms \
         --description=words --continue_on_error=all --percentile_list=50",
    ),
    (
        "no-disk",
        "--name=d --rw=write --bs=4k --size=64k --disk_util=0 --description=more_words",
    ),
    (
        "no-errors",
        "--name=e --rw=read --bs=4k --size=64k --continue_on_error=all",
    ),
    (
        "errors",
        "--name=e --rw=write --bs=64k --filename=/dev/full --size=1M --continue_on_error=all",
    ),
    (
        "latency-target",
        "--name=t --rw=randread --bs=4k --size=1M --latency_target=50000 \
         --latency_window=100000 --latency_percentile=95 --number_ios=4000",
    ),
    (
        "steady-slope",
        "--name=s --ioengine=null --zero_buffers --rw=read --bs=4k --size=1g --rate_iops=1000 \
         --percentile_list=50:90 --time_based --runtime=3 --ss=iops_slope:50% --ss_dur=2",
    ),
    (
        "steady-bandwidth",
        "--name=s --ioengine=null --zero_buffers --rw=read --bs=4k --size=1g --rate_iops=1000 \
         --percentile_list=50:90 --time_based --runtime=3 --ss=bw:0.1% --ss_dur=2",
    ),
    (
        "steady-iops",
        "--name=s --ioengine=null --zero_buffers --rw=read --bs=4k --size=1g --rate_iops=1000 \
         --percentile_list=50:90 --time_based --runtime=3 --ss=iops:3 --ss_dur=2",
    ),
];

/// Splits a text into words and numbers.
fn tokens(line: &str) -> Vec<&str> {
    let numeric = |c: char| c.is_ascii_digit() || c == '.';
    let mut all = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| numeric(c) != numeric(first));
        let (token, behind) = rest.split_at(end.unwrap_or(rest.len()));
        all.push(token);
        rest = behind;
    }
    all
}

/// Compares two lines: equal words, and numbers with equal decimals that differ by at most
/// `relative` and `absolute`.
fn alike(ours: &str, fios: &str, relative: f64, absolute: f64) -> bool {
    let (a, b) = (tokens(ours), tokens(fios));
    let decimals = |t: &str| t.split_once('.').map(|(_, d)| d.len());
    let same = |x: &str, y: &str| match (x.parse::<f64>(), y.parse::<f64>()) {
        (Ok(m), Ok(n)) => {
            let near = (m - n).abs() <= absolute + relative * n.abs();
            near && decimals(x) == decimals(y)
        }
        // Spaces before a number depend on its digits.
        _ => x.trim_end() == y.trim_end(),
    };
    a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| same(x, y))
}

/// Tolerance of a line, because values lose precision in JSON: (relative, absolute). `None`: exact.
type Slack = fn(&str) -> Option<(f64, f64)>;

fn compare(what: &str, ours: &[String], fios: &[String], slack: Slack) -> String {
    let mut out = String::new();
    for i in 0..ours.len().max(fios.len()) {
        let (a, b) = (ours.get(i), fios.get(i));
        let same = match (a, b) {
            (Some(a), Some(b)) => a == b || slack(b).is_some_and(|(r, x)| alike(a, b, r, x)),
            _ => false,
        };
        if !same {
            let text = |line: Option<&String>| line.cloned().unwrap_or_default();
            let _ = writeln!(
                out,
                "{what} {}:\n  fio  {}\n  ours {}",
                i + 1,
                text(b),
                text(a)
            );
        }
    }
    out
}

fn normal_slack(line: &str) -> Option<(f64, f64)> {
    let line = line.trim_start();
    // fio's histogram is coarser than ours: 64 steps for each power of two.
    if line.starts_with('|') {
        return Some((0.02, 1.0));
    }
    // fio compares a criterion with the integer part of the mean.
    if line.starts_with("steadystate") {
        return Some((1e-3, 1e-3));
    }
    // Halves may be rounded up or down.
    if line.contains("avg=") {
        return Some((0.0, 0.0101));
    }
    let depths = ["IO depths", "submit", "complete"];
    let any = depths.iter().any(|d| line.starts_with(d));
    any.then(|| shares_slack(line))
}

/// fio shows small shares as 0.1 %, so the sum exceeds 100 %. It also counts syncs among the
/// depths, but not in the total.
fn shares_slack(line: &str) -> (f64, f64) {
    let above = |t: &&str| t.contains('.') && t.parse::<f64>().is_ok_and(|p| p > 100.1);
    match tokens(line).iter().any(above) {
        true => (1.0, 0.0),
        false => (0.0, 0.7),
    }
}

/// fio's text without the parts that we do not print.
fn normal_lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| match (line.find(" (file:"), line.find(", error=")) {
            (Some(from), Some(to)) => format!("{}{}", &line[..from], &line[to..]),
            // fio divides these by 1024 once.
            _ if line.contains("steadystate") => match (line.find(" ("), line.find("), ")) {
                (Some(from), Some(to)) => format!("{}{}", &line[..from], &line[to..]),
                _ => line.to_owned(),
            },
            // The heading ends with the time of writing.
            _ if line.contains("(groupid=") => line[..line.len() - 24].to_owned(),
            _ => line.to_owned(),
        })
        .collect()
}

fn terse_fields(line: &str) -> Vec<String> {
    line.split(';').map(str::to_owned).collect()
}

fn terse_slack(field: &str) -> Option<(f64, f64)> {
    match field.matches('%').count() {
        1 if field.contains('=') => Some((0.02, 1.0)),
        1 => Some(shares_slack(field)),
        _ => Some((1e-6, 2e-6)),
    }
}

/// Lines of JSON, without bins and without keys that only one side has.
fn json_lines(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut until: Option<String> = None;
    for line in text.lines() {
        let bare = line.trim_end_matches(',');
        if let Some(end) = &until {
            if bare == end {
                until = None;
            }
            continue;
        }
        let indent = &bare[..bare.len() - bare.trim_start().len()];
        let key = bare.trim_start();
        if key == "\"bins\" : {" {
            until = Some(format!("{indent}}}"));
        } else if !LATER.iter().any(|later| key.starts_with(later)) {
            out.push(bare.to_owned());
        }
    }
    out
}

fn json_slack(line: &str) -> Option<(f64, f64)> {
    let key = line.trim_start().trim_start_matches('"');
    // Percentiles; depths and batches.
    let (name, value) = key.split_once("\" : ")?;
    if name.parse::<f64>().is_ok() && name.contains('.') {
        return Some((0.02, 0.0));
    }
    if name == "criterion" {
        return Some((1e-3, 1e-3));
    }
    let whole = !value.contains('.');
    match name.trim_start_matches(">=").parse::<u64>() {
        Ok(_) => Some(shares_slack(value)),
        Err(_) if whole => None,
        Err(_) => Some((1e-6, 2e-6)),
    }
}

/// Differences between fio's output and ours for the same numbers.
pub fn differences(text: &str) -> String {
    let output = Output::of(text);
    let run = reading::run(&output);
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let mut out = String::new();
    let fios = normal_lines(output.normal);
    out += &compare("normal", &normal_lines(&normal(&run)), &fios, normal_slack);
    out += &compare(
        "json+",
        &json_lines(&json(&run, true)),
        &json_lines(output.json),
        json_slack,
    );
    let ours = lines(&terse(&run));
    assert_eq!(ours.len(), output.terse.len(), "a line for each entry");
    for (ours, fios) in ours.iter().zip(&output.terse) {
        let (ours, fios) = (terse_fields(ours), terse_fields(fios));
        out += &compare("terse field", &ours, &fios, terse_slack);
    }
    out
}

/// Keys of later versions of fio, and keys that cannot be compared.
const LATER: [&str; 6] = [
    "\"job_start\"",
    "\"read_sectors\"",
    "\"write_sectors\"",
    "\"eta\"",
    "\"latency_target_ns\"",
    "\"latency_window_us\"",
];

/// Path of a run's recorded output.
fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/report/fio/recorded")
        .join(format!("{name}.txt"))
}

/// First line of a run's record.
fn command(options: &str) -> String {
    let options: Vec<&str> = options.split_whitespace().collect();
    format!("$ fio {FORMS} {}\n", options.join(" "))
}

/// The recorded output of fio for a run.
fn recorded(name: &str) -> String {
    let path = path_of(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let output = text.strip_prefix(&command(options_of(name)));
    let output = output.expect("a record of these options: run living_fio:: with RBENCH_RECORD=1");
    output.to_owned()
}

fn options_of(name: &str) -> &'static str {
    let run = RUNS.iter().find(|(one, _)| *one == name);
    run.expect("a run of RUNS").1
}

/// Compares the recorded output of a run with our output for its numbers.
fn check(name: &str) {
    compare_run(options_of(name), &recorded(name));
}

/// Compares an output of fio with ours.
fn compare_run(options: &str, text: &str) {
    if options.contains("unified_rw_reporting=both") {
        return compare_both(text);
    }
    let mismatches = differences(text);
    assert!(mismatches.is_empty(), "fio {options}\n{mismatches}");
}

/// Compares `unified_rw_reporting=both`: separate and combined directions.
fn compare_both(text: &str) {
    let output = Output::of(text);
    let run = reading::run(&output);
    let ours = json_lines(&json(&run, false));
    let mismatches = compare("json", &ours, &json_lines(output.json), json_slack);
    assert!(mismatches.is_empty(), "{mismatches}");
    // fio's row lacks rates; its order and its other lines are ours.
    let kinds = |text: &str| -> Vec<String> {
        let words = text
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let rows = ["read:", "write:", "mixed:", "READ:", "WRITE:", "MIXED:"];
        words
            .filter(|word| rows.contains(word))
            .map(str::to_owned)
            .collect()
    };
    let shown = normal(&run);
    assert_eq!(kinds(&shown), kinds(output.normal));
    assert!(!shown.contains("mixed: IOPS=0,"), "{shown}");
    let fields = |line: &str| line.split(';').count();
    assert_eq!(fields(terse(&run).trim_end()), fields(output.terse[0]));
}

#[test]
fn one_job_reads() {
    check("read");
}

#[test]
fn a_mix_has_both_directions() {
    check("mix");
}

#[test]
fn workers_have_an_entry_each_or_one_together() {
    check("workers");
    check("workers-together");
}

#[test]
fn sections_behind_a_stonewall_are_groups() {
    check("groups");
}

#[test]
fn what_is_verified_counts_as_read() {
    check("verify");
}

#[test]
fn syncs_have_a_block_of_their_own() {
    check("syncs");
}

#[test]
fn samples_of_the_rate_are_summed_up() {
    check("rates-together");
    check("rate-high");
}

#[test]
fn requests_under_way_have_a_submission_latency() {
    check("depth");
    check("depth-percentiles");
}

#[test]
fn numbers_have_the_digits_and_units_that_were_asked_for() {
    check("figures-7");
    check("figures-3");
    check("bits");
}

#[test]
fn percentiles_are_those_that_were_asked_for() {
    check("percentiles-lat");
    check("percentiles-1");
    check("percentiles-4");
    check("percentiles-11");
}

#[test]
fn reads_and_writes_may_be_one() {
    check("unified");
    check("unified-rate");
}

#[test]
fn trims_are_a_direction() {
    check("trim");
    check("trim-random");
    check("trim-together");
    check("trim-unified");
    check("trim-rate");
}

#[test]
fn reads_and_writes_may_be_shown_apart_and_as_one() {
    check("both");
}

#[test]
fn devices_and_descriptions_have_their_lines_and_fields() {
    check("disk");
    assert!(
        recorded("disk").contains("\"read_ticks\""),
        "fio saw a disk"
    );
    check("no-disk");
}

#[test]
fn errors_have_their_number_and_their_meaning() {
    check("no-errors");
    check("errors");
}

#[test]
fn a_latency_target_and_a_steady_state_have_their_lines() {
    check("latency-target");
    check("steady-slope");
    check("steady-bandwidth");
    check("steady-iops");
}

#[test]
fn each_run_is_recorded_and_no_other() {
    let folder = path_of("any");
    let folder = folder.parent().expect("the folder of the records");
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut recorded: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    let mut meant: Vec<PathBuf> = RUNS.iter().map(|(name, _)| path_of(name)).collect();
    recorded.sort();
    meant.sort();
    assert_eq!(recorded, meant);
}
