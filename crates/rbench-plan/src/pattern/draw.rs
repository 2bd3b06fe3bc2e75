//! Random offsets drawn from a distribution.
//!
//! - Zipf: rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to
//!   generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996):
//!   any theta, without a table or a sum over the blocks.
//! - Pareto: the self-similar distribution of J. Gray et al., "Quickly generating
//!   billion-record synthetic databases", SIGMOD 1994. With power h, a share of 1 − h of
//!   the accesses goes to a share h of the blocks, and so on within these.
//! - Normal: Box and Muller 1958, around the middle of the file; values outside are
//!   drawn again.
//!
//! A keyed permutation spreads the most frequent blocks of Zipf and Pareto over the
//! file. It is rotated so that the first block is at the requested offset. Normal and
//! zoned draws are not permuted.

use rbench_core::random::Stream;

use crate::jobs::Distribution;
use crate::permutation::Permutation;

/// A distribution with its precomputed values.
#[derive(Debug, Clone)]
pub enum Choice {
    Uniform,
    Zipf(Zipf),
    /// The exponent log h / log(1 − h).
    Pareto(f64),
    /// The deviation and the mean, as shares of the file.
    Normal(f64, f64),
    /// Zones by shares of the file.
    Zoned(Vec<Zone>),
    /// Zones by bytes.
    ZonedBytes(Vec<Zone>),
    /// Zipf or Pareto distribution, centred at this share of the file.
    Centred(Box<Choice>, f64),
    /// These blocks, continuing at the next one, counted from a base that advances by
    /// `stride` after each round.
    Sequence {
        blocks: Vec<u64>,
        next: usize,
        base: u64,
        stride: u64,
    },
}

/// A zone: the cumulative share of accesses, and its bounds.
#[derive(Debug, Clone, Copy)]
pub struct Zone {
    upto: f64,
    from: f64,
    to: f64,
}

impl Choice {
    /// Creates the choice. With `moves_on` a sequence does not repeat at the same
    /// offsets.
    pub fn new(distribution: &Distribution, moves_on: bool) -> Choice {
        match distribution {
            Distribution::Uniform => Choice::Uniform,
            Distribution::Zipf(theta) => Choice::Zipf(Zipf::new(*theta)),
            Distribution::Pareto(power) => {
                // The formula has no value at the ends of (0, 1).
                let h = power.clamp(1e-9, 1.0 - 1e-9);
                Choice::Pareto(h.ln() / (1.0 - h).ln())
            }
            Distribution::Normal(percent) => Choice::Normal(percent / 100.0, 0.5),
            Distribution::Zoned(zones) => {
                let space = zones.iter().map(|(_, share)| share).sum();
                Choice::Zoned(cumulate(zones.iter().copied(), space))
            }
            Distribution::ZonedBytes(zones) => {
                let zones = zones.iter().map(|(share, bytes)| (*share, *bytes as f64));
                Choice::ZonedBytes(cumulate(zones, 1.0))
            }
            Distribution::Centred(of, at) => match Choice::new(of, moves_on) {
                Choice::Normal(deviation, _) => Choice::Normal(deviation, *at),
                other => Choice::Centred(Box::new(other), *at),
            },
            Distribution::Sequence(blocks) => Choice::Sequence {
                next: 0,
                base: 0,
                stride: if moves_on { blocks.len() as u64 } else { 0 },
                blocks: blocks.to_vec(),
            },
        }
    }

