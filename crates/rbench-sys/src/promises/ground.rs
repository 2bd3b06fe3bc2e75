//! The ground that a promise is tried on: calls that remember what they were about, and
//! what follows from how they end.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, open, readlink, renameat2};
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{
    FchmodatFlags, FileStat, Mode, UtimensatFlags, fchmodat, fstat, lstat, stat, utimensat,
};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, linkat};
use rbench_core::message::path;
use serde::{Deserialize, Serialize, Serializer};

use crate::workdir::WorkDir;

mod prepare;

pub(super) use prepare::pattern;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// What should have come of it.
    pub expected: String,
    /// What came of it.
    pub seen: String,
    /// The system call.
    pub call: String,
    /// With what it failed; `None`: it did something else.
    #[serde(with = "rbench_core::message::errno")]
    pub errno: Option<Errno>,
    /// What it was about.
    #[serde(serialize_with = "named", deserialize_with = "path::deserialize")]
    pub path: PathBuf,
}

/// For other ranks, where a path by way of a descriptor leads elsewhere.
fn named<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path::serialize(&WorkDir::named(path), serializer)
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
    /// leaves what it made there to [`clear`](super::clear). What is drawn at random follows from `seed`. What may take as long
    /// as it likes takes most of `longest`; all ends between two calls when `stop` says so.
    ///
    /// It takes over the working directory of the calling thread, where the system lets a
    /// thread have one of its own: the thread is to end behind it.
    pub fn keep(
        &self,
        directory: &Path,
        seed: u64,
        longest: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Verdict {
        // The rest is for what it is in the middle of.
        let most = longest.mul_f64(0.8);
        if self.root && !super::is_root() {
            return Verdict::LeftOut("it can be tested only as root".to_owned());
        }
        // With a limit of file sizes (ulimit -f) a write is to fail, and not to end the process.
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGXFSZ);
        let _ = signals.thread_block();
        let own = directory.join(self.name);
        if let Err(undecided) = made(&own) {
            return undecided;
        }
        plain(&own);
        let ground = Ground::new(own.clone(), seed, most, stop);
        // A mistake of ours costs this promise, not the report of all.
        let attempt = AssertUnwindSafe(|| (self.attempt)(&ground));
        match catch_unwind(attempt) {
            Ok(Ok(())) => Verdict::Holds(ground.note.take()),
            Ok(Err(Breach(verdict))) => *verdict,
            Err(_) => *ground.undecided("", "the check itself failed").0,
        }
    }
}

/// Makes a directory; otherwise nothing can be decided in it.
pub(super) fn made(directory: &Path) -> Result<(), Verdict> {
    let made = nix::unistd::mkdir(directory, Mode::from_bits_truncate(0o755));
    made.map_err(|errno| Verdict::Undecided(failed("mkdir", errno, directory.to_owned())))
}

/// Takes what a new directory has from the one above: default access control lists, the
/// set-group-ID bit and its group. With them other modes and groups are right than those that
/// are promised. What has none, or keeps them, stays as it is.
fn plain(directory: &Path) {
    if let Ok(path) = CString::new(directory.as_os_str().as_bytes()) {
        for name in [c"system.posix_acl_default", c"system.posix_acl_access"] {
            // SAFETY: both strings end with zero.
            let _ = unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) };
        }
    }
    let _ = nix::unistd::chown(directory, None, Some(nix::unistd::getegid()));
    let mode = Mode::from_bits_truncate(0o755);
    let _ = fchmodat(AT_FDCWD, directory, mode, FchmodatFlags::FollowSymlink);
}

/// An error in words.
fn described(errno: Errno) -> String {
    format!("{errno:?} ({})", errno.desc())
}

impl Evidence {
    /// What was seen beyond the error; nothing where the error says it all.
    pub fn beyond_the_error(&self) -> String {
        match self.errno {
            Some(errno) if self.seen == described(errno) => String::new(),
            Some(_) => self.seen.clone(),
            None if self.expected.is_empty() => self.seen.clone(),
            None => format!("{} instead of {}", self.seen, self.expected),
        }
    }
}

