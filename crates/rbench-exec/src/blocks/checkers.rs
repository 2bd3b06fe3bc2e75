//! Checking what was read beside the worker (`--verify-threads`): it gives a
//! block that was read to a thread of its own, with the buffer, and reads the
//! next one into another.
//!
//! Blocks are noted in the order in which they were read, as without these
//! threads; how long a check takes is in no latency either way.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use rbench_core::FailureKind;
use rbench_plan::jobs::Verify;
use rbench_sys::limits::stay_on_any;
use rbench_sys::{AlignedBuffer, Engine};

use super::progress::Dump;
use crate::meter::Span;
use crate::verify::{Expected, Marks};

/// Buffers of each thread: one is checked while the next one waits.
const BUFFERS_EACH: usize = 2;

/// The result of checking a block that was read: the error, if it is wrong.
pub type Verdict = Result<(), (FailureKind, String)>;

/// A block that was read.
#[derive(Debug, Clone)]
pub struct Block {
    /// Its lane.
    pub lane: usize,
    /// Span of its read.
    pub span: Span,
    /// Bytes.
    pub length: usize,
    /// The content that it must have.
    pub expected: Expected,
    /// The number of its file among the worker's.
    pub file: u64,
}

/// Compares `bytes` with what the block must be; with what is to be put into files of it.
pub fn check(marks: &Marks, expected: &Expected, bytes: &[u8]) -> (Verdict, Option<Dump>) {
    let Err(wrong) = marks.check(bytes, expected) else {
        return (Ok(()), None);
    };
    let verdict = Err((FailureKind::Mismatch, wrong.to_string()));
    if wrong.right.is_empty() {
        return (verdict, None);
    }
    let at = wrong.offset.saturating_sub(expected.offset) as usize;
    let received = bytes.iter().skip(at).take(wrong.right.len());
    let dump = Dump {
        offset: wrong.offset,
        received: received.copied().collect(),
        expected: wrong.right,
    };
    (verdict, Some(dump))
}

struct Task {
    block: Block,
    buffer: AlignedBuffer,
}

/// A block, its buffer, and what is wrong with it.
struct Checked {
    task: Task,
    verdict: Verdict,
    dump: Option<Dump>,
}

struct Checker {
    tasks: Sender<Task>,
    checked: Receiver<Checked>,
    thread: JoinHandle<()>,
}

/// The threads that check for one worker.
pub struct Checkers {
    all: Vec<Checker>,
    spare: Vec<AlignedBuffer>,
    /// Threads that have the blocks not noted yet, in the order of the blocks.
    under_way: VecDeque<usize>,
    next: usize,
}

impl Checkers {
    /// Starts the requested number of threads, for blocks of up to `block` bytes.
    ///
    /// # Errors
    /// When the system has no memory or no thread left.
    pub fn new(verify: &Verify, block: usize, headers: &Marks) -> io::Result<Checkers> {
        let threads = verify.threads as usize;
        let buffers = (0..threads * BUFFERS_EACH).map(|_| AlignedBuffer::new(block));
        let spare = buffers.collect::<Result<Vec<_>, _>>()?;
        let all = (0..threads).map(|_| Checker::new(headers.clone(), verify.cpus.clone()));
        Ok(Checkers {
            all: all.collect::<io::Result<_>>()?,
            under_way: VecDeque::with_capacity(spare.len()),
            spare,
            next: 0,
        })
    }

    /// Returns true if the next block can be handed over at once.
    fn has_room(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Gives away the block that lies in the buffer of the `slot` of `engine`, which gets
    /// another one; an engine that has several, or does not part with it, is left a copy.
    /// Whether that was done: there may be no room, or a thread may have ended.
    pub fn give(&mut self, engine: &mut dyn Engine, slot: Option<usize>, block: &Block) -> bool {
        let Some(mut buffer) = self.spare.pop() else {
            return false;
        };
        let exchanged = slot.is_none() && engine.exchange(&mut buffer);
        if !exchanged {
            let read = &engine.buffer(slot.unwrap_or(0))[..block.length];
            buffer[..block.length].copy_from_slice(read);
        }
        let task = Task {
            block: block.clone(),
            buffer,
        };
        let who = self.next;
        self.next = (self.next + 1) % self.all.len();
        match self.all[who].tasks.send(task) {
            Ok(()) => {
                self.under_way.push_back(who);
                true
            }
            Err(back) => {
                let Task { mut buffer, .. } = back.0;
                if exchanged {
                    engine.exchange(&mut buffer);
                }
                self.spare.push(buffer);
                false
            }
        }
    }

    /// The next block in their order that is checked; with `wait` waits for
    /// it. `None` where there is none (yet).
    pub fn take(&mut self, wait: bool) -> Option<(Block, Verdict, Option<Dump>)> {
        let who = *self.under_way.front()?;
        let wait = wait || !self.has_room();
        let checked = &self.all[who].checked;
        let taken = match wait {
            true => checked.recv().map_err(|_| TryRecvError::Disconnected),
            false => checked.try_recv(),
        };
        match taken {
            Ok(Checked {
                task,
                verdict,
                dump,
            }) => {
                self.under_way.pop_front();
                self.spare.push(task.buffer);
                Some((task.block, verdict, dump))
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                unreachable!("a checking thread ends with its channel only")
            }
        }
    }
}

impl Drop for Checkers {
    fn drop(&mut self) {
        for Checker { tasks, thread, .. } in self.all.drain(..) {
            drop(tasks);
            // It ends with its channel; a panic in it was printed.
            let _ = thread.join();
        }
    }
}

impl Checker {
    fn new(headers: Marks, cpus: Vec<usize>) -> io::Result<Checker> {
        let (tasks, inbox) = channel::<Task>();
        let (outbox, checked) = channel();
        let thread = std::thread::Builder::new()
            .name("checker".to_owned())
            .spawn(move || {
                // Processors that are not there were refused before.
                if !cpus.is_empty() {
                    let _ = stay_on_any(&cpus);
                }
                while let Ok(task) = inbox.recv() {
                    let Task { block, buffer } = &task;
                    let (verdict, dump) = check(&headers, &block.expected, &buffer[..block.length]);
                    let checked = Checked {
                        task,
                        verdict,
                        dump,
                    };
                    if outbox.send(checked).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Checker {
            tasks,
            checked,
            thread,
        })
    }
}
