use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rbench_core::outcome::Cache;
use rbench_core::residency::Evidence;
use rbench_core::{Bytes, Nanos};
use rbench_plan::arrival::Arrival;
use rbench_plan::io::{FsyncRule, Layout, Rw};
use rbench_plan::spec::Io;
use rbench_sys::mountinfo;

use crate::group::{Run, check_adds_up};

mod shapes;
mod timing;

const KIB: u64 = 1024;
const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

fn io(rw: &[Rw]) -> Io {
    Io {
        rw: Some(rw.to_vec()),
        block: Some(Bytes(4 * KIB)),
        size: Some(Bytes(64 * KIB)),
        ..Io::default()
    }
}

#[test]
fn every_pattern_engine_and_layout_adds_up() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let all = [
        Rw::Write,
        Rw::Read,
        Rw::RandWrite,
        Rw::RandRead,
        Rw::Rw,
        Rw::RandRw,
    ];
    for engine in ["psync", "io_uring"] {
        for (layout, interleave) in [
            (Layout::PerWorker, false),
            (Layout::SharedSegmented, false),
            (Layout::SharedSegmented, true),
        ] {
            let depth = if engine == "psync" { 1 } else { 8 };
            let spec = Io {
                engine: Some(engine.to_owned()),
                depth: Some(depth),
                layout: Some(layout),
                interleave,
                ..io(&all)
            };
            let mut run = Run::io(&[0, 0, 1], dir.path(), spec);
            run.common.threads = Some(2);
            let outcome = run.go().expect("runs");
            outcome.rows.iter().for_each(check_adds_up);
            outcome
                .rows
                .iter()
                .for_each(|row| assert!(row.failures.is_empty(), "{:?}", row.failures));
            for name in ["write", "read", "randwrite", "randread"] {
                assert_eq!(outcome.row(name).items, 6 * 16, "{engine} {name}");
                assert_eq!(outcome.row(name).bytes, 6 * 64 * KIB);
            }
            assert_eq!(outcome.row("write-fsync").items, 6);
            let mix = outcome.row("randrw-read").items + outcome.row("randrw-write").items;
            assert_eq!(mix, 6 * 16);
            assert!(outcome.left.is_empty());
        }
    }
    assert_eq!(fs::read_dir(dir.path()).expect("listing").count(), 0);
}

#[test]
fn files_are_as_long_as_asked_for_and_do_not_compress() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        size: Some(Bytes(50_000)),
        ..io(&[Rw::Write])
    };
    let mut run = Run::io(&[0, 0], dir.path(), spec);
    run.between = Box::new(|_, own| {
        let (a, b) = (
            fs::read(own.join("0/data.0")).expect("data"),
            fs::read(own.join("0/data.1")).expect("data"),
        );
        assert_eq!((a.len(), b.len()), (50_000, 50_000));
        let mut words: Vec<&[u8]> = a.chunks_exact(8).chain(b.chunks_exact(8)).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all, "words repeat");
    });
    run.go().expect("runs");
}

#[test]
fn small_files_are_made_read_and_checked() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        rw: Some(vec![Rw::Write, Rw::RandRead]),
        files: Some(20),
        file_size: Some(Bytes(10_240)),
        block: Some(Bytes(1024)),
        verify: true,
        ..Io::default()
    };
    let mut run = Run::io(&[0, 1], dir.path(), spec);
    run.common.shift = Some(1);
    let outcome = run.go().expect("runs");
    outcome.rows.iter().for_each(check_adds_up);
    assert_eq!(
        (outcome.row("write").items, outcome.row("randread").items),
        (40, 40)
    );
    outcome
        .rows
        .iter()
        .for_each(|row| assert!(row.failures.is_empty(), "{:?}", row.failures));
}

#[test]
fn reads_lay_their_files_out_first_and_untimed() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (files, size) in [(None, Some(Bytes(64 * KIB))), (Some(7), None)] {
        let spec = Io {
            files,
            size,
            file_size: files.map(|_| Bytes(4 * KIB)),
            verify: true,
            ..io(&[Rw::RandRead])
        };
        let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
        assert_eq!(outcome.rows.len(), 1);
        assert_eq!(outcome.rows[0].items, if files.is_some() { 14 } else { 32 });
        assert!(outcome.rows[0].failures.is_empty());
    }
}

fn damage(path: &Path, offset: u64, change: impl Fn(&mut [u8])) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("opens");
    let mut block = vec![0; 4096];
    file.read_exact_at(&mut block, offset).expect("reads");
    change(&mut block);
    file.write_all_at(&block, offset).expect("writes");
}

