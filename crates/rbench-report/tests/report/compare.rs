//! Tests comparisons of generated runs.

use std::sync::LazyLock;

use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Latency, Nanos, OpKind};
use rbench_report::View;
use rbench_report::compare::{
    Basis, Comparison, Condition, FORMATS, Options, Refusal, Run, Verdict, against, compare,
    published,
};
use rbench_report::schema::Warning;
use rbench_report::{PhaseResult, RunResult};
use serde_json::{Value, json};

use crate::fixtures::{Made, fail, meta_phases, meta_spec, no_space, run, words};
use crate::golden::check;
use crate::valid;

/// Shifts of five iterations, in thousandths.
pub const SHIFTS: [i64; 5] = [0, 11, -9, 14, -6];

/// Five iterations of three phases; times are `permille` of the usual.
pub fn five(permille: i64, shifts: [i64; 5]) -> RunResult {
    let mut phases = Vec::new();
    for (iteration, shift) in shifts.into_iter().enumerate() {
        let template = |items, bytes, ns: i64| {
            let ns = ns * permille / 1000 * (1000 + shift) / 1000;
            Made::on(1, 2, items, bytes, ns as u64)
        };
        let mut pass = vec![
            template(1000, 102_400, 2_100_000).phase(
                "file-create",
                "File creation",
                OpKind::Create,
            ),
            template(1000, 0, 390_000).phase("file-stat", "File stat", OpKind::Stat),
            template(50, 0, 1_400_000).phase("file-remove", "File removal", OpKind::Unlink),
        ];
        pass.iter_mut().for_each(|p| p.iteration = iteration as u32);
        phases.extend(pass);
    }
    let mut spec = meta_spec();
    spec["iterations"] = json!("5");
    let mut result = run(1, 2, spec, phases);
    result.run.command = words("rbench meta --dir /mnt/jfs");
    result
}

fn between(
    base: &[&RunResult],
    new: &[&RunResult],
    options: &Options,
) -> Result<Comparison, Refusal> {
    let named = |side: &str, results: &[&RunResult]| -> Vec<(String, RunResult)> {
        let results = results.iter().enumerate();
        results
            .map(|(i, result)| (format!("{side}{}.json", i + 1), (*result).clone()))
            .collect()
    };
    let (base, new) = (named("base", base), named("new", new));
    compare(&as_runs(&base), &as_runs(&new), options)
}

fn as_runs(results: &[(String, RunResult)]) -> Vec<Run<'_>> {
    results
        .iter()
        .map(|(name, result)| Run { name, result })
        .collect()
}

fn verdicts(comparison: &Comparison) -> Vec<(&str, Verdict)> {
    let rows = comparison.rows.iter();
    rows.map(|row| (row.name.as_str(), row.verdict)).collect()
}

pub fn rendered(comparison: &Comparison, format: &str) -> String {
    let known = FORMATS.iter().find(|known| known.name == format);
    let text = (known.expect("a format").render)(comparison, View::default());
    if format == "json" {
        valid::check(&text);
    }
    text
}

pub fn failing_if(conditions: &[&str]) -> Options {
    let read = |text: &&str| Condition::parse(text).expect(text);
    Options {
        conditions: conditions.iter().map(read).collect(),
        ..Options::default()
    }
}

/// A run with 10 % more time, and conditions; two of them hold.
pub fn slower() -> Comparison {
    // Computing its intervals takes a while, and several tests use it.
    static MADE: LazyLock<Comparison> = LazyLock::new(make_slower);
    MADE.clone()
}

fn make_slower() -> Comparison {
    let (base, new) = (five(1000, SHIFTS), five(1100, [3, -8, 12, -2, 5]));
    let options = failing_if(&["file-create.p99>+8%", "rate<-20%", "p50>+5%"]);
    between(&[&base], &[&new], &options).expect("the same thing")
}

