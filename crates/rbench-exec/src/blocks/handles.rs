//! A worker's open files: opened before the run where all may be open at a
//! time, one after the other within it where they take turns.

use std::borrow::Cow;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::verify::file_key;
use nix::errno::Errno;
use rbench_core::residency::Pages;
use rbench_core::{Failure, OpKind};
use rbench_plan::jobs::{Advised, JobPlan, RangeSync, SyncMode};
use rbench_plan::pattern::{Part, file_size};
use rbench_sys::engine::EngineInfo;
use rbench_sys::files::{self, Advice, OpenFlags};
use rbench_sys::residency::{Resident, resident};
use rbench_sys::{Engine, InUse};

/// The way in which a job opens its files.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The flags of open(2).
    pub flags: OpenFlags,
    /// Cached pages are dropped first.
    pub invalidate: bool,
    /// Advice for the kernel, and for the engine.
    pub advice: Option<Advice>,
    /// See `advice`.
    pub engine_advice: Option<Advice>,
    /// Bytes that a file of the run's own has at least before it is mapped for writing;
    /// 0: as it is.
    pub lengthen: u64,
    /// The engine needs to know each file.
    pub attach: bool,
    /// There is something to open: the null engine has no files.
    pub real: bool,
    /// Nothing is opened: an engine of names takes the file's number as its descriptor.
    pub by_number: bool,
    /// Devices that must not be written to.
    pub in_use: Option<InUse>,
    /// The job gives the size of its files: only then they are created.
    pub sized: bool,
    /// The lifetime hint for written data.
    pub write_hint: Option<u64>,
    /// The run's own directory, which the paths of its own files are relative to.
    pub own: Option<Arc<OwnedFd>>,
}

impl Opening {
    /// The opening of files by a worker of `job`; `turns`: the files take turns in being open.
    /// `own`: they are the run's own, relative to this directory.
    pub fn of(
        job: &JobPlan,
        part: Part,
        engine: &EngineInfo,
        turns: bool,
        own: Option<Arc<OwnedFd>>,
    ) -> Opening {
        let (uses_files, mapped) = (engine.uses_files, engine.mapped);
        let only_verifies = job.verify.as_ref().is_some_and(|v| v.only);
        let directions = job.pattern.directions;
        let write = directions.changes() && !only_verifies;
        let (told, random) = match job.files.advice {
            Advised::Kernel(Some(random)) => (true, random),
            Advised::Kernel(None) => (true, directions.random),
            Advised::Nobody | Advised::Mappings => (false, directions.random),
        };
        let advice = match random {
            true => Advice::Random,
            false => Advice::Sequential,
        };
        let makes = job.files.size.1 > 0 || job.replay.is_some();
        Opening {
            flags: OpenFlags {
                read: directions.read || mapped || only_verifies || !job.files.write_only,
                write: write || engine.always_writes,
                // Without a size it is as long as it is: it must be there.
                create: write && makes && job.files.may_create,
                direct: job.direct,
                sync: job.syncing.opens == SyncMode::Sync,
                dsync: job.syncing.opens == SyncMode::Dsync,
                noatime: false,
                own: own.is_some(),
            },
            sized: makes,
            // Pages that were just read on purpose are not dropped again.
            invalidate: job.files.invalidate && !job.files.pre_read,
            advice: told.then_some(advice),
            engine_advice: (job.files.advice != Advised::Nobody).then_some(advice),
            // Others' files are as long as the layout has made them.
            lengthen: match mapped && write && own.is_some() {
                true => job.files.end(part, file_size(job, part.owner, 0)),
                false => 0,
            },
            // A file that is open for a few operations is not worth it.
            attach: mapped || !turns,
            real: uses_files && job.names.is_none(),
            by_number: job.names.is_some(),
            write_hint: job.files.write_hint.filter(|_| write),
            own,
            in_use: (uses_files && write && job.names.is_none() && !job.files.allow_mounted_write)
                .then(InUse::look),
        }
    }
}

