//! Reading the attributes of items.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;
use rbench_sys::engine::{NameRequest, NamesInFlight};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, ItemRunner, OpContext, OpEntry, Places};
use crate::worker::Prepared;

/// `fstatat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Stat,
    make: |scene, thread| {
        let op = Stat {
            places: scene.places(scene.renamed),
        };
        scene.ring_runner(op, thread)
    },
};

/// So many of them, over the items of one worker again and again.
pub(super) fn over_nothing(scene: &OpContext, operations: u64) -> Prepared {
    let op = Stat {
        places: scene.places(false),
    };
    let mut visit = scene.visit(0);
    visit.count = visit.count.max(1);
    visit.visits = operations;
    Ok(Box::new(ItemRunner::new(op, scene.fs.clone(), visit)))
}

struct Stat {
    places: Places,
}

impl ItemOp for Stat {
    fn prepare(&mut self, index: u64) {
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

impl RingOp for Stat {
    fn script(&self) -> Script {
        Script::of(&[NameRequest::Stat], 0)
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.places.current());
    }
}
