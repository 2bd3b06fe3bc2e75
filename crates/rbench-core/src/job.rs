//! The result of one worker of a job (`rbench fio`): more than a lane holds, since fio's report
//! asks for more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amounts::{amount, amounts, times};
use crate::direction::{Direction, Unified};
use crate::hist::{ExactHist, unless_empty};
use crate::latency::Latency;
use crate::moved::Moved;
use crate::priority::{self, AtPriority, IoPriority};
use crate::units::Nanos;

/// Display of the numbers of an entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FioShownResult")]
pub struct FioShown {
    /// Percentiles to show, 0 to 100, ascending.
    pub percentiles: Vec<f64>,
    /// True if they are shown for clat.
    pub clat_percentiles: bool,
    /// True if they are shown for lat.
    pub lat_percentiles: bool,
    /// True if they are shown for slat.
    pub slat_percentiles: bool,
    /// Most digits of a number.
    pub significant_figures: u32,
    /// Bandwidth is in bits.
    pub bits: bool,
    /// Directions have rows `apart`, one (`mixed`), or `both`.
    #[schemars(with = "String")]
    pub unified: Unified,
    /// Errors that did not end the job have a line.
    pub continue_on_error: bool,
}

/// Count, extremes and sums of values taken at intervals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SamplesResult")]
pub struct Series {
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

impl Series {
    /// Takes one more value.
    pub fn add(&mut self, value: f64) {
        self.min = if self.samples == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.samples += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// The series of values that are `factor` times as large.
    pub fn times(&self, factor: f64) -> Series {
        Series {
            samples: self.samples,
            min: self.min * factor,
            max: self.max * factor,
            sum: self.sum * factor,
            squares: self.squares * factor * factor,
        }
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.samples == 0 {
            0.0
        } else {
            self.sum / self.samples as f64
        }
    }

    /// The sample standard deviation; 0 for fewer than two values.
    pub fn stddev(&self) -> f64 {
        if self.samples < 2 {
            return 0.0;
        }
        let n = self.samples as f64;
        ((self.squares - self.sum * self.sum / n).max(0.0) / (n - 1.0)).sqrt()
    }

    /// Adds the series of another worker at the same time: rates add up, so
    /// extremes and means are added, and the squared deviations from each
    /// series' own mean. That is what fio reports of a group.
    pub fn join(&mut self, other: &Series) {
        if other.samples == 0 {
            return;
        }
        if self.samples == 0 {
            *self = *other;
            return;
        }
        let spread = |s: &Series| (s.squares - s.sum * s.sum / s.samples as f64).max(0.0);
        let deviations = spread(self) + spread(other);
        let samples = self.samples + other.samples;
        let mean = self.mean() + other.mean();
        *self = Series {
            samples,
            min: self.min + other.min,
            max: self.max + other.max,
            sum: mean * samples as f64,
            squares: deviations + mean * mean * samples as f64,
        };
    }
}

/// One direction of an entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FioDirectionResult")]
pub struct DirectionOutcome {
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
    // All the time of the job's own work (ramp excluded), if there was anything in this direction; of
    // reads that of reading back besides; of the longest when merged.
    #[serde(rename = "runtime_ns", deserialize_with = "amount")]
    pub runtime: Nanos,
    /// Prepare to submit; `None` with synchronous engines.
    pub slat: Option<Latency>,
    /// Submit to completion; `None` without any.
    #[serde(with = "unless_empty")]
    #[schemars(with = "Option<ExactHist>")]
    pub clat: Latency,
    /// Both together; `None` without any.
    #[serde(with = "unless_empty")]
    #[schemars(with = "Option<ExactHist>")]
    pub lat: Latency,
    /// Latencies by priority, where operations have several (`cmdprio_percentage`): clat, or lat with
    /// `lat_percentiles`. Those of the job's own priority come first.
    #[serde(default)]
    pub priorities: Vec<AtPriority>,
    /// From the intended start, where a rate is given.
    pub response: Option<Latency>,
    /// Bandwidth in KiB/s over stretches of 500 ms.
    pub bw: Series,
    /// Operations per second over stretches of 500 ms.
    pub iops: Series,
}

impl DirectionOutcome {
    /// Lets go of room that nothing more will need.
    fn shrink(&mut self) {
        for latency in [&mut self.slat, &mut self.response].into_iter().flatten() {
            latency.shrink();
        }
        for one in &mut self.priorities {
            one.latency.shrink();
        }
        self.clat.shrink();
        self.lat.shrink();
    }

