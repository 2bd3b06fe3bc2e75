//! Operations on names, one after the other and in a ring: the same calls say
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
use rbench_core::operations::READABLE;
use rbench_core::{By, Call, Nanos, OpenFlags, Part, Times};
use rbench_sys::engine::{Lack, NamesInFlight, lacking};
use rbench_sys::fs::perform;
use rbench_sys::{Completion, Fs, PosixFs};

use crate::blocks::permitted;
use crate::support::{Mounted, in_child, in_own_mounts, place, this_test};

const fn once(call: Call) -> Part {
    Part::once(call)
}

const fn open(flags: OpenFlags) -> Part {
    once(Call::Open(flags))
}

/// Writes this many bytes, in pieces.
const fn written(bytes: u64) -> Part {
    Part {
        call: Call::Write,
        times: Times::UntilWritten(bytes),
    }
}

/// Reads until a call brings less.
const TO_END: Part = Part {
    call: Call::Read,
    times: Times::UntilShort,
};
const NEW: Part = open(OpenFlags::CREATE_NEW);
const READ: Part = open(OpenFlags::READ);
const EXISTING: Part = open(OpenFlags::WRITE_EXISTING);

/// Bytes of data of each slot.
const BLOCK: usize = 40_000;
/// Bytes of a call that writes a part of a file: later pieces begin further on, up to 63 times 512
/// bytes.
const PIECE: usize = BLOCK - 63 * 512;

/// Data that says where it is.
fn number(data: &mut [u8]) {
    for (at, four) in data.chunks_exact_mut(4).enumerate() {
        four.copy_from_slice(&(at as u32).to_le_bytes());
    }
}

/// Makes calls.
trait Makes {
    /// Makes the calls `parts` on these paths, with `byte` in all of the data; returns the result,
    /// and the data afterwards.
    fn go(&mut self, path: &CStr, other: &CStr, parts: &[Part], byte: u8) -> Said;
}

/// The bytes or the errno, and the data that was read.
type Said = (Result<usize, Errno>, Vec<u8>);

/// Returns true if a file is written in pieces.
fn in_pieces(parts: &[Part]) -> bool {
    let written = |part: &Part| matches!(part.times, Times::UntilWritten(_));
    parts.iter().any(written)
}

impl Makes for PosixFs {
    fn go(&mut self, path: &CStr, other: &CStr, parts: &[Part], byte: u8) -> Said {
        let (mut data, mut length, mut file) = (vec![byte; BLOCK], BLOCK, None);
        if in_pieces(parts) {
            number(&mut data);
            length = PIECE;
        }
        let progress = perform(self, (parts, length), (path, other), &mut data, &mut file);
        (progress.result().map(|moved| moved as usize), data)
    }
}

