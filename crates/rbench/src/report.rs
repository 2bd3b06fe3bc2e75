//! What a run hands over at its end, and who may take it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use rbench_core::job::JobOutcome;
use rbench_exec::ExecError;
use rbench_report::RunResult;

use crate::console::complain;
use crate::files::{ResultFile, SharedFile};
use crate::front::FrontEnd;
use crate::hlog::IntervalLog;
use crate::trouble::note_trouble;

/// Takes the result of a run in place of standard output.
pub trait Sink {
    /// Takes what rank 0 has of a run that has ended or was stopped; the exit
    /// code.
    fn take(&self, report: &mut Report) -> u8;
}

/// The interval log, as soon as there is one.
pub type SharedLog = Rc<RefCell<Option<IntervalLog>>>;

/// What a run hands over at its end.
pub struct Report {
    /// The result so far.
    pub result: RunResult,
    /// The result file that is being made.
    pub file: SharedFile,
    /// The interval log that is being written.
    pub log: SharedLog,
    /// Whose command line it is.
    pub front: Box<dyn FrontEnd>,
    /// What jobs did: by group, job and worker.
    pub jobs: Vec<JobOutcome>,
    /// Something could not be written.
    pub trouble: Option<String>,
    /// The directory that was kept.
    pub kept: Option<PathBuf>,
    /// Why the run did not reach its end; what was measured is still reported.
    pub broken: Option<ExecError>,
    /// The exit code of publishing, once that has happened.
    pub published: Option<u8>,
    /// The series that takes the result, if the run is a cell of one.
    pub cell: Option<Rc<dyn Sink>>,
    /// A signal ended the run: launchers kill its ranks soon.
    pub signalled: bool,
}

impl Report {
    /// Why something could not be written, once.
    pub fn take_trouble(&mut self) -> Option<String> {
        let of_log = self.log.borrow_mut().as_mut().and_then(|log| log.trouble());
        let mut all = self.trouble.take();
        of_log
            .into_iter()
            .for_each(|message| note_trouble(&mut all, message));
        all
    }

    /// Gives up when no phase has ended. A journal with intervals of the first one
    /// stays, and is named.
    pub fn discard(&mut self) {
        self.front.discard();
        if let Some(log) = self.log.borrow_mut().take() {
            log.discard();
        }
        let file = self.file.borrow_mut().take();
        if let Some(journal) = file.and_then(ResultFile::give_up) {
            let journal = journal.display();
            complain(&format!(
                "the results of the first phase until then are in {journal}: rbench show {journal}"
            ));
        }
    }
}
