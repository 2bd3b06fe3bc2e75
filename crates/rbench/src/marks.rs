//! Marks of a run (`--event`, SIGUSR1) at rank 0. They are written to the journal as soon as they
//! are set, and to the result.

use std::cell::RefCell;
use std::rc::Rc;

use rbench_exec::marks::{Ended, Mark, MarkObserver, MarkedPhase};
use rbench_report::journal;
use rbench_report::schema::{MarkCommand, MarkResult, Warning};

use crate::files::SharedFile;

/// Code of the warning about a command that failed or was terminated.
const FAILED: &str = "event-failed";
/// Code of the warning about a command that was never started.
const NOT_RUN: &str = "event-not-run";

/// The marks that were set, in order.
#[derive(Default)]
pub struct MarkList(RefCell<Vec<MarkResult>>);

impl MarkList {
    /// All marks until now.
    pub fn all(&self) -> Vec<MarkResult> {
        self.0.borrow().clone()
    }

    /// Warnings about the marks' commands.
    pub fn warnings(&self) -> Vec<Warning> {
        let marks = self.0.borrow();
        let of = |mark: &MarkResult| {
            let why = failure(mark.command.as_ref()?)?;
            Some(Warning::new(
                FAILED,
                format!("The command of --event {} {why}.", mark.name),
            ))
        };
        marks.iter().filter_map(of).collect()
    }
}

/// Warnings about commands that were never started.
pub fn not_run(names: &[String]) -> Vec<Warning> {
    let of = |name: &String| {
        let why = "the last phase ended before its time";
        Warning::new(
            NOT_RUN,
            format!("The command of --event {name} was not run: {why}."),
        )
    };
    names.iter().map(of).collect()
}

/// The reason why a command failed, if it has ended.
fn failure(command: &MarkCommand) -> Option<String> {
    let MarkCommand {
        took_s,
        status,
        signal,
        said,
        cut_off,
        ..
    } = command;
    took_s.as_ref()?;
    let why = match (cut_off, status, signal) {
        (true, ..) => "was still running at the end of the run and was ended".to_owned(),
        (false, Some(0), _) => return None,
        (false, Some(status), _) => format!("failed with exit status {status}"),
        (false, None, Some(signal)) => format!("was ended by signal {signal}"),
        (false, None, None) => "could not be started".to_owned(),
    };
    Some(match said {
        Some(said) => format!("{why}: {}", said.trim_end_matches('.')),
        None => why,
    })
}

/// Records marks while the run goes on.
pub struct MarkRecorder {
    /// The list of marks.
    pub list: Rc<MarkList>,
    /// The result file that is being written.
    pub file: SharedFile,
}

impl MarkRecorder {
    fn note(&self, mark: &MarkResult) {
        if let Some(file) = self.file.borrow_mut().as_mut() {
            // The result holds all marks at the end, and reports an error if it cannot be written
            // either.
            let _ = file.note(&journal::mark_line(mark));
        }
    }
}

impl MarkObserver for MarkRecorder {
    fn set(&self, mark: Mark) {
        let Mark {
            number: _,
            name,
            at,
            phase,
            command,
        } = mark;
        let t_s = phase
            .as_ref()
            .map(|phase| at.since(phase.start).as_secs_f64());
        let (iteration, rows) = match phase {
            Some(MarkedPhase {
                iteration, rows, ..
            }) => (Some(iteration), rows),
            None => (None, Vec::new()),
        };
        let mark = MarkResult {
            name,
            at: format!("{:.3}", jiff::Timestamp::now()),
            iteration,
            rows,
            t_s,
            command: command.map(|command| MarkCommand {
                command,
                ..MarkCommand::default()
            }),
        };
        self.note(&mark);
        self.list.0.borrow_mut().push(mark);
    }

    fn ended(&self, number: u32, ended: Ended) {
        let Ended { end, cut_off } = ended;
        let mut marks = self.list.0.borrow_mut();
        let Some(mark) = marks.get_mut(number as usize) else {
            return;
        };
        if let Some(command) = &mut mark.command {
            command.took_s = Some(end.took.as_secs_f64());
            command.status = end.status;
            command.signal = end.signal;
            command.said = end.said;
            command.cut_off = cut_off;
        }
        self.note(mark);
    }
}
