//! Content of small files that can be regenerated from seed, owner and number, to verify it in a
//! later phase, a later run, or with mdtest 4.1, which writes the same bytes.
//!
//! mdtest fills files with little-endian words of 64 bits, `w[0..length / 8)`. With the writer's rank, the number in the
//! file's name and G, the value of `-G`:
//!
//! | type | `w[i]` | at the start of each 4 KiB, k = 1, 2, … |
//! |---|---|---|
//! | timestamp | rank << 32 \| (G + i) | as the others |
//! | offset | as timestamp | (number * k) mod 2^32 \| rank << 32 |
//! | incompressible | one word for the whole file: two draws from the seed G + rank | as offset |
//! | random | x * [`FACTOR`] >> 3 of the last x; the first x: one draw from the seed G + rank + number | as the others |
//!
//! Bytes after the last whole word hold their position mod 256. For timestamps all files of a rank
//! are the same, so swapped files go unnoticed. With the type unique, which mdtest does not have,
//! the first eight bytes of every block of 4 KiB encode seed, owner, number and place (mixed); the
//! rest is incompressible.

use rbench_core::random::{DataStream, key};
use rbench_plan::meta::Packet;

/// Length of a block that starts with a word of its own.
const BLOCK: usize = 4096;
const WORD: usize = 8;
/// Multiplier of mdtest's random words.
const FACTOR: u64 = 0x9e37_ffff_fffc_0001;

/// Identity of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// `-G`: the seed of everything.
    pub seed: i32,
    /// The rank that owns the file.
    pub owner: u32,
    /// The owner's tree that it is in; mdtest's own types do not distinguish them.
    pub tree: u64,
    /// The number in the file's name.
    pub number: u64,
}

/// Fills `buffer`, which starts at offset 0 of a file of `length` bytes.
pub fn fill(packet: Packet, identity: Identity, length: u64, buffer: &mut [u8]) {
    let Identity {
        seed,
        owner,
        tree,
        number,
    } = identity;
    let rank = u64::from(owner) << 32;
    let counted = |i: u64| rank | i64::from(seed).wrapping_add(i as i64) as u64;
    let draws = |numbers: u32| Draws((seed as u32).wrapping_add(owner).wrapping_add(numbers));
    match packet {
        Packet::Timestamp => words(buffer, counted),
        Packet::Offset => {
            words(buffer, counted);
            mark(buffer, rank, number);
        }
        Packet::Incompressible => {
            let mut draws = draws(0);
            let word = draws.next() << 32 | draws.next();
            words(buffer, |_| word);
            mark(buffer, rank, number);
        }
        Packet::Random => {
            let mut x = draws(number as u32).next();
            words(buffer, |_| {
                x = x.wrapping_mul(FACTOR) >> 3;
                x
            });
        }
        Packet::Unique => {
            let (seed, owner) = (u64::from(seed as u32), u64::from(owner));
            DataStream::new(&[seed, owner, tree, number, 1]).fill(buffer);
            for (block, bytes) in (0_u64..).zip(buffer.chunks_mut(BLOCK)) {
                let word = key(&[seed, owner, tree, number, block, 3]).to_le_bytes();
                let length = bytes.len().min(word.len());
                bytes[..length].copy_from_slice(&word[..length]);
            }
            return;
        }
    }
    let whole = (length - length % WORD as u64).min(buffer.len() as u64) as usize;
    for (position, byte) in (whole..).zip(&mut buffer[whole..]) {
        *byte = position as u8;
    }
}

fn words(buffer: &mut [u8], mut word: impl FnMut(u64) -> u64) {
    for (i, bytes) in (0..).zip(buffer.chunks_mut(WORD)) {
        let word = word(i).to_le_bytes();
        bytes.copy_from_slice(&word[..bytes.len()]);
    }
}

/// Gives every 4 KiB a first word of its own.
fn mark(buffer: &mut [u8], rank: u64, number: u64) {
    for (k, block) in (1..).zip(buffer.chunks_mut(BLOCK)) {
        let word = rank | number.wrapping_mul(k) & 0xffff_ffff;
        let length = block.len().min(WORD);
        block[..length].copy_from_slice(&word.to_le_bytes()[..length]);
    }
}

/// `rand_r` of glibc, with its state.
struct Draws(u32);

impl Draws {
    fn next(&mut self) -> u64 {
        let mut step = |modulus: u32| {
            self.0 = self.0.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (self.0 / 65_536) % modulus
        };
        let result = step(2048) << 10 ^ step(1024);
        u64::from(result << 10 ^ step(1024))
    }
}