#[test]
fn ten_per_cent_more_time_is_slower() {
    let comparison = slower();
    let all = comparison.rows.iter();
    assert!(all.clone().all(|row| row.verdict == Verdict::Slower));
    assert!(comparison.fails());
    let text = rendered(&comparison, "text");
    assert!(text.lines().all(|l| l.chars().count() <= 120), "{text}");
    check("compare_slower.txt", &text);
}

#[test]
fn a_comparison_as_markdown() {
    check("compare_slower.md", &rendered(&slower(), "md"));
}

#[test]
fn a_comparison_as_csv() {
    check("compare_slower.csv", &rendered(&slower(), "csv"));
}

#[test]
fn a_comparison_as_json() {
    check("compare_slower.json", &rendered(&slower(), "json"));
}

#[test]
fn the_same_thing_twice_shows_no_difference() {
    let (base, new) = (five(1000, SHIFTS), five(1000, [3, -8, 12, -2, 5]));
    let comparison = between(&[&base], &[&new], &Options::default()).expect("the same thing");
    let none = |row: &rbench_report::compare::Row| row.verdict == Verdict::NoDifference;
    assert!(
        comparison.rows.iter().all(none),
        "{:?}",
        verdicts(&comparison)
    );
    assert!(!comparison.fails());
}

#[test]
fn a_change_that_is_shown_and_too_small_does_not_count() {
    let (base, new) = (five(1000, SHIFTS), five(970, SHIFTS));
    let small = Options {
        min_effect: 0.01,
        ..Options::default()
    };
    let verdict = |options: &Options| {
        let comparison = between(&[&base], &[&new], options).expect("the same thing");
        comparison.rows[0].verdict
    };
    assert_eq!(verdict(&Options::default()), Verdict::NoDifference);
    assert_eq!(verdict(&small), Verdict::Faster);
}

#[test]
fn percentiles_are_those_of_all_iterations_merged() {
    // One iteration of five is slow. It contains a fifth of all operations and so determines the
    // p90 of all; a mean of percentiles would differ.
    let mut base = five(1000, [0; 5]);
    let mut all = Latency::new();
    for (i, phase) in base.phases.iter_mut().enumerate() {
        let slow = if i == 3 { 50 } else { 1 };
        let mut own = Latency::new();
        (1..=1000_u64).for_each(|k| own.record(Nanos(k * 1000 * slow)));
        if phase.name == "file-create" {
            all.merge(&own);
            phase.latency.service = (&own).into();
        }
    }
    let new = five(1000, [0; 5]);
    let comparison = between(&[&base], &[&new], &Options::default()).expect("the same thing");
    let row = &comparison.rows[0];
    for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        let figure = row.figures.iter().find(|f| f.figure.name == name);
        let expect = all.quantile(q).0 as f64;
        assert_eq!(figure.map(|f| f.base), Some(expect), "{name}");
    }
    // The mean is robust: it is the mean of the other iterations.
    let mean = row.figures.iter().find(|f| f.figure.name == "mean");
    let mean = mean.map(|f| f.base).expect("a mean");
    assert!((mean / 500_500.0 - 1.0).abs() < 1e-9, "{mean}");
}

#[test]
fn from_three_runs_on_the_samples_are_runs() {
    // Iterations of a run are similar, runs are not: the variation between runs counts.
    let run = |permille: i64| five(permille, [0, 1, -1, 2, -2]);
    let base: Vec<RunResult> = [1000, 1080, 930, 1010].map(run).into();
    let new: Vec<RunResult> = [1060, 1000, 1150, 970].map(run).into();
    let (base, new): (Vec<&RunResult>, Vec<&RunResult>) =
        (base.iter().collect(), new.iter().collect());
    let comparison = between(&base, &new, &Options::default()).expect("the same thing");
    let row = &comparison.rows[0];
    assert_eq!((row.base, row.new), (Basis::Runs(4), Basis::Runs(4)));
    assert_eq!(row.verdict, Verdict::NoDifference);
    // Compared by their iterations, two of these runs seem to differ.
    let one = between(&base[..1], &new[..1], &Options::default()).expect("the same thing");
    assert_eq!(one.rows[0].base, Basis::Iterations(5));
    assert_eq!(one.rows[0].verdict, Verdict::Slower);
}

