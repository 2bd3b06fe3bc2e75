//! `rbench knee`: the highest rate at which an objective holds.

use std::ffi::OsString;

use clap::Args as ClapArgs;
use rbench_core::Nanos;
use rbench_plan::arrival::Arrival;
use rbench_plan::knee::{Asked, Figure, Limit, Slo};
use rbench_plan::values;

use super::SeriesOptions;
use crate::Invocation;
use crate::series::{Course, Knee};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Operations of all ranks together start at a target rate, however slow the target is, and \
    response times count from the intended start. The rate doubles until the objective fails; then the gap \
    between the last rates is halved repeatedly. A window three times as long confirms the highest rate that \
    held. A rate also fails if more than 1% of its operations could not be started. Give enough --threads: an \
    operation that is due waits for a free worker. docs/reference/knee.md has the \
    details.\n\nExamples:\n  mpirun -np 12 --hostfile myhost rbench knee --slo p99=10ms --out knee.json \
    \\\n    -- io --dir /mnt/fs --rw randread --bs 4k --direct --threads 16\n  rbench knee --slo p99=5ms --slo \
    mean=1ms -- meta --dir /mnt/fs --phases file-create --threads 16"
)]
pub struct KneeArgs {
    /// Objective to meet, such as p99=10ms; may be repeated
    ///
    /// FIGURE is mean, max or a percentile (p50, p99, p99.9) of the response time, with the
    /// longest time allowed; or errors, with the share of operations that may fail (0.1%).
    /// Without errors=…, none may fail.
    #[arg(long, required = true, value_name = "FIGURE=LIMIT", value_parser = slo)]
    slo: Vec<Slo>,
    /// Judge only this row of the result, such as randread [default: all]
    #[arg(long, value_name = "NAME")]
    row: Option<String>,
    /// Lowest rate, which is tried first (operations per second) [default: a quarter of
    /// what the workload reaches without a rate]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    from: Option<f64>,
    /// Highest rate to try [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    to: Option<f64>,
    /// Largest gap between the rate that held and the one that did not [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    precision: Option<f64>,
    /// Minimum time of a step (s) [default: 5]
    ///
    /// A step takes longer until 100 operations are above the percentile of --slo: for
    /// p99, 10,000 operations.
    #[arg(long, value_name = "TIME")]
    time: Option<Nanos>,
    /// Gaps between the starts [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    arrival: Option<Arrival>,
    /// Workload: io, meta, mix or fio, with its options except rate and time
    #[arg(last = true, required = true, value_name = "WORKLOAD")]
    words: Vec<OsString>,
    #[command(flatten)]
    pub options: SeriesOptions,
}

impl KneeArgs {
    /// Converts the options into an invocation.
    pub fn invocation(self) -> Invocation {
        self.options.with(Course::Knee(Knee {
            asked: Asked {
                slo: self.slo,
                row: self.row,
                from: self.from,
                to: self.to,
                precision: self.precision,
                time: self.time,
                arrival: self.arrival,
            },
            words: self.words,
        }))
    }
}

/// Reads an objective: `p99=10ms`, `errors=0.1%`
fn slo(text: &str) -> Result<Slo, String> {
    let form = || format!("'{text}' is not of the form p99=10ms, mean=1ms, max=1s or errors=0");
    let no_limit = || "--slo needs FIGURE=LIMIT, for example p99=10ms".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(no_limit)?;
    if name == "errors" {
        return match share(value) {
            Ok(share) if value == "0" || value.ends_with('%') => Ok(Slo::Errors(share)),
            _ => Err(format!(
                "errors takes 0 or a percentage such as 0.1%, not '{value}'"
            )),
        };
    }
    let figure = match name {
        "mean" => Figure::Mean,
        "max" => Figure::Max,
        _ => Figure::Percentile(percentile(name).ok_or_else(form)?),
    };
    let most = values::time(value)?;
    if most == Nanos(0) {
        return Err(format!("the time in {name}={value} must be more than 0"));
    }
    // Elsewhere a bare number is in seconds. Here most would mean milliseconds.
    if value.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(format!(
            "--slo {text} has no unit: write {value}ms or {value}s"
        ));
    }
    Ok(Slo::Time(Limit { figure, most }))
}

/// Reads a percentile: `p50`, `p99.9`; `p999` is `p99.9`.
fn percentile(name: &str) -> Option<f64> {
    let digits = name.strip_prefix('p')?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    let percent: f64 = match digits.get(..2) {
        Some(first) if plain && digits.len() > 2 && first.starts_with('9') => {
            format!("{first}.{}", &digits[2..]).parse().ok()?
        }
        _ if digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') => digits.parse().ok()?,
        _ => return None,
    };
    (percent > 0.0 && percent < 100.0).then_some(percent)
}

/// Reads a percentage, with or without its sign, as a fraction.
fn share(text: &str) -> Result<f64, String> {
    match values::share(text)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("'{text}' must be from 0% to 100%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_names_a_figure_and_its_limit() {
        let time = |figure, most| {
            Ok(Slo::Time(Limit {
                figure,
                most: Nanos(most),
            }))
        };
        assert_eq!(slo("p99=10ms"), time(Figure::Percentile(99.0), 10_000_000));
        assert_eq!(
            slo("p999=1s"),
            time(Figure::Percentile(99.9), 1_000_000_000)
        );
        assert_eq!(slo("p99.9=1s"), slo("p999=1s"));
        assert_eq!(slo("mean=500us"), time(Figure::Mean, 500_000));
        assert_eq!(slo("max=2s"), time(Figure::Max, 2_000_000_000));
        let no_unit = "--slo p99=10 has no unit: write 10ms or 10s";
        assert_eq!(slo("p99=10"), Err(no_unit.to_owned()));
        let no_limit = "--slo needs FIGURE=LIMIT, for example p99=10ms";
        assert_eq!(slo("p99"), Err(no_limit.to_owned()));
        assert_eq!(slo("errors=0"), Ok(Slo::Errors(0.0)));
        assert_eq!(slo("errors=50%"), Ok(Slo::Errors(0.5)));
        let words = "p99 p100=1ms p0=1ms p=1ms q99=1ms p99=0 p99=fast errors=5 errors=101% p9x=1ms p9\u{e9}=1ms";
        for wrong in words.split(' ') {
            assert!(slo(wrong).is_err(), "{wrong}");
        }
    }
}
