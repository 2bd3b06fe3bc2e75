//! The figures of a phase: [`FIGURES`] declares each once, with the field that it comes from, its
//! merge over iterations, and its place in every output or the reason why it has none. Outputs
//! iterate over that table.

pub(crate) mod caches;
mod declared;
mod rows;

use std::collections::BTreeSet;

use hdrhistogram::Histogram;
use rbench_core::hist::Hist;
use rbench_core::units::{human_bandwidth, human_bytes, human_count, human_nanos, human_rate};

use crate::schema::PhaseResult;

pub use declared::{FIGURES, NOT_FIGURES, QUANTITIES};
pub use rows::Row;

/// An output that shows figures of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The report as text.
    Text,
    /// `--format md`
    Markdown,
    /// `--format csv`
    Csv,
    /// `--format openmetrics`
    OpenMetrics,
    /// `rbench report`
    Page,
    /// `rbench compare`
    Compare,
}

impl Output {
    /// Every output.
    pub const ALL: [Output; 6] = [
        Output::Text,
        Output::Markdown,
        Output::Csv,
        Output::OpenMetrics,
        Output::Page,
        Output::Compare,
    ];
}

/// The way in which an output shows a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// In its list of all figures, under the figure's own name or title.
    Listed,
    /// In that list, under this name.
    Named(&'static str),
    /// In a part of its own.
    In(&'static str),
    /// Not at all, for this reason.
    Not(&'static str),
}

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neither,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Things per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanos,
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
    /// A share, 0 to 1.
    Share,
    /// One number divided by another.
    Ratio,
    /// None: a word.
    Word,
}

impl Unit {
    /// For machines.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::PerSecond => "ops/s",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Nanos => "ns",
            Unit::Micros => "us",
            Unit::Seconds => "s",
            Unit::Share => "0–1",
            Unit::Count | Unit::Ratio | Unit::Word => "",
        }
    }

    /// A value for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Count => human_count(value as u64),
            Unit::Bytes => human_bytes(value as u64),
            Unit::PerSecond => human_rate(value),
            Unit::BytesPerSecond => human_bandwidth(value),
            Unit::Nanos => human_nanos(value),
            Unit::Micros => human_nanos(value * 1e3),
            Unit::Seconds => human_nanos(value * 1e9),
            Unit::Share => format!("{:.1}%", 100.0 * value),
            Unit::Ratio | Unit::Word => caches::per_operation(value),
        }
    }
}

/// The way in which a figure is read from a phase; `None` where the phase does not have it.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    /// An exact count; over iterations their sum.
    Count(fn(&PhaseResult) -> Option<u64>),
    /// A measured number; over iterations the mean of those that finished.
    Number(fn(&PhaseResult) -> Option<f64>),
    /// A number that adds nothing up; over iterations the largest.
    Largest(fn(&PhaseResult) -> Option<f64>),
    /// A word; over iterations the same in all, or `mixed`.
    Word(fn(&PhaseResult) -> Option<String>),
    /// Times of operations; over iterations those of all operations.
    Times(fn(&PhaseResult) -> Option<&Hist>),
}

/// A figure of a phase.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// For machines: its column in tables.
    pub name: &'static str,
    /// For people: its column in reports.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its meaning, in a clause without a stop.
    pub about: &'static str,
    /// The fields of `phases[]` that it is read from.
    pub fields: &'static [&'static str],
    /// Its source in a phase.
    pub read: Read,
    /// The direction in which it is better.
    pub better: Better,
    /// Its place in each output, in the order of [`Output::ALL`].
    shown: [Shown; Output::ALL.len()],
}

/// A quantity of a distribution of times.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// For machines, and in comparisons.
    pub name: &'static str,
    /// The field of the result file, and the end of its column in tables.
    pub column: &'static str,
    /// For people.
    pub title: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// Its measure, to calculate it.
    pub measure: Measure,
    /// With fewer values than this it would only repeat another one.
    pub least: u64,
    /// Its value in the result file.
    pub field: fn(&Hist) -> f64,
}

/// A measure of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// The number of values.
    Count,
    /// Their arithmetic mean.
    Mean,
    /// Their standard deviation.
    Deviation,
    /// A quantile, 0 to 1: 0 is the smallest, 1 the largest.
    Quantile(f64),
}

/// A phase's value of a figure.
#[derive(Debug, Clone)]
pub enum Value<'p> {
    /// A count.
    Count(u64),
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// The times of one phase.
    Times(&'p Hist),
    /// Times of several iterations.
    Merged(Box<Histogram<u64>>),
}

