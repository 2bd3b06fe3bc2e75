//! Promises of every engine: each test loops over the table of engines. Engines that
//! move no data are left out of tests that check data.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{Uid, setuid};
use rbench_core::random::Stream;
use rbench_core::{Call, Nanos, OpenFlags};
use rbench_sys::engine::{ENGINES, find};
use rbench_sys::files::Advice;
use rbench_sys::limits::locks_memory_freely;
use rbench_sys::{AlignedBuffer, Completion, Engine, EngineConfig, Fs, PosixFs, Transfer};

use crate::allocations;
use crate::blocks::{
    BLOCK, complete, data, each_mover, each_plain, each_unmapped, file_of, made, make, movers,
    movers_and_null, named, read_at, read_write, request, write_at,
};
use crate::support::{Mounted, disk, in_child, in_own_mounts, place, skip, this_test, traced};

/// The numbers below `n` in a random order.
fn shuffled(n: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..n).collect();
    let mut stream = Stream::new(&[n]);
    for i in (1..order.len()).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    order
}

/// Moves all blocks of `order`, with every slot in use while blocks remain; `fill`
/// and `check` get the buffer before and after.
fn move_blocks(
    engine: &mut dyn Engine,
    depth: usize,
    file: &File,
    transfer: Transfer,
    order: &[u64],
    mut before: impl FnMut(u64, &mut [u8]),
    mut after: impl FnMut(u64, &[u8]),
) {
    let mut left = order.iter().copied();
    let mut under_way = vec![None; depth];
    let mut done = Vec::with_capacity(depth);
    loop {
        for (slot, place) in under_way.iter_mut().enumerate() {
            if place.is_none() {
                *place = left.next();
                if let Some(block) = *place {
                    before(block, engine.buffer(slot));
                    engine.submit(slot, request(transfer, file, block * BLOCK as u64, BLOCK));
                }
            }
        }
        if under_way.iter().all(Option::is_none) {
            return;
        }
        engine.wait(&mut done).expect("waiting works");
        assert!(!done.is_empty(), "waiting ended with nothing");
        for Completion { slot, result } in done.drain(..) {
            assert_eq!(result, Ok(BLOCK));
            let block = under_way[slot].take().expect("the slot was in use");
            after(block, engine.buffer(slot));
        }
    }
}

#[test]
fn blocks_go_where_they_belong_whatever_the_order_of_offsets_and_completions() {
    const BLOCKS: u64 = 500;
    let directory = disk();
    let content = data(BLOCKS as usize * BLOCK);
    let block = |i: u64| &content[i as usize * BLOCK..][..BLOCK];
    for info in movers() {
        for (depth, attached) in [(1, false), (1, true), (7, true), (64, false), (64, true)] {
            let Some(mut engine) = make(info, depth, BLOCK) else {
                continue;
            };
            let depth = depth.min(info.depth_max);
            let path = directory.path().join(info.name);
            let file = read_write(&path);
            file.set_len(0).expect("the file is ours");
            if info.mapped {
                file.set_len(content.len() as u64).expect("as before");
            }
            if attached {
                engine.attach(file.as_raw_fd(), Some(Advice::Random));
            }
            let order = shuffled(BLOCKS);
            let (mut writes, mut reads) = (0, 0);
            move_blocks(
                &mut *engine,
                depth,
                &file,
                Transfer::Write,
                &order,
                |i, buffer| buffer.copy_from_slice(block(i)),
                |_, _| writes += 1,
            );
            let written = fs::read(&path).expect("the file is there");
            assert!(written == content, "{} {depth}: written", info.name);
            move_blocks(
                &mut *engine,
                depth,
                &file,
                Transfer::Read,
                &order,
                |_, buffer| buffer.fill(0),
                |i, buffer| {
                    assert!(buffer == block(i), "{} {depth}: block {i}", info.name);
                    reads += 1;
                },
            );
            assert_eq!((writes, reads), (BLOCKS, BLOCKS));
        }
    }
}

