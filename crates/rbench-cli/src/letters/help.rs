//! The help text of a command, generated from its table of options.

use std::fmt::Write as _;

use super::{Line, Opt};
use crate::definition::{self, Definition, Listed};

/// Start of the second column.
const COLUMN: usize = 29;

/// The text of `rbench COMMAND --help`.
pub fn help<L: Line>() -> String {
    definition::help(L::TABLE.head, L::TABLE.groups, COLUMN)
}

/// The options, for completions and man pages.
pub fn definitions<L: Line>() -> Vec<Definition> {
    definition::definitions(L::TABLE.groups)
}

impl<L> Listed for Opt<L> {
    fn definition(&self, heading: &'static str) -> Definition {
        Definition {
            letter: self.letter,
            long: self.long,
            aliases: &[],
            value: self.takes.value_name(),
            optional: !self.takes.needs_value(),
            help: self.help,
            heading,
        }
    }

    /// `  -X, --verify-read`, `      --out <FILE>`
    fn names(&self) -> String {
        let mut text = match (self.letter, self.long) {
            (Some(letter), None) => format!("  -{letter}"),
            (Some(letter), Some(long)) => format!("  -{letter}, --{long}"),
            (None, long) => format!("      --{}", long.unwrap_or_default()),
        };
        let value = self.takes.value_name();
        if self.takes.needs_value() {
            let _ = write!(text, " <{value}>");
        } else if !value.is_empty() {
            let _ = write!(text, "[{value}]");
        }
        text
    }

    fn text(&self) -> String {
        self.help.to_owned()
    }
}
