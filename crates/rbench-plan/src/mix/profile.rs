//! Profiles: files that describe a mix, the built-in ones, and mixes from options.

use rbench_core::{Bytes, Nanos};
use toml::de::DeValue;

use super::list::{self, Written};
use super::sizes::Sizes;
use super::{FileSet, NAMES_MAX, SetKind, Verb};
use crate::document::{DocumentError, Text, Value};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// Names and texts of the built-in profiles.
        pub const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../profiles/", $name, ".toml")))),*];
    };
}

built_in!(
    "fileserver",
    "varmail",
    "webserver",
    "webproxy",
    "oltp",
    "videoserver",
    "openfiles",
    "smallfile",
    "git",
    "logs",
    "backup",
    "database",
);

/// The text of the built-in profile with that name.
pub fn built_in(name: &str) -> Option<&'static str> {
    let mut all = BUILT_IN.iter();
    all.find(|(built_in, _)| *built_in == name)
        .map(|(_, text)| *text)
}

/// A mix as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Title for people.
    pub title: String,
    /// The sets in the order of their names, but with the set named `files` first.
    pub sets: Vec<SetText>,
    /// The kinds of workers.
    pub workers: Vec<WorkerText>,
}

/// A set as written.
#[derive(Debug, Clone, PartialEq)]
pub struct SetText {
    /// The line of its table; 0 for an option.
    pub line: usize,
    /// The set, not scaled.
    pub set: FileSet,
}

/// A kind of worker as written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkerText {
    /// The line of its table; 0 for an option.
    pub line: usize,
    /// Its name in rows, if there are several kinds.
    pub name: String,
    /// The text of the following fields, as written.
    pub text: String,
    /// `threads`: number of workers of each rank.
    pub threads: u32,
    /// `set`: the set of steps that name none; by default the first set.
    pub set: Option<String>,
    /// `first`: steps before the first round.
    pub first: Vec<Written>,
    /// `list`, or the operations of `ops`.
    pub steps: Vec<Written>,
    /// The weights of `ops`.
    pub weights: Vec<u64>,
    /// `every`
    pub every: Option<Nanos>,
    /// `per`: one round per number of rounds of another kind.
    pub per: Option<(u64, String)>,
}

const KEYS: [&str; 3] = ["title", "set", "worker"];
const SET_KEYS: [&str; 5] = ["kind", "number", "size", "width", "prepared"];
const WORKER_KEYS: [&str; 8] = [
    "name", "threads", "set", "first", "list", "ops", "every", "per",
];
/// Most sets, and most kinds of workers.
const MANY: usize = 100;
/// Most threads of a kind of worker.
const THREADS_MAX: u64 = 10_000;

/// Reads a profile.
///
/// # Errors
/// The error, with its line.
pub fn read(text: &str) -> Result<Profile, DocumentError> {
    let of = Text(text);
    let table = of.parse(&KEYS)?;
    let title = of.text_of_key(&table, "title")?;
    let whole = (0, "the profile");
    let sets = of.need(&table, "set", whole)?;
    let mut sets = of
        .table("set", sets)?
        .iter()
        .map(|(name, value)| set(&of, name.get_ref(), (name.span().start, value)))
        .collect::<Result<Vec<_>, _>>()?;
    sets.sort_by_key(|SetText { set, .. }| (set.name != "files", set.name.clone()));
    let workers = of.need(&table, "worker", whole)?;
    let DeValue::Array(list) = workers.get_ref() else {
        let wrong = "is not a list of tables: start each kind of worker with [[worker]]";
        return Err(of.not("worker", workers, wrong));
    };
    let workers = list
        .iter()
        .map(|value| worker(&of, value))
        .collect::<Result<Vec<_>, _>>()?;
    if sets.is_empty() || workers.is_empty() {
        let key = if sets.is_empty() { "set" } else { "worker" };
        return Err(of.error(0, format!("the profile lacks '{key}'")));
    }
    if sets.len() > MANY || workers.len() > MANY {
        let message = format!("more than {MANY} sets or kinds of workers");
        return Err(of.error(0, message));
    }
    distinct(&workers)?;
    Ok(Profile {
        title: title.unwrap_or_default(),
        sets,
        workers,
    })
}

/// Checks that each kind of worker has its own name, as its rows are named by it.
fn distinct(workers: &[WorkerText]) -> Result<(), DocumentError> {
    for (at, worker) in workers.iter().enumerate() {
        if workers[..at].iter().any(|other| other.name == worker.name) {
            let message = format!(
                "two kinds of workers have the name '{}': give each its own 'name'",
                worker.name
            );
            let line = worker.line;
            return Err(DocumentError { line, message });
        }
    }
    Ok(())
}

