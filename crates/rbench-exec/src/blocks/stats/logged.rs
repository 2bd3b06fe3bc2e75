//! Entries of a job's logs: of each operation, and of each window where the logs hold averages.

use rbench_core::job::{LogHistogram, LogSample};
use rbench_core::{Direction, IoPriority, Latency, Nanos};

use super::{Done, JobStats, Times, after, next_multiple};

impl JobStats {
    pub(super) fn log(&mut self, done: Done, times: Times) {
        let (slat, clat, lat) = (
            times.submitted.since(times.start),
            times.end.since(times.submitted),
            times.end.since(times.start),
        );
        if self.logging.logs.histogram.is_some() {
            if times.end >= self.logging.next_histogram {
                self.close_histograms(times.end);
            }
            let side = self.sides.of_mut(done.direction);
            side.block_max = side.block_max.max(done.length);
            if let Some(histogram) = &mut side.histogram {
                histogram.record(clat);
            }
        }
        if !self.logging.samples {
            return;
        }
        if self.logging.logs.average.0 == 0 {
            self.logging.log.samples.push(LogSample {
                at: times.end.since(self.logging.logs_from),
                direction: done.direction,
                ios: 1,
                bytes: done.moved,
                block: done.length,
                offset: done.offset,
                span: lat,
                slat,
                clat,
                lat,
                max: [slat, clat, lat],
                priority: match done.priority {
                    IoPriority(0) => self.own_priority,
                    drawn => drawn,
                },
                max_rates: [0; 2],
            });
            return;
        }
        if times.end >= self.logging.next_window {
            self.close_windows(times.end);
        }
        for which in 0..2 {
            if times.end >= self.logging.next_parts[which] {
                self.close_parts(which, times.end);
            }
        }
        let window = &mut self.sides.of_mut(done.direction).window;
        window.part[0] += 1;
        window.part[1] += done.moved;
        if window.ios == 0 {
            (window.block, window.offset) = (done.length, done.offset);
        }
        window.ios += 1;
        window.bytes += done.moved;
        window.slat += slat.0;
        window.clat += clat.0;
        window.lat += lat.0;
        for (most, one) in window.max.iter_mut().zip([slat, clat, lat]) {
            *most = (*most).max(one);
        }
    }

    /// The first averaging interval begins at `from`.
    pub(super) fn begin_windows(&mut self, from: Nanos) {
        self.logging.next_window = after(from, self.logging.logs.average);
        self.logging.next_parts = self.parts().map(|part| after(from, part));
    }

    /// Lengths of samples of operations and of bytes within an averaging interval.
    pub(super) fn parts(&self) -> [Nanos; 2] {
        let [bandwidth, iops] = self.sampling.every;
        [iops, bandwidth].map(|every| every.min(self.logging.logs.average))
    }

    /// Ends the samples of rates that are over at `now`.
    pub(super) fn close_parts(&mut self, which: usize, now: Nanos) {
        let length = self.parts()[which];
        for side in self.sides.all_mut() {
            let window = &mut side.window;
            let moved = u128::from(std::mem::take(&mut window.part[which]));
            let rate = moved * 1_000_000_000 / u128::from(length.0.max(1));
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            window.max_rates[which] = window.max_rates[which].max(rate);
        }
        self.logging.next_parts[which] = next_multiple(self.logging.next_parts[which], length, now);
    }

    /// Ends the averaging intervals that are over at `now`.
    pub(super) fn close_windows(&mut self, now: Nanos) {
        for which in 0..2 {
            if now >= self.logging.next_parts[which] {
                self.close_parts(which, now);
            }
        }
        self.close_window(self.logging.next_window, self.logging.logs.average);
        self.logging.next_window =
            next_multiple(self.logging.next_window, self.logging.logs.average, now);
    }

    /// Ends the averaging interval that is `span` long `at` an instant.
    pub(super) fn close_window(&mut self, at: Nanos, span: Nanos) {
        for direction in Direction::ALL {
            let start = self.logging.logs_from;
            let window = std::mem::take(&mut self.sides.of_mut(direction).window);
            if window.ios > 0 {
                // A sample that the end of the work cut short counts in the mean only, and no
                // mean is above the highest rate.
                let mean = |n: u64| {
                    let rate = u128::from(n) * 1_000_000_000 / u128::from(span.0.max(1));
                    u64::try_from(rate).unwrap_or(u64::MAX)
                };
                let [iops, bandwidth] = window.max_rates;
                let max_rates = [
                    iops.max(mean(window.ios)),
                    bandwidth.max(mean(window.bytes)),
                ];
                self.logging.log.samples.push(LogSample {
                    at: at.since(start),
                    direction,
                    ios: window.ios,
                    bytes: window.bytes,
                    block: window.block,
                    offset: window.offset,
                    span,
                    slat: Nanos(window.slat / window.ios),
                    clat: Nanos(window.clat / window.ios),
                    lat: Nanos(window.lat / window.ios),
                    max: window.max,
                    priority: IoPriority::default(),
                    max_rates,
                });
            }
        }
    }

    pub(super) fn close_histograms(&mut self, now: Nanos) {
        let at = self.logging.next_histogram;
        for direction in Direction::ALL {
            let start = self.logging.logs_from;
            let side = self.sides.of_mut(direction);
            let block = std::mem::take(&mut side.block_max);
            let full = match &mut side.histogram {
                Some(histogram) if !histogram.is_empty() => {
                    std::mem::replace(histogram, Latency::new())
                }
                _ => continue,
            };
            self.logging.log.histograms.push(LogHistogram {
                at: at.since(start),
                direction,
                block,
                buckets: full.ranges().collect(),
            });
        }
        self.logging.next_histogram = next_multiple(at, self.logging.logs.histogram_every, now);
    }
}
