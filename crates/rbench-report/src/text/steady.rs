//! Results of phases that end when they are steady: a line for each.

use rbench_core::units::{human_bandwidth, human_rate};

use super::{iterations, seconds};
use crate::schema::{PhaseResult, RunResult, SteadyResult};
use crate::table::sentence;
use crate::view::View;

/// Phases that end when they are steady, each once: the rows of a mix share the result.
fn judged(result: &RunResult) -> Vec<(&PhaseResult, &SteadyResult)> {
    let mut all: Vec<(&PhaseResult, &SteadyResult)> = Vec::new();
    for phase in &result.phases {
        let Some(steady) = &phase.steady else {
            continue;
        };
        let shares = |(last, its): &(&PhaseResult, &SteadyResult)| {
            last.iteration == phase.iteration
                && *its == steady
                && whole(&last.label) == whole(&phase.label)
        };
        if !all.last().is_some_and(shares) {
            all.push((phase, steady));
        }
    }
    all
}

/// Label of the phase that a row belongs to.
fn whole(label: &str) -> &str {
    label.split_once(": ").map_or(label, |(phase, _)| phase)
}

/// The results of the phases, as clauses for people.
pub(crate) fn lines(result: &RunResult) -> Vec<String> {
    let total = iterations(result);
    let of = |(phase, steady): (&PhaseResult, &SteadyResult)| {
        let pass = match total {
            0 | 1 => String::new(),
            _ => format!(" (iteration {})", phase.iteration.saturating_add(1)),
        };
        format!("{}{pass}: {}", whole(&phase.label), clause(steady))
    };
    judged(result).into_iter().map(of).collect()
}

/// The lines of the report.
pub fn render(result: &RunResult, view: View) -> String {
    let lines = lines(result);
    let all = lines.iter().map(|line| sentence(view, "STEADY  ", line));
    all.collect()
}

/// `attained after 14.0 s: …`
fn clause(steady: &SteadyResult) -> String {
    let begin = match (steady.attained, steady.attained_at_s) {
        (true, Some(at)) => format!("attained after {}", seconds(at)),
        (true, None) => "attained".to_owned(),
        (false, _) => "not attained".to_owned(),
    };
    format!("{begin}: {}", window(steady))
}

/// The figures of the last window, or of the one that met the limit.
pub(crate) fn window(steady: &SteadyResult) -> String {
    let (Some(iops), Some(bandwidth)) = (steady.iops_mean, steady.bandwidth_mean) else {
        return format!("no window of {} was completed", seconds(steady.window_s));
    };
    let limit = quantity(steady, steady.limit);
    let value = match steady.value {
        Some(value) => quantity(steady, value),
        None => "unknown".to_owned(),
    };
    let (what, its) = match of_bandwidth(steady) {
        true => ("bandwidth", "its"),
        false => ("items/s", "their"),
    };
    let mean = if steady.percent { " of the mean" } else { "" };
    let judged = match steady.criterion.ends_with("slope") {
        true => format!(
            "slope of {what} {value}{mean} in {} (limit {limit})",
            seconds(steady.interval_s)
        ),
        false => format!("{what} within {value} of {its} mean (limit {limit})"),
    };
    format!(
        "{judged} over {}, mean {} items/s, {}",
        seconds(steady.window_s),
        human_rate(iops),
        human_bandwidth(bandwidth),
    )
}

fn of_bandwidth(steady: &SteadyResult) -> bool {
    steady.criterion.starts_with("bw")
}

/// Formats a value of the criterion, or its limit.
fn quantity(steady: &SteadyResult, value: f64) -> String {
    match (steady.percent, of_bandwidth(steady)) {
        (true, _) => format!("{}%", short(value)),
        (false, true) => format!("{} bytes/s", short(value)),
        (false, false) => format!("{}/s", short(value)),
    }
}

/// Formats with the significant digits, at most four decimals.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady() -> SteadyResult {
        SteadyResult {
            criterion: "iops".to_owned(),
            limit: 2.0,
            percent: true,
            window_s: 10.0,
            interval_s: 1.0,
            ramp_s: 0.0,
            attained: true,
            attained_at_s: Some(14.0),
            window_from_s: Some(4.0),
            value: Some(1.234_567),
            iops_mean: Some(1000.0),
            bandwidth_mean: Some(4_096_000.0),
            iops: vec![1000.0; 10],
            bytes_per_s: vec![4_096_000.0; 10],
        }
    }

    #[test]
    fn a_line_says_whether_when_and_how_well() {
        let text = clause(&steady());
        let expect = "attained after 14.0 s: items/s within 1.23% of their mean (limit 2%) over 10.0 s, mean \
                      1,000 items/s, 3.91 MiB/s";
        assert_eq!(text, expect);
        let slope = SteadyResult {
            criterion: "bw_slope".to_owned(),
            percent: false,
            attained: false,
            attained_at_s: None,
            value: Some(-1234.5),
            ..steady()
        };
        let text = clause(&slope);
        let begin = "not attained: slope of bandwidth -1234 bytes/s in 1.00 s (limit 2 bytes/s) over 10.0 s";
        assert!(text.starts_with(begin), "{text}");
        let none = SteadyResult {
            attained: false,
            iops_mean: None,
            bandwidth_mean: None,
            ..steady()
        };
        let text = clause(&none);
        assert_eq!(text, "not attained: no window of 10.0 s was completed");
    }
}
