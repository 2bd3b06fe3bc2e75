//! Progress on rank 0's standard error: a bar on a terminal, otherwise a line every few seconds
//! with the same figures. Viewers receive all of it.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rbench_cli::Progress as How;
use rbench_core::Nanos;
use rbench_core::plain::plain;
use rbench_core::units::{clock, human_bandwidth, human_count, human_rate};
use rbench_exec::{Progress, Show};
use rbench_report::schema::LiveState;

use crate::console::{complain, to_stderr};
use crate::live::{self, Feed};

/// Interval between two lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Time from the start of a phase or step to its first line.
const FIRST_LINE: Duration = Duration::from_millis(900);

/// Shows progress as a bar, as lines or not at all.
pub struct Display {
    bar: Option<ProgressBar>,
    lines: bool,
    feed: Feed,
    /// Messages that only the view has shown; printed after it.
    unsaid: RefCell<Vec<String>>,
    label: RefCell<String>,
    /// True while a step without a count is running.
    step: Cell<bool>,
    begun: Cell<Instant>,
    /// Time of the last line in the current phase or step.
    last_line: Cell<Option<Instant>>,
    /// Message about files that stay if the run is killed before it has removed them.
    at_risk: RefCell<Option<String>>,
}

impl Display {
    /// A display; silent at ranks other than 0. Forwards everything to `feed`.
    pub fn new(how: How, root: bool, feed: Feed) -> Display {
        let terminal = std::io::stderr().is_terminal();
        let bar = (root && how == How::Auto && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
            bar.set_style(style(false));
            bar
        });
        let lines = root && (how == How::Plain || how == How::Auto && !terminal);
        Display {
            bar,
            lines,
            feed,
            unsaid: RefCell::default(),
            label: RefCell::new("Start".to_owned()),
            step: Cell::new(true),
            begun: Cell::new(Instant::now()),
            last_line: Cell::new(None),
            at_risk: RefCell::default(),
        }
    }

    fn begin(&self, label: &str, step: bool) {
        label.clone_into(&mut self.label.borrow_mut());
        self.step.set(step);
        self.begun.set(Instant::now());
        self.last_line.set(None);
        self.feed.show();
        let label = label.to_owned();
        self.feed.tell(move |live| live.begin(&label, !step));
    }

    /// Sets the message to print on a stop that a launcher may cut short.
    pub fn at_risk(&self, text: String) {
        *self.at_risk.borrow_mut() = Some(text);
    }

    /// Removes the bar or the view.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.feed.hide();
        self.unsaid.take().iter().for_each(|text| complain(text));
    }

    /// Lines also replace a view that the user has left.
    fn has_lines(&self) -> bool {
        self.lines || self.feed.is_live() && !self.feed.has_view()
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| complain(text)),
            None if self.feed.has_view() => self.unsaid.borrow_mut().push(text.to_owned()),
            None => complain(text),
        }
    }
}

fn style(total: bool) -> ProgressStyle {
    let template = match total {
        true => "{prefix} {bar:12} {percent:>3}% {wide_msg}",
        false => "{prefix} {spinner} {wide_msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Rounds to whole seconds, half up.
fn seconds(time: Nanos) -> u64 {
    time.as_secs_f64().round() as u64
}

/// Progress of a phase in one line; the last parts may be cut off on a narrow terminal.
fn figures(progress: &Progress) -> String {
    let mut line = human_count(progress.items);
    if let Some(total) = progress.total {
        // The total may be too low an estimate.
        let _ = write!(line, " of {}", human_count(total.max(progress.items)));
    }
    if progress.failed > 0 {
        let _ = write!(line, ", {} failed", human_count(progress.failed));
    }
    let _ = write!(line, ", {}/s", human_rate(progress.rate));
    if progress.bytes > 0 {
        let _ = write!(line, ", {}", human_bandwidth(progress.bandwidth));
    }
    if let Some(left) = progress.left {
        let _ = write!(line, ", {} left", clock(seconds(left)));
    }
    if let Some(elapsed) = progress.elapsed {
        let _ = write!(line, ", {} elapsed", clock(seconds(elapsed)));
    }
    line
}

impl Show for Display {
    fn step(&self, text: &str) {
        self.begin(text, true);
        if let Some(bar) = &self.bar {
            bar.set_style(style(false));
            bar.set_prefix(text.to_owned());
            bar.set_message("");
        }
    }

    fn phase(&self, label: &str, total: Option<u64>) {
        self.begin(label, false);
        if let Some(bar) = &self.bar {
            // Figures of the last phase would be drawn next to this phase's label.
            bar.set_message("");
            bar.set_prefix(label.to_owned());
            bar.set_style(style(total.is_some()));
            bar.reset();
        }
    }

    fn stopping(&self) {
        self.feed.tell(|live| live.turn(LiveState::Stopping));
        if let Some(text) = self.at_risk.take() {
            self.trouble(&text);
        }
    }

    fn failure(&self, text: &str) {
        let note = text.to_owned();
        self.feed.tell(move |live| live.note(note, true));
        self.say(text);
    }

    fn trouble(&self, text: &str) {
        let note = text.to_owned();
        self.feed.tell(move |live| live.note(note, false));
        self.say(text);
    }

    fn progress(&self, progress: Progress) {
        let so_far = live::progress(&progress);
        self.feed.tell(move |live| live.progress(so_far));
        let since = self.begun.get().elapsed();
        let counts = !self.step.get() && progress.elapsed.is_some();
        let figures = match counts {
            true => figures(&progress),
            // Nothing is counted yet: the workers are preparing.
            false => format!("{} elapsed", clock(since.as_secs())),
        };
        if let Some(bar) = &self.bar {
            if let Some(total) = progress.total.filter(|_| counts) {
                bar.set_style(style(true));
                bar.set_length(total.max(progress.items + progress.failed));
            }
            bar.set_position(progress.items + progress.failed);
            bar.set_message(figures.clone());
        }
        let due = match self.last_line.get() {
            Some(last) => last.elapsed() >= LINE_EVERY,
            None => since >= FIRST_LINE,
        };
        if self.has_lines() && due {
            self.last_line.set(Some(Instant::now()));
            to_stderr(&format!("{}: {figures}\n", plain(&self.label.borrow())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_is_known() {
        let progress = Progress {
            items: 12_000,
            failed: 3,
            bytes: 12_000 << 20,
            total: Some(100_000),
            elapsed: Some(Nanos(2_400_000_000)),
            rate: 5000.4,
            bandwidth: (1_u64 << 30) as f64,
            left: Some(Nanos(17_600_000_000)),
            backlog: Some(7),
        };
        assert_eq!(
            figures(&progress),
            "12,000 of 100,000, 3 failed, 5,000/s, 1.00 GiB/s, 18 s left, 2 s elapsed"
        );
        let bare = Progress {
            items: 7,
            elapsed: Some(Nanos(600_000_000)),
            rate: 11.6,
            ..Progress::default()
        };
        assert_eq!(figures(&bare), "7, 11.6/s, 1 s elapsed");
        let beyond = Progress {
            total: Some(5),
            ..bare
        };
        assert_eq!(figures(&beyond), "7 of 7, 11.6/s, 1 s elapsed");
    }
}
