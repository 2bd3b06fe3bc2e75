//! Observations around a phase that reads, stats or lists: the creator of the items, the files'
//! pages in the page cache, the requests that reach the file system, the bytes fetched for it. All
//! of it between phases, when no worker works; nothing of it in the timed path.
//!
//! One rank of each cache asks the counters; each worker checks the files that it has open. Counts
//! are added up exactly, like all others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::time::Duration;

use rbench_core::outcome::{OpStats, PhaseOutcome, WorkerOutcome};
use rbench_core::residency::{CacheLook, Evidence, Pages, Requests, Residency, Round, TOTAL};
use rbench_sys::mountinfo::{self, MountInfo};
use rbench_sys::residency::{RequestCounter, fetched};
use serde::{Deserialize, Serialize};

use crate::group::{ExecError, Group};
use crate::phase::{Looking, OpRow, Phase};
use crate::repeats::round;

/// Time limit of a counter's answer: the measured data matters more.
const PATIENCE: Duration = Duration::from_secs(5);

/// The cache of each rank.
pub(crate) fn caches<'g>(group: &'g Group<'_>) -> &'g [u32] {
    &group.cache_of
}

/// The cache of a host, by the host's number: that of its ranks.
fn cache_of(group: &Group<'_>, host: usize) -> usize {
    let mut ranks = group.host_of.iter().zip(caches(group));
    let own = ranks.find(|(of, _)| **of as usize == host);
    own.map_or(host, |(_, cache)| *cache as usize)
}

/// The one mount that all of `paths` lie on, with its counter if it `counts`.
fn find(paths: &[PathBuf], counts: bool) -> Option<(MountInfo, Option<RequestCounter>)> {
    let mut mounts = paths.iter().map(|path| mountinfo::of(path).ok());
    let first = mounts.next()??;
    // Counts of one mount say nothing about another.
    if mounts.any(|other| other.is_none_or(|m| m.mount_point != first.mount_point)) {
        return None;
    }
    let counter = counts.then(|| RequestCounter::find(&paths[0])).flatten();
    Some((first, counter))
}

/// From now on the phases work below `paths`. Every rank calls this; what
/// cannot be found out is unknown.
///
/// # Errors
/// When the ranks cannot talk.
pub(crate) async fn turn_to(group: &Group<'_>, mut paths: Vec<PathBuf>) -> Result<(), ExecError> {
    paths.sort_unstable();
    paths.dedup();
    let counts = group.is_cache_leader();
    let found = group.within(PATIENCE, move || find(&paths, counts)).await?;
    let sight = &group.probes.sight;
    let (mount, counter) = found.and_then(Result::ok).flatten().unzip();
    let ground = mount.as_ref().map(|m| Evidence::of(&m.fs_type));
    sight.ground.set(ground.unwrap_or_default());
    sight.mount.replace(mount);
    sight.counter.replace(counter.flatten());
    Ok(())
}

/// Readings of the counters at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    requests: Option<Requests>,
    fetched: Option<u64>,
}

/// Asks the counters: the requests at one rank of each cache, the fetched
/// bytes at all. No worker works. A counter that does not answer is asked no
/// more.
pub(crate) async fn count(group: &Group<'_>) -> Result<Counts, ExecError> {
    let sight = &group.probes.sight;
    let (counter, mount) = (sight.counter.take(), sight.mount.borrow().clone());
    let work = move || {
        let read = counter.and_then(|mut counter| {
            let requests = counter.read().ok()?;
            Some((requests, counter))
        });
        let fetched = mount.and_then(|mount| fetched(&mount).process_bytes);
        (read, fetched)
    };
    if sight.mount.borrow().is_none() {
        return Ok(Counts::default());
    }
    let Some(Ok((read, fetched))) = group.within(PATIENCE, work).await? else {
        return Ok(Counts::default());
    };
    let (requests, counter) = read.unzip();
    sight.counter.replace(counter);
    Ok(Counts { requests, fetched })
}

