//! The ladder of `rbench nn`: NNBench's operations with increasing numbers of
//! workers.

use std::path::PathBuf;

use rbench_core::Bytes;

use crate::refusal::PlanError;
use crate::series::{Cell, Selection, Words};

/// The default numbers of workers.
const LADDER: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// The default number of files of each worker.
const FILES: u64 = 200;
/// Most workers of a rank.
const WORKERS_MAX: u32 = 4096;
/// NNBench's operations as phases, in its order, after the directories.
pub const PHASES: &str = "tree-create,file-create,file-read,file-rename,file-remove";

/// The options as typed; a missing option is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// `--ladder`
    pub ladder: Option<Vec<u32>>,
    /// `--files` of each worker.
    pub files: Option<u64>,
    /// `--bytes` of each file.
    pub bytes: Option<Bytes>,
    /// `--dir`
    pub dir: Option<PathBuf>,
    /// Switches of the workload, without their dashes.
    pub switches: Vec<&'static str>,
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
        words = words
            .and(&format!(
                "--workers {workers} --branch {leaves} --depth 1 --items {files}"
            ))
            .and(&format!("--write {bytes} --read {bytes} --phases {PHASES}"))
            .and("--leaf-only --files-only");
        for name in &self.switches {
            words = words.and(&format!("--{name}"));
        }
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
    use crate::testing::check_error;

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
        let words: Vec<String> = cells
            .iter()
            .map(|cell| {
                let words = cell.words.iter().map(|w| w.to_string_lossy());
                words.collect::<Vec<_>>().join(" ")
            })
            .collect();
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
