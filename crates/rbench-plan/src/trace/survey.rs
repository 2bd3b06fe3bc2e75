//! First pass over the traces of a replay: kinds of operations, processes, groups that share open
//! files, and the files that existed before. It keeps names and processes, but not operations.

use std::collections::{BTreeMap, HashMap};

use rbench_core::{Bytes, Call, Latency, Nanos, OpKind};

use super::world::{Prepared, World};
use super::{Kind, Op};

/// Most memory for the data about traces, bytes.
const MEMORY_MAX: u64 = 4 << 30;

/// Approximate memory of a process or an open file, bytes.
const ENTRY: u64 = 100;

/// Longest duration of an operation, whatever a damaged stamp says: sums of squares must not
/// overflow.
const TOOK_MAX: Nanos = Nanos(24 * 3600 * 1_000_000_000);

/// An operation, with its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Number of the trace.
    pub trace: u32,
    /// The operation; it starts as long after the start of the replay as it was recorded.
    pub op: Op,
}

/// Recorded operations of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Their number in one copy.
    pub operations: u64,
    /// Durations of those whose trace has them, including failed ones: an operation that fails
    /// again in the replay counts with its latency, too.
    pub latency: Latency,
}

/// State of the first pass.
#[derive(Debug)]
pub struct Survey {
    worlds: Vec<World>,
    /// Memory that names use, and its limit, bytes.
    names: u64,
    room: u64,
    /// Number of each process, in the order in which they appear.
    processes: HashMap<(u32, u64), u32>,
    /// Representative of the processes that share open files.
    shares: Vec<u32>,
    /// A process that has used each open file.
    users: HashMap<(u32, u64), u32>,
    /// The summary, complete except for files, processes and groups.
    found: Found,
}

impl Default for Survey {
    fn default() -> Survey {
        Survey::in_room(MEMORY_MAX)
    }
}

impl Survey {
    /// Creates the state with this limit of memory in bytes.
    pub fn in_room(room: u64) -> Survey {
        Survey {
            worlds: Vec::new(),
            names: 0,
            room,
            processes: HashMap::new(),
            shares: Vec::new(),
            users: HashMap::new(),
            found: Found::default(),
        }
    }

    /// Takes the next operation, in the order of time.
    ///
    /// # Errors
    /// Fails if names, processes and open files exceed the limit of memory.
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
        let found = &mut self.found;
        found.span = found.span.max(op.at);
        let length = op.length.unwrap_or_default();
        found.largest = found.largest.max(length);
        if op.writes() {
            found.written = found.written.saturating_add(length);
        }
        if op.implied {
            return Ok(());
        }
        found.operations += 1;
        let recorded = found.kinds.entry(op.call.op()).or_default();
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

    /// The representative of the processes that share open files with `number`.
    fn head(&mut self, mut number: u32) -> u32 {
        loop {
            let next = self.shares[number as usize];
            if next == number {
                return number;
            }
            // Halves the path for later calls: a chain may be as long as the number of processes.
            let behind = self.shares[next as usize];
            self.shares[number as usize] = behind;
            number = behind;
        }
    }

    /// Number of processes of all traces.
    pub fn processes(&self) -> u32 {
        self.shares.len() as u32
    }

    /// Ends the pass. Returns the files that existed before each trace, and the groups of
    /// processes.
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
            ..self.found
        }
    }
}

/// Files needed by several traces, each once: with the largest length, and a directory if any
/// trace needs one.
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

/// Summary of the traces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Files that existed before, each once, with directories before their entries.
    pub before: Vec<Prepared>,
    /// Groups of processes that share open files; one worker replays each.
    pub groups: u32,
    /// Group by trace and process.
    pub group_of: HashMap<(u32, u64), u32>,
    /// Number of processes.
    pub processes: u32,
    /// Recorded operations by kind.
    pub kinds: BTreeMap<OpKind, Recorded>,
    /// Operations, except implied ones.
    pub operations: u64,
    /// Time from the first start to the last.
    pub span: Nanos,
    /// The largest read, write or room for names, bytes.
    pub largest: u64,
    /// Most bytes that are written.
    pub written: u64,
}

impl Found {
    /// Bytes of the files that existed before, in one copy.
    pub fn bytes_before(&self) -> u64 {
        let sizes = self.before.iter().map(|one| one.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Groups of all copies: at most this number of workers have work.
    pub fn parts(&self, copies: u32) -> u64 {
        u64::from(self.groups) * u64::from(copies)
    }

    /// The worker, among all ranks, that replays a process in a copy.
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
