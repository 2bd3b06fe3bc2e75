//! The file system behaves like a plain folder. Every test body runs on each back end,
//! with and without the kernel's caches, and on a temporary folder. Its log must be the
//! same everywhere.

use std::ffi::CString;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{Aligned, Bed, PLENTY, open_direct, wait_until};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, FallocateFlags, RenameFlags, fallocate, renameat2};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, msync, munmap};
use nix::sys::stat::Mode;
use rbench_testfs::{Config, Kind};

/// Results of a test body, line by line.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn note(&mut self, what: &str, outcome: impl Debug) {
        self.0.push(format!("{what}: {outcome:?}"));
    }

    /// Records a result, an error by its errno.
    fn io<T: Debug>(&mut self, what: &str, outcome: io::Result<T>) {
        let outcome = outcome.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)));
        self.note(what, outcome);
    }
}

/// Runs `body` on every kind of mount, and compares its log with the one on a plain
/// folder.
fn same_as_a_plain_folder(body: impl Fn(&Path, &mut Log) -> io::Result<()>) {
    same_on_beds(
        &[
            ("memory", || Bed::new(Config::memory(PLENTY))),
            ("memory, uncached", Bed::memory),
            ("passthrough", || Bed::passthrough(|config| config)),
            ("passthrough, uncached", || {
                Bed::passthrough(Config::uncached)
            }),
        ],
        body,
    );
}

/// A kind of mount: its name, and the function that creates it.
type Make<'a> = (&'a str, fn() -> Bed);

/// Like `same_as_a_plain_folder`, on chosen mounts.
fn same_on_beds(beds: &[Make<'_>], body: impl Fn(&Path, &mut Log) -> io::Result<()>) {
    let run = |folder: &Path| {
        let mut log = Log::default();
        let ended = body(folder, &mut log);
        log.io("end", ended);
        log.0
    };
    let plain = tempfile::tempdir().expect("a temporary folder");
    let expect = run(plain.path());
    assert_eq!(expect.last().map(String::as_str), Some("end: Ok(())"));
    for (name, bed) in beds {
        let bed = bed();
        let got = run(bed.path());
        for (line, (got, expect)) in got.iter().zip(&expect).enumerate() {
            assert_eq!(got, expect, "on {name}, line {line}");
        }
        assert_eq!(got.len(), expect.len(), "on {name}");
        bed.mounted.unmount().expect("it is mounted");
    }
}

/// Type, permissions, links and size.
fn kind(path: &Path) -> io::Result<String> {
    let m = fs::symlink_metadata(path)?;
    // For directories these depend on the file system.
    let rest = match m.is_dir() {
        true => String::new(),
        false => format!(" nlink {} size {}", m.nlink(), m.len()),
    };
    Ok(format!("{:o}{rest}", m.mode()))
}

fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let kind = if kind.is_dir() { "/" } else { "" };
        names.push(format!("{}{kind}", entry.file_name().display()));
    }
    names.sort();
    Ok(names)
}

#[test]
fn directories_are_made_and_removed_as_in_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let (a, b) = (dir.join("a"), dir.join("a/b"));
        log.io("mkdir", fs::create_dir(&a));
        log.io("mkdir again", fs::create_dir(&a));
        log.io("mkdir below", fs::create_dir(&b));
        log.io("mkdir below nothing", fs::create_dir(dir.join("x/y")));
        log.io("kind", kind(&a));
        log.io("rmdir of a full one", fs::remove_dir(&a));
        log.io("unlink of a directory", fs::remove_file(&a));
        log.io("rmdir", fs::remove_dir(&b));
        log.io("rmdir again", fs::remove_dir(&b));
        fs::write(dir.join("file"), "")?;
        log.io("rmdir of a file", fs::remove_dir(dir.join("file")));
        log.io("mkdir below a file", fs::create_dir(dir.join("file/x")));
        let long = "n".repeat(256);
        log.io("mkdir with a long name", fs::create_dir(dir.join(&long)));
        log.io("stat of a long name", kind(&dir.join(&long)));
        log.io("longest name", fs::create_dir(dir.join(&long[1..])));
        log.io("names", names(dir));
        log.io("stat of nothing", kind(&dir.join("nothing")));
        log.io("unlink of nothing", fs::remove_file(dir.join("nothing")));
        Ok(())
    });
}

