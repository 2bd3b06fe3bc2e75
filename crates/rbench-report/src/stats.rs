//! The statistics of iterations and of comparisons: estimates of logarithms, their difference by
//! Welch's t, Holm's correction for the number of rows. What is estimated, and from
//! what, is told elsewhere.
//!
//! Formulas and sources: docs/compare.md.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Fewest samples of which a spread is taken.
pub const SAMPLES_MIN: usize = 3;

/// Fewest whole slices of a timeline, and fewest blocks in them, from which the
/// spread of a mean over time is taken.
const SLICES_MIN: usize = 24;
const BLOCKS_MIN: f64 = 8.0;

/// The logarithm of a figure, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Its natural logarithm.
    pub log: f64,
    /// How uncertain it is; `None`: there is no telling.
    pub spread: Option<Spread>,
}

/// How uncertain an estimate is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Variance of the estimate.
    pub variance: f64,
    /// Degrees of freedom of that variance.
    pub freedom: f64,
}

impl Estimate {
    /// A number without uncertainty.
    pub fn exact(value: f64) -> Option<Estimate> {
        let spread = Spread {
            variance: 0.0,
            freedom: f64::INFINITY,
        };
        logarithm(value).map(|log| Estimate {
            value,
            log,
            spread: Some(spread),
        })
    }

    /// The geometric mean of independent samples; `None` if there is none, or if
    /// one is not positive.
    pub fn of_samples(values: &[f64]) -> Option<Estimate> {
        let logs: Vec<f64> = values
            .iter()
            .map(|v| logarithm(*v))
            .collect::<Option<_>>()?;
        let n = logs.len() as f64;
        let log = mean(&logs)?;
        let squares: f64 = logs.iter().map(|x| (x - log).powi(2)).sum();
        let spread = (logs.len() >= SAMPLES_MIN).then(|| Spread {
            variance: squares / (n - 1.0) / n,
            freedom: n - 1.0,
        });
        // One sample is the figure itself, to the last digit.
        let value = match values {
            [one] => *one,
            _ => log.exp(),
        };
        Some(Estimate { value, log, spread })
    }

    /// How far the figure may be off by chance, as a share of it: the larger half of its
    /// confidence interval at a level of significance. `None` where there is no telling.
    pub fn precision(&self, level: f64) -> Option<f64> {
        let spread = self.spread?;
        let from_itself = Difference {
            log: 0.0,
            error: spread.variance.sqrt(),
            freedom: spread.freedom,
        };
        Some(from_itself.interval(level).1 - 1.0)
    }

    /// A figure of everything together. Its variance is the larger of two: that of the
    /// jackknife, which has the figure with one sample left out in turn, and that of the
    /// mean of the figures of single samples. `floor` is the variance of one reading.
    pub fn of_whole(whole: f64, without: &[f64], single: &[f64], floor: f64) -> Option<Estimate> {
        let log = logarithm(whole)?;
        let n = without.len() as f64;
        let squares = |values: &[f64]| -> Option<f64> {
            let logs: Vec<f64> = values
                .iter()
                .map(|v| logarithm(*v))
                .collect::<Option<_>>()?;
            let centre = mean(&logs)?;
            Some(logs.iter().map(|x| (x - centre).powi(2)).sum())
        };
        let spread = || {
            let jackknife = squares(without)? * (n - 1.0) / n;
            let of_mean = squares(single)? / (n - 1.0) / n;
            Some(Spread {
                variance: jackknife.max(of_mean) + floor,
                freedom: n - 1.0,
            })
        };
        let enough = without.len() >= SAMPLES_MIN && single.len() == without.len();
        Some(Estimate {
            value: whole,
            log,
            spread: enough.then(spread).flatten(),
        })
    }
}

