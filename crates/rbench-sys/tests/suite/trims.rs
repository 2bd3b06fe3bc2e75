//! Trims: promises of the engines that support them, and limits of all.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::errno::Errno;
use rbench_sys::engine::ENGINES;
use rbench_sys::{Completion, Engine, EngineInfo, Transfer};

use crate::blocks::{
    BLOCK, complete, data, made, make, movers_and_null, named, read_write, request, write_at,
};
use crate::support::disk;

const BLOCKS: usize = 16;

/// A file of N allocated blocks, and its content.
fn full(path: &Path) -> (File, Vec<u8>) {
    let content = data(BLOCKS * BLOCK);
    fs::write(path, &content).expect("there is space");
    let file = read_write(path);
    file.sync_all().expect("it is a file");
    (file, content)
}

/// Bytes of the allocated blocks of a file.
fn allocated(file: &File) -> u64 {
    file.metadata().expect("it is open").blocks() * 512
}

/// Engines that trim files.
fn trimmers() -> impl Iterator<Item = &'static EngineInfo> {
    let trims = |info: &&EngineInfo| info.uses_files && !info.of_names && info.name != "ftruncate";
    ENGINES.iter().filter(trims)
}

#[test]
fn a_trimmed_range_is_zeros_without_blocks_in_a_file_of_the_same_length() {
    let directory = disk();
    for info in trimmers() {
        for attached in [false, true] {
            // The buffers are smaller than the range.
            let Some(mut engine) = make(info, 4, BLOCK) else {
                continue;
            };
            let path = directory.path().join(info.name);
            let (file, mut expect) = full(&path);
            if attached {
                engine.attach(file.as_raw_fd(), None);
            }
            let before = allocated(&file);
            let trim = request(Transfer::Trim, &file, 4 * BLOCK as u64, 8 * BLOCK);
            assert_eq!(complete(&mut *engine, trim), Ok(8 * BLOCK), "{}", info.name);
            expect[4 * BLOCK..12 * BLOCK].fill(0);
            assert!(
                fs::read(&path).expect("it is there") == expect,
                "{}",
                info.name
            );
            let back = before - allocated(&file);
            assert_eq!(back, 8 * BLOCK as u64, "{}", info.name);
            // A range beyond the end does not extend the file.
            let beyond = request(Transfer::Trim, &file, (BLOCKS * BLOCK) as u64, BLOCK);
            assert_eq!(complete(&mut *engine, beyond), Ok(BLOCK), "{}", info.name);
            assert_eq!(fs::read(&path).expect("it is there").len(), expect.len());
            let mut room = Vec::with_capacity(1);
            let again = engine.perform(trim, &mut room);
            assert_eq!(again, Ok(Ok(8 * BLOCK)), "{}: a hole again", info.name);
            engine.detach(file.as_raw_fd());
        }
    }
}

#[test]
fn a_write_that_is_submitted_after_a_trim_of_its_range_comes_after_it() {
    let directory = disk();
    for (info, depth, mut engine) in made(trimmers().filter(|info| info.moves_data), 8, BLOCK) {
        let path = directory.path().join(info.name);
        let (file, content) = full(&path);
        engine.attach(file.as_raw_fd(), None);
        let mut done = Vec::with_capacity(depth);
        let (mut free, mut ended): (Vec<usize>, usize) = ((0..depth).collect(), 0);
        let mut take = |engine: &mut dyn Engine, free: &mut Vec<usize>| {
            engine.wait(&mut done).expect("waiting works");
            ended += done.len();
            for Completion { slot, result } in done.drain(..) {
                assert_eq!(result, Ok(BLOCK), "{}", info.name);
                free.push(slot);
            }
        };
        for block in 0..BLOCKS {
            for transfer in [Transfer::Trim, Transfer::Write] {
                while free.is_empty() {
                    take(&mut *engine, &mut free);
                }
                let slot = free.pop().expect("one is free");
                // Only writes need data; each follows the trim of its block.
                if transfer == Transfer::Write {
                    let bytes = &content[block * BLOCK..][..BLOCK];
                    engine.buffer(slot).copy_from_slice(bytes);
                }
                let offset = (block * BLOCK) as u64;
                engine.submit(slot, request(transfer, &file, offset, BLOCK));
            }
        }
        while free.len() < depth {
            take(&mut *engine, &mut free);
        }
        assert_eq!(ended, 2 * BLOCKS, "{}", info.name);
        assert!(
            fs::read(&path).expect("it is there") == content,
            "{}",
            info.name
        );
        engine.detach(file.as_raw_fd());
    }
}

