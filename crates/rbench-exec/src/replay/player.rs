//! A worker of a replay: does what a trace says, in the loop of one operation at a time.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::outcome::{Differ, Late};
use rbench_core::random::DataStream;
use rbench_core::{Call, Clock as _, Failure, Nanos, OpKind};
use rbench_plan::replay::Pace;
use rbench_plan::trace::{Kind, Op, Other, Outcome};
use rbench_sys::{AlignedBuffer, Data, Fs as _, NO_FILE, Operands, PosixFs};
use serde::{Deserialize, Serialize};

use super::relative;
use super::stream::Task;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::single::{Next, Program, one_by_one};
use crate::worker::Runner;

/// Time between a worker's checks of the stop flag while it waits for the read-ahead.
const NAP: Duration = Duration::from_millis(20);

/// Room that a call has at least, bytes.
const ROOM: usize = 1 << 16;

/// Permissions that the owner of a directory always keeps, so that the run can remove it.
const OWNER: u32 = 0o700;

/// Counts of the workers of a rank, by row, and their lateness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Results that differ.
    pub differ: Vec<Differ>,
    /// Not done, as their file was not open.
    pub unopened: Vec<u64>,
    /// Done, failed ones included.
    pub done: u64,
    /// Lateness.
    pub late: Late,
}

impl Counts {
    /// Counts of this many rows.
    pub fn new(rows: usize) -> Counts {
        Counts {
            differ: vec![Differ::default(); rows],
            unopened: vec![0; rows],
            done: 0,
            late: Late::default(),
        }
    }

