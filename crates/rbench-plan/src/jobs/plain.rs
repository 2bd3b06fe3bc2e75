//! A plain job: what those of `rbench io` and IOR say nothing else of.

use std::path::PathBuf;

use rbench_core::memory::Memory;
use rbench_core::{Each, EngineOptions};

use super::{
    Advised, BlockSizes, BufferContent, Buffers, Course, Directions, Distribution, Errors,
    Fallocate, Favourites, FileLock, FileNames, FileService, Files, Framing, JobPlan, Others, Pace,
    Pattern, Shares, Standing, Submission, Syncing,
};
use crate::process::Process;

/// Bytes over which `--compress` and fio's `buffer_compress_percentage` hold:
/// compressors see the same share in every stretch of a block.
pub const COMPRESS_CHUNK: u64 = 512;

impl Pattern {
    /// Blocks of these sizes, each once, and all that is random from `seed`.
    pub fn new(directions: Directions, sizes: BlockSizes, seed: u64) -> Pattern {
        Pattern {
            directions,
            mix_read: 50,
            sizes: Each::same(sizes),
            align: Each::default(),
            distribution: Distribution::Uniform,
            random_percent: Each::same(100),
            repeats: false,
            rest: false,
            one_position: true,
            seed,
            favourites: Favourites::Same(seed),
            course: Course::default(),
        }
    }
}

impl Files {
    /// One file of `size` bytes, which is made before the job where it is not there.
    pub fn new(directory: PathBuf, names: FileNames, size: u64) -> Files {
        Files {
            directory,
            more_directories: Vec::new(),
            names,
            count: 1,
            open: 1,
            size: (size, size),
            offset: 0,
            offset_increment: 0,
            shares: Shares::default(),
            ahead: 0,
            drawn: None,
            interleave: 0,
            service: FileService::RoundRobin(1),
            lock: FileLock::None,
            fallocate: Fallocate::None,
            may_create: true,
            create_fsync: true,
            write_hint: None,
            create_on_open: false,
            create_only: false,
            overwrite: false,
            pre_read: false,
            invalidate: false,
            advice: Advised::Nobody,
            write_only: false,
            unlink: false,
            unlink_each_loop: false,
            fill: false,
            allow_mounted_write: false,
            standing: Standing::default(),
        }
    }
}

impl Buffers {
    /// New data for every write; `compress_percent` of it compresses away, and `dedupe_percent` of
    /// its blocks are copies of others.
    pub fn fresh(compress_percent: u32, dedupe_percent: u32) -> Buffers {
        Buffers {
            refill: true,
            scramble: false,
            content: BufferContent::Random {
                percent: compress_percent,
                chunk: COMPRESS_CHUNK,
                pattern: Vec::new(),
            },
            dedupe_percent,
            working_set: None,
        }
    }
}

impl JobPlan {
    /// One worker of each rank that passes once over its files, one block at a time.
    pub fn new(name: &str, pattern: Pattern, files: Files) -> JobPlan {
        JobPlan {
            name: name.to_owned(),
            label: None,
            numjobs: 1,
            pattern,
            files,
            small: None,
            engine: "psync".to_owned(),
            names: None,
            engine_options: EngineOptions::default(),
            memory: Memory::default(),
            depth: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 1,
            depth_low: None,
            submission: Submission::default(),
            priorities: None,
            direct: false,
            framing: Framing::Untimed,
            syncing: Syncing::default(),
            buffers: Buffers::fresh(0, 0),
            verify: None,
            pace: Pace {
                loops: 1,
                ..Pace::default()
            },
            others: Others::default(),
            process: Process::default(),
            errors: Errors::Count,
            replay: None,
            iolog: None,
            report: None,
        }
    }
}
