//! The search of `rbench knee` on the page: charts over the offered load, the steps that held, and
//! the table of steps.

use maud::{Markup, html};
use rbench_core::units::human_nanos;

use super::charts::{Chart, short};
use super::figure;
use super::svg::{Axis, COLOURS, Content, WIDE};
use crate::schema::{KneeResult, KneeRow, KneeStep};
use crate::series::knee::{Steps, by_rate, disagreement, exact, parts, steps};
use crate::table::{distinct, grouped, printable};

pub fn section(knee: &KneeResult) -> Markup {
    html! {
        p.note { "Objective: " (printable(&parts(&knee.objective).join(", "))) "." }
        @for (name, label) in rows(knee) {
            h3 { (printable(label)) }
            @let charts = charts(knee, name);
            @if charts.is_empty() { p.note { "No step with a target rate has finished." } }
            @else {
                div.charts.pair { @for chart in &charts { (figure(chart)) } }
                p.note {
                    span.key.held { "the objective held" } " " span.key.failed { "it did not" }
                    " The line connects the longest step of each rate, or the last of several."
                }
            }
        }
        h3 { "Steps" }
        (table(&steps(knee)))
        @if let Some(text) = disagreement(knee) { p.note { (text) } }
    }
}

/// Names and labels of the judged rows.
fn rows(knee: &KneeResult) -> Vec<(&str, &str)> {
    let rows = knee.steps.iter().flat_map(|step| &step.rows);
    let all = grouped(rows.map(|row| (&*row.name, &*row.label)));
    all.into_iter()
        .map(|(name, labels)| (name, labels[0]))
        .collect()
}

/// A step with a rate, and the row to draw.
struct Point<'k> {
    rate: f64,
    step: &'k KneeStep,
    row: &'k KneeRow,
}

/// The steps by rate; steps without a valid rate are not drawn.
fn points<'k>(knee: &'k KneeResult, name: &str) -> Vec<Point<'k>> {
    let steps = by_rate(knee).into_iter();
    let of = |step: &'k KneeStep| {
        let rate = step.rate.filter(|rate| *rate > 0.0 && rate.is_finite())?;
        let row = step.rows.iter().find(|row| row.name == name)?;
        Some(Point { rate, step, row })
    };
    steps.filter_map(of).collect()
}

/// For each rate the step with the longest window, the last among equals.
fn longest<'p, 'k>(points: &'p [Point<'k>]) -> Vec<&'p Point<'k>> {
    let mut chosen: Vec<&Point> = Vec::new();
    for point in points {
        match chosen.last_mut() {
            Some(last) if last.rate == point.rate => {
                if point.step.window_s >= last.step.window_s {
                    *last = point;
                }
            }
            _ => chosen.push(point),
        }
    }
    chosen
}

/// The figures to draw: first those with a limit, then the median and the 99th percentile; at most
/// as many as there are colours.
fn figures(knee: &KneeResult) -> Vec<&str> {
    let limits = knee.objective.limits.iter();
    let limited = limits.map(|limit| limit.figure.as_str());
    let mut names = distinct(limited.chain(["p99", "p50"]));
    names.truncate(COLOURS);
    names
}

/// Response times and achieved rate over the offered load.
fn charts(knee: &KneeResult, name: &str) -> Vec<Chart> {
    let points = points(knee, name);
    let x = rates(points.iter().map(|point| point.rate));
    let Some(x) = x else {
        return Vec::new();
    };
    [times(knee, &points, &x), done(knee, &points, &x)]
        .into_iter()
        .flatten()
        .collect()
}

/// The axis of rates, and the position of a rate on it.
struct Rates {
    axis: Axis,
    log: bool,
}

impl Rates {
    fn at(&self, rate: f64) -> f64 {
        if self.log { rate.log10() } else { rate }
    }
}

/// The axis of these rates; `None` without a rate.
fn rates(all: impl Iterator<Item = f64> + Clone) -> Option<Rates> {
    let low = all.clone().reduce(f64::min)?;
    let high = all.reduce(f64::max)?;
    let log = high > WIDE * low;
    Some(Rates {
        axis: match log {
            true => Axis::log(low, high, short),
            false => Axis::from_zero(high, short),
        },
        log,
    })
}

