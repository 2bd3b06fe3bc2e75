use proptest::prelude::*;

use super::*;

pub(super) const WRITTEN: BlockHeader = BlockHeader {
    run: 77,
    file: 5,
    offset: 8192,
    generation: 9,
    worker: 2,
};

fn headers(interval: u64) -> Headers {
    Headers::every(interval)
}

fn expected() -> Expected {
    Expected::of(&WRITTEN)
}

fn block(headers: &Headers, origin: BlockHeader) -> Vec<u8> {
    let mut block = vec![0; 4096];
    headers.stamp(&mut block, &origin);
    block
}

/// Damages blocks that `stamp` makes, and compares what `check` says of each.
pub(super) fn check_damages(
    stamp: impl Fn(BlockHeader) -> Vec<u8>,
    check: impl Fn(&[u8]) -> Result<(), Wrong>,
) {
    let told = |block: Vec<u8>, expect: &str| {
        let told = check(&block).err();
        let told = told.map_or("right".to_owned(), |wrong| wrong.to_string());
        assert!(told.starts_with(expect), "{told}");
    };
    let changed = |change: &dyn Fn(&mut Vec<u8>), expect: &str| {
        let mut block = stamp(WRITTEN);
        change(&mut block);
        told(block, expect);
    };
    let older = BlockHeader {
        generation: 3,
        ..WRITTEN
    };
    let start = BlockHeader {
        offset: 0,
        ..WRITTEN
    };
    let other_run = BlockHeader { run: 1, ..WRITTEN };
    changed(&|_| (), "right");
    changed(&|b| b.fill(0), "at offset 8192: zeroed");
    let text = "at offset 8192: partly zeroed: from byte 2048 on; found 0x00";
    changed(&|b| b[2048..].fill(0), text);
    let text = "at offset 8192: flipped: 1 bit, the first in byte 1000; found";
    changed(&|b| b[1000] ^= 4, text);
    changed(&|b| b.fill(0x55), "at offset 8192: foreign");
    let text = "at offset 8192: misplaced: found the block of offset 0, expected that of 8192";
    told(stamp(start), text);
    let text = "at offset 8192: stale: generation 0x3 found, 0x9 expected";
    told(stamp(older), text);
    told(
        stamp(other_run),
        "at offset 8192: stale: a block of another run",
    );
    let torn = |b: &mut Vec<u8>| b[2048..].copy_from_slice(&stamp(older)[2048..]);
    changed(&torn, "at offset 8192: torn: bytes 2048 to");
}

#[test]
fn what_was_stamped_is_right_with_every_interval() {
    for interval in [512, 1024, 4096] {
        let headers = headers(interval);
        assert_eq!(
            headers.check(&block(&headers, WRITTEN), &expected()),
            Ok(())
        );
    }
}

#[test]
fn each_kind_of_damage_is_told_apart() {
    let headers = headers(4096);
    check_damages(
        |origin| block(&headers, origin),
        |block| headers.check(block, &expected()),
    );
    let other_file = block(&headers, BlockHeader { file: 6, ..WRITTEN });
    let told = headers
        .check(&other_file, &expected())
        .expect_err("misplaced");
    let expect = "at offset 8192: misplaced: found the block of offset 8192 of another file";
    assert!(told.to_string().starts_with(expect), "{told}");
}

#[test]
fn an_interval_within_a_block_is_named_by_its_own_offset() {
    let headers = headers(512);
    let mut b = block(&headers, WRITTEN);
    b[1024 + 100] ^= 1;
    let wrong = headers.check(&b, &expected()).expect_err("a bit is wrong");
    assert!(
        wrong
            .to_string()
            .starts_with("at offset 9216: flipped: 1 bit, the first in byte 100")
    );
}

#[test]
fn generations_of_other_workers_are_not_compared() {
    let headers = headers(4096);
    let b = block(
        &headers,
        BlockHeader {
            worker: 3,
            generation: 1,
            ..WRITTEN
        },
    );
    assert_eq!(headers.check(&b, &expected()), Ok(()));
}

#[test]
fn where_the_run_is_not_known_any_will_do() {
    let headers = headers(2048);
    let mut b = block(&headers, WRITTEN);
    let other = block(&headers, BlockHeader { run: 78, ..WRITTEN });
    b[2048..].copy_from_slice(&other[2048..]);
    let any = Expected {
        run: None,
        ..expected()
    };
    assert_eq!(headers.check(&b, &any), Ok(()));
    let wrong = headers
        .check(&b, &expected())
        .expect_err("half of it is of another run");
    assert_eq!((wrong.offset, wrong.damage), (10240, Damage::OtherRun(78)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    fn every_single_flipped_bit_is_found(bit in 0_usize..4096 * 8, known: bool) {
        let headers = headers(4096);
        let mut b = block(&headers, WRITTEN);
        b[bit / 8] ^= 1 << (bit % 8);
        let mut expected = expected();
        if !known {
            (expected.run, expected.generations) = (None, None);
        }
        let wrong = headers.check(&b, &expected).expect_err("a bit is wrong");
        prop_assert_eq!(wrong.damage, Damage::Flipped { bits: 1, first: bit / 8 });
    }
}
