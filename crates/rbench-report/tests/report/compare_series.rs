//! Tests comparisons of generated series.

use std::sync::LazyLock;

use rbench_report::compare::{
    Comparison, Options, Refusal, SeriesRun, Verdict, Whole, compare_series,
};
use rbench_report::schema::{
    CellResult, CellValue, LeftOut, SERIES_SCHEMA, SeriesKey, SeriesResult,
};

use crate::compare::{SHIFTS, failing_if, five, rendered};
use crate::fixtures::{empty_run, words};
use crate::golden::check;
use crate::{io500, knee};

/// Shifts of the iterations of NEW.
const OTHERS: [i64; 5] = [3, -8, 12, -2, 5];
const KEYS: [(&str, [&str; 2]); 2] = [("threads", ["1", "4"]), ("write", ["4k", "64k"])];

/// A sweep of four cells; times are `permille` of the usual.
pub fn sweep(permille: [i64; 4], shifts: [i64; 5]) -> SeriesResult {
    let mut run = empty_run().run;
    run.command =
        words("rbench sweep --over threads=1,4 --over write=4k,64k -- meta --dir /mnt/jfs");
    let key = |(name, values): (&str, [&str; 2])| SeriesKey {
        name: name.to_owned(),
        values: values.map(str::to_owned).to_vec(),
    };
    let cell = |(index, permille): (usize, i64)| {
        let chosen = [KEYS[0].1[index / 2], KEYS[1].1[index % 2]];
        let values = KEYS.iter().zip(chosen).map(|((key, _), value)| CellValue {
            key: (*key).to_owned(),
            value: value.to_owned(),
        });
        CellResult {
            index: index as u32,
            name: format!("threads={} write={}", chosen[0], chosen[1]),
            values: values.collect(),
            wall_s: 1.0,
            dir: None,
            error: None,
            result: Some(five(permille, shifts)),
        }
    };
    SeriesResult {
        schema: SERIES_SCHEMA.to_owned(),
        kind: "sweep".to_owned(),
        suite: None,
        scale: 1.0,
        run,
        ranks: 2,
        hosts: vec!["client1".to_owned()],
        keys: KEYS.map(key).to_vec(),
        planned: Some(4),
        dir: None,
        embedded: false,
        launched: None,
        steps: Vec::new(),
        left_out: Vec::new(),
        cells: permille.into_iter().enumerate().map(cell).collect(),
        complete: true,
        check: None,
        knee: None,
        io500: None,
    }
}

fn between(
    base: &[&SeriesResult],
    new: &[&SeriesResult],
    options: &Options,
) -> Result<Comparison, Refusal> {
    let names: Vec<String> = (1..=9).map(|i| format!("{i}.json")).collect();
    let all = names.iter().zip(base.iter().chain(new));
    let all: Vec<SeriesRun<'_>> = all
        .map(|(name, series)| SeriesRun { name, series })
        .collect();
    let (base, new) = all.split_at(base.len());
    compare_series(base, new, options)
}

fn two(base: &SeriesResult, new: &SeriesResult) -> Comparison {
    between(&[base], &[new], &Options::default()).expect("the same thing")
}

/// The cells that contain an operation with this verdict.
fn cells_with(comparison: &Comparison, verdict: Verdict) -> Vec<&str> {
    let rows = comparison.rows.iter().filter(|row| row.verdict == verdict);
    let mut names: Vec<&str> = rows.filter_map(|row| row.cell.as_deref()).collect();
    names.dedup();
    names
}

/// One of four cells takes 30 % longer; two conditions hold.
pub fn one_slower() -> Comparison {
    // Computing its intervals takes a while, and several tests use it.
    static MADE: LazyLock<Comparison> = LazyLock::new(make_one_slower);
    MADE.clone()
}

fn make_one_slower() -> Comparison {
    let (base, new) = (
        sweep([1000; 4], SHIFTS),
        sweep([1000, 1000, 1300, 1000], OTHERS),
    );
    let options = failing_if(&[
        "rate<-10%",
        "threads=4 write=4k: file-stat.p50>+20%",
        "threads=1 write=4k: p50>+5%",
    ]);
    between(&[&base], &[&new], &options).expect("the same thing")
}

