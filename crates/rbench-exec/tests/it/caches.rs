//! Compares cache verdicts with the built-in file system with known cache settings: with its
//! request counts between the start of each phase and its row, and with what the settings imply.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rbench_core::outcome::{Cache, PhaseOutcome};
use rbench_core::residency::{LARGEST_REQUEST, Pages, Residency, Verdict};
use rbench_core::{Bytes, Nanos, OpKind};
use rbench_plan::io::{Layout, Rw};
use rbench_plan::spec::{Io, Mdtest, Meta};
use rbench_testfs::{Config, Kind};

use crate::group::{Outcome, Run};
use crate::jobs;

fn looked(row: &PhaseOutcome) -> &Residency {
    let residency = row.residency.as_ref();
    residency.unwrap_or_else(|| panic!("{} was not looked at", row.name))
}

#[test]
fn who_made_the_items_is_counted_for_each_phase() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mdtest = Mdtest {
        items: Some(6),
        unique_dir: true,
        stride: Some(1),
        ..Mdtest::default()
    };
    let outcome = Run::mdtest(&[0, 1], dir.path(), mdtest).go().expect("runs");
    let known = |name: &str| {
        let shares = looked(outcome.row(name)).caches.iter().map(|c| c.share);
        let shares: Vec<_> = shares.map(|share| share.expect("known")).collect();
        shares.iter().map(|s| (s.made, s.parts)).collect::<Vec<_>>()
    };
    // mdtest reads at twice the stride: with two hosts, every rank reads its own files.
    assert_eq!(known("file-stat"), [(0, 1), (0, 1)]);
    assert_eq!(known("file-read"), [(1, 1), (1, 1)]);
}

#[test]
fn an_engine_that_asks_nothing_is_not_looked_at() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let io = Io {
        rw: Some(vec![Rw::Read]),
        engine: Some("null".to_owned()),
        ..Io::default()
    };
    let outcome = Run::io(&[0], dir.path(), io).go().expect("runs");
    assert_eq!(outcome.row("read").residency, None);
    let line = "--name=a --rw=read --bs=4k --size=64k --ioengine=null";
    let outcome = jobs::job(&[0], dir.path(), line).go().expect("runs");
    assert_eq!(outcome.rows[0].residency, None);
}

mod needs_fuse {
    use super::*;
    use crate::testfs::{Mount, mount};

    /// Requests by kind.
    type Account = BTreeMap<&'static str, u64>;

    /// Kinds of requests with a waiting caller; other requests may arrive late.
    const WAITED_FOR: [Kind; 6] = [
        Kind::Lookup,
        Kind::Getattr,
        Kind::Open,
        Kind::Read,
        Kind::Readdir,
        Kind::Opendir,
    ];

    /// Practically forever.
    const LONG: Nanos = Nanos(3_600_000_000_000);

    /// A row, and the file system's request counts from the start of the phase to the row.
    type Row = (PhaseOutcome, Account);

    /// Executes a run, and pairs each row with the file system's request counts.
    fn rows(mount: &Mount, run: Run<'_>) -> Vec<Row> {
        let stats = Arc::clone(mount.fs.stats());
        let before = Arc::new(Mutex::new(stats.snapshot()));
        let all = Mutex::new(Vec::new());
        let run = Run {
            began: Some(Arc::new({
                let (stats, before) = (Arc::clone(&stats), Arc::clone(&before));
                move |_: &str| *before.lock().expect("no panic") = stats.snapshot()
            })),
            between: Box::new(|row, _| {
                let since = stats.snapshot();
                let since = since.since(&before.lock().expect("no panic"));
                let of = |kind: &Kind| since.get(kind).map(|counts| (kind.name(), counts.requests));
                let account = WAITED_FOR.iter().filter_map(of).collect();
                all.lock().expect("no panic").push((row.clone(), account));
            }),
            ..run
        };
        let outcome: Outcome = run.go().expect("runs");
        for row in &outcome.rows {
            assert!(row.failures.is_empty(), "{}: {:?}", row.name, row.failures);
        }
        all.into_inner().expect("no panic")
    }

    /// The report's request counts, of the kinds with a waiting caller.
    fn counted(row: &PhaseOutcome) -> Account {
        let total = looked(row).total();
        let requests = total.requests.unwrap_or_else(|| panic!("{}", row.name));
        let of = |kind: &Kind| Some((kind.name(), *requests.by_kind.get(kind.name())?));
        WAITED_FOR.iter().filter_map(of).collect()
    }

    /// Number of items that were opened before the phase to inspect their pages.
    fn opened_to_look(row: &PhaseOutcome) -> u64 {
        match row.op {
            OpKind::ReadFile => looked(row).total().before.files,
            _ => 0,
        }
    }

