//! Tests engines, distributions, mixed sizes and shaped data, which `rbench io` shares with jobs of
//! fio.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Mutex;

use rbench_core::{Bytes, Nanos};
use rbench_plan::io::{FsyncRule, Layout, Rw};
use rbench_plan::jobs::Distribution;
use rbench_plan::spec::Io;
use rbench_sys::engine::{ENGINES, EngineInfo};

use super::{KIB, io};
use crate::group::{Outcome, Run, check_adds_up};

const UNMIXED: [Rw; 4] = [Rw::Write, Rw::Read, Rw::RandWrite, Rw::RandRead];

fn split() -> Option<Vec<(u64, Option<u32>)>> {
    Some(vec![(4 * KIB, Some(60)), (8 * KIB, None)])
}

fn asynchronous(engine: &str) -> bool {
    ["io_uring", "libaio", "posixaio"].contains(&engine)
}

fn depth(engine: &str) -> Option<u32> {
    Some(if asynchronous(engine) { 8 } else { 1 })
}

fn check_clean(outcome: &Outcome, about: &str) {
    for row in &outcome.rows {
        check_adds_up(row);
        assert!(row.failures.is_empty(), "{about}: {:?}", row.failures);
    }
}

/// Content of the file after each row.
fn contents(dir: &Path, spec: Io) -> Vec<Vec<u8>> {
    let seen = Mutex::new(Vec::new());
    let mut run = Run::io(&[0], dir, spec);
    run.between = Box::new(|row, own| {
        if !row.name.contains('-') {
            let file = fs::read(own.join("0/data.0")).expect("data");
            seen.lock().expect("no panic").push(file);
        }
    });
    let outcome = run.go().expect("runs");
    check_clean(&outcome, "contents");
    seen.into_inner().expect("no panic")
}

#[test]
fn every_engine_moves_every_block_once_and_what_it_wrote_verifies() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for engine in ENGINES.iter().filter(|engine| engine.moves_data) {
        for (layout, interleave, fsync) in [
            (Layout::PerWorker, false, FsyncRule::End),
            (Layout::SharedSegmented, false, FsyncRule::Every(3)),
            (Layout::SharedSegmented, true, FsyncRule::Close),
        ] {
            let spec = Io {
                engine: Some(engine.name.to_owned()),
                depth: depth(engine.name),
                layout: Some(layout),
                interleave,
                fsync: Some(fsync),
                verify: true,
                ..io(&UNMIXED)
            };
            let mut run = Run::io(&[0, 0, 1], dir.path(), spec);
            run.common.threads = Some(2);
            run.between = Box::new(move |row, own| {
                let (name, length) = match layout {
                    Layout::PerWorker => ("0/data.5", 64 * KIB),
                    _ => ("0/data.shared", 6 * 64 * KIB),
                };
                let file = fs::read(own.join(name)).expect("data");
                assert_eq!(file.len() as u64, length, "{} {}", engine.name, row.name);
                let stamped = |block: &[u8]| block.starts_with(b"rbB");
                assert!(
                    file.chunks(4096).all(stamped),
                    "{} {}",
                    engine.name,
                    row.name
                );
            });
            let outcome = run.go().expect("runs");
            check_clean(&outcome, engine.name);
            for name in ["write", "read", "randwrite", "randread"] {
                assert_eq!(outcome.row(name).items, 6 * 16, "{} {name}", engine.name);
                assert_eq!(outcome.row(name).bytes, 6 * 64 * KIB);
            }
        }
    }
}

#[test]
fn what_is_not_refilled_is_written_again_and_again_and_what_is_laid_out_is_not() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (depth, no_refill) in [(1, true), (4, true), (1, false), (4, false)] {
        let spec = Io {
            engine: Some("io_uring".to_owned()),
            depth: Some(depth),
            no_refill,
            ..io(&[Rw::Read, Rw::RandWrite])
        };
        let files = contents(dir.path(), spec);
        let different = |file: &[u8]| file.chunks(4096).collect::<BTreeSet<_>>().len();
        let written = if no_refill { depth as usize } else { 16 };
        assert_eq!(
            files.iter().map(|f| different(f)).collect::<Vec<_>>(),
            [16, written]
        );
        assert!(
            files
                .iter()
                .all(|f| f.chunks(64).all(|part| part != [0; 64]))
        );
    }
}

