//! An option of another tool's command line, for completions, man pages and help.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, ValueHint};

/// An option of another tool's command line.
pub struct Definition {
    /// Its letter.
    pub letter: Option<char>,
    /// Its name, without dashes.
    pub long: Option<&'static str>,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The name of its value; empty: it takes none.
    pub value: &'static str,
    /// True if the option may be given without its value.
    pub optional: bool,
    /// Its help, one line.
    pub help: &'static str,
    /// The heading under which the help lists it.
    pub heading: &'static str,
}

impl Definition {
    /// Returns the same option for clap.
    pub fn arg(&self, id: String) -> Arg {
        let mut arg = Arg::new(id).help(self.help).help_heading(self.heading);
        if let Some(letter) = self.letter {
            arg = arg.short(letter);
        }
        if let Some(long) = self.long {
            arg = arg.long(long).visible_aliases(self.aliases.iter().copied());
        }
        if self.value.is_empty() {
            return arg.action(ArgAction::SetTrue);
        }
        let hint = match self.value {
            "FILE" | "DIR" | "PATH" | "PREFIX" => ValueHint::AnyPath,
            _ => ValueHint::Unknown,
        };
        let arg = arg.value_name(self.value).value_hint(hint);
        match self.optional {
            true => arg.num_args(0..=1),
            false => arg,
        }
    }
}

/// An option of a table that the help lists.
pub trait Listed {
    /// Returns the option for completions and man pages.
    fn definition(&self, heading: &'static str) -> Definition;

    /// Its names and its value, as the help shows them; indented.
    fn names(&self) -> String;

    /// Its help.
    fn text(&self) -> String;
}

/// Options under a heading of the help.
pub struct Group<O: 'static> {
    /// The heading.
    pub title: &'static str,
    /// The options, in the help's order.
    pub options: &'static [O],
}

impl<O> Group<O> {
    pub const fn new(title: &'static str, options: &'static [O]) -> Group<O> {
        Group { title, options }
    }
}

/// The options, for completions and man pages.
pub fn definitions<O: Listed>(groups: &'static [Group<O>]) -> Vec<Definition> {
    let of = |group: &'static Group<O>| {
        let options = group.options.iter();
        options.map(|option| option.definition(group.title))
    };
    groups.iter().flat_map(of).collect()
}

/// The text of `rbench COMMAND --help`. The second column starts at `column`; the help of an option
/// that reaches into it moves to the next line.
pub fn help<O: Listed>(head: &str, groups: &[Group<O>], column: usize) -> String {
    let mut text = head.to_owned();
    for group in groups {
        let _ = writeln!(text, "\n{}:", group.title);
        for option in group.options {
            let names = option.names();
            let help = option.text();
            if names.len() + 2 <= column {
                let _ = writeln!(text, "{names:column$}{help}");
            } else {
                let _ = writeln!(text, "{names}\n{:column$}{help}", "");
            }
        }
    }
    text
}
