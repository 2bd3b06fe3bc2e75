//! Mapping from the number of a name to its path, with a limited number of entries per
//! directory on every level.

use std::io::Write as _;

use super::{FileSet, SetKind};

/// The paths of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The directory of the set.
    root: String,
    /// The letter before the numbers of names.
    letter: char,
    width: Option<u64>,
    /// Number of directories on each level below the root, the highest first; empty if all
    /// names are in the root.
    levels: Vec<u64>,
}

impl Tree {
    /// The paths of `set` in the directory `root`.
    pub fn new(set: &FileSet, root: String) -> Tree {
        let mut levels = Vec::new();
        if let Some(width) = set.width {
            let mut count = set.number.div_ceil(width);
            // Directories that fit into the root need no level above them.
            while count > 1 {
                levels.insert(0, count);
                if count <= width {
                    break;
                }
                count = count.div_ceil(width);
            }
        }
        Tree {
            root,
            letter: match set.kind {
                SetKind::Files => 'f',
                SetKind::Directories => 'e',
                SetKind::Links => 'l',
            },
            width: set.width,
            levels,
        }
    }

    /// Number of directories on each level below the root, the highest first.
    pub fn levels(&self) -> &[u64] {
        &self.levels
    }

    /// Number of directories that contain names.
    pub fn leaves(&self) -> u64 {
        self.levels.last().copied().unwrap_or(1)
    }

    /// Appends the path of the directory with that number on a level; the parents of the
    /// first level are the root.
    pub fn directory(&self, level: usize, number: u64, to: &mut Vec<u8>) {
        to.extend(self.root.as_bytes());
        let Some(width) = self.width else {
            return;
        };
        for above in (0..level).rev() {
            let of_level = (0..above).fold(number, |number, _| number / width);
            // Writing to a Vec does not fail.
            let _ = write!(to, "/d{of_level}");
        }
    }

    /// Appends the path of one of the directories that contain names.
    pub fn leaf(&self, number: u64, to: &mut Vec<u8>) {
        self.directory(self.levels.len(), number, to);
    }

    /// Appends the path of a name.
    pub fn name(&self, number: u64, to: &mut Vec<u8>) {
        let leaf = match (self.levels.is_empty(), self.width) {
            (false, Some(width)) => number / width,
            _ => 0,
        };
        self.leaf(leaf, to);
        let _ = write!(to, "/{}{number}", self.letter);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rbench_core::Bytes;

    use super::*;
    use crate::mix::sizes::Sizes;

    fn tree(number: u64, width: Option<u64>) -> Tree {
        let set = FileSet {
            name: "files".to_owned(),
            kind: SetKind::Files,
            number,
            sizes: Sizes::Fixed(Bytes(0)),
            width,
            prepared: 100,
        };
        Tree::new(&set, "s/files".to_owned())
    }

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes);
        String::from_utf8(bytes).expect("names are ASCII")
    }

    #[test]
    fn names_lie_in_one_directory_where_no_width_is_given() {
        let all = tree(10, None);
        assert!(all.levels().is_empty());
        assert_eq!(text(|to| all.name(9, to)), "s/files/f9");
        assert_eq!(text(|to| tree(5, Some(5)).name(4, to)), "s/files/f4");
    }

    #[test]
    fn no_directory_has_more_entries_than_its_width() {
        for (number, width) in [(10_000, 20), (21, 20), (400, 20), (401, 20), (64, 2)] {
            let all = tree(number, Some(width));
            let mut entries: BTreeMap<String, u64> = BTreeMap::new();
            let mut paths = vec!["s/files".to_owned()];
            let mut note = |path: String| {
                let (parent, _) = path.rsplit_once('/').expect("it lies in a directory");
                assert!(paths.contains(&parent.to_owned()), "{path}");
                *entries.entry(parent.to_owned()).or_default() += 1;
                paths.push(path);
            };
            for (level, count) in all.levels().iter().enumerate() {
                for directory in 0..*count {
                    note(text(|to| all.directory(level + 1, directory, to)));
                }
            }
            for name in 0..number {
                note(text(|to| all.name(name, to)));
            }
            paths.sort();
            let count = paths.len();
            paths.dedup();
            assert_eq!(paths.len(), count);
            assert!(entries.values().all(|count| *count <= width), "{entries:?}");
        }
    }
}
