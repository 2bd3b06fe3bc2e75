//! Every fault against an application's calls on a real mount: the results match the fault
//! log, one by one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::mounts::mounts_at;
use crate::common::{Aligned, Bed, PLENTY, fired, open_direct, put, wait_until};
use nix::errno::Errno;
use rbench_core::Bytes;
use rbench_core::random::DataStream;
use rbench_testfs::{Config, FaultRecord, Kind, Mounted};

const BLOCK: usize = 4096;

fn with_faults(config: Config, faults: &[&str]) -> Config {
    let parse = |text: &&str| text.parse().expect("well formed");
    Config {
        faults: faults.iter().map(parse).collect(),
        direct_io: true,
        seed: 7,
        ..config.uncached()
    }
}

/// An in-memory file system in which every call is a request.
fn faulty(faults: &[&str]) -> Bed {
    Bed::new(with_faults(Config::memory(PLENTY), faults))
}

/// Data of `blocks` blocks that are all different.
fn random(seed: u64, blocks: usize) -> Vec<u8> {
    let mut data = vec![0; blocks * BLOCK];
    DataStream::new(&[seed]).fill(&mut data);
    data
}

fn errno<T>(outcome: io::Result<T>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

fn open(path: &Path) -> File {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).expect("there is room")
}

/// The records of the faults, whose number matches the statistics.
fn records(mounted: &Mounted) -> Vec<FaultRecord> {
    let records = mounted.faults();
    let numbers = records.iter().map(|record| record.sequence);
    assert!(numbers.eq(1..=records.len() as u64), "{records:?}");
    for (fault, count) in mounted.stats().snapshot().faults_fired() {
        let of_this = records.iter().filter(|r| r.fault == *fault);
        assert_eq!(of_this.count() as u64, *count, "{fault}");
    }
    records
}

/// The record of the read or write `number`, from 1.
fn record_of(records: &[FaultRecord], kind: Kind, number: u64) -> Option<&FaultRecord> {
    let mut of_it = records
        .iter()
        .filter(|r| r.kind == kind.name() && r.request == Some(number));
    let record = of_it.next();
    assert_eq!(of_it.next(), None, "two faults on one request");
    record
}

#[test]
fn around_the_page_cache_each_call_is_one_request() {
    let bed = faulty(&[]);
    let f = open(&bed.join("f"));
    let mut expect = 0;
    for length in [1, 512, 4096, 100_001, 1 << 20] {
        for offset in [0, 1, 4096, 12_345] {
            let mut buffer = Aligned::new(length, 1);
            f.write_all_at(&buffer, offset).expect("room");
            f.read_exact_at(&mut buffer, offset).expect("there");
            expect += 1;
            let snapshot = bed.mounted.stats().snapshot();
            let counts = [Kind::Read, Kind::Write].map(|kind| snapshot.counts(kind).requests);
            assert_eq!(counts, [expect; 2], "{length} bytes at {offset}");
        }
    }
}

// ---- Damaged reads ----

/// Content of a test's files.
type Truth = BTreeMap<String, Vec<u8>>;

/// Reads `file` of `truth` in pieces of `piece` bytes, `rounds` times, and compares each
/// with the records; `older` is the file's earlier content. Returns the number of damaged
/// reads.
fn check_reads(bed: &Bed, truth: &Truth, older: &[u8], piece: usize, rounds: usize) -> usize {
    let f = open(&bed.join("f"));
    let whole = &truth["f"];
    let mut damaged = 0;
    for number in 0..rounds * whole.len() / piece {
        let at = number * piece % whole.len();
        let mut data = vec![0xaa; piece];
        let length = f.read_at(&mut data, at as u64).expect("no error");
        assert_eq!(length, piece);
        let records = records(&bed.mounted);
        let mut expect = whole[at..at + piece].to_vec();
        if let Some(record) = record_of(&records, Kind::Read, number as u64 + 1) {
            assert_eq!(record.path, "f");
            let asked = (record.offset, record.length);
            assert_eq!(asked, (Some(at as u64), Some(piece as u64)));
            damage(&mut expect, at, record, truth, older);
            assert!(expect != whole[at..at + piece], "no harm: {record:?}");
            damaged += 1;
        }
        assert!(data == expect, "read {number} is not what the log says");
    }
    assert_eq!(records(&bed.mounted).len(), damaged);
    damaged
}

