//! The test tree: its number of directories, the positions of items, and their paths,
//! patched in place.
//!
//! Nodes are numbered like a heap: the children of d are d·b+1 … d·b+b. With I items
//! in each node, the i-th item of a node has number node·I + i.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;

use rbench_core::Rank;
pub use rbench_core::operations::ItemKind;

/// The longest path that the kernel accepts, with its terminating NUL (PATH_MAX).
pub const PATH_MAX: usize = 4096;

/// The shape of a tree and its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Children of each node, at least 1.
    pub branch: u64,
    /// Levels below the root.
    pub depth: u32,
    /// Items of each kind in each node that has items.
    pub items_per_node: u64,
    /// True if only the nodes of the lowest level have items.
    pub leaf_only: bool,
}

impl Shape {
    /// A single directory with this number of items of each kind.
    pub fn flat(items: u64) -> Shape {
        Shape {
            branch: 1,
            items_per_node: items,
            ..Shape::default()
        }
    }

    /// Number of nodes, including the root: (b^(z+1) − 1)/(b − 1), or z+1 if b is 1.
    /// `None` if it exceeds 2^62.
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

    /// Items of each kind in the whole tree; `None` if it exceeds 2^62.
    pub fn items(&self) -> Option<u64> {
        self.nodes()?;
        self.places()
            .checked_mul(self.items_per_node)
            .filter(|t| *t <= 1 << 62)
    }

    /// Number of nodes that have items.
    pub fn places(&self) -> u64 {
        let nodes = self.item_nodes();
        nodes.end - nodes.start
    }

    /// Number of children of `node`.
    pub fn children(&self, node: u64) -> u64 {
        let first_leaf =
            self.nodes().unwrap_or(0) - self.branch.checked_pow(self.depth).unwrap_or(0);
        if node < first_leaf { self.branch } else { 0 }
    }
}

/// Words of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Naming {
    /// Tree directories: `tree.<rank>.<node>`, without the rank if the tree is
    /// shared.
    pub tree: &'static str,
    /// Directories that are items: `dir.<rank>.<number>`.
    pub dir: &'static str,
    /// Files: `file.<rank>.<number>`.
    pub file: &'static str,
    /// Replacement for the rank in the names of items, which all ranks then have in
    /// common.
    pub common: Option<&'static str>,
}

/// The names that the native commands use.
pub const NATIVE: Naming = Naming {
    tree: "tree",
    dir: "dir",
    file: "file",
    common: None,
};

/// The names that mdtest uses.
pub const MDTEST: Naming = Naming {
    tree: "mdtest_tree",
    dir: "dir.mdtest",
    file: "file.mdtest",
    common: None,
};

/// Private trees, one for each rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Private {
    /// The items of rank r lie in the tree of rank (r + ahead) modulo `ranks`.
    pub ahead: u32,
    /// Number of ranks.
    pub ranks: u32,
}

/// All trees of a pass, from which paths are built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forest {
    /// Shape of each tree.
    pub shape: Shape,
    /// The words of names.
    pub naming: Naming,
    /// The trees of rank r lie below number r modulo their count, without a final
    /// slash; may be empty.
    pub prefixes: Vec<String>,
    /// Number of trees of each owner, if numbered: their directories are the prefix
    /// followed by the tree's number, from 0.
    pub numbered: Option<u64>,
    /// Private trees; `None` for one tree of all ranks.
    pub private: Option<Private>,
}

/// Builder of the paths of trees and items; it only allocates at the start.
#[derive(Debug, Clone)]
pub struct Paths {
    forest: Arc<Forest>,
    word: &'static str,
    /// Suffix of every item's name.
    suffix: &'static str,
    owner: Rank,
    items_per_tree: u64,
    nodes: u64,
    first_item_node: u64,
    /// The path of `node` of `tree`, then the item's name, NUL.
    bytes: Vec<u8>,
    /// End of the tree's directory within `bytes`, including its slash.
    tree_end: usize,
    /// End of the path of `node` within `bytes`.
    node_end: usize,
    tree: Option<u64>,
    node: Option<u64>,
    /// The text `/<word>.<owner>.`
    item_stem: Vec<u8>,
    /// The last item, if the path is its own.
    last: Option<Last>,
}

