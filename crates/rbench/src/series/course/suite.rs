//! The runs of `rbench suite`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rbench_cli::series::{self, Series, is_file};
use rbench_cli::{Invocation, is_series};
use rbench_plan::series::{Cell, Selection, product};
use rbench_plan::suite::{self, Step};
use rbench_report::schema::{LeftOut, SeriesKey, SeriesStep};

use super::{Around, Course};
use crate::embedded::Embedded;
use crate::embedded::WITHOUT_TESTFS;
use crate::target::room_for;

/// Value of `{dir}` in a dry run without a directory.
pub(super) const ANY_DIR: &str = "DIR";

/// The steps of a suite, one after the other.
pub struct Suite {
    /// Name and version.
    title: String,
    /// The file, or the name of a built-in one.
    source: String,
    scale: f64,
    dry_run: bool,
    dir: Option<String>,
    /// The built-in file system, if used; unmounted on drop.
    embedded: Option<Embedded>,
    steps: Vec<SeriesStep>,
    cells: Vec<Cell>,
    /// The line of each cell in the suite's file.
    lines: Vec<usize>,
    left_out: Vec<LeftOut>,
}

/// The runs of a step.
struct Expanded {
    kind: &'static str,
    keys: Vec<SeriesKey>,
    cells: Vec<Cell>,
}

impl Suite {
    /// Reads the suite and expands its steps. Without a directory, mounts the built-in file system
    /// if all ranks are on one host.
    pub fn new(
        asked: &series::Suite,
        series: &Series,
        around: Around<'_>,
    ) -> Result<Suite, String> {
        let text = text_of(&asked.name, around)?;
        let placed = |e: rbench_plan::document::DocumentError| format!("{} {e}", asked.name);
        let read = suite::read(stem(&asked.name), &text).map_err(placed)?;
        let mut new = Suite {
            title: read.title_of_results(),
            source: asked.name.clone(),
            scale: asked.scale,
            dry_run: asked.dry_run,
            dir: dir_of(asked, around)?,
            embedded: None,
            steps: Vec::new(),
            cells: Vec::new(),
            lines: Vec::new(),
            left_out: Vec::new(),
        };
        let one_host = around.host_of.iter().all(|host| *host == 0);
        if new.dir.is_none() && one_host && read.uses_dir() {
            match asked.dry_run {
                true => new.dir = Some(ANY_DIR.to_owned()),
                false => new.mount()?,
            }
        }
        for step in &read.steps {
            let words = step
                .words(new.dir.as_deref(), asked.scale)
                .map_err(placed)?;
            let expanded = expand(step, &words, series, around).map_err(|e| {
                format!("{} line {}: step {}: {e}", asked.name, step.line, step.name)
            })?;
            new.add(step, expanded, around);
        }
        match new.cells.is_empty() {
            true => Err(format!(
                "{}: none of its steps can run with the launched hosts and ranks",
                asked.name
            )),
            false => Ok(new),
        }
    }

    fn mount(&mut self) -> Result<(), String> {
        let embedded = mount()?;
        self.dir = Some(embedded.path().display().to_string());
        self.embedded = Some(embedded);
        Ok(())
    }

    /// Adds a step's cells, except those that need more than the launched ranks.
    fn add(&mut self, step: &Step, expanded: Expanded, around: Around<'_>) {
        let first = self.cells.len() as u32;
        for mut cell in expanded.cells {
            cell.name = match cell.name.as_str() {
                "" => step.name.clone(),
                name => format!("{}: {name}", step.name),
            };
            cell.selection = within(cell.selection, step.selection);
            match cell.selection.members(around.host_of) {
                Ok(_) => {
                    self.cells.push(cell);
                    self.lines.push(step.line);
                }
                Err(why) => self.left_out.push(LeftOut {
                    name: cell.name,
                    why: why.to_string(),
                }),
            }
        }
        self.steps.push(SeriesStep {
            name: step.name.clone(),
            kind: expanded.kind.to_owned(),
            keys: expanded.keys,
            first,
            cells: self.cells.len() as u32 - first,
        });
    }
}

/// Mounts the built-in file system with the maximum of memory.
pub(super) fn mount() -> Result<Embedded, String> {
    match cfg!(feature = "testfs") {
        true => Embedded::mount(room_for(0)?),
        false => Err(format!("{WITHOUT_TESTFS}: give a directory with --dir")),
    }
}