/// Applies the damage of `record` to `bytes`, which lie at `at`.
fn damage(bytes: &mut [u8], at: usize, record: &FaultRecord, truth: &Truth, older: &[u8]) {
    assert!(!record.damage.is_empty());
    for harm in &record.damage {
        let from = harm.offset as usize - at;
        let part = &mut bytes[from..from + harm.length as usize];
        let here = harm.offset as usize;
        match record.action.as_str() {
            "flip" => part[0] ^= 1 << harm.bit.expect("a flip"),
            "zero" => part.fill(0),
            "stale" => part.copy_from_slice(&older[here..here + part.len()]),
            "misdirect" => {
                let other = harm.other.as_ref().expect("misdirected");
                let other_start = other.offset as usize;
                assert_ne!((other.path.as_str(), other_start), ("f", here));
                part.copy_from_slice(&truth[&other.path][other_start..other_start + part.len()]);
            }
            action => panic!("{action}"),
        }
    }
}

/// Creates the files `f`, overwritten once except for its last block, and `d/g`.
fn two_files(bed: &Bed) -> (Truth, Vec<u8>) {
    let older = random(1, 32);
    let mut newer = random(2, 31);
    newer.extend(&older[31 * BLOCK..]);
    fs::create_dir(bed.join("d")).expect("new");
    let files = [("f", newer), ("d/g", random(3, 40))];
    let truth: Truth = files.map(|(name, data)| (name.to_owned(), data)).into();
    open(&bed.join("f")).write_all_at(&older, 0).expect("room");
    for (name, data) in &truth {
        let f = open(&bed.join(name));
        let length = data.len() - if name == "f" { BLOCK } else { 0 };
        f.write_all_at(&data[..length], 0).expect("room");
    }
    (truth, older)
}

#[test]
fn a_damaged_read_is_damaged_as_the_log_says() {
    for (action, piece) in [
        ("flip", BLOCK),
        ("zero", 4 * BLOCK),
        ("stale", BLOCK),
        ("stale", 4 * BLOCK),
        ("misdirect", BLOCK),
        ("misdirect", 4 * BLOCK),
    ] {
        let fault = format!("read:{action}@p=0.3");
        let check = |bed: &Bed| {
            let (truth, older) = two_files(bed);
            let rounds = 3 * piece / BLOCK;
            let damaged = check_reads(bed, &truth, &older, piece, rounds);
            assert!((10..60).contains(&damaged), "{fault}: {damaged} of 96");
        };
        check(&faulty(&[&fault]));
        let config = |config| with_faults(config, &[&fault]);
        check(&Bed::passthrough(config));
    }
}

#[test]
fn a_read_that_cannot_be_damaged_is_not_and_is_not_logged() {
    let bed = faulty(&["read:stale@p=1", "read:misdirect@p=1", "read:zero@p=1"]);
    let f = open(&bed.join("f"));
    // Never overwritten, a single file, and no content that zeros would hide.
    f.write_all_at(&[0; BLOCK], 0).expect("room");
    let mut block = [1; BLOCK];
    f.read_exact_at(&mut block, 0).expect("there");
    assert_eq!(block, [0; BLOCK]);
    // The same content again is not older data.
    f.write_all_at(&[0; BLOCK], 0).expect("room");
    f.read_exact_at(&mut block, 0).expect("there");
    assert_eq!(f.read_at(&mut block, 1 << 20).expect("the end"), 0);
    assert_eq!(records(&bed.mounted), []);
}

#[test]
fn data_that_was_cut_off_does_not_come_back_as_stale() {
    let bed = faulty(&["read:stale@p=1"]);
    let f = open(&bed.join("f"));
    f.write_all_at(&random(1, 2), 0).expect("room");
    f.write_all_at(&random(2, 2), 0).expect("room");
    f.set_len(BLOCK as u64).expect("in order");
    f.write_all_at(&random(3, 1), BLOCK as u64).expect("room");
    let mut block = [0; BLOCK];
    f.read_exact_at(&mut block, BLOCK as u64).expect("there");
    assert!(block == *random(3, 1));
    f.read_exact_at(&mut block, 0).expect("there");
    assert!(block == random(1, 2)[..BLOCK]);
    assert_eq!(records(&bed.mounted).len(), 1);
}

