//! The files of a group of jobs before they run, untimed: made, reserved,
//! filled in large pieces, read once.
//!
//! Nothing is cut off and nothing overwritten: a file that is long enough
//! stays as it is, a shorter one is continued. A file that several workers
//! share is laid out by one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use rbench_core::random::DataStream;
use rbench_core::{Clock as _, Failure, FailureKind, IoPriority, OpKind, Rank};
use rbench_plan::jobs::{Fallocate, JobPlan};
use rbench_plan::pattern::{file_path, file_size, shares_files};
use rbench_sys::engine::{self, Completion, EngineConfig};
use rbench_sys::files::{self, Allocation, Named, OpenFlags};
use rbench_sys::residency::Part;
use rbench_sys::{Engine, InUse, PosixFs, Request, Transfer};

use crate::blocks::handles::{lengthen, refuse_in_use};
use crate::group::Ranks;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::worker::{Prepared, Runner};

/// Bytes of one call.
const PIECE: u64 = 4 << 20;

/// Bytes of one file that one worker fills before it looks for more work.
const PART: u64 = 64 << 20;

/// The required type of file at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// A file or device, perhaps by a symbolic link.
    Any,
    /// A regular file: it will be removed by its name.
    File,
    /// A directory.
    Directory,
}

/// The requirements on a file.
#[derive(Debug, Clone, Copy)]
struct Need {
    form: Form,
    /// Length in bytes that it must have.
    length: u64,
    /// There must be data in it, not just room.
    filled: bool,
    reserve: Fallocate,
    /// Room is not enough: the engine makes no file longer.
    whole: bool,
    pre_read: bool,
    /// It is left alone if something uses it.
    guarded: bool,
    /// It is created if it is missing, and made longer if it is too short.
    may_create: bool,
    /// Its data is synced after it was filled.
    synced: bool,
}

impl Need {
    fn join(&mut self, other: Need) {
        let Need {
            form,
            length,
            filled,
            reserve,
            whole,
            pre_read,
            guarded,
            may_create,
            synced,
        } = other;
        if length > self.length {
            (self.length, self.reserve) = (length, reserve);
        }
        self.form = self.form.max(form);
        self.filled |= filled;
        self.whole |= whole;
        self.pre_read |= pre_read;
        self.guarded |= guarded;
        self.may_create |= may_create;
        self.synced |= synced;
    }
}

/// A file that could not be made ready, and why.
pub type Unmade = (PathBuf, Failure);

/// The files that the workers of a rank need in one group of jobs.
#[derive(Debug, Clone, Default)]
pub struct FileNeeds(BTreeMap<PathBuf, Need>);

/// The set of files to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The files that belong to a worker of this rank alone.
    Own(Rank),
    /// The files that all workers share.
    Shared {
        /// Ranks of the run.
        ranks: u32,
    },
}

impl Whose {
    /// The workers of `job` that use such files, by number.
    fn workers(self, job: &JobPlan) -> Range<u64> {
        match (self, shares_files(&job.files)) {
            (Whose::Own(rank), false) => job.workers_of(rank),
            (Whose::Shared { ranks }, true) => 0..u64::from(ranks) * u64::from(job.numjobs),
            (Whose::Own(_), true) | (Whose::Shared { .. }, false) => 0..0,
        }
    }

    /// Like `workers`; one worker, where all have the same parts of the same files.
    fn first_workers(self, job: &JobPlan, alike: bool) -> Range<u64> {
        match (self, self.workers(job)) {
            (Whose::Shared { .. }, all) if alike => 0..all.end.min(1),
            (_, all) => all,
        }
    }
}

