//! Jobs of fio whose operations are on names and move no data: one for each file
//! and pass.

use rbench_core::OpKind;

/// What a job does with the name of each of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOp {
    /// Open a file that is made if it is not there.
    CreateFile,
    /// Read the attributes of a file.
    StatFile,
    /// Remove a file.
    DeleteFile,
    /// Make a directory.
    CreateDirectory,
    /// Read the attributes of a directory.
    StatDirectory,
    /// Remove an empty directory.
    DeleteDirectory,
}

/// Engines, what they do, and how that is called in rows: as a suffix, and in words.
const ENGINES: &[(&str, NameOp, &str, &str)] = &[
    ("filecreate", NameOp::CreateFile, "create", "file creations"),
    ("filestat", NameOp::StatFile, "stat", "file stats"),
    ("filedelete", NameOp::DeleteFile, "unlink", "file removals"),
    (
        "dircreate",
        NameOp::CreateDirectory,
        "mkdir",
        "directory creations",
    ),
    ("dirstat", NameOp::StatDirectory, "stat", "directory stats"),
    (
        "dirdelete",
        NameOp::DeleteDirectory,
        "rmdir",
        "directory removals",
    ),
];

impl NameOp {
    /// What the engine of that name does with names; `None`: it is no such engine.
    pub fn of_engine(name: &str) -> Option<NameOp> {
        let row = ENGINES.iter().find(|(engine, ..)| *engine == name);
        row.map(|(_, op, ..)| *op)
    }

    /// The kind of operation.
    pub fn kind(self) -> OpKind {
        match self {
            NameOp::CreateFile => OpKind::Create,
            NameOp::StatFile | NameOp::StatDirectory => OpKind::Stat,
            NameOp::DeleteFile => OpKind::Unlink,
            NameOp::CreateDirectory => OpKind::Mkdir,
            NameOp::DeleteDirectory => OpKind::Rmdir,
        }
    }

    /// Whether the names are those of directories.
    pub fn of_directories(self) -> bool {
        matches!(
            self,
            NameOp::CreateDirectory | NameOp::StatDirectory | NameOp::DeleteDirectory
        )
    }

    /// Whether it makes names.
    pub fn makes(self) -> bool {
        matches!(self, NameOp::CreateFile | NameOp::CreateDirectory)
    }

    /// Whether it removes them.
    pub fn removes(self) -> bool {
        matches!(self, NameOp::DeleteFile | NameOp::DeleteDirectory)
    }

    /// The end of a row's name, and what it is called in words.
    pub fn row(self) -> (&'static str, &'static str) {
        let row = ENGINES.iter().find(|(_, op, ..)| *op == self);
        row.map_or(("", ""), |(_, _, suffix, words)| (suffix, words))
    }
}
