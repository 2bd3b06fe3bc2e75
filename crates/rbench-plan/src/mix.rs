//! A mix of operations, complete: sets of files, and workers that go through lists of steps
//! or draw operations by weight.
//!
//! Each name of a set that workers change has one worker that owns it: only the owner makes,
//! removes and renames it, so that these never fail for want of what they need. What only
//! looks (open, stat, read …) takes any name of the set that is there as far as the rank
//! knows ([`share`]).

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

/// Bytes of a call of steps that read or write whole files where nothing is said.
pub const CHUNK: u64 = 1 << 20;
/// Most bytes of a call.
pub const CALL_MAX: u64 = 64 << 20;
/// Most names of a set, of one rank or of all where they share it.
pub const NAMES_MAX: u64 = 100_000_000;

/// The mix, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct MixPlan {
    /// What it is called: `--ops`, `--list` or the profile.
    pub name: String,
    /// Whether all ranks work on the same sets; otherwise each has its own.
    pub shared: bool,
    /// The sets.
    pub sets: Vec<FileSet>,
    /// The kinds of workers; together they are a rank's workers.
    pub roles: Vec<Role>,
    /// Stop issuing after this time.
    pub time: Option<Nanos>,
    /// Rounds, or operations drawn, of each worker; `None`: time decides.
    pub rounds: Option<u64>,
    /// Pause behind each round or operation drawn.
    pub think: Nanos,
    /// When rounds, or operations drawn, are meant to start.
    pub open_loop: Option<OpenLoop>,
    /// Parts of the profile's numbers and sizes that were taken.
    pub scale: Scale,
    /// Rounds, or operations drawn, that each worker has in flight in a ring; `None`: system
    /// calls, one after the other.
    pub in_flight: Option<u32>,
}

/// What was taken of a profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Of the numbers of files.
    pub files: f64,
    /// Of their sizes.
    pub size: f64,
}

impl Scale {
    /// All of it.
    pub const WHOLE: Scale = Scale {
        files: 1.0,
        size: 1.0,
    };
}

/// Names that steps choose from.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSet {
    /// In lists, behind an `@`.
    pub name: String,
    /// What its names are.
    pub kind: SetKind,
    /// So many names, of each rank or of all.
    pub number: u64,
    /// How large files are.
    pub sizes: Sizes,
    /// Entries of a directory at most; `None`: all lie in one.
    pub width: Option<u64>,
    /// Percentage of the names that are there at the start.
    pub prepared: u32,
}

/// A kind of worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// What it is called; empty where there is only one.
    pub name: String,
    /// What it does, as it was written.
    pub text: String,
    /// Workers of each rank.
    pub threads: u32,
    /// Steps before the first round.
    pub first: Vec<Step>,
    /// The steps of a round, or the operations to draw from.
    pub steps: Vec<Step>,
    /// The weight of each step, where they are drawn; empty: a list.
    pub weights: Vec<u64>,
    /// The n-th round of a worker, from 0 on, begins n times that after the start, or as soon
    /// as it can when it is late.
    pub every: Option<Nanos>,
    /// A round for so many rounds of another role.
    pub per: Option<Per>,
    /// Its rows; steps of the same kind share one. The last ones are those of all operations
    /// and, of a list, of its rounds.
    pub rows: Vec<Row>,
}

/// One round for so many of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Per {
    /// The other role.
    pub role: usize,
    /// Rounds of all its workers on the rank.
    pub rounds: u64,
}

/// A row of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The kind of operation.
    pub op: OpKind,
    /// For machines.
    pub name: String,
    /// For people.
    pub label: String,
}

/// Where in a file a step reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Behind the last place; from the start again at the end.
    Next,
    /// Anywhere, in multiples of the length.
    Random,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Makes a file whose name is not there, and holds it open.
    Create(OpenFlags),
    /// Opens a file that is there.
    Open(OpenFlags),
    /// Closes it.
    Close,
    /// Reads all of the open file in calls of so many bytes.
    ReadWhole(u64),
    /// Reads so many bytes of it.
    Read(u64, Place),
    /// Writes it as large as its set says, in calls of so many bytes.
    WriteWhole(u64),
    /// Writes so many bytes.
    Write(u64, Place),
    /// Writes between so many bytes at its end.
    Append(u64, u64),
    /// Removes a name: a file, a directory or a link, as its set is.
    Delete,
    /// Makes the call of a word, with this size.
    Plain(&'static Word, u64),
    /// Pauses for so long; no operation.
    Think(Nanos),
}

