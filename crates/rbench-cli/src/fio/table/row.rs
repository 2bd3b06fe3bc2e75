//! The form of a row: `name | alias => field [engine …]: kind = "default", "help";`.
//!
//! The field is that of [`Settings`](rbench_plan::spec::fio::Settings), or of the command line;
//! left out, it has the option's name. The kind says what follows the option and how it is read:
//!
//! | kind | value |
//! |---|---|
//! | `flag`, `switch` | 0 or 1; a switch may stand alone |
//! | `inverted` | 0 or 1; the field holds the opposite |
//! | `number`, `size`, `percent`, `within` | a number, from 0 or from what is in parentheses |
//! | `time(unit)` | a time; the unit of a bare number, which the help shows |
//! | `words("VALUE", "word" = meaning …)` | one of these words |
//! | `of("VALUE", f)`, `word("VALUE", f)` | what `f` reads from the value, or from its text alone |
//! | `each(kind)` | one for reads, writes and trims, separated by commas |
//! | `more("VALUE", f)` | like `word`, added to those before |
//! | `log` | a prefix, which is the job's name where it is left out in a job file |
//! | `sets(value)` | none: sets the field to this |
//! | `set("VALUE", f)`, `optional("VALUE", f)` | what `f` does with it |
//! | `accept(kind)` | read, and without an effect |
//! | `prints(f)`, `prints_of("VALUE", f)` | none, or an optional one: prints a text |

/// Rows as a slice of options; see the module.
macro_rules! options {
    ($(#[$doc:meta])* $NAME:ident: $does:ident $base:tt {$(
        $name:tt $(| $alias:tt)* $(=> $($place:ident).+)? $([$($engine:ident)+])?
        : $kind:ident $(($($arg:tt)*))? $(= $default:literal)?, $help:literal;
    )*}) => {
        $(#[$doc])*
        pub const $NAME: &[$crate::fio::table::Opt] = &[$($crate::fio::table::Opt {
            name: name!($name),
            aliases: &[$(name!($alias)),*],
            engines: &[$($(stringify!($engine)),+)?],
            takes: takes!($kind $(($($arg)*))?),
            default: default!($kind $($default)?),
            help: help!([$($($engine)+)?] [$kind $(($($arg)*))?] $help),
            #[cfg(test)]
            kind: concat!($(stringify!($($place).+), ": ",)? stringify!($kind)),
            does: does!($does $base $name ($($($place).+)?) $kind $(($($arg)*))?),
        }),*];
    };
}

macro_rules! name {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:literal) => {
        $name
    };
}

macro_rules! default {
    (log) => {
        "no log; without PREFIX the job's name"
    };
    ($kind:ident) => {
        ""
    };
    ($kind:ident $default:literal) => {
        $default
    };
}

/// The help, after the engines that have the option, and with the unit of a bare number.
macro_rules! help {
    ([$first:ident $($more:ident)*] $kind:tt $help:literal) => {
        concat!(stringify!($first), $(", ", stringify!($more),)* ": ", help!([] $kind $help))
    };
    ([] [time($unit:ident)] $help:literal) => { concat!($help, " (", stringify!($unit), ")") };
    ([] $kind:tt $help:literal) => { $help };
}

macro_rules! takes {
    (switch) => { $crate::fio::table::Takes::Switch };
    (log) => { $crate::fio::table::Takes::ValueOrJob("PREFIX") };
    (sets $rest:tt) => { $crate::fio::table::Takes::Nothing };
    (prints $rest:tt) => { $crate::fio::table::Takes::Nothing };
    (optional($value:literal, $set:expr)) => { $crate::fio::table::Takes::Optional($value) };
    (prints_of($value:literal, $text:expr)) => { $crate::fio::table::Takes::Optional($value) };
    (accept($($kind:tt)+)) => { takes!($($kind)+) };
    ($($kind:tt)+) => { $crate::fio::table::Takes::Value(value!($($kind)+)) };
}

