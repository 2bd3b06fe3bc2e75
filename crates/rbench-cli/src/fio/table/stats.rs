//! Options of jobs: which statistics are reported, and the form of reports and logs.

use rbench_core::Nanos;
use rbench_plan::jobs::WindowValue;

use super::{Given, Opt, put, text};
use crate::given::one_of;

const MILLI: Nanos = Nanos::MILLISECOND;

/// Statistics, reports and logs.
pub const STATS: &[Opt] = &[
    Opt::job("stats", "0|1", "Include the job in the report", |s, g| {
        put(&mut s.stats, g.flag())
    })
    .default("1"),
    Opt::job(
        "disable_lat",
        "0|1",
        "Leave total latency out of the report",
        |s, g| put(&mut s.disable_lat, g.flag()),
    )
    .default("0"),
    Opt::job(
        "disable_clat",
        "0|1",
        "Leave completion latency out of the report",
        |s, g| put(&mut s.disable_clat, g.flag()),
    )
    .default("0"),
    Opt::job(
        "disable_slat",
        "0|1",
        "Leave submission latency out of the report",
        |s, g| put(&mut s.disable_slat, g.flag()),
    )
    .default("0"),
    Opt::job(
        "disable_bw_measurement",
        "0|1",
        "Leave samples of bandwidth and IOPS out of the report",
        |s, g| put(&mut s.disable_bw, g.flag()),
    )
    .or(&["disable_bw"])
    .default("0"),
    Opt::job(
        "gtod_reduce",
        "0|1",
        "Turn on all disable options; the clock is still read",
        |s, g| put(&mut s.gtod_reduce, g.flag()),
    )
    .default("0"),
    Opt::job(
        "clocksource",
        "HOW",
        "Accepted: rbench chooses its clock and reports it",
        |s, g| put(&mut s.clocksource, clock_source(g)),
    ),
    Opt::job(
        "job_start_clock_id",
        "N",
        "Clock of job_start in JSON, as its number in clock_gettime",
        |s, g| put(&mut s.job_start_clock, clock_id(g)),
    )
    .default("0"),
    Opt::job(
        "bwavgtime",
        "TIME",
        "Length of a bandwidth sample (ms)",
        |s, g| put(&mut s.bwavgtime, g.time(MILLI)),
    )
    .default("500"),
    Opt::job(
        "iopsavgtime",
        "TIME",
        "Length of an IOPS sample (ms)",
        |s, g| put(&mut s.iopsavgtime, g.time(MILLI)),
    )
    .default("500"),
    Opt::job(
        "unit_base",
        "0|1|8",
        "Unit of bandwidth in the normal output: 1: bits; 0, 8: bytes",
        |s, g| {
            let words = [("0", false), ("1", true), ("8", false)];
            put(&mut s.bits, one_of(g.text, &words))
        },
    )
    .default("0"),
    Opt::job(
        "significant_figures",
        "N",
        "Significant digits of numbers in the normal output",
        |s, g| put(&mut s.significant_figures, g.within(1, 10)),
    )
    .default("4"),
    Opt::job(
        "per_job_logs",
        "0|1",
        "One log per worker; 0: one for all, without a number in its name",
        |s, g| {
            s.logs.one_file = !g.flag()?;
            Ok(())
        },
    )
    .default("1"),
    Opt::job(
        "log_max_value",
        "HOW",
        "Latency to log with log_avg_msec: avg (0), max (1), both (2 columns)",
        |s, g| {
            s.logs.values = window_value(g)?;
            Ok(())
        },
    )
    .or(&["log_window_value"])
    .default("avg"),
    Opt::job(
        "log_prio",
        "0|1",
        "Log the priority in the last column; 0: log whether it is high",
        |s, g| {
            s.logs.priority = g.flag()?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "log_hist_coarseness",
        "N",
        "Columns of logged histograms: 1856 divided by 2 to this power",
        |s, g| {
            s.logs.coarseness = g.within(0, 6)?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "log_unix_epoch",
        "0|1",
        "Log times since 1970 (Unix time)",
        |s, g| {
            s.logs.of_clock = g.flag()?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "log_alternate_epoch",
        "0|1",
        "Log times of the clock log_alternate_epoch_clock_id",
        |s, g| {
            s.logs.of_clock = g.flag()?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "log_alternate_epoch_clock_id",
        "N",
        "Clock of log_alternate_epoch, as its number in clock_gettime",
        |s, g| {
            s.logs.clock = clock_id(g)?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "log_entries",
        "N",
        "Accepted: logs start with room for 2^20 entries and grow untimed",
        |_, g| g.within::<u64>(1024, 1 << 20).map(drop),
    )
    .default("1024"),
    Opt::job(
        "log_compression",
        "SIZE",
        "Accepted: logs stay uncompressed in memory until they are written",
        |_, g| g.within::<u64>(1024, 512 << 20).map(drop),
    ),
    Opt::job(
        "log_store_compressed",
        "0|1",
        "Write compressed logs to PREFIX_lat.N.log.fz (see --inflate-log)",
        |s, g| {
            s.logs.compressed = g.flag()?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "log_issue_time",
        "0|1",
        "Log the submission time of operations in the last column (ns)",
        |s, g| {
            s.logs.issue_time = g.flag()?;
            Ok(())
        },
    )
    .default("0"),
    Opt::job(
        "disk_util",
        "0|1",
        "Report the activity of the block devices below the job's files",
        |s, g| put(&mut s.disk_util, g.flag()),
    )
    .default("1"),
    Opt::job(
        "log_compression_cpus",
        "LIST",
        "Accepted: logs are compressed when they are written",
        |_, g| text(g).map(drop),
    ),
];

fn clock_source(g: Given<'_>) -> Result<String, String> {
    let known = ["gettimeofday", "clock_gettime", "cpu"];
    one_of(g.text, &known.map(|name| (name, name.to_owned())))
}

/// Linux has clocks 0 to 11.
fn clock_id(g: Given<'_>) -> Result<i32, String> {
    g.within(0, 11)
}

fn window_value(g: Given<'_>) -> Result<WindowValue, String> {
    one_of(
        g.text,
        &[
            ("avg", WindowValue::Average),
            ("0", WindowValue::Average),
            ("max", WindowValue::Max),
            ("1", WindowValue::Max),
            ("both", WindowValue::Both),
        ],
    )
}
