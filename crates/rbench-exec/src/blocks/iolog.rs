//! Logs of I/O that workers replay (`read_iolog`): how they are read, at once or in pieces,
//! and how a worker follows one. What their lines say, and when they are due, is
//! [`rbench_plan::iolog`]'s.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::{Clock as _, Direction, Failure, Nanos, OpKind};
use rbench_plan::iolog::{Action, Entry, Follower, Replay, Version};
use rbench_sys::{Transfer, inputs};

use super::{BlockRunner, Kind, Planned};
use crate::meter::Meter;
use crate::pace::Gate;
use crate::verify::file_key;

/// Longest line of a log, bytes, as in fio.
const LINE_MAX: u64 = 4096;

/// Entries that are read ahead at a time, and how many times that.
const PIECE: usize = 4096;
const PIECES: usize = 4;

/// The largest operation of a log that can be read but once, while it is replayed: bytes of a
/// buffer that must be there before.
pub const UNSEEN_MAX: u32 = 1 << 20;

/// Time between a worker's checks of the stop flag while it waits for a log that is still being
/// written.
const NAP: Duration = Duration::from_millis(20);

/// Logs of I/O of the workers of a job on this rank, by their position.
#[derive(Debug, Clone, Default)]
pub struct Iologs {
    /// The logs that they replay.
    pub replayed: Vec<Arc<Iolog>>,
    /// The files to which they log their operations.
    pub written: Vec<PathBuf>,
}

/// Number of operations in a log, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
    /// Trims.
    pub trim: u64,
    /// Syncs.
    pub sync: u64,
}

impl Counts {
    fn add(&mut self, action: Action) {
        let count = match action {
            Action::Read => &mut self.read,
            Action::Write => &mut self.write,
            Action::Trim => &mut self.trim,
            Action::Sync | Action::DataSync => &mut self.sync,
            Action::Add | Action::Open | Action::Close | Action::Wait => return,
        };
        *count += 1;
    }

    /// All that move data or trim.
    pub fn transfers(&self) -> u64 {
        self.read + self.write + self.trim
    }
}

/// A log of I/O as it was found.
#[derive(Debug)]
pub struct Iolog {
    path: PathBuf,
    replay: Replay,
    /// The files that it names.
    pub names: Vec<String>,
    /// `None`: it can be read but once, and is read while it is replayed.
    pub counts: Option<Counts>,
    /// Its largest operation, bytes.
    pub largest: u32,
    /// Its smallest and its largest write, and what divides all of them, bytes.
    pub writes: Option<(u32, u32, u32)>,
    /// Its entries, unless it is read while it is replayed.
    entries: Option<Arc<[Entry]>>,
}

impl Iolog {
    /// Looks a log through, and keeps it unless it is to be read in pieces.
    ///
    /// # Errors
    /// A sentence with file and line.
    pub fn look_through(path: &Path, replay: &Replay) -> Result<Iolog, String> {
        let mut log = Iolog {
            path: path.to_owned(),
            replay: replay.clone(),
            names: Vec::new(),
            counts: None,
            largest: UNSEEN_MAX,
            writes: None,
            entries: None,
        };
        let is_file = inputs::is_file(path).map_err(|e| unreadable(path, &e))?;
        if replay.chunked && !is_file {
            return Ok(log);
        }
        let (mut counts, mut largest, mut entries) = (Counts::default(), 0, Vec::new());
        let mut writes: Option<(u32, u32, u32)> = None;
        let names = follow(path, replay, &mut |_, entry| {
            counts.add(entry.action);
            largest = largest.max(entry.length);
            if entry.action == Action::Write {
                let length = entry.length;
                let (least, most, divisor) = writes.unwrap_or((length, length, length));
                let divisor = gcd(divisor, length);
                writes = Some((least.min(length), most.max(length), divisor));
            }
            if !replay.chunked {
                entries.push(entry);
            }
            true
        })?;
        if counts.transfers() == 0 {
            return Err(format!("{} has nothing to replay", log_name(path)));
        }
        (log.names, log.counts, log.largest) = (names, Some(counts), largest);
        log.writes = writes;
        log.entries = (!replay.chunked).then(|| entries.into());
        Ok(log)
    }
}

