//! Traces of programs that a model runs: random threads, forks, descriptors and
//! interrupted calls. The model knows the open file of each read; the reader must find the
//! same.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rbench_core::Nanos;
use rbench_core::random::Stream;

use super::*;
use crate::testing::check_error;
use crate::trace::Format;
use crate::trace::tests::{read_with, reading};

/// Number of steps of a run, and most processes at a time.
const STEPS: usize = 400;
const PROCESSES: usize = 6;

/// An open file, and true if `exec` closes this descriptor of it.
type Slot = (u64, bool);

#[derive(Clone, Default)]
struct Table {
    open: BTreeMap<i64, Slot>,
    /// Numbers that unfinished calls will return.
    reserved: BTreeSet<i64>,
}

impl Table {
    /// The lowest free number from `least` on.
    fn free(&self, least: i64) -> i64 {
        let taken = |fd: &i64| self.open.contains_key(fd) || self.reserved.contains(fd);
        (least.max(3)..)
            .find(|fd| !taken(fd))
            .expect("there is one")
    }
}

/// Effect of the end of a call.
enum End {
    Nothing,
    /// This number refers to this open file from now on.
    Installs(i64, Slot),
}

struct Call {
    name: &'static str,
    /// Its text in the trace at its start, and at its end.
    begin: String,
    end: String,
    does: End,
}

struct Program {
    pid: u64,
    table: usize,
    pending: Option<Call>,
    /// True if it is creating a process that already has its number.
    forks: bool,
}

/// A machine that runs programs.
struct Machine {
    draw: Stream,
    tables: Vec<Table>,
    programs: Vec<Program>,
    next_pid: u64,
    next_open: u64,
    now_us: u64,
    lines: Vec<String>,
    /// Process, start and open file of each read.
    reads: Vec<(u64, u64, u64)>,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        Machine {
            draw: Stream::new(&[seed]),
            tables: vec![Table::default()],
            programs: vec![Program {
                pid: 100,
                table: 0,
                pending: None,
                forks: false,
            }],
            next_pid: 101,
            next_open: 0,
            now_us: 0,
            lines: Vec::new(),
            reads: Vec::new(),
        }
    }

    fn say(&mut self, pid: u64, text: &str) {
        self.now_us += 1;
        self.lines
            .push(format!("{pid} 1.{:06} {text}", self.now_us));
    }

    /// A random descriptor of a program.
    fn any(&mut self, program: usize) -> Option<(i64, Slot)> {
        let table = &self.tables[self.programs[program].table];
        let all: Vec<(i64, Slot)> = table.open.iter().map(|(fd, slot)| (*fd, *slot)).collect();
        let nth = self.draw.below(all.len().max(1) as u64);
        all.get(nth as usize).copied()
    }

    /// A call of a program, with all effects of its start.
    fn call(&mut self, program: usize) -> Option<Call> {
        let (pid, at) = (self.programs[program].pid, self.programs[program].table);
        let plain = |name, begin: String, end: String| Call {
            name,
            begin,
            end,
            does: End::Nothing,
        };
        Some(match self.draw.below(16) {
            0..4 => {
                let fd = self.tables[at].free(3);
                self.tables[at].reserved.insert(fd);
                let cloexec = self.draw.below(3) == 0;
                let open = self.next_open;
                self.next_open += 1;
                let flags = if cloexec { "|O_CLOEXEC" } else { "" };
                Call {
                    does: End::Installs(fd, (open, cloexec)),
                    ..plain(
                        "openat",
                        format!("AT_FDCWD, \"f{open}\", O_RDONLY{flags}"),
                        format!(") = {fd}"),
                    )
                }
            }
            4..9 => {
                let (fd, (open, _)) = self.any(program)?;
                self.reads.push((pid, self.now_us + 1, open));
                plain("read", format!("{fd}, "), "\"x\"..., 10) = 10".to_owned())
            }
            9..12 => {
                let (fd, _) = self.any(program)?;
                self.tables[at].open.remove(&fd);
                plain("close", fd.to_string(), ") = 0".to_owned())
            }
            12 => {
                let (from, (open, _)) = self.any(program)?;
                let least = self.draw.below(9) as i64;
                let fd = self.tables[at].free(least);
                self.tables[at].reserved.insert(fd);
                Call {
                    does: End::Installs(fd, (open, true)),
                    ..plain(
                        "fcntl",
                        format!("{from}, F_DUPFD_CLOEXEC, {least}"),
                        format!(") = {fd}"),
                    )
                }
            }
            13 => {
                let (from, (open, _)) = self.any(program)?;
                let to = 3 + self.draw.below(9) as i64;
                if from == to || self.tables[at].reserved.contains(&to) {
                    return None;
                }
                self.tables[at].open.insert(to, (open, false));
                plain("dup2", format!("{from}, {to}"), format!(") = {to}"))
            }
            _ => return None,
        })
    }

    fn ends(&mut self, program: usize, call: End) {
        let table = self.programs[program].table;
        if let End::Installs(fd, slot) = call {
            let table = &mut self.tables[table];
            table.reserved.remove(&fd);
            table.open.insert(fd, slot);
        }
    }

    /// Starts a program with a new number and these descriptors.
    fn begins(&mut self, table: usize) -> u64 {
        let pid = self.next_pid;
        self.next_pid += 1;
        self.programs.push(Program {
            pid,
            table,
            pending: None,
            forks: false,
        });
        pid
    }

    /// Creates a table for it that it does not share.
    fn own_table(&mut self, program: usize) -> usize {
        let copy = Table {
            open: self.tables[self.programs[program].table].open.clone(),
            reserved: BTreeSet::new(),
        };
        self.tables.push(copy);
        self.tables.len() - 1
    }

    fn step(&mut self) {
        let program = self.draw.below(self.programs.len() as u64) as usize;
        let pid = self.programs[program].pid;
        if let Some(call) = self.programs[program].pending.take() {
            self.programs[program].forks = false;
            self.say(pid, &format!("<... {} resumed>{}", call.name, call.end));
            return self.ends(program, call.does);
        }
        let interrupted = self.draw.below(2) == 0;
        // If two fork at the same time, no line shows which one a child belongs to.
        let forking = self.programs.iter().any(|program| program.forks);
        let room = self.programs.len() < PROCESSES && !forking;
        match self.draw.below(30) {
            0 if room => {
                let child = self.begins(self.programs[program].table);
                let flags = "child_stack=NULL, flags=CLONE_VM|CLONE_FS|CLONE_FILES";
                self.say(pid, &format!("clone({flags}) = {child}"));
            }
            1 if room => {
                let table = self.own_table(program);
                let child = self.begins(table);
                if !interrupted {
                    return self.say(pid, &format!("fork() = {child}"));
                }
                self.say(pid, "fork( <unfinished ...>");
                self.programs[program].forks = true;
                self.programs[program].pending = Some(Call {
                    name: "fork",
                    begin: String::new(),
                    end: format!(") = {child}"),
                    does: End::Nothing,
                });
            }
            2 => {
                self.programs[program].table = self.own_table(program);
                self.say(pid, "unshare(CLONE_FILES) = 0");
            }
            3 => {
                let table = self.own_table(program);
                self.tables[table].open.retain(|_, (_, cloexec)| !*cloexec);
                self.programs[program].table = table;
                self.say(pid, "execve(\"/bin/x\", [\"x\"], 0x7ff) = 0");
            }
            4 if self.programs.len() > 1 => {
                self.programs.remove(program);
                self.say(pid, "+++ exited with 0 +++");
            }
            _ => {
                let Some(call) = self.call(program) else {
                    return;
                };
                let Call {
                    name, begin, end, ..
                } = &call;
                if interrupted {
                    self.say(pid, &format!("{name}({begin} <unfinished ...>"));
                    self.programs[program].pending = Some(call);
                } else {
                    self.say(pid, &format!("{name}({begin}{end}"));
                    self.ends(program, call.does);
                }
            }
        }
    }

    /// Runs for a while; then all programs end.
    fn run(mut self) -> Machine {
        for _ in 0..STEPS {
            self.step();
        }
        while let Some(program) = self.programs.pop() {
            let pid = program.pid;
            if let Some(call) = program.pending {
                self.say(pid, &format!("<... {} resumed>{}", call.name, call.end));
            }
            self.say(pid, "+++ exited with 0 +++");
        }
        self
    }
}

