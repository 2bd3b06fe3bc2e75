//! Report of a job in fio's form, its logs, and the handling of failed operations.

use rbench_core::Nanos;
use rbench_core::job::FioShown;

/// Logs of a job: the prefixes of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logs {
    /// `write_bw_log`
    pub bandwidth: Option<String>,
    /// `write_iops_log`
    pub iops: Option<String>,
    /// `write_lat_log`: slat, clat and lat.
    pub latency: Option<String>,
    /// `write_hist_log`
    pub histogram: Option<String>,
    /// `log_avg_msec`; 0: every operation.
    pub average: Nanos,
    /// `log_hist_msec`
    pub histogram_every: Nanos,
    /// True for a column of offsets.
    pub offsets: bool,
    /// `log_issue_time`: latencies have a last column with the time of submission.
    pub issue_time: bool,
    /// `log_store_compressed`: logs are compressed records.
    pub compressed: bool,
    /// `per_job_logs=0`: one file for all workers.
    pub one_file: bool,
    /// `log_window_value`: the latency in the line of an averaging interval.
    pub values: WindowValue,
    /// `log_prio`: the last column is the priority itself, instead of a flag for a high one.
    pub priority: bool,
    /// `log_hist_coarseness`: a column of histograms combines 2 to this power.
    pub coarseness: u32,
    /// `log_alternate_epoch`: times are those of a clock, not since the start of the job.
    pub of_clock: bool,
    /// `log_alternate_epoch_clock_id`: the number of that clock in clock_gettime(2).
    pub clock: i32,
}

/// The latency in the line of an averaging interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowValue {
    /// The mean.
    #[default]
    Average,
    /// The largest.
    Max,
    /// Both, in a column each.
    Both,
}

/// Report of a job in fio's form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FioReport {
    /// Group of the report (`new_group`), from 0.
    pub group: u32,
    /// Its workers share an entry of the report: the last one of their group, if it exists.
    pub group_reporting: bool,
    /// Logs.
    pub logs: Logs,
    /// Display of its numbers.
    pub shown: FioShown,
    /// Omitted parts.
    pub left_out: LeftOut,
    /// Bytes that count as one I/O, if this is not an operation.
    pub io_unit: Option<u64>,
    /// The clock of `job_start`, by its number in clock_gettime(2).
    pub job_start_clock: i32,
    /// Length of the samples of bandwidth, and of operations per second.
    pub sampled_every: [Nanos; 2],
    /// `disk_util`: reports the devices below its files.
    pub disks: bool,
    /// `--bandwidth-log`: length of the intervals in which moved bytes are reported; 0: not
    /// reported.
    pub moved_every: Nanos,
    /// The options as typed, for the report.
    pub options: Vec<(String, String)>,
}

/// The latency that is reported by the priority of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByPriority {
    /// From submission to completion.
    Clat,
    /// From preparation to completion.
    Lat,
}

impl FioReport {
    /// True if its figures are merged with those of the job before it.
    pub fn joins(&self, before: &FioReport) -> bool {
        self.group_reporting && before.group_reporting && self.group == before.group
    }

    /// The latency that is reported by priority, as in fio: only one is. `None`: it is omitted.
    pub fn by_priority(&self) -> Option<ByPriority> {
        match (
            self.shown.lat_percentiles && !self.left_out.lat,
            self.left_out.clat,
        ) {
            (true, _) => Some(ByPriority::Lat),
            (false, false) => Some(ByPriority::Clat),
            (false, true) => None,
        }
    }
}

/// Omitted parts of a job's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// `stats=0`: the whole job.
    pub all: bool,
    /// `disable_slat`
    pub slat: bool,
    /// `disable_clat`
    pub clat: bool,
    /// `disable_lat`
    pub lat: bool,
    /// `disable_bw_measurement`: samples of bandwidth and of operations per second.
    pub samples: bool,
}

/// `continue_on_error` and `ignore_error`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContinueOn {
    /// Errors of reads.
    pub read: bool,
    /// Errors of writes.
    pub write: bool,
    /// Mismatches.
    pub verify: bool,
    /// Tolerated errno values, in the same order; empty: EIO for reads and writes, EILSEQ
    /// for mismatches.
    pub errors: [Vec<i32>; 3],
}

/// Kind of operation that has an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOf {
    /// A read.
    Read,
    /// A write.
    Write,
    /// Verification.
    Verify,
}

impl ContinueOn {
    /// True if a job continues after an error, like in fio: a full disk stays full.
    pub fn tolerates(&self, of: ErrorOf, errno: i32) -> bool {
        const EIO: i32 = 5;
        const EILSEQ: i32 = 84;
        let [reads, writes, checks] = &self.errors;
        let (on, listed, usual) = match of {
            ErrorOf::Read => (self.read, reads, EIO),
            ErrorOf::Write => (self.write, writes, EIO),
            ErrorOf::Verify => (self.verify, checks, EILSEQ),
        };
        on && match listed.as_slice() {
            [] => errno == usual,
            listed => listed.contains(&errno),
        }
    }
}

/// Handling of failed operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errors {
    /// The job ends, except for these errors, like in fio.
    End(ContinueOn),
    /// The error is counted, and the job continues.
    Count,
}
