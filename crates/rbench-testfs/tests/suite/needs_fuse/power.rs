//! Power cuts on a real mount: synced data survives, the rest matches the records of
//! the cut, and the kernel has dropped its caches.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::common::{Aligned, Bed, PLENTY, fired, open_direct, put, wait_until};
use rbench_core::Nanos;
use rbench_core::random::{DataStream, Stream};
use rbench_testfs::{Config, FaultRecord, Mounted, PowerCutError, Survivors};

const BLOCK: u64 = 4096;

const HOUR: Nanos = Nanos(3_600_000_000_000);

/// A file system whose kernel keeps everything that it has seen.
fn cached() -> Bed {
    with_direct_io(false)
}

fn with_direct_io(direct_io: bool) -> Bed {
    Bed::new(Config {
        power_cut: true,
        direct_io,
        attr_timeout: HOUR,
        entry_timeout: HOUR,
        ..Config::memory(PLENTY)
    })
}

fn cut(mounted: &Mounted, survivors: Survivors) -> Vec<FaultRecord> {
    mounted.power_cut(survivors).expect("prepared")
}

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    DataStream::new(&[seed]).fill(&mut data);
    data
}

fn new_file(path: &Path) -> File {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    options.open(path).expect("new")
}

fn open(path: &Path) -> File {
    let mut options = File::options();
    options.read(true).write(true).open(path).expect("there")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("there");
    let name = |entry: io::Result<fs::DirEntry>| {
        let name = entry.expect("an entry").file_name();
        name.to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Each record in a few words.
fn brief(records: &[FaultRecord]) -> Vec<String> {
    let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let brief = |r: &FaultRecord| {
        let range = [number(r.offset), number(r.length)].join(" ");
        format!("{} {} {} {range}", r.kind, r.action, r.path)
    };
    records.iter().map(brief).collect()
}

#[test]
fn what_was_synced_is_there_and_the_rest_is_gone_from_every_cache() {
    let bed = cached();
    let folder = File::open(bed.path()).expect("there");
    let f = new_file(&bed.join("f"));
    let direct = open_direct(&bed.join("f")).expect("there");
    let synced = random(1, 3 * 4096 + 100);
    f.write_all_at(&synced, 0).expect("room");
    f.sync_all().expect("in order");
    f.write_all_at(&random(2, 5000), 4000).expect("room");
    f.write_all_at(&random(3, 4096), 20 * BLOCK).expect("room");
    f.set_len(100 * BLOCK).expect("in order");
    // The kernel has all of it in its caches.
    assert_eq!(fs::read(bed.join("f")).expect("there").len(), 100 * 4096);

    let records = cut(&bed.mounted, Survivors::None);
    let expect = [
        "write lost f 4000 5000",
        "write lost f 81920 4096",
        "setattr lost f 409600 -",
    ];
    assert_eq!(brief(&records), expect);
    assert_eq!(f.metadata().expect("open").len(), synced.len() as u64);
    assert!(fs::read(bed.join("f")).expect("there") == synced);

    // Files that were open cannot be used any more; files that are opened again can.
    let errno = |outcome: io::Result<()>| outcome.map_err(|e| e.raw_os_error());
    let gone = Err(Some(libc::EIO));
    let mut block = Aligned::new(4096, 0);
    assert_eq!(errno(direct.read_exact_at(&mut block, 0)), gone);
    assert_eq!(errno(f.write_all_at(&[7; 10], 0)), gone);
    assert_eq!(errno(f.set_len(0)), gone);
    assert_eq!(errno(f.sync_data()), gone);
    assert_eq!(errno(folder.sync_all()), gone);
    let f = open(&bed.join("f"));
    f.write_all_at(&[7; 10], 0).expect("room");
    f.sync_data().expect("in order");
    assert_eq!(cut(&bed.mounted, Survivors::None), []);
    assert_eq!(fs::read(bed.join("f")).expect("there")[..10], [7; 10]);
    let cuts = fired(&bed.mounted.stats().snapshot(), "power-cut");
    assert_eq!(cuts, Some(2));
    let kinds: Vec<String> = bed.mounted.faults().into_iter().map(|r| r.action).collect();
    assert_eq!(kinds, ["lost", "lost", "lost", "done", "done"]);
}

#[test]
fn names_are_kept_by_a_sync_of_the_file_or_of_its_folder() {
    let bed = cached();
    for folder in ["a", "a/deep", "b", "c", "c/deep"] {
        fs::create_dir(bed.join(folder)).expect("new");
    }
    let make = |name: &str| {
        let f = new_file(&bed.join(name));
        f.write_all_at(name.as_bytes(), 0).expect("room");
        f
    };
    let synced = make("a/deep/synced");
    synced.sync_data().expect("in order");
    make("a/deep/not");
    make("b/one");
    make("b/two");
    File::open(bed.join("b"))
        .and_then(|folder| folder.sync_all())
        .expect("in order");
    let open = make("c/deep/open");
    make("top");
    assert_eq!(names(bed.path()), ["a", "b", "c", "top"]);

    let records = cut(&bed.mounted, Survivors::None);
    let gone: Vec<&str> = records
        .iter()
        .filter(|r| r.action == "vanished")
        .map(|r| r.path.as_str())
        .collect();
    assert_eq!(gone, ["a/deep/not", "c/deep/open", "c/deep", "c", "top"]);
    assert_eq!(names(bed.path()), ["a", "b"]);
    assert_eq!(names(&bed.join("a/deep")), ["synced"]);
    assert_eq!(
        fs::read(bed.join("a/deep/synced")).expect("there"),
        b"a/deep/synced"
    );
    // The names were synced, the content of the files was not.
    assert_eq!(names(&bed.join("b")), ["one", "two"]);
    assert_eq!(fs::read(bed.join("b/one")).expect("there"), b"");
    assert!(!bed.join("top").exists(), "the kernel has forgotten it");
    let folder = fs::metadata(bed.path()).expect("there");
    assert_eq!(std::os::unix::fs::MetadataExt::nlink(&folder), 4);
    // The same names can be created again.
    fs::create_dir_all(bed.join("c/deep")).expect("new");
    drop(make("c/deep/open"));
    drop(open);
}

#[test]
fn a_file_that_is_renamed_when_synced_replaces_the_other_for_good() {
    let bed = cached();
    let write = |name: &str, text: &str, sync: bool| {
        let f = new_file(&bed.join(name));
        f.write_all_at(text.as_bytes(), 0).expect("room");
        if sync {
            f.sync_all().expect("in order");
        }
    };
    write("config", "old", true);
    write("config.new", "new", true);
    fs::create_dir(bed.join("unsynced")).expect("new");
    fs::rename(bed.join("config.new"), bed.join("config")).expect("there");
    write("other", "text", true);
    fs::rename(bed.join("other"), bed.join("unsynced/other")).expect("there");
    write("removed", "text", true);
    fs::remove_file(bed.join("removed")).expect("there");
    cut(&bed.mounted, Survivors::None);
    assert_eq!(names(bed.path()), ["config", "unsynced"]);
    assert_eq!(fs::read(bed.join("config")).expect("there"), b"new");
    assert_eq!(
        fs::read(bed.join("unsynced/other")).expect("there"),
        b"text"
    );
}

#[test]
fn what_is_written_synchronously_needs_no_sync() {
    for flag in [libc::O_SYNC, libc::O_DSYNC] {
        for direct in [0, libc::O_DIRECT] {
            let bed = cached();
            let mut options = File::options();
            options.write(true).create(true).truncate(true);
            let f = options.custom_flags(flag | direct).open(bed.join("f"));
            let data = Aligned::new(8192, 5);
            f.expect("new").write_all_at(&data, 0).expect("room");
            assert_eq!(cut(&bed.mounted, Survivors::None), []);
            assert!(fs::read(bed.join("f")).expect("there") == *data);
        }
    }
}

/// A change that a test made to a file.
#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Size(u64),
}

impl Change {
    fn make(&self, file: &mut Vec<u8>) {
        match self {
            Change::Write(at, data) => put(file, *at as usize, data),
            Change::Size(size) => file.resize(*size as usize, 0),
        }
    }
}

/// Applies a change to the durable content, without the ranges that the record has as
/// lost.
fn survive(file: &mut Vec<u8>, record: &FaultRecord, change: &Change) {
    let lost = |at: u64| {
        let mut ranges = record.damage.iter();
        ranges.any(|d| (d.offset..d.offset + d.length).contains(&at))
    };
    let (kind, offset) = match change {
        Change::Write(at, _) => ("write", *at),
        Change::Size(size) => ("setattr", *size),
    };
    assert_eq!((record.kind.as_str(), record.offset), (kind, Some(offset)));
    match (change, record.action.as_str()) {
        (_, "lost") => {}
        (_, "survived") => change.make(file),
        (Change::Write(_, data), "torn") => {
            for (at, byte) in (offset..).zip(data).filter(|(at, _)| !lost(*at)) {
                put(file, at as usize, &[*byte]);
            }
        }
        (_, action) => panic!("{action}"),
    }
}

/// Writes, syncs and truncates three files at random, and cuts the power now and
/// then. After each cut the files match the records. Returns all records, and their
/// number by action.
fn live_through_cuts(seed: u64) -> (Vec<FaultRecord>, BTreeMap<String, u64>) {
    // The page cache would split a write into several requests.
    let bed = with_direct_io(true);
    let mut draws = Stream::new(&[seed]);
    let mut files: Vec<File> = (0..3)
        .map(|i| {
            let f = new_file(&bed.join(format!("f{i}")));
            f.sync_all().expect("in order");
            f
        })
        .collect();
    // Durable content, and the changes since then.
    let mut durable = vec![Vec::new(); 3];
    let mut since: Vec<Vec<Change>> = vec![Vec::new(); 3];
    let mut all = Vec::new();
    for step in 0..120 {
        let i = draws.below(3) as usize;
        match draws.below(20) {
            0..12 => {
                let at = draws.below(60_000);
                let data = random(key(seed, step), 1 + draws.below(30_000) as usize);
                files[i].write_all_at(&data, at).expect("room");
                since[i].push(Change::Write(at, data));
            }
            12..14 => {
                let size = draws.below(60_000);
                files[i].set_len(size).expect("in order");
                since[i].push(Change::Size(size));
            }
            14..18 => {
                files[i].sync_data().expect("in order");
                for change in since[i].drain(..) {
                    change.make(&mut durable[i]);
                }
            }
            _ => {
                let records = cut(&bed.mounted, Survivors::Seeded(key(seed, step)));
                for (i, (durable, since)) in durable.iter_mut().zip(&mut since).enumerate() {
                    let name = format!("f{i}");
                    let file_records = records.iter().filter(|r| r.path == name);
                    let changes = std::mem::take(since);
                    assert_eq!(file_records.clone().count(), changes.len());
                    for (record, change) in file_records.zip(&changes) {
                        survive(durable, record, change);
                    }
                    let content = fs::read(bed.join(&name)).expect("there");
                    assert!(content == *durable, "{name}, seed {seed}, step {step}");
                    files[i] = open(&bed.join(&name));
                }
                all.extend(records);
            }
        }
    }
    let mut actions = BTreeMap::new();
    for record in &all {
        *actions.entry(record.action.clone()).or_default() += 1;
    }
    (all, actions)
}

fn key(seed: u64, step: u64) -> u64 {
    rbench_core::random::key(&[seed, step])
}

#[test]
fn whatever_survives_a_cut_is_what_the_log_says() {
    let mut actions: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..10 {
        for (action, count) in live_through_cuts(seed).1 {
            *actions.entry(action).or_default() += count;
        }
    }
    for action in ["survived", "lost", "torn"] {
        let count = actions.get(action).copied().unwrap_or(0);
        assert!(count > 20, "{action}: {actions:?}");
    }
}

#[test]
fn the_seed_decides_what_survives() {
    assert_eq!(live_through_cuts(3), live_through_cuts(3));
    let of_names = |seed| {
        let bed = cached();
        for i in 0..40 {
            fs::write(bed.join(format!("f{i}")), "text").expect("room");
        }
        let records = cut(&bed.mounted, Survivors::Seeded(seed));
        let kept = names(bed.path());
        let survived = records
            .iter()
            .filter(|r| (r.kind.as_str(), r.action.as_str()) == ("create", "survived"))
            .map(|r| r.path.clone());
        let mut survived: Vec<String> = survived.collect();
        survived.sort();
        assert_eq!(kept, survived);
        assert!((8..32).contains(&kept.len()), "{}", kept.len());
        kept
    };
    assert_eq!(of_names(1), of_names(1));
    assert_ne!(of_names(1), of_names(2));
}

#[test]
fn a_file_system_that_was_not_prepared_has_no_power_to_cut() {
    let bed = Bed::memory();
    let refused = bed.mounted.power_cut(Survivors::None);
    assert!(matches!(refused, Err(PowerCutError::NotPrepared)));
    let cuts = fired(&bed.mounted.stats().snapshot(), "power-cut");
    assert_eq!(cuts, None);
}

#[test]
fn a_cut_does_not_wait_for_what_hangs() {
    let fault = "read:hang@nth=1".parse().expect("well formed");
    let bed = Bed::new(Config {
        power_cut: true,
        faults: vec![fault],
        ..Config::memory(PLENTY)
    });
    let f = new_file(&bed.join("f"));
    f.write_all_at(&[1; 4096], 0).expect("room");
    std::thread::scope(|scope| {
        let path = bed.join("f");
        // Not from the page cache, which the write has filled.
        let direct = open_direct(&path).expect("there");
        scope.spawn(move || {
            let mut block = Aligned::new(4096, 0);
            direct.read_at(&mut block, 0).expect("released");
        });
        wait_until("the hang", || bed.mounted.hanging() == 1);
        cut(&bed.mounted, Survivors::None);
    });
    assert_eq!(names(bed.path()), Vec::<String>::new());
}

#[test]
fn cuts_under_load_leave_every_synced_write() {
    let bed = cached();
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let stop = AtomicBool::new(false);
    let progress = [const { AtomicU64::new(0) }; 4];
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u8)
            .zip(&progress)
            .map(|(i, progress)| {
                let (path, stop) = (bed.join(format!("f{i}")), &stop);
                scope.spawn(move || {
                    let mut f = new_file(&path);
                    f.sync_all().expect("in order");
                    // Block n contains n + 1; the result is the number of synced
                    // blocks.
                    let mut synced = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let block = [(synced + 1) as u8; 4096];
                        let written = f.write_all_at(&block, synced * BLOCK);
                        match written.and_then(|()| f.sync_data()) {
                            Ok(()) => {
                                synced += 1;
                                progress.store(synced, Ordering::Relaxed);
                            }
                            Err(_) => f = open(&path),
                        }
                    }
                    (path, synced)
                })
            })
            .collect();
        // The first cut comes when each file has synced something, so the files' own
        // names are durable. Each later cut waits for another sync, too.
        for seed in 0..20 {
            let before = progress.each_ref().map(|n| n.load(Ordering::Relaxed));
            let goes_on = |(now, before): (&AtomicU64, u64)| now.load(Ordering::Relaxed) > before;
            wait_until("another sync of each", || {
                progress.iter().zip(before).all(goes_on)
            });
            cut(&bed.mounted, Survivors::Seeded(seed));
        }
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            let (path, synced) = writer.join().expect("no panic");
            cut(&bed.mounted, Survivors::None);
            let content = fs::read(path).expect("there");
            assert!(synced >= 20, "{synced}");
            for n in 0..synced {
                let block = &content[(n * BLOCK) as usize..][..4096];
                assert!(block.iter().all(|byte| *byte == (n + 1) as u8), "block {n}");
            }
        }
    });
}
