//! The content of a file that rbench wrote: a run, or a series of runs.

use crate::journal::{self, ReadError};
use crate::schema::{Run, RunResult, SeriesResult};
use crate::series;
use crate::table::distinct;

/// The content of a result file or journal.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// One run.
    Run(Box<RunResult>),
    /// Several runs of one launch.
    Series(Box<SeriesResult>),
}

impl Document {
    /// Reads a finished file or a journal.
    ///
    /// # Errors Words that follow the name of the file.
    pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
        if series::journal::is_series(bytes) {
            let series = series::journal::read(bytes)?;
            return Ok(Document::Series(Box::new(series)));
        }
        Ok(Document::Run(Box::new(journal::read_any(bytes)?)))
    }

    /// Its launch.
    pub fn run(&self) -> &Run {
        match self {
            Document::Run(run) => &run.run,
            Document::Series(series) => &series.run,
        }
    }

    /// Its runs; a series' cells have the values of its keys as labels.
    pub fn runs(&self) -> Vec<RunResult> {
        match self {
            Document::Run(run) => vec![run.as_ref().clone()],
            Document::Series(series) => {
                let cells = series.cells.iter();
                let labelled = cells.filter_map(|cell| {
                    let mut result = cell.result.clone()?;
                    let values = cell.values.iter().map(|v| (v.key.clone(), v.value.clone()));
                    result.run.labels.extend(values);
                    Some(result)
                });
                labelled.collect()
            }
        }
    }

    pub(crate) fn runs_mut(&mut self) -> Vec<&mut RunResult> {
        match self {
            Document::Run(run) => vec![run],
            Document::Series(series) => {
                let cells = series.cells.iter_mut();
                cells.filter_map(|cell| cell.result.as_mut()).collect()
            }
        }
    }

    /// Names and labels of the operations of all runs, each once.
    pub fn rows(&self) -> Vec<(&str, &str)> {
        let runs: Vec<&RunResult> = match self {
            Document::Run(run) => vec![run],
            Document::Series(series) => series.results().collect(),
        };
        let phases = runs.into_iter().flat_map(|run| &run.phases);
        distinct(phases.map(|phase| (phase.name.as_str(), phase.label.as_str())))
    }

    /// Keeps the operations with these names.
    pub fn keep(&mut self, names: &[String]) {
        for run in self.runs_mut() {
            run.phases.retain(|phase| names.contains(&phase.name));
            run.summary.retain(|row| names.contains(&row.name));
            let kept = |row: &String| names.contains(row);
            run.marks
                .retain(|mark| mark.rows.is_empty() || mark.rows.iter().any(kept));
        }
    }
}