/// One file.
struct Handle {
    path: PathBuf,
    /// Key of its name in headers.
    key: u64,
    fd: Option<OwnedFd>,
    /// Requests under way.
    under_way: u32,
    /// It is closed when no request is in flight.
    leaving: bool,
    /// It was written since it was last synced.
    dirty: bool,
}

impl Handle {
    fn new(path: PathBuf, key: u64) -> Handle {
        Handle {
            path,
            key,
            fd: None,
            under_way: 0,
            leaving: false,
            dirty: false,
        }
    }
}

/// The files of one worker.
pub struct Handles {
    opening: Opening,
    all: Vec<Handle>,
}

impl Handles {
    /// Files by path, with the key of each name in headers; none is open.
    pub fn new(opening: Opening, files: impl Iterator<Item = (PathBuf, u64)>) -> Handles {
        Handles {
            opening,
            all: files.map(|(path, key)| Handle::new(path, key)).collect(),
        }
    }

    /// Adds a file, which is not open; they are numbered in the order in which they are added.
    pub fn add(&mut self, path: PathBuf, key: u64) {
        self.all.push(Handle::new(path, key));
    }

    /// The descriptor of a file, opened if it is not.
    ///
    /// # Errors
    /// When it cannot be opened.
    #[inline]
    pub fn fd(&mut self, file: u64, engine: &mut dyn Engine) -> Result<RawFd, Failure> {
        self.fd_noting(file, engine, || ())
    }

    /// Like [`Handles::fd`]; `opened` is called right after the call that opens the file, if there
    /// is one.
    pub fn fd_noting(
        &mut self,
        file: u64,
        engine: &mut dyn Engine,
        opened: impl FnOnce(),
    ) -> Result<RawFd, Failure> {
        let handle = &mut self.all[file as usize];
        match &handle.fd {
            Some(fd) => Ok(fd.as_raw_fd()),
            None if self.opening.by_number => Ok(file as RawFd),
            None if !self.opening.real => Ok(-1),
            None => open(handle, &self.opening, engine, opened),
        }
    }

    /// The descriptor of the only file, which is open; −1 where there is none to open.
    pub fn open_one(&self) -> RawFd {
        let fd = self.all.first().and_then(|handle| handle.fd.as_ref());
        fd.map_or(-1, |fd| fd.as_raw_fd())
    }

    /// Drops the cached pages of a file that is open, as far as they are clean. It is a wish.
    pub fn drop_pages(&self, file: u64) {
        if let Some(fd) = &self.all[file as usize].fd {
            let _ = files::advise(fd, Advice::DontNeed);
        }
    }

    /// Returns true if a file is open.
    pub fn is_open(&self, file: u64) -> bool {
        self.all[file as usize].fd.is_some()
    }

