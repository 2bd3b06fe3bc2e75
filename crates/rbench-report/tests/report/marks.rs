//! Tests the cost of marks with known timelines.

use rbench_core::outcome::{PhaseOutcome, RankGap};
use rbench_core::timeline::{Gap, INTERVAL, TimelineRecorder};
use rbench_core::{Latency, Nanos, OpKind, Rank};
use rbench_report::journal::{header_line, mark_line, phase_line, read};
use rbench_report::schema::{MarkCommand, MarkCost, MarkResult, PhaseMark, StandstillResult};
use rbench_report::{Document, PhaseResult, RENDERERS, RunResult, View, csv, page, text};

use crate::fixtures::{Made, empty_run};
use crate::valid;

const MS: u64 = 1_000_000;

/// Operations that end every `every` ms from `from` to `to` s, and their duration in ms: (from, to,
/// every, duration).
type Stretch = (f64, f64, u64, u64);

/// A row with operations in these stretches.
fn outcome(stretches: &[Stretch]) -> PhaseOutcome {
    let mut outcome = Made::on(1, 4, 0, 0, 1).phase("file-stat", "File stat", OpKind::Stat);
    let mut line = TimelineRecorder::new(INTERVAL, false);
    for (from, to, every, took) in stretches {
        let (mut at, to) = ((from * 1e9) as u64, (to * 1e9) as u64);
        while at < to {
            line.done(Nanos(at), 0, Nanos(took * MS), None);
            outcome.items += 1;
            at += every * MS;
        }
        outcome.elapsed = Nanos(to);
    }
    outcome.timeline = line.finish();
    outcome
}

fn mark(name: &str, s: f64) -> PhaseMark {
    PhaseMark {
        name: name.to_owned(),
        at: Nanos((s * 1e9) as u64),
    }
}

fn costs(outcome: &PhaseOutcome, marks: &[PhaseMark]) -> Vec<MarkCost> {
    PhaseResult::with_marks(outcome, marks).marks
}

/// 2 ms each until 10 s, then nothing until 13 s, 20 ms each for 2 s, and 2 ms each until 20 s.
const FAILOVER: [Stretch; 3] = [(0.0, 10.0, 4, 2), (13.0, 15.0, 4, 20), (15.0, 20.0, 4, 2)];

fn near(found: f64, expect: f64, by: f64) -> bool {
    (found - expect).abs() <= by
}

#[test]
fn a_failover_has_a_standstill_and_an_end() {
    let costs = costs(&outcome(&FAILOVER), &[mark("failover", 10.2)]);
    let [cost] = costs.as_slice() else {
        panic!("{costs:?}");
    };
    assert_eq!((cost.name.as_str(), cost.t_s), ("failover", 10.2));
    assert_eq!((cost.interval_s, cost.intervals_before), (1.0, 10));
    assert_eq!(cost.intervals_after, 10);
    let p99 = cost.p99_before_ns.expect("it is known");
    assert!(near(p99 as f64, 2e6, 2e6 / 60.0), "{p99}");
    let still = cost.standstill.expect("there is one");
    assert!(near(still.length_s, 13.0 - 9.996, 1e-9));
    assert_eq!(still.from_s, 9.996);
    let recovered = cost.recovered_s.expect("within the phase");
    assert!(near(recovered, 15.0 - 10.2, 1e-6), "{recovered}");
}

#[test]
fn what_does_not_come_back_has_no_end() {
    let check = |stretches: &[Stretch], at: f64, recovered: Option<f64>, before: bool| {
        let costs = costs(&outcome(stretches), &[mark("m", at)]);
        let recovered_s = costs[0].recovered_s;
        let same = match (recovered_s, recovered) {
            (Some(recovered_s), Some(expect)) => near(recovered_s, expect, 1e-6),
            (recovered_s, expect) => recovered_s == expect,
        };
        assert!(same, "{stretches:?}: {recovered_s:?}, not {recovered:?}");
        assert_eq!(costs[0].p99_before_ns.is_some(), before, "{stretches:?}");
    };
    // It never left the normal state.
    check(&[(0.0, 10.0, 4, 2)], 5.5, Some(0.0), true);
    // 9 % more counts as normal, 12 % do not.
    check(
        &[(0.0, 6.0, 4, 100), (6.0, 12.0, 4, 109)],
        6.0,
        Some(0.0),
        true,
    );
    check(&[(0.0, 6.0, 4, 100), (6.0, 12.0, 4, 112)], 6.0, None, true);
    // Two normal intervals are too few.
    check(&[(0.0, 6.0, 4, 2), (8.0, 10.0, 4, 2)], 6.0, None, true);
    check(&[(0.0, 6.0, 4, 2), (8.0, 11.0, 4, 2)], 6.0, Some(2.0), true);
    // A command may run for a while before it has an effect.
    check(
        &[(0.0, 10.0, 4, 2), (14.0, 20.0, 4, 2)],
        5.0,
        Some(9.0),
        true,
    );
    // One slow interval between normal ones.
    let slow = [(0.0, 6.0, 4, 2), (6.0, 7.0, 4, 20), (7.0, 12.0, 4, 2)];
    check(&slow, 5.5, Some(1.5), true);
    // Fewer than three intervals before the mark do not define the normal state.
    check(&FAILOVER, 2.9, None, false);
    check(&FAILOVER, 3.0, Some(12.0), true);
}

