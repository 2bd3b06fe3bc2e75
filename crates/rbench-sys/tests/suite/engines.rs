//! Features and restrictions of some engines: attached files, mappings, counts, many
//! requests in flight.

use std::fs::{self, File, OpenOptions};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::umount;
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use rbench_core::random::Stream;
use rbench_sys::engine::ENGINES;
use rbench_sys::files::Advice;
use rbench_sys::{Completion, Engine, EngineCounts, Transfer};

use crate::blocks::{
    BLOCK, complete, data, each_mover, file_of, made, make, movers, movers_and_null, named,
    read_at, read_write, request, write_at,
};
use crate::support::{Mounted, disk, in_child, in_own_mounts, this_test};

/// A file of one block of the byte `content`.
fn file_with(content: u8) -> File {
    let file = tempfile::tempfile().expect("a temporary file");
    let block = [content; BLOCK];
    file.write_all_at(&block, 0).expect("there is space");
    file
}

/// First byte of the file, read through the engine.
fn first_byte(engine: &mut dyn Engine, file: &File) -> u8 {
    engine.buffer(0).fill(0xee);
    assert_eq!(complete(engine, read_at(file, 0, BLOCK)), Ok(BLOCK));
    engine.buffer(0)[0]
}

#[test]
fn more_files_can_be_attached_than_the_kernel_keeps_for_a_ring() {
    let files: Vec<File> = (0..100).map(file_with).collect();
    each_mover(1, BLOCK, |name, engine| {
        for file in &files {
            engine.attach(file.as_raw_fd(), Some(Advice::Sequential));
        }
        for (i, file) in files.iter().enumerate() {
            assert_eq!(first_byte(engine, file), i as u8, "{name}");
        }
        // The indexes of detached files are free for others.
        for file in &files[..50] {
            engine.detach(file.as_raw_fd());
        }
        for (i, file) in files.iter().enumerate().rev() {
            engine.attach(file.as_raw_fd(), None);
            assert_eq!(first_byte(engine, file), i as u8, "{name}");
        }
        engine.detach(-1);
        engine.attach(-1, None);
        let read = complete(engine, read_at(&-1, 0, BLOCK));
        assert_eq!(read, Err(Errno::EBADF), "{name}");
    });
}

#[test]
fn a_number_that_is_used_again_means_the_new_file() {
    each_mover(1, BLOCK, |name, engine| {
        let file = file_with(1);
        let number = file.as_raw_fd();
        // Replaces the file of the number, like closing and opening does. Its
        // position is the start; the engine's last read ended at a block boundary.
        let put_in_place = |content| {
            let other = file_with(content);
            let second = [content + 100; BLOCK];
            let written = other.write_all_at(&second, BLOCK as u64);
            written.expect("there is space");
            // SAFETY: no memory is involved, both are open.
            let took = unsafe { nix::libc::dup2(other.as_raw_fd(), number) };
            assert_eq!(took, number);
        };
        let second_byte = |engine: &mut dyn Engine| {
            let read = complete(engine, read_at(&file, BLOCK as u64, BLOCK));
            assert_eq!(read, Ok(BLOCK), "{name}");
            engine.buffer(0)[0]
        };
        engine.attach(number, None);
        assert_eq!(first_byte(engine, &file), 1, "{name}");
        engine.detach(number);
        put_in_place(2);
        assert_eq!(second_byte(engine), 102, "{name}: not attached");
        engine.attach(number, None);
        assert_eq!(first_byte(engine, &file), 2, "{name}: attached");
        engine.detach(number);
        put_in_place(3);
        engine.attach(number, None);
        assert_eq!(second_byte(engine), 103, "{name}: attached anew");
        engine.detach(number);
    });
}

#[test]
fn an_attached_file_that_grows_is_read_to_its_new_end() {
    each_mover(1, BLOCK, |name, engine| {
        let file = file_with(1);
        engine.attach(file.as_raw_fd(), Some(Advice::Random));
        assert_eq!(first_byte(engine, &file), 1);
        let next = BLOCK as u64;
        assert_eq!(complete(engine, read_at(&file, next, BLOCK)), Ok(0));
        file.write_all_at(&[2; 100], next).expect("there is space");
        assert_eq!(complete(engine, read_at(&file, next, BLOCK)), Ok(100));
        assert_eq!(engine.buffer(0)[..100], [2; 100], "{name}");
    });
}

