//! `rbench fio`: jobs and their options as they were typed, units read. What
//! was left out is `None`; the defaults of fio are filled in by the plan.

use std::path::PathBuf;

use rbench_core::memory::MemoryKind;
use rbench_core::steady::Criterion;
use rbench_core::{EngineOptions, Nanos};

use crate::iolog::Skip;
use crate::jobs::{
    Advised, ContinueOn, Directions, Distribution, Each, ExitWhat, Fallocate, FileLock,
    FileService, Logs, RangeSync, Unified, VerifyPattern, Whole,
};
use crate::process::{MemoryPolicy, Nodes};

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

/// `sync`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// Neither.
    None,
    /// O_SYNC
    Sync,
    /// O_DSYNC
    Dsync,
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
        $($rest:tt)*
    ) => {
        /// Options of a job by their names in fio.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Settings {
            $(
                #[doc = concat!("`", option!($field $($option)?), "`" $(, ": ", $note)?)]
                pub $field: Option<$type>,
            )*
            $(
                #[doc = concat!("`", stringify!($each), "`" $(, ": ", $of_note)?)]
                pub $each: Each<Option<$of>>,
            )*
            $($rest)*
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
    directory: PathBuf;
    filename: Vec<String> = "all names that were given, in their order";
    filename_format: String;
    nrfiles: u64;
    openfiles: u64 = "0: all";
    file_service_type: FileService;
    size: Extent;
    filesize: (u64, u64) = "smallest and largest, bytes";
    io_size: Extent;
    offset: Extent;
    offset_increment: Extent;
    offset_align: u64 = "bytes";
    file_append: bool;
    overwrite: bool;
    create_on_open: bool;
    create_fsync: bool;
    allow_file_create: bool;
    write_hint: u64 = "the kernel's number of it";
    create_only: bool;
    fallocate: Fallocate;
    pre_read: bool;
    invalidate: bool;
    fadvise_hint: Advised;
    unlink: bool;
    unlink_each_loop: bool;
    fill_device: bool;
    allow_mounted_write: bool;
    rw: Directions;
    rw_number <- "rw=…:N": i64 = "bytes to leave out, or operations of a run";
    rw_identical <- "rw_sequencer=identical": bool;
    rwmixread: u32 = "or 100 less `rwmixwrite`, percent";
    bs_unaligned: bool;
    bs_is_seq_rand: bool;
    random_distribution: Distribution;
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
    iodepth: u32;
    iodepth_batch: u32;
    iodepth_batch_complete_min: u32;
    iodepth_batch_complete_max: u32;
    iodepth_low: u32;
    offload <- "io_submit_mode=offload": bool;
    serialize_overlap: bool;
    lockfile: FileLock;
    direct: bool = "or the contrary of `buffered`";
    sync: SyncMode;
    fsync: u64 = "writes";
    fdatasync: u64 = "writes";
    end_fsync: bool;
    end_syncfs: bool;
    sync_file_range: RangeSync;
    fsync_on_close: bool;
    scramble_buffers: bool;
    refill_buffers: bool;
    zero_buffers: bool;
    buffer_pattern: Vec<u8>;
    buffer_compress_percentage: u32;
    buffer_compress_chunk: u64 = "bytes";
    dedupe_percentage: u32;
    dedupe_working_set <- "dedupe_mode=working_set": bool;
    dedupe_working_set_percentage: u32;
    dedupe_global: bool;
    mem: (MemoryKind, Option<PathBuf>) = "with the path of its file";
    hugepage_size <- "hugepage-size": u64 = "bytes";
    iomem_align: u64 = "bytes";
    lockmem: u64 = "bytes";
    runtime: Nanos;
    time_based: bool;
    ramp_time: Nanos;
    startdelay: Nanos;
    loops: u64;
    number_ios: u64;
    numjobs: u32;
    stonewall: bool;
    wait_for: String = "the name of a job";
    rate_cycle: Nanos;
    rate_ignore_thinktime: bool;
    poisson <- "rate_process=poisson": bool;
    thinktime: Nanos;
    thinktime_spin: Nanos;
    thinktime_blocks: u64;
    thinktime_by_issue <- "thinktime_blocks_type=issue": bool;
    thinktime_iotime: Nanos;
    thinkcycles: u64;
    latency_target: Nanos;
    latency_window: Nanos;
    latency_percentile: f64;
    latency_run: bool;
    max_latency: Nanos;
    steadystate: Criterion;
    steadystate_duration: Nanos;
    steadystate_ramp_time: Nanos;
    steadystate_check_interval: Nanos;
    ramp_size: u64 = "bytes";
    exitall: bool;
    exitall_on_error: bool;
    exit_what: ExitWhat;
    flow: u32;
    flow_id: u64;
    flow_sleep: Nanos;
    verify: Check;
    verify_interval: u64 = "bytes";
    verify_pattern: VerifyPattern;
    verify_pattern_interval: u64 = "bytes";
    verify_offset: u64 = "bytes";
    verify_header_seed: bool;
    verify_write_sequence: bool;
    verify_dump: bool;
    verify_async: u32 = "threads";
    verify_async_cpus: Vec<usize>;
    experimental_verify: bool;
    verify_state_save: bool;
    verify_state_load: bool;
    verify_fsynced <- "verify_policy=fsynced": bool;
    do_verify: bool;
    verify_fatal: bool;
    verify_backlog: u64 = "writes";
    verify_backlog_batch: u64 = "writes";
    verify_only: bool;
    trim_percentage: u32;
    trim_verify_zero: bool;
    trim_backlog: u64 = "writes";
    trim_backlog_batch: u64 = "trims";
    group_reporting: bool;
    new_group: bool;
    unified <- "unified_rw_reporting": Unified;
    disk_util: bool;
    percentile_list: Vec<f64>;
    clat_percentiles: bool;
    lat_percentiles: bool;
    slat_percentiles: bool;
    significant_figures: u32;
    bits <- "unit_base=1": bool = "bandwidth in bits";
    stats: bool;
    gtod_reduce: bool;
    disable_lat: bool;
    disable_clat: bool;
    disable_slat: bool;
    disable_bw <- "disable_bw_measurement": bool;
    clocksource: String;
    job_start_clock <- "job_start_clock_id": i32;
    bwavgtime: Nanos;
    iopsavgtime: Nanos;
    cpus_allowed: Vec<u32> = "`cpumask`";
    cpus_split <- "cpus_allowed_policy=split": bool;
    numa_cpu_nodes: Nodes;
    numa_mem_policy: MemoryPolicy;
    nice: i32;
    prio: u8 = "0 to 7";
    prioclass: u8 = "0 to 3";
    priohint: u16 = "0 to 1023";
    uid: u32;
    gid: u32;
    comm: String;
    exec_prerun: String;
    exec_postrun: String;
    continue_on_error: ContinueOn;
    write_iolog: String;
    read_iolog: Vec<String> = "all that were given, in their order";
    read_iolog_chunked: bool;
    replay_no_stall: bool;
    replay_time_scale: u32 = "per cent";
    replay_redirect: String;
    replay_scale: u64;
    replay_align: u64 = "bytes";
    replay_skip: Skip;
} each {
    bs: u64 = "bytes";
    bsrange: (u64, u64) = "smallest and largest, bytes";
    bssplit: Vec<Split>;
    blockalign: u64 = "bytes";
    percentage_random: u32;
    rate: u64 = "bytes a second";
    rate_iops: u64;
    rate_min: u64 = "bytes a second";
    rate_iops_min: u64;
}
    /// The reading of values that fio reads in part, a sentence each.
    pub notes: Vec<String>,
    /// The other ones of `directory=a:b`: workers take turns, where names are made for them.
    pub more_directories: Vec<PathBuf>,
    /// The directory that held when the n-th of `filename` was given; of those beyond the
    /// end it is `directory`.
    pub filename_directories: Vec<PathBuf>,
    /// Options of the engine.
    pub engine_options: EngineOptions,
    /// Priorities of requests, where the engine has them.
    pub cmdprio: Cmdprio,
    /// The options that belong to engines and were given, and those engines.
    pub of_engines: Vec<(&'static str, &'static [&'static str])>,
    /// `write_bw_log` and its like, `log_avg_msec`, `log_hist_msec`, `log_offset`.
    pub logs: Logs,
    /// `ignore_error`: errno values of reads, writes and verification.
    pub ignore_error: [Vec<i32>; 3],
}
