//! Quantities as types, with parsing and formatting for people.
//!
//! Sizes are binary (`4k` = 4096 bytes) like in mdtest, fio and elbencho. Times take
//! a unit (`500us`, `2ms`, `10s`, `5m`, `1h`); a bare number is seconds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plain;

/// The number of a rank in the world, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rank(pub u32);

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A number of bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

/// A span of time, or an instant of a [`crate::Clock`], in nanoseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Nanos(pub u64);

impl Nanos {
    /// One microsecond.
    pub const MICROSECOND: Nanos = Nanos(1_000);
    /// One millisecond.
    pub const MILLISECOND: Nanos = Nanos(1_000_000);
    /// One second.
    pub const SECOND: Nanos = Nanos(1_000_000_000);

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - earlier`, or zero when `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Times that are seconds in files, and exact in messages.
pub trait InSeconds {
    /// The type of the values in seconds.
    type Seconds: Serialize + DeserializeOwned;

    /// In seconds.
    fn in_seconds(&self) -> Self::Seconds;

    /// From seconds.
    fn of_seconds(seconds: Self::Seconds) -> Self;
}

impl InSeconds for Nanos {
    type Seconds = f64;

    fn in_seconds(&self) -> f64 {
        self.as_secs_f64()
    }

    fn of_seconds(seconds: f64) -> Nanos {
        Nanos((seconds * 1e9).round() as u64)
    }
}

/// For `#[serde(with)]`: times, as [`InSeconds`] has them.
pub mod seconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::InSeconds;

    /// Writes them.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: InSeconds + Serialize, S: Serializer>(
        times: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => times.in_seconds().serialize(serializer),
            false => times.serialize(serializer),
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, T: InSeconds + Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        match deserializer.is_human_readable() {
            true => T::Seconds::deserialize(deserializer).map(T::of_seconds),
            false => T::deserialize(deserializer),
        }
    }
}

impl From<u64> for Nanos {
    fn from(ns: u64) -> Nanos {
        Nanos(ns)
    }
}

/// In a file it is a number.
macro_rules! schema_of_number {
    ($type:ty, $number:ty) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                <$number>::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$number>::json_schema(generator)
            }
        }
    };
}

schema_of_number!(Nanos, u64);
schema_of_number!(Rank, u32);

impl From<Nanos> for Duration {
    fn from(ns: Nanos) -> Duration {
        Duration::from_nanos(ns.0)
    }
}

/// The reason why a size or a time could not be read. Its text is a clause that can
/// follow the name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not of the form number + unit.
    #[error("'{text}' is not {expected}")]
    Malformed {
        /// The given text.
        text: String,
        /// The expected form, with an example.
        expected: &'static str,
    },
    /// A fraction, with the size to write instead.
    #[error("'{text}' is not a whole number: write {instead}")]
    Fraction {
        /// The given text.
        text: String,
        /// The nearest size in whole numbers of a smaller unit.
        instead: String,
    },
    /// More than 64 bits.
    #[error("'{0}' is too large")]
    TooLarge(String),
}

const SIZE_FORM: &str = "a size (a whole number with k, m, g, t or p, binary: 4k = 4096 bytes)";
const TIME_FORM: &str = "a time (a number with ns, us, ms, s, m or h; a bare number is seconds)";

fn too_large(text: &str) -> ParseQuantityError {
    ParseQuantityError::TooLarge(plain(text).into_owned())
}

fn malformed(text: &str, expected: &'static str) -> ParseQuantityError {
    ParseQuantityError::Malformed {
        text: plain(text).into_owned(),
        expected,
    }
}

