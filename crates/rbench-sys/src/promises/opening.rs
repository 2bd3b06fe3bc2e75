//! Promises about the flags of open.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Barrier, OnceLock};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sys::stat::FileStat;
use nix::unistd::{Whence, linkat, lseek, write};

use super::did::{Breach, Did};
use super::ground::{Ground, NEW, Promise, promise};
use super::prepare::pattern;

pub(super) const PROMISES: &[Promise] = &[
    promise("open.create.makes")
        .says("O_CREAT creates an empty file")
        .test(|g| {
            let fd = g.open("a", OFlag::O_CREAT | OFlag::O_RDWR).ok()?;
            let found = || g.fstat("a", &fd);
            found().has("size and links", (0, 1), |all| (all.st_size, all.st_nlink))?;
            found().kind(nix::libc::S_IFREG)
        }),
    promise("open.create.keeps")
        .says("O_CREAT opens an existing file unchanged")
        .test(|g| {
            g.put("a", b"content")?;
            g.chmod("a", 0o640).ready()?;
            let fd = g
                .open_mode("a", OFlag::O_CREAT | OFlag::O_RDWR, 0o600)
                .ok()?;
            g.fstat("a", &fd).mode(0o640)?;
            g.holds_open("a", &fd, b"content")
        }),
    promise("open.truncate.empties")
        .says("O_TRUNC empties a file and keeps its inode")
        .test(|g| {
            g.put("a", b"content")?;
            let before = g.stat("a").ready()?.st_ino;
            g.open("a", OFlag::O_WRONLY | OFlag::O_TRUNC).ok()?;
            let part = |found: FileStat| (found.st_size, found.st_ino);
            g.stat("a").has("size and inode", (0, before), part)
        }),
    promise("open.exclusive.one-winner")
        .says("if many threads create one name with O_EXCL, exactly one succeeds")
        .test(|g| {
            const NAMES: usize = 20;
            let here = whole(g)?;
            let paths = (0..NAMES).map(|number| here.join(format!("name-{number}")));
            let paths: Vec<_> = paths.collect();
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o644);
            let tries = together(g, |barrier, _| {
                let try_each = paths.iter().map(|path| {
                    barrier.wait();
                    nix::fcntl::open(path, NEW | OFlag::O_CLOEXEC, mode).map(drop)
                });
                try_each.collect::<Vec<_>>()
            })?;
            for number in 0..NAMES {
                let name = format!("name-{number}");
                let of_name = || tries.iter().map(|each| each[number]);
                for lost in of_name().filter(|tried| *tried != Err(Errno::EEXIST)) {
                    g.did("openat", &name, lost).ok()?;
                }
                let won = of_name().filter(Result::is_ok).count();
                g.same("openat", &name, "successes", (1, won))?;
            }
            Ok(())
        }),
    promise("open.append.at-end")
        .says("O_APPEND writes at the end, whatever the file position")
        .test(|g| {
            g.put("a", b"start")?;
            let fd = g.open("a", OFlag::O_RDWR | OFlag::O_APPEND).ready()?;
            g.did("lseek", "a", lseek(&fd, 0, Whence::SeekSet))
                .ready()?;
            g.did("write", "a", write(&fd, b"-more")).ok()?;
            g.holds("a", b"start-more")
        }),
    promise("open.append.two")
        .says("two descriptors that append write one after the other and lose nothing")
        .test(|g| {
            g.put("a", b"")?;
            let one = g.open("a", OFlag::O_WRONLY | OFlag::O_APPEND).ready()?;
            let two = g.open("a", OFlag::O_WRONLY | OFlag::O_APPEND).ready()?;
            for (fd, bytes) in [(&one, b"1"), (&two, b"2"), (&one, b"3"), (&two, b"4")] {
                g.did("write", "a", write(fd, bytes)).ok()?;
            }
            g.holds("a", b"1234")
        }),
    promise("open.append.many")
        .says("if four threads append at the same time, no record is lost or torn")
        .test(|g| {
            const EACH: usize = 50;
            const LENGTH: usize = 100;
            g.put("a", b"")?;
            let path = whole(g)?.join("a");
            let appended = together(g, |barrier, number| {
                let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CLOEXEC;
                let fd = nix::fcntl::open(&path, flags, nix::sys::stat::Mode::empty());
                barrier.wait();
                let fd = fd?;
                for _ in 0..EACH {
                    write(&fd, &[b'a' + number; LENGTH])?;
                }
                Ok(())
            })?;
            for done in appended {
                g.did("write", "a", done).ok()?;
            }
            let fd = g.open("a", OFlag::O_RDONLY).ok()?;
            let content = g.read("a", fd, 4 * EACH * LENGTH + 1, 0).ok()?;
            g.same("stat", "a", "bytes", (4 * EACH * LENGTH, content.len()))?;
            let torn = content
                .chunks(LENGTH)
                .filter(|part| part.iter().any(|byte| *byte != part[0]));
            g.same("pread64", "a", "torn records", (0, torn.count()))
        }),
    promise("open.read-only.write")
        .says("a write to a file open only for reading fails with EBADF")
        .test(|g| {
            g.put("a", b"x")?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            g.did("write", "a", write(&fd, b"y")).fails(Errno::EBADF)
        }),
    promise("open.write-only.read")
        .says("a read of a file open only for writing fails with EBADF")
        .test(|g| {
            g.put("a", b"x")?;
            let fd = g.open("a", OFlag::O_WRONLY).ready()?;
            g.next("a", &fd, 10).fails(Errno::EBADF)
        }),
    promise("open.two.see-each-other")
        .says("another descriptor reads immediately what one descriptor writes")
        .test(|g| {
            let one = g.file("a")?;
            let two = g.reopened("a")?;
            for number in 0..20_u8 {
                g.write("a", &one, &[number; 100], i64::from(number) * 100)
                    .ready()?;
                let read = g.read("a", &two, 100, i64::from(number) * 100);
                read.bytes(&[number; 100])?;
            }
            Ok(())
        }),
    promise("open.two.size")
        .says("stat and another descriptor's fstat see the size after a write")
        .test(|g| {
            let one = g.file("a")?;
            let two = g.reopened("a")?;
            g.write("a", &one, &[1; 1000], 0).ready()?;
            g.fstat("a", &two).size(1000)?;
            g.stat("a").size(1000)?;
            g.write("a", &two, &[1; 1000], 1000).ready()?;
            g.fstat("a", &one).size(2000)
        }),
    promise("open.position")
        .says("each open file has its own position")
        .test(|g| {
            g.put("a", b"0123456789")?;
            let one = g.open("a", OFlag::O_RDONLY).ready()?;
            let two = g.open("a", OFlag::O_RDONLY).ready()?;
            g.next("a", &one, 4).ok()?;
            g.next("a", &two, 4).bytes(b"0123")?;
            g.next("a", &one, 4).bytes(b"4567")
        }),
    promise("open.close-keeps")
        .says("data is intact after close and reopen")
        .test(|g| {
            let content = pattern(100_000);
            g.put("a", &content)?;
            g.holds("a", &content)
        }),
    promise("open.sync")
        .says("fsync, fdatasync and O_SYNC succeed")
        .test(|g| {
            let fd = g.open("a", NEW | OFlag::O_SYNC).ok()?;
            g.write("a", &fd, b"x", 0).ok()?;
            g.fsync("a", &fd).ok()?;
            g.did("fdatasync", "a", nix::unistd::fdatasync(&fd)).ok()
        }),
    promise("open.sync.directory")
        .says("fsync of a directory succeeds")
        .test(|g| {
            let fd = g.open(".", OFlag::O_RDONLY | OFlag::O_DIRECTORY).ready()?;
            g.fsync(".", &fd).able(&[Errno::EINVAL])
        }),
    promise("open.tmpfile.hidden")
        .says("a file created with O_TMPFILE has no name")
        .test(|g| {
            let fd = unnamed(g, OFlag::empty())?;
            g.write(".", &fd, b"content", 0).ok()?;
            g.list(".").count(0)?;
            g.fstat(".", &fd).links(0)?;
            g.holds_open(".", &fd, b"content")
        }),
    promise("open.tmpfile.named")
        .says("linkat gives a file created with O_TMPFILE a name")
        .test(|g| {
            let fd = unnamed(g, OFlag::empty())?;
            g.write(".", &fd, b"content", 0).ok()?;
            given_name(g, &fd).ok()?;
            g.holds("a", b"content")?;
            g.stat("a").links(1)
        }),
    promise("open.tmpfile.exclusive")
        .says("linkat of a file created with O_TMPFILE and O_EXCL fails with ENOENT")
        .test(|g| given_name(g, &unnamed(g, OFlag::O_EXCL)?).fails(Errno::ENOENT)),
    promise("open.path-only")
        .says("read of a file opened with O_PATH fails with EBADF")
        .test(|g| {
            g.put("a", b"x")?;
            let fd = g.open("a", OFlag::O_PATH).ok()?;
            g.next("a", &fd, 10).fails(Errno::EBADF)
        }),
    promise("open.many")
        .says("200 files can be open at the same time, each with its own content")
        .test(|g| {
            let mut open = Vec::new();
            for number in 0..200 {
                let name = format!("file-{number}");
                let fd = g.open(&name, NEW).ok()?;
                g.write(&name, &fd, name.as_bytes(), 0).ok()?;
                open.push((name, fd));
            }
            for (name, fd) in &open {
                g.holds_open(name, fd, name.as_bytes())?;
            }
            Ok(())
        }),
    promise("open.same-many")
        .says("one file can be open 200 times at the same time")
        .test(|g| {
            g.put("a", b"content")?;
            let mut open = Vec::new();
            for _ in 0..200 {
                open.push(g.open("a", OFlag::O_RDONLY).ok()?);
            }
            for fd in &open {
                g.holds_open("a", fd, b"content")?;
            }
            Ok(())
        }),
];