fn logarithm(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then(|| value.ln())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// How uncertain the logarithm of the mean of a series in time is: the variance
/// that a moving-block bootstrap of it has, in closed form. `None`: the series is
/// too short for its autocorrelation.
pub fn of_series(values: &[f64]) -> Option<Spread> {
    let n = values.len();
    let centre = mean(values).filter(|centre| *centre > 0.0)?;
    if n < SLICES_MIN {
        return None;
    }
    let length = block_length(values, centre);
    let blocks = n as f64 / length as f64;
    if blocks < BLOCKS_MIN {
        return None;
    }
    let means: Vec<f64> = values
        .windows(length)
        .map(|block| block.iter().sum::<f64>() / length as f64)
        .collect();
    let of_means = mean(&means)?;
    let squares: f64 = means.iter().map(|x| (x - of_means).powi(2)).sum();
    let variance = squares / means.len() as f64 / blocks;
    Some(Spread {
        variance: variance / centre.powi(2),
        freedom: blocks - 1.0,
    })
}

/// Twice the lag behind which the series has no autocorrelation to speak of, at
/// least the cube root of its length.
fn block_length(values: &[f64], centre: f64) -> usize {
    let n = values.len();
    let product = |lag: usize| -> f64 {
        let pairs = values.iter().zip(&values[lag..]);
        pairs.map(|(a, b)| (a - centre) * (b - centre)).sum()
    };
    let shortest = (n as f64).cbrt().ceil() as usize;
    let all = product(0);
    if all <= 0.0 {
        return shortest;
    }
    // Politis and White: five lags in a row below this are none.
    const IN_A_ROW: usize = 5;
    let small = 2.0 * ((n as f64).log10() / n as f64).sqrt();
    let mut quiet = 0;
    for lag in 1..n / 2 {
        quiet = match product(lag).abs() / all < small {
            true => quiet + 1,
            false => 0,
        };
        if quiet == IN_A_ROW {
            return shortest.max(2 * (lag - IN_A_ROW));
        }
    }
    n
}

/// Two estimates against each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Logarithm of new / base.
    log: f64,
    /// Standard error of that.
    error: f64,
    /// Degrees of freedom, after Welch and Satterthwaite.
    freedom: f64,
}

impl Difference {
    /// `None` where one of them has no spread.
    pub fn between(base: Estimate, new: Estimate) -> Option<Difference> {
        let (a, b) = (base.spread?, new.spread?);
        let variance = a.variance + b.variance;
        let parts = a.variance.powi(2) / a.freedom + b.variance.powi(2) / b.freedom;
        Some(Difference {
            log: new.log - base.log,
            error: variance.sqrt(),
            freedom: if parts > 0.0 {
                variance.powi(2) / parts
            } else {
                a.freedom.min(b.freedom)
            },
        })
    }

    fn student(&self) -> Option<StudentsT> {
        // Beyond this it is the normal distribution.
        StudentsT::new(0.0, 1.0, self.freedom.clamp(1.0, 1e9)).ok()
    }

    /// How probable at least such a difference is if there is none, 0 to 1.
    pub fn p(&self) -> f64 {
        if self.error == 0.0 {
            return if self.log == 0.0 { 1.0 } else { 0.0 };
        }
        let t = (self.log / self.error).abs();
        self.student().map_or(1.0, |student| 2.0 * student.sf(t))
    }