/// Greatest common divisor.
pub fn gcd(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

fn log_name(path: &Path) -> String {
    format!("the I/O log {}", path.display())
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be read: {error}", log_name(path))
}

/// Reads a log and hands its entries, with the files named until then, to `each` until that returns
/// false; returns the files that it names.
fn follow(
    path: &Path,
    replay: &Replay,
    each: &mut dyn FnMut(&[String], Entry) -> bool,
) -> Result<Vec<String>, String> {
    let input = inputs::open(path).map_err(|e| unreadable(path, &e))?;
    let mut lines = BufReader::with_capacity(1 << 16, input.reader);
    let (mut line, mut number) = (Vec::new(), 0_u64);
    let mut next = |line: &mut Vec<u8>| {
        line.clear();
        let mut bounded = Read::take(&mut lines, LINE_MAX);
        let read = bounded.read_until(b'\n', line);
        read.map_err(|e| unreadable(path, &e))
    };
    next(&mut line)?;
    let version = Version::of(&line).map_err(|why| format!("{}: {why}", log_name(path)))?;
    let mut follower = Follower::new(replay, version);
    loop {
        number += 1;
        if next(&mut line)? == 0 {
            return Ok(follower.names().to_vec());
        }
        let wrong = |why: &str| format!("{}, line {}: {why}", log_name(path), number + 1);
        if line.len() as u64 == LINE_MAX && line.last() != Some(&b'\n') {
            return Err(wrong("it is longer than fio's limit of 4096 bytes"));
        }
        let text = std::str::from_utf8(&line).map_err(|_| wrong("it is not valid UTF-8 text"))?;
        let entry = follower.line(text).map_err(|why| wrong(&why))?;
        if let Some(entry) = entry
            && !each(follower.names(), entry)
        {
            return Ok(Vec::new());
        }
    }
}

/// Entries of a log that were read ahead, and files that are new in it.
#[derive(Debug, Default)]
struct Piece {
    entries: Vec<Entry>,
    names: Vec<String>,
}

/// Reads a log in pieces, until nobody wants more.
fn read_ahead(log: &Iolog, to: &SyncSender<Result<Piece, String>>) {
    let mut piece = Piece::default();
    let mut known = log.names.len();
    // Entries of a pipe come as they are written.
    let wait = if log.counts.is_some() { PIECE } else { 1 };
    let mut too_large = None;
    let followed = follow(&log.path, &log.replay, &mut |names, entry| {
        // Buffers were made before.
        if entry.length > log.largest {
            too_large = Some(entry.length);
            return false;
        }
        piece
            .names
            .extend_from_slice(names.get(known..).unwrap_or_default());
        known = known.max(names.len());
        piece.entries.push(entry);
        piece.entries.len() < wait || to.send(Ok(std::mem::take(&mut piece))).is_ok()
    });
    let ended = match too_large {
        None => followed.map(|_| piece),
        Some(bytes) => Err(format!(
            "{}: an operation has {bytes} bytes, but at most {} were expected",
            log_name(&log.path),
            log.largest
        )),
    };
    // A receiver that is gone does not need it.
    let _ = to.send(ended);
}

/// The next entry of the log that is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Something else than an operation.
    Event,
    /// An operation, or nothing any more; or there is no such log.
    Operation,
    /// It is not known yet.
    Unread,
}

/// Position of a worker in the log that it replays.
#[derive(Debug)]
pub(super) struct Replayed {
    log: Arc<Iolog>,
    position: usize,
    /// The entries read ahead, where that is not the whole log, and the reader of the rest.
    ahead: VecDeque<Entry>,
    reader: Option<Receiver<Result<Piece, String>>>,
    /// Operations that may still come (`number_ios`).
    left: u64,
}

