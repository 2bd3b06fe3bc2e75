//! Options of jobs: duration and rate, verification, statistics.

use rbench_plan::jobs::{ContinueOn, ExitWhat, Unified};

use super::{Given, milliseconds};
use rbench_plan::given::one_of;

options! {
    /// Duration and rate.
    PACE: Job () {
    runtime | timeout => plan.pace.runtime: time(s), "Maximum run time";
    time_based => plan.pace.time_based: switch, "Repeat the work until runtime has passed";
    ramp_time => plan.pace.ramp: time(s) = "0",
        "Warm-up time before recording starts; added to runtime";
    ramp_size => plan.pace.ramp_bytes: size = "0",
        "Bytes to move before recording starts; group_reporting: in total";
    startdelay => plan.pace.delay: time(s) = "0", "Wait this long before the start";
    loops => plan.pace.loops: number = "1", "Number of times to do the work";
    number_ios => plan.pace.number_ios: number, "End after this many operations";
    rate => plan.pace.rate_bytes: each(size),
        "Maximum rate (bytes per second) of reads, writes, trims";
    rate_iops => plan.pace.rate_iops: each(number),
        "Maximum rate (operations per second) of reads, writes, trims";
    rate_min | ratemin => plan.pace.rate_min: each(size), "Fail below this rate (bytes per second)";
    rate_iops_min => plan.pace.rate_iops_min: each(number),
        "Fail below this rate (operations per second)";
    rate_cycle | ratecycle => plan.pace.rate_cycle: time(ms) = "1000",
        "Interval over which minimum rates are checked";
    rate_ignore_thinktime => plan.pace.rate_ignores_think: flag = "0",
        "Do not catch up with the rate after a pause";
    rate_process => plan.pace.poisson: words("HOW", "linear" = false, "poisson" = true) = "linear",
        "Gaps between operations: linear (equal), poisson (exponential)";
    thinktime => plan.pace.think: time(us) = "0", "Pause after operations";
    thinktime_spin => plan.pace.think_spin: time(us) = "0", "Part of thinktime to spend spinning";
    thinktime_blocks: number = "1", "Operations between two pauses";
    thinktime_blocks_type => plan.pace.think_by_issue: words("WHAT", "complete" = false,
            "issue" = true) = "complete",
        "Event to count for thinktime_blocks: complete, issue";
    thinktime_iotime => plan.pace.think_after: time(s) = "0",
        "Time of operations between two pauses";
    thinkcycles => plan.pace.think_cycles: number = "0",
        "Cycles to keep the processor busy at each pause";
    latency_target: time(us), "Search for the highest iodepth that keeps this latency";
    latency_window: time(us), "Window of the latency_target search";
    latency_percentile: of("PERCENT", percentile) = "100",
        "Percentage of operations that must keep latency_target";
    latency_run: flag = "0", "Search again after a depth is found, instead of ending";
    max_latency => plan.pace.latency_max: time(us), "Fail when an operation takes longer";
    steadystate | ss: of("WHAT:LIMIT[%]", Given::criterion) = "iops_slope:0.01%",
        "End when this is steady: iops, iops_slope, bw, bw_slope";
    steadystate_duration | ss_dur: time(s), "Window over which the steady state is judged";
    steadystate_ramp_time | ss_ramp | ss_ramp_time: time(s) = "0",
        "Time before the first steadystate window";
    steadystate_check_interval | ss_interval: time(s) = "1",
        "Time between two samples of the steadystate window";
    exitall: switch, "When a worker of this job ends, end the jobs of exit_what";
    exitall_on_error: switch, "Like exitall, when a worker of this job ends with an error";
    exit_what: words("WHICH", "group" = ExitWhat::Group, "stonewall" = ExitWhat::Stonewall,
            "all" = ExitWhat::All) = "group",
        "Jobs to end: group, stonewall (all that are running), all";
    flow: number = "0", "Weight of this job's operations in its flow; 0: not in a flow";
    flow_id: number = "0", "Flow that this job belongs to";
    flow_sleep: time(us) = "0", "Wait this long when other jobs of the flow are due";
    flow_watermark: accept(number), "Deprecated: has no effect, as in fio";
    continue_on_error: of("WHICH", continue_on) = "none",
        "Errors that do not end a job: none, read, write, io, verify, all";
    error_dump: accept(flag) = "0", "Accepted: every kind of failure is reported with an example";
    ignore_error: of("LIST[,LIST[,LIST]]", Given::error_lists),
        "Errors to ignore in reads, writes, verification (EIO:28)";
}}

