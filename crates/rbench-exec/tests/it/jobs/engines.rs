//! Tests engines that do not move data, and options that the kernel refuses, against the behaviour
//! of fio 3.33 for the same lines.

use std::os::unix::fs::MetadataExt as _;

use nix::errno::Errno;

use super::*;

/// Length in bytes, and true if any block is allocated.
fn shape(dir: &Path, name: &str) -> (u64, bool) {
    let metadata = fs::metadata(dir.join(name)).expect("the file is there");
    (metadata.len(), metadata.blocks() > 0)
}

#[test]
fn falloc_allocates_and_ftruncate_sets_the_length() {
    let dir = tempdir();
    let line = |name: &str, more: &str| format!("--name={name} --size=64k --bs=4k {more}");
    let written = run_well(
        dir.path(),
        &line("w", "--ioengine=falloc --rw=write --fallocate=none"),
    );
    assert_eq!(counts(&written), (0, 0, 16, 64 * KIB));
    assert_eq!(shape(dir.path(), "w.0.0"), (64 * KIB, true));
    assert!(
        data(dir.path(), "w.0.0").iter().all(|byte| *byte == 0),
        "nothing was written"
    );

    // A read reserves space beyond the end; the length stays.
    fs::write(dir.path().join("r.0.0"), []).expect("there is space");
    let beyond = "--ioengine=falloc --rw=read --offset=64k --filename=r.0.0 --overwrite=0";
    let sparse = fs::File::options()
        .write(true)
        .open(dir.path().join("r.0.0"));
    sparse
        .expect("it was made")
        .set_len(128 * KIB)
        .expect("a hole");
    let reserved = run_well(dir.path(), &line("r", beyond));
    assert_eq!(counts(&reserved), (16, 64 * KIB, 0, 0));
    assert_eq!(shape(dir.path(), "r.0.0"), (128 * KIB, true));

    // The last one truncates to the offset of the last block.
    let cut = run_well(dir.path(), &line("t", "--ioengine=ftruncate --rw=write"));
    assert_eq!(counts(&cut), (0, 0, 16, 64 * KIB));
    assert_eq!(shape(dir.path(), "t.0.0"), (60 * KIB, false));
}

#[test]
fn what_an_engine_cannot_do_ends_the_job_as_with_fio() {
    let dir = tempdir();
    for (more, errno) in [
        ("--ioengine=ftruncate --rw=read", Errno::EINVAL),
        ("--ioengine=ftruncate --rw=write --fsync=2", Errno::EINVAL),
        ("--ioengine=falloc --rw=write --fsync=2", Errno::EINVAL),
        ("--ioengine=falloc --rw=write --end_fsync=1", Errno::EINVAL),
        (
            "--ioengine=falloc --rw=write --verify=crc32c",
            Errno::EILSEQ,
        ),
        ("--ioengine=libaio --rw=write --atomic=1", Errno::EOPNOTSUPP),
        (
            "--ioengine=pvsync2 --rw=write --atomic=1",
            Errno::EOPNOTSUPP,
        ),
    ] {
        let line = format!("--name=x --size=16k {more}");
        let outcome = run(dir.path(), &line);
        assert_eq!(only(&outcome).error, errno as i32, "{line}");
    }
}

#[test]
fn options_of_another_engine_are_refused() {
    let dir = tempdir();
    for (line, expect) in [
        (
            "--ioengine=psync --fixedbufs",
            "fixedbufs belongs to ioengine io_uring",
        ),
        (
            "--ioengine=io_uring --userspace_reap",
            "userspace_reap belongs to ioengine libaio",
        ),
        (
            "--hipri",
            "hipri belongs to ioengine io_uring, pvsync2, but the job uses psync",
        ),
    ] {
        let planned = job(&[0], dir.path(), &format!("--name=x --size=16k {line}")).plan();
        let why = planned.expect_err("fio refuses it").to_string();
        assert!(why.contains(expect), "{line}: {why}");
    }
}
