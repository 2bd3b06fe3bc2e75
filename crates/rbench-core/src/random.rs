//! Random streams that depend only on (seed, rank, worker, phase), so the same seed
//! gives the same run on any machine. Also the data generator for write buffers.

use rand_core::Rng as _;
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// One step of SplitMix64 (Steele, Lea, Flood 2014): mixes `x` so that near
/// inputs give unrelated outputs.
#[inline]
pub const fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Folds `parts` into one 64-bit key; order matters.
pub fn key(parts: &[u64]) -> u64 {
    parts
        .iter()
        .fold(0x5b_7262_656e_6368, |acc, part| mix(acc ^ mix(*part)))
}

/// A stream of random numbers (xoshiro256++).
#[derive(Debug, Clone)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `parts`, such as (seed, rank, worker, phase).
    pub fn new(parts: &[u64]) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(key(parts)))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound` (bound > 0), by the multiply-shift method
    /// (Lemire 2019); its bias is below bound / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in the half-open interval (0, 1]; never 0, so that its logarithm is
    /// finite.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed number with mean 1: the gap between two
    /// arrivals of a Poisson process of rate 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

/// Words of the pool from which data is cut; pool and block together fit into the
/// first cache of a processor.
const POOL_WORDS: usize = 4096;
/// Words that are cut from the pool at once.
const PIECE_WORDS: usize = 512;
const PIECE: usize = 8 * PIECE_WORDS;

/// Pieces start at cache lines.
const LINE_WORDS: usize = 8;

#[repr(align(64))]
struct Pool([u64; POOL_WORDS]);

/// Random words, the same in every run.
static POOL: Pool = Pool(pool());

const fn pool() -> [u64; POOL_WORDS] {
    let mut words = [0; POOL_WORDS];
    let mut i = 0;
    while i < POOL_WORDS {
        words[i] = mix(i as u64);
        i += 1;
    }
    words
}

/// Copies at most `words` to `bytes`, each word combined with `mask`.
#[inline(always)]
fn copy_masked(bytes: &mut [u8], words: &[u64; PIECE_WORDS], mask: u64) {
    let whole = bytes.len() / 8;
    let mut places = bytes.chunks_exact_mut(8);
    for (place, word) in (&mut places).zip(words) {
        place.copy_from_slice(&(word ^ mask).to_le_bytes());
    }
    let rest = places.into_remainder();
    if !rest.is_empty() {
        let word = words[whole] ^ mask;
        rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
    }
}

/// Like [`copy_masked`], compiled for processors with vectors of 32 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn copy_masked_wide(bytes: &mut [u8], words: &[u64; PIECE_WORDS], mask: u64) {
    copy_masked(bytes, words, mask);
}

/// Fills buffers with incompressible data at memory speed.
///
/// Each 4096 bytes are a piece of a pool of random words, from a random offset, under
/// a random mask of 64 bits. No word occurs twice except by chance, and no block is a
/// copy of another. Offsets and masks are the numbers of a SplitMix64 generator. Data
/// that a reader must be able to generate again comes from [`DataStream::for_block`].
#[derive(Debug, Clone)]
pub struct DataStream {
    state: u64,
}

impl DataStream {
    /// The stream of `parts`.
    pub fn new(parts: &[u64]) -> DataStream {
        DataStream::for_block(key(parts))
    }

    /// The stream of one block, from its 64-bit key alone.
    #[inline]
    pub fn for_block(block_key: u64) -> DataStream {
        // Keys may be small consecutive numbers.
        DataStream {
            state: mix(block_key),
        }
    }

    /// The next piece of the pool, and its mask.
    #[inline]
    fn next(&mut self) -> (&'static [u64; PIECE_WORDS], u64) {
        // An odd step reaches each state once in 2^64.
        self.state = self.state.wrapping_add(0xd1b5_4a32_d192_ed03);
        let mask = mix(self.state);
        let places = (POOL_WORDS - PIECE_WORDS) / LINE_WORDS + 1;
        let at = (u128::from(mix(mask)) * places as u128) >> 64;
        let stretch = POOL.0[at as usize * LINE_WORDS..].first_chunk();
        (stretch.unwrap_or(&[0; PIECE_WORDS]), mask)
    }

    /// Fills `buffer` with the next bytes of the stream. Each call starts with a new
    /// piece.
    #[inline]
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for piece in buffer.chunks_mut(PIECE) {
            let (words, mask) = self.next();
            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the feature for which the function is
                // compiled.
                unsafe { copy_masked_wide(piece, words, mask) };
                continue;
            }
            copy_masked(piece, words, mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_parts_give_the_same_stream_and_others_another() {
        let take = |parts: &[u64]| {
            let mut s = Stream::new(parts);
            [s.next_u64(), s.next_u64()]
        };
        assert_eq!(take(&[1, 2, 3]), take(&[1, 2, 3]));
        assert_ne!(take(&[1, 2, 3]), take(&[1, 3, 2]));
        assert_ne!(take(&[1, 2, 3]), take(&[2, 2, 3]));
    }

    #[test]
    fn exponential_gaps_have_mean_one_and_the_right_tail() {
        let mut stream = Stream::new(&[7]);
        let n = 400_000;
        let (mut sum, mut above_three) = (0.0, 0);
        for _ in 0..n {
            let gap = stream.exponential();
            sum += gap;
            above_three += u32::from(gap > 3.0);
        }
        let mean = sum / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        let tail = f64::from(above_three) / f64::from(n);
        assert!((tail - (-3.0_f64).exp()).abs() < 0.003, "{tail}");
    }

    #[test]
    fn filled_buffers_have_no_repeated_words_and_even_bits() {
        let mut buffer = vec![0_u8; 1 << 20];
        DataStream::new(&[1]).fill(&mut buffer);
        let mut words: Vec<u64> = buffer
            .chunks_exact(8)
            .filter_map(|c| c.try_into().ok().map(u64::from_le_bytes))
            .collect();
        let ones: u32 = words.iter().map(|w| w.count_ones()).sum();
        let share = f64::from(ones) / (buffer.len() as f64 * 8.0);
        assert!((share - 0.5).abs() < 0.001, "{share}");
        let n = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), n);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn processors_with_and_without_wide_vectors_make_the_same_data() {
        if !std::is_x86_feature_detected!("avx2") {
            // Only one way exists then.
            return;
        }
        for length in [0, 1, 7, 8, 63, 64, 1000, PIECE] {
            let (mut narrow, mut wide) = (vec![0; length], vec![0; length]);
            let words = POOL.0.first_chunk().expect("the pool is longer");
            copy_masked(&mut narrow, words, 0x1234_5678_9abc_def0);
            // SAFETY: the feature was checked above.
            unsafe { copy_masked_wide(&mut wide, words, 0x1234_5678_9abc_def0) };
            assert_eq!(narrow, wide);
        }
    }

    #[test]
    fn no_block_is_a_copy_of_another_even_shifted() {
        // Every piece of the pool occurs again, under another mask.
        let mut data = vec![0_u8; 4 << 20];
        DataStream::new(&[2]).fill(&mut data);
        let mut seen = std::collections::HashSet::new();
        for start in (0..data.len() - 16).step_by(8) {
            let words: [u8; 16] = data[start..start + 16].try_into().expect("16 bytes");
            assert!(seen.insert(words), "16 bytes come twice, at {start}");
        }
    }

    proptest! {
        #[test]
        fn numbers_below_a_bound_stay_below_it(seed: u64, bound in 1_u64..) {
            let mut stream = Stream::new(&[seed]);
            for _ in 0..50 { prop_assert!(stream.below(bound) < bound); }
        }

        #[test]
        fn a_filled_prefix_does_not_depend_on_the_length(block: u64, short in 0_usize..300) {
            let (mut a, mut b) = (vec![0_u8; 300], vec![0_u8; short]);
            DataStream::for_block(block).fill(&mut a);
            DataStream::for_block(block).fill(&mut b);
            prop_assert_eq!(&a[..short], &b[..]);
        }
    }
}
