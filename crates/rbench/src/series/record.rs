//! The results of a series: in memory, in its journal, and at the end in its file and on standard
//! output.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rbench_cli::Format;
use rbench_cli::series::SeriesOptions;
use rbench_core::plain::plain;
use rbench_core::plain::shell_word;
use rbench_core::units::counted;
use rbench_plan::series::Cell;
use rbench_report::schema::{
    CellResult, CellValue, CheckResult, Launched, RunResult, SeriesKey, SeriesResult,
};
use rbench_report::series;
use rbench_report::series::journal;

use super::Course;
use crate::console::{complain, print, to_stderr};
use crate::exit::{FAILED, SUCCESS};
use crate::files::{OVERWRITE, Replace, ResultFile, named_after};
use crate::launch::Launch;
use crate::result::run;
use crate::show::view;

/// Maximum number of cells; a file to resume with more cells is invalid.
const CELLS_MAX: u32 = 1 << 20;

/// The results of a series until now.
pub struct Record {
    series: SeriesResult,
    out: Option<PathBuf>,
    file: Option<ResultFile>,
    format: Format,
    quiet: bool,
    /// Number of cells taken over from an earlier launch.
    resumed: u32,
    /// Start of the running cell.
    begun: Instant,
    published: bool,
}

impl Record {
    /// Starts an empty record, or continues the one of an earlier launch.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn begin(
        launch: &Launch,
        asked: &SeriesOptions,
        (course, check): (&dyn Course, Option<CheckResult>),
        (ranks, hosts): (u32, Vec<String>),
    ) -> Result<Record, String> {
        let outline = course.outline();
        let series = SeriesResult {
            run: run(launch, launch.seed, &asked.labels),
            ranks,
            hosts,
            embedded: outline.embedded.is_some(),
            launched: Some(Launched {
                cwd: launch.cwd.to_string_lossy().into_owned(),
                rbench_dir: (launch.env_dir.as_ref()).map(|dir| dir.to_string_lossy().into_owned()),
            }),
            planned: outline.planned(),
            check,
            ..outline.result.clone()
        };
        let out = match (asked.out.clone(), &outline.out_dir) {
            (None, Some(dir)) => Some(made(launch, dir)?.join(format!("{}.json", launch.run_id))),
            (out, _) => path_of(launch, out),
        };
        let mut record = Record {
            series,
            out,
            file: None,
            format: asked.format,
            quiet: asked.quiet,
            resumed: 0,
            begun: Instant::now(),
            published: false,
        };
        let replace = match asked.overwrite {
            true => Replace::Ours,
            false => Replace::Nothing(OVERWRITE),
        };
        record.open(asked.resume, replace, course)?;
        Ok(record)
    }

    fn open(&mut self, resume: bool, replace: Replace, course: &dyn Course) -> Result<(), String> {
        let Some(out) = self.out.clone() else {
            return Ok(());
        };
        if !resume {
            self.file = Some(ResultFile::begin(
                &out,
                &journal::header_line(&self.series),
                replace,
            )?);
            return Ok(());
        }
        let (earlier, beside) = read_earlier(&out)?;
        let named = |e: &dyn std::fmt::Display| format!("--resume {}: {e}", out.display());
        // A launch that died while resuming a series leaves both files.
        let ours = |bytes: &Vec<u8>| {
            let read = journal::is_series(bytes).then(|| journal::read(bytes).ok());
            read.flatten()
                .is_some_and(|read| same(&read, &self.series).is_ok())
        };
        if beside.is_some_and(|bytes| !ours(&bytes)) {
            return Err(named(
                &"it exists next to its journal and does not hold this series: move it away",
            ));
        }
        same(&earlier, &self.series).map_err(|e| named(&e))?;
        if let Some(cell) = earlier.cells.iter().find(|cell| cell.index >= CELLS_MAX) {
            let number = u64::from(cell.index) + 1;
            return Err(named(&format!("its cell number {number} is too high")));
        }
        // The stopped cell may have come after cells that failed.
        let last = earlier.cells.iter().map(|cell| cell.index + 1).max();
        let last = last.max(self.series.planned).unwrap_or_default();
        self.keep(earlier, course).map_err(|e| named(&e))?;
        let mut lines = journal::header_line(&self.series);
        for cell in &self.series.cells {
            lines.push_str(&journal::cell_line(cell));
        }
        self.file = Some(ResultFile::begin_again(&out, &lines)?);
        // The stopped cell is run again.
        for index in 0..=last {
            self.cell_file(index)
                .iter()
                .for_each(|file| ResultFile::forget(file));
        }
        Ok(())
    }

    /// Takes over complete cells of an earlier launch, as long as this launch would run the same
    /// cells.
    fn keep(&mut self, earlier: SeriesResult, course: &dyn Course) -> Result<(), String> {
        let known = &course.outline().cells;
        let keeps = course.keeps(&earlier);
        let kept = |cell: &CellResult| cell.is_complete() && cell.index < keeps;
        for cell in earlier.cells.into_iter().filter(kept) {
            let planned = match known.get(cell.index as usize) {
                Some(planned) => planned.clone(),
                // An adaptive course derives it from the earlier cells.
                None => match course.next(&self.series) {
                    Some((index, planned)) if index == cell.index => planned,
                    _ => break,
                },
            };
            let ran = cell.result.iter();
            let ran = ran.flat_map(|result| result.run.command.iter().skip(1));
            let planned = planned
                .words
                .iter()
                .map(|word| word.to_string_lossy().into_owned());
            // Each launch mounts the built-in file system at another path.
            let moved = cell.dir.clone().zip(self.series.dir.clone());
            let moved = moved.filter(|_| self.series.embedded);
            let here = |word: &String| match &moved {
                Some((then, now)) => word.replace(then.as_str(), now),
                None => word.clone(),
            };
            if !ran.map(here).eq(planned) {
                let number = cell.index + 1;
                return Err(format!(
                    "its cell {number} was a different run: {}",
                    cell.name
                ));
            }
            self.series.put(cell);
            self.resumed += 1;
        }
        Ok(())
    }

    /// Returns true if there is a file, so that the series can be resumed.
    pub fn has_file(&self) -> bool {
        self.out.is_some()
    }

    /// The results until now.
    pub fn series(&self) -> &SeriesResult {
        &self.series
    }

    /// A line that announces a cell.
    pub fn progress(&self, index: u32, cell: &Cell) -> String {
        let name = match cell.name.as_str() {
            "" => String::new(),
            name => format!(": {name}"),
        };
        match self.series.planned {
            Some(planned) => format!(
                "cell {} of {planned}{name}{}",
                index + 1,
                self.left(planned)
            ),
            None => format!("cell {}{name}", index + 1),
        }
    }

    /// The time left if the remaining cells take the mean time of the finished ones.
    fn left(&self, planned: u32) -> String {
        let done = self.series.cells.len() as u32;
        if done == 0 {
            return String::new();
        }
        let spent: f64 = self.series.cells.iter().map(|cell| cell.wall_s).sum();
        let left = spent / f64::from(done) * f64::from(planned.saturating_sub(done));
        format!(" (about {} left)", about(left))
    }

    /// Starts the clock of a cell.
    pub fn cell_begins(&mut self) {
        self.begun = Instant::now();
    }

    /// Base path of the journal of a cell while it runs.
    pub fn cell_file(&self, index: u32) -> Option<PathBuf> {
        let mut name = self.out.clone()?.into_os_string();
        name.push(format!(".cell-{}", index + 1));
        Some(name.into())
    }

    /// Takes the result of a cell. Returns true if it is stored safely.
    pub fn take(
        &mut self,
        index: u32,
        cell: &Cell,
        result: &RunResult,
        trouble: Option<String>,
    ) -> bool {
        let error = match (trouble, result.complete) {
            (Some(trouble), _) => Some(trouble),
            (None, true) => None,
            (None, false) => Some("it was interrupted".to_owned()),
        };
        self.put(index, cell, Some(result.clone()), error)
    }

    /// Records a cell that ended without a complete result.
    pub fn failed(&mut self, index: u32, cell: &Cell, error: Option<String>) {
        let so_far = self.series.cells.iter().find(|other| other.index == index);
        let result = so_far.and_then(|cell| cell.result.clone());
        if let Some(error) = &error {
            complain(&format!("{}: {error}", cell.name));
        }
        self.put(index, cell, result, error);
    }

    fn put(
        &mut self,
        index: u32,
        cell: &Cell,
        result: Option<RunResult>,
        error: Option<String>,
    ) -> bool {
        let value = |(key, value): &(String, String)| CellValue {
            key: key.clone(),
            value: value.clone(),
        };
        let cell = CellResult {
            index,
            name: cell.name.clone(),
            values: cell.values.iter().map(value).collect(),
            wall_s: self.begun.elapsed().as_secs_f64(),
            dir: self.series.dir.clone(),
            error,
            result,
        };
        let line = journal::cell_line(&cell);
        self.series.put(cell);
        match self.file.as_mut().map(|file| file.append(&line)) {
            Some(Err(message)) => {
                complain(&message);
                false
            }
            Some(Ok(())) => true,
            None => false,
        }
    }

    /// Writes file and report once, and returns the exit code. `ended`: no cell is left.
    pub fn publish(&mut self, ended: bool) -> u8 {
        if std::mem::replace(&mut self.published, true) {
            return SUCCESS;
        }
        let series = &mut self.series;
        series.run.finished = Some(format!("{:.3}", jiff::Timestamp::now()));
        let all = series
            .planned
            .is_none_or(|planned| series.cells.len() == planned as usize);
        series.complete = ended && all && series.cells.iter().all(CellResult::is_complete);
        let bad = |cell: &CellResult| cell.error.is_some() || cell.has_failures();
        let troubled = series.knee.as_ref().is_some_and(|k| k.trouble.is_some());
        series.complete &= !troubled;
        let mut code = match troubled || series.cells.iter().any(bad) {
            true => FAILED,
            false => SUCCESS,
        };
        if let Some(file) = self.file.take()
            && let Err(message) = file.finish(&series::render_json(series))
        {
            complain(&message);
            code = FAILED;
        }
        code = code.max(print(&match self.format {
            Format::Text => series::render(series, view()),
            Format::Json => series::render_json(series),
        }));
        if self.resumed > 0 && !self.quiet {
            let were = if self.resumed == 1 { "was" } else { "were" };
            let cells = counted(self.resumed.into(), "cell");
            to_stderr(&format!("resumed: {cells} {were} complete before\n"));
        }
        if let Some(out) = self.out.as_ref().filter(|_| !self.quiet) {
            let out = out.to_string_lossy();
            let out = plain(&out);
            to_stderr(&format!("result: {out}\n"));
            // A search that ended in trouble would end so again.
            if !series.complete && !troubled {
                let launched = match series.ranks {
                    1 => "",
                    _ => ", launched like this series",
                };
                let file = shell_word(&out);
                to_stderr(&format!("to continue{launched}: rbench --resume {file}\n"));
            }
        }
        code
    }
}

