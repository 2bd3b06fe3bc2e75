//! Injected damage to data: pure functions of bytes, their offset in the file and
//! random numbers. Also the older content of files, which a stale read returns.
//!
//! Each function returns the range of the file that differs from the truth, or `None`
//! if nothing would differ.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use parking_lot::Mutex;
use rbench_core::random::Stream;

use crate::fault::log::Damage;

/// Unit of zeroed or stale data, aligned in the file.
pub(crate) const BLOCK: u64 = 4096;

/// The parts of `length` bytes at `offset` that lie in one block each: the number of
/// the block, and the range in the file.
pub(crate) fn blocks(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<u64>)> {
    let end = offset + length as u64;
    let behind = if length == 0 { 0 } else { end.div_ceil(BLOCK) };
    (offset / BLOCK..behind).map(move |block| {
        let start = block * BLOCK;
        (block, start.max(offset)..end.min(start + BLOCK))
    })
}

/// The number of bytes out of `length` that a short read or write moves; `None` if it
/// cannot be short.
pub(crate) fn shortened(length: usize) -> Option<usize> {
    (length > 1).then_some(length / 2)
}

/// Inverts one bit.
pub(crate) fn flip(bytes: &mut [u8], offset: u64, draws: &mut Stream) -> Option<Damage> {
    if bytes.is_empty() {
        return None;
    }
    let at = draws.below(bytes.len() as u64);
    let bit = draws.below(8) as u8;
    bytes[at as usize] ^= 1 << bit;
    Some(Damage {
        bit: Some(bit),
        ..Damage::range(offset + at, 1)
    })
}

/// Fills all bytes or one block with zeros.
pub(crate) fn zero(bytes: &mut [u8], offset: u64, draws: &mut Stream) -> Option<Damage> {
    let holds_something = |range: &Range<usize>| bytes[range.clone()].iter().any(|b| *b != 0);
    let range = if draws.below(2) == 0 {
        Some(0..bytes.len()).filter(holds_something)?
    } else {
        let within = |range: Range<u64>| {
            let from = (range.start - offset) as usize;
            from..from + (range.end - range.start) as usize
        };
        let parts: Vec<Range<usize>> = blocks(offset, bytes.len())
            .map(|(_, range)| within(range))
            .filter(holds_something)
            .collect();
        let chosen = draws.below(parts.len().max(1) as u64) as usize;
        parts.get(chosen)?.clone()
    };
    bytes[range.clone()].fill(0);
    Some(Damage::range(
        offset + range.start as u64,
        range.len() as u64,
    ))
}

/// Older blocks of one file, by their number. The last one is shorter if the file
/// ended in it.
type Blocks = BTreeMap<u64, Box<[u8]>>;

/// The content of files' blocks before they were last overwritten.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<HashMap<u64, Blocks>>);

impl History {
    /// Records that `data` is about to be written at `offset` of `ino`. `old` is the
    /// content of the whole blocks that it touches, up to the end of the file.
    pub(crate) fn overwriting(&self, ino: u64, offset: u64, data: &[u8], old: &[u8]) {
        let first = offset / BLOCK * BLOCK;
        let mut files = self.0.lock();
        for (block, range) in blocks(offset, data.len()) {
            let start = (block * BLOCK - first) as usize;
            let behind = old.len().min(start + BLOCK as usize);
            let Some(held) = old.get(start..behind).filter(|held| !held.is_empty()) else {
                break;
            };
            let new = &data[(range.start - offset) as usize..(range.end - offset) as usize];
            let within = (range.start - block * BLOCK) as usize;
            let overwritten = held.get(within..).unwrap_or_default();
            let same = overwritten.len().min(new.len());
            if overwritten[..same] != new[..same] {
                files.entry(ino).or_default().insert(block, held.into());
            }
        }
    }

    /// Records that `ino` now ends at `size`: later content is forgotten.
    pub(crate) fn truncated(&self, ino: u64, size: u64) {
        if let Some(file) = self.0.lock().get_mut(&ino) {
            file.split_off(&size.div_ceil(BLOCK));
        }
    }

