//! A worker of a replay: does what a trace says, in the loop of one operation at a time.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::outcome::{Differ, Late};
use rbench_core::random::DataStream;
use rbench_core::{Clock as _, Failure, Nanos, OpKind};
use rbench_plan::replay::Pace;
use rbench_plan::trace::{Call, Kind, LinkTarget, Name, Outcome, Target};
use rbench_sys::{AlignedBuffer, Exact, ExactPath, On};

use super::stream::Task;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::single::{Next, Program, one_by_one};
use crate::worker::Runner;

/// How long a worker waits for what is read ahead before it looks for a stop.
const NAP: Duration = Duration::from_millis(20);

/// Room that a call has at least, bytes.
const ROOM: usize = 1 << 16;

/// What the owner of a directory may do in any case, so that the run can remove it.
const OWNER: u32 = 0o700;

/// What workers of a rank have counted, by row, and how late they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Results that differ.
    pub differ: Vec<Differ>,
    /// Not done, as their file was not open.
    pub unopened: Vec<u64>,
    /// Done, failed ones included.
    pub done: u64,
    /// How late.
    pub late: Late,
}

impl Counts {
    /// Of so many rows.
    pub fn new(rows: usize) -> Counts {
        Counts {
            differ: vec![Differ::default(); rows],
            unopened: vec![0; rows],
            done: 0,
            late: Late::default(),
        }
    }

    fn add(&mut self, other: &Counts) {
        let Counts {
            differ,
            unopened,
            done,
            late,
        } = other;
        for (mine, more) in self.differ.iter_mut().zip(differ) {
            let Differ {
                failed,
                worked,
                error,
                length,
            } = *more;
            mine.failed += failed;
            mine.worked += worked;
            mine.error += error;
            mine.length += length;
        }
        for (mine, more) in self.unopened.iter_mut().zip(unopened) {
            *mine += more;
        }
        self.done += done;
        self.late.merge(late);
    }
}

/// What the workers of a rank have in common.
pub struct Common {
    /// The calls.
    pub exact: Exact,
    /// The kinds of operation, by row.
    pub rows: Vec<OpKind>,
    /// When operations start.
    pub pace: Pace,
    /// What is written where a trace has no data.
    pub seed: u64,
    /// Where workers put what they have counted.
    pub counts: Mutex<Counts>,
}

/// An open file: copy, trace, number.
type Key = (u32, u32, u64);

/// An operation with all that it needs.
struct Ready {
    task: Task,
    act: Act,
    /// When it is meant to start, by the worker's clock.
    intended: Option<Nanos>,
}

/// What it is about.
enum About {
    Path(ExactPath, bool),
    Open(RawFd),
}

impl About {
    fn on(&self) -> On<'_> {
        match self {
            About::Path(path, follows) => On::Path(path, *follows),
            About::Open(fd) => On::Open(*fd),
        }
    }
}

/// A call with its names and descriptors.
enum Act {
    Open(ExactPath, i32, u32, Key),
    Close(RawFd),
    Read(RawFd, Option<u64>, usize),
    Write(RawFd, Option<u64>, usize),
    Seek(RawFd, i64, i32),
    Sync(RawFd, bool),
    Truncate(About, u64),
    Allocate(RawFd, i32, u64, u64),
    Stat(About),
    Access(ExactPath, i32),
    List(RawFd, usize),
    Mkdir(ExactPath, u32),
    Mknod(ExactPath, u32),
    Remove(ExactPath, bool),
    Rename(ExactPath, ExactPath, u32),
    Link(ExactPath, ExactPath),
    Symlink(CString, ExactPath),
    Readlink(ExactPath),
    Chmod(About, u32),
    Chown(About, u32, u32),
    Utimes(About),
    Statfs(About),
    Setxattr(About, CString, usize, i32),
    Getxattr(About, CString, usize),
    Listxattr(About, usize),
    Removexattr(About, CString),
}

impl Act {
    /// Bytes of the buffer that it takes.
    fn room(&self) -> usize {
        match self {
            Act::Read(_, _, length)
            | Act::Write(_, _, length)
            | Act::List(_, length)
            | Act::Setxattr(_, _, length, _)
            | Act::Getxattr(_, _, length)
            | Act::Listxattr(_, length) => *length,
            _ => 0,
        }
    }