// ---- Damaged writes ----

/// Applies a write of `data` to `files`, with the effect of its fault's record.
fn write_with_record(files: &mut Truth, at: usize, data: &[u8], record: Option<&FaultRecord>) {
    let Some(record) = record else {
        return put(files.get_mut("f").expect("there"), at, data);
    };
    assert_eq!(record.path, "f");
    let asked = (record.offset, record.length);
    assert_eq!(asked, (Some(at as u64), Some(data.len() as u64)));
    let [harm] = &record.damage[..] else {
        panic!("one range: {record:?}");
    };
    let range = harm.offset as usize - at..(harm.offset + harm.length) as usize - at;
    let mut bytes = data.to_vec();
    let f = files.get_mut("f").expect("there");
    let end = f.len().max(at + data.len());
    match record.action.as_str() {
        "flip" => bytes[range.start] ^= 1 << harm.bit.expect("a flip"),
        "zero" => bytes[range].fill(0),
        "lost" => return f.resize(end, 0),
        "misdirect" => {
            f.resize(end, 0);
            let other = harm.other.as_ref().expect("misdirected");
            let file = files.get_mut(&other.path).expect("a file of the test");
            return put(file, other.offset as usize, data);
        }
        action => panic!("{action}"),
    }
    assert!(bytes != data);
    put(f, at, &bytes);
}

#[test]
fn a_damaged_write_leaves_what_the_log_says() {
    for action in ["flip", "zero", "misdirect", "lost"] {
        let fault = format!("write:{action}@p=0.3");
        let check = |bed: &Bed| {
            fs::create_dir(bed.join("d")).expect("new");
            let mut files = Truth::new();
            // Filled by truncation, as writes would be hit by the fault.
            for name in ["f", "d/g"] {
                let f = File::create(bed.join(name)).expect("new");
                f.set_len(10 * BLOCK as u64).expect("in order");
                files.insert(name.to_owned(), vec![0; 10 * BLOCK]);
            }
            let f = open(&bed.join("f"));
            for number in 0..60_usize {
                let at = number * 7 % 24 * BLOCK;
                let data = random(number as u64, 1 + number % 3);
                let written = f.write_at(&data, at as u64);
                assert_eq!(written.expect("acknowledged"), data.len());
                let records = records(&bed.mounted);
                let record = record_of(&records, Kind::Write, number as u64 + 1);
                write_with_record(&mut files, at, &data, record);
            }
            for (name, expect) in &files {
                let content = fs::read(bed.join(name)).expect("there");
                assert!(content == *expect, "{name} after {fault}");
            }
            let fired = records(&bed.mounted).len();
            assert!((8..32).contains(&fired), "{fault}: {fired} of 60");
        };
        check(&faulty(&[&fault]));
        check(&Bed::passthrough(|config| with_faults(config, &[&fault])));
    }
}

#[test]
fn a_lost_write_that_changes_nothing_is_not_lost() {
    let bed = faulty(&["write:lost@after=1"]);
    let f = open(&bed.join("f"));
    let data = random(1, 1);
    f.write_all_at(&data, 0).expect("room");
    f.write_all_at(&data, 0).expect("room");
    assert_eq!(records(&bed.mounted), []);
    f.write_all_at(&random(2, 1), 0).expect("acknowledged");
    assert_eq!(records(&bed.mounted).len(), 1);
    assert!(fs::read(bed.join("f")).expect("there") == data);
}

// ---- Short reads and writes ----

