//! The table of `juicefs bench` as runs: writing and reading big files; writing,
//! reading and checking the attributes of small files.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use rbench_core::Bytes;

use crate::refusal::PlanError;
use crate::series::{Cell, Words};
use crate::values;

/// Name of the cell with the big files.
pub const BIG: &str = "big files";
/// Name of the cell with the small files.
pub const SMALL: &str = "small files";

/// `rbench quick`: the options of `juicefs bench`, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Quick {
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(id = "path", value_name = "PATH", value_parser = values::directory())]
    pub dir: Option<PathBuf>,
    /// Size of each read and write; a bare number is in MiB [default: 1M]
    #[arg(long = "block-size", value_name = "SIZE")]
    #[arg(value_parser = mebibytes, default_value = "1M", hide_default_value = true)]
    pub block: Bytes,
    /// Size of each worker's big file; a bare number is in MiB; 0: no big files [default: 1G]
    #[arg(long = "big-file-size", value_name = "SIZE")]
    #[arg(value_parser = mebibytes, default_value = "1G", hide_default_value = true)]
    pub big: Bytes,
    /// Size of each small file; a bare number is in KiB; 0: no small files [default: 128K]
    #[arg(long = "small-file-size", value_name = "SIZE")]
    #[arg(value_parser = kibibytes, default_value = "128K", hide_default_value = true)]
    pub small: Bytes,
    /// Small files per worker; 0: no small files [default: 100]
    #[arg(long = "small-file-count", value_name = "N")]
    #[arg(value_parser = values::amount::<u64>, default_value = "100", hide_default_value = true)]
    pub small_files: u64,
    /// Workers per rank [default: 1]
    #[arg(
        long,
        short = 'p',
        value_name = "N",
        default_value = "1",
        hide_default_value = true
    )]
    pub threads: u32,
    /// Do not drop the kernel's caches before reading; dropping them needs root
    #[arg(long = "skip-drop-caches", action = ArgAction::SetFalse)]
    pub drop_caches: bool,
}

fn mebibytes(text: &str) -> Result<Bytes, String> {
    in_units(text, "m")
}

fn kibibytes(text: &str) -> Result<Bytes, String> {
    in_units(text, "k")
}

/// Reads a size; a bare number has the unit.
fn in_units(text: &str, unit: &str) -> Result<Bytes, String> {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match bare {
        true => values::bytes(&format!("{text}{unit}")),
        false => values::bytes(text),
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
        let mut words = own
            .and(&format!("--threads {threads} --client-counters"))
            .and_if(self.drop_caches, "--drop-caches");
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
    use clap::FromArgMatches as _;

    use super::*;

    /// Without options.
    fn usual() -> Quick {
        let command = Quick::augment_args(clap::Command::new("quick"));
        let matches = command.try_get_matches_from(["quick"]).expect("defaults");
        Quick::from_arg_matches(&matches).expect("defaults")
    }

    #[test]
    fn bare_numbers_are_as_in_juicefs_bench() {
        assert_eq!(mebibytes("4"), Ok(Bytes(4 << 20)));
        assert_eq!(kibibytes("128"), Ok(Bytes(128 << 10)));
        assert_eq!(kibibytes("1M"), Ok(Bytes(1 << 20)));
        assert!(mebibytes("").is_err() && mebibytes("4x").is_err());
    }

    fn line(quick: &Quick, name: &str) -> String {
        let cells = quick.cells().expect("runs");
        let cell = cells.iter().find(|cell| cell.name == name).expect("a cell");
        crate::testing::line(&cell.words)
    }

    #[test]
    fn big_files_are_whole_blocks() {
        let of = |big: u64, block: u64| Quick {
            big: Bytes(big),
            block: Bytes(block),
            ..usual()
        };
        assert!(line(&of(1 << 30, 1 << 20), BIG).contains("--bs 1048576 --size 1073741824 "));
        assert!(line(&of(1000, 1 << 20), BIG).contains("--bs 1000 --size 1000 "));
        assert!(line(&of(1000, 300), BIG).contains("--bs 300 --size 1200 "));
    }

    #[test]
    fn each_worker_has_its_small_files() {
        let quick = Quick {
            threads: 4,
            ..usual()
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
            ..usual()
        };
        assert!(none.cells().is_err());
        let small = Quick {
            big: Bytes(0),
            ..usual()
        };
        assert_eq!(small.cells().expect("runs").len(), 1);
        for wrong in [
            Quick {
                block: Bytes(0),
                ..usual()
            },
            Quick {
                threads: 0,
                ..usual()
            },
        ] {
            assert!(wrong.cells().is_err());
        }
    }
}