    /// Does it; what it returned. Inside the timer.
    #[inline(always)]
    fn perform(&self, exact: &Exact, buffer: &mut [u8]) -> Result<u64, Errno> {
        match self {
            Act::Open(path, flags, mode, _) => exact.open(path, *flags, *mode).map(|fd| fd as u64),
            Act::Close(fd) => exact.close(*fd),
            Act::Read(fd, at, length) => exact.read(*fd, *at, &mut buffer[..*length]),
            Act::Write(fd, at, length) => exact.write(*fd, *at, &buffer[..*length]),
            Act::Seek(fd, offset, whence) => exact.seek(*fd, *offset, *whence),
            Act::Sync(fd, data_only) => exact.sync(*fd, *data_only),
            Act::Truncate(about, length) => exact.truncate(about.on(), *length),
            Act::Allocate(fd, mode, offset, length) => exact.allocate(*fd, *mode, *offset, *length),
            Act::Stat(about) => exact.stat(about.on()),
            Act::Access(path, mode) => exact.access(path, *mode),
            Act::List(fd, length) => exact.list(*fd, &mut buffer[..*length]),
            Act::Mkdir(path, mode) => exact.mkdir(path, *mode),
            Act::Mknod(path, mode) => exact.mknod(path, *mode),
            Act::Remove(path, is_directory) => exact.remove(path, *is_directory),
            Act::Rename(from, to, flags) => exact.rename(from, to, *flags),
            Act::Link(from, to) => exact.link(from, to),
            Act::Symlink(target, path) => exact.symlink(target, path),
            Act::Readlink(path) => exact.readlink(path, buffer),
            Act::Chmod(about, mode) => exact.chmod(about.on(), *mode),
            Act::Chown(about, uid, gid) => exact.chown(about.on(), *uid, *gid),
            Act::Utimes(about) => exact.utimes(about.on()),
            Act::Statfs(about) => exact.statfs(about.on()),
            Act::Setxattr(about, name, length, flags) => {
                exact.setxattr(about.on(), name, &buffer[..*length], *flags)
            }
            Act::Getxattr(about, name, length) => {
                exact.getxattr(about.on(), name, &mut buffer[..*length])
            }
            Act::Listxattr(about, length) => exact.listxattr(about.on(), &mut buffer[..*length]),
            Act::Removexattr(about, name) => exact.removexattr(about.on(), name),
        }
    }
}

/// The text of a link at `from` that leads to `to`, both relative to the same directory. An absolute one
/// would lead through directories that others may change.
fn between(from: &ExactPath, to: &ExactPath) -> Option<CString> {
    let above = from.relative().to_bytes().iter();
    let above = above.filter(|byte| **byte == b'/').count();
    let mut text = b"../".repeat(above);
    text.extend_from_slice(to.relative().to_bytes());
    CString::new(text).ok()
}

/// One worker.
pub struct Player {
    common: Arc<Common>,
    /// As this thread makes its calls.
    exact: Exact,
    inbox: Receiver<Vec<Task>>,
    queue: VecDeque<Task>,
    /// What is done next, or now.
    ready: Option<Ready>,
    files: HashMap<Key, RawFd>,
    buffer: AlignedBuffer,
    data: DataStream,
    counts: Counts,
    issued: u64,
    failed: bool,
}

impl Player {
    /// A worker that takes its operations from `inbox`.
    ///
    /// # Errors
    /// There is not the memory.
    pub fn new(
        common: Arc<Common>,
        inbox: Receiver<Vec<Task>>,
        worker: u64,
    ) -> Result<Player, Failure> {
        let buffer = AlignedBuffer::new(ROOM);
        let buffer = buffer.map_err(|errno| Failure::new(OpKind::Read, "", errno))?;
        Ok(Player {
            counts: Counts::new(common.rows.len()),
            data: DataStream::new(&[common.seed, worker]),
            exact: common.exact.entered(),
            common,
            inbox,
            queue: VecDeque::new(),
            ready: None,
            files: HashMap::new(),
            buffer,
            issued: 0,
            failed: false,
        })
    }

