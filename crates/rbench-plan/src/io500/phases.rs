//! The phases and what each needs.

/// The sets of files, each in a folder of its own.
pub const FILES: [&str; 4] = ["ior-easy", "mdtest-easy", "ior-hard", "mdtest-hard"];

/// A phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Its name, which is also that of its section.
    pub name: &'static str,
    /// The set of files that it works on, one of [`FILES`], whose section has more of its
    /// settings; of `find` its own name: it looks at all of them.
    pub files: &'static str,
    /// The row of its run that tells how fast it was.
    pub row: &'static str,
    /// What of the row counts: `access` (bytes a second, opens and closes included), `rate`
    /// (operations a second), `found` (files looked at a second).
    pub figure: &'static str,
    /// Whether it is part of the score.
    pub scored: bool,
    /// What it does to its files.
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

/// All of them, in the order in which they run.
pub const PHASES: [Phase; 13] = [
    bytes("ior-easy-write", "ior-easy", "write", Does::Write),
    items(
        "mdtest-easy-write",
        "mdtest-easy",
        "file-create",
        Does::Write,
    ),
    bytes("ior-hard-write", "ior-hard", "write", Does::Write),
    items(
        "mdtest-hard-write",
        "mdtest-hard",
        "file-create",
        Does::Write,
    ),
    Phase {
        figure: "found",
        ..items("find", "find", "find-readdir", Does::Look)
    },
    bytes("ior-easy-read", "ior-easy", "read", Does::Look),
    items("mdtest-easy-stat", "mdtest-easy", "file-stat", Does::Look),
    bytes("ior-hard-read", "ior-hard", "read", Does::Look),
    items("mdtest-hard-stat", "mdtest-hard", "file-stat", Does::Look),
    items(
        "mdtest-easy-delete",
        "mdtest-easy",
        "file-remove",
        Does::Delete,
    ),
    items("mdtest-hard-read", "mdtest-hard", "file-read", Does::Look),
    items(
        "mdtest-hard-delete",
        "mdtest-hard",
        "file-remove",
        Does::Delete,
    ),
    Phase {
        scored: false,
        ..bytes("ior-rnd4K-easy-read", "ior-easy", "read", Does::Look)
    },
];

impl Phase {
    /// Whether it writes its files.
    pub fn writes(&self) -> bool {
        self.does == Does::Write
    }

    /// Whether it takes its files away.
    pub fn deletes(&self) -> bool {
        self.does == Does::Delete
    }

    /// Whether it needs this set of files, written by an earlier phase.
    pub fn needs(&self, files: &str) -> bool {
        !self.writes() && (self.name == "find" || self.files == files)
    }

    /// The unit of its figure in IO500's lines.
    pub fn unit(&self) -> &'static str {
        match self.figure {
            "access" => "GiB/s",
            _ => "kIOPS",
        }
    }
}

/// The phase before which the time stamp is made: the first one from `ior-hard-write` on.
pub fn stamped_before(planned: &[&Phase]) -> Option<&'static str> {
    let later = PHASES
        .iter()
        .skip_while(|phase| phase.name != "ior-hard-write");
    let mut later = later.filter(|phase| planned.iter().any(|run| run.name == phase.name));
    later.next().map(|phase| phase.name)
}

/// How many of the first phases of an interrupted run stay done. Those that come after them are
/// run in their order, so every set of files that one of them needs must be whole, or be
/// written among them. `complete`: how many of the first ones reached their end. `whole`:
/// whether a set of files is there as its writing left it.
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
