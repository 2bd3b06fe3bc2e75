//! Runs with a journal of acknowledged writes on a file system whose power is
//! cut: nothing that a crash may leave is blamed, and nothing else is missed.
//!
//! `RBENCH_CRASH_SCENARIOS` sets how many scenarios are played (40 without
//! it), `RBENCH_CRASH_SEED` the first one's seed.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rbench_core::Bytes;
use rbench_core::random::Stream;
use rbench_exec::ack::{Audit, Class, audit};
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::spec::Io;
use rbench_testfs::{Config, Mounted, Survivors};
use tempfile::TempDir;

use crate::group::Run;

mod damage;
mod oracle;
mod scenario;

use damage::{Tally, try_all};
use scenario::Scenario;

/// A file system whose power can be cut, and a place for journals outside.
pub struct Bed {
    mounted: Mounted,
    target: TempDir,
    outside: TempDir,
}

impl Bed {
    fn new(change: impl FnOnce(&mut Config)) -> Bed {
        let target = tempfile::tempdir().expect("temporary directory");
        let mut config = Config::memory(Bytes(256 << 20));
        config.power_cut = true;
        change(&mut config);
        Bed {
            mounted: rbench_testfs::mount(config, target.path())
                .expect("the machine can mount FUSE"),
            target,
            outside: tempfile::tempdir().expect("temporary directory"),
        }
    }

    fn base(&self) -> PathBuf {
        self.outside.path().join("acks")
    }

    fn journals(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.outside.path()).expect("listing");
        let mut all: Vec<PathBuf> = entries.map(|e| e.expect("entry").path()).collect();
        all.sort();
        all
    }

    fn cut(&self, survivors: Survivors) {
        self.mounted.power_cut(survivors).expect("prepared");
    }

    fn audit(&self) -> Audit {
        audit(&self.journals(), None).expect("journals")
    }
}

/// The options of a small workload with a journal.
fn journaled(bed: &Bed, rw: &[Rw], block: u64, size: u64) -> Io {
    Io {
        rw: Some(rw.to_vec()),
        block: Some(Bytes(block)),
        size: Some(Bytes(size)),
        verify: true,
        ack_journal: Some(bed.base()),
        ..Io::default()
    }
}

fn counts(audit: &Audit) -> [u64; 6] {
    Class::ALL.map(|class| audit.count(class))
}

#[test]
fn what_was_synced_is_as_acknowledged_and_what_was_not_may_be_gone() {
    for (fsync, expect) in [
        (FsyncRule::End, [64, 0, 0, 0, 0, 0]),
        (FsyncRule::Every(16), [64, 0, 0, 0, 0, 0]),
        (FsyncRule::Never, [0, 64, 0, 0, 0, 0]),
        (FsyncRule::Close, [0, 64, 0, 0, 0, 0]),
    ] {
        let bed = Bed::new(|_| ());
        let mut io = journaled(&bed, &[Rw::Write], 4096, 32 * 4096);
        io.fsync = Some(fsync);
        let outcome = Run::io(&[0, 0], bed.target.path(), io).go().expect("runs");
        assert!(outcome.complete);
        // Before the crash everything is there.
        assert_eq!(counts(&bed.audit()), [64, 0, 0, 0, 0, 0], "{fsync:?}");
        bed.cut(Survivors::None);
        let audit = bed.audit();
        assert_eq!(counts(&audit), expect, "{fsync:?}");
        assert_eq!((audit.journals, audit.is_clean()), (2, true));
    }
}

#[test]
fn overwritten_without_a_sync_the_older_layout_may_come_back() {
    let bed = Bed::new(|_| ());
    let mut io = journaled(&bed, &[Rw::RandWrite], 4096, 32 * 4096);
    io.fsync = Some(FsyncRule::Never);
    Run::io(&[0], bed.target.path(), io).go().expect("runs");
    assert_eq!(counts(&bed.audit()), [32, 0, 0, 0, 0, 0]);
    bed.cut(Survivors::None);
    // Layouts are synced.
    assert_eq!(counts(&bed.audit()), [0, 32, 0, 0, 0, 0]);
}

#[test]
fn journals_are_refused_where_they_would_be_lost_and_where_they_exist() {
    let bed = Bed::new(|_| ());
    let refusal = |io: Io| {
        let outcome = Run::io(&[0], bed.target.path(), io).go().expect("is told");
        outcome.trouble.expect("a refusal")
    };
    let io = journaled(&bed, &[Rw::Write], 4096, 8192);
    let inside = Io {
        ack_journal: Some(bed.target.path().join("acks")),
        ..io.clone()
    };
    let told = refusal(inside);
    assert!(told.contains("on the file system under test"), "{told}");
    std::fs::remove_dir_all(bed.target.path().join("rbench.test")).expect("kept");
    std::fs::write(bed.outside.path().join("acks.0.0"), "mine").expect("writes");
    let told = refusal(io);
    assert!(told.ends_with("acks.0.0 exists already"), "{told}");
    let mine = std::fs::read(bed.outside.path().join("acks.0.0"));
    assert_eq!(mine.expect("reads"), b"mine");
}

