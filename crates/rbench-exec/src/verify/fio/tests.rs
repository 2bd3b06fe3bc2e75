use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::verify::tests::{WRITTEN, check_damages};

fn headers(checksum: Checksum, interval: usize) -> FioHeaders {
    FioHeaders {
        layout: FioLayout {
            checksum,
            offset: 0,
            pattern: None,
            pattern_interval: 0,
            seed: true,
            sequence: true,
        },
        interval,
        pattern_interval: 0,
        content: BufferContent::Random {
            percent: 0,
            chunk: 0,
            pattern: Vec::new(),
        },
        dump: false,
    }
}

fn with_pattern(checksum: Checksum, bytes: &[u8], offsets: &[usize]) -> FioHeaders {
    let mut headers = headers(checksum, 4096);
    headers.layout.pattern = Some(VerifyPattern {
        bytes: bytes.to_vec(),
        offsets: offsets.to_vec(),
    });
    headers
}

fn expected() -> Expected {
    Expected::of(&WRITTEN)
}

/// The expectation of a reader that did not write it.
fn anybody() -> Expected {
    Expected {
        run: None,
        generations: None,
        ..expected()
    }
}

fn block(headers: &FioHeaders, origin: BlockHeader) -> Vec<u8> {
    let mut block = vec![0; 4096];
    headers.stamp(&mut block, &origin);
    block
}

