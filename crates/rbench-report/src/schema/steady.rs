//! The steadiness of a rate, in the result file.

use rbench_core::Nanos;
use rbench_core::steady::{Rates, Steadiness, mean};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steadiness of a phase that ends when the rate of all workers together is steady
/// (`--steadystate`). Reads and writes of a mix count together, and their rows have the same;
/// operations that only follow others, such as syncs, do not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyResult {
    /// The criterion: `iops` or `bw` (the largest deviation from the mean), `iops_slope` or
    /// `bw_slope` (the slope of the line through the values, least squares).
    pub criterion: String,
    /// The limit: per cent of the mean if `percent`, else operations or bytes per second; of
    /// a slope, from one value to the next.
    pub limit: f64,
    /// See `limit`.
    pub percent: bool,
    /// Length of the window, s (`--ss-dur`).
    pub window_s: f64,
    /// Time between two values, s (`--ss-interval`).
    pub interval_s: f64,
    /// Time before the first window, s after the start of recording (`--ss-ramp`).
    pub ramp_s: f64,
    /// True if the limit was kept over a window.
    pub attained: bool,
    /// The end of that window, s after the common start: the phase ended a moment later.
    /// `None` if it was not attained.
    pub attained_at_s: Option<f64>,
    /// The begin of the window that the rest is about, s after the common start: the one
    /// that kept the limit, or the last one. `None`: no window became full.
    pub window_from_s: Option<f64>,
    /// The value that is compared with the limit, over that window; a slope may be negative. `None`
    /// without a window, and where it would be relative to a mean of 0.
    pub value: Option<f64>,
    /// Mean of `iops`; `None` without a window.
    pub iops_mean: Option<f64>,
    /// Mean of `bytes_per_s`; `None` without a window.
    pub bandwidth_mean: Option<f64>,
    /// Operations without error per second, of all workers of all ranks: a value for each
    /// interval of the window.
    pub iops: Vec<f64>,
    /// Bytes that these moved per second.
    pub bytes_per_s: Vec<f64>,
}

impl From<&Steadiness> for SteadyResult {
    fn from(found: &Steadiness) -> SteadyResult {
        let Steadiness {
            rule,
            attained_at,
            window_from,
            value,
            window,
        } = found;
        let seconds = |at: Nanos| at.as_secs_f64();
        let of = |rate: fn(&Rates) -> f64| window.iter().map(rate);
        let (iops, bytes) = (of(|rates| rates.ios), of(|rates| rates.bytes));
        let some = !window.is_empty();
        SteadyResult {
            criterion: rule.criterion.name().to_owned(),
            limit: rule.criterion.limit,
            percent: rule.criterion.percent,
            window_s: seconds(rule.duration),
            interval_s: seconds(rule.every),
            ramp_s: seconds(rule.ramp),
            attained: attained_at.is_some(),
            attained_at_s: attained_at.map(seconds),
            window_from_s: window_from.map(seconds),
            value: *value,
            iops_mean: some.then(|| mean(iops.clone())),
            bandwidth_mean: some.then(|| mean(bytes.clone())),
            iops: iops.collect(),
            bytes_per_s: bytes.collect(),
        }
    }
}