#[test]
fn a_removed_directory_takes_nothing_in() {
    same_as_a_plain_folder(|dir, log| {
        fs::create_dir(dir.join("d"))?;
        let open = File::open(dir.join("d"))?;
        fs::remove_dir(dir.join("d"))?;
        let create = nix::fcntl::openat(
            &open,
            "x",
            nix::fcntl::OFlag::O_CREAT | nix::fcntl::OFlag::O_WRONLY,
            Mode::S_IRWXU,
        );
        log.note("create in a removed directory", create.map(drop));
        let mkdir = nix::sys::stat::mkdirat(&open, "y", Mode::S_IRWXU);
        log.note("mkdir in a removed directory", mkdir);
        log.io("links of it", open.metadata().map(|m| m.nlink()));
        Ok(())
    });
}

#[test]
fn files_are_opened_as_in_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let f = dir.join("f");
        let with = |options: &mut fs::OpenOptions| options.open(&f).map(drop);
        log.io("open of nothing", with(File::options().read(true)));
        log.io("O_EXCL", with(File::options().write(true).create_new(true)));
        log.io(
            "O_EXCL again",
            with(File::options().write(true).create_new(true)),
        );
        fs::write(&f, "hello, world")?;
        log.io("read", fs::read_to_string(&f));
        log.io("O_TRUNC", with(File::options().write(true).truncate(true)));
        log.io("kind after O_TRUNC", kind(&f));
        let mut append = File::options().append(true).open(&f)?;
        for part in ["one ", "two ", "three"] {
            log.io("append", append.write(part.as_bytes()));
        }
        let mut other = File::options().append(true).open(&f)?;
        log.io("append through another", other.write(b" four"));
        log.io("append behind it", append.write(b" five"));
        log.io("read", fs::read_to_string(&f));
        log.io("open of a directory for writing", {
            File::options().write(true).open(dir).map(drop)
        });
        let mut read_only = File::open(&f)?;
        log.io("write to a read-only file", read_only.write(b"x"));
        log.io("open below a file", File::open(f.join("x")).map(drop));
        log.io("create without O_EXCL", File::create(&f).map(drop));
        log.io("fsync", File::create(&f)?.sync_all());
        log.io("fdatasync", File::create(&f)?.sync_data());
        log.io("fsync of a directory", File::open(dir)?.sync_all());
        Ok(())
    });
}

#[test]
fn an_unlinked_file_lives_until_it_is_closed() {
    same_as_a_plain_folder(|dir, log| {
        let f = dir.join("f");
        let mut open = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&f)?;
        open.write_all(&[7; 200_000])?;
        fs::remove_file(&f)?;
        log.io("gone", kind(&f));
        log.io("links", open.metadata().map(|m| m.nlink()));
        open.write_all(b"more")?;
        open.rewind()?;
        let mut text = Vec::new();
        log.io("read", open.read_to_end(&mut text));
        log.note("content", (text[0], text[199_999], text[200_003]));
        // A new file of the same name is a different one.
        fs::write(&f, "new")?;
        log.io("size of the old", open.metadata().map(|m| m.len()));
        log.io("size of the new", kind(&f));
        log.io("truncate of the old", open.set_len(5));
        log.io("size of the old", open.metadata().map(|m| m.len()));
        Ok(())
    });
}

