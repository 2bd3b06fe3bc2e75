//! Operations on names, one after the other and in a ring: the same sequences of requests say
//! and leave the same, also where one in the middle fails.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rbench_core::Nanos;
use rbench_sys::engine::{Lack, NameRequest, NamesInFlight, lacking};
use rbench_sys::{Completion, Fs, OpenMode, PosixFs};

use crate::support::{Mounted, child_with_own_mounts, is_child, place, skip};

use NameRequest::*;

const fn open(mode: OpenMode) -> NameRequest {
    Open {
        mode,
        direct: false,
    }
}

const NEW: NameRequest = open(OpenMode::CreateNew);
const READ: NameRequest = open(OpenMode::Read);
const EXISTING: NameRequest = open(OpenMode::WriteExisting);

/// Bytes of data of each slot.
const BLOCK: usize = 40_000;
/// Of a call that writes a part of a file: pieces begin further behind, up to 63 times 512 bytes.
const PIECE: usize = BLOCK - 63 * 512;

/// Data that says where it is.
fn number(data: &mut [u8]) {
    for (at, four) in data.chunks_exact_mut(4).enumerate() {
        four.copy_from_slice(&(at as u32).to_le_bytes());
    }
}

/// Does sequences of requests.
trait Does {
    /// What `requests` on these paths say, with `byte` in all of the data; and what is in it then.
    fn go(&mut self, path: &CStr, other: &CStr, requests: &[NameRequest], byte: u8) -> Said;
}

/// The bytes or the errno, and the data that was read.
type Said = (Result<usize, Errno>, Vec<u8>);

/// One system call after the other, as operations of one at a time make them.
struct Plain(PosixFs);

impl Plain {
    fn request(
        &self,
        request: NameRequest,
        (path, other): (&CStr, &CStr),
        file: Option<i32>,
        data: &mut [u8],
    ) -> Result<usize, Errno> {
        let (fs, fd) = (&self.0, file.unwrap_or(-1));
        match request {
            Open { mode, direct } => return fs.open(path, mode, direct).map(|fd| fd as usize),
            Read => return fs.read(fd, data),
            ReadAt(offset) => return fs.read_at(fd, data, offset),
            ReadWhole => return self.read_whole(fd, data),
            Write => return fs.write(fd, data),
            WriteAt(offset) => return fs.write_at(fd, data, offset),
            WriteWhole(bytes) => return self.write_whole(fd, data, bytes as usize),
            Getxattr(name) => return fs.getxattr(fd, name, data),
            AnyXattr(name) => match fs.getxattr(fd, name, data) {
                Err(Errno::ENODATA) => Ok(()),
                other => other.map(drop),
            },
            Fsync => fs.fsync(fd),
            Fdatasync => fs.fdatasync(fd),
            Getattr => fs.getattr(fd).map(drop),
            Close => fs.close(fd),
            Stat => fs.stat(path).map(drop),
            Mkdir => fs.mkdir(path),
            Unlink => fs.unlink(path),
            Rmdir => fs.rmdir(path),
            Rename => fs.rename(path, other),
            Link => fs.link(path, other),
            Symlink => fs.symlink(other, path),
            Setxattr(name) => fs.setxattr(fd, name, data),
            Truncate(length) => fs.truncate(fd, length),
        }
        .map(|()| 0)
    }

    fn read_whole(&self, fd: i32, data: &mut [u8]) -> Result<usize, Errno> {
        let mut all = 0;
        loop {
            let read = self.0.read(fd, data)?;
            all += read;
            if read < data.len() {
                return Ok(all);
            }
        }
    }

    /// In pieces, from data that begin further and further behind.
    fn write_whole(&self, fd: i32, data: &[u8], bytes: usize) -> Result<usize, Errno> {
        let mut all = 0;
        for piece in 0.. {
            let length = PIECE.min(bytes - all);
            let from = 512 * (piece % 64);
            let written = self.0.write(fd, &data[from..from + length])?;
            all += written;
            if written < length || all == bytes {
                break;
            }
        }
        Ok(all)
    }
}

