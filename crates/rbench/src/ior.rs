//! Inputs and outputs of `rbench ior` beyond the common path: file names, the stonewall's status
//! file, and the report.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rbench_cli::ior::{options_of, script_of};
use rbench_cli::{Format, IorSummary, IorView, Output};
use rbench_core::Rank;
use rbench_core::spread::RowLimits;
use rbench_plan::Spec;
use rbench_plan::spec::{Ior, Segments, Workload};
use rbench_report::ior::{self as render, View};
use rbench_report::{PhaseResult, RunResult, json, text};

use crate::console::print;
use crate::front::{Done, FrontEnd, Scope};
use crate::job_files;
use crate::launch::Launch;
use crate::operations::NewFile;
use crate::show;
use crate::status;

/// The option that names the status file.
const STATUS: &str = "stoneWallingStatusFile";

/// Makes the paths of IOR's options relative to rank 0's working directory.
pub fn anchor(spec: &mut Spec, cwd: &Path) {
    let Workload::Ior(options) = &mut spec.workload else {
        return;
    };
    let given = options.files().into_iter();
    // An empty name is refused later.
    let absolute = |file: PathBuf| match file.as_os_str().is_empty() {
        true => file,
        false => cwd.join(file),
    };
    options.files = given.map(absolute).collect();
    for file in [
        &mut options.status_file,
        &mut options.summary_file,
        &mut options.rank_file,
    ] {
        *file = file.take().map(|file| cwd.join(file));
    }
}

/// The front end of `rbench ior`: its options and output files.
pub struct Front {
    options: Ior,
    view: IorView,
    /// The files of the summary and of the ranks' table.
    summary: Option<NewFile>,
    ranks: Option<NewFile>,
}

impl Front {
    /// A front end with these options.
    pub fn new(options: Ior, view: IorView) -> Front {
        Front {
            options,
            view,
            summary: None,
            ranks: None,
        }
    }
}

impl FrontEnd for Front {
    fn shows_progress(&self) -> bool {
        false
    }

    fn status_to_read(&self) -> Option<(&'static str, PathBuf)> {
        Some((STATUS, self.options.status_to_read()?.clone()))
    }

    /// All ranks, if the table of ranks is written.
    fn rows(&self) -> RowLimits {
        let mut rows = RowLimits::default();
        if self.options.rank_file.is_some() {
            rows.ranks = usize::MAX;
        }
        rows
    }

    fn open(&mut self, _scope: Scope<'_>, rank: Rank) -> Result<(), String> {
        if rank != Rank(0) {
            return Ok(());
        }
        if let Some(path) = self.options.status_to_write() {
            status::check(STATUS, path)?;
        }
        let (summary, ranks) = (&self.options.summary_file, &self.options.rank_file);
        self.summary = NewFile::create("summaryFile", summary.as_ref())?;
        self.ranks = NewFile::create("saveRankPerformanceDetailsCSV", ranks.as_ref())?;
        Ok(())
    }

    fn discard(&mut self) {
        let files = self.summary.take().into_iter().chain(self.ranks.take());
        files.for_each(NewFile::discard);
    }

    /// Writes the stonewall's status, the summary and the table of ranks.
    fn finish(&mut self, result: &RunResult) -> Result<(), String> {
        let view = view(&self.options, &self.view);
        if let Some(file) = self.summary.take() {
            file.write(&summary(result, &view, self.view.summary_format))?;
        }
        if let Some(file) = self.ranks.take() {
            file.write(&render::csv_ranks(result, &view))?;
        }
        let written = result.phases.iter().rfind(|phase| phase.name == "write");
        match (self.options.status_to_write(), written) {
            (Some(path), Some(written)) => {
                status::write(STATUS, path, transfers_of_each(written, result.world.ranks))
            }
            _ => Ok(()),
        }
    }

    fn report(&self, _scope: Scope<'_>, output: &Output, done: Done<'_>) -> Result<u8, String> {
        let result = done.result;
        if output.format == Format::Json {
            return Ok(print(&json::render(result)));
        }
        let view = view(&self.options, &self.view);
        let form = match self.options.summary_file {
            Some(_) => IorSummary::Text,
            None => self.view.summary_format,
        };
        let mut out = summary(result, &view, form);
        if self.view.report {
            let _ = write!(out, "\n{}", text::render(result, show::view()));
        }
        Ok(print(&out))
    }
}

/// Formats the report.
fn summary(result: &RunResult, view: &View, form: IorSummary) -> String {
    match form {
        IorSummary::Text => render::render(result, view),
        IorSummary::Json => render::json_summary(result, view),
        IorSummary::Csv => render::csv_summary(result, view),
    }
}

/// The command line with the options of its script.
///
/// # Errors
/// A sentence that names the file.
pub fn with_script(launch: &Launch) -> Result<Vec<OsString>, String> {
    let mut argv = launch.argv.clone();
    if let Some(path) = script_of(&argv) {
        let named = |why: String| format!("-f {}: {why}", path.display());
        let text = job_files::text(&launch.job_files, &path);
        let text = text.unwrap_or_else(|| Err("it was not read".to_owned()));
        let words = text.and_then(|text| options_of(&text)).map_err(named)?;
        argv.extend(words);
    }
    Ok(argv)
}

/// Transfers that every rank has written, after a stonewall or without one.
fn transfers_of_each(written: &PhaseResult, ranks: u32) -> u64 {
    let each = written.items / u64::from(ranks.max(1));
    written.stonewall.as_ref().map_or(each, |wall| wall.most)
}

fn view(options: &Ior, view: &IorView) -> View {
    let shown = |file: &PathBuf| file.display().to_string();
    let offset = options.task_offset.unwrap_or(1);
    View {
        files: options.files().iter().map(shown).collect(),
        file_per_process: options.file_per_process,
        random: options.random,
        task_offset: options.reorder.then_some(offset),
        random_reorder: options
            .reorder_random
            .then(|| options.reorder_seed.unwrap_or(0)),
        repetitions: options.repetitions.unwrap_or(1),
        segments: match options.segments.unwrap_or(Segments::Count(1)) {
            Segments::Count(segments) => Some(segments),
            Segments::AsInFiles => None,
        },
        block: options.block(),
        transfer: options.transfer(),
        deadline_s: options.deadline.map_or(0, |time| time.as_secs_f64() as u64),
        wear_out: options.wear_out,
        verbosity: view.verbosity,
    }
}