/// The rate at which the objective held, with its name.
fn post(knee: &KneeResult, x: &Rates) -> Vec<(f64, String)> {
    let held = knee.held.filter(|rate| *rate > 0.0 && rate.is_finite());
    let sure = if knee.confirmed {
        "confirmed"
    } else {
        "not confirmed"
    };
    let name = |rate: f64| format!("held at {}/s, {sure}", exact(rate));
    held.map(|rate| (x.at(rate), name(rate)))
        .into_iter()
        .collect()
}

fn times(knee: &KneeResult, points: &[Point<'_>], x: &Rates) -> Option<Chart> {
    let shown = figures(knee);
    let ns = |point: &Point<'_>, name: &str| {
        let ns = point.row.figure(name)?;
        (ns.is_finite()).then_some(ns.max(1.0))
    };
    let judged = shown.first()?;
    let line = |(number, name): (usize, &&str)| {
        let points = longest(points).into_iter();
        let points = points.filter_map(|p| Some((x.at(p.rate), ns(p, name)?.log10())));
        (number, points.collect::<Vec<(f64, f64)>>())
    };
    let marks = points.iter().filter_map(|point| {
        let place = (x.at(point.rate), ns(point, judged)?.log10());
        Some((place, point.step.held?))
    });
    let limits: Vec<(usize, f64, String)> = knee
        .objective
        .limits
        .iter()
        .enumerate()
        .map(|(number, limit)| {
            let most = limit.most_ns.max(1) as f64;
            let name = format!("{} at most {}", limit.figure, human_nanos(most));
            (number, most.log10(), printable(&name))
        })
        .take(COLOURS)
        .collect();
    let drawn = || {
        let all = shown
            .iter()
            .flat_map(|name| points.iter().filter_map(|p| ns(p, name)));
        all.chain(limits.iter().map(|(_, log, _)| 10_f64.powf(*log)))
    };
    let low = drawn().reduce(f64::min)?;
    let high = drawn().reduce(f64::max)?;
    // Leaves room for the name of the rate that held.
    let y = Axis::log(low, high * (high / low).powf(0.12), human_nanos);
    let content = Content {
        lines: shown.iter().enumerate().map(line).collect(),
        posts: post(knee, x),
        marks: marks.collect(),
        limits,
        ..Content::default()
    };
    let title = "Response time over offered load";
    let keys = shown.iter().map(|name| (*name).to_owned()).enumerate();
    Some(Chart::new(title, keys, [&x.axis, &y], &content))
}

fn done(knee: &KneeResult, points: &[Point<'_>], x: &Rates) -> Option<Chart> {
    let rate = |point: &Point<'_>| point.row.rate.max(0.0);
    let high = points.iter().map(rate).reduce(f64::max)?;
    let line = longest(points).into_iter();
    let line = line.map(|point| (x.at(point.rate), rate(point)));
    let marks = points.iter().filter_map(|point| {
        let held = point.step.held?;
        Some(((x.at(point.rate), rate(point)), held))
    });
    let content = Content {
        lines: vec![(0, line.collect())],
        posts: post(knee, x),
        marks: marks.collect(),
        ..Content::default()
    };
    let title = "Operations done per second over offered load";
    let axes = [&x.axis, &Axis::from_zero(high * 1.12, short)];
    Some(Chart::new(title, [], axes, &content))
}

fn table(steps: &Steps) -> Markup {
    let Steps { figures, lines } = steps;
    let several = lines.iter().any(|(cells, _)| !cells[5].is_empty());
    let skipped = |i: usize| i == 5 && !several;
    html! { @if lines.is_empty() { p { "No step has finished." } } @else { div.wide { table {
        thead {
            tr {
                th rowspan="2" { "Cell" } th.left rowspan="2" { "Stage" }
                th.group colspan="2" { "Operations a second" }
                th rowspan="2" { "Time" }
                @if several { th.left rowspan="2" { "Operation" } }
                @if !figures.is_empty() { th.group colspan=(figures.len()) { "Response time" } }
                th rowspan="2" { "Errors" } th rowspan="2" { "Not started" }
                th.left rowspan="2" { "Objective" }
            }
            tr { th { "due" } th { "done" } @for name in figures { th { (printable(name)) } } }
        }
        tbody { @for (cells, held) in lines { tr {
            @for (i, cell) in cells.iter().enumerate() { @if !skipped(i) {
                @let last = i + 1 == cells.len();
                td.left[i == 1 || i == 5 || last] .held[last && *held == Some(true)]
                    .failed[last && *held == Some(false)] { (printable(cell)) }
            } }
        } } }
    } } } }
}
