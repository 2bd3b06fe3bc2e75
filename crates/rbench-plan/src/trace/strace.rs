//! The output of `strace -f -y -ttt -T -s 0` as a trace. Descriptors are tracked through `open`,
//! `dup`, `fcntl`, `fork`, `clone`, `unshare`, `close` and `exec`, working directories through `chdir`.
//!
//! As in the kernel, `close` frees a descriptor when it starts, and `dup2` replaces one when it
//! starts, no matter how long they take. Descriptors returned by `open` and `fcntl` exist when
//! these end.

mod attributes;
mod calls;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rbench_core::{Call, Nanos};

use super::names::{PATH_MAX, SOMEWHERE, absolute};
use super::order::Order;
use super::{Op, Out, Outcome, Reader, Reading, why};
use text::{Finished, Line, What};

/// True if it looks like a line of strace: a time in seconds, and a call.
pub fn is_line(line: &str) -> bool {
    match text::line(line) {
        Ok(Some(line)) => match line.what {
            What::Call(call) | What::Begun(call) => call.contains('('),
            What::Resumed(..) | What::Exited | What::Superseded(_) | What::Other => true,
        },
        _ => false,
    }
}

/// Finds the working directory of the first process: the result of `getcwd`, or the path that
/// `strace -y` writes after `AT_FDCWD`. Call it with line after line until it answers.
pub fn working_directory(line: &str) -> Hint {
    let Ok(Some(Line {
        what: What::Call(call),
        ..
    })) = text::line(line)
    else {
        return Hint::Nothing;
    };
    let Ok(call) = text::call(call) else {
        return Hint::Nothing;
    };
    if call.name == "chdir" || call.name == "fchdir" {
        return Hint::Unknown;
    }
    let got = (call.name == "getcwd" && matches!(call.result, Outcome::Done(_)))
        .then(|| call.args.first().and_then(|arg| text::string(arg)));
    let beside = || {
        let at = call
            .args
            .iter()
            .find_map(|arg| arg.strip_prefix("AT_FDCWD<"));
        let path = at.and_then(|rest| rest.strip_suffix('>'));
        path.map(|path| path.as_bytes().to_vec())
    };
    got.flatten()
        .or_else(beside)
        .map_or(Hint::Nothing, Hint::Directory)
}

/// Result of [`working_directory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Not in this line.
    Nothing,
    /// Not in any line.
    Unknown,
    /// The directory.
    Directory(Vec<u8>),
}

/// First words of calls that create processes.
const FORKS: [&str; 4] = ["clone(", "clone3(", "fork(", "vfork("];

/// Object of a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Descriptor {
    /// A file that the trace opened.
    File(File),
    /// Another object, which is not replayed: the reason.
    Other(&'static str),
}

/// An open file, as seen from a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    open: u64,
    /// The absolute path of its open.
    path: Arc<[u8]>,
    /// True if `exec` closes it.
    cloexec: bool,
}

/// Number of an object that threads share: descriptors, or a working directory.
type Shared = usize;

/// A process or thread.
#[derive(Debug, Clone)]
struct Process {
    table: Shared,
    folder: Shared,
    /// A call that was interrupted by another process's line.
    begun: Option<Begun>,
}

/// Start of a call.
#[derive(Debug, Clone)]
struct Begun {
    text: String,
    at: Nanos,
    taken: Taken,
}

/// Effects of a call that take place at its start, whatever happens until its end.
#[derive(Debug, Clone, Default)]
struct Taken {
    /// The descriptors that it names.
    seen: HashMap<i64, Option<Descriptor>>,
    /// Its effect on descriptors.
    early: Option<Early>,
    /// Descriptors of the child of a `fork`.
    copy: Option<Shared>,
    /// The open file of the descriptor that it creates at its end.
    held: Option<Descriptor>,
    /// The child of a `fork`, if it has already appeared.
    child: Option<u64>,
}

/// Effect of a call on descriptors at its start.
#[derive(Debug, Clone)]
enum Early {
    /// Object that `close` removed from its number (`None` if unknown), and true if this was the
    /// last descriptor of the open file.
    Closed(Option<Descriptor>, bool),
    /// All effects are complete.
    Done,
}