#[test]
fn data_that_was_moved_is_found_and_data_that_is_gone_is_named() {
    let bed = Bed::new(|_| ());
    let io = journaled(&bed, &[Rw::Write], 4096, 8 * 4096);
    Run::io(&[0, 0], bed.target.path(), io).go().expect("runs");
    let moved = tempfile::tempdir().expect("temporary directory");
    let from = bed.target.path().join("rbench.test/0");
    let to = moved.path().join("rbench.test/0");
    std::fs::create_dir_all(&to).expect("made");
    for name in ["data.0", "data.1"] {
        std::fs::copy(from.join(name), to.join(name)).expect("copied");
    }
    let found = audit(&bed.journals(), Some(moved.path())).expect("journals");
    assert_eq!(counts(&found), [16, 0, 0, 0, 0, 0]);
    let one = audit(&bed.journals()[1..], Some(moved.path())).expect("a journal");
    assert_eq!(counts(&one), [8, 0, 0, 0, 0, 0]);
    assert!(one.notes[0].contains("journals of 1 of the 2 workers"));
    let nowhere = audit(&bed.journals(), Some(Path::new("/nowhere"))).expect("journals");
    assert_eq!(counts(&nowhere), [0, 0, 0, 16, 0, 0]);
    assert!(nowhere.notes[0].contains("is the file system mounted?"));
    let twice = [bed.journals(), bed.journals()].concat();
    let told = audit(&twice, None).expect_err("twice the same");
    assert!(told.contains("of the same worker"), "{told}");
}

#[test]
fn what_the_file_system_damaged_while_it_was_written_is_found_block_by_block() {
    for (action, class) in [
        ("lost", Class::Lost),
        ("zero", Class::Lost),
        ("flip", Class::Corrupt),
    ] {
        let bed = Bed::new(|config| {
            config.direct_io = true;
            let fault = format!("write:{action}@p=0.06");
            config.faults = vec![fault.parse().expect("valid")];
        });
        let io = journaled(&bed, &[Rw::Write], 4096, 128 * 4096);
        Run::io(&[0], bed.target.path(), io).go().expect("runs");
        let faults = bed.mounted.faults();
        let mut expect: Vec<u64> = faults
            .iter()
            // The marker is no block.
            .filter(|fault| fault.path.ends_with("data.0"))
            .map(|fault| fault.offset.expect("of a write"))
            .collect();
        expect.sort_unstable();
        bed.cut(Survivors::None);
        let audit = bed.audit();
        assert!(!expect.is_empty());
        assert_eq!(audit.count(class), expect.len() as u64, "{action}");
        assert_eq!(counts(&audit)[..3], [128 - expect.len() as u64, 0, 0]);
        let found: Vec<u64> = audit.findings.iter().map(|f| f.offset).collect();
        expect.truncate(10);
        assert_eq!(found, expect, "{action}");
    }
}

/// What scenarios gave.
#[derive(Debug, Default)]
struct Total {
    scenarios: u64,
    /// Scenarios by how they ended.
    ends: [u64; 3],
    records: u64,
    /// Blocks of each class.
    blocks: [u64; 6],
    durable: u64,
    alarms: Vec<String>,
    damage: Tally,
}

impl Total {
    fn add(&mut self, other: Total) {
        let Total {
            scenarios,
            ends,
            records,
            blocks,
            durable,
            alarms,
            damage,
        } = other;
        self.scenarios += scenarios;
        self.records += records;
        self.durable += durable;
        self.alarms.extend(alarms);
        self.damage.add(damage);
        let sums = self.ends.iter_mut().chain(&mut self.blocks);
        for (sum, more) in sums.zip(ends.into_iter().chain(blocks)) {
            *sum += more;
        }
    }
}

fn play(seed: u64) -> Total {
    let mut chance = Stream::new(&[seed]);
    let scenario = Scenario::draw(&mut chance);
    let bed = Bed::new(|config| scenario.configure(config));
    scenario.run(&bed, &mut chance);
    let audit = bed.audit();
    let blocks = oracle::read(&bed.journals());
    let mut total = Total {
        scenarios: 1,
        records: audit.records,
        blocks: counts(&audit),
        durable: blocks.iter().filter(|block| block.durable).count() as u64,
        ..Total::default()
    };
    total.ends[scenario.ends as usize] = 1;
    if audit.is_clean() {
        total.damage = try_all(&bed, seed, &blocks, &mut chance);
    } else {
        let told = format!("seed {seed}: {scenario:?}: {:?}", audit.findings);
        total.alarms.push(told);
    }
    total
}

#[test]
fn no_crash_is_blamed_for_what_it_may_leave_and_all_other_damage_is_found() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let count = number("RBENCH_CRASH_SCENARIOS").unwrap_or(40);
    let first = number("RBENCH_CRASH_SEED").unwrap_or(1);
    let next = AtomicU64::new(first);
    let total = Mutex::new(Total::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let played = play(seed);
                    total.lock().expect("no panic").add(played);
                }
            });
        }
    });
    let total = total.into_inner().expect("no panic");
    let Total {
        scenarios,
        ends,
        records,
        blocks,
        durable,
        alarms,
        damage,
    } = &total;
    println!("{scenarios} scenarios (end, stop, cut in the midst: {ends:?}), {records} records");
    let classes = Class::ALL.map(Class::name);
    println!("blocks {classes:?}: {blocks:?}, of them durable: {durable}");
    println!("damage done and found: {damage}");
    assert!(alarms.is_empty(), "false alarms: {alarms:#?}");
    assert!(damage.missed.is_empty(), "missed: {:#?}", damage.missed);
    assert_eq!(*scenarios, count);
    // The scenarios are worth something.
    assert!(count < 40 || (blocks[0] > 0 && blocks[1] > 0 && damage.done() > 2 * count));
}
