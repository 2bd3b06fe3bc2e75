//! Expectations: promises that a file system is known not to keep (`rbench check --expect`),
//! written as TOML.

use rbench_core::Nanos;

use crate::document::{DocumentError, Text, Value};

/// The expectations that are part of the program: name and text.
pub const PRESETS: [(&str, &str); 5] = [
    ("glusterfs", include_str!("../expect/glusterfs.toml")),
    ("juicefs", include_str!("../expect/juicefs.toml")),
    ("moosefs", include_str!("../expect/moosefs.toml")),
    ("nfs", include_str!("../expect/nfs.toml")),
    ("s3fs", include_str!("../expect/s3fs.toml")),
];

const KEYS: [&str; 2] = ["title", "deviation"];
const DEVIATION_KEYS: [&str; 4] = ["promise", "why", "source", "within"];

/// Expectation of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The file system, in a line.
    pub title: String,
    /// Its known deviations, in the order of the file.
    pub deviations: Vec<Deviation>,
}

/// Promises that are known not to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    /// A name, the beginning of one up to a dot, or either with `*`.
    pub promise: String,
    /// The reason: a clause.
    pub why: String,
    /// The source of the statement.
    pub source: String,
    /// Between clients: a change may become visible late, by at most this time.
    pub within: Option<Nanos>,
    /// The line of `promise` in the file, from 1.
    pub line: usize,
}

/// The text of a preset.
pub fn preset(name: &str) -> Option<&'static str> {
    let preset = PRESETS.iter().find(|(known, _)| *known == name)?;
    Some(preset.1)
}

/// Reads an expectation.
///
/// # Errors
/// The error, with its line.
pub fn read(text: &str) -> Result<Expectation, DocumentError> {
    let of = Text(text);
    let table = of.parse(&KEYS)?;
    let title = table.get("title");
    let title = title.ok_or_else(|| of.error(0, "'title' is missing"))?;
    let mut deviations = Vec::new();
    if let Some(list) = table.get("deviation") {
        for one in of.list("deviation", list)? {
            deviations.push(deviation(&of, one)?);
        }
    }
    Ok(Expectation {
        title: of.words("title", title)?.to_owned(),
        deviations,
    })
}

fn deviation(of: &Text<'_>, value: &Value<'_>) -> Result<Deviation, DocumentError> {
    let table = of.element("deviation", value, &DEVIATION_KEYS)?;
    let word = |key| {
        let entry = of.need(table, key, (value.span().start, "a deviation"))?;
        let line = of.line(entry.span().start);
        of.words(key, entry).map(|text| (text.to_owned(), line))
    };
    let (promise, line) = word("promise")?;
    let time = |text: &str| text.parse::<Nanos>().map_err(|e| e.to_string());
    Ok(Deviation {
        within: of.of_key(table, "within", time)?,
        promise,
        why: word("why")?.0,
        source: word("source")?.0,
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound() {
        for (name, text) in PRESETS {
            let read = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!read.deviations.is_empty(), "{name}");
            assert_eq!(preset(name), Some(text));
        }
        assert_eq!(preset("ext4"), None);
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let check = |text: &str, expect: &str| {
            let error = read(text).expect_err(text).to_string();
            assert_eq!(error, expect);
        };
        each! { check:
            "deviation = 1" => "line 1: 'title' is missing";
            "title = 'x'\ncolour = 1" =>
                "line 2: unknown key 'colour' (expected one of title, deviation)";
            "title = 'x'\n\n[[deviation]]\npromise = 'a'" => "line 3: a deviation lacks 'why'";
            "title = 'x'\ndeviation = [1]" =>
                "line 2: 'deviation' is not a list of tables: start each deviation with [[deviation]]";
            "title = 'x'\n[[deviation]]\npromise = 1" =>
                "line 3: 'promise' must be a non-empty text in quotes";
        }
    }

    #[test]
    fn how_late_something_may_be_is_a_time() {
        let text = |time: &str| {
            format!(
                "title = 'x'\n[[deviation]]\npromise = 'a'\nwhy = 'b'\nsource = 'c'\nwithin = '{time}'"
            )
        };
        let read_one = |time| read(&text(time)).map(|read| read.deviations[0].within);
        assert_eq!(read_one("1.5s"), Ok(Some(Nanos(1_500_000_000))));
        let error = read_one("soon").expect_err("no time").to_string();
        assert!(
            error.starts_with("line 6: 'within': 'soon' is not"),
            "{error}"
        );
    }

    #[test]
    fn a_deviation_keeps_its_reason_and_source() {
        let text = "title = 'mine'\n[[deviation]]\npromise = 'locks.*'\nwhy = 'no locks'\nsource = 'its manual'\n";
        let expect = Expectation {
            title: "mine".to_owned(),
            deviations: vec![Deviation {
                promise: "locks.*".to_owned(),
                why: "no locks".to_owned(),
                source: "its manual".to_owned(),
                within: None,
                line: 3,
            }],
        };
        assert_eq!(read(text), Ok(expect));
    }
}
