//! Tests reading of journals and results, complete or torn, and the messages about other files.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use rbench_core::Nanos;
use rbench_core::timeline::{IntervalPart, TimelineRecorder};
use rbench_report::intervals::{IntervalLine, IntervalOf};
use rbench_report::journal::{ReadError, header_line, interval_line, phase_line, read, read_any};
use rbench_report::schema::Warning;
use rbench_report::{RunResult, json};

use crate::fixtures::{meta_phases, meta_spec, run};

fn sample() -> RunResult {
    let phases = meta_phases(2, 2).into_iter().take(3).collect();
    let mut result = run(2, 2, meta_spec(), phases);
    // A warning from before the first phase.
    result.warnings.insert(
        0,
        Warning {
            code: "clock-offset".to_owned(),
            message: "The clocks could not be compared.".to_owned(),
        },
    );
    result
}

/// The journal of a run with these phases.
fn journal(result: &RunResult) -> String {
    let mut text = header_line(result);
    result
        .phases
        .iter()
        .for_each(|p| text.push_str(&phase_line(p)));
    text
}

/// The result as read from a journal.
fn unfinished(mut result: RunResult) -> RunResult {
    result.complete = false;
    rbench_report::finish(&mut result);
    result
}

#[test]
fn a_whole_journal_gives_back_the_run_as_incomplete() {
    let result = sample();
    let text = journal(&result);
    assert_eq!(text.lines().count(), 4);
    assert_eq!(read(text.as_bytes()), Ok(unfinished(result.clone())));
    assert_eq!(read_any(text.as_bytes()), Ok(unfinished(result)));
}

/// Interval lines of a row with ten operations per second, in two parts each.
fn intervals(name: &str, seconds: u64) -> String {
    let of = IntervalOf {
        iteration: 0,
        name,
        label: "Random read",
        op: "read",
        open_loop: true,
        interval: Nanos(1_000_000_000),
    };
    let parts: Rc<RefCell<Vec<IntervalPart>>> = Rc::default();
    let mut text = String::new();
    for worker in 0..2 {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&taken);
        let mut recorder = TimelineRecorder::new(of.interval, true);
        recorder.hand_over_to(Box::new(move |part| {
            into.lock().expect("nobody panics").push(part);
        }));
        for i in 0..seconds * 5 {
            let at = Nanos(i * 200_000_000 + worker * 1000 + 7);
            recorder.done(at, 4096, Nanos(1_000_000 + i), Some(Nanos(2_000_000)));
        }
        recorder.finish();
        let taken = std::mem::take(&mut *taken.lock().expect("nobody panics"));
        parts.borrow_mut().extend(taken);
    }
    for part in parts.borrow().iter() {
        text.push_str(&interval_line(&IntervalLine::of(of, part)));
    }
    text
}

#[test]
fn intervals_are_written_in_plain_numbers() {
    let text = intervals("randread", 1);
    // Buckets of 16 ns below 2048 ns, and from there 64 for each power of two.
    let microseconds_1000 = r#""service":{"sum_ns":5000010,"max_ns":1000004,"counts":[[698,5]]}"#;
    let microseconds_2000 = r#""response":{"sum_ns":10000000,"max_ns":2000000,"counts":[[762,5]]}"#;
    assert!(text.contains(microseconds_1000), "{text}");
    assert!(text.contains(microseconds_2000), "{text}");
}

#[test]
fn of_a_phase_that_did_not_end_the_intervals_are_shown() {
    let result = sample();
    let text = journal(&result) + &intervals("randread", 19);
    let read = read(text.as_bytes()).expect("a journal");
    assert_eq!(read.phases.len(), 4);
    let phase = &read.phases[3];
    assert_eq!(
        (phase.name.as_str(), phase.op.as_str()),
        ("randread", "read")
    );
    assert_eq!((phase.items, phase.bytes), (190, 190 * 4096));
    assert!(!phase.complete && phase.hosts.is_empty() && phase.ranks.is_empty());
    assert_eq!(phase.timeline_step_s, 1.0);
    let seconds: Vec<(f64, u64)> = phase.timeline.iter().map(|r| (r.t_s, r.items)).collect();
    let expect: Vec<(f64, u64)> = (0..19).map(|s| (f64::from(s), 10)).collect();
    assert_eq!(seconds, expect);
    assert_eq!(phase.latency.service.count, 190);
    assert_eq!(phase.latency.service.max_ns, 1_000_094);
    let response = phase.latency.response.as_ref().expect("an open loop");
    assert_eq!((response.count, response.max_ns), (190, 2_000_000));
    let exact = 1_000_000 + 47;
    assert!((exact..exact + exact / 64).contains(&phase.latency.service.p50_ns));
    let codes: Vec<&str> = read.warnings.iter().map(|w| w.code.as_str()).collect();
    assert!(codes.contains(&"unfinished-phase"), "{codes:?}");
}

