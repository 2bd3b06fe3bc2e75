//! The file system as the ground truth: its counts are the calls that were
//! made, its times lie inside what the caller measures, and latency and
//! faults are those that were asked for.

#[allow(dead_code, reason = "each test uses its part")]
mod common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Barrier;

use common::{Aligned, Bed, PLENTY, ms, open_direct};
use rbench_core::{Clock as _, Latency, MonotonicClock, Nanos};
use rbench_testfs::{Config, Fault, Kind, Snapshot};

/// How long `call` takes for its caller.
fn timed<T>(call: impl FnOnce() -> T) -> (Nanos, T) {
    let start = MonotonicClock.now();
    let result = call();
    (MonotonicClock.now().since(start), result)
}

fn snapshot(bed: &Bed) -> Snapshot {
    bed.mounted.stats().snapshot()
}

/// Requests, errors and bytes of each kind that `calls` made. Releases come
/// after the close that they belong to, so they are waited for.
fn requests_of(bed: &Bed, calls: impl FnOnce()) -> Vec<(&'static str, u64, u64, u64)> {
    let before = snapshot(bed);
    calls();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let after = snapshot(bed);
    after
        .since(&before)
        .into_iter()
        .filter(|(kind, _)| *kind != Kind::Forget)
        .map(|(kind, counts)| (kind.name(), counts.requests, counts.errors, counts.bytes))
        .collect()
}

#[test]
fn without_caches_every_call_is_counted_where_it_belongs() {
    const N: u64 = 20;
    let check = |bed: Bed| {
        let each = |call: &dyn Fn(&Path)| {
            requests_of(&bed, || {
                (0..N).for_each(|i| call(&bed.join(format!("n{i}"))));
            })
        };
        let create = each(&|path| drop(File::create_new(path).expect("new")));
        let expect = [
            ("lookup", N, N, 0),
            ("release", N, 0, 0),
            ("flush", N, 0, 0),
            ("create", N, 0, 0),
        ];
        assert_eq!(create, expect);
        let stat = each(&|path| drop(fs::symlink_metadata(path).expect("there")));
        assert_eq!(stat, [("lookup", N, 0, 0), ("getattr", N, 0, 0)]);
        let absent = each(&|path| assert!(!path.join("..-").exists() || path.is_dir()));
        assert_eq!(absent, [("lookup", N, 0, 0)]);
        let io = each(&|path| {
            let f = open_direct(path).expect("there");
            f.write_all_at(&Aligned::new(8192, 1), 0).expect("room");
            f.read_exact_at(&mut Aligned::new(8192, 0)[..4096], 0)
                .expect("there");
            f.sync_all().expect("in order");
        });
        let find = |kind: &str| io.iter().find(|(name, ..)| *name == kind).copied();
        assert_eq!(find("open"), Some(("open", N, 0, 0)));
        assert_eq!(find("write"), Some(("write", N, 0, N * 8192)));
        assert_eq!(find("read"), Some(("read", N, 0, N * 4096)));
        assert_eq!(find("fsync"), Some(("fsync", N, 0, 0)));
        let rename = each(&|path| fs::rename(path, path.with_extension("new")).expect("there"));
        assert_eq!(rename, [("lookup", 2 * N, N, 0), ("rename", N, 0, 0)]);
        let unlink = each(&|path| fs::remove_file(path.with_extension("new")).expect("there"));
        assert_eq!(unlink, [("lookup", N, 0, 0), ("unlink", N, 0, 0)]);
        let mkdir = each(&|path| fs::create_dir(path).expect("new"));
        assert_eq!(mkdir, [("lookup", N, N, 0), ("mkdir", N, 0, 0)]);
        let list = each(&|path| assert_eq!(fs::read_dir(path).expect("there").count(), 0));
        let expect = [
            ("lookup", N, 0, 0),
            ("getattr", N, 0, 0),
            ("opendir", N, 0, 0),
            ("readdir", 2 * N, 0, 0),
            ("releasedir", N, 0, 0),
        ];
        assert_eq!(list, expect);
        let rmdir = each(&|path| fs::remove_dir(path).expect("there"));
        assert_eq!(rmdir, [("lookup", N, 0, 0), ("rmdir", N, 0, 0)]);
        bed.mounted.unmount().expect("mounted");
    };
    check(Bed::memory());
    check(Bed::passthrough(Config::uncached));
}

