//! The report of a replay: operations in the trace, replayed and left out; lateness; and each kind
//! compared with the recording.

use rbench_core::hist::Hist;
use rbench_core::outcome::ReplayTotals;
use rbench_core::units::{human_bytes, human_count};

use super::{for_phases, iterations, label, seconds, time};
use crate::figures::{Value, quantity};
use crate::schema::{PhaseResult, RunResult};
use crate::table::{Table, left, or_none, right, sentence};
use crate::view::View;

/// The lines, and a table that compares rows with the recording.
pub fn render(result: &RunResult, view: View) -> String {
    let lines = lines(result);
    if lines.is_empty() {
        return String::new();
    }
    let mut text = String::from("REPLAY\n");
    for line in lines {
        text.push_str(&sentence(view, "- ", &line));
    }
    let table = beside(result);
    if !table.is_empty() {
        text.push('\n');
        text.push_str(&table.render(view));
    }
    text
}

/// The facts about each pass, in sentences.
pub(crate) fn lines(result: &RunResult) -> Vec<String> {
    let total = iterations(result);
    let of = |replay: &ReplayTotals| {
        let pass = match total {
            0 | 1 => String::new(),
            _ => format!("Iteration {}: ", replay.iteration.saturating_add(1)),
        };
        let mut lines = vec![format!("{pass}{}", counts(replay))];
        lines.extend(left_out(replay));
        if replay.gaps > 0 {
            lines.push(format!(
                "{} uses of open files without a recorded open: the log lost lines, or the files were opened before \
                 it started.",
                human_count(replay.gaps)
            ));
        }
        lines.push(before(replay));
        lines.extend(late(replay));
        lines
    };
    result.replays.iter().flat_map(of).collect()
}

fn counts(replay: &ReplayTotals) -> String {
    let forms: Vec<&str> = replay.traces.iter().map(|t| t.format.as_str()).collect();
    let mut names = forms.clone();
    names.dedup();
    let copies = match replay.copies {
        1 => String::new(),
        copies => format!(" in each of {copies} copies"),
    };
    format!(
        "{} operations in {} ({}), {} to replay{copies}, {} done; {} in {} (sharing open files), over {}.",
        human_count(replay.found),
        match forms.len() {
            1 => "the trace".to_owned(),
            many => format!("{many} traces"),
        },
        names.join(", "),
        human_count(replay.wanted),
        human_count(replay.done),
        number(replay.processes, "process", "processes"),
        number(replay.groups, "group", "groups"),
        seconds(replay.span.as_secs_f64()),
    )
}

fn number(count: u64, one: &str, several: &str) -> String {
    format!(
        "{} {}",
        human_count(count),
        if count == 1 { one } else { several }
    )
}

fn left_out(replay: &ReplayTotals) -> Option<String> {
    let all: u64 = replay.left_out.iter().map(|left| left.operations).sum();
    let reasons = replay.left_out.iter();
    let reasons: Vec<String> = reasons
        .map(|left| format!("{} {}", human_count(left.operations), left.why))
        .collect();
    (all > 0).then(|| format!("Left out {}: {}.", human_count(all), reasons.join("; ")))
}

fn before(replay: &ReplayTotals) -> String {
    match replay.prepared {
        0 => "No files existed before the trace.".to_owned(),
        some => format!(
            "{} files, directories and links existed before the trace, with {} of data: created beforehand, untimed.",
            human_count(some),
            human_bytes(replay.prepared_bytes)
        ),
    }
}

fn late(replay: &ReplayTotals) -> Option<String> {
    let late = replay.late.as_ref()?;
    Some(format!(
        "{:.2}% of the operations started within 1 ms of their recorded time, the latest {} after it.",
        100.0 * late.within_1ms,
        seconds(late.max_s)
    ))
}

/// Column titles of the comparison with the recording.
pub(crate) const TITLES: [&str; 9] = [
    "In",
    "Out",
    "Recorded p50",
    "Now p50",
    "Ratio",
    "Recorded p99",
    "Now p99",
    "Differ",
    "Not open",
];

/// The cells of the comparison with the recording; `None` if the phase is not a replay.
pub(crate) fn cells(phase: &PhaseResult) -> Option<[String; 9]> {
    let replayed = phase.replayed.as_ref()?;
    let now = &phase.latency.service;
    let failed: u64 = phase.errors.values().sum();
    let recorded = replayed.recorded.as_ref();
    let then = |of| or_none(recorded.map(|hist| time(hist, of)));
    let median = |hist: &Hist| Value::Times(hist).number(quantity("p50"));
    // Ratio of the medians: now to recorded.
    let before = recorded.and_then(median).filter(|ns| *ns > 0.0);
    let ratio = median(now).zip(before).map(|(now, then)| now / then);
    Some([
        human_count(replayed.wanted),
        human_count(phase.items + failed),
        then("p50"),
        time(now, "p50"),
        or_none(ratio.map(|ratio| format!("{ratio:.2}"))),
        then("p99"),
        time(now, "p99"),
        human_count(replayed.differ.total()),
        human_count(replayed.unopened),
    ])
}

fn beside(result: &RunResult) -> Table {
    let columns = TITLES.map(|title| match title.ends_with("p99") {
        true => right(title).minor(1),
        false => right(title),
    });
    let mut table = Table::new([left("BESIDE THE TRACE")].into_iter().chain(columns));
    for_phases(result, &mut table, |phase, table| {
        if let Some(cells) = cells(phase) {
            table.row([label(phase)].into_iter().chain(cells));
        }
    });
    table
}
