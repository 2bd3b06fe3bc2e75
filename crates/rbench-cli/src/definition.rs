//! An option of another tool's command line, for completions, man pages and help.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, ValueHint};

/// Returns the option with this value, which may be left out if it is `optional`; without a name
/// it takes none.
pub fn with_value(arg: Arg, name: &'static str, optional: bool) -> Arg {
    let hint = match name {
        "" => return arg.action(ArgAction::SetTrue),
        "FILE" | "DIR" | "PATH" | "PREFIX" => ValueHint::AnyPath,
        _ => ValueHint::Unknown,
    };
    let arg = arg.value_name(name).value_hint(hint);
    match optional {
        true => arg.num_args(0..=1),
        false => arg,
    }
}

/// An option of a table that the help lists.
pub trait Listed {
    /// Returns the same option for clap.
    fn arg(&self, id: String) -> Arg;

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

/// The command with the options, for completions and man pages.
pub fn with_options<O: Listed>(command: Command, groups: &'static [Group<O>]) -> Command {
    let of = |group: &'static Group<O>| group.options.iter().map(|option| (group.title, option));
    let all = groups.iter().flat_map(of).enumerate();
    let args = all.map(|(i, (title, option))| option.arg(format!("option{i}")).help_heading(title));
    command.disable_help_flag(true).args(args)
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
