//! Listing the tree directories that have items, or items that were filled; a listing that misses
//! entries, or has some that nobody made, does not count as done.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::Layout;
use rbench_plan::tree::Shape;
use rbench_sys::Fs;

use super::{ItemOp, ItemRunner, OpContext, OpEntry, Places, Visit};
use crate::worker::Prepared;

/// Room for entries of one `getdents64`: what libc takes.
const BUFFER: usize = 32 << 10;

/// `openat`, `getdents64` to the end, `close`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::List,
    make,
};

fn make(scene: &OpContext, thread: u32) -> Prepared {
    match scene.info.kind.entries() {
        Some(entries) => {
            let op = ListItem {
                places: scene.places(scene.renamed),
                entries,
                found: 0,
                buffer: vec![0; BUFFER],
            };
            scene.runner(op, thread)
        }
        None => make_of_tree(scene, thread),
    }
}

/// Lists directories that are items.
struct ListItem {
    places: Places,
    /// So many are in each.
    entries: u64,
    found: u64,
    buffer: Vec<u8>,
}

fn make_of_tree(scene: &OpContext, thread: u32) -> Prepared {
    let shape = scene.plan.shape;
    let nodes = shape.item_nodes();
    // One tree of all ranks: its directories are spread over them.
    let (first, count) = match scene.plan.layout {
        Layout::Unique => scene.share(thread, nodes.end - nodes.start),
        Layout::Shared => {
            let workers = u64::from(scene.ranks) * u64::from(scene.threads);
            let me = u64::from(scene.owner().0) * u64::from(scene.threads) + u64::from(thread);
            let part = |w: u64| {
                (u128::from(nodes.end - nodes.start) * u128::from(w) / u128::from(workers)) as u64
            };
            (part(me), part(me + 1) - part(me))
        }
    };
    let sharers = if scene.plan.layout == Layout::Shared {
        u64::from(scene.ranks)
    } else {
        1
    };
    let op = List {
        places: scene.places(false),
        shape,
        first_node: nodes.start,
        items_per_node: scene.all_there.then_some(shape.items_per_node * sharers),
        node: 0,
        found: 0,
        buffer: vec![0; BUFFER],
    };
    let again = scene.phase.part.and_then(|part| part.again);
    let visit = Visit {
        first,
        count,
        visits: again.filter(|_| count > 0).unwrap_or(count),
        order: None,
        schedule: scene.schedule.clone(),
    };
    Ok(Box::new(ItemRunner::new(op, scene.fs.clone(), visit)))
}

struct List {
    places: Places,
    shape: Shape,
    first_node: u64,
    /// `None` when it is not known how many are there.
    items_per_node: Option<u64>,
    node: u64,
    found: u64,
    buffer: Vec<u8>,
}

/// What a listing of `found` entries is where so many are there.
fn judge(found: u64, expected: u64) -> Result<(), (FailureKind, String)> {
    if found == expected {
        return Ok(());
    }
    Err((
        FailureKind::Mismatch,
        format!("{found} entries listed, {expected} expected"),
    ))
}

impl ItemOp for ListItem {
    fn prepare(&mut self, index: u64) {
        self.places.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        self.found = fs.list(self.places.current(), &mut self.buffer)?;
        Ok(0)
    }

    fn check(&mut self, _fs: &dyn Fs) -> Result<(), (FailureKind, String)> {
        judge(self.found, self.entries)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::List
    }
}

impl ItemOp for List {
    fn prepare(&mut self, index: u64) {
        self.node = self.first_node + index;
        self.places.node(self.node);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        self.found = fs.list(self.places.current(), &mut self.buffer)?;
        Ok(0)
    }

    fn check(&mut self, _fs: &dyn Fs) -> Result<(), (FailureKind, String)> {
        let Some(items) = self.items_per_node else {
            return Ok(());
        };
        judge(self.found, items + self.shape.children(self.node))
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::List
    }
}
