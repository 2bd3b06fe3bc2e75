//! Known paths of inodes, for the fault log, learned from requests with names. A file
//! that has lost its name keeps the last one.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use fuser::FileType;
use parking_lot::Mutex;

use crate::store::{Place, ROOT};

/// The names of inodes.
#[derive(Debug, Default)]
pub(crate) struct Paths(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    nodes: BTreeMap<u64, Node>,
    /// The inode of each name: the inverse of `nodes`.
    places: HashMap<(u64, OsString), u64>,
}

#[derive(Debug)]
struct Node {
    parent: u64,
    name: OsString,
    is_file: bool,
}

fn owned(place: Place<'_>) -> (u64, OsString) {
    (place.parent, place.name.to_owned())
}

impl Paths {
    /// Records that `ino` is at `place`.
    pub(crate) fn note(&self, place: Place<'_>, ino: u64, kind: FileType) {
        let mut state = self.0.lock();
        if matches!(place.name.as_encoded_bytes(), b"." | b"..") {
            return;
        }
        let (parent, name) = owned(place);
        let node = Node {
            parent,
            name: name.clone(),
            is_file: kind == FileType::RegularFile,
        };
        state.nodes.insert(ino, node);
        state.places.insert((parent, name), ino);
    }

    /// Records that `place` no longer exists.
    pub(crate) fn removed(&self, place: Place<'_>) {
        self.0.lock().places.remove(&owned(place));
    }

    /// Records that the inode of `from` is now at `to`, and in an exchange the other
    /// way round.
    pub(crate) fn renamed(&self, from: Place<'_>, to: Place<'_>, exchange: bool) {
        let mut state = self.0.lock();
        let (from, to) = (owned(from), owned(to));
        let moved = state.places.remove(&from);
        let replaced = state.places.remove(&to);
        let arrivals = [(moved, to), (replaced.filter(|_| exchange), from)];
        for (ino, (parent, name)) in arrivals {
            let Some(ino) = ino else { continue };
            if let Some(node) = state.nodes.get_mut(&ino) {
                (node.parent, node.name) = (parent, name.clone());
            }
            state.places.insert((parent, name), ino);
        }
    }

    /// Removes an inode that no longer exists.
    pub(crate) fn forget(&self, ino: u64) {
        let mut state = self.0.lock();
        if let Some(node) = state.nodes.remove(&ino) {
            let place = (node.parent, node.name);
            if state.places.get(&place) == Some(&ino) {
                state.places.remove(&place);
            }
        }
    }

    /// The path of `ino` from the mount point; `.` for the root. It starts with `?`
    /// if a name is unknown.
    pub(crate) fn path(&self, ino: u64) -> PathBuf {
        if ino == ROOT {
            return PathBuf::from(".");
        }
        path_in(&self.0.lock(), ino)
    }

    /// The path of the name at `place`.
    pub(crate) fn path_of(&self, place: Place<'_>) -> PathBuf {
        path_in(&self.0.lock(), place.parent).join(place.name)
    }

    /// A regular file, the same for the same `draw`; `None` if there is none.
    pub(crate) fn some_file(&self, draw: u64) -> Option<u64> {
        let state = self.0.lock();
        let nodes = &state.nodes;
        let last = *nodes.last_key_value()?.0;
        // Inode numbers are mostly consecutive.
        let from = nodes.first_key_value()?.0;
        let start = from + draw % (last - from + 1);
        nodes
            .range(start..)
            .chain(nodes.range(..start))
            .find(|(_, node)| node.is_file)
            .map(|(ino, _)| *ino)
    }
}

fn path_in(state: &State, ino: u64) -> PathBuf {
    let mut names: Vec<&OsStr> = Vec::new();
    let mut at = ino;
    // A chain that is longer than any path is a cycle.
    const DEEPEST: usize = 4096;
    while at != ROOT && names.len() < DEEPEST {
        let Some(node) = state.nodes.get(&at) else {
            names.push(OsStr::new("?"));
            break;
        };
        names.push(&node.name);
        at = node.parent;
    }
    names.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::at;
    use std::path::Path;

    #[test]
    fn paths_follow_what_is_made_renamed_and_removed() {
        let paths = Paths::default();
        paths.note(at(ROOT, "d"), 2, FileType::Directory);
        paths.note(at(2, "f"), 3, FileType::RegularFile);
        paths.note(at(ROOT, "e"), 4, FileType::Directory);
        paths.note(at(2, "."), 2, FileType::Directory);
        let check = |ino, path: &str| assert_eq!(paths.path(ino), Path::new(path));
        check(ROOT, ".");
        check(3, "d/f");
        paths.renamed(at(ROOT, "d"), at(4, "g"), false);
        check(3, "e/g/f");
        paths.note(at(ROOT, "h"), 5, FileType::RegularFile);
        paths.renamed(at(2, "f"), at(ROOT, "h"), true);
        check(3, "h");
        check(5, "e/g/f");
        paths.removed(at(ROOT, "h"));
        check(3, "h");
        check(99, "?");
        assert_eq!(paths.path_of(at(2, "new")), Path::new("e/g/new"));
        assert_eq!(paths.path_of(at(ROOT, "new")), Path::new("new"));
        let mut files: Vec<u64> = (0..10).filter_map(|i| paths.some_file(i)).collect();
        files.sort_unstable();
        files.dedup();
        assert_eq!(files, [3, 5]);
        paths.forget(5);
        check(5, "?");
    }
}