#[test]
fn single_runs_give_no_verdict_no_p_and_no_exit_code_1() {
    // Time slices do not show how much the next run may differ.
    let once = |permille: i64| {
        let mut result = five(permille, SHIFTS);
        result.phases.retain(|phase| phase.iteration == 0);
        result
    };
    let (base, new) = (once(1000), once(1300));
    let comparison = between(&[&base], &[&new], &Options::default()).expect("the same thing");
    let row = &comparison.rows[0];
    assert_eq!(row.base, Basis::Iterations(1));
    assert_eq!(
        row.judged().map(|o| (o.interval, o.ratio < 0.8)),
        Some((None, true))
    );
    let verdicts = comparison.rows.iter().map(|row| row.verdict);
    assert!(verdicts.into_iter().all(|own| own == Verdict::TooFew));
    check("compare_single.txt", &rendered(&comparison, "text"));
    let options = failing_if(&["rate<-10%"]);
    let refusal = between(&[&base], &[&new], &options).expect_err("not known");
    assert_eq!(
        refusal.to_string(),
        "--fail-if 'rate<-10%' cannot be judged: file-create has too few samples (BASE 1 iteration, NEW 1 \
         iteration); repeat with --iterations 5"
    );
    // Three of each are still too few, four are enough.
    for (iterations, verdict) in [(3, Verdict::TooFew), (4, Verdict::Slower)] {
        let some = |permille: i64| {
            let mut result = five(permille, SHIFTS);
            result.phases.retain(|phase| phase.iteration < iterations);
            result
        };
        let comparison = between(&[&some(1000)], &[&some(1300)], &Options::default());
        assert_eq!(comparison.expect("the same thing").rows[0].verdict, verdict);
    }
}

#[test]
fn a_sixteenth_is_slower_though_first_iterations_are_wild() {
    // In permille of the usual time: both first iterations are off by a factor of 58.
    let (base, new) = (
        five(1000, [57_000, 11, -9, 14, -6]),
        five(16_000, [57_000, -8, 12, -2, 5]),
    );
    let comparison = between(&[&base], &[&new], &Options::default()).expect("the same thing");
    assert!(
        comparison
            .rows
            .iter()
            .all(|row| row.verdict == Verdict::Slower)
    );
    let text = rendered(&comparison, "text");
    let first = text.lines().find(|line| line.starts_with("new1 is "));
    let words = "new1 is slower in 3 of 3 operations: File creation (-93.";
    assert!(first.is_some_and(|line| line.starts_with(words)), "{text}");
}

