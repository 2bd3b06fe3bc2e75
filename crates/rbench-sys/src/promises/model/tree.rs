//! Names in a tree against a map of them.

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use rbench_core::random::Stream;
use rbench_core::request::Kind;

use super::super::did::Breach;
use super::super::ground::Ground;
use super::{Compared, Subject, Wrong, compared};
use crate::trace::Model;

/// The object of a name; for a file, the number in it.
type Node = (Kind, u64);

/// A tree, and what should be in it. Paths are those below its own directory.
pub(super) struct Tree {
    root: String,
    /// The length of a file there is the number in it here.
    model: Model,
    steps: usize,
    /// The file system has symbolic links.
    symlinks: bool,
}

/// An operation on a tree.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Create(String),
    Mkdir(String),
    Symlink(String),
    Unlink(String),
    Rmdir(String),
    Rename(String, String),
    Look(String),
}

/// Steps between two comparisons of the whole tree.
const WHOLE_EVERY: usize = 50;
/// Target of symbolic links.
const NOWHERE: &str = "nowhere-at-all";

impl Tree {
    /// The expected result of an operation; changes the model accordingly.
    fn expect(&mut self, number: u64, operation: &Operation) -> Result<(), Errno> {
        let model = &mut self.model;
        match operation {
            Operation::Create(path) => model.create(path, number),
            Operation::Mkdir(path) => model.mkdir(path),
            Operation::Symlink(path) => model.symlink(NOWHERE, path),
            Operation::Unlink(path) => model.unlink(path),
            Operation::Rmdir(path) => model.rmdir(path),
            Operation::Rename(from, to) => model.rename(from, to),
            Operation::Look(path) => model.stat(path).map(drop),
        }
    }

    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    /// Does it to the file system.
    fn carry_out(
        &self,
        g: &Ground,
        number: u64,
        operation: &Operation,
    ) -> Result<Result<(), Errno>, Breach> {
        Ok(match operation {
            Operation::Create(path) => {
                let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_RDWR;
                match g.open(self.at(path), flags).result {
                    Ok(fd) => {
                        g.write(self.at(path), &fd, &number.to_le_bytes(), 0)
                            .ready()?;
                        Ok(())
                    }
                    Err(errno) => Err(errno),
                }
            }
            Operation::Mkdir(path) => g.mkdir(self.at(path), 0o755).result,
            Operation::Symlink(path) => g.symlink(NOWHERE, self.at(path)).result,
            Operation::Unlink(path) => g.unlink(self.at(path)).result,
            Operation::Rmdir(path) => g.rmdir(self.at(path)).result,
            Operation::Rename(from, to) => g.rename(self.at(from), self.at(to)).result,
            Operation::Look(path) => g.lstat(self.at(path)).result.map(drop),
        })
    }

    /// Compares everything below a directory.
    fn compare(
        &self,
        g: &Ground,
        path: &str,
        found: &mut BTreeMap<String, Node>,
    ) -> Result<(), Breach> {
        for entry in g.list(self.at(path)).ok()? {
            let name = entry.name.to_string_lossy();
            let below = match path {
                "." => name.into_owned(),
                path => format!("{path}/{name}"),
            };
            let Ok(told) = g.lstat(self.at(&below)).result else {
                continue;
            };
            let node = match told.st_mode & nix::libc::S_IFMT {
                nix::libc::S_IFDIR => (Kind::Directory, 0),
                nix::libc::S_IFLNK => (Kind::Link, 0),
                _ => {
                    let fd = g.open(self.at(&below), OFlag::O_RDONLY).ok()?;
                    let bytes = g.read(self.at(&below), fd, 9, 0).ok()?;
                    let number = <[u8; 8]>::try_from(&bytes[..]).map(u64::from_le_bytes);
                    (Kind::File, number.unwrap_or(u64::MAX))
                }
            };
            found.insert(below.clone(), node);
            if node.0 == Kind::Directory {
                self.compare(g, &below, found)?;
            }
        }
        Ok(())
    }

    fn whole(&self, g: &Ground) -> Compared {
        let mut found = BTreeMap::new();
        self.compare(g, ".", &mut found)?;
        let told = |node: Option<&Node>| match node {
            Some((Kind::File, number)) => format!("a file with {number}"),
            Some((kind, _)) => format!("{kind:?}"),
            None => "nothing".to_owned(),
        };
        let model: BTreeMap<String, Node> = self.model.all().collect();
        let names = model.keys().chain(found.keys());
        let mut wrong = names.filter(|name| model.get(*name) != found.get(*name));
        Ok(wrong.next().map(|name| {
            Wrong::new(
                format!("{name} is {}", told(model.get(name))),
                format!("{name} is {}", told(found.get(name))),
            )
        }))
    }
}

impl Subject for Tree {
    type Operation = Operation;
    const LATEST: usize = 2 * WHOLE_EVERY;

    fn new(g: &Ground, number: usize) -> Result<Tree, Breach> {
        let root = format!("tree-{number}");
        g.dir(&root)?;
        let link = format!("{root}.link");
        let made = g.symlink(NOWHERE, &link).result;
        let none = [
            Errno::EPERM,
            Errno::EOPNOTSUPP,
            Errno::ENOSYS,
            Errno::EINVAL,
        ];
        let symlinks = !made.is_err_and(|errno| none.contains(&errno));
        Ok(Tree {
            root,
            model: Model::default(),
            steps: 0,
            symlinks,
        })
    }

    fn draw(draws: &mut Stream) -> Operation {
        let mut path = || {
            let depth = 1 + draws.below(3);
            let names = (0..depth).map(|_| ["a", "b", "c", "d"][draws.below(4) as usize]);
            names.collect::<Vec<_>>().join("/")
        };
        let (one, two) = (path(), path());
        match draws.below(12) {
            0..3 => Operation::Create(one),
            3..5 => Operation::Mkdir(one),
            5 => Operation::Symlink(one),
            6 => Operation::Unlink(one),
            7 => Operation::Rmdir(one),
            8..11 => Operation::Rename(one, two),
            _ => Operation::Look(one),
        }
    }

    fn step(&mut self, g: &Ground, number: usize, operation: &Operation) -> Compared {
        let number = number as u64;
        if matches!(operation, Operation::Symlink(_)) && !self.symlinks {
            return Ok(None);
        }
        let expected = self.expect(number, operation);
        let seen = self.carry_out(g, number, operation)?;
        // Where several errors apply, the choice is not promised.
        let alike = expected.is_ok() == seen.is_ok();
        let wrong = compared(g, &self.root, operation, [expected, seen], alike)?;
        if wrong.is_some() {
            return Ok(wrong);
        }
        self.steps += 1;
        // A short sequence is compared after every step.
        match self.steps < WHOLE_EVERY || self.steps.is_multiple_of(WHOLE_EVERY) {
            true => self.whole(g),
            false => Ok(None),
        }
    }
}