    /// Latencies by priority of operations that have a single one, `own`.
    fn at_own_priority(&mut self, own: IoPriority, of: fn(&DirectionOutcome) -> &Latency) {
        if self.priorities.is_empty() {
            self.priorities.push(AtPriority {
                priority: own,
                latency: of(self).clone(),
            });
        }
    }

    /// Adds what another worker of the same job did in this direction.
    pub fn merge(&mut self, other: &DirectionOutcome) {
        merge!(self, other => DirectionOutcome {
            add: ios bytes short;
            most: runtime;
            merge: clat lat;
            some: slat response;
            own: priorities bw iops;
        });
        priority::merge(&mut self.priorities, priorities);
        self.bw.join(bw);
        self.iops.join(iops);
    }
}

/// Results of the workers of an entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FioOutcomeResult")]
pub struct JobOutcome {
    /// Position of the job among all jobs of the run.
    pub job: u32,
    /// jobnum of the worker (the lowest of several).
    #[serde(deserialize_with = "amount")]
    pub worker: u64,
    /// Its process (of the lowest).
    pub pid: u32,
    /// Number of merged workers.
    #[serde(deserialize_with = "amount")]
    pub workers: u64,
    /// Reads.
    pub read: DirectionOutcome,
    /// Writes.
    pub write: DirectionOutcome,
    /// Trims.
    pub trim: DirectionOutcome,
    /// fsync and fdatasync; `None` without any.
    #[serde(with = "unless_empty")]
    #[schemars(with = "Option<ExactHist>")]
    pub sync: Latency,
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
    /// The longest worker's time, after the ramp, ns.
    #[serde(rename = "elapsed_ns", deserialize_with = "amount")]
    pub elapsed: Nanos,
    /// Total time of all workers, ns.
    // CPU times are parts of it.
    #[serde(rename = "elapsed_sum_ns", deserialize_with = "times")]
    pub elapsed_sum: Nanos,
    /// CPU time of the workers in user mode, ns.
    // Of their threads, after the ramp, like the next values.
    #[serde(rename = "cpu_user_ns", deserialize_with = "times")]
    pub cpu_user: Nanos,
    /// In the kernel, ns.
    #[serde(rename = "cpu_system_ns", deserialize_with = "times")]
    pub cpu_system: Nanos,
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
    // The largest power of two not above the number.
    #[serde(deserialize_with = "amounts")]
    pub depths: [u64; 7],
    /// System calls by number of requests submitted: 0, up to 4, 8, 16, 32, 64,
    /// more.
    #[serde(deserialize_with = "amounts")]
    pub submits: [u64; 7],
    /// Like `submits`, for completions.
    #[serde(deserialize_with = "amounts")]
    pub completes: [u64; 7],
    /// The largest depth that kept the latency target; 0: none was searched.
    pub latency_depth: u32,
    /// True if the rate became steady; `None`: not requested.
    pub steady: Option<bool>,
    /// Operations and bytes per second in each second of the last window.
    pub steady_window: Vec<(u64, u64)>,
    /// Bytes moved since `start_ms`, where that is logged (`--bandwidth-log`): a log of its own,
    /// not part of the result file.
    #[serde(skip)]
    pub moved: Moved,
}

impl JobOutcome {
    /// Lets go of room that nothing more will need.
    pub fn shrink(&mut self) {
        self.read.shrink();
        self.write.shrink();
        self.trim.shrink();
        self.sync.shrink();
    }

