//! Compares the note that nothing synced a row's writes with the requests of the built-in file
//! system.

use std::ffi::OsString;

use rbench_cli::Invocation;
use rbench_core::OpKind;
use rbench_plan::spec::Workload;
use rbench_testfs::Kind;

use crate::group::Run;
use crate::testfs::mount;

/// Runs a command line of any front end on a new file system. Returns whether it wrote without an
/// fsync, and whether the rows report that.
fn unsynced(line: &str) -> (bool, bool) {
    let mount = mount(|_| ());
    let words = ["rbench"].into_iter().chain(line.split_whitespace());
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let spec = match rbench_cli::parse(&words, None) {
        Ok(Invocation::Run(spec, _)) => *spec,
        Ok(other) => panic!("{line}: {other:?}"),
        Err(stop) => panic!("{line}: {}", stop.text),
    };
    // The marker in the run's own directory is written and synced.
    let markers = u64::from(matches!(spec.workload, Workload::Meta(_) | Workload::Io(_)));
    let mut run = match spec.workload {
        Workload::Mdtest(options) => Run::mdtest(&[0], mount.path(), *options),
        Workload::Fio(jobs) => Run::fio(&[0], mount.path(), *jobs),
        Workload::Meta(meta) => Run::meta(&[0], mount.path(), meta),
        Workload::Io(io) => Run::io(&[0], mount.path(), *io),
        Workload::Ior(options) => Run::ior(&[0], mount.path(), *options),
        Workload::Ops(_) => panic!("its rows are another test's"),
        Workload::Find(_) => panic!("it writes nothing"),
        Workload::Mix(_) => panic!("its syncs are steps"),
        Workload::Replay(_) => panic!("its syncs are the trace's"),
    };
    run.common = spec.common;
    let outcome = run.go().expect("runs");
    let count = |kind| {
        let all = mount.fs.stats().snapshot();
        all.kind(kind).map_or(0, |k| k.latency.count())
    };
    let truth = count(Kind::Write) >= 4 && count(Kind::Fsync) == markers;
    let says = outcome.rows.iter().any(|row| row.unsynced);
    let wrong = outcome.rows.iter().find(|row| {
        let writes = [OpKind::Write, OpKind::WriteFile, OpKind::Create];
        row.unsynced && (row.bytes == 0 || !writes.contains(&row.op))
    });
    assert!(wrong.is_none(), "{line}: {wrong:?}");
    mount.end();
    (truth, says)
}

#[test]
fn rows_whose_writes_nothing_synced_say_so() {
    let check = |line: &str, expect: bool| {
        assert_eq!(unsynced(line), (expect, expect), "{line}");
    };
    let io = "io --bs 4k --size 64k";
    check(&format!("{io} --rw write"), false);
    check(&format!("{io} --rw write --fsync never"), true);
    check(&format!("{io} --rw write --fsync close"), true);
    check(&format!("{io} --rw write --fsync every=4"), false);
    check(
        &format!("{io} --rw write --engine null --fsync never"),
        false,
    );
    check("io --rw write,read --files 4 --file-size 4k", false);
    check(
        "io --rw write,read --files 4 --file-size 4k --fsync never",
        true,
    );
    let meta = "meta --items 4 --depth 0 --files-only";
    check(meta, false);
    check(&format!("{meta} --write 4k"), true);
    check(&format!("{meta} --write 4k --fsync"), false);
    check("mdtest -n 4 -F -w 4096", true);
    check("mdtest -n 4 -F -w 4096 -y", false);
    let fio = "fio --name=a --rw=write --bs=4k --size=64k --fallocate=none";
    check(fio, true);
    check(&format!("{fio} --end_fsync=1"), false);
    check(&format!("{fio} --fsync=3"), false);
    check(&format!("{fio} --fdatasync=3"), false);
    check(&format!("{fio} --fsync_on_close=1"), false);
}
