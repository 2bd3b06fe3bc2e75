use super::super::format::{Kind, Record};
use super::super::history::History;
use super::*;
use proptest::prelude::*;

const BLOCK: usize = 4096;

/// Not at the beginning of a sector.
const ODD: u64 = 3 * 1000;

fn place(offset: u64) -> BlockHeader {
    BlockHeader {
        run: 7,
        file: 1,
        offset,
        generation: 0,
        worker: 0,
    }
}

fn content(offset: u64, generation: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    Headers::every(u64::MAX).stamp(
        &mut bytes,
        &BlockHeader {
            generation,
            ..place(offset)
        },
    );
    bytes
}

/// A block that was written 1, 2, 3 …, and synced after the first `synced`.
fn written(count: u64, synced: u64) -> Block {
    let mut history = History::new(BLOCK as u64);
    let mut take = |kind, generation| {
        let record = Record {
            kind,
            file: 1,
            offset: 0,
            generation,
            length: BLOCK as u32,
        };
        history.take(record).expect("in order");
    };
    for generation in 1..=count {
        take(Kind::WriteStarted, generation);
        take(Kind::WriteAcknowledged, generation);
        if generation == synced {
            take(Kind::SyncStarted, 0);
            take(Kind::SyncAcknowledged, 0);
        }
    }
    history.block(1, 0).expect("written").clone()
}

fn judge(found: &[u8], offset: u64, block: Option<&Block>) -> Class {
    Judge::default().judge(found, place(offset), block).0
}

#[test]
fn whole_blocks_are_known_by_their_generation() {
    let block = written(4, 2);
    assert_eq!(judge(&content(0, 1), 0, Some(&block)), Class::Lost);
    assert_eq!(judge(&content(0, 2), 0, Some(&block)), Class::Allowed);
    assert_eq!(judge(&content(0, 3), 0, Some(&block)), Class::Allowed);
    assert_eq!(judge(&content(0, 4), 0, Some(&block)), Class::Acknowledged);
    assert_eq!(judge(&content(0, 5), 0, Some(&block)), Class::Corrupt);
    assert_eq!(judge(&content(4096, 4), 0, Some(&block)), Class::Corrupt);
    assert_eq!(judge(&[0x55; BLOCK], 0, Some(&block)), Class::Corrupt);
    // The same offset in the file of another pass.
    let second = BlockHeader {
        generation: 1 << 48,
        ..place(0)
    };
    let verdict = Judge::default().judge(&content(0, 1), second, Some(&block));
    let told = "misplaced: a block of pass 0".to_owned();
    assert_eq!(verdict, (Class::Corrupt, told));
}

#[test]
fn nothing_is_right_where_nothing_is_durable() {
    let nothing = [0; BLOCK];
    assert_eq!(judge(&nothing, 0, Some(&written(1, 1))), Class::Lost);
    assert_eq!(judge(&nothing, 0, Some(&written(1, 0))), Class::Allowed);
    assert_eq!(judge(&nothing, 0, None), Class::Untouched);
    assert_eq!(judge(&content(0, 1), 0, None), Class::Corrupt);
    assert_eq!(judge(&content(4096, 1), 0, None), Class::Corrupt);
    let mut bit = nothing;
    bit[77] = 1;
    assert_eq!(judge(&bit, 0, None), Class::Corrupt);
    assert_eq!(judge(&bit, 0, Some(&written(1, 0))), Class::Corrupt);
}

#[test]
fn torn_blocks_are_made_of_what_is_permitted() {
    for offset in [0, ODD] {
        let block = written(3, 2);
        let (old, durable, new) = (content(offset, 1), content(offset, 2), content(offset, 3));
        // Sectors from either, and one that changes in its midst.
        let mut mixed = durable.clone();
        let first = (512 - offset % 512) as usize;
        for sector in [0, 3, 4] {
            let at = first + sector * 512;
            mixed[at..at + 512].copy_from_slice(&new[at..at + 512]);
        }
        let at = first + 5 * 512;
        mixed[at..at + 128].copy_from_slice(&new[at..at + 128]);
        assert_eq!(judge(&mixed, offset, Some(&block)), Class::Allowed);
        // A sector of what was superseded, or nothing.
        for lost in [&old[at..at + 512], &[0; 512]] {
            let mut mixed = mixed.clone();
            mixed[at..at + 512].copy_from_slice(lost);
            assert_eq!(judge(&mixed, offset, Some(&block)), Class::Lost);
        }
        // Two changes in one sector.
        mixed[at + 300..at + 400].copy_from_slice(&new[at + 300..at + 400]);
        assert_eq!(judge(&mixed, offset, Some(&block)), Class::Corrupt);
    }
}

