//! Permutation test of rows of samples: the probability of the differences between two sides if the
//! samples could as well be from either.
//!
//! Method, reasons and simulated error rates: docs/reference/compare.md.

use crate::random::Stream;

/// Fewest samples of each side.
pub const SAMPLES_MIN: usize = 3;

/// Share of the samples of both sides that may be excluded as extreme: one in this many.
const EXTREME_ONE_IN: usize = 5;
/// Maximum number of excluded samples.
const EXTREMES_MAX: usize = 4;
/// Factor of the statistic for each excluded sample.
const PENALTY: f64 = 0.6;
/// Added to the standard error of logarithms. Without it, rows almost without spread would weigh
/// more than their difference justifies.
const ERROR_FLOOR: f64 = 0.01;

/// Logarithm of a ratio beyond any that is measured.
const WIDEST: f64 = 64.0;

/// Maximum number of divisions that are all enumerated; of more, [`DRAWN`] are drawn.
const ENUMERATED_MAX: u64 = 4000;
const DRAWN: usize = 4000;

/// Logarithms of the samples of one row.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'s> {
    /// Samples of BASE.
    pub base: &'s [f64],
    /// Samples of NEW.
    pub new: &'s [f64],
}

/// Result of the test for one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// Probability of at least such a difference in any of the rows, if there is none.
    pub p: f64,
    /// Statistic above which a difference is shown.
    critical: f64,
}

/// Fewest samples of each of two equal sides that can show a difference at a level.
pub fn fewest(level: f64) -> usize {
    let enough = |n: &usize| least_p(*n, *n) <= level;
    (SAMPLES_MIN..30).find(enough).unwrap_or(30)
}

/// Smallest possible p: a division and its mirror image are equally extreme.
fn least_p(base: usize, new: usize) -> f64 {
    let mirrored = if base == new { 2.0 } else { 1.0 };
    mirrored / divisions(base, new)
}

/// Hodges and Lehmann's estimate of the centre: the median of the means of all pairs of values,
/// including each with itself. One outlier of five hardly moves it. `None` without values.
pub fn centre(values: &[f64]) -> Option<f64> {
    let pairs = values.iter().enumerate();
    let mut means: Vec<f64> = pairs
        .flat_map(|(i, a)| values[i..].iter().map(move |b| f64::midpoint(*a, *b)))
        .collect();
    means.sort_by(f64::total_cmp);
    let middle = means.len().checked_sub(1)? / 2;
    Some(f64::midpoint(means[middle], means[means.len() / 2]))
}

fn is_enough(sides: &Sides<'_>, level: f64) -> bool {
    let (base, new) = (sides.base.len(), sides.new.len());
    base.min(new) >= SAMPLES_MIN && least_p(base, new) <= level
}

/// Number of ways to divide all samples between the sides.
fn divisions(base: usize, new: usize) -> f64 {
    let factors = (1..=base.min(new)).map(|i| (base.max(new) + i) as f64 / i as f64);
    factors.product()
}

