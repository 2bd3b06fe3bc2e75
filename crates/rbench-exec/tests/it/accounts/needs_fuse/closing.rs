//! Time of I/O jobs outside their operations: closes, and syncs at the end, on a file system with
//! known latencies of these requests.

use rbench_core::Bytes;
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::spec::Io;

use super::*;
use crate::jobs::job;

/// Minimum duration of each of these requests; no other request takes this long.
pub const SLOW: Nanos = Nanos(100 * MS);

/// Two workers, four files each.
const FIO: &str = "--name=j --rw=write --bs=4k --size=64k --nrfiles=4 --numjobs=2";

/// Three workers that write and read four blocks each, in files of their own.
pub fn write_and_read(
    target: &Mount,
    fsync: Option<FsyncRule>,
) -> (Outcome, BTreeMap<String, Account>) {
    let spec = Io {
        rw: Some(vec![Rw::Write, Rw::Read]),
        block: Some(Bytes(4096)),
        size: Some(Bytes(4 * 4096)),
        fsync,
        ..Io::default()
    };
    let mut run = Run::io(&[0], target.path(), spec);
    run.common.threads = Some(3);
    accounted(target, run)
}

/// The jobs of [`FIO`] with these options too.
pub fn fio(target: &Mount, more: &str) -> Outcome {
    sound(job(&[0], target.path(), &format!("{FIO} {more}")))
}

/// Checks that the row `name` has `items` operations, each with at least the known duration, and
/// returns its label. The row may be missing only if it is less than 1 % of the workers' time,
/// which is taken from the row `transfers`.
fn check_slow(outcome: &Outcome, name: &str, items: u64, transfers: &str) -> Option<String> {
    let Some(row) = outcome.rows.iter().find(|row| row.name == name) else {
        let effort = outcome.row(transfers).effort;
        let time = effort.active.0 + effort.waited.0;
        assert!(time >= 99 * items * SLOW.0, "{name}: there is no row");
        return None;
    };
    assert_eq!(row.items, items, "{name}");
    let shortest = row.service.min();
    assert!(shortest >= SLOW, "{name}: {shortest}");
    Some(row.label.clone())
}

fn requests(target: &Mount, kind: Kind) -> u64 {
    target.fs.stats().snapshot().counts(kind).requests
}

#[test]
fn the_time_of_closes_has_a_row_of_its_own_for_each_phase() {
    let target = slow("flush=100ms");
    let (outcome, accounts) = write_and_read(&target, None);
    for (phase, label) in [
        ("write", "Sequential write: closing"),
        ("read", "Sequential read: closing"),
    ] {
        let shown = check_slow(&outcome, &format!("{phase}-closing"), 3, phase);
        assert!(shown.is_none_or(|shown| shown == label));
        assert_eq!(outcome.row(phase).items, 3 * 4, "closes are not among them");
        let (flushes, time) = accounts[phase].of(Kind::Flush);
        assert_eq!(flushes, 3, "{phase}");
        assert!(time.0 >= 3 * SLOW.0, "{phase}: {time}");
    }
    target.end();
}

#[test]
fn the_time_of_closes_has_a_row_for_each_of_fios_jobs() {
    let target = slow("flush=100ms");
    let outcome = fio(&target, "");
    check_slow(&outcome, "j-closing", 8, "j-write");
    assert_eq!(outcome.row("j-write").items, 2 * 16);
    assert!(requests(&target, Kind::Flush) >= 8);
    target.end();
}

#[test]
fn closes_in_the_time_of_the_job_have_their_row_and_no_other() {
    let target = slow("flush=100ms");
    let (outcome, _) = write_and_read(&target, Some(FsyncRule::Close));
    let close = outcome.row("write-close");
    assert_eq!(close.items, 3);
    assert!(close.service.min() >= SLOW, "{}", close.service.min());
    let names: Vec<&str> = outcome.rows.iter().map(|row| row.name.as_str()).collect();
    assert!(!names.contains(&"write-closing"), "{names:?}");
    target.end();
}

#[test]
fn a_failed_close_in_the_time_of_the_job_is_no_failed_write() {
    let spec = Io {
        rw: Some(vec![Rw::Write]),
        block: Some(Bytes(4096)),
        size: Some(Bytes(4 * 4096)),
        fsync: Some(FsyncRule::Close),
        ..Io::default()
    };
    let target = mount(|_| ());
    let run = Run::io(&[0], target.path(), spec.clone());
    let (_, accounts) = accounted(&target, run);
    let last = accounts["write"].after.counts(Kind::Flush).requests;
    target.end();
    let fault = format!("flush:EIO@nth={last}");
    let target = mount(|config| config.faults = vec![fault.parse().expect("a fault")]);
    let run = Run::io(&[0], target.path(), spec);
    let outcome = run.go().expect("runs");
    let failed = |name: &str| outcome.row(name).failures.total();
    assert_eq!((failed("write"), failed("write-close")), (0, 1));
    target.end();
}

#[test]
fn syncs_at_the_end_have_a_row_with_as_many_as_the_file_system_got() {
    for more in ["--end_fsync=1", "--fsync_on_close=1"] {
        let target = slow("fsync=100ms");
        let outcome = fio(&target, more);
        let syncs = requests(&target, Kind::Fsync);
        assert_eq!(syncs, 8, "{more}");
        check_slow(&outcome, "j-flush", syncs, "j-write");
        assert_eq!(outcome.row("j-write").items, 2 * 16, "{more}");
        target.end();
    }
}

#[test]
fn closes_and_syncs_that_take_no_time_have_no_row() {
    let target = mount(|_| ());
    let (io, _) = write_and_read(&target, None);
    let fio = fio(&target, "--end_fsync=1");
    for row in io.rows.iter().chain(&fio.rows) {
        let aside =
            ["write-closing", "read-closing", "j-closing", "j-flush"].contains(&row.name.as_str());
        // On a slow machine they may take long enough for a row.
        let long = row.service.total() > Nanos(100 * MS);
        assert!(!aside || long, "{}: {}", row.name, row.service.total());
    }
    target.end();
}