#[test]
fn a_condition_that_noise_hides_is_not_decided() {
    let (base, new) = (
        five(1000, [0, 300, -200, 250, -100]),
        five(1100, [30, -180, 320, -20, 250]),
    );
    let options = failing_if(&["file-create.rate<-5%", "file-create.rate<-90%"]);
    let comparison = between(&[&base], &[&new], &options).expect("the same thing");
    assert!(!comparison.fails());
    let text = rendered(&comparison, "text");
    let said = "- file-create.rate<-5%: cannot be decided with these samples: file-create (-";
    assert!(text.contains(said), "{text}");
    assert!(
        text.contains("- file-create.rate<-90%: not met\n"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&rendered(&comparison, "json")).expect("JSON");
    let undecided = &json["conditions"][0]["undecided"];
    assert_eq!(undecided[0]["name"], "file-create");
    assert!(undecided[0]["low"].as_f64().is_some_and(|low| low < -0.05));
    assert_eq!(json["conditions"][1]["undecided"], json!([]));
    assert_eq!(json["fails"], false);
}

#[test]
fn samples_apart_without_a_verdict_are_noted() {
    // Creation jumps between two speeds on both sides, so four samples do not rule out chance.
    let jumps = [0, 0, 9000, 9000, 0];
    let (mut base, mut new) = (five(1000, jumps), five(1000, jumps));
    let noise = [0, 900, -400, 1500, 0];
    for (result, permille) in [(&mut base, 1000), (&mut new, 800_000)] {
        let stats = five(permille, noise);
        result.phases.retain(|phase| phase.name == "file-create");
        let stats = stats.phases.into_iter();
        result
            .phases
            .extend(stats.filter(|phase| phase.name == "file-stat"));
        result.phases.retain(|phase| phase.iteration < 4);
    }
    let comparison = between(&[&base], &[&new], &Options::default()).expect("the same thing");
    assert_eq!(comparison.rows[1].verdict, Verdict::NoDifference);
    let text = rendered(&comparison, "text");
    assert!(text.contains("under -99.99% to +0.0%"), "{text}");
    let notes = comparison.notes.join("\n");
    let note = "file-stat: every sample of one side is above all of the other, but so few samples";
    assert!(notes.contains(note), "{notes}");
}

#[test]
fn a_difference_that_does_not_count_is_no_lack_of_samples() {
    let (base, new) = (five(1000, SHIFTS), five(1550, SHIFTS));
    let options = Options {
        min_effect: 0.6,
        ..Options::default()
    };
    let comparison = between(&[&base], &[&new], &options).expect("the same thing");
    let verdicts = verdicts(&comparison).into_iter();
    assert!(
        verdicts
            .map(|(_, verdict)| verdict)
            .all(|v| v == Verdict::NoDifference)
    );
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
}

#[test]
fn rows_that_other_caches_answered_are_compared_and_marked() {
    let (mut base, mut new) = (five(1000, SHIFTS), five(500, SHIFTS));
    for (result, cache) in [(&mut base, "cold"), (&mut new, "warm")] {
        let stats = result.phases.iter_mut();
        let stats = stats.filter(|phase| phase.name == "file-stat");
        stats.for_each(|phase| phase.cache = Some(cache.to_owned()));
    }
    new.phases.iter_mut().for_each(|phase| phase.bytes /= 25);
    let comparison = between(&[&base], &[&new], &Options::default()).expect("comparable");
    assert!(comparison.differences.is_empty());
    assert!(
        comparison
            .rows
            .iter()
            .all(|row| row.verdict == Verdict::Faster)
    );
    let text = rendered(&comparison, "text");
    assert!(text.contains("faster; cache (cold against warm)"), "{text}");
    let notes = comparison.notes.join("\n");
    for note in [
        "file-stat: cache (cold against warm): its ratio reflects this difference, not the file system alone",
        "file-create: bytes of an operation (102400 against 4096)",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
    assert!(rendered(&comparison, "json").contains("\"unlike\""));
}

#[test]
fn runs_that_did_different_things_are_refused_and_every_difference_is_named() {
    let base = five(1000, SHIFTS);
    let mut new = five(1000, SHIFTS);
    new.world.ranks = 4;
    new.world.threads_per_rank = 2;
    new.spec["write"] = json!("4KiB");
    new.spec["depth"] = json!(3);
    new.spec["iterations"] = json!("9");
    let refusal = between(&[&base], &[&new], &Options::default()).expect_err("different");
    assert_eq!(
        refusal.to_string(),
        "these runs are not comparable: ranks (2 against 4); threads of each rank (1 against 2); \
         depth (1 against 3); write (0B against 4KiB); --even-if-different compares them anyway"
    );
    let all_the_same = Options {
        even_if_different: true,
        ..Options::default()
    };
    let comparison = between(&[&base], &[&new], &all_the_same).expect("asked for");
    assert_eq!(comparison.differences.len(), 4);
    let text = rendered(&comparison, "text");
    assert!(text.contains("\nDIFFERENT "), "{text}");
    // A different command without common rows.
    new.run.command[1] = "io".to_owned();
    new.phases.iter_mut().for_each(|phase| phase.name.push('x'));
    let refusal = between(&[&base], &[&new], &Options::default()).expect_err("different");
    assert!(
        refusal.to_string().contains("workload (meta against io)"),
        "{refusal}"
    );
    let refusal = between(&[&base], &[&new], &all_the_same).expect_err("nothing in common");
    assert_eq!(
        refusal.to_string(),
        "no operation has finished in both base1.json and new1.json"
    );
}

#[test]
fn warnings_about_compared_rows_are_noted_for_the_side_that_has_them() {
    let plain = five(1000, SHIFTS);
    let mut skewed = plain.clone();
    let last = skewed.phases.last_mut().expect("a phase");
    last.start_skew_s = last.elapsed_s;
    let message = || "Workers did not all start on time.".to_owned();
    skewed.warnings.push(Warning::new("start-skew", message()));
    let noted = |base: &[&RunResult], new: &[&RunResult], expected: &[&str]| {
        let comparison = between(base, new, &Options::default()).expect("a comparison");
        let notes = comparison.notes.iter();
        let notes: Vec<&String> = notes.filter(|note| note.contains("warnings")).collect();
        assert_eq!(notes, expected);
    };
    noted(
        &[&plain, &skewed],
        &[&skewed],
        &[
            "BASE has warnings about what is compared: start-skew (base2.json); rbench show prints them",
            "NEW has warnings about what is compared: start-skew; rbench show prints them",
        ],
    );
    noted(&[&plain], &[&plain], &[]);
    // About an operation that only one side has.
    for phase in &mut skewed.phases {
        if phase.name == "file-remove" {
            phase.name = "other".to_owned();
        }
    }
    noted(&[&plain], &[&skewed], &[]);
}

#[test]
fn failed_and_stopped_phases_are_told() {
    let base = five(1000, SHIFTS);
    let mut outcomes: Vec<PhaseOutcome> = meta_phases(1, 2);
    outcomes.retain(|phase| phase.name.starts_with("file-"));
    fail(&mut outcomes[0], 1, 3, no_space(OpKind::Create, "/mnt/x"));
    let mut new = run(1, 2, meta_spec(), outcomes);
    new.run.command = words("rbench meta");
    let last = new
        .phases
        .iter_mut()
        .find(|phase| phase.name == "file-remove");
    last.expect("removal").complete = false;
    let options = Options {
        even_if_different: true,
        ..Options::default()
    };
    let comparison = between(&[&base], &[&new], &options).expect("asked for");
    let notes = comparison.notes.join("\n");
    for note in [
        "file-create: 3 of 800 operations failed in NEW",
        "file-remove: 1 of its phases did not finish in NEW",
        "only BASE has file-remove",
        "only NEW has file-read, file-rename",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
}

#[test]
fn an_open_loop_is_judged_by_its_response_times() {
    let open = |late: u64| {
        let mut phases = Vec::new();
        for iteration in 0..4 {
            let mut phase =
                Made::solo(2000, 4096, 310_000).phase("randread", "Random read", OpKind::Read);
            let mut response = phase.service.clone();
            (0..500_u64)
                .for_each(|i| response.record(Nanos((late + u64::from(iteration) * 1000) * i)));
            phase.response = Some(response);
            phase.iteration = iteration;
            phases.push(phase);
        }
        run(1, 1, json!({"rate": "1000/s"}), phases)
    };
    let comparison = between(&[&open(100_000)], &[&open(200_000)], &Options::default());
    let comparison = comparison.expect("the same thing");
    let row = &comparison.rows[0];
    assert_eq!(row.judged_by.name, "response-mean");
    assert_eq!(row.verdict, Verdict::Slower);
    assert!(
        row.figures
            .iter()
            .any(|f| f.figure.name == "response-p99.9")
    );
}

#[test]
fn response_times_without_what_never_started_give_no_verdict() {
    let open = |late: u64, unissued: u64| {
        let mut phases = Vec::new();
        for iteration in 0..4 {
            let mut phase =
                Made::solo(2000, 4096, 310_000).phase("randread", "Random read", OpKind::Read);
            let mut response = phase.service.clone();
            (0..500_u64)
                .for_each(|i| response.record(Nanos((late + u64::from(iteration) * 1000) * i)));
            phase.response = Some(response);
            phase.unissued = unissued;
            phase.iteration = iteration;
            phases.push(phase);
        }
        run(1, 1, json!({"rate": "1000/s"}), phases)
    };
    let (base, new) = (open(200_000, 0), open(100_000, 996));
    let starved = between(&[&base], &[&new], &Options::default()).expect("the same thing");
    assert_eq!(starved.rows[0].verdict, Verdict::TooFew);
    let notes = starved.notes.join("\n");
    assert!(notes.contains("randread: 3984 due operations were never started in NEW"));
    let refusal = between(&[&base], &[&new], &failing_if(&["response-p99>+10%"]));
    let refusal = refusal.expect_err("no answer").to_string();
    assert!(refusal.contains("never started"), "{refusal}");
    // Operations that wait at the end, one per worker, are not a backlog.
    let few = between(&[&base], &[&open(100_000, 1)], &Options::default()).expect("the same");
    assert_eq!(few.rows[0].verdict, Verdict::Faster);
}

#[test]
fn a_condition_about_every_operation_needs_every_operation() {
    let base = five(1000, SHIFTS);
    let mut new = five(1000, SHIFTS);
    let gone = new.phases.iter_mut().filter(|p| p.name == "file-remove");
    gone.for_each(|phase| phase.complete = false);
    let options = failing_if(&["rate<-5%"]);
    let refusal = between(&[&base], &[&new], &options).expect_err("it is not known");
    let refusal = refusal.to_string();
    assert!(
        refusal.contains("NEW has no figure of file-remove"),
        "{refusal}"
    );
    let named = failing_if(&["file-create.rate<-5%"]);
    assert!(between(&[&base], &[&new], &named).is_ok());
    // Rows that NEW was not asked for may be missing if runs may differ.
    new.phases.retain(|phase| phase.name != "file-remove");
    let different = Options {
        even_if_different: true,
        ..options
    };
    assert!(between(&[&base], &[&new], &different).is_ok());
}

/// A run of `rbench io` with one row of 4 KiB blocks.
fn io(name: &str, op: OpKind, open_loop: bool) -> RunResult {
    let mut phase = Made::solo(2000, 4096, 310_000).phase(name, name, op);
    phase.bytes = phase.items * 4096;
    phase.response = open_loop.then(|| phase.service.clone());
    let mut result = run(1, 1, json!({"bs": "4KiB"}), vec![phase]);
    result.run.command = words("rbench io --bs 4k");
    result
}

#[test]
fn published_blocks_meet_only_rows_of_one_direction_in_a_closed_loop() {
    let column = published::find("cubefs/1x1").expect("a column of random blocks");
    let rows = |name: &str, op: OpKind, open_loop: bool| {
        let result = io(name, op, open_loop);
        let runs = [Run {
            name: "io.json",
            result: &result,
        }];
        let comparison = against(&column, &runs, &Options::default()).expect("compared");
        comparison.rows.len()
    };
    assert_eq!(rows("randread", OpKind::Read, false), 1);
    assert_eq!(rows("randread-2", OpKind::Read, false), 1);
    assert_eq!(rows("randrw-read", OpKind::Read, false), 0);
    assert_eq!(rows("randread", OpKind::Read, true), 0);
}

#[test]
fn a_condition_about_what_is_not_there_is_refused() {
    let (base, new) = (five(1000, SHIFTS), five(1000, SHIFTS));
    for (condition, reason) in [
        (
            "file-crate.p99>+10%",
            "the operation file-crate, which is not compared (nearest: file-create)",
        ),
        (
            "made.rate<-10%",
            "the operation made, which is not compared (compared: file-create, file-stat, file-remove)",
        ),
        (
            "response-p99>+10%",
            "is about response-p99, which no operation has here",
        ),
        ("file-stat.bandwidth<-10%", "is about bandwidth"),
    ] {
        let refusal = between(&[&base], &[&new], &failing_if(&[condition]));
        let refusal = refusal.expect_err(condition).to_string();
        assert!(refusal.starts_with("--fail-if '"), "{refusal}");
        assert!(refusal.contains(reason), "{refusal}");
    }
}

/// An ops table of three iterations.
fn ops() -> RunResult {
    let mut phases = Vec::new();
    for iteration in 0..3_u32 {
        let template = |ns: u64| Made::solo(1000, 0, ns + u64::from(iteration) * 500);
        let mut pass = vec![
            template(400_000).phase("mkdir", "mkdir", OpKind::Mkdir),
            template(60_000).phase("getattr", "getattr", OpKind::Getattr),
        ];
        pass.iter_mut().for_each(|p| p.iteration = iteration);
        phases.extend(pass);
    }
    let mut result = run(
        1,
        1,
        json!({"rows": "mkdir,getattr", "ops": "1000"}),
        phases,
    );
    result.run.command = words("rbench ops --dir /mnt/jfs");
    result
}

#[test]
fn operations_of_ops_are_judged_by_their_time() {
    let comparison = between(&[&ops()], &[&ops()], &Options::default()).expect("the same thing");
    assert!(!comparison.rows.is_empty());
    for row in &comparison.rows {
        let judged = row.judged().expect("a figure");
        assert_eq!(judged.figure.name, "mean", "{}", row.name);
    }
}

#[test]
fn published_figures_are_compared_where_the_same_was_measured() {
    let column = published::find("juicefs-1.1/redis-always").expect("published");
    let result = ops();
    let runs = [Run {
        name: "ops.json",
        result: &result,
    }];
    let comparison = against(&column, &runs, &Options::default()).expect("compared");
    let rows: Vec<(&str, f64)> = comparison
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row.figures[0].base))
        .collect();
    assert_eq!(rows, [("mkdir", 558_000.0), ("getattr", 87_000.0)]);
    check("compare_published.txt", &rendered(&comparison, "text"));
}

#[test]
fn the_published_columns_are_listed() {
    check("published_list.txt", &published::list());
}

#[test]
fn files_of_another_size_are_not_the_same_thing() {
    let result = five(1000, SHIFTS);
    let runs = [Run {
        name: "meta.json",
        result: &result,
    }];
    let column = published::find("cubefs-small-files/128k").expect("published");
    let comparison = against(&column, &runs, &Options::default()).expect("compared");
    assert!(comparison.rows.is_empty());
    let reasons: Vec<&str> = comparison
        .unmeasured
        .iter()
        .map(|u| u.reason.as_str())
        .collect();
    let size = "files hold 128KiB in the publication and 100KiB here";
    assert_eq!(reasons, [size, "not measured", size, size]);
    let column = published::find("juicefs-1.1/tikv").expect("published");
    let comparison = against(&column, &runs, &Options::default()).expect("compared");
    let labels: Vec<&str> = comparison
        .rows
        .iter()
        .map(|row| row.label.as_str())
        .collect();
    assert_eq!(
        labels,
        [
            "File creation (mdtest small-files)",
            "File stat (mdtest small-files)",
            "File removal (mdtest small-files)"
        ]
    );
}

#[test]
fn a_damaged_distribution_is_a_sentence() {
    let (base, mut new) = (five(1000, SHIFTS), five(1000, SHIFTS));
    let damaged: &mut PhaseResult = &mut new.phases[0];
    damaged.latency.service.hdr = "*".to_owned();
    let refusal = between(&[&base], &[&new], &Options::default()).expect_err("damaged");
    let text = refusal.to_string();
    assert!(
        text.starts_with("new1.json: file-create: the field hdr is not base64"),
        "{text}"
    );
}

#[test]
fn names_from_outside_neither_steer_a_terminal_nor_break_a_table() {
    let evil = |mut result: RunResult| {
        for phase in &mut result.phases {
            phase.label = "a|b\u{1b}[2J\n<script>".to_owned();
        }
        result
    };
    let (base, new) = (evil(five(1000, SHIFTS)), evil(five(1000, SHIFTS)));
    let comparison = between(&[&base], &[&new], &Options::default()).expect("the same thing");
    for format in FORMATS {
        let text = (format.render)(&comparison, View::default());
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let md = rendered(&comparison, "md");
    assert!(md.contains("a\\|b") && !md.contains("<script>"), "{md}");
}
