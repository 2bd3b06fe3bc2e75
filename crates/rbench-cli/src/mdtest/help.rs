//! The help text of `rbench mdtest`, made from the table of options.

use std::fmt::Write as _;

use super::table::{GROUPS, Group, Opt};
use crate::definitions::Definition;

/// Where the second column begins; the help of an option that reaches into it
/// is on the next line.
const COLUMN: usize = 29;

const HEAD: &str = "\
mdtest's command line, with mdtest's tree, phases and summary table

Usage: rbench mdtest [OPTIONS]

What differs from mdtest:
  - a failed operation is an error, is not part of the rate, and makes the exit code 1
  - -B, values attached to their letter (-w1k), and -u together with -N and -z work
  - files are opened read-only for reading
  - --rbench-report adds latency percentiles, errors and a row per host to mdtest's tables;
    --out writes everything to a file

A value follows its option or is attached to it (-n 100, -n100, -n=100, --out=FILE); letters can be
bundled (-Fun100). Suffixes k, m, g, t and p are powers of 1024; times are in seconds or have a unit
(500ms). If an option is given twice, the last one counts.
";

/// The text of `rbench mdtest --help`.
pub fn help() -> String {
    let mut text = HEAD.to_owned();
    for group in GROUPS {
        let _ = writeln!(text, "\n{}:", group.title);
        for option in group.options {
            let names = names(option);
            if names.len() + 2 <= COLUMN {
                let _ = writeln!(text, "{names:COLUMN$}{}", option.help);
            } else {
                let _ = writeln!(text, "{names}\n{:COLUMN$}{}", "", option.help);
            }
        }
    }
    text
}

/// The options, for completions and man pages.
pub fn definitions() -> Vec<Definition> {
    let of = |group: &'static Group| {
        let options = group.options.iter();
        options.map(|option| Definition {
            letter: option.letter,
            long: option.long,
            aliases: &[],
            value: option.takes.value_name(),
            optional: !option.takes.needs_value(),
            help: option.help,
            heading: group.title,
        })
    };
    GROUPS.iter().flat_map(of).collect()
}

/// `  -X, --verify-read`, `      --out <FILE>`
fn names(option: &Opt) -> String {
    let mut text = match (option.letter, option.long) {
        (Some(letter), None) => format!("  -{letter}"),
        (Some(letter), Some(long)) => format!("  -{letter}, --{long}"),
        (None, long) => format!("      --{}", long.unwrap_or_default()),
    };
    let value = option.takes.value_name();
    if option.takes.needs_value() {
        let _ = write!(text, " <{value}>");
    } else if !value.is_empty() {
        let _ = write!(text, "[{value}]");
    }
    text
}
