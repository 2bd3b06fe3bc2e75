//! The first look at the traces of a replay: what there is of what, who did it, who shares open
//! files with whom, and what was there before. It holds names and processes, not operations.

use std::collections::{BTreeMap, HashMap};

use rbench_core::{Bytes, Call, Latency, Nanos, OpKind};

use super::world::{Prepared, World};
use super::{Kind, Op};

/// So much memory is taken by what is known of traces, at most, bytes.
const MEMORY_MAX: u64 = 4 << 30;

/// What a process, or an open file, takes of memory, about, bytes.
const ENTRY: u64 = 100;

/// No operation took longer, whatever a damaged stamp says: sums of squares have to have room.
const TOOK_MAX: Nanos = Nanos(24 * 3600 * 1_000_000_000);

/// An operation, and the trace that it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The trace's number.
    pub trace: u32,
    /// The operation; it begins so long after the start of the replay as it was recorded.
    pub op: Op,
}

/// What there is of a kind of operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// How many, in one copy.
    pub operations: u64,
    /// How long they took, of those whose trace says so, failed ones included: what fails again
    /// as recorded is an operation with its latency in the replay too.
    pub latency: Latency,
}

/// What all traces have.
#[derive(Debug)]
pub struct Survey {
    worlds: Vec<World>,
    /// What names take of memory, and what there is, bytes.
    names: u64,
    room: u64,
    /// Number of each process, in the order in which they come.
    processes: HashMap<(u32, u64), u32>,
    /// The process that stands for all that share open files with it.
    shares: Vec<u32>,
    /// Who has used an open file.
    users: HashMap<(u32, u64), u32>,
    /// By kind of operation.
    pub kinds: BTreeMap<OpKind, Recorded>,
    /// Operations, without those that are implied.
    pub operations: u64,
    /// From the first start to the last one.
    pub span: Nanos,
    /// The largest read or write, or room for names, bytes.
    pub largest: u64,
    /// Bytes that are written, at most.
    pub written: u64,
}

impl Default for Survey {
    fn default() -> Survey {
        Survey::in_room(MEMORY_MAX)
    }
}

impl Survey {
    /// One that takes so much memory, at most, bytes.
    pub fn in_room(room: u64) -> Survey {
        Survey {
            worlds: Vec::new(),
            names: 0,
            room,
            processes: HashMap::new(),
            shares: Vec::new(),
            users: HashMap::new(),
            kinds: BTreeMap::new(),
            operations: 0,
            span: Nanos(0),
            largest: 0,
            written: 0,
        }
    }

    /// Takes the next operation; in the order of time.
    ///
    /// # Errors
    /// There are more names, processes and open files than memory is taken for.
    pub fn take(&mut self, step: &Step) -> Result<(), String> {
        let Step { trace, op } = step;
        while self.worlds.len() <= *trace as usize {
            self.worlds.push(World::default());
        }
        let world = &mut self.worlds[*trace as usize];
        let before = world.bytes();
        world.take(op);
        self.names = (self.names + world.bytes()).saturating_sub(before);
        self.note_process(*trace, op);
        let entries = (2 * self.processes.len() + 2 * self.users.len()) as u64;
        if self.names + entries * ENTRY > self.room {
            let room = Bytes(self.room);
            return Err(format!(
                "the names, processes and open files up to this line need more than {room} of memory"
            ));
        }
        self.span = self.span.max(op.at);
        let length = op.length.unwrap_or_default();
        self.largest = self.largest.max(length);
        if op.writes() {
            self.written = self.written.saturating_add(length);
        }
        if op.implied {
            return Ok(());
        }
        self.operations += 1;
        let recorded = self.kinds.entry(op.call.op()).or_insert_with(|| Recorded {
            operations: 0,
            latency: Latency::default(),
        });
        recorded.operations += 1;
        if let Some(took) = op.took {
            recorded.latency.record(took.min(TOOK_MAX));
        }
        Ok(())
    }

