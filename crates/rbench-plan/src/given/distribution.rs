//! Distributions of random offsets, as fio writes them.

use crate::jobs::Distribution;

use super::Given;

impl Given<'_> {
    /// `zipf:1.1` and the like.
    pub fn distribution(self) -> Result<Distribution, String> {
        let (word, rest) = match self.text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (self.text, None),
        };
        let (number, centre) = match rest.and_then(|rest| rest.split_once(':')) {
            Some((number, centre)) => (Some(number), Some(centre)),
            None => (rest, None),
        };
        let number = |default: Option<f64>| match (number, default) {
            (Some(text), _) => text
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite() && (*value > 0.0 || default == Some(0.0)))
                .ok_or_else(|| format!("'{text}' is not a number above 0")),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(format!("'{word}' needs a number: {word}:N")),
        };
        let skewed = match (word, rest) {
            ("random", None) => return Ok(Distribution::Uniform),
            ("zipf", _) => match number(Some(1.1))? {
                1.0 => return Err("theta of zipf must not be 1".to_owned()),
                theta => Distribution::Zipf(theta),
            },
            ("pareto", _) => match number(Some(0.2))? {
                power if power < 1.0 => Distribution::Pareto(power),
                power => return Err(format!("power {power} of pareto must be less than 1")),
            },
            ("normal", _) => Distribution::Normal(deviation(number(Some(0.0))?)?),
            ("zoned", Some(zones)) => return zoned(zones).map(Distribution::Zoned),
            ("zoned", None) => return Err("zones are missing: zoned:60/10:40/90".to_owned()),
            ("zoned_abs", Some(zones)) => {
                return self
                    .zoned_bytes(zones)
                    .map(|zones| Distribution::ZonedBytes(zones.into()));
            }
            ("sequence", Some(blocks)) => return self.sequence(blocks),
            ("zoned_abs" | "sequence", None) => {
                return Err(format!(
                    "'{word}' needs values, such as zoned_abs:60/1g:40/9g or sequence:2,0,1"
                ));
            }
            _ => {
                return Err(format!(
                    "'{}' is not one of random, zipf:THETA, pareto:POWER, normal:DEVIATION, \
                     zoned:ACCESSES/SPACE:..., zoned_abs:ACCESSES/SIZE:..., sequence:BLOCK,...",
                    self.text
                ));
            }
        };
        match centre.map(str::parse::<f64>) {
            None => Ok(skewed),
            Some(Ok(at)) if (0.0..=1.0).contains(&at) => {
                Ok(Distribution::Centred(Box::new(skewed), at))
            }
            Some(_) => Err(format!(
                "the centre in '{}' is not between 0 and 1",
                self.text
            )),
        }
    }

    /// `60/1g:40/9g`: percentages of accesses, 100 in all, and bytes.
    fn zoned_bytes(self, text: &str) -> Result<Vec<(f64, u64)>, String> {
        let wrong = |zone: &str| format!("'{zone}' is not a zone: ACCESSES/SIZE");
        let zone = |zone: &str| {
            let (accesses, bytes) = zone.split_once('/').ok_or_else(|| wrong(zone))?;
            let share: f64 = accesses.parse().map_err(|_| wrong(zone))?;
            Ok((share, self.part(bytes).count(1)?))
        };
        let zones: Vec<(f64, u64)> = text.split(':').map(zone).collect::<Result<_, String>>()?;
        let sum: f64 = zones.iter().map(|(share, _)| share).sum();
        let sound = zones.iter().all(|(share, _)| (0.0..=100.0).contains(share));
        if !sound || (sum - 100.0).abs() > 0.000_001 {
            return Err(format!(
                "the percentages of accesses add up to {sum}, not to 100"
            ));
        }
        Ok(zones)
    }

    /// `2,0,1`: numbers of blocks.
    fn sequence(self, text: &str) -> Result<Distribution, String> {
        let blocks = text.split(',').map(|block| self.part(block).number());
        blocks
            .collect::<Result<_, String>>()
            .map(Distribution::Sequence)
    }
}

/// The deviation of `normal`, per cent of the file.
fn deviation(percent: f64) -> Result<f64, String> {
    /// fio's own without one: it takes the mean of 12 numbers that are spread evenly.
    const OWN: f64 = 100.0 / 12.0;
    match percent {
        0.0 => Ok(OWN),
        0.0..100.0 => Ok(percent),
        _ => Err(format!(
            "the deviation {percent} is not at least 0 and below 100"
        )),
    }
}

/// `60/10:40/90`: percentages of accesses and of space, 100 each in all; those
/// left out share the rest equally.
fn zoned(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let number = |text: &str| match text {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(value) if (0.0..=100.0).contains(&value) => Ok(Some(value)),
            _ => Err(format!("'{text}' is not a percentage")),
        },
    };
    let zones: Vec<(Option<f64>, Option<f64>)> = text
        .split(':')
        .map(|zone| {
            let (accesses, space) = zone.split_once('/').unwrap_or((zone, ""));
            Ok((number(accesses)?, number(space)?))
        })
        .collect::<Result<_, String>>()?;
    let fill = |what: &str, values: Vec<Option<f64>>| {
        let sum: f64 = values.iter().flatten().sum();
        let open = values.iter().filter(|value| value.is_none()).count();
        if sum > 100.000_001 || (open == 0 && sum < 99.999_999) {
            return Err(format!(
                "the percentages of {what} add up to {sum}, not to 100"
            ));
        }
        let rest = (100.0 - sum).max(0.0) / open.max(1) as f64;
        Ok(values
            .into_iter()
            .map(|value| value.unwrap_or(rest))
            .collect::<Vec<f64>>())
    };
    let accesses = fill("accesses", zones.iter().map(|zone| zone.0).collect())?;
    let space = fill("space", zones.iter().map(|zone| zone.1).collect())?;
    Ok(accesses.into_iter().zip(space).collect())
}