/// An item whose name is incremented to that of the next one.
#[derive(Debug, Clone, Copy)]
struct Last {
    index: u64,
    /// Number of later items in the same node.
    left: u64,
    /// Range of the decimal digits of its number in the path.
    digits: (usize, usize),
}

/// Increments a decimal number. Returns false if it needs another digit: all of them
/// are then 0.
#[inline]
fn count_up(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return true;
        }
        *digit = b'0';
    }
    false
}

impl Paths {
    /// Creates the paths of `owner`'s trees in `forest`, and of their items of
    /// `kind`.
    pub fn new(forest: Arc<Forest>, owner: Rank, kind: ItemKind) -> Paths {
        let word = match kind {
            ItemKind::Dir => forest.naming.dir,
            ItemKind::File => forest.naming.file,
        };
        let shape = &forest.shape;
        let mut paths = Paths {
            word,
            suffix: "",
            owner,
            items_per_tree: shape.places() * shape.items_per_node,
            nodes: shape.nodes().unwrap_or(1),
            first_item_node: shape.item_nodes().start,
            bytes: Vec::with_capacity(PATH_MAX),
            tree_end: 0,
            node_end: 0,
            tree: None,
            node: None,
            item_stem: Vec::with_capacity(64),
            last: None,
            forest,
        };
        paths.belong_to(owner);
        paths
    }

    /// Adds `suffix` after every item's name.
    pub fn suffixed(self, suffix: &'static str) -> Paths {
        Paths {
            suffix,
            last: None,
            ..self
        }
    }

    /// Switches to the trees of another owner.
    #[inline]
    pub fn set_owner(&mut self, owner: Rank) {
        if self.owner != owner {
            self.belong_to(owner);
        }
    }

    fn belong_to(&mut self, owner: Rank) {
        self.owner = owner;
        self.tree = None;
        self.node = None;
        self.last = None;
        self.item_stem.clear();
        self.item_stem.push(b'/');
        self.item_stem.extend_from_slice(self.word.as_bytes());
        self.item_stem.push(b'.');
        match self.forest.naming.common {
            Some(word) => self.item_stem.extend_from_slice(word.as_bytes()),
            None => push_decimal(&mut self.item_stem, u64::from(owner.0)),
        }
        self.item_stem.push(b'.');
    }

    fn push_node_name(&mut self, node: u64) {
        self.bytes
            .extend_from_slice(self.forest.naming.tree.as_bytes());
        if let Some(Private { ahead, ranks }) = self.forest.private {
            let tree_rank = (u64::from(self.owner.0) + u64::from(ahead)) % u64::from(ranks.max(1));
            self.bytes.push(b'.');
            push_decimal(&mut self.bytes, tree_rank);
        }
        self.bytes.push(b'.');
        push_decimal(&mut self.bytes, node);
    }

    fn push_node(&mut self, node: u64) {
        if node > 0 {
            self.push_node((node - 1) / self.forest.shape.branch);
            self.bytes.push(b'/');
        }
        self.push_node_name(node);
    }

    fn enter_tree(&mut self, tree: u64) {
        let count = self.forest.prefixes.len().max(1);
        let prefix = self.forest.prefixes.get(self.owner.0 as usize % count);
        self.bytes.clear();
        let prefix = prefix.map_or(&b""[..], |p| p.as_bytes());
        let end = prefix.iter().position(|b| *b == 0);
        self.bytes
            .extend_from_slice(&prefix[..end.unwrap_or(prefix.len())]);
        if self.forest.numbered.is_some() {
            push_decimal(&mut self.bytes, tree);
        }
        if !self.bytes.is_empty() {
            self.bytes.push(b'/');
        }
        self.tree_end = self.bytes.len();
        self.tree = Some(tree);
        self.node = None;
    }