    fn note_process(&mut self, trace: u32, op: &Op) {
        let next = self.shares.len() as u32;
        let number = *self.processes.entry((trace, op.process)).or_insert(next);
        if number == next {
            self.shares.push(next);
        }
        let Some(file) = op.file else {
            return;
        };
        let user = *self.users.entry((trace, file)).or_insert(number);
        if user != number {
            let (one, other) = (self.head(user), self.head(number));
            self.shares[one.max(other) as usize] = one.min(other);
        }
        if op.call == Call::Close {
            self.users.remove(&(trace, file));
        }
    }

    /// The process that stands for those that `number` shares open files with.
    fn head(&mut self, mut number: u32) -> u32 {
        loop {
            let next = self.shares[number as usize];
            if next == number {
                return number;
            }
            // Half the way for whoever comes again: a chain may be as long as all processes.
            let behind = self.shares[next as usize];
            self.shares[number as usize] = behind;
            number = behind;
        }
    }

    /// Processes of all traces.
    pub fn processes(&self) -> u32 {
        self.shares.len() as u32
    }

    /// Ends it: what was there before, of each trace, and who goes together.
    pub fn finish(mut self) -> Found {
        let worlds = std::mem::take(&mut self.worlds);
        let before = together(worlds.into_iter().flat_map(World::before).collect());
        let heads: Vec<u32> = (0..self.processes()).map(|n| self.head(n)).collect();
        // Groups are numbered in the order of their first processes.
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut group_of = HashMap::new();
        let mut in_order: Vec<((u32, u64), u32)> = self
            .processes
            .iter()
            .map(|(key, number)| (*key, *number))
            .collect();
        in_order.sort_unstable_by_key(|(_, number)| *number);
        for (key, number) in in_order {
            let next = numbers.len() as u32;
            let group = *numbers.entry(heads[number as usize]).or_insert(next);
            group_of.insert(key, group);
        }
        Found {
            before,
            groups: numbers.len() as u32,
            group_of,
            processes: self.processes(),
            kinds: self.kinds,
            operations: self.operations,
            span: self.span,
            largest: self.largest,
            written: self.written,
        }
    }
}

/// What several traces need, each once: as long as the longest, and a directory if one needs that.
fn together(mut all: Vec<Prepared>) -> Vec<Prepared> {
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all.dedup_by(|later, kept| {
        let same = later.path == kept.path;
        if same {
            kept.size = kept.size.max(later.size);
            if later.kind == Kind::Directory {
                kept.kind = Kind::Directory;
            }
        }
        same
    });
    all
}

/// What traces hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was there before, directories before what lies in them, each once.
    pub before: Vec<Prepared>,
    /// Processes that share open files are one group, which one worker replays.
    pub groups: u32,
    /// By trace and process.
    pub group_of: HashMap<(u32, u64), u32>,
    /// How many processes.
    pub processes: u32,
    /// By kind of operation.
    pub kinds: BTreeMap<OpKind, Recorded>,
    /// Operations, without those that are implied.
    pub operations: u64,
    /// From the first start to the last one.
    pub span: Nanos,
    /// The largest read or write, or room for names, bytes.
    pub largest: u64,
    /// Bytes that are written, at most.
    pub written: u64,
}

impl Found {
    /// Bytes of what was there before, in one copy.
    pub fn bytes_before(&self) -> u64 {
        let sizes = self.before.iter().map(|one| one.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Groups of all copies: so many workers have something to do, at most.
    pub fn parts(&self, copies: u32) -> u64 {
        u64::from(self.groups) * u64::from(copies)
    }

    /// The worker of all ranks that replays a process in a copy.
    pub fn worker(
        &self,
        (trace, process): (u32, u64),
        copy: u32,
        copies: u32,
        workers: u64,
    ) -> u64 {
        let group = self.group_of.get(&(trace, process)).copied().unwrap_or(0);
        (u64::from(group) * u64::from(copies) + u64::from(copy)) % workers.max(1)
    }
}
