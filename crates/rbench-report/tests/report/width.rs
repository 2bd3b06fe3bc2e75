//! Tests that reports for people fit the view's width, and that details lose nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rbench_core::OpKind;
use rbench_report::compare::FORMATS;
use rbench_report::schema::{SeriesKey, SeriesResult};
use rbench_report::{PhaseResult, RunResult, View, finish, series, text};
use serde_json::json;

use crate::fixtures::{DETAILS, Made, fail, meta_phases, meta_spec, no_space, run};
use crate::residency::everything;
use crate::{compare, compare_series, knee, nn};

/// Maximum length of a generated word: two of them, joined as in a label, fit into the narrowest
/// report after the words that precede them.
const WORD_MAX: usize = 30;

/// Names of any length with spaces and any letters.
fn name() -> impl Strategy<Value = String> {
    let word = proptest::string::string_regex("[a-zA-Z0-9/_.:äß|<>-]{1,30}").expect("a pattern");
    prop::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

/// A run with every section and these names.
fn made(names: &[String], iterations: u32) -> RunResult {
    let name = |i: usize| names[i % names.len()].clone();
    let mut phases = Vec::new();
    for iteration in 0..iterations {
        let all = meta_phases(3, 2).into_iter().enumerate();
        phases.extend(all.map(|(i, mut phase)| {
            phase.iteration = iteration;
            if i == 2 {
                phase.residency = Some(everything());
                phase.response = Some(phase.service.clone());
                fail(&mut phase, 3, 1, no_space(OpKind::Write, &name(4)));
            }
            phase
        }));
    }
    let mut result = run(3, 2, meta_spec(), phases);
    for (i, host) in result.world.hosts.iter_mut().enumerate() {
        (host.name, host.kernel) = (name(i), name(i + 1));
    }
    for (i, phase) in result.phases.iter_mut().enumerate() {
        let nth = i % 12;
        phase.label = name(nth);
        for (k, host) in phase.hosts.iter_mut().enumerate() {
            host.host = name(k);
            // A host that deviates from the median.
            host.elapsed_s *= if k == 1 { 3.0 } else { 1.0 };
        }
        for rank in &mut phase.ranks {
            rank.host = name(rank.rank.0 as usize);
        }
    }
    result.run.command = names.to_vec();
    result.run.labels.insert(name(0), name(1));
    result.target.path = name(2);
    result.target.embedded = true;
    result.spec.insert(name(3), json!(name(4)));
    finish(&mut result);
    result
}

/// A series of this kind with these names for keys, values and rows.
fn series_of(kind: &str, names: &[String]) -> SeriesResult {
    let name = |i: usize| names[i % names.len()].clone();
    let mut all = match kind {
        "knee" => knee::found_one(),
        _ => nn::ladder(),
    };
    all.kind = kind.to_owned();
    all.run.command = names.to_vec();
    all.hosts = names.to_vec();
    if kind == "sweep" {
        let values: Vec<String> = (0..8).map(|i| format!("{i} {}", name(i))).collect();
        for (i, cell) in all.cells.iter_mut().enumerate() {
            cell.values[0].value.clone_from(&values[i]);
        }
        all.keys = vec![SeriesKey {
            name: "workers".to_owned(),
            values,
        }];
    }
    for (i, cell) in all.cells.iter_mut().enumerate() {
        cell.name = name(i);
        cell.error = Some(name(i + 1));
        let phases = cell.result.iter_mut().flat_map(|result| &mut result.phases);
        phases
            .enumerate()
            .for_each(|(k, phase)| phase.label = name(k));
    }
    all
}

/// Checks that no line of `text` is wider than `view`.
fn check_width(text: &str, view: View) -> Result<(), TestCaseError> {
    for line in text.lines() {
        let width = line.chars().count();
        prop_assert!(
            width <= view.width(),
            "{} columns of {}: {}",
            width,
            view.width(),
            line
        );
    }
    Ok(())
}

/// Counts each letter and digit of `text`; spaces and lines under titles depend on the layout.
fn letters(text: &str) -> BTreeMap<char, usize> {
    let mut counts = BTreeMap::new();
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '-') {
        *counts.entry(c).or_default() += 1;
    }
    counts
}

