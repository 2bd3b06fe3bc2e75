//! The help text of a command, generated from its table of options.

use std::fmt::Write as _;

use clap::Arg;

use super::{Line, Opt};
use crate::definition::{self, Listed, with_value};

/// Start of the second column.
const COLUMN: usize = 29;

/// The text of `rbench COMMAND --help`.
pub fn help<L: Line>() -> String {
    definition::help(L::TABLE.head, L::TABLE.groups, COLUMN)
}

impl<L> Listed for Opt<L> {
    fn arg(&self, id: String) -> Arg {
        let arg = Arg::new(id).short(self.letter).long(self.long);
        let (value, needed) = (self.takes.value_name(), self.takes.needs_value());
        with_value(arg.help(self.help), value, !needed)
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
