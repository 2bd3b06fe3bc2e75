//! The runs of `rbench quick`.

use std::path::PathBuf;

use rbench_plan::quick;
use rbench_plan::series::Cell;
use rbench_report::schema::SeriesKey;
use rbench_sys::caches::may_drop_caches;

use super::Course;
use crate::console::complain;

/// Big files, then small ones.
pub struct Quick {
    keys: Vec<SeriesKey>,
    cells: Vec<Cell>,
    dir: Option<PathBuf>,
}

impl Quick {
    /// Drops caches only if permitted; otherwise prints a note, unless `quiet`.
    pub fn new(asked: &quick::Quick, quiet: bool) -> Result<Quick, String> {
        let permitted = may_drop_caches();
        if asked.drop_caches && !permitted && !quiet {
            complain("the kernel's caches are not dropped before reading: that needs root");
        }
        let quick = quick::Quick {
            drop_caches: asked.drop_caches && permitted,
            ..asked.clone()
        };
        let key = |(name, value): (&str, String)| SeriesKey {
            name: name.to_owned(),
            values: vec![value],
        };
        Ok(Quick {
            keys: quick.settings().into_iter().map(key).collect(),
            cells: quick.cells().map_err(|e| e.to_string())?,
            dir: quick.dir,
        })
    }
}

impl Course for Quick {
    fn kind(&self) -> &'static str {
        "quick"
    }

    fn keys(&self) -> Vec<SeriesKey> {
        self.keys.clone()
    }

    fn known(&self) -> Vec<Cell> {
        self.cells.clone()
    }

    fn parent(&self) -> Option<PathBuf> {
        self.dir.clone()
    }
}
