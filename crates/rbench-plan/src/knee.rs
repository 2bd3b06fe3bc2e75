//! The search of `rbench knee`: the highest rate at which an objective holds. The next rate and
//! its duration depend only on the steps until then.

use std::ffi::OsString;

use clap::Args;
use rbench_core::Nanos;
use rbench_core::random::key;

use crate::arrival::{Arrival, check_rate};
use crate::refusal::PlanError;
use crate::series::{has_option, named, set_option};
use crate::values;

/// Operations that must lie above a percentile to make it reliable.
const ABOVE_PERCENTILE: f64 = 100.0;
/// Rows with a smaller share of the operations do not make the window longer than this share does.
const LEAST_SHARE: f64 = 0.05;
/// A window is long enough for a rarer row if it has at least this part of the length that the row
/// needs.
const ENOUGH: f64 = 0.8;
/// Operations needed for a mean or a maximum.
const OPERATIONS: f64 = 1000.0;
/// The default precision.
const PRECISION: f64 = 0.05;
/// The default for the least time of a step.
const LEAST_TIME: Nanos = Nanos(5_000_000_000);
/// Factor for the length of a confirming window.
const CONFIRMATION: f64 = 3.0;
/// Most windows that are tried for a confirmation, at decreasing rates.
const CONFIRMATIONS: usize = 6;
/// The first rate, as a part of the rate that one operation after the other reaches.
const FIRST_PART: f64 = 0.25;
/// The limit that an estimate assumes, as a multiple of the rate that one operation after the other
/// reaches.
const EXPECTED_LIMIT: f64 = 1.3;
/// The limit that an estimate assumes if no rate has held, as a part of the lowest that was tried.
const EXPECTED_BELOW: f64 = 0.75;
/// The rate that an estimate assumes before the first step: at it, no step needs more than its
/// least time.
const FAST: f64 = 1e6;
/// Divisor of the first rate for the default of the lowest rate.
const LOWEST_PART: f64 = 1024.0;

/// A statistic of the response times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Arithmetic mean.
    Mean,
    /// The longest time.
    Max,
    /// The time that this percentage of the operations does not exceed; above 0, below 100.
    Percentile(f64),
}

impl Figure {
    /// The name, such as `p99.9`.
    pub fn name(self) -> String {
        match self {
            Figure::Mean => "mean".to_owned(),
            Figure::Max => "max".to_owned(),
            Figure::Percentile(percent) => format!("p{percent}"),
        }
    }

    /// Number of operations that makes it reliable.
    fn operations(self) -> f64 {
        match self {
            Figure::Mean | Figure::Max => OPERATIONS,
            Figure::Percentile(percent) => ABOVE_PERCENTILE / (1.0 - percent / 100.0),
        }
    }
}

/// A limit of response times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The statistic.
    pub figure: Figure,
    /// The longest permitted time.
    pub most: Nanos,
}

/// Objective of the search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Objective {
    /// Limits of response times; each figure once.
    pub limits: Vec<Limit>,
    /// Permitted share of failed operations, 0 to 1.
    pub errors: f64,
    /// The row to which it applies; `None`: all.
    pub row: Option<String>,
}

impl Objective {
    /// Number of operations that makes a step reliable.
    fn operations(&self) -> f64 {
        let of_limits = self.limits.iter().map(|limit| limit.figure.operations());
        let of_errors = match self.errors > 0.0 {
            true => ABOVE_PERCENTILE / self.errors,
            false => ABOVE_PERCENTILE,
        };
        of_limits.fold(of_errors, f64::max)
    }
}

/// One `--slo`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Slo {
    /// A limit of response times.
    Time(Limit),
    /// Permitted share of failed operations, 0 to 1.
    Errors(f64),
}

/// The options as typed; a missing option is `None`.
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Asked {
    /// Objective to meet, such as p99=10ms; may be repeated
    ///
    /// FIGURE is mean, max or a percentile (p50, p99, p99.9) of the response time, with the
    /// longest time allowed; or errors, with the share of operations that may fail (0.1%).
    /// Without errors=…, none may fail.
    #[arg(long, required = true, value_name = "FIGURE=LIMIT", value_parser = slo)]
    pub slo: Vec<Slo>,
    /// Judge only this row of the result, such as randread [default: all]
    #[arg(long, value_name = "NAME")]
    pub row: Option<String>,
    /// Lowest rate, which is tried first (operations per second) [default: a quarter of
    /// what the workload reaches without a rate]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub from: Option<f64>,
    /// Highest rate to try [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub to: Option<f64>,
    /// Largest gap between the rate that held and the one that did not [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub precision: Option<f64>,
    /// Minimum time of a step (s) [default: 5]
    ///
    /// A step takes longer until 100 operations are above the percentile of --slo: for
    /// p99, 10,000 operations.
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,
    /// Gaps between the starts [default: uniform]
    #[arg(long, value_enum, value_name = "HOW")]
    pub arrival: Option<Arrival>,
}

