//! `rbench fio`: jobs and their options as they were typed, units read. What
//! was left out is `None`, or has fio's default if nothing is to be decided.

use std::path::PathBuf;

use rbench_core::job::FioShown;
use rbench_core::steady::Criterion;
use rbench_core::{EngineOptions, Nanos};

use crate::iolog::Replay;
use crate::jobs::{
    Advised, BlockSizes, Buffers, Checksum, ContinueOn, Directions, Each, ExitWhat, Fallocate,
    FileNames, Files, FioLayout, FioReport, JobPlan, Pace, Pattern, Verify, Whole,
};

pub use crate::given::{Check, Extent, PrioritySplit, Split};

/// All jobs of the command line and its job files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fio {
    /// In the order they were given.
    pub jobs: Vec<Job>,
    /// Options that hold for all jobs, as they were typed.
    pub globals: Vec<(String, String)>,
    /// `--readonly`: a job that writes is an error.
    pub readonly: bool,
    /// `--ack-journal`: the beginning of the journals' names.
    pub ack_journal: Option<PathBuf>,
    /// Switches of the whole run.
    pub whole: Whole,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    /// Its name in reports.
    pub name: String,
    /// The name that its files are made of.
    pub files: String,
    /// It is the first of a job file that follows other jobs: it waits for those.
    pub apart: bool,
    /// Its options, global ones included.
    pub settings: Settings,
    /// Its own options as they were typed.
    pub options: Vec<(String, String)>,
}

/// Priorities of single requests, for reads and for writes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cmdprio {
    /// `cmdprio_percentage`
    pub percentage: Each<Option<u32>>,
    /// `cmdprio_bssplit`
    pub split: Each<Option<Vec<PrioritySplit>>>,
    /// `cmdprio_class`: 1 to 3
    pub class: Each<Option<u8>>,
    /// `cmdprio`: 0 to 7
    pub level: Each<Option<u8>>,
    /// `cmdprio_hint`: 0 to 1023
    pub hint: Each<Option<u16>>,
}

