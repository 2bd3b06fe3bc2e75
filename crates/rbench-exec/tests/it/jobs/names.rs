//! Tests the engines of names: one operation per file, entries created beforehand, and entries that
//! remain, like with fio 3.33.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use nix::errno::Errno;
use rbench_core::OpKind;
use rbench_core::operations::NameEngine;
use rbench_sys::engine;
use rbench_testfs::Kind;

use super::*;

const ENGINES: [&str; 6] = [
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
];

fn line(engine: &str, more: &str) -> String {
    format!("--name=a --ioengine={engine} --filesize=16k --bs=4k --nrfiles=10 {more}")
}

/// Names in `dir` that start with `a.`.
fn own(dir: &Path) -> usize {
    listing(dir).keys().filter(|n| n.starts_with("a.")).count()
}

#[test]
fn every_engine_of_names_is_there_and_known_to_the_plan() {
    for name in ENGINES {
        assert!(NameEngine::named(name).is_some(), "{name}");
        let info = engine::find(name).expect("it is there");
        assert!(
            !info.moves_data && info.uses_files && info.of_names,
            "{name}"
        );
    }
    for info in engine::ENGINES {
        let known = NameEngine::named(info.name).is_some();
        assert_eq!(known, info.of_names, "{}", info.name);
    }
}

#[test]
fn each_file_is_one_operation_of_its_own_kind_without_bytes() {
    for (engine, row, op, left) in [
        ("filecreate", "a-create", OpKind::Create, 10),
        ("filestat", "a-stat", OpKind::Stat, 10),
        ("filedelete", "a-unlink", OpKind::Unlink, 0),
        ("dircreate", "a-mkdir", OpKind::Mkdir, 10),
        ("dirstat", "a-stat", OpKind::Stat, 10),
        ("dirdelete", "a-rmdir", OpKind::Rmdir, 0),
    ] {
        for (rw, reads) in [("read", true), ("randwrite", false), ("rw", true)] {
            let dir = tempdir();
            let line = line(engine, &format!("--rw={rw}"));
            let outcome = run_well(dir.path(), &line);
            let counted = outcome.row(row);
            assert_eq!(
                (counted.op, counted.items, counted.bytes),
                (op, 10, 0),
                "{line}"
            );
            let all = 160 * KIB;
            let expect = match reads {
                true => (10, all, 0, 0),
                false => (0, 0, 10, all),
            };
            assert_eq!(counts(&outcome), expect, "{line}");
            assert_eq!(own(dir.path()), left, "{line}");
        }
    }
}

#[test]
fn what_is_made_is_private_and_empty_and_what_is_looked_at_is_laid_out() {
    let dir = tempdir();
    let mode = |name: &str| {
        let metadata = fs::metadata(dir.path().join(name)).expect("it is there");
        (metadata.is_dir(), metadata.permissions().mode() & 0o777)
    };
    run_well(dir.path(), &line("filecreate", ""));
    assert_eq!(listing(dir.path())["a.0.3"], 0);
    assert_eq!(mode("a.0.3"), (false, 0o600));
    let dirs = "--filename_format=d.$filenum";
    run_well(dir.path(), &line("dircreate", dirs));
    assert_eq!(mode("d.3"), (true, 0o700));
    run_well(dir.path(), &line("filestat", ""));
    assert_eq!(listing(dir.path())["a.0.3"], 16 * KIB, "as fio does");
}

#[test]
fn workers_of_all_ranks_have_names_of_their_own() {
    let dir = tempdir();
    for (engine, row, left) in [
        ("filecreate", "a-create", 60),
        ("filestat", "a-stat", 60),
        ("filedelete", "a-unlink", 0),
    ] {
        let line = line(engine, "--numjobs=2 --group_reporting");
        let outcome = run_on(&[0, 1, 2], dir.path(), &line);
        check_sound(&outcome, &line);
        let counted = outcome.row(row);
        assert_eq!((counted.items, counted.ranks.len()), (60, 3), "{line}");
        assert_eq!(own(dir.path()), left, "{line}");
    }
}

#[test]
fn passes_go_over_the_same_names_again() {
    let dir = tempdir();
    let outcome = run_well(dir.path(), &line("filestat", "--loops=3"));
    assert_eq!(outcome.row("a-stat").items, 30);
    let outcome = run_well(dir.path(), &line("filestat", "--number_ios=4"));
    assert_eq!(outcome.row("a-stat").items, 4);
    let outcome = run_well(dir.path(), &line("filestat", "--io_size=48k"));
    assert_eq!(outcome.row("a-stat").items, 3);
    let outcome = run_well(dir.path(), &line("filestat", "--file_service_type=random"));
    assert_eq!(outcome.row("a-stat").items, 10);
    let timed = "--time_based --runtime=10m";
    let outcome = run(dir.path(), &line("filedelete", timed));
    let row = outcome.row("a-unlink");
    assert_eq!((row.items, row.failures.total()), (10, 1));
    assert_eq!(only(&outcome).error, Errno::ENOENT as i32, "as with fio");
}