/// Checks that `narrow` contains all of `wide`.
fn check_nothing_lost(wide: &str, narrow: &str) -> Result<(), TestCaseError> {
    let counts = letters(narrow);
    for (letter, count) in letters(wide) {
        let left = counts.get(&letter).copied().unwrap_or(0);
        prop_assert!(
            left >= count,
            "{} of {} {:?} are left:\n{}",
            left,
            count,
            letter,
            narrow
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn no_line_of_a_run_is_wider_and_details_lose_nothing(
        names in prop::collection::vec(name(), 1..8),
        width in 80_usize..200,
        iterations in 1_u32..4,
    ) {
        let result = made(&names, iterations);
        let usual = View::USUAL.wide(width);
        check_width(&text::render(&result, usual), usual)?;
        let details = DETAILS.wide(width);
        let narrow = text::render(&result, details);
        check_width(&narrow, details)?;
        check_nothing_lost(&text::render(&result, DETAILS.wide(100_000)), &narrow)?;
    }

    #[test]
    fn no_line_of_a_series_or_a_comparison_is_wider(
        names in prop::collection::vec(name(), 1..8),
        width in 80_usize..200,
    ) {
        let view = View::USUAL.wide(width);
        for kind in ["knee", "nn", "sweep", "quick"] {
            let all = series_of(kind, &names);
            let narrow = series::render(&all, view);
            check_width(&narrow, view)?;
            check_nothing_lost(&series::render(&all, view.wide(100_000)), &narrow)?;
        }
        for mut comparison in [compare::slower(), compare_series::one_slower()] {
            for (row, name) in comparison.rows.iter_mut().zip(names.iter().cycle()) {
                row.label.clone_from(name);
                row.cell = row.cell.take().map(|_| name.clone());
            }
            comparison.notes.extend(names.iter().cloned());
            check_width(&(FORMATS[0].render)(&comparison, view), view)?;
        }
    }
}

#[test]
fn a_word_that_is_wider_than_the_report_stands_alone_and_a_cell_is_broken() {
    let long = "x".repeat(3 * WORD_MAX);
    let mut result = made(&["short".to_owned()], 1);
    result.target.path.clone_from(&long);
    result.phases[0].label.clone_from(&long);
    let view = DETAILS.wide(80);
    let text = text::render(&result, view);
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
    // The table's cell is split, the path is not: users may copy it.
    assert!(wide.iter().all(|line| line.contains(&long)), "{wide:?}");
    assert!(wide.iter().any(|line| line.starts_with("Target")), "{text}");
}

#[test]
fn without_details_hosts_and_ranks_are_shown_only_if_they_are_off() {
    let even = run(3, 2, meta_spec(), meta_phases(3, 2));
    let mut uneven = even.clone();
    let slow: &mut PhaseResult = &mut uneven.phases[1];
    slow.hosts[2].elapsed_s *= 4.0;
    let of = |result: &RunResult| text::render(result, View::USUAL);
    assert!(!of(&even).contains("BY HOST"));
    let shown = of(&uneven);
    let table = shown.split("BY HOST").nth(1).expect("a table");
    let table = table.split("\n\n").next().expect("its rows");
    assert!(
        table.contains("client3") && !table.contains("client1"),
        "{table}"
    );
    assert!(text::render(&even, DETAILS).contains("client1"));
}

#[test]
fn iterations_are_totals_and_each_only_in_details() {
    let mut phases = Vec::new();
    for iteration in 0..3 {
        let mut phase = Made::solo(1000, 0, 100_000).phase("a", "A", OpKind::Stat);
        phase.iteration = iteration;
        phases.push(phase);
    }
    let result = run(1, 1, json!({ "iterations": 3 }), phases);
    let usual = text::render(&result, View::USUAL);
    assert!(!usual.contains("Iteration 1 of 3") && usual.contains("All iterations"));
    // Items of all three operations.
    assert!(
        usual
            .lines()
            .any(|line| line.starts_with("A ") && line.contains("3,000")),
        "{usual}"
    );
    let end = usual.find("SUMMARY").expect("it is there");
    assert!(usual[end..].contains("The run is complete"));
    assert!(text::render(&result, DETAILS).contains("Iteration 1 of 3"));
}
