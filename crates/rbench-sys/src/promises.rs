//! Promises of POSIX and Linux about a file system. Each is tested by a few calls in its own
//! directory (`rbench check`).
//!
//! A promise is data: a name, a sentence and the calls. Other modules decide who runs them,
//! how long, and what is reported; none of them are measured.

use std::path::Path;

pub mod abilities;
mod content;
mod did;
mod ground;
mod limits;
mod links;
mod listing;
mod locks;
mod model;
mod names;
mod opening;
mod owners;
mod prepare;
mod rename;
mod size;
mod times;
mod xattrs;

pub(crate) use did::failed;
pub use did::{Evidence, Verdict, described};
pub use ground::Promise;
pub(crate) use ground::{Claim, promise};
pub(crate) use locks::range;

/// Promises about one subject, in the order of the report.
#[derive(Debug)]
pub struct Group<P: 'static = Promise> {
    /// Prefix of the names of its promises: `rename`.
    pub name: &'static str,
    /// Its subject.
    pub about: &'static str,
    /// Its promises.
    pub promises: &'static [P],
}

pub(crate) const fn group<P>(name: &'static str) -> Group<P> {
    Group {
        name,
        about: "",
        promises: &[],
    }
}

impl<P> Group<P> {
    pub(crate) const fn about(self, about: &'static str) -> Group<P> {
        Group { about, ..self }
    }

    pub(crate) const fn promises(self, promises: &'static [P]) -> Group<P> {
        Group { promises, ..self }
    }
}

/// Every promise, in the order of the report.
pub const GROUPS: &[Group] = &[
    group("names")
        .about("errors of operations on names; long names, and names of any bytes")
        .promises(names::PROMISES),
    group("rename")
        .about("rename over existing names and of directories, NOREPLACE, EXCHANGE")
        .promises(rename::PROMISES),
    group("links")
        .about("hard links and link counts, symbolic links, unnamed files")
        .promises(links::PROMISES),
    group("owners")
        .about("modes, owners, set-ID and sticky bits, and what other users may do (mostly as root)")
        .promises(owners::PROMISES),
    group("times")
        .about("which operations change which times, and what utimensat sets")
        .promises(times::PROMISES),
    group("open")
        .about("O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_TMPFILE and others; many open files")
        .promises(opening::PROMISES),
    group("size")
        .about("truncate, sparse files, SEEK_DATA and SEEK_HOLE, offsets above 4 GiB")
        .promises(size::SIZES),
    group("space")
        .about("fallocate: reserving, keeping the size, punching holes, zeroing, collapsing, inserting")
        .promises(size::SPACES),
    group("content")
        .about("reads return what was written: blocks of any size, mmap and read, copy_file_range")
        .promises(content::PROMISES),
    group("listing")
        .about("every entry once, inodes and types, cookies while the directory changes")
        .promises(listing::PROMISES),
    group("xattr")
        .about("extended attributes: setting, listing, removing, flags, limits")
        .promises(xattrs::PROMISES),
    group("locks")
        .about("flock, POSIX and OFD locks: granted once, handed over, released")
        .promises(locks::PROMISES),
    group("full")
        .about("a full file system (only if it has at most 512 MiB, and less than 256 MiB are free)")
        .promises(limits::PROMISES),
    group("model")
        .about("thousands of random operations against a model, shrunk to a short reproduction")
        .promises(model::PROMISES),
];

/// All promises, in order.
pub fn all() -> impl Iterator<Item = &'static Promise> {
    GROUPS.iter().flat_map(|group| group.promises)
}

/// True if a pattern matches the name of a promise: its name, its prefix up to a dot, or
/// either with `*` for any part.
pub fn names(pattern: &str, name: &str) -> bool {
    if pattern.contains('*') {
        return glob(pattern.as_bytes(), name.as_bytes());
    }
    let rest = name.strip_prefix(pattern);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', rest)), None) => glob(rest, name),
        (Some((b'*', rest)), Some((_, behind))) => glob(rest, name) || glob(pattern, behind),
        (Some((wanted, rest)), Some((found, behind))) => wanted == found && glob(rest, behind),
        (Some(_), None) => false,
    }
}