#[test]
fn small_files_that_are_not_refilled_are_alike() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (no_refill, expect) in [(true, 1), (false, 7)] {
        let spec = Io {
            rw: Some(vec![Rw::Write]),
            files: Some(7),
            file_size: Some(Bytes(10 * KIB)),
            block: Some(Bytes(4 * KIB)),
            no_refill,
            ..Io::default()
        };
        let mut run = Run::io(&[0], dir.path(), spec);
        run.between = Box::new(move |_, own| {
            let below = |dir: &Path| fs::read_dir(dir).expect("a directory").flatten();
            let trees = below(&own.join("0")).flat_map(|tree| below(&tree.path()));
            let files: Vec<_> = trees.map(|f| fs::read(f.path()).expect("data")).collect();
            assert_eq!(files.len(), 7);
            // Each block has its own data.
            let blocks = |f: &Vec<u8>| f.chunks(2048).collect::<BTreeSet<_>>().len();
            assert!(files.iter().all(|f| blocks(f) == 5));
            assert_eq!(files.iter().collect::<BTreeSet<_>>().len(), expect);
        });
        check_clean(&run.go().expect("runs"), "small");
    }
}

#[test]
fn every_engine_moves_small_files_whole() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for engine in ENGINES.iter().filter(|engine| engine.moves_data) {
        let spec = Io {
            rw: Some(UNMIXED.to_vec()),
            files: Some(7),
            file_size: Some(Bytes(10 * KIB)),
            block: Some(Bytes(KIB)),
            engine: Some(engine.name.to_owned()),
            verify: true,
            ..Io::default()
        };
        let mut run = Run::io(&[0, 0], dir.path(), spec);
        run.common.shift = Some(1);
        let outcome = run.go().expect("runs");
        check_clean(&outcome, engine.name);
        for row in &outcome.rows {
            assert_eq!(
                (row.items, row.bytes),
                (14, 14 * 10 * KIB),
                "{}",
                engine.name
            );
        }
    }
}

#[test]
fn every_engine_reads_what_was_laid_out_for_it_and_mixes() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let moves = |engine: &&EngineInfo| engine.moves_data || !engine.uses_files;
    for engine in ENGINES.iter().filter(moves) {
        let spec = Io {
            engine: Some(engine.name.to_owned()),
            depth: depth(engine.name),
            ..io(&[Rw::RandRead, Rw::RandRw, Rw::Rw])
        };
        let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
        check_clean(&outcome, engine.name);
        assert_eq!(outcome.row("randread").items, 32, "{}", engine.name);
        for name in ["randrw", "rw"] {
            let of = |which: &str| outcome.row(&format!("{name}-{which}")).items;
            assert_eq!(of("read") + of("write"), 32, "{} {name}", engine.name);
        }
    }
}

#[test]
fn a_write_through_a_mapping_that_is_cut_off_leaves_the_rest_to_the_layout() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        size: Some(Bytes(4 << 20)),
        time: Some(Nanos(300_000)),
        fsync: Some(FsyncRule::Never),
        engine: Some("mmap".to_owned()),
        verify: true,
        ..io(&[Rw::Write, Rw::RandRead])
    };
    let run = Run::io(&[0], dir.path(), spec).stepped(1_000);
    let outcome = run.go().expect("runs");
    check_clean(&outcome, "mmap");
    let written = outcome.row("write").items;
    assert!(0 < written && written < 1024, "{written}: it was cut off");
    assert!(outcome.row("randread").items > 0);
}

