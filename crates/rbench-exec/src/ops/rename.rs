//! Giving each item another name in the same directory.
//!
//! Every item gets a name of its own, so the workers do not depend on each
//! other and any order works; later phases use the new names.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::tree::Paths;
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpRow};

/// `renameat`
pub const ROW: OpRow = OpRow {
    op: OpKind::Rename,
    make: |scene, thread| {
        let op = Rename {
            from: scene.paths(false),
            to: scene.paths(true),
        };
        Box::new(ItemRunner::new(
            op,
            scene.fs.clone(),
            scene.visit(thread, true),
        ))
    },
};

struct Rename {
    from: Paths,
    to: Paths,
}

impl ItemOp for Rename {
    fn aim(&mut self, index: u64) {
        self.from.item(index);
        self.to.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.rename(self.from.current(), self.to.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.from.current().to_string_lossy().into_owned()
    }

    fn op(&self) -> OpKind {
        OpKind::Rename
    }
}
