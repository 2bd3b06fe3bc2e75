//! The figures of a row of a report: of one phase, or of all iterations of it.

use std::collections::BTreeMap;

use super::{FIGURES, Figure, Value, find, quantity};
use crate::schema::{PhaseResult, RunResult};
use crate::table::{grouped, or_none};

/// The figures of one or several iterations of a phase.
#[derive(Debug, Clone)]
pub struct Row<'p> {
    /// The iterations, one at least.
    pub phases: Vec<&'p PhaseResult>,
    values: BTreeMap<&'static str, Value<'p>>,
}

impl<'p> Row<'p> {
    fn new(
        phases: Vec<&'p PhaseResult>,
        value: impl Fn(&Figure, &[&'p PhaseResult]) -> Option<Value<'p>>,
    ) -> Row<'p> {
        let values = FIGURES.iter();
        let values = values.filter_map(|figure| Some((figure.name, value(figure, &phases)?)));
        Row {
            values: values.collect(),
            phases,
        }
    }

    /// The row of one phase; of several iterations together.
    pub fn of(phases: Vec<&'p PhaseResult>) -> Row<'p> {
        Row::new(phases, |figure, phases| match phases {
            [phase] => figure.of(phase),
            several => figure.over(several),
        })
    }

    /// The rows of a run in the order of their first appearance, each over all iterations.
    pub fn all(result: &'p RunResult) -> Vec<Row<'p>> {
        by_name(&result.phases).map(Row::of).collect()
    }

    /// Like `all`, without the rates of phases that did not reach their end.
    pub fn finished(result: &'p RunResult) -> Vec<Row<'p>> {
        by_name(&result.phases)
            .map(|row| Row::new(row, |figure, phases| figure.over(phases)))
            .collect()
    }

    /// Name of the phase for machines.
    pub fn name(&self) -> &'p str {
        self.phases.first().map_or("", |phase| &phase.name)
    }

    /// Name of the phase for people.
    pub fn label(&self) -> &'p str {
        self.phases.first().map_or("", |phase| &phase.label)
    }

    /// The value of a figure, or of a quantity of its times; `None` where it does not have it.
    pub fn number(&self, figure: &str, of: &str) -> Option<f64> {
        self.values.get(figure)?.number(quantity(of))
    }

    /// The text of a figure, for people.
    pub fn show(&self, figure: &str, of: &str) -> Option<String> {
        find(figure)?.show(self.values.get(figure)?, quantity(of))
    }

    /// Like [`Row::show`], with a dash if there is no value.
    pub fn text(&self, figure: &str, of: &str) -> String {
        or_none(self.show(figure, of))
    }

    /// Operations per second; `None` if the phase has no rate (`one_each`).
    pub fn rate(&self) -> Option<f64> {
        self.number("rate", "")
    }

    /// Mean service time, ns.
    pub fn mean_ns(&self) -> Option<f64> {
        self.number("service", "mean")
    }

    /// Returns true if it has a figure.
    pub fn has(&self, figure: &str) -> bool {
        self.values.contains_key(figure)
    }
}

/// The rows of a run with their iterations.
fn by_name(phases: &[PhaseResult]) -> impl Iterator<Item = Vec<&PhaseResult>> {
    let rows = grouped(phases.iter().map(|phase| (&phase.name, phase)));
    rows.into_iter().map(|(_, phases)| phases)
}
