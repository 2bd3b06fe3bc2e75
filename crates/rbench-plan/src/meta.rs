//! The metadata workload: its phases, and what each works on.

use std::path::PathBuf;

use rbench_core::{Bytes, Nanos, OpKind};

use crate::tree::{Forest, ItemKind, Naming, Private, Shape};

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
    /// Its shift step, from 1: its position among the phases after creation;
    /// those of hard links, which are rare, come after all others.
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
        PhaseKind::FileWrite,
        "file-write",
        "File write",
        OpKind::WriteFile,
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
        PhaseKind::FileLink,
        "file-link",
        "Hard link creation",
        OpKind::Link,
        Some(ItemKind::File),
        5,
    ),
    row(
        PhaseKind::LinkRemove,
        "link-remove",
        "Hard link removal",
        OpKind::Unlink,
        Some(ItemKind::File),
        6,
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
    /// Whether the native commands have it: they write while they create.
    pub fn native(&self) -> bool {
        self.kind != PhaseKind::FileWrite
    }

    /// Whether the native commands run it unless told otherwise: hard links are
    /// made only when asked for, since many file systems have none.
    pub fn by_default(&self) -> bool {
        self.native() && !matches!(self.kind, PhaseKind::FileLink | PhaseKind::LinkRemove)
    }

    /// Whether it makes items.
    pub fn creates(&self) -> bool {
        matches!(self.kind, PhaseKind::DirCreate | PhaseKind::FileCreate)
    }

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

/// Whose items the ranks work on in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOwner {
    /// Each rank on those of the rank so many numbers ahead of it, modulo the
    /// ranks; 0: on its own.
    Each {
        /// 0 … ranks − 1
        ahead: u32,
    },
    /// Rank 0 alone, on the items of all ranks.
    FirstForAll,
    /// Rank 0 alone, on what all ranks share.
    First,
}

/// A phase to run, complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhasePlan {
    /// What it does.
    pub kind: PhaseKind,
    /// On whose items.
    pub who: ItemOwner,
    /// In random order.
    pub shuffled: bool,
    /// Stop issuing after this time.
    pub deadline: Option<Nanos>,
}

/// How files are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Making {
    /// `open(O_WRONLY | O_CREAT | O_EXCL)`: an existing file is an error.
    #[default]
    New,
    /// `open(O_RDWR | O_CREAT)`: an existing file is as good.
    Open,
    /// `mknod`
    Node,
}

/// How items are renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Renaming {
    /// Each gets a name of its own; later phases use the new names.
    #[default]
    Suffix,
    /// A chain that keeps the set of names: the first steps aside to
    /// `<name>-XX`, all but the last take the name before theirs, and the
    /// first ends where the last but one was.
    Chain,
}

/// The target's side of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// System calls on mounted file systems.
    #[default]
    Posix,
    /// Nothing is done: for the cost of the tool itself.
    Dummy,
}

/// What mdtest's `--dataPacketType` calls the content of files: the first four are its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packet {
    /// Rank, and seed and position added up: the same in all files of a rank.
    #[default]
    Timestamp,
    /// As timestamps, but that each 4 KiB starts with rank and number of the file.
    Offset,
    /// One random word for all files of a rank, but for the start of each 4 KiB.
    Incompressible,
    /// Random words.
    Random,
    /// Ours: incompressible, and every 4 KiB of every file different.
    Unique,
}

/// What is written into files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Incompressible data, new for every write.
    Fresh,
    /// What seed, owner and number of the file decide: can be verified later.
    Packet {
        /// Its kind.
        packet: Packet,
        /// `-G`, or the run's seed
        seed: i32,
    },
}

/// Where the trees lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a directory of the run's own.
    Own,
    /// In `test-dir.<iteration>-<loop>` below these: rank r below number r
    /// modulo their count.
    TestDirs(Vec<PathBuf>),
}

/// What surrounds the operations of each item phase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    /// A shell command on every rank before it, untimed.
    pub before: Option<String>,
    /// `sync` on every rank after it, timed.
    pub sync: bool,
    /// A shell command on every rank after it, timed.
    pub after: Option<String>,
    /// A pause before the directory phases and before the file phases.
    pub pause: Nanos,
}

