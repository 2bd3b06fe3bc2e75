//! What `strace -f -ttt -T` writes, as a trace: descriptors are followed through `open`, `dup`,
//! `fcntl`, `fork`, `clone`, `close` and `exec`, working directories through `chdir`.

mod calls;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rbench_core::Nanos;

use super::names::{PATH_MAX, SOMEWHERE, absolute};
use super::order::Order;
use super::{Call, Op, Out, Outcome, Reader, Reading, Told, why};
use text::{Finished, Line, What};

/// Whether it looks like a line of strace: a time in seconds, and a call.
pub fn is_line(line: &str) -> bool {
    match text::line(line) {
        Ok(Some(line)) => match line.what {
            What::Call(call) | What::Begun(call) => call.contains('('),
            What::Resumed(..) | What::Exited | What::Other => true,
        },
        _ => false,
    }
}

/// What a line tells of the working directory of the first process: what `getcwd` returned, or
/// `strace -y` writes beside `AT_FDCWD`. To be asked of line after line until it answers.
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

/// An answer of [`working_directory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// This line does not say.
    Nothing,
    /// No line will.
    Unknown,
    /// This.
    Directory(Vec<u8>),
}

/// What a descriptor is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Descriptor {
    /// A file that the trace opened.
    File(File),
    /// Something that is no file of the replay, and why.
    Other(&'static str),
}

/// An open file, seen from a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    open: u64,
    /// The absolute path that it was opened under.
    path: Arc<[u8]>,
    /// Closed by `exec`.
    cloexec: bool,
}

/// The number of what threads of a process share: descriptors, or a working directory.
type Shared = usize;

/// A process or thread.
#[derive(Debug, Clone)]
struct Process {
    table: Shared,
    folder: Shared,
    /// The beginning of a call that had not ended when another process went on, and when.
    begun: Option<(String, Nanos)>,
}

/// What lines have said so far.
struct State {
    reading: Reading,
    processes: BTreeMap<u64, Process>,
    /// Descriptors.
    tables: HashMap<Shared, HashMap<i64, Descriptor>>,
    /// Working directories, absolute.
    folders: HashMap<Shared, Vec<u8>>,
    next_shared: Shared,
    /// Descriptors of each open file.
    held: HashMap<u64, u32>,
    next_open: u64,
}

/// Reads one.
pub struct Strace {
    state: State,
    order: Order,
}

impl Strace {
    /// Before its first line.
    pub fn new(reading: &Reading) -> Strace {
        let state = State {
            reading: reading.clone(),
            processes: BTreeMap::new(),
            tables: HashMap::new(),
            folders: HashMap::new(),
            next_shared: 0,
            held: HashMap::new(),
            next_open: 0,
        };
        Strace {
            state,
            order: Order::default(),
        }
    }

    fn hand_over(&mut self, ended: bool, out: &mut Out) {
        while let Some(op) = self.order.pop(ended) {
            out.push(op);
        }
    }
}

impl Reader for Strace {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String> {
        let line = String::from_utf8_lossy(line);
        let Some(Line { pid, at, what }) = text::line(&line)? else {
            return Ok(());
        };
        let mut found = Vec::new();
        self.state.know(pid);
        match what {
            What::Other => {}
            What::Exited => self.state.exited(pid, at, &mut found),
            What::Begun(begun) => {
                if let Some(process) = self.state.processes.get_mut(&pid) {
                    process.begun = Some((begun.to_owned(), at));
                }
            }
            What::Call(call) => {
                let call = text::call(call)?;
                self.state.call(pid, at, &call, (&mut found, out))?;
            }
            What::Resumed(name, rest) => {
                let process = self.state.processes.get_mut(&pid);
                let begun = process.and_then(|process| process.begun.take());
                // A trace may begin in the middle of a call.
                let Some((begun, at)) = begun else {
                    return Ok(());
                };
                if !begun.starts_with(name) {
                    return Err(format!("the end of '{name}', whose beginning is not there"));
                }
                let call = text::call(&format!("{begun}{rest}"))?;
                self.state.call(pid, at, &call, (&mut found, out))?;
            }
        }
        for op in found {
            self.order.push(Op { line: number, ..op });
        }
        self.hand_over(false, out);
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Result<(), String> {
        for process in self.state.processes.values() {
            if process.begun.is_some() {
                out.left_out.add(why::UNENDED);
            }
        }
        self.hand_over(true, out);
        Ok(())
    }
}

impl State {
    fn shared(&mut self) -> Shared {
        self.next_shared += 1;
        self.next_shared
    }