/// Says how to write `1.5g`; `None` if it is not a fraction of a unit.
fn fraction(text: &str, number: &str, unit: &str) -> Option<ParseQuantityError> {
    const UNITS: [&str; 6] = ["", "k", "m", "g", "t", "p"];
    let value: f64 = number.parse().ok()?;
    let lower = unit.to_ascii_lowercase();
    let letter = lower.strip_suffix("ib").or(lower.strip_suffix('b'));
    let power = UNITS.iter().position(|u| *u == letter.unwrap_or(&lower))?;
    let smaller = UNITS.get(power.checked_sub(1)?)?;
    let whole = (value * 1024.0).round();
    (whole >= 1.0).then(|| ParseQuantityError::Fraction {
        text: plain(text).into_owned(),
        instead: format!("{whole}{smaller}"),
    })
}

/// Splits `4.5ms` into `4.5` and `ms`.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    /// Reads `4096`, `4k`, `4K`, `4KiB`, `4kb`: every suffix is binary.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let (number, unit) = split_unit(trimmed);
        let number: u64 = match number.parse() {
            Ok(n) => n,
            Err(_) if number.len() > 19 && number.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(too_large(text));
            }
            Err(_) => {
                return Err(fraction(text, number, unit).unwrap_or(malformed(text, SIZE_FORM)));
            }
        };
        let lower = unit.to_ascii_lowercase();
        let power = match lower.as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 1,
            "m" | "mb" | "mib" => 2,
            "g" | "gb" | "gib" => 3,
            "t" | "tb" | "tib" => 4,
            "p" | "pb" | "pib" => 5,
            _ => return Err(malformed(text, SIZE_FORM)),
        };
        number
            .checked_mul(1_u64 << (10 * power))
            .map(Bytes)
            .ok_or_else(|| too_large(text))
    }
}

impl FromStr for Nanos {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let (number, unit) = split_unit(trimmed);
        let scale: u64 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "" | "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(malformed(text, TIME_FORM)),
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole
                .checked_mul(scale)
                .map(Nanos)
                .ok_or_else(|| too_large(text));
        }
        let value: f64 = number.parse().map_err(|_| malformed(text, TIME_FORM))?;
        let ns = value * scale as f64;
        if ns >= u64::MAX as f64 {
            return Err(too_large(text));
        }
        Ok(Nanos(ns.round() as u64))
    }
}

impl fmt::Display for Bytes {
    /// Writes the shortest exact form: `4KiB`, `4MiB`, `47008B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0;
        let mut unit = 0;
        while value != 0 && value.is_multiple_of(1024) && unit < UNITS.len() - 1 {
            value /= 1024;
            unit += 1;
        }
        write!(f, "{value}{}", UNITS[unit])
    }
}

impl fmt::Display for Nanos {
    /// Writes three significant digits with a unit: `950 ns`, `12.3 us`, `4.56 ms`,
    /// `78.9 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&human_nanos(self.0 as f64))
    }
}

/// Formats a time in ns for people: three significant digits and a unit.
pub fn human_nanos(ns: f64) -> String {
    // The bound below each unit leaves room for rounding: 999.96 us become 1.00 ms.
    const SCALES: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    for (scale, unit) in SCALES {
        if ns >= scale * 0.9995 {
            return format!("{} {unit}", three_digits(ns / scale));
        }
    }
    format!("{} ns", ns.round())
}

/// Formats a bandwidth in bytes per second for people, in binary units: `1.23 GiB/s`.
pub fn human_bandwidth(bytes_per_s: f64) -> String {
    const SCALES: [(f64, &str); 4] = [
        (1_099_511_627_776.0, "TiB/s"),
        (1_073_741_824.0, "GiB/s"),
        (1_048_576.0, "MiB/s"),
        (1024.0, "KiB/s"),
    ];
    for (scale, unit) in SCALES {
        if bytes_per_s >= scale * 0.9995 {
            return format!("{} {unit}", three_digits(bytes_per_s / scale));
        }
    }
    format!("{} B/s", three_digits(bytes_per_s))
}

/// Formats a size in bytes for people, in binary units: `1.23 GiB`.
pub fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ => human_bandwidth(bytes as f64).replace("/s", ""),
    }
}

