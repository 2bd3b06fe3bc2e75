//! The ground that a promise is tried on: calls that remember what they were about, and
//! what follows from how they end.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, open, readlink, renameat2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{FileStat, Mode, UtimensatFlags, fstat, lstat, stat, utimensat};
use nix::sys::time::TimeSpec;
use nix::sys::uio::{pread, pwrite};
use nix::unistd::{Gid, Uid, linkat, setfsgid, setfsuid};

/// Something that a file system promises.
#[derive(Debug)]
pub struct Promise {
    /// Its name for machines: `rename.over-existing.keeps-one`.
    pub name: &'static str,
    /// What is promised, a clause for people.
    pub says: &'static str,
    /// Whether only root can find it out.
    pub root: bool,
    attempt: fn(&Ground) -> Kept,
}

/// What was seen of a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept; how much of it was tried, where that depends on the time, or nothing.
    Holds(String),
    /// It is not.
    Broken(Evidence),
    /// The file system says that it has no such thing.
    Unsupported(Evidence),
    /// It could not be decided: what it takes did not come about.
    Undecided(Evidence),
    /// It was not tried, for this reason.
    LeftOut(String),
}

/// What a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// What should have come of it.
    pub expected: String,
    /// What came of it.
    pub seen: String,
    /// The system call.
    pub call: String,
    /// With what it failed; `None`: it did something else.
    pub errno: Option<Errno>,
    /// What it was about.
    pub path: PathBuf,
}

/// How an attempt ends: well, or with why it went no further.
pub(super) type Kept = Result<(), Breach>;

/// Why an attempt went no further.
#[derive(Debug)]
pub(super) struct Breach(Box<Verdict>);

impl Breach {
    /// It is not tried here.
    pub(super) fn left_out(why: impl Into<String>) -> Breach {
        Breach(Box::new(Verdict::LeftOut(why.into())))
    }
}

/// A promise that anyone can find out.
pub(super) const fn promise(
    name: &'static str,
    says: &'static str,
    attempt: fn(&Ground) -> Kept,
) -> Promise {
    Promise {
        name,
        says,
        root: false,
        attempt,
    }
}

/// A promise that only root can find out.
pub(super) const fn as_root(
    name: &'static str,
    says: &'static str,
    attempt: fn(&Ground) -> Kept,
) -> Promise {
    Promise {
        name,
        says,
        root: true,
        attempt,
    }
}

impl Promise {
    /// Tries it in a directory of its own below `directory`, which exists and is ours, and
    /// removes that again. What is drawn at random follows from `seed`; what takes long ends
    /// when `stop` says so.
    ///
    /// It takes over the working directory of the calling thread, where the system lets a
    /// thread have one of its own: the thread is to end behind it.
    pub fn keep(&self, directory: &Path, seed: u64, stop: &dyn Fn() -> bool) -> Verdict {
        if self.root && !super::is_root() {
            return Verdict::LeftOut("only root can find it out".to_owned());
        }
        let own = directory.join(self.name);
        let made = nix::unistd::mkdir(&own, Mode::from_bits_truncate(0o755));
        if let Err(errno) = made {
            return Verdict::Undecided(failed("mkdir", errno, own));
        }
        let ground = Ground::new(own.clone(), seed, stop);
        let verdict = match (self.attempt)(&ground) {
            Ok(()) => Verdict::Holds(ground.note.take()),
            Err(Breach(verdict)) => *verdict,
        };
        super::clear(&own);
        verdict
    }
}

fn failed(call: &str, errno: Errno, path: PathBuf) -> Evidence {
    Evidence {
        expected: "success".to_owned(),
        seen: format!("{errno:?} ({})", errno.desc()),
        call: call.to_owned(),
        errno: Some(errno),
        path,
    }
}

/// Errors that say nothing of a promise: there is no room, or the place is not ours.
const UNDECIDED: [Errno; 6] = [
    Errno::EDQUOT,
    Errno::EMFILE,
    Errno::ENFILE,
    Errno::ENOSPC,
    Errno::ENOTCONN,
    Errno::EROFS,
];

/// Errors with which a file system says that it has no such thing.
const UNSUPPORTED: [Errno; 3] = [Errno::EOPNOTSUPP, Errno::ENOSYS, Errno::ENOTTY];