/// Options of a job by their names in fio. Of `name <- "option=word": type = "note"` the field
/// holds what `option` was given, `None` where it was left out.
macro_rules! settings {
    (
        { $($field:ident $(<- $option:literal)? : $type:ty $(= $note:literal)?;)* }
        each { $($each:ident : $of:ty $(= $of_note:literal)?;)* }
        others { $($(#[$doc:meta])* $other:ident : $held:ty = $default:expr;)* }
    ) => {
        /// Options of a job by their names in fio.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $(
                #[doc = concat!("`", option!($field $($option)?), "`" $(, ": ", $note)?)]
                pub $field: Option<$type>,
            )*
            $(
                #[doc = concat!("`", stringify!($each), "`" $(, ": ", $of_note)?)]
                pub $each: Each<Option<$of>>,
            )*
            $($(#[$doc])* pub $other: $held,)*
        }

        impl Default for Settings {
            fn default() -> Settings {
                Settings {
                    $($field: None,)*
                    $($each: Each::default(),)*
                    $($other: $default,)*
                }
            }
        }
    };
}

macro_rules! option {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $option:literal) => {
        $option
    };
}

settings! { {
    filename: Vec<String> = "all names that were given, in their order";
    filename_format: String;
    nrfiles: u64;
    openfiles: u64 = "0: all";
    size: Extent;
    filesize: (u64, u64) = "smallest and largest, bytes";
    io_size: Extent;
    offset: Extent;
    offset_increment: Extent;
    offset_align: u64 = "bytes";
    file_append: bool;
    overwrite: bool;
    rw: Directions;
    rw_number <- "rw=…:N": i64 = "bytes to leave out, or operations of a run";
    rw_identical <- "rw_sequencer=identical": bool;
    bs_unaligned: bool;
    bs_is_seq_rand: bool;
    random_sequence_stride: bool;
    lfsr <- "random_generator=lfsr": bool;
    strided <- "zonemode=strided": bool;
    zonesize: u64 = "bytes";
    zonerange: u64 = "bytes";
    zoneskip: u64 = "bytes";
    norandommap: bool;
    randseed: u64;
    randrepeat: bool;
    allrandrepeat: bool;
    ioengine: String;
    zero_buffers: bool;
    buffer_pattern: Vec<u8>;
    buffer_compress_percentage: u32;
    buffer_compress_chunk: u64 = "bytes";
    dedupe_working_set <- "dedupe_mode=working_set": bool;
    dedupe_working_set_percentage: u32;
    dedupe_global: bool;
    stonewall: bool;
    wait_for: String = "the name of a job";
    thinktime_blocks: u64;
    latency_target: Nanos;
    latency_window: Nanos;
    latency_percentile: f64;
    latency_run: bool;
    steadystate: Criterion;
    steadystate_duration: Nanos;
    steadystate_ramp_time: Nanos;
    steadystate_check_interval: Nanos;
    exitall: bool;
    exitall_on_error: bool;
    exit_what: ExitWhat;
    flow: u32;
    flow_id: u64;
    flow_sleep: Nanos;
    verify: Check;
    verify_interval: u64 = "bytes";
    experimental_verify: bool;
    do_verify: bool;
    verify_backlog_batch: u64 = "writes";
    verify_only: bool;
    trim_percentage: u32;
    trim_backlog: u64 = "writes";
    trim_backlog_batch: u64 = "trims";
    new_group: bool;
    gtod_reduce: bool;
    clocksource: String;
    bwavgtime: Nanos;
    iopsavgtime: Nanos;
    prio: u8 = "0 to 7";
    prioclass: u8 = "0 to 3";
    priohint: u16 = "0 to 1023";
    continue_on_error: ContinueOn;
} each {
    bs: u64 = "bytes";
    bsrange: (u64, u64) = "smallest and largest, bytes";
    bssplit: Vec<Split>;
    blockalign: u64 = "bytes";
    percentage_random: u32;
} others {
    /// The reading of values that fio reads in part, a sentence each.
    notes: Vec<String> = Vec::new();
    /// The directory that held when the n-th of `filename` was given; of those beyond the
    /// end it is `directory`.
    filename_directories: Vec<PathBuf> = Vec::new();
    /// Options of the engine.
    engine_options: EngineOptions = EngineOptions::default();
    /// Priorities of requests, where the engine has them.
    cmdprio: Cmdprio = Cmdprio::default();
    /// The options that belong to engines and were given, and those engines.
    of_engines: Vec<(&'static str, &'static [&'static str])> = Vec::new();
    /// `ignore_error`: errno values of reads, writes and verification.
    ignore_error: [Vec<i32>; 3] = Default::default();
    /// Fields of the plan that options set directly; at first fio's defaults. The resolver replaces the
    /// fields that follow from the options above.
    plan: JobPlan = default_plan();
    /// Options of its report.
    report: FioReport = FioReport {
        shown: FioShown {
            percentiles: PERCENTILES.to_vec(),
            clat_percentiles: true,
            significant_figures: 4,
            ..FioShown::default()
        },
        disks: true,
        ..FioReport::default()
    };
    /// Options of its verification.
    checks: Verify = Verify {
        save_state: true,
        trimmed_is_zero: true,
        ..Verify::default()
    };
    /// Layout of the blocks that it verifies.
    layout: FioLayout = FioLayout {
        checksum: Checksum::Null,
        offset: 0,
        pattern: None,
        pattern_interval: 0,
        seed: true,
        sequence: true,
    };
    /// Options of the logs that it replays, if there are any.
    replay: Replay = Replay::WHOLE;
} }

/// Percentiles that are reported when no list is given.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Block size without an option.
pub const BLOCK: u64 = 4096;

/// The job without options.
fn default_plan() -> JobPlan {
    let pattern = Pattern {
        one_position: false,
        ..Pattern::new(Directions::READ, BlockSizes::Fixed(BLOCK), 0)
    };
    let files = Files {
        fallocate: Fallocate::Native,
        invalidate: true,
        advice: Advised::Kernel(None),
        ..Files::new(PathBuf::new(), FileNames::Given(Vec::new()), 0)
    };
    JobPlan {
        buffers: Buffers {
            refill: false,
            scramble: true,
            ..Buffers::fresh(0, 0)
        },
        pace: Pace {
            loops: 1,
            rate_cycle: Nanos::SECOND,
            ..Pace::default()
        },
        ..JobPlan::new("", pattern, files)
    }
}
