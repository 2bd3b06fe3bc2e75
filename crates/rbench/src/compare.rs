//! `rbench compare`: compares runs or series with each other, or runs with published figures.

use std::path::PathBuf;

use rbench_cli::{Compare, CompareFormat, value_name};
use rbench_report::Document;
use rbench_report::compare::{
    Comparison, Condition, FORMATS, Options, Run, SeriesRun, against, compare as between,
    compare_series, published,
};

use crate::console::{fail, print};
use crate::exit::{FAILED, SUCCESS, USAGE};
use crate::show;

/// The forms of naming several runs of each side.
const SIDES: &str = "--base and --new each take all files of their side, and no other files are named: \
                     rbench compare --base old-*.json --new new-*.json";

/// Compares the files and prints the comparison. The exit code reports whether a condition holds.
pub fn compare(what: &Compare) -> u8 {
    if what.published.as_deref() == Some("list") && what.files.is_empty() {
        return print(&published::list());
    }
    match compared(what) {
        Ok(comparison) => {
            let code = if comparison.fails() { FAILED } else { SUCCESS };
            let printed = print(&render(&comparison, what.format));
            code.max(printed)
        }
        Err(message) => fail(USAGE, message),
    }
}

fn compared(what: &Compare) -> Result<Comparison, String> {
    let options = options(what)?;
    let column = match what.published.as_deref() {
        Some("list") => return Err("--published list takes no results".to_owned()),
        Some(name) => Some(published::find(name).map_err(|e| format!("--published {e}"))?),
        None => None,
    };
    let by_option = !what.base.is_empty() || !what.new.is_empty();
    let needed = if column.is_some() { 1 } else { 2 };
    let (base, new) = match what.files.len() {
        0 if !what.base.is_empty() && !what.new.is_empty() => (&*what.base, &*what.new),
        _ if by_option => return Err(SIDES.to_owned()),
        files if files >= needed => what.files.split_at(needed - 1),
        _ => {
            return Err(match column {
                Some(_) => "compare --published needs at least one result of a run".to_owned(),
                None => "compare needs at least two results: BASE and NEW".to_owned(),
            });
        }
    };
    let all = read_all(base.iter().chain(new))?;
    let (base, new) = all.split_at(base.len());
    let result = match (kind(&all)?, column) {
        (Kind::Runs, Some(column)) => against(&column, &runs(new), &options),
        (Kind::Runs, None) => between(&runs(base), &runs(new), &options),
        (Kind::Series(name), Some(_)) => {
            return Err(format!(
                "{name} is a series: --published takes results of single runs"
            ));
        }
        (Kind::Series(_), None) => compare_series(&series(base), &series(new), &options),
    };
    result.map_err(|refusal| refusal.to_string())
}

fn options(what: &Compare) -> Result<Options, String> {
    let conditions: Result<Vec<Condition>, _> = what
        .fail_if
        .iter()
        .map(|text| Condition::parse(text))
        .collect();
    let usual = Options::default();
    Ok(Options {
        min_effect: what.min_effect.unwrap_or(usual.min_effect),
        confidence: what.confidence.unwrap_or(usual.confidence),
        even_if_different: what.even_if_different,
        conditions: conditions.map_err(|e| format!("--fail-if {e}"))?,
    })
}

/// A file's name and content.
type Read = (String, Document);

/// Reads the files. Refuses two files of the same run: their samples would not differ.
fn read_all<'f>(files: impl Iterator<Item = &'f PathBuf>) -> Result<Vec<Read>, String> {
    let mut all: Vec<Read> = Vec::new();
    for file in files {
        let document = show::read_document(file)?;
        let name = file.display().to_string();
        let is_same = |(_, known): &&Read| known.run().id == document.run().id;
        if let Some((other, _)) = all.iter().find(is_same) {
            return Err(format!("{name} and {other} hold the same run"));
        }
        all.push((name, document));
    }
    Ok(all)
}

/// Kind of the files; a comparison does not mix them.
enum Kind<'n> {
    Runs,
    /// Name of the first series.
    Series(&'n str),
}

fn kind(all: &[Read]) -> Result<Kind<'_>, String> {
    let is_series = |one: &&Read| matches!(one.1, Document::Series(_));
    let one = all.iter().find(is_series);
    let other = all.iter().find(|one| !is_series(one));
    match (one, other) {
        (Some((series, _)), Some((run, _))) => Err(format!(
            "{series} is a series and {run} is a single run: compare runs with runs, or series with series of the \
             same command"
        )),
        (Some((series, _)), None) => Ok(Kind::Series(series)),
        (None, _) => Ok(Kind::Runs),
    }
}

fn runs(all: &[Read]) -> Vec<Run<'_>> {
    let runs = all.iter().filter_map(|(name, document)| match document {
        Document::Run(result) => Some(Run { name, result }),
        Document::Series(_) => None,
    });
    runs.collect()
}

fn series(all: &[Read]) -> Vec<SeriesRun<'_>> {
    let series = all.iter().filter_map(|(name, document)| match document {
        Document::Series(series) => Some(SeriesRun { name, series }),
        Document::Run(_) => None,
    });
    series.collect()
}

fn render(comparison: &Comparison, format: CompareFormat) -> String {
    let name = value_name(&format);
    let format = FORMATS.iter().find(|format| format.name == name);
    format.map_or_else(String::new, |format| {
        (format.render)(comparison, show::view())
    })
}