#[test]
fn the_row_of_a_phase_takes_the_place_of_its_intervals() {
    let result = sample();
    let name = &result.phases[2].name;
    let whole = journal(&result);
    let (before, last) = whole[..whole.len() - 1].rsplit_once('\n').expect("lines");
    let text = format!("{before}\n{}{last}\n", intervals(name, 3));
    assert_eq!(read(text.as_bytes()), Ok(unfinished(result)));
}

#[test]
fn a_journal_torn_at_any_byte_gives_all_whole_phases() {
    let result = sample();
    let text = journal(&result);
    let header = header_line(&result).len();
    for end in (1..=text.len()).filter(|e| e % 211 == 0 || text.len() - e < 3) {
        let torn = &text.as_bytes()[..end];
        if end < header - 1 {
            assert_eq!(read(torn), Err(ReadError::TornHeader), "{end}");
            continue;
        }
        // A line that lacks only its newline is complete.
        let whole = torn.split(|b| *b == b'\n').skip(1);
        let is_whole = |line: &&[u8]| serde_json::from_slice::<serde_json::Value>(line).is_ok();
        let n = whole.filter(is_whole).count();
        let mut expect = result.clone();
        expect.phases.truncate(n);
        assert_eq!(read_any(torn), Ok(unfinished(expect)), "{end}");
    }
}

#[test]
fn a_last_line_of_zeros_is_left_out() {
    let result = sample();
    let mut bytes = journal(&result).into_bytes();
    bytes.extend([0; 512]);
    assert_eq!(read(&bytes), Ok(unfinished(result)));
}

#[test]
fn what_stands_behind_the_last_newline_and_is_no_phase_is_left_out() {
    let result = sample();
    let text = journal(&result);
    for torn in ["{\"phase\":{\"iteration\":0}}", "\"least\"", "{}x"] {
        let read = read(format!("{text}{torn}").as_bytes());
        assert_eq!(read, Ok(unfinished(result.clone())), "{torn}");
    }
}

#[test]
fn a_broken_line_before_the_last_is_an_error_with_its_number() {
    let mut lines: Vec<String> = journal(&sample()).lines().map(str::to_owned).collect();
    lines[2].truncate(100);
    let message = read(lines.join("\n").as_bytes()).map_err(|e| e.to_string());
    let message = message.expect_err("line 3 is broken");
    assert!(message.starts_with("line 3: "), "{message}");
    assert!(!message.contains('\n'));
}

#[test]
fn a_phase_without_a_field_is_an_error_that_names_it_even_in_the_last_line() {
    let text = journal(&sample()).replace("\"start_skew_s\"", "\"skew\"");
    let message = read(text.as_bytes()).map_err(|e| e.to_string());
    assert_eq!(
        message,
        Err("line 2: missing field `start_skew_s`".to_owned())
    );
}

#[test]
fn lines_of_later_versions_are_passed_over() {
    let result = sample();
    let text = format!("{}{{\"heartbeat\":{{\"at\":1}}}}\n", journal(&result));
    assert_eq!(read(text.as_bytes()), Ok(unfinished(result)));
}

#[test]
fn a_finished_result_is_read_back_equal() {
    let result = sample();
    assert_eq!(read_any(json::render(&result).as_bytes()), Ok(result));
}

#[test]
fn what_is_no_result_is_refused_with_a_sentence() {
    let check = |text: &str, expect: &str| {
        let message = read_any(text.as_bytes()).map_err(|e| e.to_string());
        assert_eq!(message.err().as_deref(), Some(expect), "{text}");
    };
    check("", "the file is empty");
    check("\n \n", "the file is empty");
    check(
        "hello\nworld",
        "not a result file of rbench: it holds no JSON object",
    );
    check(
        "{\"a\": 1}",
        "not a result file of rbench: there is no field \"schema\"",
    );
    check(
        "{\n \"schema\": 7}",
        "line 2: invalid type: integer `7`, expected a string",
    );
    check(
        "{\"schema\": \"rbench.result/2\"}",
        "the schema is 'rbench.result/2', but this version of rbench reads rbench.result/1 and rbench.journal/1",
    );
    check(
        "{\"schema\": \"rbench.result/10\"}",
        "the schema is 'rbench.result/10', but this version of rbench reads rbench.result/1 and rbench.journal/1",
    );
    check(
        "{\"schema\":\"rbench.journal/2\"}\n",
        "the schema is 'rbench.journal/2', but this version of rbench reads rbench.result/1 and rbench.journal/1",
    );
    check(
        "{\"schema\":\"rbench.journal/1\",\"run",
        "line 1: the journal ends within its first line, so there is nothing to show",
    );
    check(
        "{\"schema\": \"rbench.result/1\",\n\"run\": 5}",
        "line 2: invalid type: integer `5`, expected struct Run",
    );
}

#[test]
fn a_result_that_breaks_off_is_an_error_with_its_last_line() {
    let text = json::render(&sample());
    // Cut between two fields, so that only the end is missing.
    let half = text[..text.len() / 2].rfind(", ").expect("many fields");
    let message = read_any(&text.as_bytes()[..half]).map_err(|e| e.to_string());
    let message = message.expect_err("half a file");
    assert!(
        message.starts_with("line ") && message.contains("in the middle of a value"),
        "{message}"
    );
}