#[test]
fn the_cell_that_is_slower_is_found_and_no_other() {
    let comparison = one_slower();
    let slow = "threads=4 write=4k";
    assert_eq!(cells_with(&comparison, Verdict::Slower), [slow]);
    assert_eq!(cells_with(&comparison, Verdict::Faster), [""; 0]);
    let met: Vec<usize> = comparison.judged.iter().map(|one| one.met.len()).collect();
    assert_eq!(met, [3, 1, 0]);
    let text = rendered(&comparison, "text");
    assert!(text.lines().all(|l| l.chars().count() <= 120), "{text}");
    check("compare_series.txt", &text);
}

#[test]
fn a_comparison_of_series_as_markdown() {
    check("compare_series.md", &rendered(&one_slower(), "md"));
}

#[test]
fn a_comparison_of_series_as_csv_and_json() {
    let comparison = one_slower();
    let csv = rendered(&comparison, "csv");
    assert!(csv.starts_with("cell,operation,label,figure,"), "{csv}");
    let slower = csv.lines().filter(|line| line.ends_with(",slower"));
    assert_eq!(slower.count(), 3);
    check("compare_series.json", &rendered(&comparison, "json"));
}

#[test]
fn the_same_thing_twice_shows_no_difference_in_any_cell() {
    let comparison = two(&sweep([1000; 4], SHIFTS), &sweep([1000; 4], OTHERS));
    let same = |verdict| comparison.rows.iter().all(|row| row.verdict == verdict);
    assert!(same(Verdict::NoDifference) && comparison.rows.len() == 12);
    // Each row is judged among the rows of all cells.
    let p = |row: &rbench_report::compare::Row| {
        let interval = row.judged().and_then(|outcome| outcome.interval);
        interval.expect("five iterations").p
    };
    assert!(comparison.rows.iter().map(p).all(|p| p > 0.9));
}

#[test]
fn cells_are_matched_by_their_values_and_what_only_one_has_is_named() {
    let base = sweep([1000; 4], SHIFTS);
    let mut turned = sweep([1000, 1300, 1000, 1000], OTHERS);
    turned.keys.reverse();
    for cell in &mut turned.cells {
        cell.values.reverse();
        cell.name = format!(
            "write={} threads={}",
            cell.values[0].value, cell.values[1].value
        );
    }
    turned.cells.swap(0, 3);
    let comparison = two(&base, &turned);
    assert_eq!(
        cells_with(&comparison, Verdict::Slower),
        ["threads=1 write=64k"]
    );
    // Replaces one cell by another one.
    let mut other = sweep([1000; 4], OTHERS);
    other.cells[3].name = "threads=8 write=64k".to_owned();
    other.cells[3].values[0].value = "8".to_owned();
    let comparison = two(&base, &other);
    let part = comparison.series.as_ref().expect("of series");
    let told: Vec<(&str, Option<&str>)> = part
        .cells
        .iter()
        .map(|cell| (cell.name.as_str(), cell.why_not.as_deref()))
        .skip(2)
        .collect();
    assert_eq!(
        told,
        [
            ("threads=4 write=4k", None),
            ("threads=4 write=64k", Some("only BASE has it")),
            ("threads=8 write=64k", Some("only NEW has it")),
        ]
    );
    let text = rendered(&comparison, "text");
    assert!(text.contains("3 of 5 cells, 9 operations"), "{text}");
    assert!(
        text.contains("- threads=4 write=64k: only BASE has it"),
        "{text}"
    );
    // A condition on everything cannot be met by leaving cells out.
    let refused = |condition: &str| {
        let options = failing_if(&[condition]);
        let refusal = between(&[&base], &[&other], &options).expect_err(condition);
        refusal.to_string()
    };
    assert!(
        refused("rate<-5%").contains("NEW has no figure of threads=4 write=64k: file-create"),
        "{}",
        refused("rate<-5%")
    );
    assert!(refused("file-stat.rate<-5%").contains("threads=4 write=64k: file-stat"));
    assert!(refused("threads=4 write=64k:rate<-5%").contains("every operation of a cell"));
    assert!(refused("threads=9 write=4k:rate<-5%").contains("names the cell"));
    assert!(refused("held<-5%").contains("which these results do not have"));
    let fine = between(
        &[&base],
        &[&other],
        &failing_if(&["threads=1 write=4k:rate<-5%"]),
    );
    assert!(!fine.expect("a cell that both have").fails());
}

