//! Detection of a steady rate: the criterion, and the watch over a window of rates.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// By what a rate is judged, and what it has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// Judged by bandwidth (else by IOPS).
    pub bandwidth: bool,
    /// Judged by the slope (else by the largest deviation from the mean).
    // Of a regression line.
    pub slope: bool,
    /// The limit.
    // At least 0; without `percent` operations or bytes per second.
    pub limit: f64,
    /// True if it is percent of the mean.
    pub percent: bool,
}

impl Criterion {
    /// fio's name of the criterion: `iops_slope`, `bw`, …
    pub fn name(&self) -> &'static str {
        match (self.bandwidth, self.slope) {
            (true, true) => "bw_slope",
            (true, false) => "bw",
            (false, true) => "iops_slope",
            (false, false) => "iops",
        }
    }

    /// `%` if numbers are relative.
    pub fn sign(&self) -> &'static str {
        if self.percent { "%" } else { "" }
    }

    /// The value to compare with the limit, of `values` taken at equal intervals. It is
    /// their largest deviation from the mean, or the slope from one value to the next (least
    /// squares), which may be negative. It is in per cent of the mean if the limit is, and
    /// then `None` for a mean of 0.
    pub fn measure<V>(&self, values: V) -> Option<f64>
    where
        V: ExactSizeIterator<Item = f64> + Clone,
    {
        let value = match self.slope {
            true => slope(values.clone()),
            false => max_deviation(values.clone()),
        };
        match (self.percent, mean(values)) {
            (true, mean) if mean > 0.0 => Some(100.0 * value / mean),
            (true, _) => None,
            (false, _) => Some(value),
        }
    }
}

/// The mean; 0 without values.
pub fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

/// The largest deviation of a value from the mean.
pub fn max_deviation(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let mean = mean(values.clone());
    values.map(|v| (v - mean).abs()).fold(0.0, f64::max)
}

/// The slope from one value to the next (least squares); 0 with fewer than two.
pub fn slope(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = mean(values.clone());
    let (mut xy, mut xx) = (0.0, 0.0);
    for (x, y) in values.enumerate() {
        let dx = x as f64 - middle;
        xy += dx * (y - mean);
        xx += dx * dx;
    }
    if xx > 0.0 { xy / xx } else { 0.0 }
}

/// Rule by which a rate counts as steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRule {
    /// The criterion.
    pub criterion: Criterion,
    /// The window over which the criterion must hold.
    pub duration: Nanos,
    /// Interval at which a value is taken.
    pub every: Nanos,
    /// Time from the start of recording that belongs to no window.
    pub ramp: Nanos,
}

/// Operations and bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Operations.
    pub ios: f64,
    /// Bytes.
    pub bytes: f64,
}

/// Watch that detects when the rate has become steady.
#[derive(Debug, Clone)]
pub struct SteadyWatch {
    criterion: Criterion,
    values: VecDeque<Rates>,
    room: usize,
    reached: bool,
}

impl SteadyWatch {
    /// Creates a watch without values. The window holds as many values as are taken in its
    /// time.
    pub fn new(rule: SteadyRule) -> SteadyWatch {
        let room = (rule.duration.0 / rule.every.0.max(1)).max(2) as usize;
        SteadyWatch {
            criterion: rule.criterion,
            values: VecDeque::with_capacity(room),
            room,
            reached: false,
        }
    }

    /// The rates of the last window, or those taken until now, in the order of time.
    pub fn window(&self) -> impl ExactSizeIterator<Item = Rates> + Clone {
        self.values.iter().copied()
    }

    /// True if there are values for a whole window.
    pub fn is_full(&self) -> bool {
        self.values.len() == self.room
    }

    /// True if the rate was steady at some time.
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// The value to compare with the limit. `None` before the first window is full, and if
    /// the limit is relative to a mean of 0.
    pub fn measure(&self) -> Option<f64> {
        let bandwidth = self.criterion.bandwidth;
        let judged = move |rates: Rates| if bandwidth { rates.bytes } else { rates.ios };
        let full = self.is_full();
        let value = full.then(|| self.criterion.measure(self.window().map(judged)));
        value.flatten()
    }