#[test]
fn all_slots_can_be_under_way_and_each_completes_once() {
    for (info, depth, mut engine) in made(movers_and_null(), 200, BLOCK) {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len((depth * BLOCK) as u64)
            .expect("the file is ours");
        for slot in 0..depth {
            engine.submit(slot, read_at(&file, (slot * BLOCK) as u64, BLOCK));
        }
        let mut done = Vec::with_capacity(depth);
        while done.len() < depth {
            engine.wait(&mut done).expect("waiting works");
        }
        let mut slots: Vec<usize> = done.iter().map(|completion| completion.slot).collect();
        slots.sort_unstable();
        assert!(slots.into_iter().eq(0..depth), "{}", info.name);
        assert!(done.iter().all(|completion| completion.result == Ok(BLOCK)));
        engine.wait(&mut done).expect("waiting works");
        assert_eq!(done.len(), depth, "{}: nothing more comes", info.name);
    }
}

#[test]
fn blocks_of_4_mib_are_moved_whole() {
    const LARGE: usize = 4 << 20;
    let content = data(LARGE);
    each_mover(2, LARGE, |name, engine| {
        let offset = 12_345;
        let file = file_of(offset + LARGE as u64);
        engine.buffer(0).copy_from_slice(&content);
        assert_eq!(complete(engine, write_at(&file, offset, LARGE)), Ok(LARGE));
        let mut content_read = vec![0; LARGE];
        file.read_exact_at(&mut content_read, offset)
            .expect("it was written");
        assert!(content_read == content, "{name}");
        engine.buffer(0).fill(0);
        assert_eq!(complete(engine, read_at(&file, offset, LARGE)), Ok(LARGE));
        assert!(engine.buffer(0) == content, "{name}");
    });
}

#[test]
fn the_end_of_the_file_gives_a_short_count_and_nothing_lies_beyond() {
    let file = tempfile::tempfile().expect("a temporary file");
    file.write_all_at(&data(10_000), 0).expect("there is space");
    each_mover(1, BLOCK, |name, engine| {
        let mut check = |offset, expect| {
            engine.buffer(0).fill(0xee);
            let read = complete(engine, read_at(&file, offset, BLOCK));
            assert_eq!(read, Ok(expect), "{name} at {offset}");
            let beyond = &engine.buffer(0)[expect..];
            assert!(beyond.iter().all(|b| *b == 0xee), "{name} at {offset}");
        };
        check(0, BLOCK);
        check(10_000 - BLOCK as u64, BLOCK);
        check(8192, 1808);
        check(9_999, 1);
        check(10_000, 0);
        check(1 << 40, 0);
        assert_eq!(complete(engine, read_at(&file, 0, 0)), Ok(0), "{name}");
    });
}

#[test]
fn a_descriptor_that_does_not_permit_the_transfer_gives_ebadf() {
    let directory = disk();
    let path = directory.path().join("f");
    fs::write(&path, "content").expect("there is space");
    let read_only = File::open(&path).expect("it was made");
    let write_only = OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("it was made");
    each_mover(1, BLOCK, |name, engine| {
        let mut check = |request| {
            let result = complete(engine, request);
            assert_eq!(result, Err(Errno::EBADF), "{name}: {request:?}");
        };
        check(write_at(&read_only, 0, BLOCK));
        check(read_at(&write_only, 0, BLOCK));
        check(read_at(&-1, 0, BLOCK));
        check(write_at(&-1, 0, BLOCK));
        check(request(Transfer::Fsync, &-1, 0, 0));
        check(request(Transfer::DataSync, &-1, 0, 0));
    });
    assert_eq!(fs::read(&path).expect("it is there"), b"content");
}

#[test]
fn an_offset_that_no_file_has_gives_einval() {
    let file = tempfile::tempfile().expect("a temporary file");
    file.write_all_at(b"content", 0).expect("there is space");
    each_mover(1, BLOCK, |name, engine| {
        for offset in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let read = complete(engine, read_at(&file, offset, BLOCK));
            assert_eq!(read, Err(Errno::EINVAL), "{name} at {offset}");
        }
    });
}

#[test]
fn a_full_device_gives_enospc() {
    let full = OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("every Linux has /dev/full");
    each_plain(1, BLOCK, |name, engine| {
        let written = complete(engine, write_at(&full, 0, BLOCK));
        assert_eq!(written, Err(Errno::ENOSPC), "{name}");
    });
}

