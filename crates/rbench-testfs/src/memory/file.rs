//! A regular file in memory: its content and, if power cuts are simulated, its
//! durable state.

use parking_lot::Mutex;

use super::data::Data;
use super::durable::{Change, Durable};
use super::space::Space;
use crate::store::Answer;

/// A regular file. Changes go through its own methods, reads through [`File::data`].
#[derive(Debug, Default)]
pub(crate) struct File {
    data: Data,
    /// Locked while the content changes, so that changes are recorded in the order in
    /// which they were made.
    durable: Option<Mutex<Durable>>,
}

impl File {
    /// Creates an empty file; if `durably`, power cuts can hit it.
    pub(crate) fn new(durably: bool) -> File {
        File {
            data: Data::default(),
            durable: durably.then(Mutex::default),
        }
    }

    pub(crate) fn data(&self) -> &Data {
        &self.data
    }

    pub(crate) fn durable(&self) -> Option<&Mutex<Durable>> {
        self.durable.as_ref()
    }

    /// Makes a change, and records it so that it can be repeated.
    fn change<T>(
        &self,
        make: impl FnOnce(&Data) -> Answer<T>,
        note: impl FnOnce(&T) -> Option<Change>,
    ) -> Answer<T> {
        let Some(durable) = &self.durable else {
            return make(&self.data);
        };
        let mut durable = durable.lock();
        let result = make(&self.data)?;
        if let Some(change) = note(&result) {
            durable.note(change);
        }
        Ok(result)
    }

    /// Like [`Data::write`].
    pub(crate) fn write(&self, space: &Space, offset: u64, data: &[u8]) -> Answer<usize> {
        self.change(
            |file| file.write(space, offset, data),
            |written| {
                let data = data[..*written].into();
                (*written > 0).then_some(Change::Write { offset, data })
            },
        )
    }

    /// Like [`Data::truncate`].
    pub(crate) fn truncate(&self, space: &Space, size: u64) -> Answer<()> {
        let truncate = |file: &Data| file.truncate(space, size);
        self.change(truncate, |()| Some(Change::Truncate(size)))
    }

    /// Like [`Data::punch`].
    pub(crate) fn punch(&self, space: &Space, offset: u64, length: u64) -> Answer<()> {
        let punch = |file: &Data| {
            file.punch(space, offset, length);
            Ok(())
        };
        self.change(punch, |()| Some(Change::Punch { offset, length }))
    }

    /// Like [`Data::reserve`].
    pub(crate) fn reserve(
        &self,
        space: &Space,
        offset: u64,
        length: u64,
        keep_size: bool,
    ) -> Answer<()> {
        let reserve = |file: &Data| file.reserve(space, offset, length, keep_size);
        let extend = || Change::Extend(offset + length);
        self.change(reserve, |()| (!keep_size).then(extend))
    }

    /// Makes its content durable.
    pub(crate) fn sync(&self) {
        if let Some(durable) = &self.durable {
            durable.lock().sync();
        }
    }
}