impl Does for Plain {
    fn go(&mut self, path: &CStr, other: &CStr, requests: &[NameRequest], byte: u8) -> Said {
        let (mut data, mut file, mut moved) = (vec![byte; BLOCK], None, 0);
        if requests
            .iter()
            .any(|request| matches!(request, WriteWhole(_)))
        {
            number(&mut data);
        }
        let mut result = Ok(());
        let mut short = false;
        for request in requests {
            let broken = result.is_err() || short;
            if broken && !(*request == Close && file.is_some()) {
                continue;
            }
            let done = self.request(*request, (path, other), file, &mut data);
            match (request, done) {
                (Open { .. }, Ok(fd)) => file = Some(fd as i32),
                (Read | Write | ReadAt(_) | WriteAt(_), Ok(n)) => {
                    (moved, short) = (moved + n, n < BLOCK);
                }
                (ReadWhole, Ok(n)) => moved += n,
                (WriteWhole(bytes), Ok(n)) => {
                    (moved, short) = (moved + n, n < *bytes as usize);
                }
                (Getxattr(_), Ok(n)) => moved = n,
                (Close, _) => file = None,
                _ => {}
            }
            result = result.and(done.map(drop));
        }
        (result.map(|()| moved), data)
    }
}

impl Does for NamesInFlight {
    fn go(&mut self, path: &CStr, other: &CStr, requests: &[NameRequest], byte: u8) -> Said {
        self.set_path(1, path);
        self.set_other(1, other);
        self.data(1).fill(byte);
        self.set_length(1, BLOCK);
        if requests
            .iter()
            .any(|request| matches!(request, WriteWhole(_)))
        {
            number(self.data(1));
            self.set_length(1, PIECE);
        }
        self.submit(1, requests);
        let done = wait(self);
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].slot, 1);
        (done[0].result, self.data(1).to_vec())
    }
}

fn wait(ring: &mut NamesInFlight) -> Vec<Completion> {
    let mut done = Vec::with_capacity(64);
    let begun = Instant::now();
    while done.is_empty() {
        let a_while = Nanos(1_000_000_000);
        ring.wait_for(&mut done, a_while).expect("waiting works");
        assert!(begun.elapsed() < Duration::from_secs(100), "it hangs");
    }
    done
}

/// A ring for a directory; `None` where the system forbids them.
fn ring(directory: &PosixFs, depth: usize) -> Option<NamesInFlight> {
    let directory = directory.directory().expect("a real one");
    match NamesInFlight::new(directory, depth, BLOCK, 4) {
        Ok(ring) => Some(ring),
        Err(errno @ (Errno::EPERM | Errno::ENOSYS)) => {
            skip(&format!("no ring: {errno}"));
            None
        }
        Err(errno) => panic!("a ring: {errno}"),
    }
}

fn c(path: impl Into<Vec<u8>>) -> CString {
    CString::new(path).expect("no zero byte")
}

