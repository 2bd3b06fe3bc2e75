//! Traces from their files: line by line, several merged by time, and dealt to the workers of a
//! rank while they replay. What lines say is [`rbench_plan::trace`]'s.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use rbench_core::Nanos;
use rbench_plan::ReplayPlan;
use rbench_plan::trace::strace::{Hint, working_directory};
use rbench_plan::trace::survey::{Found, Step};
use rbench_plan::trace::{self, Format, LINE_MAX, Op, Out, Reader, why};
use rbench_sys::inputs;

use crate::pace::StopFlag;

/// The first bytes of what zstd compresses.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Lines that are read to detect the form of a trace.
const FORM_LINES: usize = 100;

/// Operations that are read ahead at a time, bytes of data that end that, of all workers of a
/// rank and of one at least, and how many times that for each worker.
const PIECE: usize = 256;
const PIECE_BYTES: u64 = 4 << 20;
const PIECE_BYTES_MIN: u64 = 256 << 10;
pub const PIECES: usize = 32;

/// The properties of a trace that are known before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Its form.
    pub format: Format,
    /// strace: where the first process was.
    cwd: Option<Vec<u8>>,
}

fn trace_name(path: &Path) -> String {
    format!("the trace {}", path.display())
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be read: {error}", trace_name(path))
}

/// The lines of a file, which may be compressed.
struct Lines {
    reader: Box<dyn BufRead + Send>,
    number: u64,
    line: Vec<u8>,
}

impl Lines {
    fn open(path: &Path) -> Result<Lines, String> {
        let failed = |error: io::Error| unreadable(path, &error);
        let input = inputs::open(path).map_err(failed)?;
        if !input.is_file {
            return Err(format!(
                "{} is not a regular file, but it must be read twice",
                trace_name(path)
            ));
        }
        let mut plain = BufReader::with_capacity(1 << 16, input.reader);
        let compressed = plain.fill_buf().map_err(failed)?.starts_with(&ZSTD);
        let reader: Box<dyn BufRead + Send> = match compressed {
            false => Box::new(plain),
            true => {
                let decoder = zstd::Decoder::with_buffer(plain).map_err(failed)?;
                Box::new(BufReader::with_capacity(1 << 16, decoder))
            }
        };
        Ok(Lines {
            reader,
            number: 0,
            line: Vec::new(),
        })
    }

    /// The next line without its end; `None`: there is none.
    fn next(&mut self, path: &Path) -> Result<Option<(u64, &[u8])>, String> {
        self.line.clear();
        let mut bounded = Read::take(&mut self.reader, LINE_MAX + 1);
        self.number += 1;
        let number = self.number;
        let read = bounded.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| format!("{}, line {number}", unreadable(path, &error)))?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.len() as u64 > LINE_MAX {
            let trace = trace_name(path);
            return Err(format!(
                "{trace}, line {number}: it is longer than {LINE_MAX} bytes"
            ));
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        Ok(Some((number, &self.line)))
    }
}

/// Finds out what has to be known before a trace is read.
///
/// # Errors
/// A sentence with the file.
pub fn form(path: &Path, given: Option<Format>) -> Result<Form, String> {
    let mut lines = Lines::open(path)?;
    let mut format = given;
    while format.is_none() && lines.number < FORM_LINES as u64 {
        let Some((_, line)) = lines.next(path)? else {
            break;
        };
        format = Format::of(line);
    }
    let format = format.ok_or_else(|| {
        let trace = trace_name(path);
        format!("{trace}: the format of its first lines is unknown: give it with --trace-format")
    })?;
    let mut cwd = None;
    if format == Format::Strace {
        let mut lines = Lines::open(path)?;
        while let Some((_, line)) = lines.next(path)? {
            match working_directory(&String::from_utf8_lossy(line)) {
                Hint::Nothing => {}
                Hint::Unknown => break,
                Hint::Directory(path) => {
                    cwd = Some(path);
                    break;
                }
            }
        }
    }
    Ok(Form { format, cwd })
}

