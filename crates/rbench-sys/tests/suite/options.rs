//! Options of engines: the requested calls and their effects.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::libc;
use rbench_core::{EngineOptions, IoPriority};
use rbench_sys::engine::find;
use rbench_sys::residency::resident;
use rbench_sys::{Engine, EngineConfig, Request};

use crate::blocks::{BLOCK, complete, data, file_of, permitted, read_at, write_at};
use crate::support::{disk, evict, place, this_test, traced, wait_until};

/// Creates an engine with the options of `change`; `None`, with a notice, if the
/// system lacks it.
fn with(
    name: &str,
    depth: usize,
    change: impl FnOnce(&mut EngineOptions),
) -> Option<Box<dyn Engine>> {
    let mut config = EngineConfig::new(depth, BLOCK);
    change(&mut config.options);
    let info = find(name).expect("it is in the table");
    permitted(name, (info.make)(config))
}

type Change = fn(&mut EngineOptions);

/// Options that do not change the moved data.
const HARMLESS: &[(&str, Change)] = &[
    ("io_uring", |o| o.fixedbufs = Some(true)),
    ("io_uring", |o| o.fixedbufs = Some(false)),
    ("io_uring", |o| o.registerfiles = Some(true)),
    ("io_uring", |o| o.registerfiles = Some(false)),
    ("io_uring", |o| o.nonvectored = false),
    ("io_uring", |o| {
        (o.nonvectored, o.fixedbufs) = (false, Some(true));
    }),
    ("io_uring", |o| o.force_async = 3),
    ("io_uring", |o| o.sqthread_poll = true),
    ("io_uring", |o| {
        (o.sqthread_poll, o.sqthread_poll_cpu) = (true, Some(0));
    }),
    ("libaio", |o| o.userspace_reap = true),
    ("libaio", |o| o.libaio_vectored = true),
    ("pvsync2", |o| o.hipri = true),
    ("pvsync2", |o| (o.hipri, o.hipri_percentage) = (true, 50)),
];

#[test]
fn data_is_the_same_with_every_option() {
    const BLOCKS: usize = 200;
    let content = data(BLOCKS * BLOCK);
    for (number, (name, change)) in HARMLESS.iter().enumerate() {
        let depth = if *name == "pvsync2" { 1 } else { 16 };
        let Some(mut engine) = with(name, depth, change) else {
            continue;
        };
        let file = tempfile::tempfile().expect("a temporary file");
        engine.attach(file.as_raw_fd(), None);
        let mut done = Vec::with_capacity(depth);
        for (first, blocks) in (0..BLOCKS)
            .step_by(depth)
            .zip(content.chunks(depth * BLOCK))
        {
            for (slot, block) in blocks.chunks(BLOCK).enumerate() {
                engine.buffer(slot).copy_from_slice(block);
                engine.submit(
                    slot,
                    write_at(&file, ((first + slot) * BLOCK) as u64, BLOCK),
                );
                if depth == 1 {
                    engine.wait(&mut done).expect("waiting works");
                }
            }
            let all = blocks.len() / BLOCK;
            while done.len() < all {
                engine.wait(&mut done).expect("waiting works");
            }
            assert!(
                done.drain(..).all(|c| c.result == Ok(BLOCK)),
                "{name} {number}"
            );
        }
        let mut written = vec![0; content.len()];
        file.read_exact_at(&mut written, 0)
            .expect("all was written");
        assert!(written == content, "{name} {number}: written");
        for i in (0..BLOCKS).rev() {
            let read = complete(&mut *engine, read_at(&file, (i * BLOCK) as u64, BLOCK));
            assert_eq!(read, Ok(BLOCK), "{name} {number}");
            assert!(
                engine.buffer(0) == &content[i * BLOCK..][..BLOCK],
                "{name} {number}"
            );
        }
        engine.detach(file.as_raw_fd());
    }
}