#[test]
fn renames_and_exchanges_are_those_of_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let p = |name: &str| dir.join(name);
        let flagged =
            |from: &str, to: &str, flags| renameat2(AT_FDCWD, &p(from), AT_FDCWD, &p(to), flags);
        fs::create_dir(p("d1"))?;
        fs::create_dir(p("d2"))?;
        fs::write(p("a"), "A")?;
        fs::write(p("b"), "BB")?;
        log.io("to a new name", fs::rename(p("a"), p("c")));
        log.io("of nothing", fs::rename(p("a"), p("c")));
        log.io("over a file", fs::rename(p("b"), p("c")));
        log.io("what is there", fs::read_to_string(p("c")));
        log.io("to itself", fs::rename(p("c"), p("c")));
        log.io("into a directory", fs::rename(p("c"), p("d1/c")));
        log.io("file over directory", fs::rename(p("d1/c"), p("d2")));
        log.io("directory over file", fs::rename(p("d2"), p("d1/c")));
        log.io("over a full directory", fs::rename(p("d2"), p("d1")));
        log.io("over an empty directory", fs::rename(p("d1"), p("d2")));
        log.io("a directory below itself", fs::rename(p("d2"), p("d2/x")));
        fs::create_dir(p("d3"))?;
        log.io("a directory into another", fs::rename(p("d2"), p("d3/d2")));
        log.io("names", names(&p("d3/d2")));
        log.io(
            "the way back up",
            fs::read_dir(p("d3/d2/.."))?.count_names(),
        );
        let moved = p("d3/d2/..").canonicalize()? == p("d3").canonicalize()?;
        log.note("'..' leads to the new directory", moved);

        fs::write(p("x"), "x")?;
        fs::write(p("y"), "yy")?;
        let no_replace = RenameFlags::RENAME_NOREPLACE;
        let exchange = RenameFlags::RENAME_EXCHANGE;
        log.note("not over what is there", flagged("x", "y", no_replace));
        log.note("to a free name", flagged("x", "z", no_replace));
        log.note("exchange", flagged("z", "y", exchange));
        log.io("content", fs::read_to_string(p("z")));
        log.io("content", fs::read_to_string(p("y")));
        log.note("exchange with nothing", flagged("z", "nothing", exchange));
        log.note(
            "exchange file and directory",
            flagged("z", "d3/d2", exchange),
        );
        log.io("kinds", kind(&p("z")));
        log.io("kinds", kind(&p("d3/d2")));
        log.io("names", names(dir));
        fs::hard_link(p("y"), p("y2"))?;
        log.io("over another name of itself", fs::rename(p("y"), p("y2")));
        log.io("both are there", names(dir));
        Ok(())
    });
}

/// Counts entries, and fails on the first error.
trait CountNames {
    fn count_names(self) -> io::Result<usize>;
}

impl CountNames for fs::ReadDir {
    fn count_names(self) -> io::Result<usize> {
        self.map(|entry| entry.map(|_| 1)).sum()
    }
}

#[test]
fn links_count_and_lead_where_they_should() {
    same_as_a_plain_folder(|dir, log| {
        let p = |name: &str| dir.join(name);
        fs::write(p("f"), "text")?;
        log.io("hard link", fs::hard_link(p("f"), p("g")));
        log.io("again", fs::hard_link(p("f"), p("g")));
        log.io("of nothing", fs::hard_link(p("nothing"), p("h")));
        fs::create_dir(p("d"))?;
        log.io("of a directory", fs::hard_link(p("d"), p("h")));
        log.io("kind", kind(&p("f")));
        fs::write(p("g"), "longer text")?;
        log.io("the other name", fs::read_to_string(p("f")));
        log.note(
            "one inode",
            fs::metadata(p("f"))?.ino() == fs::metadata(p("g"))?.ino(),
        );
        log.io("unlink", fs::remove_file(p("f")));
        log.io("kind", kind(&p("g")));

        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, p(name));
        log.io("symlink", link("g", "s"));
        log.io("again", link("g", "s"));
        log.io("kind", kind(&p("s")));
        log.io("target", fs::read_link(p("s")));
        log.io("through it", fs::read_to_string(p("s")));
        log.io("dangling", link("nowhere/at all", "t"));
        log.io("through it", fs::read_to_string(p("t")));
        log.io("target", fs::read_link(p("t")));
        log.io("loop", link("l", "l").and_then(|()| fs::read(p("l"))));
        let long = "x/".repeat(2000);
        log.io("long", link(&long, "long"));
        log.io(
            "long target",
            fs::read_link(p("long")).map(|t| t.as_os_str().len()),
        );
        log.io("target of a file", fs::read_link(p("g")));
        log.io("hard link of a symlink", fs::hard_link(p("s"), p("s2")));
        log.io("kind", kind(&p("s2")));
        log.io("unlink of a symlink", fs::remove_file(p("s")));
        log.io("names", names(dir));
        Ok(())
    });
}