    /// All combinations: attributes and names valid for no time, a second or forever; pages dropped
    /// by each open or kept.
    fn settings() -> Vec<(Nanos, bool)> {
        let times = [Nanos(0), Nanos::SECOND, LONG];
        times
            .into_iter()
            .flat_map(|time| [(time, false), (time, true)])
            .collect()
    }

    fn with(time: Nanos, keep: bool) -> Mount {
        mount(|config: &mut Config| {
            (config.attr_timeout, config.entry_timeout) = (time, time);
            config.keep_cache = keep;
        })
    }

    /// Two ranks of one host, private trees, files of 16 KiB.
    fn meta() -> Meta {
        Meta {
            depth: Some(1),
            branch: Some(2),
            items: Some(20),
            write: Some(Bytes(16 << 10)),
            ..Meta::default()
        }
    }

    /// Checks that every row that requires it has counts, and that they equal the file system's.
    fn check_equal(context: &str, rows: &[Row]) {
        let asking = |row: &PhaseOutcome| {
            matches!(
                row.op,
                OpKind::Stat | OpKind::List | OpKind::ReadFile | OpKind::Read
            )
        };
        let mut seen = 0;
        for (row, own) in rows.iter().filter(|(row, _)| asking(row)) {
            let ours = counted(row);
            let mut own = own.clone();
            if row.op == OpKind::Read {
                // Files were opened in between.
                own.retain(|kind, _| *kind == "read");
                assert_eq!(ours.get("read"), own.get("read"), "{context}: {}", row.name);
            } else if opened_to_look(row) == 0 {
                assert_eq!(ours, own, "{context}: {}", row.name);
            } else {
                assert_eq!(ours.get("read"), own.get("read"), "{context}: {}", row.name);
                let opens = |account: &Account| account.get("open").copied().unwrap_or(0);
                assert_eq!(
                    opens(&ours) + opened_to_look(row),
                    opens(&own),
                    "{context}: {}",
                    row.name
                );
            }
            seen += 1;
        }
        assert!(seen > 0, "{context}: no row asked for anything");
    }

    #[test]
    fn requests_are_those_that_the_file_system_counted_in_every_command() {
        for (time, keep) in settings() {
            let mount = with(time, keep);
            let context = format!("time-outs {time}, pages kept: {keep}");
            check_equal(
                &format!("{context}: meta"),
                &rows(&mount, Run::meta(&[0, 0], mount.path(), meta())),
            );
            let mdtest = Mdtest {
                items: Some(20),
                write_bytes: Some(Bytes(8192)),
                read_bytes: Some(Bytes(8192)),
                unique_dir: true,
                stride: Some(1),
                ..Mdtest::default()
            };
            check_equal(
                &format!("{context}: mdtest"),
                &rows(&mount, Run::mdtest(&[0, 0], mount.path(), mdtest)),
            );
            let io = Io {
                rw: Some(vec![Rw::Write, Rw::Read, Rw::RandRead]),
                block: Some(Bytes(8192)),
                size: Some(Bytes(1 << 20)),
                ..Io::default()
            };
            check_equal(
                &format!("{context}: io"),
                &rows(&mount, Run::io(&[0, 0], mount.path(), io)),
            );
            let line = "--name=a --rw=randread --bs=4k --size=512k --numjobs=2 --invalidate=0";
            check_equal(
                &format!("{context}: fio"),
                &rows(&mount, jobs::job(&[0, 0], mount.path(), line)),
            );
            mount.end();
        }
    }

    fn verdict(row: &PhaseOutcome) -> Verdict {
        looked(row).verdict(row.op).0
    }