#[test]
fn a_short_read_moves_half_and_the_rest_is_there_next_time() {
    // Not requested: short reads imply it.
    let config = Config {
        direct_io: false,
        ..with_faults(Config::memory(PLENTY), &["read:short@nth=2"])
    };
    let bed = Bed::new(config);
    let data = random(1, 4);
    fs::write(bed.join("f"), &data).expect("room");
    let f = File::open(bed.join("f")).expect("there");
    let mut buffer = vec![0; data.len()];
    let mut read = |at: usize| {
        let length = f.read_at(&mut buffer[at..], at as u64).expect("no error");
        assert!(buffer[..at + length] == data[..at + length]);
        length
    };
    assert_eq!(
        [read(0), read(0), read(2 * BLOCK)],
        [4 * BLOCK, 2 * BLOCK, 2 * BLOCK]
    );
    assert_eq!(f.metadata().expect("open").len(), data.len() as u64);
    let [record] = &records(&bed.mounted)[..] else {
        panic!("one fault");
    };
    assert_eq!((record.action.as_str(), record.request), ("short", Some(2)));
    let rest = (record.damage[0].offset, record.damage[0].length);
    assert_eq!(rest, (2 * BLOCK as u64, 2 * BLOCK as u64));
}

#[test]
fn a_short_write_moves_half_with_and_without_the_page_cache() {
    for direct_io in [true, false] {
        let config = with_faults(Config::memory(PLENTY), &["write:short@p=0.5"]);
        let bed = Bed::new(Config {
            direct_io,
            ..config
        });
        let f = open(&bed.join("f"));
        let mut expect: Vec<u8> = Vec::new();
        for number in 0..40_u64 {
            let data = random(number, 2);
            let written = f.write_at(&data, expect.len() as u64).expect("no error");
            let records = records(&bed.mounted);
            let rest = match record_of(&records, Kind::Write, number + 1) {
                Some(record) => record.damage[0].length as usize,
                None => 0,
            };
            assert!(rest == 0 || rest == BLOCK);
            assert_eq!(written, data.len() - rest, "write {number}");
            expect.extend(&data[..written]);
        }
        assert!(fs::read(bed.join("f")).expect("there") == expect);
        let cut = records(&bed.mounted).len();
        assert!((8..32).contains(&cut), "{cut} of 40");
    }
}

#[test]
fn one_byte_cannot_be_cut_short() {
    let bed = faulty(&["read:short@p=1", "write:short@p=1"]);
    let f = open(&bed.join("f"));
    assert_eq!(f.write_at(b"x", 0).expect("room"), 1);
    assert_eq!(f.read_at(&mut [0; 10], 0).expect("there"), 1);
    assert_eq!(records(&bed.mounted), []);
}

// ---- Errors ----

#[test]
fn each_error_goes_to_the_file_that_the_log_names() {
    let bed = faulty(&[
        "create:EDQUOT@p=0.3",
        "unlink:EINTR@p=0.3",
        "symlink:EIO@p=0.3",
    ]);
    fs::create_dir(bed.join("d")).expect("new");
    let mut seen = Vec::new();
    for i in 0..40 {
        let name = format!("d/n{i}");
        let path = bed.join(&name);
        let mut note = |kind: &str, outcome: Option<i32>| {
            if let Some(code) = outcome {
                seen.push((kind.to_owned(), Errno::from_raw(code), name.clone()));
            }
        };
        // std repeats interrupted calls; the system call does not.
        let outcome = errno(File::create_new(&path));
        note("create", outcome);
        if outcome.is_none() {
            note("unlink", nix::unistd::unlink(&path).err().map(|e| e as i32));
        } else {
            note("symlink", errno(std::os::unix::fs::symlink("x", &path)));
        }
    }
    let logged: Vec<_> = records(&bed.mounted)
        .into_iter()
        .map(|r| {
            let errno = match r.action.as_str() {
                "EDQUOT" => Errno::EDQUOT,
                "EINTR" => Errno::EINTR,
                "EIO" => Errno::EIO,
                action => panic!("{action}"),
            };
            (r.kind, errno, r.path)
        })
        .collect();
    assert_eq!(seen, logged);
    for kind in ["create", "unlink", "symlink"] {
        assert!(seen.iter().any(|(of, ..)| of == kind), "no {kind} was hit");
    }
}

#[test]
fn the_kernel_asks_once_more_for_a_name_that_is_stale() {
    let bed = faulty(&["create:ESTALE@nth=1", "fsync:ESTALE@nth=1"]);
    let f = File::create_new(bed.join("f")).expect("at the second time");
    assert_eq!(errno(f.sync_all()), Some(libc::ESTALE));
    assert_eq!(errno(f.sync_all()), None);
    let kinds: Vec<String> = records(&bed.mounted).into_iter().map(|r| r.kind).collect();
    assert_eq!(kinds, ["create", "fsync"]);
}

