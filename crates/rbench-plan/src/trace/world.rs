//! Files that existed before a trace, as far as the trace shows. This first pass keeps the
//! names, but not the operations.

use std::collections::{BTreeMap, HashMap};

use rbench_core::{Call, OpenFlags, linux};

use super::{Kind, Name, Op, Other, Outcome};

/// Number of an object.
type Id = u64;

const ROOT: Id = 0;

/// Approximate memory of an object or a name, in addition to its path, bytes.
const ENTRY: u64 = 200;

/// A file, directory or link.
#[derive(Debug, Default)]
struct Object {
    kind: Option<Kind>,
    /// Its path before the trace; `None` if the trace created it.
    before: Option<Name>,
    /// True if it was opened with `O_CREAT`: it may have existed. It did if data is read from it
    /// that the trace has not written.
    perhaps: bool,
    /// Its length before the trace, as far as known, bytes.
    needed: u64,
    /// Its current length.
    length: u64,
    /// True if the trace has changed its length or data.
    changed: bool,
    /// Entries by name; `None` if the name certainly does not exist.
    children: BTreeMap<Box<[u8]>, Option<Id>>,
    is_directory: bool,
    /// Number of open files on it.
    open: u32,
    /// Number of names.
    names: u32,
}

/// An open file.
#[derive(Debug, Clone, Copy)]
struct Opened {
    id: Id,
    position: u64,
    appends: bool,
}

/// A file, directory or link to create before the replay.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prepared {
    /// Its path.
    pub path: Name,
    /// Its kind.
    pub kind: Kind,
    /// Bytes of a file, or of the target of a link.
    pub size: u64,
}

/// State of a trace's files.
#[derive(Debug)]
pub struct World {
    objects: HashMap<Id, Object>,
    next: Id,
    open: HashMap<u64, Opened>,
    /// Approximate memory of objects and names in bytes.
    bytes: u64,
}

impl Default for World {
    fn default() -> World {
        let root = Object {
            kind: Some(Kind::Directory),
            before: Some(Name::from(&b""[..])),
            is_directory: true,
            names: 1,
            ..Object::default()
        };
        World {
            objects: HashMap::from([(ROOT, root)]),
            next: 1,
            open: HashMap::new(),
            bytes: ENTRY,
        }
    }
}

impl World {
    /// Takes the next operation; numbers of open files belong to this trace.
    pub fn take(&mut self, op: &Op) {
        match op.result {
            Outcome::Failed(errno) => self.failed(op, errno),
            Outcome::Done(value) => self.done(op, Some(value)),
            Outcome::Unknown => self.done(op, None),
        }
    }

    /// Approximate memory of its names in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The files that existed before, with directories before their entries.
    pub fn before(self) -> Vec<Prepared> {
        let existing = self.objects.into_iter().filter(|(id, object)| {
            *id != ROOT && !(object.perhaps && object.needed == 0 && !object.is_directory)
        });
        let mut all: Vec<Prepared> = existing
            .filter_map(|(_, object)| {
                let kind = match (object.is_directory, object.kind) {
                    (true, _) => Kind::Directory,
                    (false, kind) => kind.unwrap_or(Kind::File),
                };
                Some(Prepared {
                    path: object.before?,
                    kind,
                    size: object.needed,
                })
            })
            .collect();
        all.sort_by(|one, other| one.path.cmp(&other.path));
        all.dedup_by(|one, other| one.path == other.path);
        all
    }

