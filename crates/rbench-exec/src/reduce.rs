//! From the outcomes of all workers to the rows of the report at rank 0,
//! exactly: integers are added, nothing is averaged.
//!
//! Distributions travel as dense counts, cut to the range of buckets that any
//! rank used, and are added up by the communicator's reduction in two steps:
//! over the ranks of each host at its leader, and over the leaders at rank 0,
//! which leads its host and the leaders. Memory at rank 0 does not grow with
//! the ranks. What stays apart for each rank is a short summary; for each
//! host, its distribution: `rows` gathers them.

mod rows;

use rbench_comm::{Combine, CommError};
use rbench_core::latency::SUM_WORDS;
use rbench_core::outcome::{Again, FirstDone, Lane, PhaseOutcome, Stonewall, WorkerOutcome};
use rbench_core::timeline::{Bin, Timeline};
use rbench_core::{Latency, Nanos, Rank};

use crate::group::{ExecError, Group};
use crate::phase::Phase;
use rows::{Hosts, Ranks};

/// What one rank brings to the reduction.
#[derive(Debug)]
pub struct Part {
    /// Its workers' outcomes; at least one.
    pub outcomes: Vec<WorkerOutcome>,
    /// CPU time its process used.
    pub cpu: Nanos,
    /// The stonewall, the same on all ranks.
    pub stonewall: Option<Stonewall>,
    /// Whether the phase ran to its end, the same on all ranks.
    pub complete: bool,
}

/// Starts may lie before the common start; this keeps them positive.
const START_BIAS: u64 = 1 << 62;

/// Reduces one phase; a row for each lane at rank 0, none elsewhere.
///
/// # Errors
/// When the ranks cannot talk.
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
    let times = times(group, &outcomes).await?;
    let lanes = merge_workers(outcomes);
    let mut rows = Vec::new();
    for (info, mut merged) in phase.lanes.iter().zip(lanes) {
        let frame = Frame::agree(group, &merged.lane).await?;
        merged.lane.timeline.widen(frame.width);
        let sums = sum(group, &merged, &frame).await?;
        let ranks = rows::ranks_of_host(group, &merged, cpu).await?;
        // The others have done their part; the leaders go on.
        let (Some((host, total)), Some(ranks)) = (sums, ranks) else {
            continue;
        };
        let hosts = rows::hosts(group, &host).await?;
        let ranks = rows::ranks(group, ranks).await?;
        let (Some(total), Some(hosts), Some(ranks)) = (total, hosts, ranks) else {
            continue;
        };
        let Hosts {
            hosts,
            crowd: host_crowd,
        } = hosts;
        let Ranks {
            ranks,
            crowd,
            failures,
            first,
        } = ranks;
        let first_done = first.map(|(elapsed, items)| FirstDone {
            elapsed,
            // At least what the first worker itself has done, which a bin of
            // the timeline cannot tell.
            items: items.max(total.timeline.done_by(elapsed, times.last_finish)),
        });
        rows.push(PhaseOutcome {
            iteration: phase.iteration,
            name: info.name.clone(),
            label: info.label.clone(),
            op: info.op,
            items: total.items,
            bytes: total.bytes,
            failures,
            unissued: total.unissued,
            unchecked: total.unchecked,
            again: total.again,
            elapsed: times.last_finish,
            first_done,
            start_skew: times.start_skew,
            cache: phase.cache,
            complete,
            service: total.service,
            response: total.response,
            hosts,
            host_crowd,
            ranks,
            crowd,
            timeline: total.timeline,
            stonewall,
            start: group.started(),
        });
    }
    Ok(rows)
}

/// When the workers of all ranks started and finished.
struct Times {
    last_finish: Nanos,
    start_skew: Nanos,
}

async fn times(group: &Group<'_>, outcomes: &[WorkerOutcome]) -> Result<Times, ExecError> {
    let started = outcomes
        .iter()
        .map(|o| START_BIAS.saturating_add_signed(o.started_ns));
    let busy_finish = outcomes.iter().filter(|o| o.busy).map(|o| o.finished.0);
    // Smallest values travel as complements: one reduction for all.
    let mine = vec![
        busy_finish.max().unwrap_or(0),
        started.clone().max().unwrap_or(0),
        started.min().map_or(0, |n| !n),
    ];
    let all = group
        .quietly(group.world.all_reduce(Combine::Max, mine))
        .await?;
    Ok(Times {
        last_finish: Nanos(all[0]),
        start_skew: Nanos(all[1].saturating_sub(!all[2])),
    })
}

/// One lane of this rank, its workers merged.
struct Merged {
    lane: Lane,
    finished: Nanos,
    /// The busy worker that finished first: when, and its items.
    first: Option<(Nanos, u64)>,
}