#[test]
fn sparse_files_and_truncation_read_as_in_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let path = dir.join("f");
        let f = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let sum = |log: &mut Log, what: &str| -> io::Result<()> {
            // Read through a new open, not only from the page cache of this one.
            let bytes = fs::read(&path)?;
            let sum = bytes.iter().enumerate().fold(0_u64, |sum, (i, byte)| {
                sum.wrapping_mul(31)
                    .wrapping_add(u64::from(*byte) * (i as u64 + 1))
            });
            log.note(what, (bytes.len(), sum));
            Ok(())
        };
        f.write_all_at(b"far away", 1_000_003)?;
        sum(log, "a hole in front")?;
        f.write_all_at(&[9; 70_000], 60_000)?;
        sum(log, "across chunks")?;
        f.set_len(65_000)?;
        sum(log, "cut")?;
        f.set_len(300_000)?;
        sum(log, "longer: zeros")?;
        f.set_len(3)?;
        f.write_all_at(b"x", 100)?;
        sum(log, "what was cut does not come back")?;
        log.io(
            "truncate by name",
            nix::unistd::truncate(&path, 7).map_err(io::Error::from),
        );
        sum(log, "cut by name")?;
        log.io("beyond the largest file", f.write_at(b"x", i64::MAX as u64));
        log.io(
            "negative",
            nix::unistd::truncate(&path, -1).map_err(io::Error::from),
        );
        f.set_len(1 << 40)?;
        log.io("huge", f.metadata().map(|m| m.len()));
        f.write_all_at(b"end", (1 << 40) - 3)?;
        let mut end = [1; 8];
        log.io("read at the end", f.read_at(&mut end, (1 << 40) - 5));
        log.note("bytes", end);
        log.io("read behind the end", f.read_at(&mut end, 1 << 41));
        f.set_len(0)?;
        log.io("empty", kind(&path));
        Ok(())
    });
}

#[test]
fn space_is_reserved_and_punched_as_in_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let path = dir.join("f");
        let mut f = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let keep = FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | keep;
        log.note(
            "reserve",
            fallocate(&f, FallocateFlags::empty(), 0, 500_000),
        );
        log.io("size", f.metadata().map(|m| m.len()));
        log.note("has blocks", f.metadata()?.blocks() * 512 >= 500_000);
        log.note(
            "reserve behind the end",
            fallocate(&f, keep, 500_000, 100_000),
        );
        log.io("size stays", f.metadata().map(|m| m.len()));
        f.write_all_at(&[5; 500_000], 0)?;
        let before = f.metadata()?.blocks();
        log.note("punch", fallocate(&f, punch, 131_072, 131_072));
        log.note("freed", (before - f.metadata()?.blocks()) * 512);
        log.note("punch a little", fallocate(&f, punch, 10, 20));
        let bytes = fs::read(&path)?;
        let zeros: Vec<usize> = (1..bytes.len())
            .filter(|i| bytes[*i] != bytes[i - 1])
            .collect();
        log.note("edges", zeros);
        let seek = |whence: fn(i64) -> i32, at: i64| {
            // SAFETY: lseek accesses no memory.
            let position = unsafe { libc::lseek(f.as_raw_fd(), at, whence(0)) };
            Errno::result(position)
        };
        log.note("data", seek(|_| libc::SEEK_DATA, 0));
        log.note("hole", seek(|_| libc::SEEK_HOLE, 0));
        log.note("data behind it", seek(|_| libc::SEEK_DATA, 140_000));
        log.note("hole at the end", seek(|_| libc::SEEK_HOLE, 300_000));
        log.note("data behind the end", seek(|_| libc::SEEK_DATA, 500_000));
        log.io("end", f.seek(SeekFrom::End(0)));
        log.note("length 0", fallocate(&f, FallocateFlags::empty(), 0, 0));
        Ok(())
    });
}

/// Calls `call` with a file mode creation mask that other threads do not have.
fn with_umask<T: Send>(mask: u32, call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).expect("always allowed");
            nix::sys::stat::umask(Mode::from_bits_truncate(mask));
            call()
        });
        thread.join().expect("no panic")
    })
}

