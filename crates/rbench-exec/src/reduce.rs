//! From the outcomes of all workers to the rows of the report at rank 0,
//! exactly: integers are added, nothing is averaged.
//!
//! Distributions travel as dense counts, cut to the range of buckets that any
//! rank used, and are added up by the communicator's reduction: memory at
//! rank 0 does not grow with the ranks. What stays apart for each rank is a
//! short summary; for each host, its distribution.

use rbench_comm::{Combine, CommError, Communicator};
use rbench_core::failure::Example;
use rbench_core::latency::SUM_WORDS;
use rbench_core::outcome::{
    Again, FirstDone, HostOutcome, Lane, PhaseOutcome, RankOutcome, Stonewall, WorkerOutcome,
};
use rbench_core::timeline::{Bin, Timeline};
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Failure, FailureKind, Failures, Latency, Nanos, OpKind, Rank};

use crate::group::{ExecError, Group};
use crate::phase::Phase;

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
        let hosts = hosts(group, &merged, &frame).await?;
        let ranks = ranks(group, &merged, cpu).await?;
        let total = sum(group, group.world, &merged.lane, &frame).await?;
        let (Some(hosts), Some(gathered), Some(total)) = (hosts, ranks, total) else {
            continue;
        };
        let Gathered {
            ranks,
            failures,
            first,
        } = gathered;
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
            ranks,
            timeline: total.timeline,
            stonewall,
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
        let mut used = latency.used().map(|(index, _)| index as u64);
        let first = used.next();
        let last = used.last().or(first);
        [last.map_or(0, |l| l + 1), first.map_or(0, |f| !f)]
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

/// The additive part of a lane over a group of ranks.
struct Total {
    items: u64,
    bytes: u64,
    errors: u64,
    unissued: u64,
    unchecked: u64,
    again: Again,
    service: Latency,
    response: Option<Latency>,
    timeline: Timeline,
}

