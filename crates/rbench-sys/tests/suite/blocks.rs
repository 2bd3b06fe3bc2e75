//! Engines and requests for the tests of engines.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use rbench_core::IoPriority;
use rbench_core::random::DataStream;
use rbench_sys::engine::{ENGINES, find};
use rbench_sys::{Completion, Engine, EngineConfig, EngineInfo, Request, Transfer};

use crate::support::skip;

/// Block size of most tests (bytes).
pub const BLOCK: usize = 4096;

/// What was made of the engine `name`; `None`, with a notice, if the system forbids it.
pub fn permitted<E>(name: &str, made: Result<E, Errno>) -> Option<E> {
    match made {
        Ok(engine) => Some(engine),
        Err(errno @ (Errno::ENOSYS | Errno::EPERM)) => {
            skip(&format!("{name} is not permitted here: {errno:?}"));
            None
        }
        Err(errno) => panic!("{name}: {errno:?}"),
    }
}

/// Creates an engine; `None`, with a notice, if the system forbids it.
pub fn make(info: &EngineInfo, depth: usize, block: usize) -> Option<Box<dyn Engine>> {
    let depth = depth.min(info.depth_max);
    permitted(info.name, (info.make)(EngineConfig::new(depth, block)))
}

/// Creates the engine `name`, like [`make`].
pub fn named(name: &str, depth: usize, block: usize) -> Option<Box<dyn Engine>> {
    make(find(name).expect("it is in the table"), depth, block)
}

/// The engines of `infos`, each with its depth: `depth`, or less if it has no more slots.
/// Those that the system forbids are left out, with a notice.
pub fn made(
    infos: impl Iterator<Item = &'static EngineInfo>,
    depth: usize,
    block: usize,
) -> impl Iterator<Item = (&'static EngineInfo, usize, Box<dyn Engine>)> {
    infos.filter_map(move |info| {
        let engine = make(info, depth, block)?;
        Some((info, depth.min(info.depth_max), engine))
    })
}

/// Engines that move data.
pub fn movers() -> impl Iterator<Item = &'static EngineInfo> {
    ENGINES.iter().filter(|info| info.moves_data)
}

/// Engines that execute each request exactly, or do nothing at all. Those that
/// allocate or truncate instead have their own tests.
pub fn movers_and_null() -> impl Iterator<Item = &'static EngineInfo> {
    let moves = |info: &&EngineInfo| info.moves_data || !info.uses_files;
    ENGINES.iter().filter(moves)
}

/// Runs `body` with each engine that moves data like the system calls do: files grow,
/// and other than regular files work too.
pub fn each_unmapped(
    depth: usize,
    block: usize,
    mut body: impl FnMut(&'static str, &mut dyn Engine),
) {
    for (info, _, mut engine) in made(movers().filter(|info| !info.mapped), depth, block) {
        body(info.name, &mut *engine);
    }
}

/// Runs `body` with each engine that also supports files with only the plain calls
/// read and write, such as /dev/full. The kernel's asynchronous I/O and splice do
/// not.
pub fn each_plain(depth: usize, block: usize, mut body: impl FnMut(&'static str, &mut dyn Engine)) {
    each_unmapped(depth, block, |name, engine| {
        if !["libaio", "splice"].contains(&name) {
            body(name, engine);
        }
    });
}

/// Runs `body` with each engine that moves data.
pub fn each_mover(depth: usize, block: usize, mut body: impl FnMut(&'static str, &mut dyn Engine)) {
    for (info, _, mut engine) in made(movers(), depth, block) {
        body(info.name, &mut *engine);
    }
}

/// Submits one request in slot 0 and waits for it.
pub fn complete(engine: &mut dyn Engine, request: Request) -> Result<usize, Errno> {
    let mut done = Vec::with_capacity(1);
    engine.submit(0, request);
    engine.wait(&mut done).expect("waiting works");
    match done[..] {
        [Completion { slot: 0, result }] => result,
        ref other => panic!("one request, these completions: {other:?}"),
    }
}

/// A request for the start of the buffer.
pub fn request(transfer: Transfer, file: &impl AsRawFd, offset: u64, length: usize) -> Request {
    Request {
        transfer,
        fd: file.as_raw_fd(),
        offset,
        length,
        at: 0,
        priority: IoPriority::default(),
    }
}

/// A read.
pub fn read_at(file: &impl AsRawFd, offset: u64, length: usize) -> Request {
    request(Transfer::Read, file, offset, length)
}

/// A write.
pub fn write_at(file: &impl AsRawFd, offset: u64, length: usize) -> Request {
    request(Transfer::Write, file, offset, length)
}

/// Bytes without a pattern, the same for each length.
pub fn data(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    DataStream::new(&[length as u64]).fill(&mut bytes);
    bytes
}

/// Opens the file at `path`, and creates it if missing.
pub fn read_write(path: &std::path::Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .expect("the file can be made")
}

/// An empty file for `length` bytes: it has that length already.
pub fn file_of(length: u64) -> File {
    let file = tempfile::tempfile().expect("a temporary file");
    file.set_len(length).expect("the file is ours");
    file
}
