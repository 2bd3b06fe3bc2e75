//! Flows: workers that hold a ratio of operations among each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The operations of all workers of a flow, and their weights.
#[derive(Debug)]
pub struct Flow {
    done: AtomicU64,
    weight: AtomicU64,
}

impl Default for Flow {
    fn default() -> Flow {
        // Like in fio, one more than there were: the first operation is never too early.
        Flow {
            done: AtomicU64::new(1),
            weight: AtomicU64::new(0),
        }
    }
}

/// A worker's part in a flow, until it is dropped.
#[derive(Debug)]
pub struct FlowShare {
    flow: Arc<Flow>,
    done: u64,
    weight: u64,
}

impl FlowShare {
    /// A part with this weight.
    pub fn new(flow: Arc<Flow>, weight: u32) -> FlowShare {
        let weight = u64::from(weight);
        flow.weight.fetch_add(weight, Ordering::Relaxed);
        FlowShare {
            flow,
            done: 0,
            weight,
        }
    }

    /// Returns true if it has done more than its part.
    pub fn is_ahead(&self) -> bool {
        let all = self.flow.done.load(Ordering::Relaxed);
        let weights = self.flow.weight.load(Ordering::Relaxed);
        u128::from(self.done) * u128::from(weights) > u128::from(self.weight) * u128::from(all)
    }

    /// Counts another operation, unless it is ahead; returns true if it may be done now.
    pub fn take(&mut self) -> bool {
        let may = !self.is_ahead();
        if may {
            self.flow.done.fetch_add(1, Ordering::Relaxed);
            self.done += 1;
        }
        may
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.flow.done.fetch_sub(self.done, Ordering::Relaxed);
        self.flow.weight.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

/// Bytes that are moved before anything is recorded, by one worker or by several together.
#[derive(Debug)]
pub struct RampBytes {
    moved: AtomicU64,
    wanted: u64,
}

impl RampBytes {
    /// A ramp of this many bytes, with none moved.
    pub fn new(wanted: u64) -> RampBytes {
        RampBytes {
            moved: AtomicU64::new(0),
            wanted,
        }
    }

    /// Counts this many bytes; returns true if that is enough.
    pub fn add(&self, bytes: u64) -> bool {
        let before = self.moved.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) >= self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_a_flow_are_in_the_ratio_of_the_weights() {
        let flow = Arc::new(Flow::default());
        let mut shares = [3, 1, 2].map(|weight| FlowShare::new(Arc::clone(&flow), weight));
        // Each tries as often as the others.
        for _ in 0..6000 {
            shares.iter_mut().for_each(|share| {
                share.take();
            });
        }
        let done = shares.each_ref().map(|share| share.done);
        let third = done[1];
        assert!(third > 1000, "{done:?}");
        assert!(done[0].abs_diff(3 * third) <= 6, "{done:?}");
        assert!(done[2].abs_diff(2 * third) <= 6, "{done:?}");
    }

    #[test]
    fn who_is_left_alone_goes_on() {
        let flow = Arc::new(Flow::default());
        let mut one = FlowShare::new(Arc::clone(&flow), 1);
        let other = FlowShare::new(Arc::clone(&flow), 1);
        while one.take() {}
        assert!(one.is_ahead());
        drop(other);
        assert!((0..100).all(|_| one.take()));
    }

    #[test]
    fn bytes_of_a_ramp_add_up() {
        let ramp = RampBytes::new(10_000);
        assert!(!ramp.add(4096) && !ramp.add(4096) && ramp.add(4096) && ramp.add(1));
    }
}
