//! The workspace in which a promise is tested: calls that record their subject, and conclusions
//! from their results.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
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
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{
    FchmodatFlags, FileStat, Mode, UtimensatFlags, fchmodat, fstat, lstat, stat, utimensat,
};
use nix::sys::time::TimeSpec;
use nix::unistd::linkat;
use rbench_core::{By, Call};

use super::did::{Breach, Did, Evidence, Kept, Listed, Verdict, broken, failed, undecides};
use crate::fs::Fs as _;
use crate::posix::PosixFs;

/// A promise of a file system.
#[derive(Debug)]
pub struct Promise {
    /// Name for machines: `rename.over-existing.keeps-one`.
    pub name: &'static str,
    /// The promise, a clause for people.
    pub says: &'static str,
    /// True if only root can test it.
    pub root: bool,
    attempt: fn(&Ground) -> Kept,
}

/// The name and the sentence of a promise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) name: &'static str,
    pub(crate) says: &'static str,
}

/// A promise with this name, without its sentence and its test.
pub(crate) const fn promise(name: &'static str) -> Claim {
    Claim { name, says: "" }
}

impl Claim {
    /// Sets the sentence.
    pub(crate) const fn says(self, says: &'static str) -> Claim {
        Claim { says, ..self }
    }

    /// A promise that any user can test.
    pub(super) const fn test(self, attempt: fn(&Ground) -> Kept) -> Promise {
        let Claim { name, says } = self;
        let root = false;
        Promise {
            name,
            says,
            root,
            attempt,
        }
    }

    /// A promise that only root can test.
    pub(super) const fn test_as_root(self, attempt: fn(&Ground) -> Kept) -> Promise {
        Promise {
            root: true,
            ..self.test(attempt)
        }
    }
}

impl Promise {
    /// Tests the promise in its own directory below `directory`, which exists and belongs to this
    /// process. Its files stay for [`clear`](super::clear). Random choices derive from `seed`.
    /// Tests of any duration take most of `longest`; all end between calls if `stop` is true.
    ///
    /// It takes over the working directory of the calling thread, if the system permits a thread
    /// its own: the thread must end afterwards.
    pub fn keep(
        &self,
        directory: &Path,
        seed: u64,
        longest: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Verdict {
        // The rest is for the operation in progress.
        let most = longest.mul_f64(0.8);
        if self.root && !super::is_root() {
            return Verdict::LeftOut("it can be tested only as root".to_owned());
        }
        // With a limit of file sizes (ulimit -f) a write must fail instead of ending the
        // process.
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGXFSZ);
        let _ = signals.thread_block();
        let own = directory.join(self.name);
        if let Err(undecided) = made(&own) {
            return undecided;
        }
        plain(&own);
        let ground = Ground::new(own.clone(), seed, most, stop);
        // An error in rbench costs this promise, not the whole report.
        let attempt = AssertUnwindSafe(|| (self.attempt)(&ground));
        match catch_unwind(attempt) {
            Ok(Ok(())) => Verdict::Holds(ground.note.take()),
            Ok(Err(verdict)) => *verdict,
            Err(_) => *ground.undecided("", "the check itself failed"),
        }
    }
}

/// Creates a directory; an error makes the verdict undecided.
pub(super) fn made(directory: &Path) -> Result<(), Verdict> {
    let result = nix::unistd::mkdir(directory, Mode::from_bits_truncate(0o755));
    result.map_err(|errno| Verdict::Undecided(failed("mkdir", errno, directory.to_owned())))
}

/// Removes properties that a new directory inherits from its parent: default access control
/// lists, the set-group-ID bit and its group. With them, the promised modes and groups would not
/// apply. A directory without them, or that keeps them, is left unchanged.
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

/// More entries than any directory in these tests.
const LISTED_MAX: usize = 20_000;

/// Creates a file, open for reading and writing.
pub(super) const NEW: OFlag = OFlag::O_CREAT.union(OFlag::O_EXCL).union(OFlag::O_RDWR);

/// A user who is neither root nor the owner of anything.
pub(super) const USER: u32 = 54_321;
/// A group without members.
pub(super) const GROUP: u32 = 54_322;

/// An empty directory for one promise. Names are relative to it.
pub(super) struct Ground<'a> {
    pub(super) shared: Shared,
    stop: &'a dyn Fn() -> bool,
    note: RefCell<String>,
}

/// The common parts of the workspaces of a promise's workers.
#[derive(Clone)]
pub(super) struct Shared {
    directory: PathBuf,
    /// Prefix of names: empty if the thread is in the directory, beyond permissions above it.
    before: PathBuf,
    pub(super) seed: u64,
    /// Time limit of promises that take any amount of time.
    pub(super) longest: Duration,
    begun: Instant,
}

impl Shared {
    /// Creates the workspace of a worker in a thread of the promise's, with its own random stream.
    pub(super) fn ground(mut self, worker: usize, stop: &dyn Fn() -> bool) -> Ground<'_> {
        self.seed = rbench_core::random::key(&[self.seed, worker as u64]);
        Ground {
            shared: self,
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
        // If the system refuses it, names have the whole path.
        let here = unshare(CloneFlags::CLONE_FS).and_then(|()| nix::unistd::chdir(&directory));
        Ground {
            shared: Shared {
                before: match here {
                    Ok(()) => PathBuf::new(),
                    Err(_) => directory.clone(),
                },
                directory,
                seed,
                longest,
                begun: Instant::now(),
            },
            stop,
            note: RefCell::default(),
        }
    }

