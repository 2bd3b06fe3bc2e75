//! Values of options that have a form of their own. A message is a clause
//! that follows the name of the option.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::find::{SizeTest, Than};
use crate::io::{FsyncRule, Rw};
use crate::jobs::Distribution;
use crate::meta::{Backend, PHASES, Packet, PhaseKind};
use clap::ValueEnum;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use rbench_core::client::Watch;
use rbench_core::event::Event;
use rbench_core::near::nearest;
use rbench_core::operations::{self, OPS_ROWS, OpsRow};
use rbench_core::steady::Criterion;
use rbench_core::units::ParseQuantityError;
use rbench_core::{Bytes, Nanos};

use crate::given::{Base, Given, Split, one_of};
use crate::trace::Format;

/// Any text.
pub fn owned(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// A size.
pub fn bytes(text: &str) -> Result<Bytes, String> {
    text.parse().map_err(|e: ParseQuantityError| e.to_string())
}

/// A time.
pub fn time(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|e: ParseQuantityError| e.to_string())
}

/// `--watch`
pub fn watch(text: &str) -> Result<Watch, String> {
    let read = text.parse::<Watch>();
    read.map_err(|why| format!("'{text}': {why}"))
}

/// `--event`
pub fn event(text: &str) -> Result<Event, String> {
    text.parse()
}

/// A share in per cent, such as `5%` or `2.5`.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent / 100.0),
        _ => Err(format!("'{text}' is not a percentage such as 5%")),
    }
}

/// A share that `fits`, as `range` says.
fn share_within(text: &str, fits: impl Fn(&f64) -> bool, range: &str) -> Result<f64, String> {
    match share(text)? {
        share if fits(&share) => Ok(share),
        _ => Err(format!("'{text}' must be {range}")),
    }
}

/// `--min-effect`
pub fn effect(text: &str) -> Result<f64, String> {
    let fits = |share: &f64| (0.0..1.0).contains(share);
    share_within(text, fits, "at least 0% and below 100%")
}

/// `--confidence`
pub fn confidence(text: &str) -> Result<f64, String> {
    let fits = |share: &f64| (0.5..=0.999_999).contains(share);
    share_within(text, fits, "at least 50% and at most 99.9999%")
}

/// `--precision`
pub fn precision(text: &str) -> Result<f64, String> {
    let fits = |share: &f64| (0.001..=0.5).contains(share);
    share_within(text, fits, "from 0.1% to 50%")
}

/// `--threads` of removals
pub fn threads(text: &str) -> Result<u32, String> {
    match amount(text)? {
        threads @ 1..=4096 => Ok(threads),
        _ => Err(format!("'{text}' must be from 1 to 4096")),
    }
}

/// `--iterations`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iterations {
    /// This many.
    Count(u32),
    /// The number that their rates need.
    Auto,
}

/// `--iterations`
pub fn iterations(text: &str) -> Result<Iterations, String> {
    match text {
        "auto" => Ok(Iterations::Auto),
        _ => text
            .parse()
            .map(Iterations::Count)
            .map_err(|_| format!("'{text}' is neither a number nor auto")),
    }
}

/// `--phases`
pub fn phase(text: &str) -> Result<PhaseKind, String> {
    PHASES
        .iter()
        .find(|info| info.name == text)
        .map(|info| info.kind)
        .ok_or_else(|| {
            let names: Vec<&str> = PHASES.iter().map(|info| info.name).collect();
            not_one_of(text, "a phase", &names)
        })
}

/// `--only` of `rbench ops`
pub fn ops_row(text: &str) -> Result<&'static OpsRow, String> {
    operations::row(text).ok_or_else(|| {
        let names: Vec<&str> = OPS_ROWS.iter().map(|row| row.name).collect();
        not_one_of(text, "a row", &names)
    })
}

/// Names the nearest of many names, or all if none is near.
fn not_one_of(text: &str, what: &str, names: &[&str]) -> String {
    match nearest(text, names.iter().copied()) {
        Some(near) => format!("'{text}' is not {what} (nearest: {near})"),
        None => format!("'{text}' is not one of {}", names.join(", ")),
    }
}

/// `--rw`
pub fn rw(text: &str) -> Result<Rw, String> {
    one_of(text, &Rw::ALL.map(|rw| (rw.name(), rw)))
}

/// `--fsync`
pub fn fsync(text: &str) -> Result<FsyncRule, String> {
    match text {
        "end" => Ok(FsyncRule::End),
        "never" => Ok(FsyncRule::Never),
        "close" => Ok(FsyncRule::Close),
        _ => text
            .strip_prefix("every=")
            .and_then(|n| n.parse().ok())
            .map(FsyncRule::Every)
            .ok_or_else(|| format!("'{text}' is not one of end, never, close, every=N")),
    }
}

/// A value in a form that fio has too.
fn shared(text: &str) -> Given<'_> {
    Given {
        text,
        base: Base::Native,
        files: None,
        notes: None,
    }
}

/// `--bs-range`
pub fn block_range(text: &str) -> Result<(u64, u64), String> {
    shared(text).range()
}

/// `--bs-split`: sizes with their percentages.
pub fn block_split(text: &str) -> Result<Vec<Split>, String> {
    shared(text).splits()
}

/// `--random-distribution`
pub fn distribution(text: &str) -> Result<Distribution, String> {
    shared(text).distribution()
}

/// `--steadystate`
pub fn criterion(text: &str) -> Result<Criterion, String> {
    shared(text).criterion()
}

/// A percentage.
pub fn percent(text: &str) -> Result<u32, String> {
    shared(text).percent()
}

/// Operations a second, with `k` and `m` as in [`amount`].
pub fn rate(text: &str) -> Result<f64, String> {
    decimal(text).ok_or_else(|| {
        format!("'{text}' is not a number of operations per second (5k = 5000, 2m = 2 million)")
    })
}

