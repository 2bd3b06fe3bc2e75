//! Properties of result files and journals, as read by `rbench show`.

use rbench_core::plain::plain_lines;
use rbench_report::View;
use rbench_report::journal::{self, ReadError};
use rbench_report::{Document, RENDERERS, RunResult, json, page};

use crate::refusal;

/// Tests `input` as a result file or journal. It must be refused, or give a result that can be
/// rendered and that survives a round trip through JSON. A truncated journal must give its complete
/// phases.
pub fn result_file(input: &[u8]) {
    let Some(result) = refusal::of(journal::read_any(input)) else {
        return;
    };
    let document = Document::Run(Box::new(result.clone()));
    for renderer in RENDERERS {
        let rendered = (renderer.render)(std::slice::from_ref(&document), View::default());
        let Some(text) = refusal::of(rendered) else {
            continue;
        };
        assert!(text.ends_with('\n'), "{}", renderer.name);
        assert_eq!(plain_lines(&text), text, "a report steers the terminal");
    }
    let page = page::render(&[document], &[]);
    assert!(page.starts_with(page::BEGINNING) && page.ends_with("</html>\n"));
    let again = journal::read_any(json::render(&result).as_bytes());
    assert_eq!(again.as_ref(), Ok(&result), "rendered and read");
    for phase in &result.phases {
        // A refusal is one sentence; decoding has limits.
        refusal::of(phase.latency.service.latency());
    }
    let mut finished = result.clone();
    rbench_report::finish(&mut finished);
    let once = finished.clone();
    rbench_report::finish(&mut finished);
    assert_eq!(finished, once, "finishing twice changes nothing");
    as_a_journal(&result);
    if journal::read(input).is_ok() {
        breaks_off(input, &result);
    }
}

/// Checks that the journal of a running run reads back.
fn as_a_journal(result: &RunResult) {
    let mut text = journal::header_line(result);
    for phase in &result.phases {
        text.push_str(&journal::phase_line(phase));
    }
    let read = journal::read(text.as_bytes()).expect("it was written by us");
    assert_eq!(read.phases, result.phases);
    assert_eq!(read.run, result.run);
}

/// Checks that every prefix of a journal gives the start of its result.
fn breaks_off(input: &[u8], whole: &RunResult) {
    let step = (input.len() / 40).max(1);
    for end in (0..input.len()).rev().step_by(step) {
        match journal::read(&input[..end]) {
            Ok(part) => assert!(whole.phases.starts_with(&part.phases), "cut at {end}"),
            Err(ReadError::TornHeader | ReadError::Empty) => {}
            Err(other) => panic!("cut at {end}: {other}"),
        }
    }
}