#[test]
fn every_damaged_block_is_found_and_named() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (engine, layout) in [
        ("psync", Layout::PerWorker),
        ("io_uring", Layout::PerWorker),
    ] {
        let spec = Io {
            verify: true,
            engine: Some(engine.to_owned()),
            layout: Some(layout),
            ..io(&[Rw::Write, Rw::RandWrite, Rw::RandRead])
        };
        let mut run = Run::io(&[0, 0], dir.path(), spec);
        run.between = Box::new(|row, own| {
            if row.name == "randwrite" {
                damage(&own.join("0/data.0"), 4096, |b| b[77] ^= 1);
                damage(&own.join("0/data.0"), 8192, |b| b.fill(0));
                damage(&own.join("0/data.1"), 0, |b| b[1024..].fill(0));
                fs::copy(own.join("0/data.1"), own.join("0/data.1.copy")).expect("copied");
            }
        });
        let outcome = run.go().expect("runs");
        let read = outcome.row("randread");
        check_adds_up(read);
        assert_eq!(
            (read.items, read.failures.total()),
            (29, 3),
            "{:?}",
            read.failures
        );
        let (kind, _, example) = read.failures.iter().next().expect("a failure");
        assert_eq!(
            (kind.name().as_str(), example.failure.path.as_str()),
            ("MISMATCH", "0/data.0")
        );
    }
}

#[test]
fn a_truncated_file_is_short() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut run = Run::io(&[0], dir.path(), io(&[Rw::Write, Rw::Read]));
    run.between = Box::new(|row, own| {
        if row.name == "write" {
            let file = OpenOptions::new()
                .write(true)
                .open(own.join("0/data.0"))
                .expect("opens");
            file.set_len(40_000).expect("truncated");
        }
    });
    let outcome = run.go().expect("runs");
    let read = outcome.row("read");
    assert_eq!((read.items, read.failures.total()), (9, 7));
    assert_eq!(
        read.failures.iter().next().map(|(k, ..)| k.name()),
        Some("SHORT".to_owned())
    );
}

#[test]
fn a_timed_phase_loops_and_ends_in_time() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        time: Some(Nanos(3 * MS)),
        fsync: Some(FsyncRule::Never),
        ..io(&[Rw::Write, Rw::Read])
    };
    let run = Run::io(&[0, 0], dir.path(), spec).stepped(US);
    for row in &run.go().expect("runs").rows {
        check_adds_up(row);
        // A block every 2 us, and 16 blocks repeatedly.
        assert!((2900..=3000).contains(&row.items), "{}", row.items);
        assert!(row.elapsed.0.abs_diff(3 * MS) < 10 * US, "{}", row.elapsed);
    }
}

/// 2000 operations per second on two ranks: 800 are due in the ramp, 1000 after it.
fn ramped(io: Io) -> Io {
    Io {
        time: Some(Nanos(500 * MS)),
        ramp: Some(Nanos(400 * MS)),
        rate: Some(2000.0),
        ..io
    }
}

#[test]
fn what_starts_in_the_ramp_is_not_counted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (engine, depth, fsync) in [
        ("psync", 1, FsyncRule::End),
        ("null", 4, FsyncRule::End),
        ("io_uring", 4, FsyncRule::Every(100)),
    ] {
        let spec = ramped(Io {
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            fsync: Some(fsync),
            ..io(&[Rw::RandWrite])
        });
        let run = Run::io(&[0, 0], dir.path(), spec).stepped(US);
        let outcome = run.go().expect("runs");
        let row = outcome.row("randwrite");
        let about = (row.items, row.unissued);
        assert_eq!(row.items + row.unissued, 1000, "{engine}: {about:?}");
        assert_eq!(row.measured_from, Nanos(400 * MS), "{engine}");
        let syncs = outcome.row("randwrite-fsync").items;
        let of_items = row.items / 100;
        match engine {
            // The kernel decides how long a request is in flight.
            "io_uring" => {
                let expect = of_items.saturating_sub(2)..=of_items + 3;
                assert!(expect.contains(&syncs), "{engine}: {syncs} syncs");
            }
            "null" => assert_eq!((row.items, syncs), (1000, 0)),
            _ => assert_eq!((row.items, syncs), (1000, 2)),
        }
    }
    // Checking threads must not affect it either.
    for verify_threads in [None, Some(2)] {
        let spec = ramped(Io {
            verify: true,
            verify_threads,
            ..io(&[Rw::RandRead])
        });
        let run = Run::io(&[0, 0], dir.path(), spec).stepped(US);
        let outcome = run.go().expect("runs");
        let row = outcome.row("randread");
        assert_eq!((row.items, row.unissued), (1000, 0), "{verify_threads:?}");
    }
}