    fn enter(&mut self, tree: u64, node: u64) {
        if self.tree != Some(tree) {
            self.enter_tree(tree);
        }
        if self.node != Some(node) {
            self.bytes.truncate(self.tree_end);
            self.push_node(node);
            self.node_end = self.bytes.len();
            self.node = Some(node);
        }
        self.bytes.truncate(self.node_end);
    }

    /// The path of the `index`-th node (from 0) of the owner's trees.
    pub fn node(&mut self, index: u64) -> &CStr {
        let (tree, node) = self.split(index, self.nodes);
        self.last = None;
        self.enter(tree, node);
        self.finish()
    }

    /// The path of the `index`-th item (from 0) of the owner's trees.
    #[inline]
    pub fn item(&mut self, index: u64) -> &CStr {
        // Most items are visited in order.
        if let Some(last) = &mut self.last
            && last.left > 0
            && index == last.index + 1
        {
            last.index = index;
            last.left -= 1;
            let (start, end) = last.digits;
            if count_up(&mut self.bytes[start..end]) {
                return self.current();
            }
        }
        self.item_anew(index)
    }

    fn item_anew(&mut self, index: u64) -> &CStr {
        self.item_as(index, self.suffix);
        let (_, place) = self.split(index, self.items_per_tree);
        let per_node = self.forest.shape.items_per_node.max(1);
        self.last = Some(Last {
            index,
            left: per_node - 1 - place % per_node,
            digits: (
                self.node_end + self.item_stem.len(),
                // The suffix and the end of the string.
                self.bytes.len() - self.suffix.len() - 1,
            ),
        });
        self.current()
    }

    /// The path of an item with another suffix, only for this call.
    #[inline]
    pub fn item_as(&mut self, index: u64, suffix: &str) -> &CStr {
        self.last = None;
        let (tree, place) = self.split(index, self.items_per_tree);
        let per_node = self.forest.shape.items_per_node.max(1);
        let node = self.first_item_node + place / per_node;
        self.enter(tree, node);
        self.bytes.extend_from_slice(&self.item_stem);
        push_decimal(&mut self.bytes, node * per_node + place % per_node);
        self.bytes.extend_from_slice(suffix.as_bytes());
        self.finish()
    }

    /// The number in the name of the item with that index, and of its tree.
    pub fn number_in_name(&self, index: u64) -> (u64, u64) {
        let (tree, place) = self.split(index, self.items_per_tree);
        let per_node = self.forest.shape.items_per_node.max(1);
        (tree, self.first_item_node * per_node + place)
    }

    /// The tree, and the index in it.
    #[inline]
    fn split(&self, index: u64, per_tree: u64) -> (u64, u64) {
        match self.forest.numbered {
            Some(trees) if trees > 1 => (index / per_tree.max(1), index % per_tree.max(1)),
            _ => (0, index),
        }
    }

    /// Items of one tree.
    pub fn items_per_tree(&self) -> u64 {
        self.items_per_tree
    }

    /// The owner of the trees.
    pub fn owner(&self) -> Rank {
        self.owner
    }

    #[inline]
    fn finish(&mut self) -> &CStr {
        self.bytes.push(0);
        self.current()
    }