#[test]
fn a_write_that_crosses_the_limit_on_file_size_gives_efbig() {
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    // SAFETY: the signal is ignored, no handler runs.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.expect("it can be ignored");
    each_unmapped(1, 8192, |name, engine| {
        let file = tempfile::tempfile().expect("a temporary file");
        setrlimit(Resource::RLIMIT_FSIZE, 6000, 1 << 30).expect("lowering is permitted");
        let written = complete(engine, write_at(&file, 0, 8192));
        setrlimit(Resource::RLIMIT_FSIZE, 1 << 30, 1 << 30).expect("back to the hard limit");
        assert_eq!(written, Err(Errno::EFBIG), "{name}");
        let length = file.metadata().expect("it is open").len();
        assert_eq!(length, 6000, "{name}: the kernel had taken a part");
    });
}

#[test]
fn short_reads_of_the_kernel_are_continued_to_the_whole_block() {
    const LENGTH: usize = 1 << 20;
    let Ok(symbols) = File::open("/proc/kallsyms") else {
        return skip("there is no /proc/kallsyms, which is read in small pieces");
    };
    let expect = fs::read("/proc/kallsyms").expect("it opened before");
    let mut once = vec![0; LENGTH];
    let short = symbols.read_at(&mut once, 0).expect("it opened before");
    if expect.len() < LENGTH || short == LENGTH {
        return skip("/proc/kallsyms is not read in small pieces");
    }
    each_plain(1, LENGTH, |name, engine| {
        let read = complete(engine, read_at(&symbols, 0, LENGTH));
        assert_eq!(read, Ok(LENGTH), "{name}; once: {short}");
        assert!(engine.buffer(0) == &expect[..LENGTH], "{name}");
        let last = expect.len() - 100;
        let read = complete(engine, read_at(&symbols, last as u64, LENGTH));
        assert_eq!(read, Ok(100), "{name}: up to the end");
        assert!(engine.buffer(0)[..100] == expect[last..], "{name}");
    });
}

#[test]
fn direct_transfers_say_what_pread_says() {
    const PAGES: usize = 8;
    let directory = disk();
    let path = directory.path().join("f");
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return skip("the file system of the build directory has no O_DIRECT");
        }
        opened => opened.expect("the file can be made"),
    };
    let content = data(PAGES * BLOCK);
    let mut plain = vec![0; 2 * BLOCK];
    let start = plain.as_ptr().align_offset(BLOCK);
    let plain = &mut plain[start..][..BLOCK];
    each_unmapped(1, PAGES * BLOCK, |name, engine| {
        file.set_len(0).expect("the file is ours");
        engine.buffer(0).copy_from_slice(&content);
        let whole = PAGES * BLOCK;
        assert_eq!(complete(engine, write_at(&file, 0, whole)), Ok(whole));
        assert!(fs::read(&path).expect("it is there") == content, "{name}");
        engine.buffer(0).fill(0);
        assert_eq!(complete(engine, read_at(&file, 0, whole)), Ok(whole));
        assert!(engine.buffer(0) == content, "{name}");

        // A length or offset that is not a multiple of the block: the same result as
        // pread.
        for (offset, length) in [(0, 100), (100, BLOCK), (1, 1)] {
            let expect = file
                .read_at(&mut plain[..length], offset)
                .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)));
            let read = complete(engine, read_at(&file, offset, length));
            assert_eq!(read, expect, "{name}: {length} at {offset}");
        }

        // The file ends within a block: the existing part is read, once.
        file.set_len(5000).expect("the file is ours");
        assert_eq!(complete(engine, read_at(&file, 0, whole)), Ok(5000));
        assert!(engine.buffer(0)[..5000] == content[..5000], "{name}");
    });
}

