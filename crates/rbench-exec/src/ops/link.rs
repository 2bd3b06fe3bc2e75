//! Giving each file a hard link in the same directory.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpEntry, Places};

/// `linkat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Link,
    make: |scene, thread| {
        let op = Link {
            from: scene.places(scene.renamed),
            to: scene.links(),
        };
        Ok(Box::new(ItemRunner::new(
            op,
            scene.fs.clone(),
            scene.visit(thread),
        )))
    },
};

struct Link {
    from: Places,
    to: Places,
}

impl ItemOp for Link {
    fn prepare(&mut self, index: u64) {
        self.from.item(index);
        self.to.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.link(self.from.current(), self.to.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.from.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Link
    }
}
