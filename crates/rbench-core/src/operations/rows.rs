//! The types of rows of the table [`super::OPERATIONS`], and the functions that write them.

use std::fmt;

use super::{Call, OPERATIONS, OpKind, PhaseKind};
use crate::open::OpenFlags;

/// Kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A directory.
    Dir,
    /// A file.
    File,
}

/// Kind of the names of a mix's set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetKind {
    /// Files.
    #[default]
    Files,
    /// Empty directories.
    Directories,
    /// Symbolic links.
    Links,
}

/// The operand of a mix's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The open file.
    Open,
    /// A name that exists.
    There,
    /// A name that exists and belongs to the worker.
    OwnThere,
    /// A name that belongs to the worker and does not exist.
    OwnFree,
    /// Two names of the worker: the first, which exists, becomes the second, which does not.
    Move,
    /// The last used file, and another existing one, both of the worker.
    Over,
    /// An existing name, and a name of the worker that does not exist: the second is created from
    /// the first.
    Copy,
    /// A directory of the set.
    Directory,
    /// Nothing.
    Nothing,
}

/// The size that a word of a mix takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// None.
    Nothing,
    /// A length in bytes, at least this.
    Length(u64),
    /// A number of bytes of data: this default, and at most the second number.
    Data(u64, u64),
}

/// A word of mixes: the name of a step and of its row.
#[derive(Clone, Copy)]
pub struct Word {
    /// Its position among the words.
    pub place: usize,
    /// The word, and the name of the row for machines.
    pub name: &'static str,
    /// The name of the row for people.
    pub label: &'static str,
    /// The operation.
    pub op: OpKind,
    /// The operand.
    pub need: Need,
    /// Its system call with the size that it takes.
    pub call: fn(u64) -> Call,
    /// The size that it takes.
    pub takes: Takes,
    /// The form in which it is written, for messages.
    pub form: &'static str,
    /// Other words for the same step.
    pub aliases: &'static [&'static str],
    /// Kinds of names that it works on.
    pub sets: &'static [SetKind],
    /// The set that it works on if none is named.
    pub set: Option<&'static str>,
    /// Most bytes that its call moves, if it takes no size of data.
    pub room: u64,
    /// True if it changes an open file, which must be open for writing.
    pub changes: bool,
}

impl PartialEq for Word {
    fn eq(&self, other: &Word) -> bool {
        self.name == other.name
    }
}

impl Eq for Word {}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Every kind of name.
pub(super) const ANY: &[SetKind] = &[SetKind::Files, SetKind::Directories, SetKind::Links];

pub(super) const fn word(
    place: usize,
    (name, label): (&'static str, &'static str),
    op: OpKind,
    need: Need,
    call: fn(u64) -> Call,
) -> Word {
    let (form, aliases, sets) = ("VERB [last] [@SET]", &[], &[SetKind::Files]);
    let (set, takes, room, changes) = (None, Takes::Nothing, 0, false);
    Word {
        place,
        name,
        label,
        op,
        need,
        call,
        takes,
        form,
        aliases,
        sets,
        set,
        room,
        changes,
    }
}

/// A row of the per-operation table (`rbench ops`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpsRow {
    pub(super) place: usize,
    /// Name for people, machines and the command line.
    pub name: &'static str,
    pub(super) calls: &'static [Call],
    /// The phase that measures it; `None` if no system call reaches it.
    pub phase: Option<PhaseKind>,
    /// The reason why no system call reaches it; `None` if one does.
    pub out_of_reach: Option<&'static str>,
}

impl OpsRow {
    /// The system calls that are timed, separated by spaces.
    pub fn calls(&self) -> String {
        let names: Vec<&str> = self.calls.iter().map(|call| call.names()).collect();
        names.join(" ")
    }
}

pub(super) const fn ops_row(
    place: usize,
    name: &'static str,
    calls: &'static [Call],
) -> Option<OpsRow> {
    Some(OpsRow {
        place,
        name,
        calls,
        phase: None,
        out_of_reach: None,
    })
}

/// An operation that a phase performs on the tree or on each item.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The phase.
    pub kind: PhaseKind,
    /// Name for machines and the command line.
    pub name: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// The operation.
    pub op: OpKind,
    /// Directories or files; `None` for the tree itself.
    pub items: Option<ItemKind>,
    /// Its shift step, from 1: its position among the phases after creation. Phases that only run
    /// on request come after all others. Zero: works on the rank's own items.
    pub step: u32,
    /// The timed calls on one item; empty if the calls work on names that it generates.
    pub timed: &'static [Call],
    /// Flags of the untimed open before the timed calls, which work on that file; `None` if they
    /// work on names.
    pub opens: Option<OpenFlags>,
    /// Bytes of data of each call.
    pub length: u64,
    /// Suffix of the name that it works on, beside the item.
    pub beside: Option<&'static str>,
    /// Suffix of its second name, beside the item.
    pub other: Option<&'static str>,
    /// The phases that must have run before it, in addition to those that create the items.
    pub needs: &'static [PhaseKind],
    /// The phase that removes the names that it has created beside, or in, the items.
    pub undone_by: Option<PhaseKind>,
    /// Entries of each directory that it creates, lists or removes; `None`: the tree's own.
    pub entries: Option<u64>,
    /// Files and directories that it creates for each item, in addition to the item itself.
    pub makes_besides: u64,
    /// Bytes that it writes to or reads from each file, 1 KiB in each synced write. 0: none, or as
    /// many as the plan says.
    pub builds: u64,
    /// Bytes that it reserves for each file, in addition to its data.
    pub reserves: u64,
    /// True if it creates a copy of each file.
    pub copies: bool,
    /// True if `rbench meta` runs it by default: mdtest has it too.
    pub by_default: bool,
    /// True if it changes an item so that it can be repeated on the same one, with the same work
    /// each time. The plan then makes each rename start from the previous name.
    pub again: bool,
    /// Its rows of the per-operation table.
    pub rows: [Option<OpsRow>; 2],
    /// Its word in mixes.
    pub word: Option<Word>,
}

