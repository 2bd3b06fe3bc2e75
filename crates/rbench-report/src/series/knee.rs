//! The table of `rbench knee`: response times by rate, and the highest rate at which the objective
//! holds.

use rbench_core::units::{human_count, human_nanos, human_rate};

use crate::figures::caches::{Memory, memory};
use crate::schema::{KneeObjective, KneeResult, KneeRow, KneeStep, PhaseResult, SeriesResult};
use crate::table::{Column, Table, left, or_none, right, sections, sentence, wrapped};
use crate::view::View;
use crate::warnings::{Limit, all_workers, limit, of_the_tool};

pub fn render(series: &SeriesResult, view: View) -> String {
    let Some(knee) = &series.knee else {
        return String::new();
    };
    sections([
        objective(knee, view),
        curve(knee, view),
        sentence(view, "", &conclusion(series, knee)),
    ])
}

/// The objective on one line.
fn objective(knee: &KneeResult, view: View) -> String {
    wrapped(view, "Objective  ", &parts(&knee.objective), ", ")
}

/// The conditions of the objective, as clauses.
pub(crate) fn parts(objective: &KneeObjective) -> Vec<String> {
    let KneeObjective {
        limits,
        errors,
        row,
    } = objective;
    let mut parts: Vec<String> = limits
        .iter()
        .map(|limit| format!("{} <= {}", limit.figure, human_nanos(limit.most_ns as f64)))
        .collect();
    parts.push(match *errors > 0.0 {
        true => format!("at most {}% failed", errors * 100.0),
        false => "none failed".to_owned(),
    });
    parts.push("at most 1% not started".to_owned());
    parts.push(match row {
        Some(row) => format!("of {row}"),
        None => "of every row".to_owned(),
    });
    parts
}

/// The steps of a search as text: a line for each row of each step.
pub(crate) struct Steps {
    /// Names of the response time's figures, in column order.
    pub figures: Vec<String>,
    /// Cell, stage, target rate, achieved rate, time, operation (empty if all are the same), the
    /// figures, errors, not started, objective; and true if the objective held.
    pub lines: Vec<(Vec<String>, Option<bool>)>,
}

/// Sorted by rate, without a rate first; equal rates in the order of execution.
pub(crate) fn by_rate(knee: &KneeResult) -> Vec<&KneeStep> {
    let mut steps: Vec<&KneeStep> = knee.steps.iter().collect();
    steps.sort_by(|a, b| {
        let rate = |step: &KneeStep| step.rate.unwrap_or(0.0);
        rate(a).total_cmp(&rate(b)).then(a.cell.cmp(&b.cell))
    });
    steps
}

pub(crate) fn steps(knee: &KneeResult) -> Steps {
    let rows = || knee.steps.iter().flat_map(|step| &step.rows);
    let most = rows().max_by_key(|row| row.figures.len());
    let figures = most.iter().flat_map(|row| &row.figures);
    let figures: Vec<String> = figures.map(|figure| figure.name.clone()).collect();
    let several = rows().any(|row| rows().any(|other| other.name != row.name));
    let mut lines = Vec::new();
    for step in by_rate(knee) {
        for (nth, row) in step.rows.iter().enumerate() {
            lines.push((cells(step, (nth, row), several, &figures), step.held));
        }
    }
    Steps { figures, lines }
}

fn curve(knee: &KneeResult, view: View) -> String {
    let Steps { figures, lines } = steps(knee);
    let mut columns: Vec<Column> = vec![
        right("Cell"),
        left("Stage"),
        right("target").under("Operations a second"),
        right("done").under("Operations a second"),
        right("Time"),
        left("Operation").optional(),
    ];
    let title = |name: String| right(name).under("Response time");
    columns.extend(figures.into_iter().map(title));
    columns.extend([right("Errors"), right("Not started"), left("Objective")]);
    let mut table = Table::new(columns);
    for (cells, _) in lines {
        table.row(cells);
    }
    if table.is_empty() {
        return String::new();
    }
    let mut text =
        "Rows are sorted by rate; cells are numbered in the order of execution.".to_owned();
    if knee.arrival == "poisson" {
        text.push_str(
            " Starts are drawn at random, so the number of operations varies around the target even if all of \
             them were done.",
        );
    }
    text.extend(disagreement(knee));
    table.render(view) + &sentence(view, "", &text)
}

/// A sentence if some steps of a rate held and others did not.
pub(crate) fn disagreement(knee: &KneeResult) -> Option<&'static str> {
    let held = |wanted| {
        knee.steps
            .iter()
            .filter(move |step| step.held == Some(wanted))
    };
    let both = held(true).any(|step| held(false).any(|other| other.rate == step.rate));
    both.then_some(
        " Steps of the same rate disagree: in the search one success is enough, because a machine may pause for a \
         moment; confirm, with its longer time, decides.",
    )
}

fn cells(
    step: &KneeStep,
    (nth, row): (usize, &KneeRow),
    several: bool,
    figures: &[String],
) -> Vec<String> {
    let first = |text: String| if nth == 0 { text } else { String::new() };
    let mut cells = vec![
        first((u64::from(step.cell) + 1).to_string()),
        first(step.stage.clone()),
        first(or_none(step.rate.map(exact))),
        human_rate(row.rate),
        first(format!("{:.1} s", step.window_s)),
        if several {
            row.label.clone()
        } else {
            String::new()
        },
    ];
    let value = |name: &String| or_none(row.figure(name).map(human_nanos));
    cells.extend(figures.iter().map(value));
    cells.push(human_count(row.errors));
    cells.push(human_count(row.unissued));
    cells.push(first(match step.held {
        Some(true) => "held".to_owned(),
        Some(false) => format!("failed: {}", step.reasons.join(", ")),
        None => String::new(),
    }));
    cells
}