/// Checks that a name can be part of paths and rows.
fn plain(of: &Text<'_>, name: &str, at: usize) -> Result<(), DocumentError> {
    let fits =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    match (1..=32).contains(&name.len()) && name.chars().all(fits) {
        true => Ok(()),
        false => {
            let shown = name.escape_debug();
            let expected = "expected 1 to 32 of: letters a to z, digits, '-'";
            Err(of.error(at, format!("'{shown}' is not a valid name ({expected})")))
        }
    }
}

fn set(
    of: &Text<'_>,
    name: &str,
    (at, value): (usize, &Value<'_>),
) -> Result<SetText, DocumentError> {
    let table = of.table(name, value)?;
    of.known(table, &SET_KEYS)?;
    plain(of, name, at)?;
    let kind = of.of_key(table, "kind", |word| match word {
        "files" => Ok(SetKind::Files),
        "directories" => Ok(SetKind::Directories),
        "links" => Ok(SetKind::Links),
        _ => Err("not a kind of set (expected files, directories or links)".to_owned()),
    })?;
    let number = of.need(table, "number", (at, &format!("the set '{name}'")))?;
    let sizes = of.of_key(table, "size", sizes)?;
    let set = FileSet {
        name: name.to_owned(),
        kind: kind.unwrap_or(SetKind::Files),
        number: of.number("number", number, Some(NAMES_MAX))?,
        sizes: sizes.unwrap_or(Sizes::Fixed(Bytes(0))),
        width: of.number_of_key(table, "width", Some(NAMES_MAX))?,
        prepared: of.of_key(table, "prepared", percent)?.unwrap_or(100),
    };
    let line = of.line(at);
    Ok(SetText { line, set })
}

/// Reads sizes: `16k`, `gamma 16k`, `exponential 64k`.
///
/// # Errors
/// The expected form.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    let words: Vec<&str> = text
        .split([' ', ':'])
        .filter(|word| !word.is_empty())
        .collect();
    let size = |text: &str| {
        let size: Option<Bytes> = text.parse().ok();
        size.filter(|size| size.0 <= 1 << 50)
    };
    let sizes = match words[..] {
        [fixed] | ["fixed", fixed] => size(fixed).map(Sizes::Fixed),
        ["gamma", mean] => size(mean).map(Sizes::Gamma),
        ["exponential", mean] => size(mean).map(Sizes::Exponential),
        _ => None,
    };
    sizes.ok_or_else(|| {
        format!("'{text}' is not a size up to 1p (expected e.g. 16k, gamma 16k, exponential 64k)")
    })
}

/// Reads a percentage: `80%` or `80`.
///
/// # Errors
/// The expected form.
pub fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| format!("'{text}' is not a percentage from 0% to 100%"))
}

/// Reads operations with weights: `stat=60,read whole=20`.
///
/// # Errors
/// The error.
pub fn ops(text: &str) -> Result<(Vec<Written>, Vec<u64>), String> {
    let (mut steps, mut weights) = (Vec::new(), Vec::new());
    for part in text.split(',') {
        let weight = part.split_once('=').and_then(|(operation, weight)| {
            let weight: u64 = weight.trim().parse().ok()?;
            (1..=1_000_000)
                .contains(&weight)
                .then_some((operation, weight))
        });
        let (operation, weight) = weight.ok_or_else(|| {
            format!(
                "'{}' is not a weighted operation (expected OPERATION=WEIGHT, e.g. stat=60)",
                part.trim()
            )
        })?;
        // By default, all of the file, or a block.
        let operation = match operation.trim() {
            "read" => "read whole",
            "write" => "write whole",
            "append" => "append 4k",
            other => other,
        };
        let step = list::step(operation)?;
        if step.last || matches!(step.verb, Verb::Close | Verb::Think(_)) {
            return Err(format!("'{operation}' is allowed only in a list"));
        }
        steps.push(step);
        weights.push(weight);
    }
    Ok((steps, weights))
}

fn time(text: &str) -> Result<Nanos, String> {
    let time: Option<Nanos> = text.parse().ok();
    time.filter(|time| time.0 > 0)
        .ok_or_else(|| format!("'{text}' is not a time (expected e.g. 125ms)"))
}

/// Reads `1000 reader`.
fn per(text: &str) -> Result<(u64, String), String> {
    let read = text.split_once(' ').and_then(|(number, role)| {
        let number = number.parse().ok().filter(|number| *number > 0)?;
        Some((number, role.trim().to_owned()))
    });
    read.ok_or_else(|| {
        format!("'{text}' is not a number and a worker (expected NUMBER WORKER, e.g. 1000 reader)")
    })
}

