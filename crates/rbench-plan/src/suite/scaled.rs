//! Scaled quantities.

use rbench_core::{Bytes, Nanos};

/// Unit of a quantity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Number,
    Bytes,
    Milliseconds,
}

/// Milliseconds of a second.
const SECOND: u64 = 1000;

/// Scales `N` or `N:LEAST` by `scale` (above 0, at most 1). The result is a multiple of LEAST,
/// and at least LEAST; times are whole seconds unless LEAST is not.
///
/// # Errors
/// A clause that names the text that is not a quantity.
pub fn part(text: &str, scale: f64) -> Result<String, String> {
    let (full, least) = match text.split_once(':') {
        Some((full, least)) => (full, Some(least)),
        None => (text, None),
    };
    let (full, unit) = quantity(full)?;
    let least = match least {
        Some(least) => match quantity(least)? {
            (least, of) if of == unit && least > 0 && least <= full => least,
            (low, of) if of == unit && low > full => {
                let (full, least) = text.split_once(':').unwrap_or_default();
                return Err(format!("{full} is less than its minimum, {least}"));
            }
            _ => {
                return Err(format!(
                    "the minimum in {{{text}}} is not a value of the same kind, from 1 to the full value"
                ));
            }
        },
        None if unit == Unit::Milliseconds => SECOND.min(full),
        None => 1.min(full),
    };
    let value = match scale {
        1.0 => full,
        _ => {
            let steps = (full as f64 * scale / least.max(1) as f64).round() as u64;
            (steps.max(1) * least).min(full)
        }
    };
    Ok(match unit {
        Unit::Milliseconds if !value.is_multiple_of(SECOND) => format!("{value}ms"),
        Unit::Milliseconds => (value / SECOND).to_string(),
        Unit::Number => value.to_string(),
        Unit::Bytes => short(value),
    })
}

/// Reads a number, a size with its suffix, or a time with its unit (in ms).
fn quantity(text: &str) -> Result<(u64, Unit), String> {
    let failed =
        || format!("'{text}' is neither a number, a size nor a whole number of milliseconds");
    if let Ok(number) = text.parse::<u64>() {
        return Ok((number, Unit::Number));
    }
    if let Ok(bytes) = text.parse::<Bytes>()
        && text.starts_with(|c: char| c.is_ascii_digit())
    {
        // `5m` is a size; minutes must be given in seconds.
        return Ok((bytes.0, Unit::Bytes));
    }
    match text.parse::<Nanos>() {
        Ok(time) if time.0.is_multiple_of(1_000_000) => {
            Ok((time.0 / 1_000_000, Unit::Milliseconds))
        }
        _ => Err(failed()),
    }
}

/// Formats bytes with the largest suffix that leaves a whole number: binary in every tool.
fn short(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
    let fits = |(unit, _): &&(u64, &str)| bytes > 0 && bytes.is_multiple_of(*unit);
    match UNITS.iter().find(fits) {
        Some((unit, suffix)) => format!("{}{suffix}", bytes / unit),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_multiple_of_the_least_and_never_less() {
        let check = |text: &str, scale: f64, expect: &str| {
            assert_eq!(part(text, scale).as_deref(), Ok(expect), "{text} {scale}");
        };
        check("1000", 1.0, "1000");
        check("1000", 0.01, "10");
        check("1000:50", 0.12, "100");
        check("1000:50", 1e-9, "50");
        check("4g:4m", 0.01, "40m");
        check("10g", 1.0, "10g");
        check("3901", 0.5, "1951");
        check("120s", 0.01, "1");
        check("300s:10s", 0.5, "150");
        check("4s:50ms", 1.0, "4");
        check("4s:50ms", 0.02, "100ms");
        check("4s:50ms", 1e-9, "50ms");
        check("4s:500ms", 0.5, "2");
        check("0", 0.5, "0");
    }

    #[test]
    fn what_is_no_quantity_is_named() {
        for text in ["", "x", "4g:4", "4m:4g", "1.5us", "5:0"] {
            assert!(part(text, 0.5).is_err(), "{text}");
        }
    }
}