    /// The next operation; `Err`: there is none, and whether the gate is open.
    fn take(&mut self, gate: &Gate) -> Result<Task, bool> {
        loop {
            if let Some(task) = self.queue.pop_front() {
                return Ok(task);
            }
            if gate.closed(gate.clock.now()) {
                return Err(false);
            }
            let begun = gate.clock.now();
            let received = self.inbox.recv_timeout(NAP);
            gate.waits.add(begun, gate.clock.now());
            match received {
                Ok(piece) => self.queue.extend(piece),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(true),
            }
        }
    }

    fn path(&self, copy: u32, name: &Name) -> Option<ExactPath> {
        let mut relative = super::folder(copy).into_bytes();
        if !name.is_empty() {
            relative.push(b'/');
            relative.extend_from_slice(name);
        }
        self.exact.path(&relative)
    }

    /// The call of an operation; `None`: its file is not open.
    fn act(&mut self, task: &Task) -> Option<Act> {
        let (copy, trace) = (task.copy, task.step.trace);
        let path = |name: &Name| self.path(copy, name);
        let fd = |file: &u64| self.files.get(&(copy, trace, *file)).copied();
        let about = |what: &Target| match what {
            Target::Path(name, follows) => Some(About::Path(path(name)?, *follows)),
            Target::Open(file) => Some(About::Open(fd(file)?)),
        };
        let text = |name: &Name| CString::new(&name[..]).ok();
        Some(match &task.step.op.call {
            Call::Open {
                path: name,
                flags,
                mode,
                file,
            } => Act::Open(path(name)?, *flags, *mode, (copy, trace, *file)),
            Call::Close { file } => {
                let key = (copy, trace, *file);
                Act::Close(self.files.remove(&key)?)
            }
            Call::Read { file, at, length } => Act::Read(fd(file)?, *at, *length as usize),
            Call::Write {
                file, at, length, ..
            } => Act::Write(fd(file)?, *at, *length as usize),
            Call::Seek {
                file,
                offset,
                whence,
            } => Act::Seek(fd(file)?, *offset, *whence),
            Call::Sync { file, data_only } => Act::Sync(fd(file)?, *data_only),
            Call::Truncate { what, length } => Act::Truncate(about(what)?, *length),
            Call::Allocate {
                file,
                mode,
                offset,
                length,
            } => Act::Allocate(fd(file)?, *mode, *offset, *length),
            Call::Stat { what } => Act::Stat(about(what)?),
            Call::Access { path: name, mode } => Act::Access(path(name)?, *mode),
            Call::List { file, length } => Act::List(fd(file)?, *length as usize),
            Call::Mkdir { path: name, mode } => Act::Mkdir(path(name)?, *mode | OWNER),
            Call::Mknod { path: name, mode } => Act::Mknod(path(name)?, *mode),
            Call::Rmdir { path: name } => Act::Remove(path(name)?, true),
            Call::Unlink { path: name } => Act::Remove(path(name)?, false),
            Call::Rename { from, to, flags } => Act::Rename(path(from)?, path(to)?, *flags),
            Call::Link { from, to } => Act::Link(path(from)?, path(to)?),
            Call::Symlink { target, path: name } => {
                let target = match target {
                    LinkTarget::Verbatim(target) => text(target)?,
                    LinkTarget::Below(to) => between(&path(name)?, &path(to)?)?,
                };
                Act::Symlink(target, path(name)?)
            }
            Call::Readlink { path: name } => Act::Readlink(path(name)?),
            Call::Chmod { what, mode } => {
                let is_directory = task.step.op.told.kind == Some(Kind::Directory);
                let kept = if is_directory { OWNER } else { 0 };
                Act::Chmod(about(what)?, *mode | kept)
            }
            Call::Chown { what, uid, gid } => Act::Chown(about(what)?, *uid, *gid),
            Call::Utimes { what } => Act::Utimes(about(what)?),
            Call::Statfs { what } => Act::Statfs(about(what)?),
            Call::Setxattr {
                what,
                name,
                length,
                flags,
            } => Act::Setxattr(about(what)?, text(name)?, *length as usize, *flags),
            Call::Getxattr { what, name, length } => {
                Act::Getxattr(about(what)?, text(name)?, *length as usize)
            }
            Call::Listxattr { what, length } => Act::Listxattr(about(what)?, *length as usize),
            Call::Removexattr { what, name } => Act::Removexattr(about(what)?, text(name)?),
        })
    }

