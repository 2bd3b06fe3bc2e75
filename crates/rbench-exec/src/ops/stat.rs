//! Reading the attributes of items.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpRow, Places};

/// `fstatat`
pub const ROW: OpRow = OpRow {
    op: OpKind::Stat,
    make: |scene, thread| {
        let op = Stat {
            places: scene.places(scene.renamed),
        };
        Ok(Box::new(ItemRunner::new(
            op,
            scene.fs.clone(),
            scene.visit(thread),
        )))
    },
};

struct Stat {
    places: Places,
}

impl ItemOp for Stat {
    fn aim(&mut self, index: u64) {
        self.places.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.stat(self.places.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Stat
    }
}
