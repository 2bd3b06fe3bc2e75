//! The phases and their needs.

use Does::{Delete, Look, Write};

/// The sets of files, each in its own folder.
pub const FILES: [&str; 4] = ["ior-easy", "mdtest-easy", "ior-hard", "mdtest-hard"];

/// A phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Its name, which is also the name of its section.
    pub name: &'static str,
    /// The set of files that it works on, one of [`FILES`], whose section has more of its
    /// settings. For `find`, which visits all of them, its own name.
    pub files: &'static str,
    /// The row of its run with its speed.
    pub row: &'static str,
    /// The figure of the row: `access` (bytes per second, with opens and closes), `rate`
    /// (operations per second), `found` (visited files per second).
    pub figure: &'static str,
    /// True if it is part of the score.
    pub scored: bool,
    /// Effect on its files.
    does: Does,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Write,
    Look,
    Delete,
}

const fn bytes(name: &'static str, files: &'static str, row: &'static str, does: Does) -> Phase {
    Phase {
        name,
        files,
        row,
        figure: "access",
        scored: true,
        does,
    }
}

const fn items(name: &'static str, files: &'static str, row: &'static str, does: Does) -> Phase {
    Phase {
        figure: "rate",
        ..bytes(name, files, row, does)
    }
}

/// All phases, in the order in which they run.
pub const PHASES: [Phase; 13] = [
    bytes("ior-easy-write", "ior-easy", "write", Write),
    items("mdtest-easy-write", "mdtest-easy", "file-create", Write),
    bytes("ior-hard-write", "ior-hard", "write", Write),
    items("mdtest-hard-write", "mdtest-hard", "file-create", Write),
    Phase {
        figure: "found",
        ..items("find", "find", "find-readdir", Look)
    },
    bytes("ior-easy-read", "ior-easy", "read", Look),
    items("mdtest-easy-stat", "mdtest-easy", "file-stat", Look),
    bytes("ior-hard-read", "ior-hard", "read", Look),
    items("mdtest-hard-stat", "mdtest-hard", "file-stat", Look),
    items("mdtest-easy-delete", "mdtest-easy", "file-remove", Delete),
    items("mdtest-hard-read", "mdtest-hard", "file-read", Look),
    items("mdtest-hard-delete", "mdtest-hard", "file-remove", Delete),
    Phase {
        scored: false,
        ..bytes("ior-rnd4K-easy-read", "ior-easy", "read", Look)
    },
];

impl Phase {
    /// True if it writes its files.
    pub fn writes(&self) -> bool {
        self.does == Write
    }

    /// True if it deletes its files.
    pub fn deletes(&self) -> bool {
        self.does == Delete
    }

    /// True if it needs this set of files, which an earlier phase writes.
    pub fn needs(&self, files: &str) -> bool {
        !self.writes() && (self.name == "find" || self.files == files)
    }

    /// Unit of its figure in IO500's lines.
    pub fn unit(&self) -> &'static str {
        match self.figure {
            "access" => "GiB/s",
            _ => "kIOPS",
        }
    }
}

/// The phase before which the time stamp is created: the first one from `ior-hard-write` on.
pub fn stamped_before(planned: &[&Phase]) -> Option<&'static str> {
    let later = PHASES
        .iter()
        .skip_while(|phase| phase.name != "ior-hard-write");
    let mut later = later.filter(|phase| planned.iter().any(|run| run.name == phase.name));
    later.next().map(|phase| phase.name)
}

/// Number of leading phases of an interrupted run that stay done. Later phases run again in
/// their order. So every set of files that one of them needs must be intact, or be written by
/// one of them. `complete` is the number of leading phases that reached their end. `whole`
/// returns true if a set of files is as its write phase left it.
pub fn kept(planned: &[&Phase], complete: usize, whole: impl Fn(&str) -> bool) -> usize {
    let mut kept = complete.min(planned.len());
    loop {
        let missing = planned.iter().enumerate().take(kept).find(|(_, phase)| {
            let mut later = planned.iter().skip(kept);
            phase.writes() && !whole(phase.files) && later.any(|later| later.needs(phase.files))
        });
        match missing {
            Some((at, _)) => kept = at,
            None => return kept,
        }
    }
}