/// A step of a list, or an operation to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub verb: Verb,
    /// On which set.
    pub set: usize,
    /// On the file of the set that was used last.
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
    /// The word of its row, on files or directories; `None`: a pause.
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

    /// The word as it was written, for messages.
    pub fn name(self) -> &'static str {
        self.word(false).map_or("think", |word| word.name)
    }

    /// The operand that it needs.
    pub fn need(self) -> Need {
        self.word(false).map_or(Need::Nothing, |word| word.need)
    }

    /// Whether it changes which names are there.
    pub fn changes_names(self) -> bool {
        matches!(
            self.need(),
            Need::OwnThere | Need::OwnFree | Need::Move | Need::Over | Need::Copy
        )
    }

    /// Whether it writes data that a sync brings to stable storage.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Verb::WriteWhole(_) | Verb::Write(..) | Verb::Append(..)
        )
    }

    /// Whether it brings data to stable storage.
    pub fn syncs(self) -> bool {
        match self {
            Verb::Plain(word, _) => matches!(word.op, OpKind::Fsync | OpKind::Fdatasync),
            Verb::Create(flags) | Verb::Open(flags) => flags.has(linux::DSYNC),
            _ => false,
        }
    }

    /// Whether it writes to the open file, or changes it otherwise.
    pub fn changes_file(self) -> bool {
        self.writes() || matches!(self, Verb::Plain(Word { changes: true, .. }, _))
    }

    /// System call of the step, on files or directories, with the arguments that the step itself
    /// determines; `None`: a pause.
    pub fn call(self, directories: bool) -> Option<Call> {
        let size = match self {
            Verb::Create(flags) | Verb::Open(flags) => return Some(Call::Open(flags)),
            Verb::Plain(_, size) => size,
            _ => 0,
        };
        self.word(directories).map(|word| (word.call)(size))
    }

    /// Whether a ring performs it.
    pub fn in_a_ring(self) -> bool {
        let performs = |call: Call| call.in_a_ring().is_some();
        self.call(false).is_none_or(performs)
    }

    /// Whether it reads or writes from where the file's last user has left it.
    pub fn moves_position(self) -> bool {
        matches!(self, Verb::ReadWhole(_) | Verb::WriteWhole(_))
    }

    /// Bytes that a call of it moves at most.
    fn call_bytes(self) -> u64 {
        match self {
            Verb::ReadWhole(bytes)
            | Verb::Read(bytes, _)
            | Verb::WriteWhole(bytes)
            | Verb::Write(bytes, _)
            | Verb::Append(_, bytes) => bytes,
            // What is drawn writes its file.
            Verb::Create(_) => CHUNK,
            Verb::Plain(word, size) => match word.takes {
                Takes::Data(..) => size,
                Takes::Length(_) | Takes::Nothing => word.room,
            },
            _ => 0,
        }
    }

    /// Whether it reads data.
    pub fn reads(self) -> bool {
        matches!(self, Verb::ReadWhole(_) | Verb::Read(..))
    }
}

impl Role {
    /// Whether operations are drawn; otherwise it goes through a list.
    pub fn draws(&self) -> bool {
        !self.weights.is_empty()
    }

    /// All its steps, those before the first round too.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(&self.steps)
    }

    /// Whether a file of that set stays open behind the steps before the first round: all rounds
    /// work on it.
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

    /// Bytes that a call of its steps moves at most.
    pub fn call_bytes(&self) -> u64 {
        let all = self.all_steps().map(|step| step.verb.call_bytes());
        all.max().unwrap_or(0)
    }

    /// The row of all operations.
    pub fn row_of_all(&self) -> usize {
        self.rows.len() - if self.draws() { 1 } else { 2 }
    }

    /// The row of rounds; `None` where operations are drawn.
    pub fn row_of_rounds(&self) -> Option<usize> {
        (!self.draws()).then(|| self.rows.len() - 1)
    }

    /// The row of closes, or that of all operations where none is a step.
    pub fn row_of_closes(&self) -> usize {
        let mut rows = self.rows.iter();
        let closes = rows.position(|row| row.op == OpKind::Close);
        closes.unwrap_or(self.row_of_all())
    }

    /// Whether it changes which names of a set are there.
    pub fn changes(&self, set: usize) -> bool {
        self.all_steps()
            .any(|step| step.set == set && step.verb.changes_names())
    }
}

impl MixPlan {
    /// Rounds, or operations drawn, of a worker that are under way at a time.
    pub fn rounds_in_flight(&self) -> usize {
        self.in_flight.unwrap_or(1) as usize
    }

    /// Workers of each rank.
    pub fn threads(&self) -> u32 {
        self.roles.iter().map(|role| role.threads).sum()
    }

    /// The role of a worker of a rank, by its number, and its number among those of the role.
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

    /// The number of the first row of a role among those of the phase.
    pub fn first_row(&self, role: usize) -> usize {
        self.roles[..role].iter().map(|role| role.rows.len()).sum()
    }

    /// Workers of a rank that own names of a set: those that change it; one where nobody
    /// does.
    pub fn owners(&self, set: usize) -> u64 {
        let roles = self.roles.iter().filter(|role| role.changes(set));
        let all: u64 = roles.map(|role| u64::from(role.threads)).sum();
        all.max(1)
    }

    /// The number of a worker among the owners of a set, of those of its rank; `None`: it
    /// owns none.
    pub fn owner(&self, set: usize, thread: u32) -> Option<u64> {
        let (role, within) = self.role_of(thread);
        if !self.roles[role].changes(set) {
            return None;
        }
        let before = self.roles[..role].iter().filter(|other| other.changes(set));
        let before: u64 = before.map(|other| u64::from(other.threads)).sum();
        Some(before + u64::from(within))
    }

    /// Bytes of the files that are there at the start, on average.
    pub fn data_bytes(&self, ranks: u32) -> u64 {
        let sets = if self.shared { 1 } else { u64::from(ranks) };
        self.prepared().1.saturating_mul(sets)
    }

    /// Whether it reads data of files.
    pub fn reads(&self) -> bool {
        let steps = self.roles.iter().flat_map(Role::all_steps);
        steps.into_iter().any(|step| step.verb.reads())
    }

    /// Names of all sets that are there at the start, of a rank or of all, and the bytes of
    /// their files on average.
    pub fn prepared(&self) -> (u64, u64) {
        self.sets.iter().fold((0, 0), |(names, bytes), set| {
            let there = set.number * u64::from(set.prepared) / 100;
            let of_files = match set.kind {
                SetKind::Files => there.saturating_mul(set.sizes.mean()),
                SetKind::Directories | SetKind::Links => 0,
            };
            (names + there, bytes.saturating_add(of_files))
        })
    }
}
