//! The metadata workload: its phases, and the items of each.

use std::path::PathBuf;

use rbench_core::{Bytes, Nanos};

use crate::arrival::OpenLoop;
use crate::tree::{Forest, ItemKind, NATIVE, Naming, Private, Shape};

mod calls;
mod phases;

pub use calls::Calls;
pub use phases::with_needed;
pub use rbench_core::operations::{
    ATTRIBUTES, OPERATIONS as PHASES, Operation as PhaseInfo, PhaseKind, STEPS_DOWN, VALUE,
};

/// Owner of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Layout {
    /// Each rank has its own tree
    #[default]
    Unique,
    /// All ranks put their items into the directories of one tree
    Shared,
}

/// Owner of the items that the ranks work on in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOwner {
    /// Each rank works on the items of the rank this many numbers ahead, modulo the ranks; 0:
    /// on its own.
    Each {
        /// 0 … ranks − 1
        ahead: u32,
    },
    /// Rank 0 alone works on the items of all ranks.
    FirstForAll,
    /// Rank 0 alone works on the items that all ranks share.
    First,
}

/// Presentation of a phase in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Showing {
    /// A row with the phase's own name.
    #[default]
    Phase,
    /// A row of the per-operation table, with this name.
    Row(&'static str),
    /// Preparation of other phases: a row only if it had failures.
    Untimed,
}

/// Subset of each worker's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Number of items of each worker, from its first on.
    pub items: u64,
    /// Operations of each worker, in repeated passes over these items; `None`: one on each.
    pub again: Option<u64>,
}

/// A phase to run, complete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhasePlan {
    /// The operation.
    pub kind: PhaseKind,
    /// Owner of the items.
    pub who: ItemOwner,
    /// True for random order.
    pub shuffled: bool,
    /// Time after which no more operations are issued.
    pub deadline: Option<Nanos>,
    /// Presentation in the report.
    pub showing: Showing,
    /// The items; `None`: all, once each.
    pub part: Option<Part>,
    /// The open loop; `None`: one operation after the other.
    pub open_loop: Option<OpenLoop>,
}

impl PhasePlan {
    /// One operation after the other on each item, in their order, until all are done.
    pub fn new(kind: PhaseKind, who: ItemOwner) -> PhasePlan {
        PhasePlan {
            kind,
            who,
            shuffled: false,
            deadline: None,
            showing: Showing::Phase,
            part: None,
            open_loop: None,
        }
    }
}

/// The call that creates files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Making {
    /// `open(O_WRONLY | O_CREAT | O_EXCL)`: an existing file is an error.
    #[default]
    New,
    /// `open(O_RDWR | O_CREAT)`: an existing file is accepted.
    Open,
    /// `mknod`
    Node,
}

/// Scheme of renames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Renaming {
    /// Each item gets a new name, which later phases use.
    #[default]
    Suffix,
    /// A chain that keeps the set of names. The first item moves to `<name>-XX`. All others
    /// except the last take the name before theirs; the first takes the name of the last but
    /// one.
    Chain,
    /// The first item of each worker is renamed as often as the worker has operations, each
    /// time from its last name. Untimed it gets its own name back, so later phases find the
    /// names unchanged.
    Onward,
}

/// Target of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// System calls on mounted file systems.
    #[default]
    Posix,
    /// No calls: measures the cost of the tool itself.
    Dummy,
}

/// mdtest's `--dataPacketType` for the content of files; the first four are its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packet {
    /// Rank, and the sum of seed and position: the same in all files of a rank.
    #[default]
    Timestamp,
    /// Like `Timestamp`, but each 4 KiB starts with the rank and the number of the file.
    Offset,
    /// One random word for all files of a rank, except at the start of each 4 KiB.
    Incompressible,
    /// Random words.
    Random,
    /// rbench's own: incompressible, and every 4 KiB of every file is different.
    Unique,
}

/// Content of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    /// Incompressible data, new for every write.
    #[default]
    Fresh,
    /// Data that depends on seed, owner and number of the file, and can be verified later.
    Packet {
        /// Its kind.
        packet: Packet,
        /// `-G`, or the run's seed.
        seed: i32,
    },
}

/// Place of the trees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Location {
    /// A directory of the run.
    #[default]
    Own,
    /// `test-dir.<iteration>-<loop>` below these directories: rank r uses number r modulo
    /// their count.
    TestDirs(Vec<PathBuf>),
}