#[test]
fn workers_with_random_offsets_write_and_read_one_file_whole() {
    const WORKERS: usize = 4;
    const BLOCKS: usize = 256;
    let directory = disk();
    let content = data(BLOCKS * BLOCK);
    let block = |i: usize| &content[i * BLOCK..][..BLOCK];
    for info in movers() {
        let path = directory.path().join(info.name);
        let length = content.len() as u64;
        read_write(&path).set_len(length).expect("there is space");
        std::thread::scope(|scope| {
            for worker in 0..WORKERS {
                let path = &path;
                scope.spawn(move || {
                    let Some(mut engine) = make(info, 1, BLOCK) else {
                        return;
                    };
                    let file = read_write(path);
                    engine.attach(file.as_raw_fd(), Some(Advice::Random));
                    let mut own: Vec<usize> = (worker..BLOCKS).step_by(WORKERS).collect();
                    let mut stream = Stream::new(&[worker as u64]);
                    for i in (1..own.len()).rev() {
                        own.swap(i, stream.below(i as u64 + 1) as usize);
                    }
                    for i in own {
                        engine.buffer(0).copy_from_slice(block(i));
                        let at = (i * BLOCK) as u64;
                        let written = complete(&mut *engine, write_at(&file, at, BLOCK));
                        assert_eq!(written, Ok(BLOCK), "{}", info.name);
                        engine.buffer(0).fill(0);
                        let read = complete(&mut *engine, read_at(&file, at, BLOCK));
                        assert_eq!(read, Ok(BLOCK), "{}", info.name);
                        assert!(engine.buffer(0) == block(i), "{}: {i}", info.name);
                    }
                });
            }
        });
        let written = fs::read(&path).expect("it is there");
        assert!(written == content, "{}", info.name);
    }
}

#[test]
fn a_mapping_serves_what_can_be_mapped_and_makes_no_file_longer() {
    let directory = disk();
    let path = directory.path().join("f");
    fs::write(&path, [1; 6000]).expect("there is space");
    let file = read_write(&path);
    let write_only = OpenOptions::new().write(true).open(&path);
    let write_only = write_only.expect("it was made");
    let (pipe, _sender) = std::io::pipe().expect("a pipe");
    for attached in [false, true] {
        let mut engine = named("mmap", 1, BLOCK).expect("it is always permitted");
        if attached {
            engine.attach(file.as_raw_fd(), None);
            engine.attach(write_only.as_raw_fd(), None);
            engine.attach(pipe.as_raw_fd(), None);
        }
        engine.buffer(0).fill(2);
        let mut check = |request, expect| {
            assert_eq!(complete(&mut *engine, request), expect, "{attached}");
        };
        check(write_at(&file, 4096, BLOCK), Ok(1904));
        check(write_at(&file, 6000, BLOCK), Ok(0));
        check(write_at(&file, 1 << 40, BLOCK), Ok(0));
        check(write_at(&write_only, 0, BLOCK), Err(Errno::EACCES));
        check(read_at(&pipe, 0, BLOCK), Err(Errno::ENODEV));
        let written = fs::read(&path).expect("it is there");
        assert!(written == [[1; 4096].as_slice(), &[2; 1904]].concat());
        fs::write(&path, [1; 6000]).expect("there is space");
    }
}

#[test]
fn a_file_that_is_truncated_under_its_mapping_gives_short_counts() {
    const LENGTH: u64 = 1 << 20;
    // In a separate process: it might end.
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    let file = file_of(LENGTH);
    file.write_all_at(&data(LENGTH as usize), 0)
        .expect("there is space");
    let mut engine = named("mmap", 1, LENGTH as usize).expect("it is always permitted");
    engine.attach(file.as_raw_fd(), None);
    let mut check = |request, expect| {
        assert_eq!(complete(&mut *engine, request), expect, "{request:?}");
    };
    let whole = LENGTH as usize;
    check(read_at(&file, 0, whole), Ok(whole));
    let truncate = |length| file.set_len(length).expect("the file is ours");

    truncate(100_000);
    check(read_at(&file, 0, whole), Ok(100_000));
    truncate(50_000);
    check(read_at(&file, 90_000, 5000), Ok(0));
    truncate(LENGTH);
    check(write_at(&file, 0, whole), Ok(whole));
    truncate(8192);
    check(write_at(&file, 4096, 60_000), Ok(4096));
    check(write_at(&file, 8192, 60_000), Ok(0));
    let length = file.metadata().expect("it is open").len();
    assert_eq!(length, 8192, "it did not grow");
    truncate(0);
    check(read_at(&file, 0, 4096), Ok(0));
    check(request(Transfer::Fsync, &file, 0, 0), Ok(0));
    truncate(LENGTH);
    check(read_at(&file, 0, whole), Ok(whole));
    assert!(engine.buffer(0).iter().all(|byte| *byte == 0), "holes");
}