options! {
    /// Verification.
    VERIFY: Job () {
    verify: of("HOW", Given::check) = "0",
        "Verify blocks by: checksum (crc32c, md5, ...), meta, pattern, null";
    do_verify: flag = "1", "Read back and check the written data";
    verify_interval: size(80) = "the block", "Distance between verification headers (bytes)";
    verify_pattern => layout.pattern: of("PATTERN", Given::verify_pattern),
        "Data of verify=pattern, or between headers";
    verify_pattern_interval => layout.pattern_interval: size,
        "Restart the pattern after this many bytes";
    verify_offset => layout.offset: size(40), "Offset of the header in its interval (bytes)";
    verify_header_seed => layout.seed: flag = "1", "Check the seed in headers";
    verify_write_sequence => layout.sequence: flag = "1",
        "Check the sequence number of the write in headers";
    verify_dump => checks.dump: flag = "0",
        "Save wrong blocks to FILE.OFFSET.received and .expected";
    verify_async => checks.threads: number = "0", "Threads per job that check the data it reads";
    verify_async_cpus => checks.cpus: of("LIST", Given::cpus),
        "Processors of the verify_async threads";
    verify_fatal => checks.fatal: flag = "0", "End the job at the first wrong block";
    verify_backlog => checks.backlog: number, "Read back and check after every N writes";
    verify_backlog_batch: number = "verify_backlog",
        "Number of backlog writes to read back at a time";
    trim_percentage: of("N", Given::percent) = "0",
        "Percentage of a verified job's writes to trim later";
    trim_backlog: number, "Trim the blocks chosen by trim_percentage after every N writes";
    trim_backlog_batch: number = "trim_backlog", "Number of chosen blocks to trim at a time";
    trim_verify_zero => checks.trimmed_is_zero: flag = "1",
        "Read back trimmed blocks, which must be zeros; 0: do not";
    verify_state_save => checks.save_state: flag = "1",
        "Record completed writes in local-NAME-N-verify.state";
    verify_state_load => checks.load_state: flag = "0",
        "Verify only the writes recorded in such a state file";
    verify_policy => checks.synced_only: words("WHICH", "completed" = false,
            "fsynced" = true) = "completed",
        "With a loaded state, writes to verify: completed, fsynced";
    experimental_verify: flag = "0",
        "Read back the same pattern of offsets, including repeated blocks";
    verifysort: accept(flag) = "1", "Deprecated: has no effect, as in fio";
    verifysort_nr: accept(number), "Deprecated: has no effect, as in fio";
    verify_only: switch, "Write nothing; check the data of an earlier run";
}}

options! {
    /// Reports and logs of a job.
    REPORT: Job () {
    group_reporting => report.group_reporting: switch, "Report all workers of a group in one entry";
    unified_rw_reporting => report.shown.unified: words("HOW", "none" = Unified::Apart,
            "0" = Unified::Apart, "mixed" = Unified::Mixed, "1" = Unified::Mixed,
            "both" = Unified::Both, "2" = Unified::Both) = "none",
        "none (0): rows for reads and for writes; mixed (1): one row; both (2)";
    percentile_list => report.shown.percentiles: of("PERCENT:...", Given::percentiles)
            = "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        "Percentiles to report, separated by colons";
    clat_percentiles => report.shown.clat_percentiles: flag = "1",
        "Report percentiles of completion latency";
    lat_percentiles => report.shown.lat_percentiles: flag = "0", "Report percentiles of total latency";
    slat_percentiles => report.shown.slat_percentiles: flag = "0",
        "Report percentiles of submission latency";
    write_bw_log => report.logs.bandwidth: log, "Log bandwidth to PREFIX_bw.N.log";
    write_iops_log => report.logs.iops: log, "Log operations per second to PREFIX_iops.N.log";
    write_lat_log => report.logs.latency: log,
        "Log latencies to PREFIX_lat.N.log, _slat.N.log, _clat.N.log";
    write_hist_log => report.logs.histogram: log,
        "Log histograms of latency to PREFIX_clat_hist.N.log";
    log_avg_msec => report.logs.average: of("TIME", milliseconds) = "0",
        "Average log entries over this time (ms); 0: a line per operation";
    log_hist_msec => report.logs.histogram_every: time(ms), "Interval between logged histograms";
    log_offset => report.logs.offsets: flag = "0", "Add a column of offsets to logs";
}}

fn percentile(g: Given<'_>) -> Result<f64, String> {
    match g.percentiles()?.as_slice() {
        [one] => Ok(*one),
        _ => Err("give one percentile".to_owned()),
    }
}

fn continue_on(g: Given<'_>) -> Result<ContinueOn, String> {
    let on = |read, write, verify| ContinueOn {
        read,
        write,
        verify,
        errors: Default::default(),
    };
    one_of(
        g.text,
        &[
            ("none", on(false, false, false)),
            ("0", on(false, false, false)),
            ("read", on(true, false, false)),
            ("write", on(false, true, false)),
            ("io", on(true, true, false)),
            ("verify", on(false, false, true)),
            ("all", on(true, true, true)),
            ("1", on(true, true, true)),
        ],
    )
}