/// State from the lines until now.
#[derive(Default)]
struct State {
    reading: Reading,
    processes: BTreeMap<u64, Process>,
    /// Descriptor tables.
    tables: HashMap<Shared, HashMap<i64, Descriptor>>,
    /// Working directories, absolute.
    folders: HashMap<Shared, Vec<u8>>,
    next_shared: Shared,
    /// Number of descriptors of each open file.
    held: HashMap<u64, u32>,
    next_open: u64,
}

/// Reader of strace's output.
#[derive(Default)]
pub struct Strace {
    state: State,
    order: Order,
    /// For times of day, the latest time, and the number of days that have passed.
    day: (Nanos, u64),
}

impl Strace {
    /// Creates a reader before its first line.
    pub fn new(reading: &Reading) -> Strace {
        let state = State {
            reading: reading.clone(),
            ..State::default()
        };
        Strace {
            state,
            ..Strace::default()
        }
    }

    /// Converts a time of day to a time of the trace, which may continue past midnight.
    fn of_day(&mut self, at: Nanos) -> Nanos {
        const DAY: u64 = 24 * 3600 * 1_000_000_000;
        let (latest, days) = &mut self.day;
        // The end of a call may have a slightly earlier time than the start of the line before.
        if at.0 + DAY / 2 < latest.0 {
            *days += 1;
        }
        *latest = at;
        Nanos(at.0 + *days * DAY)
    }
}

impl Reader for Strace {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String> {
        let line = String::from_utf8_lossy(line);
        let Some(Line {
            pid,
            at,
            of_day,
            what,
        }) = text::line(&line)?
        else {
            return Ok(());
        };
        let at = match of_day {
            true => self.of_day(at),
            false => at,
        };
        let mut ops = Vec::new();
        self.state.know(pid);
        match what {
            What::Other => {}
            What::Exited => self.state.exited(pid, at, &mut ops),
            What::Superseded(by) => self.state.superseded(pid, by, at, &mut ops),
            What::Begun(start) => {
                let taken = self.state.begin(pid, at, start, &mut ops);
                if let Some(process) = self.state.processes.get_mut(&pid) {
                    process.begun = Some(Begun {
                        text: start.to_owned(),
                        at,
                        taken,
                    });
                }
            }
            What::Call(call) => {
                let call = text::call(call)?;
                let taken = Taken::default();
                self.state.call((pid, at), &call, taken, (&mut ops, out))?;
            }
            What::Resumed(name, rest) => {
                let process = self.state.processes.get_mut(&pid);
                let start = process.and_then(|process| process.begun.take());
                // A trace may start in the middle of a call.
                let Some(Begun {
                    text: start,
                    at,
                    taken,
                }) = start
                else {
                    return Ok(());
                };
                if !start.starts_with(name) {
                    return Err(format!(
                        "the end of '{name}', whose start is not in the trace"
                    ));
                }
                let call = text::call(&format!("{start}{rest}"))?;
                self.state.call((pid, at), &call, taken, (&mut ops, out))?;
            }
        }
        for op in ops {
            self.order.push(Op { line: number, ..op });
        }
        self.order.hand_over(false, out);
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Result<(), String> {
        for process in self.state.processes.values() {
            if process.begun.is_some() {
                out.left_out.add(why::UNENDED);
            }
        }
        self.order.hand_over(true, out);
        Ok(())
    }
}

impl State {
    fn shared(&mut self) -> Shared {
        self.next_shared += 1;
        self.next_shared
    }

