//! Interpretation of calls in a trace of strace.

use std::collections::HashMap;

use rbench_core::{By, Call, Nanos, linux};

use super::text::{LEFT_OUT, OTHERS, WHENCE, flags, number, string};
use super::{Descriptor, Early, FORKS, File, Finished, State, Taken};
use crate::trace::names::{Unmapped, absolute};
use crate::trace::{Kind, MODES, Name, Op, Other, Out, Outcome, Target, Told, why};

/// The reason why a call does not become an operation.
pub(super) enum Skip {
    /// It does not concern files.
    Nothing,
    /// It is left out, and counted.
    LeftOut(&'static str),
    /// The line is wrong.
    Wrong(String),
}

impl From<Unmapped> for Skip {
    fn from(unmapped: Unmapped) -> Skip {
        match unmapped {
            Unmapped::LeftOut(why) => Skip::LeftOut(why),
            Unmapped::Wrong(why) => Skip::Wrong(why),
        }
    }
}

pub(super) type Found<T> = Result<T, Skip>;

/// A call and its process.
pub(super) struct Made<'c> {
    pid: u64,
    at: Nanos,
    call: &'c Finished,
    /// Effects from its start.
    taken: Taken,
}

impl Made<'_> {
    /// An argument; empty if it is missing.
    fn text(&self, n: usize) -> &str {
        self.call.args.get(n).map_or("", String::as_str)
    }

    pub(super) fn arg(&self, n: usize) -> Found<&str> {
        let arg = self.call.args.get(n).map(String::as_str);
        arg.ok_or_else(|| {
            let (name, n) = (&self.call.name, n + 1);
            Skip::Wrong(format!("'{name}' has no argument {n}"))
        })
    }

    pub(super) fn number(&self, n: usize) -> Found<i64> {
        let text = self.arg(n)?;
        number(text).ok_or_else(|| Skip::Wrong(format!("'{text}' is not a number")))
    }

    pub(super) fn length(&self, n: usize) -> Found<u64> {
        let value = self.number(n)?;
        u64::try_from(value).map_err(|_| Skip::Wrong(format!("{value} is not a length")))
    }

    pub(super) fn name(&self, n: usize) -> Found<Vec<u8>> {
        let text = self.arg(n)?;
        string(text).ok_or_else(|| match text.starts_with('"') {
            true => Skip::Wrong("a name is cut off".to_owned()),
            // An address: the call failed with EFAULT.
            false => Skip::LeftOut(why::OTHER),
        })
    }

    pub(super) fn mode(&self, n: usize) -> Found<u32> {
        Ok(flags(self.arg(n)?) as u32 & MODES)
    }

    fn succeeded(&self) -> Option<u64> {
        match self.call.result {
            Outcome::Done(value) => Some(value),
            Outcome::Unknown | Outcome::Failed(_) => None,
        }
    }

    /// Bytes of a vector of buffers.
    fn vector(&self, n: usize) -> Found<u64> {
        let text = self.arg(n)?;
        let lengths = text.split("iov_len=").skip(1);
        let lengths = lengths.filter_map(|rest| number(rest.split(['}', ',']).next()?));
        let total: i64 = lengths.fold(0, i64::saturating_add);
        Ok(match self.succeeded() {
            Some(done) => done.max(total.max(0) as u64),
            None => total.max(0) as u64,
        })
    }

    pub(super) fn told(&self, n: usize) -> Told {
        let text = self.text(n);
        let kinds = [
            ("S_IFREG", Kind::File),
            ("S_IFDIR", Kind::Directory),
            ("S_IFLNK", Kind::Link),
        ];
        let kind = kinds.iter().find(|(word, _)| text.contains(word));
        let size = text.split_once("_size=").map(|(_, rest)| rest);
        let size = size.and_then(|rest| number(rest.split([',', '}']).next()?));
        Told {
            kind: kind.map(|(_, kind)| *kind),
            size: size.and_then(|size| u64::try_from(size).ok()),
        }
    }
}