fn worker(of: &Text<'_>, value: &Value<'_>) -> Result<WorkerText, DocumentError> {
    let at = value.span().start;
    let table = of.table("worker", value)?;
    of.known(table, &WORKER_KEYS)?;
    let lists = |key: &str| of.of_key(table, key, list::read);
    let name = of.text_of_key(table, "name")?;
    let name = name.unwrap_or_else(|| "worker".to_owned());
    plain(of, &name, at)?;
    let (steps, weights) = match (table.get("list"), table.get("ops")) {
        (Some(_), None) => (lists("list")?.unwrap_or_default(), Vec::new()),
        (None, Some(value)) => of.of(("ops", value), ops)?,
        _ => return Err(of.error(at, "a worker needs either 'list' or 'ops', not both")),
    };
    let texts = ["set", "first", "list", "ops", "every", "per"].into_iter();
    let texts = texts.filter_map(|key| {
        let words: Vec<&str> = of
            .words(key, table.get(key)?)
            .ok()?
            .split_whitespace()
            .collect();
        Some(format!("{key} {}", words.join(" ")))
    });
    let text = texts.collect::<Vec<_>>().join("; ");
    let threads = of.number_of_key(table, "threads", Some(THREADS_MAX))?;
    Ok(WorkerText {
        line: of.line(at),
        name,
        text,
        threads: threads.unwrap_or(1) as u32,
        set: of.text_of_key(table, "set")?,
        first: lists("first")?.unwrap_or_default(),
        steps,
        weights,
        every: of.of_key(table, "every", time)?,
        per: of.of_key(table, "per", per)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_document;

    #[test]
    fn every_built_in_profile_can_be_read_and_says_what_it_is() {
        for (name, text) in BUILT_IN {
            let read = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!read.title.is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let check = |text: &str, line: usize, part: &str| check_document(read(text), line, part);
        let set = "[set.files]\nnumber = 10\n";
        let with = |worker: &str| format!("{set}[[worker]]\n{worker}");
        each! { check:
            "" => 1 => "lacks 'set'";
            set => 1 => "lacks 'worker'";
            "sets = 1\n" => 1 => "unknown key 'sets'";
            "[set.files]\n" => 1 => "lacks 'number'";
            "[set.files]\nnumber = 0\n" => 2 => "from 1 to";
            "[set.files]\nnumber = -1\n" => 2 => "from 1 to";
            "[set.\"../x\"]\nnumber = 1\n" => 1 => "not a valid name";
            "[set.\"a\\u0000\"]\nnumber = 1\n" => 1 => "not a valid name";
            "[set.files]\nnumber = 1\nsize = \"gama 5k\"\n" => 3 => "gamma 16k";
            "[set.files]\nnumber = 1\nprepared = \"101%\"\n" => 3 => "percentage";
            "[set.files]\nnumber = 1\nkind = \"pipes\"\n" => 3 => "directories or links";
            "[set.files]\nnumber = 1\nwidth = 0\n" => 3 => "'width'";
            &with("list = \"opn\"\n") => 4 => "nearest: open";
            &with("threads = 5\n") => 3 => "either 'list' or 'ops'";
            &with("ops = \"stat\"\n") => 4 => "OPERATION=WEIGHT";
            &with("ops = \"close=5\"\n") => 4 => "only in a list";
            &with("ops = \"stat=0\"\n") => 4 => "OPERATION=WEIGHT";
            &with("list = \"stat\"\nthreads = 0\n") => 5 => "'threads'";
            &with("list = \"stat\"\nevery = \"0\"\n") => 5 => "not a time";
            &with("list = \"stat\"\nper = \"reader\"\n") => 5 => "NUMBER WORKER";
            &with("list = 5\n") => 4 => "text in quotes";
            &with("name = \"../up\"\nlist = \"stat\"\n") => 3 => "not a valid name";
            "[set.files\n" => 1 => "";
        }
    }

    #[test]
    fn kinds_of_workers_whose_rows_would_have_the_same_names_are_refused() {
        let worker = |name: &str| format!("[[worker]]\n{name}list = \"stat\"\n");
        let of = |names: [&str; 2]| {
            let [one, two] = names.map(worker);
            read(&format!("[set.files]\nnumber = 10\n{one}{two}"))
        };
        for names in [[""; 2], ["name = \"a\"\n"; 2], ["", "name = \"worker\"\n"]] {
            let second = 3 + names[0].lines().count() + 2;
            check_document(of(names), second, "give each its own 'name'");
        }
        assert!(of(["", "name = \"a\"\n"]).is_ok(), "one has none");
    }
}
