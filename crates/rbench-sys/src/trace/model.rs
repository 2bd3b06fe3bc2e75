//! The tree that answers for the recorder, and that promises are compared with: names, lengths and open files.
//! The answers are those of Linux; the recorder's tests compare them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;

use nix::errno::Errno;
use rbench_core::request::Kind;
use rbench_core::{OpenFlags, linux};

/// First descriptor: far above those of the process, so that none is mistaken for a
/// real one.
const FIRST_FD: RawFd = 1_000_000_000;

/// Plain form of the directory that relative paths start from.
const HERE: &str = ".";

/// Plain form of the directory `/`.
const ROOT: &str = "";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Directory,
    /// Index in [`Model::lengths`].
    File(usize),
    /// Index in [`Model::targets`].
    Symlink(usize),
}

/// Extended attributes of a file by name.
type Attributes = BTreeMap<CString, Vec<u8>>;

#[derive(Debug)]
struct Open {
    path: String,
    file: usize,
    position: u64,
    flags: OpenFlags,
}

/// The tree.
#[derive(Debug)]
pub(crate) struct Model {
    /// Everything by its path in the form of [`Model::resolve`].
    nodes: BTreeMap<String, Node>,
    /// Lengths of all files ever created.
    lengths: Vec<u64>,
    /// Targets of all symbolic links ever created: no such names exist.
    targets: Vec<String>,
    /// Extended attributes of the files that have had any.
    attributes: HashMap<usize, Attributes>,
    /// Extended attributes of the other files.
    none: Attributes,
    open: HashMap<RawFd, Open>,
    next_fd: RawFd,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            nodes: BTreeMap::from([HERE, ROOT].map(|top| (top.to_owned(), Node::Directory))),
            lengths: Vec::new(),
            targets: Vec::new(),
            attributes: HashMap::new(),
            none: Attributes::new(),
            open: HashMap::new(),
            next_fd: FIRST_FD,
        }
    }
}

/// True if `path` is below the directory `top`.
fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Directory in which `path` starts.
fn top(path: &str) -> &'static str {
    if path.starts_with('/') { ROOT } else { HERE }
}

/// Names of `path`, from the top down.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !matches!(*part, "" | "."))
}