#[test]
fn an_aligned_buffer_serves_metadata_operations_with_o_direct() {
    let directory = disk();
    let fs = PosixFs::open_directory(directory.path()).expect("it was made");
    let mut buffer = AlignedBuffer::new(2 * BLOCK).expect("two pages are there");
    buffer.copy_from_slice(&data(2 * BLOCK));
    let fd = match fs.open(c"f", OpenFlags::READ_WRITE.directly(true)) {
        Ok(fd) => fd,
        Err(errno) => return skip(&format!("no O_DIRECT in the build directory: {errno:?}")),
    };
    assert_eq!(fs.sending(Call::Write, fd, &buffer), Ok(2 * BLOCK as u64));
    assert_eq!(fs.close(fd), Ok(()));
    let written = fs::read(directory.path().join("f")).expect("it is there");
    assert!(written == data(2 * BLOCK));
    let fd = fs
        .open(c"f", OpenFlags::READ.directly(true))
        .expect("it opened before");
    buffer.fill(0);
    assert_eq!(
        fs.receiving(Call::Read, fd, &mut buffer),
        Ok(2 * BLOCK as u64)
    );
    assert!(*buffer == written);
    assert_eq!(fs.close(fd), Ok(()));
}

#[test]
fn an_fsync_moves_no_bytes_and_reports_what_cannot_be_synced() {
    let file = file_of(BLOCK as u64);
    let (pipe, _other_end) = std::io::pipe().expect("a pipe");
    each_mover(1, BLOCK, |name, engine| {
        assert_eq!(complete(engine, write_at(&file, 0, BLOCK)), Ok(BLOCK));
        for transfer in [Transfer::Fsync, Transfer::DataSync] {
            let synced = complete(engine, request(transfer, &file, 0, 0));
            assert_eq!(synced, Ok(0), "{name}");
            let synced = complete(engine, request(transfer, &pipe, 0, 0));
            assert_eq!(synced, Err(Errno::EINVAL), "{name}");
        }
    });
}

#[test]
fn with_nothing_under_way_waiting_returns_at_once() {
    for (info, _, mut engine) in made(ENGINES.iter(), 4, BLOCK) {
        let mut done = Vec::with_capacity(4);
        assert_eq!(engine.flush(), Ok(()));
        assert_eq!(engine.wait(&mut done), Ok(()));
        assert_eq!(engine.poll(&mut done), Ok(()));
        assert_eq!(done, [], "{}", info.name);
    }
}

#[test]
fn waiting_with_a_limit_brings_what_is_complete() {
    let file = tempfile::tempfile().expect("a temporary file");
    for (info, depth, mut engine) in made(ENGINES.iter().filter(|info| !info.of_names), 8, BLOCK) {
        let mut done = Vec::with_capacity(depth);
        let long = Nanos(300 * Nanos::SECOND.0);
        assert_eq!(engine.wait_for(&mut done, long), Ok(()));
        assert_eq!(done, [], "{}: at once with nothing under way", info.name);
        let start = Instant::now();
        for slot in 0..depth {
            engine.submit(slot, write_at(&file, 0, BLOCK));
        }
        while done.len() < depth {
            engine.wait_for(&mut done, long).expect("waiting works");
        }
        assert!(start.elapsed() < Duration::from_secs(200), "{}", info.name);
    }
}

#[test]
fn a_request_that_hangs_holds_up_neither_others_nor_a_wait_with_a_limit() {
    let Some(mut engine) = named("io_uring", 2, 100) else {
        return;
    };
    let file = tempfile::tempfile().expect("a temporary file");
    file.write_all_at(&[7; 100], 0).expect("there is space");
    let (slow, mut sender) = std::io::pipe().expect("a pipe");
    let mut done = Vec::with_capacity(2);
    let completed = |slot, bytes| Completion {
        slot,
        result: Ok(bytes),
    };

    engine.submit(0, read_at(&slow, 0, 100));
    engine.submit(1, read_at(&file, 0, 100));
    engine.wait(&mut done).expect("waiting works");
    assert_eq!(done, [completed(1, 100)], "the later one is complete");
    done.clear();

    let start = Instant::now();
    engine
        .wait_for(&mut done, Nanos(20_000_000))
        .expect("waiting works");
    assert_eq!(done, [], "nothing else is");
    let waited = start.elapsed();
    // Before Linux 5.11 it is a sleep of this length.
    assert!(waited >= Duration::from_micros(50), "{waited:?}");
    assert!(waited < Duration::from_secs(200), "{waited:?}");
    engine.poll(&mut done).expect("polling works");
    assert_eq!(done, []);

    // Half of the data comes, which does not complete the request; then the rest.
    sender.write_all(&[1; 50]).expect("the pipe is open");
    engine
        .wait_for(&mut done, Nanos(20_000_000))
        .expect("waiting works");
    assert_eq!(done, []);
    sender.write_all(&[2; 50]).expect("the pipe is open");
    engine.wait(&mut done).expect("waiting works");
    assert_eq!(done, [completed(0, 100)]);
    assert_eq!(engine.buffer(0)[49..51], [1, 2]);
    assert_eq!(engine.buffer(1), [7; 100]);
}

