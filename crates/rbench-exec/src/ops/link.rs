//! Giving each file a hard link in the same directory.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;
use rbench_sys::engine::{NameRequest, NamesInFlight};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, OpEntry, Places};

/// `linkat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Link,
    make: |scene, thread| {
        let op = Link {
            from: scene.places(scene.renamed),
            to: scene.links(),
        };
        scene.ring_runner(op, thread)
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

impl RingOp for Link {
    fn script(&self) -> Script {
        Script::of(&[NameRequest::Link], 0)
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.from.current());
        ring.set_other(slot, self.to.current());
    }
}
