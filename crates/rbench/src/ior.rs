//! What `rbench ior` reads and writes besides the common path: its files' names, the
//! stonewall's status file, and its report.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rbench_cli::{Format, IorView, Output};
use rbench_core::Rank;
use rbench_core::job::JobOutcome;
use rbench_plan::Spec;
use rbench_plan::spec::{Ior, Segments, Workload};
use rbench_report::ior::{self as render, View};
use rbench_report::{PhaseResult, RunResult, json, text};

use crate::front::{FrontEnd, Scope};
use crate::show;
use crate::{print, status};

/// The option that names the status file.
const STATUS: &str = "stoneWallingStatusFile";

/// Paths of IOR's options start in rank 0's working directory.
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
    let file = &mut options.status_file;
    *file = file.take().map(|file| cwd.join(file));
}

/// The front end: its options, and the file that they name.
pub struct Front {
    options: Ior,
    view: IorView,
}

impl Front {
    /// The front end with these options.
    pub fn new(options: Ior, view: IorView) -> Front {
        Front { options, view }
    }
}

impl FrontEnd for Front {
    fn shows_progress(&self) -> bool {
        false
    }

    fn status_to_read(&self) -> Option<(&'static str, PathBuf)> {
        Some((STATUS, self.options.status_to_read()?.clone()))
    }

    fn open(&mut self, _scope: Scope<'_>, rank: Rank) -> Result<(), String> {
        match self.options.status_to_write() {
            Some(path) if rank == Rank(0) => status::check(STATUS, path),
            _ => Ok(()),
        }
    }

    /// The status of the stonewall.
    fn finish(&mut self, result: &RunResult) -> Result<(), String> {
        let written = result.phases.iter().rfind(|phase| phase.name == "write");
        match (self.options.status_to_write(), written) {
            (Some(path), Some(written)) => {
                status::write(STATUS, path, transfers_of_each(written, result.world.ranks))
            }
            _ => Ok(()),
        }
    }

    fn report(
        &self,
        _scope: Scope<'_>,
        output: &Output,
        result: &RunResult,
        _jobs: &[JobOutcome],
    ) -> Result<u8, String> {
        if output.format == Format::Json {
            return Ok(print(&json::render(result)));
        }
        let mut out = render::render(result, &view(&self.options, &self.view));
        if self.view.report {
            let _ = write!(out, "\n{}", text::render(result, show::view()));
        }
        Ok(print(&out))
    }
}

/// Transfers that every rank has written after a stonewall, or without one.
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
