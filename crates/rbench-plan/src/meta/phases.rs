//! The kinds of phases: what each does, what it needs, and what it leaves.

use std::collections::BTreeSet;

use rbench_core::OpKind as Op;

use super::timed::timed;
use crate::tree::ItemKind;

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
    /// Make 10 files in each.
    DirFill10,
    /// List each, with 10 entries.
    DirList10,
    /// Remove these 10 files.
    DirEmpty10,
    /// Make 1000 files in each.
    DirFill1k,
    /// List each, with 1000 entries.
    DirList1k,
    /// Remove these 1000 files.
    DirEmpty1k,
    /// Make a chain of 4 directories in each.
    DirDeepen,
    /// Look up the lowest of these, by a path of 5 names.
    DirResolve,
    /// Remove these directories.
    DirFlatten,
    /// Remove each.
    DirRemove,
    /// Make the files.
    FileCreate,
    /// Open each existing file, write and close it: what follows when one rank
    /// has made the files of all.
    FileWrite,
    /// Stat each.
    FileStat,
    /// Open, read and close each.
    FileRead,
    /// Rename each within its directory.
    FileRename,
    /// Give each a hard link within its directory.
    FileLink,
    /// Remove these links.
    LinkRemove,
    /// Make a node beside each.
    FileMknod,
    /// Remove these nodes.
    NodeRemove,
    /// Give each a symbolic link within its directory.
    FileSymlink,
    /// Read the targets of these links.
    FileReadlink,
    /// Remove these links.
    SymlinkRemove,
    /// Look up each.
    FileLookup,
    /// Open each, read its attributes past the caches.
    FileGetattr,
    /// Change the permissions of each.
    FileChmod,
    /// Change the times of each.
    FileUtimes,
    /// Open each, change its length.
    FileTruncate,
    /// Ask whether each may be read.
    FileAccess,
    /// Open each, read the totals of the file system.
    FileStatfs,
    /// Open each, set one extended attribute.
    FileSetxattr,
    /// Open each, read this attribute.
    FileGetxattr,
    /// Open each, list its attributes: one.
    FileListxattr1,
    /// Open each, set nine more.
    FileSetxattr9,
    /// Open each, list its attributes: ten.
    FileListxattr10,
    /// Open each, remove the attribute that was set first.
    FileRemovexattr,
    /// Open each, write 1 KiB at its beginning, sync it.
    FileWriteSync,
    /// Open each, read this 1 KiB.
    FileRead1,
    /// Open each, write 10 KiB in ten writes, each synced.
    FileBuild10,
    /// Open each, read these 10 KiB.
    FileRead10,
    /// Remove each.
    FileRemove,
    /// Remove the directories of the tree.
    TreeRemove,
}

use PhaseKind::*;

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
    pub op: Op,
    /// Directories or files; `None` for the tree itself.
    pub items: Option<ItemKind>,
    /// Its shift step, from 1: its position among the phases after creation;
    /// those that only run when asked for come after all others.
    /// Zero: works on the own items.
    pub step: u32,
}

const TREE: Option<ItemKind> = None;
const DIR: Option<ItemKind> = Some(ItemKind::Dir);
const FILE: Option<ItemKind> = Some(ItemKind::File);

