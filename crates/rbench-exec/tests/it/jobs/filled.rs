//! Tests full file systems, removal of files between passes, and syncs of ranges and of file
//! systems.

use rbench_core::Bytes;
use rbench_testfs::Kind;

use super::*;

#[test]
fn filling_has_to_be_writing_in_sequence() {
    let dir = tempdir();
    for more in [
        "--rw=read",
        "--rw=randwrite",
        "--rw=rw",
        "--rw=write --overwrite=1",
    ] {
        let line = format!("--name=x --fill_fs=1 {more}");
        let planned = job(&[0], dir.path(), &line).plan();
        let why = planned.expect_err("it is refused").to_string();
        assert!(why.contains("fill_device"), "{line}: {why}");
    }
}

#[test]
fn ranges_are_synced_after_so_many_writes_and_counted() {
    let dir = tempdir();
    let line = "--name=x --rw=write --size=64k --bs=4k --sync_file_range=wait_before,write:4";
    let outcome = run_well(dir.path(), line);
    assert_eq!(outcome.row("x-write").items, 16);
    assert_eq!(
        (outcome.row("x-sync").items, only(&outcome).sync.count()),
        (3, 3)
    );
    let line = "--name=y --rw=write --size=64k --bs=4k --sync_file_range=write:0";
    let outcome = run_well(dir.path(), line);
    assert!(outcome.rows.iter().all(|row| row.name != "y-sync"));
}

#[test]
fn one_call_for_each_file_system_ends_the_writes() {
    let dir = tempdir();
    let line = "--name=x --rw=write --size=64k --nrfiles=4 --end_syncfs=1 --openfiles=2";
    let outcome = run_well(dir.path(), line);
    assert_eq!(only(&outcome).sync.count(), 0, "as with end_fsync");
    assert_eq!(listing(dir.path()).len(), 4);
}

mod needs_fuse {
    use super::*;
    use crate::testfs::mount;

    #[test]
    fn a_file_system_is_filled_and_being_full_is_no_error() {
        for more in [
            "",
            "--size=1g",
            "--nrfiles=3",
            "--end_fsync=1",
            "--numjobs=2",
            "--verify=crc32c",
        ] {
            let target = mount(|config| config.quota = Some(Bytes(MIB)));
            let line = format!(
                "--name=x --rw=write --bs=64k --fill_device=1 {more} --verify_state_save=0"
            );
            let outcome = run(target.path(), &line);
            check_sound(&outcome, &line);
            assert_eq!(outcome.row("x-write").bytes, MIB, "{line}");
            let written: u64 = listing(target.path()).values().sum();
            assert_eq!(written, MIB, "{line}");
            target.end();
        }
    }

    #[test]
    fn files_are_removed_between_passes_and_not_behind_the_last() {
        let target = mount(|_| {});
        let requests = |kind| target.fs.stats().snapshot().counts(kind).requests;
        let line = "--name=x --rw=write --size=64k --nrfiles=2 --loops=3 --unlink_each_loop=1 \
                --fallocate=none --create_on_open=1";
        run_well(target.path(), line);
        assert_eq!((requests(Kind::Create), requests(Kind::Unlink)), (6, 4));
        assert_eq!(listing(target.path()).len(), 2);
        // Every pass creates the files again.
        let line = "--name=n --ioengine=dircreate --filesize=4k --nrfiles=5 --loops=3 \
                --unlink_each_loop=1";
        let outcome = run_well(target.path(), line);
        assert_eq!(outcome.row("n-mkdir").items, 15);
        assert_eq!((requests(Kind::Mkdir), requests(Kind::Rmdir)), (15, 10));
        // A reading job does not find them in the second pass, like with fio.
        let line = "--name=r --rw=read --size=16k --loops=2 --unlink_each_loop=1";
        let outcome = run(target.path(), line);
        assert_eq!(only(&outcome).error, nix::errno::Errno::ENOENT as i32);
        target.end();
    }
}
