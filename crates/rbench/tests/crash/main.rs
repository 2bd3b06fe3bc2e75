//! Tests runs with a journal of acknowledged writes that are killed, or whose file system loses
//! power. Contents that a crash may leave must not be reported, and all other damage must be.
//!
//! File system, run and audit are separate processes, like in practice: a process must not wait for
//! a mount that it serves itself. `RBENCH_CRASH_SCENARIOS` sets the number of scenarios (default
//! 24), `RBENCH_CRASH_SEED` the seed of the first one.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::Signal;
use rbench_core::random::Stream;
use rbench_exec::ack::{Audit, Class, audit};

mod bed;
mod damage;
mod oracle;
mod scenario;
mod witness;

use bed::Bed;
use damage::{Tally, try_all};
use scenario::Scenario;

fn counts(audit: &Audit) -> [u64; 6] {
    Class::ALL.map(|class| audit.count(class))
}

/// A run that must succeed.
fn run(bed: &Bed, options: &str) {
    assert_eq!(bed.start(options).end().code(), Some(0), "{options}");
}

/// All tests run on the built-in file system.
mod needs_fuse {
    use super::*;

    #[test]
    fn what_was_synced_is_as_acknowledged_and_what_was_not_may_be_gone() {
        for (fsync, expect) in [
            ("end", [64, 0, 0, 0, 0, 0]),
            ("every=16", [64, 0, 0, 0, 0, 0]),
            ("never", [0, 64, 0, 0, 0, 0]),
            ("close", [0, 64, 0, 0, 0, 0]),
        ] {
            let bed = Bed::new("--power-cut drop");
            run(
                &bed,
                &format!("--rw write --bs 4k --size 128k --threads 2 --fsync {fsync}"),
            );
            // Before the crash all data exists.
            assert_eq!(counts(&bed.audit()), [64, 0, 0, 0, 0, 0], "{fsync}");
            bed.cut();
            let audit = bed.audit();
            assert_eq!(counts(&audit), expect, "{fsync}");
            assert_eq!((audit.journals, audit.is_clean()), (2, true));
        }
    }

    #[test]
    fn overwritten_without_a_sync_the_older_layout_may_come_back() {
        let bed = Bed::new("--power-cut drop");
        run(&bed, "--rw randwrite --bs 4k --size 128k --fsync never");
        assert_eq!(counts(&bed.audit()), [32, 0, 0, 0, 0, 0]);
        bed.cut();
        // Layouts are synced.
        assert_eq!(counts(&bed.audit()), [0, 32, 0, 0, 0, 0]);
    }

    #[test]
    fn data_that_was_moved_is_found_and_data_that_is_gone_is_named() {
        let bed = Bed::new("--power-cut drop");
        run(&bed, "--rw write --bs 4k --size 32k --threads 2");
        let moved = tempfile::tempdir().expect("temporary directory");
        let from = bed.run_directory();
        let to = moved
            .path()
            .join(from.file_name().expect("named"))
            .join("0");
        fs::create_dir_all(&to).expect("made");
        for name in ["data.0", "data.1"] {
            fs::copy(from.join("0").join(name), to.join(name)).expect("copied");
        }
        let report = audit(&bed.journals(), Some(moved.path())).expect("journals");
        assert_eq!(counts(&report), [16, 0, 0, 0, 0, 0]);
        let one = audit(&bed.journals()[1..], Some(moved.path())).expect("a journal");
        assert_eq!(counts(&one), [8, 0, 0, 0, 0, 0]);
        assert!(one.notes[0].contains("only 1 of 2 workers' journals"));
        let nowhere = audit(&bed.journals(), Some(Path::new("/nowhere"))).expect("journals");
        assert_eq!(counts(&nowhere), [0, 0, 0, 16, 0, 0]);
        assert!(nowhere.notes[0].contains("check that the file system is mounted"));
        let twice = [bed.journals(), bed.journals()].concat();
        let message = audit(&twice, None).expect_err("twice the same");
        assert!(message.contains("to the same worker"), "{message}");
    }

