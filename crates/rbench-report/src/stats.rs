//! Statistics of iterations: a robust centre, estimates of logarithms with Student's t, and Holm's
//! correction for the number of rows. The estimates serve the precision of rates and comparisons
//! with published figures.
//!
//! Formulas and sources: docs/reference/compare.md. [`rbench_core::permutation`] compares two sides
//! with samples.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Fewest samples that have a spread.
pub const SAMPLES_MIN: usize = 3;

/// An estimate of the logarithm of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Natural logarithm of the figure.
    log: f64,
    /// Its uncertainty; `None`: unknown.
    spread: Option<Spread>,
}

/// The uncertainty of an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    /// Variance of the estimate.
    variance: f64,
    /// Degrees of freedom of that variance.
    freedom: f64,
}

impl Estimate {
    /// The geometric mean of independent samples; `None` without samples, or if one is not
    /// positive.
    pub fn of_samples(values: &[f64]) -> Option<Estimate> {
        Estimate::of_logarithms(&logarithms(values.iter().copied())?)
    }

    /// The mean of independent logarithms.
    pub fn of_logarithms(logs: &[f64]) -> Option<Estimate> {
        let n = logs.len() as f64;
        let log = mean(logs)?;
        let squares: f64 = logs.iter().map(|x| (x - log).powi(2)).sum();
        let spread = (logs.len() >= SAMPLES_MIN).then(|| Spread {
            variance: squares / (n - 1.0) / n,
            freedom: n - 1.0,
        });
        Some(Estimate { log, spread })
    }

    /// The possible error by chance, as a share of the figure: the larger half of its confidence
    /// interval at a level of significance. `None` if unknown.
    pub fn precision(&self, level: f64) -> Option<f64> {
        Some(self.difference(0.0)?.interval(level).1 - 1.0)
    }

    /// The difference to an exact number; `None` without a spread.
    pub fn against(&self, exact: f64) -> Option<Difference> {
        self.difference(self.log - logarithm(exact)?)
    }

    /// A difference of this logarithm, as uncertain as the estimate.
    fn difference(&self, log: f64) -> Option<Difference> {
        let spread = self.spread?;
        Some(Difference {
            log,
            error: spread.variance.sqrt(),
            freedom: spread.freedom,
        })
    }
}

/// Logarithms of positive numbers; `None` if one is not.
pub fn logarithms(values: impl IntoIterator<Item = f64>) -> Option<Vec<f64>> {
    values.into_iter().map(logarithm).collect()
}

fn logarithm(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then(|| value.ln())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The difference between an estimate and a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Logarithm of estimate / number.
    log: f64,
    /// Standard error of that.
    error: f64,
    /// Degrees of freedom of the error.
    freedom: f64,
}

impl Difference {
    fn student(&self) -> Option<StudentsT> {
        // More degrees of freedom give the normal distribution.
        StudentsT::new(0.0, 1.0, self.freedom.clamp(1.0, 1e9)).ok()
    }

    /// Probability of at least this difference if there is none, 0 to 1.
    pub fn p(&self) -> f64 {
        if self.error == 0.0 {
            return if self.log == 0.0 { 1.0 } else { 0.0 };
        }
        let t = (self.log / self.error).abs();
        self.student().map_or(1.0, |student| 2.0 * student.sf(t))
    }

    /// The ratios that fit the samples, at a level of significance.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let t = self.student().map_or(f64::INFINITY, |student| {
            student.inverse_cdf(1.0 - level / 2.0)
        });
        let half = if self.error == 0.0 {
            0.0
        } else {
            t * self.error
        };
        ((self.log - half).exp(), (self.log + half).exp())
    }
}

/// Holm's step-down procedure over some rows: the level at which each is judged. A row differs if
/// its p is at most its level. The probability that any row does so by chance is at most `level`.
/// Rows without a p are ignored.
pub fn holm(ps: &[Option<f64>], level: f64) -> Vec<Option<f64>> {
    let mut order: Vec<(f64, usize)> = Vec::new();
    order.extend(ps.iter().enumerate().filter_map(|(i, p)| p.map(|p| (p, i))));
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels = vec![None; ps.len()];
    let mut left = order.len();
    for (p, row) in order {
        let own = level / left as f64;
        levels[row] = Some(own);
        // After the first that does not differ, none does: all are judged at its level.
        if p <= own {
            left -= 1;
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students() {
        let new = Estimate::of_samples(&[110.0, 111.0, 109.0, 110.5, 109.5]).expect("positive");
        let difference = new.against(100.0).expect("five");
        assert_eq!(difference.freedom, 4.0);
        let (low, high) = difference.interval(0.05);
        assert!(
            low > 1.08 && low < 1.1 && high > 1.1 && high < 1.12,
            "{low} {high}"
        );
        assert!(difference.p() < 1e-4, "{}", difference.p());
        // The table of Student's distribution: 8 degrees of freedom, 2.306 and 3.355.
        let unit = Difference {
            log: 2.306,
            error: 1.0,
            freedom: 8.0,
        };
        assert!((unit.p() - 0.05).abs() < 1e-4, "{}", unit.p());
        let (low, high) = unit.interval(0.01);
        assert!((low.ln() - (2.306 - 3.355)).abs() < 1e-3, "{low}");
        assert!((high.ln() - (2.306 + 3.355)).abs() < 1e-3, "{high}");
    }

    #[test]
    fn what_is_judged_differs_if_and_only_if_its_interval_does_not_hold_one() {
        for log in [0.01, 0.05, 0.08, 0.1, 0.5] {
            let difference = Difference {
                log,
                error: 0.02,
                freedom: 6.5,
            };
            for level in [0.05, 0.01, 0.001, 1e-5] {
                let (low, _) = difference.interval(level);
                assert_eq!(difference.p() <= level, low > 1.0, "{log} {level}");
            }
        }
    }

    #[test]
    fn few_samples_have_no_spread() {
        let two = Estimate::of_samples(&[1.0, 2.0]).expect("positive");
        assert_eq!(two.spread, None);
        assert_eq!(Estimate::of_samples(&[]), None);
        assert_eq!(Estimate::of_samples(&[1.0, 0.0, 2.0]), None);
    }

    #[test]
    fn holm_corrects_for_the_number_of_rows() {
        let levels = holm(&[Some(0.04), None, Some(0.001), Some(0.02)], 0.05);
        // 0.001 ≤ 0.05/3, 0.02 ≤ 0.05/2, 0.04 ≤ 0.05/1: all differ.
        assert_eq!(levels, [Some(0.05), None, Some(0.05 / 3.0), Some(0.025)]);
        // The second does not: the third is judged at its level.
        let levels = holm(&[Some(0.04), Some(0.001), Some(0.03)], 0.05);
        assert_eq!(levels, [Some(0.025), Some(0.05 / 3.0), Some(0.025)]);
    }
}
