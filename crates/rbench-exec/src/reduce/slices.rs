//! The latencies of each slice of the timeline, added up over all ranks.
//!
//! They travel as dense counts, cut to the buckets that any rank used, a few slices at a
//! time: no rank ever holds more than [`WORDS`] numbers for it, however many ranks and
//! slices there are. Each step goes over the ranks of each host and then over the
//! leaders, as the rest of the reduction does.

use std::ops::Range;

use rbench_comm::Combine;
use rbench_core::coarse::{COARSE_BUCKETS, CoarseLatency};
use rbench_core::timeline::{Latencies, SLICE_BINS, Timeline};
use rbench_core::{Nanos, Rank};

use super::{Words, garbled};
use crate::group::{ExecError, Group};

/// Most numbers of one step: 256 KiB.
const WORDS: usize = 1 << 15;

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
        let (sums, maxima) = words(own, buckets, step);
        let sums = up(group, Combine::Sum, sums).await?;
        let maxima = up(group, Combine::Max, maxima).await?;
        if let (Some(sums), Some(maxima)) = (sums, maxima) {
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

/// Numbers of all ranks combined, at rank 0.
async fn up(
    group: &Group<'_>,
    combine: Combine,
    numbers: Vec<u64>,
) -> Result<Option<Vec<u64>>, ExecError> {
    let of_host = group.host.reduce(Rank(0), combine, numbers);
    let Some(of_host) = group.quietly(of_host).await? else {
        return Ok(None);
    };
    let of_all = group.leaders.reduce(Rank(0), combine, of_host);
    group.quietly(of_all).await
}

fn words(own: &Timeline, buckets: &Buckets, slices: Range<usize>) -> (Vec<u64>, Vec<u64>) {
    let (mut sums, mut maxima) = (Vec::new(), Vec::new());
    let none = Latencies::default();
    for slice in slices {
        let Latencies { service, response } = own.latencies(slice).unwrap_or(&none);
        for (latency, buckets) in [(service, &buckets.service), (response, &buckets.response)] {
            sums.push(latency.sum());
            sums.extend(latency.dense(buckets.clone()));
            maxima.push(latency.max().0);
        }
    }
    (sums, maxima)
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
