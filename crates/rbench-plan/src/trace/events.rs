//! Maps requests to a FUSE file system, with inodes and handles, to the system calls that caused
//! them, with names and open files.
//!
//! The kernel sends requests of its own, such as a lookup on the way to a name, or the attributes
//! before a read. They are merged with the call that causes them. Such a request is a lookup or a
//! read of attributes. It is followed within 1 ms by a request of the same process about the same
//! object. `flush` and `release` together are one close.

use std::collections::HashMap;
use std::sync::Arc;

use rbench_core::request::{Changes, Event, Place, What};
use rbench_core::{Call, Nanos, linux};

use super::names::{Names, PATH_MAX, Unmapped, attribute};
use super::{MODES, Name, Op, Other, Out, Outcome, Target, Told, why};

/// The root of a FUSE file system.
const ROOT: u64 = 1;

/// Time after which a following request has another cause.
const SOON: Nanos = Nanos::MILLISECOND;

/// Number of requests after which those that wait for their successors are checked.
const SWEEP: u64 = 64;

/// The inode of a request, if it has one.
fn inode(what: &What) -> Option<u64> {
    match what {
        What::Getattr(ino)
        | What::Setattr(ino, _)
        | What::Link(ino, _)
        | What::Open(ino, ..)
        | What::Opendir(ino, _)
        | What::Read(ino, ..)
        | What::Write(ino, ..)
        | What::Readdir(ino, ..)
        | What::Flush(ino, _)
        | What::Release(ino, _)
        | What::Fsync(ino, ..)
        | What::Fallocate(ino, ..)
        | What::Readlink(ino)
        | What::Access(ino, _)
        | What::Statfs(ino)
        | What::Setxattr(ino, ..)
        | What::Getxattr(ino, ..)
        | What::Listxattr(ino, _)
        | What::Removexattr(ino, _) => Some(*ino),
        _ => None,
    }
}

/// The names of a request.
fn places(what: &What) -> [Option<&Place>; 2] {
    match what {
        What::Lookup(place)
        | What::Mknod(place, _)
        | What::Mkdir(place, _)
        | What::Create(place, ..)
        | What::Symlink(place, _)
        | What::Link(_, place)
        | What::Unlink(place)
        | What::Rmdir(place) => [Some(place), None],
        What::Rename(from, to, _) => [Some(from), Some(to)],
        _ => [None, None],
    }
}

/// True if the kernel may have sent `first` for `next`.
fn causes(next: &Event, first: &Event) -> bool {
    let looks_again = matches!(next.what, What::Lookup(_) | What::Getattr(_));
    let object = match &first.what {
        What::Lookup(_) => first.found.map(|entry| entry.ino),
        other => inode(other),
    };
    let names = || places(&next.what).into_iter().flatten();
    let goes_through = object.is_some() && names().any(|(parent, _)| Some(*parent) == object);
    let same_name = || match &first.what {
        What::Lookup(looked) => names().any(|place| place == looked),
        _ => false,
    };
    let same_object = || object.is_some() && inode(&next.what) == object;
    match looks_again {
        // Attributes after a lookup belong to the same stat; another lookup of the name does not.
        true => goes_through || matches!(first.what, What::Lookup(_)) && same_object(),
        false => goes_through || same_object() || same_name(),
    }
}

/// An open file or directory.
#[derive(Debug)]
struct Handle {
    /// Its number, if the trace has it.
    number: Option<u64>,
    flags: i32,
    /// The numbers of the open file, by process; the first one opened it.
    open: Vec<(u64, u64)>,
    /// Time and duration of the last flush.
    flushed: Option<(Nanos, Nanos)>,
}

/// State of the mapping.
#[derive(Default)]
pub struct Events {
    names: Names,
    /// The name of each inode, and the inode of each name.
    places: HashMap<u64, Place>,
    inodes: HashMap<Place, u64>,
    handles: HashMap<u64, Vec<Handle>>,
    next_open: u64,
    /// The last request of each process, if the kernel itself may have sent it.
    waiting: HashMap<u64, Event>,
    taken: u64,
}

