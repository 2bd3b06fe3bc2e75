//! The result of a run as a file and as a report: schema, statistics,
//! warnings, renderers, the journal.
//!
//! Everything here is a pure function of its arguments: no file, terminal,
//! clock or environment. Only the binary writes.

pub mod check;
pub mod compare;
pub mod csv;
mod document;
pub mod figures;
mod finish;
pub mod fio;
pub mod hgrm;
pub mod hlog;
pub mod intervals;
pub mod ior;
pub mod journal;
pub mod json;
pub mod json_schema;
mod listing;
pub mod live;
pub mod markdown;
pub mod mdtest;
pub mod openmetrics;
pub mod ops;
pub mod page;
pub mod probe;
pub mod repetition;
pub mod schema;
pub mod series;
mod stats;
pub mod summary;
mod table;
pub mod text;
mod times;
pub mod view;
pub mod warnings;

use rbench_core::plain::plain_lines;

pub use document::Document;
pub use figures::caches::word as cache_word;
pub use finish::finish;
pub use listing::listing;
use schema::SeriesResult;
pub use schema::{PhaseResult, RunResult};
pub use view::{Colour, View};

/// One way to show results.
#[derive(Debug, Clone, Copy)]
pub struct Renderer {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// Renders the content of some files as text for people in this view; ends with a newline.
    pub render: fn(&[Document], View) -> Result<String, NotShown>,
}

/// The reason why a result cannot be shown in a format: words that follow the name of its file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotShown {
    /// Position of the file.
    pub index: usize,
    /// The reason.
    pub why: String,
}

/// Every renderer; the first is the default.
pub const RENDERERS: &[Renderer] = &[
    renderer("text", |all, view| {
        let of_run = |run: &RunResult| text(run, view);
        whole(all, "\n", of_run, |one| series::render(one, view))
    }),
    renderer("json", |all, _| {
        whole(all, "", json::render, series::render_json)
    }),
    renderer("csv", |all, _| Ok(csv::operations(&runs(all)))),
    renderer("csv-hosts", |all, _| Ok(csv::hosts(&runs(all)))),
    renderer("csv-ranks", |all, _| Ok(csv::ranks(&runs(all)))),
    renderer("csv-intervals", |all, _| Ok(csv::intervals(&runs(all)))),
    renderer("csv-marks", |all, _| Ok(csv::marks(&runs(all)))),
    renderer("md", |all, _| {
        each(all, "\n", |result| Ok(markdown::render(result)))
    }),
    renderer("hgrm", |all, _| {
        each(all, "", |result| {
            hgrm::render(result).map_err(|e| e.to_string())
        })
    }),
    renderer("openmetrics", |all, _| Ok(openmetrics::render(&runs(all)))),
    renderer("mdtest", |all, _| {
        each(all, "\n", |result| {
            mdtest::of(result).ok_or_else(|| made_without("mdtest"))
        })
    }),
    renderer("fio", |all, _| {
        each(all, "", |result| of_fio(result, &["normal"]))
    }),
    renderer("fio-json", |all, _| {
        each(all, "", |result| {
            let printed = result.forms.fio.iter().flat_map(|form| &form.formats);
            let bins = printed.into_iter().any(|name| name == "json+");
            of_fio(result, if bins { &["json+"] } else { &["json"] })
        })
    }),
];

const fn renderer(
    name: &'static str,
    render: fn(&[Document], View) -> Result<String, NotShown>,
) -> Renderer {
    Renderer { name, render }
}

/// All runs, including those of series.
fn runs(all: &[Document]) -> Vec<RunResult> {
    all.iter().flat_map(Document::runs).collect()
}

/// Renders files one after the other, series in a format of their own.
fn whole(
    all: &[Document],
    between: &str,
    of_run: impl Fn(&RunResult) -> String,
    of_series: impl Fn(&SeriesResult) -> String,
) -> Result<String, NotShown> {
    let parts = all.iter().map(|document| match document {
        Document::Run(run) => of_run(run),
        Document::Series(series) => of_series(series),
    });
    Ok(parts.collect::<Vec<String>>().join(between))
}

/// Renders all runs one after the other.
fn each(
    all: &[Document],
    between: &str,
    render: impl Fn(&RunResult) -> Result<String, String>,
) -> Result<String, NotShown> {
    let mut parts = Vec::new();
    for (index, document) in all.iter().enumerate() {
        for run in document.runs() {
            let text = render(&run).map_err(|why| NotShown { index, why })?;
            parts.push(plain_lines(&text).into_owned());
        }
    }
    Ok(parts.join(between))
}

/// The report for people, or the table of `rbench ops`.
fn text(result: &RunResult, view: View) -> String {
    match ops::is_table(result) {
        true => ops::render(result, view),
        false => text::render(result, view),
    }
}

fn of_fio(result: &RunResult, formats: &[&str]) -> Result<String, String> {
    let run = fio::FioRun::of(result).ok_or_else(|| made_without("fio"))?;
    let parts = formats.iter().filter_map(|name| fio::render(&run, name));
    Ok(parts.collect())
}

fn made_without(tool: &str) -> String {
    format!("the run was not made by rbench {tool}, so it has no report in that form")
}
