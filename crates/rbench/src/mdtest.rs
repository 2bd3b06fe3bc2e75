//! Inputs and outputs of `rbench mdtest` beyond the common path: directories, the stonewall's
//! status file, CSV files, and the report.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rbench_cli::{MdtestView, Output, Print};
use rbench_core::Rank;
use rbench_core::outcome::OpTime;
use rbench_core::spread::RowLimits;
use rbench_plan::meta::Location;
use rbench_plan::resolve::Work;
use rbench_plan::spec::{Mdtest, Workload};
use rbench_plan::tree::ItemKind;
use rbench_plan::{Plan, Spec};
use rbench_report::mdtest::{self as render, Kinds};
use rbench_report::schema::{Forms, MdtestForm};
use rbench_report::{RunResult, text};

use crate::console::{complain, print};
use crate::front::{Done, FrontEnd, Scope};
use crate::operations::{NewFile, OperationLog};
use crate::show;
use crate::status;
use crate::trouble::all_of;

/// Makes the paths of mdtest's options relative to rank 0's working directory.
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
        // Removes `.` components from the path.
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

/// The option that names the status file.
const STATUS: &str = "-x";

/// The front end of `rbench mdtest`: its options and output files.
pub struct Front {
    options: Mdtest,
    view: MdtestView,
    status: Option<PathBuf>,
    ranks: Option<NewFile>,
    operations: Option<OperationLog>,
}

impl Front {
    /// A front end with these options and no open file.
    pub fn new(options: Mdtest, view: MdtestView) -> Front {
        Front {
            options,
            view,
            status: None,
            ranks: None,
            operations: None,
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

    /// All ranks, for options that print every rank.
    fn rows(&self) -> RowLimits {
        let view = &self.view;
        let mut rows = RowLimits::default();
        if self.options.save_ranks.is_some() || view.all_ranks || view.rank_statistics {
            rows.ranks = usize::MAX;
        }
        rows
    }

    fn open(&mut self, _scope: Scope<'_>, rank: Rank) -> Result<(), String> {
        if rank == Rank(0) {
            self.status = self.options.status_to_write().cloned();
            if let Some(path) = &self.status {
                status::check(STATUS, path)?;
            }
            let path = self.options.save_ranks.as_ref();
            self.ranks = NewFile::create("--saveRankPerformanceDetails", path)?;
        }
        if let Some(prefix) = &self.options.save_operations {
            let log = OperationLog::create("--savePerOpDataCSV", prefix, rank)?;
            self.operations = Some(log);
        }
        Ok(())
    }

    fn discard(&mut self) {
        self.ranks.take().into_iter().for_each(NewFile::discard);
        let log = self.operations.take();
        log.into_iter().for_each(OperationLog::discard);
    }

    fn log(&mut self, iteration: u32, rows: &[&str], operations: &[OpTime]) -> Result<(), String> {
        match &mut self.operations {
            Some(log) => log.add(iteration, rows, operations),
            None => Ok(()),
        }
    }

    /// Writes the stonewall's status and the table of ranks.
    fn finish(&mut self, result: &RunResult) -> Result<(), String> {
        let created = result.phases.iter().rfind(|p| p.name == "file-create");
        let status = match (self.status.take(), created) {
            (Some(path), Some(created)) => {
                let items = render::items_of_each(created);
                status::write(STATUS, &path, items)
            }
            _ => Ok(()),
        };
        let ranks = self.ranks.take();
        let ranks = ranks.map_or(Ok(()), |file| file.write(&render::rank_details_csv(result)));
        all_of([status, ranks])
    }

    fn forms(&self, scope: Scope<'_>, done: Done<'_>) -> Forms {
        Forms {
            mdtest: form(done.result, scope.plan, &self.view),
            ..Forms::default()
        }
    }

    fn report(&self, scope: Scope<'_>, _output: &Output, done: Done<'_>) -> Result<u8, String> {
        if self.options.creates() && has_no_items(scope.plan) {
            complain("nothing was created: give -n or -I");
        }
        Ok(print(&report(done.result, scope.plan, &self.view)))
    }
}

/// Returns true without -n and -I, unless a stonewall ends the creation. mdtest then makes only the
/// tree and prints zeros.
fn has_no_items(plan: &Plan) -> bool {
    matches!(&plan.work, Work::Meta(meta) if meta.items_per_rank == 0 && !meta.open_ended())
}

/// Data of mdtest's report for this plan.
fn form(result: &RunResult, plan: &Plan, view: &MdtestView) -> Option<MdtestForm> {
    let Work::Meta(meta) = &plan.work else {
        return None;
    };
    let paths = match &meta.site {
        Location::TestDirs(dirs) => dirs.iter().map(|d| d.display().to_string()).collect(),
        Location::Own => Vec::new(),
    };
    let has = |kind: ItemKind| meta.kinds().any(|k| k.info().items == Some(kind));
    let of_each = match meta.made {
        Some(made) => Some(made.min(meta.items_per_rank)),
        // Without -n or -I, the stonewall decides.
        None if meta.open_ended() => None,
        None => Some(meta.items_per_rank),
    };
    Some(MdtestForm {
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
        items: of_each.map(|n| n.saturating_mul(u64::from(plan.ranks))),
        command: "mdtest".to_owned(),
        paths,
        shift: meta.stated_shift,
        seed: meta.stated_random.then_some(result.run.seed),
    })
}

/// mdtest's report, followed by ours if requested.
fn report(result: &RunResult, plan: &Plan, view: &MdtestView) -> String {
    let Some(form) = form(result, plan, view) else {
        return text::render(result, show::view());
    };
    let mut out = render::render(result, &form);
    if view.report {
        let _ = write!(out, "\n{}", text::render(result, show::view()));
    }
    out
}