    fn row(&self, task: &Task) -> Option<usize> {
        let kind = task.step.op.call.kind();
        self.common.rows.iter().position(|row| *row == kind)
    }

    /// Fills the buffer with what is written, and sees to it that it is large enough.
    fn fill(&mut self, task: &Task, act: &Act) -> Result<(), Errno> {
        let room = act.room();
        if self.buffer.len() < room {
            self.buffer = AlignedBuffer::new(room.next_power_of_two())?;
        }
        match (&task.step.op.call, act) {
            (
                Call::Write {
                    data: Some(data), ..
                },
                _,
            ) => {
                self.buffer[..room].copy_from_slice(data);
            }
            (_, Act::Write(..) | Act::Setxattr(..)) => self.data.fill(&mut self.buffer[..room]),
            _ => {}
        }
        Ok(())
    }

    /// Does what the trace does not have and what follows needs, untimed.
    fn do_implied(&mut self, ready: Ready, meter: &mut Meter) {
        if let Ok(value) = ready.act.perform(&self.exact, &mut self.buffer)
            && let Act::Open(_, _, _, key) = ready.act
        {
            self.opened(key, value as RawFd, meter);
        }
    }

    /// A file is open; one that was so under the same number, against the form, is not any more.
    fn opened(&mut self, key: Key, fd: RawFd, meter: &mut Meter) {
        if let Some(before) = self.files.insert(key, fd) {
            self.shut(before, meter);
        }
    }

    /// Closes what the trace does not, untimed.
    #[cold]
    fn shut(&self, fd: RawFd, meter: &mut Meter) {
        if let Err(errno) = self.exact.close(fd) {
            meter.failed_untimed(0, Failure::new(OpKind::Close, "", errno));
        }
    }

    /// What differs from the trace; whether it is a failure of the replay.
    fn judge(
        &mut self,
        row: usize,
        recorded: Outcome,
        task: &Task,
        got: Result<u64, Errno>,
    ) -> bool {
        let differ = &mut self.counts.differ[row];
        match (recorded, got) {
            (Outcome::Unknown, got) => got.is_err(),
            (Outcome::Done(wanted), Ok(value)) => {
                let differs = task.step.op.call.returns_a_length() && wanted != value;
                differ.length += u64::from(differs);
                false
            }
            (Outcome::Done(_), Err(_)) => {
                differ.failed += 1;
                true
            }
            (Outcome::Failed(_), Ok(_)) => {
                differ.worked += 1;
                false
            }
            (Outcome::Failed(errno), Err(got)) => {
                let other = errno != got as i32;
                differ.error += u64::from(other);
                other
            }
        }
    }
}

impl Program for Player {
    type Operation = ();
    type Outcome = Result<u64, Errno>;

    fn next(&mut self, gate: &Gate, meter: &mut Meter) -> Next<()> {
        if self.ready.is_some() {
            return Next::Operation(());
        }
        let task = match self.take(gate) {
            Ok(task) => task,
            Err(open) => return Next::End(open),
        };
        let op = &task.step.op;
        let at = self.common.pace.at(op.at);
        let intended = at.map(|at| Nanos(gate.start.0.saturating_add(at.0)));
        // Another worker may have to make its file first.
        if op.implied
            && let Some(at) = intended
            && !gate.wait(at)
        {
            return Next::End(false);
        }
        let act = self.act(&task);
        let (Some(row), Some(act)) = (self.row(&task).or(op.implied.then_some(0)), act) else {
            if let (Some(row), false) = (self.row(&task), task.step.op.implied) {
                self.counts.unopened[row] += 1;
            }
            return Next::Again;
        };
        if let Err(errno) = self.fill(&task, &act) {
            self.failed = true;
            let failure = Failure::new(task.step.op.call.kind(), "", errno);
            meter.failed_untimed(row, failure);
            return Next::Again;
        }
        let implied = task.step.op.implied;
        let ready = Ready {
            task,
            act,
            intended,
        };
        if implied {
            self.do_implied(ready, meter);
            return Next::Again;
        }
        self.ready = Some(ready);
        Next::Operation(())
    }