#[test]
fn an_engine_without_files_syncs_and_closes_nothing() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (fsync, row) in [
        (FsyncRule::Every(1), "write-fsync"),
        (FsyncRule::End, "write-fsync"),
        (FsyncRule::Close, "write-close"),
    ] {
        let spec = Io {
            engine: Some("null".to_owned()),
            fsync: Some(fsync),
            ..io(&[Rw::Write])
        };
        let outcome = Run::io(&[0], dir.path(), spec).go().expect("runs");
        assert_eq!(
            (outcome.row("write").items, outcome.row(row).items),
            (16, 0)
        );
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let victim = dir.path().join("victim");
    fs::write(&victim, b"precious").expect("written");
    let spec = io(&[Rw::Write, Rw::RandWrite, Rw::Write]);
    let mut run = Run::io(&[0], dir.path(), spec);
    run.between = Box::new(|row, own| {
        if row.name == "write-1" {
            fs::remove_file(own.join("0/data.0")).expect("removed");
            std::os::unix::fs::symlink(&victim, own.join("0/data.0")).expect("linked");
        }
    });
    let outcome = run.go().expect("runs");
    let why = outcome.trouble.expect("no worker could begin");
    assert!(why.contains("ELOOP"), "{why}");
    assert_eq!(outcome.rows.len(), 2, "a write and its fsync");
    assert_eq!(fs::read(&victim).expect("there"), b"precious");
}

#[test]
fn a_worker_thinks_after_each_operation() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (engine, depth) in [("psync", 1), ("io_uring", 4)] {
        let spec = Io {
            size: Some(Bytes(8 * 4096)),
            think: Some(Nanos(20_000_000)),
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            ..io(&[Rw::Read])
        };
        let outcome = Run::io(&[0], dir.path(), spec).go().expect("runs");
        let row = outcome.row("read");
        assert_eq!(row.items, 8, "{engine}");
        assert!(row.elapsed >= Nanos(7 * 20_000_000), "{}", row.elapsed);
        // It waits, and is not busy meanwhile.
        assert!(
            row.effort.waited >= Nanos(7 * 20_000_000),
            "{:?}",
            row.effort
        );
    }
}

#[test]
fn an_open_loop_keeps_its_rate_over_all_workers() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (arrival, engine, depth) in [
        (Arrival::Uniform, "psync", 1),
        (Arrival::Poisson, "psync", 1),
        (Arrival::Uniform, "null", 4),
        (Arrival::Uniform, "io_uring", 4),
    ] {
        let spec = Io {
            time: Some(Nanos(1000 * MS)),
            rate: Some(2000.0),
            arrival: Some(arrival),
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            ..io(&[Rw::RandRead])
        };
        let run = Run::io(&[0, 0], dir.path(), spec).stepped(US);
        let outcome = run.go().expect("runs");
        let row = outcome.row("randread");
        check_adds_up(row);
        let response = row.response.as_ref().expect("open loop");
        assert!(response.quantile(0.5) >= row.service.quantile(0.5));
        let due = row.items + row.unissued;
        match arrival {
            // The count varies by the square root of 2000; the seed is fixed.
            Arrival::Poisson => assert!(due.abs_diff(2000) < 180, "{due}"),
            Arrival::Uniform => assert_eq!(due, 2000, "{engine}"),
        }
        // The kernel decides how long a request is in flight.
        if engine != "io_uring" {
            assert_eq!(row.unissued, 0, "{engine}");
            assert!(response.max().0 < 20 * US, "{engine}: {}", response.max());
        }
    }
}

#[test]
fn rates_of_an_open_loop_are_over_the_time_that_ended_it() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        time: Some(Nanos(2000 * MS)),
        rate: Some(1.0),
        ..io(&[Rw::RandRead])
    };
    let outcome = Run::io(&[0], dir.path(), spec)
        .stepped(US)
        .go()
        .expect("runs");
    let row = outcome.row("randread");
    // At 0 s and at 1 s: the second one ends a second before the deadline.
    assert_eq!((row.items, row.elapsed), (2, Nanos(2000 * MS)));
    assert!((row.rate() - 1.0).abs() < 1e-9, "{}", row.rate());
}

#[test]
fn operations_that_were_due_and_never_started_are_counted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // An operation takes 10 ms, and so does the time between two operations.
    let spec = Io {
        rate: Some(1000.0),
        time: Some(Nanos(1000 * MS)),
        ..io(&[Rw::RandRead])
    };
    let run = Run::io(&[0, 0], dir.path(), spec).stepped(10 * MS);
    let outcome = run.go().expect("runs");
    let row = outcome.row("randread");
    check_adds_up(row);
    assert_eq!(row.items + row.unissued, 1000);
    assert!((60..=100).contains(&row.items), "{}", row.items);
}

