//! Compares reports with the counts and times of the built-in file system.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rbench_core::{Bytes, Latency, Nanos};
use rbench_plan::io::Rw;
use rbench_plan::meta::{PHASES, PhaseKind};
use rbench_plan::spec::{Io, Meta};
use rbench_testfs::Kind;

use crate::group::{Run, check_adds_up};
use crate::testfs::mount;

/// Each worker is a rank with its own directory: the kernel serialises creations in a directory.
fn files<'r>(ranks: &'r [u32], each: u64, dir: &'r std::path::Path) -> Run<'r> {
    let meta = Meta {
        depth: Some(0),
        items: Some(each),
        files_only: true,
        write: Some(Bytes(4096)),
        ..Meta::default()
    };
    Run::meta(ranks, dir, meta)
}

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

fn quantiles(latency: &Latency) -> [u64; 3] {
    QUANTILES.map(|q| latency.quantile(q).0)
}

#[test]
fn reported_latencies_enclose_what_the_file_system_measured() {
    for workers in [1, 4, 16] {
        let ranks = vec![0; workers];
        let slow = mount(|config| config.latency = "create=2ms,read=500us".parse().expect("valid"));
        let with = files(&ranks, 100, slow.path()).go().expect("runs");
        for (name, kind, injected) in [
            ("file-create", Kind::Create, 2_000_000),
            ("file-read", Kind::Read, 500_000),
        ] {
            let row = with.row(name);
            check_adds_up(row);
            check_encloses(&row.service, row.items, &slow.times(kind), injected);
        }
        slow.end();
    }
}

/// Checks that requests took at least `injected`, and operations at least as long as requests.
/// Returns the quantiles of both.
fn check_encloses(service: &Latency, items: u64, all: &Latency, injected: u64) -> [[u64; 3]; 2] {
    // Setting up also creates a file: with more values, the k-th smallest one cannot grow.
    let share = items as f64 / all.count() as f64;
    let truth = QUANTILES.map(|q| all.quantile(q * share - 1e-9).0);
    let reported = quantiles(service);
    assert!(truth[0] >= injected, "{truth:?}");
    let encloses = reported.iter().zip(&truth).all(|(one, other)| one >= other);
    assert!(encloses, "{reported:?} below {truth:?}");
    [reported, truth]
}

#[test]
fn the_file_system_counts_as_many_requests_as_the_report_has_items() {
    let target = mount(|_| ());
    let links = [PhaseKind::FileLink, PhaseKind::LinkRemove];
    let phases = PHASES.iter().filter(|info| info.by_default);
    let meta = Meta {
        items: Some(25),
        write: Some(Bytes(4096)),
        phases: Some(phases.map(|info| info.kind).chain(links).collect()),
        ..Meta::default()
    };
    let (outcome, counted) = target.count(Run::meta(&[0, 0], target.path(), meta));
    let check = |name: &str, kind: Kind| {
        let requests = counted[name].get(&kind).map_or(0, |c| c.requests);
        let row = outcome.row(name);
        // Some files are opened before the start to inspect their pages.
        let opened = match (&row.residency, kind) {
            (Some(seen), Kind::Open | Kind::Flush) => seen.total().before.files,
            _ => 0,
        };
        assert_eq!(
            requests,
            row.items + opened,
            "{name}: {kind:?} of {:?}",
            counted[name]
        );
    };
    // The run's directory and the iteration's directory are created first.
    assert_eq!(
        counted["tree-create"][&Kind::Mkdir].requests,
        outcome.row("tree-create").items + 2
    );
    check("dir-create", Kind::Mkdir);
    check("dir-stat", Kind::Getattr);
    check("dir-rename", Kind::Rename);
    check("dir-list", Kind::Opendir);
    check("dir-remove", Kind::Rmdir);
    for kind in [Kind::Create, Kind::Write, Kind::Flush] {
        check("file-create", kind);
    }
    check("file-stat", Kind::Getattr);
    for kind in [Kind::Open, Kind::Read, Kind::Flush] {
        check("file-read", kind);
    }
    check("file-rename", Kind::Rename);
    check("file-link", Kind::Link);
    check("link-remove", Kind::Unlink);
    check("file-remove", Kind::Unlink);
    check("tree-remove", Kind::Rmdir);
    assert_eq!(
        counted["file-create"][&Kind::Write].bytes,
        outcome.row("file-create").bytes
    );
    target.end();
}

#[test]
fn direct_reads_and_writes_reach_the_file_system_one_by_one() {
    let target = mount(|_| ());
    let stats = Arc::clone(target.fs.stats());
    let counts = Mutex::new(Vec::new());
    let spec = Io {
        rw: Some(vec![Rw::Write, Rw::RandRead]),
        block: Some(Bytes(4096)),
        size: Some(Bytes(1 << 20)),
        direct: true,
        ..Io::default()
    };
    let mut run = Run::io(&[0, 0], target.path(), spec);
    run.between = Box::new(|row, _| {
        let now = stats.snapshot();
        let both = (
            now.counts(Kind::Write).requests,
            now.counts(Kind::Read).requests,
        );
        counts
            .lock()
            .expect("no panic")
            .push((row.name.clone(), both));
    });
    run.go().expect("runs");
    let counts: BTreeMap<_, _> = counts.into_inner().expect("no panic").into_iter().collect();
    // The additional write is the marker of the run's directory.
    assert_eq!(counts["write"].0, 512 + 1);
    assert_eq!(counts["randread"].1 - counts["write"].1, 512);
    target.end();
}