impl Asked {
    /// Fills in the defaults.
    ///
    /// # Errors
    /// A sentence that names the option at fault.
    pub fn resolve(&self) -> Result<Search, PlanError> {
        let mut objective = Objective {
            row: self.row.clone(),
            ..Objective::default()
        };
        let mut errors = None;
        for slo in &self.slo {
            match *slo {
                Slo::Errors(_) if errors.is_some() => refuse!("--slo errors is given twice"),
                Slo::Errors(share) => errors = Some(share),
                Slo::Time(limit) => {
                    let name = limit.figure.name();
                    refuse_if! {
                        objective.limits.iter().any(|l| l.figure == limit.figure) =>
                            "--slo {name} is given twice";
                    }
                    objective.limits.push(limit);
                }
            }
        }
        objective.errors = errors.unwrap_or(0.0);
        for (flag, rate) in [("--from", self.from), ("--to", self.to)] {
            rate.map_or(Ok(()), |rate| check_rate(flag, rate))?;
        }
        if let (Some(from), Some(to)) = (self.from, self.to) {
            refuse_if!(from > to => "--from {from} is more than --to {to}");
        }
        let precision = self.precision.unwrap_or(PRECISION);
        refuse_if! {
            !(0.005..=0.5).contains(&precision) =>
                "--precision {}% is not between 0.5% and 50%", precision * 100.0;
            self.time == Some(Nanos(0)) => "--time must be longer than 0";
        }
        Ok(Search {
            objective,
            from: self.from,
            to: self.to,
            precision,
            time: self.time.unwrap_or(LEAST_TIME),
            arrival: self.arrival.unwrap_or_default(),
        })
    }
}

/// Purpose of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// One operation after the other: finds the order of magnitude of the rate.
    Closed,
    /// Between a rate that holds and one that does not.
    Search,
    /// A longer window at the highest rate that held.
    Confirm,
}

impl Stage {
    /// The name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Closed => "closed",
            Stage::Search => "search",
            Stage::Confirm => "confirm",
        }
    }
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Intended operations per second.
    pub rate: f64,
    /// Its purpose.
    pub stage: Stage,
    /// True if the objective held.
    pub held: bool,
    /// True if it failed so clearly that it need not be repeated.
    pub clearly: bool,
    /// Its duration.
    pub window: Nanos,
    /// Operations of the rarest judged row, as a share of all intended operations; `None`: all, or
    /// too many did not start to tell.
    pub share: Option<f64>,
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Intended operations per second.
    pub rate: f64,
    /// Its purpose.
    pub stage: Stage,
    /// Its duration.
    pub window: Nanos,
}

/// The search, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The objective.
    pub objective: Objective,
    /// `--from`: the lowest rate, which is tried first.
    pub from: Option<f64>,
    /// `--to`: the highest rate.
    pub to: Option<f64>,
    /// Largest distance between a rate that held and one that did not, as a part of the rate.
    pub precision: f64,
    /// The least time of a step.
    pub time: Nanos,
    /// Distribution of the starts.
    pub arrival: Arrival,
}

/// Result of the first step, with one operation after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// Operations per second.
    pub rate: f64,
    /// Rates are multiples of this; 0: any.
    pub grain: f64,
    /// The lowest possible rate; 0: any.
    pub least: f64,
}

/// The expected number of steps and their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Number of steps, without the first one.
    pub steps: usize,
    /// Their time.
    pub time: Nanos,
}

/// The interval of rates that the steps leave.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// The highest rate that held.
    low: Option<f64>,
    /// The lowest rate that did not hold.
    high: Option<f64>,
    /// A rate that failed once, and must be repeated.
    open: Option<f64>,
}

impl Found {
    fn of(tried: &[Tried]) -> Found {
        let mut interval = Found::default();
        let searched = || tried.iter().filter(|one| one.stage == Stage::Search);
        for one in searched() {
            let of_rate = || searched().filter(|other| other.rate == one.rate);
            if of_rate().any(|other| other.held) {
                interval.low = Some(interval.low.map_or(one.rate, |low| low.max(one.rate)));
            } else if of_rate().count() > 1 || one.clearly {
                interval.high = Some(interval.high.map_or(one.rate, |high| high.min(one.rate)));
            } else {
                interval.open = Some(one.rate);
            }
        }
        interval
    }
}

impl Search {
    /// Number of operations that each step needs.
    pub fn operations(&self) -> u64 {
        self.objective.operations().round() as u64
    }

