//! What the file system of a directory can do, found out by trying it there.
//!
//! Every attempt works on files of its own in a directory of ours and looks at what
//! comes of it: a call that succeeds and changes nothing is no ability.

use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::uio::{pread, pwrite};

mod attempt;
mod data;
mod locks;
mod names;

pub use attempt::{Ability, Answer, Found};

/// Every ability, in the order of the report.
pub const ABILITIES: &[&[Ability]] = &[data::ABILITIES, names::ABILITIES, locks::ABILITIES];

/// All of them, one after the other.
pub fn all() -> impl Iterator<Item = &'static Ability> {
    ABILITIES.iter().copied().flatten()
}

/// Tries the abilities of these names in a directory of its own at `path`, which is removed
/// again; what came of each, in this order. Where the directory cannot be made, nothing is
/// known of any.
pub fn try_in(path: &Path, names: &[&str]) -> Vec<Found> {
    if let Err(errno) = nix::unistd::mkdir(path, Mode::from_bits_truncate(0o700)) {
        let unknown = |_: &&str| {
            Found::Unknown(Answer {
                call: "mkdir",
                errno: Some(errno),
                what: String::new(),
            })
        };
        return names.iter().map(unknown).collect();
    }
    let attempt = |name: &&str| {
        let ability = all().find(|ability| ability.name == *name);
        let found = ability.map(|ability| ability.attempt(path));
        found.unwrap_or_else(|| {
            Found::Unknown(Answer {
                call: "",
                errno: None,
                what: format!("there is no ability {name}"),
            })
        })
    };
    let found = names.iter().map(attempt).collect();
    // It is ours, made just now; what stays has a name that says whose it is.
    let _ = std::fs::remove_dir_all(path);
    found
}

/// Makes a file with this content, for other hosts to see.
pub fn put(path: &Path, content: &[u8]) -> Result<(), Errno> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let fd = open(path, flags, Mode::from_bits_truncate(0o644))?;
    pwrite(&fd, content, 0)?;
    nix::unistd::close(fd)
}

/// Whether a file has this content; `None`: there is no such name.
pub fn holds(path: &Path, content: &[u8]) -> Option<bool> {
    let mut found = vec![0; content.len() + 1];
    let read = |fd| pread(fd, &mut found, 0).ok();
    let n = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
    let n = n.ok().and_then(read)?;
    Some(found[..n] == *content)
}

/// Whether the name is there.
pub fn is_there(path: &Path) -> bool {
    nix::sys::stat::stat(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_one_is_tried_on_a_local_file_system() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut names = std::collections::BTreeSet::new();
        for ability in all() {
            assert!(names.insert(ability.name), "{} twice", ability.name);
            let found = ability.attempt(dir.path());
            assert!(
                !matches!(found, Found::Unknown(_)),
                "{}: {found:?}",
                ability.name
            );
            // What every local file system of Linux has.
            let everywhere = ["random-write", "append", "truncate", "rename-over", "flock"];
            if everywhere.contains(&ability.name) {
                assert!(
                    matches!(found, Found::Yes(_)),
                    "{}: {found:?}",
                    ability.name
                );
            }
        }
    }

    #[test]
    fn what_was_tried_leaves_nothing_behind() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("a");
        let found = try_in(&path, &["symlink", "random-write", "no-such-thing"]);
        assert!(
            matches!(
                &found[..],
                [Found::Yes(_), Found::Yes(_), Found::Unknown(_)]
            ),
            "{found:?}"
        );
        assert!(!path.exists());
        let found = try_in(&dir.path().join("b/c"), &["symlink"]);
        assert!(matches!(&found[..], [Found::Unknown(_)]), "{found:?}");
    }

    #[test]
    fn a_place_that_takes_nothing_decides_nothing() {
        for ability in all() {
            let found = ability.attempt(Path::new("/proc"));
            assert!(matches!(found, Found::Unknown(_)), "{found:?}");
        }
    }
}