    /// Opens all of them.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn open_all(&mut self, engine: &mut dyn Engine) -> Result<(), Failure> {
        (0..self.all.len() as u64).try_for_each(|file| self.fd(file, engine).map(drop))
    }

    /// Length of a file in bytes; 0 with an engine that has no files.
    ///
    /// # Errors When it cannot be opened, or its length cannot be read.
    pub fn length(&mut self, file: u64, engine: &mut dyn Engine) -> Result<u64, Failure> {
        if !self.opening.real {
            return Ok(0);
        }
        let was_open = self.all[file as usize].fd.is_some();
        self.fd(file, engine)?;
        let handle = &self.all[file as usize];
        let length = handle.fd.as_ref().map_or(Ok(0), files::length);
        let length = length.map_err(|errno| Failure::new(OpKind::Stat, self.path(file), errno))?;
        if !was_open {
            self.close(file, engine)?;
        }
        Ok(length)
    }

    /// The path of a file, for messages.
    pub fn path(&self, file: u64) -> Cow<'_, str> {
        self.all[file as usize].path.to_string_lossy()
    }

    /// Key of its whole path.
    pub fn place_key(&self, file: u64) -> u64 {
        file_key(&self.all[file as usize].path.to_string_lossy())
    }

    /// Key of its name in headers.
    pub fn key(&self, file: u64) -> u64 {
        self.all[file as usize].key
    }

    /// A request to the file is readied.
    #[inline]
    pub fn begin(&mut self, file: u64) {
        let handle = &mut self.all[file as usize];
        handle.under_way += 1;
    }

    /// A write of the file has started.
    #[inline]
    pub fn wrote(&mut self, file: u64) {
        self.all[file as usize].dirty = true;
    }

    /// A request to the file is over; whether the file is to be closed, since
    /// the `last` one was and none is under way.
    #[inline]
    pub fn end(&mut self, file: u64, last: bool) -> bool {
        let handle = &mut self.all[file as usize];
        handle.under_way -= 1;
        handle.leaving |= last;
        handle.leaving && handle.under_way == 0
    }

    /// The last request to the file is cancelled; returns true if the file is to be closed, like
    /// [`Handles::end`].
    pub fn end_without(&mut self, file: u64) -> bool {
        let handle = &mut self.all[file as usize];
        handle.leaving = handle.fd.is_some();
        handle.leaving && handle.under_way == 0
    }

    /// Files that were written since they were last synced.
    pub fn dirty(&self) -> Vec<u64> {
        let numbered = (0..).zip(&self.all);
        let dirty = numbered.filter(|(_, handle)| handle.dirty);
        dirty.map(|(file, _)| file).collect()
    }

    /// Returns true if a file was written since it was last synced.
    pub fn is_dirty(&self, file: u64) -> bool {
        self.all[file as usize].dirty
    }

    /// Brings the file system of an open file to stable storage, unless it is among `done`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sync_file_system(&mut self, file: u64, done: &mut Vec<u64>) -> Result<(), Failure> {
        let Some(fd) = &self.all[file as usize].fd else {
            return Ok(());
        };
        let synced = files::device(fd).and_then(|device| {
            if done.contains(&device) {
                return Ok(());
            }
            done.push(device);
            files::sync_file_system(fd)
        });
        synced.map_err(|errno| Failure::new(OpKind::Sync, self.path(file), errno))
    }

    /// Has a part of an open file written.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sync_range(
        &mut self,
        file: u64,
        part: (u64, u64),
        how: RangeSync,
    ) -> Result<(), Failure> {
        let Some(fd) = &self.all[file as usize].fd else {
            return Ok(());
        };
        let steps = [how.wait_before, how.write, how.wait_after];
        files::sync_range(fd, part, steps)
            .map_err(|errno| Failure::new(OpKind::Fsync, self.path(file), errno))
    }

    /// Removes the name of a file, or of a directory; that it is not there is no error.
    ///
    /// # Errors
    /// Why it could not be removed.
    pub fn remove(&self, file: u64, directory: bool) -> Result<(), Failure> {
        let path = &self.all[file as usize].path;
        let (op, removed) = match directory {
            true => (OpKind::Rmdir, files::remove_directory(path)),
            false => (OpKind::Unlink, files::unlink_file(path)),
        };
        match removed {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(Failure::new(op, self.path(file), errno)),
        }
    }

    /// A file was synced.
    pub fn clean(&mut self, file: u64) {
        self.all[file as usize].dirty = false;
    }

    /// Closes a file if it is open. It is closed then, whatever is returned.
    ///
    /// # Errors
    /// What the file system says of it: that written data was lost.
    pub fn close(&mut self, file: u64, engine: &mut dyn Engine) -> Result<(), Failure> {
        self.detach(file, engine);
        self.close_detached(file)
    }

    /// The paths of all of them.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().map(|handle| handle.path.as_path())
    }

    /// The engine is done with a file. What an engine of names has opened is closed as
    /// any other.
    pub fn detach(&mut self, file: u64, engine: &mut dyn Engine) {
        if self.opening.by_number {
            self.all[file as usize].fd = engine.take_opened();
        } else if let Some(fd) = &self.all[file as usize].fd {
            engine.detach(fd.as_raw_fd());
        }
    }

    /// Closes a file with which the engine is done.
    ///
    /// # Errors
    /// As [`Handles::close`].
    pub fn close_detached(&mut self, file: u64) -> Result<(), Failure> {
        let handle = &mut self.all[file as usize];
        handle.leaving = false;
        let Some(fd) = handle.fd.take() else {
            return Ok(());
        };
        files::close(fd).map_err(|errno| Failure::new(OpKind::Close, self.path(file), errno))
    }

    /// Pages of the open files in the page cache.
    pub fn resident(&self) -> Pages {
        let open = self.all.iter().filter_map(|handle| handle.fd.as_ref());
        let mut all = Pages::default();
        for found in open.filter_map(|fd| resident(fd.as_fd()).ok()) {
            let Resident { pages, cached } = found;
            all.add(Pages {
                files: 1,
                of: 0,
                pages,
                cached,
            });
        }
        all.of = self.count();
        all
    }

    /// Number of files.
    pub fn count(&self) -> u64 {
        self.all.len() as u64
    }
}

