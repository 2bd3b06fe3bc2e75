//! Exact reduction of all workers' outcomes to the rows of the report at rank 0: integers are
//! added, nothing is averaged.
//!
//! Distributions travel as dense counts, cut to the range of buckets that any rank used. The
//! communicator's reduction adds them up in two steps: over the ranks of each host at its leader,
//! and over the leaders at rank 0. Memory at rank 0 does not grow with the ranks. Each rank keeps a
//! short summary of its own, each host its distribution: `rows` gathers them.

mod rows;
mod slices;
#[cfg(test)]
mod tests;

use rbench_comm::{Combine, CommError};
use rbench_core::effort::{EFFORT_WORDS, Effort};
use rbench_core::latency::{SUM_WORDS, joined, pieces};
use rbench_core::outcome::{
    FirstDone, Lateness, Measured, OpStats, PhaseOutcome, Retries, Stonewall, WorkerOutcome,
};
use rbench_core::residency::Round;
use rbench_core::timeline::{Bin, Timeline};
use rbench_core::{Failures, Latency, Nanos, OpKind, Rank};
use serde::{Deserialize, Serialize};

use crate::group::{ExecError, Group};
use crate::phase::Phase;
use slices::Buckets;

/// Input of one rank to the reduction.
#[derive(Debug)]
pub struct Part {
    /// Its workers' outcomes; at least one.
    pub outcomes: Vec<WorkerOutcome>,
    /// CPU time that its process used.
    pub cpu: Nanos,
    /// The stonewall, the same on all ranks.
    pub stonewall: Option<Stonewall>,
    /// True if the phase ran to its end, the same on all ranks.
    pub complete: bool,
}

/// Starts may be before the common start; this keeps them positive.
const START_BIAS: u64 = 1 << 62;

/// Bins may be narrower than an interval: this keeps the power positive.
const POWER_BIAS: u64 = 1 << 31;

/// Reduces one phase; a row for each lane at rank 0, none elsewhere.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn reduce(
    group: &Group<'_>,
    phase: &Phase,
    part: Part,
) -> Result<Vec<PhaseOutcome>, ExecError> {
    let Part {
        outcomes,
        cpu,
        stonewall,
        complete,
    } = part;
    let start_skew = start_skew(group, &outcomes).await?;
    let lanes = merge_workers(phase, group.interval(), outcomes);
    let mut rows = Vec::new();
    for (info, mut merged) in phase.lanes.iter().zip(lanes) {
        let frame = Frame::agree(group, &merged.lane, stonewall.is_some()).await?;
        merged.lane.timeline.widen(frame.power);
        let mut sums = sum(group, &merged, &frame).await?;
        let total = sums.as_mut().and_then(|(_, total)| total.as_mut());
        let total = total.map(|total| &mut total.lane.timeline);
        let buckets = frame.of_slices();
        slices::reduce(group, &merged.lane.timeline, &buckets, frame.bins, total).await?;
        let ranks = rows::ranks_of_host(group, &merged, cpu).await?;
        // The others have done their part; the leaders continue.
        let (Some((host, total)), Some(ranks)) = (sums, ranks) else {
            continue;
        };
        let hosts = rows::hosts(group, &host).await?;
        let ranks = rows::ranks(group, ranks).await?;
        let (Some(Total { lane, measured, .. }), Some(hosts), Some(ranks)) = (total, hosts, ranks)
        else {
            continue;
        };
        let one_each = ranks.most == 1;
        let (first, failed) = match ranks.first {
            Some((rank, first)) if first.failed => (None, Some(rank)),
            first => (first.filter(|_| !one_each), None),
        };
        let host_of = |rank| group.host_name_of(rank).to_owned();
        // The amount set aside by then is unknown.
        let first = first.filter(|_| measured.aside.0 == 0);
        let first_done = first.map(|(rank, first)| {
            let items = first.items_of_all(&lane.timeline, measured);
            FirstDone::new(first.at.since(measured.from), items, host_of(rank))
        });
        rows.push(PhaseOutcome {
            op: info.op,
            failures: ranks.failures,
            first_done,
            start_skew,
            complete,
            hosts: hosts.hosts,
            host_crowd: hosts.crowd,
            ranks: ranks.ranks,
            crowd: ranks.crowd,
            longest_gap: ranks.gap,
            stonewall,
            unsynced: info.unsynced,
            one_each,
            first_failed: failed.map(host_of),
            start: group.started(),
            ..PhaseOutcome::of(phase.iteration, &info.name, &info.label, lane)
        });
    }
    Ok(rows)
}