    fn may_start(&mut self, _what: &(), gate: &Gate) -> bool {
        let intended = self.ready.as_ref().and_then(|ready| ready.intended);
        intended.is_none_or(|at| gate.wait(at))
    }

    fn is_sure(&self, _what: &()) -> bool {
        false
    }

    fn put_back(&mut self, _what: ()) {}

    #[inline(always)]
    fn perform(&mut self, _what: &(), _gate: &Gate) -> Result<u64, Errno> {
        match &self.ready {
            Some(ready) => ready.act.perform(&self.exact, &mut self.buffer),
            None => Err(Errno::EINVAL),
        }
    }

    fn ended(
        &mut self,
        _what: (),
        outcome: Result<u64, Errno>,
        (start, end): (Nanos, Nanos),
        _gate: &Gate,
        meter: &mut Meter,
    ) {
        let Some(Ready {
            task,
            act,
            intended,
        }) = self.ready.take()
        else {
            return;
        };
        let Some(row) = self.row(&task) else {
            return;
        };
        self.issued += 1;
        self.counts.done += 1;
        if let Some(intended) = intended {
            self.counts.late.record(start.since(intended));
        }
        let mut bytes = 0;
        match (&act, outcome) {
            (Act::Open(_, _, _, key), Ok(fd)) => {
                self.opened(*key, fd as RawFd, meter);
            }
            (Act::Read(..) | Act::Write(..), Ok(moved)) => bytes = moved,
            _ => {}
        }
        let span = Span {
            intended,
            start,
            end,
        };
        let fails = self.judge(row, task.step.op.result, &task, outcome);
        match outcome {
            Err(errno) if fails => {
                self.failed = true;
                meter.failed(row, span, failure(&task, &act, errno));
            }
            // As recorded, be it an error.
            _ => meter.done(row, span, bytes),
        }
    }
}

/// A failure that the trace does not have.
#[cold]
fn failure(task: &Task, act: &Act, errno: Errno) -> Failure {
    let path = match act {
        Act::Open(path, ..)
        | Act::Access(path, _)
        | Act::Mkdir(path, _)
        | Act::Mknod(path, _)
        | Act::Remove(path, _)
        | Act::Rename(path, ..)
        | Act::Link(path, _)
        | Act::Symlink(_, path)
        | Act::Readlink(path) => Some(path),
        Act::Truncate(about, _)
        | Act::Stat(about)
        | Act::Chmod(about, _)
        | Act::Chown(about, ..)
        | Act::Utimes(about)
        | Act::Statfs(about)
        | Act::Setxattr(about, ..)
        | Act::Getxattr(about, ..)
        | Act::Listxattr(about, _)
        | Act::Removexattr(about, _) => match about {
            About::Path(path, _) => Some(path),
            About::Open(_) => None,
        },
        _ => None,
    };
    let path = path.map_or(String::new(), |path| {
        let bytes = std::ffi::OsStr::from_bytes(path.relative().to_bytes());
        bytes.to_string_lossy().into_owned()
    });
    let op = &task.step.op;
    Failure {
        detail: format!("line {} of the trace", op.line),
        ..Failure::new(op.call.kind(), path, errno)
    }
}

impl Runner for Player {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        one_by_one(self, gate, meter);
    }

    fn issued(&self) -> u64 {
        self.issued
    }

    fn planned(&self) -> u64 {
        0
    }

    fn covered(&self) -> bool {
        !self.failed
    }

    /// Closes what the trace left open.
    fn finish(&mut self, meter: &mut Meter) {
        // A close that was to be done is one of them.
        let next = match self.ready.take().map(|ready| ready.act) {
            Some(Act::Close(fd)) => Some(fd),
            _ => None,
        };
        let files = std::mem::take(&mut self.files);
        for fd in files.into_values().chain(next) {
            self.shut(fd, meter);
        }
        let all = self.common.counts.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .add(&self.counts);
        self.counts = Counts::new(self.common.rows.len());
    }
}
