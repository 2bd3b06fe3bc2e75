//! A mix of operations, complete: sets of files, and workers that execute lists of steps or draw
//! operations by weight.
//!
//! Each name of a set that workers change is owned by one worker. Only the owner creates,
//! removes and renames it, so these operations always have what they need. Operations that only
//! read (open, stat, read …) use any name of the set that exists, as far as the rank knows
//! ([`share`]).

pub use rbench_core::operations::{Need, SetKind, Word};
use rbench_core::operations::{Takes, WORDS};
use rbench_core::{Call, Nanos, OpKind, OpenFlags, linux};

use crate::arrival::OpenLoop;

pub mod course;
pub mod list;
pub mod names;
pub mod profile;
pub mod share;
pub mod sizes;
mod uses;

use sizes::Sizes;

/// Default bytes per call of steps that read or write whole files.
pub const CHUNK: u64 = 1 << 20;
/// Most bytes of a call.
pub const CALL_MAX: u64 = 64 << 20;
/// Most names of a set, of one rank or of all ranks that share it.
pub const NAMES_MAX: u64 = 100_000_000;

/// The mix, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct MixPlan {
    /// Its name: `--ops`, `--list` or the profile.
    pub name: String,
    /// True if all ranks work on the same sets; otherwise each has its own.
    pub shared: bool,
    /// The sets.
    pub sets: Vec<FileSet>,
    /// The kinds of workers; together they are the workers of a rank.
    pub roles: Vec<Role>,
    /// Time after which no more operations are issued.
    pub time: Option<Nanos>,
    /// Rounds, or drawn operations, of each worker; `None`: time decides.
    pub rounds: Option<u64>,
    /// Pause after each round or drawn operation.
    pub think: Nanos,
    /// Intended starts of rounds or drawn operations.
    pub open_loop: Option<OpenLoop>,
    /// Scale of the profile's numbers and sizes.
    pub scale: Scale,
    /// Rounds, or drawn operations, that each worker has in flight in a ring; `None`: system
    /// calls, one after the other.
    pub in_flight: Option<u32>,
}

/// Scale of a profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Factor for the numbers of files.
    pub files: f64,
    /// Factor for their sizes.
    pub size: f64,
}

impl Scale {
    /// The whole profile.
    pub const WHOLE: Scale = Scale {
        files: 1.0,
        size: 1.0,
    };
}

/// A set of names from which steps choose.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSet {
    /// Its name, in lists after an `@`.
    pub name: String,
    /// Kind of its names.
    pub kind: SetKind,
    /// Number of names, of each rank or of all.
    pub number: u64,
    /// Sizes of the files.
    pub sizes: Sizes,
    /// Most entries of a directory; `None`: all names are in one.
    pub width: Option<u64>,
    /// Percentage of the names that exist at the start.
    pub prepared: u32,
}

/// A kind of worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// Its name; empty if there is only one role.
    pub name: String,
    /// Its definition, as written.
    pub text: String,
    /// Number of workers of each rank.
    pub threads: u32,
    /// Steps before the first round.
    pub first: Vec<Step>,
    /// The steps of a round, or the operations to draw from.
    pub steps: Vec<Step>,
    /// The weight of each step, if steps are drawn; empty for a list.
    pub weights: Vec<u64>,
    /// The n-th round of a worker, from 0, starts n times this interval after the start, or as
    /// soon as possible if it is late.
    pub every: Option<Nanos>,
    /// One round per number of rounds of another role.
    pub per: Option<Per>,
    /// Its rows; steps of the same kind share one. The last ones are the row of all operations
    /// and, for a list, the row of its rounds.
    pub rows: Vec<Row>,
}

/// One round per number of rounds of another role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Per {
    /// The other role.
    pub role: usize,
    /// Rounds of all of its workers on the rank.
    pub rounds: u64,
}

/// A row of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The kind of operation.
    pub op: OpKind,
    /// Name for machines.
    pub name: String,
    /// Name for people.
    pub label: String,
}

/// Offset at which a step reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// After the last one; at the end again from the start.
    Next,
    /// Random, in multiples of the length.
    Random,
}

