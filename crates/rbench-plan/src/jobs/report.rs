//! What is reported of a job as fio does, its logs, and what becomes of it when an operation
//! fails.

use rbench_core::Nanos;

use super::Unified;

/// Logs of a job: the beginning of their names.
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
    /// `log_avg_msec`: 0: every operation.
    pub average: Nanos,
    /// `log_hist_msec`
    pub histogram_every: Nanos,
    /// A column of offsets.
    pub offsets: bool,
    /// `log_issue_time`: latencies have a last column with the time of submission.
    pub issue_time: bool,
    /// `log_store_compressed`: logs are compressed records.
    pub compressed: bool,
    /// `per_job_logs=0`: one file for all workers.
    pub one_file: bool,
    /// `log_window_value`: what the line of an averaging interval gives of its latencies.
    pub values: WindowValue,
    /// `log_prio`: the last column is the priority, not whether it is a high one.
    pub priority: bool,
    /// `log_hist_coarseness`: a column of histograms stands for 2 to this power.
    pub coarseness: u32,
    /// `log_alternate_epoch`: times are those of a clock, not since the start of the job.
    pub of_clock: bool,
    /// `log_alternate_epoch_clock_id`: which clock, as clock_gettime(2) numbers them.
    pub clock: i32,
}

/// What the line of an averaging interval gives of its latencies.
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

/// What fio reports of a job, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct FioReport {
    /// Group of the report (`new_group`), from 0.
    pub group: u32,
    /// Its workers share an entry of the report: the last one of their group,
    /// if there is one already.
    pub group_reporting: bool,
    /// Logs.
    pub logs: Logs,
    /// Percentiles to report, ascending.
    pub percentiles: Vec<f64>,
    /// Percentiles of clat.
    pub clat_percentiles: bool,
    /// Percentiles of lat.
    pub lat_percentiles: bool,
    /// Percentiles of slat.
    pub slat_percentiles: bool,
    /// Digits of numbers in the normal output.
    pub significant_figures: u32,
    /// Bandwidth of the normal output is in bits.
    pub bits: bool,
    /// What is not reported.
    pub left_out: LeftOut,
    /// Bytes of what counts as one I/O, where an operation is not one.
    pub io_unit: Option<u64>,
    /// The clock of `job_start`, as clock_gettime(2) numbers them.
    pub job_start_clock: i32,
    /// Length of the samples of bandwidth, and of operations per second.
    pub sampled_every: [Nanos; 2],
    /// Whether reads and writes are shown in one.
    pub unified: Unified,
    /// `disk_util`: the devices below its files are reported.
    pub disks: bool,
    /// `--bandwidth-log`: what it moves is told in stretches of this length; 0: it is not.
    pub moved_every: Nanos,
    /// The options as they were typed, for the report.
    pub options: Vec<(String, String)>,
}

/// What a job's report does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// `stats=0`: the job altogether.
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
    /// errno values of which that is so, in the same order; empty: EIO of reads and
    /// writes, EILSEQ of mismatches.
    pub errors: [Vec<i32>; 3],
}

/// What an error is of.
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
    /// Whether a job goes on after an error, as in fio: a full disk stays full.
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

/// What becomes of a job when an operation fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errors {
    /// It ends, but for these: as with fio.
    End(ContinueOn),
    /// It is counted, and the job goes on.
    Count,
}