/// An operation on the names of the tree or of items, without data.
pub(super) const fn named(
    items: Option<ItemKind>,
    (name, label): (&'static str, &'static str),
    timed: &'static [Call],
) -> Operation {
    Operation {
        kind: PhaseKind::TreeCreate,
        name,
        label,
        op: match timed {
            [] => OpKind::Fill,
            [call, ..] => call.op(),
        },
        items,
        step: 0,
        timed,
        opens: None,
        length: 0,
        beside: None,
        other: None,
        needs: &[],
        undone_by: None,
        entries: None,
        makes_besides: 0,
        builds: 0,
        reserves: 0,
        copies: false,
        by_default: false,
        again: false,
        rows: [None; 2],
        word: None,
    }
}

pub(super) const fn tree(
    name: &'static str,
    label: &'static str,
    timed: &'static [Call],
) -> Operation {
    named(None, (name, label), timed)
}

pub(super) const fn dir(
    name: &'static str,
    label: &'static str,
    timed: &'static [Call],
) -> Operation {
    named(Some(ItemKind::Dir), (name, label), timed)
}

pub(super) const fn file(
    name: &'static str,
    label: &'static str,
    timed: &'static [Call],
) -> Operation {
    named(Some(ItemKind::File), (name, label), timed)
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($given:ident: $of:ty),*) { $($field:ident: $value:expr),* })*) => {
        impl Operation {
            $($(#[$doc])* pub(super) const fn $name(self, $($given: $of),*) -> Operation {
                Operation { $($field: $value,)* ..self }
            })*

            /// With a row of the per-operation table, which times all its calls.
            pub(super) const fn row(self, place: usize, name: &'static str) -> Operation {
                Operation { rows: [ops_row(place, name, self.timed), None], ..self }
            }
        }
    };
}

setters! {
    of(kind: PhaseKind) { kind: kind }
    op(op: OpKind) { op: op }
    by_default() { by_default: true }
    step(step: u32) { step: step }
    needs(needs: &'static [PhaseKind]) { needs: needs }
    again() { again: true }
    builds(bytes: u64) { builds: bytes }
    word(word: Word) { word: Some(word) }
    /// With data of its own.
    moving(length: u64) { length: length }
    /// On another name beside the item.
    beside(suffix: &'static str) { beside: Some(suffix) }
    /// With a second name beside the item.
    to(suffix: &'static str) { other: Some(suffix) }
    /// On this number of entries of each directory.
    entries(entries: u64) { entries: Some(entries) }
    /// With this number of new names for each item, which that phase removes.
    undone(makes_besides: u64, by: PhaseKind) { makes_besides: makes_besides, undone_by: Some(by) }
    /// On a file that is opened untimed, with `length` bytes of data for each call.
    opened(flags: OpenFlags, length: u64) { opens: Some(flags), length: length }
}

impl Operation {
    /// True if the native commands have it: they write while they create.
    pub fn native(&self) -> bool {
        self.kind != PhaseKind::FileWrite
    }

    /// True if it creates items.
    pub fn creates(&self) -> bool {
        matches!(self.kind, PhaseKind::DirCreate | PhaseKind::FileCreate)
    }

    /// True if later phases need it to be complete. If time ends it, all workers continue to the
    /// one that came furthest. Time only ends renaming in the per-operation table, and there names
    /// go back to their old ones.
    pub fn makes(&self) -> bool {
        let needed = |other: &Operation| other.needs.contains(&self.kind);
        self.creates() || self.op == OpKind::Empty || OPERATIONS.iter().any(needed)
    }

    /// True if its operation can be repeated on the same item, with the same work each time. The
    /// plan then makes each rename start from the previous name.
    pub fn repeats(&self) -> bool {
        self.asks() || self.again
    }

    /// True if it removes the items.
    pub fn removes(&self) -> bool {
        matches!(self.kind, PhaseKind::DirRemove | PhaseKind::FileRemove)
    }

    /// True if its operation is a call on a file that is opened before and closed after it, both
    /// untimed.
    pub fn opens_untimed(&self) -> bool {
        self.opens.is_some()
    }

    /// True if a ring can perform its operation.
    pub fn in_a_ring(&self) -> bool {
        !self.timed.is_empty() && self.timed.iter().all(|call| call.in_a_ring().is_some())
    }

    /// True if it only reads, so that the client's caches could answer.
    pub fn asks(&self) -> bool {
        self.op.asks()
    }
}