#[test]
fn an_interrupted_read_is_an_error_of_that_read() {
    let bed = faulty(&["read:EINTR@nth=2"]);
    let f = open(&bed.join("f"));
    f.write_all_at(&random(1, 1), 0).expect("room");
    let mut block = [0; BLOCK];
    let mut read = || nix::sys::uio::pread(&f, &mut block, 0);
    assert_eq!(
        [read(), read(), read()],
        [Ok(BLOCK), Err(Errno::EINTR), Ok(BLOCK)]
    );
    let actions: Vec<String> = records(&bed.mounted)
        .into_iter()
        .map(|r| r.action)
        .collect();
    assert_eq!(actions, ["EINTR"]);
}

#[test]
fn the_log_names_files_by_the_names_they_have() {
    let bed = faulty(&["write:EIO@after=0", "getattr:EIO@nth=1000000"]);
    fs::create_dir(bed.join("a")).expect("new");
    let f = open(&bed.join("a/f"));
    let fail = || assert_eq!(errno(f.write_at(b"x", 0)), Some(libc::EIO));
    fail();
    fs::rename(bed.join("a"), bed.join("b")).expect("there");
    fail();
    fs::rename(bed.join("b/f"), bed.join("g")).expect("there");
    fail();
    fs::remove_file(bed.join("g")).expect("there");
    fail();
    let paths: Vec<String> = records(&bed.mounted).into_iter().map(|r| r.path).collect();
    assert_eq!(paths, ["a/f", "b/f", "g", "g"]);
}

#[test]
fn several_faults_on_one_write_are_each_logged_once() {
    let bed = faulty(&[
        "write:flip@nth=1",
        "write:short@nth=1",
        "write:zero@nth=1",
        "write:stall=1ms@nth=1",
        "write:EIO@nth=2",
        "write:flip@nth=2",
        "write:EPERM@nth=2",
    ]);
    let f = open(&bed.join("f"));
    assert_eq!(f.write_at(&random(1, 2), 0).expect("short"), BLOCK);
    assert_eq!(errno(f.write_at(&random(1, 2), 0)), Some(libc::EIO));
    let records = records(&bed.mounted);
    let actions: Vec<&str> = records.iter().map(|r| r.action.as_str()).collect();
    // If two kinds of damage hit the same data, the first is applied, and likewise for two errors.
    assert_eq!(actions, ["stall=1ms", "short", "flip", "EIO"]);
    assert!(records[2].damage[0].offset < BLOCK as u64);
}

// ---- The quota ----

#[test]
fn a_quota_lets_so_many_bytes_in_and_refuses_the_rest() {
    let quota = Bytes(50 * BLOCK as u64);
    let bed = Bed::new(Config {
        quota: Some(quota),
        ..Config::memory(PLENTY).uncached()
    });
    let free = || {
        let totals = nix::sys::statvfs::statvfs(bed.path()).expect("mounted");
        assert_eq!(totals.blocks() * totals.fragment_size(), quota.0);
        totals.blocks_available() * totals.fragment_size()
    };
    assert_eq!(free(), quota.0);
    let files: Vec<File> = (0..3).map(|i| open(&bed.join(format!("f{i}")))).collect();
    let mut refused = Vec::new();
    let mut stored = 0;
    for i in 0..60_usize {
        let at = (i / 3 * BLOCK) as u64;
        match files[i % 3].write_at(&random(1, 1), at) {
            Ok(length) => stored += length as u64,
            Err(error) => refused.push((format!("f{}", i % 3), at, error.raw_os_error())),
        }
        assert_eq!(free(), quota.0 - stored);
    }
    assert_eq!((stored, refused.len()), (quota.0, 10));
    let logged: Vec<_> = records(&bed.mounted)
        .into_iter()
        .map(|r| {
            assert_eq!((r.fault.as_str(), r.kind.as_str()), ("quota", "write"));
            assert_eq!(
                (r.action.as_str(), r.length),
                ("ENOSPC", Some(BLOCK as u64))
            );
            (r.path, r.offset.expect("a write"), Some(libc::ENOSPC))
        })
        .collect();
    assert_eq!(refused, logged);
    let snapshot = bed.mounted.stats().snapshot();
    assert_eq!(fired(&snapshot, "quota"), Some(10));
    assert_eq!(snapshot.counts(Kind::Write).errors, 10);
    // Overwriting needs no space, and a removal frees some.
    files[0]
        .write_all_at(&random(2, 1), 0)
        .expect("its own room");
    fs::remove_file(bed.join("f1")).expect("there");
    files[0].set_len(0).expect("in order");
    let reserve = nix::fcntl::FallocateFlags::empty();
    let too_much = nix::fcntl::fallocate(&files[0], reserve, 0, quota.0 as i64);
    assert_eq!(too_much, Err(Errno::ENOSPC));
    let last = records(&bed.mounted).pop().expect("the fallocate");
    assert_eq!(
        (last.kind.as_str(), last.path.as_str()),
        ("fallocate", "f0")
    );
}

