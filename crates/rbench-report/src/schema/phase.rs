//! The rows of the result file: one for each kind of operation of a phase.

use std::collections::BTreeMap;

use rbench_core::Nanos;
use rbench_core::effort::Effort;
use rbench_core::failure::{Example, FailureKind, Failures};
use rbench_core::hist::Hist;
use rbench_core::outcome::{
    Access, FirstDone, Found, HostOutcome, Lateness, PhaseOutcome, RankOutcome, Replayed,
    Stonewall, per_second,
};
use rbench_core::spread::{HostSpread, RankSpread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    CameRoundResult, ClientCostResult, GapResult, GivenUpResult, MarkCost, PhaseMark,
    ResidencyResult, SteadyResult, TimelineRow, World, marks, timeline as slices,
};

/// One phase: a row of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResult {
    /// The iteration, from 0.
    pub iteration: u32,
    /// Name for machines, such as `file-create`.
    pub name: String,
    /// Name for people, such as `File creation`.
    pub label: String,
    /// The kind of operation.
    pub op: String,
    /// Operations done without error.
    pub items: u64,
    /// Bytes that these moved.
    pub bytes: u64,
    /// Failed operations by name of the error.
    pub errors: BTreeMap<String, u64>,
    /// The first failure of each kind.
    #[serde(default)]
    pub error_examples: Vec<ErrorExample>,
    /// In an open loop: operations that were due and never started; they are not
    /// in the response times.
    #[serde(default)]
    pub unissued: u64,
    /// Operations of a mix that found no file to work on: none was left for them, or another worker
    /// had been faster. They are not errors, and are in no latency.
    #[serde(default)]
    pub missed: u64,
    /// Under verification: blocks that were not read back because their write,
    /// or a later one to the same place, had failed.
    #[serde(default)]
    pub unchecked: u64,
    /// Interrupted calls (EINTR) that were retried; no operation failed.
    #[serde(default)]
    pub interrupted: u64,
    /// Short reads and writes that further calls completed; no operation
    /// failed.
    #[serde(default)]
    pub continued: u64,
    /// The time in which its operations were measured, s: last end minus
    /// `measured_from_s` minus `set_aside_s`.
    pub elapsed_s: f64,
    /// items / elapsed_s; 0 when no time passed.
    pub rate: f64,
    /// bytes / elapsed_s; `None` where the phase moved no bytes.
    pub bandwidth: Option<f64>,
    /// Results when the first worker finished; `None` if none was busy, if no
    /// worker had more than one operation (`one_each`), if most operations of
    /// the first one failed (`first_failed`), or if time was set aside.
    pub first_done: Option<FirstDone>,
    /// Spread of the actual starts of the workers that had work; of a single one, its distance from
    /// the common start, s.
    pub start_skew_s: f64,
    /// Error of the hosts' clocks at the common start, s: two hosts started at most twice this
    /// apart, plus the skew. 0 with one clock; `None` where each rank started by itself, and in
    /// older files.
    #[serde(default)]
    pub start_error_s: Option<f64>,
    /// `cold`, `warm`, `mixed`; `None` where nothing is known or the question
    /// has no meaning.
    pub cache: Option<String>,
    /// Results until the stonewall's deadline, if it passed.
    #[serde(default)]
    pub stonewall: Option<Stonewall>,
    /// True if it wrote data that nothing in the phase synced (no fsync, O_SYNC or O_DSYNC).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsynced: bool,
    /// True if the phase reached its end.
    pub complete: bool,
    /// The distributions of all workers together.
    pub latency: LatencyResult,
    /// Share of the workers' time that was spent in calls, 0 to 1: in_calls_s /
    /// active_s of `workers`; `None` where no time passed.
    #[serde(default)]
    pub busy: Option<f64>,
    /// The workers' time, by its use.
    #[serde(default)]
    pub workers: Option<Effort>,
    /// No worker had more than one of these operations: they have a time and no
    /// rate.
    #[serde(default)]
    pub one_each: bool,
    /// The host of the worker that finished first, if most of its operations
    /// failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failed: Option<String>,
    /// With a time limit: workers that had written everything once and went on
    /// to overwrite it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<CameRoundResult>,
    /// Workers that were given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<GivenUpResult>,
    /// Total times of transfers between opens and closes that were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessResult>,
    /// Counts of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundResult>,
    /// The recorded results of a replay's operations, and the differences from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// Hosts in the order of their first rank; of too many only the outliers.
    pub hosts: Vec<HostResult>,
    /// The spread over all hosts, when there are too many for a row each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_crowd: Option<HostSpread>,
    /// Ranks ascending; of too many only the outliers.
    pub ranks: Vec<RankOutcome>,
    /// The spread over all ranks, when there are too many for a row each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<RankSpread>,
    /// Width of each row of the timeline, s.
    #[serde(default)]
    pub timeline_step_s: f64,
    /// The course of the phase since the common start.
    #[schemars(length(max = super::TIMELINE_ROWS))]
    pub timeline: Vec<TimelineRow>,
    /// The longest time in which a rank finished nothing, from the start of measuring to
    /// its last operation; `None` without operations, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap: Option<GapResult>,
    /// Share of the finest slices of time (a quarter of `timeline_step_s`) in which no
    /// worker finished anything, 0 to 1, from the start of measuring to the last
    /// operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_share: Option<f64>,
    /// Cost to this row of each mark that was set while the phase ran, by time; without those after
    /// its last operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<MarkCost>,
    /// Start of measuring, s after the common start: 0, except for jobs with a start delay, a ramp
    /// or data to be written before it is read back.
    #[serde(default)]
    pub measured_from_s: f64,
    /// Time after that in which only other operations ran, such as reading back
    /// between writes, s: not part of `elapsed_s`.
    #[serde(default)]
    pub set_aside_s: f64,
    /// The cache that answered, with the evidence; `None` where the question has no meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency: Option<ResidencyResult>,
    /// Usage of the file system's client in the phase, whose rows share it; `None` where no client
    /// was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCostResult>,
    /// Steadiness of a phase that ends when its rate is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyResult>,
}

