//! Giving each item another name in the same directory.
//!
//! Natively every item gets a name of its own, so the workers do not depend
//! on each other and any order works. mdtest's chain keeps the set of names
//! and has to be walked in order, by one worker. For the per-operation table one
//! item goes on from name to name.

use std::ffi::CStr;

use rbench_core::{Call, Progress};
use rbench_plan::meta::Renaming;
use rbench_sys::Fs;

use super::{ItemOp, OpContext, Places, RENAMED, Why};
use crate::worker::Prepared;

/// Suffix of the first item of a chain in the meantime.
const ASIDE: &str = "-XX";

/// Creates the runner of one worker.
pub fn make(scene: &OpContext, thread: u32) -> Prepared {
    let first = scene.visit(thread).first;
    let how = match scene.plan.renaming {
        Renaming::Suffix => How::Suffix,
        Renaming::Chain => How::Chain,
        Renaming::Onward => How::Onward(Onward {
            first,
            now: None,
            next: first,
        }),
    };
    let op = Rename {
        from: scene.places(false),
        to: scene.places(matches!(how, How::Suffix)),
        how,
    };
    scene.runner(op, thread)
}

struct Rename {
    from: Places,
    to: Places,
    how: How,
}

/// The order of names.
enum How {
    Suffix,
    Chain,
    Onward(Onward),
}

/// Progress of the first item on its way.
struct Onward {
    first: u64,
    /// It has the name of this one, with the suffix; `None`: its own.
    now: Option<u64>,
    /// The name that it is to have.
    next: u64,
}

/// Aims at the name that the first item has on its way.
fn aim_onward(places: &mut Places, first: u64, at: Option<u64>) {
    match at {
        Some(index) => places.item_as(index, RENAMED),
        None => places.item(first),
    }
}

impl Rename {
    fn aim_chain(&mut self, index: u64) {
        let items = self.from.items_per_tree().max(1);
        let first = index - index % items;
        match index - first {
            0 => {
                self.from.item(first);
                self.to.item_as(first, ASIDE);
            }
            last if last == items - 1 => {
                self.from.item_as(first, ASIDE);
                self.to.item(first + last - 1);
            }
            _ => {
                self.from.item(index);
                self.to.item(index - 1);
            }
        }
    }
}

impl ItemOp for Rename {
    fn aim(&mut self, index: u64) {
        match &mut self.how {
            How::Chain => self.aim_chain(index),
            How::Suffix => {
                self.from.item(index);
                self.to.item(index);
            }
            How::Onward(onward) => {
                onward.next = index;
                aim_onward(&mut self.from, onward.first, onward.now);
                aim_onward(&mut self.to, onward.first, Some(index));
            }
        }
    }

    fn paths(&self) -> (&CStr, &CStr) {
        (self.from.current(), self.to.current())
    }

    fn settle(&mut self, _data: &mut [u8], _progress: &Progress) -> Result<u64, Why> {
        if let How::Onward(onward) = &mut self.how {
            onward.now = Some(onward.next);
        }
        Ok(0)
    }

    fn finish(&mut self, fs: &dyn Fs) -> Result<(), Why> {
        let How::Onward(Onward { first, now, .. }) = &self.how else {
            return Ok(());
        };
        if now.is_none() {
            return Ok(());
        }
        aim_onward(&mut self.from, *first, *now);
        aim_onward(&mut self.to, *first, None);
        fs.on_paths(Call::Rename(0), self.from.current(), self.to.current())
            .map(drop)
            .map_err(|errno| (errno.into(), "back to its own name, untimed".to_owned()))
    }

    fn waits_for(&self, _index: u64, _other: u64) -> bool {
        // Each takes the name that the one before gives up.
        !matches!(self.how, How::Suffix)
    }
}