/// The earlier of two first finishers.
fn earlier(a: Option<(Nanos, u64)>, b: Option<(Nanos, u64)>) -> Option<(Nanos, u64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn merge_workers(outcomes: Vec<WorkerOutcome>) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    for WorkerOutcome {
        started_ns: _,
        finished,
        busy,
        lanes,
        details: _,
    } in outcomes
    {
        let first = |lane: &Lane| busy.then_some((finished, lane.items));
        let finished = if busy { finished } else { Nanos(0) };
        if merged.is_empty() {
            merged.extend(lanes.into_iter().map(|lane| Merged {
                first: first(&lane),
                lane,
                finished,
            }));
            continue;
        }
        for (mine, theirs) in merged.iter_mut().zip(&lanes) {
            mine.first = earlier(mine.first, first(theirs));
            mine.lane.merge(theirs);
            mine.finished = mine.finished.max(finished);
        }
    }
    merged
}

/// The range of buckets and bins that any rank used, so that only these
/// travel.
struct Frame {
    service: Range,
    response: Option<Range>,
    width: Nanos,
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

    fn counts<'l>(&self, latency: &'l Latency) -> &'l [u64] {
        &latency.counts()[self.first..self.first + self.count]
    }
}

impl Frame {
    async fn agree(group: &Group<'_>, lane: &Lane) -> Result<Frame, ExecError> {
        let width = lane.timeline.width();
        let mut mine = vec![width.0, width.0 * lane.timeline.bins().len() as u64];
        mine.extend(Range::bounds(&lane.service));
        if let Some(response) = &lane.response {
            mine.extend(Range::bounds(response));
        }
        let all = group
            .quietly(group.world.all_reduce(Combine::Max, mine))
            .await?;
        Ok(Frame {
            width: Nanos(all[0]),
            bins: all[1].div_ceil(all[0]) as usize,
            service: Range::from_bounds(&all[2..4]),
            response: all.get(4..6).map(Range::from_bounds),
        })
    }
}

/// A lane over a group of ranks.
struct Total {
    items: u64,
    bytes: u64,
    errors: u64,
    unissued: u64,
    unchecked: u64,
    again: Again,
    /// The end of the last worker.
    finished: Nanos,
    service: Latency,
    response: Option<Latency>,
    timeline: Timeline,
}

/// Adds the lane up over the ranks of each host, for its leader, and those
/// sums over all hosts, for rank 0.
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
    let of_host = unpack(frame, &sums, &maxima)?;
    let leaders = group.leaders.as_ref();
    let sums = group.quietly(leaders.reduce(Rank(0), Combine::Sum, sums));
    let sums = sums.await?;
    let maxima = group.quietly(leaders.reduce(Rank(0), Combine::Max, maxima));
    let total = sums.zip(maxima.await?);
    let total = total.map(|(sums, maxima)| unpack(frame, &sums, &maxima));
    Ok(Some((of_host, total.transpose()?)))
}

fn additive(lane: &Lane, frame: &Frame) -> Vec<u64> {
    let Lane {
        op: _,
        items,
        bytes,
        failures,
        unissued,
        unchecked,
        again,
        service,
        response,
        timeline,
    } = lane;
    let Again {
        interrupted,
        continued,
    } = again;
    let mut words = vec![*items, *bytes, failures.total()];
    words.extend([unissued, unchecked, interrupted, continued]);
    words.extend(service.sums());
    words.extend(frame.service.counts(service));
    if let (Some(response), Some(range)) = (response, &frame.response) {
        words.extend(response.sums());
        words.extend(range.counts(response));
    }
    for index in 0..frame.bins {
        let Bin {
            items,
            bytes,
            errors,
            max: _,
        } = timeline.bins().get(index).copied().unwrap_or_default();
        words.extend([items, bytes, errors]);
    }
    words
}

fn extremes(merged: &Merged, frame: &Frame) -> Vec<u64> {
    let Merged {
        lane,
        finished,
        first: _,
    } = merged;
    let mut words = vec![finished.0];
    for latency in [Some(&lane.service), lane.response.as_ref()]
        .into_iter()
        .flatten()
    {
        let (min, max) = latency.extremes();
        words.extend([!min, max]);
    }
    words.extend((0..frame.bins).map(|i| lane.timeline.bins().get(i).map_or(0, |bin| bin.max.0)));
    words
}

fn unpack(frame: &Frame, sums: &[u64], maxima: &[u64]) -> Result<Total, ExecError> {
    let (mut sums, mut maxima) = (Words(sums), Words(maxima));
    let [items, bytes, errors] = sums.array();
    let [unissued, unchecked, interrupted, continued] = sums.array();
    let [finished] = maxima.array();
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
    let bins = (0..frame.bins)
        .map(|_| {
            let [items, bytes, errors] = sums.array();
            let [max] = maxima.array();
            Bin {
                items,
                bytes,
                errors,
                max: Nanos(max),
            }
        })
        .collect();
    let timeline = Timeline::from_bins(frame.width, bins).ok_or_else(garbled)?;
    Ok(Total {
        items,
        bytes,
        errors,
        unissued,
        unchecked,
        again: Again {
            interrupted,
            continued,
        },
        finished: Nanos(finished),
        service,
        response,
        timeline,
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

/// Both ends are the same program: this does not happen unless memory or the
/// network damages a message, and a report without it would be wrong.
fn garbled() -> ExecError {
    let text = "a part of the result did not arrive whole at rank 0";
    ExecError::Comm(CommError::Start(text.to_owned()))
}