    /// True if the test must end.
    pub(super) fn stopped(&self) -> bool {
        (self.stop)()
    }

    /// True if tests of any duration must end.
    pub(super) fn is_late(&self) -> bool {
        self.shared.begun.elapsed() >= self.shared.longest || self.stopped()
    }

    /// Records the amount that was tested.
    pub(super) fn note(&self, text: String) {
        self.note.replace(text);
    }

    /// The path of a name.
    pub(super) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.shared.before.join(name)
    }

    /// Records the result of a call on a name.
    pub(super) fn did<T>(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        result: Result<T, Errno>,
    ) -> Did<T> {
        Did {
            call,
            path: self.shared.directory.join(name),
            stopped: self.stopped(),
            result,
        }
    }

    /// Expects a value to be equal, by the promise.
    pub(super) fn same<T: PartialEq + Debug>(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        what: &str,
        (expected, seen): (T, T),
    ) -> Kept {
        self.did(call, name, Ok(seen))
            .has(what, expected, |seen| seen)
    }

    /// Expects a condition to be true, by the promise.
    pub(super) fn is(
        &self,
        call: &'static str,
        name: impl AsRef<Path>,
        right: bool,
        words: (&str, &str),
    ) -> Kept {
        self.did(call, name, Ok(right)).shows(|right| right, words)
    }

    /// A value is not as expected.
    pub(super) fn breach(&self, call: &'static str, expected: String, seen: String) -> Breach {
        broken(call, self.shared.directory.clone(), expected, seen)
    }

    /// The file system refuses it with an error; `seen` is a further observation, or empty.
    pub(super) fn refused(&self, call: &'static str, errno: Errno, seen: String) -> Breach {
        let mut evidence = failed(call, errno, self.shared.directory.clone());
        if !seen.is_empty() {
            evidence.seen = seen;
        }
        Box::new(match undecides(errno) {
            true => Verdict::Undecided(evidence),
            false => Verdict::Unsupported(evidence),
        })
    }

    /// It cannot be decided here.
    pub(super) fn undecided(&self, call: &'static str, seen: impl Into<String>) -> Breach {
        let evidence = Evidence::new(call, seen, &self.shared.directory);
        Box::new(Verdict::Undecided(evidence))
    }
}