/// A number followed by k (thousand), m (million) or g (thousand millions).
fn decimal(text: &str) -> Option<f64> {
    let factors = [(['k', 'K'], 1e3), (['m', 'M'], 1e6), (['g', 'G'], 1e9)];
    let known = |(letters, factor): ([char; 2], f64)| Some((text.strip_suffix(letters)?, factor));
    let (number, factor) = factors.into_iter().find_map(known).unwrap_or((text, 1.0));
    number.parse::<f64>().ok().map(|number| number * factor)
}

/// A count, not a size: `500`, `20k` = 20,000, `1.5m` = 1,500,000. (Sizes are binary, and so are
/// counts in the command lines of mdtest and IOR, like in those tools.)
pub fn amount<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let too_large = || ParseQuantityError::TooLarge(text.to_owned()).to_string();
    let number = match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) => {
            let whole = |number: &f64| *number >= 0.0 && number.fract() == 0.0;
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let plain = digits.len() + 1 >= text.len()
                && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let number = decimal(text).filter(|number| plain && whole(number));
            let number = number.ok_or_else(|| {
                format!("'{text}' is not a whole number (k and m are decimal: 20k = 20000)")
            })?;
            // Above that not every whole number is one.
            match number <= (1_u64 << 53) as f64 {
                true => number as u64,
                false => return Err(too_large()),
            }
        }
    };
    T::try_from(number).map_err(|_| too_large())
}

/// `--label`
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not of the form key=value")),
    }
}

/// A count, with suffixes as for sizes.
pub fn count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let Bytes(number) = text.parse().map_err(|error| match error {
        ParseQuantityError::Malformed { text, .. } | ParseQuantityError::Fraction { text, .. } => {
            format!("'{text}' is not a whole number (k, m, g, t and p are binary: 4k = 4096)")
        }
        ParseQuantityError::TooLarge(_) => error.to_string(),
    })?;
    T::try_from(number).map_err(|_| ParseQuantityError::TooLarge(text.to_owned()).to_string())
}

/// One of the words of a type that clap reads too.
pub fn choice<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let values = T::value_variants().iter();
        let values = values.filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        format!("'{text}' is not one of {}", names.join(", "))
    })
}

/// `-a` of mdtest
pub fn backend(text: &str) -> Result<Backend, String> {
    match text.to_ascii_uppercase().as_str() {
        "POSIX" => Ok(Backend::Posix),
        "DUMMY" => Ok(Backend::Dummy),
        _ => Err(format!(
            "'{text}' is not one of POSIX, DUMMY: this build measures mounted file systems through \
             POSIX"
        )),
    }
}

/// An integer that fits 32 bits, as C has it.
pub fn signed(text: &str) -> Result<i32, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not an integer between -2147483648 and 2147483647"))
}

/// `--dataPacketType`
pub fn packet(text: &str) -> Result<Packet, String> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "timestamp" => Ok(Packet::Timestamp),
        "o" | "offset" => Ok(Packet::Offset),
        "i" | "incompressible" => Ok(Packet::Incompressible),
        "r" | "random" => Ok(Packet::Random),
        "u" | "unique" => Ok(Packet::Unique),
        _ => Err(format!(
            "'{text}' is not one of t, o, i, r, u (timestamp, offset, incompressible, random, unique)"
        )),
    }
}

/// A path that is not empty.
pub fn path(word: &OsStr) -> Result<PathBuf, String> {
    if word.is_empty() {
        return Err("a name must not be empty".to_owned());
    }
    Ok(PathBuf::from(word))
}

/// Directories, separated by `@`.
pub fn dirs(word: &OsStr) -> Vec<PathBuf> {
    word.as_bytes()
        .split(|byte| *byte == b'@')
        .map(|name| PathBuf::from(OsStr::from_bytes(name)))
        .collect()
}

/// Parser of options that name a directory. An empty name is refused: it comes from a variable
/// that a script never set.
pub fn directory() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| match name.is_empty() {
        true => Err("the name is empty (an unset variable?)"),
        false => Ok(PathBuf::from(name)),
    })
}

/// `--trace-format`; `None`: as each trace says.
pub fn trace_format() -> impl TypedValueParser<Value = Option<Format>> {
    let auto = PossibleValue::new("auto").help("Detected from the first lines of each trace");
    let all = Format::ALL.map(|(name, _, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(std::iter::once(auto).chain(all)).map(|name| {
        let mut all = Format::ALL.into_iter();
        all.find(|(known, ..)| *known == name)
            .map(|(_, format, _)| format)
    })
}

/// Output of `--version`.
pub fn version() -> String {
    concat!("rbench ", env!("CARGO_PKG_VERSION"), "\n").to_owned()
}

/// `-size` of find(1).
pub fn size_test(text: &str) -> Result<SizeTest, String> {
    let (than, rest) = match text.as_bytes().first() {
        Some(b'+') => (Than::More, &text[1..]),
        Some(b'-') => (Than::Less, &text[1..]),
        _ => (Than::Exactly, text),
    };
    let units = [
        ('c', 1),
        ('w', 2),
        ('b', 512),
        ('k', 1 << 10),
        ('M', 1 << 20),
        ('G', 1 << 30),
    ];
    let known = |(letter, unit): (char, u64)| Some((rest.strip_suffix(letter)?, unit));
    let (digits, unit) = units.into_iter().find_map(known).unwrap_or((rest, 512));
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse() {
        Ok(units) if plain => Ok(SizeTest { than, units, unit }),
        _ => Err(format!(
            "'{text}' is not a size as in find: 3901c, +10k, -1M"
        )),
    }
}