/// Items of a tree directory when nothing but the deadline ends creation.
pub const UNTIL_THE_DEADLINE: u64 = 1 << 40;

/// The metadata workload, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct MetaPlan {
    /// Tree and items.
    pub shape: Shape,
    /// Tree directories of one tree.
    pub nodes: u64,
    /// Trees of each owner, each in a directory of its own.
    pub loops: u64,
    /// Items of each kind that each rank makes, over all loops.
    pub items_per_rank: u64,
    /// Private trees or a shared one.
    pub layout: Layout,
    /// The items of rank r lie in the private tree of the rank so many numbers
    /// ahead.
    pub tree_ahead: u32,
    /// The words of names.
    pub naming: Naming,
    /// Where the trees lie.
    pub site: Location,
    /// The target's side of the calls.
    pub backend: Backend,
    /// The phases that are measured, in order.
    pub phases: Vec<PhasePlan>,
    /// Whether all ranks wait for each other between item phases.
    pub barriers: bool,
    /// How files are made.
    pub making: Making,
    /// How items are renamed.
    pub renaming: Renaming,
    /// What is written.
    pub content: Content,
    /// Bytes written to each created file, in one call.
    pub write: Bytes,
    /// Bytes read from each file, in one call.
    pub read: Bytes,
    /// fsync after each write.
    pub fsync: bool,
    /// Whether files are opened with O_DIRECT.
    pub direct: bool,
    /// Compare what was read with what was written.
    pub verify_read: bool,
    /// Read each file back at once after writing it, untimed.
    pub verify_write: bool,
    /// What surrounds the phases.
    pub around: Hooks,
    /// Items of each worker, if an earlier run has told: a stonewall's count.
    pub made: Option<u64>,
    /// Whether a failed operation ends the run after its phase.
    pub failures_end_the_run: bool,
    /// mdtest's `-N` in ranks, as mdtest says it: not reduced to the number of
    /// ranks. 0: no shift.
    pub stated_shift: u64,
    /// Whether mdtest was asked for a random order (`-R`), for which the plan's
    /// seed stands.
    pub stated_random: bool,
}

impl MetaPlan {
    /// Whether creating files writes data that nothing syncs.
    pub fn leaves_unsynced(&self) -> bool {
        let synced = self.fsync || self.around.sync;
        self.write > Bytes(0) && !synced && self.backend == Backend::Posix
    }

    /// The trees of the pass `iteration` of `ranks` ranks.
    pub fn forest(&self, iteration: u32, ranks: u32) -> Forest {
        let (prefixes, numbered) = match &self.site {
            Location::Own => (vec![iteration.to_string()], None),
            Location::TestDirs(dirs) => (
                dirs.iter()
                    .map(|dir| format!("{}/test-dir.{iteration}-", dir.display()))
                    .collect(),
                Some(self.loops),
            ),
        };
        Forest {
            shape: self.shape,
            naming: self.naming,
            prefixes,
            numbered,
            private: (self.layout == Layout::Unique).then_some(Private {
                ahead: self.tree_ahead,
                ranks,
            }),
        }
    }

    /// The measured phases.
    pub fn kinds(&self) -> impl Iterator<Item = PhaseKind> {
        self.phases.iter().map(|phase| phase.kind)
    }

    /// Whether this run measures `kind`.
    pub fn runs(&self, kind: PhaseKind) -> bool {
        self.kinds().any(|k| k == kind)
    }

    /// How long the files are whose start is read, in bytes: those of this run, or of another run that wrote as much as is
    /// read here.
    pub fn content_length(&self) -> u64 {
        if self.write.0 > 0 {
            self.write.0
        } else {
            self.read.0
        }
    }

    /// Whether nothing but the deadline ends creation.
    pub fn open_ended(&self) -> bool {
        self.shape.items_per_node == UNTIL_THE_DEADLINE
    }

    /// Whether this run makes the items of `kind`.
    pub fn makes(&self, kind: ItemKind) -> bool {
        self.kinds()
            .any(|k| k.info().creates() && k.info().items == Some(kind))
    }
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
