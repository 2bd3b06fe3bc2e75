//! Operations that need only the item's name or open file: creating and removing names, reading and
//! changing attributes.

use std::ffi::CStr;

use rbench_core::{OpKind, Progress};
use rbench_plan::meta::{ATTRIBUTES, PhaseKind, VALUE};

use super::places::Tree;
use super::{ItemOp, OpContext, Places, Why, mismatch};
use crate::worker::Prepared;

/// Creates the runner of one worker.
pub fn make(scene: &OpContext, thread: u32) -> Prepared {
    let (kind, renamed) = (scene.info.kind, scene.renamed);
    let way_down = || scene.suffixed(if renamed { ".r/a/b/c/d" } else { "/a/b/c/d" });
    let beside = |suffix| match suffix {
        "" => scene.places(renamed),
        suffix => scene.suffixed(suffix),
    };
    let path = match (scene.info.beside, kind) {
        (Some(suffix), _) => beside(suffix),
        // The directories that `fill` created.
        (None, PhaseKind::DirResolve) => way_down(),
        (None, _) => scene.places(renamed && scene.info.op != OpKind::Mkdir),
    };
    let tree = scene.tree();
    let last = |tree| (tree, scene.visit(thread).count.saturating_sub(1));
    let order = match (tree, scene.info.op) {
        (Some(tree), OpKind::Rmdir) => Order::Up(last(tree)),
        (Some(tree), _) => Order::Down(tree),
        (None, _) => Order::Items,
    };
    let op = Plain {
        op: scene.info.op,
        path,
        other: scene.info.other.map(beside),
        order,
        compares: matches!(scene.info.op, OpKind::Getxattr | OpKind::Listxattr)
            && scene.fs.directory().is_some(),
        listed: match kind {
            PhaseKind::FileListxattr10 => ATTRIBUTES.len(),
            _ => 1,
        },
    };
    scene.runner(op, thread)
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
}

struct Plain {
    op: OpKind,
    path: Places,
    /// The second path.
    other: Option<Places>,
    order: Order,
    /// True if what was read of attributes is compared; there is nothing to compare in a file
    /// system that stores nothing.
    compares: bool,
    /// Number of the item's attributes.
    listed: usize,
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

impl Plain {
    fn check_value(&self, found: &[u8], length: usize) -> Result<(), Why> {
        if found.get(..length) == Some(&value(&self.path)[..]) {
            return Ok(());
        }
        mismatch(format!(
            "differs from the value that was set, of {length} bytes"
        ))
    }

    fn check_list(&self, list: &[u8]) -> Result<(), Why> {
        let ours = ATTRIBUTES[0].to_bytes();
        let names = list.split(|byte| *byte == 0);
        let found = names.filter(|name| name.starts_with(ours)).count();
        if found == self.listed {
            return Ok(());
        }
        mismatch(format!(
            "{found} attributes listed, {} expected",
            self.listed
        ))
    }
}

impl ItemOp for Plain {
    #[inline(always)]
    fn op(&self) -> OpKind {
        self.op
    }

    #[inline(always)]
    fn aim(&mut self, index: u64) {
        match self.order {
            Order::Items => self.path.item(index),
            Order::Down(_) => self.path.node(index),
            Order::Up((_, last)) => self.path.node(last - index),
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
        self.compares
    }

    #[inline(always)]
    fn settle(&mut self, data: &mut [u8], progress: &Progress) -> Result<u64, Why> {
        if self.compares {
            let length = progress.answer() as usize;
            match self.op {
                OpKind::Getxattr => self.check_value(data, length)?,
                _ => self.check_list(&data[..length.min(data.len())])?,
            }
        }
        Ok(0)
    }

    fn waits_for(&self, index: u64, other: u64) -> bool {
        match self.order {
            Order::Items => false,
            Order::Down(tree) => tree.is_in(index, other),
            Order::Up((tree, last)) => tree.is_in(last - other, last - index),
        }
    }
}

/// Creates the runner of one worker that reads the targets of symbolic links.
pub fn make_readlink(scene: &OpContext, thread: u32) -> Prepared {
    let op = Readlink {
        link: scene.suffixed(scene.info.beside.unwrap_or_default()),
        item: scene.places(scene.renamed),
        nothing_behind: scene.fs.directory().is_none(),
    };
    scene.runner(op, thread)
}

struct Readlink {
    link: Places,
    item: Places,
    /// True for a file system that stores nothing.
    nothing_behind: bool,
}

impl ItemOp for Readlink {
    fn op(&self) -> OpKind {
        OpKind::Readlink
    }

    fn aim(&mut self, index: u64) {
        self.item.item(index);
        self.link.item(index);
    }

    fn paths(&self) -> (&CStr, &CStr) {
        (self.link.current(), c"")
    }

    fn looks(&self) -> bool {
        true
    }

    fn settle(&mut self, data: &mut [u8], progress: &Progress) -> Result<u64, Why> {
        let found = &data[..(progress.answer() as usize).min(data.len())];
        let expected = target(self.item.current());
        if found == expected.to_bytes() || found.is_empty() && self.nothing_behind {
            return Ok(0);
        }
        let (found, expected) = (String::from_utf8_lossy(found), expected.to_string_lossy());
        mismatch(format!("points to '{found}', expected '{expected}'"))
    }
}

/// A runner of `operations` stats, over the items of one worker repeatedly.
pub(super) fn over_nothing(scene: &OpContext, operations: u64) -> Prepared {
    let op = Plain {
        op: OpKind::Stat,
        path: scene.places(false),
        other: None,
        order: Order::Items,
        compares: false,
        listed: 0,
    };
    let mut visit = scene.visit(0);
    visit.count = visit.count.max(1);
    visit.visits = operations;
    scene.one_at_a_time(op, visit)
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