    /// Takes the rates since the last call. Returns true if the rate has been steady.
    pub fn note(&mut self, rates: Rates) -> bool {
        if self.is_full() {
            self.values.pop_front();
        }
        self.values.push_back(rates);
        let limit = self.criterion.limit;
        self.reached |= self.measure().is_some_and(|value| value.abs() <= limit);
        self.reached
    }
}

/// Result of a watch over all workers of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// The rule.
    pub rule: SteadyRule,
    /// The end of the window that kept the limit, after the common start; `None` if no
    /// window did.
    pub attained_at: Option<Nanos>,
    /// Start of the window of the following fields, after the common start: the one that
    /// kept the limit, or the last one. `None` if no window was full.
    pub window_from: Option<Nanos>,
    /// The value compared with the limit, over that window: [`Criterion::measure`].
    pub value: Option<f64>,
    /// The rates of all workers together for each interval of that window; empty without
    /// one.
    pub window: Vec<Rates>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(slope: bool, limit: f64, percent: bool) -> SteadyRule {
        SteadyRule {
            criterion: Criterion {
                bandwidth: false,
                slope,
                limit,
                percent,
            },
            duration: Nanos(5_000_000_000),
            every: Nanos::SECOND,
            ramp: Nanos(0),
        }
    }

    /// The number of values after which it is steady.
    fn steady_after(rule: SteadyRule, rates: impl Iterator<Item = f64>) -> Option<u64> {
        let mut watch = SteadyWatch::new(rule);
        (1_u64..)
            .zip(rates)
            .find(|(_, ios)| {
                watch.note(Rates {
                    ios: *ios,
                    bytes: 0.0,
                })
            })
            .map(|(n, _)| n)
    }

    #[test]
    fn a_constant_rate_is_steady_when_the_first_window_is_full() {
        let constant = || std::iter::repeat_n(100.0, 20);
        assert_eq!(steady_after(rule(true, 0.3, true), constant()), Some(5));
        assert_eq!(steady_after(rule(false, 1.0, false), constant()), Some(5));
    }

    #[test]
    fn a_rising_rate_is_steady_only_by_a_limit_above_its_slope() {
        let rising = || (0..20).map(|i| 1000.0 + f64::from(i) * 10.0);
        assert_eq!(steady_after(rule(true, 9.9, false), rising()), None);
        assert_eq!(steady_after(rule(true, 10.1, false), rising()), Some(5));
        assert_eq!(steady_after(rule(true, 0.5, true), rising()), None);
        assert_eq!(steady_after(rule(false, 20.1, false), rising()), Some(5));
    }

    #[test]
    fn a_rate_that_falls_into_place_is_steady_a_window_later() {
        let falls = || [900.0, 700.0, 500.0].into_iter().chain([100.0; 20]);
        assert_eq!(steady_after(rule(false, 2.0, true), falls()), Some(8));
        assert_eq!(steady_after(rule(true, 0.3, true), falls()), Some(8));
    }

    #[test]
    fn a_share_of_nothing_is_not_kept() {
        let nothing = || std::iter::repeat_n(0.0, 20);
        assert_eq!(steady_after(rule(false, 50.0, true), nothing()), None);
        assert_eq!(steady_after(rule(false, 0.0, false), nothing()), Some(5));
    }

    #[test]
    fn what_is_measured_has_the_sign_and_the_size_of_the_line() {
        let falling = [40.0, 30.0, 20.0, 10.0];
        let of = |slope, percent| rule(slope, 1.0, percent).criterion;
        let measured = |slope, percent| of(slope, percent).measure(falling.into_iter());
        assert_eq!(measured(true, false), Some(-10.0));
        assert_eq!(measured(true, true), Some(-40.0));
        assert_eq!(measured(false, false), Some(15.0));
        assert_eq!(measured(false, true), Some(60.0));
    }
}
