use proptest::prelude::*;

use super::*;

const WRITTEN: BlockHeader = BlockHeader {
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
    Expected {
        run: Some(77),
        file: 5,
        offset: 8192,
        generations: Some(Generations {
            worker: 2,
            mask: u64::MAX,
            range: 9..=9,
            likely: 9,
        }),
    }
}

fn block(headers: &Headers, origin: BlockHeader) -> Vec<u8> {
    let mut block = vec![0; 4096];
    headers.stamp(&mut block, &origin);
    block
}

fn told(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let headers = headers(4096);
    let mut b = block(&headers, WRITTEN);
    change(&mut b);
    match headers.check(&b, &expected()) {
        Ok(_) => "right".to_owned(),
        Err(wrong) => wrong.to_string(),
    }
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
    let other = |origin: BlockHeader| move |b: &mut Vec<u8>| *b = block(&headers(4096), origin);
    let check = |change: &dyn Fn(&mut Vec<u8>), expect: &str| {
        let got = told(change);
        assert!(got.starts_with(expect), "{got}");
    };
    check(&|_| (), "right");
    check(&|b| b.fill(0), "at offset 8192: zeroed");
    check(
        &|b| b[2048..].fill(0),
        "at offset 8192: partly zeroed: from byte 2048 on; found 0x00",
    );
    check(
        &|b| b[1000] ^= 4,
        "at offset 8192: flipped: 1 bit, the first in byte 1000; found",
    );
    check(&|b| b.fill(0x55), "at offset 8192: foreign");
    check(
        &other(BlockHeader {
            offset: 0,
            ..WRITTEN
        }),
        "at offset 8192: misplaced: found the block of offset 0, expected that of 8192",
    );
    check(
        &other(BlockHeader { file: 6, ..WRITTEN }),
        "at offset 8192: misplaced: found the block of offset 8192 of another file",
    );
    check(
        &other(BlockHeader {
            generation: 3,
            ..WRITTEN
        }),
        "at offset 8192: stale: generation 0x3 found, 0x9 expected",
    );
    check(
        &other(BlockHeader { run: 1, ..WRITTEN }),
        "at offset 8192: stale: a block of another run",
    );
    let torn = |b: &mut Vec<u8>| {
        let older = block(
            &headers(4096),
            BlockHeader {
                generation: 3,
                ..WRITTEN
            },
        );
        b[2048..].copy_from_slice(&older[2048..]);
    };
    check(&torn, "at offset 8192: torn: bytes 2048 to");
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