/// A rate with all its digits.
pub(crate) fn exact(rate: f64) -> String {
    match rate.fract() == 0.0 && rate < 1e18 {
        true => human_count(rate as u64),
        false => rate.to_string(),
    }
}

/// The rate that was found, its uncertainty, and whose limit it is.
pub(crate) fn conclusion(series: &SeriesResult, knee: &KneeResult) -> String {
    let mut text = found(knee);
    let (labels, all) = from_memory(series, knee);
    let memory = knee.held.is_some() && !labels.is_empty();
    if memory {
        text.push_str(&format!(
            " This host's memory answered {}{}.",
            labels.join(", "),
            match all {
                true => ": this is the limit of memory, not of the mount",
                false => ", wholly or in part",
            }
        ));
    }
    let at = exact(knee.failed.unwrap_or_default());
    match limit_at(series, knee) {
        Some(Limit::Tool(outside)) => {
            text.push_str(&format!(" At {at}, {}.", of_the_tool(outside)));
        }
        Some(Limit::Workers(count)) => text.push_str(&format!(
            " At {at}, {} busy all the time: the limit may be that of the workers. If more threads or depth do not \
             raise it, it is that of the file system.",
            all_workers(count)
        )),
        Some(Limit::Target) if !memory => text.push_str(&format!(
            " At {at}, the workers were not busy all the time, but operations may have waited for a free one. If more \
             threads or depth do not raise the limit, it is that of the file system."
        )),
        Some(Limit::Target) | None => {}
    }
    text
}

/// What limited the judged rows at the rate that failed: rbench or its workers, if that is so in any
/// row.
fn limit_at(series: &SeriesResult, knee: &KneeResult) -> Option<Limit> {
    let failed = |step: &&KneeStep| step.rate == knee.failed && step.held == Some(false);
    let step = knee.steps.iter().rfind(failed)?;
    // Errors, and a mix that found no files to work on, have shown no limit.
    let shows_none = |reason: &String| matches!(reason.as_str(), "missed" | "errors");
    if step.reasons.iter().all(shows_none) {
        return None;
    }
    let mut limits = judged(series, step).map(|phase| limit(phase.workers.as_ref()));
    let first = limits.next()??;
    limits.try_fold(first, |found, limit| match (found, limit?) {
        (Limit::Target, other) => Some(other),
        (found, _) => Some(found),
    })
}

/// The judged rows of a step.
fn judged<'s>(series: &'s SeriesResult, step: &KneeStep) -> impl Iterator<Item = &'s PhaseResult> {
    let cell = series.cells.iter().find(|cell| cell.index == step.cell);
    let phases = cell.and_then(|cell| cell.result.as_ref());
    let phases = phases.into_iter().flat_map(|result| &result.phases);
    phases.filter(|phase| step.rows.iter().any(|row| row.name == phase.name))
}

/// Labels of the judged rows that memory answered, wholly or in part, at the rate that held; true
/// if it answered all rows wholly.
fn from_memory(series: &SeriesResult, knee: &KneeResult) -> (Vec<String>, bool) {
    let at_limit = |step: &&KneeStep| step.rate == knee.held && step.held == Some(true);
    let Some(step) = knee.steps.iter().rfind(at_limit) else {
        return (Vec::new(), false);
    };
    let (mut labels, mut all) = (Vec::new(), true);
    for phase in judged(series, step) {
        all &= memory(phase) == Memory::All;
        if memory(phase) != Memory::None {
            labels.push(phase.label.clone());
        }
    }
    (labels, all)
}

/// The rate that was found, and its uncertainty.
fn found(knee: &KneeResult) -> String {
    let mut text = match (knee.held, knee.failed) {
        (Some(held), _) => format!("The objective held at {} operations a second", exact(held)),
        (None, Some(_)) => "The objective held at none of the tried rates".to_owned(),
        (None, None) => "Stopped before any rate was judged".to_owned(),
    };
    let window = |stage: &str| {
        let mut steps = knee.steps.iter();
        steps.find(|step| step.stage == stage && step.rate == knee.held && step.held == Some(true))
    };
    if let Some(step) = window("confirm") {
        text.push_str(&format!(" for {:.1} s (confirmed)", step.window_s));
    } else if let Some(step) = window("search") {
        text.push_str(&format!(
            " for {:.1} s (not confirmed by a longer window)",
            step.window_s
        ));
    }
    match (knee.held, knee.failed) {
        (Some(held), Some(failed)) => text.push_str(&format!(
            ", and did not at {}: the limit lies between, {:.1}% apart.",
            exact(failed),
            (failed / held - 1.0) * 100.0
        )),
        (None, Some(failed)) => {
            text.push_str(&format!(": the lowest was {}.", exact(failed)));
        }
        (Some(_), None) => text.push_str("; no higher rate failed: the limit lies above."),
        (None, None) => text.push('.'),
    }
    if let Some(trouble) = &knee.trouble {
        text.push_str(&format!(" The search ended: {trouble}."));
    }
    text
}