#[test]
fn a_mix_keeps_its_share_of_reads() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        mix: Some(70),
        size: Some(Bytes(8 << 20)),
        ..io(&[Rw::RandRw])
    };
    let outcome = Run::io(&[0], dir.path(), spec).go().expect("runs");
    let reads = outcome.row("randrw-read").items as f64 / 2048.0;
    assert!((0.65..0.75).contains(&reads), "{reads}");
}

#[test]
fn fsync_every_so_many_writes_is_a_row_of_its_own() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for engine in ["psync", "io_uring"] {
        let depth = if engine == "psync" { 1 } else { 8 };
        let spec = Io {
            fsync: Some(FsyncRule::Every(4)),
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            ..io(&[Rw::Write])
        };
        let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
        assert_eq!(outcome.row("write-fsync").items, 2 * 4, "{engine}");
    }
}

#[test]
fn what_a_cut_off_write_left_verifies_after_the_layout_of_the_rest() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        size: Some(Bytes(4 << 20)),
        time: Some(Nanos(300 * US)),
        fsync: Some(FsyncRule::Never),
        verify: true,
        ..io(&[Rw::Write, Rw::RandRead])
    };
    let run = Run::io(&[0, 0], dir.path(), spec).stepped(US);
    let outcome = run.go().expect("runs");
    let (written, all) = (outcome.row("write").items, 2 * 1024);
    assert!(0 < written && written < all, "{written}: it was cut off");
    let read = outcome.row("randread");
    assert!(
        read.items > 0 && read.failures.is_empty(),
        "{:?}",
        read.failures
    );
}

#[test]
fn files_laid_out_by_this_host_are_warm_and_past_the_page_cache_cold() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let outcome = Run::io(&[0, 0], dir.path(), io(&[Rw::RandRead]))
        .go()
        .expect("runs");
    assert_eq!(outcome.rows[0].cache, Some(Cache::Warm));
    let mut run = Run::io(&[0, 1], dir.path(), io(&[Rw::RandRead]));
    run.common.shift = Some(1);
    // To the page cache, both hosts are this one.
    let outcome = run.go().expect("runs");
    let seen = outcome.rows[0]
        .residency
        .as_ref()
        .expect("it was looked at");
    let own: u64 = seen
        .caches
        .iter()
        .filter_map(|c| c.share)
        .map(|s| s.known())
        .sum();
    assert_eq!(own, 0, "each reads what the other has made");
    let direct = Io {
        direct: true,
        ..io(&[Rw::RandRead])
    };
    let outcome = Run::io(&[0], dir.path(), direct).go().expect("runs");
    let mount = mountinfo::of(dir.path()).expect("it is mounted");
    // O_DIRECT has no effect on files in memory.
    let expect = match Evidence::of(&mount.fs_type) {
        Evidence::Kernel => Cache::Cold,
        _ => Cache::Warm,
    };
    assert_eq!(outcome.rows[0].cache, Some(expect));
}

#[test]
fn closing_is_timed_on_its_own_and_has_no_response_time() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = Io {
        fsync: Some(FsyncRule::Close),
        rate: Some(5000.0),
        ..io(&[Rw::Write])
    };
    let outcome = Run::io(&[0, 0], dir.path(), spec).go().expect("runs");
    outcome.rows.iter().for_each(check_adds_up);
    assert_eq!(outcome.row("write-close").items, 2);
    assert!(outcome.row("write-close").response.is_none());
}

#[test]
fn what_a_time_limit_lets_be_written_again_is_told() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let spec = || Io {
        size: Some(Bytes(8 * KIB)),
        fsync: Some(FsyncRule::Never),
        ..io(&[Rw::Write, Rw::Read])
    };
    // Two blocks for each of two workers, which take some microseconds.
    let timed = Io {
        time: Some(Nanos(MS)),
        ..spec()
    };
    let run = Run::io(&[0, 0], dir.path(), timed).stepped(US);
    let outcome = run.go().expect("runs");
    let row = outcome.row("write");
    let round = row.rewritten.expect("written again");
    assert_eq!((round.once, round.done), (4, row.items));
    assert!(round.after <= row.elapsed, "{round:?}");
    let line = row.timeline.bins().iter().map(|bin| bin.items).sum::<u64>();
    assert_eq!(line, row.items);
    assert_eq!(outcome.row("read").rewritten, None, "reads write nothing");
    let outcome = Run::io(&[0, 0], dir.path(), spec()).go().expect("runs");
    assert_eq!(outcome.row("write").rewritten, None, "once is not again");
}
