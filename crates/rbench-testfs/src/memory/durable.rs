//! Durable state of a file: its content at the last sync, and the changes since then.
//! A power cut keeps some of these.

use std::collections::BTreeMap;
use std::ops::Range;

use rbench_core::random::Stream;

use super::data::Data;
use super::space::Space;
use crate::damage::{BLOCK, blocks};
use crate::store::Answer;

/// Unit of a disk's writes: a change is torn between such blocks of the file, never
/// within one.
pub(crate) const PAGE: u64 = BLOCK;

type Page = Box<[u8; PAGE as usize]>;

/// A change of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Write {
        offset: u64,
        data: Box<[u8]>,
    },
    /// Sets the end of the file.
    Truncate(u64),
    /// Zeros, without a change of size.
    Punch {
        offset: u64,
        length: u64,
    },
    /// Moves the end of the file to at least this offset; new space reads as zeros.
    Extend(u64),
}

/// Fate of a change in a power cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The whole change survived.
    Survived,
    /// A write without these ranges of the file.
    Torn(Vec<Range<u64>>),
    /// Nothing survived.
    Lost,
}

/// The durable state of one file. Missing pages read as zeros.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durable {
    pages: BTreeMap<u64, Page>,
    size: u64,
    /// Changes in the order in which they were made.
    unsynced: Vec<Change>,
}

impl Durable {
    pub(crate) fn note(&mut self, change: Change) {
        self.unsynced.push(change);
    }