#[test]
fn attributes_change_as_in_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let f = dir.join("f");
        fs::write(&f, "text")?;
        let chmod = |mode| fs::set_permissions(&f, fs::Permissions::from_mode(mode));
        log.io("chmod", chmod(0o640).and_then(|()| kind(&f)));
        log.io("set-user-id", chmod(0o4755).and_then(|()| kind(&f)));
        let own = (fs::metadata(&f)?.uid(), fs::metadata(&f)?.gid());
        std::os::unix::fs::chown(&f, Some(own.0), Some(own.1))?;
        log.io("gone with chown", kind(&f));
        with_umask(0o027, || fs::create_dir(dir.join("d")))?;
        with_umask(0o027, || fs::write(dir.join("d/masked"), ""))?;
        log.io("masked directory", kind(&dir.join("d")));
        log.io("masked file", kind(&dir.join("d/masked")));
        with_umask(0, || fs::create_dir(dir.join("open")))?;
        with_umask(0, || fs::write(dir.join("open/file"), ""))?;
        log.io("open directory", kind(&dir.join("open")));
        log.io("open file", kind(&dir.join("open/file")));
        fs::set_permissions(dir.join("d"), fs::Permissions::from_mode(0o2755))?;
        fs::create_dir(dir.join("d/e"))?;
        log.io("set-group-id is inherited", kind(&dir.join("d/e")));

        let at = |s: i64, ns: u32| UNIX_EPOCH + Duration::new(s as u64, ns);
        let times = fs::FileTimes::new()
            .set_accessed(at(1_000_000_000, 123_456_789))
            .set_modified(at(1_500_000_000, 987_654_321));
        let open = File::options().write(true).open(&f)?;
        open.set_times(times)?;
        let m = fs::metadata(&f)?;
        log.note(
            "times",
            (m.atime(), m.atime_nsec(), m.mtime(), m.mtime_nsec()),
        );
        // File systems use a clock that lags some milliseconds.
        let start = SystemTime::now() - Duration::from_secs(1);
        let recent = |time: io::Result<SystemTime>| time.map(|time| time >= start);
        open.write_all_at(b"T", 0)?;
        log.io("a write is noted", recent(fs::metadata(&f)?.modified()));
        open.set_times(times)?;
        open.set_len(2)?;
        log.io(
            "a truncation is noted",
            recent(fs::metadata(&f)?.modified()),
        );
        open.set_times(times)?;
        fs::read(&f)?;
        log.io("a reading is noted", recent(fs::metadata(&f)?.accessed()));
        fs::remove_file(dir.join("d/masked"))?;
        log.io(
            "a removal is noted",
            recent(fs::metadata(dir.join("d"))?.modified()),
        );
        let access = |mode| {
            let flags = nix::unistd::AccessFlags::from_bits_truncate(mode);
            nix::unistd::access(&f, flags)
        };
        log.note("access", access(libc::R_OK | libc::W_OK));
        chmod(0o600)?;
        log.note("no execution", access(libc::X_OK));
        Ok(())
    });
}

#[test]
fn special_files_are_what_they_are_in_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let p = |name: &str| dir.join(name);
        log.note("fifo", nix::unistd::mkfifo(&p("fifo"), Mode::S_IRWXU));
        log.io("kind", kind(&p("fifo")));
        log.note("is one", fs::metadata(p("fifo"))?.file_type().is_fifo());
        let socket = std::os::unix::net::UnixListener::bind(p("socket"));
        log.io("socket", socket.map(drop));
        log.note("is one", fs::metadata(p("socket"))?.file_type().is_socket());
        let plain = nix::sys::stat::SFlag::S_IFREG;
        let result = nix::sys::stat::mknod(&p("node"), plain, Mode::S_IRWXU, 0);
        log.note("mknod of a file", result);
        log.io("kind", kind(&p("node")));
        log.io("writable", fs::write(p("node"), "x"));
        log.io("names", names(dir));
        Ok(())
    });
}

/// Extended attributes by their system calls.
mod xattr {
    use super::*;

    fn c(text: &Path) -> CString {
        CString::new(text.as_os_str().as_bytes()).expect("no zero byte")
    }