/// A call that was made: what it was about, and how it ended.
#[must_use]
pub(super) struct Did<T> {
    call: &'static str,
    path: PathBuf,
    pub(super) result: Result<T, Errno>,
}

impl<T> Did<T> {
    fn breach(self, kind: fn(Evidence) -> Verdict, errno: Errno) -> Breach {
        Breach(Box::new(kind(failed(self.call, errno, self.path))))
    }

    /// The promise is that it succeeds.
    pub(super) fn ok(self) -> Result<T, Breach> {
        match self.result {
            Ok(done) => Ok(done),
            Err(errno) if UNDECIDED.contains(&errno) => Err(self.breach(Verdict::Undecided, errno)),
            Err(errno) => Err(self.breach(Verdict::Broken, errno)),
        }
    }

    /// The same, where the file system may say that it has no such thing, with one of
    /// `more` too.
    pub(super) fn able(self, more: &[Errno]) -> Result<T, Breach> {
        match self.result {
            Err(errno) if UNSUPPORTED.contains(&errno) || more.contains(&errno) => {
                Err(self.breach(Verdict::Unsupported, errno))
            }
            _ => self.ok(),
        }
    }

    /// It only prepares what the promise is about.
    pub(super) fn ready(self) -> Result<T, Breach> {
        match self.result {
            Ok(done) => Ok(done),
            Err(errno) => Err(self.breach(Verdict::Undecided, errno)),
        }
    }

    /// The promise is that it fails with this error.
    pub(super) fn fails(self, errno: Errno) -> Kept {
        self.fails_with(&[errno])
    }

    /// The promise is that it fails with one of these errors.
    pub(super) fn fails_with(self, errors: &[Errno]) -> Kept {
        let (seen, errno) = match &self.result {
            Err(errno) if errors.contains(errno) => return Ok(()),
            Err(errno) => (format!("{errno:?} ({})", errno.desc()), Some(*errno)),
            Ok(_) => ("success".to_owned(), None),
        };
        let names: Vec<String> = errors.iter().map(|errno| format!("{errno:?}")).collect();
        Err(Breach(Box::new(Verdict::Broken(Evidence {
            expected: names.join(" or "),
            seen,
            call: self.call.to_owned(),
            errno,
            path: self.path,
        }))))
    }
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: CString,
    pub(super) ino: u64,
    pub(super) kind: Option<nix::dir::Type>,
}

/// Who is neither root nor the owner of anything.
pub(super) const USER: u32 = 54_321;
/// A group that nobody is in.
pub(super) const GROUP: u32 = 54_322;

/// An empty directory for one promise. Names are below it.
pub(super) struct Ground<'a> {
    directory: PathBuf,
    /// What stands before names: nothing where the thread is in the directory, so that
    /// nobody's permissions above it matter.
    before: PathBuf,
    pub(super) seed: u64,
    stop: &'a dyn Fn() -> bool,
    note: RefCell<String>,
}

impl<'a> Ground<'a> {
    fn new(directory: PathBuf, seed: u64, stop: &'a dyn Fn() -> bool) -> Ground<'a> {
        // Where the system refuses it, the whole path is written out.
        let here = unshare(CloneFlags::CLONE_FS).and_then(|()| nix::unistd::chdir(&directory));
        Ground {
            before: match here {
                Ok(()) => PathBuf::new(),
                Err(_) => directory.clone(),
            },
            directory,
            seed,
            stop,
            note: RefCell::default(),
        }
    }

    /// Whether all is to end.
    pub(super) fn stopped(&self) -> bool {
        (self.stop)()
    }

    /// Says how much was tried.
    pub(super) fn note(&self, text: String) {
        self.note.replace(text);
    }

    /// What leads to a name.
    pub(super) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.before.join(name)
    }

    /// How a call about a name ended.
    pub(super) fn did<T>(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        result: Result<T, Errno>,
    ) -> Did<T> {
        Did {
            call,
            path: self.directory.join(name),
            result,
        }
    }

    /// The promise is that something is as it should be.
    pub(super) fn same<T: PartialEq + Debug>(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        what: &str,
        (expected, seen): (T, T),
    ) -> Kept {
        match expected == seen {
            true => Ok(()),
            false => self.broken(
                call,
                name,
                format!("{what} {expected:?}"),
                format!("{what} {seen:?}"),
            ),
        }
    }

