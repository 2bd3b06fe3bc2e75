//! Giving each item another name in the same directory.
//!
//! Natively every item gets a name of its own, so the workers do not depend
//! on each other and any order works. mdtest's chain keeps the set of names
//! and has to be walked in order, by one worker.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::Renaming;
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpEntry, Places};

/// What the first item of a chain is called meanwhile.
const ASIDE: &str = "-XX";

/// `renameat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Rename,
    make: |scene, thread| {
        let chain = scene.plan.renaming == Renaming::Chain;
        let op = Rename {
            from: scene.places(false),
            to: scene.places(!chain),
            chain,
        };
        Ok(Box::new(ItemRunner::new(
            op,
            scene.fs.clone(),
            scene.visit(thread),
        )))
    },
};

struct Rename {
    from: Places,
    to: Places,
    chain: bool,
}

impl Rename {
    fn prepare_chain(&mut self, index: u64) {
        let items = self.from.items_per_tree().max(1);
        let first = index - index % items;
        match index - first {
            0 => {
                self.from.item(first);
                self.to.item_as(first, ASIDE);
            }
            last if last == items - 1 => {
                self.from.item_as(first, ASIDE);
                self.to.item(first + last - 1);
            }
            _ => {
                self.from.item(index);
                self.to.item(index - 1);
            }
        }
    }
}

impl ItemOp for Rename {
    fn prepare(&mut self, index: u64) {
        if self.chain {
            self.prepare_chain(index);
        } else {
            self.from.item(index);
            self.to.item(index);
        }
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.rename(self.from.current(), self.to.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.from.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Rename
    }
}