#[test]
fn with_caches_the_kernel_answers_from_what_it_has_seen() {
    let bed = Bed::new(Config {
        attr_timeout: Nanos::SECOND,
        entry_timeout: Nanos(3_600_000_000_000),
        ..Config::memory(PLENTY)
    });
    fs::create_dir(bed.join("d")).expect("new");
    let stats = || drop(fs::metadata(bed.join("d")).expect("there"));
    assert_eq!(requests_of(&bed, || (0..100).for_each(|_| stats())), []);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    // The name is still known, the attributes are not.
    assert_eq!(requests_of(&bed, stats), [("getattr", 1, 0, 0)]);
}

/// Runs `call` on `threads` threads at once, each with its number; returns
/// the time of the whole and of each.
fn at_once(threads: usize, call: impl Fn(usize) + Sync) -> (Nanos, Vec<Nanos>) {
    let barrier = Barrier::new(threads);
    let spans: Vec<(Nanos, Nanos)> = std::thread::scope(|scope| {
        let run = |i| {
            let (barrier, call) = (&barrier, &call);
            scope.spawn(move || {
                barrier.wait();
                let start = MonotonicClock.now();
                call(i);
                (start, MonotonicClock.now())
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect()
    });
    let first = spans.iter().map(|span| span.0).min().unwrap_or_default();
    let last = spans.iter().map(|span| span.1).max().unwrap_or_default();
    let each = spans.iter().map(|(start, end)| end.since(*start));
    (last.since(first), each.collect())
}

#[test]
fn sixty_four_late_requests_at_once_take_as_long_as_one() {
    let late = |text: &str| Config {
        latency: text.parse().expect("well formed"),
        threads: 4,
        ..Config::memory(PLENTY).uncached()
    };
    // Each in a directory of its own: the kernel lets one create at a time
    // into a directory.
    let prepare = |bed: &Bed| {
        (0..64).for_each(|i| fs::create_dir(bed.join(format!("d{i}"))).expect("new"));
    };
    let check = |bed: &Bed, what: &str, call: &(dyn Fn(&Path) + Sync)| {
        let call = |i| call(&bed.join(format!("d{i}/f")));
        let (all, each) = at_once(64, call);
        println!("64 {what} of 20 ms: {all} together");
        assert!(all < ms(60), "{what}: {all} together");
        let fastest = each.into_iter().min().unwrap_or_default();
        assert!(fastest >= ms(20), "{what}: {fastest}");
    };
    let bed = Bed::new(late("create=20ms"));
    prepare(&bed);
    check(&bed, "creates", &|path| {
        drop(File::create_new(path).expect("new"));
    });
    bed.mounted.unmount().expect("mounted");
    let bed = Bed::new(late("getattr=20ms"));
    prepare(&bed);
    check(&bed, "stats", &|path| {
        let directory = path.parent().expect("has one");
        drop(fs::symlink_metadata(directory).expect("there"));
    });
    bed.mounted.unmount().expect("mounted");
    let bed = Bed::new(late("read=20ms"));
    prepare(&bed);
    (0..64).for_each(|i| fs::write(bed.join(format!("d{i}/f")), [7; 4096]).expect("room"));
    check(&bed, "reads", &|path| {
        assert_eq!(fs::read(path).expect("there"), [7; 4096]);
    });
}

/// What a caller measured of one kind of call, and the file system of it.
fn both_sides(
    bed: &Bed,
    kind: Kind,
    threads: usize,
    calls: usize,
    call: impl Fn(usize) + Sync,
) -> (Latency, Latency) {
    let seen = std::sync::Mutex::new(Latency::new());
    at_once(threads, |thread| {
        let mut mine = Latency::new();
        for i in 0..calls {
            mine.record(timed(|| call(thread * calls + i)).0);
        }
        seen.lock().expect("no panic").merge(&mine);
    });
    let seen = seen.into_inner().expect("no panic");
    let own = snapshot(bed);
    let own = own.kind(kind).expect("requests came").latency.clone();
    assert_eq!(own.count(), seen.count(), "{kind}");
    (seen, own)
}

/// The file system's times are at least `least` and nowhere above the
/// caller's.
fn assert_enclosed(seen: &Latency, own: &Latency, least: Nanos) {
    assert!(own.min() >= least, "{} < {least}", own.min());
    for quantile in [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0] {
        let (inner, outer) = (own.quantile(quantile), seen.quantile(quantile));
        assert!(inner <= outer, "at {quantile}: {inner} > {outer}");
    }
    assert!(own.mean_ns() < seen.mean_ns());
}

#[test]
fn what_the_file_system_measures_lies_inside_what_the_caller_measures() {
    for threads in [1, 4, 16] {
        for latency in [Nanos(0), Nanos(500_000)] {
            let mut config = Config::memory(PLENTY).uncached();
            config.latency.set(Kind::Create, latency);
            config.latency.set(Kind::Read, latency);
            let bed = Bed::new(config);
            let (seen, own) = both_sides(&bed, Kind::Create, threads, 100, |i| {
                drop(File::create_new(bed.join(format!("f{i}"))).expect("new"));
            });
            assert_enclosed(&seen, &own, latency);
            let f = open_direct(&bed.join("data")).expect("room");
            f.write_all_at(&Aligned::new(1 << 20, 5), 0).expect("room");
            let (seen, own) = both_sides(&bed, Kind::Read, threads, 200, |i| {
                let at = (i * 7 % 256) as u64 * 4096;
                let mut block = Aligned::new(4096, 0);
                f.read_exact_at(&mut block, at).expect("there");
                assert!(block.iter().all(|byte| *byte == 5));
            });
            assert_enclosed(&seen, &own, latency);
            println!(
                "{threads} threads, reads of {latency}: caller {} p99 {}, file system {} p99 {}",
                seen.quantile(0.5),
                seen.quantile(0.99),
                own.quantile(0.5),
                own.quantile(0.99)
            );
        }
    }
}

#[test]
fn a_late_reply_comes_on_time() {
    let mut config = Config::memory(PLENTY).uncached();
    config.latency.set(Kind::Getattr, ms(2));
    let bed = Bed::new(config);
    for _ in 0..200 {
        fs::metadata(bed.path()).expect("there");
    }
    let own = snapshot(&bed);
    let own = &own.kind(Kind::Getattr).expect("came").latency;
    println!(
        "2 ms become {} at p50, {} at p99",
        own.quantile(0.5),
        own.quantile(0.99)
    );
    assert!(own.min() >= ms(2));
    // Half of them may suffer from whatever else the machine does.
    assert!(
        own.quantile(0.5) < Nanos(2_300_000),
        "{}",
        own.quantile(0.5)
    );
}

fn faulty(faults: &[&str]) -> Bed {
    let parse = |text: &&str| text.parse::<Fault>().expect("well formed");
    Bed::new(Config {
        faults: faults.iter().map(parse).collect(),
        ..Config::memory(PLENTY).uncached()
    })
}

fn fired(bed: &Bed) -> Vec<u64> {
    let snapshot = snapshot(bed);
    snapshot.faults_fired().iter().map(|(_, n)| *n).collect()
}

#[test]
fn a_stall_holds_the_request_it_names_and_no_other() {
    let bed = faulty(&["read:stall=300ms@nth=5"]);
    let f = open_direct(&bed.join("f")).expect("room");
    f.write_all_at(&Aligned::new(4096, 5), 0).expect("room");
    let read = || {
        let mut block = Aligned::new(4096, 0);
        timed(|| f.read_exact_at(&mut block, 0).expect("there")).0
    };
    let times: Vec<Nanos> = (0..20).map(|_| read()).collect();
    let stalled: Vec<usize> = (0..20).filter(|i| times[*i] >= ms(300)).collect();
    assert_eq!(stalled, [4], "{times:?}");
    assert!(times.iter().filter(|time| **time >= ms(150)).count() == 1);
    assert_eq!(fired(&bed), [1]);
    let own = snapshot(&bed);
    assert!(own.kind(Kind::Read).expect("came").latency.max() >= ms(300));
    assert_eq!(own.counts(Kind::Read).errors, 0);
}

#[test]
fn stalled_requests_do_not_hold_up_others() {
    let bed = faulty(&["read:stall=400ms@after=0"]);
    (0..16).for_each(|i| fs::write(bed.join(format!("f{i}")), "x").expect("room"));
    std::thread::scope(|scope| {
        for i in 0..16 {
            let path = bed.join(format!("f{i}"));
            scope.spawn(move || assert_eq!(fs::read(path).expect("there"), b"x"));
        }
        // More requests than service threads are being held by now.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let (time, _) = timed(|| fs::metadata(bed.path()).expect("there"));
        assert!(time < ms(200), "{time}");
    });
    assert_eq!(snapshot(&bed).counts(Kind::Read).requests, 16);
}

#[test]
fn an_injected_error_is_the_reply_and_nothing_is_done() {
    let bed = faulty(&[
        "mkdir:EDQUOT@nth=2",
        "write:EIO@after=3",
        "unlink:EACCES@p=1",
        "release:EIO@nth=1",
    ]);
    let errno = |outcome: std::io::Result<()>| outcome.map_err(|e| e.raw_os_error());
    assert_eq!(errno(fs::create_dir(bed.join("a"))), Ok(()));
    let second = fs::create_dir(bed.join("b"));
    assert_eq!(errno(second), Err(Some(libc::EDQUOT)));
    assert!(!bed.join("b").exists());
    assert_eq!(errno(fs::create_dir(bed.join("b"))), Ok(()));
    let f = open_direct(&bed.join("f")).expect("room");
    for i in 0..5 {
        let written = f.write_all_at(&Aligned::new(4096, 1), i * 4096);
        let expect = if i < 3 { Ok(()) } else { Err(Some(libc::EIO)) };
        assert_eq!(errno(written), expect, "{i}");
    }
    assert_eq!(f.metadata().expect("open").len(), 3 * 4096);
    let removed = fs::remove_file(bed.join("f"));
    assert_eq!(errno(removed), Err(Some(libc::EACCES)));
    assert!(bed.join("f").exists());
    drop(f);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(fired(&bed), [1, 2, 1, 1]);
    let own = snapshot(&bed);
    assert_eq!(own.counts(Kind::Write).errors, 2);
    assert_eq!(own.counts(Kind::Write).bytes, 3 * 4096);
    assert_eq!(own.counts(Kind::Mkdir).errors, 1);
}

#[test]
fn the_wish_for_lateness_and_an_error_come_together() {
    let mut config = Config::memory(PLENTY).uncached();
    config.latency.set(Kind::Mkdir, ms(20));
    config.faults = vec!["mkdir:EIO@nth=1".parse().expect("well formed")];
    let bed = Bed::new(config);
    let (time, made) = timed(|| fs::create_dir(bed.join("d")));
    assert_eq!(made.map_err(|e| e.raw_os_error()), Err(Some(libc::EIO)));
    assert!(time >= ms(20));
}

#[test]
fn a_hundred_threads_leave_a_tree_that_adds_up() {
    // Different back ends, all operations at once in shared directories.
    let check = |bed: Bed| {
        for i in 0..4 {
            fs::create_dir(bed.join(format!("d{i}"))).expect("new");
        }
        at_once(16, |thread| {
            for i in 0..60 {
                let name = format!("f{thread}-{i}");
                let (from, to) = (bed.join("d0").join(&name), bed.join("d1").join(&name));
                fs::write(&from, name.as_bytes()).expect("room");
                fs::rename(&from, &to).expect("there");
                assert_eq!(fs::read(&to).expect("there"), name.as_bytes());
                fs::hard_link(&to, bed.join("d2").join(&name)).expect("there");
                if i % 3 == 0 {
                    fs::remove_file(&to).expect("there");
                }
                let shared = bed.join("d3").join(format!("s{}", i % 5));
                // Whoever is first makes or removes it.
                let _ = fs::create_dir(&shared);
                let _ = fs::remove_dir(&shared);
                fs::rename(bed.join("d2").join(&name), bed.join("d2/same")).expect("there");
            }
        });
        let count = |name: &str| fs::read_dir(bed.join(name)).expect("there").count();
        assert_eq!(count("d0"), 0);
        assert_eq!(count("d1"), 16 * 40);
        assert_eq!(count("d2"), 1);
        let links = |m: fs::Metadata| std::os::unix::fs::MetadataExt::nlink(&m);
        for entry in fs::read_dir(bed.join("d1")).expect("there") {
            let metadata = entry.expect("an entry").metadata().expect("there");
            assert!(links(metadata) <= 2);
        }
        let d3 = links(fs::metadata(bed.join("d3")).expect("there"));
        assert_eq!(d3, 2 + count("d3") as u64);
        bed.mounted.unmount().expect("mounted");
    };
    check(Bed::memory());
    check(Bed::new(Config::memory(PLENTY)));
    check(Bed::passthrough(Config::uncached));
}
