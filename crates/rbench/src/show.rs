//! `rbench show`: the report of a result file, or of an unfinished run's journal.

use std::path::Path;
use std::process::ExitCode;

use rbench_cli::Format;
use rbench_report::{RENDERERS, RunResult, journal, ops};

use crate::{FAILED, complain, print};

/// Renders `result` in the form asked for.
pub fn render(result: &RunResult, format: Format) -> String {
    let name = match format {
        Format::Text if ops::is_table(result) => "ops",
        Format::Text => "text",
        Format::Json => "json",
    };
    RENDERERS
        .iter()
        .find(|r| r.name == name)
        .map_or_else(String::new, |r| (r.render)(result))
}

/// Reads a result file or a journal.
///
/// # Errors
/// One sentence that names the file.
pub fn read(file: &Path) -> Result<RunResult, String> {
    let bytes =
        std::fs::read(file).map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
    journal::read_any(&bytes).map_err(|e| format!("{}: {e}", file.display()))
}

/// Reads `file` and prints its report.
pub fn show(file: &Path, format: Format) -> ExitCode {
    match read(file) {
        Ok(result) => ExitCode::from(print(&render(&result, format))),
        Err(message) => {
            complain(&message);
            ExitCode::from(FAILED)
        }
    }
}