    pub fn set(path: &Path, name: &str, value: &[u8], flags: i32) -> nix::Result<()> {
        let (path, name) = (c(path), c(Path::new(name)));
        let (place, size) = (value.as_ptr().cast(), value.len());
        // SAFETY: the texts end with a zero byte, and the value is `size` bytes long.
        let done = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), place, size, flags) };
        Errno::result(done).map(drop)
    }

    pub fn get(path: &Path, name: &str, room: usize) -> nix::Result<Vec<u8>> {
        let (path, name) = (c(path), c(Path::new(name)));
        let mut value = vec![0_u8; room];
        let place = value.as_mut_ptr().cast();
        // SAFETY: the texts end with a zero byte, and `place` has `room` bytes.
        let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), place, room) };
        value.truncate(Errno::result(length)? as usize);
        Ok(value)
    }

    /// The names in the `user.` name space, sorted.
    pub fn list(path: &Path) -> nix::Result<Vec<String>> {
        let path = c(path);
        let mut all = vec![0_u8; 1000];
        // SAFETY: the text ends with a zero byte, and `all` has the given length.
        let n = unsafe { libc::listxattr(path.as_ptr(), all.as_mut_ptr().cast(), all.len()) };
        all.truncate(Errno::result(n)? as usize);
        let names = all.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let mut names: Vec<String> = names
            .filter(|name| name.starts_with("user."))
            .map(|name| name.into_owned())
            .collect();
        names.sort();
        Ok(names)
    }

    pub fn remove(path: &Path, name: &str) -> nix::Result<()> {
        let (path, name) = (c(path), c(Path::new(name)));
        // SAFETY: both texts end with a zero byte.
        Errno::result(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
    }
}

#[test]
fn extended_attributes_are_those_of_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let f = dir.join("f");
        fs::write(&f, "")?;
        log.note("get nothing", xattr::get(&f, "user.a", 10));
        log.note("list nothing", xattr::list(&f));
        log.note("set", xattr::set(&f, "user.a", b"one", 0));
        log.note("set", xattr::set(&f, "user.b", b"", libc::XATTR_CREATE));
        let exists = xattr::set(&f, "user.a", b"x", libc::XATTR_CREATE);
        log.note("create what exists", exists);
        let missing = xattr::set(&f, "user.c", b"x", libc::XATTR_REPLACE);
        log.note("replace what does not", missing);
        log.note("get", xattr::get(&f, "user.a", 10));
        log.note("get empty", xattr::get(&f, "user.b", 10));
        log.note("length", xattr::get(&f, "user.a", 0));
        log.note("no room", xattr::get(&f, "user.a", 2));
        log.note(
            "replace",
            xattr::set(&f, "user.a", b"longer value", libc::XATTR_REPLACE),
        );
        log.note("get", xattr::get(&f, "user.a", 100));
        log.note("list", xattr::list(&f));
        log.note("remove", xattr::remove(&f, "user.a"));
        log.note("again", xattr::remove(&f, "user.a"));
        log.note("list", xattr::list(&f));
        log.note("of a directory", xattr::set(dir, "user.d", b"dir", 0));
        log.note("get", xattr::get(dir, "user.d", 10));
        log.note("unknown name space", xattr::set(&f, "nonsense.a", b"x", 0));
        Ok(())
    });
}

#[test]
fn direct_io_reads_and_writes_as_in_a_plain_folder() {
    same_as_a_plain_folder(|dir, log| {
        let path = dir.join("f");
        let f = open_direct(&path)?;
        for i in 0..64_u8 {
            let block = Aligned::new(4096, i + 1);
            log.io("write", f.write_at(&block, u64::from(i ^ 21) * 4096));
        }
        let mut block = Aligned::new(16_384, 0);
        log.io("read", f.read_at(&mut block, 8192));
        log.note("bytes", (block[0], block[4096], block[8192], block[16_383]));
        log.io("read at the end", f.read_at(&mut block, 62 * 4096));
        log.io("read behind it", f.read_at(&mut block, 64 * 4096));
        let big = Aligned::new(3 << 20, 77);
        log.io("3 MiB at once", f.write_at(&big, 0));
        let cached = fs::read(&path)?;
        log.note(
            "through the cache",
            (cached.len(), cached.iter().all(|b| *b == 77)),
        );
        let mut f2 = File::options().write(true).open(&path)?;
        f2.write_all(b"cached write")?;
        log.io("around the cache", f.read_at(&mut block[..4096], 0));
        log.note("bytes", &block[..16]);
        Ok(())
    });
}

