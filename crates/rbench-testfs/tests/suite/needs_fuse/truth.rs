//! The file system as the ground truth: its counts match the calls, and its faults match the
//! configured ones.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::common::{Aligned, Bed, Doomed, PLENTY, at_once, ms, open_direct, timed, wait_until};
use rbench_core::Nanos;
use rbench_testfs::{Config, Fault, Kind, Snapshot};

fn snapshot(bed: &Bed) -> Snapshot {
    bed.mounted.stats().snapshot()
}

/// Number of open files and directories.
fn open_now(of: &Snapshot) -> u64 {
    let requests = |kinds: &[Kind]| kinds.iter().map(|k| of.counts(*k).requests).sum::<u64>();
    requests(&[Kind::Open, Kind::Create, Kind::Opendir])
        - requests(&[Kind::Release, Kind::Releasedir])
}

/// Requests, errors and bytes of each kind for `calls`, which close everything that they open. A
/// release comes after its close, so the releases are waited for.
fn requests_of(bed: &Bed, calls: impl FnOnce()) -> Vec<(&'static str, u64, u64, u64)> {
    let before = snapshot(bed);
    calls();
    wait_until("the releases", || {
        open_now(&snapshot(bed)) == open_now(&before)
    });
    snapshot(bed)
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
        let stat = each(&|path| assert!(fs::symlink_metadata(path).is_ok()));
        assert_eq!(stat, [("lookup", N, 0, 0), ("getattr", N, 0, 0)]);
        let absent = each(&|path| assert!(!path.with_extension("none").exists()));
        assert_eq!(absent, [("lookup", N, N, 0)]);
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
fn a_write_is_one_request() {
    let bed = Bed::memory();
    let f = File::create(bed.join("f")).expect("room");
    // The first one also requests attributes, which would distort the counts.
    f.write_all_at(b"first", 0).expect("room");
    let writes = requests_of(&bed, || {
        (0..50).for_each(|i| f.write_all_at(b"more", i * 10_000).expect("room"));
    });
    assert_eq!(writes, [("write", 50, 0, 200)]);
}

#[test]
fn with_caches_the_kernel_answers_from_what_it_has_seen() {
    const HOUR: Nanos = Nanos(3_600_000_000_000);
    let check = |attr_timeout: Nanos, expect: &[(&'static str, u64, u64, u64)]| {
        let bed = Bed::new(Config {
            attr_timeout,
            entry_timeout: HOUR,
            ..Config::memory(PLENTY)
        });
        fs::create_dir(bed.join("d")).expect("new");
        // While it is open, its name stays known, even if someone drops the caches of this
        // machine.
        let open = File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(bed.join("d"));
        let _open = open.expect("there");
        if attr_timeout < HOUR {
            // Longer than a time-out.
            std::thread::sleep(std::time::Duration::from_millis(150));
        }
        let stat = || assert!(fs::metadata(bed.join("d")).is_ok());
        assert_eq!(requests_of(&bed, stat), expect);
    };
    check(HOUR, &[]);
    // The name is still known, but not its attributes.
    check(ms(100), &[("getattr", 1, 0, 0)]);
    check(Nanos(0), &[("getattr", 1, 0, 0)]);
}

#[test]
fn whoever_has_the_reply_finds_the_request_counted() {
    let bed = Bed::memory();
    for i in 1..=2000 {
        fs::metadata(bed.path()).expect("there");
        assert_eq!(snapshot(&bed).counts(Kind::Getattr).requests, i);
    }
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

/// Reads one block twenty times, with the fifth read stalled for `stall`. Returns the time of
/// each.
fn reads_with_a_stall(stall: u64) -> Vec<Nanos> {
    let bed = faulty(&[&format!("read:stall={stall}ms@nth=5")]);
    let f = open_direct(&bed.join("f")).expect("room");
    f.write_all_at(&Aligned::new(4096, 5), 0).expect("room");
    let read = || {
        let mut block = Aligned::new(4096, 0);
        timed(|| f.read_exact_at(&mut block, 0).expect("there")).0
    };
    let times: Vec<Nanos> = (0..20).map(|_| read()).collect();
    let stalled = bed.mounted.faults().into_iter().map(|r| r.request);
    assert!(stalled.eq([Some(5)]), "{:?}", bed.mounted.faults());
    assert_eq!(fired(&bed), [1]);
    let own = snapshot(&bed);
    assert!(own.kind(Kind::Read).expect("came").latency.max() >= ms(stall));
    assert_eq!(own.counts(Kind::Read).errors, 0);
    times
}

#[test]
fn a_stall_holds_the_request_it_names() {
    let times = reads_with_a_stall(200);
    assert!(times[4] >= ms(200), "{times:?}");
}

/// Tests in which the file system dies at the end.
mod needs_root {
    use super::*;

    #[test]
    fn stalled_requests_do_not_hold_up_others() {
        let bed = Doomed(faulty(&["read:stall=1h@after=0"]));
        (0..16).for_each(|i| fs::write(bed.join(format!("f{i}")), "x").expect("room"));
        let reads: Vec<_> = (0..16)
            .map(|i| bed.join(format!("f{i}")))
            .map(|path| std::thread::spawn(|| fs::read(path)))
            .collect();
        // More requests than service threads are held.
        wait_until("the stalls", || fired(&bed) == [16]);
        let before = snapshot(&bed).counts(Kind::Getattr).requests;
        fs::metadata(bed.path()).expect("there");
        assert!(snapshot(&bed).counts(Kind::Getattr).requests > before);
        assert!(reads.iter().all(|read| !read.is_finished()));
        drop(bed);
        for read in reads {
            let error = read.join().expect("no panic").expect_err("no answer");
            // The kernel requests the page again.
            assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
        }
    }
}

mod timing {
    use super::*;

    #[test]
    fn a_stall_holds_no_other_request_than_the_one_it_names() {
        let times = reads_with_a_stall(1500);
        let late: Vec<usize> = (0..20).filter(|i| times[*i] >= ms(750)).collect();
        assert_eq!(late, [4], "{times:?}");
    }
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
    // The release comes at any time.
    let released = || snapshot(&bed).counts(Kind::Release).errors > 0;
    wait_until("the release", released);
    assert_eq!(fired(&bed), [1, 2, 1, 1]);
    let own = snapshot(&bed);
    assert_eq!(own.counts(Kind::Write).errors, 2);
    assert_eq!(own.counts(Kind::Write).bytes, 3 * 4096);
    assert_eq!(own.counts(Kind::Mkdir).errors, 1);
    assert_eq!(own.counts(Kind::Release).errors, 1);
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
                // Whichever thread is first creates or removes it.
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
