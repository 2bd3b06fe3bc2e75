//! Journals and results are read back, whole or torn, and refused with a
//! sentence when they are something else.

use rbench_report::journal::{ReadError, header_line, phase_line, read, read_any};
use rbench_report::schema::Warning;
use rbench_report::{RunResult, json};

use crate::fixtures::{meta_phases, meta_spec, run};

fn sample() -> RunResult {
    let phases = meta_phases(2, 2).into_iter().take(3).collect();
    let mut result = run(2, 2, meta_spec(), phases);
    // Known before the first phase.
    result.warnings.insert(
        0,
        Warning {
            code: "clock-offset".to_owned(),
            message: "The clocks could not be compared.".to_owned(),
        },
    );
    result
}

/// The journal of a run that came that far.
fn journal(result: &RunResult) -> String {
    let mut text = header_line(result);
    result
        .phases
        .iter()
        .for_each(|p| text.push_str(&phase_line(p)));
    text
}

/// The result as a journal knows it.
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
        // A line that lacks only its newline is whole.
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
    check("hello\nworld", "line 1: expected value");
    check(
        "{\"a\": 1}",
        "not an rbench result: there is no field \"schema\"",
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
    // Between two fields, where nothing but the end is wrong.
    let half = text[..text.len() / 2].rfind(", ").expect("many fields");
    let message = read_any(&text.as_bytes()[..half]).map_err(|e| e.to_string());
    let message = message.expect_err("half a file");
    assert!(
        message.starts_with("line ") && message.contains("EOF"),
        "{message}"
    );
}
