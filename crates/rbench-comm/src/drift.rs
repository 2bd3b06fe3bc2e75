//! Estimates the clock offsets of a group between comparisons and after them.
//!
//! Two clocks drift apart by the difference of their rates: 20 ppm is 72 ms an hour. Two
//! comparisons give that difference, and so the offset in between and for a while afterwards;
//! [`ClockOffset::error_ns`] bounds the error. This module also decides when to compare again;
//! `offsets` performs the comparisons.

use rbench_core::{Nanos, Rank};

use crate::{ClockOffset, Comparison, Topology};

/// Maximum drift between two unknown clocks, as a fraction: each crystal is within 100 ppm of its
/// nominal rate.
const UNKNOWN: f64 = 200e-6;

/// Maximum change of a rate difference, as a fraction, due to temperature and to daemons that
/// adjust the clocks. Raised if a larger change was observed.
const WANDER: f64 = 5e-6;

/// Time from the first comparison to the second, which reveals the drift.
const SECOND_AFTER: Nanos = Nanos(10_000_000_000);

/// Time between later comparisons.
const AGAIN_AFTER: Nanos = Nanos(60_000_000_000);

/// Comparisons take at most this part of a run: with thousands of hosts they are rarer.
const SHARE: u64 = 20;

/// Preferred minimum time between two comparisons that give a rate.
const BASELINE: Nanos = Nanos(30_000_000_000);

/// Rate of a clock relative to rank 0's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Deviation in ppm; negative: slower.
    pub ppm: f64,
    /// Error bound of the mean rate between the first and the last comparison, in ppm.
    pub error_ppm: f64,
}

/// The comparisons of one clock with rank 0's, in order; empty for rank 0's own clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Track(Vec<Comparison>);

/// Change of an offset over time, as a fraction: ns per ns.
#[derive(Debug, Clone, Copy)]
struct Slope {
    rate: f64,
    /// Error bound of the mean rate.
    error: f64,
}

impl Slope {
    /// The rate between two comparisons; `None` if no time passed.
    fn between(a: &Comparison, b: &Comparison) -> Option<Slope> {
        let passed = b.at.since(a.at).0 as f64;
        let moved = b.offset.offset_ns.wrapping_sub(a.offset.offset_ns) as f64;
        let errors = a.offset.error_ns.saturating_add(b.offset.error_ns) as f64;
        (passed > 0.0).then(|| Slope {
            rate: moved / passed,
            error: errors / passed,
        })
    }
}

/// Signed difference of two instants: `to` − `from`, ns.
fn signed(from: Nanos, to: Nanos) -> f64 {
    to.0.wrapping_sub(from.0) as i64 as f64
}

impl Track {
    /// The offset at the instant `at` of rank 0's clock.
    fn at(&self, at: Nanos) -> ClockOffset {
        let later = self.0.partition_point(|comparison| comparison.at <= at);
        match (later.checked_sub(1).map(|i| &self.0[i]), self.0.get(later)) {
            (None, None) => ClockOffset::default(),
            (Some(before), Some(after)) => self.within(before, after, at),
            (Some(last), None) => self.beyond(last, self.last_slope(), at),
            (None, Some(first)) => self.beyond(first, self.first_slope(), at),
        }
    }

    /// Largest error, ns, of the offset at `at` as computed from the comparisons before `at`.
    fn missed_by(&self, at: Nanos) -> u64 {
        let earlier = self.0.partition_point(|comparison| comparison.at <= at);
        let then = Track(self.0[..earlier].to_vec()).at(at);
        let now = self.at(at);
        let apart = now.offset_ns.abs_diff(then.offset_ns);
        apart.saturating_add(now.error_ns)
    }

    /// Interpolates between two comparisons. The error is that of the nearer one, plus the possible
    /// change of the rate since then.
    fn within(&self, before: &Comparison, after: &Comparison, at: Nanos) -> ClockOffset {
        let Some(slope) = Slope::between(before, after) else {
            return before.offset;
        };
        let (since, until) = (signed(before.at, at), signed(at, after.at));
        let share = since / (since + until);
        let errors =
            before.offset.error_ns as f64 * (1.0 - share) + after.offset.error_ns as f64 * share;
        moved(
            before,
            slope.rate * since,
            errors + self.wander() * since.min(until),
        )
    }

    /// Extrapolates beyond all comparisons, at the rate of the nearest two or at rate 0, whichever
    /// has the smaller error.
    fn beyond(&self, nearest: &Comparison, slope: Option<Slope>, at: Nanos) -> ClockOffset {
        let away = signed(nearest.at, at);
        let known = slope.map(|slope| (slope.rate, slope.error + self.wander()));
        let (rate, widens) = known
            .filter(|(_, widens)| *widens < UNKNOWN)
            .unwrap_or((0.0, UNKNOWN));
        let error = nearest.offset.error_ns as f64 + widens * away.abs();
        moved(nearest, rate * away, error)
    }

    /// The latest rate.
    fn last_slope(&self) -> Option<Slope> {
        let (last, earlier) = self.0.split_last()?;
        let long_ago = |c: &&Comparison| last.at.since(c.at) >= BASELINE;
        let from = earlier.iter().rev().find(long_ago).or(earlier.first())?;
        Slope::between(from, last)
    }