#[test]
fn trims_are_collected_with_and_without_waiting_and_counted() {
    let directory = disk();
    for (info, depth, mut engine) in made(movers_and_null(), 4, BLOCK) {
        let (file, _) = full(&directory.path().join(info.name));
        let mut done = Vec::with_capacity(depth);
        for slot in 0..depth {
            engine.submit(slot, request(Transfer::Trim, &file, 0, BLOCK));
        }
        engine.wait_many(depth, &mut done).expect("waiting works");
        let mut slots: Vec<usize> = done.drain(..).map(|completion| completion.slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, Vec::from_iter(0..depth), "{}", info.name);
        engine.poll(&mut done).expect("polling works");
        engine.wait(&mut done).expect("nothing is waited for");
        assert!(done.is_empty(), "{}", info.name);
        // A trim alone, then together with a write.
        let last = depth - 1;
        engine.submit(last, request(Transfer::Trim, &file, 0, BLOCK));
        engine.poll(&mut done).expect("polling works");
        assert_eq!(
            done.pop().map(|found| found.result),
            Some(Ok(BLOCK)),
            "{}",
            info.name
        );
        engine.submit(0, write_at(&file, 0, BLOCK));
        if depth > 1 {
            engine.submit(last, request(Transfer::Trim, &file, BLOCK as u64, BLOCK));
        }
        while done.len() < depth.min(2) {
            engine.wait(&mut done).expect("waiting works");
        }
        assert!(
            done.drain(..).all(|found| found.result == Ok(BLOCK)),
            "{}",
            info.name
        );
        let submitted: u64 = engine.counts().submits.iter().sum();
        assert!(submitted > 0, "{}", info.name);
    }
}

#[test]
fn what_cannot_be_trimmed_is_an_error_of_the_request() {
    let directory = disk();
    for (info, _, mut engine) in made(trimmers(), 1, BLOCK) {
        let path = directory.path().join(info.name);
        let (_, content) = full(&path);
        let read_only = File::open(&path).expect("it is there");
        let mut check = |request, errno| {
            assert_eq!(complete(&mut *engine, request), Err(errno), "{}", info.name);
        };
        check(request(Transfer::Trim, &read_only, 0, BLOCK), Errno::EBADF);
        check(request(Transfer::Trim, &-1, 0, BLOCK), Errno::EBADF);
        let file = read_write(&path);
        check(
            request(Transfer::Trim, &file, u64::MAX, BLOCK),
            Errno::EINVAL,
        );
        let (_reader, pipe) = std::io::pipe().expect("a pipe");
        check(request(Transfer::Trim, &pipe, 0, BLOCK), Errno::ESPIPE);
        let null = File::options().write(true).open("/dev/null");
        let null = null.expect("it is everywhere");
        check(request(Transfer::Trim, &null, 0, BLOCK), Errno::ENODEV);
        assert!(fs::read(&path).expect("it is there") == content);
    }
    let mut engine = named("ftruncate", 1, BLOCK).expect("it is always permitted");
    let (file, _) = full(&directory.path().join("whole"));
    let trim = request(Transfer::Trim, &file, 0, BLOCK);
    assert_eq!(complete(&mut *engine, trim), Err(Errno::EINVAL));
    assert_eq!(
        file.metadata().expect("it is open").len(),
        (BLOCKS * BLOCK) as u64
    );
}