/// A rank's observations before or after a phase.
#[derive(Debug, Clone)]
pub(crate) struct Glance {
    /// For each worker: its pages, and the operations of a pass.
    pub workers: Vec<(Pages, Option<u64>)>,
    pub counts: Counts,
}

/// One lane of one rank, or of all ranks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct LaneLook {
    operations: u64,
    bytes: u64,
    before: Pages,
    after: Pages,
    round: Option<Round>,
}

impl LaneLook {
    fn add(&mut self, other: LaneLook) {
        let LaneLook {
            operations,
            bytes,
            before,
            after,
            round,
        } = other;
        self.operations += operations;
        self.bytes += bytes;
        self.before.add(before);
        self.after.add(after);
        self.round = Round::join(self.round, round);
    }
}

/// One rank's observations around a phase, by lane.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    lanes: Vec<LaneLook>,
    /// Bytes fetched for its process, which other ranks may share.
    fetched: Option<u64>,
    requests: Option<Requests>,
}

/// The lanes of a worker's outcome with their numbers among the phase's.
fn lanes_of(outcome: &WorkerOutcome) -> impl Iterator<Item = (usize, &OpStats)> {
    (outcome.first_lane..).zip(&outcome.lanes)
}

impl Seen {
    /// This rank's observations around `phase`, whose workers did `outcomes`; `glances`: before and
    /// after it, where it was observed.
    pub fn new(
        phase: &Phase,
        outcomes: &[WorkerOutcome],
        glances: Option<[Glance; 2]>,
    ) -> Option<Seen> {
        phase.cache.as_ref()?;
        let mut lanes = vec![LaneLook::default(); phase.lanes.len()];
        let at = |glance: usize, worker: usize| {
            let glances = glances.as_ref()?;
            glances[glance].workers.get(worker).copied()
        };
        for (worker, outcome) in outcomes.iter().enumerate() {
            let before = at(0, worker).unwrap_or_default().0;
            let (after, once) = at(1, worker).unwrap_or_default();
            let own = lanes_of(outcome);
            let round = round(own.map(|(_, lane)| lane), once);
            for (number, lane) in lanes_of(outcome) {
                lanes[number].add(LaneLook {
                    operations: lane.items + lane.failures.total(),
                    bytes: lane.bytes,
                    before,
                    after,
                    round,
                });
            }
        }
        let [before, after] = match glances {
            Some(glances) => glances.map(|glance| glance.counts),
            None => Default::default(),
        };
        let requests = before.requests.zip(after.requests);
        let requests = requests.filter(|(before, after)| !after.restarted(before));
        Some(Seen {
            lanes,
            fetched: before
                .fetched
                .zip(after.fetched)
                .map(|(before, after)| after.saturating_sub(before)),
            requests: requests.map(|(before, after)| after.since(&before)),
        })
    }

    /// Adds another rank of the same host, or another host of the same cache.
    fn add(&mut self, other: Seen) {
        let Seen {
            lanes,
            fetched,
            requests,
        } = other;
        if self.lanes.len() < lanes.len() {
            self.lanes.resize(lanes.len(), LaneLook::default());
        }
        for (mine, theirs) in self.lanes.iter_mut().zip(lanes) {
            mine.add(theirs);
        }
        self.fetched = self.fetched.zip(fetched).map(|(a, b)| a + b);
        // One rank of each cache has asked; ranks of a host may have several.
        match (&mut self.requests, requests) {
            (Some(mine), Some(theirs)) => {
                for (kind, count) in theirs.by_kind {
                    *mine.by_kind.entry(kind).or_default() += count;
                }
            }
            (Some(_), None) => {}
            (mine, theirs) => *mine = theirs,
        }
    }
}

