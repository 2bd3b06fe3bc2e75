//! Which runs a series has: known from the start, or each decided from the
//! results of those before.

use rbench_cli::series::{self, Series};
use rbench_plan::series::{Cell, product};
use rbench_report::schema::{KneeResult, SeriesKey, SeriesResult};

mod knee;

use knee::Knee;

mod quick;

use quick::Quick;

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

/// The course that a command line asks for, on so many ranks.
///
/// # Errors
/// A sentence that names key or option.
pub fn of(series: &Series, ranks: u32) -> Result<Box<dyn Course>, String> {
    match &series.course {
        series::Course::Sweep(sweep) => Ok(Box::new(Sweep::new(sweep)?)),
        series::Course::Nn(asked) => Ok(Box::new(Ladder {
            cells: asked.cells(ranks).map_err(|e| e.to_string())?,
        })),
        series::Course::Knee(knee) => Ok(Box::new(Knee::new(knee)?)),
        series::Course::Quick(quick) => Ok(Box::new(Quick::new(quick, series.quiet)?)),
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