/// The cell's selection, completed by its step's.
fn within(cell: Selection, step: Selection) -> Selection {
    Selection {
        hosts: cell.hosts.or(step.hosts),
        ranks_per_host: cell.ranks_per_host.or(step.ranks_per_host),
        ranks: cell.ranks.or(step.ranks),
    }
}

/// The runs of a step: all combinations of its values, or the cells of a series.
fn expand(
    step: &Step,
    words: &[OsString],
    series: &Series,
    around: Around<'_>,
) -> Result<Expanded, String> {
    if !words.first().is_some_and(|word| is_series(word)) {
        let key = |over: &rbench_plan::series::Over| SeriesKey {
            name: over.key.clone(),
            values: over.values.clone(),
        };
        return Ok(Expanded {
            kind: "sweep",
            keys: step.over.iter().map(key).collect(),
            cells: product(&step.over, words).map_err(|e| e.to_string())?,
        });
    }
    if !step.over.is_empty() {
        return Err("a series has its own values: leave out 'over'".to_owned());
    }
    let program = around.launch.argv.iter().take(1).cloned();
    let argv: Vec<OsString> = program.chain(words.iter().cloned()).collect();
    let inner = match rbench_cli::parse(&argv, None) {
        Ok(Invocation::Series(mut inner)) => {
            inner.options.quiet = series.options.quiet;
            *inner
        }
        Ok(_) => return Err("this command is not a run".to_owned()),
        Err(stop) => return Err(stop.sentence().to_owned()),
    };
    if matches!(inner.course, series::Course::Suite(_)) {
        return Err("a suite cannot be a step of another one".to_owned());
    }
    let course = super::of(&inner, around)?;
    if course.planned().is_none() {
        return Err(format!(
            "{} cannot be a step: its runs depend on earlier results",
            course.kind()
        ));
    }
    Ok(Expanded {
        kind: course.kind(),
        keys: course.keys(),
        cells: course.known(),
    })
}

fn text_of(name: &str, around: Around<'_>) -> Result<String, String> {
    if !is_file(name) {
        let text = suite::built_in(name);
        return text
            .map(str::to_owned)
            .ok_or_else(|| format!("there is no suite '{name}'"));
    }
    let path = Path::new(&around.launch.cwd).join(name);
    std::fs::read_to_string(&path).map_err(|e| format!("{name} cannot be read: {e}"))
}

/// A file's name without directory and extension.
fn stem(name: &str) -> &str {
    let path = Path::new(name);
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or(name)
}

/// The tested directory as an absolute path.
fn dir_of(asked: &series::Suite, around: Around<'_>) -> Result<Option<String>, String> {
    match asked.dir.as_ref().or(asked.env_dir.as_ref()) {
        Some(dir) => absolute(dir, around).map(Some),
        None => Ok(None),
    }
}

/// A directory as an absolute path in UTF-8.
pub(super) fn absolute(dir: &Path, around: Around<'_>) -> Result<String, String> {
    let path: PathBuf = Path::new(&around.launch.cwd)
        .join(dir)
        .components()
        .collect();
    let text = path.into_os_string().into_string();
    text.map_err(|_| format!("--dir {}: a suite needs a name in UTF-8", dir.display()))
}

impl Course for Suite {
    fn kind(&self) -> &'static str {
        "suite"
    }

    fn suite(&self) -> Option<String> {
        Some(self.title.clone())
    }

    fn scale(&self) -> f64 {
        self.scale
    }

    fn dir(&self) -> Option<(String, bool)> {
        let dir = self.dir.clone()?;
        Some((dir, self.embedded.is_some()))
    }

    fn steps(&self) -> Vec<SeriesStep> {
        self.steps.clone()
    }

    fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.clone()
    }

    fn place(&self, index: u32) -> Option<String> {
        let line = self.lines.get(index as usize)?;
        Some(format!("{} line {line}", self.source))
    }

    fn dry_run(&self) -> bool {
        self.dry_run
    }

    fn known(&self) -> Vec<Cell> {
        self.cells.clone()
    }

    fn parent(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(PathBuf::from)
    }
}
