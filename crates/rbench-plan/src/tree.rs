//! The test tree: how many directories it has, which item lies where, and
//! the path of each, patched in place.
//!
//! Nodes are numbered like a heap: the children of d are d·b+1 … d·b+b. The
//! k-th item of a tree is number node·I + i, I items in each node.

use std::ffi::CStr;
use std::ops::Range;

use rbench_core::Rank;

/// The longest path the kernel takes, with its end (PATH_MAX).
pub const PATH_MAX: usize = 4096;

/// The shape of a tree and its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Children of each node, at least 1.
    pub branch: u64,
    /// Levels below the root.
    pub depth: u32,
    /// Items of each kind in each node that has items.
    pub items_per_node: u64,
    /// Items only in the nodes of the lowest level.
    pub leaf_only: bool,
}

impl Shape {
    /// Nodes of the tree, the root included: (b^(z+1) − 1)/(b − 1), or z+1
    /// when b is 1. `None` when that exceeds 2^62.
    pub fn nodes(&self) -> Option<u64> {
        let mut total = 1_u64;
        let mut level = 1_u64;
        if self.branch == 1 {
            return Some(u64::from(self.depth) + 1);
        }
        for _ in 0..self.depth {
            level = level.checked_mul(self.branch)?;
            total = total.checked_add(level).filter(|t| *t <= 1 << 62)?;
        }
        Some(total)
    }

    /// The nodes that have items.
    pub fn item_nodes(&self) -> Range<u64> {
        let nodes = self.nodes().unwrap_or(0);
        let leaves = self.branch.checked_pow(self.depth).unwrap_or(0);
        if self.leaf_only {
            nodes - leaves..nodes
        } else {
            0..nodes
        }
    }

    /// Items of each kind in the whole tree; `None` when that exceeds 2^62.
    pub fn items(&self) -> Option<u64> {
        self.nodes()?;
        let nodes = self.item_nodes();
        (nodes.end - nodes.start)
            .checked_mul(self.items_per_node)
            .filter(|t| *t <= 1 << 62)
    }

    /// Children of `node`.
    pub fn children(&self, node: u64) -> u64 {
        let first_leaf =
            self.nodes().unwrap_or(0) - self.branch.checked_pow(self.depth).unwrap_or(0);
        if node < first_leaf { self.branch } else { 0 }
    }
}

/// The words that names are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    /// Tree directories: `tree.<rank>.<node>`.
    pub tree: &'static str,
    /// Directories that are items: `dir.<rank>.<number>`.
    pub dir: &'static str,
    /// Files: `file.<rank>.<number>`.
    pub file: &'static str,
}

/// The names that the native commands use.
pub const NATIVE: Naming = Naming {
    tree: "tree",
    dir: "dir",
    file: "file",
};

/// Which kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A directory.
    Dir,
    /// A file.
    File,
}

/// Builds the paths of one owner's tree and items, without allocating after
/// the start.
#[derive(Debug, Clone)]
pub struct Paths {
    shape: Shape,
    naming: Naming,
    /// `Some` when the tree is private to its owner.
    tree_rank: Option<Rank>,
    item_stem: Vec<u8>,
    renamed: bool,
    /// Prefix, then the path of `node`, then the item's name, NUL.
    bytes: Vec<u8>,
    prefix: usize,
    /// End of the path of `node` within `bytes`.
    node_end: usize,
    node: Option<u64>,
    first_item_node: u64,
}

impl Paths {
    /// Paths below `prefix` (without a final slash; may be empty) for the
    /// items of `kind` that `owner` makes, in its private tree or the shared
    /// one. `renamed`: the names that the items have after the rename phase.
    pub fn new(
        shape: Shape,
        naming: Naming,
        prefix: &str,
        private: bool,
        owner: Rank,
        kind: ItemKind,
        renamed: bool,
    ) -> Paths {
        let word = match kind {
            ItemKind::Dir => naming.dir,
            ItemKind::File => naming.file,
        };
        let mut bytes = Vec::with_capacity(PATH_MAX);
        bytes.extend_from_slice(prefix.as_bytes());
        if !prefix.is_empty() {
            bytes.push(b'/');
        }
        Paths {
            shape,
            naming,
            tree_rank: private.then_some(owner),
            item_stem: format!("/{word}.{owner}.").into_bytes(),
            renamed,
            prefix: bytes.len(),
            node_end: bytes.len(),
            bytes,
            node: None,
            first_item_node: shape.item_nodes().start,
        }
    }

