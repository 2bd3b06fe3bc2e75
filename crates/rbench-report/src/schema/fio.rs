//! What fio's outputs are made of: the jobs of `rbench fio` as they are reported,
//! with the exact sums behind means and deviations. What becomes of it is in
//! [`crate::fio`].

use rbench_core::job::{DirectionOutcome, JobOutcome, Series};
use rbench_core::latency::HIGHEST;
use rbench_core::moved::Moved;
use rbench_core::{Latency, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amounts::{amount, amounts};
use super::fio_machine::HostUseResult;
use crate::hist::{Hist, HistError};

/// What `rbench fio` shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FioForm {
    /// What was printed, in this order: `normal`, `terse`, `json`, `json+`.
    pub formats: Vec<String>,
    /// The version shown as fio's.
    pub version: String,
    /// Options of the section `global`, as they were typed.
    pub global_options: Vec<(String, String)>,
    /// In the order of jobs and workers.
    pub entries: Vec<FioEntryResult>,
    /// What devices and processors of the hosts did meanwhile.
    pub hosts: Vec<HostUseResult>,
    /// Idle processors are shown each by itself.
    pub each_cpu: bool,
}

/// One entry of fio's report: a worker, or the workers of a group of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioEntryResult {
    /// Name of the job; of the first one in a group.
    pub name: String,
    /// Its group (`groupid`), from 0.
    pub group: u32,
    /// Whether it stands for all workers of its group.
    pub group_reporting: bool,
    /// Host of the worker, where a run has several and each worker an entry.
    pub host: Option<String>,
    /// Options of the job, as they were typed.
    pub options: Vec<(String, String)>,
    /// `iodepth`
    pub depth: u32,
    /// How its numbers are shown.
    pub shown: FioShownResult,
    /// What `latency_target` searched for.
    pub target: Option<FioTargetResult>,
    /// What `steadystate` found.
    pub steady: Option<FioSteadyResult>,
    /// What was done.
    pub outcome: FioOutcomeResult,
}

/// How the numbers of an entry are shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioShownResult {
    /// Percentiles to show, 0 to 100, ascending.
    pub percentiles: Vec<f64>,
    /// Whether they are shown for clat.
    pub clat_percentiles: bool,
    /// Whether they are shown for lat.
    pub lat_percentiles: bool,
    /// Whether they are shown for slat.
    pub slat_percentiles: bool,
    /// Most digits of a number.
    pub significant_figures: u32,
    /// Bandwidth is in bits.
    pub bits: bool,
    /// Directions have rows `apart`, one (`mixed`), or `both`.
    pub unified: String,
    /// Errors that did not end the job have a line.
    pub continue_on_error: bool,
}

/// `latency_target`, `latency_window`, `latency_percentile`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioTargetResult {
    /// Latency to keep, ns.
    pub latency_ns: u64,
    /// Over windows of this length, ns.
    pub window_ns: u64,
    /// Percentage of operations that must keep it.
    pub percentile: f64,
}

/// What `steadystate` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioSteadyResult {
    /// Judged by bandwidth (else by IOPS).
    pub bandwidth: bool,
    /// Judged by the slope (else by the largest deviation from the mean).
    pub slope: bool,
    /// The limit.
    pub limit: f64,
    /// Whether it is percent of the mean.
    pub percent: bool,
    /// Length of the window, ns.
    pub duration_ns: u64,
    /// Whether the limit was kept.
    pub attained: bool,
    /// IOPS of each second of the last window.
    pub iops: Vec<u64>,
    /// Bytes per second in each.
    pub bytes_per_s: Vec<u64>,
}