#[test]
fn mapped_memory_is_the_file() {
    same_as_a_plain_folder(|dir, log| {
        const LENGTH: usize = 200_000;
        let path = dir.join("f");
        fs::write(&path, vec![3; LENGTH])?;
        let f = File::options().read(true).write(true).open(&path)?;
        let length = std::num::NonZeroUsize::new(LENGTH).expect("not zero");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, which only this body uses.
        let map = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, &f, 0) };
        let map = map.map_err(io::Error::from)?;
        // SAFETY: the mapping is LENGTH bytes long, and so is the file.
        let bytes = unsafe { std::slice::from_raw_parts_mut(map.as_ptr().cast::<u8>(), LENGTH) };
        let sum = bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
        log.note("sum", sum);
        bytes[150_000] = 42;
        // SAFETY: the mapping exists and is not used after its removal.
        let synced = unsafe {
            msync(map, LENGTH, nix::sys::mman::MsFlags::MS_SYNC).and_then(|()| munmap(map, LENGTH))
        };
        log.note("synced", synced);
        log.io(
            "in the file",
            fs::read(&path).map(|b| (b[149_999], b[150_000])),
        );
        Ok(())
    });
}

#[test]
fn ten_thousand_entries_are_each_listed_once() {
    let beds: [Make<'_>; 2] = [
        ("memory", || Bed::new(Config::memory(PLENTY))),
        ("passthrough", || Bed::passthrough(|config| config)),
    ];
    same_on_beds(&beds, |dir, log| {
        fs::write(dir.join("file"), "")?;
        for i in 0..10_000 {
            // A link needs fewer requests than a file.
            fs::hard_link(dir.join("file"), dir.join(format!("entry-{i}")))?;
        }
        let listed = names(dir)?;
        let mut unique = listed.clone();
        unique.dedup();
        log.note("entries", (listed.len(), unique.len()));
        log.note("first and last", (listed.first(), listed.last()));
        // Removing entries while they are listed leaves none.
        for entry in fs::read_dir(dir)? {
            fs::remove_file(entry?.path())?;
        }
        log.io("left", names(dir));
        Ok(())
    });
}

#[test]
fn what_stays_is_listed_once_while_others_come_and_go() {
    let check = |bed: Bed| {
        for i in 0..1000 {
            File::create(bed.join(format!("stays-{i}"))).expect("room");
            File::create(bed.join(format!("goes-{i}"))).expect("room");
        }
        let mut seen = Vec::new();
        for (n, entry) in fs::read_dir(bed.path()).expect("a folder").enumerate() {
            let name = entry.expect("an entry").file_name();
            seen.extend(
                name.to_str()
                    .filter(|name| name.starts_with("stays"))
                    .map(str::to_owned),
            );
            // For every listed entry, one is removed and two are added.
            let _ = fs::remove_file(bed.join(format!("goes-{n}")));
            File::create(bed.join(format!("comes-{n}"))).expect("room");
            fs::rename(
                bed.join(format!("comes-{n}")),
                bed.join(format!("renamed-{n}")),
            )
            .expect("there");
            assert!(n < 100_000, "the listing has no end");
        }
        seen.sort();
        let mut unique = seen.clone();
        unique.dedup();
        assert_eq!((seen.len(), unique.len()), (1000, 1000));
        bed.mounted.unmount().expect("mounted");
    };
    check(Bed::memory());
    check(Bed::new(Config::memory(PLENTY)));
}

#[test]
fn a_directory_read_again_from_its_start_shows_what_is_new() {
    same_as_a_plain_folder(|folder, log| {
        File::create(folder.join("first"))?;
        let flags = nix::fcntl::OFlag::O_RDONLY;
        let mut dir = nix::dir::Dir::open(folder, flags, Mode::empty())?;
        log.note("with . and ..", dir.iter().count());
        File::create(folder.join("second"))?;
        log.note("read anew", dir.iter().count());
        Ok(())
    });
}