/// Adds the lane up over the ranks of `comm`, at its rank 0.
async fn sum(
    group: &Group<'_>,
    comm: &dyn Communicator,
    lane: &Lane,
    frame: &Frame,
) -> Result<Option<Total>, ExecError> {
    let sums = group
        .quietly(comm.reduce(Rank(0), Combine::Sum, additive(lane, frame)))
        .await?;
    let maxima = group
        .quietly(comm.reduce(Rank(0), Combine::Max, extremes(lane, frame)))
        .await?;
    sums.zip(maxima)
        .map(|(sums, maxima)| unpack(frame, &sums, &maxima))
        .transpose()
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

fn extremes(lane: &Lane, frame: &Frame) -> Vec<u64> {
    let mut words = Vec::new();
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
    let mut latency = |range: &Range| {
        let scalars: [u64; SUM_WORDS] = sums.array();
        let counts = sums.take(range.count);
        let [not_min, max] = maxima.array();
        Latency::from_parts(range.first, counts, scalars, (!not_min, max))
    };
    let service = latency(&frame.service);
    let response = frame.response.as_ref().map(latency);
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

/// Each host's part, at rank 0.
async fn hosts(
    group: &Group<'_>,
    merged: &Merged,
    frame: &Frame,
) -> Result<Option<Vec<HostOutcome>>, ExecError> {
    let total = sum(group, group.host.as_ref(), &merged.lane, frame).await?;
    let latest = group
        .quietly(
            group
                .host
                .reduce(Rank(0), Combine::Max, vec![merged.finished.0]),
        )
        .await?;
    let (Some(total), Some(latest)) = (total, latest) else {
        return Ok(None);
    };
    let mut message = Writer::default();
    message
        .number(total.items)
        .number(total.bytes)
        .number(total.errors)
        .number(latest[0]);
    message.numbers(&total.service.to_words());
    let all = group
        .quietly(group.leaders.gather(Rank(0), message.finish()))
        .await?;
    if !group.is_root() {
        return Ok(None);
    }
    let all = all.unwrap_or_default();
    let hosts = all.iter().zip(&group.host_names);
    let read: Option<Vec<_>> = hosts.map(|(m, name)| read_host(m, name)).collect();
    read.ok_or_else(garbled).map(Some)
}

fn read_host(message: &[u8], host: &str) -> Option<HostOutcome> {
    let mut r = Reader::new(message);
    let (items, bytes, errors, elapsed) =
        (r.number()?, r.number()?, r.number()?, Nanos(r.number()?));
    let service = Latency::from_words(&r.numbers()?)?;
    Some(HostOutcome {
        host: host.to_owned(),
        items,
        bytes,
        errors,
        elapsed,
        service,
    })
}

/// Both ends are the same program: this does not happen unless memory or the
/// network damages a message, and a report without it would be wrong.
fn garbled() -> ExecError {
    let text = "a part of the result did not arrive whole at rank 0";
    ExecError::Comm(CommError::Start(text.to_owned()))
}

/// What rank 0 hears from every rank for itself.
struct Gathered {
    ranks: Vec<RankOutcome>,
    failures: Failures,
    first: Option<(Nanos, u64)>,
}

/// Each rank's summary and all failures, at rank 0.
async fn ranks(
    group: &Group<'_>,
    merged: &Merged,
    cpu: Nanos,
) -> Result<Option<Gathered>, ExecError> {
    let Merged {
        lane,
        finished,
        first,
    } = merged;
    let mut message = Writer::default();
    message
        .number(lane.items)
        .number(lane.failures.total())
        .number(finished.0);
    for ns in [
        lane.service.quantile(0.5),
        lane.service.quantile(0.99),
        lane.service.max(),
        cpu,
    ] {
        message.number(ns.0);
    }
    let (at, items) = first.unwrap_or((Nanos(u64::MAX), 0));
    message.number(at.0).number(items);
    for (kind, count, example) in lane.failures.iter() {
        write_failures(&mut message, kind, count, example);
    }
    let Some(all) = group
        .quietly(group.world.gather(Rank(0), message.finish()))
        .await?
    else {
        return Ok(None);
    };
    let mut rows = Vec::with_capacity(all.len());
    let mut failures = Failures::default();
    let mut first = None;
    for (rank, message) in (0..).map(Rank).zip(&all) {
        let mut r = Reader::new(message);
        let host = group.host_name_of(rank);
        rows.push(read_rank(&mut r, rank, host).ok_or_else(garbled)?);
        let its_first = r
            .number()
            .zip(r.number())
            .map(|(at, items)| (Nanos(at), items));
        first = earlier(first, its_first.filter(|(at, _)| at.0 != u64::MAX));
        while let Some((kind, count, failure)) = read_failures(&mut r) {
            failures.insert(
                kind,
                count,
                Example {
                    rank,
                    host: host.to_owned(),
                    failure,
                },
            );
        }
    }
    Ok(Some(Gathered {
        ranks: rows,
        failures,
        first,
    }))
}

fn read_rank(r: &mut Reader<'_>, rank: Rank, host: &str) -> Option<RankOutcome> {
    let (items, errors, elapsed) = (r.number()?, r.number()?, Nanos(r.number()?));
    let (p50, p99) = (Nanos(r.number()?), Nanos(r.number()?));
    let (max, cpu) = (Nanos(r.number()?), Nanos(r.number()?));
    Some(RankOutcome {
        rank,
        host: host.to_owned(),
        items,
        errors,
        elapsed,
        p50,
        p99,
        max,
        cpu,
    })
}

fn write_failures(message: &mut Writer, kind: FailureKind, count: u64, example: &Example) {
    let (tag, code) = match kind {
        FailureKind::Errno(code) => (0, code as u32),
        FailureKind::Short => (1, 0),
        FailureKind::Mismatch => (2, 0),
        FailureKind::Command => (3, 0),
    };
    let Failure {
        op,
        path,
        kind: _,
        detail,
    } = &example.failure;
    message
        .number(tag)
        .number(u64::from(code))
        .number(count)
        .number(*op as u64)
        .text(path)
        .text(detail);
}

fn read_failures(r: &mut Reader<'_>) -> Option<(FailureKind, u64, Failure)> {
    let kind = match (r.number()?, r.number()?) {
        (0, code) => FailureKind::Errno(code as i32),
        (1, _) => FailureKind::Short,
        (2, _) => FailureKind::Mismatch,
        (3, _) => FailureKind::Command,
        _ => return None,
    };
    let count = r.number()?;
    let op = *OpKind::ALL.get(usize::try_from(r.number()?).ok()?)?;
    let (path, detail) = (r.text()?, r.text()?);
    Some((
        kind,
        count,
        Failure {
            op,
            path,
            kind,
            detail,
        },
    ))
}
