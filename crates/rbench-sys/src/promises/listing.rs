//! Listings: every entry once, with its inode and type, even while the directory changes.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::dir::Type;
use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::did::{Breach, Did, Kept, Listed};
use super::ground::{Ground, Promise, promise};
use crate::dirents::{self, Record, Records};

/// Entries of a directory whose listing needs several calls.
const MANY: usize = 500;

pub(super) const PROMISES: &[Promise] = &[
    promise("listing.empty")
        .says("a new directory has only the entries '.' and '..'")
        .test(|g| {
            g.dir("d")?;
            g.list("d").count(0)
        }),
    promise("listing.each-once")
        .says("every entry of a large directory is listed exactly once")
        .test(|g| {
            filled(g)?;
            once(g, &names(g.list("d").ok()?))
        }),
    promise("listing.new-entry")
        .says("the next listing has a new entry")
        .test(|g| {
            g.dir("d")?;
            g.list("d").ready()?;
            g.put("d/new", b"")?;
            g.list("d").count(1)
        }),
    promise("listing.removed-entry")
        .says("the next listing lacks a removed entry")
        .test(|g| {
            g.dir("d")?;
            g.put("d/a", b"")?;
            g.put("d/b", b"")?;
            g.list("d").ready()?;
            g.unlink("d/a").ready()?;
            g.list("d").has("entries", vec!["b".to_owned()], sorted)
        }),
    promise("listing.renamed-entry")
        .says("a renamed entry is listed only under its new name")
        .test(|g| {
            g.dir("d")?;
            g.put("d/a", b"")?;
            g.list("d").ready()?;
            g.rename("d/a", "d/b").ready()?;
            g.list("d").has("entries", vec!["b".to_owned()], sorted)
        }),
    promise("listing.types")
        .says("an entry has the file's type or an unknown type")
        .test(|g| {
            g.dir("d")?;
            g.put("d/file", b"")?;
            g.dir("d/directory")?;
            g.symlink("x", "d/link").ready()?;
            let all = g.list("d").ok()?;
            g.same("getdents64", "d", "entries", (3, all.len()))?;
            for entry in all {
                let wanted = match entry.name.to_bytes() {
                    b"file" => Type::File,
                    b"directory" => Type::Directory,
                    _ => Type::Symlink,
                };
                let name = entry.name.to_string_lossy().into_owned();
                let right = entry.kind.is_none_or(|kind| kind == wanted);
                let (wanted, seen) = (format!("{wanted:?}"), format!("{:?}", entry.kind));
                g.is("getdents64", format!("d/{name}"), right, (&wanted, &seen))?;
            }
            Ok(())
        }),
    promise("listing.inodes")
        .says("an entry has the inode number that stat returns")
        .test(|g| {
            g.dir("d")?;
            for number in 0..10 {
                g.put(format!("d/{number}"), b"")?;
            }
            let all = g.list("d").ok()?;
            g.same("getdents64", "d", "entries", (10, all.len()))?;
            for entry in all {
                let name = format!("d/{}", entry.name.to_string_lossy());
                let inode = g.lstat(&name).ok()?.st_ino;
                g.same("getdents64", &name, "inode", (inode, entry.ino))?;
            }
            Ok(())
        }),
    promise("listing.dots")
        .says("'.' and '..' are listed once, '.' with the directory's inode")
        .test(|g| {
            g.dir("d")?;
            let fd = directory(g, "d")?;
            let all = rest(g, &fd)?;
            let of = |name: &[u8]| {
                let named = all.iter().filter(|entry| entry.name.to_bytes() == name);
                named.map(|entry| entry.ino).collect::<Vec<u64>>()
            };
            let (dot, dots) = (of(b"."), of(b".."));
            let times = ((1, 1), (dot.len(), dots.len()));
            g.same("getdents64", "d", "times '.' and '..'", times)?;
            let inodes = (g.stat("d").ok()?.st_ino, dot[0]);
            g.same("getdents64", "d", "inode of '.'", inodes)
        }),
    promise("listing.rewind")
        .says("a rewound listing shows changes")
        .test(|g| {
            g.dir("d")?;
            g.put("d/a", b"")?;
            let fd = directory(g, "d")?;
            rest(g, &fd)?;
            g.put("d/b", b"")?;
            g.unlink("d/a").ready()?;
            back_to(g, &fd, 0)?;
            let all = rest(g, &fd)?;
            let shown = |name: &[u8]| all.iter().any(|entry| entry.name.to_bytes() == name);
            let both = ((false, true), (shown(b"a"), shown(b"b")));
            g.same("getdents64", "d", "'a' and 'b' listed", both)
        }),
    promise("listing.cookie")
        .says("a listing resumes after the entry of the given cookie")
        .test(|g| {
            filled(g)?;
            let fd = directory(g, "d")?;
            let all = rest(g, &fd)?;
            let own = all.iter().filter(|entry| !entry.is_dots()).count();
            g.same("getdents64", "d", "entries", (MANY, own))?;
            for at in [0, 1, 7, all.len() / 2, all.len() - 2] {
                back_to(g, &fd, all[at].cookie)?;
                let again = rest(g, &fd)?;
                let wanted: Vec<&CString> = all[at + 1..].iter().map(|entry| &entry.name).collect();
                let relisted: Vec<&CString> = again.iter().map(|entry| &entry.name).collect();
                let seen = format!("{} entries, from {:?} on", relisted.len(), relisted.first());
                let expected = format!("{} entries, from {:?} on", wanted.len(), wanted.first());
                g.is("getdents64", "d", wanted == relisted, (&expected, &seen))?;
            }
            Ok(())
        }),
    promise("listing.while-removing")
        .says("every entry is listed once while the directory is emptied during the listing")
        .test(|g| {
            filled(g)?;
            let fd = directory(g, "d")?;
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            each_part(g, &fd, |part| {
                for entry in part.iter().filter(|entry| !entry.is_dots()) {
                    let name = entry.name.to_string_lossy().into_owned();
                    let times = seen.entry(name.clone()).or_insert(0);
                    *times += 1;
                    if *times == 1 {
                        g.unlink(format!("d/{name}")).ready()?;
                    }
                }
                Ok(())
            })?;
            once(g, &seen)
        }),
    promise("listing.while-making")
        .says("entries that stay are listed exactly once while others are created and removed")
        .test(|g| {
            filled(g)?;
            let fd = directory(g, "d")?;
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            let mut round = 0;
            each_part(g, &fd, |part| {
                for entry in part {
                    let name = entry.name.to_string_lossy().into_owned();
                    if name.starts_with("file-") {
                        *seen.entry(name).or_insert(0) += 1;
                    }
                }
                if round < 20 {
                    for number in 0..10 {
                        g.put(format!("d/other-{round}-{number}"), b"")?;
                        if round > 0 {
                            g.unlink(format!("d/other-{}-{number}", round - 1))
                                .ready()?;
                        }
                    }
                }
                round += 1;
                Ok(())
            })?;
            once(g, &seen)
        }),
    promise("listing.removed-directory")
        .says("a directory removed while it is open lists nothing")
        .test(|g| {
            g.dir("d")?;
            let fd = directory(g, "d")?;
            g.rmdir("d").ready()?;
            let listed = some_of(g, &fd);
            if let Err(Errno::ENOENT) = listed.result {
                return Ok(());
            }
            let others = |all: Vec<Entry>| all.iter().filter(|entry| !entry.is_dots()).count();
            listed.has("entries", 0, others)
        }),
    promise("listing.not-a-directory")
        .says("listing a file fails with ENOTDIR")
        .test(|g| {
            g.put("a", b"")?;
            let fd = g.open("a", OFlag::O_RDONLY).ready()?;
            let listed = some_of(g, &fd).result;
            g.did("getdents64", "a", listed).fails(Errno::ENOTDIR)
        }),
    promise("listing.same-order")
        .says("a directory that does not change is always listed in the same order")
        .test(|g| {
            filled(g)?;
            let names = |all: Vec<Listed>| all.into_iter().map(|entry| entry.name);
            let one: Vec<CString> = names(g.list("d").ok()?).collect();
            g.same("getdents64", "d", "entries", (MANY, one.len()))?;
            let same = |all| names(all).eq(one);
            g.list("d")
                .shows(same, ("the same order twice", "another order"))
        }),
];