impl FileNeeds {
    /// Adds the files of `job`. A job that only verifies needs what an earlier
    /// one left, and so makes nothing.
    pub fn add(&mut self, job: &JobPlan, mapped: bool, base: &Path, whose: Whose) {
        let directions = job.pattern.directions;
        let checks = job.verify.as_ref();
        let leaves_alone = checks.is_some_and(|v| v.only || !directions.changes());
        let makes = !job.files.create_on_open && !leaves_alone;
        let workers = match whose.workers(job) {
            // The last worker has the largest offset.
            all if shares_files(&job.files) => all.end.saturating_sub(1)..all.end,
            own => own,
        };
        let form = match job.names {
            Some(names) if names.of_directories() => Form::Directory,
            Some(names) if names.removes() => Form::File,
            _ => Form::Any,
        };
        // A file to be removed is checked even if it is not created.
        let looks = job.files.pre_read || form == Form::File;
        if !(makes || looks) {
            return;
        }
        for jobnum in workers {
            for file in 0..job.files.count {
                let size = file_size(job, jobnum, file);
                let made = makes && size > 0;
                if !made && !looks {
                    continue;
                }
                let need = Need {
                    form,
                    length: if made {
                        job.files.laid_out(jobnum, size)
                    } else {
                        0
                    },
                    filled: made && (directions.read || job.files.overwrite),
                    reserve: job.files.fallocate,
                    whole: mapped,
                    pre_read: job.files.pre_read,
                    guarded: !job.files.allow_mounted_write,
                    may_create: job.files.may_create,
                    synced: job.files.create_fsync,
                };
                self.need(base.join(file_path(job, jobnum, file)), need);
            }
        }
    }

    /// Adds the needs of others.
    pub fn join(&mut self, other: FileNeeds) {
        for (path, need) in other.0 {
            self.need(path, need);
        }
    }

    fn need(&mut self, path: PathBuf, need: Need) {
        self.0
            .entry(path)
            .and_modify(|there| there.join(need))
            .or_insert(need);
    }

    /// Checks the existing files: returns the tasks, and the files that cannot be checked.
    pub fn survey(&self) -> (Vec<Task>, Vec<Unmade>) {
        let (mut tasks, mut failures) = (Vec::new(), Vec::new());
        for (path, need) in &self.0 {
            let failed =
                |kind: FailureKind| Failure::new(OpKind::Open, path.to_string_lossy(), kind);
            match found(path, need.form) {
                Ok(Some(there)) if !need.may_create && there < need.length => {
                    let length = need.length;
                    let detail = format!(
                        "{there} of {length} bytes, and allow_file_create=0 forbids extending it"
                    );
                    failures.push((path.clone(), failed(FailureKind::Short).with(detail)));
                }
                Ok(found) => plan_file(path, need, found, &mut tasks),
                Err((errno, detail)) => {
                    failures.push((path.clone(), failed(errno.into()).with(detail)));
                }
            }
        }
        (tasks, failures)
    }