#[test]
fn mappings_in_many_threads_survive_truncation_at_the_same_time() {
    const LENGTH: u64 = 256 << 10;
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    let file = file_of(LENGTH);
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let file = &file;
            scope.spawn(move || {
                let mut engine = named("mmap", 1, LENGTH as usize).expect("it is permitted");
                engine.attach(file.as_raw_fd(), None);
                for round in 0..500 {
                    let request = if worker == 0 { write_at } else { read_at };
                    let moved = complete(&mut *engine, request(file, 0, LENGTH as usize));
                    assert!(moved.is_ok(), "{worker} in round {round}: {moved:?}");
                }
            });
        }
        for round in 0..1000 {
            let length = LENGTH * (round % 2);
            file.set_len(length).expect("the file is ours");
            std::thread::yield_now();
        }
        file.set_len(LENGTH).expect("the file is ours");
    });
}

/// Status of a forked process that reads a page beyond the end of a mapped file.
fn end_of_a_bus_error(file: &File) -> WaitStatus {
    // SAFETY: the child only makes system calls and accesses a mapping.
    match unsafe { fork() }.expect("forking works") {
        ForkResult::Parent { child } => waitpid(child, None).expect("it is our child"),
        ForkResult::Child => {
            let page = std::num::NonZeroUsize::MIN.saturating_add(BLOCK - 1);
            // SAFETY: a new mapping at an address of the kernel's choice.
            let mapped = unsafe {
                mmap(
                    None,
                    page,
                    ProtFlags::PROT_READ,
                    MapFlags::MAP_SHARED,
                    file,
                    0,
                )
            };
            if let Ok(start) = mapped {
                // SAFETY: the address is mapped; the test needs the missing page.
                unsafe { start.cast::<u8>().as_ptr().read_volatile() };
            }
            // SAFETY: ends the process without running the parent's code.
            unsafe { nix::libc::_exit(0) }
        }
    }
}

#[test]
fn bus_errors_outside_of_the_engine_end_the_process_as_before() {
    if !in_child(this_test!(), &["prlimit", "--core=0:0"]) {
        return;
    }
    let empty = tempfile::tempfile().expect("a temporary file");
    let killed = |status| matches!(status, WaitStatus::Signaled(pid, Signal::SIGBUS, _) if pid > Pid::from_raw(0));
    assert!(killed(end_of_a_bus_error(&empty)), "before");
    let mut engine = named("mmap", 1, BLOCK).expect("it is always permitted");
    assert_eq!(first_byte(&mut *engine, &file_with(7)), 7);
    assert!(killed(end_of_a_bus_error(&empty)), "with an engine");
}

#[test]
fn synchronous_engines_count_each_request_as_a_call() {
    let file = file_of(BLOCK as u64);
    for info in movers_and_null().filter(|info| info.depth_max == 1) {
        let mut engine = make(info, 1, BLOCK).expect("it is always permitted");
        assert_eq!(engine.counts(), EngineCounts::default());
        for _ in 0..3 {
            let read = complete(&mut *engine, read_at(&file, 0, BLOCK));
            assert_eq!(read, Ok(BLOCK));
        }
        let mut done = Vec::with_capacity(1);
        engine.poll(&mut done).expect("polling works");
        let three = [0, 3, 0, 0, 0, 0, 0];
        let counts = engine.counts();
        assert_eq!(counts.submits, three, "{}", info.name);
        assert_eq!(counts.completes, three, "{}", info.name);
    }
}

#[test]
fn batches_are_counted_by_their_size() {
    let file = file_of(BLOCK as u64);
    for (info, _, mut engine) in made(ENGINES.iter().filter(|info| info.depth_max > 1), 100, BLOCK)
    {
        let mut done = Vec::with_capacity(100);
        for size in [1, 4, 5, 16, 33, 100] {
            for slot in 0..size {
                engine.submit(slot, read_at(&file, 0, BLOCK));
            }
            engine.wait_many(size, &mut done).expect("waiting works");
            assert_eq!(done.len(), size, "{}", info.name);
            done.clear();
        }
        let counts = engine.counts();
        let expect = [0, 2, 1, 1, 0, 1, 1];
        // POSIX has no call that submits several requests.
        let submits = match info.name {
            "posixaio" => [0, 159, 0, 0, 0, 0, 0],
            _ => expect,
        };
        assert_eq!(counts.submits, submits, "{}", info.name);
        assert_eq!(counts.completes, expect, "{}", info.name);
    }
}