    /// What a search takes at least, before anything is known of the target.
    pub fn expected_least(&self) -> Expected {
        let rate = self.from.map_or(FAST, |from| from / FIRST_PART);
        let reached = Reached {
            rate,
            grain: 0.0,
            least: 0.0,
        };
        self.expected(reached, &[])
    }

    /// What the search takes after these steps, if none held. The limit is a little below their
    /// lowest rate or, without steps, a little above the rate of the first step.
    pub fn expected(&self, reached: Reached, failed: &[Tried]) -> Expected {
        let lowest = failed.iter().map(|one| one.rate).reduce(f64::min);
        let limit = lowest.map_or(EXPECTED_LIMIT * reached.rate, |rate| EXPECTED_BELOW * rate);
        let mut tried = failed.to_vec();
        while let Some(step) = self.next(reached, &tried) {
            tried.push(Tried {
                rate: step.rate,
                stage: step.stage,
                held: step.rate <= limit,
                clearly: false,
                window: step.window,
                share: None,
            });
        }
        let rest = &tried[failed.len()..];
        Expected {
            steps: rest.len(),
            time: Nanos(
                rest.iter()
                    .map(|one| one.window.0)
                    .fold(0, u64::saturating_add),
            ),
        }
    }

    /// The first step: one operation after the other.
    pub fn first(&self) -> Step {
        Step {
            rate: 0.0,
            stage: Stage::Closed,
            window: self.time,
        }
    }

    /// The step after `tried`, which excludes the first one; `None` if the search is complete.
    pub fn next(&self, reached: Reached, tried: &[Tried]) -> Option<Step> {
        let shares = tried.iter().filter_map(|one| one.share);
        let share = shares.fold(1.0, f64::min).max(LEAST_SHARE);
        // Only a step shows how rare a row is. Steps that were too short for it are repeated.
        let long_enough = |one: &&Tried| {
            let needed = self.window(one.rate, one.stage, share).0 as f64;
            !one.held && one.share.is_none() || one.window.0 as f64 >= ENOUGH * needed
        };
        let tried: Vec<Tried> = tried.iter().filter(long_enough).copied().collect();
        let step = self.after(reached, &tried)?;
        Some(Step {
            window: self.window(step.rate, step.stage, share),
            ..step
        })
    }

    fn after(&self, reached: Reached, tried: &[Tried]) -> Option<Step> {
        let confirmed: Vec<&Tried> = tried
            .iter()
            .filter(|one| one.stage == Stage::Confirm)
            .collect();
        if let Some(last) = confirmed.last() {
            return self.below(reached, last, confirmed.len());
        }
        let interval = Found::of(tried);
        if let Some(rate) = interval.open {
            return Some(self.step(rate, Stage::Search));
        }
        let first = self.first_rate(reached);
        let lowest = self.from.unwrap_or(first / LOWEST_PART);
        let next = match (interval.low, interval.high) {
            (None, None) => Some(first),
            (Some(low), None) => {
                let most = self.to.unwrap_or(f64::INFINITY);
                (low < self.even(most, reached)).then(|| (2.0 * low).min(most))
            }
            (None, Some(high)) if high <= self.even(lowest, reached) => return None,
            (None, Some(high)) => Some((high / 2.0).max(lowest)),
            (Some(low), Some(high)) => {
                let apart = high > low * (1.0 + self.precision) && high - low > reached.grain;
                apart.then_some((low + high) / 2.0)
            }
        };
        let next = next.map(|rate| self.even(rate, reached));
        match (next, interval.low) {
            (Some(rate), _) if !tried.iter().any(|one| one.rate == rate) => {
                Some(self.step(rate, Stage::Search))
            }
            // No rate lies between them.
            (_, Some(low)) => Some(self.step(low, Stage::Confirm)),
            (_, None) => None,
        }
    }

    /// A lower rate, after the longer window did not confirm one.
    fn below(&self, reached: Reached, last: &Tried, windows: usize) -> Option<Step> {
        if last.held || windows >= CONFIRMATIONS {
            return None;
        }
        let part = (self.precision * f64::from(1 << (windows - 1))).min(0.5);
        let rate = self.even(last.rate * (1.0 - part), reached);
        let lowest = self.from.unwrap_or(self.first_rate(reached) / LOWEST_PART);
        (rate < last.rate && rate >= lowest).then(|| self.step(rate, Stage::Confirm))
    }

    fn first_rate(&self, reached: Reached) -> f64 {
        let first = self.from.unwrap_or(FIRST_PART * reached.rate);
        self.even(first.min(self.to.unwrap_or(f64::INFINITY)), reached)
    }

