//! `rbench show`: reports of result files, or of unfinished runs' journals.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rbench_cli::{Format, ShowFormat};
use rbench_report::{RENDERERS, RunResult, journal};

use crate::{FAILED, USAGE, complain, print};

/// Renders `result` in the form asked for.
pub fn render(result: &RunResult, format: Format) -> String {
    let name = match format {
        Format::Text => "text",
        Format::Json => "json",
    };
    let renderer = RENDERERS.iter().find(|r| r.name == name);
    // Every result has these two.
    renderer
        .and_then(|r| (r.render)(std::slice::from_ref(result)).ok())
        .unwrap_or_default()
}

/// Reads result files or journals.
///
/// # Errors
/// One sentence that names the file.
pub fn read(files: &[PathBuf]) -> Result<Vec<RunResult>, String> {
    files.iter().map(|file| read_one(file)).collect()
}

fn read_one(file: &Path) -> Result<RunResult, String> {
    let bytes =
        std::fs::read(file).map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
    journal::read_any(&bytes).map_err(|e| format!("{}: {e}", file.display()))
}

/// Reads the files and prints their reports.
pub fn show(files: &[PathBuf], format: ShowFormat, only: &[String]) -> ExitCode {
    let shown = match read(files) {
        Ok(results) => shown(files, results, format, only).map_err(|why| (USAGE, why)),
        Err(why) => Err((FAILED, why)),
    };
    ExitCode::from(match shown {
        Ok(text) => print(&text),
        Err((code, message)) => {
            complain(&message);
            code
        }
    })
}

fn shown(
    files: &[PathBuf],
    mut results: Vec<RunResult>,
    format: ShowFormat,
    only: &[String],
) -> Result<String, String> {
    keep(&mut results, only)?;
    let renderer = RENDERERS.iter().find(|r| r.name == format.name());
    let renderer = renderer.ok_or_else(|| format!("there is no format {}", format.name()))?;
    (renderer.render)(&results).map_err(|not| format!("{}: {not}", files[not.index].display()))
}

/// Keeps the rows with these names; all without any.
fn keep(results: &mut [RunResult], only: &[String]) -> Result<(), String> {
    let named = |name: &str| only.iter().any(|wanted| wanted == name);
    for wanted in only {
        let mut phases = results.iter().flat_map(|result| &result.phases);
        if phases.all(|phase| phase.name != *wanted) {
            return Err(format!("--only {wanted}: no file has a row of that name"));
        }
    }
    if !only.is_empty() {
        for result in results {
            result.phases.retain(|phase| named(&phase.name));
            result.summary.retain(|row| named(&row.name));
        }
    }
    Ok(())
}
