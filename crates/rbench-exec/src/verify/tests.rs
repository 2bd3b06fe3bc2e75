use proptest::prelude::*;

use super::*;

const WRITTEN: BlockHeader = BlockHeader {
    run: 77,
    file: 5,
    offset: 8192,
    generation: 9,
    worker: 2,
};

const ALL: [Checksum; 8] = [
    Checksum::Crc32c,
    Checksum::Crc64,
    Checksum::Xxhash,
    Checksum::Md5,
    Checksum::Sha1,
    Checksum::Sha256,
    Checksum::Sha512,
    Checksum::Null,
];

fn headers(checksum: Checksum, interval: usize) -> Headers {
    Headers {
        checksum,
        interval,
        content: BufferContent::Random {
            percent: 0,
            chunk: 0,
            pattern: Vec::new(),
        },
    }
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

fn told(checksum: Checksum, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let headers = headers(checksum, 4096);
    let mut b = block(&headers, WRITTEN);
    change(&mut b);
    match headers.check(&b, &expected()) {
        Ok(_) => "right".to_owned(),
        Err(wrong) => wrong.to_string(),
    }
}

#[test]
fn what_was_stamped_is_right_with_every_checksum_and_interval() {
    for checksum in ALL {
        for interval in [512, 1024, 4096] {
            let headers = headers(checksum.clone(), interval);
            assert_eq!(
                headers.check(&block(&headers, WRITTEN), &expected()),
                Ok(Some(77))
            );
        }
    }
}

#[test]
fn checksums_are_those_that_others_compute() {
    // The check values of the catalogue of CRC algorithms, of RFC 1321 and of
    // FIPS 180, for "123456789" and "abc".
    let hex = |checksum: &Checksum, head: &[u8], data: &[u8]| {
        let bytes = sum(checksum, head, data);
        bytes[..sum_length(checksum)]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    };
    assert_eq!(hex(&Checksum::Crc32c, b"1234", b"56789"), "839206e3");
    assert_eq!(hex(&Checksum::Crc64, b"1234", b"56789"), "fa3919dfbbc95d99");
    assert_eq!(
        hex(&Checksum::Md5, b"a", b"bc"),
        "900150983cd24fb0d6963f7d28e17f72"
    );
    assert_eq!(
        hex(&Checksum::Sha1, b"a", b"bc"),
        "a9993e364706816aba3e25717850c26c9cd0d89d"
    );
    let sha256 = hex(&Checksum::Sha256, b"a", b"bc");
    assert!(
        sha256.starts_with("ba7816bf8f01cfea414140de5dae2223"),
        "{sha256}"
    );
    let sha512 = hex(&Checksum::Sha512, b"a", b"bc");
    assert!(
        sha512.starts_with("ddaf35a193617abacc417349ae204131"),
        "{sha512}"
    );
}

#[test]
fn each_kind_of_damage_is_told_apart() {
    let other = |origin: BlockHeader| {
        move |b: &mut Vec<u8>| *b = block(&headers(Checksum::Crc32c, 4096), origin)
    };
    let check = |change: &dyn Fn(&mut Vec<u8>), expect: &str| {
        let got = told(Checksum::Crc32c, change);
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
        "at offset 8192: flipped: 1 bits, the first in byte 1000; found",
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
            &headers(Checksum::Crc32c, 4096),
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
    let headers = headers(Checksum::Md5, 512);
    let mut b = block(&headers, WRITTEN);
    b[1024 + 100] ^= 1;
    let wrong = headers.check(&b, &expected()).expect_err("a bit is wrong");
    assert!(
        wrong
            .to_string()
            .starts_with("at offset 9216: flipped: 1 bits, the first in byte 100")
    );
}

#[test]
fn generations_of_other_workers_are_not_compared() {
    let headers = headers(Checksum::Crc32c, 4096);
    let b = block(
        &headers,
        BlockHeader {
            worker: 3,
            generation: 1,
            ..WRITTEN
        },
    );
    assert_eq!(headers.check(&b, &expected()), Ok(Some(77)));
}

#[test]
fn where_the_run_is_not_known_any_will_do_and_the_first_is_told() {
    let headers = headers(Checksum::Crc32c, 2048);
    let mut b = block(&headers, WRITTEN);
    let other = block(&headers, BlockHeader { run: 78, ..WRITTEN });
    b[2048..].copy_from_slice(&other[2048..]);
    let any = Expected {
        run: None,
        ..expected()
    };
    assert_eq!(headers.check(&b, &any), Ok(Some(77)));
    let wrong = headers
        .check(&b, &expected())
        .expect_err("half of it is of another run");
    assert_eq!((wrong.offset, wrong.damage), (10240, Damage::OtherRun(78)));
}

#[test]
fn a_pattern_runs_through_the_file() {
    let headers = headers(Checksum::Pattern(b"abc".to_vec()), 4096);
    let mut first = vec![0; 4];
    let mut second = vec![0; 5];
    headers.stamp(
        &mut first,
        &BlockHeader {
            offset: 0,
            ..WRITTEN
        },
    );
    headers.stamp(
        &mut second,
        &BlockHeader {
            offset: 4,
            ..WRITTEN
        },
    );
    assert_eq!([first, second].concat(), b"abcabcabc");
    let mut b = block(&headers, WRITTEN);
    assert_eq!(headers.check(&b, &expected()), Ok(None));
    b[7] ^= 0x20;
    let wrong = headers
        .check(&b, &expected())
        .expect_err("a bit is wrong")
        .to_string();
    assert!(
        wrong.contains("flipped: 1 bits, the first in byte 7; found 0x"),
        "{wrong}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    fn every_single_flipped_bit_is_found(bit in 0_usize..4096 * 8, which in 0_usize..7, known: bool) {
        let headers = headers(ALL[which].clone(), 4096);
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
