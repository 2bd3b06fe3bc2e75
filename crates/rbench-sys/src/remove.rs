//! Removes a directory with its whole content, by several threads at a time, without
//! following a symbolic link or entering another mount. The memory does not depend on
//! the number of entries.
//!
//! A thread that reads a directory removes its entries, and hands directories in it to
//! idle threads. It removes files itself, because the kernel removes names of one
//! directory one at a time. The thread that finishes a directory last removes it, so no
//! thread waits for another.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use rbench_core::or_eio;
use serde::{Deserialize, Serialize};

use crate::dirents::{self, Records};
use crate::mountinfo::mount_id;

/// Name of the marker file, which identifies the owner of the directory. It is removed
/// last.
pub(crate) const MARKER: &CStr = c".rbench-run";

/// Bytes of a directory's listing that are read at a time.
const BATCH: usize = 32 << 10;

/// The deepest tree that is removed: a path of the kernel's maximum length has no more
/// components.
const DEPTH_MAX: usize = 2048;

/// Number of attempts to list the top again while too many files are open, and the pause
/// between them; the same for its entries.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// Bytes of a helping thread's stack, enough for [`DEPTH_MAX`]; only used pages take
/// memory.
const STACK: usize = 16 << 20;

/// Options of a removal.
#[derive(Clone, Copy)]
pub struct Removal<'a> {
    /// Threads that remove, including the calling one; at least 1.
    pub threads: u32,
    /// Returns true to end the removal after the current entries.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Gets the number of entries removed until now, after each one, from any thread.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

/// The reason why parts of the directory remain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// The stop flag was set.
    #[error("stopped: {} is only partly removed", directory.display())]
    Stopped {
        /// The directory.
        directory: PathBuf,
        /// Entries that were removed.
        removed: u64,
    },
    /// Some entries could not be removed.
    #[error("{}", kept_sentence(directory, *kept, first, *errno))]
    Kept {
        /// The directory.
        directory: PathBuf,
        /// Entries that were removed.
        removed: u64,
        /// Number of entries that could not be removed, without the directories that
        /// contain them.
        kept: u64,
        /// The first of them.
        first: PathBuf,
        /// The error; `EXDEV` if something is mounted there.
        errno: Errno,
    },
}

impl RemoveError {
    /// The error if nothing of the directory `path` was removed.
    pub(crate) fn refused(path: &Path, errno: Errno) -> RemoveError {
        RemoveError::Kept {
            directory: path.to_owned(),
            removed: 0,
            kept: 1,
            first: path.to_owned(),
            errno,
        }
    }
}

fn kept_sentence(directory: &Path, kept: u64, first: &Path, errno: Errno) -> String {
    let (first, why) = (first.display(), reason(errno));
    if kept == 1 {
        return format!("{first} could not be removed: {why}");
    }
    let directory = directory.display();
    format!("{kept} entries of {directory} could not be removed, the first {first}: {why}")
}

fn reason(errno: Errno) -> String {
    match errno {
        Errno::EXDEV => "another file system is mounted there".to_owned(),
        _ => format!("{} ({errno:?})", errno.desc()),
    }
}

/// An entry of a directory: its name, and `DT_DIR`, `DT_REG` …
pub type Entry = (CString, u8);

/// Entries of one directory that are to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Names of the directories on the way to it, from the start of the removal.
    pub way: Vec<CString>,
    /// Entries to remove there, with their whole content.
    pub entries: Vec<Entry>,
}

impl Part {
    /// True if all names are plain: none leads out of a directory.
    fn is_plain(&self) -> bool {
        let plain = |name: &CString| {
            let name = name.to_bytes();
            !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/')
        };
        let entries = self.entries.iter().map(|(name, _)| name);
        self.way.iter().chain(entries).all(plain)
    }
}

