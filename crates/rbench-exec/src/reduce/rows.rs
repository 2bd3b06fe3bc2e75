//! What is told of each rank and of each host.
//!
//! Summaries travel in two steps as the sums do: rank 0 gets a message from
//! each host, not from each rank. Hosts send whole distributions only where
//! these are told.

use rbench_core::failure::Example;
use rbench_core::outcome::{HostOutcome, RankOutcome};
use rbench_core::spread::{self, HostSpread, HostSummary, RankSpread};
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Failure, FailureKind, Failures, Latency, Nanos, OpKind, Rank};

use super::{First, Merged, Total, garbled};
use crate::group::{ExecError, Group};

/// The hosts of a phase at rank 0.
pub struct Hosts {
    pub hosts: Vec<HostOutcome>,
    pub crowd: Option<HostSpread>,
}

/// Each host's part, at rank 0; every leader calls this with its own.
pub async fn hosts(group: &Group<'_>, own: &Total) -> Result<Option<Hosts>, ExecError> {
    let few = group.host_names.len() <= group.rows.hosts;
    let (told, crowd) = match few {
        true => (true, None),
        false => choose(group, own).await?,
    };
    let mut message = Writer::default();
    if told {
        message
            .number(u64::from(group.host_of[group.rank().0 as usize]))
            .number(own.items)
            .number(own.bytes)
            .number(own.errors)
            .number(own.measured.elapsed().0)
            .numbers(&own.service.to_words())
            .numbers(&own.response.as_ref().map_or(Vec::new(), Latency::to_words));
    }
    let all = group.leaders.gather(Rank(0), message.finish());
    let Some(all) = group.quietly(all).await? else {
        return Ok(None);
    };
    let told = all.iter().filter(|message| !message.is_empty());
    let hosts: Option<Vec<HostOutcome>> = told.map(|m| read_host(group, m)).collect();
    let hosts = hosts.ok_or_else(garbled)?;
    Ok(Some(Hosts { hosts, crowd }))
}

/// Whether this host is told by name; at rank 0 also how all lie apart.
async fn choose(group: &Group<'_>, own: &Total) -> Result<(bool, Option<HostSpread>), ExecError> {
    let mut message = Writer::default();
    let ranks = u64::from(group.host.size());
    let (items, bytes, errors) = (own.items, own.bytes, own.errors);
    let times = [
        own.measured.elapsed(),
        own.service.quantile(0.5),
        own.service.quantile(0.99),
        own.service.max(),
    ];
    message.numbers(&[ranks, items, bytes, errors]);
    message.numbers(&times.map(|time| time.0));
    let all = group.leaders.gather(Rank(0), message.finish());
    let (mut places, mut crowd) = (Vec::new(), None);
    if let Some(all) = group.quietly(all).await? {
        let read: Option<Vec<HostSummary>> = all.iter().map(|m| read_summary(m)).collect();
        let (named, spread) = spread::of_hosts(&read.ok_or_else(garbled)?);
        places = named;
        crowd = Some(spread);
    }
    let mut message = Writer::default();
    places.iter().for_each(|place| {
        message.number(*place as u64);
    });
    let told = group.leaders.broadcast(Rank(0), message.finish());
    let told = group.quietly(told).await?;
    let mut reader = Reader::new(&told);
    let mine = u64::from(group.leaders.rank().0);
    let told = std::iter::from_fn(|| reader.number()).any(|place| place == mine);
    Ok((told, crowd))
}

fn read_summary(message: &[u8]) -> Option<HostSummary> {
    let mut r = Reader::new(message);
    let [ranks, items, bytes, errors] = *r.numbers()?.as_array()?;
    let [elapsed, p50, p99, max] = r.numbers()?.as_array()?.map(Nanos);
    Some(HostSummary {
        ranks,
        items,
        bytes,
        errors,
        elapsed,
        p50,
        p99,
        max,
    })
}

fn read_host(group: &Group<'_>, message: &[u8]) -> Option<HostOutcome> {
    let mut r = Reader::new(message);
    let host = group.host_names.get(usize::try_from(r.number()?).ok()?)?;
    let counts = [r.number()?, r.number()?, r.number()?];
    let elapsed = Nanos(r.number()?);
    let service = Latency::from_words(&r.numbers()?)?;
    let response = match r.numbers()? {
        words if words.is_empty() => None,
        words => Some(Latency::from_words(&words)?),
    };
    let [items, bytes, errors] = counts;
    Some(HostOutcome {
        host: host.clone(),
        items,
        bytes,
        errors,
        elapsed,
        service,
        response,
    })
}

/// The ranks of a phase at rank 0.
pub struct Ranks {
    pub ranks: Vec<RankOutcome>,
    pub crowd: Option<RankSpread>,
    pub failures: Failures,
    /// The busy worker that finished first, and its rank.
    pub first: Option<(Rank, First)>,
    /// The most operations that one worker had.
    pub most: u64,
}

/// What the leaders tell of the ranks of their hosts: a list of numbers for
/// each rank, and all failures.
pub struct RanksOfHost(Vec<u8>);

/// Numbers told of each rank.
const NUMBERS: usize = 12;

/// The summaries of the ranks of this host and their failures, at its leader.
pub async fn ranks_of_host(
    group: &Group<'_>,
    merged: &Merged,
    cpu: Nanos,
) -> Result<Option<RanksOfHost>, ExecError> {
    let all = group.host.gather(Rank(0), of_rank(group, merged, cpu));
    let Some(all) = group.quietly(all).await? else {
        return Ok(None);
    };
    let mut message = Writer::default();
    let mut failures = Failures::default();
    message.number(all.len() as u64);
    for of_rank in &all {
        let mut r = Reader::new(of_rank);
        message.numbers(&r.numbers().ok_or_else(garbled)?);
        read_failures(group, &mut r, &mut failures).ok_or_else(garbled)?;
    }
    write_failures(&mut message, &failures);
    Ok(Some(RanksOfHost(message.finish())))
}

