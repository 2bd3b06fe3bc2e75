//! What fio 3.33 knows and rbench does not.

/// Options of single engines: fio knows them once the engine is given, and so
/// never by a beginning of their names.
pub const OF_ENGINES: &str = "arguments bindname brick busy_poll clientname clustername cmd_type cmdprio \
    cmdprio_bssplit cmdprio_class cmdprio_percentage conf cpuchunks cpuload cpumode \
    donorname exit_on_io_done force_async grace_time hipri hipri_percentage hostname \
    inplace interface listen mss nodelay nonvectored nowait pingpong pool port program \
    protocol rbdname readfua sg_write_mode single-instance skip_bad sqthread_poll \
    sqthread_poll_cpu stat_type std_redirect stream_id thp touch_objects ttl uncached \
    uri userspace_reap verb volume window_size writefua";

/// Names, by the reason why they are not supported.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "it is not supported by rbench",
        "allow_file_create allrandrepeat atomic aux-path bandwidth-log \
         block_error_percentiles blocksize_unaligned bs_is_seq_rand bs_unaligned bwavgtime \
         cgroup cgroup_nodelete cgroup_weight clocksource cpuclock-test cpumask cpus_allowed \
         cpus_allowed_policy crctest create_fsync debug dedupe_global dedupe_mode \
         dedupe_working_set_percentage disable_bw disable_bw_measurement disable_clat \
         disable_lat disable_slat disk_util enghelp error_dump exec_postrun exec_prerun \
         exit_what exitall exitall_on_error experimental_verify file_append fill_device \
         fill_fs flow flow_id flow_sleep flow_watermark gid gtod_cpu gtod_reduce \
         hugepage-size idle-prof ignore_error ignore_zone_limits inflate-log io_submit_mode \
         iodepth_batch_complete_max iodepth_low iomem iomem_align iopsavgtime ioscheduler \
         job_max_open_zones latency-log latency_run lockfile lockmem log_alternate_epoch \
         log_alternate_epoch_clock_id log_compression log_compression_cpus log_entries \
         log_hist_coarseness log_max_value log_prio log_store_compressed log_unix_epoch \
         max_open_zones mem mem_align memcpytest merge-blktrace-only merge_blktrace_file \
         merge_blktrace_iters merge_blktrace_scalars nice numa_cpu_nodes numa_mem_policy \
         offset_align opendir per_job_logs percentage_sequential prio prioclass profile \
         random_generator rate_cycle rate_ignore_thinktime rate_iops_min ratecycle \
         read_beyond_wp read_iolog read_iolog_chunked replay_align replay_no_stall \
         replay_redirect replay_scale replay_skip replay_time_scale rw_sequencer rwmixcycle \
         serialize_overlap significant_figures slat_percentiles softrandommap stats \
         sync_file_range thinktime_blocks_type thinktime_iotime trigger trigger-file \
         trigger-remote trigger-timeout trim_backlog trim_backlog_batch trim_percentage \
         trim_verify_zero uid unique_filename unit_base unlink_each_loop verify_async \
         verify_async_cpus verify_backlog_batch verify_dump verify_offset verify_state_load \
         verify_state_save verifysort verifysort_nr write_barrier write_hint write_iolog \
         zone_reset_frequency zone_reset_threshold zonecapacity zonemode zonerange zonesize \
         zoneskip",
    ),
    (
        "start ranks on several hosts with mpirun instead",
        "client daemonize remote-config server",
    ),
    (
        "options of profiles are not supported by rbench",
        "block device-names dir large-block-op-kbytes load numruns prep \
         read-req-num-512-blocks test-duration threads threads-per-queue",
    ),
    (
        "options of this engine are not supported by rbench",
        OF_ENGINES,
    ),
];

/// Why a name of fio is not supported.
pub fn refusal(name: &str) -> Option<&'static str> {
    REFUSED
        .iter()
        .find(|(_, names)| names.split_whitespace().any(|known| known == name))
        .map(|(why, _)| *why)
}
