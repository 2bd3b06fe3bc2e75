//! Making a node beside each file.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;

use super::{ItemOp, NODE, OpEntry, Places};

/// `mknodat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Mknod,
    make: |scene, thread| {
        let places = scene.suffixed(NODE);
        scene.runner(Mknod { places }, thread)
    },
};

struct Mknod {
    places: Places,
}

impl ItemOp for Mknod {
    fn prepare(&mut self, index: u64) {
        self.places.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.mknod(self.places.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Mknod
    }
}
