//! Counts read from a result file or a message, small enough to be added up.

use serde::{Deserialize, Deserializer, de};

/// Largest amount that is read: sums of many stay below 2^64.
const AMOUNT_MAX: u64 = 1 << 56;
/// Largest sum of times that is read, ns: 146 years.
const TIMES_MAX: u64 = 1 << 62;

/// Reads a count; fails above `AMOUNT_MAX`.
///
/// # Errors
/// Those of the deserializer.
pub fn amount<'de, T: From<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    up_to(AMOUNT_MAX, deserializer)
}

/// Reads a time that is the sum over workers; fails above `TIMES_MAX`.
///
/// # Errors
/// Those of the deserializer.
pub fn times<'de, T: From<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    up_to(TIMES_MAX, deserializer)
}

fn up_to<'de, T: From<u64>, D: Deserializer<'de>>(most: u64, input: D) -> Result<T, D::Error> {
    match u64::deserialize(input)? {
        n if n <= most => Ok(T::from(n)),
        n => Err(de::Error::custom(format_args!("{n} is out of range"))),
    }
}

/// Reads several counts.
///
/// # Errors
/// Those of the deserializer.
pub fn amounts<'de, const N: usize, D>(deserializer: D) -> Result<[u64; N], D::Error>
where
    [u64; N]: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let all = <[u64; N]>::deserialize(deserializer)?;
    match all.iter().find(|n| **n > AMOUNT_MAX) {
        None => Ok(all),
        Some(n) => Err(de::Error::custom(format_args!("{n} is out of range"))),
    }
}