    fn push_node_name(&mut self, node: u64) {
        self.bytes.extend_from_slice(self.naming.tree.as_bytes());
        if let Some(rank) = self.tree_rank {
            self.bytes.push(b'.');
            push_decimal(&mut self.bytes, u64::from(rank.0));
        }
        self.bytes.push(b'.');
        push_decimal(&mut self.bytes, node);
    }

    fn push_node(&mut self, node: u64) {
        if node > 0 {
            self.push_node((node - 1) / self.shape.branch);
            self.bytes.push(b'/');
        }
        self.push_node_name(node);
    }

    fn enter(&mut self, node: u64) {
        if self.node != Some(node) {
            self.bytes.truncate(self.prefix);
            self.push_node(node);
            self.node_end = self.bytes.len();
            self.node = Some(node);
        }
        self.bytes.truncate(self.node_end);
    }

    /// The path of a node.
    pub fn node(&mut self, node: u64) -> &CStr {
        self.enter(node);
        self.finish()
    }

    /// The path of the `index`-th item (from 0) of the tree.
    #[inline]
    pub fn item(&mut self, index: u64) -> &CStr {
        let per_node = self.shape.items_per_node.max(1);
        let node = self.first_item_node + index / per_node;
        self.enter(node);
        self.bytes.extend_from_slice(&self.item_stem);
        push_decimal(&mut self.bytes, node * per_node + index % per_node);
        if self.renamed {
            self.bytes.extend_from_slice(b".r");
        }
        self.finish()
    }

    #[inline]
    fn finish(&mut self) -> &CStr {
        self.bytes.push(0);
        self.current()
    }

    /// The path that was built last; empty before the first.
    #[inline]
    pub fn current(&self) -> &CStr {
        // No part of a path holds a NUL: words are ours, the rest is digits.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// Appends `n` in decimal.
#[inline]
fn push_decimal(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(branch: u64, depth: u32, items_per_node: u64) -> Shape {
        Shape {
            branch,
            depth,
            items_per_node,
            leaf_only: false,
        }
    }

    #[test]
    fn nodes_are_those_of_a_full_tree() {
        let check = |b, z, expect| assert_eq!(shape(b, z, 1).nodes(), expect, "b={b} z={z}");
        check(3, 1, Some(4));
        check(1, 0, Some(1));
        check(1, 7, Some(8));
        check(2, 3, Some(15));
        check(10, 5, Some(111_111));
        check(1000, 30, None);
    }

    #[test]
    fn with_leaf_only_the_items_start_behind_the_inner_nodes() {
        let leafy = Shape {
            leaf_only: true,
            ..shape(2, 2, 2)
        };
        assert_eq!(leafy.item_nodes(), 3..7);
        assert_eq!(leafy.items(), Some(8));
        let mut paths = Paths::new(leafy, NATIVE, "", true, Rank(0), ItemKind::File, false);
        assert_eq!(paths.item(0), c"tree.0.0/tree.0.1/tree.0.3/file.0.6");
        assert_eq!(paths.item(7), c"tree.0.0/tree.0.2/tree.0.6/file.0.13");
    }

    #[test]
    fn paths_name_tree_owner_and_number() {
        let mut private = Paths::new(
            shape(3, 1, 100),
            NATIVE,
            "0",
            true,
            Rank(7),
            ItemKind::Dir,
            false,
        );
        assert_eq!(private.node(0), c"0/tree.7.0");
        assert_eq!(private.item(0), c"0/tree.7.0/dir.7.0");
        assert_eq!(private.item(399), c"0/tree.7.0/tree.7.3/dir.7.399");
        assert_eq!(private.item(99), c"0/tree.7.0/dir.7.99");
        assert_eq!(private.node(2), c"0/tree.7.0/tree.7.2");
        let mut shared = Paths::new(
            shape(3, 1, 100),
            NATIVE,
            "",
            false,
            Rank(7),
            ItemKind::File,
            true,
        );
        assert_eq!(shared.item(100), c"tree.0/tree.1/file.7.100.r");
    }

    #[test]
    fn only_inner_nodes_have_children() {
        let s = shape(3, 2, 1);
        assert_eq!((s.children(0), s.children(3), s.children(4)), (3, 3, 0));
        assert_eq!(shape(1, 0, 1).children(0), 0);
    }
}