    /// The ratios new / base that fit the samples, at a level of significance.
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

/// Holm's step-down procedure over some rows: the level at which each is judged.
/// A row differs if its p is at most its level; that one of them does so by chance
/// has at most the probability `level`. Rows without a p take no part.
pub fn holm(ps: &[Option<f64>], level: f64) -> Vec<Option<f64>> {
    let mut order: Vec<(f64, usize)> = Vec::new();
    order.extend(ps.iter().enumerate().filter_map(|(i, p)| p.map(|p| (p, i))));
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels = vec![None; ps.len()];
    let mut left = order.len();
    for (p, row) in order {
        let own = level / left as f64;
        levels[row] = Some(own);
        // Behind the first that does not differ, none does: all are judged at its level.
        if p <= own {
            left -= 1;
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::random::Stream;

    #[test]
    fn an_interval_is_students() {
        // Two samples of five each; Welch's t, by hand.
        let base = Estimate::of_samples(&[100.0, 101.0, 99.0, 100.5, 99.5]).expect("positive");
        let new = Estimate::of_samples(&[110.0, 111.0, 109.0, 110.5, 109.5]).expect("positive");
        let difference = Difference::between(base, new).expect("five each");
        assert!((7.0..8.0).contains(&difference.freedom), "{difference:?}");
        let (low, high) = difference.interval(0.05);
        assert!(
            low > 1.08 && low < 1.1 && high > 1.1 && high < 1.12,
            "{low} {high}"
        );
        assert!(difference.p() < 1e-5, "{}", difference.p());
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
        assert_eq!(of_series(&[1.0; 23]), None);
    }

    #[test]
    fn the_jackknife_of_a_mean_is_the_variance_of_the_mean() {
        let values: [f64; 5] = [100.0, 101.0, 99.0, 100.5, 99.4];
        let sum: f64 = values.iter().sum();
        let without: Vec<f64> = values.iter().map(|v| (sum - v) / 4.0).collect();
        let direct = Estimate::of_samples(&values).expect("positive");
        let direct = direct.spread.expect("five");
        // Of either alone, the other being without any.
        for (without, single) in [(&without[..], &[1.0; 5][..]), (&[1.0; 5], &values)] {
            let whole = Estimate::of_whole(sum / 5.0, without, single, 0.0).expect("positive");
            let spread = whole.spread.expect("five");
            assert!(
                (spread.variance / direct.variance - 1.0).abs() < 0.01,
                "{spread:?}"
            );
            assert_eq!(spread.freedom, direct.freedom);
        }
    }

    /// Quantiles of few operations, and of iterations that differ more than the
    /// operations in them.
    #[test]
    fn quantiles_of_the_same_thing_hardly_ever_differ() {
        let mut rng = Stream::new(&[9]);
        let quantile = |values: &[f64], q: f64| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted[((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
        };
        for (q, each, between) in [(0.5, 40, 0.0), (0.99, 40, 0.0), (0.9, 40, 0.2)] {
            let times = 400;
            let mut wrong = 0;
            for _ in 0..times {
                let mut side = || {
                    let samples: Vec<Vec<f64>> = (0..5)
                        .map(|_| {
                            let own = between * normal(&mut rng);
                            (0..each)
                                .map(|_| (own + 0.1 * normal(&mut rng)).exp())
                                .collect()
                        })
                        .collect();
                    let without = |i: usize| {
                        let others = samples.iter().enumerate().filter(|(k, _)| *k != i);
                        let others: Vec<f64> = others.flat_map(|(_, s)| s.clone()).collect();
                        quantile(&others, q)
                    };
                    let without: Vec<f64> = (0..5).map(without).collect();
                    let single: Vec<f64> = samples.iter().map(|s| quantile(s, q)).collect();
                    let whole = quantile(&samples.concat(), q);
                    Estimate::of_whole(whole, &without, &single, 0.0).expect("positive")
                };
                let p = Difference::between(side(), side()).map(|d| d.p());
                wrong += u32::from(p.is_some_and(|p| p < 0.01));
            }
            // 4 are expected at most; more than 14 has a probability of one in 20,000.
            assert!(wrong <= 14, "{wrong} of {times}: {q} {between}");
        }
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

    fn normal(rng: &mut Stream) -> f64 {
        let (a, b) = (rng.unit().max(1e-300), rng.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    #[test]
    fn the_same_thing_twice_hardly_ever_differs_in_any_row() {
        let mut rng = Stream::new(&[7]);
        let (mut wrong, times, rows) = (0, 1000, 12);
        for _ in 0..times {
            let ps: Vec<Option<f64>> = (0..rows)
                .map(|_| {
                    let mut side = || {
                        let values: Vec<f64> =
                            (0..5).map(|_| (0.1 * normal(&mut rng)).exp()).collect();
                        Estimate::of_samples(&values).expect("positive")
                    };
                    Difference::between(side(), side()).map(|d| d.p())
                })
                .collect();
            let levels = holm(&ps, 0.01);
            let differs = ps.iter().zip(&levels).any(|(p, level)| p <= level);
            wrong += u32::from(differs);
        }
        // 1 % are expected, 10 of 1000; more than 25 has a probability of one in 20,000.
        assert!(wrong <= 25, "{wrong} of {times}");
    }

    #[test]
    fn blocks_see_the_autocorrelation_that_single_slices_do_not() {
        let mut rng = Stream::new(&[8]);
        let (mut wrong, mut naive, times) = (0, 0, 400);
        for _ in 0..times {
            let mut side = || {
                let mut level = 0.0;
                let series: Vec<f64> = (0..300)
                    .map(|_| {
                        level = 0.8 * level + normal(&mut rng);
                        100.0 + 3.0 * level
                    })
                    .collect();
                let log = mean(&series).expect("300").ln();
                let blocks = Estimate {
                    value: log.exp(),
                    log,
                    spread: of_series(&series),
                };
                let single = Estimate::of_samples(&series).expect("positive").spread;
                let single = Estimate {
                    value: log.exp(),
                    log,
                    spread: single,
                };
                (blocks, single)
            };
            let (base, new) = (side(), side());
            wrong += u32::from(Difference::between(base.0, new.0).is_some_and(|d| d.p() < 0.01));
            naive += u32::from(Difference::between(base.1, new.1).is_some_and(|d| d.p() < 0.01));
        }
        assert!(naive > 80, "{naive} of {times}");
        assert!(wrong < 24, "{wrong} of {times}");
    }
}
