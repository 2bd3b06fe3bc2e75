//! The parts of files that a worker could not write: what they hold now is
//! unknown, and so they are not checked until a later write succeeds.

use std::collections::{BTreeMap, BTreeSet};

use rbench_core::Nanos;

/// Most stretches that are remembered; a file with more is not checked any
/// more.
const STRETCHES_MAX: usize = 1 << 16;

/// End of a stretch, and the time when the last write in it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    end: u64,
    failed: Nanos,
}

/// Stretches of the files of one worker.
#[derive(Debug, Default)]
pub struct Unwritten {
    /// By file and offset. They neither overlap nor touch.
    stretches: BTreeMap<(u64, u64), Stretch>,
    /// Files with too many.
    whole: BTreeSet<u64>,
}

impl Unwritten {
    /// Returns true if no write failed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty() && self.whole.is_empty()
    }

    /// A write failed at the time `failed`: it may have changed any part of
    /// these bytes.
    pub fn add(&mut self, file: u64, offset: u64, length: u64, failed: Nanos) {
        if self.whole.contains(&file) {
            return;
        }
        let mut start = offset;
        let mut joined = Stretch {
            end: offset.saturating_add(length),
            failed,
        };
        // Stretches that overlap it or lie next to it become one with it.
        while let Some((found, other)) = self.last_before(file, joined.end.saturating_add(1))
            && other.end >= start
        {
            self.stretches.remove(&(file, found));
            start = start.min(found);
            joined.end = joined.end.max(other.end);
            joined.failed = joined.failed.max(other.failed);
        }
        self.stretches.insert((file, start), joined);
        if self.stretches.len() > STRETCHES_MAX {
            self.stretches.retain(|(other, _), _| *other != file);
            self.whole.insert(file);
        }
    }

    /// A write that began at the time `start` succeeded. What failed while it
    /// was under way may have come after it.
    #[cold]
    pub fn written(&mut self, file: u64, offset: u64, length: u64, start: Nanos) {
        let end = offset.saturating_add(length);
        let overlapping = self.stretches.range((file, 0)..(file, end)).rev();
        let overlapping = overlapping.take_while(|(_, stretch)| stretch.end > offset);
        let replaced = overlapping.filter(|(_, stretch)| stretch.failed <= start);
        let replaced: Vec<_> = replaced
            .map(|(place, stretch)| (*place, *stretch))
            .collect();
        for ((_, from), stretch) in replaced {
            self.stretches.remove(&(file, from));
            if from < offset {
                let before = Stretch {
                    end: offset,
                    ..stretch
                };
                self.stretches.insert((file, from), before);
            }
            if stretch.end > end {
                self.stretches.insert((file, end), stretch);
            }
        }
    }

    /// Returns true if any of these bytes may differ from what was to be written.
    pub fn touches(&self, file: u64, offset: u64, length: u64) -> bool {
        let before = self.last_before(file, offset.saturating_add(length));
        self.whole.contains(&file) || before.is_some_and(|(_, stretch)| stretch.end > offset)
    }

    /// The last stretch of the file that begins before `end`.
    fn last_before(&self, file: u64, end: u64) -> Option<(u64, Stretch)> {
        let mut before = self.stretches.range((file, 0)..(file, end));
        before
            .next_back()
            .map(|((_, start), stretch)| (*start, *stretch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn failed_writes_side_by_side_are_remembered_as_one() {
        let mut unwritten = Unwritten::default();
        // Odd blocks first, then even ones, which join them.
        for block in (1..STRETCHES_MAX as u64).step_by(2) {
            unwritten.add(3, block * 4096, 4096, Nanos(1));
        }
        assert_eq!(unwritten.stretches.len(), STRETCHES_MAX / 2);
        for block in (0..STRETCHES_MAX as u64).step_by(2) {
            unwritten.add(3, block * 4096, 4096, Nanos(2));
        }
        assert_eq!(unwritten.stretches.len(), 1);
        assert!(!unwritten.touches(2, 0, 4096) && !unwritten.touches(4, 0, 4096));
    }

    #[test]
    fn a_file_with_too_many_failed_writes_is_given_up_and_others_are_not() {
        let mut unwritten = Unwritten::default();
        unwritten.add(1, 0, 10, Nanos(1));
        for block in 0..=STRETCHES_MAX as u64 {
            unwritten.add(2, block * 100, 10, Nanos(1));
        }
        assert_eq!(unwritten.stretches.len(), 1);
        assert!(unwritten.touches(2, u64::MAX - 1, 1));
        assert!(unwritten.touches(1, 0, 10) && !unwritten.touches(1, 10, 10));
        unwritten.add(2, 0, 10, Nanos(3));
        unwritten.written(2, 0, 10, Nanos(4));
        assert!(unwritten.touches(2, 0, 10));
    }

    #[test]
    fn a_write_that_was_under_way_with_the_failed_one_does_not_replace_it() {
        let mut unwritten = Unwritten::default();
        unwritten.add(0, 0, 10, Nanos(100));
        unwritten.written(0, 0, 10, Nanos(99));
        assert!(unwritten.touches(0, 0, 10));
        unwritten.written(0, 0, 10, Nanos(100));
        assert!(unwritten.is_empty());
    }

    proptest! {
        /// Against one flag for each byte.
        #[test]
        fn it_knows_each_byte(
            writes in prop::collection::vec((0_u64..3, 0_u64..60, 1_u64..12, any::<bool>()), 0..60),
        ) {
            let mut unwritten = Unwritten::default();
            let mut truth = [[false; 80]; 3];
            for (now, (file, offset, length, failed)) in (0..).zip(writes) {
                if failed {
                    unwritten.add(file, offset, length, Nanos(now));
                } else {
                    unwritten.written(file, offset, length, Nanos(now));
                }
                let bytes = offset as usize..(offset + length) as usize;
                truth[file as usize][bytes].fill(failed);
            }
            for (file, bytes) in (0..).zip(&truth) {
                for offset in 0..70 {
                    for length in 1..10 {
                        let expect = bytes[offset..offset + length].contains(&true);
                        let found = unwritten.touches(file, offset as u64, length as u64);
                        prop_assert_eq!(found, expect, "file {} at {} + {}", file, offset, length);
                    }
                }
            }
            let wrong = truth.iter().flatten().any(|byte| *byte);
            prop_assert_eq!(unwritten.is_empty(), !wrong);
        }
    }
}
