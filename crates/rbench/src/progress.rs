//! What rank 0 shows on standard error during a run: a bar on a terminal,
//! otherwise a line every few seconds.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use rbench_cli::Progress as How;
use rbench_core::units::{human_count, human_rate};
use rbench_exec::{Progress, Show};

use crate::complain;

/// Time between two lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress in one of the ways.
pub struct Display {
    bar: Option<ProgressBar>,
    lines: bool,
    label: RefCell<String>,
    begun: Cell<Instant>,
    last_line: Cell<Instant>,
    /// What is left behind if the run is ended before it has removed it.
    at_risk: RefCell<Option<String>>,
}

impl Display {
    /// A display; silent at ranks other than 0.
    pub fn new(how: How, root: bool) -> Display {
        let terminal = std::io::stderr().is_terminal();
        let bar = (root && how == How::Auto && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
            bar.set_style(style(false));
            bar
        });
        let lines = root && (how == How::Plain || how == How::Auto && !terminal);
        let now = Cell::new(Instant::now());
        Display {
            bar,
            lines,
            label: RefCell::default(),
            begun: now.clone(),
            last_line: now,
            at_risk: RefCell::default(),
        }
    }

    /// What to print on a stop that a launcher may cut short.
    pub fn at_risk(&self, text: String) {
        *self.at_risk.borrow_mut() = Some(text);
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(total: bool) -> ProgressStyle {
    let template = if total {
        "{msg:28} {bar:32} {percent:>3}% {pos}/{len}  {rate}  {elapsed}"
    } else {
        "{msg:28} {spinner} {pos}  {rate}  {elapsed}"
    };
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        // Writing to the bar's own line cannot fail.
        let _ = write!(out, "{}/s", human_rate(state.per_sec()));
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", rate)
}

impl Show for Display {
    fn step(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
    }

    fn phase(&self, label: &str, total: Option<u64>) {
        label.clone_into(&mut self.label.borrow_mut());
        self.begun.set(Instant::now());
        if let Some(bar) = &self.bar {
            bar.reset();
            bar.set_style(style(total.is_some()));
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
            bar.set_message(label.to_owned());
        }
    }

    fn stopping(&self) {
        if let Some(text) = self.at_risk.take() {
            self.trouble(&text);
        }
    }

    fn trouble(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| complain(text)),
            None => complain(text),
        }
    }

    fn progress(&self, progress: Progress) {
        if let Some(bar) = &self.bar {
            bar.set_position(progress.items);
        }
        if self.lines && self.last_line.get().elapsed() >= LINE_EVERY {
            self.last_line.set(Instant::now());
            let seconds = self.begun.get().elapsed().as_secs_f64();
            let total = progress
                .total
                .map_or(String::new(), |t| format!(" of {}", human_count(t)));
            let rate = human_rate(progress.items as f64 / seconds.max(1e-3));
            eprintln!(
                "{}: {}{total}, {rate}/s",
                self.label.borrow(),
                human_count(progress.items)
            );
        }
    }
}