#[test]
fn errors_of_the_file_system_are_reported_one_for_one() {
    let target = mount(|config| {
        config
            .faults
            .push("create:EIO@p=0.1".parse().expect("valid"))
    });
    let meta = Meta {
        depth: Some(0),
        items: Some(300),
        files_only: true,
        ..Meta::default()
    };
    let outcome = Run::meta(&[0, 0], target.path(), meta).go().expect("runs");
    let create = outcome.row("file-create");
    let injected = target.fs.stats().snapshot().counts(Kind::Create).errors;
    assert!(injected > 10);
    assert_eq!(
        create
            .failures
            .iter()
            .map(|(k, n, _)| (k.name(), n))
            .collect::<Vec<_>>(),
        [("EIO".into(), injected)]
    );
    assert_eq!(create.items, 600 - injected);
    assert_eq!(outcome.row("file-stat").failures.total(), injected);
    target.end();
}

#[test]
fn operations_that_were_due_and_never_started_are_counted() {
    let target = mount(|config| config.latency = "read=10ms".parse().expect("valid"));
    for (engine, depth) in [("psync", 1), ("io_uring", 4)] {
        let spec = Io {
            rw: Some(vec![Rw::RandRead]),
            block: Some(Bytes(4096)),
            size: Some(Bytes(1 << 20)),
            direct: true,
            engine: Some(engine.to_owned()),
            depth: Some(depth),
            rate: Some(1000.0),
            time: Some(Nanos(2_000_000_000)),
            ..Io::default()
        };
        let outcome = Run::io(&[0, 0], target.path(), spec).go().expect("runs");
        let row = outcome.row("randread");
        check_adds_up(row);
        // At most 201 in each of 8 slots.
        assert!(
            row.unissued > 350,
            "{engine}: {} of 2000 were served",
            row.items
        );
        assert_eq!(row.items + row.unissued, 2000, "{engine}");
    }
    target.end();
}

mod timing {
    use super::*;
    use crate::clock::tried_again;

    #[test]
    fn reported_latencies_enclose_what_the_file_system_measured() {
        tried_again(reported_latencies_enclose_what_the_file_system_measured_once);
    }

    fn reported_latencies_enclose_what_the_file_system_measured_once() {
        for workers in [1, 4, 16] {
            let ranks = vec![0; workers];
            let plain = mount(|_| ());
            let without = files(&ranks, 200, plain.path()).go().expect("runs");
            plain.end();
            let slow =
                mount(|config| config.latency = "create=2ms,read=500us".parse().expect("valid"));
            let with = files(&ranks, 200, slow.path()).go().expect("runs");
            for (name, kind, injected) in [
                ("file-create", Kind::Create, 2_000_000),
                ("file-read", Kind::Read, 500_000),
            ] {
                let row = with.row(name);
                check_adds_up(row);
                let all = slow.times(kind);
                let [reported, truth] = check_encloses(&row.service, row.items, &all, injected);
                let bare = quantiles(&without.row(name).service);
                eprintln!(
                    "{workers:2} workers {name:11} p50/p99/p99.9 ns: reported {reported:?} truth {truth:?} without {bare:?}"
                );
                // A wide limit: other tests run at the same time, and a loaded machine wakes
                // threads late.
                assert!(
                    reported[0] - truth[0] < 10_000_000,
                    "{name}: {reported:?} far above {truth:?}"
                );
                let slowest = injected as f64 / 1e9 * 200.0 * 3.0 + 1.0;
                assert!(
                    row.elapsed.as_secs_f64() < slowest,
                    "{workers} workers queued: {}",
                    row.elapsed
                );
            }
            slow.end();
        }
    }

    #[test]
    fn in_an_open_loop_a_stall_shows_in_response_times_and_not_in_the_median_service_time() {
        tried_again(
            in_an_open_loop_a_stall_shows_in_response_times_and_not_in_the_median_service_time_once,
        );
    }

    fn in_an_open_loop_a_stall_shows_in_response_times_and_not_in_the_median_service_time_once() {
        let target = mount(|config| {
            config
                .faults
                .push("read:stall=500ms@nth=1000".parse().expect("valid"))
        });
        let spec = Io {
            rw: Some(vec![Rw::RandRead]),
            block: Some(Bytes(4096)),
            size: Some(Bytes(4 << 20)),
            direct: true,
            rate: Some(1000.0),
            time: Some(Nanos(4_000_000_000)),
            ..Io::default()
        };
        let outcome = Run::io(&[0], target.path(), spec).go().expect("runs");
        let row = outcome.row("randread");
        check_adds_up(row);
        let response = row.response.as_ref().expect("open loop");
        eprintln!(
            "service {:?} response {:?}",
            quantiles(&row.service),
            quantiles(response)
        );
        assert!(row.service.max().0 >= 500_000_000);
        assert!(
            row.service.quantile(0.5).0 < 10_000_000,
            "{}",
            row.service.quantile(0.5)
        );
        assert!(
            row.service.quantile(0.99).0 < 100_000_000,
            "{}",
            row.service.quantile(0.99)
        );
        // About 500 of 4000 operations wait for the stall, uniformly from 0 to 500 ms. So a
        // percentile of the total is at (1 − 1 %·8) of it.
        let p99 = response.quantile(0.99).0;
        assert!((400_000_000..550_000_000).contains(&p99), "{}", Nanos(p99));
        target.end();
    }
}