/// Puts together at rank 0 what all ranks saw, and says it in the rows of the
/// phase; all ranks call this.
///
/// # Errors
/// When the ranks cannot talk.
pub(crate) async fn gather(
    group: &Group<'_>,
    phase: &Phase,
    seen: Option<Seen>,
    rows: &mut [PhaseOutcome],
) -> Result<(), ExecError> {
    let (Some(looking), Some(seen)) = (&phase.cache, seen) else {
        return Ok(());
    };
    let Some(host) = of_host(group, seen).await? else {
        return Ok(());
    };
    let mine = (group.host_of[group.rank().0 as usize] as usize, host);
    let all = group.quietly(group.leaders.gather_values(&mine)).await?;
    let Some(all) = all else {
        return Ok(());
    };
    let mut caches = by_cache(group, all);
    let ground = group.probes.sight.ground.get();
    // The counters include the work of such workers, and no row does.
    if rows.iter().any(|row| row.effort.given_up > 0) {
        for (_, _, seen) in &mut caches {
            (seen.requests, seen.fetched) = (None, None);
        }
    }
    for (lane, row) in rows.iter_mut().enumerate() {
        if !phase.lanes[lane].op.asks() {
            continue;
        }
        let residency = row_of(group, phase, looking, ground, &caches, lane);
        row.cache = residency.verdict(row.op).0.cache();
        row.residency = Some(residency);
    }
    Ok(())
}

/// The observations of the ranks of this host, at its leader.
async fn of_host(group: &Group<'_>, mine: Seen) -> Result<Option<Seen>, ExecError> {
    let mine = (std::process::id(), mine);
    let all = group.quietly(group.host.gather_values(&mine)).await?;
    let mut merged: Option<Seen> = None;
    let mut processes = Vec::new();
    for (process, seen) in all.into_iter().flatten() {
        let twice = processes.contains(&process);
        processes.push(process);
        match &mut merged {
            None => merged = Some(seen),
            // Ranks of one process have the same counter.
            Some(merged) => merged.add(Seen {
                fetched: seen.fetched.map(|n| if twice { 0 } else { n }),
                ..seen
            }),
        }
    }
    Ok(merged)
}

/// The observations of each cache, with its number and its first host.
fn by_cache(group: &Group<'_>, hosts: Vec<(usize, Seen)>) -> Vec<(usize, usize, Seen)> {
    let mut caches: BTreeMap<usize, (usize, Seen)> = BTreeMap::new();
    for (host, seen) in hosts {
        match caches.entry(cache_of(group, host)) {
            Entry::Occupied(mut there) => there.get_mut().1.add(seen),
            Entry::Vacant(place) => {
                place.insert((host, seen));
            }
        }
    }
    let all = caches.into_iter();
    all.map(|(cache, (host, seen))| (cache, host, seen))
        .collect()
}

/// The residency of the row of a lane.
fn row_of(
    group: &Group<'_>,
    phase: &Phase,
    looking: &Looking,
    ground: Evidence,
    caches: &[(usize, usize, Seen)],
    lane: usize,
) -> Residency {
    let alike = |other: &OpRow| other.op == phase.lanes[lane].op;
    let shares = looking.shares.as_ref();
    let look = |(cache, host, seen): &(usize, usize, Seen)| {
        let own = seen.lanes.get(lane).copied().unwrap_or_default();
        let together = seen.lanes.iter().zip(&phase.lanes);
        let mut all = LaneLook::default();
        together
            .filter(|(_, info)| alike(info))
            .for_each(|(lane, _)| all.add(*lane));
        CacheLook {
            host: group.host_names.get(*host).cloned().unwrap_or_default(),
            operations: own.operations,
            bytes: own.bytes,
            asked: all.operations,
            returned: all.bytes,
            share: shares.and_then(|all| all.get(*cache)).copied(),
            before: match looking.ramps {
                true => Pages::default(),
                false => own.before,
            },
            after: own.after,
            requests: of_operations(looking, seen.requests.as_ref()),
            fetched: seen.fetched.filter(|_| !looking.ramps),
        }
    };
    let rounds = caches
        .iter()
        .filter_map(|(_, _, seen)| seen.lanes.get(lane));
    Residency {
        ground,
        dropped: looking.dropped,
        direct: looking.direct,
        verifies: looking.verifies.contains(&lane),
        round: rounds.fold(None, |all, lane| Round::join(all, lane.round)),
        caches: caches.iter().map(look).collect(),
    }
}

