//! The help text of a command, generated from its table of options.

use std::fmt::Write as _;

use super::{Group, Line, Opt};
use crate::definition::Definition;

/// Start of the second column; the help of an option that reaches into it moves to the next line.
const COLUMN: usize = 29;

/// The text of `rbench COMMAND --help`.
pub fn help<L: Line>() -> String {
    let mut text = L::TABLE.head.to_owned();
    for group in L::TABLE.groups {
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
pub fn definitions<L: Line>() -> Vec<Definition> {
    let of = |group: &'static Group<L>| {
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
    L::TABLE.groups.iter().flat_map(of).collect()
}

/// `  -X, --verify-read`, `      --out <FILE>`
fn names<L>(option: &Opt<L>) -> String {
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