/// Creates the directory `d` with many files.
fn filled(g: &Ground) -> Kept {
    g.dir("d")?;
    for number in 0..MANY {
        g.put(format!("d/file-{number}"), b"")?;
    }
    Ok(())
}

/// The names of a listing, in the order of bytes.
fn sorted(all: Vec<Listed>) -> Vec<String> {
    names(all).into_keys().collect()
}

fn names(all: Vec<Listed>) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for entry in all {
        *names
            .entry(entry.name.to_string_lossy().into_owned())
            .or_insert(0) += 1;
    }
    names
}

/// Expects the files of [`filled`] to be listed once each, by the promise.
fn once(g: &Ground, seen: &BTreeMap<String, usize>) -> Kept {
    let times = |number: usize| seen.get(&format!("file-{number}")).copied().unwrap_or(0);
    let missing = (0..MANY).filter(|number| times(*number) == 0).count();
    let more = (0..MANY).filter(|number| times(*number) > 1).count();
    let counts = ((0, 0), (missing, more));
    g.same("getdents64", "d", "missing and more than once", counts)
}

/// An entry as the kernel returns it.
struct Entry {
    name: CString,
    ino: u64,
    cookie: i64,
}

impl Entry {
    fn is_dots(&self) -> bool {
        matches!(self.name.to_bytes(), b"." | b"..")
    }
}