    /// The promise is that something is so.
    pub(super) fn is(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        right: bool,
        (expected, seen): (&str, &str),
    ) -> Kept {
        match right {
            true => Ok(()),
            false => self.broken(call, name, expected.to_owned(), seen.to_owned()),
        }
    }

    pub(super) fn broken(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        expected: String,
        seen: String,
    ) -> Kept {
        Err(Breach(Box::new(Verdict::Broken(Evidence {
            expected,
            seen,
            call: call.to_owned(),
            errno: None,
            path: self.directory.join(name),
        }))))
    }

    /// Something is not as it should be.
    pub(super) fn breach(&self, call: &'static str, expected: String, seen: String) -> Breach {
        Breach(Box::new(Verdict::Broken(Evidence {
            expected,
            seen,
            call: call.to_owned(),
            errno: None,
            path: self.directory.clone(),
        })))
    }

    /// It cannot be decided here.
    pub(super) fn undecided(&self, call: &'static str, seen: impl Into<String>) -> Breach {
        Breach(Box::new(Verdict::Undecided(Evidence {
            expected: String::new(),
            seen: seen.into(),
            call: call.to_owned(),
            errno: None,
            path: self.directory.clone(),
        })))
    }
}

// System calls.
impl Ground<'_> {
    pub(super) fn open(&self, name: impl AsRef<Path>, flags: OFlag) -> Did<OwnedFd> {
        self.open_mode(name, flags, 0o644)
    }

    pub(super) fn open_mode(
        &self,
        name: impl AsRef<Path>,
        flags: OFlag,
        mode: u32,
    ) -> Did<OwnedFd> {
        let flags = flags | OFlag::O_CLOEXEC;
        let opened = open(&self.at(&name), flags, Mode::from_bits_truncate(mode));
        self.did("openat", name, opened)
    }

    pub(super) fn mkdir(&self, name: impl AsRef<Path>, mode: u32) -> Did<()> {
        let made = nix::unistd::mkdir(&self.at(&name), Mode::from_bits_truncate(mode));
        self.did("mkdir", name, made)
    }

    pub(super) fn rmdir(&self, name: impl AsRef<Path>) -> Did<()> {
        let path = self.at(&name);
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL);
        let removed = path.and_then(|path| {
            nix::unistd::unlinkat(
                AT_FDCWD,
                path.as_c_str(),
                nix::unistd::UnlinkatFlags::RemoveDir,
            )
        });
        self.did("rmdir", name, removed)
    }

    pub(super) fn unlink(&self, name: impl AsRef<Path>) -> Did<()> {
        let removed = nix::unistd::unlink(&self.at(&name));
        self.did("unlink", name, removed)
    }

    pub(super) fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Did<()> {
        self.rename_with(from, to, RenameFlags::empty())
    }

    pub(super) fn rename_with(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        flags: RenameFlags,
    ) -> Did<()> {
        let renamed = renameat2(AT_FDCWD, &self.at(&from), AT_FDCWD, &self.at(&to), flags);
        self.did("renameat2", to, renamed)
    }

    pub(super) fn link(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Did<()> {
        let flags = AtFlags::empty();
        let linked = linkat(AT_FDCWD, &self.at(from), AT_FDCWD, &self.at(&to), flags);
        self.did("linkat", to, linked)
    }

    pub(super) fn symlink(&self, target: impl AsRef<Path>, name: impl AsRef<Path>) -> Did<()> {
        let made = nix::unistd::symlinkat(target.as_ref(), AT_FDCWD, &self.at(&name));
        self.did("symlinkat", name, made)
    }

    pub(super) fn readlink(&self, name: impl AsRef<Path>) -> Did<std::ffi::OsString> {
        let found = readlink(&self.at(&name));
        self.did("readlink", name, found)
    }

    pub(super) fn mkfifo(&self, name: impl AsRef<Path>, mode: u32) -> Did<()> {
        let made = nix::unistd::mkfifo(&self.at(&name), Mode::from_bits_truncate(mode));
        self.did("mknodat", name, made)
    }

    pub(super) fn stat(&self, name: impl AsRef<Path>) -> Did<FileStat> {
        let found = stat(&self.at(&name));
        self.did("stat", name, found)
    }

    pub(super) fn lstat(&self, name: impl AsRef<Path>) -> Did<FileStat> {
        let found = lstat(&self.at(&name));
        self.did("lstat", name, found)
    }

    pub(super) fn fstat(&self, name: impl AsRef<Path>, fd: impl AsFd) -> Did<FileStat> {
        self.did("fstat", name, fstat(fd))
    }

    pub(super) fn chmod(&self, name: impl AsRef<Path>, mode: u32) -> Did<()> {
        let changed = nix::sys::stat::fchmodat(
            AT_FDCWD,
            &self.at(&name),
            Mode::from_bits_truncate(mode),
            nix::sys::stat::FchmodatFlags::FollowSymlink,
        );
        self.did("fchmodat", name, changed)
    }

    pub(super) fn chown(
        &self,
        name: impl AsRef<Path>,
        user: Option<u32>,
        group: Option<u32>,
    ) -> Did<()> {
        let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
        let changed = nix::unistd::chown(&self.at(&name), user, group);
        self.did("chown", name, changed)
    }

    pub(super) fn truncate(&self, name: impl AsRef<Path>, length: i64) -> Did<()> {
        let changed = nix::unistd::truncate(&self.at(&name), length);
        self.did("truncate", name, changed)
    }

    /// Sets the times of access and of change.
    pub(super) fn utimens(
        &self,
        name: impl AsRef<Path>,
        access: TimeSpec,
        change: TimeSpec,
    ) -> Did<()> {
        let follow = UtimensatFlags::FollowSymlink;
        let set = utimensat(AT_FDCWD, &self.at(&name), &access, &change, follow);
        self.did("utimensat", name, set)
    }

    /// All entries of a directory but `.` and `..`, in their order.
    pub(super) fn list(&self, name: impl AsRef<Path>) -> Did<Vec<Listed>> {
        let listed = self
            .opened_directory(&name)
            .result
            .and_then(|mut directory| {
                let mut all = Vec::new();
                for entry in directory.iter() {
                    let entry = entry?;
                    if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                        all.push(Listed {
                            name: entry.file_name().to_owned(),
                            ino: entry.ino(),
                            kind: entry.file_type(),
                        });
                    }
                }
                Ok(all)
            });
        self.did("getdents64", name, listed)
    }

    /// The names in a directory but `.` and `..`, however often they are listed.
    pub(super) fn entries(&self, name: impl AsRef<Path>) -> Did<BTreeSet<Vec<u8>>> {
        let Did { call, path, result } = self.list(name);
        let names = |all: Vec<Listed>| all.into_iter().map(|entry| entry.name.into_bytes());
        Did {
            call,
            path,
            result: result.map(|all| names(all).collect()),
        }
    }

    pub(super) fn opened_directory(&self, name: impl AsRef<Path>) -> Did<nix::dir::Dir> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let opened = nix::dir::Dir::open(&self.at(&name), flags, Mode::empty());
        self.did("openat", name, opened)
    }
}