/// Both ends of a pipe.
type Pipe = (PipeReader, PipeWriter);

/// Creates `depth` pipes, and a ring that reads from each.
fn reads_of_pipes(depth: usize) -> Option<(Box<dyn Engine>, Vec<Pipe>)> {
    let mut engine = named("io_uring", depth, 8)?;
    let pipes: Vec<Pipe> = (0..depth)
        .map(|_| std::io::pipe().expect("a pipe"))
        .collect();
    for (slot, (reader, _)) in pipes.iter().enumerate() {
        engine.attach(reader.as_raw_fd(), None);
        engine.submit(slot, read_at(reader, 0, 8));
    }
    engine.flush().expect("flushing works");
    Some((engine, pipes))
}

#[test]
fn all_requests_of_a_ring_are_under_way_at_the_same_time() {
    let Some((mut engine, mut pipes)) = reads_of_pipes(32) else {
        return;
    };
    assert_eq!(engine.counts().submits, [0, 0, 0, 0, 1, 0, 0], "one call");
    let mut done = Vec::with_capacity(32);
    engine.poll(&mut done).expect("polling works");
    assert_eq!(done, []);
    // Each request waits for its own pipe: any of them can be the next.
    for slot in (0..32).rev() {
        let bytes = [slot as u8; 8];
        pipes[slot].1.write_all(&bytes).expect("the pipe is open");
        engine.wait(&mut done).expect("waiting works");
        let result = Ok(8);
        assert_eq!(done, [Completion { slot, result }]);
        assert_eq!(engine.buffer(slot), bytes);
        done.clear();
    }
    let found_nothing = engine.counts().completes[0];
    assert_eq!(found_nothing, 1);
}

#[test]
fn waiting_for_many_ends_with_the_last_of_them() {
    let Some((mut engine, mut pipes)) = reads_of_pipes(3) else {
        return;
    };
    let mut done = Vec::with_capacity(3);
    let mut send = |slot: usize| pipes[slot].1.write_all(&[1; 8]);
    send(1).expect("the pipe is open");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            send(0).expect("the pipe is open");
        });
        engine.wait_many(2, &mut done).expect("waiting works");
    });
    let mut slots: Vec<usize> = done.iter().map(|completion| completion.slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1]);
    done.clear();
    send(2).expect("the pipe is open");
    // More than are left.
    engine.wait_many(3, &mut done).expect("waiting works");
    assert_eq!(done.len(), 1);
}

/// These tests mount file systems, each in its own namespace.
mod needs_root {
    use super::*;

    #[test]
    fn after_an_engine_is_dropped_it_keeps_no_file_system_busy() {
        let Some(directory) = in_own_mounts(this_test!()) else {
            return;
        };
        for info in movers() {
            let mounted = Mounted::tmpfs(&directory, "size=1m");
            let Some(mut engine) = make(info, 4, BLOCK) else {
                continue;
            };
            let file = read_write(&directory.join("f"));
            file.set_len(BLOCK as u64).expect("there is space");
            engine.attach(file.as_raw_fd(), None);
            let written = complete(&mut *engine, write_at(&file, 0, BLOCK));
            assert_eq!(written, Ok(BLOCK), "{}", info.name);
            drop(engine);
            drop(file);
            assert_eq!(umount(&directory), Ok(()), "{}", info.name);
            std::mem::forget(mounted);
        }
    }

    #[test]
    fn a_hole_that_cannot_be_filled_gives_enospc_through_a_mapping() {
        let Some(directory) = in_own_mounts(this_test!()) else {
            return;
        };
        let _mounted = Mounted::tmpfs(&directory, "size=64k");
        let file = read_write(&directory.join("f"));
        file.set_len(128 << 10).expect("a hole takes no space");
        let mut engine = named("mmap", 1, 128 << 10).expect("it is always permitted");
        engine.attach(file.as_raw_fd(), None);
        let written = complete(&mut *engine, write_at(&file, 0, 128 << 10));
        assert_eq!(written, Err(Errno::ENOSPC));
        let written = complete(&mut *engine, write_at(&file, 0, 4096));
        assert_eq!(written, Ok(4096), "there is space for that");
    }
}
