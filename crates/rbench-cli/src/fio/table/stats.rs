//! Options of jobs: which statistics are reported, and the form of reports and logs.

use rbench_plan::jobs::WindowValue;

use super::text;

options! {
    /// Statistics, reports and logs.
    STATS: Job () {
    stats => report.left_out.all: inverted = "1", "Include the job in the report";
    disable_lat => report.left_out.lat: flag = "0", "Leave total latency out of the report";
    disable_clat => report.left_out.clat: flag = "0", "Leave completion latency out of the report";
    disable_slat => report.left_out.slat: flag = "0", "Leave submission latency out of the report";
    disable_bw_measurement | disable_bw => report.left_out.samples: flag = "0",
        "Leave samples of bandwidth and IOPS out of the report";
    gtod_reduce: flag = "0", "Turn on all disable options; the clock is still read";
    clocksource: words("HOW", "gettimeofday" = "gettimeofday".to_owned(),
            "clock_gettime" = "clock_gettime".to_owned(), "cpu" = "cpu".to_owned()),
        "Accepted: rbench chooses its clock and reports it";
    job_start_clock_id => report.job_start_clock: within(0, 11) = "0",
        "Clock of job_start in JSON, as its number in clock_gettime";
    bwavgtime: time(ms) = "500", "Length of a bandwidth sample";
    iopsavgtime: time(ms) = "500", "Length of an IOPS sample";
    unit_base => report.shown.bits: words("0|1|8", "0" = false, "1" = true, "8" = false) = "0",
        "Unit of bandwidth in the normal output: 1: bits; 0, 8: bytes";
    significant_figures => report.shown.significant_figures: within(1, 10) = "4",
        "Significant digits of numbers in the normal output";
    per_job_logs => report.logs.one_file: inverted = "1",
        "One log per worker; 0: one for all, without a number in its name";
    log_max_value | log_window_value => report.logs.values: words("HOW",
            "avg" = WindowValue::Average, "0" = WindowValue::Average, "max" = WindowValue::Max,
            "1" = WindowValue::Max, "both" = WindowValue::Both) = "avg",
        "Latency to log with log_avg_msec: avg (0), max (1), both (2 columns)";
    log_prio => report.logs.priority: flag = "0",
        "Log the priority in the last column; 0: log whether it is high";
    log_hist_coarseness => report.logs.coarseness: within(0, 6) = "0",
        "Columns of logged histograms: 1856 divided by 2 to this power";
    log_unix_epoch => report.logs.of_clock: flag = "0", "Log times since 1970 (Unix time)";
    log_alternate_epoch => report.logs.of_clock: flag = "0",
        "Log times of the clock log_alternate_epoch_clock_id";
    log_alternate_epoch_clock_id => report.logs.clock: within(0, 11) = "0",
        "Clock of log_alternate_epoch, as its number in clock_gettime";
    log_entries: accept(of("N", |g| g.within::<u64>(1024, 1 << 20))) = "1024",
        "Accepted: logs start with room for 2^20 entries and grow untimed";
    log_compression: accept(of("SIZE", |g| g.within::<u64>(1024, 512 << 20))),
        "Accepted: logs stay uncompressed in memory until they are written";
    log_store_compressed => report.logs.compressed: flag = "0",
        "Write compressed logs to PREFIX_lat.N.log.fz (see --inflate-log)";
    log_issue_time => report.logs.issue_time: flag = "0",
        "Log the submission time of operations in the last column (ns)";
    disk_util => report.disks: flag = "1",
        "Report the activity of the block devices below the job's files";
    log_compression_cpus: accept(of("LIST", text)),
        "Accepted: logs are compressed when they are written";
}}