fn directory(g: &Ground, name: &str) -> Result<OwnedFd, Breach> {
    g.open(name, OFlag::O_RDONLY | OFlag::O_DIRECTORY).ready()
}

fn back_to(g: &Ground, fd: &OwnedFd, cookie: i64) -> Kept {
    let done = nix::unistd::lseek(fd, cookie, nix::unistd::Whence::SeekSet);
    g.did("lseek", "d", done).ok().map(drop)
}

/// All remaining entries.
fn rest(g: &Ground, fd: &OwnedFd) -> Result<Vec<Entry>, Breach> {
    let mut all = Vec::new();
    loop {
        let part = some_of(g, fd).ok()?;
        // Ends a listing that never ends.
        if part.is_empty() || all.len() > 20 * MANY {
            return Ok(all);
        }
        all.extend(part);
    }
}

/// Passes the remaining entries to `take`, those of each call together.
fn each_part(g: &Ground, fd: &OwnedFd, mut take: impl FnMut(Vec<Entry>) -> Kept) -> Kept {
    loop {
        let part = some_of(g, fd).ok()?;
        if part.is_empty() {
            return Ok(());
        }
        take(part)?;
    }
}

/// The entries that one call returns, in a buffer for a few dozen.
fn some_of(g: &Ground, fd: &OwnedFd) -> Did<Vec<Entry>> {
    const SIZE: usize = 2048;
    let mut buffer = [0; SIZE];
    let entry = |record: Result<Record, Errno>| {
        let record = record?;
        let [ino, cookie] = record.numbers();
        Ok(Entry {
            name: record.name()?.to_owned(),
            ino,
            cookie: cookie as i64,
        })
    };
    let records = dirents::read(fd.as_raw_fd(), &mut buffer);
    let entries = records.and_then(|records| Records(records).map(entry).collect());
    g.did("getdents64", "d", entries)
}
