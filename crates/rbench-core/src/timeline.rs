//! Timeline of a phase: counts in bins of equal width from the common start, and latencies
//! in slices of four bins.
//!
//! The unit is the run's interval (`--interval`). Bins start as the interval halved until
//! they are 61 to 122 us wide. They double their width when the last one is full, so
//! memory is fixed: 512 to 1024 bins, and 128 to 256 slices, describe any run that is long
//! enough to fill them. Bins that are not wider than an interval never cross its end. So
//! the part of an interval that a worker hands over is exact.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::coarse::{self, CoarseLatency, CoarseRecorder, PACKED_EMPTY};
use crate::units::Nanos;

/// Most bins that a timeline holds.
pub const BINS: usize = 1024;
/// Bins in each slice.
pub const SLICE_BINS: usize = 4;
/// The interval unless one is specified.
pub const INTERVAL: Nanos = Nanos(1_000_000_000);
/// The least width of bins, in ns.
const NARROWEST: u64 = 61_000;

/// The counts of one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Operations that ended without error in the bin.
    pub items: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// End of the first operation in it, including failed ones, after the common start;
    /// the largest number without operations.
    pub first: Nanos,
    /// End of the last one; zero without operations.
    pub last: Nanos,
}

impl Default for Bin {
    fn default() -> Bin {
        Bin {
            items: 0,
            bytes: 0,
            errors: 0,
            first: Nanos(u64::MAX),
            last: Nanos(0),
        }
    }
}

impl Bin {
    /// Operations that ended in it, including failed ones.
    pub fn operations(&self) -> u64 {
        self.items + self.errors
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: Bin) {
        merge!(self, &other => Bin { add: items bytes errors; least: first; most: last; });
    }

    fn sum(bins: &[Bin]) -> Bin {
        let mut sum = Bin::default();
        bins.iter().for_each(|bin| sum.merge(*bin));
        sum
    }
}

/// The latencies of the operations that ended without error in a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// From the actual start to the end.
    pub service: CoarseLatency,
    /// From the intended start to the end; empty outside an open loop.
    pub response: CoarseLatency,
}

impl Latencies {
    /// Adds those of another.
    pub fn merge(&mut self, other: &Latencies) {
        merge!(self, other => Latencies { merge: service response; });
    }
}

/// The latencies of slices in one buffer, up to the last slice with any. Each slice is its packed
/// service times and response times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Slices {
    bytes: Vec<u8>,
    /// End of each slice in the buffer.
    ends: Vec<usize>,
}

impl Slices {
    fn start(&self, slice: usize) -> usize {
        slice.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn packed(&self, slice: usize) -> &[u8] {
        match self.ends.get(slice) {
            Some(end) => &self.bytes[self.start(slice)..*end],
            None => &[0; 2 * PACKED_EMPTY],
        }
    }

    fn get(&self, slice: usize) -> Latencies {
        let mut packed = self.packed(slice);
        Latencies {
            service: CoarseLatency::take_packed(&mut packed),
            response: CoarseLatency::take_packed(&mut packed),
        }
    }

    fn push_sum(&mut self, mut one: &[u8], mut other: &[u8]) {
        coarse::pack_sum(&mut one, &mut other, &mut self.bytes);
        coarse::pack_sum(&mut one, &mut other, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn add(&mut self, slice: usize, latencies: &Latencies) {
        if *latencies == Latencies::default() {
            return;
        }
        while self.ends.len() <= slice {
            self.push_sum(&[], &[]);
        }
        let before = self.ends[slice];
        let tail = self.bytes.split_off(before);
        let held = self.bytes.split_off(self.start(slice));
        let mut held = held.as_slice();
        for latency in [&latencies.service, &latencies.response] {
            coarse::pack_sum(&mut held, &mut latency.packed(), &mut self.bytes);
        }
        let after = self.bytes.len();
        self.bytes.extend(tail);
        for end in &mut self.ends[slice..] {
            *end = *end - before + after;
        }
    }
}

/// A stretch in which nothing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Gap {
    /// Its length.
    pub length: Nanos,
    /// Its start, after the common start.
    pub from: Nanos,
}

impl Gap {
    /// Its end, after the common start.
    pub fn end(&self) -> Nanos {
        Nanos(self.from.0.saturating_add(self.length.0))
    }
}

/// The longest gap; of several, the first.
fn longest(gaps: impl Iterator<Item = Gap>) -> Option<Gap> {
    gaps.reduce(|longest, gap| match gap.length > longest.length {
        true => gap,
        false => longest,
    })
}

/// Bins and slices from the common start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    scale: Scale,
    bins: Vec<Bin>,
    slices: Slices,
}

/// Width of bins: the interval times 2^`power`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scale {
    interval: Nanos,
    power: i32,
}

