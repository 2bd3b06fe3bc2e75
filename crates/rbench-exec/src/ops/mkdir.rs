//! Making directories: those of the tree, and those that are items.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;
use rbench_sys::engine::{NameRequest, NamesInFlight};

use super::in_flight::{RingOp, Script};
use super::places::Tree;
use super::{ItemOp, OpEntry, Places};

/// `mkdirat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Mkdir,
    make: |scene, thread| {
        let op = Mkdir {
            places: scene.places(false),
            tree: scene.tree(),
        };
        scene.ring_runner(op, thread)
    },
};

struct Mkdir {
    places: Places,
    /// `Some` for the directories of the tree.
    tree: Option<Tree>,
}

impl ItemOp for Mkdir {
    fn prepare(&mut self, index: u64) {
        match self.tree {
            Some(_) => self.places.node(index),
            None => self.places.item(index),
        }
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.mkdir(self.places.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Mkdir
    }
}

impl RingOp for Mkdir {
    fn script(&self) -> Script {
        Script::of(&[NameRequest::Mkdir], 0)
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.places.current());
    }

    fn waits_for(&self, index: u64, other: u64) -> bool {
        self.tree.is_some_and(|tree| tree.is_in(index, other))
    }
}