/// One trace while it is read.
struct Stream<'p> {
    path: &'p Path,
    lines: Lines,
    reader: Box<dyn Reader>,
    out: Out,
    ready: VecDeque<Op>,
    ended: bool,
    strict: bool,
}

impl Stream<'_> {
    /// The next operation, if there is one.
    fn next(&mut self) -> Result<Option<Op>, String> {
        loop {
            if let Some(op) = self.ready.pop_front() {
                return Ok(Some(op));
            }
            if self.ended {
                return Ok(None);
            }
            match self.lines.next(self.path)? {
                Some((number, line)) => {
                    if let Err(why) = self.reader.line(number, line, &mut self.out) {
                        let why = format!("{}, line {number}: {why}", trace_name(self.path));
                        if self.strict {
                            return Err(why);
                        }
                        self.out.left_out.add(why::UNREADABLE);
                        self.out.unreadable.get_or_insert(why);
                    }
                }
                None => {
                    self.ended = true;
                    let read = self.reader.end(&mut self.out);
                    read.map_err(|why| format!("{}: {why}", trace_name(self.path)))?;
                }
            }
            self.ready.extend(self.out.ops.drain(..));
        }
    }
}

/// All traces, merged by the times at which operations began.
pub struct Merged<'p> {
    streams: Vec<(Stream<'p>, Option<Op>, Nanos)>,
}

impl<'p> Merged<'p> {
    /// Before the first operation.
    ///
    /// # Errors
    /// A sentence with the file, and the line where it is one that is wrong.
    pub fn open(plan: &'p ReplayPlan, forms: &[Form]) -> Result<Merged<'p>, String> {
        let mut streams = Vec::new();
        for (path, form) in plan.traces.iter().zip(forms) {
            let mut stream = Stream {
                path,
                lines: Lines::open(path)?,
                reader: trace::reader(form.format, &plan.reading(form.cwd.clone())),
                out: Out::default(),
                ready: VecDeque::new(),
                ended: false,
                strict: plan.strict,
            };
            let first = stream.next()?;
            let origin = first.as_ref().map_or(Nanos(0), |op| op.at);
            streams.push((stream, first, origin));
        }
        // Times of day count from one common moment, others each from their own.
        let of_day = |form: &Form| matches!(form.format, Format::Strace | Format::Juicefs);
        let both = || streams.iter().zip(forms);
        let days = both().filter(|((_, first, _), form)| of_day(form) && first.is_some());
        let common = days.map(|((_, _, origin), _)| *origin).min();
        for ((_, _, origin), form) in streams.iter_mut().zip(forms) {
            if let (true, Some(common)) = (of_day(form), common) {
                *origin = common;
            }
        }
        Ok(Merged { streams })
    }

    /// The next operation, if there is one.
    ///
    /// # Errors
    /// As [`Merged::open`].
    pub fn next(&mut self) -> Result<Option<Step>, String> {
        let next = self
            .streams
            .iter()
            .enumerate()
            .filter_map(|(n, (_, op, origin))| Some((op.as_ref()?.at.since(*origin), n)))
            .min();
        let Some((at, n)) = next else {
            return Ok(None);
        };
        let Some((stream, op, _)) = self.streams.get_mut(n) else {
            return Ok(None);
        };
        let following = stream.next()?;
        let op = std::mem::replace(op, following);
        Ok(op.map(|op| Step {
            trace: n as u32,
            op: Op { at, ..op },
        }))
    }

    /// Entries that were not read until now, by file.
    pub fn out(&self) -> impl Iterator<Item = &Out> {
        self.streams.iter().map(|(stream, _, _)| &stream.out)
    }

    /// The sentence of a mistake in an operation.
    pub fn wrong(&self, step: &Step, why: &str) -> String {
        let stream = self.streams.get(step.trace as usize);
        let path = stream.map_or(Path::new(""), |(stream, _, _)| stream.path);
        format!("{}, line {}: {why}", trace_name(path), step.op.line)
    }
}

/// An operation for a worker, and the copy that it is of.
#[derive(Debug, Clone)]
pub struct Task {
    /// The copy.
    pub copy: u32,
    /// The operation.
    pub step: Arc<Step>,
}

/// The workers of this rank.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// The number of the first among those of all ranks.
    pub first: u64,
    /// Number of workers of all ranks.
    pub workers: u64,
}

