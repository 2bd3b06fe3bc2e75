//! Error rates of comparisons, by simulation: docs/dev/statistics.md lists them.
//!
//! `RBENCH_SIMULATE=20000 cargo test -p rbench-report --lib compare::rates -- --nocapture` prints
//! them for 20,000 pairs of each kind. The stage `properties` of scripts/test simulates 2,000.

#![allow(clippy::print_stdout, reason = "the tables are read by a person")]

use rbench_core::permutation::centre;
use rbench_core::random::Stream;

use super::figure::Sampled;
use super::{Basis, Options, Pair, Row, Verdict, find, judge};
use crate::stats::logarithms;

/// Noise that an iteration adds to the logarithm of a row's rate. Arguments: random numbers, number
/// of the iteration, and noise that all rows of the iteration share.
type Noise = fn(&mut Stream, usize, f64) -> f64;

fn normal(rng: &mut Stream) -> f64 {
    (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Logarithm of the error of a wild iteration: a factor of 58.
const WILD: f64 = 4.06;

const EQUAL: [(&str, Noise); 10] = [
    ("normal, 5%", |rng, _, _| 0.05 * normal(rng)),
    ("normal, 30%", |rng, _, _| 0.3 * normal(rng)),
    ("uniform, ±5%", |rng, _, _| 0.1 * (rng.unit() - 0.5)),
    ("heavy tails (t, 2 degrees of freedom)", |rng, _, _| {
        0.05 * normal(rng) / rng.exponential().sqrt()
    }),
    ("heaviest tails (Cauchy)", |rng, _, _| {
        0.05 * (std::f64::consts::PI * (rng.unit() - 0.5)).tan()
    }),
    ("one iteration in ten 58 times slower", |rng, _, _| {
        0.05 * normal(rng) - if rng.unit() < 0.1 { WILD } else { 0.0 }
    }),
    ("first iteration up to 58 times slower", |rng, nth, _| {
        0.05 * normal(rng) - if nth == 0 { WILD * rng.unit() } else { 0.0 }
    }),
    ("two speeds, 30% apart", |rng, _, _| {
        0.01 * normal(rng) + if rng.unit() < 0.5 { 0.3 } else { 0.0 }
    }),
    ("each iteration 5% slower than the last", |rng, nth, _| {
        0.05 * normal(rng) - 0.05 * nth as f64
    }),
    ("5% in all rows together", |rng, _, common| {
        0.05 * common + 0.01 * normal(rng)
    }),
];

/// Logarithms of a row's iterations.
struct Simulated {
    noise: Noise,
    iterations: usize,
    /// The change in NEW.
    shift: f64,
    /// A wild iteration, 58 times off: true if in BASE, and its direction.
    wild: Option<(bool, f64)>,
}

impl Simulated {
    fn of(noise: Noise) -> Simulated {
        Simulated {
            noise,
            iterations: 5,
            shift: 0.0,
            wild: None,
        }
    }

    fn verdicts(&self, rng: &mut Stream, rows: usize) -> Vec<Verdict> {
        let n = self.iterations;
        let common: Vec<f64> = (0..2 * n).map(|_| normal(rng)).collect();
        let mut row = || {
            let mut side = |is_new: bool| {
                let common = &common[if is_new { n } else { 0 }..];
                let iteration = |(nth, common): (usize, &f64)| {
                    let shift = if is_new { self.shift } else { 0.0 };
                    // Cauchy's tails exceed the range of numbers.
                    let noise = (self.noise)(rng, nth, *common).clamp(-300.0, 300.0);
                    1000.0 * (noise + shift).exp()
                };
                let mut rates: Vec<f64> = common[..n].iter().enumerate().map(iteration).collect();
                if let Some((of_new, by)) = self.wild
                    && of_new == is_new
                {
                    rates[n / 2] *= by.exp();
                }
                let logs = logarithms(rates).expect("rates are positive");
                Sampled {
                    value: centre(&logs).expect("there are some").exp(),
                    logs,
                }
            };
            let rate = find("rate").expect("a figure");
            Pair {
                row: Row::new(Default::default(), [Basis::Iterations(n); 2], rate),
                sampled: vec![(rate, side(false), side(true))],
            }
        };
        let pairs = (0..rows).map(|_| row()).collect();
        let judged = judge(pairs, &Options::default());
        judged.into_iter().map(|row| row.verdict).collect()
    }

    /// Shares of comparisons of `rows` rows: with any verdict, with all rows slower, and with one
    /// row faster.
    fn rates(&self, rows: usize, pairs: usize) -> Rates {
        let mut rng = Stream::new(&[rows as u64, self.iterations as u64]);
        let (mut any, mut all, mut faster) = (0, 0, 0);
        for _ in 0..pairs {
            let verdicts = self.verdicts(&mut rng, rows);
            let count = |wanted| verdicts.iter().filter(|own| **own == wanted).count();
            let (slow, fast) = (count(Verdict::Slower), count(Verdict::Faster));
            any += usize::from(slow + fast > 0);
            all += usize::from(slow == rows);
            faster += usize::from(fast > 0);
        }
        let share = |n: usize| 100.0 * n as f64 / pairs as f64;
        Rates {
            any: share(any),
            all_slower: share(all),
            faster: share(faster),
        }
    }
}

#[derive(Debug)]
struct Rates {
    any: f64,
    all_slower: f64,
    faster: f64,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the amount of simulation is not a result"
)]
fn pairs(usual: usize) -> usize {
    let asked = std::env::var("RBENCH_SIMULATE").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Four standard deviations of a share of 5 % over N pairs.
fn slack(pairs: usize) -> f64 {
    400.0 * (0.05_f64 * 0.95 / pairs as f64).sqrt()
}

#[test]
fn equal_pairs_hardly_ever_differ_in_any_row_whatever_the_noise() {
    println!("| noise | 1 row | 4 rows | 20 rows |\n|---|---|---|---|");
    for (name, noise) in EQUAL {
        let rates = [1, 4, 20].map(|rows| {
            let pairs = pairs(400) / rows;
            let rates = Simulated::of(noise).rates(rows, pairs);
            assert!(rates.any <= 5.0 + slack(pairs), "{name}, {rows}: {rates:?}");
            rates.any
        });
        println!(
            "| {name} | {:.1}% | {:.1}% | {:.1}% |",
            rates[0], rates[1], rates[2]
        );
    }
}

#[test]
fn what_is_slower_is_found() {
    let slower = |of: f64| (1.0 - of).ln();
    let [gauss, uniform] = [EQUAL[0].1, EQUAL[2].1];
    // Name, noise, iterations, rows, change of NEW, least share in per cent.
    type Case = (&'static str, Noise, usize, usize, f64, f64);
    let cases: [Case; 9] = [
        (
            "10% slower, noise up to ±5%",
            uniform,
            5,
            1,
            slower(0.1),
            97.0,
        ),
        (
            "10% slower, noise up to ±5%",
            uniform,
            5,
            4,
            slower(0.1),
            99.0,
        ),
        ("10% slower, deviation 5%", gauss, 5, 1, slower(0.1), 70.0),
        ("10% slower, deviation 5%", gauss, 5, 4, slower(0.1), 90.0),
        ("10% slower, deviation 5%", gauss, 7, 1, slower(0.1), 88.0),
        ("10% slower, deviation 5%", gauss, 10, 1, slower(0.1), 96.0),
        ("20% slower, deviation 5%", gauss, 5, 1, slower(0.2), 99.0),
        ("half, deviation 5%", gauss, 4, 1, slower(0.5), 99.0),
        ("half, deviation 5%", gauss, 5, 20, slower(0.5), 99.0),
    ];
    println!("| NEW | iterations | rows | some row | every row |\n|---|---|---|---|---|");
    for (name, noise, iterations, rows, shift, least) in cases {
        let pairs = pairs(200) / rows;
        let simulated = Simulated {
            iterations,
            shift,
            ..Simulated::of(noise)
        };
        let rates = simulated.rates(rows, pairs);
        println!(
            "| {name} | {iterations} | {rows} | {:.1}% | {:.1}% |",
            rates.any, rates.all_slower
        );
        assert!(rates.any >= least - slack(pairs), "{name}: {rates:?}");
        assert_eq!(rates.faster, 0.0, "{name}");
    }
}

#[test]
fn a_wild_iteration_hides_no_factor_of_two() {
    let wild = [(false, -WILD), (false, WILD), (true, -WILD), (true, WILD)];
    for wild in wild {
        let simulated = Simulated {
            shift: -(2.0_f64.ln()),
            wild: Some(wild),
            ..Simulated::of(EQUAL[0].1)
        };
        for rows in [1, 4] {
            let rates = simulated.rates(rows, pairs(500) / rows);
            println!("half, one iteration wild {wild:?}, {rows} rows: {rates:?}");
            assert!(rates.all_slower >= 99.0, "{wild:?}, {rows}: {rates:?}");
        }
    }
    // Sixteenfold, and the first iteration of both sides is up to 58 times slower.
    let simulated = Simulated {
        shift: -(16.0_f64.ln()),
        ..Simulated::of(EQUAL[6].1)
    };
    let rates = simulated.rates(4, pairs(500) / 4);
    println!("a sixteenth, first iterations wild: {rates:?}");
    assert!(rates.all_slower >= 99.0, "{rates:?}");
}

/// Iterations do not show differences between runs: the documentation gives their effect.
#[test]
fn runs_that_differ_by_themselves_are_told_apart_and_that_is_said() {
    let pairs = pairs(1000);
    // Each run has its own level, here 3 % up or down, besides 1 % of noise in each iteration.
    let mut rng = Stream::new(&[11]);
    let mut shown = 0;
    for _ in 0..pairs {
        let simulated = Simulated {
            shift: 0.03 * (normal(&mut rng) - normal(&mut rng)),
            ..Simulated::of(|rng, _, _| 0.01 * normal(rng))
        };
        let verdicts = simulated.verdicts(&mut rng, 1);
        shown += usize::from(verdicts[0] != Verdict::NoDifference);
    }
    println!(
        "runs that differ by 3% themselves: {:.1}%",
        100.0 * shown as f64 / pairs as f64
    );
    assert!(shown * 100 > pairs, "iterations of one run do not see it");
}