/// Operation of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Creates a file whose name does not exist, and keeps it open.
    Create(OpenFlags),
    /// Opens an existing file.
    Open(OpenFlags),
    /// Closes the open file.
    Close,
    /// Reads all of the open file in calls of this many bytes.
    ReadWhole(u64),
    /// Reads this many bytes of it.
    Read(u64, Place),
    /// Writes it up to the size of its set, in calls of this many bytes.
    WriteWhole(u64),
    /// Writes this many bytes.
    Write(u64, Place),
    /// Appends a number of bytes between these two.
    Append(u64, u64),
    /// Removes a name: a file, a directory or a link, by the kind of its set.
    Delete,
    /// Makes the call of a word with this size.
    Plain(&'static Word, u64),
    /// Pauses for this time; not an operation.
    Think(Nanos),
}

/// A step of a list, or an operation to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its operation.
    pub verb: Verb,
    /// Its set.
    pub set: usize,
    /// True if it uses the last used file of the set.
    pub last: bool,
    /// Its row.
    pub row: usize,
}

/// The word of that name.
pub const fn named(name: &str) -> &'static Word {
    let mut at = 0;
    while !same(WORDS[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    &WORDS[at]
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) => *a == *b && same(one, other),
        _ => false,
    }
}

impl Verb {
    /// The word of its row, for files or directories; `None` for a pause.
    pub fn word(self, directories: bool) -> Option<&'static Word> {
        Some(match self {
            Verb::Create(_) => const { named("create") },
            Verb::Open(_) => const { named("open") },
            Verb::Close => const { named("close") },
            Verb::ReadWhole(_) | Verb::Read(..) => const { named("read") },
            Verb::WriteWhole(_) | Verb::Write(..) => const { named("write") },
            Verb::Append(..) => const { named("append") },
            Verb::Delete if directories => const { named("rmdir") },
            Verb::Delete => const { named("delete") },
            Verb::Plain(word, _) => word,
            Verb::Think(_) => return None,
        })
    }

    /// The word as written, for messages.
    pub fn name(self) -> &'static str {
        self.word(false).map_or("think", |word| word.name)
    }

    /// The operand that it needs.
    pub fn need(self) -> Need {
        self.word(false).map_or(Need::Nothing, |word| word.need)
    }

    /// True if it adds, removes or renames names.
    pub fn changes_names(self) -> bool {
        matches!(
            self.need(),
            Need::OwnThere | Need::OwnFree | Need::Move | Need::Over | Need::Copy
        )
    }

    /// True if it writes data that a sync would bring to stable storage.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Verb::WriteWhole(_) | Verb::Write(..) | Verb::Append(..)
        )
    }

    /// True if it brings data to stable storage.
    pub fn syncs(self) -> bool {
        match self {
            Verb::Plain(word, _) => matches!(word.op, OpKind::Fsync | OpKind::Fdatasync),
            Verb::Create(flags) | Verb::Open(flags) => flags.has(linux::DSYNC),
            _ => false,
        }
    }

    /// True if it writes to the open file, or changes it in another way.
    pub fn changes_file(self) -> bool {
        self.writes() || matches!(self, Verb::Plain(Word { changes: true, .. }, _))
    }

    /// System call of the step, for files or directories, with the arguments that the step
    /// itself determines; `None` for a pause.
    pub fn call(self, directories: bool) -> Option<Call> {
        let size = match self {
            Verb::Create(flags) | Verb::Open(flags) => return Some(Call::Open(flags)),
            Verb::Plain(_, size) => size,
            _ => 0,
        };
        self.word(directories).map(|word| (word.call)(size))
    }

    /// True if a ring can perform it.
    pub fn in_a_ring(self) -> bool {
        let performs = |call: Call| call.in_a_ring().is_some();
        self.call(false).is_none_or(performs)
    }

    /// True if it reads or writes at the position that the last use left.
    pub fn moves_position(self) -> bool {
        matches!(self, Verb::ReadWhole(_) | Verb::WriteWhole(_))
    }

    /// Most bytes of one of its calls.
    fn call_bytes(self) -> u64 {
        match self {
            Verb::ReadWhole(bytes)
            | Verb::Read(bytes, _)
            | Verb::WriteWhole(bytes)
            | Verb::Write(bytes, _)
            | Verb::Append(_, bytes) => bytes,
            // A drawn create also writes its file.
            Verb::Create(_) => CHUNK,
            Verb::Plain(word, size) => match word.takes {
                Takes::Data(..) => size,
                Takes::Length(_) | Takes::Nothing => word.room,
            },
            _ => 0,
        }
    }

    /// True if it reads data.
    pub fn reads(self) -> bool {
        matches!(self, Verb::ReadWhole(_) | Verb::Read(..))
    }
}