/// Adds entries to the folder `path`, from `from` up to `to`.
fn fill(path: &Path, from: usize, to: usize) {
    for i in from..to {
        // A link needs one request, a file three.
        fs::hard_link(path.join("file"), path.join(format!("e{i}"))).expect("room");
    }
}

#[test]
fn a_listing_takes_requests_in_proportion_to_its_entries() {
    let bed = Bed::new(Config::memory(PLENTY));
    fs::write(bed.join("file"), "").expect("room");
    let requests = |expect: usize| {
        let read = || bed.mounted.stats().snapshot().counts(Kind::Readdir);
        let before = read().requests;
        let count = fs::read_dir(bed.path()).and_then(CountNames::count_names);
        assert_eq!(count.expect("a folder"), expect + 1);
        read().requests - before
    };
    fill(bed.path(), 0, 300);
    let few = requests(300);
    fill(bed.path(), 300, 3000);
    let many = requests(3000);
    // The last one returns nothing, and the one before is not full.
    assert!(few >= 2 && many <= 10 * few, "{many} after {few}");
}

mod timing {
    use super::*;

    #[test]
    fn a_listing_takes_time_in_proportion_to_its_entries() {
        let bed = Bed::new(Config::memory(PLENTY));
        fs::write(bed.join("file"), "").expect("room");
        let time = |expect: usize| {
            let start = std::time::Instant::now();
            let count = fs::read_dir(bed.path()).and_then(CountNames::count_names);
            assert_eq!(count.expect("a folder"), expect + 1);
            start.elapsed().as_secs_f64()
        };
        // Ten listings of the small one take as long as one of the large one, so that a
        // busy machine slows down both.
        fill(bed.path(), 0, 5_000);
        let small = (0..5)
            .map(|_| (0..10).map(|_| time(5_000)).sum::<f64>() / 10.0)
            .fold(f64::INFINITY, f64::min)
            .max(0.001);
        fill(bed.path(), 5_000, 50_000);
        // Ten times the entries; a quadratic listing would take a hundred times as long.
        // Other work on the machine slows it down now and then.
        let mut large = f64::INFINITY;
        let near = |large: &mut f64| {
            *large = large.min(time(50_000));
            *large < small * 40.0
        };
        assert!(
            (0..10).any(|_| near(&mut large)),
            "{large} s after {small} s"
        );
    }
}

#[test]
fn statfs_and_enospc_hold_to_the_cap_and_space_comes_back() {
    const CAP: u64 = 8 << 20;
    let bed = Bed::new(Config::memory(rbench_core::Bytes(CAP)).uncached());
    let free = || {
        let s = nix::sys::statvfs::statvfs(bed.path()).expect("statfs");
        assert_eq!(s.blocks() * s.fragment_size(), CAP);
        assert_eq!(s.blocks_free(), s.blocks_available());
        s.blocks_free() * s.fragment_size()
    };
    assert_eq!(free(), CAP);
    let path = bed.join("f");
    for round in 0..20 {
        // In the second half of the rounds the file is open when it is removed.
        let mut f = File::create(&path).expect("room");
        let block = vec![1; 1 << 16];
        let mut written = 0;
        let error = loop {
            match f.write(&block) {
                Ok(n) => written += n as u64,
                Err(error) => break error,
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert!(written <= CAP && written > CAP - (1 << 17), "{written}");
        assert!(free() < 1 << 17);
        let full = bed.mounted.stats().snapshot();
        assert!(full.counts(Kind::Write).errors > round);
        if round % 2 == 0 {
            drop(f);
            fs::remove_file(&path).expect("there");
        } else {
            fs::remove_file(&path).expect("there");
            drop(f);
        }
        // The kernel sends a release at any time.
        wait_until("the space of the removed file", || free() == CAP);
    }
    let inodes = (0..).map(|i| File::create(bed.join(format!("i{i}"))));
    let created = inodes.take_while(Result::is_ok).count() as u64;
    assert!(
        created > CAP / 1024 - 100 && created <= CAP / 1024,
        "{created}"
    );
    for i in 0..created {
        fs::remove_file(bed.join(format!("i{i}"))).expect("there");
    }
    wait_until("the space of the removed files", || free() == CAP);
}
