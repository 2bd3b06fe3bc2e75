//! A keyed permutation of 0..n, computed index by index: every block exactly once in random order,
//! without a bitmap or a list.
//!
//! A Feistel network (4 rounds, 8 up to 4096 values; with an odd number of bits one half has one
//! more) permutes the smallest power of two that holds n. Values outside 0..n are permuted again
//! until one is inside (cycle walking: Black and Rogaway 2002), fewer than two steps on average.

use rbench_core::random::{key, mix};

/// A permutation of `0..n`.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    /// Bits of the lower half, and the masks of both.
    lower_bits: u32,
    upper: u64,
    lower: u64,
    /// Keys of two rounds each.
    keys: [[u64; 2]; 4],
    /// Number of pairs in use.
    pairs: usize,
}

impl Permutation {
    /// The permutation of `0..n` for `parts`.
    pub fn new(n: u64, parts: &[u64]) -> Permutation {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(2);
        let lower_bits = bits.div_ceil(2);
        let seed = key(parts);
        let key = |round: u64| mix(seed ^ mix(round));
        let keys = [0, 2, 4, 6].map(|round| [key(round), key(round + 1)]);
        Permutation {
            n,
            lower_bits,
            upper: (1 << (bits - lower_bits)) - 1,
            lower: (1 << lower_bits) - 1,
            keys,
            // With few values there are few different networks: more rounds make every position
            // equally likely.
            pairs: if bits > 12 { 2 } else { 4 },
        }
    }

    /// The image of `index`, which must be less than n.
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
        let scrambled = |half: u64, key: u64| {
            let product = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            product ^ (product >> 32)
        };
        let (mut upper, mut lower) = (value >> self.lower_bits, value & self.lower);
        for [even, odd] in self.keys[..self.pairs].iter().copied() {
            upper ^= scrambled(lower, even) & self.upper;
            lower ^= scrambled(upper, odd) & self.lower;
        }
        (upper << self.lower_bits) | lower
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
        // Two random positions are nearer than n/100 with probability 0.0199.
        assert!((1_000..3_000).contains(&close), "{close}");
    }

    #[test]
    fn every_place_is_equally_likely_for_the_first_index() {
        // With halves of equal and of different length.
        for n in [2_u32, 3, 5, 8, 10, 16, 20, 25] {
            let mut seen = vec![0_u32; n as usize];
            for seed in 0..10_000 {
                seen[Permutation::new(u64::from(n), &[seed]).at(0) as usize] += 1;
            }
            let fair = 10_000 / n;
            let even = |count: &u32| count.abs_diff(fair) <= fair * 15 / 100;
            assert!(seen.iter().all(even), "{seen:?}");
        }
    }

    proptest! {
        #[test]
        fn every_index_comes_exactly_once(n in 1_u64..3_000, seed: u64) {
            let p = Permutation::new(n, &[seed]);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let image = p.at(i) as usize;
                prop_assert!(!seen[image]);
                seen[image] = true;
            }
        }

        #[test]
        fn the_largest_ranges_work_too(index in 0_u64..(1 << 62), seed: u64) {
            prop_assert!(Permutation::new(1 << 62, &[seed]).at(index) < 1 << 62);
        }
    }
}