impl Role {
    /// True if operations are drawn; otherwise it executes a list.
    pub fn draws(&self) -> bool {
        !self.weights.is_empty()
    }

    /// All its steps, including those before the first round.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(&self.steps)
    }

    /// True if a file of that set stays open after the steps before the first round: all rounds
    /// use it.
    pub fn holds(&self, set: usize) -> bool {
        let opens = |verb| match verb {
            Verb::Create(_) | Verb::Open(_) => Some(true),
            Verb::Close => Some(false),
            _ => None,
        };
        let of_set = self.first.iter().filter(|step| step.set == set);
        let open = of_set.filter_map(|step| opens(step.verb)).next_back();
        open == Some(true)
    }

    /// Most bytes of a call of its steps.
    pub fn call_bytes(&self) -> u64 {
        let all = self.all_steps().map(|step| step.verb.call_bytes());
        all.max().unwrap_or(0)
    }

    /// The row of all operations.
    pub fn row_of_all(&self) -> usize {
        self.rows.len() - if self.draws() { 1 } else { 2 }
    }

    /// The row of rounds; `None` if operations are drawn.
    pub fn row_of_rounds(&self) -> Option<usize> {
        (!self.draws()).then(|| self.rows.len() - 1)
    }

    /// The row of closes, or of all operations if no step closes.
    pub fn row_of_closes(&self) -> usize {
        let mut rows = self.rows.iter();
        let closes = rows.position(|row| row.op == OpKind::Close);
        closes.unwrap_or(self.row_of_all())
    }

    /// True if it adds, removes or renames names of a set.
    pub fn changes(&self, set: usize) -> bool {
        self.all_steps()
            .any(|step| step.set == set && step.verb.changes_names())
    }
}

impl MixPlan {
    /// Rounds, or drawn operations, of a worker that are in flight at a time.
    pub fn rounds_in_flight(&self) -> usize {
        self.in_flight.unwrap_or(1) as usize
    }

    /// Copies of the sets: one for each of `ranks` ranks, unless they share it.
    pub fn copies(&self, ranks: u32) -> u64 {
        if self.shared { 1 } else { ranks.into() }
    }

    /// Number of workers of each rank.
    pub fn threads(&self) -> u32 {
        self.roles.iter().map(|role| role.threads).sum()
    }

    /// The role of a worker of a rank by its number, and its number within the role.
    pub fn role_of(&self, thread: u32) -> (usize, u32) {
        let mut left = thread;
        for (number, role) in self.roles.iter().enumerate() {
            if left < role.threads {
                return (number, left);
            }
            left -= role.threads;
        }
        (0, 0)
    }

    /// The index of a role's first row among those of the phase.
    pub fn first_row(&self, role: usize) -> usize {
        self.roles[..role].iter().map(|role| role.rows.len()).sum()
    }

    /// Number of a rank's workers that own names of a set: those that change it, or one if none
    /// does.
    pub fn owners(&self, set: usize) -> u64 {
        let roles = self.roles.iter().filter(|role| role.changes(set));
        let all: u64 = roles.map(|role| u64::from(role.threads)).sum();
        all.max(1)
    }

    /// The number of a worker among its rank's owners of a set; `None` if it owns none.
    pub fn owner(&self, set: usize, thread: u32) -> Option<u64> {
        let (role, within) = self.role_of(thread);
        if !self.roles[role].changes(set) {
            return None;
        }
        let before = self.roles[..role].iter().filter(|other| other.changes(set));
        let before: u64 = before.map(|other| u64::from(other.threads)).sum();
        Some(before + u64::from(within))
    }

    /// Average number of bytes of the files that exist at the start.
    pub fn data_bytes(&self, ranks: u32) -> u64 {
        self.prepared().1.saturating_mul(self.copies(ranks))
    }

    /// True if it reads data of files.
    pub fn reads(&self) -> bool {
        let steps = self.roles.iter().flat_map(Role::all_steps);
        steps.into_iter().any(|step| step.verb.reads())
    }

    /// Number of names of all sets at the start, of a rank or of all, and the average number of
    /// bytes of their files.
    pub fn prepared(&self) -> (u64, u64) {
        self.sets.iter().fold((0, 0), |(names, bytes), set| {
            let prepared = set.number * u64::from(set.prepared) / 100;
            let of_files = match set.kind {
                SetKind::Files => prepared.saturating_mul(set.sizes.mean()),
                SetKind::Directories | SetKind::Links => 0,
            };
            (names + prepared, bytes.saturating_add(of_files))
        })
    }
}
