//! Listing the tree directories that have items, or items that were filled; a listing that misses
//! entries, or has some that nobody made, does not count as done.

use std::ffi::CStr;

use rbench_core::{OpKind, Progress};
use rbench_plan::meta::Layout;
use rbench_plan::tree::Shape;

use super::{ItemOp, OpContext, Places, Visit, Why, mismatch};
use crate::worker::Prepared;

/// Creates the runner of one worker.
pub fn make(scene: &OpContext, thread: u32) -> Prepared {
    match scene.info.entries {
        Some(entries) => {
            let op = List {
                places: scene.places(scene.renamed),
                of_tree: None,
                expected: Some(entries),
            };
            scene.runner(op, thread)
        }
        None => make_of_tree(scene, thread),
    }
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
    let items = scene.all_there.then_some(shape.items_per_node * sharers);
    let op = List {
        places: scene.places(false),
        of_tree: Some((shape, nodes.start, items)),
        expected: None,
    };
    let again = scene.phase.part.and_then(|part| part.again);
    let visit = Visit {
        first,
        count,
        visits: again.filter(|_| count > 0).unwrap_or(count),
        order: None,
        schedule: scene.schedule.clone(),
    };
    scene.one_at_a_time(op, visit)
}

struct List {
    places: Places,
    /// Directories of trees are listed: their shape, the first one, and the items in each, where
    /// it is known how many are there.
    of_tree: Option<(Shape, u64, Option<u64>)>,
    /// Entries of the directory at hand, where that is known.
    expected: Option<u64>,
}

impl ItemOp for List {
    fn op(&self) -> OpKind {
        OpKind::List
    }

    fn aim(&mut self, index: u64) {
        let Some((shape, first, items)) = &self.of_tree else {
            return self.places.item(index);
        };
        let node = first + index;
        self.places.node(node);
        self.expected = items.map(|items| items + shape.children(node));
    }

    fn paths(&self) -> (&CStr, &CStr) {
        (self.places.current(), c"")
    }

    fn settle(&mut self, _data: &mut [u8], progress: &Progress) -> Result<u64, Why> {
        let found = progress.answer();
        match self.expected {
            Some(expected) if found != expected => {
                mismatch(format!("{found} entries listed, {expected} expected"))
            }
            _ => Ok(0),
        }
    }
}
