//! Calls that do not return, as seen from outside: a thread does not announce its next call, and the
//! kernel reports the call that it waits for.

use std::fmt;
use std::time::Duration;

use rbench_sys::waiting::Waiting;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// Calls longer than this are reported to people.
pub const LONG: Duration = Duration::from_secs(10);

/// A thread at its last check.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// A number that grows with its progress.
    pub progress: u64,
    /// Its call, and the duration of it by then.
    pub call: Option<Waiting>,
    span: Duration,
    reported: bool,
}

/// A call that has not returned for long.
#[derive(Debug, Clone)]
pub struct Overdue {
    /// The call.
    pub call: Waiting,
    /// For how long.
    pub span: Duration,
    /// Set if that is longer than allowed.
    pub over: bool,
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.call.call)?;
        if let Some(path) = &self.call.path {
            write!(f, " {}", path.display())?;
        }
        let digits = usize::from(self.over);
        let seconds = self.span.as_secs_f64();
        write!(f, " has not returned for {seconds:.digits$} s")
    }
}

impl Observed {
    /// Records its current call, `gap` after the last check. Only the time in one call without
    /// progress counts: sleeping does not, nor do successive calls.
    pub fn look(&mut self, progress: u64, call: Option<Waiting>, gap: Duration) {
        if call.is_some() && (progress, &call) == (self.progress, &self.call) {
            self.span += gap;
        } else {
            (self.progress, self.call) = (progress, call);
            (self.span, self.reported) = (Duration::ZERO, false);
        }
    }

    /// Returns its call if it is over `limit`, or is to be reported to people, which is once.
    pub fn overdue(&mut self, limit: Option<Duration>) -> Option<Overdue> {
        let call = self.call.clone()?;
        let span = self.span;
        let over = limit.is_some_and(|limit| span >= limit);
        let news = span >= LONG && !std::mem::replace(&mut self.reported, true);
        (over || news).then_some(Overdue { call, span, over })
    }
}

/// The moments of checks.
#[derive(Debug)]
pub struct Checks {
    last: Instant,
    every: Duration,
}

impl Checks {
    /// Starts checks that notice calls longer than `limit` soon.
    pub fn start(limit: Option<Duration>) -> Checks {
        let least = limit.map_or(LONG, |limit| limit.min(LONG));
        Checks {
            last: Instant::now(),
            every: (least / 4).clamp(Duration::from_millis(10), Duration::from_secs(1)),
        }
    }

    /// Returns their timer.
    pub fn timer(&self) -> Interval {
        let mut timer = interval(self.every);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        timer.reset();
        timer
    }

    /// Returns the time since the last check. One that is very late means that the process was
    /// suspended, and its threads with it.
    pub fn gap(&mut self) -> Duration {
        let now = Instant::now();
        let gap = now.saturating_duration_since(std::mem::replace(&mut self.last, now));
        gap.min(2 * self.every)
    }
}

#[cfg(test)]
mod tests {
    use rbench_sys::waiting::waiting;

    use super::*;

    #[test]
    fn only_the_time_in_one_call_counts() {
        let tick = Duration::from_secs(1);
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let (sender, receiver) = std::sync::mpsc::channel();
        let reads = std::thread::spawn(move || {
            let number = rbench_sys::waiting::this_thread();
            sender.send(number).expect("received");
            std::io::Read::read(&mut reader, &mut [0])
        });
        let thread = receiver.recv().expect("sent");
        let call = loop {
            if let Some(call) = waiting(thread) {
                break Some(call);
            }
            std::thread::yield_now();
        };
        let mut observed = Observed::default();
        let mut spans = |looks: &[(u64, bool)]| -> Vec<u64> {
            let look = |(progress, is_in): &(u64, bool)| {
                observed.look(*progress, call.clone().filter(|_| *is_in), tick);
                observed.span.as_secs()
            };
            looks.iter().map(look).collect()
        };
        // From the first check on; not asleep; not with progress.
        let one = [(5, true), (5, true), (5, true)];
        assert_eq!(spans(&one), [0, 1, 2]);
        let asleep = [(5, false), (5, false), (5, true), (5, true)];
        assert_eq!(spans(&asleep), [0, 0, 0, 1]);
        let done = [(6, true), (7, true), (7, true)];
        assert_eq!(spans(&done), [0, 0, 1]);

        // It is reported once, and over its limit each time.
        let mut texts = |looks: u32, limit: Option<u64>| {
            let look = |_| {
                observed.look(7, call.clone(), tick);
                let overdue = observed.overdue(limit.map(Duration::from_secs));
                overdue.map(|overdue| (overdue.span.as_secs(), overdue.over))
            };
            (0..looks).filter_map(look).collect::<Vec<_>>()
        };
        assert_eq!(texts(12, None), [(10, false)]);
        assert_eq!(texts(2, Some(14)), [(14, true), (15, true)]);
        drop(writer);
        assert_eq!(reads.join().expect("ended").ok(), Some(0));
    }
}