/// The kernel's result for one block of preadv2 or pwritev2 with these flags.
fn of_kernel(file: &File, write: bool, flags: libc::c_int) -> Result<usize, Errno> {
    let mut block = vec![0_u8; BLOCK];
    let vector = libc::iovec {
        iov_base: block.as_mut_ptr().cast(),
        iov_len: BLOCK,
    };
    let fd = file.as_raw_fd();
    // SAFETY: the one element is the block.
    let moved = unsafe {
        match write {
            true => libc::pwritev2(fd, &vector, 1, 0, flags),
            false => libc::preadv2(fd, &vector, 1, 0, flags),
        }
    };
    Errno::result(moved).map(|n| n as usize)
}

#[test]
fn flags_of_requests_reach_the_kernel_by_every_engine_that_has_them() {
    let directory = disk();
    let path = directory.path().join("f");
    std::fs::write(&path, [1; BLOCK]).expect("there is space");
    let open = || {
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        opened.expect("it was made")
    };
    open().sync_all().expect("it is on a disk");
    let forget = |file: &File| {
        // A page that is being read cannot be dropped yet.
        wait_until("the pages go", || {
            file.sync_data().expect("it is on a disk");
            evict(file);
            resident(file.as_fd()).expect("the kernel says").cached == 0
        });
    };
    let all: [(&str, Change, libc::c_int, bool); 3] = [
        ("atomic", |o| o.atomic = true, libc::RWF_ATOMIC, true),
        ("atomic read", |o| o.atomic = true, 0, false),
        (
            "uncached",
            |o| o.uncached = true,
            libc::RWF_DONTCACHE,
            false,
        ),
    ];
    for (what, change, flags, write) in all {
        let file = open();
        forget(&file);
        let expect = of_kernel(&file, write, flags);
        let pages = resident(file.as_fd()).expect("the kernel says").cached;
        for name in ["pvsync2", "io_uring", "libaio"] {
            if what == "uncached" && name == "libaio" {
                continue;
            }
            let Some(mut engine) = with(name, 1, change) else {
                continue;
            };
            forget(&file);
            let request = if write { write_at } else { read_at };
            let result = complete(&mut *engine, request(&file, 0, BLOCK));
            assert_eq!(result, expect, "{what} of {name}");
            let left = resident(file.as_fd()).expect("the kernel says").cached;
            assert_eq!(left, pages, "{what} of {name}: pages in the cache");
        }
    }
    // Without the flag a read of an empty pipe waits; before Linux 6.4 a pipe does not
    // support it.
    let (empty, _sender) = std::io::pipe().expect("a pipe");
    for name in ["io_uring", "libaio"] {
        let Some(mut engine) = with(name, 1, |o| o.nowait = true) else {
            continue;
        };
        let result = complete(&mut *engine, read_at(&empty, 0, BLOCK));
        let refused = [Err(Errno::EAGAIN), Err(Errno::EOPNOTSUPP)];
        assert!(refused.contains(&result), "{name}: {result:?}");
    }
}

/// Options, and the words that strace shows only with them.
const ASKED: &[(&str, &str, Change, &str)] = &[
    (
        "iopoll",
        "io_uring",
        |o| o.hipri = true,
        "IORING_SETUP_IOPOLL",
    ),
    (
        "sqpoll",
        "io_uring",
        |o| o.sqthread_poll = true,
        "IORING_SETUP_SQPOLL",
    ),
    (
        "affine",
        "io_uring",
        |o| (o.sqthread_poll, o.sqthread_poll_cpu) = (true, Some(0)),
        "IORING_SETUP_SQ_AFF",
    ),
    (
        "buffers",
        "io_uring",
        |o| o.fixedbufs = Some(true),
        "IORING_REGISTER_BUFFERS",
    ),
    (
        "files",
        "io_uring",
        |o| o.registerfiles = Some(true),
        "IORING_REGISTER_FILES",
    ),
    ("hipri", "pvsync2", |o| o.hipri = true, "RWF_HIPRI"),
    ("nowait-call", "pvsync2", |o| o.nowait = true, "RWF_NOWAIT"),
    ("nowait", "libaio", |o| o.nowait = true, "RWF_NOWAIT"),
    (
        "vectors",
        "libaio",
        |o| o.libaio_vectored = true,
        "IOCB_CMD_PWRITEV",
    ),
];