    /// The first rate.
    fn first_slope(&self) -> Option<Slope> {
        let (first, later) = self.0.split_first()?;
        let long_after = |c: &&Comparison| c.at.since(first.at) >= BASELINE;
        let to = later.iter().find(long_after).or(later.last())?;
        Slope::between(first, to)
    }

    /// Possible unobserved change of the rate: at least [`WANDER`], and at least the largest
    /// observed change.
    fn wander(&self) -> f64 {
        let slopes = self
            .0
            .windows(2)
            .map(|two| Slope::between(&two[0], &two[1]));
        let slopes: Vec<Slope> = slopes.flatten().collect();
        let changes = slopes
            .windows(2)
            .map(|two| (two[1].rate - two[0].rate).abs() - two[0].error - two[1].error);
        changes.fold(WANDER, f64::max)
    }

    fn drift(&self) -> Option<Drift> {
        let slope = Slope::between(self.0.first()?, self.0.last()?)?;
        // The offset is rank 0's clock minus this one.
        Some(Drift {
            ppm: -slope.rate * 1e6,
            error_ppm: slope.error * 1e6,
        })
    }
}

/// The offset of `from` shifted by `by_ns`, with this error.
fn moved(from: &Comparison, by_ns: f64, error_ns: f64) -> ClockOffset {
    ClockOffset {
        offset_ns: from.offset.offset_ns.saturating_add(by_ns.round() as i64),
        error_ns: error_ns.ceil() as u64,
    }
}

/// The clocks of a group and their comparisons; identical on every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clocks {
    /// The rank that represents each clock: the lowest rank that reads it.
    leaders: Vec<Rank>,
    /// The clock number of each rank.
    clock_of: Vec<u32>,
    tracks: Vec<Track>,
    /// Duration of the last comparison.
    took: Nanos,
}

impl Clocks {
    /// One clock for all of `ranks` ranks.
    pub fn one(ranks: u32) -> Clocks {
        Clocks::new(vec![0; ranks as usize])
    }

    /// The clocks of a group, not yet compared.
    pub fn of(topology: &Topology) -> Clocks {
        Clocks::new(topology.clock_of.clone())
    }

    fn new(clock_of: Vec<u32>) -> Clocks {
        let mut leaders = Vec::new();
        for (rank, clock) in (0..).map(Rank).zip(&clock_of) {
            if *clock as usize == leaders.len() {
                leaders.push(rank);
            }
        }
        Clocks {
            tracks: vec![Track::default(); leaders.len()],
            leaders,
            clock_of,
            took: Nanos(0),
        }
    }

    /// The ranks whose clocks are compared with rank 0's.
    pub fn others(&self) -> &[Rank] {
        self.leaders.get(1..).unwrap_or_default()
    }

    /// Records comparisons of [`Clocks::others`] and their duration.
    pub fn learn(&mut self, found: &[Comparison], took: Nanos) {
        for (track, comparison) in self.tracks.iter_mut().skip(1).zip(found) {
            track.0.push(*comparison);
        }
        self.took = took;
    }

    /// Returns true if the clocks should be compared between two phases, at the instant `now` of
    /// rank 0's clock. Rank 0 decides.
    pub fn is_due(&self, now: Nanos) -> bool {
        let pause = match self.tracks.get(1).map_or(0, |track| track.0.len()) {
            0 | 1 => SECOND_AFTER,
            _ => AGAIN_AFTER,
        };
        self.pays_after(pause, now)
    }

    /// Returns true if a comparison at the end of a run is cheap compared with the time since the
    /// last one. `now` is an instant of rank 0's clock.
    pub fn pays(&self, now: Nanos) -> bool {
        self.pays_after(Nanos(0), now)
    }

    fn pays_after(&self, pause: Nanos, now: Nanos) -> bool {
        let Some(Track(known)) = self.tracks.get(1) else {
            return false;
        };
        let pause = pause.0.max(self.took.0.saturating_mul(SHARE));
        known
            .last()
            .is_none_or(|last| now.since(last.at).0 >= pause)
    }

    /// The offset of a rank's clock at the instant `at` of rank 0's clock, interpolated or
    /// extrapolated.
    pub fn offset(&self, rank: Rank, at: Nanos) -> ClockOffset {
        self.tracks[self.clock_of[rank.0 as usize] as usize].at(at)
    }

    /// The offset of a rank's clock at its first comparison.
    pub fn first_offset(&self, rank: Rank) -> ClockOffset {
        let Track(known) = &self.tracks[self.clock_of[rank.0 as usize] as usize];
        known
            .first()
            .map_or_else(ClockOffset::default, |c| c.offset)
    }

    /// Largest error of an instant `at` of rank 0's clock on any clock of the group; 0 with one
    /// clock.
    pub fn error(&self, at: Nanos) -> Nanos {
        let errors = self.tracks.iter().map(|track| track.at(at).error_ns);
        Nanos(errors.max().unwrap_or(0))
    }

    /// Largest error of a past instant `at` on ranks that used the offsets known at that time.
    pub fn missed_by(&self, at: Nanos) -> Nanos {
        let errors = self.tracks.iter().map(|track| track.missed_by(at));
        Nanos(errors.max().unwrap_or(0))
    }

    /// Drift of a rank's clock relative to rank 0's; `None` for rank 0's own clock and before the
    /// second comparison.
    pub fn drift(&self, rank: Rank) -> Option<Drift> {
        self.tracks[self.clock_of[rank.0 as usize] as usize].drift()
    }
}

#[cfg(test)]
mod tests;
