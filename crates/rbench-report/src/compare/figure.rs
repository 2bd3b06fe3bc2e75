//! The figures that are compared, and how each is estimated from samples.

use super::dist::Dist;
use super::samples::Repetition;
use crate::stats::{centre, logarithms};

/// What a figure counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Items per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanos,
}

impl Unit {
    /// For machines.
    pub fn name(self) -> &'static str {
        match self {
            Unit::PerSecond => "ops/s",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Nanos => "ns",
        }
    }
}

/// One figure of a row.
#[derive(Debug, PartialEq)]
pub struct Figure {
    /// For machines, and in conditions.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// Its unit.
    pub unit: Unit,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Rate,
    Bandwidth,
    Time(Kind, Quantity),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Service,
    Response,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    Mean,
    /// The quantile, and how many values there must be for one above it.
    Quantile(f64, u64),
    Max,
}

const fn time(name: &'static str, label: &'static str, kind: Kind, quantity: Quantity) -> Figure {
    Figure {
        name,
        label,
        unit: Unit::Nanos,
        what: What::Time(kind, quantity),
    }
}

use Kind::{Response, Service};
use Quantity::{Max, Mean, Quantile};

/// Every figure, in the order of reports.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "rate",
        label: "items/s",
        unit: Unit::PerSecond,
        what: What::Rate,
    },
    Figure {
        name: "bandwidth",
        label: "bandwidth",
        unit: Unit::BytesPerSecond,
        what: What::Bandwidth,
    },
    time("mean", "mean", Service, Mean),
    time("p50", "p50", Service, Quantile(0.5, 2)),
    time("p90", "p90", Service, Quantile(0.9, 10)),
    time("p99", "p99", Service, Quantile(0.99, 100)),
    time("p99.9", "p99.9", Service, Quantile(0.999, 1000)),
    time("max", "max", Service, Max),
    time("response-mean", "response mean", Response, Mean),
    time("response-p50", "response p50", Response, Quantile(0.5, 2)),
    time("response-p90", "response p90", Response, Quantile(0.9, 10)),
    time(
        "response-p99",
        "response p99",
        Response,
        Quantile(0.99, 100),
    ),
    time(
        "response-p99.9",
        "response p99.9",
        Response,
        Quantile(0.999, 1000),
    ),
    time("response-max", "response max", Response, Max),
];

/// The figure of that name.
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

impl Figure {
    /// Whether more of it is faster.
    pub fn more_is_faster(&self) -> bool {
        !matches!(self.what, What::Time(..))
    }

    /// The figure of these samples together; `None` where they do not have it.
    pub fn of(&self, samples: &[Repetition]) -> Option<Sampled> {
        match self.what {
            What::Rate => Sampled::centred(samples.iter().map(|sample| Some(sample.rate))),
            What::Bandwidth => Sampled::centred(samples.iter().map(|sample| sample.bandwidth)),
            What::Time(kind, quantity) => {
                let times: Option<Vec<&Dist>> =
                    samples.iter().map(|sample| kind.of(sample)).collect();
                quantity.of(&times?)
            }
        }
    }
}

/// A figure of one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// Of all samples together.
    pub value: f64,
    /// Logarithms of the samples' own; empty for a published figure.
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

    /// The robust centre of the samples' own figures.
    fn centred(values: impl Iterator<Item = Option<f64>>) -> Option<Sampled> {
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let logs = logarithms(values.iter().copied())?;
        // One sample is the figure itself, to the last digit.
        let value = match values[..] {
            [one] => one,
            _ => centre(&logs)?.exp(),
        };
        Some(Sampled { value, logs })
    }
}

impl Kind {
    fn of(self, sample: &Repetition) -> Option<&Dist> {
        match self {
            Service => Some(&sample.service),
            Response => sample.response.as_ref(),
        }
    }
}

impl Quantity {
    /// Of all samples merged; a mean is the robust centre of the samples' own.
    fn of(self, samples: &[&Dist]) -> Option<Sampled> {
        let value = |dist: &Dist| match self {
            Mean => dist.mean_ns(),
            Quantile(q, _) => dist.quantile_ns(q),
            Max => dist.max_ns(),
        };
        let own = samples.iter().map(|dist| value(dist));
        if self == Mean {
            return Sampled::centred(own);
        }
        let whole = Dist::merged(samples.iter().copied());
        match self {
            Quantile(_, one_in) if whole.count() < one_in => None,
            _ => Some(Sampled {
                value: value(&whole)?,
                logs: logarithms(own.collect::<Option<Vec<f64>>>()?)?,
            }),
        }
    }
}