impl Model {
    /// Plain form of `path`, whose parent must be a directory: [`HERE`] or [`ROOT`],
    /// then a slash and a name for each step: `./a/b`, `/mnt/x`. A slash at the end
    /// has no further effect.
    fn resolve(&self, path: &str) -> Result<String, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let mut plain = top(path).to_owned();
        for part in parts(path) {
            match self.nodes.get(&plain) {
                Some(Node::Directory) => {}
                Some(Node::File(_)) => return Err(Errno::ENOTDIR),
                Some(Node::Symlink(_)) | None => return Err(Errno::ENOENT),
            }
            plain.push('/');
            plain.push_str(part);
        }
        Ok(plain)
    }

    fn lookup(&self, path: &str) -> Result<(String, Node), Errno> {
        let plain = self.resolve(path)?;
        let node = *self.nodes.get(&plain).ok_or(Errno::ENOENT)?;
        Ok((plain, node))
    }

    /// Plain form of a path where nothing is.
    fn unused(&self, path: &str) -> Result<String, Errno> {
        let plain = self.resolve(path)?;
        match self.nodes.contains_key(&plain) {
            true => Err(Errno::EEXIST),
            false => Ok(plain),
        }
    }

    /// Everything below the directory `top`.
    fn below(&self, top: &str) -> impl Iterator<Item = &String> + use<'_> {
        let start = format!("{top}/");
        self.nodes
            .range(start.clone()..)
            .map(|(path, _)| path)
            .take_while(move |path| path.starts_with(&start))
    }

    pub(crate) fn mkdir(&mut self, path: &str) -> Result<(), Errno> {
        let plain = self.unused(path)?;
        self.nodes.insert(plain, Node::Directory);
        Ok(())
    }

    /// Makes `path` and what is missing of the way to it directories.
    pub(crate) fn mkdir_all(&mut self, path: &str) {
        let mut plain = top(path).to_owned();
        for part in parts(path) {
            plain.push('/');
            plain.push_str(part);
            self.nodes.insert(plain.clone(), Node::Directory);
        }
    }

    pub(crate) fn rmdir(&mut self, path: &str) -> Result<(), Errno> {
        let (plain, node) = self.lookup(path)?;
        if node != Node::Directory {
            return Err(Errno::ENOTDIR);
        }
        match &*plain {
            HERE => return Err(Errno::EINVAL),
            ROOT => return Err(Errno::EBUSY),
            _ => {}
        }
        if self.below(&plain).next().is_some() {
            return Err(Errno::ENOTEMPTY);
        }
        self.nodes.remove(&plain);
        Ok(())
    }

    pub(crate) fn stat(&self, path: &str) -> Result<u64, Errno> {
        match self.lookup(path)?.1 {
            Node::Directory => Ok(0),
            Node::File(file) => Ok(self.lengths[file]),
            Node::Symlink(link) => Ok(self.targets[link].len() as u64),
        }
    }

    /// Resolves a path for a call that follows symbolic links: they lead nowhere.
    pub(crate) fn follow(&self, path: &str) -> Result<(), Errno> {
        match self.lookup(path)?.1 {
            Node::Directory | Node::File(_) => Ok(()),
            Node::Symlink(_) => Err(Errno::ENOENT),
        }
    }

    pub(crate) fn symlink(&mut self, target: &str, path: &str) -> Result<(), Errno> {
        let plain = self.unused(path)?;
        let link = Node::Symlink(self.targets.len());
        self.targets.push(target.to_owned());
        self.nodes.insert(plain, link);
        Ok(())
    }

    pub(crate) fn readlink(&self, path: &str) -> Result<String, Errno> {
        match self.lookup(path)?.1 {
            Node::Symlink(link) => Ok(self.targets[link].clone()),
            Node::Directory | Node::File(_) => Err(Errno::EINVAL),
        }
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        // Both parents are checked before either name.
        let (source, target) = (self.resolve(from)?, self.resolve(to)?);
        if [&source, &target]
            .iter()
            .any(|path| matches!(path.as_str(), HERE | ROOT))
        {
            return Err(Errno::EBUSY);
        }
        let node = *self.nodes.get(&source).ok_or(Errno::ENOENT)?;
        if source == target {
            return Ok(());
        }
        if is_below(&target, &source) {
            return Err(Errno::EINVAL);
        }
        if is_below(&source, &target) {
            return Err(Errno::ENOTEMPTY);
        }
        match (node, self.nodes.get(&target)) {
            (Node::Directory, Some(Node::File(_) | Node::Symlink(_))) => {
                return Err(Errno::ENOTDIR);
            }
            (Node::File(_) | Node::Symlink(_), Some(Node::Directory)) => {
                return Err(Errno::EISDIR);
            }
            // Two names of one file: no change.
            (one, Some(other)) if one != Node::Directory && one == *other => return Ok(()),
            (Node::Directory, Some(Node::Directory)) if self.below(&target).next().is_some() => {
                return Err(Errno::ENOTEMPTY);
            }
            _ => {}
        }
        let moving: Vec<String> = self.below(&source).cloned().collect();
        for path in moving.into_iter().chain([source.clone()]) {
            if let Some(node) = self.nodes.remove(&path) {
                let moved = format!("{target}{}", &path[source.len()..]);
                self.nodes.insert(moved, node);
            }
        }
        Ok(())
    }

    pub(crate) fn link(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        let (_, node) = self.lookup(from)?;
        let target = self.unused(to)?;
        if node == Node::Directory {
            return Err(Errno::EPERM);
        }
        self.nodes.insert(target, node);
        Ok(())
    }

    pub(crate) fn list(&self, path: &str) -> Result<u64, Errno> {
        let (plain, node) = self.lookup(path)?;
        if node != Node::Directory {
            return Err(Errno::ENOTDIR);
        }
        let children = self
            .below(&plain)
            .filter(|path| !path[plain.len() + 1..].contains('/'));
        Ok(children.count() as u64)
    }

    /// A new file of that length.
    pub(crate) fn create(&mut self, path: &str, length: u64) -> Result<(), Errno> {
        self.mknod(path)?;
        if let Some(last) = self.lengths.last_mut() {
            *last = length;
        }
        Ok(())
    }

    /// All that relative paths lead to, with the lengths of files.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, (Kind, u64))> {
        self.below(HERE).map(|path| {
            let node = match self.nodes.get(path) {
                Some(Node::File(file)) => (Kind::File, self.lengths[*file]),
                Some(Node::Symlink(_)) => (Kind::Link, 0),
                Some(Node::Directory) | None => (Kind::Directory, 0),
            };
            (path[HERE.len() + 1..].to_owned(), node)
        })
    }

    fn new_file(&mut self, plain: String) -> usize {
        let file = self.lengths.len();
        self.lengths.push(0);
        self.nodes.insert(plain, Node::File(file));
        file
    }

    pub(crate) fn mknod(&mut self, path: &str) -> Result<(), Errno> {
        let plain = self.unused(path)?;
        self.new_file(plain);
        Ok(())
    }

    pub(crate) fn unlink(&mut self, path: &str) -> Result<(), Errno> {
        let (plain, node) = self.lookup(path)?;
        if node == Node::Directory {
            return Err(Errno::EISDIR);
        }
        self.nodes.remove(&plain);
        Ok(())
    }

    pub(crate) fn open(&mut self, path: &str, flags: OpenFlags) -> Result<RawFd, Errno> {
        let plain = self.resolve(path)?;
        let file = match self.nodes.get(&plain) {
            Some(_) if flags.has(linux::CREAT | linux::EXCL) => return Err(Errno::EEXIST),
            Some(Node::Directory) => return Err(Errno::EISDIR),
            Some(Node::Symlink(_)) => return Err(Errno::ELOOP),
            Some(Node::File(file)) => *file,
            None if !flags.creates() => return Err(Errno::ENOENT),
            None => self.new_file(plain),
        };
        if flags.has(linux::TRUNC) {
            self.lengths[file] = 0;
        }
        let fd = self.next_fd;
        self.next_fd += 1;
        let open = Open {
            path: path.to_owned(),
            file,
            position: 0,
            flags,
        };
        self.open.insert(fd, open);
        Ok(fd)
    }

    /// The path that `fd` was opened with.
    pub(crate) fn opened(&self, fd: RawFd) -> Option<&str> {
        self.open.get(&fd).map(|open| open.path.as_str())
    }

    pub(crate) fn close(&mut self, fd: RawFd) -> Result<(), Errno> {
        self.open.remove(&fd).map(drop).ok_or(Errno::EBADF)
    }

    pub(crate) fn write(&mut self, fd: RawFd, length: usize) -> Result<usize, Errno> {
        let open = self.open.get_mut(&fd).ok_or(Errno::EBADF)?;
        if !open.flags.writes() {
            return Err(Errno::EBADF);
        }
        if length > 0 {
            if open.flags.has(linux::APPEND) {
                open.position = self.lengths[open.file];
            }
            open.position += length as u64;
            let end = &mut self.lengths[open.file];
            *end = open.position.max(*end);
        }
        Ok(length)
    }

    pub(crate) fn read(&mut self, fd: RawFd, length: usize) -> Result<usize, Errno> {
        let open = self.open.get_mut(&fd).ok_or(Errno::EBADF)?;
        if !open.flags.reads() {
            return Err(Errno::EBADF);
        }
        let left = self.lengths[open.file].saturating_sub(open.position);
        let read = left.min(length as u64);
        open.position += read;
        Ok(read as usize)
    }

    pub(crate) fn write_at(
        &mut self,
        fd: RawFd,
        length: usize,
        offset: u64,
    ) -> Result<usize, Errno> {
        let open = self.open.get(&fd).ok_or(Errno::EBADF)?;
        if !open.flags.writes() {
            return Err(Errno::EBADF);
        }
        if length > 0 {
            let end = &mut self.lengths[open.file];
            *end = (offset + length as u64).max(*end);
        }
        Ok(length)
    }

    pub(crate) fn read_at(&self, fd: RawFd, length: usize, offset: u64) -> Result<usize, Errno> {
        let open = self.open.get(&fd).ok_or(Errno::EBADF)?;
        if !open.flags.reads() {
            return Err(Errno::EBADF);
        }
        let left = self.lengths[open.file].saturating_sub(offset);
        Ok(left.min(length as u64) as usize)
    }

    /// The length of an open file.
    pub(crate) fn length(&self, fd: RawFd) -> Result<u64, Errno> {
        let open = self.open.get(&fd).ok_or(Errno::EBADF)?;
        Ok(self.lengths[open.file])
    }

    /// The extended attributes of an open file.
    pub(crate) fn attributes(&self, fd: RawFd) -> Result<&Attributes, Errno> {
        let open = self.open.get(&fd).ok_or(Errno::EBADF)?;
        Ok(self.attributes.get(&open.file).unwrap_or(&self.none))
    }

    pub(crate) fn setxattr(&mut self, fd: RawFd, name: &CStr, value: &[u8]) -> Result<(), Errno> {
        let open = self.open.get(&fd).ok_or(Errno::EBADF)?;
        let all = self.attributes.entry(open.file).or_default();
        all.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    pub(crate) fn removexattr(&mut self, fd: RawFd, name: &CStr) -> Result<(), Errno> {
        let open = self.open.get(&fd).ok_or(Errno::EBADF)?;
        let all = self.attributes.get_mut(&open.file).ok_or(Errno::ENODATA)?;
        all.remove(name).map(drop).ok_or(Errno::ENODATA)
    }

    pub(crate) fn truncate(&mut self, fd: RawFd, length: u64) -> Result<(), Errno> {
        let open = self.open.get(&fd).ok_or(Errno::EBADF)?;
        if !open.flags.writes() {
            return Err(Errno::EINVAL);
        }
        self.lengths[open.file] = length;
        Ok(())
    }
}