/// The close of this object.
fn closed(gone: Option<Descriptor>, last: bool) -> Found<Op> {
    match gone {
        Some(Descriptor::File(file)) if last => Ok(Op::on_file(file.open, Call::Close)),
        Some(Descriptor::File(_)) => Err(Skip::LeftOut(why::DUPLICATE)),
        Some(Descriptor::Other(why)) => Err(Skip::LeftOut(why)),
        None => Err(Skip::LeftOut(why::NO_OPEN)),
    }
}

impl State {
    /// Takes a call that has ended.
    ///
    /// # Errors
    /// The error. `taken` has the effects from the start of the call.
    pub(super) fn call(
        &mut self,
        (pid, at): (u64, Nanos),
        call: &Finished,
        mut taken: Taken,
        (found, out): (&mut Vec<Op>, &mut Out),
    ) -> Result<(), String> {
        let (early, held) = (taken.early.take(), taken.held.take());
        let completed = Made {
            pid,
            at,
            call,
            taken,
        };
        // It has not created a process.
        if let (Some(copy), None) = (completed.taken.copy, completed.succeeded()) {
            self.drop_table(copy, pid, at, found);
        }
        let read = match early {
            Some(Early::Closed(gone, last)) => closed(gone, last),
            Some(Early::Done) => return Ok(()),
            None => match self.descriptor_call(&completed, found) {
                Err(Skip::Nothing) => self.file_call(&completed),
                other => other,
            },
        };
        self.released(held, (pid, at), found);
        let op = match read {
            Ok(op) => op,
            Err(Skip::Nothing) => return Ok(()),
            Err(Skip::LeftOut(why)) => {
                out.left_out.add(why);
                return Ok(());
            }
            Err(Skip::Wrong(why)) => return Err(why),
        };
        found.push(Op {
            at,
            process: pid,
            took: completed.call.took,
            result: completed.call.result,
            ..op
        });
        Ok(())
    }

    /// Determines the effects at the start of a call, when the kernel looks up its
    /// descriptors.
    pub(super) fn begin(&mut self, pid: u64, at: Nanos, begun: &str, found: &mut Vec<Op>) -> Taken {
        let args = begun.split_once('(').map_or("", |(_, args)| args);
        let call = super::text::call(&format!("f({args}) = 0"));
        let args = call.map_or_else(|_| vec![args.to_owned()], |call| call.args);
        let numbers: Vec<i64> = args.iter().filter_map(|arg| number(arg)).collect();
        let table = self.descriptors(pid);
        let table = table.as_deref();
        let of = |fd: i64| (fd, table.and_then(|table| table.get(&fd).cloned()));
        let seen: HashMap<i64, Option<Descriptor>> = numbers.iter().map(|fd| of(*fd)).collect();
        let duplicates = begun.starts_with("dup(") || begun.contains(" F_DUPFD");
        let held = numbers.first().filter(|_| duplicates);
        let held = held.and_then(|fd| seen.get(fd).cloned().flatten());
        if let Some(Descriptor::File(file)) = &held {
            *self.held.entry(file.open).or_default() += 1;
        }
        let forks = FORKS.iter().any(|fork| begun.starts_with(fork));
        let parent = self.processes.get(&pid).filter(|_| forks);
        let parent = parent.filter(|_| !begun.contains("CLONE_FILES"));
        let parent = parent.map(|process| process.table);
        Taken {
            seen,
            early: self.early(pid, at, begun, found),
            copy: parent.map(|table| self.copy_of(table)),
            held,
            child: None,
        }
    }

