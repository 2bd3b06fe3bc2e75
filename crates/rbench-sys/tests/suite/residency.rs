//! Counts of pages and requests, compared with the built-in file system's own account.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::num::NonZeroUsize;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::c_void;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use rbench_core::{Bytes, Nanos};
use rbench_sys::mountinfo;
use rbench_sys::residency::{
    Fetched, RequestCounter, Requests, Resident, Source, fetched, resident,
};
use rbench_sys::round_trip::round_trip;
use rbench_testfs::{Config, Kind, Mounted, RootStats, Snapshot, mount};

use crate::support::{in_child, this_test};

/// A mapping of all of a file, whose pages nobody drops while they are mapped, though they may drop
/// the caches of this host.
struct Mapping(NonNull<c_void>, usize);

impl Mapping {
    fn new(file: &File) -> Mapping {
        let length = file.metadata().expect("open").len() as usize;
        let (read, flags) = (
            ProtFlags::PROT_READ,
            MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE,
        );
        let whole = NonZeroUsize::new(length).expect("not empty");
        // SAFETY: a new mapping, at a place of the kernel's choice.
        let place = unsafe { mmap(None, whole, read, flags, file, 0) };
        Mapping(place.expect("it can be mapped"), length)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is mapped, and nobody has a reference into it.
        unsafe { munmap(self.0, self.1) }.expect("it is mapped");
    }
}

#[test]
fn on_a_disk_what_is_read_first_is_fetched_and_what_is_cached_is_not() {
    // In a process of its own, whose files no other test reads.
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    let directory = crate::support::disk();
    let path = directory.path().join("f");
    let mount = mountinfo::of(directory.path()).expect("it is mounted");
    let Some(_) = fetched(&mount).process_bytes else {
        return crate::support::skip(&format!("{} is no disk of this host", mount.source));
    };
    fs::write(&path, vec![7; 4 << 20]).expect("room");
    let file = File::open(&path).expect("there");
    file.sync_all().expect("the disk takes it");
    crate::support::evict(&file);
    let fetched_by_reading = || {
        let earlier = fetched(&mount);
        assert_eq!(fs::read(&path).expect("there").len(), 4 << 20);
        let later = fetched(&mount).process_bytes;
        later.expect("it is known") - earlier.process_bytes.expect("it is known")
    };
    let first = fetched_by_reading();
    assert!(first >= 4 << 20, "{first}");
    let _mapping = Mapping::new(&file);
    let second = fetched_by_reading();
    assert_eq!(second, 0);
    let found = resident(file.as_fd()).expect("open");
    assert_eq!(found.cached, found.pages);
}

/// These mount the built-in file system.
mod needs_fuse {
    use super::*;

    const HOUR: Nanos = Nanos(3_600_000_000_000);
    const FILE: usize = 300_000;

    /// A mount, unmounted before its folder goes.
    struct Bed {
        mounted: Mounted,
        folder: tempfile::TempDir,
    }

    fn bed(change: impl FnOnce(&mut Config)) -> Bed {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = Config::memory(Bytes(64 << 20));
        change(&mut config);
        let mounted = mount(config, folder.path()).expect("/dev/fuse is there and usable");
        Bed { mounted, folder }
    }

    impl Bed {
        fn path(&self) -> &Path {
            self.folder.path()
        }

        /// The account, once what was closed has been released: the kernel does
        /// not wait for that.
        fn settled(&self) -> Snapshot {
            let deadline = Instant::now() + Duration::from_secs(300);
            loop {
                let now = self.mounted.stats().snapshot();
                let requests = |kind| now.counts(kind).requests;
                let opened = requests(Kind::Open) + requests(Kind::Create);
                let closed = requests(Kind::Release);
                if opened == closed && requests(Kind::Opendir) == requests(Kind::Releasedir) {
                    return now;
                }
                assert!(
                    Instant::now() < deadline,
                    "{opened} opened, {closed} closed"
                );
                std::thread::yield_now();
            }
        }
    }

    /// The account as the counter counts: without `forget`.
    fn between(now: &Snapshot, earlier: &Snapshot) -> BTreeMap<String, u64> {
        now.since(earlier)
            .into_iter()
            .filter(|(kind, _)| *kind != Kind::Forget)
            .map(|(kind, counts)| (kind.name().to_owned(), counts.requests))
            .collect()
    }