// System calls.
impl Ground<'_> {
    fn on_path(&self, call: &'static str, act: Call, name: impl AsRef<Path>) -> Did<()> {
        let path = CString::new(self.at(&name).as_os_str().as_bytes());
        let path = path.map_err(|_| Errno::EINVAL);
        let done = path.and_then(|path| PosixFs::here().on_path(act, &path));
        self.did(call, name, done.map(drop))
    }

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
        self.on_path("mkdir", Call::Mkdir(mode), name)
    }

    pub(super) fn rmdir(&self, name: impl AsRef<Path>) -> Did<()> {
        self.on_path("rmdir", Call::Rmdir, name)
    }

    pub(super) fn unlink(&self, name: impl AsRef<Path>) -> Did<()> {
        self.on_path("unlink", Call::Unlink, name)
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
        let result = nix::unistd::symlinkat(target.as_ref(), AT_FDCWD, &self.at(&name));
        self.did("symlinkat", name, result)
    }

    pub(super) fn readlink(&self, name: impl AsRef<Path>) -> Did<OsString> {
        let target = readlink(&self.at(&name));
        self.did("readlink", name, target)
    }

    pub(super) fn mkfifo(&self, name: impl AsRef<Path>, mode: u32) -> Did<()> {
        let result = nix::unistd::mkfifo(&self.at(&name), Mode::from_bits_truncate(mode));
        self.did("mknodat", name, result)
    }

    pub(super) fn stat(&self, name: impl AsRef<Path>) -> Did<FileStat> {
        let attributes = stat(&self.at(&name));
        self.did("stat", name, attributes)
    }

    pub(super) fn lstat(&self, name: impl AsRef<Path>) -> Did<FileStat> {
        let attributes = lstat(&self.at(&name));
        self.did("lstat", name, attributes)
    }

    pub(super) fn fstat(&self, name: impl AsRef<Path>, fd: impl AsFd) -> Did<FileStat> {
        self.did("fstat", name, fstat(fd))
    }

    pub(super) fn chmod(&self, name: impl AsRef<Path>, mode: u32) -> Did<()> {
        self.on_path("fchmodat", Call::Chmod(By::Path, mode), name)
    }

    pub(super) fn chown(
        &self,
        name: impl AsRef<Path>,
        user: Option<u32>,
        group: Option<u32>,
    ) -> Did<()> {
        // This number leaves one unchanged.
        let [user, group] = [user, group].map(|id| id.unwrap_or(u32::MAX));
        self.on_path("chown", Call::Chown(By::Path, user, group), name)
    }

    pub(super) fn truncate(&self, name: impl AsRef<Path>, length: i64) -> Did<()> {
        let length = length.cast_unsigned();
        self.on_path("truncate", Call::Truncate(By::Path, length), name)
    }

    /// Sets the times of access and modification.
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

    /// All entries of a directory except `.` and `..`, in their order.
    pub(super) fn list(&self, name: impl AsRef<Path>) -> Did<Vec<Listed>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let opened = nix::dir::Dir::open(&self.at(&name), flags, Mode::empty());
        let listed = opened.and_then(|mut directory| {
            let mut all = Vec::new();
            for entry in directory.iter() {
                let entry = entry?;
                // Ends a listing that never ends.
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

    /// The names in a directory except `.` and `..`, however often they are listed.
    pub(super) fn entries(&self, name: impl AsRef<Path>) -> Did<BTreeSet<Vec<u8>>> {
        let names = |all: Vec<Listed>| all.into_iter().map(|entry| entry.name.into_bytes());
        self.list(name).map(|all| names(all).collect())
    }

    /// Sets the length of an open file.
    pub(super) fn ftruncate(&self, name: impl AsRef<Path>, fd: impl AsFd, length: i64) -> Did<()> {
        self.did("ftruncate", name, nix::unistd::ftruncate(fd, length))
    }

    pub(super) fn fsync(&self, name: impl AsRef<Path>, fd: impl AsFd) -> Did<()> {
        self.did("fsync", name, nix::unistd::fsync(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::did::UNDECIDED;

    fn keep(promise: &Promise, directory: &Path, stop: &dyn Fn() -> bool) -> Verdict {
        promise.keep(directory, 1, Duration::from_secs(60), stop)
    }

    #[test]
    fn errors_of_the_place_decide_nothing() {
        let did = |errno| Did {
            call: "mkdir",
            path: PathBuf::from("/a"),
            stopped: false,
            result: Err::<(), _>(errno),
        };
        let verdict = |kept: Kept| kept.err().map(|verdict| *verdict);
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
        // Runs in a process of its own: what is compared belongs to a process, and other tests
        // change their user too.
        const ALONE: &str = "RBENCH_TEST_ALONE";
        let name = "another_user_for_a_while_leaves_the_process_as_it_was";
        if std::env::var_os(ALONE).is_none() {
            let mut alone = std::process::Command::new(std::env::current_exe().expect("known"));
            alone.args(["--exact", &format!("promises::ground::tests::{name}")]);
            let run = alone.env(ALONE, "1").output().expect("it starts");
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && said.contains("1 passed"), "{run:?}");
            return;
        }
        let dir = tempfile::tempdir().expect("temporary directory");
        let before = nix::sys::prctl::get_dumpable();
        let other = promise("test.user")
            .says("nothing")
            .test_as_root(|g| g.as_user(USER, GROUP, || Ok(())));
        let verdict = keep(&other, dir.path(), &|| false);
        let fine = matches!(verdict, Verdict::Holds(_) | Verdict::LeftOut(_));
        assert!(fine, "{verdict:?}");
        assert_eq!(nix::sys::prctl::get_dumpable(), before);
    }

    #[test]
    fn what_is_stopped_is_undecided_behind_the_call_in_which_it_is() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let endless = promise("test.endless").says("nothing").test(|g| {
            loop {
                g.stat(".").ok()?;
            }
        });
        let start = Instant::now();
        let late = || start.elapsed() > Duration::from_millis(50);
        match keep(&endless, dir.path(), &late) {
            Verdict::Undecided(evidence) => assert_eq!(evidence.seen, "interrupted"),
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn a_promise_that_panics_is_undecided_and_removed() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let panics = promise("test.panics").says("nothing").test(|g| {
            g.put("a", b"x")?;
            panic!("on purpose")
        });
        match keep(&panics, dir.path(), &|| false) {
            Verdict::Undecided(evidence) => assert_eq!(evidence.seen, "the check itself failed"),
            verdict => panic!("{verdict:?}"),
        }
        super::super::clear(dir.path(), &panics);
        assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 0);
    }

    #[test]
    fn modes_are_octal_and_types_are_words() {
        let seen = |attempt| {
            // A broken promise leaves its directory.
            let dir = tempfile::tempdir().expect("temporary directory");
            let promise = promise("test.modes").says("nothing").test(attempt);
            match keep(&promise, dir.path(), &|| false) {
                Verdict::Broken(evidence) => (evidence.expected, evidence.seen),
                verdict => panic!("{verdict:?}"),
            }
        };
        let shown = |expected: &str, seen: &str| (expected.to_owned(), seen.to_owned());
        let mode = seen(|g| {
            g.put("a", b"")?;
            g.chmod("a", 0o4755).ready()?;
            g.stat("a").mode(0o640)
        });
        assert_eq!(mode, shown("mode 0640", "mode 4755"));
        let kind = seen(|g| {
            g.put("a", b"")?;
            g.stat("a").kind(libc::S_IFLNK)
        });
        assert_eq!(kind, shown("a symbolic link", "a regular file"));
    }
}