impl Replayed {
    /// At the beginning of a log.
    ///
    /// # Errors
    /// When the thread that reads cannot be started.
    pub(super) fn begin(log: Arc<Iolog>, most: Option<u64>) -> io::Result<Replayed> {
        let reader = match log.entries {
            Some(_) => None,
            None => {
                let (sender, receiver) = sync_channel(PIECES);
                let log = Arc::clone(&log);
                std::thread::Builder::new()
                    .name("rbench-iolog".to_owned())
                    .spawn(move || read_ahead(&log, &sender))?;
                Some(receiver)
            }
        };
        Ok(Replayed {
            log,
            position: 0,
            ahead: VecDeque::new(),
            reader,
            left: most.unwrap_or(u64::MAX),
        })
    }

    /// The next entry, if it was read.
    #[inline]
    fn peek(&self) -> Option<Entry> {
        match &self.log.entries {
            _ if self.left == 0 => None,
            Some(all) => all.get(self.position).copied(),
            None => self.ahead.front().copied(),
        }
    }

    /// It is done.
    #[inline]
    fn advance(&mut self, entry: Entry) {
        self.left -= u64::from(entry.action.is_transfer());
        match self.log.entries {
            Some(_) => self.position += 1,
            None => drop(self.ahead.pop_front()),
        }
    }

    /// Returns true if the next entry is known only when more was read.
    #[inline]
    fn is_unread(&self) -> bool {
        self.ahead.is_empty() && self.reader.is_some() && self.left > 0
    }

    /// Returns true if the log has no further operation.
    fn is_over(&self) -> bool {
        self.peek().is_none() && !self.is_unread()
    }

    /// Operations of a direction that were due before `end` and are left: of a log that is
    /// read while it is replayed, those that were read.
    pub(super) fn missed(&self, direction: Direction, end: Nanos) -> u64 {
        let (first, second): (&[Entry], &[Entry]) = match &self.log.entries {
            Some(all) => (all.get(self.position..).unwrap_or_default(), &[]),
            None => self.ahead.as_slices(),
        };
        let transfers = first.iter().chain(second);
        let transfers = transfers.filter(|entry| entry.action.is_transfer());
        let transfers = transfers.take(usize::try_from(self.left).unwrap_or(usize::MAX));
        let due = transfers.filter(|entry| {
            kind_of(entry.action).direction() == direction && entry.at().is_some_and(|at| at < end)
        });
        due.count() as u64
    }

    /// Takes what was read ahead; if that is nothing and the worker is `idle`, waits for it as
    /// long as the gate is open. Files that are new.
    ///
    /// # Errors
    /// What is wrong with the log.
    #[cold]
    fn read_on(&mut self, gate: &Gate, idle: bool) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let begun = gate.clock.now();
        while self.ahead.is_empty()
            && let Some(reader) = &self.reader
        {
            let received = match idle {
                true => reader.recv_timeout(NAP),
                false => reader.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                }),
            };
            match received {
                Ok(Ok(piece)) => {
                    names.extend(piece.names);
                    self.ahead.extend(piece.entries);
                }
                Ok(Err(why)) => {
                    self.reader = None;
                    return Err(why);
                }
                Err(RecvTimeoutError::Disconnected) => self.reader = None,
                Err(RecvTimeoutError::Timeout) if !idle || gate.closed(gate.clock.now()) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if idle {
            gate.waits.add(begun, gate.clock.now());
        }
        Ok(names)
    }
}

impl BlockRunner {
    /// The next entry of the log that is replayed. Also adds files that are new in it. `idle`:
    /// nothing is in flight that would wait to be noted, so that the log may be waited for; it is
    /// unread then only if the gate is closed.
    #[inline]
    pub(super) fn ahead(&mut self, idle: bool, gate: &Gate, meter: &mut Meter) -> Ahead {
        let Some(replayed) = &self.pattern.replayed else {
            return Ahead::Operation;
        };
        if self.pattern.next.is_some() || self.accounts.over {
            return Ahead::Operation;
        }
        if replayed.is_unread() {
            self.read_on(idle, gate, meter);
        }
        let Some(replayed) = &self.pattern.replayed else {
            return Ahead::Operation;
        };
        match replayed.peek() {
            Some(entry) if !entry.action.is_transfer() => Ahead::Event,
            None if replayed.is_unread() => Ahead::Unread,
            _ => Ahead::Operation,
        }
    }