impl Scale {
    fn of(interval: Nanos) -> Scale {
        let interval = Nanos(interval.0.max(1));
        let halved = (interval.0 / NARROWEST).checked_ilog2().unwrap_or(0);
        Scale {
            interval,
            power: -(halved as i32),
        }
    }

    /// The bin of an instant.
    fn index(self, at: Nanos) -> usize {
        let (at, interval) = (u128::from(at.0), u128::from(self.interval.0));
        let index = match u32::try_from(self.power) {
            Ok(doubled) => at / (interval << doubled),
            Err(_) => (at << self.power.unsigned_abs()) / interval,
        };
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    /// The first instant of a bin.
    fn start(self, index: usize) -> Nanos {
        let all = u128::from(self.interval.0) * index as u128;
        let start = match u32::try_from(self.power) {
            Ok(doubled) => all << doubled,
            Err(_) => all.div_ceil(1 << self.power.unsigned_abs()),
        };
        Nanos(u64::try_from(start).unwrap_or(u64::MAX))
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline::new(INTERVAL)
    }
}

impl Timeline {
    /// Creates an empty timeline for intervals of that length.
    pub fn new(interval: Nanos) -> Timeline {
        Timeline {
            scale: Scale::of(interval),
            bins: Vec::new(),
            slices: Slices::default(),
        }
    }

    /// Adds operations that ended at `at` after the common start.
    pub fn record(&mut self, at: Nanos, bin: Bin) {
        let index = self.reach(at);
        self.bins[index].merge(bin);
    }

    /// Adds the latencies of operations that ended around `at`.
    pub fn record_latencies(&mut self, at: Nanos, latencies: &Latencies) {
        let slice = self.reach(at) / SLICE_BINS;
        self.slices.add(slice, latencies);
    }

    /// The bin of `at`, which is created if necessary.
    fn reach(&mut self, at: Nanos) -> usize {
        while self.scale.index(at) >= BINS {
            self.double();
        }
        let index = self.scale.index(at);
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        index
    }

    fn double(&mut self) {
        self.scale.power += 1;
        self.bins = self.bins.chunks(2).map(Bin::sum).collect();
        let slices = std::mem::take(&mut self.slices);
        self.slices.bytes.reserve(slices.bytes.len());
        for first in (0..slices.ends.len()).step_by(2) {
            let next = slices.packed(first + 1);
            self.slices.push_sum(slices.packed(first), next);
        }
    }

    /// The bin of an instant after the common start, in timelines of that interval and
    /// [`Timeline::power`].
    pub fn bin_of(interval: Nanos, power: i32, at: Nanos) -> usize {
        Scale { interval, power }.index(at)
    }

    /// The number of times that the interval was doubled, or if negative halved, for the
    /// width of a bin.
    pub fn power(&self) -> i32 {
        self.scale.power
    }

    /// Makes the bins at least as wide as that [`Timeline::power`] says.
    pub fn widen(&mut self, power: i32) {
        while self.scale.power < power {
            self.double();
        }
    }

    /// Frees unused room.
    pub fn shrink(&mut self) {
        self.bins.shrink_to_fit();
        self.slices.bytes.shrink_to_fit();
        self.slices.ends.shrink_to_fit();
    }