impl Value<'_> {
    /// The number that it is, or a quantity of the times that it is; `None` where there are too
    /// few of them.
    pub fn number(&self, quantity: Option<&Quantity>) -> Option<f64> {
        let enough = |count: u64| quantity.filter(|quantity| count >= quantity.least);
        match self {
            Value::Count(n) => Some(*n as f64),
            Value::Number(number) => Some(*number),
            Value::Word(_) => None,
            Value::Times(hist) => enough(hist.count).map(|quantity| (quantity.field)(hist)),
            Value::Merged(all) => Some(match enough(all.len())?.measure {
                Measure::Count => all.len() as f64,
                Measure::Mean => all.mean(),
                Measure::Deviation => all.stdev(),
                Measure::Quantile(quantile) => all.value_at_quantile(quantile) as f64,
            }),
        }
    }
}

impl Figure {
    /// The way in which an output shows it.
    pub fn shown(&self, output: Output) -> Shown {
        self.shown[output as usize]
    }

    /// Its value in a phase.
    pub fn of<'p>(&self, phase: &'p PhaseResult) -> Option<Value<'p>> {
        match self.read {
            Read::Count(read) => read(phase).map(Value::Count),
            Read::Number(read) | Read::Largest(read) => read(phase).map(Value::Number),
            Read::Word(read) => read(phase).map(Value::Word),
            Read::Times(read) => read(phase).map(Value::Times),
        }
    }

    /// Its value over several iterations of a phase together.
    pub fn over(&self, phases: &[&PhaseResult]) -> Option<Value<'static>> {
        let all = phases.iter().copied();
        match self.read {
            // The largest number, where numbers are damaged.
            Read::Count(read) => {
                let sum = all.filter_map(read).reduce(u64::saturating_add);
                sum.map(Value::Count)
            }
            Read::Number(read) => {
                let whole = all.filter(|phase| phase.complete);
                let values: Vec<f64> = whole.filter_map(read).collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                (!values.is_empty()).then_some(Value::Number(mean))
            }
            Read::Largest(read) => all.filter_map(read).reduce(f64::max).map(Value::Number),
            Read::Word(read) => {
                let mut words: BTreeSet<Option<String>> = all.map(read).collect();
                let word = match words.len() {
                    0 | 1 => words.pop_first().flatten(),
                    _ => Some("mixed".to_owned()),
                };
                word.map(Value::Word)
            }
            Read::Times(read) => merged(all.filter_map(read)).map(Value::Merged),
        }
    }

    /// A value of it for people; `None` where there are too few times for the quantity.
    pub fn show(&self, value: &Value<'_>, quantity: Option<&Quantity>) -> Option<String> {
        match value {
            Value::Word(word) => Some(word.clone()),
            Value::Count(n) if self.unit == Unit::Count => Some(human_count(*n)),
            other => Some(self.unit.show(other.number(quantity)?)),
        }
    }

    /// Returns true if it consists of times.
    pub fn is_times(&self) -> bool {
        matches!(self.read, Read::Times(_))
    }
}

/// All values of some distributions; `None` if there are none that can be read.
pub(crate) fn merged<'h>(all: impl Iterator<Item = &'h Hist>) -> Option<Box<Histogram<u64>>> {
    let mut sum: Option<Histogram<u64>> = None;
    for one in all.filter_map(|hist| hist.latency().ok()) {
        match &mut sum {
            // Both have the same precision, so every value fits.
            Some(sum) => drop(sum.add(one)),
            None => sum = Some(one),
        }
    }
    sum.filter(|sum| !sum.is_empty()).map(Box::new)
}

/// The figure of that name.
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// The quantity of that name.
pub fn quantity(name: &str) -> Option<&'static Quantity> {
    QUANTITIES.iter().find(|quantity| quantity.name == name)
}

/// Meaning of a figure, or of a quantity of its times, in words.
pub fn about(figure: &str, of: &str) -> String {
    let about = find(figure).map_or("", |figure| figure.about);
    match quantity(of) {
        Some(quantity) => format!("{about}: {}", quantity.about),
        None => about.to_owned(),
    }
}

/// The figures that an output lists, with their names there.
pub fn listed(output: Output) -> impl Iterator<Item = (&'static Figure, &'static str)> {
    FIGURES
        .iter()
        .filter_map(move |figure| match figure.shown(output) {
            Shown::Listed => Some((figure, figure.name)),
            Shown::Named(name) => Some((figure, name)),
            Shown::In(_) | Shown::Not(_) => None,
        })
}

/// Operations per second of all active workers, each over its own active time. That excludes
/// opening and closing files, and waiting for other workers. `None` without operations.
pub(crate) fn active_rate(phase: &PhaseResult) -> Option<f64> {
    let (count, active_s) = match &phase.workers {
        // Workers that were given up have no time, and their operations do not count.
        Some(workers) => {
            let lost = phase.given_up.as_ref().map_or(0, |lost| lost.workers);
            (
                workers.workers.saturating_sub(lost),
                workers.active.as_secs_f64(),
            )
        }
        // Earlier versions did not record it.
        None => (1, phase.elapsed_s),
    };
    let rate = phase.items as f64 * count as f64 / active_s;
    (rate > 0.0 && rate.is_finite()).then_some(rate)
}