#[test]
fn a_folder_that_is_passed_through_has_no_quota_and_no_power() {
    let refused = |change: fn(Config) -> Config| {
        let (folder, point) = (tempfile::tempdir(), tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        let point = point.expect("a temporary folder");
        let config = change(Config::passthrough(folder.path()));
        let mounted = rbench_testfs::mount(config, point.path());
        mounted.expect_err("it is for memory").to_string()
    };
    let quota = refused(|config| Config {
        quota: Some(Bytes(1)),
        ..config
    });
    assert!(quota.starts_with("a quota is for a file system in memory"));
    let power = refused(|config| Config {
        power_cut: true,
        ..config
    });
    assert!(power.starts_with("a power cut is for"));
}

// ---- Hangs ----

#[test]
fn what_hangs_goes_on_when_it_is_released() {
    let bed = faulty(&["read:hang@nth=2", "mkdir:hang@after=0"]);
    let data = random(1, 1);
    let f = open(&bed.join("f"));
    f.write_all_at(&data, 0).expect("room");
    let read = || {
        let mut block = [0; BLOCK];
        f.read_exact_at(&mut block, 0).expect("in the end");
        assert!(block == *data);
    };
    read();
    std::thread::scope(|scope| {
        let hung = scope.spawn(read);
        let others: Vec<_> = ["a", "b"]
            .map(|name| bed.join(name))
            .map(|path| scope.spawn(|| fs::create_dir(path)))
            .into();
        wait_until("the hangs", || bed.mounted.hanging() >= 2);
        // Other requests are served meanwhile.
        read();
        assert!(!hung.is_finished());
        assert_eq!(
            bed.mounted.stats().snapshot().counts(Kind::Read).requests,
            2
        );
        // The kernel allows one mkdir at a time in the directory.
        wait_until("the end", || {
            bed.mounted.release_hangs();
            hung.is_finished() && others.iter().all(|mkdir| mkdir.is_finished())
        });
        for mkdir in others {
            assert!(mkdir.join().expect("no panic").is_ok());
        }
    });
    assert_eq!(bed.mounted.hanging(), 0);
    let actions: Vec<String> = records(&bed.mounted)
        .into_iter()
        .map(|r| r.action)
        .collect();
    assert_eq!(actions, ["hang"; 3]);
}

#[test]
fn the_end_of_the_mount_ends_what_hangs() {
    let bed = faulty(&["mkdir:hang@after=0"]);
    let path = bed.join("d");
    let hung = std::thread::spawn(move || fs::create_dir(path));
    wait_until("the hang", || bed.mounted.hanging() == 1);
    let point = bed.path().to_owned();
    let Bed { mounted, .. } = bed;
    mounted.unmount().expect("mounted");
    let outcome = hung.join().expect("no panic");
    assert_eq!(errno(outcome), Some(libc::ECONNABORTED));
    assert!(!is_mounted(&point));
}

// ---- Death ----

fn is_mounted(point: &Path) -> bool {
    !mounts_at(point).is_empty()
}

/// Ending the kernel connection needs root, or a mounted list of connections.
mod needs_root {
    use super::*;

    #[test]
    fn a_file_system_that_dies_leaves_a_mount_that_is_not_connected() {
        let bed = faulty(&["write:die@nth=3", "mkdir:hang@nth=1"]);
        let point = bed.path().canonicalize().expect("there");
        let f = open_direct(&bed.join("f")).expect("room");
        let path = bed.join("d");
        let hung = std::thread::spawn(move || fs::create_dir(path));
        wait_until("the hang", || bed.mounted.hanging() == 1);
        let write = || errno(f.write_at(&Aligned::new(BLOCK, 1), 0));
        let dead = Some(libc::ENOTCONN);
        assert_eq!([write(), write()], [None, None]);
        assert_eq!(write(), Some(libc::ECONNABORTED));
        assert_eq!(write(), dead);
        assert_eq!(errno(fs::metadata(&point)), dead);
        assert_eq!(errno(File::open(point.join("f"))), dead);
        let under_way = hung.join().expect("no panic");
        assert_eq!(errno(under_way), Some(libc::ECONNABORTED));
        assert!(bed.mounted.has_died());
        assert!(is_mounted(&point));
        let last = records(&bed.mounted).pop().expect("the death");
        assert_eq!((last.action.as_str(), last.request), ("die", Some(3)));
        let Bed { mounted, .. } = bed;
        mounted.unmount().expect("it is detached");
        assert!(!is_mounted(&point));
        drop(f);
    }

    #[test]
    fn the_owner_can_have_it_die_and_dropping_cleans_up() {
        let bed = Bed::memory();
        let point = bed.path().canonicalize().expect("there");
        assert!(!bed.mounted.has_died());
        bed.mounted.die().expect("root");
        assert_eq!(errno(fs::read_dir(&point)), Some(libc::ENOTCONN));
        let Bed { mounted, .. } = bed;
        drop(mounted);
        assert!(!is_mounted(&point));
        assert_eq!(fs::read_dir(&point).expect("an empty folder").count(), 0);
    }
}

// ---- The log ----

#[test]
fn the_log_file_holds_what_the_owner_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("faults.jsonl");
    let bed = Bed::new(Config {
        fault_log: Some(path.clone()),
        ..with_faults(
            Config::memory(PLENTY),
            &["write:flip@p=0.5", "read:EIO@p=0.5"],
        )
    });
    let f = open(&bed.join("f"));
    for i in 0..20 {
        f.write_all_at(&random(i, 1), 0).expect("acknowledged");
        // Some fail, as the log shows.
        let _ = f.read_at(&mut [0; BLOCK], 0);
        let text = fs::read_to_string(&path).expect("readable");
        let read = |line| serde_json::from_str(line).expect("a record");
        let lines: Vec<FaultRecord> = text.lines().map(read).collect();
        assert_eq!(lines, records(&bed.mounted));
    }
    assert!(records(&bed.mounted).len() > 10);
}