    /// Adds everything in `other`, which has the same interval.
    pub fn merge(&mut self, other: &Timeline) {
        debug_assert_eq!(self.scale.interval, other.scale.interval);
        self.widen(other.scale.power);
        let mut other = other.clone();
        other.widen(self.scale.power);
        let Timeline {
            scale: _,
            bins,
            slices,
        } = other;
        if self.bins.len() < bins.len() {
            self.bins.resize(bins.len(), Bin::default());
        }
        let both = self.bins.iter_mut().zip(bins);
        both.for_each(|(mine, theirs)| mine.merge(theirs));
        let mine = std::mem::take(&mut self.slices);
        for slice in 0..mine.ends.len().max(slices.ends.len()) {
            self.slices
                .push_sum(mine.packed(slice), slices.packed(slice));
        }
    }

    /// The interval, whose fractions or multiples the bins are.
    pub fn interval(&self) -> Nanos {
        self.scale.interval
    }

    /// The width of each bin in ns, rounded down.
    pub fn width(&self) -> Nanos {
        Nanos((self.slice_width_s() * 1e9 / SLICE_BINS as f64) as u64)
    }

    /// The width of each slice in s.
    pub fn slice_width_s(&self) -> f64 {
        let bins = 2_f64.powi(self.scale.power) * SLICE_BINS as f64;
        self.scale.interval.as_secs_f64() * bins
    }

    /// The bins from the common start on, without empty ones at the end.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Start, bin and latencies of each slice, from the common start on.
    pub fn slices(&self) -> impl Iterator<Item = (Nanos, Bin, Latencies)> {
        self.bins.chunks(SLICE_BINS).enumerate().map(|(i, bins)| {
            let start = self.scale.start(i * SLICE_BINS);
            (start, Bin::sum(bins), self.slices.get(i))
        })
    }

    /// The packed service times and response times of these slices ([`coarse::visit_packed`]), one
    /// slice after the other; slices after the last have none.
    pub fn packed_latencies(&self, slices: Range<usize>) -> Vec<u8> {
        let packed: Vec<&[u8]> = slices.map(|slice| self.slices.packed(slice)).collect();
        packed.concat()
    }

    /// The first instant of a bin.
    pub fn start(&self, bin: usize) -> Nanos {
        self.scale.start(bin)
    }

    /// The time at which `n` operations, including failed ones, had ended. The operations
    /// of a bin are assumed to be evenly spread. `None` if there are fewer.
    pub fn when(&self, n: u64) -> Option<Nanos> {
        let mut before = 0_u64;
        for (i, bin) in self.bins.iter().enumerate() {
            let here = bin.operations();
            if n <= before + here && here > 0 {
                let start = self.scale.start(i);
                let width = u128::from(self.scale.start(i + 1).since(start).0);
                let within = width * u128::from(n - before) / u128::from(here);
                return Some(Nanos(start.0 + within as u64));
            }
            before += here;
        }
        None
    }

    /// Builds a timeline from the results of a reduction: bins of that
    /// [`Timeline::power`], at most [`BINS`], without latencies. `None` if they do not
    /// fit.
    pub fn from_bins(interval: Nanos, power: i32, bins: Vec<Bin>) -> Option<Timeline> {
        let narrowest = Scale::of(interval);
        let fits = bins.len() <= BINS && power >= narrowest.power;
        fits.then(|| Timeline {
            scale: Scale { power, ..narrowest },
            slices: Slices::default(),
            bins,
        })
    }

    /// Adds latencies to a slice.
    pub fn add_latencies(&mut self, slice: usize, latencies: &Latencies) {
        self.slices.add(slice, latencies);
    }

    /// Items done up to `at` after the common start, in a phase whose last operation ended
    /// at `end`. The operations of a bin are assumed to be evenly spread; those of the
    /// last one up to `end`.
    pub fn done_by(&self, at: Nanos, end: Nanos) -> u64 {
        let mut items = 0;
        for (i, bin) in self.bins.iter().enumerate() {
            let start = self.scale.start(i);
            let width = self.scale.start(i + 1).since(start);
            let span = width.min(end.since(start)).0.max(1);
            let covered = at.since(start).0.min(span);
            items += (u128::from(bin.items) * u128::from(covered) / u128::from(span)) as u64;
        }
        items
    }

