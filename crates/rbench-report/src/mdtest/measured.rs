//! The rows of mdtest's table, and their measurements in a run.

use rbench_core::outcome::RankOutcome;

use crate::schema::{PhaseResult, RunResult};

/// The objects that a row's operations work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOf {
    /// Directories that are items.
    Directories,
    /// Files.
    Files,
    /// The directories of the tree.
    Tree,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// mdtest's name of the row.
    pub label: &'static str,
    /// Name of the phase.
    pub phase: &'static str,
    /// The objects it works on.
    pub of: RowOf,
}

/// Every row in mdtest's order.
pub const ROWS: &[Row] = &[
    row("Directory creation", "dir-create", RowOf::Directories),
    row("Directory stat", "dir-stat", RowOf::Directories),
    row("Directory rename", "dir-rename", RowOf::Directories),
    row("Directory removal", "dir-remove", RowOf::Directories),
    row("File creation", "file-create", RowOf::Files),
    row("File stat", "file-stat", RowOf::Files),
    row("File read", "file-read", RowOf::Files),
    row("File removal", "file-remove", RowOf::Files),
    row("Tree creation", "tree-create", RowOf::Tree),
    row("Tree removal", "tree-remove", RowOf::Tree),
];

const fn row(label: &'static str, phase: &'static str, of: RowOf) -> Row {
    Row { label, phase, of }
}

/// With `-c`, file creation has two halves: rank 0 creates the files, then all ranks open and write
/// them.
const CREATION: &str = "file-create";
const WRITING: &str = "file-write";

/// One row in one iteration, even if incomplete.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'r> {
    /// The row.
    pub row: &'static Row,
    phase: &'r PhaseResult,
    /// [`WRITING`], if it took place.
    writing: Option<&'r PhaseResult>,
}

/// The operations of all ranks, or of one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Share {
    /// Operations that were tried.
    pub tried: u64,
    /// Operations that failed.
    pub errors: u64,
    /// From the common start to the last finish, s.
    pub elapsed_s: f64,
    /// Operations without error per second.
    pub rate: f64,
}

/// The measured rows in order of execution. Phases without operations are left out, phases with
/// only failures are not.
pub fn all(result: &RunResult) -> Vec<Measured<'_>> {
    let tried = |p: &&PhaseResult| p.items > 0 || p.error_count() > 0;
    let busy: Vec<&PhaseResult> = result.phases.iter().filter(tried).collect();
    let mut all = Vec::new();
    for phase in &busy {
        let Some(row) = ROWS.iter().find(|row| row.phase == phase.name) else {
            continue;
        };
        let follows = |p: &&&PhaseResult| p.name == WRITING && p.iteration == phase.iteration;
        let writing = busy.iter().find(follows).copied();
        all.push(Measured {
            row,
            phase,
            writing: writing.filter(|_| row.phase == CREATION),
        });
    }
    all
}

impl Measured<'_> {
    /// The iteration, from 0.
    pub fn iteration(&self) -> u32 {
        self.phase.iteration
    }

    /// The operations of all ranks. A file whose second half failed does not count as created.
    pub fn whole(&self) -> Share {
        let phase = self.phase;
        let created = Share {
            tried: phase.items.saturating_add(phase.error_count()),
            errors: phase.error_count(),
            elapsed_s: phase.elapsed_s,
            rate: phase.rate,
        };
        let Some(writing) = self.writing else {
            return created;
        };
        let elapsed_s = phase.elapsed_s + writing.elapsed_s;
        Share {
            errors: created.errors.saturating_add(writing.error_count()),
            elapsed_s,
            rate: per_second(phase.items.min(writing.items), elapsed_s),
            ..created
        }
    }

    /// The operations of `rank`. With `-c`: the files that it created, in the time of both halves;
    /// other ranks may have written them.
    pub fn of_rank(&self, rank: u32) -> Share {
        let created = find(self.phase, rank);
        let written = self.writing.and_then(|writing| find(writing, rank));
        let halves = || [created, written].into_iter().flatten();
        let items = created.map_or(0, |r| r.items);
        let elapsed_s = halves().map(|r| r.elapsed.as_secs_f64()).sum();
        Share {
            tried: created.map_or(0, |r| r.items.saturating_add(r.errors)),
            errors: halves().map(|r| r.errors).fold(0, u64::saturating_add),
            elapsed_s,
            rate: per_second(items, elapsed_s),
        }
    }

    /// The operations of each rank with work.
    pub fn by_rank(&self) -> impl Iterator<Item = Share> {
        let shares = self.phase.ranks.iter().map(|r| self.of_rank(r.rank.0));
        shares.filter(|share| share.tried > 0)
    }
}

fn find(phase: &PhaseResult, rank: u32) -> Option<&RankOutcome> {
    let place = phase.ranks.binary_search_by_key(&rank, |r| r.rank.0);
    place.ok().map(|i| &phase.ranks[i])
}

/// Items per second; 0 if no time passed.
pub fn per_second(items: u64, elapsed_s: f64) -> f64 {
    if elapsed_s > 0.0 {
        items as f64 / elapsed_s
    } else {
        0.0
    }
}