/// Removes the directory `name` of `parent`, open as `directory`; the marker file is
/// removed last. Returns the number of entries removed, without the marker and the
/// directory itself.
pub(crate) fn remove(
    parent: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    directory: BorrowedFd<'_>,
    how: Removal<'_>,
) -> Result<u64, RemoveError> {
    let crew = match within_one_mount(parent, directory) {
        Ok(mount) => Crew::new(how, mount),
        Err(errno) => return Err(RemoveError::refused(path, errno)),
    };
    let emptied = crew.enter(directory, c".", 0).map(|fd| {
        let root = Arc::new(Node::root(fd, path, Fate::Emptied));
        crew.work(|crew| crew.visit(&root));
    });
    let done = crew.outcome(path)?;
    let last = emptied.and_then(
        |()| match unlink(directory, MARKER, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => unlink(parent, name, UnlinkatFlags::RemoveDir),
            Err(errno) => Err(errno),
        },
    );
    match last {
        Ok(()) => Ok(done),
        // Another process was faster.
        Err(Errno::ENOENT) => Ok(done),
        Err(errno) => Err(RemoveError::Kept {
            directory: path.to_owned(),
            removed: done,
            kept: 1,
            first: path.to_owned(),
            errno,
        }),
    }
}

/// Removes `parts` of the content of `directory`, which is at `path` on the mount
/// `mount`. Returns the number of entries removed.
pub(crate) fn remove_parts(
    directory: BorrowedFd<'_>,
    path: &Path,
    mount: u64,
    parts: &[Part],
    how: Removal<'_>,
) -> Result<u64, RemoveError> {
    if !parts.iter().all(Part::is_plain) {
        return Err(RemoveError::refused(path, Errno::EINVAL));
    }
    let crew = Crew::new(how, mount);
    let root = match crew.enter(directory, c".", 0) {
        Ok(fd) => Arc::new(Node::root(fd, path, Fate::Stays)),
        Err(Errno::ENOENT) => return Ok(0),
        Err(errno) => return Err(RemoveError::refused(path, errno)),
    };
    {
        let mut queue = crew.queue();
        let tasks = parts.iter().rev();
        queue
            .tasks
            .extend(tasks.map(|part| Task::Part(Arc::clone(&root), part)));
        root.open.fetch_add(queue.tasks.len(), Ordering::Relaxed);
        crew.waiting.store(queue.tasks.len(), Ordering::Relaxed);
    }
    crew.work(|crew| crew.complete(&root));
    crew.outcome(path)
}

/// The mount of both `parent` and `directory` in it; `EXDEV` if these differ.
pub(crate) fn within_one_mount(
    parent: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
) -> Result<u64, Errno> {
    let (outside, inside) = (mount(parent)?, mount(directory)?);
    match outside == inside {
        true => Ok(inside),
        false => Err(Errno::EXDEV),
    }
}

struct Stopped;

/// Fate of a directory after its entries were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is removed, too.
    Goes,
    /// It is read until only the marker is left.
    Emptied,
    /// It stays.
    Stays,
}

/// A directory whose entries are removed.
struct Node {
    above: Option<Arc<Node>>,
    name: CString,
    path: PathBuf,
    /// Number of directories between the top and this one.
    depth: usize,
    fd: OwnedFd,
    fate: Fate,
    /// Number of unfinished parts: its reader, handed-over parts, directories in it.
    open: AtomicUsize,
    /// True if anything was removed from it since it was last read.
    removed: AtomicBool,
    /// True if anything in it stays.
    keeps: AtomicBool,
}

impl Node {
    fn root(fd: OwnedFd, path: &Path, fate: Fate) -> Node {
        Node {
            above: None,
            name: CString::default(),
            path: path.to_owned(),
            depth: 0,
            fd,
            fate,
            open: AtomicUsize::new(1),
            removed: AtomicBool::new(false),
            keeps: AtomicBool::new(false),
        }
    }

