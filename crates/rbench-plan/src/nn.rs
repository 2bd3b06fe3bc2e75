//! The ladder of `rbench nn`: NNBench's operations with increasing numbers of
//! workers.

use std::path::PathBuf;

use clap::Args;
use rbench_core::Bytes;

use crate::refusal::PlanError;
use crate::series::{Cell, Selection, Words};
use crate::values;

/// The default numbers of workers.
const LADDER: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// The default number of files of each worker.
const FILES: u64 = 200;
/// Most workers of a rank.
const WORKERS_MAX: u32 = 4096;
/// NNBench's operations as phases, in its order, after the directories.
pub const PHASES: &str = "tree-create,file-create,file-read,file-rename,file-remove";

/// The options as typed; a missing option is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct Asked {
    /// Total numbers of workers of all ranks, in rising order [default: 10,20,…,100]
    #[arg(long, value_name = "N1,N2,…", value_delimiter = ',')]
    pub ladder: Option<Vec<u32>>,
    /// Files per worker [default: 200]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    pub files: Option<u64>,
    /// Bytes to write to each file, in one call, and to read from it [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Bytes>,
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(long, value_name = "DIR", value_parser = values::directory(), help_heading = "Run")]
    pub dir: Option<PathBuf>,
    /// Drop the kernel's caches on every host before files are read (needs root)
    #[arg(long, help_heading = "Run")]
    pub drop_caches: bool,
    /// Call fsync after each write
    #[arg(long)]
    pub fsync: bool,
    /// Allow each host its own file system at the target; otherwise all hosts must see the
    /// same one
    #[arg(long, help_heading = "Run")]
    pub private_dirs: bool,
}

impl Asked {
    /// A run for each number of workers, each in its own directory.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn cells(&self, ranks: u32) -> Result<Vec<Cell>, PlanError> {
        let ladder = self.ladder.clone().unwrap_or_else(|| LADDER.to_vec());
        let most = ranks.saturating_mul(WORKERS_MAX);
        let mut before = 0;
        for workers in &ladder {
            refuse_if! {
                *workers == 0 || *workers > most =>
                    "--ladder {workers} is not a number of workers from 1 to {most} ({WORKERS_MAX} per rank)";
                *workers <= before =>
                    "--ladder {before},{workers}: each number must be larger than the previous one";
            }
            before = *workers;
        }
        refuse_if!(self.files == Some(0) => "--files must be at least 1");
        Ok(ladder.iter().map(|n| self.cell(*n, ranks)).collect())
    }

    fn cell(&self, workers: u32, ranks: u32) -> Cell {
        let taking_part = workers.min(ranks);
        // A directory for each worker: items are spread evenly over the leaves.
        let leaves = workers.div_ceil(taking_part);
        let bytes = self.bytes.unwrap_or(Bytes(0)).0;
        let files = self.files.unwrap_or(FILES);
        let mut words = Words::default().and("meta");
        if let Some(dir) = &self.dir {
            words = words.with("--dir", dir);
        }
        let words = words
            .and(&format!(
                "--workers {workers} --branch {leaves} --depth 1 --items {files}"
            ))
            .and(&format!("--write {bytes} --read {bytes} --phases {PHASES}"))
            .and("--leaf-only --files-only")
            .and_if(self.drop_caches, "--drop-caches")
            .and_if(self.fsync, "--fsync")
            .and_if(self.private_dirs, "--private-dirs");
        Cell {
            name: format!("workers={workers}"),
            values: vec![("workers".to_owned(), workers.to_string())],
            words: words.0,
            selection: Selection {
                ranks: (workers < ranks).then_some(workers),
                ..Selection::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_error, line};

    fn cells(ladder: &[u32], ranks: u32) -> Result<Vec<Cell>, String> {
        let asked = Asked {
            ladder: Some(ladder.to_vec()),
            ..Asked::default()
        };
        asked.cells(ranks).map_err(|e| e.0)
    }

    #[test]
    fn each_number_of_workers_is_a_run_of_as_many() {
        let cells = cells(&[5, 12, 30], 12).expect("a ladder");
        let words: Vec<String> = cells.iter().map(|cell| line(&cell.words)).collect();
        assert_eq!(cells[0].selection.ranks, Some(5));
        assert_eq!(cells[1].selection.ranks, None);
        assert!(words[0].starts_with("meta --workers 5 --branch 1 "));
        assert!(words[2].starts_with("meta --workers 30 --branch 3 "));
        assert!(words[2].contains(PHASES));
        assert_eq!(Asked::default().cells(3).expect("the usual one").len(), 10);
    }

    #[test]
    fn an_impossible_ladder_is_refused() {
        for (ladder, words) in [
            (vec![0], "--ladder 0"),
            (vec![10, 60_000], "--ladder 60000"),
            (vec![20, 10], "--ladder 20,10"),
            (vec![10, 10], "--ladder 10,10"),
        ] {
            check_error(cells(&ladder, 12), words);
        }
    }
}
