//! Paths of the items and directories of a phase, by their index.

use std::ffi::CStr;

use rbench_core::Rank;
use rbench_plan::tree::Paths;

use crate::content::Identity;

/// The paths of a phase by the index of what a worker visits: of one owner's
/// trees, or of all owners' one after the other.
pub struct Places {
    paths: Paths,
    /// Indices of each owner, where a worker visits those of all.
    of_each: Option<u64>,
    /// Index among the owner's.
    number: u64,
    /// All ranks have the items in common.
    common: bool,
}

impl Places {
    /// Places of `paths`; with `of_each` those of all owners, this many of each. `common`: all
    /// ranks have the items in common.
    pub fn new(paths: Paths, of_each: Option<u64>, common: bool) -> Places {
        Places {
            paths,
            of_each,
            number: 0,
            common,
        }
    }

    #[inline]
    fn turn(&mut self, index: u64) {
        self.number = index;
        if let Some(of_each) = self.of_each {
            self.paths.set_owner(Rank((index / of_each) as u32));
            self.number = index % of_each;
        }
    }

    /// Aims at the item with that index.
    #[inline]
    pub fn item(&mut self, index: u64) {
        self.turn(index);
        self.paths.item(self.number);
    }

    /// Like [`Places::item`], with `suffix` after its name.
    pub fn item_as(&mut self, index: u64, suffix: &str) {
        self.turn(index);
        self.paths.item_as(self.number, suffix);
    }

    /// Aims at the tree directory with that index.
    pub fn node(&mut self, index: u64) {
        self.turn(index);
        self.paths.node(self.number);
    }

    /// The prepared path.
    #[inline]
    pub fn current(&self) -> &CStr {
        self.paths.current()
    }

    /// The prepared path, for messages.
    pub fn to_text(&self) -> String {
        self.current().to_string_lossy().into_owned()
    }

    /// Items of one tree.
    pub fn items_per_tree(&self) -> u64 {
        self.paths.items_per_tree()
    }

    /// Identity of the prepared item's content.
    pub fn identity(&self, seed: i32) -> Identity {
        let owner = if self.common { 0 } else { self.paths.owner().0 };
        let (tree, number) = self.paths.number_in_name(self.number);
        Identity {
            seed,
            owner,
            tree,
            number,
        }
    }
}

/// The directories of consecutive trees, with their dependencies.
#[derive(Debug, Clone, Copy)]
pub struct Tree {
    /// Directories of each.
    pub nodes: u64,
    /// Children of each directory.
    pub branch: u64,
}

impl Tree {
    /// Returns true if the directory with the index `child` lies in that with the index `parent`.
    pub fn is_in(self, child: u64, parent: u64) -> bool {
        let nodes = self.nodes.max(1);
        let (child, tree) = (child % nodes, child / nodes);
        tree == parent / nodes && child > 0 && (child - 1) / self.branch.max(1) == parent % nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_lies_in_one_of_its_own_tree() {
        let tree = Tree {
            nodes: 13,
            branch: 3,
        };
        let parents = |child| {
            (0..39)
                .filter(|parent| tree.is_in(child, *parent))
                .collect::<Vec<u64>>()
        };
        for (child, expect) in [
            (0, vec![]),
            (1, vec![0]),
            (3, vec![0]),
            (4, vec![1]),
            (12, vec![3]),
            (13, vec![]),
            (14, vec![13]),
            (38, vec![29]),
        ] {
            assert_eq!(parents(child), expect, "{child}");
        }
    }
}