    /// Registers the directory `name` in `above`, open as `fd`.
    fn below(above: &Arc<Node>, name: &CStr, fd: OwnedFd, fate: Fate) -> Arc<Node> {
        above.open.fetch_add(1, Ordering::Relaxed);
        Arc::new(Node {
            above: Some(Arc::clone(above)),
            name: name.to_owned(),
            depth: above.depth + 1,
            ..Node::root(fd, &above.join(name), fate)
        })
    }

    fn join(&self, name: &CStr) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }
}

/// Work that a thread hands to another.
enum Task<'p> {
    /// An entry of a directory.
    Entry(Arc<Node>, Entry),
    /// A part of the top's content.
    Part(Arc<Node>, &'p Part),
    /// The top, to be listed again, and the number of attempts.
    Again(Arc<Node>, u32),
}

#[derive(Default)]
struct Queue<'p> {
    /// The tasks; the latest is taken first.
    tasks: Vec<Task<'p>>,
    over: bool,
}

/// The threads of a removal.
struct Crew<'a> {
    how: Removal<'a>,
    /// The mount that they must not leave.
    mount: u64,
    removed: AtomicU64,
    kept: AtomicU64,
    /// Number of directories that were moved to the top.
    lifted: AtomicU64,
    /// Number of pauses for files that are being closed.
    waits: AtomicU32,
    first: Mutex<Option<(PathBuf, Errno)>>,
    stopped: AtomicBool,
    queue: Mutex<Queue<'a>>,
    news: Condvar,
    /// Number of idle threads, and of waiting tasks.
    idle: AtomicUsize,
    waiting: AtomicUsize,
}

