//! The search of `rbench knee`: the highest rate at which an objective holds. Which
//! rate comes next, and how long it is kept up, follows from what was found so far
//! alone.

use std::ffi::OsString;

use rbench_core::Nanos;
use rbench_core::random::key;

use crate::arrival::Arrival;
use crate::series::{SeriesError, has_option, set_option};

/// Operations that are to lie above a percentile for it to be believed.
const ABOVE_PERCENTILE: f64 = 100.0;
/// Rows rarer than this share of the operations make no window longer than this one does.
const LEAST_SHARE: f64 = 0.05;
/// A window counts for a row that turned out rarer if it was at least this part of the window that
/// the row needs.
const ENOUGH: f64 = 0.8;
/// Operations for a mean or a maximum.
const OPERATIONS: f64 = 1000.0;
/// The precision when none is given.
const PRECISION: f64 = 0.05;
/// The least time of a step when none is given.
const LEAST_TIME: Nanos = Nanos(5_000_000_000);
/// How much longer the window is that confirms.
const CONFIRMATION: f64 = 3.0;
/// Windows that may be tried to confirm, at lower and lower rates.
const CONFIRMATIONS: usize = 6;
/// The first rate, as a part of what one operation after the other reaches.
const FIRST_PART: f64 = 0.25;
/// Without a lowest rate: the first one divided by this is.
const LOWEST_PART: f64 = 1024.0;

/// A figure of the response times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Arithmetic mean.
    Mean,
    /// The longest.
    Max,
    /// So many per cent of the operations take no longer; above 0, below 100.
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

    /// Operations that it takes to believe it.
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
    /// Of what.
    pub figure: Figure,
    /// The longest time that is allowed.
    pub most: Nanos,
}

/// What has to hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Objective {
    /// Limits of response times; each figure once.
    pub limits: Vec<Limit>,
    /// Share of the operations that may fail, 0 to 1.
    pub errors: f64,
    /// The row that it is for; `None`: all.
    pub row: Option<String>,
}

impl Objective {
    /// Operations of a step that can be believed.
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
    /// Share of the operations that may fail, 0 to 1.
    Errors(f64),
}

/// What was asked for; an option that was not given is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Asked {
    /// `--slo`, in the order given.
    pub slo: Vec<Slo>,
    /// `--row`
    pub row: Option<String>,
    /// `--from`
    pub from: Option<f64>,
    /// `--to`
    pub to: Option<f64>,
    /// `--precision`, as a part of the rate.
    pub precision: Option<f64>,
    /// `--time`
    pub time: Option<Nanos>,
    /// `--arrival`
    pub arrival: Option<Arrival>,
}

impl Asked {
    /// Fills in the defaults.
    ///
    /// # Errors
    /// A sentence that names the option at fault.
    pub fn resolve(&self) -> Result<Search, SeriesError> {
        let refuse = |text: String| Err(SeriesError(text));
        let mut objective = Objective {
            row: self.row.clone(),
            ..Objective::default()
        };
        let mut errors = None;
        for slo in &self.slo {
            match *slo {
                Slo::Errors(_) if errors.is_some() => {
                    return refuse("--slo errors is given twice".to_owned());
                }
                Slo::Errors(share) => errors = Some(share),
                Slo::Time(limit) => {
                    let name = limit.figure.name();
                    if objective.limits.iter().any(|l| l.figure == limit.figure) {
                        return refuse(format!("--slo {name} is given twice"));
                    }
                    objective.limits.push(limit);
                }
            }
        }
        objective.errors = errors.unwrap_or(0.0);
        let rates = [("--from", self.from), ("--to", self.to)];
        for (flag, rate) in rates
            .iter()
            .filter_map(|(flag, rate)| Some((flag, (*rate)?)))
        {
            if !(1e-3..=1e9).contains(&rate) {
                return refuse(format!(
                    "{flag} {rate} is not a number of operations a second between 0.001 and 1,000,000,000"
                ));
            }
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from > to
        {
            return refuse(format!("--from {from} is more than --to {to}"));
        }
        let precision = self.precision.unwrap_or(PRECISION);
        if !(0.005..=0.5).contains(&precision) {
            return refuse(format!(
                "--precision {}% is not between 0.5% and 50%",
                precision * 100.0
            ));
        }
        if self.time == Some(Nanos(0)) {
            return refuse("--time must be longer than 0".to_owned());
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

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// One operation after the other: which order of magnitude the rate has.
    Closed,
    /// Between what holds and what does not.
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

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Operations a second that were to start.
    pub rate: f64,
    /// What it was for.
    pub stage: Stage,
    /// Whether the objective held.
    pub held: bool,
    /// Whether it failed by so much that it need not be tried again.
    pub clearly: bool,
    /// How long it was kept up.
    pub window: Nanos,
    /// Operations of the rarest row that is judged, as a share of all that were due; `None`: all
    /// of them, or too many did not start to tell.
    pub share: Option<f64>,
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Operations a second that are to start.
    pub rate: f64,
    /// What it is for.
    pub stage: Stage,
    /// How long it is kept up.
    pub window: Nanos,
}

/// The search, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What has to hold.
    pub objective: Objective,
    /// `--from`: the lowest rate, and the first one.
    pub from: Option<f64>,
    /// `--to`: the highest rate.
    pub to: Option<f64>,
    /// How far apart what held and what did not may be, as a part of the rate.
    pub precision: f64,
    /// The least time of a step.
    pub time: Nanos,
    /// How starts are spread.
    pub arrival: Arrival,
}

/// What is known once operations were made one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// Operations a second.
    pub rate: f64,
    /// Rates are multiples of this; 0: any.
    pub grain: f64,
    /// The lowest rate that can be asked for; 0: any.
    pub least: f64,
}

/// The interval that the steps leave.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// The highest rate that held.
    low: Option<f64>,
    /// The lowest one that did not.
    high: Option<f64>,
    /// One that did not hold once, and has to be tried again.
    open: Option<f64>,
}

