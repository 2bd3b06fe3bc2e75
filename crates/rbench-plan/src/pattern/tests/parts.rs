//! Parts of files in per cent, as fio 3.33 used them on files of 65536 and
//! 40000 bytes.

use super::*;

const FILE: u64 = 65_536;

/// The files of a job, with blocks of 4096 bytes.
fn files(change: fn(&mut Files)) -> Files {
    let mut files = job(true, false, false, 4096, 0).files;
    files.size = (0, 0);
    (files.shares.align, files.shares.block) = (4096, 4096);
    change(&mut files);
    files
}

#[test]
fn parts_in_per_cent_are_those_of_fio() {
    let check = |change: fn(&mut Files), jobnum, there: u64, expect: (u64, u64)| {
        let files = files(change);
        let given = files.size.0;
        // Layout does not move them.
        let after = there.max(files.laid_out(jobnum, given));
        for there in [there, after] {
            let part = files.part(jobnum, given, there);
            assert_eq!(part, expect, "{:?}", files.shares);
        }
    };
    check(|_| {}, 0, FILE, (0, FILE));
    check(|f| f.offset = 16_384, 0, FILE, (16_384, 49_152));
    check(|f| f.shares.size = Some(50), 0, FILE, (0, 32_768));
    check(|f| f.shares.size = Some(50), 0, 40_000, (0, 16_384));
    let behind: fn(&mut Files) = |f| (f.shares.size, f.offset) = (Some(50), 49_152);
    check(behind, 0, FILE, (49_152, 16_384));
    check(|f| f.shares.offset = Some(25), 0, FILE, (16_384, 49_152));
    check(|f| f.shares.offset = Some(25), 0, 40_000, (12_288, 27_712));
    check(|f| f.shares.offset = Some(100), 0, FILE, (FILE, 0));
    let sized: fn(&mut Files) = |f| {
        (f.shares.offset, f.size) = (Some(10), (16_384, 16_384));
    };
    check(sized, 0, FILE, (8192, 16_384));
    let aligned: fn(&mut Files) = |f| {
        (f.shares.offset, f.size) = (Some(10), (16_384, 16_384));
        f.shares.align = 512;
    };
    check(aligned, 0, FILE, (6656, 16_384));
    // For a missing file, its future length counts: fio starts at 0.
    let new: fn(&mut Files) = |f| {
        (f.shares.offset, f.size) = (Some(25), (FILE, FILE));
    };
    check(new, 0, 0, (16_384, 49_152));
    check(new, 0, FILE, (16_384, 49_152));
    check(new, 0, 4 * FILE, (FILE, FILE));
}

#[test]
fn workers_begin_further_on_by_per_cent_as_with_fio() {
    let starts = |change: fn(&mut Files)| {
        let files = files(change);
        [0, 1, 2].map(|jobnum| files.part(jobnum, files.size.0, FILE).0)
    };
    let offsets = starts(|f| f.shares.increment = Some(10));
    assert_eq!(offsets, [0, 8192, 16_384]);
    let offsets = starts(|f| (f.shares.increment, f.offset) = (Some(10), 4096));
    assert_eq!(offsets, [4096, 12_288, 20_480]);
    let offsets = starts(|f| {
        (f.shares.increment, f.offset, f.shares.align) = (Some(10), 4096, 1024);
    });
    assert_eq!(offsets, [4096, 11_264, 17_408]);
    let offsets = starts(|f| (f.shares.offset, f.shares.increment) = (Some(10), Some(25)));
    assert_eq!(offsets, [8192, 24_576, 40_960]);
    let offsets = starts(|f| (f.shares.offset, f.offset_increment) = (Some(25), 8192));
    assert_eq!(offsets, [16_384, 24_576, 32_768]);
}

#[test]
fn what_is_appended_lies_behind_the_end_one_worker_behind_the_other() {
    let mut files = files(|f| (f.shares.append, f.size) = (true, (8192, 8192)));
    assert_eq!(files.part(0, 8192, FILE), (FILE, 8192));
    assert_eq!(files.part(3, 8192, FILE), (FILE, 8192), "a file of its own");
    assert_eq!(files.laid_out(0, 8192), 0, "nothing is laid out");
    files.names = FileNames::Given(vec!["x".to_owned()]);
    assert_eq!(files.part(3, 8192, FILE), (FILE + 3 * 8192, 8192));
    files.shares.of_file = true;
    assert_eq!(files.part(0, FILE + 4096, FILE), (FILE, 4096));
}

#[test]
fn the_size_of_a_file_counts_from_its_beginning() {
    let files = files(|f| {
        (f.offset, f.offset_increment) = (16_384, 8192);
        f.shares.of_file = true;
    });
    assert_eq!(files.part(0, FILE, 0), (16_384, 49_152));
    assert_eq!(files.part(1, FILE, 0), (24_576, 40_960));
    assert_eq!(files.part(9, FILE, 0).1, 0);
    assert_eq!(files.laid_out(1, FILE), FILE);
}

#[test]
fn parts_that_begin_elsewhere_in_each_file_are_stepped_through_from_there() {
    let mut plan = job(true, false, false, 4096, 8192);
    plan.files.count = 2;
    plan.files.service = FileService::Sequential;
    let steps = Steps::new(&plan, 0, |_| 8192).beginning_at(vec![4096, 20_480]);
    let places: Vec<_> = steps.map(|s| (s.file, s.offset)).collect();
    assert_eq!(places, [(0, 4096), (0, 8192), (1, 20_480), (1, 24_576)]);
    // Per cent of both together, whatever their lengths.
    plan.pace.io_share = Some(25);
    let lengths = [65_536, 40_000];
    let steps = Steps::new(&plan, 0, |file| lengths[file as usize]);
    assert_eq!(steps.count(), 7, "26384 bytes");
}
