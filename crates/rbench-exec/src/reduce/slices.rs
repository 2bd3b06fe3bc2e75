//! The latencies of each slice of the timeline, added up over all ranks.
//!
//! A rank has few operations in a slice, so it sends its leader only the buckets that hold any. Most
//! buckets of a host hold some, so the leaders add up dense counts, cut to the buckets that any rank
//! used. A step takes a few slices, however many there are: a leader holds the messages of its host
//! and at most [`WORDS`] numbers.

use std::ops::Range;

use rbench_comm::Combine;
use rbench_core::coarse::{self, COARSE_BUCKETS, CoarseLatency};
use rbench_core::timeline::{Latencies, SLICE_BINS, Timeline};
use rbench_core::{Nanos, Rank};

use super::{Words, garbled};
use crate::group::{ExecError, Group};

/// Most numbers of one step: 512 KiB.
const WORDS: usize = 1 << 16;

/// The buckets of the slices in use.
pub struct Buckets {
    pub service: Range<usize>,
    pub response: Range<usize>,
}

/// Coarse buckets that hold what those of the recorder do.
pub fn coarse(first: usize, count: usize) -> Range<usize> {
    let each = rbench_core::latency::BUCKETS / COARSE_BUCKETS;
    match count {
        0 => 0..0,
        // A value above the range is in the last bucket.
        _ => {
            first.min(rbench_core::latency::BUCKETS - 1) / each
                ..((first + count - 1) / each + 1).min(COARSE_BUCKETS)
        }
    }
}

/// Adds up the latencies of all slices; all ranks call this with timelines of the same
/// width and the same number of `bins`. At rank 0 they are added to `total`.
pub async fn reduce(
    group: &Group<'_>,
    own: &Timeline,
    buckets: &Buckets,
    bins: usize,
    mut total: Option<&mut Timeline>,
) -> Result<(), ExecError> {
    let each = 2 + buckets.service.len() + buckets.response.len();
    let at_a_time = (WORDS / each).max(1);
    let slices = bins.div_ceil(SLICE_BINS);
    for first in (0..slices).step_by(at_a_time) {
        let step = first..(first + at_a_time).min(slices);
        let of_host = group
            .host
            .gather(Rank(0), own.packed_latencies(step.clone()));
        let Some(of_host) = group.quietly(of_host).await? else {
            continue;
        };
        let (sums, maxima) = words(&of_host, buckets, step.len()).ok_or_else(garbled)?;
        let sums = group.leaders.reduce(Rank(0), Combine::Sum, sums);
        let sums = group.quietly(sums).await?;
        let maxima = group.leaders.reduce(Rank(0), Combine::Max, maxima);
        let all = sums.zip(group.quietly(maxima).await?);
        match (all, &mut total) {
            (Some((sums, maxima)), Some(total)) => add(step, buckets, &sums, &maxima, total),
            (None, None) => {}
            _ => return Err(garbled()),
        }
    }
    Ok(())
}

/// Returns the sums and the maxima of `slices` slices over the ranks of a host; `None` if a message
/// is damaged.
fn words(ranks: &[Vec<u8>], buckets: &Buckets, slices: usize) -> Option<(Vec<u64>, Vec<u64>)> {
    let each = 2 + buckets.service.len() + buckets.response.len();
    let (mut sums, mut maxima) = (vec![0_u64; each * slices], vec![0; 2 * slices]);
    for rank in ranks {
        let mut rank = rank.as_slice();
        let (mut left, mut maxima) = (sums.as_mut_slice(), maxima.iter_mut());
        while !left.is_empty() {
            for buckets in [&buckets.service, &buckets.response] {
                let (sum, rest) = left.split_first_mut()?;
                let (counts, rest) = rest.split_at_mut(buckets.len());
                left = rest;
                let (total, most) = coarse::visit_packed(&mut rank, |bucket, n| {
                    let count = counts.get_mut(bucket.checked_sub(buckets.start)?)?;
                    *count = count.checked_add(n)?;
                    Some(())
                })?;
                *sum = sum.saturating_add(total);
                let max = maxima.next()?;
                *max = most.0.max(*max);
            }
        }
        if !rank.is_empty() {
            return None;
        }
    }
    Some((sums, maxima))
}

/// Adds these latencies of slices to the timeline.
fn add(
    slices: Range<usize>,
    buckets: &Buckets,
    sums: &[u64],
    maxima: &[u64],
    total: &mut Timeline,
) {
    let (mut sums, mut maxima) = (Words(sums), Words(maxima));
    let mut latency = |buckets: &Range<usize>| {
        let [sum] = sums.array();
        let counts = sums.take(buckets.len());
        let [max] = maxima.array();
        CoarseLatency::from_dense(buckets.start, counts, sum, Nanos(max))
    };
    for slice in slices {
        let latencies = Latencies {
            service: latency(&buckets.service),
            response: latency(&buckets.response),
        };
        total.add_latencies(slice, &latencies);
    }
}

#[cfg(test)]
mod tests {
    use rbench_core::timeline::TimelineRecorder;

    use super::*;

    fn line() -> Timeline {
        let mut line = TimelineRecorder::new(Nanos::SECOND, true);
        for number in 0..3000_u64 {
            // Some buckets are far apart, one has more values than a byte holds.
            let response = Nanos([1000, 2500, 7_000_000][number as usize % 3] + number / 2000);
            line.done(Nanos(number * 5000), 0, Nanos(1000), Some(response));
        }
        line.finish()
    }

    fn read(messages: &[Vec<u8>], buckets: &Buckets, line: &Timeline) -> Option<Timeline> {
        let slices = line.bins().len().div_ceil(SLICE_BINS);
        let (sums, maxima) = words(messages, buckets, slices)?;
        let bins = line.bins().to_vec();
        let mut total = Timeline::from_bins(line.interval(), line.power(), bins)?;
        add(0..slices, buckets, &sums, &maxima, &mut total);
        Some(total)
    }

    #[test]
    fn the_latencies_of_slices_are_added_up_or_refused() {
        let line = line();
        let slices = line.bins().len().div_ceil(SLICE_BINS);
        let buckets = |end| Buckets {
            service: 3..COARSE_BUCKETS,
            response: 0..end,
        };
        let all = buckets(COARSE_BUCKETS);
        let message = line.packed_latencies(0..slices);
        assert_eq!(
            read(std::slice::from_ref(&message), &all, &line).as_ref(),
            Some(&line)
        );
        let mut twice = line.clone();
        for (slice, (_, _, latencies)) in line.slices().enumerate() {
            twice.add_latencies(slice, &latencies);
        }
        assert_eq!(
            read(&[message.clone(), message.clone()], &all, &line),
            Some(twice)
        );
        let refused = |message: &[u8], buckets: &Buckets| {
            assert_eq!(read(&[message.to_vec()], buckets, &line), None);
        };
        (0..message.len()).for_each(|cut| refused(&message[..cut], &all));
        refused(&[&message[..], &[0]].concat(), &all);
        refused(&message, &buckets(1));
        refused(&[0xff; 32], &all);
        // In one slice, the largest number of values in the first bucket, and no response times.
        let many = [&[0, 0, 1][..], &[0xff; 9], &[1, 0, 0, 0, 0]].concat();
        let all = Buckets {
            service: 0..1,
            response: 0..0,
        };
        assert!(words(std::slice::from_ref(&many), &all, 1).is_some());
        assert_eq!(words(&[many.clone(), many], &all, 1), None);
    }
}