// Preparations, and what is looked at behind.
impl Ground<'_> {
    /// A new file, open for reading and writing.
    pub(super) fn file(&self, name: impl AsRef<Path>) -> Result<OwnedFd, Breach> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL;
        self.open(name, flags).ready()
    }

    /// A file open for reading and writing.
    pub(super) fn reopened(&self, name: impl AsRef<Path>) -> Result<OwnedFd, Breach> {
        self.open(name, OFlag::O_RDWR).ready()
    }

    /// A new closed file with this content.
    pub(super) fn put(&self, name: impl AsRef<Path>, content: &[u8]) -> Result<(), Breach> {
        let fd = self.file(&name)?;
        self.write(&name, &fd, content, 0).ready()
    }

    /// A new directory that its owner, group and others may use.
    pub(super) fn dir(&self, name: impl AsRef<Path>) -> Result<(), Breach> {
        self.mkdir(name, 0o755).ready()
    }

    /// Writes all of it.
    pub(super) fn write(
        &self,
        name: impl AsRef<Path>,
        fd: impl AsFd,
        bytes: &[u8],
        offset: i64,
    ) -> Did<()> {
        let mut done = 0;
        let mut result = Ok(());
        while done < bytes.len() {
            match pwrite(&fd, &bytes[done..], offset + done as i64) {
                Ok(0) => result = Err(Errno::EIO),
                Ok(n) => {
                    done += n;
                    continue;
                }
                Err(errno) => result = Err(errno),
            }
            break;
        }
        self.did("pwrite64", name, result)
    }

    /// Up to `length` bytes from `offset` on.
    pub(super) fn read(
        &self,
        name: impl AsRef<Path>,
        fd: impl AsFd,
        length: usize,
        offset: i64,
    ) -> Did<Vec<u8>> {
        let mut buffer = vec![0; length];
        let mut done = 0;
        let mut result = Ok(());
        while done < length {
            match pread(&fd, &mut buffer[done..], offset + done as i64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(errno) => {
                    result = Err(errno);
                    break;
                }
            }
        }
        buffer.truncate(done);
        self.did("pread64", name, result.map(|()| buffer))
    }

    /// The promise is that a file has this content, and no more.
    pub(super) fn holds(&self, name: impl AsRef<Path>, content: &[u8]) -> Kept {
        let fd = self.open(&name, OFlag::O_RDONLY).ok()?;
        self.holds_open(name, fd, content)
    }

    /// The same of an open file.
    pub(super) fn holds_open(&self, name: impl AsRef<Path>, fd: impl AsFd, content: &[u8]) -> Kept {
        let found = self.read(&name, fd, content.len() + 1, 0).ok()?;
        self.bytes("pread64", name, content, &found)
    }

    /// The promise is that bytes are these.
    pub(super) fn bytes(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        expected: &[u8],
        found: &[u8],
    ) -> Kept {
        if expected == found {
            return Ok(());
        }
        let mut both = expected.iter().zip(found);
        let at = both.position(|(a, b)| a != b);
        let at = at.unwrap_or(expected.len().min(found.len()));
        let told = |bytes: &[u8]| {
            let part = &bytes[at.min(bytes.len())..bytes.len().min(at + 16)];
            format!("{} bytes, at {at} '{}'", bytes.len(), part.escape_ascii())
        };
        self.broken(call, name, told(expected), told(found))
    }

    /// The promise is that nothing has this name.
    pub(super) fn gone(&self, name: impl AsRef<Path>) -> Kept {
        self.lstat(name).fails(Errno::ENOENT)
    }

    /// The promise is that something has this name.
    pub(super) fn there(&self, name: impl AsRef<Path>) -> Kept {
        self.lstat(name).ok().map(drop)
    }

    /// The bits that new files of this process do not get.
    pub(super) fn umask(&self) -> Result<u32, Breach> {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
        mask.ok_or_else(|| self.undecided("umask", "the umask is not known"))
    }

    /// Runs calls as a user who is not root, in this group. The thread is root again behind them.
    pub(super) fn as_user(&self, user: u32, group: u32, calls: impl FnOnce() -> Kept) -> Kept {
        struct Back;
        impl Drop for Back {
            fn drop(&mut self) {
                setfsuid(Uid::from_raw(0));
                setfsgid(Gid::from_raw(0));
            }
        }
        let back = Back;
        setfsgid(Gid::from_raw(group));
        setfsuid(Uid::from_raw(user));
        // A wrong value changes nothing and tells the present one.
        if setfsuid(Uid::from_raw(u32::MAX)).as_raw() != user {
            return Err(self.undecided("setfsuid", "the thread cannot become another user"));
        }
        if self.stat(".").result.is_err() {
            return Err(self.undecided(
                "stat",
                "another user does not come as far as this directory",
            ));
        }
        let kept = calls();
        drop(back);
        kept
    }

    /// Waits until the file system's clock has gone on, so that what is changed now gets
    /// another time than what was changed before.
    pub(super) fn tick(&self) -> Result<(), Breach> {
        const LONGEST: Duration = Duration::from_millis(2500);
        let begun = Instant::now();
        let stamp = |number: u32| {
            let name = format!(".tick-{number}");
            drop(self.file(&name)?);
            let found = self.stat(&name).ready()?;
            self.unlink(&name).ready()?;
            Ok((found.st_ctime, found.st_ctime_nsec))
        };
        let first = stamp(0)?;
        let mut number = 1;
        while stamp(number)? == first {
            if begun.elapsed() > LONGEST {
                return Err(self.undecided("stat", "the times of new files stand still"));
            }
            std::thread::sleep(Duration::from_millis(3));
            number += 1;
        }
        Ok(())
    }
}

/// Bytes that are different everywhere and never zero.
pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8 | 1).collect()
}
