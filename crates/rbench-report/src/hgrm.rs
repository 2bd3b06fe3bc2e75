//! Percentile distributions in the format of HdrHistogram's tools (`.hgrm`), in us: a part for each
//! operation, below a comment with its name.

use std::fmt::Write as _;

use rbench_core::hist::{Hist, HistError};

use crate::schema::RunResult;
use crate::table::printable;

/// Steps for each halving of the distance to 100 %, like in HdrHistogram's tools.
const TICKS: u32 = 5;

/// Renders all operations with values, service times before response times.
///
/// # Errors If a distribution cannot be read.
pub fn render(result: &RunResult) -> Result<String, HistError> {
    let mut out = String::new();
    for phase in &result.phases {
        let times = [
            ("service", Some(&phase.latency.service)),
            ("response", phase.latency.response.as_ref()),
        ];
        for (time, hist) in times {
            let Some(hist) = hist.filter(|hist| hist.count > 0) else {
                continue;
            };
            let (run, name) = (printable(&result.run.id), printable(&phase.name));
            let iteration = phase.iteration;
            let _ = writeln!(
                out,
                "#[Run = {run}, operation = {name}, iteration = {iteration}, time = {time}, unit = us]"
            );
            part(&mut out, hist)?;
        }
    }
    if out.is_empty() {
        out.push_str("#[No operation has finished]\n");
    }
    Ok(out)
}

fn part(out: &mut String, hist: &Hist) -> Result<(), HistError> {
    let decoded = hist.latency()?;
    let _ = writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let us = |ns: f64| ns / 1000.0;
    let mut seen = 0;
    for step in decoded.iter_quantiles(TICKS) {
        let quantile = step.quantile_iterated_to();
        // Capped at the largest value, which is exact.
        let value = step.value_iterated_to().min(hist.max_ns);
        seen += step.count_since_last_iteration();
        let _ = write!(
            out,
            "{:>12.3} {quantile:>14.12} {seen:>10}",
            us(value as f64)
        );
        let _ = match quantile < 1.0 {
            true => writeln!(out, " {:>14.2}", 1.0 / (1.0 - quantile)),
            false => writeln!(out),
        };
    }
    let _ = writeln!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        us(hist.mean_ns),
        us(hist.stddev_ns)
    );
    let _ = writeln!(
        out,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        us(hist.max_ns as f64),
        hist.count
    );
    let _ = writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        32, 2048
    );
    Ok(())
}
