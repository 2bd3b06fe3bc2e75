//! Parser of suites. Anything unknown is an error with its line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Step, Suite, SuiteError};
use crate::series::{Over, Selection};

/// A value and its position.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

const SUITE_KEYS: [&str; 3] = ["version", "title", "step"];
const STEP_KEYS: [&str; 6] = ["name", "run", "over", "hosts", "ranks-per-host", "ranks"];

/// The text of a file, to find the lines of errors.
pub(crate) struct Text<'t>(pub(crate) &'t str);

impl Text<'_> {
    pub(crate) fn error(&self, at: usize, message: impl Into<String>) -> SuiteError {
        let before = self.0.as_bytes().iter().take(at);
        SuiteError {
            line: before.filter(|b| **b == b'\n').count() + 1,
            message: message.into(),
        }
    }

    /// Refuses unknown keys.
    pub(crate) fn known(&self, table: &DeTable<'_>, keys: &[&str]) -> Result<(), SuiteError> {
        let unknown = table
            .keys()
            .find(|key| !keys.contains(&key.get_ref().as_ref()));
        match unknown {
            Some(key) => Err(self.error(
                key.span().start,
                format!(
                    "unknown key '{}' (expected one of {})",
                    key.get_ref(),
                    keys.join(", ")
                ),
            )),
            None => Ok(()),
        }
    }

    pub(crate) fn words<'v>(&self, key: &str, value: &'v Value<'_>) -> Result<&'v str, SuiteError> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(self.error(
                value.span().start,
                format!("'{key}' must be a non-empty text in quotes"),
            )),
        }
    }

    fn number(&self, key: &str, value: &Value<'_>) -> Result<u32, SuiteError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.filter(|number| *number > 0).ok_or_else(|| {
            self.error(
                value.span().start,
                format!("'{key}' must be a number of at least 1"),
            )
        })
    }

    pub(crate) fn list<'v, 't>(
        &self,
        key: &str,
        value: &'v Value<'t>,
    ) -> Result<&'v [Value<'t>], SuiteError> {
        match value.get_ref() {
            DeValue::Array(list) => Ok(list),
            _ => Err(self.error(value.span().start, format!("'{key}' must be a list"))),
        }
    }
}

/// Reads a suite.
///
/// # Errors
/// The error, with its line.
pub fn read(name: &str, text: &str) -> Result<Suite, SuiteError> {
    let of = Text(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        of.error(at, error.message().lines().collect::<Vec<_>>().join(", "))
    })?;
    let table = table.get_ref();
    of.known(table, &SUITE_KEYS)?;
    let value = |key: &str| {
        let value = table.get(key);
        value.ok_or_else(|| of.error(0, format!("the suite lacks '{key}'")))
    };
    let mut steps: Vec<Step> = Vec::new();
    for step in of.list("step", value("step")?)? {
        let read = self::step(&of, step)?;
        if steps.iter().any(|other| other.name == read.name) {
            let message = format!("two steps have the name '{}'", read.name);
            return Err(of.error(step.span().start, message));
        }
        steps.push(read);
    }
    if steps.is_empty() {
        return Err(of.error(0, "the suite has no steps"));
    }
    Ok(Suite {
        name: name.to_owned(),
        version: of.number("version", value("version")?)?,
        title: of.words("title", value("title")?)?.to_owned(),
        steps,
    })
}

fn step(of: &Text<'_>, value: &Value<'_>) -> Result<Step, SuiteError> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err(of.error(
            value.span().start,
            "'step' is not a list of tables: start each step with [[step]]",
        ));
    };
    of.known(table, &STEP_KEYS)?;
    let word = |key: &str| {
        let entry = table.get(key);
        entry.ok_or_else(|| of.error(value.span().start, format!("a step lacks '{key}'")))
    };
    let number = |key: &str| {
        let entry = table.get(key).map(|value| of.number(key, value));
        entry.transpose()
    };
    let mut over = Vec::new();
    if let Some(list) = table.get("over") {
        for one in of.list("over", list)? {
            let text = of.words("over", one)?;
            let read: Result<Over, _> = text.parse();
            over.push(read.map_err(|e| of.error(one.span().start, e.to_string()))?);
        }
    }
    let run = word("run")?;
    Ok(Step {
        name: of.words("name", word("name")?)?.to_owned(),
        run: of.words("run", run)?.to_owned(),
        line: of.error(run.span().start, "").line,
        over,
        selection: Selection {
            hosts: number("hosts")?,
            ranks_per_host: number("ranks-per-host")?,
            ranks: number("ranks")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "version = 2\ntitle = \"a suite\"\n";

    #[test]
    fn a_suite_has_steps_with_keys_and_ranks() {
        let text = format!(
            "{HEAD}[[step]]\nname = \"a\"\nrun = \"io --bs {{4k}}\"\nranks = 1\n\
             [[step]]\nname = \"b\"\nrun = \"meta\"\nover = [\"hosts=1,2\"]\n"
        );
        let suite = read("mine", &text).expect("a suite");
        assert_eq!((suite.version, suite.steps.len()), (2, 2));
        assert_eq!(suite.title_of_results(), "mine 2");
        assert_eq!(
            (suite.steps[0].line, suite.steps[0].selection.ranks),
            (5, Some(1))
        );
        assert_eq!(suite.steps[1].over[0].values, ["1", "2"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let check = |step: &str, line: usize, part: &str| {
            let error = read("mine", &format!("{HEAD}{step}")).expect_err(step);
            assert_eq!(error.line, line, "{step}: {error}");
            assert!(error.message.contains(part), "{step}: {error}");
            assert!(!error.message.contains('\n'), "{error}");
        };
        check(
            "[[step]]\nname = \"a\"\nrn = \"io\"\n",
            5,
            "unknown key 'rn'",
        );
        check("[[step]]\nname = \"a\"\nrun = io\n", 5, "");
        check("[[step]]\nname = \"a\"\n", 3, "lacks 'run'");
        check("[[step]]\nrun = \"io\"\nname = 5\n", 5, "text in quotes");
        check("stp = 1\n", 3, "unknown key 'stp'");
        check("", 1, "lacks 'step'");
        check(
            "[[step]]\nname = \"a\"\nrun = \"io\"\nranks = 0\n",
            6,
            "at least 1",
        );
        check(
            "[[step]]\nname = \"a\"\nrun = \"io\"\nover = [\"bs\"]\n",
            6,
            "KEY=V1",
        );
        let twice = "[[step]]\nname = \"a\"\nrun = \"io\"\n";
        check(&format!("{twice}{twice}"), 6, "two steps have the name 'a'");
    }
}