#[cold]
fn open(
    handle: &mut Handle,
    how: &Opening,
    engine: &mut dyn Engine,
    opened: impl FnOnce(),
) -> Result<RawFd, Failure> {
    let failed = |op, errno| Failure::new(op, handle.path.to_string_lossy(), errno);
    let fd = match &how.own {
        Some(directory) => files::open_at(directory.as_fd(), &handle.path, how.flags),
        None => files::open(&handle.path, how.flags),
    };
    opened();
    let fd = fd.map_err(|errno| {
        let mut failure = failed(OpKind::Open, errno);
        if errno == Errno::EINVAL && how.flags.direct {
            failure.detail = "the file system may not support O_DIRECT".to_owned();
        }
        if errno == Errno::ENOENT && !how.sized {
            failure.detail = "give size= to have the job create its files".to_owned();
        }
        failure
    })?;
    if let Some(in_use) = &how.in_use {
        refuse_in_use(in_use, &fd, &handle.path)?;
    }
    // Both are only hints: a file that is not a regular file may refuse them.
    if how.invalidate {
        let _ = files::advise(&fd, Advice::DontNeed);
    }
    if let Some(advice) = how.advice {
        let _ = files::advise(&fd, advice);
    }
    if let Some(hint) = how.write_hint {
        files::set_write_hint(&fd, hint, how.flags.direct)
            .map_err(|errno| failed(OpKind::Open, errno))?;
    }
    if how.lengthen > 0 {
        lengthen(&fd, how.lengthen).map_err(|errno| failed(OpKind::Truncate, errno))?;
    }
    let raw = fd.as_raw_fd();
    if how.attach {
        engine.attach(raw, how.engine_advice);
    }
    handle.fd = Some(fd);
    Ok(raw)
}

/// Makes a file that is shorter `length` bytes long.
///
/// # Errors
/// As the calls say.
pub fn lengthen(fd: &OwnedFd, length: u64) -> Result<(), Errno> {
    if files::length(fd)? < length {
        files::set_length(fd, length)?;
    }
    Ok(())
}

/// Refuses to write to an open file or device that something uses.
///
/// # Errors
/// `EBUSY`, with what uses it.
pub fn refuse_in_use(in_use: &InUse, fd: &OwnedFd, path: &Path) -> Result<(), Failure> {
    let failed = |errno| Failure::new(OpKind::Open, path.to_string_lossy(), errno);
    match in_use.user_of_open(fd).map_err(failed)? {
        None => Ok(()),
        Some(why) => Err(failed(Errno::EBUSY).with(format!(
            "it is {why} (use allow_mounted_write=1 to write to it anyway)"
        ))),
    }
}