#[test]
fn the_same_seed_and_calls_give_the_same_log() {
    let run = |seed| {
        let config = with_faults(
            Config::memory(PLENTY),
            &[
                "write:zero@p=0.2",
                "read:flip@p=0.2",
                "read:misdirect@p=0.2",
            ],
        );
        let bed = Bed::new(Config { seed, ..config });
        let f = open(&bed.join("f"));
        let data = random(9, 16);
        for at in (0..16).map(|i| i * BLOCK) {
            f.write_all_at(&data[at..at + BLOCK], at as u64)
                .expect("room");
        }
        for at in (0..16).map(|i| i * BLOCK) {
            f.read_exact_at(&mut [0; BLOCK], at as u64).expect("there");
        }
        records(&bed.mounted)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_log_that_cannot_be_made_is_told_before_anything_is_mounted() {
    let point = tempfile::tempdir().expect("a temporary folder");
    let config = Config {
        fault_log: Some("/nowhere/log".into()),
        ..Config::memory(PLENTY)
    };
    let refused = rbench_testfs::mount(config, point.path()).expect_err("no folder");
    let message = refused.to_string();
    assert!(
        message.starts_with("the fault log /nowhere/log cannot be written"),
        "{message}"
    );
    assert!(!is_mounted(point.path()));
}