    /// The longest period from `from` on without a finished operation, up to the last
    /// operation. Failed operations count as finished. It is exact if it is longer than
    /// two bins. The first of several; `None` without operations.
    pub fn longest_gap(&self, from: Nanos) -> Option<Gap> {
        longest(self.gaps(from))
    }

    /// The longest such period that overlaps the time from `after` to `until`.
    pub fn longest_gap_between(&self, from: Nanos, after: Nanos, until: Nanos) -> Option<Gap> {
        let touches = |gap: &Gap| gap.end() > after && gap.from < until;
        longest(self.gaps(from).filter(touches))
    }

    /// The periods without a finished operation between bins that are not empty.
    fn gaps(&self, from: Nanos) -> impl Iterator<Item = Gap> {
        let bins = self.bins.iter().filter(|bin| bin.operations() > 0);
        bins.scan(from, |since, bin| {
            let gap = Gap {
                length: bin.first.since(*since),
                from: *since,
            };
            *since = (*since).max(bin.last);
            Some(gap)
        })
    }

    /// Slices joined to intervals, from the common start on: start, bin and latencies of
    /// each. Slices that are longer than an interval stay as they are.
    pub fn intervals(&self) -> Vec<(Nanos, Bin, Latencies)> {
        let halved = -(self.scale.power + SLICE_BINS.ilog2() as i32);
        let together = u32::try_from(halved).map_or(1, |halved| 1 << halved);
        let slices: Vec<(Nanos, Bin, Latencies)> = self.slices().collect();
        let join = |slices: &[(Nanos, Bin, Latencies)]| {
            let (mut bin, mut latencies) = (Bin::default(), Latencies::default());
            for (_, part, parts) in slices {
                bin.merge(*part);
                latencies.merge(parts);
            }
            (slices[0].0, bin, latencies)
        };
        slices.chunks(together).map(join).collect()
    }

    /// The length of each of [`Timeline::intervals`], s.
    pub fn interval_width_s(&self) -> f64 {
        self.slice_width_s().max(self.scale.interval.as_secs_f64())
    }
}

/// A worker's operations in an interval, or a part of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IntervalPart {
    /// The interval, from 0 at the common start.
    pub number: u64,
    /// Counts of the operations that ended in it.
    pub bin: Bin,
    /// Their latencies.
    pub latencies: Latencies,
}

/// Receiver of a worker's finished intervals.
pub type HandOver = Box<dyn FnMut(IntervalPart) + Send>;

/// Recorder of a worker's timeline. Recording touches only data of the current bin.
pub struct TimelineRecorder {
    line: Timeline,
    /// The current bin, or its part in the current interval.
    from: Nanos,
    /// Its width; zero before the first operation.
    width: u64,
    now: Bin,
    /// Service times of the current slice, or of its part in the current interval.
    service: CoarseRecorder,
    response: Option<CoarseRecorder>,
    /// The current interval, without `now` and the latencies that are still being
    /// recorded.
    part: IntervalPart,
    hand_over: Option<HandOver>,
}

impl std::fmt::Debug for TimelineRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimelineRecorder")
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

impl TimelineRecorder {
    /// Creates an empty recorder for intervals of that length, with response times in an
    /// open loop.
    pub fn new(interval: Nanos, open_loop: bool) -> TimelineRecorder {
        let mut line = Timeline::new(interval);
        line.bins.reserve(BINS);
        TimelineRecorder {
            line,
            from: Nanos(0),
            width: 0,
            now: Bin::default(),
            service: CoarseRecorder::default(),
            response: open_loop.then(CoarseRecorder::default),
            part: IntervalPart::default(),
            hand_over: None,
        }
    }

    /// Hands over each finished interval to `hand_over` from now on, at the first
    /// operation that ends after it. An operation that ends earlier than its predecessor
    /// creates another part of its interval; parts must be added up.
    pub fn hand_over_to(&mut self, hand_over: HandOver) {
        self.hand_over = Some(hand_over);
    }

