//! The figures of a row of a report: of one phase, or of all iterations of it.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::{FIGURES, Value, find, quantity};
use crate::schema::{PhaseResult, RunResult};

/// The figures of one or several iterations of a phase.
#[derive(Debug, Clone)]
pub struct Row<'p> {
    /// The iterations, one at least.
    pub phases: Vec<&'p PhaseResult>,
    values: BTreeMap<&'static str, Value<'p>>,
}

impl<'p> Row<'p> {
    /// The row of one phase; of several iterations together.
    pub fn of(phases: Vec<&'p PhaseResult>) -> Row<'p> {
        let values = FIGURES.iter().filter_map(|figure| {
            let value = match phases.as_slice() {
                [phase] => figure.of(phase),
                several => figure.over(several),
            };
            Some((figure.name, value?))
        });
        Row {
            values: values.collect(),
            phases,
        }
    }

    /// The rows of a run in the order of their first appearance, each over all iterations.
    pub fn all(result: &'p RunResult) -> Vec<Row<'p>> {
        by_name(&result.phases).into_iter().map(Row::of).collect()
    }

    /// The value of a figure, or of a quantity of its times.
    pub fn number(&self, figure: &str, of: &str) -> Option<f64> {
        self.values.get(figure)?.number(quantity(of))
    }

    /// The text of a figure, for people.
    pub fn show(&self, figure: &str, of: &str) -> Option<String> {
        find(figure)?.show(self.values.get(figure)?, quantity(of))
    }

    /// Returns true if it has a figure.
    pub fn has(&self, figure: &str) -> bool {
        self.values.contains_key(figure)
    }
}

/// One row of a run: rates are arithmetic means over the iterations that reached
/// their end, service times those of all their operations together.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Name of the phase for machines.
    pub name: String,
    /// Name of the phase for people.
    pub label: String,
    /// Operations a second: [`PhaseResult::rate`]. `None` where the phase has no
    /// rate (`one_each`).
    pub rate: Option<f64>,
    /// Bytes a second; `None` where no bytes moved.
    pub bandwidth: Option<f64>,
    /// Operations done without error.
    pub items: u64,
    /// Failed operations.
    pub errors: u64,
    /// Service times, ns; `None` where the file holds none that can be read.
    pub service: Option<Histogram<u64>>,
    /// The verdict on the cache, the same in all iterations, or else `mixed`.
    pub cache: Option<String>,
}

/// The rows of a run with their iterations.
fn by_name(phases: &[PhaseResult]) -> Vec<Vec<&PhaseResult>> {
    let mut rows: Vec<Vec<&PhaseResult>> = Vec::new();
    for phase in phases {
        match rows.iter_mut().find(|row| row[0].name == phase.name) {
            Some(row) => row.push(phase),
            None => rows.push(vec![phase]),
        }
    }
    rows
}

impl Figures {
    /// The rows of a run in the order of their first appearance.
    pub fn of(result: &RunResult) -> Vec<Figures> {
        let rows = by_name(&result.phases);
        rows.iter().map(|row| Figures::over(row)).collect()
    }

    fn over(phases: &[&PhaseResult]) -> Figures {
        let value = |name: &str| find(name).and_then(|figure| figure.over(phases));
        let number = |name: &str| value(name)?.number(None);
        let count = |name: &str| match value(name) {
            Some(Value::Count(n)) => n,
            _ => 0,
        };
        Figures {
            name: phases[0].name.clone(),
            label: phases[0].label.clone(),
            rate: number("rate"),
            bandwidth: number("bandwidth"),
            items: count("items"),
            errors: count("errors"),
            service: match value("service") {
                Some(Value::Merged(all)) => Some(*all),
                _ => None,
            },
            cache: match value("cache") {
                Some(Value::Word(word)) => Some(word),
                _ => None,
            },
        }
    }

    /// Mean service time, ns.
    pub fn mean_ns(&self) -> Option<f64> {
        self.service.as_ref().map(Histogram::mean)
    }

    /// A quantile of the service time (0 to 1), ns.
    pub fn quantile_ns(&self, quantile: f64) -> Option<f64> {
        let service = self.service.as_ref()?;
        Some(service.value_at_quantile(quantile) as f64)
    }
}
