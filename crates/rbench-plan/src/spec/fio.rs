//! `rbench fio`: jobs and their options as they were typed, units read. What
//! was left out is `None`; the defaults of fio are filled in by the plan.

use std::path::PathBuf;

use rbench_core::memory::MemoryKind;
use rbench_core::steady::Criterion;
use rbench_core::{Nanos, StatType};

use crate::iolog::Skip;
use crate::jobs::{
    Advised, Checksum, ContinueOn, Directions, Distribution, Each, ExitWhat, Fallocate, FileLock,
    FileService, Logs, RangeSync, Unified, VerifyPattern, Whole,
};
use crate::process::{MemoryPolicy, Nodes};

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
    /// It is the first of a job file behind other jobs: it waits for those.
    pub apart: bool,
    /// Its options, global ones included.
    pub settings: Settings,
    /// Its own options as they were typed.
    pub options: Vec<(String, String)>,
}

/// A size that may be a part of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes.
    Bytes(u64),
    /// So many per cent.
    Percent(u32),
}

/// One entry of `bssplit`: bytes, and its percentage if one is given.
pub type Split = (u64, Option<u32>);

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

/// `verify`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// `verify=0`
    Off,
    /// By this.
    With(Checksum),
}

/// Options of particular engines by their names in fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineSettings {
    /// `hipri`
    pub hipri: Option<bool>,
    /// `hipri_percentage`
    pub hipri_percentage: Option<u32>,
    /// `fixedbufs`
    pub fixedbufs: Option<bool>,
    /// `registerfiles`
    pub registerfiles: Option<bool>,
    /// `sqthread_poll`
    pub sqthread_poll: Option<bool>,
    /// `sqthread_poll_cpu`
    pub sqthread_poll_cpu: Option<u32>,
    /// `nonvectored`
    pub nonvectored: Option<bool>,
    /// `force_async`
    pub force_async: Option<u64>,
    /// `uncached`
    pub uncached: Option<bool>,
    /// `nowait`
    pub nowait: Option<bool>,
    /// `atomic`
    pub atomic: Option<bool>,
    /// `userspace_reap`
    pub userspace_reap: Option<bool>,
    /// `stat_type`
    pub stat_type: Option<StatType>,
}