/// The directory for results, created if missing.
fn made(launch: &Launch, dir: &Path) -> Result<PathBuf, String> {
    let dir = Path::new(&launch.cwd).join(dir);
    std::fs::create_dir_all(&dir).map_err(|e| {
        format!(
            "the directory of results {} cannot be made: {e}",
            dir.display()
        )
    })?;
    Ok(dir)
}

/// Path of the file for `--out`.
fn path_of(launch: &Launch, out: Option<PathBuf>) -> Option<PathBuf> {
    out.map(|out| named_after(out, &launch.cwd, &launch.run_id))
        .map(|out| Path::new(&launch.cwd).join(out))
}

/// The series to resume, with `--resume`.
///
/// # Errors
/// One sentence that names the file.
pub fn earlier(launch: &Launch, asked: &SeriesOptions) -> Result<Option<SeriesResult>, String> {
    match path_of(launch, asked.out.clone()).filter(|_| asked.resume) {
        Some(out) => read_earlier(&out).map(|(earlier, _)| Some(earlier)),
        None => Ok(None),
    }
}

/// Reads an earlier launch's record, and the content of `out` if there is also a journal.
pub(super) fn read_earlier(out: &Path) -> Result<(SeriesResult, Option<Vec<u8>>), String> {
    let (content, beside) = ResultFile::earlier(out)?;
    let named = |e: &dyn std::fmt::Display| format!("--resume {}: {e}", out.display());
    if !journal::is_series(&content) {
        return Err(named(&"it does not hold a series"));
    }
    let earlier = journal::read(&content).map_err(|e| named(&e))?;
    Ok((earlier, beside))
}