#[test]
fn random_writes_hit_as_many_blocks_as_their_distribution_says() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let blocks = 8192_usize;
    let hit = |distribution: Option<Distribution>| {
        let spec = Io {
            size: Some(Bytes(512 * blocks as u64)),
            block: Some(Bytes(512)),
            distribution,
            ..io(&[Rw::Write, Rw::RandWrite])
        };
        let files = contents(dir.path(), spec);
        let pairs = files[0].chunks(512).zip(files[1].chunks(512));
        pairs.filter(|(before, after)| before != after).count()
    };
    assert_eq!(hit(None), blocks);
    assert_eq!(hit(Some(Distribution::Uniform)), blocks);
    // With this many draws of probability p each, a block is hit with probability 1 − (1 −
    // p)^draws.
    let expected = |weight: &dyn Fn(usize) -> f64| {
        let sum: f64 = (0..blocks).map(weight).sum();
        let missed = |rank| (1.0 - weight(rank) / sum).powi(blocks as i32);
        (0..blocks).map(|rank| 1.0 - missed(rank)).sum::<f64>()
    };
    let zipf = expected(&|rank| ((rank + 1) as f64).powf(-1.2));
    let zoned = expected(&|rank| {
        if rank < blocks / 10 {
            0.9 / 0.1
        } else {
            0.1 / 0.9
        }
    });
    for (distribution, expect) in [
        (Distribution::Zipf(1.2), zipf),
        (Distribution::Zoned(vec![(90.0, 10.0), (10.0, 90.0)]), zoned),
    ] {
        let got = hit(Some(distribution.clone())) as f64;
        assert!(
            (got - expect).abs() < 0.05 * expect,
            "{distribution:?}: {got} for {expect}"
        );
    }
}

#[test]
fn repeated_blocks_verify() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (engine, time) in [
        ("psync", None),
        ("io_uring", None),
        // Longer than writing each block once.
        ("io_uring", Some(Nanos(2_000_000))),
    ] {
        for block_split in [None, split()] {
            let spec = Io {
                block: block_split.is_none().then_some(Bytes(4 * KIB)),
                block_split,
                size: Some(Bytes(256 * KIB)),
                engine: Some(engine.to_owned()),
                depth: depth(engine),
                distribution: Some(Distribution::Zipf(1.5)),
                time,
                verify: true,
                ..io(&[Rw::Write, Rw::RandWrite, Rw::RandRead, Rw::Read])
            };
            let run = Run::io(&[0, 0], dir.path(), spec).stepped(1_000);
            let outcome = run.go().expect("runs");
            check_clean(&outcome, engine);
            let items = outcome.row("write").items;
            assert!(time.is_none() || items > 128, "{items}: written again");
        }
    }
}

#[test]
fn blocks_of_a_split_move_every_byte_once_in_their_shares() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let size = 8 << 20;
    for engine in ["psync", "io_uring", "mmap"] {
        let spec = Io {
            block: None,
            block_split: split(),
            size: Some(Bytes(size)),
            engine: Some(engine.to_owned()),
            depth: depth(engine),
            verify: true,
            ..io(&UNMIXED)
        };
        let mut run = Run::io(&[0, 0], dir.path(), spec);
        run.common.shift = Some(1);
        let outcome = run.go().expect("runs");
        check_clean(&outcome, engine);
        for name in ["write", "read", "randwrite", "randread"] {
            let row = outcome.row(name);
            assert_eq!(row.bytes, 2 * size, "{engine} {name}");
            // With two sizes, the mean gives their shares.
            let mean = row.bytes as f64 / row.items as f64;
            let large = 100.0 * (mean - 4096.0) / 4096.0;
            assert!((large - 40.0).abs() < 3.0, "{engine} {name}: {large}%");
        }
    }
}