/// What the workers of an entry did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioOutcomeResult {
    /// Position of the job among all jobs of the run.
    pub job: u32,
    /// jobnum of the worker (the lowest of several).
    #[serde(deserialize_with = "amount")]
    pub worker: u64,
    /// Its process (of the lowest).
    pub pid: u32,
    /// Workers that this stands for.
    #[serde(deserialize_with = "amount")]
    pub workers: u64,
    /// Reads.
    pub read: FioDirectionResult,
    /// Writes.
    pub write: FioDirectionResult,
    /// Trims.
    pub trim: FioDirectionResult,
    /// fsync and fdatasync; `None` without any.
    pub sync: Option<ExactHist>,
    /// errno of the first error that ended the job, 0: none.
    pub error: i32,
    /// Errors that did not end it.
    #[serde(deserialize_with = "amount")]
    pub errors: u64,
    /// errno of the first of these, 0: none.
    pub first_error: i32,
    /// Start in ms since the epoch, on the clock of `job_start_clock_id`.
    #[serde(deserialize_with = "amount")]
    pub start_ms: u64,
    /// The longest worker's time, behind the ramp, ns.
    #[serde(deserialize_with = "amount")]
    pub elapsed_ns: u64,
    /// That of all workers together, ns.
    #[serde(deserialize_with = "amount")]
    pub elapsed_sum_ns: u64,
    /// CPU time of the workers in user mode, ns.
    #[serde(deserialize_with = "amount")]
    pub cpu_user_ns: u64,
    /// In the kernel, ns.
    #[serde(deserialize_with = "amount")]
    pub cpu_system_ns: u64,
    /// Context switches.
    #[serde(deserialize_with = "amount")]
    pub switches: u64,
    /// Page faults with I/O.
    #[serde(deserialize_with = "amount")]
    pub faults_major: u64,
    /// Without.
    #[serde(deserialize_with = "amount")]
    pub faults_minor: u64,
    /// Operations by requests under way when they were issued: 1, 2, 4, 8, 16,
    /// 32, 64 and more.
    #[serde(deserialize_with = "amounts")]
    pub depths: [u64; 7],
    /// System calls by number of requests submitted: 0, up to 4, 8, 16, 32, 64,
    /// more.
    #[serde(deserialize_with = "amounts")]
    pub submits: [u64; 7],
    /// The same for completions.
    #[serde(deserialize_with = "amounts")]
    pub completes: [u64; 7],
    /// The largest depth that kept the latency target; 0: none was searched.
    pub latency_depth: u32,
    /// Whether the rate became steady; `None`: nobody asked.
    pub steady: Option<bool>,
    /// Operations and bytes per second in each second of the last window.
    pub steady_window: Vec<(u64, u64)>,
}

/// One direction of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioDirectionResult {
    /// Operations that ended without error.
    #[serde(deserialize_with = "amount")]
    pub ios: u64,
    /// Bytes that these moved.
    #[serde(deserialize_with = "amount")]
    pub bytes: u64,
    /// Operations that moved fewer bytes than asked for.
    #[serde(deserialize_with = "amount")]
    pub short: u64,
    /// fio's run time, ns.
    #[serde(deserialize_with = "amount")]
    pub runtime_ns: u64,
    /// Prepare to submit; `None` with synchronous engines.
    pub slat: Option<ExactHist>,
    /// Submit to completion; `None` without any.
    pub clat: Option<ExactHist>,
    /// Both together; `None` without any.
    pub lat: Option<ExactHist>,
    /// From the intended start, where a rate is given.
    pub response: Option<ExactHist>,
    /// Bandwidth in KiB/s over stretches of 500 ms.
    pub bw: SamplesResult,
    /// Operations per second over stretches of 500 ms.
    pub iops: SamplesResult,
}

/// Count, extremes and sums of values taken at intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SamplesResult {
    /// Number of values.
    #[serde(deserialize_with = "amount")]
    pub samples: u64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
}

/// A distribution that can be merged with others without loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactHist {
    /// The distribution.
    pub hist: Hist,
    /// Sum of all values, ns: a whole number of any size, as text.
    pub sum_ns: String,
    /// Sum of their squares, ns²: the same.
    pub sum_of_squares_ns2: String,
}

impl From<&Latency> for ExactHist {
    fn from(latency: &Latency) -> ExactHist {
        let [sum, squares] = latency.exact_sums();
        ExactHist {
            hist: Hist::from(latency),
            sum_ns: sum.to_string(),
            sum_of_squares_ns2: squares.to_string(),
        }
    }
}

impl ExactHist {
    /// Of a distribution that is not empty.
    fn of(latency: &Latency) -> Option<ExactHist> {
        (!latency.is_empty()).then(|| latency.into())
    }

    /// The distribution.
    ///
    /// # Errors
    /// Where its fields contradict each other.
    pub fn latency(&self) -> Result<Latency, HistError> {
        const SUM_MAX: u128 = 1 << 120;
        let sum = |text: &str| text.parse().ok().filter(|sum: &u128| *sum < SUM_MAX);
        let decoded = self.hist.latency()?;
        if self.hist.count == 0 {
            return Ok(Latency::default());
        }
        let mut above = self.hist.above;
        let mut buckets: Vec<(Nanos, u64)> = decoded
            .iter_recorded()
            .map(|v| (Nanos(v.value_iterated_to()), v.count_at_value()))
            .collect();
        // What lies above the range stands at its end there.
        if let Some((last, n)) = buckets.last_mut() {
            let there = above.min(*n);
            *n -= there;
            above -= there;
            *last = (*last).min(HIGHEST);
        }
        let extremes = (self.hist.min_ns, self.hist.max_ns);
        let whole = || {
            let sums = [sum(&self.sum_ns)?, sum(&self.sum_of_squares_ns2)?];
            Latency::from_buckets(&buckets, self.hist.above, sums, extremes)
        };
        whole().filter(|_| above == 0).ok_or(HistError::Sums)
    }
}