#[test]
fn what_was_interrupted_left_out_or_broken_is_named() {
    let base = sweep([1000; 4], SHIFTS);
    let mut new = sweep([1000; 4], OTHERS);
    new.complete = false;
    new.cells[1].error = Some("stopped by SIGINT".to_owned());
    new.cells[1].result = None;
    new.cells[2].error = Some("the file system is full".to_owned());
    let gone = new.cells.pop().expect("four cells");
    new.left_out.push(LeftOut {
        name: gone.name,
        why: "4 threads do not fit".to_owned(),
    });
    // The only key of a suite's cells is their name.
    let suite = |mut series: SeriesResult| {
        series.kind = "suite".to_owned();
        series.suite = Some("mine 1".to_owned());
        series
    };
    let comparison = two(&suite(base), &suite(new));
    let text = rendered(&comparison, "text");
    for words in [
        "stopped early: 1 of 4 cells",
        "- threads=1 write=64k: only BASE has it (NEW: stopped by SIGINT)",
        "- threads=4 write=64k: only BASE has it (NEW: 4 threads do not fit)",
        "threads=4 write=4k: the file system is full, in NEW (2.json)",
    ] {
        assert!(text.replace("\n  ", " ").contains(words), "{words}: {text}");
    }
}

#[test]
fn several_files_of_a_side_are_its_samples() {
    let all: Vec<SeriesResult> = [1000, 1010, 990, 1005]
        .map(|permille| sweep([permille; 4], SHIFTS))
        .into();
    let slow: Vec<SeriesResult> = [1300, 1290, 1310, 1305]
        .map(|permille| sweep([permille, 1000, permille, 1000], OTHERS))
        .into();
    let (base, new): (Vec<&SeriesResult>, Vec<&SeriesResult>) =
        (all.iter().collect(), slow.iter().collect());
    let comparison = between(&base, &new, &Options::default()).expect("the same thing");
    assert_eq!(
        cells_with(&comparison, Verdict::Slower),
        ["threads=1 write=4k", "threads=4 write=4k"]
    );
    assert_eq!(comparison.rows[0].base.words(), "4 runs");
}

#[test]
fn series_of_different_things_are_refused() {
    let base = sweep([1000; 4], SHIFTS);
    let refusal = |new: &SeriesResult| {
        let refusal = between(&[&base], &[new], &Options::default()).expect_err("different");
        refusal.to_string()
    };
    let mut other = base.clone();
    other.kind = "nn".to_owned();
    other.scale = 0.5;
    assert!(refusal(&other).contains("command (sweep against nn); scale (1 against 0.5)"));
    // A difference in all cells is reported once, a difference in one cell with the cell's name.
    let mut other = sweep([1000; 4], OTHERS);
    for cell in &mut other.cells {
        cell.result.as_mut().expect("a result").world.ranks = 9;
    }
    other.cells[1].result.as_mut().expect("a result").spec["depth"] = 7.into();
    let message = refusal(&other);
    assert!(message.contains(": ranks (2 against 9); "), "{message}");
    assert!(
        message.contains("depth in threads=1 write=64k (1 against 7)"),
        "{message}"
    );
    let mut other = base.clone();
    for cell in &mut other.cells {
        cell.values[0].value.push('x');
    }
    let message = refusal(&other);
    assert!(
        message.starts_with("no operation has finished in both 1.json and 2.json: "),
        "{message}"
    );
    let key = &base.cells[0].values[0].key;
    assert!(message.contains(&format!("{key} is ")), "{message}");
    for cell in &mut other.cells {
        cell.values[0].key = "sort".to_owned();
    }
    let message = refusal(&other);
    assert!(
        message.contains(&format!("only BASE varies {key}; ")),
        "{message}"
    );
    assert!(message.contains("only NEW varies sort"), "{message}");
}

/// A search that held at one rate and failed at the other.
fn search(held: u32, failed: u32) -> SeriesResult {
    let rate = f64::from;
    let items = u64::from;
    let mut cells = vec![
        knee::cell(0, ("closed", 0.0), (4000, 0, 0)),
        knee::cell(1, ("search", rate(held)), (items(held), 3, 0)),
        knee::cell(2, ("search", rate(failed)), (items(failed), 12, 0)),
        knee::cell(3, ("confirm", rate(held)), (3 * items(held), 5, 0)),
    ];
    if held == 0 {
        cells = vec![
            knee::cell(0, ("closed", 0.0), (4000, 0, 0)),
            knee::cell(1, ("search", rate(failed)), (items(failed), 12, 0)),
        ];
    }
    knee::series(cells)
}

fn held(comparison: &Comparison) -> &Whole {
    let part = comparison.series.as_ref().expect("of series");
    part.wholes.first().expect("of searches")
}