/// Returns the distance between the first and the last start of the workers that had work; of a
/// single one, that from the common start.
async fn start_skew(group: &Group<'_>, outcomes: &[WorkerOutcome]) -> Result<Nanos, ExecError> {
    let first = u64::from(group.rank().0) << 32;
    // The start of a worker that was given up is unknown: it is not busy.
    let busy = (first..).zip(outcomes).filter(|(_, outcome)| outcome.busy);
    let starts = busy
        .clone()
        .map(|(_, outcome)| START_BIAS.saturating_add_signed(outcome.started_ns));
    let own = [bounds(starts), bounds(busy.map(|(number, _)| number))].concat();
    let all = group
        .quietly(group.world.all_reduce(Combine::Max, own))
        .await?;
    Ok(skew([all[0], all[1]], [all[2], all[3]]))
}

/// Returns the largest value and the complement of the least one: the largest of each over all ranks
/// are their bounds.
fn bounds(values: impl Iterator<Item = u64> + Clone) -> [u64; 2] {
    [
        values.clone().max().unwrap_or(0),
        values.min().map_or(0, |least| !least),
    ]
}

/// Returns the skew of these bounds of starts; those of the workers' numbers are equal if it is only
/// one.
fn skew(starts: [u64; 2], numbers: [u64; 2]) -> Nanos {
    let [latest, earliest] = [starts[0], !starts[1]];
    Nanos(match numbers[0] == !numbers[1] {
        true => latest.abs_diff(START_BIAS),
        false => latest.saturating_sub(earliest),
    })
}

/// One lane of this rank, its workers merged.
struct Merged {
    lane: OpStats,
    /// Time in which its operations were measured.
    measured: Measured,
    /// The busy worker that finished first.
    first: Option<First>,
    /// The most operations, failed ones included, that one worker had.
    most: u64,
}

impl Merged {
    fn nothing(lane: OpStats) -> Merged {
        Merged {
            lane,
            measured: Measured::NOTHING,
            first: None,
            most: 0,
        }
    }

    fn add(&mut self, theirs: Merged) {
        let Merged {
            lane,
            measured,
            first,
            most,
        } = theirs;
        self.lane.merge(&lane);
        self.measured = self.measured.joined(measured);
        self.first = First::earlier(self.first, first);
        self.most = self.most.max(most);
    }
}

/// A worker that finished before the others.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct First {
    at: Nanos,
    /// Number of its items.
    items: u64,
    /// Set if most of its operations failed: it did not work like the others.
    failed: bool,
}

impl First {
    fn of(lane: &OpStats, at: Nanos) -> First {
        First {
            at,
            items: lane.items,
            failed: lane.failures.total() > lane.items,
        }
    }

    /// Returns the items that all workers had done by then: at least its own, since a bin of the
    /// timeline is wider than the moment.
    fn items_of_all(&self, timeline: &Timeline, measured: Measured) -> u64 {
        self.items.max(timeline.done_by(self.at, measured.to))
    }

