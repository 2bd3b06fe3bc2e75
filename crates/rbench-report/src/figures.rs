//! The figures of one row of a run, over its iterations, and the words for who answered.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;

use crate::hist::Hist;
use crate::schema::{PhaseResult, RunResult};
use crate::table::NONE;

/// Who answered was not measured.
pub const UNKNOWN: &str = "unknown";

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
    /// Response times, ns, likewise; `None` outside of an open loop.
    pub response: Option<Histogram<u64>>,
    /// The verdict on the cache, the same in all iterations, or else `mixed`.
    pub cache: Option<String>,
}

/// The word of a verdict.
pub fn word(verdict: &str) -> &'static str {
    match verdict {
        "memory" => "warm",
        "cold" => "cold",
        "cold-then-memory" => "cold, then warm",
        "cold-then-perhaps" => "cold, then unknown",
        "mixed" => "mixed",
        "forced" => "forced",
        "perhaps" | "unknown" => UNKNOWN,
        _ => NONE,
    }
}

/// The word of a verdict, shorter than in CACHES.
pub fn brief(verdict: &str) -> &'static str {
    match verdict {
        "cold-then-memory" => "cold/warm",
        "cold-then-perhaps" => "cold/unknown",
        other => word(other),
    }
}

/// The word of the verdict on a phase, the same in every report; `None` where no cache has a part.
pub fn verdict(phase: &PhaseResult) -> Option<String> {
    match &phase.residency {
        Some(residency) => Some(brief(&residency.verdict).to_owned()),
        None => phase.cache.clone(),
    }
}

/// The word of the verdict on some iterations of a phase, the same in all, or else
/// `mixed`; `None` where no cache has a part.
fn over_all<'p>(phases: impl Iterator<Item = &'p PhaseResult>) -> Option<String> {
    let mut words: BTreeSet<Option<String>> = phases.map(verdict).collect();
    match words.len() {
        0 | 1 => words.pop_first().flatten(),
        _ => Some("mixed".to_owned()),
    }
}

/// The sum; of damaged numbers the largest there is.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// All values of some distributions; `None` if there are none that can be read.
fn merged<'h>(all: impl Iterator<Item = &'h Hist>) -> Option<Histogram<u64>> {
    let mut sum: Option<Histogram<u64>> = None;
    for one in all.filter_map(|hist| hist.latency().ok()) {
        match &mut sum {
            // Both have the same precision: every value of one fits into the other.
            Some(sum) => drop(sum.add(one)),
            None => sum = Some(one),
        }
    }
    sum.filter(|sum| !sum.is_empty())
}

impl Figures {
    /// The rows of a run in the order of their first appearance.
    pub fn of(result: &RunResult) -> Vec<Figures> {
        let mut names: Vec<&str> = Vec::new();
        for phase in &result.phases {
            if !names.contains(&phase.name.as_str()) {
                names.push(&phase.name);
            }
        }
        let row = |name: &&str| {
            let phases = result.phases.iter().filter(|phase| phase.name == **name);
            Figures::over(&phases.collect::<Vec<_>>())
        };
        names.iter().filter_map(row).collect()
    }

    fn over(phases: &[&PhaseResult]) -> Option<Figures> {
        let first = phases.first()?;
        let whole: Vec<&&PhaseResult> = phases.iter().filter(|phase| phase.complete).collect();
        let mean = |values: Vec<f64>| {
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        Some(Figures {
            name: first.name.clone(),
            label: first.label.clone(),
            rate: match first.one_each {
                true => None,
                false => mean(whole.iter().map(|phase| phase.rate).collect()),
            },
            bandwidth: mean(whole.iter().filter_map(|phase| phase.bandwidth).collect()),
            items: total(phases.iter().map(|phase| phase.items)),
            errors: total(phases.iter().map(|phase| phase.error_count())),
            service: merged(phases.iter().map(|phase| &phase.latency.service)),
            response: merged(phases.iter().filter_map(|p| p.latency.response.as_ref())),
            cache: over_all(phases.iter().copied()),
        })
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