/// The requests counted around a phase, if they are those of its operations alone.
fn of_operations(looking: &Looking, requests: Option<&Requests>) -> Option<Requests> {
    let others = |r: &Requests| looking.ramps || looking.opens && r.by_kind.contains_key(TOTAL);
    requests.filter(|r| !others(r)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_core::timeline::Bin;
    use rbench_core::{Nanos, OpKind};

    fn seen() -> Seen {
        let pages = Pages {
            files: 2,
            of: 9,
            pages: 100,
            cached: 40,
        };
        Seen {
            lanes: vec![
                LaneLook {
                    operations: 7,
                    bytes: 4096,
                    before: pages,
                    after: Pages::default(),
                    round: Some(Round {
                        after: Nanos(5),
                        once: 3,
                        done: 7,
                    }),
                },
                LaneLook::default(),
            ],
            fetched: Some(11),
            requests: Some(Requests {
                source: "a counter".to_owned(),
                by_kind: [("lookup".to_owned(), 4), ("read".to_owned(), 2)].into(),
            }),
        }
    }

    #[test]
    fn ranks_are_added_up_and_requests_are_those_of_each_cache() {
        let mut all = Seen {
            requests: None,
            ..seen()
        };
        all.add(seen());
        let lane = all.lanes[0];
        assert_eq!((lane.operations, lane.before.cached), (14, 80));
        let round = lane.round.expect("both came round");
        assert_eq!((round.after, round.once, round.done), (Nanos(5), 6, 14));
        assert_eq!(all.fetched, Some(22));
        assert_eq!(all.requests, seen().requests);
        all.add(Seen {
            lanes: Vec::new(),
            ..seen()
        });
        let requests = all.requests.clone().expect("of two caches");
        assert_eq!(requests.by_kind["lookup"], 8);
        all.add(Seen {
            fetched: None,
            ..Seen::default()
        });
        assert_eq!(all.fetched, None, "nobody knows the sum");
    }

    #[test]
    fn requests_that_other_calls_may_have_sent_say_nothing() {
        let counted = |kind: &str| Requests {
            source: "a counter".to_owned(),
            by_kind: [(kind.to_owned(), 7)].into(),
        };
        let told = |ramps, opens, kind| {
            let looking = Looking {
                ramps,
                opens,
                ..Looking::default()
            };
            of_operations(&looking, Some(&counted(kind))).is_some()
        };
        assert!(told(false, false, "getattr") && told(false, false, TOTAL));
        assert!(told(false, true, "getattr"));
        assert!(!told(false, true, TOTAL), "opening is in it");
        assert!(!told(true, false, "getattr"));
    }

    #[test]
    fn a_worker_comes_round_when_it_has_done_one_pass() {
        let mut lane = OpStats::new(OpKind::Read, false);
        for at in 1..=10_u64 {
            lane.items += 1;
            let bin = Bin {
                items: 1,
                ..Bin::default()
            };
            lane.timeline.record(Nanos(at << 20), bin);
        }
        let of = |once| round([&lane].into_iter(), once);
        let found = of(Some(4)).expect("it did ten");
        assert_eq!((found.once, found.done), (4, 10));
        assert!(found.after.0.abs_diff(4 << 20) <= 1 << 16, "{found:?}");
        assert_eq!(of(Some(10)), None, "once is not again");
        assert_eq!(of(None), None);
    }
}