fn read<S: Borrow<str>>(lines: &[S]) -> Out {
    let reading = Reading {
        cwd: Some(b"/".to_vec()),
        ..reading()
    };
    read_with(Format::Strace, &lines.join("\n"), &reading).expect("a sound trace")
}

/// Compares a trace with the machine. Returns the first difference.
fn check(machine: &Machine) -> Result<(), String> {
    let out = read(&machine.lines);
    let number = |path: &[u8]| -> Option<u64> {
        let name = std::str::from_utf8(path).ok()?;
        name.strip_prefix('f')?.parse().ok()
    };
    let (mut opened, mut closed) = (BTreeMap::new(), BTreeMap::new());
    let mut reads = Vec::new();
    for op in &out.ops {
        let at = (op.at.0 - 1_000_000_000) / 1000;
        let file = op.file.ok_or("a call on a name")?;
        match op.call {
            rbench_core::Call::Open(_) => {
                let path = op.path.as_deref().unwrap_or_default();
                opened.insert(file, number(path).ok_or("a name of another file")?);
            }
            rbench_core::Call::Read => {
                let open = opened.get(&file).ok_or("a read before its open")?;
                if closed.contains_key(&file) {
                    return Err(format!("f{open} is read after its close"));
                }
                reads.push((op.process, at, *open));
            }
            rbench_core::Call::Close => *closed.entry(file).or_insert(0) += 1,
            other => return Err(format!("{other:?} was not called")),
        }
    }
    let mut expected = machine.reads.clone();
    expected.sort_unstable();
    reads.sort_unstable();
    if reads != expected {
        let wrong = reads
            .iter()
            .zip(&expected)
            .find(|(got, expect)| got != expect);
        let counts = (reads.len(), expected.len());
        return Err(format!("reads differ {counts:?}: {wrong:?}"));
    }
    let never = opened.keys().find(|file| closed.get(*file) != Some(&1));
    if let Some(file) = never {
        return Err(format!(
            "f{} is closed {:?} times",
            opened[file],
            closed.get(file)
        ));
    }
    let others: Vec<_> = out.left_out.0.keys().collect();
    match others.iter().all(|why| **why == why::DUPLICATE) {
        true => Ok(()),
        false => Err(format!("left out: {others:?}")),
    }
}

