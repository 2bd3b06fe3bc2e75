//! Removing empty directories: items, and the tree from its leaves up.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpEntry, Places};

/// `unlinkat(AT_REMOVEDIR)`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Rmdir,
    make: |scene, thread| {
        let visit = scene.visit(thread);
        let of_tree = scene.info.items.is_none();
        let op = Rmdir {
            places: scene.places(scene.renamed),
            last_node: of_tree.then_some(visit.count.saturating_sub(1)),
        };
        Ok(Box::new(ItemRunner::new(op, scene.fs.clone(), visit)))
    },
};

struct Rmdir {
    places: Places,
    /// `Some` for the tree, which goes from the last node to the first.
    last_node: Option<u64>,
}

impl ItemOp for Rmdir {
    fn prepare(&mut self, index: u64) {
        match self.last_node {
            Some(last) => self.places.node(last - index),
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
