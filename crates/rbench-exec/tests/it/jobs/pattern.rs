//! Tests the offsets of operations, in logs of single operations and in the files.

use std::collections::{BTreeMap, BTreeSet};

use rbench_core::job::LogSample;

use super::*;

/// The samples of each worker in a run that logs all operations.
fn logged(dir: &Path, hosts: &[u32], line: &str) -> BTreeMap<u64, Vec<LogSample>> {
    let line = format!("{line} --write_lat_log=x --log_offset=1");
    let outcome = run_on(hosts, dir, &line);
    check_sound(&outcome, &line);
    let logs = outcome.logs.into_iter();
    logs.map(|log| (log.worker, log.samples)).collect()
}

fn offsets(samples: &[LogSample]) -> Vec<u64> {
    samples.iter().map(|sample| sample.offset).collect()
}

#[test]
fn every_worker_reads_every_block_once_in_an_order_of_its_own() {
    let dir = tempdir();
    for (engine, depth) in [
        ("psync", 1),
        ("io_uring", 8),
        ("libaio", 8),
        ("posixaio", 8),
        ("splice", 1),
        ("mmap", 1),
    ] {
        for jobs in [1, 4] {
            let line = format!(
                "--name=x --rw=randread --size=256k --ioengine={engine} --iodepth={depth} \
                 --numjobs={jobs}"
            );
            let all = logged(dir.path(), &[0], &line);
            assert_eq!(all.len(), jobs, "{line}");
            let mut orders = BTreeSet::new();
            for samples in all.values() {
                let order = offsets(samples);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                let each: Vec<u64> = (0..64).map(|block| block * 4 * KIB).collect();
                assert_eq!(sorted, each, "{line}");
                assert_ne!(order, each, "{line}: in sequence");
                orders.insert(order);
            }
            assert_eq!(orders.len(), jobs, "{line}: workers share an order");
        }
    }
}

#[test]
fn every_block_is_written_exactly_once() {
    for more in [
        "--bs=4k",
        "--bsrange=4k-32k",
        "--bssplit=4k/50:16k/50",
        "--bs=4k --ioengine=io_uring --iodepth=16",
        "--bs=4k --nrfiles=5",
        "--bs=4k --file_service_type=random --nrfiles=5",
    ] {
        let dir = tempdir();
        let line = format!("--name=x --rw=randwrite --size=1000k --buffer_pattern=0x6e {more}");
        let outcome = run_well(dir.path(), &line);
        // All bytes of the files are written.
        assert_eq!(only(&outcome).write.bytes, 1000 * KIB, "{line}");
        for name in listing(dir.path()).keys() {
            let whole = data(dir.path(), name).iter().all(|b| *b == b'n');
            assert!(whole, "{line}: {name}");
        }
    }
}

#[test]
fn the_same_seed_gives_a_worker_the_same_offsets_wherever_it_runs() {
    let dir = tempdir();
    let line = "--name=x --rw=randrw --size=128k --norandommap --ioengine=null";
    let series = |hosts: &[u32], more: &str| {
        let all = logged(dir.path(), hosts, &format!("{line} {more}"));
        let of = |(worker, samples): (u64, Vec<LogSample>)| {
            let steps = samples.iter().map(|s| (s.direction.number(), s.offset));
            (worker, steps.collect::<Vec<_>>())
        };
        all.into_iter().map(of).collect::<BTreeMap<_, _>>()
    };
    let four = series(&[0], "--numjobs=4");
    assert_eq!(four.len(), 4);
    assert_eq!(series(&[0], "--numjobs=4"), four);
    // Only rank 0's logs are available here: workers 0 and 1.
    let two = series(&[0, 1], "--numjobs=2");
    assert_eq!((&two[&0], &two[&1]), (&four[&0], &four[&1]));
    let other = series(&[0], "--numjobs=4 --randseed=7");
    assert!((0..4).all(|worker| other[&worker] != four[&worker]));
}