#[test]
fn polling_brings_every_completion_without_waiting() {
    let file = tempfile::tempfile().expect("a temporary file");
    for (info, depth, mut engine) in made(movers_and_null(), 8, BLOCK) {
        let mut done = Vec::with_capacity(depth);
        for slot in 0..depth {
            // Another thread of the kernel handles an fsync.
            let transfer = if slot % 2 == 0 {
                Transfer::Fsync
            } else {
                Transfer::Write
            };
            engine.submit(slot, request(transfer, &file, 0, BLOCK));
        }
        let start = Instant::now();
        while done.len() < depth {
            engine.poll(&mut done).expect("polling works");
            assert!(start.elapsed() < Duration::from_secs(200), "{}", info.name);
        }
        assert!(done.iter().all(|completion| completion.result.is_ok()));
    }
}

#[test]
fn after_a_flush_the_kernel_works_without_further_calls() {
    let content = data(BLOCK);
    each_mover(2, BLOCK, |name, engine| {
        let file = file_of(BLOCK as u64);
        engine.buffer(0).copy_from_slice(&content);
        engine.submit(0, write_at(&file, 0, BLOCK));
        engine.flush().expect("flushing works");
        let start = Instant::now();
        let mut content_read = vec![0; BLOCK];
        while file.read_exact_at(&mut content_read, 0).is_err() || content_read != content {
            assert!(start.elapsed() < Duration::from_secs(200), "{name}");
        }
    });
}

#[test]
fn dropping_an_engine_waits_for_what_is_under_way() {
    let content = data(1 << 20);
    for (info, depth, mut engine) in made(movers(), 8, 1 << 20) {
        let directory = disk();
        let path = directory.path().join("f");
        let file = read_write(&path);
        file.set_len((depth as u64) << 20)
            .expect("the file is ours");
        engine.attach(file.as_raw_fd(), None);
        for slot in 0..depth {
            engine.buffer(slot).copy_from_slice(&content);
            engine.submit(slot, write_at(&file, (slot as u64) << 20, 1 << 20));
        }
        drop(engine);
        let written = fs::read(&path).expect("it is there");
        assert!(written == content.repeat(depth), "{}", info.name);
    }
}

#[test]
fn an_engine_in_a_foreign_thread_fails_cleanly_or_works() {
    let file = tempfile::tempfile().expect("a temporary file");
    for (info, _, mut engine) in made(movers(), 1, BLOCK) {
        engine.submit(0, write_at(&file, 0, BLOCK));
        let mut done = Vec::with_capacity(1);
        let waited = std::thread::scope(|scope| {
            let other = scope.spawn(|| engine.wait(&mut done));
            other.join().expect("no panic")
        });
        match waited {
            Ok(()) => assert_eq!(done.len(), 1, "{}", info.name),
            Err(errno) => assert_eq!(errno, Errno::EEXIST, "{}", info.name),
        }
    }
}

