//! The figures that are compared, and how each is estimated from samples.

use super::dist::{BUCKET_VARIANCE, Dist};
use super::samples::Repetition;
use crate::stats::{Estimate, Spread};

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
    pub fn of(&self, samples: &[Repetition]) -> Option<Estimate> {
        match self.what {
            What::Rate => rate(samples, |sample| Some(sample.rate)),
            What::Bandwidth => rate(samples, |sample| sample.bandwidth),
            What::Time(kind, quantity) => {
                let times: Option<Vec<&Dist>> =
                    samples.iter().map(|sample| kind.of(sample)).collect();
                quantity.of(&times?)
            }
        }
    }
}

/// The geometric mean of the samples' rates; of too few, with the spread that their
/// courses in time have.
fn rate(samples: &[Repetition], of: impl Fn(&Repetition) -> Option<f64>) -> Option<Estimate> {
    let rates: Vec<f64> = samples.iter().map(of).collect::<Option<_>>()?;
    let estimate = Estimate::of_samples(&rates)?;
    Some(Estimate {
        spread: estimate.spread.or_else(|| over_time(samples)),
        ..estimate
    })
}

fn over_time(samples: &[Repetition]) -> Option<Spread> {
    let each: Vec<Spread> = samples.iter().map(|s| s.over_time).collect::<Option<_>>()?;
    let n = each.len() as f64;
    Some(Spread {
        variance: each.iter().map(|spread| spread.variance).sum::<f64>() / n.powi(2),
        freedom: each.iter().map(|spread| spread.freedom).sum(),
    })
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
    /// Of all samples merged; its spread from leaving out one after the other, and
    /// from how they differ.
    fn of(self, samples: &[&Dist]) -> Option<Estimate> {
        let whole = Dist::merged(samples.iter().copied());
        let value = |dist: &Dist| match self {
            Mean => dist.mean_ns(),
            Quantile(q, _) => dist.quantile_ns(q),
            Max => dist.max_ns(),
        };
        let floor = match self {
            Mean => 0.0,
            Quantile(_, one_in) if whole.count() < one_in => return None,
            Quantile(..) => BUCKET_VARIANCE,
            // A maximum has no sampling distribution to speak of.
            Max => return Estimate::of_whole(value(&whole)?, &[], &[], 0.0),
        };
        let without = |left_out: usize| {
            let others = samples.iter().enumerate().filter(|(i, _)| *i != left_out);
            value(&Dist::merged(others.map(|(_, dist)| *dist)))
        };
        let left_out: Option<Vec<f64>> = match samples.len() {
            0 | 1 => Some(Vec::new()),
            n => (0..n).map(without).collect(),
        };
        let single: Option<Vec<f64>> = samples.iter().map(|dist| value(dist)).collect();
        Estimate::of_whole(value(&whole)?, &left_out?, &single?, floor)
    }
}