fn latency(hist: Option<&ExactHist>) -> Result<Latency, HistError> {
    hist.map_or_else(|| Ok(Latency::default()), ExactHist::latency)
}

impl From<&Series> for SamplesResult {
    fn from(series: &Series) -> SamplesResult {
        let Series {
            samples,
            min,
            max,
            sum,
            squares,
        } = *series;
        SamplesResult {
            samples,
            min,
            max,
            sum,
            squares,
        }
    }
}

impl From<&SamplesResult> for Series {
    fn from(series: &SamplesResult) -> Series {
        let SamplesResult {
            samples,
            min,
            max,
            sum,
            squares,
        } = *series;
        Series {
            samples,
            min,
            max,
            sum,
            squares,
        }
    }
}

impl From<&DirectionOutcome> for FioDirectionResult {
    fn from(outcome: &DirectionOutcome) -> FioDirectionResult {
        let DirectionOutcome {
            ios,
            bytes,
            short,
            runtime,
            slat,
            clat,
            lat,
            response,
            bw,
            iops,
        } = outcome;
        FioDirectionResult {
            ios: *ios,
            bytes: *bytes,
            short: *short,
            runtime_ns: runtime.0,
            slat: slat.as_ref().map(ExactHist::from),
            clat: ExactHist::of(clat),
            lat: ExactHist::of(lat),
            response: response.as_ref().map(ExactHist::from),
            bw: bw.into(),
            iops: iops.into(),
        }
    }
}

impl FioDirectionResult {
    fn outcome(&self) -> Result<DirectionOutcome, HistError> {
        let some = |hist: &Option<ExactHist>| hist.as_ref().map(ExactHist::latency).transpose();
        Ok(DirectionOutcome {
            ios: self.ios,
            bytes: self.bytes,
            short: self.short,
            runtime: Nanos(self.runtime_ns),
            slat: some(&self.slat)?,
            clat: latency(self.clat.as_ref())?,
            lat: latency(self.lat.as_ref())?,
            response: some(&self.response)?,
            bw: Series::from(&self.bw),
            iops: Series::from(&self.iops),
        })
    }
}

impl From<&JobOutcome> for FioOutcomeResult {
    fn from(outcome: &JobOutcome) -> FioOutcomeResult {
        let JobOutcome {
            job,
            worker,
            pid,
            workers,
            read,
            write,
            trim,
            sync,
            error,
            errors,
            first_error,
            start_ms,
            elapsed,
            elapsed_sum,
            cpu_user,
            cpu_system,
            switches,
            faults_major,
            faults_minor,
            depths,
            submits,
            completes,
            latency_depth,
            steady,
            steady_window,
            // A log of its own (`--bandwidth-log`).
            moved: _,
        } = outcome;
        FioOutcomeResult {
            job: *job,
            worker: *worker,
            pid: *pid,
            workers: *workers,
            read: read.into(),
            write: write.into(),
            trim: trim.into(),
            sync: ExactHist::of(sync),
            error: *error,
            errors: *errors,
            first_error: *first_error,
            start_ms: *start_ms,
            elapsed_ns: elapsed.0,
            elapsed_sum_ns: elapsed_sum.0,
            cpu_user_ns: cpu_user.0,
            cpu_system_ns: cpu_system.0,
            switches: *switches,
            faults_major: *faults_major,
            faults_minor: *faults_minor,
            depths: *depths,
            submits: *submits,
            completes: *completes,
            latency_depth: *latency_depth,
            steady: *steady,
            steady_window: steady_window.clone(),
        }
    }
}

impl FioOutcomeResult {
    /// The outcome, without what was moved over time.
    ///
    /// # Errors
    /// Where a distribution cannot be read.
    pub fn outcome(&self) -> Result<JobOutcome, HistError> {
        Ok(JobOutcome {
            job: self.job,
            worker: self.worker,
            pid: self.pid,
            workers: self.workers,
            read: self.read.outcome()?,
            write: self.write.outcome()?,
            trim: self.trim.outcome()?,
            sync: latency(self.sync.as_ref())?,
            error: self.error,
            errors: self.errors,
            first_error: self.first_error,
            start_ms: self.start_ms,
            elapsed: Nanos(self.elapsed_ns),
            elapsed_sum: Nanos(self.elapsed_sum_ns),
            cpu_user: Nanos(self.cpu_user_ns),
            cpu_system: Nanos(self.cpu_system_ns),
            switches: self.switches,
            faults_major: self.faults_major,
            faults_minor: self.faults_minor,
            depths: self.depths,
            submits: self.submits,
            completes: self.completes,
            latency_depth: self.latency_depth,
            steady: self.steady,
            steady_window: self.steady_window.clone(),
            moved: Moved::default(),
        })
    }
}
