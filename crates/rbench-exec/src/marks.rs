//! Marks of a run, at rank 0: named moments, because a command of the user's was started then, or a
//! signal came.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rbench_core::Nanos;
use rbench_core::event::{Event, EventCause, SIGNAL_NAME};
use rbench_sys::background::{Background, CommandEnd};
use tokio::time::{Instant, sleep, sleep_until};

use crate::inbox::Inbox;
use crate::intervals::IntervalRow;

/// Time for a command to end after it was asked to.
const LAST_BREATH: Duration = Duration::from_secs(2);

/// Interval of checks for ended commands.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Its number among the marks of the run.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its time, on rank 0's clock.
    pub at: Nanos,
    /// The phase that ran.
    pub phase: Option<MarkedPhase>,
    /// The command that was started.
    pub command: Option<String>,
}

/// A running phase that is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedPhase {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// Names of its rows.
    pub rows: Vec<String>,
    /// Its common start, on rank 0's clock.
    pub start: Nanos,
}

/// End of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its end: by itself, or forced.
    pub end: CommandEnd,
    /// Set if it was still running at the end of the run and was ended.
    pub cut_off: bool,
}

/// Receiver of marks while the run goes on.
pub trait MarkObserver {
    /// Called when a mark was set.
    fn set(&self, mark: Mark);
    /// Called when the command of the mark with this number has ended.
    fn ended(&self, number: u32, ended: Ended);
}

/// A command that waits for its time.
struct Waiting {
    name: String,
    at: Nanos,
    command: String,
}

/// An event.
pub enum Happening {
    /// A command is due.
    Due,
    /// A command has ended.
    Ended(u32, CommandEnd),
}

/// The marks of a run; nothing at other ranks than 0.
#[derive(Default)]
pub struct Marks {
    observer: RefCell<Option<Rc<dyn MarkObserver>>>,
    /// The earliest first.
    waiting: RefCell<Vec<Waiting>>,
    /// `None`: [`SIGNAL_NAME`].
    signal_name: RefCell<Option<String>>,
    signals: Cell<u32>,
    set: Cell<u32>,
    /// The common start of the first reported phase.
    begun: Cell<Option<Instant>>,
    phase: RefCell<Option<MarkedPhase>>,
    running: RefCell<Vec<Background>>,
    /// Started commands whose end is not yet known.
    open: Cell<u32>,
    /// Set when commands that end from now on count as cut off.
    closing: Cell<bool>,
    ends: Inbox<(u32, CommandEnd)>,
}

impl Marks {
    /// Sets the events that may happen, and the receiver of marks.
    pub fn observe(&self, events: &[Event], observer: Rc<dyn MarkObserver>) {
        *self.observer.borrow_mut() = Some(observer);
        let mut waiting = self.waiting.borrow_mut();
        for Event { name, cause } in events {
            match cause {
                EventCause::Signal => drop(self.signal_name.replace(Some(name.clone()))),
                EventCause::Command { at, command } => waiting.push(Waiting {
                    name: name.clone(),
                    at: *at,
                    command: command.clone(),
                }),
            }
        }
        waiting.sort_by_key(|event| event.at);
    }

    /// Records that a phase with these rows starts at the instant `here`, which is `at` on rank 0's
    /// clock; one without rows is not reported.
    pub fn started(&self, rows: &[IntervalRow], at: Nanos, here: Instant) {
        let Some(first) = rows.first() else {
            return;
        };
        if self.begun.get().is_none() {
            self.begun.set(Some(here));
        }
        *self.phase.borrow_mut() = Some(MarkedPhase {
            iteration: first.iteration,
            rows: rows.iter().map(|row| row.name.clone()).collect(),
            start: at,
        });
    }

    /// Records the end of the phase.
    pub fn left(&self) {
        *self.phase.borrow_mut() = None;
    }

    /// Returns the time to start the first of the waiting commands.
    fn first_due(&self) -> Option<Instant> {
        let at = self.waiting.borrow().first()?.at;
        self.begun.get()?.checked_add(at.into())
    }