    /// Returns true if one of these files is at `path`.
    pub fn has(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    /// The files to be read once.
    pub fn reads(&self) -> Vec<Task> {
        let wanted = self.0.iter().filter(|(_, need)| need.pre_read);
        wanted
            .map(|(path, _)| Task {
                path: path.clone(),
                work: Work::Read,
                guarded: false,
                own: false,
            })
            .collect()
    }
}

/// The length of what is there, if anything is; why it is nothing for such a need.
fn found(path: &Path, form: Form) -> Result<Option<u64>, (Errno, &'static str)> {
    let plain = |errno| (errno, "");
    if form == Form::Any {
        let why = |errno| match errno {
            Errno::ESPIPE => (errno, "a pipe or a socket has no offsets"),
            _ => plain(errno),
        };
        return length_of(path).map_err(why);
    }
    match (form, files::named(path).map_err(plain)?) {
        (_, Named::Nothing) => Ok(None),
        (Form::Directory, Named::Directory) => Ok(Some(u64::MAX)),
        (Form::Directory, _) => Err((Errno::ENOTDIR, "")),
        (_, Named::File(length)) => Ok(Some(length)),
        (_, Named::Directory | Named::Other) => {
            Err((Errno::EINVAL, "only regular files are removed"))
        }
    }
}

/// The files of `job` that this rank checks and removes: its own, and at rank 0 those that all
/// share.
pub fn paths_of(here: &Ranks<'_>, job: &JobPlan, base: &Path) -> Vec<PathBuf> {
    used(here, job, base, here.is_root())
}

/// The files of `job` that this rank's workers use: its own, and those that all share if `shared`.
pub fn used(here: &Ranks<'_>, job: &JobPlan, base: &Path, shared: bool) -> Vec<PathBuf> {
    let mut all = paths(job, base, Whose::Own(here.rank()));
    if shared {
        let ranks = here.world.size();
        all.extend(paths(job, base, Whose::Shared { ranks }));
    }
    all
}

/// The paths of the files of `job` that this rank is to remove.
pub fn paths(job: &JobPlan, base: &Path, whose: Whose) -> Vec<PathBuf> {
    let of = |jobnum| (0..job.files.count).map(move |file| base.join(file_path(job, jobnum, file)));
    whose.first_workers(job, true).flat_map(of).collect()
}

/// The parts of files that the workers of `job` use; of shared files that of
/// every worker, as each may begin elsewhere.
pub fn parts(job: &JobPlan, base: &Path, whose: Whose) -> Vec<Part> {
    let workers = whose.first_workers(job, job.files.are_alike());
    let part = |jobnum, file| {
        let size = file_size(job, jobnum, file);
        // A part that depends on the file's length: all of the file.
        let all = size == 0 || job.files.begins_by_length() || job.files.interleave > 0;
        let (from, length) = match all {
            true => (0, u64::MAX),
            false => job.files.part(jobnum, size, 0),
        };
        Part {
            path: base.join(file_path(job, jobnum, file)),
            from,
            to: from.saturating_add(length),
        }
    };
    let of = |jobnum| (0..job.files.count).map(move |file| part(jobnum, file));
    workers.flat_map(of).collect()
}

/// The length of a file; `None` when it is not there. ESPIPE of a pipe, which is not opened.
fn length_of(path: &Path) -> Result<Option<u64>, Errno> {
    if files::is_pipe(path) == Ok(true) {
        return Err(Errno::ESPIPE);
    }
    let flags = OpenFlags {
        read: true,
        ..OpenFlags::default()
    };
    match files::open(path, flags) {
        // Devices have the length that they have.
        Ok(fd) if !files::is_regular(&fd)? => Ok(Some(u64::MAX)),
        Ok(fd) => {
            let length = files::length(&fd)?;
            files::close(fd)?;
            Ok(Some(length))
        }
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns true if there is such a file.
pub fn is_there(path: &Path) -> bool {
    matches!(length_of(path), Ok(Some(_)))
}

/// Returns true if there is surely no such file.
pub fn is_missing(path: &Path) -> bool {
    matches!(length_of(path), Ok(None))
}

fn plan_file(path: &Path, need: &Need, found: Option<u64>, tasks: &mut Vec<Task>) {
    let there = found.unwrap_or(0);
    // With no length needed it must be there already: opening it will tell.
    let forbidden = found.is_none() && !need.may_create;
    if need.length == 0 || forbidden || (found.is_some() && there >= need.length) {
        return;
    }
    let mut push = |work| {
        tasks.push(Task {
            path: path.to_owned(),
            work,
            guarded: need.guarded,
            own: need.form == Form::File,
        });
    };
    if need.form == Form::Directory {
        return push(Work::Directory);
    }
    push(Work::Reserve {
        length: need.length,
        how: need.reserve,
        whole: need.whole,
    });
    if need.filled {
        let mut from = there;
        while from < need.length {
            let to = from.saturating_add(PART).min(need.length);
            push(Work::Fill {
                from,
                to,
                synced: need.synced,
            });
            from = to;
        }
    }
}

/// Something to do with one file.
#[derive(Debug, Clone)]
pub struct Task {
    path: PathBuf,
    work: Work,
    /// The file is left alone if something uses it.
    guarded: bool,
    /// No symbolic link is followed to it.
    own: bool,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    /// Make it a directory.
    Directory,
    /// Make it, and reserve its blocks.
    Reserve {
        length: u64,
        how: Fallocate,
        whole: bool,
    },
    /// Fill this part of it.
    Fill { from: u64, to: u64, synced: bool },
    /// Read it through.
    Read,
}

impl Task {
    /// Returns true if its file is among these.
    pub fn is_of(&self, files: &BTreeMap<PathBuf, Failure>) -> bool {
        files.contains_key(&self.path)
    }

    /// Returns true if the others of its file need it to be done.
    pub fn makes_the_file(&self) -> bool {
        matches!(self.work, Work::Reserve { .. } | Work::Directory)
    }

    /// Operations that it takes, as far as that is known.
    pub fn pieces(&self) -> u64 {
        match self.work {
            Work::Fill { from, to, .. } => (to - from).div_ceil(PIECE),
            Work::Directory | Work::Reserve { .. } | Work::Read => 1,
        }
    }
}

/// Tasks that the workers of a rank take one after the other.
#[derive(Debug)]
pub struct Tasks {
    all: Vec<Task>,
    next: AtomicUsize,
    /// Devices that must not be written to.
    in_use: InUse,
    /// Reservations that were done without.
    refused: Mutex<Vec<Failure>>,
    /// Files that could not be made ready.
    failed: Mutex<Vec<Unmade>>,
}

impl Tasks {
    /// All to be done.
    pub fn new(all: Vec<Task>) -> Arc<Tasks> {
        let next = AtomicUsize::new(0);
        let (refused, failed) = Default::default();
        let in_use = InUse::look();
        Arc::new(Tasks {
            all,
            next,
            in_use,
            refused,
            failed,
        })
    }

    /// Files that could not be made ready, some more than once.
    pub fn failed(&self) -> Vec<Unmade> {
        let failed = self.failed.lock();
        failed.map_or_else(|_| Vec::new(), |failed| failed.clone())
    }

    /// The first reservation for which there was no room, if any: like in fio, the writes go on to
    /// where it is full.
    pub fn refused(&self) -> Option<Failure> {
        let refused = self.refused.lock().ok()?;
        refused.iter().min_by_key(|failure| &failure.path).cloned()
    }
}

/// Does tasks until there is none.
pub struct LayoutRunner {
    tasks: Arc<Tasks>,
    engine: Box<dyn Engine>,
    data: DataStream,
    done: Vec<Completion>,
    issued: u64,
}

/// Makes a worker of the layout; its data belongs to `parts`.
pub fn prepare(tasks: Arc<Tasks>, parts: &[u64]) -> Prepared {
    let config = EngineConfig::new(1, PIECE as usize);
    let engine = (engine::ENGINES[0].make)(config)
        .map_err(|errno| Failure::new(OpKind::Open, "the layout's buffer", errno))?;
    Ok(Box::new(LayoutRunner {
        tasks,
        engine,
        data: DataStream::new(parts),
        done: Vec::with_capacity(1),
        issued: 0,
    }))
}

impl LayoutRunner {
    fn task(&mut self, index: usize, gate: &Gate, meter: &mut Meter) -> Result<(), Failure> {
        let tasks = Arc::clone(&self.tasks);
        let Task {
            path,
            work,
            guarded,
            own,
        } = &tasks.all[index];
        let failed = |op| move |kind: FailureKind| Failure::new(op, path.to_string_lossy(), kind);
        if matches!(work, Work::Directory) {
            let start = gate.clock.now();
            let made = within_folders(path, true, || files::make_directory(path));
            made.map_err(|errno| failed(OpKind::Mkdir)(errno.into()))?;
            self.note(start, gate, meter, 0);
            return Ok(());
        }
        let flags = OpenFlags {
            read: true,
            write: !matches!(work, Work::Read),
            create: matches!(work, Work::Reserve { .. }),
            own: *own,
            ..OpenFlags::default()
        };
        let opened = within_folders(path, flags.create, || files::open(path, flags));
        let fd = opened.map_err(|errno| failed(OpKind::Open)(errno.into()))?;
        if flags.write && *guarded {
            refuse_in_use(&tasks.in_use, &fd, path)?;
        }
        match *work {
            Work::Reserve { length, how, whole } => {
                let start = gate.clock.now();
                match reserve(&fd, length, how) {
                    Ok(()) => {}
                    Err((op, errno)) if may_go_on(how, errno) => {
                        let failure = failed(op)(errno.into());
                        if let Ok(mut refused) = tasks.refused.lock() {
                            refused.push(failure);
                        }
                    }
                    Err((op, errno)) => return Err(failed(op)(errno.into())),
                }
                if whole {
                    lengthen(&fd, length).map_err(|e| failed(OpKind::Truncate)(e.into()))?;
                }
                self.note(start, gate, meter, 0);
            }
            Work::Fill { from, to, synced } => {
                let mut at = from;
                while at < to && !gate.stop.is_raised() {
                    let length = PIECE.min(to - at) as usize;
                    self.data.fill(&mut self.engine.buffer(0)[..length]);
                    let moved = self.piece(&fd, Transfer::Write, at, length, gate, meter);
                    if moved.map_err(failed(OpKind::Write))? < length {
                        return Err(failed(OpKind::Write)(FailureKind::Short));
                    }
                    at += length as u64;
                }
                if synced {
                    let synced = self.piece(&fd, Transfer::Fsync, 0, 0, gate, meter);
                    synced.map_err(failed(OpKind::Fsync))?;
                }
            }
            // Done above.
            Work::Directory => {}
            Work::Read => {
                let mut at = 0;
                while !gate.stop.is_raised() {
                    let length = PIECE as usize;
                    let moved = self.piece(&fd, Transfer::Read, at, length, gate, meter);
                    let moved = moved.map_err(failed(OpKind::Read))?;
                    at += moved as u64;
                    if moved < length {
                        break;
                    }
                }
            }
        }
        files::close(fd).map_err(|errno| failed(OpKind::Close)(errno.into()))
    }

    /// One call; bytes moved.
    fn piece(
        &mut self,
        fd: &OwnedFd,
        transfer: Transfer,
        offset: u64,
        length: usize,
        gate: &Gate,
        meter: &mut Meter,
    ) -> Result<usize, FailureKind> {
        let request = Request {
            transfer,
            fd: fd.as_raw_fd(),
            offset,
            length,
            at: 0,
            priority: IoPriority::default(),
        };
        let start = gate.clock.now();
        self.engine.submit(0, request);
        self.engine.wait(&mut self.done)?;
        let moved = self.done.pop().map_or(Ok(0), |c| c.result)?;
        if !transfer.is_sync() {
            self.note(start, gate, meter, moved as u64);
        }
        Ok(moved)
    }

    fn note(&mut self, start: rbench_core::Nanos, gate: &Gate, meter: &mut Meter, bytes: u64) {
        let end = gate.clock.now();
        let span = Span::new(start, end);
        meter.done(0, span, bytes);
    }
}

/// Does a call that creates `path`; if its parent directories are missing and may be created,
/// creates them and does it again.
fn within_folders<T>(
    path: &Path,
    makes: bool,
    call: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match call() {
        Err(Errno::ENOENT) if makes => files::make_folders(path).and_then(|()| call()),
        done => done,
    }
}

/// Reserves the blocks of a file that is too short. Where the file system
/// cannot, there is just no reservation.
///
/// # Errors
/// The call that failed, and why.
fn reserve(fd: &OwnedFd, length: u64, how: Fallocate) -> Result<(), (OpKind, Errno)> {
    let allocate = |how| match files::allocate(fd, how, 0, length) {
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        result => result.map_err(|errno| (OpKind::Allocate, errno)),
    };
    match how {
        Fallocate::None => Ok(()),
        Fallocate::Native => allocate(Allocation::Native),
        Fallocate::Posix => allocate(Allocation::Posix),
        Fallocate::Keep => allocate(Allocation::Keep),
        Fallocate::Truncate => lengthen(fd, length).map_err(|errno| (OpKind::Truncate, errno)),
    }
}

/// Returns true if a file is of use without the reservation that was refused: the writes will show
/// where it is full. Like in fio, `keep` requires it.
fn may_go_on(how: Fallocate, errno: Errno) -> bool {
    matches!(how, Fallocate::Native | Fallocate::Posix)
        && matches!(errno, Errno::ENOSPC | Errno::EDQUOT)
}

impl Runner for LayoutRunner {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        while !gate.stop.is_raised() {
            let index = self.tasks.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.tasks.all.len() {
                break;
            }
            self.issued += 1;
            if let Err(failure) = self.task(index, gate, meter) {
                if let Ok(mut failed) = self.tasks.failed.lock() {
                    failed.push((self.tasks.all[index].path.clone(), failure.clone()));
                }
                meter.failed_untimed(0, failure);
            }
        }
    }

    fn issued(&self, _meter: &Meter) -> u64 {
        self.issued
    }
}

/// Checks that the directory `path` of the job with this name is there.
pub fn check_directory(path: &Path, job: &str) -> Result<(), String> {
    PosixFs::open_directory(path).map(drop).map_err(|errno| {
        let (path, why) = (path.display(), errno.desc());
        format!("job '{job}': the directory {path} cannot be used: {why} ({errno:?})")
    })
}