impl PhaseResult {
    /// Failed operations of all kinds.
    pub fn error_count(&self) -> u64 {
        self.errors.values().copied().fold(0, u64::saturating_add)
    }

    /// Number of ranks that took part, whether or not they have a row.
    pub fn rank_count(&self) -> u64 {
        let rows = self.ranks.len() as u64;
        self.crowd.as_ref().map_or(rows, |crowd| crowd.ranks)
    }

    /// True if only one worker took part; of a file without their number, if the run has only one.
    pub fn has_one_worker(&self, world: &World) -> bool {
        let in_run = u64::from(world.ranks) * u64::from(world.threads_per_rank);
        let workers = self.workers.as_ref().map_or(in_run, |all| all.workers);
        workers == 1
    }

    /// Number of hosts that took part.
    pub fn host_count(&self) -> u64 {
        let rows = self.hosts.len() as u64;
        self.host_crowd.as_ref().map_or(rows, |crowd| crowd.hosts)
    }
}

/// The first failure of its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorExample {
    /// Name of the error, as in `errors`: `ENOSPC`, `SHORT`, `MISMATCH`.
    pub error: String,
    /// Its meaning, in words.
    #[serde(default)]
    pub meaning: String,
    /// Number of times that it happened.
    pub count: u64,
    /// The operation.
    pub op: String,
    /// The path it was for.
    pub path: String,
    /// Further details; may be empty.
    pub detail: String,
    /// The rank on which it happened.
    pub rank: u32,
    /// The host of that rank.
    pub host: String,
}

/// The distributions of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyResult {
    /// From the actual start of an operation to its end.
    pub service: Hist,
    /// From the intended start to the end; in an open loop only.
    pub response: Option<Hist>,
    /// From the intended start to the actual one; in an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<LatenessResult>,
    /// If the stonewall's deadline passed: the service times of operations that had started by
    /// then, without the catching up after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stonewalled: Option<Hist>,
}