/// Tests rows together: the probability that any of them differs by chance is at most `level`.
/// `None` for rows with too few samples to differ at that level.
///
/// Westfall and Young's step-down procedure with the maximum of the statistics.
pub fn test(rows: &[Sides<'_>], level: f64) -> Vec<Option<Chance>> {
    let tested = rows
        .iter()
        .enumerate()
        .filter(|(_, sides)| is_enough(sides, level));
    let mut order: Vec<(f64, usize)> = tested
        .map(|(row, sides)| (Pooled::new(*sides, 0.0).observed(), row))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut plans: Vec<Divisions> = Vec::new();
    for (_, row) in &order {
        let shape = (rows[*row].base.len(), rows[*row].new.len());
        if !plans.iter().any(|plan| plan.shape == shape) {
            plans.push(Divisions::new(shape));
        }
    }
    let [plan] = &mut plans[..] else {
        plans.iter_mut().for_each(Divisions::draw);
        return stepped_down(rows, &order, &plans, level);
    };
    plan.enumerate();
    stepped_down(rows, &order, &plans, level)
}

/// `order`: rows by their statistic, the smallest first.
fn stepped_down(
    rows: &[Sides<'_>],
    order: &[(f64, usize)],
    plans: &[Divisions],
    level: f64,
) -> Vec<Option<Chance>> {
    let count = plans.iter().map(|plan| plan.all.len()).min().unwrap_or(0);
    let allowed = (level * count as f64 + 1e-9).floor() as usize;
    // For each division the maximum of the statistics over the rows until this one.
    let mut highest = vec![0.0_f64; count];
    let mut found: Vec<(usize, Chance)> = Vec::new();
    for (observed, row) in order {
        let sides = rows[*row];
        let shape = (sides.base.len(), sides.new.len());
        let Some(plan) = plans.iter().find(|plan| plan.shape == shape) else {
            continue;
        };
        let pooled = Pooled::new(sides, 0.0);
        for (highest, division) in highest.iter_mut().zip(&plan.all) {
            *highest = highest.max(pooled.statistic(division));
        }
        // Rounding must not separate a division from its mirror image.
        let least = observed * (1.0 - 1e-9);
        let as_high = highest.iter().filter(|one| **one >= least).count();
        let mut sorted = highest.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let chance = Chance {
            p: as_high as f64 / count as f64,
            critical: sorted.get(allowed).copied().unwrap_or(f64::INFINITY),
        };
        found.push((*row, chance));
    }
    let mut chances = vec![None; rows.len()];
    // After the first row that does not differ no row does; all get that row's p.
    let (mut p, mut critical) = (0.0_f64, None);
    for (row, chance) in found.into_iter().rev() {
        p = p.max(chance.p);
        let chance = Chance {
            p,
            critical: critical.unwrap_or(chance.critical),
        };
        if p > level {
            critical = Some(chance.critical);
        }
        chances[row] = Some(chance);
    }
    chances
}

impl Chance {
    /// Logarithms of the ratios NEW / BASE that fit the samples: dividing NEW by such a ratio
    /// leaves no difference. The interval contains 0 exactly if no difference is shown.
    pub fn interval(&self, sides: Sides<'_>) -> Option<(f64, f64)> {
        let fits =
            |ratio: f64| Pooled::new(sides, ratio).observed() * (1.0 - 1e-9) <= self.critical;
        let about = centre(sides.new)? - centre(sides.base)?;
        let no_change = fits(0.0);
        let edge = |sign: f64| {
            let towards_none = sign * about < 0.0;
            let mut inside = match no_change && towards_none {
                true => 0.0,
                false => about,
            };
            let mut step = ERROR_FLOOR;
            let mut outside = loop {
                let next = inside + sign * step;
                if !no_change && towards_none && sign * next >= 0.0 {
                    break 0.0;
                }
                if !fits(next) {
                    break next;
                }
                if step > WIDEST {
                    return sign * f64::INFINITY;
                }
                inside = next;
                step *= 2.0;
            };
            for _ in 0..40 {
                let middle = f64::midpoint(inside, outside);
                match fits(middle) {
                    true => inside = middle,
                    false => outside = middle,
                }
            }
            inside
        };
        Some((edge(-1.0), edge(1.0)))
    }
}

/// All or many divisions of the samples between two sides of this shape. `true` means BASE.
struct Divisions {
    shape: (usize, usize),
    all: Vec<Vec<bool>>,
}

impl Divisions {
    fn new(shape: (usize, usize)) -> Divisions {
        Divisions {
            shape,
            all: Vec::new(),
        }
    }

    /// Enumerates all divisions, if there are not too many. Of two equal sides, a division and its
    /// mirror image have the same statistic, so one of them represents both.
    fn enumerate(&mut self) {
        let (base, new) = self.shape;
        if divisions(base, new) > ENUMERATED_MAX as f64 {
            return self.draw();
        }
        let mut chosen = vec![false; base + new];
        chosen[..base].fill(true);
        // The mirror images follow when the first sample leaves BASE.
        while base != new || chosen[0] {
            self.all.push(chosen.clone());
            // The next division in lexicographic order: the last `true` with room moves up by one,
            // and those after it follow directly.
            let Some(at) = (1..chosen.len())
                .rev()
                .find(|i| chosen[i - 1] && !chosen[*i])
            else {
                return;
            };
            chosen.swap(at - 1, at);
            let later = chosen[at + 1..].iter().filter(|own| **own).count();
            chosen[at + 1..].fill(false);
            chosen[at + 1..at + 1 + later].fill(true);
        }
    }

    /// Draws divisions, the same each time; the first is the observed one.
    fn draw(&mut self) {
        let (base, new) = self.shape;
        let mut rng = Stream::new(&[base as u64, new as u64]);
        let mut chosen = vec![false; base + new];
        chosen[..base].fill(true);
        for _ in 0..DRAWN {
            self.all.push(chosen.clone());
            for i in (1..chosen.len()).rev() {
                chosen.swap(i, rng.below(i as u64 + 1) as usize);
            }
        }
    }
}

/// Samples of both sides in order, each with its position in BASE followed by NEW.
struct Pooled {
    samples: Vec<(f64, usize)>,
    base: usize,
}

/// Number, sum and sum of squares of some samples.
#[derive(Default, Clone, Copy)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Variance of the mean.
    fn error(&self) -> f64 {
        let about_mean = self.squares - self.sum * self.mean();
        about_mean.max(0.0) / (self.count - 1.0) / self.count
    }
}

impl Pooled {
    /// Pools the samples, with NEW shifted by −`ratio`.
    fn new(sides: Sides<'_>, ratio: f64) -> Pooled {
        let new = sides.new.iter().map(|value| value - ratio);
        let all = sides.base.iter().copied().chain(new);
        let mut samples: Vec<(f64, usize)> = all.zip(0..).collect();
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Sums of squares lose fewest digits near 0.
        let middle = samples
            .get(samples.len() / 2)
            .map_or(0.0, |(value, _)| *value);
        samples.iter_mut().for_each(|(value, _)| *value -= middle);
        Pooled {
            samples,
            base: sides.base.len(),
        }
    }

    fn observed(&self) -> f64 {
        self.highest(|place| place < self.base)
    }

    fn statistic(&self, division: &[bool]) -> f64 {
        self.highest(|place| division[place])
    }

    /// The highest of the statistics without some of the lowest and the highest samples.
    fn highest(&self, is_base: impl Fn(usize) -> bool) -> f64 {
        let count = self.samples.len();
        let most = (count / EXTREME_ONE_IN).min(EXTREMES_MAX);
        let sides = |from: usize, to: usize, mut sides: [Moments; 2]| {
            for (value, place) in &self.samples[from..to] {
                sides[usize::from(!is_base(*place))].add(*value);
            }
            sides
        };
        // The samples that are never excluded are added up once.
        let middle = sides(most, count - most, Default::default());
        let mut highest = 0.0_f64;
        for low in 0..=most {
            let lower = sides(low, most, middle);
            for high in 0..=most - low {
                let [base, new] = sides(count - most, count - high, lower);
                if base.count.min(new.count) < SAMPLES_MIN as f64 {
                    continue;
                }
                let error = (base.error() + new.error()).sqrt() + ERROR_FLOOR;
                let own = (new.mean() - base.mean()).abs() / error;
                highest = highest.max(own * PENALTY.powi((low + high) as i32));
            }
        }
        highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_is_hardly_moved_by_one_wild_value_of_five() {
        assert_eq!(centre(&[]), None);
        assert_eq!(centre(&[7.0]), Some(7.0));
        assert_eq!(centre(&[1.0, 3.0]), Some(2.0));
        assert_eq!(centre(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(3.0));
        let wild = centre(&[1.0, 2.0, 3.0, 4.0, -1e9]).expect("five");
        assert!((1.0..=3.0).contains(&wild), "{wild}");
    }
}