    /// The directions, in fio's order.
    pub fn directions(&self) -> [&DirectionOutcome; 3] {
        [&self.read, &self.write, &self.trim]
    }

    /// The same, mutable.
    pub fn directions_mut(&mut self) -> [&mut DirectionOutcome; 3] {
        [&mut self.read, &mut self.write, &mut self.trim]
    }

    /// Gives a job whose operations all have its own priority its latencies by priority, so that
    /// they can be merged with those of a job with several.
    pub fn at_own_priority(&mut self, own: IoPriority, of: fn(&DirectionOutcome) -> &Latency) {
        for direction in self.directions_mut() {
            direction.at_own_priority(own, of);
        }
    }

    /// Leaves out latencies by priority if all operations have the same one.
    pub fn leave_out_single_priority(&mut self) {
        let all = self.directions().map(|direction| &direction.priorities);
        let used = all.into_iter().flatten();
        let mut used: Vec<IoPriority> = used
            .filter(|one| !one.latency.is_empty())
            .map(|one| one.priority)
            .collect();
        used.sort_unstable();
        used.dedup();
        if used.len() < 2 {
            self.leave_out_priorities();
        }
    }

    /// Leaves out latencies by priority.
    pub fn leave_out_priorities(&mut self) {
        for direction in self.directions_mut() {
            direction.priorities.clear();
        }
    }

    /// Adds what other workers of the same job, or of its group, did.
    pub fn merge(&mut self, other: &JobOutcome) {
        if self.workers == 0 {
            // Nothing yet: its zeros say nothing about start and numbers.
            *self = other.clone();
            return;
        }
        merge!(self, other => JobOutcome {
            add: workers errors switches faults_major faults_minor;
            time: elapsed_sum cpu_user cpu_system;
            least: start_ms;
            most: elapsed latency_depth;
            each: depths submits completes;
            merge: read write trim sync moved;
            own: job worker pid error first_error steady steady_window;
        });
        let first = (*job, *worker) < (self.job, self.worker);
        take_first(&mut self.error, *error, first);
        take_first(&mut self.first_error, *first_error, first);
        if first {
            (self.job, self.worker, self.pid) = (*job, *worker, *pid);
        }
        let both = self.steady.into_iter().chain(*steady);
        self.steady = both.reduce(|mine, theirs| mine && theirs);
        // Workers start together: the same second of each.
        if self.steady_window.len() < steady_window.len() {
            self.steady_window.resize(steady_window.len(), (0, 0));
        }
        for (mine, theirs) in self.steady_window.iter_mut().zip(steady_window) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
    }
}

/// The errno of the one that comes first, or of the only one that has any.
fn take_first(mine: &mut i32, theirs: i32, theirs_is_first: bool) {
    if *mine == 0 || (theirs_is_first && theirs != 0) {
        *mine = theirs;
    }
}

/// One line of a job's logs: one operation, or with an averaging interval
/// those of one direction in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSample {
    /// End of the operation or of the interval, after the worker's start.
    pub at: Nanos,
    /// Its direction.
    pub direction: Direction,
    /// Operations in it; 1 when every one is logged.
    pub ios: u64,
    /// Bytes that these moved.
    pub bytes: u64,
    /// Bytes of the first of them.
    pub block: u64,
    /// Offset of the first of them.
    pub offset: u64,
    /// Time that they took: the latency of the operation, or the interval.
    pub span: Nanos,
    /// Mean time from prepare to submit.
    pub slat: Nanos,
    /// Mean time from submit to completion.
    pub clat: Nanos,
    /// Mean of both together.
    pub lat: Nanos,
    /// The largest of each: slat, clat, lat.
    pub max: [Nanos; 3],
    /// Its priority; none for an interval, as in fio.
    pub priority: IoPriority,
    /// The highest rates over a sample (`bwavgtime`, `iopsavgtime`) in it: operations and bytes
    /// per second.
    pub max_rates: [u64; 2],
}

/// Completion latencies of one direction in an interval of the histogram log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHistogram {
    /// End of the interval after the worker's start.
    pub at: Nanos,
    /// Their direction.
    pub direction: Direction,
    /// Largest block size in it.
    pub block: u64,
    /// (smallest value, largest value, count) of each bucket in use, ns.
    pub buckets: Vec<(Nanos, Nanos, u64)>,
}

