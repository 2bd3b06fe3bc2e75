//! Late replies: threads sleep until a reply is due and then send it. So any number
//! of requests can be late at once, while the service threads continue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rbench_core::{Clock, MonotonicClock, Nanos};

/// Time before an instant at which a thread stops sleeping and spins: about the time
/// that waking up takes.
const SPIN: Nanos = Nanos(30_000);

/// Work that runs when its time has come.
type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Lane {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Tasks by the instants at which they are due; of equal ones in the order of their numbers.
    tasks: BTreeMap<(Nanos, u64), Task>,
    /// The number of the next task.
    next: u64,
    closed: bool,
}

/// Runs tasks at given instants of the monotonic clock, never earlier.
pub(crate) struct DelayQueue {
    lanes: Vec<Arc<Lane>>,
    threads: Vec<JoinHandle<()>>,
    next: AtomicUsize,
}

impl DelayQueue {
    /// Creates a queue with `threads` threads.
    ///
    /// # Errors
    /// Fails if a thread cannot be started.
    pub(crate) fn new(threads: usize) -> std::io::Result<DelayQueue> {
        let mut queue = DelayQueue {
            lanes: Vec::new(),
            threads: Vec::new(),
            next: AtomicUsize::new(0),
        };
        for i in 0..threads.max(1) {
            let lane = Arc::new(Lane::default());
            queue.lanes.push(Arc::clone(&lane));
            let thread = std::thread::Builder::new()
                .name(format!("testfs-delay-{i}"))
                .spawn(move || lane.run())?;
            queue.threads.push(thread);
        }
        Ok(queue)
    }

    /// Runs `task` at the instant `due`.
    pub(crate) fn push(&self, due: Nanos, task: impl FnOnce() + Send + 'static) {
        let lane = &self.lanes[self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len()];
        let mut state = lane.state.lock();
        let first = state.tasks.first_key_value();
        let is_first = first.is_none_or(|(first, _)| due < first.0);
        let number = state.next;
        state.next += 1;
        state.tasks.insert((due, number), Box::new(task));
        drop(state);
        if is_first {
            lane.changed.notify_one();
        }
    }
}

impl Drop for DelayQueue {
    /// Ends the threads; tasks that are not yet due are dropped.
    fn drop(&mut self) {
        for lane in &self.lanes {
            lane.state.lock().closed = true;
            lane.changed.notify_one();
        }
        for thread in self.threads.drain(..) {
            // A task that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

impl Lane {
    fn run(&self) {
        // Otherwise the kernel may wake this thread 50 us late. If it refuses,
        // replies are a little later.
        let _ = nix::sys::prctl::set_timerslack(1);
        while let Some((due, task)) = self.next_task() {
            while MonotonicClock.now() < due {
                std::hint::spin_loop();
            }
            task();
        }
    }

    /// Sleeps until shortly before the first task is due, and takes it. `None` if the
    /// queue is closed.
    fn next_task(&self) -> Option<(Nanos, Task)> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            let Some((&(due, _), _)) = state.tasks.first_key_value() else {
                self.changed.wait(&mut state);
                continue;
            };
            let sleep = due.since(MonotonicClock.now()).since(SPIN);
            if sleep == Nanos(0) {
                return state.tasks.pop_first().map(|(_, task)| (due, task));
            }
            self.changed.wait_for(&mut state, Duration::from(sleep));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A timeout that even a busy machine does not reach.
    const PATIENCE: Duration = Duration::from_secs(300);

    fn after(delay: Nanos) -> Nanos {
        Nanos(MonotonicClock.now().0 + delay.0)
    }

    /// Delays of the tasks.
    const DELAYS: [Nanos; 4] = [
        Nanos(40_000_000),
        Nanos(5_000_000),
        Nanos(60_000_000),
        Nanos(20_000_000),
    ];

    #[test]
    fn tasks_run_in_the_order_of_their_times_and_never_early() {
        let queue = DelayQueue::new(1).expect("threads");
        let (pushed, all_pushed) = mpsc::channel::<()>();
        let (done, ran) = mpsc::channel();
        // The thread is busy until all tasks are queued.
        queue.push(Nanos(0), move || {
            let _ = all_pushed.recv();
        });
        let start = MonotonicClock.now();
        for delay in DELAYS {
            let (done, due) = (done.clone(), Nanos(start.0 + delay.0));
            queue.push(due, move || {
                let early = MonotonicClock.now() < due;
                // The receiver waits for as many as were pushed.
                let _ = done.send((delay, early));
            });
        }
        drop(pushed);
        let ran: Vec<(Nanos, bool)> = DELAYS.iter().flat_map(|_| ran.recv()).collect();
        let order = [1, 3, 0, 2].map(|i| (DELAYS[i], false));
        assert_eq!(ran, order);
    }

    #[test]
    fn tasks_that_are_due_later_hold_up_no_other() {
        let queue = DelayQueue::new(2).expect("threads");
        for _ in 0..1000 {
            queue.push(after(Nanos(3_600_000_000_000)), || ());
        }
        let (done, ran) = mpsc::channel();
        for number in 0..2 {
            let done = done.clone();
            queue.push(after(Nanos(1)), move || done.send(number).expect("awaited"));
        }
        let mut ran = [(); 2].map(|()| ran.recv_timeout(PATIENCE).expect("it runs"));
        ran.sort_unstable();
        assert_eq!(ran, [0, 1], "one for each thread");
    }

    #[test]
    fn tasks_that_are_not_due_at_the_end_are_dropped() {
        let queue = DelayQueue::new(1).expect("threads");
        let token = Arc::new(());
        let kept = Arc::clone(&token);
        queue.push(after(Nanos(3_600_000_000_000)), move || drop(kept));
        drop(queue);
        assert_eq!(Arc::strong_count(&token), 1);
    }

    mod timing {
        use super::*;

        #[test]
        fn a_thousand_delays_of_20_ms_run_side_by_side() {
            let queue = DelayQueue::new(2).expect("threads");
            let (done, ran) = mpsc::channel();
            let start = MonotonicClock.now();
            for _ in 0..1000 {
                let done = done.clone();
                queue.push(after(Nanos(20_000_000)), move || {
                    done.send(()).expect("awaited")
                });
            }
            assert_eq!(ran.iter().take(1000).count(), 1000);
            // In sequence, two threads would take 10 s.
            assert!(MonotonicClock.now().since(start) < Nanos(8_000_000_000));
        }
    }
}