/// Every kind of phase in the order in which they run.
pub const PHASES: &[PhaseInfo] = &[
    row(
        TreeCreate,
        "tree-create",
        "Tree creation",
        Op::Mkdir,
        TREE,
        0,
    ),
    row(
        DirCreate,
        "dir-create",
        "Directory creation",
        Op::Mkdir,
        DIR,
        0,
    ),
    row(DirStat, "dir-stat", "Directory stat", Op::Stat, DIR, 1),
    row(
        DirRename,
        "dir-rename",
        "Directory rename",
        Op::Rename,
        DIR,
        2,
    ),
    row(DirList, "dir-list", "Directory listing", Op::List, DIR, 3),
    row(
        DirFill10,
        "dir-fill-10",
        "Filling, 10 entries",
        Op::Fill,
        DIR,
        0,
    ),
    row(
        DirList10,
        "dir-list-10",
        "Listing, 10 entries",
        Op::List,
        DIR,
        5,
    ),
    row(
        DirEmpty10,
        "dir-empty-10",
        "Emptying, 10 entries",
        Op::Empty,
        DIR,
        0,
    ),
    row(
        DirFill1k,
        "dir-fill-1k",
        "Filling, 1000 entries",
        Op::Fill,
        DIR,
        0,
    ),
    row(
        DirList1k,
        "dir-list-1k",
        "Listing, 1000 entries",
        Op::List,
        DIR,
        6,
    ),
    row(
        DirEmpty1k,
        "dir-empty-1k",
        "Emptying, 1000 entries",
        Op::Empty,
        DIR,
        0,
    ),
    row(DirDeepen, "dir-deepen", "Deepening", Op::Fill, DIR, 0),
    row(
        DirResolve,
        "dir-resolve",
        "Path resolution",
        Op::Lookup,
        DIR,
        7,
    ),
    row(DirFlatten, "dir-flatten", "Flattening", Op::Empty, DIR, 0),
    row(
        DirRemove,
        "dir-remove",
        "Directory removal",
        Op::Rmdir,
        DIR,
        4,
    ),
    row(
        FileCreate,
        "file-create",
        "File creation",
        Op::Create,
        FILE,
        0,
    ),
    row(
        FileWrite,
        "file-write",
        "File write",
        Op::WriteFile,
        FILE,
        0,
    ),
    row(FileStat, "file-stat", "File stat", Op::Stat, FILE, 1),
    row(FileRead, "file-read", "File read", Op::ReadFile, FILE, 2),
    row(
        FileRename,
        "file-rename",
        "File rename",
        Op::Rename,
        FILE,
        3,
    ),
    row(
        FileLink,
        "file-link",
        "Hard link creation",
        Op::Link,
        FILE,
        5,
    ),
    row(
        LinkRemove,
        "link-remove",
        "Hard link removal",
        Op::Unlink,
        FILE,
        6,
    ),
    row(FileMknod, "file-mknod", "Node creation", Op::Mknod, FILE, 0),
    row(
        NodeRemove,
        "node-remove",
        "Node removal",
        Op::Unlink,
        FILE,
        0,
    ),
    row(
        FileSymlink,
        "file-symlink",
        "Symbolic link creation",
        Op::Symlink,
        FILE,
        0,
    ),
    row(
        FileReadlink,
        "file-readlink",
        "Symbolic link read",
        Op::Readlink,
        FILE,
        7,
    ),
    row(
        SymlinkRemove,
        "symlink-remove",
        "Symbolic link removal",
        Op::Unlink,
        FILE,
        8,
    ),
    row(
        FileLookup,
        "file-lookup",
        "File lookup",
        Op::Lookup,
        FILE,
        9,
    ),
    row(
        FileGetattr,
        "file-getattr",
        "File getattr",
        Op::Getattr,
        FILE,
        10,
    ),
    row(FileChmod, "file-chmod", "File chmod", Op::Chmod, FILE, 11),
    row(
        FileUtimes,
        "file-utimes",
        "File utimes",
        Op::Utimes,
        FILE,
        12,
    ),
    row(
        FileTruncate,
        "file-truncate",
        "File truncate",
        Op::Truncate,
        FILE,
        13,
    ),
    row(
        FileAccess,
        "file-access",
        "File access",
        Op::Access,
        FILE,
        14,
    ),
    row(
        FileStatfs,
        "file-statfs",
        "File statfs",
        Op::Statfs,
        FILE,
        15,
    ),
    row(
        FileSetxattr,
        "file-setxattr",
        "Attribute set",
        Op::Setxattr,
        FILE,
        16,
    ),
    row(
        FileGetxattr,
        "file-getxattr",
        "Attribute read",
        Op::Getxattr,
        FILE,
        17,
    ),
    row(
        FileListxattr1,
        "file-listxattr-1",
        "Attribute list, 1",
        Op::Listxattr,
        FILE,
        18,
    ),
    row(
        FileSetxattr9,
        "file-setxattr-9",
        "Attributes set, 9",
        Op::Setxattr,
        FILE,
        0,
    ),
    row(
        FileListxattr10,
        "file-listxattr-10",
        "Attribute list, 10",
        Op::Listxattr,
        FILE,
        19,
    ),
    row(
        FileRemovexattr,
        "file-removexattr",
        "Attribute removal",
        Op::Removexattr,
        FILE,
        20,
    ),
    row(
        FileWriteSync,
        "file-write-sync",
        "Synced write, 1 KiB",
        Op::WriteSync,
        FILE,
        21,
    ),
    row(FileRead1, "file-read-1", "Read, 1 KiB", Op::Read, FILE, 22),
    row(
        FileBuild10,
        "file-build-10",
        "Building, 10 KiB",
        Op::WriteSync,
        FILE,
        0,
    ),
    row(
        FileRead10,
        "file-read-10",
        "Read, 10 KiB",
        Op::Read,
        FILE,
        23,
    ),
    row(
        FileRemove,
        "file-remove",
        "File removal",
        Op::Unlink,
        FILE,
        4,
    ),
    row(
        TreeRemove,
        "tree-remove",
        "Tree removal",
        Op::Rmdir,
        TREE,
        0,
    ),
];

