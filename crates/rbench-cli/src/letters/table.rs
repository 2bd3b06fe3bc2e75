//! The type of an option with letters and long names, and a table of options.

use std::ffi::OsStr;

use super::Line;
use crate::definition::Group;

/// An option.
pub struct Opt<L: 'static> {
    /// `-n`
    pub letter: Option<char>,
    /// `--verify-read`, without the dashes.
    pub long: Option<&'static str>,
    /// The value that it takes, and its effect.
    pub takes: Takes<L>,
    /// Its help, one line.
    pub help: &'static str,
}

/// Stores a value in the line, or returns a clause that describes the error.
type Read<L> = fn(&mut L, &OsStr) -> Result<(), String>;

/// The value that follows an option, and its effect.
pub enum Takes<L: 'static> {
    /// Nothing.
    Nothing(fn(&mut L)),
    /// Nothing; a directive can also switch it off.
    Switch(fn(&mut L, bool)),
    /// Nothing; each use adds one. A directive sets the number.
    Count(fn(&mut L) -> &mut u32),
    /// A value; the help shows this name for it.
    Value(&'static str, Read<L>),
    /// Nothing, or a number attached to the letter.
    Digits(fn(&mut L), Read<L>),
    /// Nothing: prints a text and runs nothing.
    Text(fn() -> String),
}

impl<L> Clone for Takes<L> {
    fn clone(&self) -> Takes<L> {
        *self
    }
}

impl<L> Copy for Takes<L> {}

impl<L> Takes<L> {
    /// The name of the value in the help; empty: there is none.
    pub fn value_name(self) -> &'static str {
        match self {
            Takes::Nothing(_) | Takes::Switch(_) | Takes::Count(_) | Takes::Text(_) => "",
            Takes::Digits(..) => "N",
            Takes::Value(name, _) => name,
        }
    }

    /// Returns true if the option is invalid without a value.
    pub fn needs_value(self) -> bool {
        matches!(self, Takes::Value(..))
    }

    /// Returns true if the rest of the word is the letter's value, and not more letters.
    pub fn claims(self, rest: &[u8]) -> bool {
        match (self, rest.first()) {
            (_, None) => false,
            (_, Some(b'=')) | (Takes::Value(..), _) => true,
            (Takes::Digits(..), Some(first)) => first.is_ascii_digit(),
            (Takes::Nothing(_) | Takes::Switch(_) | Takes::Count(_) | Takes::Text(_), _) => false,
        }
    }
}

/// The options of a command.
pub struct Table<L: 'static> {
    /// The command.
    pub command: &'static str,
    /// The first part of its help.
    pub head: &'static str,
    /// Every option.
    pub groups: &'static [Group<Opt<L>>],
    /// Known but unsupported options of the tool by the beginning of their names, and why.
    pub refused: &'static [(&'static str, &'static str)],
}

impl<L: Line> Table<L> {
    /// Every option, in the help's order.
    pub fn options(&self) -> impl Iterator<Item = &'static Opt<L>> + use<L> {
        self.groups.iter().flat_map(|group| group.options)
    }

    /// The option with this letter.
    pub fn letter(&self, letter: u8) -> Option<&'static Opt<L>> {
        let wanted = Some(char::from(letter));
        self.options().find(|option| option.letter == wanted)
    }

    /// The option with this long name, without dashes.
    pub fn long(&self, name: &str) -> Option<&'static Opt<L>> {
        self.options().find(|option| option.long == Some(name))
    }

    /// Returns why an option of the tool is not supported, by its name with dashes.
    pub fn refusal(&self, name: &str) -> Option<&'static str> {
        self.refused
            .iter()
            .find(|(beginning, _)| name.starts_with(beginning))
            .map(|(_, why)| *why)
    }
}

/// Converts a word to text.
pub fn text(word: &OsStr) -> Result<&str, String> {
    word.to_str().ok_or_else(|| "it is not UTF-8".to_owned())
}

/// Options as rows: `letter "long-name" => field: kind, "help";`, without the letter or the long
/// name where there is none. The field follows what stands in the parentheses at the start.
///
/// | kind | what follows the option |
/// |---|---|
/// | `on`, `switch` | nothing; a directive switches the second off as well |
/// | `count` | nothing: counts how often it is given |
/// | `word("VALUE", f)`, `path("VALUE")` | a value, as `f` reads it |
/// | `more("VALUE", f)` | the same, added to those before |
/// | `prints(f)` | nothing: prints a text |
/// | `takes(t)` | what these [`Takes`] are |
macro_rules! rows {
    (@letter) => { None };
    (@letter $letter:ident) => { Some(stringify!($letter).as_bytes()[0] as char) };
    (@long) => { None };
    (@long $long:literal) => { Some($long) };
    (@takes $base:tt $place:tt takes($takes:expr)) => { $takes };
    (@takes $base:tt $place:tt prints($text:expr)) => { $crate::letters::Takes::Text($text) };
    (@takes ($($base:tt)*) ($($place:ident).+) on) => {
        $crate::letters::Takes::Nothing(|l| l.$($base)* $($place).+ = true)
    };
    (@takes ($($base:tt)*) ($($place:ident).+) switch) => {
        $crate::letters::Takes::Switch(|l, on| l.$($base)* $($place).+ = on)
    };
    (@takes ($($base:tt)*) ($($place:ident).+) count) => {
        $crate::letters::Takes::Count(|l| &mut l.$($base)* $($place).+)
    };
    (@takes ($($base:tt)*) ($($place:ident).+) word($value:literal, $read:expr)) => {
        $crate::letters::Takes::Value($value, |l, v| {
            let value = $read($crate::letters::text(v)?)?;
            $crate::field::Field::put(&mut l.$($base)* $($place).+, value);
            Ok(())
        })
    };
    (@takes ($($base:tt)*) ($($place:ident).+) path($value:literal)) => {
        $crate::letters::Takes::Value($value, |l, v| {
            $crate::field::Field::put(&mut l.$($base)* $($place).+, rbench_plan::values::path(v)?);
            Ok(())
        })
    };
    (@takes ($($base:tt)*) ($($place:ident).+) more($value:literal, $read:expr)) => {
        $crate::letters::Takes::Value($value, |l, v| {
            l.$($base)* $($place).+.push($read($crate::letters::text(v)?)?);
            Ok(())
        })
    };
    ($base:tt $(
        $($letter:ident)? $($long:literal)? $(=> $($place:ident).+)?
        : $kind:ident $(($($arg:tt)*))?, $help:literal;
    )*) => {
        &[$($crate::letters::Opt {
            letter: rows!(@letter $($letter)?),
            long: rows!(@long $($long)?),
            takes: rows!(
                @takes $base ($($($place).+)?) $kind $(($($arg)*))?
            ),
            help: $help,
        }),*]
    };
}
