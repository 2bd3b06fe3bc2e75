//! The result of a run as a file and as a report: schema, statistics,
//! warnings, renderers, the journal.
//!
//! Everything here is a pure function of its arguments: no file, terminal,
//! clock or environment. Only the binary writes.

pub mod fio;
pub mod hist;
pub mod ior;
pub mod journal;
pub mod json;
pub mod mdtest;
pub mod ops;
pub mod schema;
pub mod series;
pub mod summary;
mod table;
pub mod text;
pub mod warnings;

pub use hist::Hist;
pub use schema::{PhaseResult, RunResult};

/// One way to show a result.
#[derive(Debug, Clone, Copy)]
pub struct Renderer {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// The rendering; ends with a newline.
    pub render: fn(&RunResult) -> String,
}

/// Every renderer; the first is the default.
pub const RENDERERS: &[Renderer] = &[
    Renderer {
        name: "text",
        render: text::render,
    },
    Renderer {
        name: "json",
        render: json::render,
    },
    Renderer {
        name: "ops",
        render: ops::render,
    },
];

/// Computes `summary` and `warnings` from the phases. Warnings that the run
/// itself put there (codes that no rule of [`warnings`] uses) are kept, so
/// that finishing twice changes nothing.
pub fn finish(result: &mut RunResult) {
    result.summary = summary::over_iterations(&result.phases);
    result.warnings.retain(|w| !warnings::is_rule_code(&w.code));
    let found = warnings::find(result);
    result.warnings.extend(found);
}