    /// Returns the earlier of two.
    fn earlier(a: Option<First>, b: Option<First>) -> Option<First> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// Merges the lanes of this rank's workers, each with its own; a lane that none of them has is
/// empty.
fn merge_workers(phase: &Phase, interval: Nanos, outcomes: Vec<WorkerOutcome>) -> Vec<Merged> {
    let mut merged: Vec<Option<Merged>> = phase.lanes.iter().map(|_| None).collect();
    for WorkerOutcome {
        started_ns: _,
        finished,
        busy,
        lanes,
        details: _,
        first_lane,
    } in outcomes
    {
        for (place, lane) in merged.iter_mut().skip(first_lane).zip(lanes) {
            let whole = Measured::until(finished);
            let measured = match busy {
                true => lane.measured.unwrap_or(whole),
                false => Measured::NOTHING,
            };
            let theirs = Merged {
                first: (!measured.is_nothing()).then(|| First::of(&lane, measured.to)),
                measured,
                most: lane.operations(),
                lane,
            };
            match place {
                Some(mine) => mine.add(theirs),
                None => *place = Some(theirs),
            }
        }
    }
    let all = (0..).zip(merged).flat_map(|(number, merged)| match merged {
        Some(merged) => vec![merged],
        None => {
            let empty = phase.empty_lanes(interval, number..number + 1);
            empty.into_iter().map(Merged::nothing).collect()
        }
    });
    all.collect()
}

/// The range of buckets and bins that any rank used: only these travel.
struct Frame {
    service: Range,
    response: Option<Range>,
    /// Range under a stonewall.
    stonewalled: Option<Range>,
    interval: Nanos,
    /// Width of bins: [`Timeline::power`].
    power: i32,
    bins: usize,
}

struct Range {
    first: usize,
    count: usize,
}

impl Range {
    fn bounds(latency: &Latency) -> [u64; 2] {
        let span = latency.span();
        match span.is_empty() {
            true => [0, 0],
            false => [span.end as u64, !(span.start as u64)],
        }
    }

    fn from_bounds(bounds: &[u64]) -> Range {
        let first = if bounds[1] == 0 {
            0
        } else {
            !bounds[1] as usize
        };
        Range {
            first,
            count: (bounds[0] as usize).saturating_sub(first),
        }
    }

    fn counts<'l>(&self, latency: &'l Latency) -> impl Iterator<Item = u64> + 'l {
        latency.counts(self.first..self.first + self.count)
    }
}

impl Frame {
    async fn agree(group: &Group<'_>, lane: &OpStats, stonewall: bool) -> Result<Frame, ExecError> {
        let line = &lane.timeline;
        // The last bin by its start: the number of bins depends on the width.
        let last = line.bins().len().checked_sub(1);
        let last = last.map_or(0, |last| line.start(last).0 + 1);
        let mut mine = vec![
            POWER_BIAS.saturating_add_signed(i64::from(line.power())),
            last,
        ];
        mine.extend(Range::bounds(&lane.service));
        if let Some(response) = &lane.response {
            mine.extend(Range::bounds(response));
        }
        let before = mine.len();
        if stonewall {
            // A rank whose workers were all given up has none.
            mine.extend(lane.stonewalled.as_ref().map_or([0, 0], Range::bounds));
        }
        let all = group
            .quietly(group.world.all_reduce(Combine::Max, mine))
            .await?;
        let interval = group.interval();
        let power = (all[0] as i64 - POWER_BIAS as i64) as i32;
        let last = all[1].checked_sub(1);
        Ok(Frame {
            interval,
            power,
            bins: last.map_or(0, |at| Timeline::bin_of(interval, power, Nanos(at)) + 1),
            service: Range::from_bounds(&all[2..4]),
            response: all.get(4..before).and_then(of_two),
            stonewalled: all.get(before..).and_then(of_two),
        })
    }
}

impl Frame {
    /// Returns the buckets of the slices.
    fn of_slices(&self) -> Buckets {
        let of = |range: &Range| slices::coarse(range.first, range.count);
        Buckets {
            service: of(&self.service),
            response: self.response.as_ref().map_or(0..0, of),
        }
    }
}

