//! Removing files, or the links to them and nodes beside them.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::PhaseKind;
use rbench_sys::Fs;
use rbench_sys::engine::{NameRequest, NamesInFlight};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, NODE, OpEntry, Places, SYMLINKED};

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
        scene.ring_runner(op, thread)
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

impl RingOp for Unlink {
    fn script(&self) -> Script {
        Script::of(&[NameRequest::Unlink], 0)
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.places.current());
    }
}