    /// Forgets the file `ino`.
    pub(crate) fn forget(&self, ino: u64) {
        self.0.lock().remove(&ino);
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Puts older content into `bytes`, which lie at `offset` of `ino`. Returns the
    /// replaced ranges, with neighbours joined.
    pub(crate) fn make_stale(&self, ino: u64, offset: u64, bytes: &mut [u8]) -> Vec<Damage> {
        let files = self.0.lock();
        let Some(file) = files.get(&ino) else {
            return Vec::new();
        };
        let mut ranges: Vec<Damage> = Vec::new();
        for (block, range) in blocks(offset, bytes.len()) {
            let Some(old) = file.get(&block) else {
                continue;
            };
            let within = (range.start - block * BLOCK) as usize;
            let old = old.get(within..).unwrap_or_default();
            let now = &mut bytes[(range.start - offset) as usize..(range.end - offset) as usize];
            let length = old.len().min(now.len());
            let (old, now) = (&old[..length], &mut now[..length]);
            if old == now {
                continue;
            }
            now.copy_from_slice(old);
            match ranges.last_mut() {
                Some(last) if last.offset + last.length == range.start => {
                    last.length += length as u64;
                }
                _ => ranges.push(Damage::range(range.start, length as u64)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn draws(seed: u64) -> Stream {
        Stream::new(&[seed])
    }

    /// The range from the first to the last byte in which two contents at `offset`
    /// differ.
    fn difference(offset: u64, a: &[u8], b: &[u8]) -> Option<Range<u64>> {
        let differs = |i: &usize| a[*i] != b[*i];
        let first = (0..a.len()).find(differs)?;
        let last = (0..a.len()).rfind(differs)?;
        Some(offset + first as u64..offset + last as u64 + 1)
    }

    proptest! {
        #[test]
        fn a_flip_is_the_bit_that_it_says(
            truth in prop::collection::vec(any::<u8>(), 0..9000),
            offset in 0..20_000_u64,
            seed: u64,
        ) {
            let mut bytes = truth.clone();
            match flip(&mut bytes, offset, &mut draws(seed)) {
                None => prop_assert!(truth.is_empty()),
                Some(damage) => {
                    let at = (damage.offset - offset) as usize;
                    bytes[at] ^= 1 << damage.bit.expect("a flip");
                    prop_assert!(bytes == truth);
                    prop_assert_eq!(damage.length, 1);
                }
            }
        }

        #[test]
        fn zeros_are_where_they_are_said_to_be_and_hide_something(
            blocks in prop::collection::vec(any::<bool>(), 1..5),
            cut in 0..4000_usize,
            offset in 0..20_000_u64,
            seed: u64,
        ) {
            let mut truth: Vec<u8> = Vec::new();
            blocks.iter().for_each(|full| truth.extend([u8::from(*full); BLOCK as usize]));
            truth.truncate(truth.len() - cut);
            let mut bytes = truth.clone();
            match zero(&mut bytes, offset, &mut draws(seed)) {
                None => prop_assert!(bytes == truth),
                Some(damage) => {
                    let from = (damage.offset - offset) as usize;
                    let range = from..from + damage.length as usize;
                    prop_assert!(truth[range.clone()].iter().any(|b| *b != 0));
                    let mut expect = truth.clone();
                    expect[range.clone()].fill(0);
                    prop_assert!(bytes == expect);
                    let whole = range.len() == truth.len();
                    prop_assert!(whole || range.len() <= BLOCK as usize);
                }
            }
            if truth.iter().any(|b| *b != 0) {
                let hits = (0..20).any(|i| {
                    zero(&mut truth.clone(), offset, &mut draws(i)).is_some()
                });
                prop_assert!(hits);
            }
        }

        #[test]
        fn stale_blocks_are_those_before_their_last_overwriting(
            writes in prop::collection::vec((0..16_u64, 1..6_u64, any::<u8>()), 1..12),
            read in (0..16_u64, 1..8_u64),
        ) {
            // Offsets and lengths in quarters of a block.
            const UNIT: u64 = BLOCK / 4;
            let (history, mut file) = (History::default(), Vec::new());
            let mut before: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            for (at, n, byte) in writes {
                let (offset, data) = (at * UNIT, vec![byte; (n * UNIT) as usize]);
                let first = (offset / BLOCK * BLOCK) as usize;
                let old = file.get(first..).unwrap_or_default();
                history.overwriting(1, offset, &data, old);
                let was = file.clone();
                let end = offset as usize + data.len();
                file.resize(file.len().max(end), 0);
                file[offset as usize..end].copy_from_slice(&data);
                for (block, range) in blocks(offset, data.len()) {
                    let range = range.start as usize..(range.end as usize).min(was.len());
                    let changed = was.get(range.clone()).is_some_and(|w| *w != file[range]);
                    if changed {
                        let start = (block * BLOCK) as usize;
                        let end = was.len().min(start + BLOCK as usize);
                        before.insert(block, was[start..end].to_vec());
                    }
                }
            }
            let offset = read.0 * UNIT;
            let end = file.len().min(((read.0 + read.1) * UNIT) as usize);
            let truth = file.get(offset as usize..end).unwrap_or_default().to_vec();
            let mut bytes = truth.clone();
            let damage = history.make_stale(1, offset, &mut bytes);
            for (i, byte) in bytes.iter().enumerate() {
                let at = offset + i as u64;
                let is_hit = damage.iter().any(|d| (d.offset..d.offset + d.length).contains(&at));
                let older = before.get(&(at / BLOCK));
                let older = older.and_then(|old| old.get((at % BLOCK) as usize));
                let expect = if is_hit { older.expect("older data") } else { &truth[i] };
                prop_assert_eq!(byte, expect);
            }
            prop_assert_eq!(damage.is_empty(), difference(offset, &truth, &bytes).is_none());
        }
    }

    #[test]
    fn older_data_goes_with_the_file_and_its_end() {
        let (history, old) = (History::default(), vec![1; 3 * BLOCK as usize]);
        let new = vec![2; old.len()];
        let stale = |from: u64| history.make_stale(7, from, &mut new.clone());
        history.overwriting(7, 0, &new, &old);
        assert_eq!(stale(0), [Damage::range(0, 3 * BLOCK)]);
        assert_eq!(history.make_stale(8, 0, &mut new.clone()), []);
        history.truncated(7, BLOCK + 1);
        assert_eq!(stale(0), [Damage::range(0, 2 * BLOCK)]);
        history.forget(7);
        assert_eq!(stale(0), []);
        history.overwriting(7, 0, &new, &old);
        history.clear();
        assert_eq!(stale(0), []);
    }

    #[test]
    fn half_of_the_bytes_are_moved_but_at_least_one() {
        assert_eq!(shortened(4096), Some(2048));
        assert_eq!(shortened(3), Some(1));
        assert_eq!(shortened(2), Some(1));
        assert_eq!([shortened(1), shortened(0)], [None, None]);
    }
}