    /// Resolves with the next event.
    pub async fn next(&self) -> Happening {
        let due = async {
            match self.first_due() {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some((number, end)) = self.ends.next() => Happening::Ended(number, end),
            () = due => Happening::Due,
        }
    }

    /// Handles an event; `now` on rank 0's clock.
    pub fn take(&self, happening: Happening, now: Nanos) {
        match happening {
            Happening::Due => {
                let due = {
                    let mut waiting = self.waiting.borrow_mut();
                    (!waiting.is_empty()).then(|| waiting.remove(0))
                };
                if let Some(event) = due {
                    self.start(event, now);
                }
            }
            Happening::Ended(number, end) => self.has_ended(number, end),
        }
    }

    fn has_ended(&self, number: u32, end: CommandEnd) {
        self.open.set(self.open.get() - 1);
        let cut_off = self.closing.get();
        self.tell(|observer| observer.ended(number, Ended { end, cut_off }));
    }

    /// Handles the signal.
    pub fn signalled(&self, now: Nanos) {
        self.signals.set(self.signals.get() + 1);
        let name = self.signal_name.borrow();
        let name = name.as_deref().unwrap_or(SIGNAL_NAME);
        let name = format!("{name} {}", self.signals.get());
        self.mark(name, now, None);
    }

    fn start(&self, event: Waiting, now: Nanos) {
        let Waiting { name, command, .. } = event;
        let number = self.set.get();
        let ends = self.ends.sender();
        // The receiver may no longer exist.
        let when_ended = move |end| drop(ends.send((number, end)));
        let started = Background::start(&command, when_ended);
        self.mark(name, now, Some(command));
        self.open.set(self.open.get() + 1);
        match started {
            Ok(background) => self.running.borrow_mut().push(background),
            Err(error) => self.has_ended(
                number,
                CommandEnd {
                    took: Duration::ZERO,
                    status: None,
                    signal: None,
                    said: Some(error.to_string()),
                },
            ),
        }
    }

    fn mark(&self, name: String, at: Nanos, command: Option<String>) {
        let number = self.set.replace(self.set.get() + 1);
        let phase = self.phase.borrow().clone();
        let mark = Mark {
            number,
            name,
            at,
            phase: phase.filter(|phase| phase.start <= at),
            command,
        };
        self.tell(|observer| observer.set(mark));
    }

    fn tell(&self, of: impl FnOnce(&dyn MarkObserver)) {
        if let Some(observer) = self.observer.borrow().as_deref() {
            of(observer);
        }
    }

    /// Returns whether a started command has not ended.
    pub fn any_running(&self) -> bool {
        self.open.get() > 0
    }

    /// Returns the names of the commands that were not started.
    pub fn not_started(&self) -> Vec<String> {
        let waiting = self.waiting.borrow();
        waiting.iter().map(|event| event.name.clone()).collect()
    }

    /// Ends all processes that the commands have started and not detached: SIGTERM, and SIGKILL to
    /// the rest after 2 s.
    pub async fn end(&self) {
        // Commands that ended earlier did so by themselves.
        self.take_ends();
        self.closing.set(true);
        let left = self.running.take();
        left.iter().for_each(Background::ask_to_end);
        let patience = Instant::now() + LAST_BREATH;
        while left.iter().any(Background::has_processes) && Instant::now() < patience {
            sleep(LOOK_EVERY).await;
        }
        drop(left);
        // Threads report killed commands, unless they hang in the kernel.
        let patience = Instant::now() + LAST_BREATH;
        self.take_ends();
        while self.any_running() && Instant::now() < patience {
            sleep(LOOK_EVERY).await;
            self.take_ends();
        }
    }

    /// Takes the reported ends.
    fn take_ends(&self) {
        while let Some((number, end)) = self.ends.try_next() {
            self.has_ended(number, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Taken {
        set: RefCell<Vec<Mark>>,
        ended: RefCell<Vec<(u32, Ended)>>,
    }

    impl MarkObserver for Taken {
        fn set(&self, mark: Mark) {
            self.set.borrow_mut().push(mark);
        }

        fn ended(&self, number: u32, ended: Ended) {
            self.ended.borrow_mut().push((number, ended));
        }
    }

    fn marks(events: &[&str]) -> (Marks, Rc<Taken>) {
        let (marks, taken) = (Marks::default(), Rc::new(Taken::default()));
        let events = events.iter().map(|text| text.parse().expect("an event"));
        let events: Vec<Event> = events.collect();
        marks.observe(&events, Rc::clone(&taken) as Rc<dyn MarkObserver>);
        (marks, taken)
    }

    fn rows(iteration: u32, names: &[&str]) -> Vec<IntervalRow> {
        let row = |name: &&str| IntervalRow {
            iteration,
            name: (*name).to_owned(),
            label: String::new(),
            op: "read",
            open_loop: false,
            aside: false,
        };
        names.iter().map(row).collect()
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(test);
    }

    /// Handles events within a time.
    async fn attend(marks: &Marks, within: Duration) -> bool {
        match tokio::time::timeout(within, marks.next()).await {
            Ok(happening) => {
                marks.take(happening, Nanos(500));
                true
            }
            Err(_) => false,
        }
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(300);

    #[test]
    fn commands_start_at_their_times_after_the_first_reported_phase_has_begun() {
        run(async {
            let (marks, taken) = marks(&["late@3000s=true", "second@20ms=exit 4", "first@0=true"]);
            assert!(!attend(&marks, SHORT).await, "nothing has begun");
            marks.started(&rows(0, &[]), Nanos(1), Instant::now());
            assert!(!attend(&marks, SHORT).await, "it is not reported");
            marks.started(&rows(2, &["r", "w"]), Nanos(100), Instant::now());
            for _ in 0..4 {
                assert!(attend(&marks, LONG).await);
            }
            assert!(!attend(&marks, SHORT).await, "the third is for later");
            let names: Vec<String> = taken.set.borrow().iter().map(|m| m.name.clone()).collect();
            assert_eq!(names, ["first", "second"]);
            let second = taken.set.borrow()[1].clone();
            let phase = MarkedPhase {
                iteration: 2,
                rows: vec!["r".to_owned(), "w".to_owned()],
                start: Nanos(100),
            };
            assert_eq!((second.at, second.phase), (Nanos(500), Some(phase)));
            let ended = taken.ended.borrow();
            let of = |number: u32| ended.iter().find(|(n, _)| *n == number).expect("ended");
            assert_eq!(of(0).1.end.status, Some(0));
            assert_eq!(of(1).1.end.status, Some(4));
            assert_eq!(marks.not_started(), ["late"]);
        });
    }

    #[test]
    fn a_mark_belongs_to_the_phase_that_has_begun_and_not_ended() {
        let (marks, taken) = marks(&["stop=SIGUSR1"]);
        marks.signalled(Nanos(10));
        run(async { marks.started(&rows(0, &["r"]), Nanos(100), Instant::now()) });
        marks.signalled(Nanos(99));
        marks.signalled(Nanos(100));
        marks.left();
        marks.signalled(Nanos(101));
        let set = taken.set.borrow();
        let in_phase: Vec<bool> = set.iter().map(|mark| mark.phase.is_some()).collect();
        assert_eq!(in_phase, [false, false, true, false]);
        assert_eq!(set[2].name, "stop 3");
    }

    #[test]
    fn what_still_runs_at_the_end_is_cut_off() {
        run(async {
            let (marks, taken) = marks(&["hangs@0=sleep 1000", "done@0=true"]);
            marks.started(&rows(0, &["r"]), Nanos(100), Instant::now());
            for _ in 0..3 {
                assert!(attend(&marks, LONG).await);
            }
            assert!(marks.any_running());
            marks.end().await;
            assert!(!marks.any_running());
            let ended = taken.ended.borrow();
            let of = |number: u32| &ended.iter().find(|(n, _)| *n == number).expect("ended").1;
            assert_eq!((of(0).cut_off, of(0).end.signal), (true, Some(15)));
            assert_eq!((of(1).cut_off, of(1).end.status), (false, Some(0)));
        });
    }
}