/// Hooks around the operations of each item phase.
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

/// Items of a tree directory if only the deadline ends creation.
pub const UNTIL_THE_DEADLINE: u64 = 1 << 40;

/// The metadata workload, complete.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MetaPlan {
    /// Tree and items.
    pub shape: Shape,
    /// Tree directories of one tree.
    pub nodes: u64,
    /// Trees of each owner, each in its own directory.
    pub loops: u64,
    /// Items of each kind that each rank creates, over all loops.
    pub items_per_rank: u64,
    /// Private trees or a shared one.
    pub layout: Layout,
    /// The items of rank r lie in the private tree of the rank this many numbers ahead.
    pub tree_ahead: u32,
    /// The parts of names.
    pub naming: Naming,
    /// Place of the trees.
    pub site: Location,
    /// Target of the calls.
    pub backend: Backend,
    /// Operations of a worker that a ring has in flight at a time; `None`: system calls, one
    /// after the other.
    pub in_flight: Option<u32>,
    /// The measured phases, in order.
    pub phases: Vec<PhasePlan>,
    /// True if all ranks wait for each other between item phases.
    pub barriers: bool,
    /// The call that creates files.
    pub making: Making,
    /// Scheme of renames.
    pub renaming: Renaming,
    /// `--time` of each measured phase; `None`: it ends with its items.
    pub time: Option<Nanos>,
    /// Content of files.
    pub content: Content,
    /// Bytes written to each created file in one call.
    pub write: Bytes,
    /// Bytes read from each file in one call.
    pub read: Bytes,
    /// True for an fsync after each write.
    pub fsync: bool,
    /// True if files are opened with O_DIRECT.
    pub direct: bool,
    /// True if data that is read is compared with data that was written.
    pub verify_read: bool,
    /// True if each file is read back at once after its write, untimed.
    pub verify_write: bool,
    /// Hooks around the phases.
    pub around: Hooks,
    /// Items of each worker, if an earlier run recorded them: the count of a stonewall.
    pub made: Option<u64>,
    /// True if a failed operation ends the run after its phase.
    pub failures_end_the_run: bool,
    /// mdtest's `-N` in ranks as mdtest prints it, not reduced to the number of ranks. 0: no
    /// shift.
    pub stated_shift: u64,
    /// The requested rows of the per-operation table; empty for other workloads.
    pub rows: Vec<&'static str>,
    /// True if mdtest was given random order (`-R`), for which the plan's seed is used.
    pub stated_random: bool,
}

impl MetaPlan {
    /// A plan without phases, and without an effect of any option: each owner has its own tree
    /// with this number of items.
    pub fn bare(shape: Shape, items_per_rank: u64) -> MetaPlan {
        MetaPlan {
            nodes: shape.nodes().unwrap_or(1),
            shape,
            loops: 1,
            items_per_rank,
            naming: NATIVE,
            barriers: true,
            renaming: Renaming::Onward,
            ..MetaPlan::default()
        }
    }

    /// True if creating files writes data that nothing syncs.
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

    /// True if the phases are the rows of the per-operation table. Opening a new file and
    /// closing it are then timed separately.
    pub fn is_table(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Bytes of a file at its longest, as far as the phases write them.
    pub fn file_bytes(&self) -> u64 {
        let built = self.kinds().map(|kind| kind.info().builds);
        built.fold(self.write.0, u64::max)
    }

    /// The phases, in order.
    pub fn kinds(&self) -> impl Iterator<Item = PhaseKind> {
        self.phases.iter().map(|phase| phase.kind)
    }

    /// True if this run measures `kind`.
    pub fn runs(&self, kind: PhaseKind) -> bool {
        self.kinds().any(|k| k == kind)
    }

    /// Length of the files whose start is read in bytes: this run's files, or those of
    /// another run that wrote as much as is read here.
    pub fn content_length(&self) -> u64 {
        if self.write.0 > 0 {
            self.write.0
        } else {
            self.read.0
        }
    }

    /// True if only the deadline ends creation.
    pub fn open_ended(&self) -> bool {
        self.shape.items_per_node == UNTIL_THE_DEADLINE
    }

    /// True if this run creates the items of `kind`.
    pub fn makes(&self, kind: ItemKind) -> bool {
        self.kinds()
            .any(|k| k.info().creates() && k.info().items == Some(kind))
    }
}