    fn row<'r>(rows: &'r [Row], name: &str) -> &'r PhaseOutcome {
        let entry = rows.iter().find(|(row, _)| row.name == name);
        &entry.unwrap_or_else(|| panic!("no row {name}")).0
    }

    /// Requests per operation, as the report defines them.
    fn per_operation(row: &PhaseOutcome) -> f64 {
        let total = looked(row).total();
        let requests = total.requests.expect("they are counted");
        requests.answering(row.op, total.returned == 0) as f64 / total.asked as f64
    }

    /// A file of 4 MiB written, then read from front to back.
    fn written_and_read(time: Nanos, keep: bool, block: u64) -> PhaseOutcome {
        let mount = with(time, keep);
        let io = Io {
            rw: Some(vec![Rw::Write, Rw::Read]),
            block: Some(Bytes(block)),
            size: Some(Bytes(4 << 20)),
            ..Io::default()
        };
        let rows = rows(&mount, Run::io(&[0], mount.path(), io));
        mount.end();
        row(&rows, "read").clone()
    }

    #[test]
    fn what_time_reads_again_is_cold_once() {
        let mount = with(LONG, true);
        let io = Io {
            rw: Some(vec![Rw::Read]),
            block: Some(Bytes(16 << 10)),
            size: Some(Bytes(256 << 10)),
            time: Some(Nanos(1_500_000)),
            layout: Some(Layout::PerWorker),
            ..Io::default()
        };
        let run = Run::io(&[0], mount.path(), io).stepped(1_000);
        let rows = rows(&mount, run);
        mount.end();
        let read = row(&rows, "read");
        let round = looked(read).round.expect("16 blocks are read in less");
        assert_eq!(round.once, 16);
        assert_eq!(round.done, read.items);
        assert!(read.items > 700, "{}", read.items);
        assert!(round.after < read.elapsed, "{round:?}");
    }

    #[test]
    fn each_job_of_a_group_has_what_its_own_workers_saw() {
        let mount = with(LONG, true);
        let line = "--bs=4k --invalidate=0 --name=a --rw=read --size=64k --name=b --rw=randread \
                --size=128k --numjobs=2";
        let rows = rows(&mount, jobs::job(&[0], mount.path(), line));
        mount.end();
        for (name, operations, files) in [("a-read", 16, 1), ("b-read", 64, 2)] {
            let total = looked(row(&rows, name)).total();
            assert_eq!((total.operations, total.asked), (operations, 80), "{name}");
            assert_eq!(total.before.files, files, "{name}");
        }
    }

    #[test]
    fn what_was_read_in_the_ramp_is_no_verdict_on_what_came_after() {
        let mount = with(LONG, true);
        // The ramp fetches all blocks, with as many requests as are counted later.
        let line = "--bs=4k --size=64k --rate_iops=200 --time_based --ramp_time=300ms --runtime=80ms \
                --name=a --rw=randread";
        let io = Io {
            rw: Some(vec![Rw::RandRead]),
            block: Some(Bytes(4 << 10)),
            size: Some(Bytes(64 << 10)),
            rate: Some(200.0),
            ramp: Some(Nanos(300_000_000)),
            time: Some(Nanos(80_000_000)),
            ..Io::default()
        };
        let of_fio = jobs::job(&[0], mount.path(), line).stepped(1_000);
        let of_fio = rows(&mount, of_fio);
        let of_io = Run::io(&[0], mount.path(), io).stepped(1_000);
        let of_io = rows(&mount, of_io);
        mount.end();
        for row in [row(&of_fio, "a-read"), row(&of_io, "randread")] {
            let total = looked(row).total();
            assert_eq!((total.operations, total.asked), (16, 16), "{total:?}");
            assert_eq!(
                (total.requests, total.fetched),
                (None, None),
                "{}",
                row.name
            );
            let known = verdict(row);
            assert!(
                matches!(known, Verdict::Unknown | Verdict::Perhaps),
                "{known:?}"
            );
        }
    }

    #[test]
    fn the_job_that_verifies_is_the_one_that_is_said_to() {
        let mount = with(LONG, true);
        let line = "--bs=4k --size=64k --name=a --rw=read --name=b --rw=write --verify=crc32c \
                --name=null --rw=read --ioengine=null";
        let rows = rows(&mount, jobs::job(&[0], mount.path(), line));
        mount.end();
        let verifies = |name| row(&rows, name).residency.as_ref().map(|r| r.verifies);
        assert_eq!(verifies("a-read"), Some(false));
        assert_eq!(verifies("b-read"), Some(true));
    }

    /// Stats of files whose names and attributes are valid for `time`.
    fn stats(time: Nanos) -> PhaseOutcome {
        let mount = with(time, false);
        // Writes make the kernel ask for the attributes again.
        let meta = Meta {
            write: None,
            ..meta()
        };
        let rows = rows(&mount, Run::meta(&[0, 0], mount.path(), meta));
        mount.end();
        row(&rows, "file-stat").clone()
    }

    /// 200 small files, read.
    fn small_files_read(keep: bool) -> PhaseOutcome {
        let mount = with(LONG, keep);
        let meta = Meta {
            depth: Some(0),
            items: Some(200),
            files_only: true,
            write: Some(Bytes(8192)),
            ..Meta::default()
        };
        let rows = rows(&mount, Run::meta(&[0], mount.path(), meta));
        mount.end();
        row(&rows, "file-read").clone()
    }

    /// Checks that the verdict follows from the requests that the row's operations made. The
    /// kernel, and other programs, may drop all or some of the pages at any time, which affects
    /// both.
    fn check_verdict(row: &PhaseOutcome) {
        let (known, total) = (verdict(row), looked(row).total());
        // Of a file that is read in blocks, a request may answer many operations.
        let most = match row.op {
            OpKind::Read => {
                let largest = LARGEST_REQUEST as f64 / total.returned as f64;
                per_operation(row) * total.asked as f64 * largest
            }
            _ => per_operation(row),
        };
        let partly = (1..total.before.pages).contains(&total.before.cached);
        let right = match known {
            Verdict::Memory => most < 0.05,
            Verdict::Mixed => most > 0.0 && (partly || most < 1.0),
            Verdict::Perhaps => most > 0.0,
            _ => false,
        };
        assert!(right, "{}: {known:?}: {:?}", row.name, looked(row));
    }

    #[test]
    fn what_made_no_request_came_from_memory() {
        let none = stats(Nanos(0));
        // Lookups of the path's two directories and of the file.
        assert!(per_operation(&none) >= 1.0, "{none:?}");
        check_verdict(&none);
        check_verdict(&stats(LONG));
        for block in [4096, 128 << 10, 1 << 20] {
            let kept = written_and_read(LONG, true, block);
            assert_eq!(looked(&kept).total().before.pages, 1024);
            check_verdict(&kept);
            let dropped = written_and_read(LONG, false, block);
            let total = looked(&dropped).total();
            assert_eq!((total.before.pages, total.before.cached), (1024, 0));
            assert!(per_operation(&dropped) > 0.0, "{block}");
            assert_eq!(total.fetched, None, "another process reads");
            check_verdict(&dropped);
        }
    }

    #[test]
    fn small_files_are_looked_at_in_a_sample() {
        for keep in [true, false] {
            let read = small_files_read(keep);
            let before = looked(&read).total().before;
            assert_eq!((before.files, before.of, before.pages), (3, 200, 6));
            check_verdict(&read);
            if !keep {
                assert_eq!(before.cached, 0);
                // A page that is dropped before it is copied is read again.
                let asked = per_operation(&read);
                assert!((1.0..1.5).contains(&asked), "{asked} reads for each file");
            }
        }
    }

    /// Dropping the machine's caches meanwhile also drops names and pages.
    mod timing {
        use super::*;
        use crate::clock::tried_again;

        #[test]
        fn without_caches_every_stat_is_a_request_and_with_them_none_is() {
            tried_again(|| {
                let none = stats(Nanos(0));
                // Lookups of the path's two directories and of the file.
                assert!(per_operation(&none) >= 1.0, "{none:?}");
                assert_eq!(verdict(&none), Verdict::Perhaps, "the client may remember");
                let all = stats(LONG);
                assert_eq!(per_operation(&all), 0.0, "{:?}", looked(&all));
                assert_eq!(verdict(&all), Verdict::Memory);
                assert_eq!(all.cache, Some(Cache::Warm));
            });
        }

        #[test]
        fn kept_pages_answer_reads_of_any_size_and_dropped_ones_none() {
            tried_again(kept_pages_answer_reads_of_any_size_and_dropped_ones_none_once);
        }

        fn kept_pages_answer_reads_of_any_size_and_dropped_ones_none_once() {
            for block in [4096, 128 << 10, 1 << 20] {
                let kept = written_and_read(LONG, true, block);
                let total = looked(&kept).total();
                let whole = Pages {
                    files: 1,
                    of: 1,
                    pages: 1024,
                    cached: 1024,
                };
                assert_eq!((total.before, total.after), (whole, whole));
                assert_eq!(per_operation(&kept), 0.0, "{block}");
                assert_eq!(verdict(&kept), Verdict::Memory, "{block}");
                let dropped = written_and_read(LONG, false, block);
                let total = looked(&dropped).total();
                assert_eq!((total.before.pages, total.before.cached), (1024, 0));
                assert!(total.after.cached > 0, "{:?}", total.after);
                assert!(per_operation(&dropped) > 0.0, "{block}");
                assert_eq!(verdict(&dropped), Verdict::Perhaps, "{block}");
                assert_eq!(total.fetched, None, "another process reads");
            }
        }

        #[test]
        fn small_files_are_looked_at_in_a_sample() {
            tried_again(|| {
                let kept = small_files_read(true);
                let total = looked(&kept).total();
                let sample = Pages {
                    files: 3,
                    of: 200,
                    pages: 6,
                    cached: 6,
                };
                assert_eq!(total.before, sample);
                assert_eq!(verdict(&kept), Verdict::Memory);
                let dropped = small_files_read(false);
                assert_eq!(looked(&dropped).total().before.cached, 0);
                assert_eq!(per_operation(&dropped), 1.0, "a read for each file");
            });
        }
    }
}
