//! Tests parts of files given relative to the files' length.

use super::*;

/// A file of 64 KiB in which each block of 4096 bytes holds its number.
fn numbered(dir: &Path, name: &str) {
    let blocks: Vec<u8> = (0..16).flat_map(|n| [n; 4096]).collect();
    fs::write(dir.join(name), blocks).expect("written");
}

/// The blocks of a file that contain only zeros.
fn zeroed(dir: &Path, name: &str) -> Vec<usize> {
    let all = data(dir, name);
    let zero = |(_, block): &(usize, &[u8])| block.iter().all(|byte| *byte == 0);
    all.chunks(4096)
        .enumerate()
        .filter(zero)
        .map(|(n, _)| n)
        .collect()
}

#[test]
fn what_is_written_in_per_cent_lies_where_fio_puts_it() {
    for (more, expect) in [
        (
            "--offset=25%",
            &[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15][..],
        ),
        ("--offset=25% --size=8k", &[4, 5]),
        ("--size=25%", &[0, 1, 2, 3]),
        ("--size=25% --offset=56k", &[0, 14, 15]),
        ("--offset=30% --offset_align=16k --size=4k", &[0, 8]),
        ("--io_size=50% --offset=50%", &[0, 8, 9, 10, 11]),
    ] {
        let dir = tempdir();
        numbered(dir.path(), "x");
        let line = format!("--name=a --filename=x --rw=write --zero_buffers {more}");
        run_well(dir.path(), &line);
        let mut expect = expect.to_vec();
        // Block 0 is always zero.
        if expect[0] != 0 {
            expect.insert(0, 0);
        }
        assert_eq!(zeroed(dir.path(), "x"), expect, "{line}");
        assert_eq!(listing(dir.path())["x"], 64 * KIB, "{line}");
    }
}

#[test]
fn workers_of_all_ranks_have_their_share_of_one_file() {
    let dir = tempdir();
    numbered(dir.path(), "x");
    let line = "--name=a --filename=x --rw=write --zero_buffers --size=4k --offset=6% \
                --offset_increment=25% --numjobs=2";
    check_sound(&run_on(&[0, 1], dir.path(), line), line);
    assert_eq!(zeroed(dir.path(), "x"), [0, 1, 5, 9, 13]);
}

#[test]
fn what_is_appended_leaves_what_is_there() {
    let dir = tempdir();
    numbered(dir.path(), "x");
    let line = "--name=a --filename=x --rw=write --zero_buffers --size=8k --file_append=1";
    let outcome = run_on(&[0, 0, 1], dir.path(), line);
    check_sound(&outcome, line);
    assert_eq!(
        listing(dir.path())["x"],
        88 * KIB,
        "three workers, one behind the other"
    );
    assert_eq!(zeroed(dir.path(), "x"), [0, 16, 17, 18, 19, 20, 21]);
    let line = "--name=a --rw=write --size=8k --file_append=1 --verify=crc32c --nrfiles=2 \
                --verify_state_save=0";
    for expect in [4 * KIB, 8 * KIB] {
        run_well(dir.path(), line);
        assert_eq!(listing(dir.path())["a.0.1"], expect);
    }
}
