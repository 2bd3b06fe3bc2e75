//! Bytes that a worker moves over time, for the log of all workers together: recorded when
//! bandwidth is sampled, not with each operation.

use rbench_core::Nanos;
use rbench_core::moved::Moved;

/// Bytes moved until now.
#[derive(Debug)]
pub(super) struct Moving {
    all: Moved,
    start: Nanos,
    /// Bytes read and written when it was last taken down, and when that was.
    noted: [u64; 2],
    noted_at: Nanos,
}

impl Moving {
    /// Nothing yet, in stretches of this length.
    pub(super) fn of(width: Nanos) -> Moving {
        Moving {
            all: Moved::of(width),
            start: Nanos(0),
            noted: [0; 2],
            noted_at: Nanos(0),
        }
    }

    /// The worker starts at `start`.
    pub(super) fn begin(&mut self, start: Nanos) {
        (self.start, self.noted_at) = (start, start);
    }

    /// Records that until `now` this many bytes have been read and written in total.
    pub(super) fn note(&mut self, now: Nanos, bytes: [u64; 2]) {
        let moved = [0, 1].map(|way| bytes[way].saturating_sub(self.noted[way]));
        let since = |at: Nanos| at.since(self.start);
        self.all.add(since(self.noted_at), since(now), moved);
        (self.noted, self.noted_at) = (bytes, now);
    }

    /// Counting begins again.
    pub(super) fn restart(&mut self) {
        self.noted = [0; 2];
    }

    /// All of it.
    pub(super) fn moved(&self) -> Moved {
        self.all.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_moved_since_the_last_look_is_spread_over_that_time() {
        let mut moving = Moving::of(Nanos(100));
        moving.begin(Nanos(1000));
        moving.note(Nanos(1100), [50, 0]);
        moving.note(Nanos(1300), [250, 40]);
        moving.restart();
        moving.note(Nanos(1400), [7, 0]);
        assert_eq!(
            moving.moved().bytes,
            [[50, 0], [100, 20], [100, 20], [7, 0]]
        );
    }
}