    /// A block in `0..count` (at least one), with blocks of `align` bytes.
    #[inline]
    pub fn draw(
        &mut self,
        (count, align): (u64, u64),
        scatter: Option<&Permutation>,
        stream: &mut Stream,
    ) -> u64 {
        let count = count.max(1);
        let spread = |block: u64| match scatter {
            Some(order) if block < count => order.at(block),
            _ => block,
        };
        match self {
            Choice::Uniform => stream.below(count),
            Choice::Zipf(zipf) => spread(zipf.draw(count, stream)),
            Choice::Pareto(exponent) => {
                let block = (count as f64 * stream.unit().powf(*exponent)) as u64;
                spread(block.min(count - 1))
            }
            Choice::Normal(deviation, mean) => normal((*deviation, *mean), count, stream),
            Choice::Zoned(zones) => {
                let u = stream.unit();
                let zone = zones.iter().find(|z| u <= z.upto).or(zones.last());
                let (from, to) = zone.map_or((0.0, 1.0), |z| (z.from, z.to));
                within((from * count as f64, to * count as f64), count, stream)
            }
            Choice::ZonedBytes(zones) => {
                let u = stream.unit();
                let zone = zones.iter().find(|z| u <= z.upto).or(zones.last());
                let align = align.max(1) as f64;
                let (from, to) = zone.map_or((0.0, f64::MAX), |z| (z.from / align, z.to / align));
                within((from, to), count, stream)
            }
            Choice::Centred(of, at) => {
                let block = of.draw((count, align), scatter, stream);
                let wanted = ((*at * count as f64) as u64).min(count - 1);
                // No overflow: each is less than the count.
                let turned =
                    (u128::from(block) + u128::from(count - spread(0))) + u128::from(wanted);
                (turned % u128::from(count)) as u64
            }
            Choice::Sequence {
                blocks,
                next,
                base,
                stride,
            } => {
                let block = blocks.get(*next).copied().unwrap_or(0);
                let block = base.wrapping_add(block) % count;
                *next += 1;
                if *next >= blocks.len() {
                    *next = 0;
                    *base = base.wrapping_add(*stride);
                }
                block
            }
        }
    }
}

/// A block of `0..count` between both bounds.
fn within((from, to): (f64, f64), count: u64, stream: &mut Stream) -> u64 {
    let low = (from as u64).min(count - 1);
    let high = (to.round() as u64).clamp(low + 1, count);
    low + stream.below(high - low)
}

/// Contiguous zones with these shares of the accesses and lengths, in units of `unit`.
fn cumulate(zones: impl Iterator<Item = (f64, f64)> + Clone, unit: f64) -> Vec<Zone> {
    let accesses: f64 = zones.clone().map(|(share, _)| share).sum();
    let (mut upto, mut from) = (0.0, 0.0);
    let zone = |(access, length): (f64, f64)| {
        upto += access / accesses;
        let start = from;
        from += length / unit;
        Zone {
            upto,
            from: start,
            to: from,
        }
    };
    zones.map(zone).collect()
}

fn normal((deviation, mean): (f64, f64), count: u64, stream: &mut Stream) -> u64 {
    // Even with a huge deviation, some draws fall inside.
    for _ in 0..1000 {
        let radius = (-2.0 * stream.unit().ln()).sqrt();
        let gauss = radius * (std::f64::consts::TAU * stream.unit()).cos();
        let block = (mean + deviation * gauss) * count as f64;
        if block >= 0.0 && block < count as f64 {
            return block as u64;
        }
    }
    stream.below(count)
}

/// Draws ranks 1, 2, … with probability ∝ rank^−theta.
#[derive(Debug, Clone)]
pub struct Zipf {
    theta: f64,
    count: u64,
    /// H(3/2) − 1, H(count + 1/2) and the bound of the squeeze.
    low: f64,
    high: f64,
    squeeze: f64,
}

impl Zipf {
    fn new(theta: f64) -> Zipf {
        let mut zipf = Zipf {
            theta,
            count: 0,
            low: 0.0,
            high: 0.0,
            squeeze: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// H(x), an integral of x^−theta: (x^(1−theta) − 1) / (1 − theta).
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        log * expm1_over((1.0 - self.theta) * log)
    }

    /// x^−theta
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The inverse of H.
    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0);
        (y * ln1p_over(t)).exp()
    }

    /// A rank below `count`, from 0.
    fn draw(&mut self, count: u64, stream: &mut Stream) -> u64 {
        if count != self.count {
            self.count = count;
            self.high = self.integral(count as f64 + 0.5);
        }
        loop {
            let u = self.high + stream.unit() * (self.low - self.high);
            let x = self.inverse(u);
            let rank = (x + 0.5).floor().clamp(1.0, count as f64);
            let accepted =
                rank - x <= self.squeeze || u >= self.integral(rank + 0.5) - self.density(rank);
            if accepted {
                return rank as u64 - 1;
            }
        }
    }
}

/// (e^x − 1) / x, also near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// ln(1 + x) / x, also near 0.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}
