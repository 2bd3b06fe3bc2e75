//! `rbench quick`: the options of `juicefs bench`.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_core::Bytes;
use rbench_plan::quick::Quick;
use rbench_plan::values;

use super::SeriesOptions;
use crate::series::Course;
use crate::{Invocation, Stop, invocation};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Prints the table of juicefs bench for any mounted file system, from one worker or all ranks. \
    Each worker writes and reads a big file, then writes, stats and reads small ones. With several workers, \
    the figures are those of all workers together. docs/reference/quick.md defines every \
    row.\n\nExamples:\n  rbench quick /mnt/jfs -p 4\n  mpirun -np 12 --hostfile myhost rbench quick /mnt/jfs \
    --big-file-size 0 --out quick.json"
)]
pub struct QuickArgs {
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(value_parser = values::directory())]
    path: Option<PathBuf>,
    /// Size of each read and write; a bare number is in MiB [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = mebibytes)]
    block_size: Option<Bytes>,
    /// Size of each worker's big file; a bare number is in MiB; 0: no big files [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = mebibytes)]
    big_file_size: Option<Bytes>,
    /// Size of each small file; a bare number is in KiB; 0: no small files [default: 128K]
    #[arg(long, value_name = "SIZE", value_parser = kibibytes)]
    small_file_size: Option<Bytes>,
    /// Small files per worker; 0: no small files [default: 100]
    #[arg(long, value_name = "N", value_parser = values::amount::<u64>)]
    small_file_count: Option<u64>,
    /// Workers per rank [default: 1]
    #[arg(long, short = 'p', value_name = "N")]
    threads: Option<u32>,
    /// Do not drop the kernel's caches before reading; dropping them needs root
    #[arg(long)]
    skip_drop_caches: bool,
    #[command(flatten)]
    pub options: SeriesOptions,
}

impl QuickArgs {
    /// Converts the options into a series.
    ///
    /// # Errors When neither an argument nor a non-empty variable names the directory.
    pub fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let usual = Quick::default();
        let dir = match self.path {
            Some(dir) => Some(dir),
            None => invocation::env_dir(env_dir)?,
        };
        Ok(self.options.with(Course::Quick(Quick {
            dir,
            block: self.block_size.unwrap_or(usual.block),
            big: self.big_file_size.unwrap_or(usual.big),
            small: self.small_file_size.unwrap_or(usual.small),
            small_files: self.small_file_count.unwrap_or(usual.small_files),
            threads: self.threads.unwrap_or(usual.threads),
            drop_caches: !self.skip_drop_caches,
        })))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_as_in_juicefs_bench() {
        assert_eq!(mebibytes("4"), Ok(Bytes(4 << 20)));
        assert_eq!(kibibytes("128"), Ok(Bytes(128 << 10)));
        assert_eq!(kibibytes("1M"), Ok(Bytes(1 << 20)));
        assert!(mebibytes("").is_err() && mebibytes("4x").is_err());
    }
}
