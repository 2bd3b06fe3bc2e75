//! `rbench compare`: runs against each other, or against published figures.

use std::path::PathBuf;
use std::process::ExitCode;

use rbench_cli::{Compare, CompareFormat};
use rbench_report::RunResult;
use rbench_report::compare::{
    Comparison, Condition, FORMATS, Options, Run, against, compare as between, published,
};

use crate::show;
use crate::show::read;
use crate::{FAILED, SUCCESS, USAGE, complain, print};

/// Compares, and prints the comparison. The exit code says whether a condition is
/// met.
pub fn compare(what: &Compare) -> ExitCode {
    if what.published.as_deref() == Some("list") && what.files.is_empty() {
        return ExitCode::from(print(&published::list()));
    }
    match compared(what) {
        Ok(comparison) => {
            let code = if comparison.fails() { FAILED } else { SUCCESS };
            let printed = print(&render(&comparison, what.format));
            ExitCode::from(code.max(printed))
        }
        Err(message) => {
            complain(&message);
            ExitCode::from(USAGE)
        }
    }
}

fn compared(what: &Compare) -> Result<Comparison, String> {
    let options = options(what)?;
    let column = match what.published.as_deref() {
        Some("list") => return Err("--published list takes no results".to_owned()),
        Some(name) => Some(published::find(name).map_err(|e| format!("--published {e}"))?),
        None => None,
    };
    let needed = if column.is_some() { 1 } else { 2 };
    if what.files.len() < needed {
        return Err(match column {
            Some(_) => "compare --published takes at least one result: that of a run".to_owned(),
            None => "compare takes at least two results: BASE and NEW".to_owned(),
        });
    }
    let (first, new) = what.files.split_at(needed - 1);
    let base: Vec<&PathBuf> = first.iter().chain(&what.more_bases).collect();
    let base = read_all(&base)?;
    let new = read_all(&new.iter().collect::<Vec<&PathBuf>>())?;
    let result = match column {
        Some(column) => against(&column, &runs(&new), &options),
        None => between(&runs(&base), &runs(&new), &options),
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

/// The results, each with the name of its file. The same file twice would be
/// samples that do not differ.
fn read_all(files: &[&PathBuf]) -> Result<Vec<(String, RunResult)>, String> {
    let mut all: Vec<(String, RunResult)> = Vec::new();
    for file in files {
        let result = read(file)?;
        let name = file.display().to_string();
        if let Some((other, _)) = all.iter().find(|(_, known)| known.run.id == result.run.id) {
            return Err(format!("{name} and {other} hold the same run"));
        }
        all.push((name, result));
    }
    Ok(all)
}

fn runs(results: &[(String, RunResult)]) -> Vec<Run<'_>> {
    results
        .iter()
        .map(|(name, result)| Run { name, result })
        .collect()
}

fn render(comparison: &Comparison, format: CompareFormat) -> String {
    let name = match format {
        CompareFormat::Text => "text",
        CompareFormat::Md => "md",
        CompareFormat::Json => "json",
        CompareFormat::Csv => "csv",
    };
    FORMATS
        .iter()
        .find(|format| format.name == name)
        .map_or_else(String::new, |format| {
            (format.render)(comparison, show::view())
        })
}