fn of_rank(group: &Group<'_>, merged: &Merged, cpu: Nanos) -> Vec<u8> {
    let Merged {
        lane,
        measured,
        first,
        most,
    } = merged;
    let First {
        at: first_at,
        items: first_items,
        failed,
    } = first.unwrap_or(First {
        at: Nanos(u64::MAX),
        items: 0,
        failed: false,
    });
    let numbers: [u64; NUMBERS] = [
        u64::from(group.rank().0),
        lane.items,
        lane.failures.total(),
        measured.elapsed().0,
        lane.service.quantile(0.5).0,
        lane.service.quantile(0.99).0,
        lane.service.max().0,
        cpu.0,
        first_at.0,
        first_items,
        u64::from(failed),
        *most,
    ];
    let mut message = Writer::default();
    message.numbers(&numbers);
    write_failures(&mut message, &lane.failures);
    message.finish()
}

/// Every rank's summary and all failures, at rank 0; every leader calls this.
pub async fn ranks(group: &Group<'_>, own: RanksOfHost) -> Result<Option<Ranks>, ExecError> {
    let all = group.leaders.gather(Rank(0), own.0);
    let Some(all) = group.quietly(all).await? else {
        return Ok(None);
    };
    let mut rows = Vec::with_capacity(group.host_of.len());
    let mut failures = Failures::default();
    for of_host in &all {
        let mut r = Reader::new(of_host);
        read_ranks(group, &mut r, &mut rows).ok_or_else(garbled)?;
        read_failures(group, &mut r, &mut failures).ok_or_else(garbled)?;
    }
    rows.sort_by_key(|row| row.rank.rank);
    let firsts = rows
        .iter()
        .filter_map(|row| Some((row.rank.rank, row.first?)));
    // Of several at the same time the one of the lowest rank.
    let first = firsts.min_by_key(|(_, first)| first.at);
    let most = rows.iter().map(|row| row.most).max().unwrap_or(0);
    let rows: Vec<RankOutcome> = rows.into_iter().map(|row| row.rank).collect();
    let (ranks, crowd) = if rows.len() <= group.rows.ranks {
        (rows, None)
    } else {
        let (named, spread) = spread::of_ranks(&rows);
        let named = named.iter().map(|place| rows[*place].clone());
        (named.collect(), Some(spread))
    };
    Ok(Some(Ranks {
        ranks,
        crowd,
        failures,
        first,
        most,
    }))
}

/// What is told of a rank.
struct Row {
    rank: RankOutcome,
    first: Option<First>,
    most: u64,
}

fn read_ranks(group: &Group<'_>, r: &mut Reader<'_>, rows: &mut Vec<Row>) -> Option<()> {
    for _ in 0..r.number()? {
        let numbers = r.numbers()?;
        let [
            rank,
            items,
            errors,
            times @ ..,
            first_items,
            first_failed,
            most,
        ]: [u64; NUMBERS] = *numbers.as_array()?;
        let [elapsed, p50, p99, max, cpu, first_at] = times.map(Nanos);
        let rank = known(group, rank)?;
        let row = RankOutcome {
            rank,
            host: group.host_name_of(rank).to_owned(),
            items,
            errors,
            elapsed,
            p50,
            p99,
            max,
            cpu,
        };
        let first = (first_at.0 != u64::MAX).then_some(First {
            at: first_at,
            items: first_items,
            failed: first_failed > 0,
        });
        rows.push(Row {
            rank: row,
            first,
            most,
        });
    }
    Some(())
}

/// The rank of that number, if it is one of the group's.
fn known(group: &Group<'_>, number: u64) -> Option<Rank> {
    let rank = u32::try_from(number).ok()?;
    (rank < group.world.size()).then_some(Rank(rank))
}

fn write_failures(message: &mut Writer, failures: &Failures) {
    for (kind, count, example) in failures.iter() {
        let (tag, code) = match kind {
            FailureKind::Errno(code) => (0, code as u32),
            FailureKind::Short => (1, 0),
            FailureKind::Mismatch => (2, 0),
            FailureKind::Command => (3, 0),
        };
        let Example {
            rank,
            host: _,
            failure,
        } = example;
        let Failure {
            op,
            path,
            kind: _,
            detail,
        } = failure;
        let code = u64::from(code);
        message.numbers(&[tag, code, count, u64::from(rank.0), *op as u64]);
        message.text(path).text(detail);
    }
}

/// Reads to the end of the message.
fn read_failures(group: &Group<'_>, r: &mut Reader<'_>, into: &mut Failures) -> Option<()> {
    while !r.is_empty() {
        let [tag, code, count, rank, op] = *r.numbers()?.as_array()?;
        let kind = match tag {
            0 => FailureKind::Errno(code as i32),
            1 => FailureKind::Short,
            2 => FailureKind::Mismatch,
            3 => FailureKind::Command,
            _ => return None,
        };
        let rank = known(group, rank)?;
        let failure = Failure {
            op: *OpKind::ALL.get(usize::try_from(op).ok()?)?,
            kind,
            path: r.text()?,
            detail: r.text()?,
        };
        let host = group.host_name_of(rank).to_owned();
        into.insert(
            kind,
            count,
            Example {
                rank,
                host,
                failure,
            },
        );
    }
    Some(())
}