    /// Makes every change durable.
    pub(crate) fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            self.apply(&change, |_| true);
        }
    }

    /// Applies `change`; of a write only the pages that `keep` accepts.
    fn apply(&mut self, change: &Change, keep: impl Fn(u64) -> bool) {
        match change {
            Change::Write { offset, data } => {
                for (page, part) in blocks(*offset, data.len()).filter(|(page, _)| keep(*page)) {
                    let from = (part.start - offset) as usize;
                    let length = (part.end - part.start) as usize;
                    self.put(page, &part, &data[from..][..length]);
                    self.size = self.size.max(part.end);
                }
            }
            Change::Truncate(size) => {
                self.size = *size;
                self.pages.split_off(&size.div_ceil(PAGE));
                // The part that a later extension uncovers reads as zeros.
                let last = size / PAGE;
                if let Some(page) = self.pages.get_mut(&last) {
                    page[(size % PAGE) as usize..].fill(0);
                }
            }
            Change::Punch { offset, length } => self.zero(*offset..offset.saturating_add(*length)),
            Change::Extend(size) => self.size = self.size.max(*size),
        }
    }

    fn put(&mut self, page: u64, part: &Range<u64>, bytes: &[u8]) {
        let held = self.pages.entry(page);
        let held = held.or_insert_with(|| Box::new([0; PAGE as usize]));
        held[(part.start % PAGE) as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn zero(&mut self, range: Range<u64>) {
        let touched = range.start / PAGE..range.end.div_ceil(PAGE).max(range.start / PAGE);
        for (number, page) in self.pages.range_mut(touched) {
            let start = number * PAGE;
            let within = |at: u64| at.saturating_sub(start).min(PAGE) as usize;
            page[within(range.start)..within(range.end)].fill(0);
        }
    }

    /// Cuts the power. Only durable content remains, and those changes since then
    /// that `survivors` chooses (none without it), which are durable from now on.
    /// Returns each change with its fate.
    pub(crate) fn cut(&mut self, mut survivors: Option<&mut Stream>) -> Vec<(Change, Fate)> {
        let mut fates = Vec::new();
        for change in std::mem::take(&mut self.unsynced) {
            let fate = match survivors.as_deref_mut() {
                Some(draws) => draw_fate(&change, draws),
                None => Fate::Lost,
            };
            match &fate {
                Fate::Survived => self.apply(&change, |_| true),
                Fate::Torn(lost) => {
                    let is_lost = |page: u64| {
                        let mut numbers = lost.iter().map(|range| range.start / PAGE);
                        numbers.any(|number| number == page)
                    };
                    self.apply(&change, |page| !is_lost(page));
                }
                Fate::Lost => {}
            }
            fates.push((change, fate));
        }
        fates
    }

    /// Sets `data` to the durable content. A reader sees each page either before or
    /// after the change.
    ///
    /// # Errors
    /// ENOSPC if data that was removed since no longer fits.
    pub(crate) fn restore(&self, space: &Space, data: &Data) -> Answer<()> {
        data.truncate(space, data.size().min(self.size))?;
        let mut at = 0;
        while let Ok(data_start) = data.next_data(at) {
            let page = data_start / PAGE;
            if !self.pages.contains_key(&page) {
                data.punch(space, page * PAGE, PAGE);
            }
            at = (page + 1) * PAGE;
        }
        let mut held = [0; PAGE as usize];
        for (number, page) in &self.pages {
            let start = number * PAGE;
            let wanted = &page[..PAGE.min(self.size.saturating_sub(start)) as usize];
            let length = data.read(start, &mut held[..wanted.len()]);
            if held[..length] != *wanted && data.write(space, start, wanted)? < wanted.len() {
                return Err(nix::errno::Errno::ENOSPC);
            }
        }
        data.truncate(space, self.size)
    }
}

/// Draws a fate: a third each survives, is lost, or is torn between pages.
fn draw_fate(change: &Change, draws: &mut Stream) -> Fate {
    match (draws.below(3), change) {
        (0, _) => Fate::Survived,
        (2, Change::Write { offset, data }) => {
            let all = blocks(*offset, data.len()).map(|(_, part)| part);
            let all: Vec<Range<u64>> = all.collect();
            let lost = all.iter().filter(|_| draws.below(2) == 0).cloned();
            let lost: Vec<Range<u64>> = lost.collect();
            match lost.len() {
                0 => Fate::Survived,
                n if n == all.len() => Fate::Lost,
                _ => Fate::Torn(lost),
            }
        }
        _ => Fate::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::file::File;
    use proptest::prelude::*;

    const CAP: u64 = 1 << 30;

    /// Applies the change to a plain vector, byte by byte; of a write, the part that `fate` left.
    fn model(file: &mut Vec<u8>, change: &Change, fate: &Fate) {
        if *fate == Fate::Lost {
            return;
        }
        match change {
            Change::Write { offset, data } => {
                for (at, byte) in (*offset..).zip(data.iter()) {
                    let gone = match fate {
                        Fate::Torn(lost) => lost.iter().any(|range| range.contains(&at)),
                        _ => false,
                    };
                    if !gone {
                        file.resize(file.len().max(at as usize + 1), 0);
                        file[at as usize] = *byte;
                    }
                }
            }
            Change::Truncate(size) => file.resize(*size as usize, 0),
            Change::Punch { offset, length } => {
                let end = file.len().min((offset + length) as usize);
                if let Some(range) = file.get_mut(*offset as usize..end) {
                    range.fill(0);
                }
            }
            Change::Extend(size) => file.resize(file.len().max(*size as usize), 0),
        }
    }

    fn change() -> impl Strategy<Value = Change> {
        let at = 0..20_000_u64;
        prop_oneof![
            4 => (at.clone(), 1_u8.., 1..15_000_usize).prop_map(|(offset, byte, n)| {
                Change::Write { offset, data: vec![byte; n].into() }
            }),
            1 => at.clone().prop_map(Change::Truncate),
            1 => (at.clone(), at.clone())
                .prop_map(|(offset, length)| Change::Punch { offset, length }),
            1 => at.prop_map(Change::Extend),
        ]
    }

    fn make(file: &File, space: &Space, change: &Change) {
        let result = match change {
            Change::Write { offset, data } => file.write(space, *offset, data).map(drop),
            Change::Truncate(size) => file.truncate(space, *size),
            Change::Punch { offset, length } => file.punch(space, *offset, *length),
            Change::Extend(0) => Ok(()),
            Change::Extend(size) => file.reserve(space, size - 1, 1, false),
        };
        assert_eq!(result, Ok(()));
    }

    fn content(file: &File) -> Vec<u8> {
        let mut all = vec![0xff; file.data().size() as usize];
        assert_eq!(file.data().read(0, &mut all), all.len());
        all
    }

    /// Makes the changes `synced`, syncs, makes the changes `rest`, and cuts the
    /// power. Returns the content, the content expected from the fates, and the
    /// fates.
    fn cut(
        synced: &[Change],
        rest: &[Change],
        mut draws: Option<Stream>,
    ) -> (Vec<u8>, Vec<u8>, Vec<Fate>) {
        let (space, file) = (Space::new(CAP, None), File::new(true));
        let mut expect = Vec::new();
        for change in synced {
            make(&file, &space, change);
            model(&mut expect, change, &Fate::Survived);
        }
        file.sync();
        rest.iter().for_each(|change| make(&file, &space, change));
        let mut durable = file.durable().expect("asked for").lock();
        let fates = durable.cut(draws.as_mut());
        assert_eq!(durable.restore(&space, file.data()), Ok(()));
        // Another power cut changes nothing.
        assert_eq!(durable.cut(draws.as_mut()), []);
        for (change, fate) in &fates {
            model(&mut expect, change, fate);
        }
        let fates = fates.into_iter().map(|(_, fate)| fate).collect();
        (content(&file), expect, fates)
    }

    proptest! {
        #[test]
        fn without_survivors_a_file_is_as_it_was_synced(
            synced in prop::collection::vec(change(), 0..8),
            rest in prop::collection::vec(change(), 0..8),
        ) {
            let (content, expect, fates) = cut(&synced, &rest, None);
            prop_assert!(content == expect);
            prop_assert!(fates.iter().all(|fate| *fate == Fate::Lost));
        }

        #[test]
        fn with_survivors_it_is_what_their_fates_say(
            synced in prop::collection::vec(change(), 0..8),
            rest in prop::collection::vec(change(), 0..8),
            seed: u64,
        ) {
            let draws = || Some(Stream::new(&[seed]));
            let (content, expect, fates) = cut(&synced, &rest, draws());
            prop_assert!(content == expect);
            prop_assert_eq!(cut(&synced, &rest, draws()).2, fates, "the seed decides");
        }
    }

    #[test]
    fn changes_survive_are_torn_and_are_lost() {
        let mut draws = Stream::new(&[1]);
        let write = Change::Write {
            offset: 100,
            data: vec![1; 3 * PAGE as usize].into(),
        };
        let fates: Vec<Fate> = (0..300).map(|_| draw_fate(&write, &mut draws)).collect();
        let count = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
        // In one of eight cases a torn write keeps all four pages, or none.
        let third = 90..140;
        assert!(third.contains(&count(|fate| *fate == Fate::Survived)));
        assert!(third.contains(&count(|fate| *fate == Fate::Lost)));
        assert!(count(|fate| matches!(fate, Fate::Torn(_))) > 60);
    }

    #[test]
    fn what_does_not_fit_any_more_is_told() {
        let (space, file) = (Space::new(4 * PAGE, None), File::new(true));
        assert_eq!(file.write(&space, 0, &[1; 8192]), Ok(8192));
        file.sync();
        assert_eq!(file.truncate(&space, 0), Ok(()));
        assert_eq!(space.take(3 * PAGE), Ok(()));
        let mut durable = file.durable().expect("asked for").lock();
        durable.cut(None);
        let restored = durable.restore(&space, file.data());
        assert_eq!(restored, Err(nix::errno::Errno::ENOSPC));
    }
}