/// The logs of one worker: they stay with its rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobLog {
    /// Position of the job among all jobs of the plan.
    pub job: u32,
    /// jobnum of the worker.
    pub worker: u64,
    /// Start in ms since the epoch: what times in it count from.
    pub start_ms: u64,
    /// In the order of their ends.
    pub samples: Vec<LogSample>,
    /// In the order of their ends.
    pub histograms: Vec<LogHistogram>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        let mut series = Series::default();
        values.iter().for_each(|v| series.add(*v));
        series
    }

    #[test]
    fn rates_of_workers_at_the_same_time_add_up() {
        let mut both = series(&[10.0, 20.0, 30.0]);
        both.join(&series(&[1.0, 2.0, 3.0]));
        assert_eq!((both.samples, both.min, both.max), (6, 11.0, 33.0));
        assert!((both.mean() - 22.0).abs() < 1e-9);
        // Squared deviations of 200 and 2 over 5 degrees of freedom.
        assert!((both.stddev() - (202.0_f64 / 5.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_group_has_the_latencies_of_each_priority_of_its_jobs() {
        let at = |class, values: &[u64]| {
            let mut latency = Latency::default();
            values.iter().for_each(|ns| latency.record(Nanos(*ns)));
            AtPriority {
                priority: IoPriority::new(class, 0, 0),
                latency,
            }
        };
        let one = |values: &[u64]| {
            let mut outcome = JobOutcome {
                workers: 1,
                ..JobOutcome::default()
            };
            outcome.read.clat = at(0, values).latency;
            outcome
        };
        let plain = |values| {
            let mut outcome = one(values);
            outcome.at_own_priority(IoPriority::default(), |direction| &direction.clat);
            outcome
        };
        let mut sum = plain(&[1, 2]);
        let mut several = one(&[3, 4, 5]);
        several.read.priorities = vec![at(3, &[3]), at(1, &[4, 5])];
        several.at_own_priority(IoPriority::new(3, 0, 0), |direction| &direction.clat);
        sum.merge(&several);
        let expect = [at(0, &[1, 2]), at(3, &[3]), at(1, &[4, 5])];
        assert_eq!(sum.read.priorities, expect);
        sum.leave_out_single_priority();
        assert_eq!(sum.read.priorities, expect);
        let mut same = plain(&[1, 2]);
        same.merge(&plain(&[7]));
        assert_eq!(same.read.priorities, [at(0, &[1, 2, 7])]);
        same.leave_out_single_priority();
        assert_eq!(same.read.priorities, []);
        // Each direction has one, but not the same: that shows where they are reported together.
        let mut mixed = plain(&[1]);
        mixed.write.priorities = vec![at(0, &[]), at(1, &[2])];
        mixed.leave_out_single_priority();
        assert_eq!(mixed.read.priorities, [at(0, &[1])]);
    }

    #[test]
    fn merging_outcomes_gives_their_sum() {
        let one = |worker: u64, ios: u64, latency: u64| {
            let mut outcome = JobOutcome {
                worker,
                workers: 1,
                start_ms: 100 + worker,
                elapsed: Nanos(worker),
                ..JobOutcome::default()
            };
            outcome.read.ios = ios;
            outcome.read.clat.record(Nanos(latency));
            outcome.depths[1] = ios;
            outcome
        };
        let mut sum = one(3, 10, 500);
        sum.merge(&one(2, 5, 700));
        assert_eq!((sum.worker, sum.workers, sum.read.ios), (2, 2, 15));
        assert_eq!((sum.start_ms, sum.elapsed), (102, Nanos(3)));
        assert_eq!(
            (sum.read.clat.count(), sum.read.clat.max()),
            (2, Nanos(700))
        );
        assert_eq!(sum.depths[1], 15);
    }
}
