//! The course of a series: its runs, known from the start or each derived from the results of the
//! earlier ones.

use std::path::PathBuf;

use rbench_cli::series::{self, Series};
use rbench_plan::series::{Cell, Over, product};
use rbench_report::schema::{SERIES_SCHEMA, SeriesKey, SeriesResult};
use rbench_sys::caches::may_drop_caches;

use crate::console::complain;
use crate::embedded::Embedded;
use crate::launch::Launch;

mod io500;
mod knee;
mod suite;

use io500::Io500;
use knee::Knee;

/// Everything about a series that is known before its first run. By itself it is the course of a
/// series whose cells are all known.
#[derive(Default)]
pub struct Outline {
    /// The result without cells, as far as it is known.
    pub result: SeriesResult,
    /// The built-in file system, if that is the directory of all cells; unmounted on drop.
    pub embedded: Option<Embedded>,
    /// The known cells.
    pub cells: Vec<Cell>,
    /// The position of each known cell in its file.
    pub places: Vec<String>,
    /// A cell of each form that may follow the known ones; only checked. Empty: none follows.
    pub forms: Vec<Cell>,
    /// True if the cells are only printed.
    pub dry_run: bool,
    /// Longest expected duration of a cell whose plan gives none, s.
    pub most_s: Option<f64>,
    /// Lines to print before the first run.
    pub remarks: Vec<String>,
    /// The expected duration, to print before the first run; `None`: unknown.
    pub beforehand: Option<String>,
    /// The directory in which all cells work, if it must exist before the first.
    pub parent: Option<PathBuf>,
    /// Directory for results if `--out` names no file; created on demand.
    pub out_dir: Option<PathBuf>,
}

impl Outline {
    /// These cells at full size, and nothing else.
    fn new(kind: &str, keys: Vec<SeriesKey>, cells: Vec<Cell>) -> Outline {
        Outline {
            result: SeriesResult {
                schema: SERIES_SCHEMA.to_owned(),
                kind: kind.to_owned(),
                scale: 1.0,
                keys,
                ..SeriesResult::default()
            },
            cells,
            ..Outline::default()
        }
    }

    /// Number of cells; `None` if it depends on the results.
    pub fn planned(&self) -> Option<u32> {
        self.forms.is_empty().then_some(self.cells.len() as u32)
    }
}

/// The runs of a series and their order, at rank 0. Answers depend only on the results until now,
/// so that a series can be resumed.
pub trait Course {
    /// Everything that is known before the first run.
    fn outline(&self) -> &Outline;

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

    /// The next cell and its index, given the cells that are complete or failed; `None` at the end.
    fn next(&self, so_far: &SeriesResult) -> Option<(u32, Cell)> {
        let tried = |index: u32| so_far.cells.iter().any(|cell| cell.index == index);
        let mut all = (0..).zip(&self.outline().cells);
        let (index, cell) = all.find(|(index, _)| !tried(*index))?;
        Some((index, cell.clone()))
    }
}

impl Course for Outline {
    fn outline(&self) -> &Outline {
        self
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
    let quiet = series.options.quiet;
    Ok(match &series.course {
        series::Course::Sweep(sweep) => {
            let (keys, cells) = combinations(&sweep.over, &sweep.words)?;
            Box::new(Outline::new("sweep", keys, cells))
        }
        series::Course::Nn(asked) => Box::new(ladder(asked, around)?),
        series::Course::Knee(knee) => Box::new(Knee::new(knee)?),
        series::Course::Quick(asked) => Box::new(quick(asked, quiet)?),
        series::Course::Suite(suite) if suite.name == rbench_plan::io500::NAME => {
            Box::new(Io500::new(suite, quiet, around)?)
        }
        series::Course::Suite(suite) => Box::new(suite::outline(suite, quiet, around)?),
    })
}

/// All combinations of the values of `over`: the keys, and the cells of a workload.
fn combinations(
    over: &[Over],
    words: &[std::ffi::OsString],
) -> Result<(Vec<SeriesKey>, Vec<Cell>), String> {
    let key = |over: &Over| SeriesKey {
        name: over.key.clone(),
        values: over.values.clone(),
    };
    let cells = product(over, words).map_err(|e| e.to_string())?;
    Ok((over.iter().map(key).collect(), cells))
}

/// A setting as a key with one value.
fn setting((name, value): (impl Into<String>, String)) -> SeriesKey {
    SeriesKey {
        name: name.into(),
        values: vec![value],
    }
}

/// NNBench's operations with a growing number of workers.
fn ladder(asked: &rbench_plan::nn::Asked, around: Around<'_>) -> Result<Outline, String> {
    let cells = asked.cells(around.host_of.len() as u32);
    let cells = cells.map_err(|e| e.to_string())?;
    let values = cells.iter().flat_map(|cell| &cell.values);
    let workers = SeriesKey {
        name: "workers".to_owned(),
        values: values.map(|(_, value)| value.clone()).collect(),
    };
    Ok(Outline::new("nn", vec![workers], cells))
}

/// Big files, then small ones. Drops caches only if permitted; otherwise prints a note, unless
/// `quiet`.
fn quick(asked: &rbench_plan::quick::Quick, quiet: bool) -> Result<Outline, String> {
    let permitted = may_drop_caches();
    if asked.drop_caches && !permitted && !quiet {
        complain("the kernel's caches are not dropped before reading: that needs root");
    }
    let quick = rbench_plan::quick::Quick {
        drop_caches: asked.drop_caches && permitted,
        ..asked.clone()
    };
    let keys = quick.settings().into_iter().map(setting).collect();
    let cells = quick.cells().map_err(|e| e.to_string())?;
    Ok(Outline {
        parent: quick.dir,
        ..Outline::new("quick", keys, cells)
    })
}