/// Options of a job by their names in fio.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// The reading of values that fio reads in part, a sentence each.
    pub notes: Vec<String>,
    /// `directory`
    pub directory: Option<PathBuf>,
    /// The other ones of `directory=a:b`: workers take turns, where names are made for them.
    pub more_directories: Vec<PathBuf>,
    /// `filename`: all names that were given, in their order.
    pub filename: Option<Vec<String>>,
    /// The directory that held when the n-th of them was given; of those beyond the end
    /// it is `directory`.
    pub filename_directories: Vec<PathBuf>,
    /// `filename_format`
    pub filename_format: Option<String>,
    /// `nrfiles`
    pub nrfiles: Option<u64>,
    /// `openfiles`; 0: all.
    pub openfiles: Option<u64>,
    /// `file_service_type`
    pub file_service_type: Option<FileService>,
    /// `size`
    pub size: Option<Extent>,
    /// `filesize`: smallest and largest, bytes.
    pub filesize: Option<(u64, u64)>,
    /// `io_size`
    pub io_size: Option<Extent>,
    /// `offset`
    pub offset: Option<Extent>,
    /// `offset_increment`
    pub offset_increment: Option<Extent>,
    /// `offset_align`, bytes.
    pub offset_align: Option<u64>,
    /// `file_append`
    pub file_append: Option<bool>,
    /// `overwrite`
    pub overwrite: Option<bool>,
    /// `create_on_open`
    pub create_on_open: Option<bool>,
    /// `create_fsync`
    pub create_fsync: Option<bool>,
    /// `allow_file_create`
    pub allow_file_create: Option<bool>,
    /// `write_hint`: the kernel's number of it.
    pub write_hint: Option<u64>,
    /// `create_only`
    pub create_only: Option<bool>,
    /// `fallocate`
    pub fallocate: Option<Fallocate>,
    /// `pre_read`
    pub pre_read: Option<bool>,
    /// `invalidate`
    pub invalidate: Option<bool>,
    /// `fadvise_hint`
    pub fadvise_hint: Option<Advised>,
    /// `unlink`
    pub unlink: Option<bool>,
    /// `unlink_each_loop`
    pub unlink_each_loop: Option<bool>,
    /// `fill_device`
    pub fill_device: Option<bool>,
    /// `allow_mounted_write`
    pub allow_mounted_write: Option<bool>,
    /// `rw`
    pub rw: Option<Directions>,
    /// The number behind `rw`: bytes to leave out, or operations of a run.
    pub rw_number: Option<i64>,
    /// `rw_sequencer=identical`
    pub rw_identical: Option<bool>,
    /// `rwmixread`, or 100 less `rwmixwrite`, percent.
    pub rwmixread: Option<u32>,
    /// `bs`, bytes.
    pub bs: Each<Option<u64>>,
    /// `bsrange`: smallest and largest, bytes.
    pub bsrange: Each<Option<(u64, u64)>>,
    /// `bssplit`
    pub bssplit: Each<Option<Vec<Split>>>,
    /// `bs_unaligned`
    pub bs_unaligned: Option<bool>,
    /// `bs_is_seq_rand`
    pub bs_is_seq_rand: Option<bool>,
    /// `blockalign`, bytes.
    pub blockalign: Each<Option<u64>>,
    /// `random_distribution`
    pub random_distribution: Option<Distribution>,
    /// `random_sequence_stride`
    pub random_sequence_stride: Option<bool>,
    /// `random_generator=lfsr`
    pub lfsr: Option<bool>,
    /// `zonemode=strided`
    pub strided: Option<bool>,
    /// `zonesize`, bytes.
    pub zonesize: Option<u64>,
    /// `zonerange`, bytes.
    pub zonerange: Option<u64>,
    /// `zoneskip`, bytes.
    pub zoneskip: Option<u64>,
    /// `percentage_random`
    pub percentage_random: Each<Option<u32>>,
    /// `norandommap`
    pub norandommap: Option<bool>,
    /// `randseed`
    pub randseed: Option<u64>,
    /// `randrepeat`
    pub randrepeat: Option<bool>,
    /// `allrandrepeat`
    pub allrandrepeat: Option<bool>,
    /// `ioengine`
    pub ioengine: Option<String>,
    /// What belongs to the engine.
    pub engine_options: EngineSettings,
    /// `iodepth`
    pub iodepth: Option<u32>,
    /// `iodepth_batch`
    pub iodepth_batch: Option<u32>,
    /// `iodepth_batch_complete_min`
    pub iodepth_batch_complete_min: Option<u32>,
    /// `iodepth_batch_complete_max`
    pub iodepth_batch_complete_max: Option<u32>,
    /// `iodepth_low`
    pub iodepth_low: Option<u32>,
    /// `io_submit_mode=offload`
    pub offload: Option<bool>,
    /// `serialize_overlap`
    pub serialize_overlap: Option<bool>,
    /// `lockfile`
    pub lockfile: Option<FileLock>,
    /// `direct`, or the contrary of `buffered`.
    pub direct: Option<bool>,
    /// `sync`
    pub sync: Option<SyncMode>,
    /// `fsync`, writes.
    pub fsync: Option<u64>,
    /// `fdatasync`, writes.
    pub fdatasync: Option<u64>,
    /// `end_fsync`
    pub end_fsync: Option<bool>,
    /// `end_syncfs`
    pub end_syncfs: Option<bool>,
    /// `sync_file_range`
    pub sync_file_range: Option<RangeSync>,
    /// `fsync_on_close`
    pub fsync_on_close: Option<bool>,
    /// `scramble_buffers`
    pub scramble_buffers: Option<bool>,
    /// `refill_buffers`
    pub refill_buffers: Option<bool>,
    /// `zero_buffers`
    pub zero_buffers: Option<bool>,
    /// `buffer_pattern`
    pub buffer_pattern: Option<Vec<u8>>,
    /// `buffer_compress_percentage`
    pub buffer_compress_percentage: Option<u32>,
    /// `buffer_compress_chunk`, bytes.
    pub buffer_compress_chunk: Option<u64>,
    /// `dedupe_percentage`
    pub dedupe_percentage: Option<u32>,
    /// `dedupe_mode=working_set`
    pub dedupe_working_set: Option<bool>,
    /// `dedupe_working_set_percentage`
    pub dedupe_working_set_percentage: Option<u32>,
    /// `dedupe_global`
    pub dedupe_global: Option<bool>,
    /// `mem`, with the file behind it.
    pub mem: Option<(MemoryKind, Option<PathBuf>)>,
    /// `hugepage-size`, bytes.
    pub hugepage_size: Option<u64>,
    /// `iomem_align`, bytes.
    pub iomem_align: Option<u64>,
    /// `lockmem`, bytes.
    pub lockmem: Option<u64>,
    /// `runtime`
    pub runtime: Option<Nanos>,
    /// `time_based`
    pub time_based: Option<bool>,
    /// `ramp_time`
    pub ramp_time: Option<Nanos>,
    /// `startdelay`
    pub startdelay: Option<Nanos>,
    /// `loops`
    pub loops: Option<u64>,
    /// `number_ios`
    pub number_ios: Option<u64>,
    /// `numjobs`
    pub numjobs: Option<u32>,
    /// `stonewall`
    pub stonewall: Option<bool>,
    /// `wait_for`: the name of a job.
    pub wait_for: Option<String>,
    /// `rate`, bytes a second.
    pub rate: Each<Option<u64>>,
    /// `rate_iops`
    pub rate_iops: Each<Option<u64>>,
    /// `rate_min`, bytes a second.
    pub rate_min: Each<Option<u64>>,
    /// `rate_iops_min`
    pub rate_iops_min: Each<Option<u64>>,
    /// `rate_cycle`
    pub rate_cycle: Option<Nanos>,
    /// `rate_ignore_thinktime`
    pub rate_ignore_thinktime: Option<bool>,
    /// `rate_process=poisson`
    pub poisson: Option<bool>,
    /// `thinktime`
    pub thinktime: Option<Nanos>,
    /// `thinktime_spin`
    pub thinktime_spin: Option<Nanos>,
    /// `thinktime_blocks`
    pub thinktime_blocks: Option<u64>,
    /// `thinktime_blocks_type=issue`
    pub thinktime_by_issue: Option<bool>,
    /// `thinktime_iotime`
    pub thinktime_iotime: Option<Nanos>,
    /// `thinkcycles`
    pub thinkcycles: Option<u64>,
    /// `latency_target`
    pub latency_target: Option<Nanos>,
    /// `latency_window`
    pub latency_window: Option<Nanos>,
    /// `latency_percentile`
    pub latency_percentile: Option<f64>,
    /// `latency_run`
    pub latency_run: Option<bool>,
    /// `max_latency`
    pub max_latency: Option<Nanos>,
    /// `steadystate`
    pub steadystate: Option<Criterion>,
    /// `steadystate_duration`
    pub steadystate_duration: Option<Nanos>,
    /// `steadystate_ramp_time`
    pub steadystate_ramp_time: Option<Nanos>,
    /// `steadystate_check_interval`
    pub steadystate_check_interval: Option<Nanos>,
    /// `ramp_size`, bytes.
    pub ramp_size: Option<u64>,
    /// `exitall`
    pub exitall: Option<bool>,
    /// `exitall_on_error`
    pub exitall_on_error: Option<bool>,
    /// `exit_what`
    pub exit_what: Option<ExitWhat>,
    /// `flow`
    pub flow: Option<u32>,
    /// `flow_id`
    pub flow_id: Option<u64>,
    /// `flow_sleep`
    pub flow_sleep: Option<Nanos>,
    /// `verify`
    pub verify: Option<Check>,
    /// `verify_interval`, bytes.
    pub verify_interval: Option<u64>,
    /// `verify_pattern`
    pub verify_pattern: Option<VerifyPattern>,
    /// `verify_pattern_interval`, bytes.
    pub verify_pattern_interval: Option<u64>,
    /// `verify_offset`, bytes.
    pub verify_offset: Option<u64>,
    /// `verify_header_seed`
    pub verify_header_seed: Option<bool>,
    /// `verify_write_sequence`
    pub verify_write_sequence: Option<bool>,
    /// `verify_dump`
    pub verify_dump: Option<bool>,
    /// `verify_async`, threads.
    pub verify_async: Option<u32>,
    /// `verify_async_cpus`
    pub verify_async_cpus: Option<Vec<usize>>,
    /// `experimental_verify`
    pub experimental_verify: Option<bool>,
    /// `verify_state_save`
    pub verify_state_save: Option<bool>,
    /// `verify_state_load`
    pub verify_state_load: Option<bool>,
    /// `verify_policy=fsynced`
    pub verify_fsynced: Option<bool>,
    /// `do_verify`
    pub do_verify: Option<bool>,
    /// `verify_fatal`
    pub verify_fatal: Option<bool>,
    /// `verify_backlog`, writes.
    pub verify_backlog: Option<u64>,
    /// `verify_backlog_batch`, writes.
    pub verify_backlog_batch: Option<u64>,
    /// `verify_only`
    pub verify_only: Option<bool>,
    /// `trim_percentage`
    pub trim_percentage: Option<u32>,
    /// `trim_verify_zero`
    pub trim_verify_zero: Option<bool>,
    /// `trim_backlog`, writes.
    pub trim_backlog: Option<u64>,
    /// `trim_backlog_batch`, trims.
    pub trim_backlog_batch: Option<u64>,
    /// `group_reporting`
    pub group_reporting: Option<bool>,
    /// `new_group`
    pub new_group: Option<bool>,
    /// `unified_rw_reporting`
    pub unified: Option<Unified>,
    /// `disk_util`
    pub disk_util: Option<bool>,
    /// `percentile_list`
    pub percentile_list: Option<Vec<f64>>,
    /// `clat_percentiles`
    pub clat_percentiles: Option<bool>,
    /// `lat_percentiles`
    pub lat_percentiles: Option<bool>,
    /// `slat_percentiles`
    pub slat_percentiles: Option<bool>,
    /// `significant_figures`
    pub significant_figures: Option<u32>,
    /// `unit_base=1`: bandwidth in bits.
    pub bits: Option<bool>,
    /// `stats`
    pub stats: Option<bool>,
    /// `gtod_reduce`
    pub gtod_reduce: Option<bool>,
    /// `disable_lat`
    pub disable_lat: Option<bool>,
    /// `disable_clat`
    pub disable_clat: Option<bool>,
    /// `disable_slat`
    pub disable_slat: Option<bool>,
    /// `disable_bw_measurement`
    pub disable_bw: Option<bool>,
    /// `clocksource`
    pub clocksource: Option<String>,
    /// `job_start_clock_id`
    pub job_start_clock: Option<i32>,
    /// `bwavgtime`
    pub bwavgtime: Option<Nanos>,
    /// `iopsavgtime`
    pub iopsavgtime: Option<Nanos>,
    /// `write_bw_log` and its like, `log_avg_msec`, `log_hist_msec`,
    /// `log_offset`; nothing in it is a default of its own.
    pub logs: Logs,
    /// `cpus_allowed`, `cpumask`
    pub cpus_allowed: Option<Vec<u32>>,
    /// `cpus_allowed_policy=split`
    pub cpus_split: Option<bool>,
    /// `numa_cpu_nodes`
    pub numa_cpu_nodes: Option<Nodes>,
    /// `numa_mem_policy`
    pub numa_mem_policy: Option<MemoryPolicy>,
    /// `nice`
    pub nice: Option<i32>,
    /// `prio`, 0 to 7.
    pub prio: Option<u8>,
    /// `prioclass`, 0 to 3.
    pub prioclass: Option<u8>,
    /// `priohint`, 0 to 1023.
    pub priohint: Option<u16>,
    /// `uid`
    pub uid: Option<u32>,
    /// `gid`
    pub gid: Option<u32>,
    /// `comm`
    pub comm: Option<String>,
    /// `exec_prerun`
    pub exec_prerun: Option<String>,
    /// `exec_postrun`
    pub exec_postrun: Option<String>,
    /// `continue_on_error`
    pub continue_on_error: Option<ContinueOn>,
    /// `write_iolog`
    pub write_iolog: Option<String>,
    /// `read_iolog`: all that were given, in their order.
    pub read_iolog: Option<Vec<String>>,
    /// `read_iolog_chunked`
    pub read_iolog_chunked: Option<bool>,
    /// `replay_no_stall`
    pub replay_no_stall: Option<bool>,
    /// `replay_time_scale`, per cent.
    pub replay_time_scale: Option<u32>,
    /// `replay_redirect`
    pub replay_redirect: Option<String>,
    /// `replay_scale`
    pub replay_scale: Option<u64>,
    /// `replay_align`, bytes.
    pub replay_align: Option<u64>,
    /// `replay_skip`
    pub replay_skip: Option<Skip>,
    /// `ignore_error`: errno values of reads, writes and verification.
    pub ignore_error: [Vec<i32>; 3],
}
