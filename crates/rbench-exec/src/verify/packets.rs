//! Data that can be made again from a seed, the rank that owns its part of the files, and its
//! place: another run can verify it.
//!
//! The types that IOR has are its bytes ([`crate::content`]): they start again with each transfer,
//! so that data that is read in other transfers than it was written in does not verify. The type
//! unique is cut at multiples of [`CELL`] of the file instead.

use rbench_plan::meta::Packet;

use super::{Damage, Wrong};
use crate::content::{self, Identity};

/// Bytes of the file that are made as one, from a multiple of it on.
const CELL: usize = 4096;

/// Makes and checks the data of one worker's part.
#[derive(Debug, Clone)]
pub struct Packets {
    packet: Packet,
    seed: i32,
    owner: u32,
}

impl Packets {
    /// The data of this type in the part of the worker `owner`.
    pub fn new(packet: Packet, seed: i32, owner: u64) -> Packets {
        Packets {
            packet,
            seed,
            // There are no more ranks than that.
            owner: owner as u32,
        }
    }

    /// Fills `block`, which lies at `offset` of the file.
    pub fn fill(&self, block: &mut [u8], offset: u64) {
        if self.packet != Packet::Unique {
            let length = block.len() as u64;
            content::fill(self.packet, self.identity(offset), length, block);
            return;
        }
        let mut scratch = [0; CELL];
        let mut at = offset;
        let mut rest = block;
        while !rest.is_empty() {
            let (number, inside) = (at / CELL as u64, (at % CELL as u64) as usize);
            let length = (CELL - inside).min(rest.len());
            let (piece, behind) = rest.split_at_mut(length);
            if length == CELL {
                self.cell(number, piece);
            } else {
                self.cell(number, &mut scratch);
                piece.copy_from_slice(&scratch[inside..inside + length]);
            }
            rest = behind;
            at += length as u64;
        }
    }

    fn cell(&self, number: u64, bytes: &mut [u8]) {
        content::fill(Packet::Unique, self.identity(number), CELL as u64, bytes);
    }

    fn identity(&self, number: u64) -> Identity {
        Identity {
            seed: self.seed,
            owner: self.owner,
            tree: 0,
            number,
        }
    }

    /// Checks a block that was read from `offset`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, block: &[u8], offset: u64) -> Result<(), Wrong> {
        let mut scratch = [0; CELL];
        if self.packet != Packet::Unique {
            let mut right = vec![0; block.len()];
            self.fill(&mut right, offset);
            return match right == block {
                true => Ok(()),
                false => Err(wrong(block, &right, offset)),
            };
        }
        let mut at = offset;
        let mut rest = block;
        while !rest.is_empty() {
            let length = (CELL - (at % CELL as u64) as usize).min(rest.len());
            let (piece, behind) = rest.split_at(length);
            self.fill(&mut scratch[..length], at);
            if *piece != scratch[..length] {
                return Err(wrong(piece, &scratch[..length], at));
            }
            rest = behind;
            at += length as u64;
        }
        Ok(())
    }
}

fn wrong(found: &[u8], right: &[u8], offset: u64) -> Wrong {
    let wrong = Wrong::between(offset, found, right);
    let byte = wrong.byte.filter(|_| wrong.damage != Damage::Zeroed);
    Wrong { byte, ..wrong }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKETS: [Packet; 3] = [Packet::Unique, Packet::Timestamp, Packet::Offset];

    fn made(packets: &Packets, offset: u64, length: usize) -> Vec<u8> {
        let mut block = vec![0; length];
        packets.fill(&mut block, offset);
        block
    }

    proptest! {
        #[test]
        fn what_was_written_verifies_and_a_damaged_byte_is_found(
            which in 0_usize..3, offset in 0_u64..100_000, length in 1_usize..20_000, at: prop::sample::Index,
        ) {
            let packets = Packets::new(PACKETS[which], 7, 3);
            let mut block = made(&packets, offset, length);
            prop_assert_eq!(packets.check(&block, offset), Ok(()));
            block[at.index(length)] ^= 0x10;
            prop_assert!(packets.check(&block, offset).is_err());
        }

        #[test]
        fn unique_data_is_read_in_any_pieces(
            offset in 0_u64..100_000, length in 2_usize..20_000, at: prop::sample::Index,
        ) {
            let packets = Packets::new(Packet::Unique, 7, 3);
            let whole = made(&packets, offset, length);
            let at = at.index(length);
            let behind = made(&packets, offset + at as u64, length - at);
            prop_assert_eq!(&whole[at..], &behind[..]);
            prop_assert_eq!(packets.check(&whole[at..], offset + at as u64), Ok(()));
        }
    }

    #[test]
    fn blocks_of_another_place_rank_or_seed_are_wrong() {
        let packets = Packets::new(Packet::Unique, 7, 3);
        let block = made(&packets, 8192, 4096);
        assert!(packets.check(&block, 4096).is_err());
        assert!(
            Packets::new(Packet::Unique, 7, 4)
                .check(&block, 8192)
                .is_err()
        );
        assert!(
            Packets::new(Packet::Unique, 8, 3)
                .check(&block, 8192)
                .is_err()
        );
        let zeroed = packets.check(&[0; 4096], 8192).expect_err("zeros");
        assert_eq!(zeroed.damage, Damage::Zeroed);
    }
}
