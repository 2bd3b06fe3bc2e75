//! The metadata workload: its phases, and what each works on.

use std::path::PathBuf;

use rbench_core::{Bytes, Nanos};

use crate::arrival::OpenLoop;
use crate::tree::{Forest, ItemKind, Naming, Private, Shape};

mod calls;
mod phases;

pub use calls::Calls;
pub use phases::with_needed;
pub use rbench_core::operations::{
    ATTRIBUTES, OPERATIONS as PHASES, Operation as PhaseInfo, PhaseKind, STEPS_DOWN, VALUE,
};

/// Who owns the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Layout {
    /// Each rank has its own tree
    #[default]
    Unique,
    /// All ranks put their items into the directories of one tree
    Shared,
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

/// What a phase is in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Showing {
    /// A row with the phase's own name.
    #[default]
    Phase,
    /// A row of the per-operation table, with that name.
    Row(&'static str),
    /// It prepares what others measure: a row only where something of it failed.
    Untimed,
}

/// Some of the items of each worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The first so many of each worker.
    pub items: u64,
    /// Operations of each worker, pass after pass over these; `None`: one on each.
    pub again: Option<u64>,
}

/// A phase to run, complete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhasePlan {
    /// What it does.
    pub kind: PhaseKind,
    /// On whose items.
    pub who: ItemOwner,
    /// In random order.
    pub shuffled: bool,
    /// Stop issuing after this time.
    pub deadline: Option<Nanos>,
    /// What it is in the report.
    pub showing: Showing,
    /// On which of the items; `None`: once on each.
    pub part: Option<Part>,
    /// When its operations are meant to start; `None`: one follows the other.
    pub open_loop: Option<OpenLoop>,
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
    /// The first item of each worker goes from name to name, as often as the
    /// worker has operations, and untimed back to its own: one renamed again and
    /// again, and later phases find the names as they were.
    Onward,
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
    /// Operations of a worker that a ring has in flight at a time; `None`: system calls, one
    /// after the other.
    pub in_flight: Option<u32>,
    /// The phases that are measured, in order.
    pub phases: Vec<PhasePlan>,
    /// Whether all ranks wait for each other between item phases.
    pub barriers: bool,
    /// How files are made.
    pub making: Making,
    /// How items are renamed.
    pub renaming: Renaming,
    /// `--time`: that each measured phase takes; `None`: it ends with its items.
    pub time: Option<Nanos>,
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
    /// The rows of the per-operation table that were asked for; empty: it is none.
    pub rows: Vec<&'static str>,
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

    /// Whether the phases are the rows of the per-operation table: then opening a
    /// new file and closing it are timed each on its own.
    pub fn is_table(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Bytes that a file has at its longest, as far as the phases write them.
    pub fn file_bytes(&self) -> u64 {
        let built = self.kinds().map(|kind| kind.info().builds);
        built.fold(self.write.0, u64::max)
    }

    /// The phases, in order.
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