#[test]
fn errors_are_counted_by_errno() {
    let dir = tempdir();
    fs::create_dir(dir.path().join("a.0.4")).expect("made");
    let outcome = run(dir.path(), &line("dircreate", ""));
    let row = outcome.row("a-mkdir");
    assert_eq!((row.items, row.failures.total()), (4, 1));
    assert_eq!(only(&outcome).error, Errno::EEXIST as i32);
    let others = "--create_on_open=1 --rw=write --ignore_error=,ENOENT";
    let outcome = run(dir.path(), &line("filestat", others));
    let row = outcome.row("a-stat");
    assert_eq!((row.items, row.failures.total()), (5, 5));
    assert_eq!(only(&outcome).first_error, Errno::ENOENT as i32);
    // No entry was created before the run, and none is created.
    assert_eq!(own(dir.path()), 5);
}

#[test]
fn what_the_job_has_made_is_removed_if_that_is_asked_for() {
    for engine in ENGINES {
        let dir = tempdir();
        run_well(dir.path(), &line(engine, "--unlink=1"));
        assert_eq!(listing(dir.path()).len(), 0, "{engine}");
        // Names of the user's stay if they were there.
        let made: fn(&Path) =
            match NameEngine::named(engine).is_some_and(NameEngine::of_directories) {
                true => |path| fs::create_dir(path).expect("made"),
                false => |path| fs::write(path, "kept").expect("written"),
            };
        made(&dir.path().join("x"));
        let given = "--unlink=1 --filename=x:y --ignore_error=EEXIST";
        let outcome = run(dir.path(), &line(engine, given));
        let removes = NameEngine::named(engine).is_some_and(NameEngine::removes);
        let names: Vec<String> = listing(dir.path()).into_keys().collect();
        let expect: &[&str] = if removes { &[] } else { &["x"] };
        assert_eq!(names, expect, "{engine}: {:?}", outcome.rows);
    }
}

#[test]
fn nothing_is_made_or_removed_by_way_of_a_symbolic_link() {
    let dir = tempdir();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("kept"), "kept").expect("written");
    fs::create_dir(at("folder")).expect("made");
    for (name, target) in [("a", "kept"), ("b", "nowhere"), ("c", "folder")] {
        symlink(target, at(name)).expect("made");
    }
    for engine in ["filedelete", "dirdelete", "filecreate"] {
        for name in ["a", "b", "c"] {
            let given = format!("--name=j --ioengine={engine} --filesize=4k --filename={name}");
            // Before the run, or as the error of the operation.
            if let Ok(outcome) = job(&[0], dir.path(), &given).go() {
                assert!(
                    outcome.trouble.is_some() || only(&outcome).error != 0,
                    "{given}: {:?}",
                    outcome.rows
                );
            }
        }
    }
    let names: Vec<String> = listing(dir.path()).into_keys().collect();
    assert_eq!(names, ["a", "b", "c", "folder", "kept"]);
    assert_eq!(data(dir.path(), "kept"), b"kept");
}

#[test]
fn files_without_a_size_are_taken_as_they_are() {
    let dir = tempdir();
    for n in 0..10 {
        fs::write(dir.path().join(format!("a.0.{n}")), "short").expect("written");
    }
    let line = "--name=a --nrfiles=10 --ioengine=filestat";
    let outcome = run_well(dir.path(), line);
    assert_eq!(counts(&outcome), (10, 40 * KIB, 0, 0));
    assert_eq!(listing(dir.path())["a.0.7"], 5, "none was made longer");
    let outcome = run(dir.path(), "--name=b --nrfiles=10 --ioengine=filestat");
    assert_eq!(only(&outcome).error, Errno::ENOENT as i32);
    assert_eq!(listing(dir.path()).len(), 10, "none was made");
}

#[test]
fn what_names_do_not_have_is_refused() {
    let dir = tempdir();
    for (engine, more, expect) in [
        (
            "filestat",
            "--rw=write --verify=crc32c",
            "verify: ioengine=filestat",
        ),
        ("filestat", "--pre_read=1", "pre_read: ioengine=filestat"),
        (
            "filecreate",
            "--rw=write --fsync=1",
            "fsync: ioengine=filecreate",
        ),
        ("filedelete", "--loops=2", "loops=2: ioengine=filedelete"),
        ("dircreate", "--loops=2", "loops=2: ioengine=dircreate"),
        (
            "filecreate",
            "--allow_file_create=0",
            "allow_file_create=0: ioengine=filecreate",
        ),
        (
            "filecreate",
            "--stat_type=lstat",
            "stat_type belongs to ioengine filestat, dirstat",
        ),
        ("filedelete", "--readonly", "which --readonly forbids"),
    ] {
        let planned = job(&[0], dir.path(), &line(engine, more)).plan();
        let why = planned.expect_err("it is refused").to_string();
        assert!(why.contains(expect), "{engine} {more}: {why}");
    }
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn the_file_systems_own_account_has_each_operation_once() {
        let target = mount(|_| {});
        for (engine, more, kind) in [
            ("filecreate", "", Kind::Create),
            ("filedelete", "--create_on_open=1", Kind::Unlink),
            ("dircreate", "", Kind::Mkdir),
            ("dirdelete", "--create_on_open=1", Kind::Rmdir),
        ] {
            let requests = || target.fs.stats().snapshot().counts(kind).requests;
            let before = requests();
            run_well(target.path(), &line(engine, more));
            assert_eq!(requests() - before, 10, "{engine}");
        }
        target.end();
    }
}