    /// Removes the descriptors that the kernel frees at the start of a call.
    fn early(&mut self, pid: u64, at: Nanos, begun: &str, found: &mut Vec<Op>) -> Option<Early> {
        let (name, args) = begun.split_once('(')?;
        if !matches!(name, "close" | "close_range" | "dup2" | "dup3") {
            return None;
        }
        let args = args.trim_end().trim_end_matches(')');
        let mut call = super::text::call(&format!("{name}({args}) = 0")).ok()?;
        if name.starts_with("dup") {
            let to = number(call.args.get(1)?)?;
            call.result = Outcome::Done(u64::try_from(to).ok()?);
        }
        let completed = Made {
            pid,
            at,
            call: &call,
            taken: Taken::default(),
        };
        match name {
            "close" => {
                let (gone, last) = self.take_away(pid, completed.number(0).ok()?);
                Some(Early::Closed(gone, last))
            }
            "close_range" => {
                let closed = self.close_range(&completed, found);
                closed.is_ok().then_some(Early::Done)
            }
            _ => {
                // Duplicating a closed descriptor has no effect.
                let from = completed.number(0).ok()?;
                self.descriptors(pid)?.get(&from)?;
                let _ = self.descriptor_call(&completed, found);
                Some(Early::Done)
            }
        }
    }

