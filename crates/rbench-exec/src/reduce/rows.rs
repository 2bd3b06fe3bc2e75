//! The results of each rank and of each host.
//!
//! Like the sums, summaries travel in two steps: rank 0 gets a message from each host, not from
//! each rank. Hosts send whole distributions only where these are reported.

use rbench_core::outcome::{HostOutcome, Measured, RankGap, RankOutcome};
use rbench_core::spread::{self, HostSpread, HostSummary, RankSpread};
use rbench_core::timeline::Gap;
use rbench_core::{Failures, Nanos, Rank, Timeline};
use serde::{Deserialize, Serialize};

use super::{First, Merged, Total};
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
    let mine = told.then(|| HostOutcome {
        host: group.host_name().to_owned(),
        items: own.lane.items,
        bytes: own.lane.bytes,
        errors: own.errors,
        elapsed: own.measured.elapsed(),
        service: own.lane.service.clone(),
        response: own.lane.response.clone(),
        gap: longest_gap(&own.lane.timeline, own.measured),
    });
    let all = group.quietly(group.leaders.gather_values(&mine)).await?;
    Ok(all.map(|all| Hosts {
        hosts: all.into_iter().flatten().collect(),
        crowd,
    }))
}

/// Returns true if this host is reported by name; at rank 0 also the spread of all.
async fn choose(group: &Group<'_>, own: &Total) -> Result<(bool, Option<HostSpread>), ExecError> {
    let mine = HostSummary {
        ranks: u64::from(group.host.size()),
        items: own.lane.items,
        bytes: own.lane.bytes,
        errors: own.errors,
        elapsed: own.measured.elapsed(),
        p50: own.lane.service.quantile(0.5),
        p99: own.lane.service.quantile(0.99),
        max: own.lane.service.max(),
    };
    let all = group.quietly(group.leaders.gather_values(&mine)).await?;
    let (places, crowd) = all.map(|all| spread::of_hosts(&all)).unzip();
    let places = places.unwrap_or_default();
    let told = group.leaders.broadcast_value(Rank(0), &places);
    let told = group.quietly(told).await?;
    Ok((told.contains(&(group.leaders.rank().0 as usize)), crowd))
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
    /// The longest time in which one of them finished nothing.
    pub gap: Option<RankGap>,
}

/// The report of a rank.
#[derive(Serialize, Deserialize)]
struct Row {
    rank: RankOutcome,
    first: Option<First>,
    most: u64,
    gap: Option<Gap>,
}

/// The leaders' report of the ranks of their hosts: each of them, and all failures.
#[derive(Serialize, Deserialize)]
pub struct RanksOfHost {
    rows: Vec<Row>,
    failures: Failures,
}

impl RanksOfHost {
    /// The ranks of several hosts, or the ranks of one.
    fn joined(all: Vec<RanksOfHost>) -> RanksOfHost {
        let mut joined = RanksOfHost {
            rows: Vec::new(),
            failures: Failures::default(),
        };
        for one in all {
            joined.rows.extend(one.rows);
            joined.failures.merge(&one.failures);
        }
        joined
    }
}

/// The summaries of the ranks of this host and their failures, at its leader.
pub async fn ranks_of_host(
    group: &Group<'_>,
    merged: &Merged,
    cpu: Nanos,
) -> Result<Option<RanksOfHost>, ExecError> {
    let Merged {
        lane,
        measured,
        first,
        most,
    } = merged;
    let mine = RanksOfHost {
        rows: vec![Row {
            rank: RankOutcome {
                rank: group.rank(),
                host: group.host_name().to_owned(),
                items: lane.items,
                errors: lane.failures.total(),
                elapsed: measured.elapsed(),
                p50: lane.service.quantile(0.5),
                p99: lane.service.quantile(0.99),
                max: lane.service.max(),
                cpu,
            },
            first: *first,
            most: *most,
            gap: longest_gap(&lane.timeline, *measured).filter(|gap| gap.length.0 > 0),
        }],
        failures: lane.failures.clone(),
    };
    let all = group.quietly(group.host.gather_values(&mine)).await?;
    Ok(all.map(RanksOfHost::joined))
}

/// Every rank's summary and all failures, at rank 0; every leader calls this.
pub async fn ranks(group: &Group<'_>, own: RanksOfHost) -> Result<Option<Ranks>, ExecError> {
    let all = group.quietly(group.leaders.gather_values(&own)).await?;
    let Some(all) = all else {
        return Ok(None);
    };
    let RanksOfHost { mut rows, failures } = RanksOfHost::joined(all);
    rows.sort_by_key(|row| row.rank.rank);
    let firsts = rows
        .iter()
        .filter_map(|row| Some((row.rank.rank, row.first?)));
    // If several end at the same time, the one of the lowest rank.
    let first = firsts.min_by_key(|(_, first)| first.at);
    let most = rows.iter().map(|row| row.most).max().unwrap_or(0);
    let gaps = rows.iter().filter_map(|row| Some((row.gap?, &row.rank)));
    // If several have the same length, that of the lowest rank.
    let gap = gaps.rev().max_by_key(|(gap, _)| gap.length);
    let gap = gap.map(|(gap, rank)| RankGap {
        rank: rank.rank,
        host: rank.host.clone(),
        gap,
    });
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
        gap,
    }))
}

/// The longest time without a finished operation, from the start of measuring on.
fn longest_gap(line: &Timeline, measured: Measured) -> Option<Gap> {
    match measured.is_nothing() {
        true => None,
        false => line.longest_gap(measured.from),
    }
}