    /// Adds an operation without error. It ended at `at` after the common start, moved
    /// `bytes`, and took `service`, and `response` from its intended start. Allocates only
    /// at the end of a slice. Returns true if it ended in another interval than its
    /// predecessor.
    #[inline(always)]
    pub fn done(&mut self, at: Nanos, bytes: u64, service: Nanos, response: Option<Nanos>) -> bool {
        let entered = self.go_to(at);
        self.now.items += 1;
        self.now.bytes += bytes;
        self.service.record(service);
        if let (Some(recorder), Some(response)) = (&mut self.response, response) {
            recorder.record(response);
        }
        entered
    }

    /// Adds an operation that failed at `at` after the common start. Returns true if it
    /// ended in another interval than its predecessor.
    pub fn failed(&mut self, at: Nanos) -> bool {
        let entered = self.go_to(at);
        self.now.errors += 1;
        entered
    }

    /// The interval of the last operation, or the one set by the last
    /// [`TimelineRecorder::pass`].
    pub fn interval(&self) -> u64 {
        self.part.number
    }

    /// Hands over the intervals before `interval`, as no more operations are expected in
    /// them. An operation that still ends in one creates another part of it.
    pub fn pass(&mut self, interval: u64) {
        if interval <= self.part.number {
            return;
        }
        self.close_bin();
        self.put_interval();
        self.part.number = interval;
    }

    /// Ends the current bin and slice; the next operation starts new ones.
    fn close_bin(&mut self) {
        if self.width > 0 {
            self.line.record(self.from, self.now);
            self.part.bin.merge(std::mem::take(&mut self.now));
            self.put_latencies();
            self.width = 0;
        }
    }

    #[inline(always)]
    fn go_to(&mut self, at: Nanos) -> bool {
        let mut entered = false;
        if at.0.wrapping_sub(self.from.0) >= self.width {
            entered = self.leave(at);
        }
        self.now.first = self.now.first.min(at);
        self.now.last = self.now.last.max(at);
        entered
    }

    /// Leaves the current bin for that of `at`. Returns true if that is in another
    /// interval.
    #[cold]
    fn leave(&mut self, at: Nanos) -> bool {
        let scale = self.line.scale;
        let interval = at.0 / scale.interval.0;
        let slice = |at: Nanos| scale.index(at) / SLICE_BINS;
        let other_interval = interval != self.part.number;
        if self.width > 0 {
            self.line.record(self.from, self.now);
            self.part.bin.merge(std::mem::take(&mut self.now));
            if other_interval || slice(at) != slice(self.from) {
                self.put_latencies();
            }
        }
        if other_interval {
            self.put_interval();
            self.part.number = interval;
        }
        let index = self.line.reach(at);
        // Closing the slice may have widened the bins.
        let scale = self.line.scale;
        let starts = interval * scale.interval.0;
        let from = scale.start(index).0.max(starts);
        let to = scale.start(index + 1).0.min(starts + scale.interval.0);
        (self.from, self.width) = (Nanos(from), to - from);
        other_interval
    }

    /// Records the latencies of the current slice up to now.
    fn put_latencies(&mut self) {
        let latencies = Latencies {
            service: self.service.take(),
            response: self
                .response
                .as_mut()
                .map(CoarseRecorder::take)
                .unwrap_or_default(),
        };
        self.line.record_latencies(self.from, &latencies);
        if self.hand_over.is_some() {
            self.part.latencies.merge(&latencies);
        }
    }

    /// Hands over the current interval.
    fn put_interval(&mut self) {
        let part = std::mem::take(&mut self.part);
        if let Some(hand_over) = &mut self.hand_over
            && part.bin.operations() > 0
        {
            hand_over(part);
        }
    }

    /// Hands over the rest of the last interval, and returns the timeline of everything
    /// recorded.
    pub fn finish(mut self) -> Timeline {
        self.close_bin();
        self.put_interval();
        self.line.shrink();
        self.line
    }
}

#[cfg(test)]
mod tests;
