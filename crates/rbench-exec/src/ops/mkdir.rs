//! Making directories: those of the tree, and those that are items.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::tree::Paths;
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpRow};

/// `mkdirat`
pub const ROW: OpRow = OpRow {
    op: OpKind::Mkdir,
    make: |scene, thread| {
        let of_tree = scene.info.items.is_none();
        let op = Mkdir {
            paths: scene.paths(false),
            of_tree,
        };
        let visit = if of_tree {
            scene.tree_visit(thread)
        } else {
            scene.visit(thread, false)
        };
        Box::new(ItemRunner::new(op, scene.fs.clone(), visit))
    },
};

struct Mkdir {
    paths: Paths,
    of_tree: bool,
}

impl ItemOp for Mkdir {
    fn aim(&mut self, index: u64) {
        if self.of_tree {
            self.paths.node(index)
        } else {
            self.paths.item(index)
        };
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.mkdir(self.paths.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.paths.current().to_string_lossy().into_owned()
    }

    fn op(&self) -> OpKind {
        OpKind::Mkdir
    }
}