/// Checks that an earlier series is the requested one.
fn same(earlier: &SeriesResult, asked: &SeriesResult) -> Result<(), String> {
    let differs = |what: &str, then: &str, now: &str| {
        let series = format!("it holds a series with different {what}");
        Err(match (then, now) {
            ("", "") => series,
            (then, now) => format!("{series}: {then}, not {now}"),
        })
    };
    let number = |value: u32| value.to_string();
    match () {
        () if earlier.kind != asked.kind || earlier.suite != asked.suite => Err(format!(
            "it holds a series of {}",
            earlier.suite.as_ref().unwrap_or(&earlier.kind)
        )),
        () if earlier.keys != asked.keys => {
            differs("values", &keys(&earlier.keys), &keys(&asked.keys))
        }
        () if !same_search(earlier, asked) => differs("objective or limits", "", ""),
        () if earlier.scale != asked.scale => differs(
            "--scale",
            &earlier.scale.to_string(),
            &asked.scale.to_string(),
        ),
        () if earlier.embedded != asked.embedded
            || (earlier.dir != asked.dir && !asked.embedded) =>
        {
            differs("--dir", dir(earlier), dir(asked))
        }
        () if earlier.steps != asked.steps => differs("steps", "", ""),
        () if earlier.ranks != asked.ranks => {
            differs("ranks", &number(earlier.ranks), &number(asked.ranks))
        }
        () if earlier.hosts != asked.hosts => {
            differs("hosts", &earlier.hosts.join(","), &asked.hosts.join(","))
        }
        () if asked.dir.is_none() => launched_alike(earlier, asked),
        () => Ok(()),
    }
}