/// The name of the value in the help.
macro_rules! value {
    (flag) => { "0|1" };
    (inverted) => { "0|1" };
    (percent) => { "PERCENT" };
    (number $($least:tt)?) => { "N" };
    (within $ends:tt) => { "N" };
    (size $($least:tt)?) => { "SIZE" };
    (time $unit:tt) => { "TIME" };
    (each($($kind:tt)+)) => { concat!(value!($($kind)+), "[,...]") };
    ($kind:ident($value:literal $($rest:tt)*)) => { $value };
}

macro_rules! does {
    ($does:ident $base:tt $name:tt $place:tt prints($text:expr)) => {
        $crate::fio::table::Does::Text($text)
    };
    ($does:ident $base:tt $name:tt $place:tt prints_of($value:literal, $text:expr)) => {
        $crate::fio::table::Does::Text($text)
    };
    ($does:ident $base:tt $name:tt $place:tt starts_job($value:literal)) => {
        $crate::fio::table::Does::Name
    };
    ($does:ident $base:tt $name:tt $place:tt base($value:literal)) => {
        $crate::fio::table::Does::Base
    };
    ($does:ident $base:tt $name:tt () $($kind:tt)+) => {
        $crate::fio::table::Does::$does(set!($base ($name) $($kind)+))
    };
    ($does:ident $base:tt $name:tt $place:tt $($kind:tt)+) => {
        $crate::fio::table::Does::$does(set!($base $place $($kind)+))
    };
}

macro_rules! set {
    ($base:tt $place:tt set($value:literal, $set:expr)) => { $set };
    ($base:tt $place:tt optional($value:literal, $set:expr)) => { $set };
    ($base:tt $place:tt accept(number)) => { |_, g| g.number().map(drop) };
    ($base:tt $place:tt accept($($kind:tt)+)) => { |_, g| read!(g, $($kind)+).map(drop) };
    (($($base:ident)?) ($($place:ident).+) more($value:literal, $read:expr)) => {
        |s, g| {
            s.$($base.)?$($place).+.push($read(g.text)?);
            Ok(())
        }
    };
    (($($base:ident)?) ($($place:ident).+) $($kind:tt)+) => {
        |s, g| {
            let value = read!(g, $($kind)+)?;
            $crate::field::Field::put(&mut s.$($base.)?$($place).+, value);
            Ok(())
        }
    };
}

/// The value, or a clause that describes the error.
macro_rules! read {
    ($g:ident, flag) => { $g.flag() };
    ($g:ident, switch) => { $g.flag() };
    ($g:ident, inverted) => { $g.flag().map(|on| !on) };
    ($g:ident, percent) => { $g.percent() };
    ($g:ident, number) => { $g.count(0) };
    ($g:ident, number($least:literal)) => { $g.count($least) };
    ($g:ident, size) => { $g.count(0) };
    ($g:ident, size($least:literal)) => { $g.count($least) };
    ($g:ident, within($least:expr, $most:expr)) => { $g.within($least, $most) };
    ($g:ident, time(s)) => { $g.time(rbench_core::Nanos::SECOND) };
    ($g:ident, time(ms)) => { $g.time(rbench_core::Nanos::MILLISECOND) };
    ($g:ident, time(us)) => { $g.time(rbench_core::Nanos::MICROSECOND) };
    ($g:ident, log) => { Ok::<_, String>($g.text.to_owned()) };
    ($g:ident, of($value:literal, $read:expr)) => { $crate::fio::table::call($read, $g) };
    ($g:ident, word($value:literal, $read:expr)) => {
        $crate::fio::table::call($read, $g.text)
    };
    ($g:ident, each($($kind:tt)+)) => { $g.each(|g| read!(g, $($kind)+)) };
    ($g:ident, words($value:literal, $($word:literal = $meaning:expr),+)) => {
        rbench_plan::given::one_of($g.text, &[$(($word, $meaning)),+])
    };
    ($g:ident, sets($value:expr)) => {{
        let _ = $g;
        Ok::<_, String>($value)
    }};
}
