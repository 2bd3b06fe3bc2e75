//! Runs of `rbench meta` and `rbench io`: operations and their requests, all requests of a run, and a stall in an open
//! loop.

use rbench_core::Bytes;
use rbench_plan::io::Rw;
use rbench_plan::spec::{Io, Meta};

use super::*;

#[test]
fn operations_enclose_their_requests_and_lie_one_after_the_other_in_the_phase() {
    for workers in [1, 4, 16] {
        let target = slow("create=2ms,read=500us");
        let hosts = vec![0; workers];
        // Each rank has its own directory: the kernel serialises creations in a directory.
        let meta = Meta {
            depth: Some(0),
            items: Some(40),
            files_only: true,
            write: Some(Bytes(4096)),
            ..Meta::default()
        };
        let (outcome, accounts) = accounted(&target, Run::meta(&hosts, target.path(), meta));
        for (name, kind, injected) in [
            ("file-create", Kind::Create, 2 * MS),
            ("file-read", Kind::Read, MS / 2),
        ] {
            let row = outcome.row(name);
            let (requests, truth) = accounts[name].of(kind);
            let label = format!("{workers} workers, {name}");
            assert_eq!(requests, row.items, "{label}");
            assert_eq!(row.items, 40 * workers as u64, "{label}");
            assert!(truth >= Nanos(requests * injected), "{label}: {truth}");
            let spent = row.service.total();
            assert!(spent >= truth, "{label}: {spent} of requests of {truth}");
            let room = Nanos(row.elapsed.0 * workers as u64);
            assert!(spent <= room, "{label}: {spent} in {room}");
        }
        target.end();
    }
}

#[test]
fn a_whole_run_sends_the_requests_of_its_items_and_of_its_own_directories() {
    let target = mount(|_| ());
    let meta = Meta {
        items: Some(30),
        write: Some(Bytes(4096)),
        ..Meta::default()
    };
    let outcome = sound(Run::meta(&[0; 4], target.path(), meta));
    let items = |name: &str| outcome.row(name).items;
    let counted = target.fs.stats().snapshot();
    // The run's directory with its marker, and the directory of the iteration, are created and removed outside the
    // phases.
    for (kind, expect) in [
        (Kind::Mkdir, items("tree-create") + items("dir-create") + 2),
        (Kind::Rmdir, items("dir-remove") + items("tree-remove") + 2),
        (Kind::Create, items("file-create") + 1),
        (Kind::Write, items("file-create") + 1),
        (Kind::Unlink, items("file-remove") + 1),
        (Kind::Rename, items("dir-rename") + items("file-rename")),
    ] {
        let requests = counted.counts(kind).requests;
        assert_eq!(requests, expect, "{kind:?}");
    }
    let stats = items("dir-stat") + items("file-stat");
    let getattr = counted.counts(Kind::Getattr).requests;
    assert!((stats..=stats + 64).contains(&getattr), "{getattr} {stats}");
    target.end();
}

/// An open loop with 1000 reads per second, 400 in total; the 100th takes 200 ms.
pub fn stalled() -> PhaseOutcome {
    let target = mount(|config| {
        let stall = "read:stall=200ms@nth=100".parse().expect("valid");
        config.faults.push(stall);
    });
    let spec = Io {
        rw: Some(vec![Rw::RandRead]),
        block: Some(Bytes(4096)),
        size: Some(Bytes(400 * 4096)),
        direct: true,
        rate: Some(1000.0),
        ..Io::default()
    };
    let outcome = sound(Run::io(&[0], target.path(), spec));
    target.end();
    let row = outcome.row("randread");
    assert_eq!((row.items, row.unissued), (400, 0));
    row.clone()
}

#[test]
fn in_an_open_loop_all_that_is_due_during_a_stall_waits_for_its_end() {
    let row = stalled();
    assert!(row.service.max() >= Nanos(200 * MS), "one is stalled");
    let half = Nanos(100 * MS);
    assert!(at_least(&row.service, half) >= 1);
    // Operations due in the first half of the stall wait at least for the second half.
    let response = row.response.as_ref().expect("an open loop");
    let late = at_least(response, half);
    assert!(late >= 100, "{late} of {}", row.items);
}