impl Events {
    /// Creates the state before the first request.
    pub fn new(names: &Names) -> Events {
        Events {
            names: names.of_a_mount(),
            ..Events::default()
        }
    }

    /// Takes the next request, in the order of their ends. Operations go to `out`.
    ///
    /// # Errors
    /// Fails if a name is invalid.
    pub fn take(&mut self, mut event: Event, out: &mut Out) -> Result<(), String> {
        if let Some(first) = self.waiting.remove(&event.process) {
            let end = Nanos(first.at.0.saturating_add(first.took.0));
            if event.at.since(end) <= SOON && causes(&event, &first) {
                let whole = event.at.since(first.at).0.saturating_add(event.took.0);
                (event.at, event.took) = (first.at, Nanos(whole));
                self.know(&first);
                // The earlier request has attributes of the call's object.
                let looked_up = first.found.map(|entry| entry.ino);
                if event.found.is_none() && looked_up.is_some() && looked_up == inode(&event.what) {
                    event.found = first.found;
                }
            } else {
                self.done(first, out)?;
            }
        }
        self.taken += 1;
        if self.taken.is_multiple_of(SWEEP) {
            self.sweep(event.at, out)?;
        }
        // The kernel itself may have sent it for the following request.
        if let What::Lookup(_) | What::Getattr(_) | What::Access(..) = event.what {
            self.know(&event);
            self.waiting.insert(event.process, event);
            return Ok(());
        }
        self.done(event, out)
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// Like [`Events::take`].
    pub fn end(&mut self, out: &mut Out) -> Result<(), String> {
        self.sweep(Nanos(u64::MAX), out)
    }

    /// Takes the requests that can no longer have a successor.
    fn sweep(&mut self, now: Nanos, out: &mut Out) -> Result<(), String> {
        let old = |event: &Event| {
            let end = event.at.0.saturating_add(event.took.0);
            now.0 > end.saturating_add(SOON.0)
        };
        let mut processes: Vec<(Nanos, u64)> = self
            .waiting
            .iter()
            .filter(|(_, event)| old(event))
            .map(|(process, event)| (event.at, *process))
            .collect();
        processes.sort_unstable();
        for (_, process) in processes {
            if let Some(event) = self.waiting.remove(&process) {
                self.done(event, out)?;
            }
        }
        Ok(())
    }

    /// Records the names in a reply.
    fn know(&mut self, event: &Event) {
        let [Some(place), _] = places(&event.what) else {
            return;
        };
        if let Some(entry) = event.found
            && event.result.is_ok()
            && entry.ino != ROOT
        {
            self.name(entry.ino, place.clone());
        }
    }

    /// Sets the name of an inode.
    fn name(&mut self, ino: u64, place: Place) {
        if let Some(previous) = self.inodes.insert(place.clone(), ino)
            && previous != ino
        {
            self.forget(previous, &place);
        }
        self.places.insert(ino, place);
    }

    /// Removes the name of an inode.
    fn forget(&mut self, ino: u64, place: &Place) {
        if self.places.get(&ino) == Some(place) {
            self.places.remove(&ino);
        }
    }

    /// The path of an inode, in parts; if a name is unknown, it starts with the number of the
    /// inode.
    fn path(&self, mut ino: u64) -> Result<Vec<u8>, Unmapped> {
        let mut length = 0;
        let mut parts: Vec<Arc<[u8]>> = Vec::new();
        while ino != ROOT {
            let Some((parent, name)) = self.places.get(&ino) else {
                parts.push(format!("inode-{ino}").into_bytes().into());
                break;
            };
            parts.push(Arc::clone(name));
            ino = *parent;
            length += name.len() + 1;
            // A damaged trace may contain a cycle.
            if length > PATH_MAX {
                return Err(Unmapped::LeftOut(why::LONG));
            }
        }
        parts.reverse();
        let mut path = vec![b'/'];
        path.extend(parts.join(&b'/'));
        Ok(path)
    }

    fn mapped(&self, ino: u64) -> Result<Name, Unmapped> {
        let path = self.path(ino)?;
        self.names.map(b"/", &path)
    }

    fn placed(&self, (parent, name): &Place) -> Result<Name, Unmapped> {
        let parent = self.path(*parent)?;
        // A directory cannot have a name with a slash in it, or `..`.
        if name.contains(&b'/') || matches!(&name[..], b"." | b"..") {
            return Err(Unmapped::Wrong(
                "a name contains a slash or is . or ..".to_owned(),
            ));
        }
        self.names.map(&parent, name)
    }

    /// Takes a request that was not merged with another.
    fn done(&mut self, event: Event, out: &mut Out) -> Result<(), String> {
        let call = self.call(&event, out);
        let call = out.mapped(call)?.flatten();
        self.changed(&event);
        let Some(op) = call else {
            return Ok(());
        };
        let told = event.found.map_or(Told::default(), |entry| Told {
            kind: entry.kind,
            size: Some(entry.size),
        });
        out.push(Op {
            line: event.line,
            at: event.at,
            process: event.process,
            took: Some(event.took),
            result: match event.result {
                Ok(value) => Outcome::Done(value),
                Err(errno) => Outcome::Failed(errno),
            },
            told,
            ..op
        });
        Ok(())
    }

    /// Records changes of names.
    fn changed(&mut self, event: &Event) {
        if event.result.is_err() {
            return;
        }
        self.know(event);
        match &event.what {
            What::Unlink(place) | What::Rmdir(place) => {
                if let Some(ino) = self.inodes.remove(place) {
                    self.forget(ino, place);
                }
            }
            What::Rename(from, to, flags) => {
                let (moved, replaced) = (self.inodes.remove(from), self.inodes.remove(to));
                if let Some(replaced) = replaced {
                    self.forget(replaced, to);
                    if flags & linux::RENAME_EXCHANGE != 0 {
                        self.name(replaced, from.clone());
                    }
                }
                if let Some(moved) = moved {
                    self.name(moved, to.clone());
                }
            }
            _ => {}
        }
    }

    /// The system call of a request; `None` if the request is part of another call.
    fn call(&mut self, event: &Event, out: &mut Out) -> Result<Option<Op>, Unmapped> {
        let link = |ino: u64| Ok::<_, Unmapped>(Target::Link(self.mapped(ino)?));
        let named = |name: &Arc<[u8]>| Ok::<_, Unmapped>(Other::Bytes(attribute(name)?));
        Ok(Some(match &event.what {
            What::Lookup(place) => Target::Link(self.placed(place)?).op(Call::Stat),
            What::Getattr(ino) => link(*ino)?.op(Call::Stat),
            What::Setattr(ino, changes) => return self.set(*ino, *changes),
            What::Mknod(place, mode) => match mode & FORMAT {
                0 | REGULAR => Op::on_path(self.placed(place)?, Call::Mknod(mode & MODES)),
                _ => return Err(Unmapped::LeftOut(why::DEVICE)),
            },
            What::Mkdir(place, mode) => Op::on_path(self.placed(place)?, Call::Mkdir(mode & MODES)),
            What::Symlink(place, target) => {
                let parent = self.path(place.0)?;
                let leads = self.names.target(&parent, &place.1, target)?;
                Op::on_path(self.placed(place)?, Call::Symlink).with(leads)
            }
            What::Link(ino, place) => {
                let op = Op::on_path(self.mapped(*ino)?, Call::Link);
                op.with(Other::Path(self.placed(place)?))
            }
            What::Unlink(place) => Op::on_path(self.placed(place)?, Call::Unlink),
            What::Rmdir(place) => Op::on_path(self.placed(place)?, Call::Rmdir),
            What::Rename(from, to, flags) => {
                let op = Op::on_path(self.placed(from)?, Call::Rename(*flags));
                op.with(Other::Path(self.placed(to)?))
            }
            What::Create(place, mode, flags, number) => {
                let path = self.placed(place);
                let ino = event.found.map(|entry| entry.ino);
                let flags = flags | linux::CREAT;
                self.opened(event, path, (flags, *mode), ino.zip(Some(*number)))?
            }
            What::Open(ino, flags, number) => {
                let path = self.mapped(*ino);
                self.opened(event, path, (*flags, 0), Some((*ino, *number)))?
            }
            What::Opendir(ino, number) => {
                let path = self.mapped(*ino);
                let flags = linux::RDONLY | linux::DIRECTORY;
                self.opened(event, path, (flags, 0), Some((*ino, *number)))?
            }
            What::Flush(ino, number) => {
                if let Some(handle) = find(&mut self.handles, *ino, *number) {
                    handle.flushed = Some((event.at, event.took));
                }
                return Ok(None);
            }
            What::Release(ino, number) => {
                self.released(*ino, *number, event, out);
                return Ok(None);
            }
            What::Read(ino, number, offset, length) => {
                let file = self.file(*ino, *number, event, linux::RDONLY, out)?;
                Op::on_file(file, Call::ReadAt(*offset)).moving(*length)
            }
            What::Write(ino, number, offset, length, data) => {
                let file = self.file(*ino, *number, event, linux::RDWR, out)?;
                let data = data.clone().map_or(Other::Nothing, Other::Bytes);
                let op = Op::on_file(file, Call::WriteAt(*offset));
                op.moving(*length).with(data)
            }
            What::Readdir(ino, number, length) => {
                let file = self.file(*ino, *number, event, linux::DIRECTORY, out)?;
                Op::on_file(file, Call::Readdir).moving((*length).clamp(1 << 12, 1 << 20))
            }
            What::Fsync(ino, number, data_only) => {
                let file = self.file(*ino, *number, event, linux::RDWR, out)?;
                let call = if *data_only {
                    Call::Fdatasync
                } else {
                    Call::Fsync
                };
                Op::on_file(file, call)
            }
            What::Fallocate(ino, number, mode, offset, length) => Op::on_file(
                self.file(*ino, *number, event, linux::RDWR, out)?,
                Call::Allocate {
                    mode: *mode,
                    offset: *offset,
                    length: *length,
                },
            ),
            What::Readlink(ino) => Op::on_path(self.mapped(*ino)?, Call::Readlink),
            What::Access(ino, mode) => Op::on_path(self.mapped(*ino)?, Call::Access(*mode)),
            What::Statfs(ino) => Target::Path(self.mapped(*ino)?).op(Call::Statfs),
            What::Setxattr(ino, name, length, flags) => {
                let op = link(*ino)?.op(|by| Call::Setxattr(by, None, *flags));
                op.with(named(name)?).moving((*length).min(1 << 16))
            }
            What::Getxattr(ino, name, length) => {
                let op = link(*ino)?.op(|by| Call::Getxattr(by, None));
                op.with(named(name)?).moving((*length).min(1 << 16))
            }
            What::Listxattr(ino, length) => {
                let op = link(*ino)?.op(Call::Listxattr);
                op.moving((*length).min(1 << 16))
            }
            What::Removexattr(ino, name) => {
                let op = link(*ino)?.op(|by| Call::Removexattr(by, None));
                op.with(named(name)?)
            }
            What::Other(why) => return Err(Unmapped::LeftOut(why)),
        }))
    }

    fn set(&self, ino: u64, changes: Changes) -> Result<Option<Op>, Unmapped> {
        let path = self.mapped(ino)?;
        let Changes {
            mode,
            uid,
            gid,
            size,
            times,
        } = changes;
        Ok(Some(match (size, mode, uid.or(gid)) {
            (Some(length), ..) => Target::Link(path).op(|by| Call::Truncate(by, length)),
            (None, Some(mode), _) => Target::Path(path).op(|by| Call::Chmod(by, mode & MODES)),
            (None, None, Some(_)) => {
                let (uid, gid) = (uid.unwrap_or(u32::MAX), gid.unwrap_or(u32::MAX));
                Target::Link(path).op(|by| Call::Chown(by, uid, gid))
            }
            (None, None, None) if times => Target::Link(path).op(|by| Call::Utimes(by, None)),
            (None, None, None) => return Err(Unmapped::LeftOut(why::OTHER)),
        }))
    }

    /// Records an open file or directory, if the call succeeded. If its path is left out, the
    /// handle is kept, so that its operations are left out, too.
    fn opened(
        &mut self,
        event: &Event,
        path: Result<Name, Unmapped>,
        (flags, mode): (i32, u32),
        handle: Option<(u64, Option<u64>)>,
    ) -> Result<Op, Unmapped> {
        let file = self.next_open;
        self.next_open += 1;
        if let (Some((ino, number)), Ok(_)) = (handle, event.result) {
            let open = path.iter().map(|_| (event.process, file)).collect();
            self.handles.entry(ino).or_default().push(Handle {
                number,
                flags: flags & !(linux::CREAT | linux::EXCL | linux::TRUNC),
                open,
                flushed: None,
            });
        }
        Ok(Op::opening(path?, (flags, mode & MODES), file))
    }

    /// The open file of a handle for the process of `event`. A process that did not open it opens
    /// it itself, if the file still has a name.
    fn file(
        &mut self,
        ino: u64,
        number: Option<u64>,
        event: &Event,
        flags: i32,
        out: &mut Out,
    ) -> Result<u64, Unmapped> {
        if find(&mut self.handles, ino, number).is_none() {
            // Its open is missing: there is a gap, or it was open before.
            out.gaps += 1;
            self.handles.entry(ino).or_default().push(Handle {
                number,
                flags,
                open: Vec::new(),
                flushed: None,
            });
        }
        let path = self.mapped(ino);
        let is_named = self.places.contains_key(&ino) || ino == ROOT;
        let next = self.next_open;
        let Some(handle) = find(&mut self.handles, ino, number) else {
            return Err(Unmapped::LeftOut(why::NO_OPEN));
        };
        let own = |(process, _): &&(u64, u64)| *process == event.process;
        if let Some((_, file)) = handle.open.iter().find(own) {
            return Ok(*file);
        }
        if let Some((_, file)) = handle.open.first()
            && !is_named
        {
            return Ok(*file);
        }
        let path = path?;
        handle.open.push((event.process, next));
        let open = Op::opening(path, (handle.flags, 0), next);
        self.next_open += 1;
        out.push(open.implied(event.line, event.process, event.at));
        Ok(next)
    }

    /// Ends a handle after its last descriptor. The process that opened it closes it, with the
    /// duration of the flush.
    fn released(&mut self, ino: u64, number: Option<u64>, event: &Event, out: &mut Out) {
        let index = self.handles.get(&ino).and_then(|all| {
            let exact = number.and_then(|_| all.iter().position(|one| one.number == number));
            exact.or((!all.is_empty() && number.is_none()).then_some(0))
        });
        let Some(handle) = index.and_then(|index| {
            let all = self.handles.get_mut(&ino)?;
            Some(all.remove(index))
        }) else {
            out.gaps += 1;
            return;
        };
        if self.handles.get(&ino).is_some_and(Vec::is_empty) {
            self.handles.remove(&ino);
        }
        let (at, took) = match handle.flushed {
            Some((at, took)) if event.at.since(Nanos(at.0.saturating_add(took.0))) <= SOON => {
                (at, took)
            }
            _ => (event.at, event.took),
        };
        let close = |(process, file)| {
            let close = Op::on_file(file, Call::Close);
            close.implied(event.line, process, at)
        };
        let mut open = handle.open.into_iter();
        match open.next() {
            Some(first) => out.push(Op {
                took: Some(took),
                result: Outcome::Done(0),
                implied: false,
                ..close(first)
            }),
            None => out.left_out.add(match self.mapped(ino) {
                Err(Unmapped::LeftOut(why)) => why,
                _ => why::NO_OPEN,
            }),
        }
        open.for_each(|other| out.push(close(other)));
    }
}

/// The handle with that number; without a number the last one of the inode.
fn find(
    handles: &mut HashMap<u64, Vec<Handle>>,
    ino: u64,
    number: Option<u64>,
) -> Option<&mut Handle> {
    let all = handles.get_mut(&ino)?;
    match number {
        Some(_) => all.iter_mut().find(|handle| handle.number == number),
        None => all.last_mut(),
    }
}

/// `S_IFMT`, `S_IFREG`
const FORMAT: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