#[test]
fn a_range_of_sizes_is_laid_out_and_covered() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let size = (4 << 20) + 512;
    let spec = Io {
        block: None,
        block_range: Some((512, 8192)),
        size: Some(Bytes(size)),
        layout: Some(Layout::SharedSegmented),
        verify: true,
        ..io(&[Rw::RandRead, Rw::RandWrite, Rw::Read])
    };
    let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
    check_clean(&outcome, "range");
    for row in outcome
        .rows
        .iter()
        .filter(|row| !row.name.contains("fsync"))
    {
        assert_eq!(row.bytes, 2 * size, "{}", row.name);
        let mean = row.bytes as f64 / row.items as f64;
        assert!((mean / 4352.0 - 1.0).abs() < 0.05, "{}: {mean}", row.name);
    }
}

#[test]
fn damage_in_a_block_of_a_split_is_told_at_its_place() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        block: None,
        block_split: split(),
        size: Some(Bytes(1 << 20)),
        verify: true,
        ..io(&[Rw::Write, Rw::RandRead])
    };
    let mut run = Run::io(&[0], dir.path(), spec);
    run.between = Box::new(|row, own| {
        if row.name == "write" {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(own.join("0/data.0"))
                .expect("data");
            let mut byte = [0];
            file.read_exact_at(&mut byte, 70_000).expect("read");
            file.write_all_at(&[byte[0] ^ 4], 70_000).expect("write");
        }
    });
    let outcome = run.go().expect("runs");
    let failures = &outcome.row("randread").failures;
    assert_eq!(failures.total(), 1);
    let (_, _, example) = failures.iter().next().expect("one");
    let text = example.failure.to_string();
    assert!(text.contains("at offset 69632: flipped"), "{text}");
}

/// Percentage of `data` that compression saves.
fn compressible(data: &[u8]) -> f64 {
    let packed = zstd::bulk::compress(data, 3).expect("compresses");
    100.0 * (1.0 - packed.len() as f64 / data.len() as f64)
}

#[test]
fn written_data_compresses_as_asked_for() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for percent in [0, 30, 75, 100] {
        for rw in [Rw::Write, Rw::RandWrite, Rw::RandRead] {
            for (block, block_split) in [(Some(Bytes(128 * KIB)), None), (None, split())] {
                let spec = Io {
                    block,
                    block_split,
                    size: Some(Bytes(8 << 20)),
                    compress: Some(percent),
                    ..io(&[rw])
                };
                // Files that are only read were laid out beforehand.
                let file = &contents(dir.path(), spec)[0];
                let got = compressible(file);
                assert!(
                    (got - f64::from(percent)).abs() <= 3.0,
                    "{}: {got} for {percent}",
                    rw.name()
                );
            }
        }
    }
}

#[test]
fn small_files_compress_as_asked_for() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        rw: Some(vec![Rw::Write]),
        files: Some(100),
        file_size: Some(Bytes(64 * KIB)),
        compress: Some(40),
        ..Io::default()
    };
    let mut run = Run::io(&[0], dir.path(), spec);
    run.between = Box::new(|_, own| {
        let folder = fs::read_dir(own.join("0")).expect("folder").next();
        let folder = folder.expect("one").expect("entry").path();
        let mut all = Vec::new();
        for file in fs::read_dir(folder).expect("files") {
            all.extend(fs::read(file.expect("entry").path()).expect("data"));
        }
        assert_eq!(all.len() as u64, 100 * 64 * KIB);
        let got = compressible(&all);
        assert!((got - 40.0).abs() <= 3.0, "{got}");
    });
    run.go().expect("runs");
}

#[test]
fn so_many_written_blocks_are_copies_of_others() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for percent in [0, 25, 80] {
        let spec = Io {
            size: Some(Bytes(4 << 20)),
            dedupe: Some(percent),
            ..io(&[Rw::Write])
        };
        let file = &contents(dir.path(), spec)[0];
        let distinct: BTreeSet<&[u8]> = file.chunks(4096).collect();
        let copies = 100.0 * (1.0 - distinct.len() as f64 / 1024.0);
        assert!(
            (copies - f64::from(percent)).abs() < 1.0,
            "{copies} for {percent}"
        );
    }
}