    #[test]
    fn verify_says_what_became_of_each_block_and_ends_with_1_when_one_is_lost() {
        let bed = Bed::new("--power-cut drop");
        run(&bed, "--rw write --bs 4k --size 64k");
        bed.cut();
        let (code, said) = bed.verify("");
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("          16 as acknowledged "), "{said}");
        let data = bed.run_directory().join("0/data.0");
        let file = fs::OpenOptions::new().write(true).open(data);
        file.expect("there").set_len(15 * 4096).expect("cut off");
        let (code, said) = bed.verify("");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("           1 lost "), "{said}");
        assert!(said.contains("at offset 61440: expected "), "{said}");
        let (code, said) = bed.verify("--format json");
        assert_eq!(code, Some(1), "{said}");
        let value: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(value["blocks"]["as-acknowledged"], 15);
        assert_eq!(value["findings"][0]["offset"], 61_440);
    }

    #[test]
    fn a_journal_that_was_cut_off_says_nothing_about_the_data() {
        let bed = Bed::new("--power-cut drop");
        run(&bed, "--rw write --bs 4k --size 64k");
        let (code, said) = bed.verify("");
        assert_eq!(code, Some(0), "{said}");
        assert!(said.ends_with("Nothing synced was lost.\n"), "{said}");
        let journal = &bed.journals()[0];
        let whole = fs::read(journal).expect("a journal");
        // With the last write, without it, and with no record at all.
        for length in [whole.len() - 32, whole.len() - 64, 8192, 100] {
            fs::write(journal, &whole[..length]).expect("written");
            let (code, said) = bed.verify("");
            assert_eq!((code, said.as_str()), (Some(2), ""), "{length} bytes");
        }
        for journal in bed.journals() {
            fs::write(journal, "").expect("written");
        }
        let (code, said) = bed.verify("");
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("nothing was verified"), "{said}");
    }

    /// One job that syncs its writes, and one that does not: 3 files of 32 blocks for each of two
    /// workers, and a file of 32 blocks.
    const JOBS: &str = "--name=synced --rw=write --bs=4k --nrfiles=3 --filesize=128k --numjobs=2 --end_fsync=1 \
        --name=unsynced --rw=randwrite --ioengine=libaio --iodepth=8 --bsrange=4k-16k --size=128k --fallocate=none";

    #[test]
    fn what_jobs_have_synced_is_as_acknowledged_and_what_they_have_not_may_be_gone() {
        let bed = Bed::new("--power-cut drop");
        assert_eq!(bed.start_jobs(JOBS).end().code(), Some(0));
        assert_eq!(counts(&bed.audit()), [192 + 32, 0, 0, 0, 0, 0]);
        bed.cut();
        let audit = bed.audit();
        assert_eq!(counts(&audit), [192, 32, 0, 0, 0, 0]);
        assert_eq!((audit.journals, audit.is_clean()), (3, true));
        let one = bed.target().join("synced.1.2");
        let mut bytes = fs::read(&one).expect("there");
        bytes[5 * 4096 + 99] ^= 1;
        bytes[9 * 4096..10 * 4096].fill(0);
        fs::write(&one, bytes).expect("written");
        let audit = bed.audit();
        assert_eq!(counts(&audit), [190, 32, 0, 1, 1, 0]);
        let findings: Vec<_> = audit.findings.iter().map(|f| (f.offset, &f.path)).collect();
        assert_eq!(findings, [(5 * 4096, &one), (9 * 4096, &one)]);
    }

    #[test]
    fn jobs_that_are_killed_lose_nothing_that_was_synced() {
        let bed = Bed::new("--power-cut tear --seed 5");
        let options = "--name=a --rw=randwrite --norandommap --bsrange=1k-4k --size=64k --fsync=3 --numjobs=2 \
            --time_based --runtime=60 --fallocate=none --name=b --rw=write --ioengine=io_uring --iodepth=4 --bs=4k \
            --size=256k --fdatasync=8 --time_based --runtime=60";
        let mut running = bed.start_jobs(options);
        running.begun(&bed);
        bed::wait_for("records", || bed.audit().records > 100);
        running.signal(Signal::SIGKILL);
        running.end();
        bed.cut();
        let audit = bed.audit();
        assert!(audit.is_clean() && audit.journals == 3, "{audit:?}");
    }

    #[test]
    fn jobs_whose_files_are_there_already_have_no_journal() {
        let bed = Bed::new("");
        fs::write(bed.target().join("a.0.0"), "mine").expect("written");
        let options = "--name=a --rw=write --bs=4k --size=64k";
        assert_eq!(bed.start_jobs(options).end().code(), Some(1));
        assert!(bed.journals().is_empty());
        assert_eq!(
            fs::read(bed.target().join("a.0.0")).expect("there"),
            b"mine"
        );
    }

    /// Results of all scenarios.
    #[derive(Debug, Default)]
    struct Total {
        scenarios: u64,
        /// Number of scenarios with each trait.
        traits: BTreeMap<String, u64>,
        records: u64,
        /// Number of blocks of each class.
        blocks: [u64; 6],
        durable: u64,
        /// Number of blocks whose fate is known without the journal.
        witnessed: u64,
        alarms: Vec<String>,
        damage: Tally,
    }

    impl Total {
        fn add(&mut self, other: Total) {
            let Total {
                scenarios,
                traits,
                records,
                blocks,
                durable,
                witnessed,
                alarms,
                damage,
            } = other;
            self.scenarios += scenarios;
            for (name, count) in traits {
                *self.traits.entry(name).or_default() += count;
            }
            self.records += records;
            self.durable += durable;
            self.witnessed += witnessed;
            self.alarms.extend(alarms);
            self.damage.add(damage);
            for (sum, more) in self.blocks.iter_mut().zip(blocks) {
                *sum += more;
            }
        }

        fn show(&self) {
            println!("{} scenarios: {:?}", self.scenarios, self.traits);
            let classes = Class::ALL.map(Class::name);
            println!(
                "{} records; blocks {classes:?}: {:?}; durable: {}, known without the journal: {}",
                self.records, self.blocks, self.durable, self.witnessed
            );
            println!("false alarms: {}", self.alarms.len());
            println!("damage: {}", self.damage);
        }
    }

    fn play(seed: u64) -> Total {
        let mut chance = Stream::new(&[seed]);
        let scenario = Scenario::draw(&mut chance);
        let bed = Bed::new(&scenario.server());
        let before = scenario.run(&bed, &mut chance);
        let audit = bed.audit();
        let blocks = oracle::read(&bed.journals());
        let mut total = Total {
            scenarios: 1,
            traits: scenario.traits().into_iter().map(|t| (t, 1)).collect(),
            records: audit.records,
            blocks: counts(&audit),
            durable: blocks.iter().filter(|block| block.durable).count() as u64,
            ..Total::default()
        };
        let failure = |what: &dyn std::fmt::Debug| format!("seed {seed}: {what:?}: {scenario:?}");
        if scenario.harms() {
            let (done, wrong) = witness::harm(&bed, &blocks, &audit);
            total.damage.count("done while it was written", done);
            let wrong = wrong.iter().map(|what| failure(what));
            total.damage.missed.extend(wrong);
            return total;
        }
        if !audit.is_clean() {
            total.alarms.push(failure(&audit.findings));
            return total;
        }
        let (witnessed, wrong) = witness::check(&scenario, &bed, &before, &blocks, &audit);
        total.witnessed = witnessed;
        total.damage = try_all(&bed, seed, &blocks, &mut chance);
        let wrong = wrong.iter().map(|what| failure(what));
        total.damage.missed.extend(wrong);
        total
    }

    #[test]
    fn no_crash_is_blamed_for_what_it_may_leave_and_all_other_damage_is_found() {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let count = number("RBENCH_CRASH_SCENARIOS").unwrap_or(24);
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
                        let played = std::panic::catch_unwind(|| play(seed));
                        let played = played.unwrap_or_else(|_| Total {
                            alarms: vec![format!("seed {seed} could not be played")],
                            ..Total::default()
                        });
                        total.lock().expect("no panic").add(played);
                    }
                });
            }
        });
        let total = total.into_inner().expect("no panic");
        total.show();
        let Total { alarms, damage, .. } = &total;
        let missed = &damage.missed;
        assert!(
            alarms.is_empty() && missed.is_empty(),
            "false alarms: {alarms:#?}\nmissed: {missed:#?}"
        );
        assert_eq!(total.scenarios, count);
        // Checks that the scenarios covered enough.
        let [current, allowed, ..] = total.blocks;
        assert!(count < 24 || (current > 0 && allowed > 0 && total.witnessed > 0));
        assert!(count < 24 || damage.done() > 2 * count);
    }
}