/// Path, second path, requests.
type Case = (&'static str, &'static str, &'static [NameRequest]);

/// Every request, well and wrong, one behind the other.
const CASES: &[Case] = &[
    ("d", "", &[Mkdir]),
    ("d", "", &[Mkdir]),
    ("no/d", "", &[Mkdir]),
    ("d/f", "", &[NEW, Write, Fsync, Close]),
    ("d/f", "", &[NEW, Write, Fsync, Close]),
    ("d/f", "", &[READ, Read, Close]),
    // Another read at the file's position: the end.
    ("d/f", "", &[READ, Read, Read, Close]),
    ("d/f/x", "", &[Stat]),
    ("d/f", "", &[Stat]),
    ("d/g", "", &[Stat]),
    ("d/empty", "", &[open(OpenMode::ReadWrite), Close]),
    ("d/empty", "", &[READ, Read, Close]),
    ("d/empty", "", &[open(OpenMode::Write), Read, Close]),
    ("d/f", "", &[READ, Write, Fsync, Close]),
    ("d/f", "", &[EXISTING, Truncate(77), Close]),
    ("d/f", "", &[READ, Truncate(7), Close]),
    ("d/f", "", &[EXISTING, Truncate(u64::MAX), Close]),
    ("d/f", "", &[EXISTING, WriteAt(30_000), Fdatasync, Close]),
    ("d/f", "", &[READ, WriteAt(0), Fdatasync, Close]),
    ("d/f", "", &[READ, ReadAt(100), Getattr, Close]),
    ("d/f", "", &[READ, ReadAt(69_000), Getattr, Close]),
    ("d/f", "", &[READ, ReadWhole, Getattr, Close]),
    ("d/f", "", &[open(OpenMode::Write), ReadWhole, Close]),
    // One piece, one and a bit, more than there are places where pieces begin.
    ("d/w", "", &[NEW, WriteWhole(100), Close]),
    ("d/w", "", &[EXISTING, WriteWhole(PIECE as u64 + 1), Close]),
    (
        "d/w",
        "",
        &[EXISTING, WriteWhole(PIECE as u64 * 70), Fsync, Close],
    ),
    ("d/w", "", &[READ, Read, Read, Close]),
    ("d/w", "", &[READ, ReadWhole, Close]),
    ("d/w", "", &[READ, WriteWhole(100), Fsync, Close]),
    ("/dev/full", "", &[EXISTING, WriteWhole(100), Fsync, Close]),
    ("d/f", "", &[READ, AnyXattr(c"user.one"), Getattr, Close]),
    ("d", "", &[READ, AnyXattr(c"user.one"), Close]),
    ("d/f", "", &[READ, Setxattr(c"user.1"), Close]),
    ("d/f", "", &[READ, AnyXattr(c"user.1"), Close]),
    ("d/f", "", &[READ, Getxattr(c"user.one"), Close]),
    ("d/f", "", &[READ, Getxattr(c"user.two"), Close]),
    ("d/f", "d/l", &[Link]),
    ("d/f", "d/l", &[Link]),
    ("d", "e", &[Link]),
    ("d/s", "f", &[Symlink]),
    ("d/s", "f", &[Symlink]),
    ("d/s", "", &[READ, Close]),
    ("d/s", "", &[Stat]),
    ("d/f", "d/g", &[Rename]),
    ("d/f", "d/g", &[Rename]),
    ("d", "d/inside", &[Rename]),
    ("d", "", &[Rmdir]),
    ("d/g", "", &[Rmdir]),
    ("d", "", &[Unlink]),
    ("d/l", "", &[Unlink]),
    ("d/l", "", &[Unlink]),
    ("d2", "", &[Mkdir]),
    ("d2", "", &[Rmdir]),
    ("/dev/full", "", &[EXISTING, Write, Fsync, Close]),
    ("/dev/null/d", "", &[Mkdir]),
];

/// What lies below `path`: names, permissions, lengths, names of each.
fn tree(path: &Path) -> Vec<(PathBuf, u32, u64, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).expect("a directory") {
        let entry = entry.expect("an entry");
        let about = fs::symlink_metadata(entry.path()).expect("it is there");
        let name = PathBuf::from(entry.file_name());
        let length = if about.is_dir() { 0 } else { about.len() };
        if about.is_dir() {
            let inside = tree(&entry.path()).into_iter();
            found.extend(inside.map(|(below, a, b, c)| (name.join(below), a, b, c)));
        }
        let names = if about.is_dir() { 0 } else { about.nlink() };
        found.push((name, about.mode(), length, names));
    }
    found.sort();
    found
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").expect("it is listed").count()
}

/// Where nobody else opens files meanwhile.
#[test]
fn a_ring_says_and_leaves_what_system_calls_do() {
    const TEST: &str = "in_flight::a_ring_says_and_leaves_what_system_calls_do";
    if !is_child(TEST) {
        return drop(crate::support::child(TEST, &["env"]));
    }
    let there = place();
    let [one, two] = ["one", "two"].map(|name| {
        fs::create_dir(there.join(name)).expect("a directory");
        PosixFs::open_directory(&there.join(name)).expect("it opens")
    });
    let Some(mut ring) = ring(&two, 3) else {
        return;
    };
    let mut plain = Plain(one);
    let before = open_files();
    for (number, (path, other, requests)) in CASES.iter().enumerate() {
        let (path, other) = (c(*path), c(*other));
        let byte = number as u8 + 1;
        let expect = plain.go(&path, &other, requests, byte);
        let found = ring.go(&path, &other, requests, byte);
        assert_eq!(found.0, expect.0, "{number}: {path:?} {requests:?}");
        assert_eq!(found.1, expect.1, "{number}: {path:?} {requests:?}");
        assert!(!ring.has_file(1), "{number}: it is closed");
        assert_eq!(open_files(), before, "{number}: nothing stays open");
    }
    assert_eq!(tree(&there.join("two")), tree(&there.join("one")));
    assert!(tree(&there.join("one")).len() > 3, "there was something");
}

