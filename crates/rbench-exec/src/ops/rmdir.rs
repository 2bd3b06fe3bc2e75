//! Removing empty directories: items, and the tree from its leaves up.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::tree::Paths;
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpRow, Scene};

/// `unlinkat(AT_REMOVEDIR)`
pub const ROW: OpRow = OpRow {
    op: OpKind::Rmdir,
    make,
};

fn make(scene: &Scene, thread: u32) -> Box<dyn crate::worker::Runner> {
    let last_node = scene.info.items.is_none().then_some(scene.plan.nodes - 1);
    let op = Rmdir {
        paths: scene.paths(scene.renamed),
        last_node,
    };
    let visit = if last_node.is_some() {
        scene.tree_visit(thread)
    } else {
        scene.visit(thread, true)
    };
    Box::new(ItemRunner::new(op, scene.fs.clone(), visit))
}

struct Rmdir {
    paths: Paths,
    /// `Some` for the tree, which goes from the last node to the first.
    last_node: Option<u64>,
}

impl ItemOp for Rmdir {
    fn aim(&mut self, index: u64) {
        match self.last_node {
            Some(last) => self.paths.node(last - index),
            None => self.paths.item(index),
        };
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.rmdir(self.paths.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.paths.current().to_string_lossy().into_owned()
    }

    fn op(&self) -> OpKind {
        OpKind::Rmdir
    }
}