    #[cold]
    fn read_on(&mut self, idle: bool, gate: &Gate, meter: &mut Meter) {
        let Some(replayed) = &mut self.pattern.replayed else {
            return;
        };
        match replayed.read_on(gate, idle) {
            Ok(names) => {
                for name in names {
                    let place = placed(&self.context.job.files.directory, &name);
                    let path = self.context.base.join(place);
                    if let Some(order) = &mut self.requests.order {
                        order.add(&self.context.others.locks, &path);
                    }
                    self.files.add(path, file_key(&name));
                }
            }
            Err(why) => self.log_is_wrong(why, meter),
        }
    }

    #[cold]
    fn log_is_wrong(&mut self, why: String, meter: &mut Meter) {
        let failure = Failure::new(OpKind::Read, "read_iolog", Errno::EINVAL);
        self.trouble(failure.with(why), None, meter);
        self.accounts.give_up(Some(Errno::EINVAL));
    }

    /// Opens, closes or syncs a file as the log says, when it says so; nothing is in flight.
    pub(super) fn take_event(&mut self, gate: &Gate, meter: &mut Meter) {
        let Some(entry) = self.pattern.replayed.as_deref().and_then(Replayed::peek) else {
            return;
        };
        // A closed gate is noticed when the next operation is to start.
        if let Some(at) = entry.at()
            && !gate.wait(self.intended(at))
        {
            return;
        }
        if let Some(replayed) = &mut self.pattern.replayed {
            replayed.advance(entry);
        }
        let file = u64::from(entry.file);
        match entry.action {
            Action::Open => match self.files.fd(file, self.engine.as_mut()) {
                Ok(_) => meter.went_on(),
                Err(failure) => self.cannot_open(failure, None, meter),
            },
            Action::Close => self.close_in_order(file, gate, meter),
            // Nothing is written.
            Action::Sync | Action::DataSync if self.only_checks() => {}
            Action::Sync => self.sync_file(gate, (file, Transfer::Fsync, 0), true, meter),
            Action::DataSync => self.sync_file(gate, (file, Transfer::DataSync, 0), true, meter),
            Action::Add | Action::Wait | Action::Read | Action::Write | Action::Trim => {}
        }
    }

    /// Returns true if it writes nothing and checks what an earlier run wrote.
    pub(super) fn only_checks(&self) -> bool {
        let verify = self.context.job.verify.as_ref();
        verify.is_some_and(|verify| verify.only)
    }

    fn intended(&self, at: Nanos) -> Nanos {
        Nanos(self.accounts.start.0.saturating_add(at.0))
    }

    /// The next operation of the log.
    #[inline(never)]
    pub(super) fn draw_replayed(&mut self) -> Option<Planned> {
        let replayed = self.pattern.replayed.as_mut()?;
        let Some(entry) = replayed.peek().filter(|entry| entry.action.is_transfer()) else {
            self.pattern.exhausted = replayed.is_over();
            return None;
        };
        replayed.advance(entry);
        let mut generation = 0;
        let kind = match kind_of(entry.action) {
            Kind::Write if self.only_checks() => Kind::Check,
            Kind::Write => {
                self.pattern.generation += 1;
                generation = self.pattern.generation;
                Kind::Write
            }
            other => other,
        };
        let mut what = Planned {
            kind,
            file: u64::from(entry.file),
            offset: entry.offset,
            length: entry.length as usize,
            generation,
            intended: entry.at().map(|at| self.intended(at)),
            ..Planned::default()
        };
        if kind == Kind::Check {
            self.leave_out_write(&what);
        } else {
            self.draw_priority(&mut what);
        }
        Some(what)
    }
}

fn kind_of(action: Action) -> Kind {
    match action {
        Action::Write => Kind::Write,
        Action::Trim => Kind::Trim,
        _ => Kind::Read,
    }
}

/// Path of a file of a log, by its name there.
pub fn placed(directory: &Path, name: &str) -> PathBuf {
    match directory.as_os_str().is_empty() {
        true => PathBuf::from(name),
        false => directory.join(name.trim_start_matches('/')),
    }
}
