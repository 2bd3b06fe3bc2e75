//! Reading the attributes of items.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::tree::Paths;
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpRow};

/// `fstatat`
pub const ROW: OpRow = OpRow {
    op: OpKind::Stat,
    make: |scene, thread| {
        let op = Stat {
            paths: scene.paths(scene.renamed),
        };
        Box::new(ItemRunner::new(
            op,
            scene.fs.clone(),
            scene.visit(thread, true),
        ))
    },
};

struct Stat {
    paths: Paths,
}

impl ItemOp for Stat {
    fn aim(&mut self, index: u64) {
        self.paths.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.stat(self.paths.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.paths.current().to_string_lossy().into_owned()
    }

    fn op(&self) -> OpKind {
        OpKind::Stat
    }
}
