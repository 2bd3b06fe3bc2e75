//! What calls in a trace of strace do with files.

use rbench_core::{Nanos, linux};

use super::text::{flags, number, string};
use super::{Descriptor, File, Finished, State};
use crate::trace::names::{Unmapped, absolute, attribute};
use crate::trace::{Call, Kind, MODES, Name, OPEN_FLAGS, Op, Out, Outcome, Target, Told, why};

/// Why a call is no operation.
enum Skip {
    /// It has nothing to do with files.
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

type Found<T> = Result<T, Skip>;

/// A call and who made it.
struct Made<'c> {
    pid: u64,
    at: Nanos,
    call: &'c Finished,
}

impl Made<'_> {
    fn arg(&self, n: usize) -> Found<&str> {
        let arg = self.call.args.get(n).map(String::as_str);
        arg.ok_or_else(|| {
            let (name, n) = (&self.call.name, n + 1);
            Skip::Wrong(format!("'{name}' has no argument {n}"))
        })
    }

    fn number(&self, n: usize) -> Found<i64> {
        let text = self.arg(n)?;
        number(text).ok_or_else(|| Skip::Wrong(format!("'{text}' is no number")))
    }

    fn length(&self, n: usize) -> Found<u64> {
        let value = self.number(n)?;
        u64::try_from(value).map_err(|_| Skip::Wrong(format!("{value} is no length")))
    }

    fn name(&self, n: usize) -> Found<Vec<u8>> {
        let text = self.arg(n)?;
        string(text).ok_or_else(|| match text.starts_with('"') {
            true => Skip::Wrong("a name is cut off".to_owned()),
            // An address: the call has failed with EFAULT.
            false => Skip::LeftOut(why::OTHER),
        })
    }

    fn mode(&self, n: usize) -> Found<u32> {
        Ok(flags(self.arg(n)?, |_| 0) as u32 & MODES)
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

    fn told(&self, n: usize) -> Told {
        let text = self.call.args.get(n).map_or("", String::as_str);
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

fn open_flags(text: &str) -> i32 {
    flags(text, linux::open_flag)
}

/// Calls whose result is a descriptor of no file.
const OTHERS: [&str; 16] = [
    "socket",
    "accept",
    "accept4",
    "eventfd",
    "eventfd2",
    "epoll_create",
    "epoll_create1",
    "timerfd_create",
    "signalfd",
    "signalfd4",
    "inotify_init",
    "inotify_init1",
    "memfd_create",
    "perf_event_open",
    "pidfd_open",
    "userfaultfd",
];

/// Other calls on descriptors of files, and why they are left out.
const LEFT_OUT: [(&str, &str); 13] = [
    ("flock", why::LOCK),
    ("ioctl", why::OTHER),
    ("fadvise64", why::OTHER),
    ("readahead", why::OTHER),
    ("sync_file_range", why::OTHER),
    ("syncfs", why::OTHER),
    ("copy_file_range", why::OTHER),
    ("sendfile", why::OTHER),
    ("splice", why::OTHER),
    ("vmsplice", why::OTHER),
    ("tee", why::OTHER),
    ("preadv2", why::OTHER),
    ("pwritev2", why::OTHER),
];

impl State {
    /// Takes a call that has ended.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn call(
        &mut self,
        pid: u64,
        at: Nanos,
        call: &Finished,
        (found, out): (&mut Vec<Op>, &mut Out),
    ) -> Result<(), String> {
        let made = Made { pid, at, call };
        let read = match self.descriptor_call(&made, found) {
            Err(Skip::Nothing) => self.file_call(&made),
            other => other,
        };
        let (call, told) = match read {
            Ok((call, told)) => (call, told),
            Err(Skip::Nothing) => return Ok(()),
            Err(Skip::LeftOut(why)) => {
                out.left_out.add(why);
                return Ok(());
            }
            Err(Skip::Wrong(why)) => return Err(why),
        };
        found.push(Op {
            line: 0,
            at,
            process: pid,
            took: made.call.took,
            result: made.call.result,
            told,
            implied: false,
            call,
        });
        Ok(())
    }

    /// What descriptors, processes and working directories become.
    fn descriptor_call(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<(Call, Told)> {
        let Made { pid, at, call } = *made;
        let (name, done) = (call.name.as_str(), made.succeeded());
        match (name, done) {
            ("open" | "openat" | "openat2" | "creat", _) => return self.open(made, found),
            ("close", _) => return self.close(made),
            ("clone" | "clone3" | "fork" | "vfork", Some(child)) if child > 0 => {
                if let Some(parent) = self.processes.get(&pid).cloned() {
                    self.fork(&parent, child, &call.args.join(","));
                }
            }
            ("execve" | "execveat", Some(_)) => self.executed(pid, at, found),
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
                let cloexec = call.args.get(2).is_some_and(|arg| arg.contains("CLOEXEC"));
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
        let text = made.call.args.get(n).map_or("", String::as_str);
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
        let table = self.descriptors(made.pid);
        let was = from.and_then(|from| table.and_then(|table| table.get(&from).cloned()));
        let now = match was {
            Some(Descriptor::File(file)) => Descriptor::File(File { cloexec, ..file }),
            Some(other) => other,
            None => Descriptor::Other(why::NO_OPEN),
        };
        self.set(made.pid, made.at, to, now, found);
    }

    fn control(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<(Call, Told)> {
        let command = made.arg(1)?;
        match (command, made.succeeded()) {
            ("F_DUPFD" | "F_DUPFD_CLOEXEC", Some(to)) => {
                self.duplicate(made, to as i64, command == "F_DUPFD_CLOEXEC", found);
            }
            ("F_SETFD", Some(_)) => {
                let fd = made.number(0)?;
                let set = made.arg(2)?.contains("FD_CLOEXEC");
                let table = self.descriptors(made.pid);
                if let Some(Descriptor::File(file)) = table.and_then(|table| table.get_mut(&fd)) {
                    file.cloexec = set;
                }
            }
            (lock, _) if lock.contains("LK") => {
                self.file(made, 0)?;
                return Err(Skip::LeftOut(why::LOCK));
            }
            _ => {}
        }
        Err(Skip::Nothing)
    }

    fn close_range(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<()> {
        let (first, last) = (made.number(0)?, made.number(1)?);
        let cloexec = made
            .call
            .args
            .get(2)
            .is_some_and(|arg| arg.contains("CLOEXEC"));
        let Some(table) = self.descriptors(made.pid) else {
            return Ok(());
        };
        let mut fds: Vec<i64> = table.keys().copied().collect();
        fds.retain(|fd| (first..=last).contains(fd));
        fds.sort_unstable();
        for fd in fds {
            if cloexec {
                let table = self.descriptors(made.pid);
                if let Some(Descriptor::File(file)) = table.and_then(|table| table.get_mut(&fd)) {
                    file.cloexec = true;
                }
                continue;
            }
            let gone = self
                .descriptors(made.pid)
                .and_then(|table| table.remove(&fd));
            if let Some(gone) = gone
                && self.let_go(&gone)
            {
                found.extend(super::implied_close(&gone, made.pid, made.at));
            }
        }
        Ok(())
    }

    fn open(&mut self, made: &Made<'_>, found: &mut Vec<Op>) -> Found<(Call, Told)> {
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
        let raw = open_flags(text);
        let name = made.name(path_at)?;
        let base = self.base(made, (path_at == 1).then_some(0))?;
        let file = self.next_open;
        let temporary = text.contains("O_TMPFILE");
        let mapped = match temporary {
            true => Err(Skip::LeftOut(why::OTHER)),
            false => self.reading.names.map(&base, &name).map_err(Skip::from),
        };
        let descriptor = match &mapped {
            Ok(_) => Descriptor::File(File {
                open: file,
                path: absolute(&base, &name).into(),
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
        let call = Call::Open {
            path: mapped?,
            flags: raw & OPEN_FLAGS,
            mode,
            file,
        };
        let kind =
            (raw & linux::DIRECTORY != 0 && made.succeeded().is_some()).then_some(Kind::Directory);
        Ok((call, Told { kind, size: None }))
    }

    fn close(&mut self, made: &Made<'_>) -> Found<(Call, Told)> {
        let fd = made.number(0)?;
        let gone = self
            .descriptors(made.pid)
            .and_then(|table| table.remove(&fd));
        match gone {
            Some(Descriptor::File(file)) => {
                let open = file.open;
                match self.let_go(&Descriptor::File(file)) {
                    true => Ok((Call::Close { file: open }, Told::default())),
                    false => Err(Skip::LeftOut(why::DUPLICATE)),
                }
            }
            Some(Descriptor::Other(why)) => Err(Skip::LeftOut(why)),
            None => Err(Skip::LeftOut(why::NO_OPEN)),
        }
    }

    /// The open file of a descriptor.
    fn file(&mut self, made: &Made<'_>, n: usize) -> Found<File> {
        let fd = made.number(n)?;
        let table = self.descriptors(made.pid);
        match table.and_then(|table| table.get(&fd)) {
            Some(Descriptor::File(file)) => Ok(file.clone()),
            Some(Descriptor::Other(why)) => Err(Skip::LeftOut(why)),
            None => Err(Skip::LeftOut(why::NO_OPEN)),
        }
    }

    /// What a name is relative to: the working directory, or that of a descriptor.
    fn base(&mut self, made: &Made<'_>, n: Option<usize>) -> Found<Vec<u8>> {
        match n {
            Some(n) if !made.arg(n)?.starts_with("AT_FDCWD") => {
                Ok(self.file(made, n)?.path.to_vec())
            }
            _ => Ok(self.folder(made.pid).to_vec()),
        }
    }

    /// The path of argument `n`, relative to the descriptor in argument `at`.
    fn path(&mut self, made: &Made<'_>, at: Option<usize>, n: usize) -> Found<Name> {
        let name = made.name(n)?;
        // An absolute name does not look at the descriptor.
        let base = match name.starts_with(b"/") {
            true => Vec::new(),
            false => self.base(made, at)?,
        };
        Ok(self.reading.names.map(&base, &name)?)
    }

    /// What an `…at` call is about: a name, or with `AT_EMPTY_PATH` or without a name the
    /// descriptor itself.
    fn at(&mut self, made: &Made<'_>, n: usize, flags_at: usize) -> Found<Target> {
        let name = made.arg(n + 1)?;
        if name == "NULL" || name == "\"\"" {
            return match made.arg(n)?.starts_with("AT_FDCWD") {
                true => Err(Skip::LeftOut(why::OTHER)),
                false => Ok(Target::Open(self.file(made, n)?.open)),
            };
        }
        let flags = made.call.args.get(flags_at).map_or("", String::as_str);
        let path = self.path(made, Some(n), n + 1)?;
        Ok(Target::Path(path, !flags.contains("AT_SYMLINK_NOFOLLOW")))
    }

    /// What calls do with files and names.
    fn file_call(&mut self, made: &Made<'_>) -> Found<(Call, Told)> {
        let name = made.call.name.as_str();
        if let Some(read) = self.transfer(made, name)? {
            return Ok((read, Told::default()));
        }
        if let Some(found) = self.names(made, name)? {
            return Ok((found, Told::default()));
        }
        if let Some(found) = self.attributes(made, name)? {
            return Ok(found);
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

    fn transfer(&mut self, made: &Made<'_>, name: &str) -> Found<Option<Call>> {
        let reads = ["read", "pread64", "pread", "readv", "preadv"];
        let writes = ["write", "pwrite64", "pwrite", "writev", "pwritev"];
        if reads.contains(&name) || writes.contains(&name) {
            let file = self.file(made, 0)?.open;
            let length = match name.contains('v') {
                true => made.vector(1)?,
                false => made.length(2)?,
            };
            let at = match name.starts_with('p') {
                true => Some(made.length(3)?),
                false => None,
            };
            return Ok(Some(match reads.contains(&name) {
                true => Call::Read { file, at, length },
                false => Call::Write {
                    file,
                    at,
                    length,
                    data: None,
                },
            }));
        }
        Ok(Some(match name {
            "lseek" | "_llseek" => Call::Seek {
                file: self.file(made, 0)?.open,
                offset: made.number(1)?,
                whence: match made.arg(2)? {
                    "SEEK_SET" => 0,
                    "SEEK_CUR" => 1,
                    "SEEK_END" => 2,
                    "SEEK_DATA" => 3,
                    "SEEK_HOLE" => 4,
                    _ => return Err(Skip::LeftOut(why::OTHER)),
                },
            },
            "fsync" | "fdatasync" => Call::Sync {
                file: self.file(made, 0)?.open,
                data_only: name == "fdatasync",
            },
            "fallocate" => Call::Allocate {
                file: self.file(made, 0)?.open,
                mode: flags(made.arg(1)?, |word| match word {
                    "FALLOC_FL_KEEP_SIZE" => 1,
                    "FALLOC_FL_PUNCH_HOLE" => 2,
                    "FALLOC_FL_COLLAPSE_RANGE" => 8,
                    "FALLOC_FL_ZERO_RANGE" => 16,
                    "FALLOC_FL_INSERT_RANGE" => 32,
                    _ => 0,
                }),
                offset: made.length(2)?,
                length: made.length(3)?,
            },
            "ftruncate" => Call::Truncate {
                what: Target::Open(self.file(made, 0)?.open),
                length: made.length(1)?,
            },
            "getdents64" | "getdents" => Call::List {
                file: self.file(made, 0)?.open,
                length: made.length(2)?.clamp(1 << 12, 1 << 20),
            },
            _ => return Ok(None),
        }))
    }

    fn names(&mut self, made: &Made<'_>, name: &str) -> Found<Option<Call>> {
        // Where the name of an `…at` call stands, and the same call without a descriptor.
        let at = |call: &str| name == call;
        Ok(Some(match name {
            "truncate" => Call::Truncate {
                what: Target::Path(self.path(made, None, 0)?, true),
                length: made.length(1)?,
            },
            "mkdir" | "mkdirat" => {
                let n = usize::from(at("mkdirat"));
                Call::Mkdir {
                    path: self.path(made, Some(0).filter(|_| n == 1), n)?,
                    mode: made.mode(n + 1)?,
                }
            }
            "mknod" | "mknodat" => {
                let n = usize::from(at("mknodat"));
                let path = self.path(made, Some(0).filter(|_| n == 1), n)?;
                if !made.arg(n + 1)?.contains("S_IFREG") {
                    return Err(Skip::LeftOut(why::DEVICE));
                }
                let mode = made.mode(n + 1)?;
                Call::Mknod { path, mode }
            }
            "rmdir" => Call::Rmdir {
                path: self.path(made, None, 0)?,
            },
            "unlink" => Call::Unlink {
                path: self.path(made, None, 0)?,
            },
            "unlinkat" => {
                let path = self.path(made, Some(0), 1)?;
                match made.arg(2)?.contains("AT_REMOVEDIR") {
                    true => Call::Rmdir { path },
                    false => Call::Unlink { path },
                }
            }
            "rename" => Call::Rename {
                from: self.path(made, None, 0)?,
                to: self.path(made, None, 1)?,
                flags: 0,
            },
            "renameat" | "renameat2" => Call::Rename {
                from: self.path(made, Some(0), 1)?,
                to: self.path(made, Some(2), 3)?,
                flags: made.call.args.get(4).map_or(0, |arg| {
                    flags(arg, |word| match word {
                        "RENAME_NOREPLACE" => 1,
                        "RENAME_EXCHANGE" => 2,
                        "RENAME_WHITEOUT" => 4,
                        _ => 0,
                    }) as u32
                }),
            },
            "link" => Call::Link {
                from: self.path(made, None, 0)?,
                to: self.path(made, None, 1)?,
            },
            "linkat" => Call::Link {
                from: self.path(made, Some(0), 1)?,
                to: self.path(made, Some(2), 3)?,
            },
            "symlink" | "symlinkat" => {
                let n = if at("symlinkat") { 2 } else { 1 };
                let dir = Some(1).filter(|_| n == 2);
                let path = self.path(made, dir, n)?;
                let base = self.base(made, dir)?;
                let (link, target) = (made.name(n)?, made.name(0)?);
                let target = self.reading.names.target(&base, &link, &target);
                Call::Symlink {
                    target: target?,
                    path,
                }
            }
            "readlink" => Call::Readlink {
                path: self.path(made, None, 0)?,
            },
            "readlinkat" => Call::Readlink {
                path: self.path(made, Some(0), 1)?,
            },
            "access" | "faccessat" | "faccessat2" => {
                let n = usize::from(!at("access"));
                Call::Access {
                    path: self.path(made, Some(0).filter(|_| n == 1), n)?,
                    mode: flags(made.arg(n + 1)?, |word| match word {
                        "R_OK" => 4,
                        "W_OK" => 2,
                        "X_OK" => 1,
                        _ => 0,
                    }),
                }
            }
            _ => return Ok(None),
        }))
    }

    fn attributes(&mut self, made: &Made<'_>, name: &str) -> Found<Option<(Call, Told)>> {
        let plain = |call: Call| Ok(Some((call, Told::default())));
        match name {
            "stat" | "stat64" | "lstat" | "lstat64" => {
                let what = Target::Path(self.path(made, None, 0)?, !name.starts_with('l'));
                Ok(Some((Call::Stat { what }, made.told(1))))
            }
            "newfstatat" | "fstatat64" => {
                let what = self.at(made, 0, 3)?;
                Ok(Some((Call::Stat { what }, made.told(2))))
            }
            "statx" => {
                let what = self.at(made, 0, 2)?;
                Ok(Some((Call::Stat { what }, made.told(4))))
            }
            "fstat" | "fstat64" => {
                let what = Target::Open(self.file(made, 0)?.open);
                Ok(Some((Call::Stat { what }, made.told(1))))
            }
            "statfs" | "statfs64" => plain(Call::Statfs {
                what: Target::Path(self.path(made, None, 0)?, true),
            }),
            "fstatfs" | "fstatfs64" => plain(Call::Statfs {
                what: Target::Open(self.file(made, 0)?.open),
            }),
            "chmod" | "fchmod" => plain(Call::Chmod {
                what: self.named_or_open(made, name == "fchmod", true)?,
                mode: made.mode(1)?,
            }),
            "fchmodat" | "fchmodat2" => plain(Call::Chmod {
                what: self.at(made, 0, 3)?,
                mode: made.mode(2)?,
            }),
            "chown" | "lchown" | "fchown" => plain(Call::Chown {
                what: self.named_or_open(made, name == "fchown", name == "chown")?,
                uid: made.number(1)? as u32,
                gid: made.number(2)? as u32,
            }),
            "fchownat" => plain(Call::Chown {
                what: self.at(made, 0, 4)?,
                uid: made.number(2)? as u32,
                gid: made.number(3)? as u32,
            }),
            "utimensat" => plain(Call::Utimes {
                what: self.at(made, 0, 3)?,
            }),
            "utime" | "utimes" => plain(Call::Utimes {
                what: Target::Path(self.path(made, None, 0)?, true),
            }),
            _ => match name.contains("xattr") {
                true => Ok(Some((self.extended(made, name)?, Told::default()))),
                false => Ok(None),
            },
        }
    }

    fn named_or_open(&mut self, made: &Made<'_>, open: bool, follows: bool) -> Found<Target> {
        match open {
            true => Ok(Target::Open(self.file(made, 0)?.open)),
            false => Ok(Target::Path(self.path(made, None, 0)?, follows)),
        }
    }

    fn extended(&mut self, made: &Made<'_>, name: &str) -> Found<Call> {
        let what = self.named_or_open(made, name.starts_with('f'), !name.starts_with('l'))?;
        let plain = name.trim_start_matches(['f', 'l']);
        if name.contains("list") {
            let length = made.length(2)?.min(1 << 16);
            return Ok(Call::Listxattr { what, length });
        }
        let attribute = attribute(&made.name(1)?)?;
        match plain {
            "setxattr" => Ok(Call::Setxattr {
                what,
                name: attribute,
                length: made.length(3)?.min(1 << 16),
                flags: flags(made.arg(4)?, |word| match word {
                    "XATTR_CREATE" => 1,
                    "XATTR_REPLACE" => 2,
                    _ => 0,
                }),
            }),
            "getxattr" => Ok(Call::Getxattr {
                what,
                name: attribute,
                length: made.length(3)?.min(1 << 16),
            }),
            "removexattr" => Ok(Call::Removexattr {
                what,
                name: attribute,
            }),
            _ => Err(Skip::Nothing),
        }
    }
}