/// One write with each option, and one without options.
fn asked() {
    let file = File::create(place().join("f")).expect("a new file");
    for (what, name, change, _) in ASKED {
        let plain: Change = |o| (o.fixedbufs, o.registerfiles) = (Some(false), Some(false));
        for (how, change) in [("with", *change), ("without", plain)] {
            mark(&format!("{what}-{how}"));
            if let Some(mut engine) = with(name, 1, change) {
                // The result depends on the file.
                let _ = complete(&mut *engine, write_at(&file, 0, BLOCK));
            }
        }
    }
    mark("end");
}

/// A call without effect that strace shows.
fn mark(name: &str) {
    assert!(!std::path::Path::new(&format!("/option/{name}")).exists());
}

/// What strace shows between the mark `name` and the next one.
fn section<'a>(log: &'a str, name: &str) -> &'a str {
    let start = log.split_once(&format!("/option/{name}\""));
    let (_, behind) = start.expect("marked");
    behind.split("/option/").next().unwrap_or_default()
}

#[test]
fn the_kernel_is_asked_for_what_the_options_say() {
    let Some(run) = traced(this_test!(), &["-e", "signal=none"], asked) else {
        return;
    };
    for (what, name, _, word) in ASKED {
        let asked = section(&run.log, &format!("{what}-with"));
        let plain = section(&run.log, &format!("{what}-without"));
        assert!(asked.contains(word), "{what} of {name}: {asked}");
        assert!(!plain.contains(word), "{what} of {name}: {plain}");
    }
}

#[test]
fn completions_in_mapped_memory_cost_no_call() {
    let work = || {
        for reap in [false, true] {
            let mut engine = with("libaio", 1, |o| o.userspace_reap = reap).expect("permitted");
            let file = File::create(place().join("f")).expect("a new file");
            mark(&format!("reap-{reap}"));
            // Through the page cache, it is complete when it is submitted.
            assert_eq!(complete(&mut *engine, write_at(&file, 0, BLOCK)), Ok(BLOCK));
            mark("end");
        }
    };
    let Some(run) = traced(this_test!(), &["-e", "signal=none"], work) else {
        return;
    };
    let calls = |name: &str| {
        let section = section(&run.log, name);
        (
            section.matches("io_submit(").count(),
            section.matches("io_getevents(").count(),
        )
    };
    assert_eq!(calls("reap-false"), (1, 1));
    assert_eq!(calls("reap-true"), (1, 0));
}

#[test]
fn the_kernel_judges_the_priorities_of_requests() {
    let file = file_of(BLOCK as u64);
    for name in ["libaio", "io_uring"] {
        let Some(mut engine) = with(name, 1, |_| ()) else {
            continue;
        };
        // The kernel has no class 7, so a refusal shows that it was given the priority.
        for (class, expect) in [(2, Ok(BLOCK)), (7, Err(Errno::EINVAL)), (0, Ok(BLOCK))] {
            for request in [write_at(&file, 0, BLOCK), read_at(&file, 0, BLOCK)] {
                let request = Request {
                    priority: IoPriority::new(class, 0, 0),
                    ..request
                };
                let found = complete(&mut *engine, request);
                assert_eq!(found, expect, "{name} {:?} class {class}", request.transfer);
            }
        }
    }
}

#[test]
fn about_so_many_calls_are_polled_as_the_percentage_says() {
    const CALLS: usize = 400;
    let work = || {
        let asks: Change = |o| (o.hipri, o.hipri_percentage) = (true, 25);
        let mut engine = with("pvsync2", 1, asks).expect("permitted");
        let file = File::create(place().join("f")).expect("a new file");
        for _ in 0..CALLS {
            assert_eq!(complete(&mut *engine, write_at(&file, 0, BLOCK)), Ok(BLOCK));
        }
    };
    let options = ["-e", "trace=pwritev2", "-e", "signal=none"];
    let Some(run) = traced(this_test!(), &options, work) else {
        return;
    };
    assert_eq!(run.log.matches("pwritev2(").count(), CALLS);
    // The choice derives from a fixed seed: 3 standard deviations are enough.
    let polled = run.log.matches("RWF_HIPRI").count();
    assert!((75..=125).contains(&polled), "{polled} of {CALLS}");
}
