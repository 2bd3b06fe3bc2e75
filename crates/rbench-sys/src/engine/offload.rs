//! Requests made by other threads (`io_submit_mode=offload`): one thread per slot, each
//! with one request at a time, for any engine.
//!
//! Each slot has its own engine, which moves to a thread with its request, and back with
//! its completion.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use rbench_core::Nanos;

use super::contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, Transfer,
};
use crate::files::Advice;
use crate::limits::{Usage, thread_usage};

/// Work of a thread: a request with its engine.
struct Work {
    slot: usize,
    engine: Box<dyn Engine>,
    request: Request,
}

/// Result of a thread's work.
struct Done {
    slot: usize,
    engine: Box<dyn Engine>,
    result: Result<usize, Errno>,
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Work>,
    /// True if there is no more work.
    closed: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    given: Condvar,
    done: Mutex<Vec<Done>>,
    ended: Condvar,
    /// Resources used by each thread.
    used: Vec<Mutex<Usage>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A queue is consistent between any two of its calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Performs requests until there are no more.
    fn serve(&self, number: usize) {
        let mut room = Vec::with_capacity(1);
        while let Some(work) = self.take() {
            let Work {
                slot,
                mut engine,
                request,
            } = work;
            let result = engine.perform(request, &mut room).and_then(|ended| ended);
            lock(&self.done).push(Done {
                slot,
                engine,
                result,
            });
            self.ended.notify_one();
            if let Some(used) = self.used.get(number) {
                *lock(used) = thread_usage();
            }
        }
    }

    fn take(&self) -> Option<Work> {
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(work) = waiting.work.pop_front() {
                return Some(work);
            }
            if waiting.closed {
                return None;
            }
            let woken = self.given.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A change that an engine in use by a thread gets when it is back.
#[derive(Clone, Copy)]
enum News {
    Attach(RawFd, Option<Advice>),
    Detach(RawFd),
}

struct Slot {
    /// The engine; `None` while its request is in flight.
    engine: Option<Box<dyn Engine>>,
    news: Vec<News>,
}

struct Offload {
    slots: Vec<Slot>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    under_way: usize,
    counts: EngineCounts,
}

/// Creates an engine with a slot for each of `configs`, which have one slot each. A
/// thread for each makes its requests with its own engine.
///
/// # Errors
/// The engine's errors, and `EAGAIN` if no more threads are possible. `EINVAL` for an
/// engine that moves the position of files, or that works on names.
pub fn make(info: &EngineInfo, configs: Vec<EngineConfig>) -> Result<Box<dyn Engine>, Errno> {
    if info.moves_position || info.of_names {
        return Err(Errno::EINVAL);
    }
    let depth = configs.len();
    let engine = |config| {
        let config = EngineConfig {
            goes_round: true,
            ..config
        };
        Ok(Slot {
            engine: Some((info.make)(config)?),
            news: Vec::new(),
        })
    };
    let slots: Vec<Slot> = configs
        .into_iter()
        .map(engine)
        .collect::<Result<_, Errno>>()?;
    let mut offload = Offload {
        slots,
        shared: Arc::new(Shared {
            waiting: Mutex::new(Waiting {
                work: VecDeque::with_capacity(depth),
                closed: false,
            }),
            done: Mutex::new(Vec::with_capacity(depth)),
            used: (0..depth).map(|_| Mutex::default()).collect(),
            ..Shared::default()
        }),
        threads: Vec::with_capacity(depth),
        under_way: 0,
        counts: EngineCounts::default(),
    };
    for number in 0..depth {
        let shared = Arc::clone(&offload.shared);
        let thread = std::thread::Builder::new().name(format!("submit-{number}"));
        let thread = thread.spawn(move || shared.serve(number));
        offload.threads.push(thread.map_err(|_| Errno::EAGAIN)?);
    }
    Ok(Box::new(offload))
}

impl Offload {
    /// Collects completions until there are `least`, or all in flight, at the latest at
    /// `until`.
    fn collect(&mut self, least: usize, until: Option<Instant>, into: &mut Vec<Completion>) {
        let least = least.min(self.under_way);
        let shared = Arc::clone(&self.shared);
        let mut done = lock(&shared.done);
        while done.len() < least {
            done = match until.map(|at| at.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    let woken = shared.ended.wait_timeout(done, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = shared.ended.wait(done);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        if self.under_way > 0 {
            self.counts.completes[EngineCounts::bucket(done.len())] += 1;
        }
        self.under_way -= done.len();
        for done in done.drain(..) {
            let Done {
                slot,
                mut engine,
                result,
            } = done;
            let slot_state = &mut self.slots[slot];
            for news in slot_state.news.drain(..) {
                match news {
                    News::Attach(fd, advice) => engine.attach(fd, advice),
                    News::Detach(fd) => engine.detach(fd),
                }
            }
            slot_state.engine = Some(engine);
            into.push(Completion { slot, result });
        }
    }
}

impl Engine for Offload {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        match &mut self.slots[slot].engine {
            Some(engine) => engine.buffer(0),
            None => panic!("the request of slot {slot} is under way"),
        }
    }

    fn attach(&mut self, fd: RawFd, advice: Option<Advice>) {
        for slot in &mut self.slots {
            match &mut slot.engine {
                Some(engine) => engine.attach(fd, advice),
                None => slot.news.push(News::Attach(fd, advice)),
            }
        }
    }

    fn detach(&mut self, fd: RawFd) {
        for slot in &mut self.slots {
            match &mut slot.engine {
                Some(engine) => engine.detach(fd),
                None => {
                    // An attach that it has not received is cancelled.
                    let of = |news: &News| matches!(news, News::Attach(of, _) if *of == fd);
                    match slot.news.iter().position(of) {
                        Some(at) => drop(slot.news.remove(at)),
                        None => slot.news.push(News::Detach(fd)),
                    }
                }
            }
        }
    }

    fn submit(&mut self, slot: usize, request: Request) {
        let Some(engine) = self.slots[slot].engine.take() else {
            panic!("the request of slot {slot} is under way");
        };
        self.under_way += 1;
        self.counts.submits[EngineCounts::bucket(1)] += 1;
        lock(&self.shared.waiting).work.push_back(Work {
            slot,
            engine,
            request,
        });
        self.shared.given.notify_one();
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.collect(1, None, done);
        Ok(())
    }

    fn wait_many(&mut self, least: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.collect(least, None, done);
        Ok(())
    }

    fn wait_for(&mut self, done: &mut Vec<Completion>, timeout: Nanos) -> Result<(), Errno> {
        let until = Instant::now().checked_add(Duration::from(timeout));
        self.collect(1, until, done);
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.collect(0, None, done);
        Ok(())
    }

    fn usage(&self) -> Usage {
        let used = self.shared.used.iter().map(|used| *lock(used));
        used.fold(Usage::default(), Usage::with)
    }

    fn counts(&self) -> EngineCounts {
        let mut counts = self.counts;
        for engine in self.slots.iter().filter_map(|slot| slot.engine.as_ref()) {
            let mut again = engine.counts().again;
            for transfer in [
                Transfer::Read,
                Transfer::Write,
                Transfer::Trim,
                Transfer::Fsync,
            ] {
                counts.again.of(transfer).add(*again.of(transfer));
            }
        }
        counts
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        lock(&self.shared.waiting).closed = true;
        self.shared.given.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}