/// True if this process can test promises that need root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Removes the files of a promise below `directory`; any remains are left to the removal of
/// the run.
pub fn clear(directory: &Path, promise: &Promise) {
    let _ = std::fs::remove_dir_all(directory.join(promise.name));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(promise: &Promise, directory: &Path) -> Verdict {
        let long = std::time::Duration::from_secs(300);
        let verdict = promise.keep(directory, 1, long, &|| false);
        clear(directory, promise);
        verdict
    }

    /// Describes the verdict unless it is one of a sound file system.
    fn wrong(promise: &Promise, directory: &Path) -> Option<String> {
        match kept(promise, directory) {
            Verdict::Holds(_) | Verdict::LeftOut(_) | Verdict::Unsupported(_) => None,
            verdict => Some(format!("{}: {verdict:?}", promise.name)),
        }
    }

    #[test]
    fn names_are_unique_and_begin_with_their_group() {
        let mut names = std::collections::BTreeSet::new();
        for group in GROUPS {
            for promise in group.promises {
                let name = promise.name;
                assert!(names.insert(name), "{name} twice");
                assert!(super::names(group.name, name), "{name} in {}", group.name);
                assert!(
                    !promise.says.is_empty() && !promise.says.ends_with('.'),
                    "{name}"
                );
            }
        }
        assert!(names.len() >= 200, "{} promises", names.len());
    }

    #[test]
    fn a_local_file_system_breaks_no_promise() {
        // In parallel, because many of them wait.
        const HANDS: usize = 6;
        let of_one = |hand: usize| {
            let dir = tempfile::tempdir().expect("temporary directory");
            let promises = all().skip(hand).step_by(HANDS);
            let wrong: Vec<_> = promises.filter_map(|p| wrong(p, dir.path())).collect();
            let left = std::fs::read_dir(dir.path()).expect("readable").count();
            assert_eq!(left, 0, "what promises made is removed");
            wrong
        };
        let wrong: Vec<String> = std::thread::scope(|scope| {
            let hands: Vec<_> = (0..HANDS)
                .map(|hand| scope.spawn(move || of_one(hand)))
                .collect();
            let wrong = hands.into_iter().map(|hand| hand.join().expect("no panic"));
            wrong.flatten().collect()
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_the_directory_above_passes_on_breaks_no_promise() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("temporary directory");
        // A group that is not the process's own, which only root can set.
        let _ = std::os::unix::fs::chown(dir.path(), None, Some(54_399));
        let mode = std::fs::Permissions::from_mode(0o2777);
        std::fs::set_permissions(dir.path(), mode).expect("it is ours");
        // The owner may do everything, its group and others nothing.
        let mut list = vec![2, 0, 0, 0];
        for (kind, may) in [(1_u16, 7_u16), (4, 0), (0x20, 0)] {
            list.extend(kind.to_le_bytes());
            list.extend(may.to_le_bytes());
            list.extend(u32::MAX.to_le_bytes());
        }
        let path = std::ffi::CString::new(dir.path().as_os_str().as_encoded_bytes());
        let path = path.expect("no zero");
        let (name, value) = (c"system.posix_acl_default", list.as_ptr().cast());
        // SAFETY: the strings end with zero, and the value has the given length. A file
        // system without such lists refuses it.
        unsafe { nix::libc::setxattr(path.as_ptr(), name.as_ptr(), value, list.len(), 0) };
        let owners = all().filter(|promise| names("owners", promise.name));
        let wrong: Vec<_> = owners.filter_map(|p| wrong(p, dir.path())).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_place_that_takes_nothing_decides_nothing() {
        for promise in all().take(20) {
            let verdict = kept(promise, Path::new("/proc"));
            let fine = matches!(verdict, Verdict::Undecided(_) | Verdict::LeftOut(_));
            assert!(fine, "{}: {verdict:?}", promise.name);
        }
    }

    #[test]
    fn patterns_name_groups_promises_and_parts() {
        let check = |pattern, name, expect| assert_eq!(names(pattern, name), expect, "{pattern}");
        check("rename", "rename.noreplace.refuses", true);
        check("rename.noreplace", "rename.noreplace.refuses", true);
        check("rename.no", "rename.noreplace.refuses", false);
        check("*.refuses", "rename.noreplace.refuses", true);
        check("ren*refuse", "rename.noreplace.refuses", false);
        check("*", "rename.noreplace.refuses", true);
        check("", "rename.noreplace.refuses", false);
    }
}
