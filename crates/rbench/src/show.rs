//! `rbench show`: the report of a result file, or of an unfinished run's journal.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use rbench_cli::Format;
use rbench_comm::launcher::launcher;
use rbench_report::journal::ReadError;
use rbench_report::series::Colour;
use rbench_report::{RENDERERS, RunResult, journal, ops, series};

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

/// Whether standard output is a terminal whose user has nothing against colours
/// (NO_COLOR, TERM=dumb). Launchers of MPI give their ranks a terminal whatever
/// becomes of the output: behind them it is taken for none.
pub fn colour() -> Colour {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let dumb = set("TERM").is_none_or(|term| term == "dumb");
    let launched = launcher(|name| std::env::var(name).ok()).is_some();
    let plain = launched || dumb || set("NO_COLOR").is_some();
    match std::io::stdout().is_terminal() && !plain {
        true => Colour::On,
        false => Colour::Off,
    }
}

/// The report of a file's content.
fn rendered(bytes: &[u8], format: Format) -> Result<String, ReadError> {
    if series::journal::is_series(bytes) {
        let series = series::journal::read(bytes)?;
        return Ok(match format {
            Format::Text => series::render(&series, colour()),
            Format::Json => series::render_json(&series),
        });
    }
    Ok(render(&journal::read_any(bytes)?, format))
}

/// Reads `file` and prints its report.
pub fn show(file: &Path, format: Format) -> ExitCode {
    let shown = std::fs::read(file)
        .map_err(|e| format!("{} cannot be read: {e}", file.display()))
        .and_then(|bytes| rendered(&bytes, format).map_err(|e| format!("{}: {e}", file.display())));
    match shown {
        Ok(text) => ExitCode::from(print(&text)),
        Err(message) => {
            complain(&message);
            ExitCode::from(FAILED)
        }
    }
}