/// Returns the range between two bounds, if there are any.
fn of_two(bounds: &[u64]) -> Option<Range> {
    (bounds.len() == 2).then(|| Range::from_bounds(bounds))
}

/// A lane over a group of ranks.
struct Total {
    /// Its failures are only counted, in `errors`.
    lane: OpStats,
    errors: u64,
    /// Time in which its operations were measured.
    measured: Measured,
}

/// Adds the lane up over the ranks of each host, for its leader, and those sums over all hosts, for
/// rank 0.
async fn sum(
    group: &Group<'_>,
    merged: &Merged,
    frame: &Frame,
) -> Result<Option<(Total, Option<Total>)>, ExecError> {
    let (sums, maxima) = (additive(&merged.lane, frame), extremes(merged, frame));
    let host = group.host.as_ref();
    let sums = group.quietly(host.reduce(Rank(0), Combine::Sum, sums));
    let sums = sums.await?;
    let maxima = group.quietly(host.reduce(Rank(0), Combine::Max, maxima));
    let Some((sums, maxima)) = sums.zip(maxima.await?) else {
        return Ok(None);
    };
    let op = merged.lane.op;
    let of_host = unpack(frame, op, &sums, &maxima)?;
    let leaders = group.leaders.as_ref();
    let sums = group.quietly(leaders.reduce(Rank(0), Combine::Sum, sums));
    let sums = sums.await?;
    let maxima = group.quietly(leaders.reduce(Rank(0), Combine::Max, maxima));
    let total = sums.zip(maxima.await?);
    let total = total.map(|(sums, maxima)| unpack(frame, op, &sums, &maxima));
    Ok(Some((of_host, total.transpose()?)))
}

fn additive(lane: &OpStats, frame: &Frame) -> Vec<u64> {
    let OpStats {
        op: _,
        items,
        bytes,
        failures,
        unissued,
        missed,
        unchecked,
        again,
        service,
        response,
        late,
        timeline,
        measured: _,
        effort,
        stonewalled,
        given_up_at: _,
        rewritten,
    } = lane;
    let Retries {
        interrupted,
        continued,
    } = again;
    let mut words = Vec::with_capacity(128 + frame.service.count + 3 * frame.bins);
    words.extend([*items, *bytes, failures.total()]);
    words.extend([unissued, missed, unchecked, interrupted, continued]);
    words.push(late.operations);
    words.extend(pieces(late.sum));
    words.extend(rewritten.map_or([0; 2], |round| [round.once, round.done]));
    words.extend(effort.to_words());
    words.extend(service.sums());
    words.extend(frame.service.counts(service));
    if let (Some(response), Some(range)) = (response, &frame.response) {
        words.extend(response.sums());
        words.extend(range.counts(response));
    }
    if let Some(range) = &frame.stonewalled {
        let none = Latency::default();
        let stonewalled = stonewalled.as_ref().unwrap_or(&none);
        words.extend(stonewalled.sums());
        words.extend(range.counts(stonewalled));
    }
    for index in 0..frame.bins {
        let Bin {
            items,
            bytes,
            errors,
            first: _,
            last: _,
        } = timeline.bins().get(index).copied().unwrap_or_default();
        words.extend([items, bytes, errors]);
    }
    words
}

fn extremes(merged: &Merged, frame: &Frame) -> Vec<u64> {
    let Merged {
        lane,
        measured,
        first: _,
        most: _,
    } = merged;
    // The earliest is the complement of the latest complement.
    let given_up_at = lane.given_up_at.map_or(0, |at| !at.0);
    let Measured { from, to, aside } = measured;
    let rewritten = lane.rewritten.map_or(0, |round| !round.after.0);
    let mut words = vec![
        to.0,
        !from.0,
        !aside.0,
        given_up_at,
        rewritten,
        lane.late.max.0,
    ];
    let none = Latency::default();
    let stonewalled = lane.stonewalled.as_ref().unwrap_or(&none);
    let stonewalled = frame.stonewalled.is_some().then_some(stonewalled);
    let response = lane.response.as_ref();
    let all = [Some(&lane.service), response, stonewalled];
    for latency in all.into_iter().flatten() {
        let (min, max) = latency.extremes();
        words.extend([!min, max]);
    }
    words.reserve(2 * frame.bins);
    for index in 0..frame.bins {
        let bin = lane.timeline.bins().get(index).copied().unwrap_or_default();
        words.extend([!bin.first.0, bin.last.0]);
    }
    words
}