#[test]
fn each_of_several_marks_has_what_lies_behind_it() {
    let mut outcome = outcome(&FAILOVER);
    outcome.longest_gap = Some(RankGap {
        rank: Rank(3),
        host: "client1".to_owned(),
        gap: Gap {
            length: Nanos(3_100 * MS),
            from: Nanos(9_950 * MS),
        },
    });
    let marks = [
        mark("kill", 10.0),
        mark("start", 12.0),
        mark("later", 17.5),
        mark("end", 20.5),
    ];
    let costs = costs(&outcome, &marks);
    let names: Vec<&str> = costs.iter().map(|cost| cost.name.as_str()).collect();
    assert_eq!(
        names,
        ["kill", "start", "later"],
        "behind the end nothing is lost"
    );
    let recovered: Vec<Option<f64>> = costs.iter().map(|cost| cost.recovered_s).collect();
    // Fewer than three intervals follow the last mark.
    assert_eq!(recovered, [Some(5.0), Some(3.0), Some(0.0)]);
    let gaps: Vec<bool> = costs
        .iter()
        .map(|cost| cost.longest_gap.is_some())
        .collect();
    assert_eq!(gaps, [true, true, false]);
    let still = |cost: &MarkCost| cost.standstill.map(|s: StandstillResult| s.length_s);
    assert_eq!(still(&costs[0]), still(&costs[1]));
    assert!(still(&costs[2]).expect("between operations") < 0.03);
    // All marks are compared with the time before the first.
    assert!(costs.iter().all(|cost| cost.intervals_before == 10));
}

#[test]
fn response_times_count_in_an_open_loop_and_a_ramp_does_not() {
    let mut line = TimelineRecorder::new(INTERVAL, false);
    let mut with_responses = TimelineRecorder::new(INTERVAL, true);
    for i in 0..5000_u64 {
        let (at, waited) = (Nanos(i * 4 * MS), if i < 2500 { 0 } else { 50 * MS });
        line.done(at, 0, Nanos(MS), None);
        with_responses.done(at, 0, Nanos(MS), Some(Nanos(MS + waited)));
    }
    let mut outcome = outcome(&FAILOVER);
    outcome.timeline = line.finish();
    let closed = costs(&outcome, &[mark("m", 10.0)]);
    assert_eq!(closed[0].recovered_s, Some(0.0));
    outcome.timeline = with_responses.finish();
    outcome.response = Some(Latency::new());
    let open = costs(&outcome, &[mark("m", 10.0)]);
    assert_eq!(open[0].recovered_s, None);
    outcome.measured_from = Nanos(7_500 * MS);
    let ramp = costs(&outcome, &[mark("m", 10.0)]);
    assert_eq!((ramp[0].intervals_before, ramp[0].p99_before_ns), (2, None));
}

/// A run with a failover, a signal, and a mark outside all phases.
fn marked() -> RunResult {
    let set = |name: &str, t_s: Option<f64>, command: Option<&str>| MarkResult {
        name: name.to_owned(),
        at: "2025-01-02T03:14:25.200Z".to_owned(),
        iteration: t_s.map(|_| 0),
        rows: t_s.map_or(Vec::new(), |_| vec!["file-stat".to_owned()]),
        t_s,
        command: command.map(|command| MarkCommand {
            command: command.to_owned(),
            took_s: Some(3.25),
            status: Some(0),
            signal: None,
            said: None,
            cut_off: false,
        }),
    };
    let mut result = empty_run();
    result.marks = vec![
        set("early", None, None),
        set("fail<over>", Some(10.2), Some("ssh mds 'reboot'")),
        set("SIGUSR1 1", Some(18.0), None),
        set("late", Some(20.5), None),
    ];
    let mut outcome = outcome(&FAILOVER);
    outcome.longest_gap = Some(RankGap {
        rank: Rank(3),
        host: "client1".to_owned(),
        gap: Gap {
            length: Nanos(3_100 * MS),
            from: Nanos(9_950 * MS),
        },
    });
    let marks = PhaseMark::of(&result.marks, 0, "file-stat");
    result.phases = vec![PhaseResult::with_marks(&outcome, &marks)];
    rbench_report::finish(&mut result);
    valid::check(&rbench_report::json::render(&result));
    result
}