    /// Adds a process that appears for the first time: the child of a process whose `fork` has
    /// not returned yet, or one that existed before the trace.
    fn know(&mut self, pid: u64) {
        if self.processes.contains_key(&pid) {
            return;
        }
        let forks = |text: &str| FORKS.iter().any(|fork| text.starts_with(fork));
        // Out of several, the one that started last; all ranks must choose the same.
        let forking = self.processes.values_mut().filter_map(|process| {
            let start = process.begun.as_ref().filter(|start| forks(&start.text))?;
            Some((start.at, process))
        });
        let parent = forking.max_by_key(|(at, _)| *at).map(|(_, parent)| {
            let (flags, copy) = parent
                .begun
                .as_mut()
                .map_or_else(Default::default, |start| {
                    start.taken.child = Some(pid);
                    (start.text.clone(), start.taken.copy.take())
                });
            (parent.clone(), flags, copy)
        });
        match parent {
            Some((parent, flags, copy)) => self.fork(&parent, pid, &flags, copy),
            None => {
                let (table, folder) = (self.shared(), self.shared());
                let std = (0..3).map(|fd| (fd, Descriptor::Other(why::NO_FILE)));
                self.tables.insert(table, std.collect());
                let at = self.reading.cwd.clone();
                self.folders
                    .insert(folder, at.unwrap_or(SOMEWHERE.to_vec()));
                let process = Process {
                    table,
                    folder,
                    begun: None,
                };
                self.processes.insert(pid, process);
            }
        }
    }

    /// Adds a child, which shares with its parent what the text of the call says. `copy` is its
    /// own descriptor table, if known from the start of the call.
    fn fork(&mut self, parent: &Process, child: u64, text: &str, copy: Option<Shared>) {
        if self.processes.contains_key(&child) {
            return;
        }
        let table = match (text.contains("CLONE_FILES"), copy) {
            (true, _) => parent.table,
            (false, Some(copy)) => copy,
            (false, None) => self.copy_of(parent.table),
        };
        let folder = match text.contains("CLONE_FS") {
            true => parent.folder,
            false => self.folder_like(parent.folder),
        };
        let process = Process {
            table,
            folder,
            begun: None,
        };
        self.processes.insert(child, process);
    }

    /// Creates a copy of a table with the same descriptors.
    fn copy_of(&mut self, table: Shared) -> Shared {
        let own = self.tables.get(&table).cloned().unwrap_or_default();
        for descriptor in own.values() {
            if let Descriptor::File(file) = descriptor {
                *self.held.entry(file.open).or_default() += 1;
            }
        }
        let table = self.shared();
        self.tables.insert(table, own);
        table
    }

    /// Creates a copy of a working directory.
    fn folder_like(&mut self, folder: Shared) -> Shared {
        let own = self.folders.get(&folder).cloned();
        let folder = self.shared();
        self.folders
            .insert(folder, own.unwrap_or(SOMEWHERE.to_vec()));
        folder
    }

    /// Gives a process its own working directory.
    fn unshare_folder(&mut self, pid: u64) {
        let Some(folder) = self.processes.get(&pid).map(|process| process.folder) else {
            return;
        };
        let folder = self.folder_like(folder);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.folder = folder;
        }
    }

