//! Failed operations: counted by kind, with the first example of each.

use std::{fmt, io};

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::operations::OpKind;
use crate::units::Rank;

/// The reason why an operation did not count as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureKind {
    /// The system call failed with this errno.
    Errno(i32),
    /// Fewer bytes than asked for, up to the end of the file.
    Short,
    /// The call succeeded, but its result is wrong: a listing lacks entries, or a block does
    /// not verify.
    Mismatch,
    /// A user's command that runs around a phase failed.
    Command,
}

impl FailureKind {
    /// The name in reports and result files: `ENOSPC`, `SHORT`, `MISMATCH`,
    /// `COMMAND`.
    pub fn name(self) -> String {
        match self {
            FailureKind::Errno(code) => match Errno::from_raw(code) {
                Errno::UnknownErrno => format!("E{code}"),
                known => format!("{known:?}"),
            },
            FailureKind::Short => "SHORT".to_owned(),
            FailureKind::Mismatch => "MISMATCH".to_owned(),
            FailureKind::Command => "COMMAND".to_owned(),
        }
    }

    /// The meaning in words.
    pub fn describe(self) -> String {
        match self {
            FailureKind::Errno(code) => Errno::from_raw(code).desc().to_owned(),
            FailureKind::Short => "fewer bytes than asked for".to_owned(),
            FailureKind::Mismatch => "not what was written".to_owned(),
            FailureKind::Command => "the command failed".to_owned(),
        }
    }

    /// True if the kind alone shows that the file system is gone. Either the process that
    /// serves the mount ended or was cut off (`ENOTCONN`, `ECONNABORTED`, `ESHUTDOWN`), or
    /// its server no longer knows it (`ESTALE`). A single file may have gone stale alone.
    pub fn says_the_mount_is_lost(self) -> bool {
        let lost = [
            Errno::ENOTCONN,
            Errno::ECONNABORTED,
            Errno::ESHUTDOWN,
            Errno::ESTALE,
        ];
        lost.into_iter().any(|errno| self == errno.into())
    }

    /// True if operations on a lost mount may fail like this: as above, or with an errno that
    /// clients return when their server is gone.
    pub fn may_be_of_a_lost_mount(self) -> bool {
        let beside = [
            Errno::EIO,
            Errno::ENXIO,
            Errno::ENODEV,
            Errno::EREMOTEIO,
            Errno::ETIMEDOUT,
            Errno::EHOSTDOWN,
            Errno::EHOSTUNREACH,
            Errno::ENETDOWN,
            Errno::ENETUNREACH,
            Errno::ENETRESET,
            Errno::ECONNRESET,
            Errno::ECONNREFUSED,
            Errno::EPIPE,
        ];
        self.says_the_mount_is_lost() || beside.into_iter().any(|errno| self == errno.into())
    }
}

impl From<Errno> for FailureKind {
    fn from(errno: Errno) -> Self {
        FailureKind::Errno(errno as i32)
    }
}

/// One operation that failed: what, on which path, why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub struct Failure {
    /// The operation.
    pub op: OpKind,
    /// Its path, as far as it is text.
    pub path: String,
    /// The reason.
    pub kind: FailureKind,
    /// More detail, such as the offset and the data that was read; may be empty.
    pub detail: String,
}

/// The errno of an error of the standard library; `otherwise` if the system has not returned it.
pub fn errno_of(error: &io::Error, otherwise: Errno) -> Errno {
    error.raw_os_error().map_or(otherwise, Errno::from_raw)
}

/// The errno of an error of the standard library; `EIO` if the system has not returned it.
pub fn or_eio(error: io::Error) -> Errno {
    errno_of(&error, Errno::EIO)
}

impl Failure {
    /// A failure without further detail.
    pub fn new(op: OpKind, path: impl Into<String>, kind: impl Into<FailureKind>) -> Failure {
        Failure {
            op,
            path: path.into(),
            kind: kind.into(),
            detail: String::new(),
        }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(self, detail: impl Into<String>) -> Failure {
        let detail = detail.into();
        Failure { detail, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {} ({})",
            self.op,
            self.path,
            self.kind.describe(),
            self.kind.name()
        )?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// The first failure of its kind, and where it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The rank on which it happened.
    pub rank: Rank,
    /// The host of that rank.
    pub host: String,
    /// The failure.
    pub failure: Failure,
}

/// Failures counted by kind, each with its first example.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Failures {
    kinds: Vec<(FailureKind, u64, Example)>,
}

impl Failures {
    /// Counts one failure of `rank` on `host`.
    pub fn add(&mut self, rank: Rank, host: &str, failure: Failure) {
        match self
            .kinds
            .iter_mut()
            .find(|(kind, _, _)| *kind == failure.kind)
        {
            Some((_, count, _)) => *count += 1,
            None => {
                let example = Example {
                    rank,
                    host: host.to_owned(),
                    failure,
                };
                self.insert(example.failure.kind, 1, example);
            }
        }
    }

