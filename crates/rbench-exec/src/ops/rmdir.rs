//! Removing empty directories: items, and the tree from its leaves up.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;
use rbench_sys::engine::{NameRequest, NamesInFlight};

use super::in_flight::{RingOp, Script};
use super::places::Tree;
use super::{ItemOp, OpEntry, Places};

/// `unlinkat(AT_REMOVEDIR)`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Rmdir,
    make: |scene, thread| {
        let tree = scene.tree();
        let last = || scene.visit(thread).count.saturating_sub(1);
        let op = Rmdir {
            places: scene.places(scene.renamed),
            tree: tree.map(|tree| (tree, last())),
        };
        scene.ring_runner(op, thread)
    },
};

struct Rmdir {
    places: Places,
    /// `Some` for the tree, which goes from the last node to the first; that one's index.
    tree: Option<(Tree, u64)>,
}

impl ItemOp for Rmdir {
    fn prepare(&mut self, index: u64) {
        match self.tree {
            Some((_, last)) => self.places.node(last - index),
            None => self.places.item(index),
        }
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.rmdir(self.places.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Rmdir
    }
}

impl RingOp for Rmdir {
    fn script(&self) -> Script {
        Script::of(&[NameRequest::Rmdir], 0)
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.places.current());
    }

    fn waits_for(&self, index: u64, other: u64) -> bool {
        self.tree
            .is_some_and(|(tree, last)| tree.is_in(last - other, last - index))
    }
}