    /// Gives a process its own descriptors.
    fn unshare(&mut self, pid: u64) {
        let Some(table) = self.processes.get(&pid).map(|process| process.table) else {
            return;
        };
        let mut others = self.processes.iter().filter(|(other, _)| **other != pid);
        if others.any(|(_, other)| other.table == table) {
            let table = self.copy_of(table);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.table = table;
            }
        }
    }

    /// Handles a thread that has called `exec`: it gets the number of its process, whose first
    /// thread is gone.
    fn superseded(&mut self, pid: u64, by: u64, at: Nanos, found: &mut Vec<Op>) {
        let Some(process) = self.processes.remove(&by) else {
            return;
        };
        if let Some(first) = self.processes.insert(pid, process) {
            self.processes.insert(by, first);
            self.exited(by, at, found);
        }
    }

    /// Handles the end of a process: the kernel closes its descriptors that nobody shares.
    fn exited(&mut self, pid: u64, at: Nanos, found: &mut Vec<Op>) {
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        let taken = process.begun.map(|begun| begun.taken);
        let Taken {
            early, copy, held, ..
        } = taken.unwrap_or_default();
        self.released(held, (pid, at), found);
        if let Some(Early::Closed(Some(descriptor), true)) = early {
            found.extend(implied_close(&descriptor, pid, at));
        }
        if let Some(copy) = copy {
            self.drop_table(copy, pid, at, found);
        }
        let others = || self.processes.values();
        if !others().any(|other| other.folder == process.folder) {
            self.folders.remove(&process.folder);
        }
        if others().any(|other| other.table == process.table) {
            return;
        }
        self.drop_table(process.table, pid, at, found);
    }

    /// Closes the descriptors of a table that has no more users.
    fn drop_table(&mut self, table: Shared, pid: u64, at: Nanos, found: &mut Vec<Op>) {
        let table = self.tables.remove(&table).unwrap_or_default();
        let mut descriptors: Vec<_> = table.into_iter().collect();
        descriptors.sort_by_key(|(fd, _)| *fd);
        for (_, descriptor) in descriptors {
            self.released(Some(descriptor), (pid, at), found);
        }
    }

    /// Closes the open file of a descriptor that is gone without a call, if it was the last one.
    fn released(&mut self, gone: Option<Descriptor>, by: (u64, Nanos), found: &mut Vec<Op>) {
        if let Some(gone) = gone.filter(|gone| self.let_go(gone)) {
            found.extend(implied_close(&gone, by.0, by.1));
        }
    }

    /// Removes a descriptor of an open file. Returns true if it was the last one.
    fn let_go(&mut self, descriptor: &Descriptor) -> bool {
        let Descriptor::File(file) = descriptor else {
            return false;
        };
        let Some(held) = self.held.get_mut(&file.open) else {
            return false;
        };
        *held = held.saturating_sub(1);
        let last = *held == 0;
        if last {
            self.held.remove(&file.open);
        }
        last
    }

    fn descriptors(&mut self, pid: u64) -> Option<&mut HashMap<i64, Descriptor>> {
        let table = self.processes.get(&pid)?.table;
        self.tables.get_mut(&table)
    }

    fn folder(&self, pid: u64) -> &[u8] {
        let process = self.processes.get(&pid);
        let folder = process.and_then(|process| self.folders.get(&process.folder));
        folder.map_or(SOMEWHERE, Vec::as_slice)
    }

    /// Sets a descriptor to `what`; its previous object is closed without a call.
    fn set(&mut self, pid: u64, at: Nanos, fd: i64, what: Descriptor, found: &mut Vec<Op>) {
        if let Descriptor::File(file) = &what {
            *self.held.entry(file.open).or_default() += 1;
        }
        let table = self.descriptors(pid);
        let before = table.and_then(|table| table.insert(fd, what));
        self.released(before, (pid, at), found);
    }

    /// Handles `exec`: it closes the descriptors marked for it, and no longer shares descriptors.
    fn executed(&mut self, pid: u64, at: Nanos, found: &mut Vec<Op>) {
        self.unshare(pid);
        let Some(table) = self.descriptors(pid) else {
            return;
        };
        let closed = |_: &i64, descriptor: &mut Descriptor| match descriptor {
            Descriptor::File(file) => file.cloexec,
            Descriptor::Other(_) => false,
        };
        let mut gone: Vec<(i64, Descriptor)> = table.extract_if(closed).collect();
        gone.sort_by_key(|(fd, _)| *fd);
        for (_, descriptor) in gone {
            self.released(Some(descriptor), (pid, at), found);
        }
    }

    /// Changes the working directory of a process.
    ///
    /// # Errors
    /// Fails if its path is too long.
    fn go_to(&mut self, pid: u64, path: &[u8]) -> Result<(), String> {
        let to = absolute(self.folder(pid), path);
        if to.len() > PATH_MAX {
            return Err(format!(
                "the path of a working directory is longer than {PATH_MAX} bytes"
            ));
        }
        let Some(folder) = self.processes.get(&pid).map(|process| process.folder) else {
            return Ok(());
        };
        self.folders.insert(folder, to);
        Ok(())
    }
}

fn implied_close(descriptor: &Descriptor, pid: u64, at: Nanos) -> Option<Op> {
    let Descriptor::File(file) = descriptor else {
        return None;
    };
    Some(Op::on_file(file.open, Call::Close).implied(0, pid, at))
}
