//! Properties of sizes and times, of the native commands and of fio.

use rbench_cli::Invocation;
use rbench_core::{Bytes, Nanos};
use rbench_plan::spec::Workload;
use rbench_plan::spec::fio::{Extent, Settings};

use crate::refusal;

/// Tests `input` as a size and as a time: a refusal, or the value of its digits and unit.
pub fn quantities(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    native_size(text);
    native_time(text);
    fio_size(text);
    fio_time(text);
}

/// Splits `text` into a decimal number and its unit, if it has this form.
fn whole(text: &str) -> Option<(u128, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}

/// The power of 1024 that a binary unit means.
fn binary(unit: &str) -> Option<u128> {
    let unit = unit.to_ascii_lowercase();
    let letter = unit.strip_suffix('b').unwrap_or(&unit);
    let letter = letter.strip_suffix('i').unwrap_or(letter);
    let power = match letter {
        "" if !unit.contains('i') => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(1 << (10 * power))
}

fn native_size(text: &str) {
    let read = text.parse::<Bytes>();
    match &read {
        Ok(size) => {
            assert_eq!(size.to_string().parse(), Ok(*size), "printed and read");
            let (number, unit) = whole(text.trim()).expect("a size has digits");
            let scale = binary(unit).expect("a size has a unit that is known, or none");
            // "1i" and "1ki" are not sizes, and nothing else may be lost.
            assert_eq!(u128::from(size.0), number * scale, "{text:?}");
        }
        Err(why) => refusal::is_plain(&why.to_string()),
    }
}

/// Nanoseconds per unit of the native commands.
fn native_unit(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn native_time(text: &str) {
    let read = text.parse::<Nanos>();
    match &read {
        Ok(time) => {
            assert_eq!(format!("{}ns", time.0).parse(), Ok(*time));
            if let Some((number, unit)) = whole(text.trim())
                && let Some(scale) = native_unit(unit)
            {
                assert_eq!(u128::from(time.0), number * scale, "{text:?}");
            }
        }
        Err(why) => {
            refusal::is_plain(&why.to_string());
            if let Some((number, unit)) = whole(text.trim())
                && let Some(scale) = native_unit(unit)
            {
                let exact = number.checked_mul(scale);
                assert!(exact.is_none_or(|ns| ns > u128::from(u64::MAX)), "{text:?}");
            }
        }
    }
}

/// Settings of a fio job when `option` has the value `text`.
fn fio(option: &str, text: &str) -> Result<Settings, String> {
    let words = ["rbench", "fio", "--name=a", &format!("--{option}={text}")];
    let argv = words.map(Into::into);
    match rbench_cli::parse(&argv, None) {
        Ok(Invocation::Run(spec, _)) => match spec.workload {
            Workload::Fio(fio) => Ok(fio.jobs[0].settings.clone()),
            other => panic!("fio became {other:?}"),
        },
        Ok(other) => panic!("fio became {other:?}"),
        Err(stop) => {
            refusal::of_line(&stop);
            Err(stop.text)
        }
    }
}

/// Returns true for plain units. Fractions, terms and the suffixes that fio ignores have tests of
/// their own.
fn is_plain(unit: &str) -> bool {
    let unit = unit.to_ascii_lowercase();
    let rest = unit.trim_start_matches(['k', 'm', 'g', 't', 'p']);
    unit.len() - rest.len() <= 1 && ["", "b", "i", "ib"].contains(&rest)
}

fn fio_size(text: &str) {
    let Ok(settings) = fio("io_size", text) else {
        return;
    };
    let Some(Extent::Bytes(size)) = settings.io_size else {
        return;
    };
    let again = fio("io_size", &size.to_string()).map(|s| s.io_size);
    assert_eq!(again, Ok(Some(Extent::Bytes(size))));
    if let Some((number, unit)) = whole(text.trim()).filter(|(_, unit)| is_plain(unit)) {
        let unit = unit.to_ascii_lowercase();
        // "ib" makes it decimal; "i" alone changes nothing.
        let step: u128 = if unit.contains("ib") { 1000 } else { 1024 };
        let power = "kmgtp".find(|c| unit.starts_with(c)).map_or(0, |at| at + 1);
        assert_eq!(
            u128::from(size),
            number * step.pow(power as u32),
            "{text:?}"
        );
    }
}

fn fio_time(text: &str) {
    let Ok(settings) = fio("runtime", text) else {
        return;
    };
    let time = settings.plan.pace.runtime.expect("it was given");
    let again = fio("runtime", &format!("{}ns", time.0)).map(|s| s.plan.pace.runtime);
    assert_eq!(again, Ok(Some(time)));
}