proptest! {
    #[test]
    fn each_read_is_of_the_file_that_the_kernel_gave_it(seed: u64) {
        let machine = Machine::new(seed).run();
        if let Err(message) = check(&machine) {
            prop_assert!(false, "{message}\n{}", machine.lines.join("\n"));
        }
    }
}

/// Operations of a trace in one word each.
fn files(lines: &[&str]) -> (Vec<String>, u64) {
    let out = read(lines);
    let words = out.ops.iter().map(|op| {
        let implied = if op.implied { "(" } else { "" };
        let kind = op.call.op().name();
        format!(
            "{implied}{} {kind} {:?}",
            op.process,
            op.file.filter(|_| op.call.needs_open())
        )
    });
    (words.collect(), out.left_out.total())
}

#[test]
fn a_number_is_free_when_its_close_begins() {
    let (ops, left_out) = files(&[
        "1 1.1 openat(AT_FDCWD, \"a\", O_RDONLY) = 3",
        "1 1.2 clone(child_stack=0, flags=CLONE_FILES) = 2",
        "1 1.3 close(3 <unfinished ...>",
        "2 1.4 openat(AT_FDCWD, \"b\", O_RDONLY) = 3",
        "2 1.5 read(3, \"\"..., 5) = 5",
        "1 1.6 <... close resumed>) = 0",
        "2 1.7 read(3, \"\"..., 5) = 5",
    ]);
    assert_eq!(left_out, 0);
    let expect = "1 open None, 1 close Some(0), 2 open None, 2 read Some(1), 2 read Some(1)";
    assert_eq!(ops.join(", "), expect);
}

#[test]
fn a_child_that_ends_before_its_fork_does_is_gone() {
    let (ops, left_out) = files(&[
        "1 1.1 openat(AT_FDCWD, \"a\", O_RDONLY) = 3",
        "1 1.2 vfork( <unfinished ...>",
        "2 1.3 +++ exited with 0 +++",
        "1 1.4 <... vfork resumed>) = 2",
        "1 1.5 +++ exited with 0 +++",
    ]);
    assert_eq!(left_out, 0);
    assert_eq!(ops, ["1 open None", "(1 close Some(0)"]);
}

#[test]
fn what_a_directory_that_is_left_out_leads_to_is_left_out_by_its_reason() {
    let out = read(&[
        "1 1.1 openat(AT_FDCWD, \"/proc\", O_RDONLY|O_DIRECTORY) = 3",
        "1 1.2 openat(3, \"self\", O_RDONLY) = 4",
        "1 1.3 read(4, \"\"..., 5) = 5",
        "1 1.4 close(4) = 0",
        "1 1.5 openat(3, \"/a\", O_RDONLY) = 4",
        "1 1.6 read(4, \"\"..., 5) = 5",
    ]);
    let left_out: Vec<_> = out.left_out.0.into_iter().collect();
    assert_eq!(left_out, [(why::KERNEL, 4)]);
    assert_eq!(out.ops.len(), 2);
}

#[test]
fn a_thread_that_calls_exec_goes_on_under_the_number_of_its_process() {
    let (ops, left_out) = files(&[
        "1 1.1 openat(AT_FDCWD, \"a\", O_RDONLY) = 3",
        "1 1.2 clone(child_stack=0, flags=CLONE_FILES|CLONE_THREAD) = 2",
        "2 1.3 execve(\"/x\", [\"x\"], 0x7 <unfinished ...>",
        "1 1.4 +++ superseded by execve in pid 2 +++",
        "1 1.5 <... execve resumed>) = 0",
        "1 1.6 read(3, \"\"..., 5) = 5",
    ]);
    assert_eq!(left_out, 0);
    assert_eq!(ops, ["1 open None", "1 read Some(0)"]);
}

#[test]
fn times_of_day_go_on_past_midnight() {
    let lines = [
        "1 23:59:59.900000 openat(AT_FDCWD, \"a\", O_RDONLY) = 3",
        "1 00:00:00.100000 read(3, \"\"..., 5) = 5 <0.000010>",
    ];
    let out = read(&lines);
    let at: Vec<Nanos> = out.ops.iter().map(|op| op.at).collect();
    assert_eq!(at[1].since(at[0]), Nanos(200_000_000));
    assert!(is_line(lines[0]) && !is_line("1 23:59:59 close(3) = 0"));
    check_error(text::line("1 23:59:59 close(3) = 0"), "-ttt");
}
