//! Operations that need only the item's name or open file: creating, removing, listing and looking up names,
//! reading and changing attributes. What was read is compared with what was made, where that is known.

use std::ffi::CStr;

use rbench_core::{OpKind, Progress};
use rbench_plan::meta::{ATTRIBUTES, Layout, PhaseKind, VALUE};
use rbench_plan::tree::Shape;

use super::places::Tree;
use super::{ItemOp, OpContext, Places, Visit, Why, mismatch};
use crate::worker::Prepared;

/// Creates the runner of one worker.
pub fn make(scene: &OpContext, thread: u32) -> Prepared {
    let (kind, info) = (scene.info.kind, scene.info);
    if info.op == OpKind::List && info.entries.is_none() {
        return list_trees(scene, thread);
    }
    let renamed = scene.renamed;
    let beside = |suffix| match suffix {
        "" => scene.places(renamed),
        suffix => scene.suffixed(suffix),
    };
    let path = match (info.beside, kind) {
        (Some(suffix), _) => beside(suffix),
        // The directories that `fill` created.
        (None, PhaseKind::DirResolve) if renamed => scene.suffixed(".r/a/b/c/d"),
        (None, PhaseKind::DirResolve) => scene.suffixed("/a/b/c/d"),
        (None, _) => scene.places(renamed && info.op != OpKind::Mkdir),
    };
    let last = |tree| (tree, scene.visit(thread).count.saturating_sub(1));
    let order = match (scene.tree(), info.op) {
        (Some(tree), OpKind::Rmdir) => Order::Up(last(tree)),
        (Some(tree), _) => Order::Down(tree),
        (None, _) => Order::Items,
    };
    // There is nothing to compare in a file system that stores nothing.
    let stores = scene.fs.directory().is_some();
    let (other, expects) = match info.op {
        OpKind::Readlink => (Some(scene.places(renamed)), Expects::Target { stores }),
        OpKind::Getxattr if stores => (None, Expects::Value),
        OpKind::Listxattr if stores && kind == PhaseKind::FileListxattr10 => {
            (None, Expects::Names(ATTRIBUTES.len()))
        }
        OpKind::Listxattr if stores => (None, Expects::Names(1)),
        OpKind::List => (None, Expects::Entries(info.entries)),
        _ => (info.other.map(beside), Expects::Nothing),
    };
    let op = Plain {
        op: info.op,
        path,
        other,
        order,
        expects,
    };
    scene.runner(op, thread)
}

/// Lists the tree directories that have items.
fn list_trees(scene: &OpContext, thread: u32) -> Prepared {
    let shape = scene.plan.shape;
    let nodes = shape.item_nodes();
    let number = nodes.end - nodes.start;
    // One tree of all ranks: its directories are spread over them.
    let ((first, count), sharers) = match scene.plan.layout {
        Layout::Unique => (scene.share(thread, number), 1),
        Layout::Shared => {
            let workers = u64::from(scene.ranks) * u64::from(scene.threads);
            let me = u64::from(scene.owner().0) * u64::from(scene.threads) + u64::from(thread);
            let part = |w: u64| (u128::from(number) * u128::from(w) / u128::from(workers)) as u64;
            let own = (part(me), part(me + 1) - part(me));
            (own, u64::from(scene.ranks))
        }
    };
    let items = scene.all_there.then_some(shape.items_per_node * sharers);
    let op = Plain {
        op: OpKind::List,
        path: scene.places(false),
        other: None,
        order: Order::Listed(shape, nodes.start, items),
        expects: Expects::Entries(None),
    };
    let again = scene.phase.part.and_then(|part| part.again);
    let visit = Visit {
        first,
        count,
        visits: again.filter(|_| count > 0).unwrap_or(count),
        order: None,
        schedule: scene.schedule.clone(),
    };
    scene.runner_over(op, thread, visit)
}

/// Directories or items, and the order of the visits.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// Items.
    Items,
    /// Directories of trees, each after its parent.
    Down(Tree),
    /// Directories of trees from the last index, given here, to the first.
    Up((Tree, u64)),
    /// Directories of trees of that shape from this one on, and the items in each, where it is known how
    /// many are there.
    Listed(Shape, u64, Option<u64>),
}

/// The expected result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    /// Nothing.
    Nothing,
    /// The item's attribute.
    Value,
    /// This many attributes.
    Names(usize),
    /// The item as the target of a link, unless the file system stores nothing.
    Target { stores: bool },
    /// This many entries, where that is known.
    Entries(Option<u64>),
}

struct Plain {
    op: OpKind,
    path: Places,
    /// The second path, or the item that a link leads to.
    other: Option<Places>,
    order: Order,
    expects: Expects,
}