    fn split(path: &[u8]) -> (&[u8], &[u8]) {
        match path.iter().rposition(|b| *b == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[], path),
        }
    }

    /// The object at a path. With `was_there`, an unknown object existed before the trace, as
    /// far as its directory did.
    fn at(&mut self, path: &[u8], was_there: bool) -> Option<Id> {
        let mut id = ROOT;
        if path.is_empty() {
            return Some(id);
        }
        for part in path.split(|b| *b == b'/') {
            let next = self.next;
            let object = self.objects.get_mut(&id)?;
            match object.children.get(part) {
                Some(child) => id = (*child)?,
                None if was_there => {
                    let mut path = object.before.as_ref()?.to_vec();
                    if !path.is_empty() {
                        path.push(b'/');
                    }
                    path.extend_from_slice(part);
                    object.is_directory = true;
                    object.children.insert(part.into(), Some(next));
                    self.bytes += 2 * ENTRY + (part.len() + path.len()) as u64;
                    let child = Object {
                        before: Some(path.into()),
                        names: 1,
                        ..Object::default()
                    };
                    self.objects.insert(next, child);
                    self.next += 1;
                    id = next;
                }
                None => return None,
            }
        }
        Some(id)
    }

    fn object(&mut self, path: &[u8]) -> Option<&mut Object> {
        let id = self.at(path, true)?;
        self.objects.get_mut(&id)
    }

    /// Gives an object a name, and removes the name from its previous object.
    fn bind(&mut self, path: &[u8], id: Option<Id>) {
        let (parent, name) = World::split(path);
        let Some(parent) = self.at(parent, true) else {
            return;
        };
        let Some(directory) = self.objects.get_mut(&parent) else {
            return;
        };
        directory.is_directory = true;
        let before = directory.children.insert(name.into(), id);
        if before.is_none() {
            self.bytes += ENTRY + name.len() as u64;
        }
        let before = before.flatten();
        if let Some(object) = id.and_then(|id| self.objects.get_mut(&id)) {
            object.names += 1;
        }
        if let Some(before) = before {
            if let Some(object) = self.objects.get_mut(&before) {
                object.names = object.names.saturating_sub(1);
            }
            self.drop_if_gone(before);
        }
    }

    /// Removes an object that the trace has created and removed.
    fn drop_if_gone(&mut self, id: Id) {
        let gone = self.objects.get(&id).is_some_and(|object| {
            let is_created = object.before.is_none() || object.perhaps && object.needed == 0;
            is_created
                && object.names == 0
                && object.open == 0
                && object.children.values().flatten().count() == 0
        });
        if gone && let Some(object) = self.objects.remove(&id) {
            let path = object.before.map_or(0, |path| path.len() as u64);
            let names = object.children.keys();
            let names: u64 = names.map(|name| ENTRY + name.len() as u64).sum();
            self.bytes = self.bytes.saturating_sub(ENTRY + path + names);
        }
    }

    fn make(&mut self, path: &[u8], kind: Kind) -> Id {
        let id = self.next;
        self.next += 1;
        let object = Object {
            kind: Some(kind),
            is_directory: kind == Kind::Directory,
            ..Object::default()
        };
        self.objects.insert(id, object);
        self.bytes += ENTRY;
        self.bind(path, Some(id));
        id
    }

    fn failed(&mut self, op: &Op, errno: i32) {
        let path = match (op.call, &op.other) {
            (Call::Link, Other::Path(to)) => Some(to),
            (
                Call::Open(_)
                | Call::Access(_)
                | Call::Mkdir(_)
                | Call::Mknod(_)
                | Call::Rmdir
                | Call::Unlink
                | Call::Readlink
                | Call::Symlink
                | Call::Stat(_)
                | Call::Rename(_),
                _,
            ) => op.path.as_ref(),
            _ => None,
        };
        let Some(path) = path else {
            return;
        };
        if errno == ENOENT {
            let makes = matches!(
                op.call,
                Call::Mkdir(_) | Call::Mknod(_) | Call::Symlink | Call::Link
            );
            let (parent, name) = World::split(path);
            if let Some(parent) = self
                .at(parent, false)
                .filter(|_| !makes && !name.is_empty())
                && let Some(parent) = self.objects.get_mut(&parent)
                && !parent.children.contains_key(name)
            {
                parent.children.insert(name.into(), None);
                self.bytes += ENTRY + name.len() as u64;
            }
        } else if errno == EEXIST {
            let is_directory = matches!(op.call, Call::Mkdir(_));
            if let Some(object) = self.object(path) {
                object.is_directory |= is_directory && object.kind.is_none();
            }
        } else if errno == ENOTEMPTY {
            let _ = self.object(path);
        }
    }

    fn done(&mut self, op: &Op, returned: Option<u64>) {
        let path = op.path.as_deref().unwrap_or_default();
        let file = op.file.unwrap_or_default();
        let moved = returned.or(op.length).unwrap_or_default();
        match op.call {
            Call::Open(flags) => self.opened(op, path, flags, file),
            Call::Close => {
                if let Some(opened) = self.open.remove(&file) {
                    self.closed(opened);
                }
            }
            Call::Read => self.read(file, None, moved),
            Call::ReadAt(at) => self.read(file, Some(at), moved),
            Call::Write => self.written(file, None, moved),
            Call::WriteAt(at) => self.written(file, Some(at), moved),
            Call::Seek(..) => {
                if let (Some(opened), Some(position)) = (self.open.get_mut(&file), returned) {
                    opened.position = position;
                }
            }
            Call::Truncate(_, length) => {
                if let Some(object) = self.target(op) {
                    (object.length, object.changed) = (length, true);
                }
            }
            Call::Allocate {
                mode,
                offset,
                length,
            } => {
                if mode & KEEP_SIZE == 0 {
                    self.written(file, Some(offset), length);
                }
            }
            Call::Readdir => {
                let id = self.open.get(&file).map(|opened| opened.id);
                if let Some(object) = id.and_then(|id| self.objects.get_mut(&id)) {
                    object.is_directory = true;
                }
            }
            Call::Mkdir(_) => drop(self.make(path, Kind::Directory)),
            Call::Mknod(_) => drop(self.make(path, Kind::File)),
            Call::Symlink => drop(self.make(path, Kind::Link)),
            Call::Rmdir | Call::Unlink => {
                let is_directory = op.call == Call::Rmdir;
                if let Some(object) = self.object(path) {
                    object.is_directory |= is_directory;
                }
                self.bind(path, None);
            }
            Call::Rename(_) | Call::Link => {
                let Other::Path(to) = &op.other else {
                    return;
                };
                let moved = self.at(path, true);
                let exchanged = match op.call {
                    Call::Rename(flags) if flags & linux::RENAME_EXCHANGE != 0 => self.at(to, true),
                    _ => None,
                };
                self.bind(to, moved);
                if op.call != Call::Link && path != &to[..] {
                    self.bind(path, exchanged);
                }
            }
            Call::Readlink => {
                if let Some(object) = self.object(path) {
                    object.kind = Some(Kind::Link);
                    object.needed = object.needed.max(returned.unwrap_or(1)).max(1);
                }
            }
            Call::Stat(_) => self.told(op),
            // Their objects existed before.
            _ => drop(self.target(op)),
        }
    }

    fn closed(&mut self, opened: Opened) {
        if let Some(object) = self.objects.get_mut(&opened.id) {
            object.open = object.open.saturating_sub(1);
        }
        self.drop_if_gone(opened.id);
    }

    /// Object that a call works on.
    fn target(&mut self, op: &Op) -> Option<&mut Object> {
        match op.file {
            None => self.object(op.path.as_deref()?),
            Some(file) => {
                let id = self.open.get(&file)?.id;
                self.objects.get_mut(&id)
            }
        }
    }

    fn opened(&mut self, op: &Op, path: &[u8], flags: OpenFlags, file: u64) {
        let known = self.at(path, false);
        let id = match (known, flags.creates(), flags.has(linux::EXCL)) {
            (Some(id), ..) => Some(id),
            (None, true, true) => Some(self.make(path, Kind::File)),
            (None, true, false) => {
                // The name is known not to exist, or is in a directory that the trace created:
                // this call creates it.
                match self.at(path, true) {
                    None => Some(self.make(path, Kind::File)),
                    Some(id) => {
                        if let Some(object) = self.objects.get_mut(&id) {
                            (object.perhaps, object.kind) = (true, Some(Kind::File));
                        }
                        Some(id)
                    }
                }
            }
            (None, false, _) => self.at(path, true),
        };
        let Some(id) = id else {
            return;
        };
        if let Some(object) = self.objects.get_mut(&id) {
            object.open += 1;
            object.is_directory |= flags.has(linux::DIRECTORY);
            if flags.has(linux::TRUNC) {
                (object.length, object.changed) = (0, true);
            }
        }
        let opened = Opened {
            id,
            position: 0,
            appends: flags.has(linux::APPEND),
        };
        if let Some(before) = self.open.insert(file, opened) {
            self.closed(before);
        }
        self.told(op);
    }

    /// Records attributes of an object in a result, unless the trace has changed it.
    fn told(&mut self, op: &Op) {
        let (kind, size) = (op.told.kind, op.told.size);
        let Some(object) = self.target(op) else {
            return;
        };
        object.is_directory |= kind == Some(Kind::Directory);
        if object.kind.is_none() {
            object.kind = kind;
        }
        let fixed = object.changed || object.before.is_none() || kind == Some(Kind::Directory);
        if let Some(size) = size.filter(|_| !fixed) {
            object.needed = object.needed.max(size);
            object.length = object.length.max(size);
        }
    }

    fn place(&mut self, file: u64, at: Option<u64>, length: u64) -> Option<(Id, u64)> {
        let opened = self.open.get_mut(&file)?;
        let from = at.unwrap_or(opened.position);
        let end = from.saturating_add(length);
        if at.is_none() {
            opened.position = end;
        }
        Some((opened.id, end))
    }

    fn read(&mut self, file: u64, at: Option<u64>, length: u64) {
        let Some((id, end)) = self.place(file, at, length) else {
            return;
        };
        let Some(object) = self.objects.get_mut(&id).filter(|_| length > 0) else {
            return;
        };
        if object.before.is_some() && end > object.length {
            object.needed = object.needed.max(end);
            object.length = end;
        }
    }

    fn written(&mut self, file: u64, at: Option<u64>, length: u64) {
        let appends = self.open.get(&file).is_some_and(|opened| opened.appends);
        let Some((id, mut end)) = self.place(file, at, length) else {
            return;
        };
        let Some(object) = self.objects.get_mut(&id) else {
            return;
        };
        if appends {
            end = object.length.saturating_add(length);
        }
        object.length = object.length.max(end);
        object.changed = true;
        if appends && let Some(opened) = self.open.get_mut(&file) {
            opened.position = end;
        }
    }
}

const ENOENT: i32 = 2;
const EEXIST: i32 = 17;
const ENOTEMPTY: i32 = 39;

/// `FALLOC_FL_KEEP_SIZE`
const KEEP_SIZE: i32 = 1;