    /// Handles calls that change descriptors, processes and working directories.
    fn descriptor_call(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<Op> {
        let Made { pid, at, call, .. } = *made;
        let (name, done) = (call.name.as_str(), made.succeeded());
        match (name, done) {
            ("open" | "openat" | "openat2" | "creat", _) => return self.open(made, found),
            ("close", _) => return self.close(made),
            // A child that has already appeared may have ended since.
            ("clone" | "clone3" | "fork" | "vfork", Some(child))
                if child > 0 && made.taken.child != Some(child) =>
            {
                if let Some(parent) = self.processes.get(&pid).cloned() {
                    self.fork(&parent, child, &call.args.join(","), made.taken.copy);
                }
            }
            ("execve" | "execveat", Some(_)) => self.executed(pid, at, found),
            ("unshare", Some(_)) => {
                let what = made.arg(0)?;
                if what.contains("CLONE_FILES") {
                    self.unshare(pid);
                }
                if what.contains("CLONE_FS") {
                    self.unshare_folder(pid);
                }
            }
            ("chdir", Some(_)) => {
                let path = made.name(0)?;
                self.go_to(pid, &path).map_err(Skip::Wrong)?;
            }
            ("fchdir", Some(_)) => {
                if let Ok(file) = self.file(made, 0) {
                    self.go_to(pid, &file.path).map_err(Skip::Wrong)?;
                }
            }
            ("dup", Some(to)) => self.duplicate(made, to as i64, false, found),
            ("dup2" | "dup3", Some(to)) => {
                let cloexec = made.text(2).contains("CLOEXEC");
                self.duplicate(made, to as i64, cloexec, found);
            }
            ("fcntl" | "fcntl64", _) => return self.control(made, found),
            ("pipe" | "pipe2", Some(_)) => self.pair(made, 0, found),
            ("socketpair", Some(_)) => self.pair(made, 3, found),
            ("close_range", Some(_)) => self.close_range(made, found)?,
            (name, Some(fd)) if OTHERS.contains(&name) => {
                self.set(pid, at, fd as i64, Descriptor::Other(why::NO_FILE), found);
            }
            _ => return Err(Skip::Nothing),
        }
        Err(Skip::Nothing)
    }

    fn pair(&mut self, made: &Made<'_>, n: usize, found: &mut Vec<Op>) {
        let text = made.text(n);
        for word in text.trim_matches(['[', ']']).split(',') {
            if let Some(fd) = number(word.trim()) {
                let other = Descriptor::Other(why::NO_FILE);
                self.set(made.pid, made.at, fd, other, found);
            }
        }
    }

    fn duplicate(&mut self, made: &Made<'_>, to: i64, cloexec: bool, found: &mut Vec<Op>) {
        let from = made.number(0).ok();
        if from == Some(to) {
            return;
        }
        let was = from.and_then(|from| self.descriptor(made, from));
        let now = match was {
            Some(Descriptor::File(file)) => Descriptor::File(File { cloexec, ..file }),
            Some(other) => other,
            None => Descriptor::Other(why::NO_OPEN),
        };
        self.set(made.pid, made.at, to, now, found);
    }

    fn control(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<Op> {
        let command = made.arg(1)?;
        match (command, made.succeeded()) {
            ("F_DUPFD" | "F_DUPFD_CLOEXEC", Some(to)) => {
                self.duplicate(made, to as i64, command == "F_DUPFD_CLOEXEC", found);
            }
            ("F_SETFD", Some(_)) => {
                let set = made.arg(2)?.contains("FD_CLOEXEC");
                self.set_cloexec(made.pid, made.number(0)?, set);
            }
            (lock, _) if lock.contains("LK") => {
                self.file(made, 0)?;
                return Err(Skip::LeftOut(why::LOCK));
            }
            _ => {}
        }
        Err(Skip::Nothing)
    }

    /// Sets if `exec` closes a descriptor.
    fn set_cloexec(&mut self, pid: u64, fd: i64, set: bool) {
        let table = self.descriptors(pid);
        if let Some(Descriptor::File(file)) = table.and_then(|table| table.get_mut(&fd)) {
            file.cloexec = set;
        }
    }

    fn close_range(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<()> {
        let (first, last) = (made.number(0)?, made.number(1)?);
        let cloexec = made.text(2).contains("CLOEXEC");
        let Some(table) = self.descriptors(made.pid) else {
            return Ok(());
        };
        let mut fds: Vec<i64> = table.keys().copied().collect();
        fds.retain(|fd| (first..=last).contains(fd));
        fds.sort_unstable();
        for fd in fds {
            if cloexec {
                self.set_cloexec(made.pid, fd, true);
                continue;
            }
            if let (Some(gone), true) = self.take_away(made.pid, fd) {
                found.extend(super::implied_close(&gone, made.pid, made.at));
            }
        }
        Ok(())
    }

    fn open(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<Op> {
        let (path_at, flags_at) = match made.call.name.as_str() {
            "open" | "creat" => (0, 1),
            _ => (1, 2),
        };
        let (text, mode_at) = match made.call.name.as_str() {
            "creat" => ("O_WRONLY|O_CREAT|O_TRUNC", 1),
            "openat2" => (
                made.arg(2)?
                    .split_once("flags=")
                    .and_then(|(_, rest)| rest.split([',', '}']).next())
                    .unwrap_or(""),
                3,
            ),
            _ => (made.arg(flags_at)?, flags_at + 1),
        };
        let raw = flags(text);
        let file = self.next_open;
        let temporary = text.contains("O_TMPFILE");
        let base_and_name = made.name(path_at).and_then(|name| {
            let absolute = name.starts_with(b"/");
            let beside = (path_at == 1 && !absolute).then_some(0);
            Ok((self.base(made, beside)?, name))
        });
        let mapped = base_and_name.and_then(|(base, name)| match temporary {
            true => Err(Skip::LeftOut(why::OTHER)),
            false => {
                let path = self.reading.names.map(&base, &name)?;
                Ok((path, absolute(&base, &name)))
            }
        });
        // The number is in use, even if the path is left out.
        let descriptor = match &mapped {
            Ok((_, path)) => Descriptor::File(File {
                open: file,
                path: path.clone().into(),
                cloexec: raw & linux::CLOEXEC != 0,
            }),
            Err(Skip::LeftOut(why)) => Descriptor::Other(why),
            Err(_) => Descriptor::Other(why::OTHER),
        };
        if let Some(fd) = made.succeeded() {
            self.set(made.pid, made.at, fd as i64, descriptor, found);
        }
        self.next_open += 1;
        let mode = match made.call.args.get(mode_at) {
            Some(_) => made.mode(mode_at)?,
            None => 0o644,
        };
        let kind =
            (raw & linux::DIRECTORY != 0 && made.succeeded().is_some()).then_some(Kind::Directory);
        Ok(Op {
            told: Told { kind, size: None },
            ..Op::opening(mapped?.0, (raw, mode), file)
        })
    }

    fn close(&mut self, made: &Made<'_>) -> Found<Op> {
        let (gone, last) = self.take_away(made.pid, made.number(0)?);
        closed(gone, last)
    }

    /// Removes a descriptor from its number. Returns true if it was the last one of the
    /// open file.
    fn take_away(&mut self, pid: u64, fd: i64) -> (Option<Descriptor>, bool) {
        let gone = self.descriptors(pid).and_then(|table| table.remove(&fd));
        let last = gone.as_ref().is_some_and(|gone| self.let_go(gone));
        (gone, last)
    }

    /// The open file of a descriptor.
    pub(super) fn file(&mut self, made: &Made<'_>, n: usize) -> Found<File> {
        let fd = made.number(n)?;
        match self.descriptor(made, fd) {
            Some(Descriptor::File(file)) => Ok(file),
            Some(Descriptor::Other(why)) => Err(Skip::LeftOut(why)),
            None => Err(Skip::LeftOut(why::NO_OPEN)),
        }
    }

    /// The object of a number at the start of the call.
    fn descriptor(&mut self, made: &Made<'_>, fd: i64) -> Option<Descriptor> {
        match made.taken.seen.get(&fd) {
            Some(seen) => seen.clone(),
            None => self.descriptors(made.pid)?.get(&fd).cloned(),
        }
    }

    /// The base of a relative name: the working directory, or the path of a descriptor.
    fn base(&mut self, made: &Made<'_>, n: Option<usize>) -> Found<Vec<u8>> {
        match n {
            Some(n) if !made.arg(n)?.starts_with("AT_FDCWD") => {
                Ok(self.file(made, n)?.path.to_vec())
            }
            _ => Ok(self.folder(made.pid).to_vec()),
        }
    }

    /// The path of argument `n`, relative to the descriptor in argument `at`.
    pub(super) fn path(&mut self, made: &Made<'_>, at: Option<usize>, n: usize) -> Found<Name> {
        let name = made.name(n)?;
        // An absolute name ignores the descriptor.
        let base = match name.starts_with(b"/") {
            true => Vec::new(),
            false => self.base(made, at)?,
        };
        Ok(self.reading.names.map(&base, &name)?)
    }

    /// The object of an `…at` call: a name, or with `AT_EMPTY_PATH` or without a name the
    /// descriptor itself.
    pub(super) fn at(&mut self, made: &Made<'_>, n: usize, flags_at: usize) -> Found<Target> {
        let name = made.arg(n + 1)?;
        if name == "NULL" || name == "\"\"" {
            return match made.arg(n)?.starts_with("AT_FDCWD") {
                true => Err(Skip::LeftOut(why::OTHER)),
                false => Ok(Target::File(self.file(made, n)?.open)),
            };
        }
        let flags = made.text(flags_at);
        let path = self.path(made, Some(n), n + 1)?;
        Ok(match flags.contains("AT_SYMLINK_NOFOLLOW") {
            true => Target::Link(path),
            false => Target::Path(path),
        })
    }

    /// Handles calls on files and names.
    fn file_call(&mut self, made: &Made<'_>) -> Found<Op> {
        let name = made.call.name.as_str();
        if let Some(read) = self.transfer(made, name)? {
            return Ok(read);
        }
        if let Some(op) = self.names(made, name)? {
            return Ok(op);
        }
        if let Some(op) = self.attributes(made, name)? {
            return Ok(op);
        }
        if name == "mmap" || name == "mmap2" {
            return match self.file(made, 4) {
                Ok(_) => Err(Skip::LeftOut(why::MAPPED)),
                Err(_) => Err(Skip::Nothing),
            };
        }
        let left_out = LEFT_OUT.iter().find(|(known, _)| *known == name);
        match left_out {
            Some((_, why)) => {
                self.file(made, 0)?;
                Err(Skip::LeftOut(why))
            }
            None => Err(Skip::Nothing),
        }
    }

    fn transfer(&mut self, made: &Made<'_>, name: &str) -> Found<Option<Op>> {
        let mut file = || self.file(made, 0).map(|file| file.open);
        let at = || made.length(3);
        let length = || match name.contains('v') {
            true => made.vector(1),
            false => made.length(2),
        };
        Ok(Some(match name {
            "read" | "readv" => Op::on_file(file()?, Call::Read).moving(length()?),
            "write" | "writev" => Op::on_file(file()?, Call::Write).moving(length()?),
            "pread64" | "pread" | "preadv" => {
                Op::on_file(file()?, Call::ReadAt(at()?)).moving(length()?)
            }
            "pwrite64" | "pwrite" | "pwritev" => {
                Op::on_file(file()?, Call::WriteAt(at()?)).moving(length()?)
            }
            "lseek" | "_llseek" => {
                let (file, offset, whence) = (file()?, made.number(1)?, made.arg(2)?);
                let whence = WHENCE.iter().position(|word| *word == whence);
                let whence = whence.ok_or(Skip::LeftOut(why::OTHER))?;
                Op::on_file(file, Call::Seek(offset, whence as i32))
            }
            "fsync" => Op::on_file(file()?, Call::Fsync),
            "fdatasync" => Op::on_file(file()?, Call::Fdatasync),
            "fallocate" => {
                let file = file()?;
                let (mode, offset, length) = (flags(made.arg(1)?), made.length(2)?, at()?);
                let call = Call::Allocate {
                    mode,
                    offset,
                    length,
                };
                Op::on_file(file, call)
            }
            "ftruncate" => Op::on_file(file()?, Call::Truncate(By::File, made.length(1)?)),
            "getdents64" | "getdents" => {
                let op = Op::on_file(file()?, Call::Readdir);
                op.moving(made.length(2)?.clamp(1 << 12, 1 << 20))
            }
            _ => return Ok(None),
        }))
    }

    fn names(&mut self, made: &Made<'_>, name: &str) -> Found<Option<Op>> {
        // In an `…at` call, a descriptor precedes each name.
        let is_at = name.trim_end_matches('2').ends_with("at");
        let (dir, n) = (is_at.then_some(0), usize::from(is_at));
        Ok(Some(match name {
            "truncate" => Op::on_path(
                self.path(made, None, 0)?,
                Call::Truncate(By::Path, made.length(1)?),
            ),
            "mkdir" | "mkdirat" => {
                Op::on_path(self.path(made, dir, n)?, Call::Mkdir(made.mode(n + 1)?))
            }
            "mknod" | "mknodat" => {
                let path = self.path(made, dir, n)?;
                if !made.arg(n + 1)?.contains("S_IFREG") {
                    return Err(Skip::LeftOut(why::DEVICE));
                }
                Op::on_path(path, Call::Mknod(made.mode(n + 1)?))
            }
            "rmdir" => Op::on_path(self.path(made, None, 0)?, Call::Rmdir),
            "unlink" => Op::on_path(self.path(made, None, 0)?, Call::Unlink),
            "unlinkat" => {
                let path = self.path(made, dir, n)?;
                match made.arg(2)?.contains("AT_REMOVEDIR") {
                    true => Op::on_path(path, Call::Rmdir),
                    false => Op::on_path(path, Call::Unlink),
                }
            }
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
                let from = self.path(made, dir, n)?;
                let to = self.path(made, dir.map(|_| 2), 2 * n + 1)?;
                let call = match name.starts_with("link") {
                    true => Call::Link,
                    false => Call::Rename(made.call.args.get(4).map_or(0, |arg| flags(arg) as u32)),
                };
                Op::on_path(from, call).with(Other::Path(to))
            }
            "symlink" | "symlinkat" => {
                let (dir, n) = (dir.map(|_| 1), n + 1);
                let path = self.path(made, dir, n)?;
                let base = self.base(made, dir)?;
                let (link, target) = (made.name(n)?, made.name(0)?);
                let target = self.reading.names.target(&base, &link, &target)?;
                Op::on_path(path, Call::Symlink).with(target)
            }
            "readlink" | "readlinkat" => Op::on_path(self.path(made, dir, n)?, Call::Readlink),
            "access" | "faccessat" | "faccessat2" => {
                let path = self.path(made, dir, n)?;
                Op::on_path(path, Call::Access(flags(made.arg(n + 1)?)))
            }
            _ => return Ok(None),
        }))
    }
}