    fn work(folder: &Path) {
        for i in 0..20 {
            let path = folder.join(format!("f{i}"));
            fs::write(&path, vec![7; FILE]).expect("room");
            (0..3).for_each(|_| assert!(fs::metadata(&path).is_ok()));
            (0..2).for_each(|_| assert_eq!(fs::read(&path).expect("there").len(), FILE));
        }
        assert_eq!(fs::read_dir(folder).expect("there").count(), 20);
        (0..10).for_each(|i| fs::remove_file(folder.join(format!("f{i}"))).expect("there"));
    }

    #[test]
    fn requests_are_those_of_the_account_whatever_is_cached() {
        // Programs that other tests start close copies of all open files, which counts (FLUSH).
        if !in_child(this_test!(), &["env"]) {
            return;
        }
        let check = |timeout: Nanos, keep_cache, stats_file| {
            let bed = bed(|config| {
                config.attr_timeout = timeout;
                config.entry_timeout = timeout;
                config.keep_cache = keep_cache;
                config.stats_file = stats_file;
            });
            fs::create_dir(bed.path().join("d")).expect("new");
            let folder = bed.path().join("d");
            let mut counter = RequestCounter::find(&folder).expect("there is a counter");
            let mut read = || -> Requests { counter.read().expect("it is readable") };
            for _ in 0..3 {
                let (before, account) = (read(), bed.settled());
                work(&folder);
                let done = bed.settled();
                let found = read().since(&before);
                assert_eq!(found.source, Source::JuiceFs.to_string());
                let mut expect = between(&done, &account);
                assert!(expect["create"] > 0 && found.has_kinds());
                (10..20)
                    .for_each(|i| fs::remove_file(folder.join(format!("f{i}"))).expect("there"));
                expect.retain(|_, count| *count > 0);
                let mut found = found.by_kind;
                if stats_file == RootStats::Counted {
                    // Nobody waits for the release of the file that is read for the
                    // counts: it may arrive before or after the next reading.
                    let of = |all: &BTreeMap<String, u64>| all.get("release").copied();
                    let apart = of(&found).zip(of(&expect)).map(|(a, b)| a.abs_diff(b));
                    assert!(apart.is_some_and(|n| n <= 1), "{found:?} {expect:?}");
                    found.remove("release");
                    expect.remove("release");
                }
                assert_eq!(found, expect, "{timeout} {keep_cache} {stats_file:?}");
            }
        };
        for timeout in [Nanos(0), Nanos::SECOND, HOUR] {
            for keep_cache in [false, true] {
                check(timeout, keep_cache, RootStats::Silent);
                check(timeout, keep_cache, RootStats::Counted);
            }
        }
    }

    #[test]
    fn reading_the_counter_is_no_request_of_the_run() {
        // Programs that other tests start close copies of all open files, which counts (FLUSH).
        if !in_child(this_test!(), &["env"]) {
            return;
        }
        for stats_file in [RootStats::Silent, RootStats::Counted] {
            let bed = bed(|config| config.stats_file = stats_file);
            let mut counter = RequestCounter::find(bed.path()).expect("there is a counter");
            // The release of the reading before, by which the counter was found, too, is not
            // waited for by the kernel.
            bed.settled();
            let first = counter.read().expect("it is readable");
            for _ in 0..20 {
                bed.settled();
                let since = counter.read().expect("it is readable").since(&first);
                assert_eq!(since.total(), 0, "{stats_file:?}: {since:?}");
            }
        }
    }

    #[test]
    fn the_file_of_statistics_is_found_by_name_and_in_no_listing() {
        let bed = bed(|_| ());
        let path = bed.path().join(".stats");
        fs::create_dir(bed.path().join("d")).expect("new");
        let text = || fs::read_to_string(&path).expect("there");
        assert!(
            text().contains("juicefs_fuse_ops_total_mkdir 1\n"),
            "{}",
            text()
        );
        fs::create_dir(bed.path().join("e")).expect("new");
        assert!(
            text().contains("juicefs_fuse_ops_total_mkdir 2\n"),
            "{}",
            text()
        );
        let names = fs::read_dir(bed.path()).expect("there").count();
        assert_eq!(names, 2);
        assert!(File::options().write(true).open(&path).is_err());
        assert!(!bed.path().join("d/.stats").exists());
    }

