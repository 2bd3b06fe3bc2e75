//! Making directories: those of the tree, and those that are items.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpEntry, Places};

/// `mkdirat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Mkdir,
    make: |scene, thread| {
        let op = Mkdir {
            places: scene.places(false),
            of_tree: scene.info.items.is_none(),
        };
        Ok(Box::new(ItemRunner::new(
            op,
            scene.fs.clone(),
            scene.visit(thread),
        )))
    },
};

struct Mkdir {
    places: Places,
    of_tree: bool,
}

impl ItemOp for Mkdir {
    fn prepare(&mut self, index: u64) {
        if self.of_tree {
            self.places.node(index);
        } else {
            self.places.item(index);
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
