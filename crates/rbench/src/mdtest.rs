//! What `rbench mdtest` reads and writes besides the common path: its
//! directories, the stonewall's status file, CSV files, and its report.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use rbench_cli::{MdtestView, Print};
use rbench_comm::Communicator;
use rbench_core::Rank;
use rbench_core::crowd::RowLimits;
use rbench_core::outcome::OpTime;
use rbench_core::wire::{Reader, Writer};
use rbench_plan::meta::Site;
use rbench_plan::resolve::Work;
use rbench_plan::spec::{Mdtest, Workload};
use rbench_plan::tree::ItemKind;
use rbench_plan::{Plan, Spec};
use rbench_report::mdtest::{self as render, Kinds, View};
use rbench_report::{PhaseResult, RunResult, text};

use crate::files;
use crate::run::Refusal;

fn options(spec: &Spec) -> Option<&Mdtest> {
    match &spec.workload {
        Workload::Mdtest(options) => Some(options),
        Workload::Meta(_) | Workload::Io(_) | Workload::Fio(_) => None,
    }
}

/// Most ranks and hosts with rows of their own: all, with options that print
/// every rank.
pub fn rows(spec: &Spec, view: Option<&MdtestView>) -> RowLimits {
    let saved = options(spec).is_some_and(|o| o.save_ranks.is_some());
    let shown = view.is_some_and(|view| view.all_ranks || view.rank_statistics);
    let mut rows = RowLimits::default();
    if saved || shown {
        rows.ranks = usize::MAX;
    }
    rows
}

/// Paths of mdtest's options start in rank 0's working directory.
pub fn anchor(spec: &mut Spec, cwd: &Path) {
    let Workload::Mdtest(options) = &mut spec.workload else {
        return;
    };
    if options.dirs.is_empty() {
        options.dirs.push(PathBuf::from("./out"));
    }
    for dir in options
        .dirs
        .iter_mut()
        .filter(|dir| !dir.as_os_str().is_empty())
    {
        // Without dots in the path.
        *dir = cwd.join(&*dir).components().collect();
    }
    for file in [
        &mut options.status_file,
        &mut options.save_ranks,
        &mut options.save_operations,
    ] {
        *file = file.take().map(|file| cwd.join(file));
    }
}

/// The content of the status file of `-x`, read by rank 0 for all; `None` if it
/// does not exist or was not asked for.
pub async fn read_status(comm: &dyn Communicator, spec: &Spec) -> Result<Option<u64>, Refusal> {
    let Some(path) = options(spec).and_then(Mdtest::status_to_read) else {
        return Ok(None);
    };
    let mut message = Writer::default();
    if comm.rank() == Rank(0) {
        match status(path) {
            Ok(None) => message.number(0).number(0).text(""),
            Ok(Some(items)) => message.number(1).number(items).text(""),
            Err(error) => message.number(2).number(0).text(&error),
        };
    }
    let bytes = comm.broadcast(Rank(0), message.finish()).await?;
    let mut reader = Reader::new(&bytes);
    match (reader.number(), reader.number(), reader.text()) {
        (Some(0), _, _) => Ok(None),
        (Some(1), items, _) => Ok(items),
        (_, _, error) => Err(Refusal::Failed(error.unwrap_or_default())),
    }
}

fn status(path: &Path) -> Result<Option<u64>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!("-x {} cannot be read: {e}", path.display())),
    };
    let items = text.trim().parse().map_err(|_| {
        format!(
            "-x {}: it does not contain a number of items",
            path.display()
        )
    })?;
    Ok(Some(items))
}

/// The files that mdtest's options name.
#[derive(Default)]
pub struct Extras {
    status: Option<PathBuf>,
    ranks: Option<(PathBuf, File)>,
    operations: Option<(PathBuf, BufWriter<File>)>,
    /// Whether operations were written.
    logged: bool,
}

impl Extras {
    /// Opens them, so that a file that cannot be written is known before anything
    /// is measured.
    ///
    /// # Errors
    /// One sentence that names option and file.
    pub fn open(&mut self, spec: &Spec, rank: Rank) -> Result<(), String> {
        let extras = self;
        let Some(options) = options(spec) else {
            return Ok(());
        };
        if rank == Rank(0) {
            extras.status = options.status_to_write().cloned();
            if let Some(path) = &extras.status {
                let found = files::find(path, is_status);
                found.map_err(|why| format!("-x {} {why}", path.display()))?;
            }
            if let Some(path) = &options.save_ranks {
                let file = new_file("--saveRankPerformanceDetails", path)?;
                extras.ranks = Some((path.clone(), file));
            }
        }
        if let Some(prefix) = &options.save_operations {
            let mut name = prefix.clone().into_os_string();
            name.push(format!("-{:05}.csv", rank.0));
            let path = PathBuf::from(name);
            let mut file = BufWriter::new(new_file("--savePerOpDataCSV", &path)?);
            file.write_all(b"iteration,operation,start_s,seconds,bytes\n")
                .map_err(|e| unwritable(&path, &e))?;
            extras.operations = Some((path, file));
        }
        Ok(())
    }