    /// Adds those of other workers.
    pub fn add(&mut self, other: &Counts) {
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

/// Data that the workers of a rank share.
pub struct Common {
    /// The directory of the pass.
    pub fs: PosixFs,
    /// The kinds of operation, by row.
    pub rows: Vec<OpKind>,
    /// The timing of operations.
    pub pace: Pace,
    /// Seed of the data that is written where a trace has none.
    pub seed: u64,
    /// Sum of the workers' counts.
    pub counts: Mutex<Counts>,
}

/// An open file: copy, trace, number.
type Key = (u32, u32, u64);

fn key(task: &Task) -> Key {
    let file = task.step.op.file.unwrap_or_default();
    (task.copy, task.step.trace, file)
}

/// An operation with its operands.
struct Ready {
    task: Task,
    /// The call of the trace, with the permissions that the run needs.
    call: Call,
    path: Option<CString>,
    other: Option<CString>,
    fd: RawFd,
    /// Bytes of the buffer that it takes.
    length: usize,
    /// Intended start, by the worker's clock.
    intended: Option<Nanos>,
}

impl Ready {
    /// Makes the call. Inside the timer.
    #[inline(always)]
    fn perform(&self, fs: &PosixFs, buffer: &mut [u8]) -> Result<u64, Errno> {
        let on = Operands {
            path: self.path.as_deref().unwrap_or_default(),
            other: self.other.as_deref().unwrap_or_default(),
            fd: self.fd,
            data: Data::Into(&mut buffer[..self.length]),
        };
        fs.call(&self.call, on)
    }
}

/// The text of a link at `from` that leads to `to`, both relative to the same directory. An absolute one
/// would lead through directories that others may change.
fn between(from: &[u8], to: &[u8]) -> Option<CString> {
    let above = from.iter().filter(|byte| **byte == b'/').count();
    CString::new([&b"../".repeat(above), to].concat()).ok()
}

/// One worker.
pub struct Player {
    common: Arc<Common>,
    /// File system with this thread's way of making calls.
    fs: PosixFs,
    inbox: Receiver<Vec<Task>>,
    queue: VecDeque<Task>,
    /// The next operation, or the present one.
    ready: Option<Ready>,
    files: HashMap<Key, RawFd>,
    buffer: AlignedBuffer,
    data: DataStream,
    counts: Counts,
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
            fs: common.fs.clone().entered(),
            common,
            inbox,
            queue: VecDeque::new(),
            ready: None,
            files: HashMap::new(),
            buffer,
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

    /// The call of an operation with its operands; `None`: its file is not open.
    fn ready(&mut self, task: Task, intended: Option<Nanos>) -> Option<Ready> {
        let op = &task.step.op;
        let call = match op.call {
            Call::Mkdir(mode) => Call::Mkdir(mode | OWNER),
            Call::Chmod(by, mode) if op.told.kind == Some(Kind::Directory) => {
                Call::Chmod(by, mode | OWNER)
            }
            call => call,
        };
        let relative = |name: &[u8]| relative(task.copy, name);
        let path = match &op.path {
            Some(name) => Some(self.fs.path(call, &relative(name))?),
            None => None,
        };
        let other = match (&op.other, &op.path) {
            (Other::Path(to), Some(name)) if call == Call::Symlink => {
                Some(between(&relative(name), &relative(to))?)
            }
            (Other::Path(to), _) => Some(self.fs.path(call, &relative(to))?),
            (Other::Bytes(text), _) if !op.writes() => Some(CString::new(&text[..]).ok()?),
            (Other::Bytes(_) | Other::Nothing, _) => None,
        };
        let fd = match call {
            Call::Close => self.files.remove(&key(&task))?,
            call if call.needs_open() => *self.files.get(&key(&task))?,
            _ => NO_FILE,
        };
        Some(Ready {
            length: op.length.map_or(ROOM, |length| length as usize),
            task,
            call,
            path,
            other,
            fd,
            intended,
        })
    }

    fn row(&self, task: &Task) -> Option<usize> {
        let kind = task.step.op.call.op();
        self.common.rows.iter().position(|row| *row == kind)
    }

    /// Fills the buffer with the data to write, and extends it if it is too small.
    fn fill(&mut self, ready: &Ready) -> Result<(), Errno> {
        let op = &ready.task.step.op;
        if self.buffer.len() < ready.length {
            self.buffer = AlignedBuffer::new(ready.length.next_power_of_two())?;
        }
        let buffer = &mut self.buffer[..ready.length];
        match (&op.other, op.call) {
            (Other::Bytes(data), _) if op.writes() => buffer.copy_from_slice(data),
            (_, Call::Write | Call::WriteAt(_) | Call::Setxattr(..)) => self.data.fill(buffer),
            _ => {}
        }
        Ok(())
    }

    /// Does what the trace does not have and what follows needs, untimed.
    fn do_implied(&mut self, ready: &Ready, meter: &mut Meter) {
        if let Ok(value) = ready.perform(&self.fs, &mut self.buffer)
            && let Call::Open(_) = ready.call
        {
            self.opened(key(&ready.task), value as RawFd, meter);
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
        if let Err(errno) = self.fs.close(fd) {
            meter.failed_untimed(0, Failure::new(OpKind::Close, "", errno));
        }
    }

    /// Counts a difference from the trace; returns true if it is a failure of the replay.
    fn judge(&mut self, row: usize, op: &Op, got: Result<u64, Errno>) -> bool {
        let differ = &mut self.counts.differ[row];
        match (op.result, got) {
            (Outcome::Unknown, got) => got.is_err(),
            (Outcome::Done(wanted), Ok(value)) => {
                let differs = op.returns_a_length() && wanted != value;
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
        let (row, implied, kind) = (self.row(&task), op.implied, op.call.op());
        let Some(ready) = self.ready(task, intended) else {
            if let (Some(row), false) = (row, implied) {
                self.counts.unopened[row] += 1;
            }
            return Next::Again;
        };
        let Some(row) = row.or(implied.then_some(0)) else {
            return Next::Again;
        };
        if let Err(errno) = self.fill(&ready) {
            meter.failed_untimed(row, Failure::new(kind, "", errno));
            return Next::Again;
        }
        if implied {
            self.do_implied(&ready, meter);
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
            Some(ready) => ready.perform(&self.fs, &mut self.buffer),
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
        let Some(Ready { task, intended, .. }) = self.ready.take() else {
            return;
        };
        let Some(row) = self.row(&task) else {
            return;
        };
        self.counts.done += 1;
        if let Some(intended) = intended {
            self.counts.late.record(start.since(intended));
        }
        let op = &task.step.op;
        let bytes = match (op.call, outcome) {
            (Call::Open(_), Ok(fd)) => {
                self.opened(key(&task), fd as RawFd, meter);
                0
            }
            (_, Ok(moved)) if op.returns_a_length() => moved,
            _ => 0,
        };
        let span = Span::due(intended, start, end);
        let fails = self.judge(row, op, outcome);
        match outcome {
            Err(errno) if fails => meter.failed(row, span, failure(&task, errno)),
            // The result is as recorded, be it an error.
            _ => meter.done(row, span, bytes),
        }
    }
}

/// A failure that the trace does not have.
#[cold]
fn failure(task: &Task, errno: Errno) -> Failure {
    let op = &task.step.op;
    let path = op.path.as_ref().map(|name| relative(task.copy, name));
    let path = path.unwrap_or_default();
    let failure = Failure::new(op.call.op(), String::from_utf8_lossy(&path), errno);
    failure.with(format!("line {} of the trace", op.line))
}

impl Runner for Player {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        one_by_one(self, gate, meter);
    }

    /// Closes what the trace left open.
    fn finish(&mut self, meter: &mut Meter) {
        // A close that was to be done is one of them.
        let next = self.ready.take();
        let next = next.filter(|ready| ready.call == Call::Close);
        let files = std::mem::take(&mut self.files);
        for fd in files.into_values().chain(next.map(|ready| ready.fd)) {
            self.shut(fd, meter);
        }
        let all = self.common.counts.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .add(&self.counts);
        self.counts = Counts::new(self.common.rows.len());
    }
}