#[test]
fn as_many_as_there_are_slots_wait_side_by_side_and_hold_up_no_other() {
    const WAITING: usize = 31;
    let there = tempfile::tempdir().expect("a temporary directory");
    let fs = PosixFs::open_directory(there.path()).expect("it opens");
    let Some(mut ring) = ring(&fs, WAITING + 1) else {
        return;
    };
    let fifo = |number: usize| there.path().join(number.to_string());
    for number in 0..WAITING {
        mkfifo(&fifo(number), Mode::S_IRWXU).expect("a FIFO");
        ring.set_path(number, &c(number.to_string()));
        // Opening one waits for who opens the other end.
        ring.submit(number, &[READ, Close]);
    }
    ring.set_path(WAITING, c"d");
    ring.submit(WAITING, &[Mkdir]);
    let made = Completion {
        slot: WAITING,
        result: Ok(0),
    };
    assert_eq!(wait(&mut ring), [made], "the last one is complete");
    let mut done = Vec::with_capacity(WAITING);
    ring.wait_for(&mut done, Nanos(20_000_000))
        .expect("waiting works");
    assert_eq!(done, [], "nothing else is");
    // The last of the others first: each waits in a thread of its own.
    for number in (0..WAITING).rev() {
        let end = fs::OpenOptions::new().write(true).open(fifo(number));
        let end = end.expect("its other end is being opened");
        let opened = Completion {
            slot: number,
            result: Ok(0),
        };
        assert_eq!(wait(&mut ring), [opened]);
        drop(end);
    }
}

#[test]
fn what_a_sequence_leaves_open_serves_the_next_one_and_is_closed_with_the_ring() {
    let there = tempfile::tempdir().expect("a temporary directory");
    let fs = PosixFs::open_directory(there.path()).expect("it opens");
    let Some(mut ring) = ring(&fs, 2) else {
        return;
    };
    assert_eq!(ring.go(c"f", c"", &[NEW], 7).0, Ok(0));
    assert!(ring.has_file(1));
    assert_eq!(ring.go(c"f", c"", &[Write], 7).0, Ok(BLOCK));
    assert_eq!(ring.go(c"f", c"", &[Read], 7).0, Err(Errno::EBADF));
    assert!(ring.has_file(1), "who did not close it closes it later");
    assert_eq!(ring.go(c"f", c"", &[Close], 7).0, Ok(0));
    assert!(!ring.has_file(1));
    assert_eq!(ring.go(c"f", c"", &[Close], 7).0, Err(Errno::EBADF));

    // A pipe tells by its end that nobody has it open any more.
    mkfifo(&there.path().join("p"), Mode::S_IRWXU).expect("a FIFO");
    let reader = fs.open(c"p", OpenMode::ReadWrite, false).expect("opens");
    assert_eq!(ring.go(c"p", c"", &[EXISTING], 7).0, Ok(0));
    let first = fs.open(c"p", OpenMode::Read, false).expect("opens");
    fs.close(reader).expect("closes");
    drop(ring);
    assert_eq!(fs.read(first, &mut [0]), Ok(0), "nobody can write");
    fs.close(first).expect("closes");
}

#[test]
fn slots_share_a_file_that_one_of_them_has_opened() {
    const PARTS: usize = 40;
    let there = tempfile::tempdir().expect("a temporary directory");
    let fs = PosixFs::open_directory(there.path()).expect("it opens");
    let Some(ring) = ring(&fs, 4) else {
        return;
    };
    let (mut ring, shared) = (ring.with_files(6), 5);
    ring.set_path(0, c"f");
    ring.submit_on(0, shared, &[NEW]);
    assert_eq!(wait(&mut ring)[0].result, Ok(0));
    assert!(ring.has_file(shared) && !ring.has_file(0));
    for part in (0..PARTS).step_by(4) {
        for slot in 0..4 {
            ring.set_length(slot, 100);
            ring.data(slot)[..100].fill((part + slot) as u8);
            let offset = 100 * (part + slot) as u64;
            ring.submit_on(slot, shared, &[WriteAt(offset), Fdatasync]);
        }
        let mut left = 4;
        while left > 0 {
            let done = wait(&mut ring);
            assert!(done.iter().all(|done| done.result == Ok(100)), "{done:?}");
            left -= done.len();
        }
    }
    let found = fs::read(there.path().join("f")).expect("it is there");
    let expect = (0..PARTS).flat_map(|part| [part as u8; 100]);
    assert!(found.into_iter().eq(expect));
    let file = ring.take_file(shared).expect("it is open");
    assert!(!ring.has_file(shared));
    fs.close(file).expect("it closes");
}