/// Keys with their values, as `--over` takes them.
fn keys(keys: &[SeriesKey]) -> String {
    let each = keys.iter();
    let each = each.map(|key| format!("{}={}", key.name, key.values.join(",")));
    each.collect::<Vec<String>>().join(" ")
}

/// The directory of all cells, for people.
fn dir(series: &SeriesResult) -> &str {
    match &series.dir {
        _ if series.embedded => "the built-in file system",
        Some(dir) => dir,
        None => "none",
    }
}

/// Checks that relative directories and RBENCH_DIR mean the same in both launches.
fn launched_alike(earlier: &SeriesResult, asked: &SeriesResult) -> Result<(), String> {
    match (&earlier.launched, &asked.launched) {
        (Some(then), Some(now)) if then.rbench_dir != now.rbench_dir => {
            let named = then.rbench_dir.as_deref();
            Err(match named {
                Some(dir) => format!("it was started with RBENCH_DIR={dir}"),
                None => "it was started without RBENCH_DIR".to_owned(),
            })
        }
        (Some(then), Some(now)) if then.cwd != now.cwd => {
            Err(format!("it was started in {}: resume it there", then.cwd))
        }
        _ => Ok(()),
    }
}

/// Returns true if both series search for the same objectives.
fn same_search(earlier: &SeriesResult, asked: &SeriesResult) -> bool {
    let bare = |series: &SeriesResult| {
        let mut knee = series.knee.clone()?;
        knee.update(&[]);
        Some(knee)
    };
    bare(earlier) == bare(asked)
}

/// Formats a time for people.
fn about(seconds: f64) -> String {
    let time = Duration::from_secs_f64(seconds.max(0.0)).as_secs();
    match time {
        0..120 => format!("{} s", time.max(1)),
        120..7200 => format!("{} min", time.div_ceil(60)),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
