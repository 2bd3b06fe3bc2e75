//! The metadata workload: its phases, and what each works on.

use rbench_core::{Bytes, Nanos, OpKind};

use crate::tree::{ItemKind, Naming, Shape};

/// Who owns the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// A private tree for each rank.
    #[default]
    Unique,
    /// One tree, made by rank 0; every rank has its items in each node.
    Shared,
}

/// The kinds of phases, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhaseKind {
    /// Make the directories of the tree.
    TreeCreate,
    /// Make the directories that are items.
    DirCreate,
    /// Stat each.
    DirStat,
    /// Rename each within its directory.
    DirRename,
    /// List each tree directory that has items.
    DirList,
    /// Remove each.
    DirRemove,
    /// Make the files.
    FileCreate,
    /// Stat each.
    FileStat,
    /// Open, read and close each.
    FileRead,
    /// Rename each within its directory.
    FileRename,
    /// Remove each.
    FileRemove,
    /// Remove the directories of the tree.
    TreeRemove,
}

/// What is fixed for a kind of phase.
#[derive(Debug, Clone, Copy)]
pub struct PhaseInfo {
    /// The kind.
    pub kind: PhaseKind,
    /// For machines and the command line.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// The operation.
    pub op: OpKind,
    /// Directories or files; `None` for the tree itself.
    pub items: Option<ItemKind>,
    /// Position among the phases behind creation, from 1: its shift step.
    /// Zero: works on the own items.
    pub step: u32,
}

/// Every kind of phase in the order in which they run.
pub const PHASES: &[PhaseInfo] = &[
    row(
        PhaseKind::TreeCreate,
        "tree-create",
        "Tree creation",
        OpKind::Mkdir,
        None,
        0,
    ),
    row(
        PhaseKind::DirCreate,
        "dir-create",
        "Directory creation",
        OpKind::Mkdir,
        Some(ItemKind::Dir),
        0,
    ),
    row(
        PhaseKind::DirStat,
        "dir-stat",
        "Directory stat",
        OpKind::Stat,
        Some(ItemKind::Dir),
        1,
    ),
    row(
        PhaseKind::DirRename,
        "dir-rename",
        "Directory rename",
        OpKind::Rename,
        Some(ItemKind::Dir),
        2,
    ),
    row(
        PhaseKind::DirList,
        "dir-list",
        "Directory listing",
        OpKind::List,
        Some(ItemKind::Dir),
        3,
    ),
    row(
        PhaseKind::DirRemove,
        "dir-remove",
        "Directory removal",
        OpKind::Rmdir,
        Some(ItemKind::Dir),
        4,
    ),
    row(
        PhaseKind::FileCreate,
        "file-create",
        "File creation",
        OpKind::Create,
        Some(ItemKind::File),
        0,
    ),
    row(
        PhaseKind::FileStat,
        "file-stat",
        "File stat",
        OpKind::Stat,
        Some(ItemKind::File),
        1,
    ),
    row(
        PhaseKind::FileRead,
        "file-read",
        "File read",
        OpKind::ReadFile,
        Some(ItemKind::File),
        2,
    ),
    row(
        PhaseKind::FileRename,
        "file-rename",
        "File rename",
        OpKind::Rename,
        Some(ItemKind::File),
        3,
    ),
    row(
        PhaseKind::FileRemove,
        "file-remove",
        "File removal",
        OpKind::Unlink,
        Some(ItemKind::File),
        4,
    ),
    row(
        PhaseKind::TreeRemove,
        "tree-remove",
        "Tree removal",
        OpKind::Rmdir,
        None,
        0,
    ),
];

const fn row(
    kind: PhaseKind,
    name: &'static str,
    label: &'static str,
    op: OpKind,
    items: Option<ItemKind>,
    step: u32,
) -> PhaseInfo {
    PhaseInfo {
        kind,
        name,
        label,
        op,
        items,
        step,
    }
}

impl PhaseInfo {
    /// Whether it asks for what is there and changes nothing: the client's
    /// caches could answer.
    pub fn asks(&self) -> bool {
        matches!(self.op, OpKind::Stat | OpKind::List | OpKind::ReadFile)
    }
}

impl PhaseKind {
    /// What is fixed for this kind.
    pub fn info(self) -> &'static PhaseInfo {
        &PHASES[self as usize]
    }
}

/// The metadata workload, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct MetaPlan {
    /// Tree and items.
    pub shape: Shape,
    /// Tree directories.
    pub nodes: u64,
    /// Items of each kind that each rank makes.
    pub items_per_rank: u64,
    /// Private trees or a shared one.
    pub layout: Layout,
    /// The words of names.
    pub naming: Naming,
    /// The phases that are measured, in order.
    pub phases: Vec<PhaseKind>,
    /// Bytes written to each created file, in one call.
    pub write: Bytes,
    /// Bytes read from each file, in one call.
    pub read: Bytes,
    /// fsync after each write.
    pub fsync: bool,
    /// Stat, read, rename and removal in random order.
    pub random_order: bool,
    /// Stop creating, stat, listing and reading after this time; creation
    /// then tops up to the worker with the most.
    pub stonewall: Option<Nanos>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_the_kinds_in_their_own_order() {
        for (i, info) in PHASES.iter().enumerate() {
            assert_eq!(info.kind as usize, i);
            assert_eq!(info.kind.info().name, info.name);
        }
    }
}