impl Makes for NamesInFlight {
    fn go(&mut self, path: &CStr, other: &CStr, parts: &[Part], byte: u8) -> Said {
        self.set_path(1, path);
        self.set_other(1, other);
        self.data(1).fill(byte);
        self.set_length(1, BLOCK);
        if in_pieces(parts) {
            number(self.data(1));
            self.set_length(1, PIECE);
        }
        assert!(self.submit(1, parts), "a ring performs it");
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
    let ring = NamesInFlight::new(directory, depth, BLOCK, 4);
    permitted("a ring of names", ring)
}

fn c(path: impl Into<Vec<u8>>) -> CString {
    CString::new(path).expect("no zero byte")
}

/// Path, second path, calls.
type Case = (&'static str, &'static str, &'static [Part]);

macro_rules! cases {
    ($($path:literal $(-> $other:literal)? => $($part:expr),*;)*) => {
        /// Every call, well and wrong, one after the other.
        const CASES: &[Case] = &[$(($path, concat!($($other)?), &[$($part),*]),)*];
    };
}

const CLOSE: Part = once(Call::Close);
const WRITE: Part = once(Call::Write);
const FSYNC: Part = once(Call::Fsync);
const DATASYNC: Part = once(Call::Fdatasync);
const READ_ONCE: Part = once(Call::Read);
const GETATTR: Part = once(Call::Getattr);
const STAT: Part = once(Call::Stat(By::Link));
const MKDIR: Part = once(Call::MKDIR);
const RENAME: Part = once(Call::Rename(0));

const fn truncated(length: u64) -> Part {
    once(Call::Truncate(By::File, length))
}

const fn allocated(mode: i32, offset: u64, length: u64) -> Part {
    once(Call::Allocate {
        mode,
        offset,
        length,
    })
}

const fn attribute(name: &'static CStr) -> Part {
    once(Call::Getxattr(By::File, Some(name)))
}

cases! {
    "d" => MKDIR;
    "d" => MKDIR;
    "no/d" => MKDIR;
    "d/f" => NEW, WRITE, FSYNC, CLOSE;
    "d/f" => NEW, WRITE, FSYNC, CLOSE;
    "d/f" => READ, READ_ONCE, CLOSE;
    // Another read at the file's position: the end.
    "d/f" => READ, READ_ONCE, READ_ONCE, CLOSE;
    "d/f/x" => STAT;
    "d/f" => STAT;
    "d/g" => STAT;
    "d/f" => once(Call::LOOKUP);
    "d/g" => once(Call::LOOKUP);
    "d/empty" => open(OpenFlags::READ_WRITE), CLOSE;
    "d/empty" => READ, READ_ONCE, CLOSE;
    "d/empty" => open(OpenFlags::WRITE), READ_ONCE, CLOSE;
    "d/f" => READ, WRITE, FSYNC, CLOSE;
    "d/f" => EXISTING, truncated(77), CLOSE;
    "d/f" => READ, truncated(7), CLOSE;
    "d/f" => EXISTING, truncated(u64::MAX), CLOSE;
    "d/f" => EXISTING, once(Call::WriteAt(30_000)), DATASYNC, CLOSE;
    "d/f" => READ, once(Call::WriteAt(0)), DATASYNC, CLOSE;
    "d/f" => READ, once(Call::ReadAt(100)), GETATTR, CLOSE;
    "d/f" => READ, once(Call::ReadAt(69_000)), GETATTR, CLOSE;
    "d/f" => READ, TO_END, GETATTR, CLOSE;
    "d/f" => open(OpenFlags::WRITE), TO_END, CLOSE;
    // Blocks after its end, with (1) and without its old length; none of a file that is not open for
    // writing, or of a device.
    "d/a" => NEW, allocated(1, 0, 64 << 10), GETATTR, CLOSE;
    "d/a" => EXISTING, allocated(0, 4096, 8192), FSYNC, CLOSE;
    "d/a" => READ, TO_END, CLOSE;
    "d/a" => READ, allocated(0, 0, 4096), CLOSE;
    "d/a" => EXISTING, allocated(0, 0, 0), CLOSE;
    "/dev/null" => EXISTING, allocated(0, 0, 4096), CLOSE;
    // One piece, one and a bit, more than there are places where pieces begin.
    "d/w" => NEW, written(100), CLOSE;
    "d/w" => EXISTING, written(PIECE as u64 + 1), CLOSE;
    "d/w" => EXISTING, written(PIECE as u64 * 70), FSYNC, CLOSE;
    "d/w" => READ, READ_ONCE, READ_ONCE, CLOSE;
    "d/w" => READ, TO_END, CLOSE;
    "d/w" => READ, written(100), FSYNC, CLOSE;
    "/dev/full" => EXISTING, written(100), FSYNC, CLOSE;
    "d/f" => READ, attribute(c"user.one"), GETATTR, CLOSE;
    "d" => READ, attribute(c"user.one"), CLOSE;
    "d/f" => READ, once(Call::Setxattr(By::File, Some(c"user.1"), 0)), CLOSE;
    "d/f" => READ, attribute(c"user.1"), CLOSE;
    "d/f" => READ, attribute(c"user.one"), CLOSE;
    "d/f" => READ, attribute(c"user.two"), CLOSE;
    "d/f" -> "d/l" => once(Call::Link);
    "d/f" -> "d/l" => once(Call::Link);
    "d" -> "e" => once(Call::Link);
    "d/s" -> "f" => once(Call::Symlink);
    "d/s" -> "f" => once(Call::Symlink);
    "d/s" => READ, CLOSE;
    "d/s" => STAT;
    "d/f" -> "d/g" => RENAME;
    "d/f" -> "d/g" => RENAME;
    "d" -> "d/inside" => RENAME;
    "d" => once(Call::Rmdir);
    "d/g" => once(Call::Rmdir);
    "d" => once(Call::Unlink);
    "d/l" => once(Call::Unlink);
    "d/l" => once(Call::Unlink);
    "d2" => MKDIR;
    "d2" => once(Call::Rmdir);
    "/dev/full" => EXISTING, WRITE, FSYNC, CLOSE;
    "/dev/null/d" => MKDIR;
}

/// The content of `path`: names, permissions, lengths, names of each.
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

/// Runs in a process of its own, where no other test opens files meanwhile.
#[test]
fn a_ring_says_and_leaves_what_system_calls_do() {
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    let there = place();
    let [one, two] = ["one", "two"].map(|name| {
        fs::create_dir(there.join(name)).expect("a directory");
        PosixFs::open_directory(&there.join(name)).expect("it opens")
    });
    let Some(mut ring) = ring(&two, 3) else {
        return;
    };
    let mut plain = one;
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
        assert!(ring.submit(number, &[READ, CLOSE]));
    }
    ring.set_path(WAITING, c"d");
    assert!(ring.submit(WAITING, &[MKDIR]));
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
    assert_eq!(ring.go(c"f", c"", &[WRITE], 7).0, Ok(BLOCK));
    assert_eq!(
        ring.go(c"f", c"", &[once(Call::Read)], 7).0,
        Err(Errno::EBADF)
    );
    assert!(ring.has_file(1), "who did not close it closes it later");
    assert_eq!(ring.go(c"f", c"", &[CLOSE], 7).0, Ok(0));
    assert!(!ring.has_file(1));
    assert_eq!(ring.go(c"f", c"", &[CLOSE], 7).0, Err(Errno::EBADF));

    // A pipe tells by its end that nobody has it open any more.
    mkfifo(&there.path().join("p"), Mode::S_IRWXU).expect("a FIFO");
    let reader = fs.open(c"p", OpenFlags::READ_WRITE).expect("opens");
    assert_eq!(ring.go(c"p", c"", &[EXISTING], 7).0, Ok(0));
    let first = fs.open(c"p", OpenFlags::READ).expect("opens");
    fs.close(reader).expect("closes");
    drop(ring);
    assert_eq!(
        fs.receiving(Call::Read, first, &mut [0]),
        Ok(0),
        "nobody can write"
    );
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
    assert!(ring.submit_on(0, shared, &[NEW]));
    assert_eq!(wait(&mut ring)[0].result, Ok(0));
    assert!(ring.has_file(shared) && !ring.has_file(0));
    for part in (0..PARTS).step_by(4) {
        for slot in 0..4 {
            ring.set_length(slot, 100);
            ring.data(slot)[..100].fill((part + slot) as u8);
            let offset = 100 * (part + slot) as u64;
            assert!(ring.submit_on(
                slot,
                shared,
                &[once(Call::WriteAt(offset)), once(Call::Fdatasync)]
            ));
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
            assert!(ring.submit(slot, &[NEW, WRITE, CLOSE]));
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
        |ring: &mut NamesInFlight| {
            let _ = ring.submit(0, &[STAT]);
        },
        |ring: &mut NamesInFlight| ring.set_path(0, c"x"),
        |ring: &mut NamesInFlight| ring.data(0).fill(0),
        |ring: &mut NamesInFlight| ring.set_length(1, BLOCK + 1),
    ] {
        let Some(mut ring) = ring(&fs, 2) else {
            return;
        };
        ring.set_path(0, c"dev/null");
        let none: &[Part] = &[];
        for unperformed in [none, &[once(Call::Access(READABLE))]] {
            assert!(!ring.submit(0, unperformed), "{unperformed:?}");
        }
        assert!(ring.submit(0, &[STAT]));
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| mistake(&mut ring)));
        assert!(made.is_err());
    }
    assert!(directory.as_raw_fd() >= 0);
}

#[test]
fn what_this_kernel_has_is_found_without_using_it() {
    let open = Call::Open(OpenFlags::READ);
    match lacking(
        &[
            open,
            Call::Write,
            Call::Fsync,
            Call::Close,
            Call::Stat(By::Link),
            Call::Read,
        ],
        32,
    ) {
        Ok(()) | Err(Lack::Ring(_)) => {}
        Err(lack) => panic!("every kernel with a ring that serves has these: {lack:?}"),
    }
}

/// These mount, each in a namespace of its own.
mod needs_root {
    use super::*;

    #[test]
    fn a_file_system_that_fills_up_gives_a_short_write_then_an_error_and_files_are_closed() {
        let Some(there) = in_own_mounts(this_test!()) else {
            return;
        };
        let mounted = Mounted::tmpfs(&there, "size=44k");
        let fs = PosixFs::open_directory(&there).expect("it opens");
        let Some(mut ring) = ring(&fs, 2) else {
            return;
        };
        let mut write = |name: &str| {
            let said = ring.go(&c(name), c"", &[NEW, WRITE, FSYNC, CLOSE], 7).0;
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
