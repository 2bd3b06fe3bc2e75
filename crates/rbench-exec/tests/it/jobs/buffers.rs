//! Tests the content of written files.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The file written by a job of 4 MiB in blocks of 64 KiB.
fn written(more: &str) -> Vec<u8> {
    let dir = tempdir();
    let line = format!("--name=x --rw=write --size=4M --bs=64k {more}");
    run_well(dir.path(), &line);
    data(dir.path(), "x.0.0")
}

/// Percentage that zstd at its fastest common level saves.
fn compresses(data: &[u8]) -> f64 {
    let packed = zstd::bulk::compress(data, 1).expect("compresses");
    100.0 * (1.0 - packed.len() as f64 / data.len() as f64)
}

/// Percentage of blocks that are copies of others.
fn copies(data: &[u8], block: usize) -> f64 {
    let all = data.chunks(block).count();
    let different: BTreeSet<&[u8]> = data.chunks(block).collect();
    100.0 * (all - different.len()) as f64 / all as f64
}

fn check_near(got: f64, expect: f64, what: &str) {
    assert!((got - expect).abs() <= 3.0, "{what}: {got:.2} for {expect}");
}

#[test]
fn zstd_saves_the_percentage_that_was_asked_for() {
    for percent in [0, 25, 50, 75] {
        for more in [
            "",
            "--bs=4k",
            "--buffer_compress_chunk=4k",
            "--buffer_compress_chunk=0",
            "--ioengine=io_uring --iodepth=8",
        ] {
            let options = format!("--buffer_compress_percentage={percent} {more}");
            let data = written(&format!("--refill_buffers {options}"));
            let got = compresses(&data);
            eprintln!("zstd -1 saves {got:.2} %: {options}");
            check_near(got, f64::from(percent), &options);
            assert_eq!(copies(&data, 65536), 0.0, "{options}: blocks repeat");
        }
    }
}

#[test]
fn copies_are_of_the_latest_block_or_of_a_working_set() {
    let blocks = |more: &str| {
        let data = written(&format!("--bs=4k --dedupe_percentage=50 {more}"));
        data.chunks(4096).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let repeated = blocks("");
    let pairs = repeated.windows(2).filter(|pair| pair[0] == pair[1]);
    assert_eq!(pairs.count(), 512);
    let mut times: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for block in blocks("--dedupe_mode=working_set --dedupe_working_set_percentage=5") {
        *times.entry(block).or_default() += 1;
    }
    // Half of the 1024 blocks are copies of 51, and all others differ, like with fio 3.33.
    assert_eq!(times.values().filter(|n| **n == 1).count(), 512);
    assert_eq!(times.len(), 512 + 51);
}

#[test]
fn as_many_blocks_are_copies_as_were_asked_for() {
    for percent in [0, 25, 50, 90] {
        for depth in ["", "--ioengine=io_uring --iodepth=8"] {
            let options = format!("--bs=4k --dedupe_percentage={percent} --refill_buffers {depth}");
            let got = copies(&written(&options), 4096);
            eprintln!("{got:.2} % of the blocks are copies: {options}");
            check_near(got, f64::from(percent), &options);
        }
    }
    let both = written("--bs=4k --dedupe_percentage=50 --buffer_compress_percentage=50");
    check_near(copies(&both, 4096), 50.0, "both");
    let different: BTreeSet<&[u8]> = both.chunks(4096).collect();
    let different = different.into_iter().collect::<Vec<_>>().concat();
    check_near(compresses(&different), 50.0, "both");
}

#[test]
fn refilled_buffers_hold_new_data_in_every_write() {
    for more in ["", "--rw=randwrite", "--ioengine=io_uring --iodepth=8"] {
        let data = written(&format!("--bs=4k --refill_buffers {more}"));
        let mut words: Vec<&[u8]> = data.chunks_exact(8).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all, "{more}: words repeat");
    }
}

#[test]
fn workers_of_a_job_write_different_data() {
    let dir = tempdir();
    run_well(
        dir.path(),
        "--name=x --rw=write --size=64k --numjobs=3 --refill_buffers",
    );
    let all: Vec<u8> = (0..3)
        .flat_map(|n| data(dir.path(), &format!("x.{n}.0")))
        .collect();
    assert!(copies(&all, 512) == 0.0, "{}", copies(&all, 512));
}

#[test]
fn a_buffer_that_is_filled_once_is_scrambled_unless_that_is_off() {
    let scrambled = written("");
    assert_eq!(copies(&scrambled, 512), 0.0);
    let same = written("--scramble_buffers=0");
    assert!(same.chunks(65536).all(|block| block == &same[..65536]));
    assert!(compresses(&same[..65536]) < 1.0);
}

#[test]
fn zeros_and_patterns_are_what_is_written() {
    assert!(written("--zero_buffers").iter().all(|b| *b == 0));
    let abc = written("--buffer_pattern=0x616263 --bs=4k");
    for block in abc.chunks(4096) {
        let right = b"abc".iter().cycle().take(4096);
        assert!(block.iter().eq(right), "{:?}", &block[..6]);
    }
    // Half of it compresses away; that half is the pattern.
    let half = written("--buffer_pattern=0x7a --buffer_compress_percentage=50");
    let z = half.iter().filter(|b| **b == b'z').count() as f64;
    check_near(100.0 * z / half.len() as f64, 50.0, "the pattern's part");
    check_near(compresses(&half), 50.0, "with a pattern");
}