    #[test]
    fn without_the_file_or_with_one_of_a_users_there_is_no_counter() {
        let off = bed(|config| config.stats_file = RootStats::Off);
        assert!(RequestCounter::find(off.path()).is_none());
        fs::write(off.path().join(".stats"), "mine").expect("room");
        assert!(RequestCounter::find(off.path()).is_none());
        drop(off);

        let backing = tempfile::tempdir().expect("a temporary folder");
        fs::write(backing.path().join(".stats"), "mine").expect("room");
        let own = bed(|config| *config = Config::passthrough(backing.path()));
        let text = fs::read_to_string(own.path().join(".stats"));
        assert_eq!(text.expect("there"), "mine");
    }

    #[test]
    fn latency_and_faults_do_not_touch_the_file_of_statistics() {
        let bed = bed(|config| {
            config.faults = vec!["open:EIO@nth=1".parse().expect("well formed")];
            config
                .faults
                .push("read:EIO@after=0".parse().expect("well formed"));
        });
        assert!(RequestCounter::find(bed.path()).is_some());
        fs::write(bed.path().join("f"), "x").expect("room");
        assert!(
            File::open(bed.path().join("f")).is_err(),
            "it was the first"
        );
    }

    /// Checks whether pages of a file are there after it is opened again, and whether reading it then
    /// is answered from them.
    fn check_opened_again(keep_cache: bool) {
        let bed = bed(|config| {
            config.keep_cache = keep_cache;
            *config = config.clone().uncached();
        });
        let path = bed.path().join("f");
        let mut file = File::create(&path).expect("room");
        file.write_all(&vec![7; FILE]).expect("room");
        drop(file);
        bed.settled();
        let requests = |call: &mut dyn FnMut()| {
            let earlier = bed.mounted.stats().snapshot();
            call();
            between(&bed.mounted.stats().snapshot(), &earlier)
        };
        let reads = |file: &mut File| {
            let mut all = Vec::new();
            let mut read = || assert_eq!(file.read_to_end(&mut all).expect("there"), FILE);
            requests(&mut read).get("read").copied().unwrap_or(0)
        };
        let pages = FILE.div_ceil(4096) as u64;
        let cached = |cached| Ok(Resident { pages, cached });
        let kept = if keep_cache { pages } else { 0 };
        let mut file = File::open(&path).expect("there");
        reads(&mut file);
        let _mapping = Mapping::new(&file);
        let mut found = Err(Errno::EINVAL);
        let asked = requests(&mut || found = resident(file.as_fd()));
        assert_eq!(asked, BTreeMap::new(), "asking sends no request");
        assert_eq!(found, cached(pages), "read once");
        drop(file);
        let mut again = File::open(&path).expect("there");
        assert_eq!(resident(again.as_fd()), cached(kept), "opened again");
        let reads = reads(&mut again);
        assert_eq!(reads == 0, keep_cache, "{reads} reads");
        let _mapping = Mapping::new(&again);
        assert_eq!(resident(again.as_fd()), cached(pages), "read again");
    }

    #[test]
    fn pages_outlive_the_opening_only_where_they_are_kept() {
        if !in_child(this_test!(), &["env"]) {
            return;
        }
        check_opened_again(false);
        check_opened_again(true);
    }

    #[test]
    fn a_file_system_served_by_another_process_has_no_fetched_bytes() {
        let bed = bed(|_| ());
        let mount = mountinfo::of(bed.path()).expect("it is mounted");
        assert_eq!(fetched(&mount), Fetched::default());
    }

    #[test]
    fn a_round_trip_is_a_request_each_and_takes_at_least_the_latency_of_the_server() {
        const LATE: Nanos = Nanos(2_000_000);
        let check = |fault: &str, call: &str, request: Kind, cached| {
            let bed = bed(|config| {
                config.attr_timeout = cached;
                config.entry_timeout = cached;
                config.latency.set_all(LATE);
                config.faults = vec![fault.parse().expect("well formed")];
            });
            let earlier = bed.mounted.stats().snapshot();
            let found = round_trip(bed.path(), &AtomicU64::default()).expect("it answers");
            let requests = between(&bed.mounted.stats().snapshot(), &earlier);
            assert_eq!((found.name(), found.seen), (call, true), "{requests:?}");
            assert!(found.median >= LATE, "{found:?}");
            let calls = u64::from(found.calls);
            assert!(requests[request.name()] >= calls, "{found:?}, {requests:?}");
        };
        for cached in [Nanos(0), HOUR] {
            check("mkdir:EIO@nth=1", "statx", Kind::Getattr, cached);
        }
        // Where attributes cannot be had, the next call is taken.
        check("getattr:EIO@p=1", "statfs", Kind::Statfs, HOUR);
    }
}
