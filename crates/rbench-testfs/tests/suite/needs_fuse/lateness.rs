//! Injected latency: never too short, however many requests are late at once. Only a clock can
//! show how accurate it is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rbench_core::{Latency, Nanos};
use rbench_testfs::{Config, Kind};

use crate::common::{Aligned, Bed, Doomed, PLENTY, at_once, ms, open_direct, timed, wait_until};

/// Requests at once, far more than the file system has threads.
const MANY: usize = 64;

/// Calls of many callers at once. Each gets a path in its own directory, because the kernel allows
/// one create at a time in a directory.
struct Calls {
    kind: Kind,
    call: fn(PathBuf, &File, u64) -> io::Result<()>,
}

const CREATES: Calls = Calls {
    kind: Kind::Create,
    call: |path, _, _| File::create_new(path).map(drop),
};

const STATS: Calls = Calls {
    kind: Kind::Getattr,
    call: |path, _, _| fs::symlink_metadata(path.parent().expect("has one")).map(drop),
};

const READS: Calls = Calls {
    kind: Kind::Read,
    call: |path, _, _| {
        fs::write(&path, [7; 4096])?;
        assert_eq!(fs::read(path)?, [7; 4096]);
        Ok(())
    },
};

/// Writes to one file, in which each caller has a block.
const DIRECT_WRITES: Calls = Calls {
    kind: Kind::Write,
    call: |_, shared, number| {
        let block = Aligned::new(4096, number as u8 + 1);
        shared.write_all_at(&block, number * 4096)
    },
};

impl Calls {
    /// A file system on which these calls are late, as `change` configures, with a directory for
    /// each caller and a file of blocks for all.
    fn bed(&self, change: impl FnOnce(&mut Config)) -> (Bed, File) {
        let mut config = Config {
            threads: 4,
            ..Config::memory(PLENTY).uncached()
        };
        change(&mut config);
        let bed = Bed::new(config);
        (0..MANY).for_each(|i| fs::create_dir(bed.join(format!("d{i}"))).expect("new"));
        // Created by another request than those of the calls.
        let mode = nix::sys::stat::Mode::S_IRWXU;
        let plain = nix::sys::stat::SFlag::S_IFREG;
        nix::sys::stat::mknod(&bed.join("shared"), plain, mode, 0).expect("room");
        let shared = open_direct(&bed.join("shared")).expect("there");
        // The kernel serialises writes that extend a file.
        shared.set_len(MANY as u64 * 4096).expect("in order");
        (bed, shared)
    }

    /// Makes all calls at once, on files called `name`. Returns the time of the whole and of each.
    fn make(&self, bed: &Bed, shared: &File, name: &str) -> (Nanos, Vec<Nanos>) {
        at_once(MANY, |i| {
            let path = bed.join(format!("d{i}/{name}"));
            (self.call)(path, shared, i as u64).expect("in order");
        })
    }
}

/// Each of many calls at once takes its latency.
#[test]
fn no_late_request_is_answered_early() {
    for calls in [CREATES, STATS, READS, DIRECT_WRITES] {
        let (bed, shared) = calls.bed(|config| config.latency.set(calls.kind, ms(20)));
        let (_, each) = calls.make(&bed, &shared, "f");
        let fastest = each.into_iter().min().unwrap_or_default();
        assert!(fastest >= ms(20), "{}: {fastest}", calls.kind);
        let own = bed.mounted.stats().snapshot();
        let own = &own.kind(calls.kind).expect("came").latency;
        assert!(own.min() >= ms(20), "{}", own.min());
    }
}

/// Late requests wait in parallel: all are accepted, although none is answered and the file system
/// has fewer threads. The file system dies at the end, which needs root.
mod needs_root {
    use super::*;

    fn all_are_taken_up(calls: &Calls) {
        let fault = format!("{}:stall=1h@after=0", calls.kind);
        let (bed, shared) = calls.bed(|config| {
            config.faults = vec![fault.parse().expect("well formed")];
        });
        let bed = Doomed(bed);
        let callers: Vec<_> = (0..MANY)
            .map(|i| {
                let (call, path) = (calls.call, bed.join(format!("d{i}/f")));
                let shared = shared.try_clone().expect("open");
                std::thread::spawn(move || call(path, &shared, i as u64))
            })
            .collect();
        wait_until(&fault, || bed.mounted.faults().len() == MANY);
        assert!(callers.iter().all(|caller| !caller.is_finished()));
        drop(bed);
        for caller in callers {
            let error = caller.join().expect("no panic").expect_err("no answer");
            // The kernel requests pages that could not be read together one by one.
            let dead = [Some(libc::ECONNABORTED), Some(libc::ENOTCONN)];
            assert!(dead.contains(&error.raw_os_error()), "{fault}: {error}");
        }
    }