/// Creates a file without a name.
fn unnamed(g: &Ground, more: OFlag) -> Result<OwnedFd, Breach> {
    let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | more;
    g.open(".", flags).able(&[Errno::EISDIR, Errno::EINVAL])
}

/// Gives an unnamed file the name `a`.
fn given_name(g: &Ground, fd: &OwnedFd) -> Did<()> {
    let from = format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
    let how = AtFlags::AT_SYMLINK_FOLLOW;
    let linked = linkat(AT_FDCWD, from.as_str(), AT_FDCWD, &g.at("a"), how);
    g.did("linkat", "a", linked)
}

/// Runs `work` in four threads at once, each with its number; all meet at the barrier.
fn together<T: Send>(
    g: &Ground,
    work: impl Fn(&Barrier, u8) -> T + Sync,
) -> Result<Vec<T>, Breach> {
    const THREADS: u8 = 4;
    // No thread waits at a barrier that some cannot reach.
    let gate: OnceLock<Option<Barrier>> = OnceLock::new();
    let (gate, work) = (&gate, &work);
    std::thread::scope(|scope| {
        let each = |number| {
            let work = move || gate.wait().as_ref().map(|barrier| work(barrier, number));
            std::thread::Builder::new().spawn_scoped(scope, work)
        };
        let started: Result<Vec<_>, _> = (0..THREADS).map(each).collect();
        let all_are_there = started.is_ok();
        gate.get_or_init(|| all_are_there.then(|| Barrier::new(usize::from(THREADS))));
        let no_thread = |error| g.undecided("clone", format!("cannot start a thread: {error}"));
        let all = started.map_err(no_thread)?.into_iter();
        let done: Option<Vec<T>> = all.map(|each| each.join().ok().flatten()).collect();
        done.ok_or_else(|| g.undecided("", "the check itself failed"))
    })
}

/// The whole path of the workspace, for threads in another directory.
pub(super) fn whole(g: &Ground) -> Result<std::path::PathBuf, Breach> {
    match g.at("") {
        path if path.is_absolute() => Ok(path),
        _ => std::env::current_dir().map_err(|e| g.undecided("getcwd", e.to_string())),
    }
}
