//! The course of a series: its runs, known from the start or each derived from the results of the
//! earlier ones.

use std::path::PathBuf;

use rbench_cli::series::{self, Series};
use rbench_plan::series::{Cell, product};
use rbench_report::schema::{
    Io500Result, KneeResult, LeftOut, SeriesKey, SeriesResult, SeriesStep,
};

use crate::launch::Launch;

mod io500;
mod knee;
mod quick;
mod suite;

use io500::Io500;
use knee::Knee;
use quick::Quick;
use suite::Suite;

/// The runs of a series and their order, at rank 0. Answers depend only on the results until now,
/// so that a series can be resumed.
pub trait Course {
    /// The name of the command.
    fn kind(&self) -> &'static str;

    /// The suite's name and version.
    fn suite(&self) -> Option<String> {
        None
    }

    /// The scale relative to full size.
    fn scale(&self) -> f64 {
        1.0
    }

    /// The directory of all cells, and true if it is the built-in file system.
    fn dir(&self) -> Option<(String, bool)> {
        None
    }

    /// The steps of a suite.
    fn steps(&self) -> Vec<SeriesStep> {
        Vec::new()
    }

    /// Cells that cannot be run on the launched ranks.
    fn left_out(&self) -> Vec<LeftOut> {
        Vec::new()
    }

    /// The position of a cell in its file.
    fn place(&self, _index: u32) -> Option<String> {
        None
    }

    /// Returns true if the cells are only printed.
    fn dry_run(&self) -> bool {
        false
    }

    /// Longest expected duration of a cell whose plan gives none, s.
    fn most_s(&self) -> Option<f64> {
        None
    }

    /// The keys that vary.
    fn keys(&self) -> Vec<SeriesKey> {
        Vec::new()
    }

    /// The cells that are known before the first run.
    fn known(&self) -> Vec<Cell>;

    /// Cells to check before the first run: the known ones, and one of each form that may follow.
    fn samples(&self) -> Vec<Cell> {
        self.known()
    }

    /// The objectives of `knee`, without results.
    fn knee(&self) -> Option<KneeResult> {
        None
    }

    /// The phases of `io500`, without results.
    fn io500(&self) -> Option<Io500Result> {
        None
    }

    /// Directory for results if `--out` names no file; created on demand.
    fn out_dir(&self) -> Option<PathBuf> {
        None
    }

    /// Lines to print before the first run.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The expected duration, to print before the first run; `None`: unknown.
    fn beforehand(&self) -> Option<String> {
        None
    }

    /// The directory in which all cells work, if it must exist before the first.
    fn parent(&self) -> Option<PathBuf> {
        None
    }

    /// Creates what all cells need.
    fn start(&self) -> Result<(), String> {
        Ok(())
    }

    /// Number of leading cells that a resumed series may keep, if they are complete.
    fn keeps(&self, _earlier: &SeriesResult) -> u32 {
        u32::MAX
    }

    /// Prepares a cell, untimed.
    fn begin(&self, _index: u32) -> Result<(), String> {
        Ok(())
    }

    /// Called after a cell. Returns a line to print.
    fn ended(&self, _index: u32, _so_far: &SeriesResult) -> Option<String> {
        None
    }

    /// Called after the last cell. Removes what [`Course::start`] and [`Course::begin`] created,
    /// unless the series is `resumable` and incomplete. `None`: nothing was run.
    fn over(&self, _so_far: Option<&SeriesResult>, _resumable: bool) {}

    /// Number of cells; `None` if it depends on the results.
    fn planned(&self) -> Option<u32> {
        Some(self.known().len() as u32)
    }

    /// The next cell and its index, given the cells that are complete or failed; `None` at the end.
    fn next(&self, so_far: &SeriesResult) -> Option<(u32, Cell)> {
        let all = (0..).zip(self.known());
        let tried = |index: u32| so_far.cells.iter().any(|cell| cell.index == index);
        all.into_iter().find(|(index, _)| !tried(*index))
    }
}

/// Inputs of a course beside its command line.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The launch of the series.
    pub launch: &'a Launch,
    /// The host of each launched rank.
    pub host_of: &'a [u32],
    /// Results of an earlier launch, with `--resume`.
    pub earlier: Option<&'a SeriesResult>,
}

/// The course of a command line.
///
/// # Errors
/// A sentence that names key or option.
pub fn of(series: &Series, around: Around<'_>) -> Result<Box<dyn Course>, String> {
    match &series.course {
        series::Course::Sweep(sweep) => Ok(Box::new(Sweep::new(sweep)?)),
        series::Course::Nn(asked) => Ok(Box::new(Ladder {
            cells: asked
                .cells(around.host_of.len() as u32)
                .map_err(|e| e.to_string())?,
        })),
        series::Course::Knee(knee) => Ok(Box::new(Knee::new(knee)?)),
        series::Course::Quick(quick) => Ok(Box::new(Quick::new(quick, series.options.quiet)?)),
        series::Course::Suite(suite) if suite.name == rbench_plan::io500::NAME => {
            Ok(Box::new(Io500::new(suite, series, around)?))
        }
        series::Course::Suite(suite) => Ok(Box::new(Suite::new(suite, series, around)?)),
    }
}

/// All combinations of the values.
struct Sweep {
    keys: Vec<SeriesKey>,
    cells: Vec<Cell>,
}

impl Sweep {
    fn new(sweep: &series::Sweep) -> Result<Sweep, String> {
        let key = |over: &rbench_plan::series::Over| SeriesKey {
            name: over.key.clone(),
            values: over.values.clone(),
        };
        Ok(Sweep {
            keys: sweep.over.iter().map(key).collect(),
            cells: product(&sweep.over, &sweep.words).map_err(|e| e.to_string())?,
        })
    }
}

impl Course for Sweep {
    fn kind(&self) -> &'static str {
        "sweep"
    }

    fn keys(&self) -> Vec<SeriesKey> {
        self.keys.clone()
    }

    fn known(&self) -> Vec<Cell> {
        self.cells.clone()
    }
}

/// NNBench's operations with a growing number of workers.
struct Ladder {
    cells: Vec<Cell>,
}

impl Course for Ladder {
    fn kind(&self) -> &'static str {
        "nn"
    }

    fn keys(&self) -> Vec<SeriesKey> {
        let values = self.cells.iter().flat_map(|cell| &cell.values);
        vec![SeriesKey {
            name: "workers".to_owned(),
            values: values.map(|(_, value)| value.clone()).collect(),
        }]
    }

    fn known(&self) -> Vec<Cell> {
        self.cells.clone()
    }
}