#[test]
fn of_a_mix_exactly_so_many_percent_read() {
    let dir = tempdir();
    for (more, reads) in [
        ("--rwmixread=70", 700),
        ("--rwmixwrite=70", 300),
        ("", 500),
        ("--rwmixread=0", 0),
        ("--rwmixread=100", 1000),
        ("--rwmixread=25 --rw=rw", 250),
        ("--rwmixread=25 --ioengine=io_uring --iodepth=16", 250),
    ] {
        let line = format!("--name=x --rw=randrw --bs=512 --size=500k --ioengine=null {more}");
        let outcome = run_well(dir.path(), &line);
        let expect = (reads, reads * 512, 1000 - reads, (1000 - reads) * 512);
        assert_eq!(counts(&outcome), expect, "{line}");
    }
}

#[test]
fn block_sizes_have_the_range_and_the_shares_asked_for() {
    let dir = tempdir();
    let blocks = |more: &str| {
        let line = format!("--name=x --rw=randread --size=32M --ioengine=null {more}");
        let all = logged(dir.path(), &[0], &line)
            .remove(&0)
            .expect("worker 0");
        let bytes: u64 = all.iter().map(|s| s.bytes).sum();
        assert_eq!(bytes, 32 * MIB, "{line}");
        let mut of: BTreeMap<u64, u64> = BTreeMap::new();
        all.iter()
            .for_each(|s| *of.entry(s.block).or_default() += 1);
        (of, all.len() as f64)
    };
    let (range, all) = blocks("--bsrange=4k-16k");
    assert!(
        range.keys().all(|b| b % 4096 == 0 && *b <= 16384),
        "{range:?}"
    );
    let (sizes, even) = (range.len(), range[&8192] as f64 / all);
    assert!(sizes == 4 && (even - 0.25).abs() < 0.03, "{range:?}");
    let (split, all) = blocks("--bssplit=4k/60:16k/40");
    let small = split[&4096] as f64 / all;
    assert!((small - 0.6).abs() < 0.03, "{split:?}");
    let (one, _) = blocks("--bs=16k,4k");
    assert_eq!(one, BTreeMap::from([(16384, 2048)]));
}

#[test]
fn a_percentage_of_random_operations_jumps_and_the_others_go_on() {
    let dir = tempdir();
    for percent in [0, 30, 50, 100] {
        let line = format!(
            "--name=x --rw=randread --size=16M --ioengine=null --percentage_random={percent}"
        );
        let all = logged(dir.path(), &[0], &line)
            .remove(&0)
            .expect("worker 0");
        let jumps = all
            .windows(2)
            .filter(|w| w[1].offset != w[0].offset + w[0].block);
        let share = 100.0 * jumps.count() as f64 / (all.len() - 1) as f64;
        assert!((share - f64::from(percent)).abs() < 4.0, "{line}: {share}");
    }
}

#[test]
fn a_distribution_decides_where_operations_go() {
    let dir = tempdir();
    let hits = |how: &str| {
        let line = format!(
            "--name=x --rw=randread --size=4M --io_size=64M --ioengine=null \
             --random_distribution={how}"
        );
        let all = logged(dir.path(), &[0], &line)
            .remove(&0)
            .expect("worker 0");
        let mut of = vec![0_u64; 1024];
        all.iter().for_each(|s| of[(s.offset / 4096) as usize] += 1);
        of
    };
    let share = |part: &[u64]| part.iter().sum::<u64>() as f64 / 16384.0;
    let zoned = hits("zoned:60/10:30/20:10/70");
    let zones = [&zoned[..102], &zoned[102..307], &zoned[307..]].map(share);
    for (got, expect) in zones.into_iter().zip([0.6, 0.3, 0.1]) {
        assert!((got - expect).abs() < 0.02, "{zones:?}");
    }
    // theta 1.2 over 1024 blocks: the first block gets a share of 1/Σ r^-1.2.
    let sum: f64 = (1..=1024).map(|r| f64::from(r).powf(-1.2)).sum();
    let most = *hits("zipf:1.2").iter().max().expect("hits") as f64 / 16384.0;
    assert!((most - 1.0 / sum).abs() < 0.02, "{most} {}", 1.0 / sum);
    let uniform = hits("random");
    assert!(
        uniform.iter().all(|n| *n == 16),
        "each block once in each round"
    );
}
