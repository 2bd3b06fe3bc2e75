//! The sides of a comparison: their files, and their titles in tables and sentences.

use std::collections::BTreeMap;

use super::published::Column;
use super::samples::{Run, SeriesRun};

/// Longest title, in characters.
const TITLE_MAX: usize = 20;

/// One side.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Its title in tables and sentences: what tells it apart from the other side.
    pub title: String,
    /// The workload, time and place of each run, one a line.
    pub lines: Vec<String>,
    /// The names of its files, or of the published column.
    pub names: Vec<String>,
}

/// A file of a side: its name, and the labels of its run.
type File<'r> = (&'r str, &'r BTreeMap<String, String>);

impl Side {
    /// Both sides of a comparison of runs: BASE and NEW.
    pub(super) fn of_runs(base: &[Run<'_>], new: &[Run<'_>]) -> [Side; 2] {
        let [old, young] = titles(&files(base), &files(new));
        [Side::runs(old, base), Side::runs(young, new)]
    }

    /// A published column, and the runs that are compared with it.
    pub(super) fn of_column(column: &Column, runs: &[Run<'_>]) -> [Side; 2] {
        let full = column.full_name();
        let title = short(full.rsplit('/').next().unwrap_or(&full));
        let files = files(runs);
        let own = name(&files).or_else(|| file(&files, 1));
        let own = own.map(|own| short(&own));
        let own = own.filter(|own| *own != title && is_name(own));
        let base = Side {
            title,
            lines: vec![format!("{full}: {}", column.set.title)],
            names: vec![full],
        };
        let own = own.unwrap_or_else(|| "NEW".to_owned());
        [base, Side::runs(own, runs)]
    }

    /// Both sides of a comparison of series: BASE and NEW.
    pub(super) fn of_series<'r>(base: &[SeriesRun<'r>], new: &[SeriesRun<'r>]) -> [Side; 2] {
        let files = |runs: &[SeriesRun<'r>]| -> Vec<File<'r>> {
            let files = runs.iter();
            files
                .map(|run| (run.name, &run.series.run.labels))
                .collect()
        };
        let [old, young] = titles(&files(base), &files(new));
        [Side::series(old, base), Side::series(young, new)]
    }

    fn runs(title: String, runs: &[Run<'_>]) -> Side {
        let line = |run: &Run<'_>| {
            let result = run.result;
            let fs = result.target.fs_type.as_deref().unwrap_or("unknown");
            let stopped = if result.complete {
                ""
            } else {
                ", stopped early"
            };
            format!(
                "{}: {} on {} ({fs}), rbench {}{stopped}{}",
                run.name,
                result.run.started,
                result.target.path,
                result.run.version,
                listed(&result.run.labels)
            )
        };
        Side {
            title,
            lines: runs.iter().map(line).collect(),
            names: runs.iter().map(|run| run.name.to_owned()).collect(),
        }
    }

    fn series(title: String, runs: &[SeriesRun<'_>]) -> Side {
        let line = |run: &SeriesRun<'_>| {
            let series = run.series;
            let what = series.suite.as_ref().unwrap_or(&series.kind);
            let result = series.results().next();
            let place = result.map_or_else(String::new, |result| {
                let fs = result.target.fs_type.as_deref().unwrap_or("unknown");
                let dir = series.dir.as_ref().unwrap_or(&result.target.path);
                format!(" on {dir} ({fs})")
            });
            let done = series.cells.iter().filter(|c| c.is_complete()).count();
            let cells = match (series.complete, series.planned) {
                (true, _) => format!("{done} cells"),
                (false, Some(of)) => format!("stopped early: {done} of {of} cells"),
                (false, None) => format!("stopped early: {done} cells"),
            };
            format!(
                "{}: {what} {}{place}, rbench {}, {cells}{}",
                run.name,
                series.run.started,
                series.run.version,
                listed(&series.run.labels)
            )
        };
        Side {
            title,
            lines: runs.iter().map(line).collect(),
            names: runs.iter().map(|run| run.name.to_owned()).collect(),
        }
    }
}

fn files<'r>(runs: &[Run<'r>]) -> Vec<File<'r>> {
    let files = runs.iter();
    files
        .map(|run| (run.name, &run.result.run.labels))
        .collect()
}

/// Labels after other words.
fn listed(labels: &BTreeMap<String, String>) -> String {
    let each = labels.iter();
    each.map(|(key, value)| format!(", {key}={value}"))
        .collect()
}

/// The titles of the sides: their label `name`, else a label that tells them apart, else the names of
/// their files; BASE and NEW if these are the same.
fn titles(base: &[File<'_>], new: &[File<'_>]) -> [String; 2] {
    let keys = base
        .first()
        .into_iter()
        .flat_map(|(_, labels)| labels.keys());
    let by_label = keys.map(|key| [base, new].map(|side| label(side, key)));
    let by_file = [1, 2].map(|parts| [base, new].map(|side| file(side, parts)));
    let by_name = [base, new].map(name);
    let mut titles = [by_name]
        .into_iter()
        .chain(by_label)
        .chain(by_file)
        .filter_map(|[base, new]| {
            let titles = [short(&base?), short(&new?)];
            let names = titles.iter().all(|title| is_name(title));
            (names && titles[0] != titles[1]).then_some(titles)
        });
    titles
        .next()
        .unwrap_or_else(|| ["BASE", "NEW"].map(str::to_owned))
}