/// Lateness of operations with an intended start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatenessResult {
    /// Operations that had one.
    pub operations: u64,
    /// Mean of the actual start less the intended one, ns.
    pub mean_ns: u64,
    /// The largest, ns.
    pub max_ns: u64,
}

impl LatenessResult {
    fn of(late: Lateness) -> Option<LatenessResult> {
        (late.operations > 0).then(|| LatenessResult {
            operations: late.operations,
            mean_ns: late.mean().0,
            max_ns: late.max.0,
        })
    }
}

/// One host's part in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostResult {
    /// Its name.
    pub host: String,
    /// Operations done without error.
    pub items: u64,
    /// Bytes that these moved.
    #[serde(default)]
    pub bytes: u64,
    /// Failed operations.
    #[serde(default)]
    pub errors: u64,
    /// The time in which its own operations were measured, s.
    pub elapsed_s: f64,
    /// Service times of its workers.
    pub latency: Hist,
    /// Response times of its workers; in an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Hist>,
    /// The longest time in which none of its workers finished anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap: Option<GapResult>,
}

impl HostResult {
    /// Items per second up to the end of its own last worker; 0 when no time
    /// passed.
    pub fn rate(&self) -> f64 {
        if self.elapsed_s > 0.0 {
            self.items as f64 / self.elapsed_s
        } else {
            0.0
        }
    }
}

impl From<&PhaseOutcome> for PhaseResult {
    fn from(outcome: &PhaseOutcome) -> PhaseResult {
        PhaseResult::with_marks(outcome, &[])
    }
}

impl PhaseResult {
    /// The row of a phase in which these marks were set, by time.
    pub fn with_marks(outcome: &PhaseOutcome, marked: &[PhaseMark]) -> PhaseResult {
        // Taken apart whole: a field added to the outcome cannot be forgotten.
        let PhaseOutcome {
            iteration,
            name,
            label,
            op,
            items,
            bytes,
            failures,
            unissued,
            missed,
            unchecked,
            again,
            elapsed,
            first_done,
            start_skew,
            cache,
            complete,
            service,
            response,
            late,
            hosts,
            host_crowd,
            ranks,
            crowd,
            timeline,
            longest_gap,
            stonewall,
            unsynced,
            measured_from,
            set_aside,
            effort,
            stonewalled,
            // Part of `given_up`.
            given_up_at: _,
            one_each,
            first_failed,
            rewritten,
            residency: _,
            client,
            start,
            access,
            found,
            replayed,
            steady,
        } = outcome;
        PhaseResult {
            iteration: *iteration,
            name: name.clone(),
            label: label.clone(),
            op: op.name().to_owned(),
            items: *items,
            bytes: *bytes,
            errors: failures.iter().map(|(k, n, _)| (k.name(), n)).collect(),
            error_examples: error_examples(failures),
            unissued: *unissued,
            missed: *missed,
            unchecked: *unchecked,
            interrupted: again.interrupted,
            continued: again.continued,
            elapsed_s: elapsed.as_secs_f64(),
            rate: outcome.rate(),
            bandwidth: (*bytes > 0).then(|| outcome.bandwidth()),
            first_done: first_done.clone(),
            start_skew_s: start_skew.as_secs_f64(),
            cache: cache.map(|c| c.name().to_owned()),
            stonewall: *stonewall,
            unsynced: *unsynced,
            complete: *complete,
            latency: LatencyResult {
                service: Hist::from(service),
                response: response.as_ref().map(Hist::from),
                lateness: LatenessResult::of(*late),
                stonewalled: stonewalled.as_ref().map(Hist::from),
            },
            hosts: hosts.iter().map(HostResult::from).collect(),
            host_crowd: host_crowd.clone(),
            ranks: ranks.clone(),
            crowd: crowd.clone(),
            timeline_step_s: timeline.slice_width_s(),
            timeline: slices::rows(timeline, response.is_some()),
            longest_gap: longest_gap
                .as_ref()
                .map(|longest| GapResult::of(longest.gap, Some(longest.rank), &longest.host)),
            empty_share: slices::empty_share(timeline, *measured_from),
            marks: marks::costs(outcome, marked),
            measured_from_s: measured_from.as_secs_f64(),
            set_aside_s: set_aside.as_secs_f64(),
            busy: effort.busy(),
            workers: (effort.workers > 0).then_some(*effort),
            one_each: *one_each,
            first_failed: first_failed.clone(),
            rewritten: rewritten.map(CameRoundResult::from),
            given_up: GivenUpResult::of(outcome),
            access: access.map(|access| AccessResult::of(access, *bytes)),
            found: found.map(|found| FoundResult::of(found, *elapsed)),
            replayed: replayed.clone(),
            residency: ResidencyResult::of(outcome),
            client: client.as_ref().map(ClientCostResult::from),
            steady: steady.as_ref().map(SteadyResult::from),
            start_error_s: start.map(|start| start.error.as_secs_f64()),
        }
    }
}