/// Reads the traces and hands each worker of this rank its operations, until all is read,
/// nobody takes any more or `stop` is raised. Drops `primed` when as much is read ahead as there is room for, or all.
///
/// # Errors
/// As [`Merged::open`].
pub fn deal(
    (plan, forms, found): (&ReplayPlan, &[Form], &Found),
    own: Own,
    to: Vec<SyncSender<Vec<Task>>>,
    primed: SyncSender<()>,
    stop: &StopFlag,
) -> Result<(), String> {
    // Workers are dealt groups from the first one on.
    if found.parts(plan.copies) <= own.first {
        return Ok(());
    }
    let mut primed = Some(primed);
    let mut merged = Merged::open(plan, forms)?;
    let mut to: Vec<Option<SyncSender<Vec<Task>>>> = to.into_iter().map(Some).collect();
    let mut pieces: Vec<Vec<Task>> = vec![Vec::new(); to.len()];
    let (mut held, mut bytes) = (0, 0_u64);
    let most = (PIECE_BYTES / (to.len() as u64).max(1)).max(PIECE_BYTES_MIN);
    loop {
        let step = merged.next()?;
        let ended = step.is_none();
        if let Some(step) = step {
            let step = Arc::new(step);
            let process = (step.trace, step.op.process);
            for copy in 0..plan.copies {
                let worker = found.worker(process, copy, plan.copies, own.workers);
                let here = worker.checked_sub(own.first);
                if let Some(piece) = here.and_then(|here| pieces.get_mut(here as usize)) {
                    bytes += step.op.carries();
                    let step = Arc::clone(&step);
                    piece.push(Task { copy, step });
                    held += 1;
                }
            }
        }
        if ended || held >= PIECE || bytes >= most {
            (held, bytes) = (0, 0);
            hand_over(&mut pieces, &mut to, &mut primed, stop);
        }
        if ended || stop.is_raised() || to.iter().all(Option::is_none) {
            return Ok(());
        }
    }
}

/// Hands over what there is: first to those who have room, then to the others, waiting.
/// Before it waits for the first time it drops `primed`. It waits for nobody when `stop` is raised: a worker may stand in a call
/// that does not return.
///
/// It waits for one worker after the other: while one has all of its pieces before it, the others
/// get nothing new, and live on theirs. Who does much less than others may so run out of
/// operations whose time has come; it is then late by what one piece of the busy one takes.
fn hand_over(
    pieces: &mut [Vec<Task>],
    to: &mut [Option<SyncSender<Vec<Task>>>],
    primed: &mut Option<SyncSender<()>>,
    stop: &StopFlag,
) {
    const NAP: Duration = Duration::from_millis(2);
    let mut waiting = Vec::new();
    for (piece, sender) in pieces.iter_mut().zip(to.iter_mut()) {
        if piece.is_empty() {
            continue;
        }
        let piece = std::mem::take(piece);
        let Some(open) = sender else {
            continue;
        };
        match open.try_send(piece) {
            Ok(()) => {}
            Err(TrySendError::Full(piece)) => waiting.push((piece, sender)),
            // The worker has ended.
            Err(TrySendError::Disconnected(_)) => *sender = None,
        }
    }
    if !waiting.is_empty() {
        *primed = None;
    }
    for (mut piece, sender) in waiting {
        while let Some(open) = sender {
            match open.try_send(piece) {
                Ok(()) => break,
                Err(TrySendError::Full(_)) if stop.is_raised() => break,
                Err(TrySendError::Full(same)) => {
                    piece = same;
                    std::thread::sleep(NAP);
                }
                Err(TrySendError::Disconnected(_)) => {
                    *sender = None;
                    break;
                }
            }
        }
    }
}