#[test]
fn a_line_says_what_each_mark_cost() {
    let text = text::render(&marked(), View::default().wide(400));
    let lines: Vec<&str> = text.lines().skip_while(|line| *line != "MARKS").collect();
    assert_eq!(
        lines[1..5],
        [
            "- early (mark at 2025-01-02T03:14:25.200Z): no phase was running.",
            "- fail<over> (mark at 10.2 s of File stat): nothing finished for 3.10 s (client1, rank 3, stat) and for 3.00 s on any \
             rank, 15% of slices empty, p99 back within 10% of 2.00 ms after 4.80 s.",
            "- SIGUSR1 1 (mark at 18.0 s of File stat): nothing finished for 4.00 ms on any rank, 15% of slices empty, p99 after \
             it is not known (2 intervals of 1.00 s).",
            "- late (mark at 20.5 s of File stat): no operation finished after it.",
        ],
    );
}

#[test]
fn a_phase_that_left_nothing_behind_is_named() {
    let mut result = marked();
    result.phases.clear();
    let text = text::render(&result, View::default().wide(400));
    let line = "- fail<over> (mark at 10.2 s of file-stat): there is no data about the phase.";
    assert!(text.lines().any(|found| found == line), "{text}");
}

#[test]
fn the_journal_keeps_marks_and_the_last_that_is_known_of_them() {
    let result = marked();
    let mut running = result.marks[1].clone();
    let command = running.command.as_mut().expect("it has one");
    (command.took_s, command.status) = (None, None);
    let mut journal = header_line(&result) + &mark_line(&result.marks[0]) + &mark_line(&running);
    let torn = read(journal.as_bytes()).expect("a journal");
    assert_eq!(torn.marks, [result.marks[0].clone(), running]);
    journal += &mark_line(&result.marks[1]);
    journal += &phase_line(&result.phases[0]);
    let whole = read(journal.as_bytes()).expect("a journal");
    assert_eq!(whole.marks, result.marks[..2]);
    assert_eq!(whole.phases[0].marks, result.phases[0].marks);
}

#[test]
fn other_forms_have_the_marks_too() {
    let result = marked();
    let table = csv::marks(std::slice::from_ref(&result));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    let cells = |line: usize| lines[line].split(',').collect::<Vec<&str>>();
    let cell = |line: usize, name: &str| {
        let at = cells(0).iter().position(|title| *title == name);
        cells(line)[at.expect(name)].to_owned()
    };
    assert_eq!(
        (cell(1, "mark"), cell(1, "name")),
        ("early".into(), "".into())
    );
    assert_eq!(
        (cell(2, "gap_s"), cell(2, "gap_rank")),
        ("3.1".into(), "3".into())
    );
    assert_eq!(
        (cell(2, "command_took_s"), cell(2, "command_status")),
        ("3.25".into(), "0".into())
    );
    assert!(near(
        cell(2, "recovered_s").parse().expect("a number"),
        4.8,
        1e-6
    ));
    assert_eq!(
        (cell(3, "gap_s"), cell(3, "recovered_s")),
        ("".into(), "".into())
    );
    let documents = [Document::Run(Box::new(result))];
    let md = RENDERERS
        .iter()
        .find(|r| r.name == "md")
        .expect("it is there");
    let md = (md.render)(&documents, View::default()).expect("shown");
    assert!(
        md.contains("- fail&lt;over&gt; (mark at 10.2 s of File stat)"),
        "{md}"
    );
}

#[test]
fn the_page_has_a_line_for_each_mark_in_both_charts_over_time() {
    let page = page::render(&[Document::Run(Box::new(marked()))], &[]);
    let [percentiles, rate, latency] = [
        "Latency by percentile",
        "Operations per second over time",
        "Latency over time",
    ]
    .map(|title| {
        let (_, chart) = page
            .split_once(&format!("<figcaption>{title}"))
            .unwrap_or_default();
        chart.split("</svg>").next().unwrap_or_default()
    });
    for chart in [rate, latency] {
        assert_eq!(chart.matches("class=\"post loud\"").count(), 2, "{chart}");
        assert!(
            chart.contains("fail&lt;over&gt;") && chart.contains("SIGUSR1 1"),
            "{chart}"
        );
    }
    assert!(!percentiles.contains("loud"));
    assert!(page.contains("<h4>Marks</h4>") && page.contains("fail&lt;over&gt; (mark at 10.2 s"));
    assert!(!page.contains("fail<over>"));
}