#[test]
fn mistakes_of_the_program_are_refused_loudly() {
    let file = tempfile::tempfile().expect("a temporary file");
    let panics = |work: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(work)).is_err();
    for info in ENGINES.iter().filter(|info| !info.of_names) {
        for (depth, block) in [(0, BLOCK), (info.depth_max + 1, BLOCK), (1, 0)] {
            let engine = (info.make)(EngineConfig::new(depth, block));
            assert_eq!(engine.err(), Some(Errno::EINVAL), "{} {depth}", info.name);
        }
        let Some(mut engine) = make(info, 1, BLOCK) else {
            continue;
        };
        let name = info.name;
        let long = read_at(&file, 0, BLOCK + 1);
        assert!(panics(&mut || engine.submit(0, long)), "{name}: too long");
        let fits = read_at(&file, 0, BLOCK);
        engine.submit(0, fits);
        assert!(panics(&mut || engine.submit(0, fits)), "{name}: in use");
        let mut done = Vec::with_capacity(1);
        engine.wait(&mut done).expect("waiting works");
        assert_eq!(done.len(), 1, "{name}");
    }
}

#[test]
fn no_call_of_an_engine_allocates() {
    let file = tempfile::tempfile().expect("a temporary file");
    file.write_all_at(&data(64 * BLOCK), 0)
        .expect("there is space");
    for (info, depth, mut engine) in made(ENGINES.iter().filter(|info| !info.of_names), 16, BLOCK) {
        let mut done = Vec::with_capacity(depth);
        let mut round = |transfer| {
            for slot in 0..depth {
                engine.buffer(slot)[0] = 1;
                // The last block of each round ends the file.
                engine.submit(slot, request(transfer, &file, 50_000, BLOCK));
            }
            engine.flush().expect("flushing works");
            let mut completions = 0;
            while completions < depth {
                engine.wait(&mut done).expect("waiting works");
                completions += done.len();
                done.clear();
                engine.wait_for(&mut done, Nanos(1)).expect("waiting works");
                completions += done.len();
                done.clear();
                engine.poll(&mut done).expect("polling works");
                completions += done.len();
                done.clear();
            }
        };
        let allocated = allocations::calls(|| {
            round(Transfer::Read);
            round(Transfer::Write);
            round(Transfer::Fsync);
            round(Transfer::DataSync);
        });
        assert_eq!(allocated, 0, "{}", info.name);
    }
}

#[test]
fn the_null_engine_completes_everything_and_touches_nothing() {
    let mut engine = named("null", 4, BLOCK).expect("it is always permitted");
    let file = tempfile::tempfile().expect("a temporary file");
    engine.buffer(0).fill(7);
    assert_eq!(complete(&mut *engine, write_at(&file, 0, BLOCK)), Ok(BLOCK));
    assert_eq!(complete(&mut *engine, read_at(&-1, 0, 100)), Ok(100));
    let synced = complete(&mut *engine, request(Transfer::Fsync, &file, 0, BLOCK));
    assert_eq!(synced, Ok(0));
    assert_eq!(engine.buffer(0), [7; BLOCK]);
    assert_eq!(file.metadata().expect("it is open").len(), 0);
}

#[test]
fn names_in_the_table_are_unique_and_found() {
    for info in ENGINES {
        let same = ENGINES.iter().filter(|other| other.name == info.name);
        assert_eq!(same.count(), 1, "{}", info.name);
        assert_eq!(find(info.name).map(|found| found.name), Some(info.name));
    }
    assert!(find("mmap2").is_none());
}

/// Writes and reads a few blocks with every engine: this must work under each of the
/// injected faults below.
fn round_trip() {
    let content = data(8 * BLOCK);
    each_mover(8, BLOCK, |name, engine| {
        let file = read_write(&place().join("f"));
        file.set_len(8 * BLOCK as u64).expect("the file is ours");
        for i in 0..8 {
            engine
                .buffer(0)
                .copy_from_slice(&content[i * BLOCK..][..BLOCK]);
            let written = complete(engine, write_at(&file, (i * BLOCK) as u64, BLOCK));
            assert_eq!(written, Ok(BLOCK), "{name}");
        }
        for i in 0..8 {
            let read = complete(engine, read_at(&file, (i * BLOCK) as u64, BLOCK));
            assert_eq!(read, Ok(BLOCK), "{name}");
            assert!(engine.buffer(0) == &content[i * BLOCK..][..BLOCK], "{name}");
        }
        for transfer in [Transfer::Fsync, Transfer::DataSync] {
            let synced = complete(engine, request(transfer, &file, 0, 0));
            assert_eq!(synced, Ok(0), "{name}");
        }
    });
}