    /// Adds `count` failures of a kind; `example` is the first.
    pub fn insert(&mut self, kind: FailureKind, count: u64, example: Example) {
        match self.kinds.iter_mut().find(|(k, _, _)| *k == kind) {
            Some((_, n, first)) => {
                *n += count;
                // Keep the example of the lowest rank, so that the order of merging does not
                // matter.
                if example.rank < first.rank {
                    *first = example;
                }
            }
            None => {
                self.kinds.push((kind, count, example));
                self.kinds.sort_by_key(|(kind, _, _)| *kind);
            }
        }
    }

    /// Adds everything in `other`.
    pub fn merge(&mut self, other: &Failures) {
        let Failures { kinds } = other;
        for (kind, count, example) in kinds {
            self.insert(*kind, *count, example.clone());
        }
    }

    /// Number of failures of all kinds.
    pub fn total(&self) -> u64 {
        self.kinds.iter().map(|(_, n, _)| n).sum()
    }

    /// True if nothing failed.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kinds, ascending, with count and first example.
    pub fn iter(&self) -> impl Iterator<Item = (FailureKind, u64, &Example)> {
        self.kinds
            .iter()
            .map(|(kind, n, example)| (*kind, *n, example))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: FailureKind, path: &str) -> Failure {
        Failure::new(OpKind::Create, path, kind)
    }

    #[test]
    fn failures_are_counted_by_kind_and_keep_the_first_example() {
        let mut all = Failures::default();
        all.add(Rank(3), "b", failure(Errno::ENOSPC.into(), "x"));
        all.add(Rank(3), "b", failure(Errno::ENOSPC.into(), "y"));
        all.add(Rank(3), "b", failure(FailureKind::Short, "z"));
        let seen: Vec<_> = all
            .iter()
            .map(|(k, n, e)| (k.name(), n, e.failure.path.clone()))
            .collect();
        assert_eq!(
            seen,
            [
                ("ENOSPC".into(), 2, "x".into()),
                ("SHORT".into(), 1, "z".into())
            ]
        );
    }

    #[test]
    fn merging_adds_counts_and_keeps_the_example_of_the_lowest_rank() {
        let (mut a, mut b) = (Failures::default(), Failures::default());
        a.add(Rank(3), "b", failure(Errno::EIO.into(), "late"));
        b.add(Rank(1), "a", failure(Errno::EIO.into(), "early"));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b);
        ba.merge(&a);
        assert_eq!(ab, ba);
        assert_eq!(ab.total(), 2);
        assert_eq!(ab.iter().next().map(|(_, _, e)| e.host.as_str()), Some("a"));
    }

    #[test]
    fn what_a_file_system_that_is_there_answers_is_no_loss_of_it() {
        let of = |errno: Errno| {
            let kind = FailureKind::from(errno);
            (kind.says_the_mount_is_lost(), kind.may_be_of_a_lost_mount())
        };
        for errno in [Errno::ENOTCONN, Errno::ECONNABORTED, Errno::ESTALE] {
            assert_eq!(of(errno), (true, true), "{errno}");
        }
        assert_eq!(of(Errno::EIO), (false, true));
        for errno in [Errno::ENOSPC, Errno::EACCES, Errno::ENOENT, Errno::EROFS] {
            assert_eq!(of(errno), (false, false), "{errno}");
        }
        assert!(!FailureKind::Mismatch.may_be_of_a_lost_mount());
    }

    #[test]
    fn a_failure_reads_as_a_sentence() {
        let text = failure(Errno::ENOSPC.into(), "d/f.1").to_string();
        assert_eq!(text, "create d/f.1: No space left on device (ENOSPC)");
        assert_eq!(FailureKind::Errno(12345).name(), "E12345");
    }
}