/// Describes the first byte of `found` that differs from `expected`.
pub fn difference(found: &[u8], expected: &[u8]) -> Option<String> {
    let (at, (is, should)) = found
        .iter()
        .zip(expected)
        .enumerate()
        .find(|(_, (is, should))| is != should)?;
    Some(format!("byte {at} is {is:#04x}, expected {should:#04x}"))
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_uint};

    use super::*;

    const PACKETS: [Packet; 5] = [
        Packet::Timestamp,
        Packet::Offset,
        Packet::Incompressible,
        Packet::Random,
        Packet::Unique,
    ];

    fn made(packet: Packet, seed: i32, owner: u32, number: u64, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        let identity = Identity {
            seed,
            owner,
            tree: 0,
            number,
        };
        fill(packet, identity, length as u64, &mut buffer);
        buffer
    }

    fn word(bytes: &[u8], i: usize) -> u64 {
        u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("a word"))
    }

    /// mdtest calls the C library's.
    #[cfg(target_env = "gnu")]
    #[test]
    fn draws_are_those_of_the_c_library() {
        unsafe extern "C" {
            fn rand_r(state: *mut c_uint) -> c_int;
        }
        for seed in [0, 1, 5, 4_294_967_289, 2_000_000_000] {
            let mut state = seed;
            let mut draws = Draws(seed);
            for _ in 0..100 {
                // SAFETY: the state is ours.
                let theirs = unsafe { rand_r(&raw mut state) };
                assert_eq!(draws.next(), theirs as u64);
            }
        }
    }

    #[test]
    fn words_count_from_the_seed_in_64_bits_with_its_sign() {
        let bytes = made(Packet::Timestamp, 5, 3, 9, 24);
        assert_eq!(
            [0, 1, 2].map(|i| word(&bytes, i)),
            [3 << 32 | 5, 3 << 32 | 6, 3 << 32 | 7]
        );
        // Below zero the sign fills the rank's half.
        let bytes = made(Packet::Timestamp, -2, 3, 9, 32);
        assert_eq!(
            [0, 2, 3].map(|i| word(&bytes, i)),
            [u64::MAX - 1, 3 << 32, 3 << 32 | 1]
        );
    }

    #[test]
    fn blocks_of_offsets_and_of_one_word_start_with_their_number() {
        for packet in [Packet::Offset, Packet::Incompressible] {
            let bytes = made(packet, 5, 3, 7, 10_000);
            assert_eq!(
                [0, 512, 1024].map(|i| word(&bytes, i)),
                [3 << 32 | 7, 3 << 32 | 14, 3 << 32 | 21]
            );
        }
    }

    #[test]
    fn behind_the_last_whole_word_of_the_file_stands_the_position() {
        for packet in [
            Packet::Timestamp,
            Packet::Offset,
            Packet::Incompressible,
            Packet::Random,
        ] {
            assert_eq!(made(packet, 5, 3, 7, 3), [0, 1, 2]);
            assert_eq!(made(packet, 5, 3, 7, 301)[296..], [40, 41, 42, 43, 44]);
            // The start of a longer file has the same words.
            let whole = made(packet, 5, 3, 7, 304);
            let mut part = vec![0; 301];
            let identity = Identity {
                seed: 5,
                owner: 3,
                tree: 0,
                number: 7,
            };
            fill(packet, identity, 304, &mut part);
            assert_eq!(part, whole[..301]);
        }
    }

    #[test]
    fn another_seed_or_owner_gives_other_bytes() {
        for packet in PACKETS {
            let one = made(packet, 7, 1, 2, 10_000);
            assert_eq!(one, made(packet, 7, 1, 2, 10_000));
            assert_ne!(one, made(packet, 8, 1, 2, 10_000), "{packet:?}");
            assert_ne!(one, made(packet, 7, 2, 2, 10_000), "{packet:?}");
            let other = made(packet, 7, 1, 3, 10_000);
            // A weakness of mdtest's format.
            assert_eq!(one == other, packet == Packet::Timestamp);
        }
    }

    #[test]
    fn every_block_of_unique_content_differs() {
        let one = made(Packet::Unique, 7, 1, 2, 10_000);
        assert_ne!(one[..8], one[BLOCK..BLOCK + 8]);
        for other in [(8, 1, 2), (7, 2, 2), (7, 1, 3)] {
            let other = made(Packet::Unique, other.0, other.1, other.2, 10_000);
            for (a, b) in one.chunks(BLOCK).zip(other.chunks(BLOCK)) {
                assert_ne!(a[..8], b[..8]);
            }
        }
    }

    #[test]
    fn one_wrong_byte_is_found_and_named() {
        let good = made(Packet::Offset, 1, 0, 0, 10_000);
        let mut bad = good.clone();
        bad[4711] ^= 0x10;
        let told = difference(&bad, &good).expect("a difference");
        assert!(told.starts_with("byte 4711 is 0x"), "{told}");
        assert_eq!(difference(&good, &good), None);
    }
}