    fn step(&self, rate: f64, stage: Stage) -> Step {
        Step {
            rate,
            stage,
            window: self.window(rate, stage, 1.0),
        }
    }

    /// Duration of a step, if the rarest row has this share of the operations.
    fn window(&self, rate: f64, stage: Stage, share: f64) -> Nanos {
        let least = self.objective.operations() / (rate * share);
        let times = match stage {
            Stage::Confirm => CONFIRMATION,
            Stage::Closed | Stage::Search => 1.0,
        };
        let seconds = least.max(self.time.as_secs_f64()) * times;
        // Whole milliseconds, as in the command line.
        Nanos((seconds * 1000.0).ceil() as u64 * 1_000_000)
    }

    /// The nearest possible rate: a multiple of the grain, or one of four digits.
    fn even(&self, rate: f64, reached: Reached) -> f64 {
        if !rate.is_finite() {
            return rate;
        }
        if reached.grain > 0.0 {
            let least = (reached.least / reached.grain).ceil().max(1.0);
            return (rate / reached.grain).round().max(least) * reached.grain;
        }
        let digits = 3 - (rate.log10().floor() as i32).clamp(-3, 9);
        let scale = 10_f64.powi(digits.max(0));
        ((rate * scale).round() / scale).max(1e-3)
    }
}

/// The workloads of a knee, in words.
pub const WORKLOADS: &str = "io, meta, mix or fio";

/// Form in which a workload takes its rate and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `--rate` of the whole group, `--time`.
    Native,
    /// `--rate_iops` of each worker and direction, `--runtime`.
    Fio,
}

impl Form {
    /// The form of a workload.
    ///
    /// # Errors
    /// A sentence, if it has no rate, or already has options that the search sets.
    pub fn of(words: &[OsString]) -> Result<Form, PlanError> {
        named(words, WORKLOADS)?;
        let name = words.first().map(|word| word.to_string_lossy());
        let form = match name.as_deref() {
            Some("io" | "meta" | "mix") => Form::Native,
            Some("fio") => Form::Fio,
            other => refuse!(
                "knee needs the workload {WORKLOADS}: {} has no rate{}",
                other.unwrap_or("this"),
                match other {
                    Some("mdtest" | "ops") => "; its operations are also phases of meta",
                    _ => "",
                }
            ),
        };
        let decided: &[&str] = match form {
            Form::Native => &["rate", "arrival", "time", "steadystate", "ss"],
            Form::Fio => &[
                "rate",
                "rate_iops",
                "rate_process",
                "runtime",
                "time_based",
                "timeout",
            ],
        };
        match decided.iter().find(|key| has_option(key, words)) {
            Some(key) => refuse!(
                "the workload has --{key}, which knee sets itself: remove it{}",
                match *key {
                    "time" | "runtime" =>
                        " (give the minimum time of a step with --time before --)",
                    "arrival" | "rate_process" => " (give --arrival before --)",
                    _ => "",
                }
            ),
            None => Ok(form),
        }
    }

    /// Gives a step its own arrivals by its number, unless the workload has a seed. Otherwise the
    /// same arrivals would be favourable or unfavourable to every rate.
    pub fn seed(self, words: &mut Vec<OsString>, (seed, number): (u64, u32)) {
        let keys: &[&str] = match self {
            Form::Native => &["seed"],
            Form::Fio => &["randseed", "randrepeat", "allrandrepeat"],
        };
        if !keys.iter().any(|key| has_option(key, words)) {
            let own = key(&[seed, u64::from(number)]) >> 11;
            set_option(words, keys[0], &own.to_string());
        }
    }

    /// The command line of a step. For fio, `rates` are those of each worker for reads, writes and
    /// trims.
    pub fn words(
        self,
        words: &[OsString],
        step: Step,
        arrival: Arrival,
        rates: [u64; 3],
    ) -> Vec<OsString> {
        let mut words = words.to_vec();
        let time = format!("{}ms", step.window.0 / 1_000_000);
        let closed = step.stage == Stage::Closed;
        match self {
            Form::Native => {
                set_option(&mut words, "time", &time);
                if !closed {
                    set_option(&mut words, "arrival", arrival.name());
                    set_option(&mut words, "rate", &format!("{}", step.rate));
                }
            }
            Form::Fio => {
                set_option(&mut words, "time_based", "1");
                set_option(&mut words, "runtime", &time);
                if !closed {
                    let process = match arrival {
                        Arrival::Uniform => "linear",
                        Arrival::Poisson => "poisson",
                    };
                    set_option(&mut words, "rate_process", process);
                    let [read, write, trim] = rates;
                    let each = format!("{read},{write},{trim}");
                    set_option(&mut words, "rate_iops", &each);
                }
            }
        }
        words
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
mod tests;