/// Target of a link to `path` from the same directory: its last component.
pub fn target(path: &CStr) -> &CStr {
    let bytes = path.to_bytes_with_nul();
    let start = bytes
        .iter()
        .rposition(|b| *b == b'/')
        .map_or(0, |at| at + 1);
    CStr::from_bytes_with_nul(&bytes[start..]).unwrap_or(path)
}

/// Value of an item's attributes, which differs from that of every other item.
fn value(places: &Places) -> [u8; VALUE] {
    let identity = places.identity(0);
    let mut value = [0; VALUE];
    value[..8].copy_from_slice(&u64::from(identity.owner).to_le_bytes());
    value[8..].copy_from_slice(&identity.number.to_le_bytes());
    value
}

impl ItemOp for Plain {
    #[inline(always)]
    fn aim(&mut self, index: u64) {
        match self.order {
            Order::Items => self.path.item(index),
            Order::Down(_) => self.path.node(index),
            Order::Up((_, last)) => self.path.node(last - index),
            Order::Listed(shape, first, items) => {
                let node = first + index;
                self.path.node(node);
                let entries = items.map(|items| items + shape.children(node));
                self.expects = Expects::Entries(entries);
            }
        }
        if let Some(other) = &mut self.other {
            other.item(index);
        }
    }

    #[inline(always)]
    fn paths(&self) -> (&CStr, &CStr) {
        let other = match &self.other {
            None => c"",
            Some(item) if self.op == OpKind::Symlink => target(item.current()),
            Some(other) => other.current(),
        };
        (self.path.current(), other)
    }

    #[inline(always)]
    fn load(&mut self, data: &mut [u8]) {
        if self.op == OpKind::Setxattr {
            data.copy_from_slice(&value(&self.path));
        }
    }

    fn looks(&self) -> bool {
        matches!(
            self.expects,
            Expects::Value | Expects::Names(_) | Expects::Target { .. }
        )
    }

    #[inline(always)]
    fn settle(&mut self, data: &mut [u8], progress: &Progress) -> Result<u64, Why> {
        match self.expects {
            Expects::Nothing => Ok(0),
            _ => self.compare(data, progress.answer()).map(|()| 0),
        }
    }

    fn waits_for(&self, index: u64, other: u64) -> bool {
        match self.order {
            Order::Items | Order::Listed(..) => false,
            Order::Down(tree) => tree.is_in(index, other),
            Order::Up((tree, last)) => tree.is_in(last - other, last - index),
        }
    }
}

impl Plain {
    /// Compares the delivered data, whose length is `answer`.
    fn compare(&self, data: &[u8], answer: u64) -> Result<(), Why> {
        let length = answer as usize;
        let found = &data[..length.min(data.len())];
        match self.expects {
            Expects::Value if *found != value(&self.path) || found.len() < length => mismatch(
                format!("differs from the value that was set, of {length} bytes"),
            ),
            Expects::Names(expected) => {
                let ours = ATTRIBUTES[0].to_bytes();
                let names = found.split(|byte| *byte == 0);
                match names.filter(|name| name.starts_with(ours)).count() {
                    found if found == expected => Ok(()),
                    found => mismatch(format!("{found} attributes listed, {expected} expected")),
                }
            }
            Expects::Target { stores } => {
                let item = self.other.as_ref().map_or(c"", Places::current);
                let expected = target(item);
                if found == expected.to_bytes() || found.is_empty() && !stores {
                    return Ok(());
                }
                let (found, expected) =
                    (String::from_utf8_lossy(found), expected.to_string_lossy());
                mismatch(format!("points to '{found}', expected '{expected}'"))
            }
            Expects::Entries(Some(expected)) if answer != expected => {
                mismatch(format!("{answer} entries listed, {expected} expected"))
            }
            Expects::Nothing | Expects::Value | Expects::Entries(_) => Ok(()),
        }
    }
}

/// A runner of `operations` stats, over the items of one worker repeatedly.
pub(super) fn over_nothing(scene: &OpContext, operations: u64) -> Prepared {
    let op = Plain {
        op: OpKind::Stat,
        path: scene.places(false),
        other: None,
        order: Order::Items,
        expects: Expects::Nothing,
    };
    let mut visit = scene.visit(0);
    visit.count = visit.count.max(1);
    visit.visits = operations;
    scene.runner_over(op, 0, visit)
}

#[cfg(test)]
mod tests {
    use super::super::RENAMED;

    #[test]
    fn the_way_down_is_the_one_that_the_plan_makes() {
        let lowest = rbench_plan::meta::STEPS_DOWN.last();
        assert_eq!(lowest, Some(&"/a/b/c/d"));
        assert_eq!(format!("{RENAMED}/a/b/c/d"), ".r/a/b/c/d");
    }
}
