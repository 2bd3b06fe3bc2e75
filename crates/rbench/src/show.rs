//! `rbench show`: reports from result files of runs and series, or from the journals of unfinished
//! ones.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use rbench_cli::{Format, Show, ShowFormat, value_name};
use rbench_comm::launcher::launcher;
use rbench_report::{Colour, Document, RENDERERS, RunResult, View, listing};

use crate::console::{fail, print};
use crate::exit::USAGE;

/// Renders `result` in the requested format.
pub fn render(result: &RunResult, format: Format, details: bool) -> String {
    let renderer = RENDERERS.iter().find(|r| r.name == value_name(&format));
    let document = Document::Run(Box::new(result.clone()));
    // Every result has these two formats.
    renderer
        .and_then(|r| (r.render)(&[document], view().with_details(details)).ok())
        .unwrap_or_default()
}

/// The view of standard output: as wide as COLUMNS or the terminal, and coloured on a terminal
/// unless the user objects (NO_COLOR, TERM=dumb). Under an MPI launcher it is never coloured:
/// launchers give ranks a terminal even if the output goes elsewhere.
pub fn view() -> View {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let launched = launcher(|name| std::env::var(name).ok()).is_some();
    let terminal = std::io::stdout().is_terminal() && !launched;
    let columns_set = set("COLUMNS").and_then(|text| text.to_str()?.parse::<usize>().ok());
    let seen = || {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(width.0))
    };
    let columns = columns_set.or_else(|| seen().filter(|_| terminal));
    let columns = columns.filter(|columns| *columns > 0);
    let plain = set("TERM").is_none_or(|term| term == "dumb") || set("NO_COLOR").is_some();
    let view = View::default().with_colour(match terminal && !plain {
        true => Colour::On,
        false => Colour::Off,
    });
    columns.map_or(view, |columns| view.wide(columns))
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|e| format!("{} cannot be read: {e}", file.display()))
}

/// Reads files of results or journals.
///
/// # Errors
/// One sentence that names the file.
pub fn documents(files: &[PathBuf]) -> Result<Vec<Document>, String> {
    files.iter().map(|file| read_document(file)).collect()
}

/// Reads the file or the journal of a run or a series.
///
/// # Errors
/// One sentence that names the file.
pub fn read_document(file: &Path) -> Result<Document, String> {
    Document::read(&bytes_of(file)?).map_err(|e| format!("{}: {e}", file.display()))
}

/// Reads the files and prints their reports. Of a directory, lists the results in it.
pub fn show(what: &Show) -> u8 {
    if let [directory] = what.files.as_slice()
        && directory.is_dir()
    {
        return list(what, directory);
    }
    match documents(&what.files).and_then(|documents| shown(what, documents)) {
        Ok(text) => print(&text),
        Err(message) => fail(USAGE, message),
    }
}

/// Lists the results directly in a directory; skips other files.
fn list(what: &Show, directory: &Path) -> u8 {
    let name = directory.display();
    if what.format != ShowFormat::Text || !what.only.is_empty() {
        let message = format!("{name} is a directory: name its files for --format and --only");
        return fail(USAGE, message);
    }
    match results_in(directory) {
        Ok(results) => print(&listing(&results, view())),
        Err(message) => fail(USAGE, message),
    }
}

/// The results directly in a directory with the names of their files, in the order of their starts;
/// skips other files.
fn results_in(directory: &Path) -> Result<Vec<(String, Document)>, String> {
    let name = directory.display();
    let entries =
        std::fs::read_dir(directory).map_err(|e| format!("{name} cannot be read: {e}"))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut results: Vec<(String, Document)> = files
        .filter(|path| path.is_file())
        .filter_map(|path| {
            let file = path.file_name()?.to_string_lossy().into_owned();
            Some((file, read_document(&path).ok()?))
        })
        .collect();
    results.sort_by(|(_, a), (_, b)| a.run().started.cmp(&b.run().started));
    match results.is_empty() {
        true => Err(format!("{name} has no result files of rbench")),
        false => Ok(results),
    }
}

/// Reads files, and in place of each directory the results in it, with their names.
///
/// # Errors
/// One sentence that names the file or directory.
pub fn named_documents(places: &[PathBuf]) -> Result<Vec<(String, Document)>, String> {
    let mut all = Vec::new();
    for place in places {
        match place.is_dir() {
            true => all.extend(
                results_in(place)?
                    .into_iter()
                    .map(|(file, document)| (place.join(file).display().to_string(), document)),
            ),
            false => all.push((place.display().to_string(), read_document(place)?)),
        }
    }
    Ok(all)
}

fn shown(what: &Show, mut documents: Vec<Document>) -> Result<String, String> {
    let Show {
        files,
        format,
        only,
        details,
    } = what;
    let names = only.iter().map(|wanted| names_of(wanted, &documents));
    let names = names.collect::<Result<Vec<_>, String>>()?.concat();
    if !names.is_empty() {
        documents
            .iter_mut()
            .for_each(|document| document.keep(&names));
    }
    let name = value_name(format);
    let renderer = RENDERERS.iter().find(|r| r.name == name);
    let renderer = renderer.ok_or_else(|| format!("there is no format {name}"))?;
    (renderer.render)(&documents, view().with_details(*details))
        .map_err(|not| format!("{}: {not}", files[not.index].display()))
}

/// The names of the rows that have this name or label.
///
/// # Errors
/// A sentence with the names that exist.
fn names_of(wanted: &str, documents: &[Document]) -> Result<Vec<String>, String> {
    let rows = || documents.iter().flat_map(Document::rows);
    let named = rows().any(|(name, _)| name == wanted);
    let matches = |(name, label): &(&str, &str)| match named {
        true => *name == wanted,
        false => label.eq_ignore_ascii_case(wanted),
    };
    let names = each_once(rows().filter(matches));
    if !names.is_empty() {
        return Ok(names);
    }
    Err(match each_once(rows()).as_slice() {
        [] => format!("--only {wanted}: no file has any row"),
        all => format!(
            "--only {wanted}: no file has a row of that name; there are {}",
            all.join(", ")
        ),
    })
}

fn each_once<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}
