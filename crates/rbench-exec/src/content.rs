//! The content of small files that can be made again from seed, owner and
//! number: for verification by a later phase or a later run.
//!
//! The first eight bytes of every 4 KiB tell seed, owner, number and place
//! (mixed), so that no two files and no two blocks are the same; what lies
//! behind them depends on the packet type.

use rbench_core::random::{DataStream, key};
use rbench_plan::meta::Packet;

/// Length of a block that starts with its identity.
const BLOCK: usize = 4096;

/// Whose content it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Decides over everything.
    pub seed: u64,
    /// The rank that owns the file.
    pub owner: u64,
    /// The file's number among the owner's.
    pub number: u64,
}

/// Fills `buffer`, which starts at offset 0 of the file.
pub fn fill(packet: Packet, identity: Identity, buffer: &mut [u8]) {
    let Identity {
        seed,
        owner,
        number,
    } = identity;
    match packet {
        Packet::Timestamp => words(buffer, |at| (seed << 32) | (at as u64 / 8) & 0xffff_ffff),
        Packet::Offset => words(buffer, |at| at as u64),
        Packet::Incompressible => DataStream::new(&[seed, owner, number, 1]).fill(buffer),
        Packet::Random => DataStream::new(&[seed, owner, number, 2]).fill(buffer),
    }
    for (block, bytes) in (0_u64..).zip(buffer.chunks_mut(BLOCK)) {
        let word = key(&[seed, owner, number, block, 3]).to_le_bytes();
        let length = bytes.len().min(word.len());
        bytes[..length].copy_from_slice(&word[..length]);
    }
}

fn words(buffer: &mut [u8], word: impl Fn(usize) -> u64) {
    for (nth, bytes) in buffer.chunks_mut(8).enumerate() {
        let word = word(nth * 8).to_le_bytes();
        bytes.copy_from_slice(&word[..bytes.len()]);
    }
}

/// The first byte of `found` that differs from `expected`, in words.
pub fn difference(found: &[u8], expected: &[u8]) -> Option<String> {
    let (at, (is, should)) = found
        .iter()
        .zip(expected)
        .enumerate()
        .find(|(_, (is, should))| is != should)?;
    Some(format!(
        "byte {at} is {is:#04x} and should be {should:#04x}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: [Packet; 4] = [
        Packet::Timestamp,
        Packet::Offset,
        Packet::Incompressible,
        Packet::Random,
    ];

    fn made(packet: Packet, seed: u64, owner: u64, number: u64) -> Vec<u8> {
        let mut buffer = vec![0; 10_000];
        let identity = Identity {
            seed,
            owner,
            number,
        };
        fill(packet, identity, &mut buffer);
        buffer
    }

    #[test]
    fn the_same_identity_gives_the_same_bytes_and_any_other_differs_in_every_block() {
        for packet in PACKETS {
            let one = made(packet, 7, 1, 2);
            assert_eq!(one, made(packet, 7, 1, 2));
            for other in [(8, 1, 2), (7, 2, 2), (7, 1, 3)] {
                let other = made(packet, other.0, other.1, other.2);
                for (a, b) in one.chunks(BLOCK).zip(other.chunks(BLOCK)) {
                    assert_ne!(a[..8], b[..8], "{packet:?}");
                }
            }
        }
    }

    #[test]
    fn blocks_of_a_file_differ() {
        for packet in PACKETS {
            let file = made(packet, 7, 1, 2);
            assert_ne!(file[..8], file[BLOCK..BLOCK + 8]);
        }
    }

    #[test]
    fn one_wrong_byte_is_found_and_named() {
        let good = made(Packet::Offset, 1, 0, 0);
        let mut bad = good.clone();
        bad[4711] ^= 0x10;
        let told = difference(&bad, &good).expect("a difference");
        assert!(told.starts_with("byte 4711 is 0x"), "{told}");
        assert_eq!(difference(&good, &good), None);
    }
}