impl Found {
    fn of(tried: &[Tried]) -> Found {
        let mut found = Found::default();
        let searched = || tried.iter().filter(|one| one.stage == Stage::Search);
        for one in searched() {
            let of_rate = || searched().filter(|other| other.rate == one.rate);
            if of_rate().any(|other| other.held) {
                found.low = Some(found.low.map_or(one.rate, |low| low.max(one.rate)));
            } else if of_rate().count() > 1 || one.clearly {
                found.high = Some(found.high.map_or(one.rate, |high| high.min(one.rate)));
            } else {
                found.open = Some(one.rate);
            }
        }
        found
    }
}

impl Search {
    /// The first step: one operation after the other.
    pub fn first(&self) -> Step {
        Step {
            rate: 0.0,
            stage: Stage::Closed,
            window: self.time,
        }
    }

    /// The step after these; `None`: there is nothing more to find. `tried` does not
    /// have the first one.
    pub fn next(&self, reached: Reached, tried: &[Tried]) -> Option<Step> {
        let shares = tried.iter().filter_map(|one| one.share);
        let share = shares.fold(1.0, f64::min).max(LEAST_SHARE);
        // How rare a row is, only a step shows: it is tried again where it was too short for that.
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
        let found = Found::of(tried);
        if let Some(rate) = found.open {
            return Some(self.step(rate, Stage::Search));
        }
        let first = self.first_rate(reached);
        let lowest = self.from.unwrap_or(first / LOWEST_PART);
        let next = match (found.low, found.high) {
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
        match (next, found.low) {
            (Some(rate), _) if !tried.iter().any(|one| one.rate == rate) => {
                Some(self.step(rate, Stage::Search))
            }
            // Nothing lies between.
            (_, Some(low)) => Some(self.step(low, Stage::Confirm)),
            (_, None) => None,
        }
    }

    /// Below a rate that the longer window did not confirm.
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

    /// How long a rate is kept up, if the rarest row has this share of the operations.
    fn window(&self, rate: f64, stage: Stage, share: f64) -> Nanos {
        let least = self.objective.operations() / (rate * share);
        let times = match stage {
            Stage::Confirm => CONFIRMATION,
            Stage::Closed | Stage::Search => 1.0,
        };
        let seconds = least.max(self.time.as_secs_f64()) * times;
        // Whole milliseconds, as they stand in the command line.
        Nanos((seconds * 1000.0).ceil() as u64 * 1_000_000)
    }

    /// The nearest rate that can be asked for: a multiple of the grain, or one of four
    /// digits.
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

/// How a workload is told its rate and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `--rate` of the whole group, `--time`.
    Native,
    /// `--rate_iops` of each worker and direction, `--runtime`.
    Fio,
}

impl Form {
    /// That of a workload.
    ///
    /// # Errors
    /// A sentence if it has no rate, or has what the search decides.
    pub fn of(words: &[OsString]) -> Result<Form, SeriesError> {
        let name = words.first().map(|word| word.to_string_lossy());
        let form = match name.as_deref() {
            Some("io" | "meta" | "mix") => Form::Native,
            Some("fio") => Form::Fio,
            other => {
                return Err(SeriesError(format!(
                    "knee needs the workload io, meta, mix or fio: {} has no rate{}",
                    other.unwrap_or("this"),
                    match other {
                        Some("mdtest" | "ops") => "; its operations are also phases of meta",
                        _ => "",
                    }
                )));
            }
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
            Some(key) => Err(SeriesError(format!(
                "the workload has --{key}, which knee sets itself: remove it{}",
                match *key {
                    "time" | "runtime" =>
                        " (give the minimum time of a step with --time before --)",
                    "arrival" | "rate_process" => " (give --arrival before --)",
                    _ => "",
                }
            ))),
            None => Ok(form),
        }
    }

    /// Gives the step with that number arrivals of its own, unless the workload has a seed: the same
    /// ones would be kind or unkind to each rate alike.
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

    /// The command line of a step. `rates`: for fio, those of each worker for reads,
    /// writes and trims.
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

#[cfg(test)]
mod tests;
