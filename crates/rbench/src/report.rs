//! The data that a run returns, and the interface to receive it.

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

/// Takes rank 0's report of a run that has ended or was stopped, in place of standard output. Returns
/// the exit code.
pub type Sink = Rc<dyn Fn(&mut Report) -> u8>;

/// The interval log, once it exists.
pub type SharedLog = Rc<RefCell<Option<IntervalLog>>>;

/// The data that a run returns.
pub struct Report {
    /// The result until now.
    pub result: RunResult,
    /// The result file that is being written.
    pub file: SharedFile,
    /// The interval log that is being written.
    pub log: SharedLog,
    /// The front end of the command line.
    pub front: Box<dyn FrontEnd>,
    /// Outcomes of jobs, by group, job and worker.
    pub jobs: Vec<JobOutcome>,
    /// Message about a failed write.
    pub trouble: Option<String>,
    /// The directory that was kept.
    pub kept: Option<PathBuf>,
    /// At rank 0: true once there is a result to report, if only of a layout that failed.
    pub begun: bool,
    /// The reason why the run ended early; its measurements are still reported.
    pub broken: Option<ExecError>,
    /// The exit code of publishing, once done.
    pub published: Option<u8>,
    /// The series that takes the result, if the run is a cell of one.
    pub cell: Option<Sink>,
    /// True if a signal ended the run: launchers kill its ranks soon.
    pub signalled: bool,
}

impl Report {
    /// Returns the message about failed writes, once.
    pub fn take_trouble(&mut self) -> Option<String> {
        let of_log = self.log.borrow_mut().as_mut().and_then(|log| log.trouble());
        let mut all = self.trouble.take();
        of_log
            .into_iter()
            .for_each(|message| note_trouble(&mut all, Err(message)));
        all
    }

    /// Discards the outputs of a run without a finished phase. A journal with intervals stays, and
    /// its path is printed.
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