#[test]
fn a_limit_is_lower_if_all_of_its_bracket_is() {
    let base = search(1000, 1050);
    for ((low, high), expect) in [
        ((1000, 1050), Verdict::NoDifference),
        ((960, 1010), Verdict::NoDifference),
        // The rates differ, but by less than the minimum effect.
        ((920, 960), Verdict::NoDifference),
        ((900, 950), Verdict::Slower),
        ((500, 525), Verdict::Slower),
        ((0, 500), Verdict::Slower),
        ((1060, 1100), Verdict::NoDifference),
        ((1110, 1160), Verdict::Faster),
    ] {
        let comparison = two(&base, &search(low, high));
        assert_eq!(held(&comparison).verdict, Some(expect), "{low} to {high}");
        // Only the cell without a rate is the same in both.
        assert_eq!(comparison.rows.len(), 1);
    }
    let comparison = two(&base, &search(800, 840));
    let limit = held(&comparison);
    assert_eq!((limit.ratio, limit.high), (Some(0.8), Some(0.84)));
    check("compare_knee.txt", &rendered(&comparison, "text"));
    let csv = rendered(&comparison, "csv");
    assert!(
        csv.contains(",,held rate,held,ops/s,1000,800,0.8,"),
        "{csv}"
    );
    assert!(rendered(&comparison, "md").contains("| held rate | 1,000 to 1,050 |"));
    rendered(&comparison, "json");
}

#[test]
fn conditions_on_a_limit_need_brackets_that_are_apart() {
    let base = search(1000, 1050);
    let judged = |new: &SeriesResult, condition: &str| {
        between(&[&base], &[new], &failing_if(&[condition])).map(|comparison| comparison.fails())
    };
    for (new, condition, fails) in [
        (search(900, 950), "held<-5%", true),
        (search(900, 950), "held<-15%", false),
        (search(960, 1010), "held<-2%", false),
        (search(0, 500), "held<-50%", true),
        (search(1200, 1260), "held>+5%", true),
    ] {
        assert_eq!(judged(&new, condition), Ok(fails), "{condition}");
    }
    let mut stopped = search(900, 950);
    stopped.complete = false;
    let refusal = judged(&stopped, "held<-5%")
        .expect_err("stopped")
        .to_string();
    assert!(refusal.contains("cannot be judged"), "{refusal}");
    let comparison = two(&base, &stopped);
    assert_eq!(held(&comparison).verdict, Some(Verdict::TooFew));
    let notes = comparison.notes.join("\n");
    assert!(notes.contains("the search of NEW in 2.json is inconclusive: it was stopped early"));
}

#[test]
fn searches_for_other_objectives_are_refused() {
    let base = search(1000, 1050);
    let mut other = search(1000, 1050);
    other.knee.as_mut().expect("a knee").objective.limits[0].most_ns *= 2;
    let refusal = between(&[&base], &[&other], &Options::default()).expect_err("another objective");
    let message = refusal.to_string();
    assert!(
        message.contains("objective (p99=10000000 ns, errors=0 against p99=20000000 ns"),
        "{message}"
    );
}

#[test]
fn scores_have_a_ratio_over_the_same_phases_only() {
    let of = |seconds: f64, cells: u32| {
        let mut series = io500::series();
        (0..cells).for_each(|index| series.put(io500::cell(index, seconds, None)));
        series
    };
    let comparison = two(&of(300.0, 5), &of(300.0, 5));
    let part = comparison.series.as_ref().expect("of series");
    let ratios: Vec<(&str, Option<f64>)> = part
        .wholes
        .iter()
        .map(|whole| (whole.name.as_str(), whole.ratio))
        .collect();
    assert_eq!(
        ratios[..4],
        [
            ("score", Some(1.0)),
            ("score-bandwidth", Some(1.0)),
            ("score-metadata", Some(1.0)),
            ("ior-easy-write", Some(1.0)),
        ]
    );
    assert_eq!(ratios.len(), 3 + 5);
    rendered(&comparison, "json");
    let comparison = two(&of(300.0, 5), &of(300.0, 3));
    let part = comparison.series.as_ref().expect("of series");
    let ratio = |name: &str| {
        part.wholes
            .iter()
            .find(|w| w.name == name)
            .and_then(|w| w.ratio)
    };
    assert_eq!(ratio("score-bandwidth"), None);
    assert_eq!(ratio("score-metadata"), Some(1.0));
    let notes = comparison.notes.join("\n");
    assert!(notes.contains("only one side has ior-easy-read"), "{notes}");
    let text = rendered(&comparison, "text");
    assert!(text.contains("- ior-easy-read: only BASE has it"), "{text}");
}