fn failed(call: &str, errno: Errno, path: PathBuf) -> Evidence {
    Evidence {
        expected: "success".to_owned(),
        seen: described(errno),
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

/// Whether an error says nothing of a promise.
pub(super) fn undecides(errno: Errno) -> bool {
    let limited = || {
        // What is not known is no limit.
        let limit = getrlimit(Resource::RLIMIT_FSIZE);
        limit.is_ok_and(|(soft, _)| soft != RLIM_INFINITY)
    };
    UNDECIDED.contains(&errno) || errno == Errno::EFBIG && limited()
}

/// Errors with which a file system says that it has no such thing.
const UNSUPPORTED: [Errno; 3] = [Errno::EOPNOTSUPP, Errno::ENOSYS, Errno::ENOTTY];

/// A call that was made: what it was about, and how it ended.
#[must_use]
pub(super) struct Did<T> {
    call: &'static str,
    path: PathBuf,
    /// Whether all is to end, so that nothing is said of it any more.
    stopped: bool,
    pub(super) result: Result<T, Errno>,
}

impl<T> Did<T> {
    fn breach(self, kind: fn(Evidence) -> Verdict, errno: Errno) -> Breach {
        Breach(Box::new(kind(failed(self.call, errno, self.path))))
    }

    /// What ends an attempt that is to end.
    fn going_on(self) -> Result<Did<T>, Breach> {
        match self.stopped {
            false => Ok(self),
            true => Err(Breach(Box::new(Verdict::Undecided(Evidence {
                seen: "interrupted".to_owned(),
                call: self.call.to_owned(),
                path: self.path,
                ..Evidence::default()
            })))),
        }
    }

    /// The promise is that it succeeds.
    pub(super) fn ok(self) -> Result<T, Breach> {
        let this = self.going_on()?;
        match this.result {
            Ok(done) => Ok(done),
            Err(errno) if undecides(errno) => Err(this.breach(Verdict::Undecided, errno)),
            Err(errno) => Err(this.breach(Verdict::Broken, errno)),
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
        let this = self.going_on()?;
        match this.result {
            Ok(done) => Ok(done),
            Err(errno) => Err(this.breach(Verdict::Undecided, errno)),
        }
    }

    /// The promise is that it fails with this error.
    pub(super) fn fails(self, errno: Errno) -> Kept {
        self.fails_with(&[errno])
    }

    /// The promise is that it fails with one of these errors.
    pub(super) fn fails_with(self, errors: &[Errno]) -> Kept {
        let this = self.going_on()?;
        let (seen, errno) = match &this.result {
            Err(errno) if errors.contains(errno) => return Ok(()),
            Err(errno) if undecides(*errno) => {
                let errno = *errno;
                return Err(this.breach(Verdict::Undecided, errno));
            }
            Err(errno) => (described(*errno), Some(*errno)),
            Ok(_) => ("success".to_owned(), None),
        };
        let names: Vec<String> = errors.iter().map(|errno| format!("{errno:?}")).collect();
        Err(Breach(Box::new(Verdict::Broken(Evidence {
            expected: names.join(" or "),
            seen,
            call: this.call.to_owned(),
            errno,
            path: this.path,
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

/// More entries than any directory here has.
const LISTED_MAX: usize = 20_000;

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
    /// How long a promise may take that takes as long as it likes.
    pub(super) longest: Duration,
    begun: Instant,
    stop: &'a dyn Fn() -> bool,
    note: RefCell<String>,
}

/// A ground as all workers of a promise have it.
#[derive(Clone)]
pub(super) struct Shared {
    directory: PathBuf,
    before: PathBuf,
    seed: u64,
    longest: Duration,
    begun: Instant,
}

impl Shared {
    /// The ground of one worker, in a thread that the one of the promise has started: what it
    /// draws is its own.
    pub(super) fn ground(self, worker: usize, stop: &dyn Fn() -> bool) -> Ground<'_> {
        let Shared {
            directory,
            before,
            seed,
            longest,
            begun,
        } = self;
        Ground {
            directory,
            before,
            seed: rbench_core::random::key(&[seed, worker as u64]),
            longest,
            begun,
            stop,
            note: RefCell::default(),
        }
    }
}

impl<'a> Ground<'a> {
    fn new(
        directory: PathBuf,
        seed: u64,
        longest: Duration,
        stop: &'a dyn Fn() -> bool,
    ) -> Ground<'a> {
        // Where the system refuses it, the whole path is written out.
        let here = unshare(CloneFlags::CLONE_FS).and_then(|()| nix::unistd::chdir(&directory));
        Ground {
            before: match here {
                Ok(()) => PathBuf::new(),
                Err(_) => directory.clone(),
            },
            directory,
            seed,
            longest,
            begun: Instant::now(),
            stop,
            note: RefCell::default(),
        }
    }

    /// What workers of one promise need for grounds of their own.
    pub(super) fn shared(&self) -> Shared {
        let Ground {
            directory,
            before,
            seed,
            longest,
            begun,
            stop: _,
            note: _,
        } = self;
        Shared {
            directory: directory.clone(),
            before: before.clone(),
            seed: *seed,
            longest: *longest,
            begun: *begun,
        }
    }

    /// Whether all is to end.
    pub(super) fn stopped(&self) -> bool {
        (self.stop)()
    }

    /// Whether what takes as long as it likes is to end.
    pub(super) fn is_late(&self) -> bool {
        self.begun.elapsed() >= self.longest || self.stopped()
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
            stopped: self.stopped(),
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

    /// The same of the mode of a file.
    pub(super) fn same_mode(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        (expected, seen): (u32, u32),
    ) -> Kept {
        let octal = |mode: u32| format!("mode {mode:04o}");
        match expected == seen {
            true => Ok(()),
            false => self.broken(call, name, octal(expected), octal(seen)),
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

    /// The file system refuses it with an error; what else was seen, or nothing.
    pub(super) fn refused(&self, call: &'static str, errno: Errno, seen: String) -> Breach {
        let mut evidence = failed(call, errno, self.directory.clone());
        if !seen.is_empty() {
            evidence.seen = seen;
        }
        Breach(Box::new(match undecides(errno) {
            true => Verdict::Undecided(evidence),
            false => Verdict::Unsupported(evidence),
        }))
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
        let changed = fchmodat(
            AT_FDCWD,
            &self.at(&name),
            Mode::from_bits_truncate(mode),
            FchmodatFlags::FollowSymlink,
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
                    // One that never ends ends here.
                    if all.len() > LISTED_MAX || self.stopped() {
                        break;
                    }
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
        let Did {
            call,
            path,
            stopped,
            result,
        } = self.list(name);
        let names = |all: Vec<Listed>| all.into_iter().map(|entry| entry.name.into_bytes());
        Did {
            call,
            path,
            stopped,
            result: result.map(|all| names(all).collect()),
        }
    }

    pub(super) fn opened_directory(&self, name: impl AsRef<Path>) -> Did<nix::dir::Dir> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let opened = nix::dir::Dir::open(&self.at(&name), flags, Mode::empty());
        self.did("openat", name, opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_place_decide_nothing() {
        let did = |errno| Did {
            call: "mkdir",
            path: PathBuf::from("/a"),
            stopped: false,
            result: Err::<(), _>(errno),
        };
        let verdict = |kept: Kept| kept.err().map(|Breach(verdict)| *verdict);
        let undecided = |kept| matches!(verdict(kept), Some(Verdict::Undecided(_)));
        for errno in UNDECIDED {
            assert!(undecided(did(errno).fails(Errno::EEXIST)), "{errno}");
            assert!(undecided(did(errno).ok()), "{errno}");
            assert!(did(errno).fails(errno).is_ok(), "{errno}");
        }
        assert!(!undecided(did(Errno::EACCES).fails(Errno::EEXIST)));
    }

    #[test]
    fn another_user_for_a_while_leaves_the_process_as_it_was() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let before = nix::sys::prctl::get_dumpable();
        let other = as_root("test.user", "nothing", |g| {
            g.as_user(USER, GROUP, || Ok(()))
        });
        let verdict = other.keep(dir.path(), 1, Duration::from_secs(60), &|| false);
        let fine = matches!(verdict, Verdict::Holds(_) | Verdict::LeftOut(_));
        assert!(fine, "{verdict:?}");
        assert_eq!(nix::sys::prctl::get_dumpable(), before);
    }

    #[test]
    fn what_is_stopped_is_undecided_behind_the_call_in_which_it_is() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let endless = promise("test.endless", "nothing", |g| {
            loop {
                g.stat(".").ok()?;
            }
        });
        let begun = Instant::now();
        let late = || begun.elapsed() > Duration::from_millis(50);
        match endless.keep(dir.path(), 1, Duration::from_secs(60), &late) {
            Verdict::Undecided(evidence) => assert_eq!(evidence.seen, "interrupted"),
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn a_promise_that_panics_is_undecided_and_removed() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let panics = promise("test.panics", "nothing", |g| {
            g.put("a", b"x")?;
            panic!("on purpose")
        });
        match panics.keep(dir.path(), 1, Duration::from_secs(60), &|| false) {
            Verdict::Undecided(evidence) => assert_eq!(evidence.seen, "the check itself failed"),
            verdict => panic!("{verdict:?}"),
        }
        super::super::clear(dir.path(), &panics);
        assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 0);
    }
}
