//! Which runs a series has: known from the start, or each decided from the
//! results of those before.

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

/// Which runs a series has, and in which order. Rank 0 asks; what it answers
/// depends on the results so far alone, so that a series can be resumed.
pub trait Course {
    /// The name of the command.
    fn kind(&self) -> &'static str;

    /// The suite's name and version.
    fn suite(&self) -> Option<String> {
        None
    }

    /// The part of the full size.
    fn scale(&self) -> f64 {
        1.0
    }

    /// The directory that all cells work in, and whether it is the built-in file
    /// system.
    fn dir(&self) -> Option<(String, bool)> {
        None
    }

    /// Of a suite: its steps.
    fn steps(&self) -> Vec<SeriesStep> {
        Vec::new()
    }

    /// Cells that cannot be run on what was launched.
    fn left_out(&self) -> Vec<LeftOut> {
        Vec::new()
    }

    /// Where a cell stands in a file.
    fn place(&self, _index: u32) -> Option<String> {
        None
    }

    /// Whether the cells are only to be printed.
    fn dry_run(&self) -> bool {
        false
    }

    /// The longest that a cell is supposed to take where its plan does not tell, s.
    fn most_s(&self) -> Option<f64> {
        None
    }

    /// What is varied.
    fn keys(&self) -> Vec<SeriesKey> {
        Vec::new()
    }

    /// The cells that are known before the first has run.
    fn known(&self) -> Vec<Cell>;

    /// Cells that have to be possible before the first one runs: those that are
    /// known, and one of each form that may follow.
    fn samples(&self) -> Vec<Cell> {
        self.known()
    }

    /// Of `knee`: what has to hold, and nothing found yet.
    fn knee(&self) -> Option<KneeResult> {
        None
    }

    /// Of `io500`: its phases, and nothing measured yet.
    fn io500(&self) -> Option<Io500Result> {
        None
    }

    /// The directory that results go to if `--out` names no file; it is made.
    fn out_dir(&self) -> Option<PathBuf> {
        None
    }

    /// What is said before anything runs, a line each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes what all cells need.
    fn start(&self) -> Result<(), String> {
        Ok(())
    }

    /// How many of the first cells of an earlier launch may stay, those that are complete.
    fn keeps(&self, _earlier: &SeriesResult) -> u32 {
        u32::MAX
    }

    /// Makes what the cell needs, untimed.
    fn begin(&self, _index: u32) -> Result<(), String> {
        Ok(())
    }

    /// A cell has ended; what is said of it while the series goes on.
    fn ended(&self, _index: u32, _so_far: &SeriesResult) -> Option<String> {
        None
    }

    /// There is no next cell: removes what [`Course::start`] and [`Course::begin`] have made,
    /// unless the series is `resumable` and not done. `None`: nothing was run.
    fn over(&self, _so_far: Option<&SeriesResult>, _resumable: bool) {}

    /// How many cells there will be; `None` where that depends on the results.
    fn planned(&self) -> Option<u32> {
        Some(self.known().len() as u32)
    }

    /// The next cell and its number, after those that are complete or failed;
    /// `None`: there is none.
    fn next(&self, so_far: &SeriesResult) -> Option<(u32, Cell)> {
        let all = (0..).zip(self.known());
        let tried = |index: u32| so_far.cells.iter().any(|cell| cell.index == index);
        all.into_iter().find(|(index, _)| !tried(*index))
    }
}

/// What a course may depend on besides its command line.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// How it was launched.
    pub launch: &'a Launch,
    /// The host of each launched rank.
    pub host_of: &'a [u32],
    /// With `--resume`: what an earlier launch left.
    pub earlier: Option<&'a SeriesResult>,
}

/// The course that a command line asks for.
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

/// Every combination of some values.
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

/// NNBench's operations at more and more workers.
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
