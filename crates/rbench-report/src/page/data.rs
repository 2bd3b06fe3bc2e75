//! The results themselves in the page, as script elements with a button that saves each.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{Markup, PreEscaped, html};

use crate::document::Document;
use crate::{json, series};

/// A file of the page.
pub struct Data<'d> {
    /// Identifies its element.
    pub id: String,
    /// Its name; control characters are escaped.
    pub name: String,
    /// Its content.
    pub document: &'d Document,
}

impl Data<'_> {
    /// The data without the timelines, which take the most room and are in the charts.
    fn without_timelines(&self) -> String {
        let mut document = self.document.clone();
        let phases = document.runs_mut().into_iter();
        let phases = phases.flat_map(|run| &mut run.phases);
        phases.for_each(|phase| phase.timeline.clear());
        render(&document)
    }
}

fn render(document: &Document) -> String {
    match document {
        Document::Run(run) => json::render(run),
        Document::Series(all) => series::render_json(all),
    }
}

fn size(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

/// JSON, compressed, in base64.
fn packed(json: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let bytes = encoder
        .write_all(json.as_bytes())
        .and_then(|()| encoder.finish());
    STANDARD.encode(bytes.expect("memory takes it"))
}

/// The elements of some files, as complete as there is room for, in bytes.
pub fn elements(all: &[Data<'_>], room: usize) -> Markup {
    let plain: Vec<String> = all.iter().map(|data| render(data.document)).collect();
    if size(&plain) <= room {
        return html! {
            p.note { "This page contains the results as script elements of the type application/json: " (DESCRIBED) }
            // Nothing in them ends the element or begins a comment.
            @for (data, json) in all.iter().zip(&plain) { (element(data, "application/json", &json.replace('<', "\\u003c"))) }
        };
    }
    let whole: Vec<String> = plain.iter().map(|json| packed(json)).collect();
    let (texts, left_out) = match size(&whole) <= room {
        true => (whole, false),
        false => (
            all.iter()
                .map(|data| packed(&data.without_timelines()))
                .collect(),
            true,
        ),
    };
    html! {
        @if size(&texts) > room { p.note { "The results have no room in a page of this size: keep their files." } }
        @else {
            p.note {
                "This page contains the results, compressed by gzip and in base64, as script elements of the type "
                "application/gzip: " (DESCRIBED)
                @if left_out { " The timelines are left out to keep the page small: the result files have them." }
            }
            @for (data, text) in all.iter().zip(&texts) { (element(data, "application/gzip", text)) }
        }
    }
}

const DESCRIBED: &str = "their fields are described in docs/reference/result-file.md of rbench.";

fn element(data: &Data<'_>, kind: &str, text: &str) -> Markup {
    html! {
        p { button hidden data-result=(data.id) data-name=(format!("{}.json", file_name(&data.name))) { "Save " (data.name) } }
        script type=(kind) id=(data.id) { (PreEscaped(text)) }
    }
}

/// A name without what file systems mind, and without the ending that is added.
fn file_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name = name.strip_suffix(".json").unwrap_or(name);
    name.chars().map(plain).collect()
}