    #[test]
    fn late_creates_wait_side_by_side() {
        all_are_taken_up(&CREATES);
    }

    #[test]
    fn late_reads_wait_side_by_side() {
        all_are_taken_up(&READS);
    }

    #[test]
    fn late_direct_writes_to_one_file_wait_side_by_side() {
        all_are_taken_up(&DIRECT_WRITES);
    }
}

/// Latencies of one kind of call: those that a caller measured, and those of the file system.
fn both_sides(
    bed: &Bed,
    kind: Kind,
    threads: usize,
    calls: usize,
    call: impl Fn(usize) + Sync,
) -> (Latency, Latency) {
    let seen = std::sync::Mutex::new(Latency::new());
    at_once(threads, |thread| {
        let mut latencies = Latency::new();
        for i in 0..calls {
            latencies.record(timed(|| call(thread * calls + i)).0);
        }
        seen.lock().expect("no panic").merge(&latencies);
    });
    let seen = seen.into_inner().expect("no panic");
    let own = bed.mounted.stats().snapshot();
    let own = own.kind(kind).expect("requests came").latency.clone();
    assert_eq!(own.count(), seen.count(), "{kind}");
    (seen, own)
}

/// The file system's times are at least `least` and never above the caller's.
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
fn a_request_can_be_late_and_fail() {
    let mut config = Config::memory(PLENTY).uncached();
    config.latency.set(Kind::Mkdir, ms(20));
    config.faults = vec!["mkdir:EIO@nth=1".parse().expect("well formed")];
    let bed = Bed::new(config);
    let (time, made) = timed(|| fs::create_dir(bed.join("d")));
    assert_eq!(made.map_err(|e| e.raw_os_error()), Err(Some(libc::EIO)));
    assert!(time >= ms(20));
}

/// Other work on the machine may delay a reply, so only the best of some tries must be in time.
mod timing {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Lets one test run at a time, because they measure.
    fn alone() -> MutexGuard<'static, ()> {
        static ONE: Mutex<()> = Mutex::new(());
        ONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each must take its 20 ms, and all together less than 160 ms. The four threads of the file
    /// system would take 320 ms if they waited.
    fn take_as_long_as_one(calls: &Calls) {
        const TRIES: usize = 30;
        let _alone = alone();
        let (bed, shared) = calls.bed(|config| config.latency.set(calls.kind, ms(20)));
        let mut best = Nanos(u64::MAX);
        for attempt in 0..TRIES {
            let (all, _) = calls.make(&bed, &shared, &format!("f{attempt}"));
            best = best.min(all);
            if best < ms(160) {
                return;
            }
        }
        panic!("64 {} of 20 ms: {best} together", calls.kind);
    }

    #[test]
    fn sixty_four_late_creates_at_once_take_as_long_as_one() {
        take_as_long_as_one(&CREATES);
    }

    #[test]
    fn sixty_four_late_stats_at_once_take_as_long_as_one() {
        take_as_long_as_one(&STATS);
    }

    #[test]
    fn sixty_four_late_reads_at_once_take_as_long_as_one() {
        take_as_long_as_one(&READS);
    }

    #[test]
    fn late_direct_writes_to_one_file_go_side_by_side() {
        take_as_long_as_one(&DIRECT_WRITES);
    }

    #[test]
    fn a_late_reply_comes_on_time() {
        let _alone = alone();
        // Most of them may suffer from other work on the machine.
        let lucky = || {
            let mut config = Config::memory(PLENTY).uncached();
            config.latency.set(Kind::Getattr, ms(2));
            let bed = Bed::new(config);
            for _ in 0..200 {
                fs::metadata(bed.path()).expect("there");
            }
            let own = bed.mounted.stats().snapshot();
            let own = &own.kind(Kind::Getattr).expect("came").latency;
            println!(
                "2 ms become {} at p10, {} at p50, {} at p99",
                own.quantile(0.1),
                own.quantile(0.5),
                own.quantile(0.99)
            );
            assert!(own.min() >= ms(2));
            own.quantile(0.1)
        };
        assert!((0..30).any(|_| lucky() < Nanos(2_150_000)), "always late");
    }
}