/// Counts of a search of a tree, each entry once, over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundResult {
    /// Entries that are not directories.
    pub files: u64,
    /// Directories, the first one included.
    pub directories: u64,
    /// Entries of both kinds for which all tests hold.
    pub matches: u64,
    /// `files` / `elapsed_s` of the row; 0 when no time passed.
    pub files_per_s: f64,
}

impl FoundResult {
    fn of(found: Found, elapsed: Nanos) -> FoundResult {
        let Found {
            files,
            directories,
            matches,
        } = found;
        FoundResult {
            files,
            directories,
            matches,
            files_per_s: per_second(files, elapsed),
        }
    }
}

/// Total times of opening, transferring and closing, over all ranks: IOR's times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccessResult {
    /// From the begin of the first open of any rank to the end of the last one, s.
    pub open_s: f64,
    /// From the begin of the first transfer of any rank to the end of the last one, or of the last
    /// fsync after the transfers, s.
    pub transfer_s: f64,
    /// From the begin of the first close of any rank to the end of the last one, s; 0 where
    /// nothing was closed in time.
    pub close_s: f64,
    /// From the begin of the first open of any rank to the end of the last close, s.
    pub total_s: f64,
    /// Bytes that all ranks moved without error / `total_s`; 0 when no time passed.
    pub bandwidth: f64,
}

impl AccessResult {
    fn of(access: Access, bytes: u64) -> AccessResult {
        let Access {
            open,
            transfer,
            close,
            total,
        } = access;
        AccessResult {
            open_s: open.as_secs_f64(),
            transfer_s: transfer.as_secs_f64(),
            close_s: close.as_secs_f64(),
            total_s: total.as_secs_f64(),
            bandwidth: per_second(bytes, total),
        }
    }
}

fn error_examples(failures: &Failures) -> Vec<ErrorExample> {
    let example = |(kind, count, first): (FailureKind, u64, &Example)| {
        let Example {
            rank,
            host,
            failure,
        } = first;
        ErrorExample {
            error: kind.name(),
            meaning: kind.describe(),
            count,
            op: failure.op.name().to_owned(),
            path: failure.path.clone(),
            detail: failure.detail.clone(),
            rank: rank.0,
            host: host.clone(),
        }
    };
    failures.iter().map(example).collect()
}

impl From<&HostOutcome> for HostResult {
    fn from(outcome: &HostOutcome) -> HostResult {
        let HostOutcome {
            host,
            items,
            bytes,
            errors,
            elapsed,
            service,
            response,
            gap,
        } = outcome;
        HostResult {
            host: host.clone(),
            items: *items,
            bytes: *bytes,
            errors: *errors,
            elapsed_s: elapsed.as_secs_f64(),
            latency: Hist::from(service),
            response: response.as_ref().map(Hist::from),
            longest_gap: gap.map(|gap| GapResult::of(gap, None, host)),
        }
    }
}
