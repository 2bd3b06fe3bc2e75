//! Options of jobs: how long and how fast, verification, statistics.

use rbench_core::Nanos;
use rbench_plan::jobs::{ContinueOn, ExitWhat, Unified};

use super::{Given, Opt, put, put_each};
use crate::given::one_of;

const SECOND: Nanos = Nanos::SECOND;
const MILLI: Nanos = Nanos::MILLISECOND;
const MICRO: Nanos = Nanos::MICROSECOND;

/// How long and how fast.
pub const PACE: &[Opt] = &[
    Opt::job("runtime", "TIME", "Maximum run time (s)", |s, g| {
        put(&mut s.runtime, g.time(SECOND))
    })
    .or(&["timeout"]),
    Opt::switch(
        "time_based",
        "Repeat the work until runtime has passed",
        |s, g| put(&mut s.time_based, g.flag()),
    ),
    Opt::job(
        "ramp_time",
        "TIME",
        "Warm-up time before recording starts; added to runtime (s)",
        |s, g| put(&mut s.ramp_time, g.time(SECOND)),
    )
    .default("0"),
    Opt::job(
        "ramp_size",
        "SIZE",
        "Bytes to move before recording starts; group_reporting: in total",
        |s, g| put(&mut s.ramp_size, g.count(0)),
    )
    .default("0"),
    Opt::job(
        "startdelay",
        "TIME",
        "Wait this long before the start (s)",
        |s, g| put(&mut s.startdelay, g.time(SECOND)),
    )
    .default("0"),
    Opt::job("loops", "N", "Number of times to do the work", |s, g| {
        put(&mut s.loops, g.count(0))
    })
    .default("1"),
    Opt::job(
        "number_ios",
        "N",
        "End after this many operations",
        |s, g| put(&mut s.number_ios, g.count(0)),
    ),
    Opt::job(
        "rate",
        "SIZE[,...]",
        "Maximum rate (bytes per second) of reads, writes, trims",
        |s, g| put_each(&mut s.rate, g.each(|g| g.count(0))),
    ),
    Opt::job(
        "rate_iops",
        "N[,...]",
        "Maximum rate (operations per second) of reads, writes, trims",
        |s, g| put_each(&mut s.rate_iops, g.each(|g| g.count(0))),
    ),
    Opt::job(
        "rate_min",
        "SIZE[,...]",
        "Fail below this rate (bytes per second)",
        |s, g| put_each(&mut s.rate_min, g.each(|g| g.count(0))),
    )
    .or(&["ratemin"]),
    Opt::job(
        "rate_iops_min",
        "N[,...]",
        "Fail below this rate (operations per second)",
        |s, g| put_each(&mut s.rate_iops_min, g.each(|g| g.count(0))),
    ),
    Opt::job(
        "rate_cycle",
        "TIME",
        "Interval over which minimum rates are checked (ms)",
        |s, g| put(&mut s.rate_cycle, g.time(MILLI)),
    )
    .or(&["ratecycle"])
    .default("1000"),
    Opt::job(
        "rate_ignore_thinktime",
        "0|1",
        "Do not catch up with the rate after a pause",
        |s, g| put(&mut s.rate_ignore_thinktime, g.flag()),
    )
    .default("0"),
    Opt::job(
        "rate_process",
        "HOW",
        "Gaps between operations: linear (equal), poisson (exponential)",
        |s, g| {
            let words = [("linear", false), ("poisson", true)];
            put(&mut s.poisson, one_of(g.text, &words))
        },
    )
    .default("linear"),
    Opt::job(
        "thinktime",
        "TIME",
        "Pause after operations (us)",
        |s, g| put(&mut s.thinktime, g.time(MICRO)),
    )
    .default("0"),
    Opt::job(
        "thinktime_spin",
        "TIME",
        "Part of thinktime to spend spinning (us)",
        |s, g| put(&mut s.thinktime_spin, g.time(MICRO)),
    )
    .default("0"),
    Opt::job(
        "thinktime_blocks",
        "N",
        "Operations between two pauses",
        |s, g| put(&mut s.thinktime_blocks, g.count(0)),
    )
    .default("1"),
    Opt::job(
        "thinktime_blocks_type",
        "WHAT",
        "Event to count for thinktime_blocks: complete, issue",
        |s, g| {
            let words = [("complete", false), ("issue", true)];
            put(&mut s.thinktime_by_issue, one_of(g.text, &words))
        },
    )
    .default("complete"),
    Opt::job(
        "thinktime_iotime",
        "TIME",
        "Time of operations between two pauses (s)",
        |s, g| put(&mut s.thinktime_iotime, g.time(SECOND)),
    )
    .default("0"),
    Opt::job(
        "thinkcycles",
        "N",
        "Cycles to keep the processor busy at each pause",
        |s, g| put(&mut s.thinkcycles, g.count(0)),
    )
    .default("0"),
    Opt::job(
        "latency_target",
        "TIME",
        "Search for the highest iodepth that keeps this latency (us)",
        |s, g| put(&mut s.latency_target, g.time(MICRO)),
    ),
    Opt::job(
        "latency_window",
        "TIME",
        "Window of the latency_target search (us)",
        |s, g| put(&mut s.latency_window, g.time(MICRO)),
    ),
    Opt::job(
        "latency_percentile",
        "PERCENT",
        "Percentage of operations that must keep latency_target",
        |s, g| put(&mut s.latency_percentile, percentile(g)),
    )
    .default("100"),
    Opt::job(
        "latency_run",
        "0|1",
        "Search again after a depth is found, instead of ending",
        |s, g| put(&mut s.latency_run, g.flag()),
    )
    .default("0"),
    Opt::job(
        "max_latency",
        "TIME",
        "Fail when an operation takes longer (us)",
        |s, g| put(&mut s.max_latency, g.time(MICRO)),
    ),
    Opt::job(
        "steadystate",
        "WHAT:LIMIT[%]",
        "End when this is steady: iops, iops_slope, bw, bw_slope",
        |s, g| put(&mut s.steadystate, g.criterion()),
    )
    .or(&["ss"])
    .default("iops_slope:0.01%"),
    Opt::job(
        "steadystate_duration",
        "TIME",
        "Window over which the steady state is judged (s)",
        |s, g| put(&mut s.steadystate_duration, g.time(SECOND)),
    )
    .or(&["ss_dur"]),
    Opt::job(
        "steadystate_ramp_time",
        "TIME",
        "Time before the first steadystate window (s)",
        |s, g| put(&mut s.steadystate_ramp_time, g.time(SECOND)),
    )
    .or(&["ss_ramp", "ss_ramp_time"])
    .default("0"),
    Opt::job(
        "steadystate_check_interval",
        "TIME",
        "Time between two samples of the steadystate window (s)",
        |s, g| put(&mut s.steadystate_check_interval, g.time(SECOND)),
    )
    .or(&["ss_interval"])
    .default("1"),
    Opt::switch(
        "exitall",
        "When a worker of this job ends, end the jobs of exit_what",
        |s, g| put(&mut s.exitall, g.flag()),
    ),
    Opt::switch(
        "exitall_on_error",
        "Like exitall, when a worker of this job ends with an error",
        |s, g| put(&mut s.exitall_on_error, g.flag()),
    ),
    Opt::job(
        "exit_what",
        "WHICH",
        "Jobs to end: group, stonewall (all that are running), all",
        |s, g| {
            let words = [
                ("group", ExitWhat::Group),
                ("stonewall", ExitWhat::Stonewall),
                ("all", ExitWhat::All),
            ];
            put(&mut s.exit_what, one_of(g.text, &words))
        },
    )
    .default("group"),
    Opt::job(
        "flow",
        "N",
        "Weight of this job's operations in its flow; 0: not in a flow",
        |s, g| put(&mut s.flow, g.count(0)),
    )
    .default("0"),
    Opt::job("flow_id", "N", "Flow that this job belongs to", |s, g| {
        put(&mut s.flow_id, g.count(0))
    })
    .default("0"),
    Opt::job(
        "flow_sleep",
        "TIME",
        "Wait this long when other jobs of the flow are due (us)",
        |s, g| put(&mut s.flow_sleep, g.time(MICRO)),
    )
    .default("0"),
    Opt::job(
        "flow_watermark",
        "N",
        "Deprecated: has no effect, as in fio",
        |_, g| g.count::<u64>(0).map(drop),
    ),
    Opt::job(
        "continue_on_error",
        "WHICH",
        "Errors that do not end a job: none, read, write, io, verify, all",
        |s, g| put(&mut s.continue_on_error, continue_on(g)),
    )
    .default("none"),
    Opt::job(
        "error_dump",
        "0|1",
        "Accepted: every kind of failure is reported with an example",
        |_, g| g.flag().map(drop),
    )
    .default("0"),
    Opt::job(
        "ignore_error",
        "LIST[,LIST[,LIST]]",
        "Errors to ignore in reads, writes, verification (EIO:28)",
        |s, g| {
            s.ignore_error = g.error_lists()?;
            Ok(())
        },
    ),
];