    /// Makes a process known that has not been seen: the child of one whose `fork` has not
    /// returned yet, or one that was there before the trace.
    fn know(&mut self, pid: u64) {
        if self.processes.contains_key(&pid) {
            return;
        }
        let forking = |process: &&Process| {
            let begun = process.begun.as_ref().map(|(text, _)| text.as_str());
            begun.is_some_and(|text| {
                let forks = ["clone(", "clone3(", "fork(", "vfork("];
                forks.iter().any(|fork| text.starts_with(fork))
            })
        };
        // Of several the one that began last; all ranks have to come to the same.
        let forking = self.processes.values().filter(forking);
        let parent = forking.max_by_key(|process| process.begun.as_ref().map(|(_, at)| *at));
        let parent = parent.cloned();
        match parent {
            Some(parent) => {
                let flags = parent.begun.as_ref().map(|(text, _)| text.clone());
                self.fork(&parent, pid, &flags.unwrap_or_default());
            }
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

    /// A child, which shares with its parent what the text of the call says.
    fn fork(&mut self, parent: &Process, child: u64, text: &str) {
        if self.processes.contains_key(&child) {
            return;
        }
        let table = match text.contains("CLONE_FILES") {
            true => parent.table,
            false => {
                let own = self.tables.get(&parent.table).cloned().unwrap_or_default();
                for descriptor in own.values() {
                    if let Descriptor::File(file) = descriptor {
                        *self.held.entry(file.open).or_default() += 1;
                    }
                }
                let table = self.shared();
                self.tables.insert(table, own);
                table
            }
        };
        let folder = match text.contains("CLONE_FS") {
            true => parent.folder,
            false => {
                let own = self.folders.get(&parent.folder).cloned();
                let folder = self.shared();
                self.folders
                    .insert(folder, own.unwrap_or(SOMEWHERE.to_vec()));
                folder
            }
        };
        let process = Process {
            table,
            folder,
            begun: None,
        };
        self.processes.insert(child, process);
    }

    /// The kernel closes what nobody else has open.
    fn exited(&mut self, pid: u64, at: Nanos, found: &mut Vec<Op>) {
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        let others = || self.processes.values();
        if !others().any(|other| other.folder == process.folder) {
            self.folders.remove(&process.folder);
        }
        if others().any(|other| other.table == process.table) {
            return;
        }
        let table = self.tables.remove(&process.table).unwrap_or_default();
        let mut descriptors: Vec<_> = table.into_iter().collect();
        descriptors.sort_by_key(|(fd, _)| *fd);
        for (_, descriptor) in descriptors {
            if self.let_go(&descriptor) {
                found.extend(implied_close(&descriptor, pid, at));
            }
        }
    }

    /// One descriptor less; whether that was the last of an open file.
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

    /// A descriptor has become `what`; what it was before is closed without a call.
    fn set(&mut self, pid: u64, at: Nanos, fd: i64, what: Descriptor, found: &mut Vec<Op>) {
        if let Descriptor::File(file) = &what {
            *self.held.entry(file.open).or_default() += 1;
        }
        let before = self
            .descriptors(pid)
            .and_then(|table| table.insert(fd, what));
        if let Some(before) = before
            && self.let_go(&before)
        {
            found.extend(implied_close(&before, pid, at));
        }
    }

    /// `exec` has closed what was to be closed then.
    fn executed(&mut self, pid: u64, at: Nanos, found: &mut Vec<Op>) {
        let Some(table) = self.descriptors(pid) else {
            return;
        };
        let closed =
            |descriptor: &Descriptor| matches!(descriptor, Descriptor::File(file) if file.cloexec);
        let mut gone: Vec<(i64, Descriptor)> = Vec::new();
        table.retain(|fd, descriptor| {
            let goes = closed(descriptor);
            if goes {
                gone.push((*fd, descriptor.clone()));
            }
            !goes
        });
        gone.sort_by_key(|(fd, _)| *fd);
        for (_, descriptor) in gone {
            if self.let_go(&descriptor) {
                found.extend(implied_close(&descriptor, pid, at));
            }
        }
    }

    /// The process goes to another directory.
    ///
    /// # Errors
    /// Its path is longer than any.
    fn go_to(&mut self, pid: u64, path: &[u8]) -> Result<(), String> {
        let to = absolute(self.folder(pid), path);
        if to.len() > PATH_MAX {
            return Err(format!(
                "the path of a working directory has more than {PATH_MAX} bytes"
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
    Some(Op {
        line: 0,
        at,
        process: pid,
        took: None,
        result: Outcome::Unknown,
        told: Told::default(),
        implied: true,
        call: Call::Close { file: file.open },
    })
}