fn unpack(frame: &Frame, op: OpKind, sums: &[u64], maxima: &[u64]) -> Result<Total, ExecError> {
    let (mut sums, mut maxima) = (Words(sums), Words(maxima));
    let [items, bytes, errors] = sums.array();
    let [unissued, missed, unchecked, interrupted, continued] = sums.array();
    let [late_operations] = sums.array();
    let late_sum: [u64; 4] = sums.array();
    let [once, done] = sums.array();
    let effort: [u64; EFFORT_WORDS] = sums.array();
    let [
        to,
        not_from,
        not_aside,
        given_up_at,
        not_rewritten,
        late_max,
    ] = maxima.array();
    let mut latency = |range: &Range| {
        let scalars: [u64; SUM_WORDS] = sums.array();
        let counts = sums.take(range.count);
        let [not_min, max] = maxima.array();
        Latency::from_parts(range.first, counts, scalars, (!not_min, max))
    };
    let service = latency(&frame.service).ok_or_else(garbled)?;
    let response = match &frame.response {
        Some(range) => Some(latency(range).ok_or_else(garbled)?),
        None => None,
    };
    let stonewalled = match &frame.stonewalled {
        Some(range) => Some(latency(range).ok_or_else(garbled)?),
        None => None,
    };
    let bins = (0..frame.bins)
        .map(|_| {
            let [items, bytes, errors] = sums.array();
            let [not_first, last] = maxima.array();
            Bin {
                items,
                bytes,
                errors,
                first: Nanos(!not_first),
                last: Nanos(last),
            }
        })
        .collect();
    let timeline = Timeline::from_bins(frame.interval, frame.power, bins);
    let timeline = timeline.ok_or_else(garbled)?;
    let measured = Measured {
        from: Nanos(!not_from),
        to: Nanos(to),
        aside: Nanos(!not_aside),
    };
    let lane = OpStats {
        op,
        items,
        bytes,
        failures: Failures::default(),
        unissued,
        missed,
        unchecked,
        again: Retries {
            interrupted,
            continued,
        },
        service,
        response,
        late: Lateness {
            operations: late_operations,
            sum: joined(&late_sum),
            max: Nanos(late_max),
        },
        timeline,
        measured: Some(measured),
        effort: Effort::from_words(effort),
        stonewalled,
        given_up_at: (given_up_at > 0).then_some(Nanos(!given_up_at)),
        rewritten: (done > 0).then_some(Round {
            after: Nanos(!not_rewritten),
            once,
            done,
        }),
    };
    Ok(Total {
        lane,
        errors,
        measured,
    })
}

/// Takes words off the front of a reduction whose length both ends know.
struct Words<'w>(&'w [u64]);

impl<'w> Words<'w> {
    fn take(&mut self, count: usize) -> &'w [u64] {
        let (head, rest) = self.0.split_at(count);
        self.0 = rest;
        head
    }

    fn array<const N: usize>(&mut self) -> [u64; N] {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N));
        out
    }
}

/// Returns the error of a damaged message. Both ends are the same program: only faulty memory or a
/// faulty network damages it, and a report without it would be wrong.
fn garbled() -> ExecError {
    let text = "a part of the result arrived incomplete at rank 0";
    ExecError::Comm(CommError::Start(text.to_owned()))
}