#[test]
fn a_block_that_was_never_durable_may_be_torn_against_nothing() {
    let mut half = content(0, 1);
    half[1024 - 64..].fill(0);
    assert_eq!(judge(&half, 0, Some(&written(1, 0))), Class::Allowed);
    assert_eq!(judge(&half, 0, Some(&written(1, 1))), Class::Lost);
    half[900] ^= 1;
    assert_eq!(judge(&half, 0, Some(&written(1, 0))), Class::Corrupt);
}

#[test]
fn contents_change_between_cache_lines_and_not_within_the_stamp() {
    for offset in [0, ODD] {
        let block = written(2, 1);
        let (old, new) = (content(offset, 1), content(offset, 2));
        let torn = |at: usize| [&new[..at], &old[at..]].concat();
        let is_place = |at: &usize| *at >= 64 && (offset as usize + at).is_multiple_of(64);
        let mut legitimate: Vec<Vec<u8>> = (1..BLOCK).filter(is_place).map(torn).collect();
        legitimate.push(old.clone());
        for at in 1..BLOCK {
            // Bytes that contents have in common are of either.
            let verdict = judge(&torn(at), offset, Some(&block));
            if legitimate.contains(&torn(at)) {
                assert_eq!(verdict, Class::Allowed, "{offset} {at}");
            } else {
                assert_eq!(verdict, Class::Corrupt, "{offset} {at}");
            }
        }
        // The generation of one in the stamp of another.
        let mut mixed = new.clone();
        mixed[32..40].copy_from_slice(&old[32..40]);
        assert_eq!(judge(&mixed, offset, Some(&block)), Class::Corrupt);
    }
}

#[test]
fn a_write_that_failed_or_met_another_may_be_there_in_any_parts() {
    use Kind::{WriteAcknowledged as Done, WriteFailed as Failed, WriteStarted as Started};
    let check = |events: &[(u64, Kind)], patchwork: bool| {
        let mut history = History::new(BLOCK as u64);
        for (generation, kind) in events {
            let record = Record {
                kind: *kind,
                file: 1,
                offset: 0,
                generation: *generation,
                length: BLOCK as u32,
            };
            history.take(record).expect("in order");
        }
        let block = history.block(1, 0).expect("written");
        for (from, to) in [(0, 40), (0, 777), (48, BLOCK), (1001, 1111)] {
            let mut bytes = content(0, 1);
            bytes[from..to].copy_from_slice(&content(0, 2)[from..to]);
            let verdict = judge(&bytes, 0, Some(block));
            assert_eq!(verdict == Class::Allowed, patchwork, "{events:?} {from}");
            bytes[2000] ^= 4;
            assert_eq!(judge(&bytes, 0, Some(block)), Class::Corrupt, "{events:?}");
        }
    };
    check(&[(1, Started), (1, Done), (2, Started), (2, Done)], false);
    check(&[(1, Started), (1, Done), (2, Started), (2, Failed)], true);
    check(&[(1, Started), (1, Done), (2, Started)], true);
    check(&[(1, Started), (2, Started), (1, Done), (2, Done)], true);
}

#[test]
fn what_is_expected_is_told() {
    let told = |count, synced| expected(Some(&written(count, synced)));
    assert_eq!(told(1, 1), "generation 0x1, which was synced");
    assert_eq!(
        told(2, 1),
        "generation 0x1, which was synced, or one other generation"
    );
    assert_eq!(
        told(4, 1),
        "generation 0x1, which was synced, or one of 3 other generations"
    );
    assert_eq!(told(1, 0), "generation 0x1, or nothing");
    assert_eq!(told(2, 0), "one of 2 generations, or nothing");
    assert_eq!(expected(None), "nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]
    #[test]
    fn a_flipped_bit_is_found_whatever_may_be_there(
        bit in 0_usize..BLOCK * 8, count in 1_u64..5, synced in 0_u64..5, odd: bool,
    ) {
        let offset = if odd { ODD } else { 0 };
        let mut found = content(offset, count);
        found[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(judge(&found, offset, Some(&written(count, synced))), Class::Corrupt);
    }
}