#[test]
fn dropping_a_ring_waits_for_what_is_under_way() {
    let there = tempfile::tempdir().expect("a temporary directory");
    let fs = PosixFs::open_directory(there.path()).expect("it opens");
    for round in 0..20 {
        let Some(mut ring) = ring(&fs, 8) else {
            return;
        };
        for slot in 0..8 {
            ring.set_path(slot, &c(format!("{round}.{slot}")));
            ring.submit(slot, &[NEW, Write, Close]);
        }
        if round % 2 == 0 {
            let mut done = Vec::with_capacity(8);
            ring.wait(&mut done).expect("waiting works");
            assert!(!done.is_empty(), "one is complete");
        }
        drop(ring);
        for slot in 0..8 {
            let file = there.path().join(format!("{round}.{slot}"));
            assert_eq!(fs::metadata(file).expect("made").len(), BLOCK as u64);
        }
    }
}

#[test]
fn mistakes_of_the_program_are_refused_loudly() {
    let fs = PosixFs::open_directory(Path::new("/")).expect("it opens");
    let directory = fs.directory().expect("a real one");
    for depth in [0, 4097] {
        let made = NamesInFlight::new(directory, depth, 0, 1);
        assert_eq!(made.err(), Some(Errno::EINVAL), "{depth}");
    }
    for mistake in [
        |ring: &mut NamesInFlight| ring.submit(0, &[Stat]),
        |ring: &mut NamesInFlight| ring.set_path(0, c"x"),
        |ring: &mut NamesInFlight| ring.data(0).fill(0),
        |ring: &mut NamesInFlight| ring.submit(1, &[]),
        |ring: &mut NamesInFlight| ring.set_length(1, BLOCK + 1),
    ] {
        let Some(mut ring) = ring(&fs, 2) else {
            return;
        };
        ring.set_path(0, c"dev/null");
        ring.submit(0, &[Stat]);
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| mistake(&mut ring)));
        assert!(made.is_err());
    }
    assert!(directory.as_raw_fd() >= 0);
}

#[test]
fn what_this_kernel_has_is_found_without_using_it() {
    match lacking(&[NEW, Write, Fsync, Close, Stat, Read], 32) {
        Ok(()) | Err(Lack::Ring(_)) => {}
        Err(lack) => panic!("every kernel with a ring that serves has these: {lack:?}"),
    }
}

/// These mount, each in a namespace of its own.
mod needs_root {
    use super::*;

    #[test]
    fn a_file_system_that_fills_up_gives_a_short_write_then_an_error_and_files_are_closed() {
        const TEST: &str = "in_flight::needs_root::a_file_system_that_fills_up_gives_a_short_write_then_an_error_and_files_are_closed";
        if !is_child(TEST) {
            return child_with_own_mounts(TEST);
        }
        let there = place();
        let mounted = Mounted::tmpfs(&there, "size=44k");
        let fs = PosixFs::open_directory(&there).expect("it opens");
        let Some(mut ring) = ring(&fs, 2) else {
            return;
        };
        let mut write = |name: &str| {
            let said = ring.go(&c(name), c"", &[NEW, Write, Fsync, Close], 7).0;
            assert!(!ring.has_file(1), "{name} is closed");
            said
        };
        // Eleven pages hold one block and a page of the next.
        assert_eq!(write("whole"), Ok(BLOCK));
        assert_eq!(write("short"), Ok(4096));
        assert_eq!(write("none"), Err(Errno::ENOSPC));
        assert_eq!(fs::metadata(there.join("short")).expect("made").len(), 4096);
        drop(ring);
        drop((fs, mounted));
    }
}