/// Verification.
pub const VERIFY: &[Opt] = &[
    Opt::job(
        "verify",
        "HOW",
        "Verify blocks by: checksum (crc32c, md5, ...), meta, pattern, null",
        |s, g| put(&mut s.verify, g.check()),
    )
    .default("0"),
    Opt::job(
        "do_verify",
        "0|1",
        "Read back and check the written data",
        |s, g| put(&mut s.do_verify, g.flag()),
    )
    .default("1"),
    Opt::job(
        "verify_interval",
        "SIZE",
        "Distance between verification headers (bytes)",
        |s, g| put(&mut s.verify_interval, g.count(80)),
    )
    .default("the block"),
    Opt::job(
        "verify_pattern",
        "PATTERN",
        "Data of verify=pattern, or between headers",
        |s, g| put(&mut s.verify_pattern, g.verify_pattern()),
    ),
    Opt::job(
        "verify_pattern_interval",
        "SIZE",
        "Restart the pattern after this many bytes",
        |s, g| put(&mut s.verify_pattern_interval, g.count(0)),
    ),
    Opt::job(
        "verify_offset",
        "SIZE",
        "Offset of the header in its interval (bytes)",
        |s, g| put(&mut s.verify_offset, g.count(40)),
    ),
    Opt::job(
        "verify_header_seed",
        "0|1",
        "Check the seed in headers",
        |s, g| put(&mut s.verify_header_seed, g.flag()),
    )
    .default("1"),
    Opt::job(
        "verify_write_sequence",
        "0|1",
        "Check the sequence number of the write in headers",
        |s, g| put(&mut s.verify_write_sequence, g.flag()),
    )
    .default("1"),
    Opt::job(
        "verify_dump",
        "0|1",
        "Save wrong blocks to FILE.OFFSET.received and .expected",
        |s, g| put(&mut s.verify_dump, g.flag()),
    )
    .default("0"),
    Opt::job(
        "verify_async",
        "N",
        "Threads per job that check the data it reads",
        |s, g| put(&mut s.verify_async, g.count(0)),
    )
    .default("0"),
    Opt::job(
        "verify_async_cpus",
        "LIST",
        "Processors of the verify_async threads",
        |s, g| put(&mut s.verify_async_cpus, g.cpus()),
    ),
    Opt::job(
        "verify_fatal",
        "0|1",
        "End the job at the first wrong block",
        |s, g| put(&mut s.verify_fatal, g.flag()),
    )
    .default("0"),
    Opt::job(
        "verify_backlog",
        "N",
        "Read back and check after every N writes",
        |s, g| put(&mut s.verify_backlog, g.count(0)),
    ),
    Opt::job(
        "verify_backlog_batch",
        "N",
        "Number of backlog writes to read back at a time",
        |s, g| put(&mut s.verify_backlog_batch, g.count(0)),
    )
    .default("verify_backlog"),
    Opt::job(
        "trim_percentage",
        "N",
        "Percentage of a verified job's writes to trim later",
        |s, g| put(&mut s.trim_percentage, g.percent()),
    )
    .default("0"),
    Opt::job(
        "trim_backlog",
        "N",
        "Trim the blocks chosen by trim_percentage after every N writes",
        |s, g| put(&mut s.trim_backlog, g.count(0)),
    ),
    Opt::job(
        "trim_backlog_batch",
        "N",
        "Number of chosen blocks to trim at a time",
        |s, g| put(&mut s.trim_backlog_batch, g.count(0)),
    )
    .default("trim_backlog"),
    Opt::job(
        "trim_verify_zero",
        "0|1",
        "Read back trimmed blocks, which must be zeros; 0: do not",
        |s, g| put(&mut s.trim_verify_zero, g.flag()),
    )
    .default("1"),
    Opt::job(
        "verify_state_save",
        "0|1",
        "Record completed writes in local-NAME-N-verify.state",
        |s, g| put(&mut s.verify_state_save, g.flag()),
    )
    .default("1"),
    Opt::job(
        "verify_state_load",
        "0|1",
        "Verify only the writes recorded in such a state file",
        |s, g| put(&mut s.verify_state_load, g.flag()),
    )
    .default("0"),
    Opt::job(
        "verify_policy",
        "WHICH",
        "With a loaded state, writes to verify: completed, fsynced",
        |s, g| {
            let words = [("completed", false), ("fsynced", true)];
            put(&mut s.verify_fsynced, one_of(g.text, &words))
        },
    )
    .default("completed"),
    Opt::job(
        "experimental_verify",
        "0|1",
        "Read back the same pattern of offsets, including repeated blocks",
        |s, g| put(&mut s.experimental_verify, g.flag()),
    )
    .default("0"),
    Opt::job(
        "verifysort",
        "0|1",
        "Deprecated: has no effect, as in fio",
        |_, g| g.flag().map(drop),
    )
    .default("1"),
    Opt::job(
        "verifysort_nr",
        "N",
        "Deprecated: has no effect, as in fio",
        |_, g| g.count::<u64>(0).map(drop),
    ),
    Opt::switch(
        "verify_only",
        "Write nothing; check the data of an earlier run",
        |s, g| put(&mut s.verify_only, g.flag()),
    ),
];

