//! `rbench ior`: its options by the letters and names of IOR's command line.

use std::path::PathBuf;

use rbench_core::{Bytes, Nanos};

use crate::meta::Packet;

/// `-s`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segments {
    /// This many.
    Count(u64),
    /// `-1`: as many as the files have.
    AsInFiles,
}

/// The options of IOR; an option that is left out has IOR's default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ior {
    /// `-o a@b`: with `-F`, rank r has the file r modulo their number; empty:
    /// `testFile`.
    pub files: Vec<PathBuf>,
    /// `-b`
    pub block: Option<Bytes>,
    /// `-t`
    pub transfer: Option<Bytes>,
    /// `-s`
    pub segments: Option<Segments>,
    /// `-F`
    pub file_per_process: bool,
    /// `-m`
    pub multi_file: bool,
    /// `-w`
    pub write: bool,
    /// `-r`
    pub read: bool,
    /// `-W`
    pub check_write: bool,
    /// `-R`
    pub check_read: bool,
    /// `-E`
    pub use_existing: bool,
    /// `-k`
    pub keep: bool,
    /// `-e`
    pub fsync: bool,
    /// `-Y`
    pub fsync_each: bool,
    /// `--posix.odirect`
    pub direct: bool,
    /// `-G`
    pub data_seed: Option<i32>,
    /// `-l`, `--dataPacketType`
    pub packet: Option<Packet>,
    /// `-C`
    pub reorder: bool,
    /// `-Q`
    pub task_offset: Option<u32>,
    /// `-Z`
    pub reorder_random: bool,
    /// `-X`
    pub reorder_seed: Option<i32>,
    /// `-z`, counted: 1: each rank's transfers in random order; 2: blocks at random places.
    pub random: u32,
    /// `--random-offset-seed`
    pub random_seed: Option<i32>,
    /// `-g`
    pub barriers: bool,
    /// `-N`
    pub tasks: Option<u32>,
    /// `-i`
    pub repetitions: Option<u32>,
    /// `-d`
    pub delay: Option<Nanos>,
    /// `-D`
    pub deadline: Option<Nanos>,
    /// `-O stoneWallingWearOut=1`
    pub wear_out: bool,
    /// `-O stoneWallingWearOutIterations`
    pub transfers_max: Option<u64>,
    /// `-O stoneWallingStatusFile`
    pub status_file: Option<PathBuf>,
    /// `-O summaryFile`
    pub summary_file: Option<PathBuf>,
    /// `-O saveRankPerformanceDetailsCSV`
    pub rank_file: Option<PathBuf>,
    /// `-O minTimeDuration`
    pub time_min: Option<Nanos>,
    /// `-T`, minutes.
    pub minutes_max: Option<u64>,
}
