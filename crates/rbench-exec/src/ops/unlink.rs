//! Removing files, or the links to them and nodes beside them.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::PhaseKind;
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, NODE, OpEntry, Places, SYMLINKED};

/// `unlinkat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Unlink,
    make: |scene, thread| {
        let places = match scene.info.kind {
            PhaseKind::LinkRemove => scene.links(),
            PhaseKind::NodeRemove => scene.suffixed(NODE),
            PhaseKind::SymlinkRemove => scene.suffixed(SYMLINKED),
            _ => scene.places(scene.renamed),
        };
        let op = Unlink { places };
        Ok(Box::new(ItemRunner::new(
            op,
            scene.fs.clone(),
            scene.visit(thread),
        )))
    },
};

struct Unlink {
    places: Places,
}

impl ItemOp for Unlink {
    fn prepare(&mut self, index: u64) {
        self.places.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.unlink(self.places.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Unlink
    }
}