/// Reports and logs of a job.
pub const REPORT: &[Opt] = &[
    Opt::switch(
        "group_reporting",
        "Report all workers of a group in one entry",
        |s, g| put(&mut s.group_reporting, g.flag()),
    ),
    Opt::job(
        "unified_rw_reporting",
        "HOW",
        "none (0): rows for reads and for writes; mixed (1): one row; both (2)",
        |s, g| put(&mut s.unified, unified(g)),
    )
    .default("none"),
    Opt::job(
        "percentile_list",
        "PERCENT:...",
        "Percentiles to report, separated by colons",
        |s, g| put(&mut s.percentile_list, g.percentiles()),
    )
    .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
    Opt::job(
        "clat_percentiles",
        "0|1",
        "Report percentiles of completion latency",
        |s, g| put(&mut s.clat_percentiles, g.flag()),
    )
    .default("1"),
    Opt::job(
        "lat_percentiles",
        "0|1",
        "Report percentiles of total latency",
        |s, g| put(&mut s.lat_percentiles, g.flag()),
    )
    .default("0"),
    Opt::job(
        "slat_percentiles",
        "0|1",
        "Report percentiles of submission latency",
        |s, g| put(&mut s.slat_percentiles, g.flag()),
    )
    .default("0"),
    Opt::log(
        "write_bw_log",
        "Log bandwidth to PREFIX_bw.N.log",
        |s, g| put(&mut s.logs.bandwidth, Ok(g.text.to_owned())),
    ),
    Opt::log(
        "write_iops_log",
        "Log operations per second to PREFIX_iops.N.log",
        |s, g| put(&mut s.logs.iops, Ok(g.text.to_owned())),
    ),
    Opt::log(
        "write_lat_log",
        "Log latencies to PREFIX_lat.N.log, _slat.N.log, _clat.N.log",
        |s, g| put(&mut s.logs.latency, Ok(g.text.to_owned())),
    ),
    Opt::log(
        "write_hist_log",
        "Log histograms of latency to PREFIX_clat_hist.N.log",
        |s, g| put(&mut s.logs.histogram, Ok(g.text.to_owned())),
    ),
    Opt::job(
        "log_avg_msec",
        "TIME",
        "Average log entries over this time (ms); 0: a line per operation",
        |s, g| {
            s.logs.average = g.time(MILLI)?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "log_hist_msec",
        "TIME",
        "Interval between logged histograms (ms)",
        |s, g| {
            s.logs.histogram_every = g.time(MILLI)?;
            Ok(())
        },
    ),
    Opt::job(
        "log_offset",
        "0|1",
        "Add a column of offsets to logs",
        |s, g| {
            s.logs.offsets = g.flag()?;
            Ok(())
        },
    )
    .default("0"),
];

fn percentile(g: Given<'_>) -> Result<f64, String> {
    match g.percentiles()?.as_slice() {
        [one] => Ok(*one),
        _ => Err("give one percentile".to_owned()),
    }
}

fn unified(g: Given<'_>) -> Result<Unified, String> {
    one_of(
        g.text,
        &[
            ("none", Unified::Apart),
            ("0", Unified::Apart),
            ("mixed", Unified::Mixed),
            ("1", Unified::Mixed),
            ("both", Unified::Both),
            ("2", Unified::Both),
        ],
    )
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
