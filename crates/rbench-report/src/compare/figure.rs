//! The compared figures, and the estimation of each from samples.

use std::sync::LazyLock;

use rbench_core::Latency;
use rbench_core::permutation::centre;
use serde::{Serialize, Serializer};

use super::dist::{measured, merged};
use super::samples::Repetition;
use crate::figures::{self, Better, Measure, Output, Quantity, Unit, quantity};
use crate::stats::logarithms;

/// One figure of a row: a number of it, or a quantity of its times.
#[derive(Debug)]
pub struct Figure {
    /// For machines, and in conditions.
    pub name: String,
    /// For people.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    of: &'static figures::Figure,
    quantity: Option<&'static Quantity>,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(serializer)
    }
}

/// The quantities of times that are compared; what lies between them moves with them.
pub const COMPARED: [&str; 6] = ["mean", "p50", "p90", "p99", "p99.9", "max"];

/// Every figure, in the order of reports: rates, times, the others.
pub static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let listed = figures::listed(Output::Compare);
    let mut all: Vec<Figure> = listed
        .flat_map(|(of, name)| match of.is_times() {
            true => COMPARED
                .iter()
                .filter_map(|name| quantity(name))
                .map(|quantity| of_times(of, quantity, name))
                .collect(),
            false => vec![of_numbers(of, name)],
        })
        .collect();
    all.sort_by_key(|figure| match figure.name.as_str() {
        "rate" | "bandwidth" => 0,
        _ if figure.quantity.is_some() => 1,
        _ => 2,
    });
    all
});

fn of_numbers(of: &'static figures::Figure, name: &str) -> Figure {
    let mut label = of.title.to_owned();
    if let Some(first) = label.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    Figure {
        name: name.to_owned(),
        label,
        unit: of.unit,
        of,
        quantity: None,
    }
}

fn of_times(of: &'static figures::Figure, quantity: &'static Quantity, prefix: &str) -> Figure {
    Figure {
        label: format!("{}{}", prefix.replace('-', " "), quantity.name),
        quantity: Some(quantity),
        ..of_numbers(of, &format!("{prefix}{}", quantity.name))
    }
}

/// The figure with this name.
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

impl Figure {
    /// Returns true if more of it is better.
    pub fn more_is_better(&self) -> bool {
        self.of.better == Better::Higher
    }

    /// The figure over these samples; `None` if they lack it.
    pub fn of(&self, samples: &[Repetition]) -> Option<Sampled> {
        let name = self.of.name;
        let Some(quantity) = self.quantity else {
            let numbers = samples.iter().map(|sample| sample.numbers.get(name));
            return Sampled::centred(numbers.map(|number| number.copied()));
        };
        let times: Option<Vec<&Latency>> = samples
            .iter()
            .map(|sample| sample.times.get(name))
            .collect();
        over_samples(quantity, &times?)
    }
}

/// A figure of one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// Value over all samples.
    pub value: f64,
    /// Logarithms of the values of single samples; empty for a published figure.
    pub logs: Vec<f64>,
}

impl Sampled {
    /// A number without samples.
    pub fn published(value: f64) -> Sampled {
        Sampled {
            value,
            logs: Vec::new(),
        }
    }

    /// The robust centre of the figures of single samples.
    fn centred(values: impl Iterator<Item = Option<f64>>) -> Option<Sampled> {
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let logs = logarithms(values.iter().copied())?;
        // A single sample is returned exactly.
        let value = match values[..] {
            [one] => one,
            _ => centre(&logs)?.exp(),
        };
        Some(Sampled { value, logs })
    }
}

/// A quantity of all samples merged; a mean is the robust centre of the samples' own.
fn over_samples(quantity: &Quantity, samples: &[&Latency]) -> Option<Sampled> {
    let value = |times: &Latency| measured(times, quantity.measure);
    let own = samples.iter().map(|times| value(times));
    if quantity.measure == Measure::Mean {
        return Sampled::centred(own);
    }
    let whole = merged(samples.iter().copied());
    if whole.count() < quantity.least {
        return None;
    }
    Some(Sampled {
        value: value(&whole)?,
        logs: logarithms(own.collect::<Option<Vec<f64>>>()?)?,
    })
}
