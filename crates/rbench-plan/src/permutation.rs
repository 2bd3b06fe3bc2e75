//! A keyed permutation of 0..n, computed index by index: every block exactly
//! once in random order, without a bitmap or a list.
//!
//! A balanced Feistel network (4 rounds) permutes the smallest power of four
//! that holds n; values outside 0..n are walked on until one falls inside
//! (cycle walking: Black and Rogaway 2002), fewer than four steps on average.

use rbench_core::random::{key, mix};

const ROUNDS: usize = 4;

/// A permutation of `0..n`.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `0..n` that belongs to `parts`.
    pub fn new(n: u64, parts: &[u64]) -> Permutation {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let seed = key(parts);
        let mut keys = [0; ROUNDS];
        for (i, k) in keys.iter_mut().enumerate() {
            *k = mix(seed ^ mix(i as u64));
        }
        Permutation {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys,
        }
    }

    /// The image of `index`, which must be below n.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.n);
        let mut value = self.round_trip(index);
        while value >= self.n {
            value = self.round_trip(value);
        }
        value
    }

    #[inline]
    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for k in self.keys {
            let scrambled = (right ^ k).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (left, right) = (right, left ^ ((scrambled ^ (scrambled >> 32)) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        let n = 100_000;
        let p = Permutation::new(n, &[3]);
        let close = (1..n)
            .filter(|i| p.at(*i).abs_diff(p.at(i - 1)) < n / 100)
            .count();
        // Two random places are nearer than n/100 with probability 0.0199.
        assert!((1_000..3_000).contains(&close), "{close}");
    }

    #[test]
    fn every_place_is_equally_likely_for_the_first_index() {
        let mut seen = [0_u32; 10];
        for seed in 0..10_000 {
            seen[Permutation::new(10, &[seed]).at(0) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }

    proptest! {
        #[test]
        fn every_index_comes_exactly_once(n in 1_u64..3_000, seed: u64) {
            let p = Permutation::new(n, &[seed]);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let place = p.at(i) as usize;
                prop_assert!(!seen[place]);
                seen[place] = true;
            }
        }

        #[test]
        fn the_largest_ranges_work_too(index in 0_u64..(1 << 62), seed: u64) {
            prop_assert!(Permutation::new(1 << 62, &[seed]).at(index) < 1 << 62);
        }
    }
}
