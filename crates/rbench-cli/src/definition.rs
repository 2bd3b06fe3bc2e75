//! An option of another tool's command line, for completions, man pages and help.

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