fn sum(checksum: Checksum, data: &[u8]) -> String {
    let mut out = vec![0; checksum.length() as usize];
    sums::fill(checksum, data, &mut out);
    out.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn checksums_are_those_that_others_compute() {
    // Check values of the catalogue of CRC algorithms (for CRC-32/CKSUM and CRC-32/ISCSI
    // inverted, as fio leaves out their last step), of RFC 1321, FIPS 180 and FIPS 202.
    let check = |checksum, expect: &str| assert_eq!(sum(checksum, b"123456789"), expect);
    check(Checksum::Crc7, "75");
    check(Checksum::Crc16, "3dbb");
    check(
        Checksum::Crc32,
        &format!("{:08x}", (!0x765e_7680_u32).swap_bytes()),
    );
    check(
        Checksum::Crc32c,
        &format!("{:08x}", (!0xe306_9283_u32).swap_bytes()),
    );
    check(
        Checksum::Crc64,
        &format!("{:016x}", 0xe9c6_d914_c4b8_d9ca_u64.swap_bytes()),
    );
    assert_eq!(
        sum(Checksum::Md5, b"abc"),
        "900150983cd24fb0d6963f7d28e17f72"
    );
    // Its words are swapped: a9993e36…
    assert_eq!(
        sum(Checksum::Sha1, b"abc"),
        "363e99a96a81064771253eba6cc250789dd8d09c"
    );
    assert!(sum(Checksum::Sha3_256, b"abc").starts_with("3a985da74fe225b2045c172d6bd390bd"));
    assert!(sum(Checksum::Sha3_512, b"abc").starts_with("b751850b1a57168a5693cd924b6b096e"));
}

#[test]
fn what_was_stamped_is_right_with_every_checksum_interval_and_offset() {
    for (name, checksum) in Checksum::ALL {
        if checksum == Checksum::Pattern {
            continue;
        }
        for interval in [512, 1024, 4096] {
            for offset in [0, 200, 300] {
                let mut headers = headers(checksum, interval);
                headers.layout.offset = offset;
                let block = block(&headers, WRITTEN);
                assert_eq!(headers.check(&block, &expected()), Ok(()), "{name}");
                assert_eq!(headers.check(&block, &anybody()), Ok(()), "{name}");
                let head = block[offset as usize..].starts_with(&[0xca, 0xac]);
                assert_eq!(head, checksum.has_header(), "{name}");
            }
        }
    }
}

#[test]
fn each_kind_of_damage_is_told_apart() {
    let headers = headers(Checksum::Crc32c, 4096);
    check_damages(
        |origin| block(&headers, origin),
        |block| headers.check(block, &expected()),
    );
    // In the seed.
    let mut flipped = block(&headers, WRITTEN);
    flipped[9] ^= 4;
    let told = headers
        .check(&flipped, &expected())
        .expect_err("a bit is wrong");
    let expect = "at offset 8192: flipped: 1 bit, the first in byte 9; found";
    assert!(told.to_string().starts_with(expect), "{told}");
}

#[test]
fn what_another_worker_of_the_run_wrote_is_not_compared() {
    let headers = headers(Checksum::Crc32c, 4096);
    let other = BlockHeader {
        worker: 3,
        generation: 1,
        ..WRITTEN
    };
    assert_eq!(headers.check(&block(&headers, other), &expected()), Ok(()));
}

#[test]
fn seed_and_number_are_checked_unless_that_is_turned_off() {
    let older = BlockHeader {
        generation: 3,
        ..WRITTEN
    };
    for (seed, sequence, right) in [
        (true, true, false),
        (false, true, false),
        (true, false, false),
        (false, false, true),
    ] {
        let mut headers = headers(Checksum::Md5, 4096);
        (headers.layout.seed, headers.layout.sequence) = (seed, sequence);
        let told = headers.check(&block(&headers, older), &expected());
        assert_eq!(told.is_ok(), right, "{seed} {sequence}: {told:?}");
    }
}

#[test]
fn a_pattern_begins_with_each_block_and_has_its_offset() {
    let headers = with_pattern(Checksum::Pattern, b"abc\0\0\0\0\0\0\0\0", &[3]);
    let b = block(&headers, WRITTEN);
    assert_eq!(b[..14], *b"abc\0\x20\0\0\0\0\0\0abc");
    assert_eq!(headers.check(&b, &expected()), Ok(()));
    let mut bad = b;
    bad[12] ^= 0x20;
    let wrong = headers
        .check(&bad, &expected())
        .expect_err("a bit is wrong");
    assert!(
        wrong
            .to_string()
            .contains("flipped: 1 bit, the first in byte 12; found 0x"),
        "{wrong}"
    );
    let mut anew = with_pattern(Checksum::Pattern, b"abc\0\0\0\0\0\0\0\0", &[3]);
    anew.pattern_interval = 512;
    assert_eq!(block(&anew, WRITTEN)[512..520], *b"abc\0\x22\0\0\0");
}

#[test]
fn a_pattern_behind_a_header_is_looked_at_where_there_is_no_checksum() {
    for checksum in [Checksum::Meta, Checksum::PatternHeader] {
        let mut headers = with_pattern(checksum, b"abc", &[]);
        headers.interval = 1024;
        let mut b = block(&headers, WRITTEN);
        assert_eq!(headers.check(&b, &anybody()), Ok(()));
        b[3000] ^= 1;
        let wrong = headers.check(&b, &anybody()).expect_err("a bit is wrong");
        assert_eq!(wrong.offset, 8192 + 2048);
    }
}

#[test]
fn headers_of_fio_3_42_are_read() {
    let headers = headers(Checksum::Crc32c, 4096);
    let mut b = vec![7; 4096];
    b[..48].fill(0);
    b[..4].copy_from_slice(&[0xca, 0xac, 0x81, 5]);
    b[4..8].copy_from_slice(&4096_u32.to_le_bytes());
    b[16..24].copy_from_slice(&8192_u64.to_le_bytes());
    let crc = sums::crc32c(&b[..44]);
    b[44..48].copy_from_slice(&crc.to_le_bytes());
    let sum = sums::crc32c(&b[52..]);
    b[48..52].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(headers.check(&b, &anybody()), Ok(()));
    b[4000] ^= 1;
    let wrong = headers.check(&b, &anybody()).expect_err("a bit is wrong");
    assert_eq!(wrong.damage, Damage::Sum("crc32c"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn every_single_flipped_bit_is_found(bit in 0_usize..4096 * 8, which in 0_usize..15, known: bool) {
        let checksum = Checksum::ALL[which].1;
        let headers = headers(checksum, 4096);
        let mut b = block(&headers, WRITTEN);
        b[bit / 8] ^= 1 << (bit % 8);
        let expected = if known { expected() } else { anybody() };
        let wrong = headers.check(&b, &expected).expect_err("a bit is wrong");
        prop_assert_eq!(wrong.damage, Damage::Flipped { bits: 1, first: bit / 8 });
    }
}