#[test]
fn calls_that_a_signal_interrupts_are_repeated() {
    // The loader of programs calls pread too: only the file counts.
    const FILE: &str = "--trace-path={place}/f";
    for (call, path) in [
        ("pread64", FILE),
        ("pwrite64", FILE),
        ("read", FILE),
        ("write", FILE),
        ("readv", FILE),
        ("writev", FILE),
        ("preadv", FILE),
        ("pwritev", FILE),
        ("preadv2", FILE),
        ("pwritev2", FILE),
        ("fsync", FILE),
        ("fdatasync", FILE),
        ("io_submit", "--quiet=all"),
        ("io_getevents", "--quiet=all"),
        ("io_uring_enter", "--quiet=all"),
    ] {
        let inject = format!("inject={call}:error=EINTR:when=1+2");
        let options = [path, "-e", &format!("trace={call}"), "-e", &inject];
        let Some(run) = traced(this_test!(), &options, round_trip) else {
            return;
        };
        let log = run.log;
        let interrupted = log.lines().filter(|line| line.contains("INJECTED")).count();
        assert!(interrupted > 0 || call == "io_uring_enter", "{call}: {log}");
    }
}

#[test]
fn older_kernels_and_strict_limits_get_a_plainer_ring() {
    for (call, fault, times) in [
        ("io_uring_setup", "error=EINVAL:when=1", 1),
        ("io_uring_setup", "error=EINVAL:when=1..2", 2),
        ("io_uring_register", "error=ENOMEM", 1),
    ] {
        let inject = format!("inject={call}:{fault}");
        let options = ["-e", &format!("trace={call}"), "-e", &inject];
        let Some(run) = traced(this_test!(), &options, round_trip) else {
            return;
        };
        let log = run.log;
        if !log.contains(call) {
            return skip("io_uring is not permitted here");
        }
        assert_eq!(log.matches("INJECTED").count(), times, "{log}");
    }
}

#[test]
fn a_limit_on_locked_memory_leaves_a_ring_for_every_worker() {
    if !in_child(this_test!(), &["prlimit", "--memlock=524288:524288"]) {
        return;
    }
    if Uid::effective().is_root() {
        assert!(locks_memory_freely(), "root is above the limit");
        // The limit is that of a user: two runs of this test must not share it.
        let user = Uid::from_raw(1_000_000 + std::process::id());
        setuid(user).expect("root may become anybody");
    }
    assert!(!locks_memory_freely());
    // The rings alone need less than the 128 permitted pages; with the 128 pages of
    // buffers, they would not fit.
    let engines: Vec<_> = (0..32).map(|_| named("io_uring", 4, BLOCK)).collect();
    assert_eq!(engines.len(), 32);
}

#[test]
fn a_forbidden_ring_gives_the_errno_of_the_system() {
    let work = || {
        let info = find("io_uring").expect("it is in the table");
        let engine = (info.make)(EngineConfig::new(4, BLOCK));
        println!("made: {:?}", engine.err());
    };
    for errno in ["ENOSYS", "EPERM"] {
        let inject = format!("inject=io_uring_setup:error={errno}");
        let options = ["-e", "trace=io_uring_setup", "-e", &inject];
        let Some(run) = traced(this_test!(), &options, work) else {
            return;
        };
        let expect = format!("made: Some({errno})");
        assert!(run.printed.contains(&expect), "{}", run.printed);
    }
}

/// These tests mount file systems, each in its own namespace.
mod needs_root {
    use super::*;

    #[test]
    fn a_file_system_that_fills_up_within_a_block_gives_enospc() {
        let Some(directory) = in_own_mounts(this_test!()) else {
            return;
        };
        let _mounted = Mounted::tmpfs(&directory, "size=64k");
        each_unmapped(1, 128 << 10, |name, engine| {
            let path = directory.join("f");
            let file = File::create(&path).expect("there is an inode left");
            let written = complete(engine, write_at(&file, 0, 128 << 10));
            assert_eq!(written, Err(Errno::ENOSPC), "{name}");
            let length = file.metadata().expect("it is open").len();
            assert_eq!(length, 64 << 10, "{name}: a part had been written");
        });
    }
}
