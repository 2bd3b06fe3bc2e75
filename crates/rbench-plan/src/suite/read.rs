//! Parser of suites.

use super::{Step, Suite};
use crate::document::{DocumentError, Text, Value};
use crate::series::{Over, Selection};

const SUITE_KEYS: [&str; 3] = ["version", "title", "step"];
const STEP_KEYS: [&str; 6] = ["name", "run", "over", "hosts", "ranks-per-host", "ranks"];

/// Reads a suite.
///
/// # Errors
/// The error, with its line.
pub fn read(name: &str, text: &str) -> Result<Suite, DocumentError> {
    let of = Text(text);
    let table = of.parse(&SUITE_KEYS)?;
    let value = |key| of.need(&table, key, (0, "the suite"));
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
        version: of.number("version", value("version")?, None)? as u32,
        title: of.words("title", value("title")?)?.to_owned(),
        steps,
    })
}

fn step(of: &Text<'_>, value: &Value<'_>) -> Result<Step, DocumentError> {
    let table = of.element("step", value, &STEP_KEYS)?;
    let word = |key| of.need(table, key, (value.span().start, "a step"));
    let number = |key: &str| {
        let number = of.number_of_key(table, key, None);
        number.map(|number| number.map(|n| n as u32))
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
        line: of.line(run.span().start),
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
    use crate::testing::check_document;

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
            check_document(read("mine", &format!("{HEAD}{step}")), line, part);
        };
        each! { check:
            "[[step]]\nname = \"a\"\nrn = \"io\"\n" => 5 => "unknown key 'rn'";
            "[[step]]\nname = \"a\"\nrun = io\n" => 5 => "";
            "[[step]]\nname = \"a\"\n" => 3 => "lacks 'run'";
            "[[step]]\nrun = \"io\"\nname = 5\n" => 5 => "text in quotes";
            "stp = 1\n" => 3 => "unknown key 'stp'";
            "" => 1 => "lacks 'step'";
            "[[step]]\nname = \"a\"\nrun = \"io\"\nranks = 0\n" => 6 => "at least 1";
            "[[step]]\nname = \"a\"\nrun = \"io\"\nover = [\"bs\"]\n" => 6 => "KEY=V1";
        }
        let twice = "[[step]]\nname = \"a\"\nrun = \"io\"\n";
        check(&format!("{twice}{twice}"), 6, "two steps have the name 'a'");
    }
}