/// Entries of the directories of `dir-list-10`.
pub const ENTRIES_FEW: u64 = 10;
/// Entries of the directories of `dir-list-1k`.
pub const ENTRIES_MANY: u64 = 1000;
/// The directories below an item that `dir-resolve` looks up, from the top down.
pub const STEPS_DOWN: &[&str] = &["/a", "/a/b", "/a/b/c", "/a/b/c/d"];

const fn row(
    kind: PhaseKind,
    name: &'static str,
    label: &'static str,
    op: Op,
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
    /// Whether the native commands have it: they write while they create.
    pub fn native(&self) -> bool {
        self.kind != FileWrite
    }

    /// Whether `rbench meta` runs it unless told otherwise: what mdtest has.
    pub fn by_default(&self) -> bool {
        match self.items {
            None => true,
            Some(ItemKind::Dir) => matches!(
                self.kind,
                DirCreate | DirStat | DirRename | DirList | DirRemove
            ),
            Some(ItemKind::File) => matches!(
                self.kind,
                FileCreate | FileStat | FileRead | FileRename | FileRemove
            ),
        }
    }

    /// Whether it makes items.
    pub fn creates(&self) -> bool {
        matches!(self.kind, DirCreate | FileCreate)
    }

    /// Whether later phases rely on its having been everywhere: where time ends it,
    /// all workers go on to the one that came furthest. Time only ends renaming in the
    /// per-operation table, and there names go back to what they were.
    pub fn makes(&self) -> bool {
        self.creates()
            || matches!(
                self.op,
                Op::Link | Op::Mknod | Op::Symlink | Op::Fill | Op::Empty
            )
            || matches!(self.op, Op::Setxattr | Op::WriteSync)
    }

    /// Whether its operation can be done on the same item again and again, with the
    /// same work each time; the plan renames one item onward then.
    pub fn repeats(&self) -> bool {
        self.asks()
            || matches!(
                self.op,
                Op::Chmod | Op::Utimes | Op::Truncate | Op::Setxattr | Op::WriteSync | Op::Rename
            )
    }

    /// Whether it removes the items.
    pub fn removes(&self) -> bool {
        matches!(self.kind, DirRemove | FileRemove)
    }

    /// Whether its operation is a call on a file that is opened before it and closed
    /// behind it, both untimed.
    pub fn opens_untimed(&self) -> bool {
        timed(self.op).first().is_some_and(|call| call.needs_open())
    }

    /// Whether a ring can perform its operation.
    pub fn in_a_ring(&self) -> bool {
        let calls = timed(self.op);
        !calls.is_empty() && calls.iter().all(|call| call.in_a_ring().is_some())
    }

    /// Whether it asks for what is there and changes nothing: the client's
    /// caches could answer.
    pub fn asks(&self) -> bool {
        self.op.asks()
    }
}

