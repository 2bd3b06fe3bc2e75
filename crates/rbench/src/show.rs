//! `rbench show`: reports of the files of runs and series, or of the journals of
//! unfinished ones.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rbench_cli::{Format, ShowFormat};
use rbench_comm::launcher::launcher;
use rbench_report::series::Colour;
use rbench_report::{Document, RENDERERS, RunResult};

use crate::{FAILED, USAGE, complain, print};

/// Renders `result` in the form asked for.
pub fn render(result: &RunResult, format: Format) -> String {
    let name = match format {
        Format::Text => "text",
        Format::Json => "json",
    };
    let renderer = RENDERERS.iter().find(|r| r.name == name);
    let document = Document::Run(Box::new(result.clone()));
    // Every result has these two.
    renderer
        .and_then(|r| (r.render)(&[document], Colour::Off).ok())
        .unwrap_or_default()
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

/// Reads files of results or journals.
///
/// # Errors
/// One sentence that names the file.
pub fn read(files: &[PathBuf]) -> Result<Vec<Document>, String> {
    files.iter().map(|file| read_one(file)).collect()
}

/// Reads one.
///
/// # Errors
/// One sentence that names the file.
pub fn read_one(file: &Path) -> Result<Document, String> {
    let bytes =
        std::fs::read(file).map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
    Document::read(&bytes).map_err(|e| format!("{}: {e}", file.display()))
}

/// Reads the files and prints their reports.
pub fn show(files: &[PathBuf], format: ShowFormat, only: &[String]) -> ExitCode {
    let shown = match read(files) {
        Ok(documents) => shown(files, documents, format, only).map_err(|why| (USAGE, why)),
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
    mut documents: Vec<Document>,
    format: ShowFormat,
    only: &[String],
) -> Result<String, String> {
    for wanted in only {
        if !documents.iter().any(|document| document.has_row(wanted)) {
            return Err(format!("--only {wanted}: no file has a row of that name"));
        }
    }
    if !only.is_empty() {
        documents
            .iter_mut()
            .for_each(|document| document.keep(only));
    }
    let renderer = RENDERERS.iter().find(|r| r.name == format.name());
    let renderer = renderer.ok_or_else(|| format!("there is no format {}", format.name()))?;
    (renderer.render)(&documents, colour())
        .map_err(|not| format!("{}: {not}", files[not.index].display()))
}