/// Formats a number with its noun: `1 cell`, `12,345 cells`, `2 entries`. The plural is regular.
pub fn counted(n: u64, noun: &str) -> String {
    let stem = noun.strip_suffix('y');
    match (n, stem) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{} {stem}ies", human_count(n)),
        (_, None) => format!("{} {noun}s", human_count(n)),
    }
}

/// Formats a whole number with a comma every three digits: `12,345,678`.
pub fn human_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats a rate per second for people: whole numbers with commas from 100 on, three
/// digits below.
pub fn human_rate(per_s: f64) -> String {
    if per_s >= 99.95 {
        human_count(per_s.round() as u64)
    } else {
        three_digits(per_s)
    }
}

fn three_digits(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Formats whole seconds: `59 s`, `3:07`, `2:05:09`.
pub fn clock(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m}:{s:02}"),
        (h, m, s) => format!("{h}:{m:02}:{s:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_whatever_their_suffix() {
        let check = |text: &str, expect: u64| assert_eq!(text.parse(), Ok(Bytes(expect)), "{text}");
        check("0", 0);
        check("4096", 4096);
        check("4k", 4096);
        check("4K", 4096);
        check("4KiB", 4096);
        check("1m", 1 << 20);
        check("2g", 2 << 30);
        check("3t", 3 << 40);
        check("1P", 1 << 50);
    }

    #[test]
    fn bad_sizes_say_what_a_size_is() {
        for text in ["", "k", "4x", "-1", "1.5m", "99999999p", "1 k"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for (text, instead) in [("1.5g", "1536m"), ("0.5KiB", "512"), ("1.25T", "1280g")] {
            let said = text.parse::<Bytes>().map_err(|e| e.to_string());
            let expect = format!("'{text}' is not a whole number: write {instead}");
            assert_eq!(said, Err(expect));
        }
        let message = "4x".parse::<Bytes>().map_err(|e| e.to_string());
        assert_eq!(
            message.map_err(|m| m.starts_with("'4x' is not a size")),
            Err(true)
        );
    }

    #[test]
    fn times_take_a_unit_and_bare_numbers_are_seconds() {
        let check = |text: &str, expect: u64| assert_eq!(text.parse(), Ok(Nanos(expect)), "{text}");
        check("2ms", 2_000_000);
        check("500us", 500_000);
        check("10", 10_000_000_000);
        check("1.5s", 1_500_000_000);
        check("0.25ms", 250_000);
        check("5m", 300_000_000_000);
        check("1h", 3_600_000_000_000);
        for text in ["", "ms", "5 parsecs", "-1s", "1e400"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn people_read_three_digits_and_a_unit() {
        assert_eq!([59, 187, 7509].map(clock), ["59 s", "3:07", "2:05:09"]);
        let check = |ns: f64, expect: &str| assert_eq!(human_nanos(ns), expect);
        check(0.0, "0 ns");
        check(999.0, "999 ns");
        check(999.96, "1.00 us");
        check(12_345.0, "12.3 us");
        check(999_960.0, "1.00 ms");
        check(4_560_000.0, "4.56 ms");
        check(78_900_000_000.0, "78.9 s");
        assert_eq!(human_bandwidth(447.0 * 1_048_576.0), "447 MiB/s");
        assert_eq!(human_bandwidth(0.0), "0.00 B/s");
        assert_eq!(human_count(1_234_567), "1,234,567");
        assert_eq!(human_count(999), "999");
        let cells = [0, 1, 1234].map(|n| counted(n, "cell"));
        assert_eq!(cells, ["0 cells", "1 cell", "1,234 cells"]);
        assert_eq!(
            [1, 2].map(|n| counted(n, "entry")),
            ["1 entry", "2 entries"]
        );
        assert_eq!(human_rate(12.345), "12.3");
        assert_eq!(human_rate(99_999.6), "100,000");
        assert_eq!(Bytes(4 << 20).to_string(), "4MiB");
        assert_eq!(Bytes(47008).to_string(), "47008B");
        assert_eq!(Bytes(0).to_string(), "0B");
    }
}