impl PhaseKind {
    /// What is fixed for this kind.
    pub fn info(self) -> &'static PhaseInfo {
        &PHASES[self as usize]
    }

    /// The phases that must have run before it, besides those that make the items.
    pub fn needs(self) -> &'static [PhaseKind] {
        match self {
            DirList10 | DirEmpty10 => &[DirFill10],
            DirList1k | DirEmpty1k => &[DirFill1k],
            DirResolve | DirFlatten => &[DirDeepen],
            LinkRemove => &[FileLink],
            NodeRemove => &[FileMknod],
            FileReadlink | SymlinkRemove => &[FileSymlink],
            FileGetxattr | FileListxattr1 | FileRemovexattr => &[FileSetxattr],
            FileListxattr10 => &[FileSetxattr, FileSetxattr9],
            FileRead1 => &[FileWriteSync],
            FileRead10 => &[FileBuild10],
            _ => &[],
        }
    }

    /// What takes away again what it has made beside, or in, the items.
    pub fn undone_by(self) -> Option<PhaseKind> {
        match self {
            DirFill10 => Some(DirEmpty10),
            DirFill1k => Some(DirEmpty1k),
            DirDeepen => Some(DirFlatten),
            FileLink => Some(LinkRemove),
            FileMknod => Some(NodeRemove),
            FileSymlink => Some(SymlinkRemove),
            _ => None,
        }
    }

    /// Entries of each directory that it makes, lists or removes; `None`: the tree's
    /// own.
    pub fn entries(self) -> Option<u64> {
        match self {
            DirFill10 | DirList10 | DirEmpty10 => Some(ENTRIES_FEW),
            DirFill1k | DirList1k | DirEmpty1k => Some(ENTRIES_MANY),
            _ => None,
        }
    }

    /// Files and directories that it makes for each item, besides the item itself.
    pub fn makes_besides(self) -> u64 {
        match self {
            DirFill10 | DirFill1k => self.entries().unwrap_or(0),
            DirDeepen => STEPS_DOWN.len() as u64,
            FileMknod | FileSymlink => 1,
            _ => 0,
        }
    }

    /// Bytes that it writes to, or reads of, each file, 1 KiB in each synced write; 0:
    /// none, or as many as the plan says.
    pub fn builds(self) -> u64 {
        match self {
            FileWriteSync | FileRead1 => 1 << 10,
            FileBuild10 | FileRead10 => 10 << 10,
            _ => 0,
        }
    }
}

/// The native phases that were asked for, with those that they need, in the order in
/// which they run.
pub fn with_needed(asked: &[PhaseKind]) -> Vec<&'static PhaseInfo> {
    let mut wanted: BTreeSet<PhaseKind> = asked.iter().copied().collect();
    let has = |items: Option<ItemKind>| asked.iter().any(|kind| kind.info().items == items);
    wanted.insert(TreeCreate);
    for (items, create, remove) in [(DIR, DirCreate, DirRemove), (FILE, FileCreate, FileRemove)] {
        if has(items) {
            wanted.insert(create);
            // The tree can only be removed when nothing is left in it.
            if asked.contains(&TreeRemove) {
                wanted.insert(remove);
            }
        }
    }
    // What is needed stands before what needs it.
    for info in PHASES
        .iter()
        .rev()
        .filter(|info| asked.contains(&info.kind))
    {
        wanted.extend(info.kind.needs());
    }
    let undone: Vec<PhaseKind> = PHASES
        .iter()
        .filter(|info| wanted.contains(&info.kind))
        .filter_map(|info| {
            let removed = match info.items {
                Some(ItemKind::Dir) => wanted.contains(&DirRemove),
                // A file is only removed with its last name.
                Some(ItemKind::File) => wanted.contains(&FileRemove),
                None => false,
            };
            // Both fill the same directories.
            let in_the_way = info.kind == DirFill10 && wanted.contains(&DirFill1k);
            info.kind.undone_by().filter(|_| removed || in_the_way)
        })
        .collect();
    wanted.extend(undone);
    PHASES
        .iter()
        .filter(|info| info.native() && wanted.contains(&info.kind))
        .collect()
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

    #[test]
    fn what_a_phase_needs_runs_before_it_and_what_undoes_it_after() {
        for info in PHASES {
            assert!(info.kind.needs().iter().all(|needed| *needed < info.kind));
            assert!(info.kind.undone_by().is_none_or(|undone| {
                undone > info.kind && undone.needs().contains(&info.kind)
            }));
        }
    }
}