/// Returns true if people read it as a name: not a number alone.
fn is_name(title: &str) -> bool {
    title.contains(char::is_alphabetic)
}

/// The label `name`, as far as the files of a side share it.
fn name(side: &[File<'_>]) -> Option<String> {
    let names = side.iter().map(|(_, labels)| labels.get("name").cloned());
    common(&names.collect::<Option<Vec<String>>>()?)
}

/// A label that all files of a side have: `key=value`.
fn label(side: &[File<'_>], key: &str) -> Option<String> {
    let mut values = side.iter().map(|(_, labels)| labels.get(key));
    let first = values.next()??;
    let shared = values.all(|value| value == Some(first));
    shared.then(|| format!("{key}={first}"))
}

/// The name of a side's files without its ending, with the last `parts` words of their paths.
fn file(side: &[File<'_>], parts: usize) -> Option<String> {
    let name = |(name, _): &File<'_>| {
        let words: Vec<&str> = name.split('/').collect();
        let last = words[words.len().saturating_sub(parts)..].join("/");
        let last = last.strip_suffix(".journal").unwrap_or(&last);
        last.strip_suffix(".json").unwrap_or(last).to_owned()
    };
    common(&side.iter().map(name).collect::<Vec<String>>())
}

/// The name, or the start that several share, without their numbers; `None` if they share nothing.
fn common(names: &[String]) -> Option<String> {
    let (first, others) = names.split_first()?;
    let shared = others.iter().fold(first.clone(), |shared, other| {
        let same = shared
            .chars()
            .zip(other.chars())
            .take_while(|(a, b)| a == b);
        same.map(|(c, _)| c).collect()
    });
    let ends_here = |name: &String| {
        let next = name[shared.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphabetic())
    };
    let shared = match others.is_empty() {
        true => shared.as_str(),
        false if names.iter().all(ends_here) => without_number(&shared),
        // Not a part of a word.
        false => without_number(shared.trim_end_matches(char::is_alphabetic)),
    };
    (!shared.is_empty()).then(|| shared.to_owned())
}

/// A common start without the mark before its numbers, `ext4` of `ext4-`, or their first digits,
/// `run` of `run1`.
fn without_number(shared: &str) -> &str {
    let whole = shared.trim_end_matches(|c: char| !c.is_alphanumeric());
    match whole.len() < shared.len() {
        true => whole,
        false => whole.trim_end_matches(|c: char| !c.is_alphabetic()),
    }
}

/// At most [`TITLE_MAX`] characters: start and end.
fn short(title: &str) -> String {
    let all: Vec<char> = title.chars().collect();
    if all.len() <= TITLE_MAX {
        return title.to_owned();
    }
    let start = TITLE_MAX / 2 - 1;
    let end = all.len() - (TITLE_MAX - start - 1);
    let (start, end) = (all[..start].iter(), all[end..].iter());
    start.chain(['…'].iter()).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &[(&str, &str)], new: &[(&str, &str)], expected: [&str; 2]) {
        let labels = |(_, labels): &(&str, &str)| {
            let each = labels
                .split_whitespace()
                .filter_map(|one| one.split_once('='));
            each.map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect::<BTreeMap<String, String>>()
        };
        let all: Vec<_> = base.iter().chain(new).map(labels).collect();
        let names = base.iter().chain(new).map(|(name, _)| *name);
        let files: Vec<File<'_>> = names.zip(&all).collect();
        let (base, new) = files.split_at(base.len());
        assert_eq!(titles(base, new), expected);
    }

    #[test]
    fn sides_are_called_by_what_tells_them_apart() {
        check(
            &[("r/old.json", "")],
            &[("r/new-2.json", "")],
            ["old", "new-2"],
        );
        check(
            &[("a/meta.json", "")],
            &[("b/meta.json.journal", "")],
            ["a/meta", "b/meta"],
        );
        check(&[("meta.json", "")], &[("meta.json", "")], ["BASE", "NEW"]);
        check(&[("1.json", "")], &[("2.json", "")], ["BASE", "NEW"]);
        check(
            &[("a.json", "fs=ext4 v=1"), ("b.json", "fs=ext4 v=1")],
            &[("c.json", "fs=ext4 v=2")],
            ["v=1", "v=2"],
        );
        check(
            &[("a.json", "v=1"), ("b.json", "v=2")],
            &[("c.json", "v=3")],
            ["BASE", "NEW"],
        );
        check(
            &[("a.json", "name=juicefs-1"), ("b.json", "name=juicefs-2")],
            &[("c.json", "name=ext4-1"), ("d.json", "name=ext4-2")],
            ["juicefs", "ext4"],
        );
        check(
            &[("before-1.json", ""), ("before-2.json", "")],
            &[("after10.json", ""), ("after11.json", "")],
            ["before", "after"],
        );
        check(
            &[("before-a.json", ""), ("before-b.json", "")],
            &[("ext4-read.json", ""), ("ext4-rand.json", "")],
            ["before", "ext4"],
        );
        check(
            &[("old.json", ""), ("orig.json", "")],
            &[("new.json", "")],
            ["BASE", "NEW"],
        );
        check(
            &[("20261128T093000-meta-ext4-before.json", "")],
            &[("20261128T093000-meta-ext4-after.json", "")],
            ["20261128T…xt4-before", "20261128T…ext4-after"],
        );
    }
}