impl<'a> Crew<'a> {
    fn new(how: Removal<'a>, mount: u64) -> Crew<'a> {
        Crew {
            how,
            mount,
            removed: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            lifted: AtomicU64::new(0),
            waits: AtomicU32::new(0),
            first: Mutex::default(),
            stopped: AtomicBool::new(false),
            queue: Mutex::default(),
            news: Condvar::new(),
            idle: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Starts with `first`, and ends when everything is done.
    fn work(&self, first: impl FnOnce(&Self) -> Result<(), Stopped>) {
        thread::scope(|scope| {
            for _ in 1..self.how.threads {
                // Without a name of its own it inherits the caller's, by which `waiting::family` finds it.
                let helper = thread::Builder::new().stack_size(STACK);
                // With fewer threads it only takes longer.
                if helper.spawn_scoped(scope, || self.help()).is_err() {
                    break;
                }
            }
            if first(self).is_err() {
                self.end(true);
            }
            self.help();
        });
    }

    /// Performs tasks of other threads until everything is done.
    fn help(&self) {
        while let Some(task) = self.next() {
            let done = match task {
                // Not handed on: among many idle threads it would only circulate.
                Task::Entry(node, (name, kind)) => self
                    .entry(&node, &name, kind)
                    .and_then(|()| self.complete(&node)),
                Task::Part(top, part) => self.part(&top, part),
                Task::Again(top, tries) => self.again(&top, tries),
            };
            if done.is_err() {
                self.end(true);
            }
        }
    }

    fn next(&self) -> Option<Task<'a>> {
        let mut queue = self.queue();
        loop {
            if queue.over {
                return None;
            }
            if let Some(task) = queue.tasks.pop() {
                self.waiting.store(queue.tasks.len(), Ordering::Relaxed);
                return Some(task);
            }
            self.idle.fetch_add(1, Ordering::Relaxed);
            queue = self
                .news
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<'a>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the removal.
    fn end(&self, stopped: bool) {
        self.stopped.fetch_or(stopped, Ordering::Relaxed);
        self.queue().over = true;
        self.news.notify_all();
    }

    /// The result for the directory at `path`.
    fn outcome(self, path: &Path) -> Result<u64, RemoveError> {
        let removed = self.removed.into_inner();
        let directory = path.to_owned();
        let first = self.first.into_inner();
        match first.unwrap_or_else(PoisonError::into_inner) {
            _ if self.stopped.into_inner() => Err(RemoveError::Stopped { directory, removed }),
            Some((first, errno)) => Err(RemoveError::Kept {
                directory,
                removed,
                kept: self.kept.into_inner(),
                first,
                errno,
            }),
            None => Ok(removed),
        }
    }

    /// True if a thread is idle without a waiting task.
    fn hungry(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > self.waiting.load(Ordering::Relaxed)
    }

    /// Hands over an entry of a directory.
    fn give(&self, node: &Arc<Node>, entry: Entry) {
        node.open.fetch_add(1, Ordering::Relaxed);
        let mut queue = self.queue();
        queue.tasks.push(Task::Entry(Arc::clone(node), entry));
        self.waiting.store(queue.tasks.len(), Ordering::Relaxed);
        drop(queue);
        self.news.notify_one();
    }

    /// Records that the entry at `path` of a directory stays.
    fn keep(&self, node: &Node, path: PathBuf, errno: Errno) {
        node.keeps.store(true, Ordering::Relaxed);
        self.kept.fetch_add(1, Ordering::Relaxed);
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert((path, errno));
    }

    /// Counts the entry `name` of a directory as removed, or records the error.
    fn settle(&self, node: &Node, name: &CStr, result: Result<(), Errno>) {
        match result {
            Ok(()) => {
                node.removed.store(true, Ordering::Relaxed);
                let before = self.removed.fetch_add(1, Ordering::Relaxed);
                (self.how.progress)(before + 1);
            }
            // Another process was faster.
            Err(Errno::ENOENT) => {}
            Err(errno) => self.keep(node, node.join(name), errno),
        }
    }

    /// Removes the content of a directory, then the directory itself.
    fn visit(&self, node: &Arc<Node>) -> Result<(), Stopped> {
        self.list(node, node.fd.as_fd())?;
        self.complete(node)
    }

    /// Removes the entries of a directory, or hands them over.
    fn list(&self, node: &Arc<Node>, listing: BorrowedFd<'_>) -> Result<(), Stopped> {
        let spare = (node.fate == Fate::Emptied).then_some(MARKER);
        let mut buffer = vec![0; BATCH];
        loop {
            let records = match dirents::read(listing.as_raw_fd(), &mut buffer) {
                Ok([]) => return Ok(()),
                Ok(records) => records,
                Err(errno) => {
                    self.keep(node, node.path.clone(), errno);
                    return Ok(());
                }
            };
            for record in Records(records) {
                match record.and_then(|record| Ok((record, record.name()?))) {
                    Ok((record, _)) if record.is_dots() => {}
                    Ok((_, name)) if Some(name) == spare => {}
                    Ok((record, name)) => self.one(node, name, record.kind)?,
                    Err(errno) => self.keep(node, node.path.clone(), errno),
                }
            }
        }
    }

    /// Removes an entry; hands it over if it may be a directory and a thread is idle.
    fn one(&self, node: &Arc<Node>, name: &CStr, kind: u8) -> Result<(), Stopped> {
        let alone = !matches!(kind, libc::DT_DIR | libc::DT_UNKNOWN);
        if alone || !self.hungry() {
            return self.entry(node, name, kind);
        }
        self.give(node, (name.to_owned(), kind));
        Ok(())
    }

    /// Removes a part of the top's content.
    fn part(&self, top: &Arc<Node>, part: &Part) -> Result<(), Stopped> {
        let mut at = Arc::clone(top);
        for name in &part.way {
            match self.enter(at.fd.as_fd(), name, at.depth) {
                Ok(fd) => {
                    let next = Node::below(&at, name, fd, Fate::Stays);
                    self.complete(&at)?;
                    at = next;
                }
                Err(Errno::ENOENT) => return self.complete(&at),
                Err(errno) => {
                    self.keep(&at, at.join(name), errno);
                    return self.complete(&at);
                }
            }
        }
        for (name, kind) in &part.entries {
            self.one(&at, name, *kind)?;
        }
        self.complete(&at)
    }

    /// Opens a directory of this mount for reading.
    fn enter(&self, parent: BorrowedFd<'_>, name: &CStr, depth: usize) -> Result<OwnedFd, Errno> {
        match depth > DEPTH_MAX {
            true => Err(Errno::ENAMETOOLONG),
            false => enter(parent, name, self.mount),
        }
    }

    /// Removes an entry of a directory.
    fn entry(&self, node: &Arc<Node>, name: &CStr, kind: u8) -> Result<(), Stopped> {
        if (self.how.stop)() {
            return Err(Stopped);
        }
        if kind != libc::DT_DIR {
            match unlink(node.fd.as_fd(), name, UnlinkatFlags::NoRemoveDir) {
                // Some file systems do not report the type of an entry.
                Err(Errno::EISDIR) => {}
                result => {
                    self.settle(node, name, result);
                    return Ok(());
                }
            }
        }
        match self.enter(node.fd.as_fd(), name, node.depth) {
            Ok(fd) => self.visit(&Node::below(node, name, fd, Fate::Goes)),
            Err(Errno::ENOENT) => Ok(()),
            Err(Errno::EMFILE | Errno::ENFILE | Errno::ENAMETOOLONG) if self.lift(node, name) => {
                Ok(())
            }
            Err(Errno::EMFILE | Errno::ENFILE) if self.leave_for_next_listing(node) => Ok(()),
            Err(errno) => {
                self.keep(node, node.join(name), errno);
                Ok(())
            }
        }
    }

    /// Leaves an entry of the top, which could not be opened, for the next listing: other parts of the
    /// tree are open, or not closed yet. Returns false if that is not the reason.
    fn leave_for_next_listing(&self, node: &Node) -> bool {
        if node.above.is_some() || node.fate != Fate::Emptied {
            return false;
        }
        let alone = node.open.load(Ordering::Acquire) == 1;
        if alone && self.waits.fetch_add(1, Ordering::Relaxed) >= TRIES {
            return false;
        }
        if alone {
            thread::sleep(PAUSE);
        }
        node.removed.store(true, Ordering::Relaxed);
        true
    }

    /// Moves a directory to the top, where it is found again, if it is too deep to be
    /// open together with all of its parents. Returns true if it was moved.
    fn lift(&self, node: &Arc<Node>, name: &CStr) -> bool {
        let mut top = node;
        while let Some(above) = &top.above {
            top = above;
        }
        if Arc::ptr_eq(top, node) || top.fate == Fate::Stays {
            return false;
        }
        let number = self.lifted.fetch_add(1, Ordering::Relaxed);
        let free = format!(".rbench-deep-{}-{number}", std::process::id());
        let lifted = renameat(node.fd.as_fd(), name, top.fd.as_fd(), free.as_str()).is_ok();
        if lifted {
            node.removed.store(true, Ordering::Relaxed);
            top.removed.store(true, Ordering::Relaxed);
        }
        lifted
    }

    /// Lists the top again when the directories on the way to the stopping point are
    /// closed: while they are open, no more can be opened.
    fn later(&self, top: Arc<Node>, tries: u32) {
        self.queue().tasks.push(Task::Again(top, tries));
        self.news.notify_one();
    }

    fn again(&self, top: &Arc<Node>, tries: u32) -> Result<(), Stopped> {
        match self.enter(top.fd.as_fd(), c".", 0) {
            Ok(listing) => self.list(top, listing.as_fd())?,
            Err(Errno::EMFILE | Errno::ENFILE) if tries < TRIES => {
                thread::sleep(PAUSE);
                self.later(Arc::clone(top), tries + 1);
                return Ok(());
            }
            Err(errno) => self.keep(top, top.path.clone(), errno),
        }
        self.complete(top)
    }

    /// Ends a part of a directory. The last one removes the directory, and ends a part
    /// of its parent.
    fn complete(&self, node: &Arc<Node>) -> Result<(), Stopped> {
        let mut node = Arc::clone(node);
        while node.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            let removed = node.removed.swap(false, Ordering::Relaxed);
            let keeps = node.keeps.load(Ordering::Relaxed);
            // A listing may skip entries while others are removed.
            let again = match (&node.above, node.fate) {
                _ if keeps => false,
                (None, Fate::Emptied) => removed,
                (Some(above), Fate::Goes) => {
                    match unlink(above.fd.as_fd(), &node.name, UnlinkatFlags::RemoveDir) {
                        Err(Errno::ENOTEMPTY | Errno::EEXIST) if removed => true,
                        result => {
                            self.settle(above, &node.name, result);
                            false
                        }
                    }
                }
                _ => false,
            };
            if again {
                node.open.store(1, Ordering::Relaxed);
                match self.enter(node.fd.as_fd(), c".", 0) {
                    Ok(listing) => self.list(&node, listing.as_fd())?,
                    Err(Errno::EMFILE | Errno::ENFILE) if node.above.is_none() => {
                        self.later(node, 0);
                        return Ok(());
                    }
                    Err(errno) => self.keep(&node, node.path.clone(), errno),
                }
                continue;
            }
            let Some(above) = node.above.clone() else {
                self.end(false);
                return Ok(());
            };
            above.keeps.fetch_or(keeps, Ordering::Relaxed);
            node = above;
        }
        Ok(())
    }
}

/// Opens a directory for reading, if it is on the mount `on` and is not a symbolic link.
pub(crate) fn enter(parent: BorrowedFd<'_>, name: &CStr, on: u64) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = openat(parent, name, flags, Mode::empty())?;
    match mount(directory.as_fd())? == on {
        true => Ok(directory),
        false => Err(Errno::EXDEV),
    }
}

fn mount(directory: BorrowedFd<'_>) -> Result<u64, Errno> {
    mount_id(directory).map_err(or_eio)
}

/// `unlinkat`, repeated if a signal interrupts it.
pub(crate) fn unlink(
    parent: BorrowedFd<'_>,
    name: &CStr,
    flags: UnlinkatFlags,
) -> Result<(), Errno> {
    loop {
        match unlinkat(parent, name, flags) {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    /// Waits minutes for an event, and continues in any case.
    fn wait_until(happened: impl Fn() -> bool) {
        for _ in 0..30_000 {
            if happened() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn directories_are_handed_to_idle_threads_and_never_on_and_files_are_not() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("file"), "").expect("a new name");
        fs::create_dir(directory.path().join("directory")).expect("a new name");
        let open = fs::File::open(directory.path()).expect("it is there");
        let stop = AtomicBool::new(false);
        let stopped = || stop.load(Ordering::Relaxed);
        let how = Removal {
            threads: 1,
            stop: &stopped,
            progress: &|_| (),
        };
        let crew = Crew::new(how, mount(open.as_fd()).expect("proc is mounted"));
        let root = Arc::new(Node::root(open.into(), directory.path(), Fate::Stays));
        // Simulates other idle threads without work.
        crew.idle.store(5, Ordering::Relaxed);
        assert!(crew.one(&root, c"file", libc::DT_REG).is_ok());
        assert!(crew.one(&root, c"directory", libc::DT_DIR).is_ok());
        assert_eq!(crew.removed.load(Ordering::Relaxed), 1);
        assert_eq!(crew.queue().tasks.len(), 1);
        assert!(crew.complete(&root).is_ok());
        thread::scope(|scope| {
            scope.spawn(|| crew.help());
            let done = || crew.removed.load(Ordering::Relaxed) == 2;
            wait_until(done);
            stop.store(true, Ordering::Relaxed);
            crew.end(false);
        });
        assert_eq!(crew.outcome(directory.path()), Ok(2));
    }
}
