//! The latencies of each slice of the timeline, added up over all ranks.
//!
//! A rank has few operations in a slice, so it sends its leader only the buckets that hold any. Most
//! buckets of a host hold some, so the leaders add up dense counts, cut to the buckets that any rank
//! used. A step takes a few slices, however many there are: a leader holds the messages of its host
//! and at most [`WORDS`] numbers.

use std::ops::Range;

use rbench_comm::Combine;
use rbench_core::coarse::{COARSE_BUCKETS, CoarseLatency, put, take};
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
/// width and the same number of `bins`. At rank 0 the first value of each is in `total`
/// afterwards.
pub async fn reduce(
    group: &Group<'_>,
    own: &Timeline,
    buckets: &Buckets,
    bins: usize,
    total: Option<&mut Timeline>,
) -> Result<(), ExecError> {
    let each = 2 + buckets.service.len() + buckets.response.len();
    let at_a_time = (WORDS / each).max(1);
    let slices = bins.div_ceil(SLICE_BINS);
    let mut found = Vec::with_capacity(if total.is_some() { slices } else { 0 });
    for first in (0..slices).step_by(at_a_time) {
        let step = first..(first + at_a_time).min(slices);
        let count = step.len();
        let of_host = group.host.gather(Rank(0), message(own, step));
        let Some(of_host) = group.quietly(of_host).await? else {
            continue;
        };
        let (sums, maxima) = words(&of_host, buckets, count).ok_or_else(garbled)?;
        let sums = group.leaders.reduce(Rank(0), Combine::Sum, sums);
        let sums = group.quietly(sums).await?;
        let maxima = group.leaders.reduce(Rank(0), Combine::Max, maxima);
        if let Some((sums, maxima)) = sums.zip(group.quietly(maxima).await?) {
            unpack(buckets, count, &sums, &maxima, &mut found);
        }
    }
    match total {
        Some(total) if found.len() == slices => total.set_latencies(found),
        Some(_) => return Err(garbled()),
        None => {}
    }
    Ok(())
}

/// The message of a rank. For each latency of these slices: the sum and the maximum in ns and the
/// length of the packed buckets, in LEB128, then these buckets.
fn message(line: &Timeline, slices: Range<usize>) -> Vec<u8> {
    let none = Latencies::default();
    let mut message = Vec::new();
    for slice in slices {
        let Latencies { service, response } = line.latencies(slice).unwrap_or(&none);
        for latency in [service, response] {
            let packed = latency.packed();
            put(&mut message, latency.sum());
            put(&mut message, latency.max().0);
            put(&mut message, packed.len() as u64);
            message.extend_from_slice(packed);
        }
    }
    message
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
                *sum = sum.saturating_add(take(&mut rank)?);
                let max = maxima.next()?;
                *max = take(&mut rank)?.max(*max);
                let length = usize::try_from(take(&mut rank)?).ok()?;
                let mut packed = rank.split_off(..length)?;
                let mut bucket = 0_u64;
                while !packed.is_empty() {
                    bucket = bucket.checked_add(take(&mut packed)?)?;
                    let place = bucket.checked_sub(buckets.start as u64)?;
                    let count = counts.get_mut(place as usize)?;
                    *count = count.checked_add(take(&mut packed)?)?;
                }
            }
        }
        if !rank.is_empty() {
            return None;
        }
    }
    Some((sums, maxima))
}

fn unpack(
    buckets: &Buckets,
    count: usize,
    sums: &[u64],
    maxima: &[u64],
    found: &mut Vec<Latencies>,
) {
    let (mut sums, mut maxima) = (Words(sums), Words(maxima));
    let mut latency = |buckets: &Range<usize>| {
        let [sum] = sums.array();
        let counts = sums.take(buckets.len());
        let [max] = maxima.array();
        CoarseLatency::from_dense(buckets.start, counts, sum, Nanos(max))
    };
    for _ in 0..count {
        found.push(Latencies {
            service: latency(&buckets.service),
            response: latency(&buckets.response),
        });
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

    fn read(messages: &[Vec<u8>], buckets: &Buckets, slices: usize) -> Option<Vec<Latencies>> {
        let (sums, maxima) = words(messages, buckets, slices)?;
        let mut found = Vec::new();
        unpack(buckets, slices, &sums, &maxima, &mut found);
        Some(found)
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
        let twice = (0..slices).map(|slice| {
            let mut sum = line.latencies(slice).cloned().unwrap_or_default();
            sum.merge(&sum.clone());
            sum
        });
        let message = message(&line, 0..slices);
        let found = read(&[message.clone(), message.clone()], &all, slices);
        assert_eq!(found, Some(twice.collect()));
        let refused = |message: &[u8], buckets: &Buckets| {
            assert_eq!(read(&[message.to_vec()], buckets, slices), None);
        };
        (0..message.len()).for_each(|cut| refused(&message[..cut], &all));
        refused(&[&message[..], &[0]].concat(), &all);
        refused(&message, &buckets(1));
        refused(&[0xff; 32], &all);
    }
}