    /// Removes the files that it made and that are empty.
    pub fn discard(&mut self) {
        let ranks = self.ranks.take().map(|(path, _)| path);
        let unused = self.operations.take_if(|_| !self.logged);
        let operations = unused.map(|(path, _)| path);
        for path in ranks.iter().chain(&operations) {
            // An empty file that stays does no harm.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Appends the operations of a phase.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn log(
        &mut self,
        iteration: u32,
        phase: &str,
        operations: &[OpTime],
    ) -> Result<(), String> {
        let Some((path, file)) = &mut self.operations else {
            return Ok(());
        };
        self.logged |= !operations.is_empty();
        let written = operations.iter().try_for_each(|op| {
            writeln!(
                file,
                "{iteration},{phase},{:.9},{:.9},{}",
                op.start.as_secs_f64(),
                op.service.as_secs_f64(),
                op.bytes
            )
        });
        written
            .and_then(|()| file.flush())
            .map_err(|e| unwritable(path, &e))
    }

    /// At rank 0, when the run has ended: the status of the stonewall and the
    /// table of ranks.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub fn finish(&mut self, result: &RunResult) -> Result<(), String> {
        let created = result.phases.iter().rfind(|p| p.name == "file-create");
        if let (Some(path), Some(created)) = (self.status.take(), created) {
            let items = items_of_each(created);
            files::write_over(&path, is_status, |file| writeln!(file, "{items}"))
                .map_err(|why| format!("-x {} {why}", path.display()))?;
        }
        if let Some((path, mut file)) = self.ranks.take() {
            file.write_all(render::rank_details_csv(result).as_bytes())
                .map_err(|e| unwritable(&path, &e))?;
        }
        Ok(())
    }
}

/// Whether a file starts as a status file does: with a number.
fn is_status(start: &[u8]) -> bool {
    let text = std::str::from_utf8(start).unwrap_or_default();
    text.trim().parse::<u64>().is_ok()
}

/// Items that every rank has after a stonewall, or the most that one has.
fn items_of_each(created: &PhaseResult) -> u64 {
    // Without a stonewall every rank has made what was asked for; later phases
    // find failed ones missing.
    let most = created.ranks.iter().map(|r| r.items).max();
    created
        .stonewall
        .as_ref()
        .map_or(most.unwrap_or(0), |wall| wall.most)
}

fn new_file(option: &str, path: &Path) -> Result<File, String> {
    files::new_file(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!(
                "{option} {} already exists and is not overwritten",
                path.display()
            )
        }
        _ => format!("{option} {} cannot be written: {e}", path.display()),
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be written: {error}", path.display())
}

/// mdtest's report, followed by ours if asked for.
pub fn report(result: &RunResult, plan: &Plan, view: &MdtestView) -> String {
    let Work::Meta(meta) = &plan.work else {
        return text::render(result);
    };
    let paths = match &meta.site {
        Site::TestDirs(dirs) => dirs.iter().map(|d| d.display().to_string()).collect(),
        Site::Own => Vec::new(),
    };
    let has = |kind: ItemKind| meta.kinds().any(|k| k.info().items == Some(kind));
    let of_each = match meta.made {
        Some(made) => made.min(meta.items_per_rank),
        // Without -n or -I the stonewall decided.
        None if meta.open_ended() => {
            let created = result.phases.iter().rfind(|p| p.name == "file-create");
            created.map_or(0, items_of_each)
        }
        None => meta.items_per_rank,
    };
    let view_of_mdtest = View {
        print: match view.print {
            Print::Rates => render::Print::Rates,
            Print::Times => render::Print::Times,
            Print::Both => render::Print::Both,
        },
        kinds: match (has(ItemKind::Dir), has(ItemKind::File)) {
            (true, false) => Kinds::Directories,
            (false, true) => Kinds::Files,
            _ => Kinds::Both,
        },
        verbosity: view.verbosity,
        all_ranks: view.all_ranks,
        rank_statistics: view.rank_statistics,
        items: of_each.saturating_mul(u64::from(plan.ranks)),
        command: "mdtest".to_owned(),
        paths,
        shift: meta.stated_shift,
        seed: meta.stated_random.then_some(result.run.seed),
    };
    let mut out = render::render(result, &view_of_mdtest);
    if view.report {
        let _ = write!(out, "\n{}", text::render(result));
    }
    out
}