    /// The last path that was built; empty before the first.
    #[inline]
    pub fn current(&self) -> &CStr {
        match self.bytes.last() {
            // SAFETY: `finish` has put the only NUL at the end. Words are constants
            // without NUL. The rest is digits and a prefix that `enter_tree` has cut
            // off at its first NUL.
            Some(0) => unsafe { CStr::from_bytes_with_nul_unchecked(&self.bytes) },
            _ => c"",
        }
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

    fn forest(shape: Shape, prefix: &str, ahead: Option<u32>) -> Arc<Forest> {
        Arc::new(Forest {
            shape,
            naming: NATIVE,
            prefixes: vec![prefix.to_owned()],
            numbered: None,
            private: ahead.map(|ahead| Private { ahead, ranks: 64 }),
        })
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
        let mut paths = Paths::new(forest(leafy, "", Some(0)), Rank(0), ItemKind::File);
        assert_eq!(paths.item(0), c"tree.0.0/tree.0.1/tree.0.3/file.0.6");
        assert_eq!(paths.item(7), c"tree.0.0/tree.0.2/tree.0.6/file.0.13");
    }

    #[test]
    fn paths_name_tree_owner_and_number() {
        let s = shape(3, 1, 100);
        let mut private = Paths::new(forest(s, "0", Some(0)), Rank(7), ItemKind::Dir);
        assert_eq!(private.node(0), c"0/tree.7.0");
        assert_eq!(private.item(0), c"0/tree.7.0/dir.7.0");
        assert_eq!(private.item(399), c"0/tree.7.0/tree.7.3/dir.7.399");
        assert_eq!(private.item(99), c"0/tree.7.0/dir.7.99");
        assert_eq!(private.node(2), c"0/tree.7.0/tree.7.2");
        private.set_owner(Rank(11));
        assert_eq!(private.item(99), c"0/tree.11.0/dir.11.99");
        let mut shared = Paths::new(forest(s, "", None), Rank(7), ItemKind::File).suffixed(".r");
        assert_eq!(shared.item(100), c"tree.0/tree.1/file.7.100.r");
        assert_eq!(shared.item_as(100, "-XX"), c"tree.0/tree.1/file.7.100-XX");
    }

    #[test]
    fn numbered_trees_lie_in_directories_of_their_own() {
        let numbered = Forest {
            naming: MDTEST,
            prefixes: vec!["/a/test-dir.2-".to_owned(), "/b/test-dir.2-".to_owned()],
            numbered: Some(3),
            private: Some(Private {
                ahead: 4,
                ranks: 12,
            }),
            ..(*forest(shape(2, 1, 2), "", Some(0))).clone()
        };
        let mut paths = Paths::new(Arc::new(numbered), Rank(9), ItemKind::File);
        let node = c"/b/test-dir.2-1/mdtest_tree.1.0/mdtest_tree.1.1";
        assert_eq!(paths.node(4), node);
        let item = c"/b/test-dir.2-0/mdtest_tree.1.0/file.mdtest.9.0";
        assert_eq!(paths.item(0), item);
        let item = c"/b/test-dir.2-1/mdtest_tree.1.0/mdtest_tree.1.2/file.mdtest.9.5";
        assert_eq!(paths.item(6 + 5), item);
        paths.set_owner(Rank(0));
        let item = c"/a/test-dir.2-2/mdtest_tree.4.0/file.mdtest.0.0";
        assert_eq!(paths.item(12), item);
    }

    #[test]
    fn counting_up_gives_the_paths_that_are_built_anew() {
        let numbered = Forest {
            numbered: Some(3),
            ..(*forest(shape(2, 1, 45), "p", Some(0))).clone()
        };
        for forest in [
            forest(shape(2, 1, 45), "0", Some(0)),
            forest(shape(1, 0, 1200), "", None),
            Arc::new(numbered),
        ] {
            for suffix in ["", ".r"] {
                let new =
                    || Paths::new(Arc::clone(&forest), Rank(9), ItemKind::File).suffixed(suffix);
                let mut counted = new();
                let items = counted.items_per_tree() * forest.numbered.unwrap_or(1);
                for index in 0..items {
                    assert_eq!(counted.item(index), new().item(index));
                }
                // Other paths in between do not disturb it.
                for index in [3, 4, 4, 5, 9, 10] {
                    assert_eq!(counted.item(index), new().item(index));
                    counted.item_as(index, "-XX");
                    assert_eq!(counted.item(index + 1), new().item(index + 1));
                    counted.node(0);
                }
            }
        }
    }

    #[test]
    fn a_prefix_ends_at_a_nul() {
        let mut paths = Paths::new(forest(shape(1, 0, 1), "a\0b", None), Rank(0), ItemKind::Dir);
        assert_eq!(paths.current(), c"");
        assert_eq!(paths.item(0), c"a/tree.0/dir.0.0");
    }

    #[test]
    fn only_inner_nodes_have_children() {
        let s = shape(3, 2, 1);
        assert_eq!((s.children(0), s.children(3), s.children(4)), (3, 3, 0));
        assert_eq!(shape(1, 0, 1).children(0), 0);
    }
}
