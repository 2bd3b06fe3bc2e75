//! The table of `juicefs bench` as runs: writing and reading big files; writing,
//! reading and checking the attributes of small files.

use std::path::PathBuf;

use rbench_core::Bytes;

use crate::refusal::PlanError;
use crate::series::{Cell, Words};

/// Name of the cell with the big files.
pub const BIG: &str = "big files";
/// Name of the cell with the small files.
pub const SMALL: &str = "small files";

/// `rbench quick`, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quick {
    /// The directory; `None`: the built-in file system.
    pub dir: Option<PathBuf>,
    /// Bytes of a read or write.
    pub block: Bytes,
    /// Bytes of each worker's big file; 0: no such rows.
    pub big: Bytes,
    /// Bytes of each small file; 0: no such rows.
    pub small: Bytes,
    /// Small files of each worker; 0: no such rows.
    pub small_files: u64,
    /// Workers of each rank.
    pub threads: u32,
    /// True if the kernel's caches are dropped before each phase that reads or stats.
    pub drop_caches: bool,
}

impl Default for Quick {
    /// The defaults of `juicefs bench`.
    fn default() -> Quick {
        Quick {
            dir: None,
            block: Bytes(1 << 20),
            big: Bytes(1 << 30),
            small: Bytes(128 << 10),
            small_files: 100,
            threads: 1,
            drop_caches: true,
        }
    }
}

impl Quick {
    /// The settings by their names on the command line, except the directory.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("block-size", self.block.0.to_string()),
            ("big-file-size", self.big.0.to_string()),
            ("small-file-size", self.small.0.to_string()),
            ("small-file-count", self.small_files.to_string()),
            ("threads", self.threads.to_string()),
            (
                "drop-caches",
                if self.drop_caches { "on" } else { "off" }.to_owned(),
            ),
        ]
    }

    /// The runs, at most two.
    ///
    /// # Errors
    /// A sentence that names the option that prevents all runs.
    pub fn cells(&self) -> Result<Vec<Cell>, PlanError> {
        refuse_if! {
            self.block.0 == 0 => "--block-size must be at least 1";
            self.threads == 0 => "--threads must be at least 1";
        }
        let mut cells = Vec::new();
        if self.big.0 > 0 {
            cells.push(self.cell(BIG, self.big_words()));
        }
        if self.small.0 > 0 && self.small_files > 0 {
            cells.push(self.cell(SMALL, self.small_words()));
        }
        refuse_if!(cells.is_empty() => "nothing to write: enable big or small files");
        Ok(cells)
    }

    /// A file up to the size of a block is a single block; a larger one is rounded up
    /// to whole blocks.
    fn big_words(&self) -> Words {
        let (size, block) = (self.big.0, self.block.0);
        let block = block.min(size);
        let size = size.div_ceil(block).saturating_mul(block);
        Words::default()
            .and(&format!("io --rw write,read --bs {block} --size {size}"))
            // Like in `juicefs bench`, data written by a close counts, and the data is generated
            // only once.
            .and("--fsync close --no-refill")
    }

    fn small_words(&self) -> Words {
        let size = self.small.0;
        let files = self.small_files.saturating_mul(u64::from(self.threads));
        Words::default()
            .and(&format!("meta --files-only --depth 0 --items {files}"))
            .and(&format!("--write {size} --read {size}"))
            .and("--phases tree-create,file-create,file-stat,file-read")
    }

    fn cell(&self, name: &str, own: Words) -> Cell {
        let threads = self.threads;
        let mut words = own.and(&format!("--threads {threads} --client-counters"));
        if self.drop_caches {
            words = words.and("--drop-caches");
        }
        if let Some(dir) = &self.dir {
            words = words.with("--dir", dir);
        }
        Cell {
            name: name.to_owned(),
            words: words.0,
            ..Cell::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(quick: &Quick, name: &str) -> String {
        let cells = quick.cells().expect("runs");
        let cell = cells.iter().find(|cell| cell.name == name).expect("a cell");
        let words: Vec<_> = cell
            .words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        words.join(" ")
    }

    #[test]
    fn big_files_are_whole_blocks() {
        let of = |big: u64, block: u64| Quick {
            big: Bytes(big),
            block: Bytes(block),
            ..Quick::default()
        };
        assert!(line(&of(1 << 30, 1 << 20), BIG).contains("--bs 1048576 --size 1073741824 "));
        assert!(line(&of(1000, 1 << 20), BIG).contains("--bs 1000 --size 1000 "));
        assert!(line(&of(1000, 300), BIG).contains("--bs 300 --size 1200 "));
    }

    #[test]
    fn each_worker_has_its_small_files() {
        let quick = Quick {
            threads: 4,
            ..Quick::default()
        };
        let line = line(&quick, SMALL);
        assert!(
            line.contains("--items 400 --write 131072 --read 131072 "),
            "{line}"
        );
        assert!(line.contains("--threads 4 "), "{line}");
    }

    #[test]
    fn what_has_no_size_has_no_rows() {
        let none = Quick {
            big: Bytes(0),
            small: Bytes(0),
            ..Quick::default()
        };
        assert!(none.cells().is_err());
        let small = Quick {
            big: Bytes(0),
            ..Quick::default()
        };
        assert_eq!(small.cells().expect("runs").len(), 1);
        for wrong in [
            Quick {
                block: Bytes(0),
                ..Quick::default()
            },
            Quick {
                threads: 0,
                ..Quick::default()
            },
        ] {
            assert!(wrong.cells().is_err());
        }
    }
}
