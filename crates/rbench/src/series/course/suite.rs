//! The runs of `rbench suite`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rbench_cli::series::{self, is_file};
use rbench_cli::{Invocation, is_series};
use rbench_plan::series::{Cell, Selection};
use rbench_plan::suite::{self, Step};
use rbench_report::schema::{LeftOut, SeriesKey, SeriesStep};

use super::{Around, Outline, combinations};
use crate::embedded::{Embedded, WITHOUT_TESTFS};
use crate::target::room_for;

/// Value of `{dir}` in a dry run without a directory.
pub(super) const ANY_DIR: &str = "DIR";

/// The runs of a step.
struct Expanded {
    kind: String,
    keys: Vec<SeriesKey>,
    cells: Vec<Cell>,
}

/// The steps of a suite, one after the other. Reads the suite and expands its steps. Without a
/// directory, mounts the built-in file system if all ranks are on one host.
pub fn outline(asked: &series::Suite, quiet: bool, around: Around<'_>) -> Result<Outline, String> {
    let text = text_of(&asked.name, around)?;
    let placed = |e: rbench_plan::document::DocumentError| format!("{} {e}", asked.name);
    let read = suite::read(stem(&asked.name), &text).map_err(placed)?;
    let mut new = Outline::new("suite", Vec::new(), Vec::new());
    new.dry_run = asked.dry_run;
    new.result.suite = Some(read.title_of_results());
    new.result.scale = asked.scale;
    new.result.dir = dir_of(asked, around)?;
    let one_host = around.host_of.iter().all(|host| *host == 0);
    if new.result.dir.is_none() && one_host && read.uses_dir() {
        new.result.dir = Some(match asked.dry_run {
            true => ANY_DIR.to_owned(),
            false => new.embedded.insert(mount()?).path().display().to_string(),
        });
    }
    for step in &read.steps {
        let words = step
            .words(new.result.dir.as_deref(), asked.scale)
            .map_err(placed)?;
        let expanded = expand(step, &words, quiet, around)
            .map_err(|e| format!("{} line {}: step {}: {e}", asked.name, step.line, step.name))?;
        add(&mut new, &asked.name, step, expanded, around);
    }
    new.parent = new.result.dir.as_ref().map(PathBuf::from);
    match new.cells.is_empty() {
        true => Err(format!(
            "{}: none of its steps can run with the launched hosts and ranks",
            asked.name
        )),
        false => Ok(new),
    }
}

/// Adds the cells of a step of the suite `source`, except those that need more than the launched
/// ranks.
fn add(new: &mut Outline, source: &str, step: &Step, expanded: Expanded, around: Around<'_>) {
    let first = new.cells.len() as u32;
    for mut cell in expanded.cells {
        cell.name = match cell.name.as_str() {
            "" => step.name.clone(),
            name => format!("{}: {name}", step.name),
        };
        cell.selection = within(cell.selection, step.selection);
        match cell.selection.members(around.host_of) {
            Ok(_) => {
                new.cells.push(cell);
                new.places.push(format!("{source} line {}", step.line));
            }
            Err(why) => new.result.left_out.push(LeftOut {
                name: cell.name,
                why: why.to_string(),
            }),
        }
    }
    new.result.steps.push(SeriesStep {
        name: step.name.clone(),
        kind: expanded.kind,
        keys: expanded.keys,
        first,
        cells: new.cells.len() as u32 - first,
    });
}

/// Mounts the built-in file system with the maximum of memory.
pub(super) fn mount() -> Result<Embedded, String> {
    match cfg!(feature = "testfs") {
        true => Embedded::mount(room_for(0)?),
        false => Err(format!("{WITHOUT_TESTFS}: give a directory with --dir")),
    }
}

/// The cell's selection, completed by its step's.
fn within(cell: Selection, step: Selection) -> Selection {
    Selection {
        hosts: cell.hosts.or(step.hosts),
        ranks_per_host: cell.ranks_per_host.or(step.ranks_per_host),
        ranks: cell.ranks.or(step.ranks),
    }
}

/// The runs of a step: all combinations of its values, or the cells of a series.
fn expand(
    step: &Step,
    words: &[OsString],
    quiet: bool,
    around: Around<'_>,
) -> Result<Expanded, String> {
    if !words.first().is_some_and(|word| is_series(word)) {
        let kind = "sweep".to_owned();
        let (keys, cells) = combinations(&step.over, words)?;
        return Ok(Expanded { kind, keys, cells });
    }
    if !step.over.is_empty() {
        return Err("a series has its own values: leave out 'over'".to_owned());
    }
    let program = around.launch.argv.iter().take(1).cloned();
    let argv: Vec<OsString> = program.chain(words.iter().cloned()).collect();
    let inner = match rbench_cli::parse(&argv, None) {
        Ok(Invocation::Series(mut inner)) => {
            inner.options.quiet = quiet;
            *inner
        }
        Ok(_) => return Err("this command is not a run".to_owned()),
        Err(stop) => return Err(stop.sentence().to_owned()),
    };
    if matches!(inner.course, series::Course::Suite(_)) {
        return Err("a suite cannot be a step of another one".to_owned());
    }
    let course = super::of(&inner, around)?;
    let inner = course.outline();
    if inner.planned().is_none() {
        return Err(format!(
            "{} cannot be a step: its runs depend on earlier results",
            inner.result.kind
        ));
    }
    Ok(Expanded {
        kind: inner.result.kind.clone(),
        keys: inner.result.keys.clone(),
        cells: inner.cells.clone(),
    })
}

fn text_of(name: &str, around: Around<'_>) -> Result<String, String> {
    if !is_file(name) {
        let text = suite::built_in(name);
        return text
            .map(str::to_owned)
            .ok_or_else(|| format!("there is no suite '{name}'"));
    }
    let path = Path::new(&around.launch.cwd).join(name);
    std::fs::read_to_string(&path).map_err(|e| format!("{name} cannot be read: {e}"))
}

/// A file's name without directory and extension.
fn stem(name: &str) -> &str {
    let path = Path::new(name);
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or(name)
}

/// The tested directory as an absolute path.
fn dir_of(asked: &series::Suite, around: Around<'_>) -> Result<Option<String>, String> {
    match asked.dir.as_ref().or(asked.env_dir.as_ref()) {
        Some(dir) => absolute(dir, around).map(Some),
        None => Ok(None),
    }
}

/// A directory as an absolute path in UTF-8.
pub(super) fn absolute(dir: &Path, around: Around<'_>) -> Result<String, String> {
    let path: PathBuf = Path::new(&around.launch.cwd)
        .join(dir)
        .components()
        .collect();
    let text = path.into_os_string().into_string();
    text.map_err(|_| format!("--dir {}: a suite needs a name in UTF-8", dir.display()))
}
