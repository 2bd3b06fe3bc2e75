//! Abilities of a file system (`rbench probe`, and requirements of runs): each is one or more
//! promises, tested in its own directory.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeSpec;
use nix::sys::uio::{pread, pwrite};
use nix::unistd::{Whence, fdatasync, lseek};

use super::did::{Breach, Evidence, Kept, Listed, Verdict};
use super::ground::{Ground, Promise, made, promise};
use super::prepare::pattern;
use crate::buffer::AlignedBuffer;

/// The evidence of a file system whose reads return wrong data: nothing else is known of it.
pub const WRONG_READ: &str = "read returned wrong data";

/// An ability of a file system.
#[derive(Debug)]
pub struct Ability {
    /// Name for machines: `rename-over`.
    pub name: &'static str,
    /// Description for people.
    pub about: &'static str,
    /// The promises that it consists of, by name.
    promises: &'static [&'static str],
    /// A promise that it may lack, if any, and the note in that case.
    except: &'static [(&'static str, &'static str)],
}

macro_rules! abilities {
    ($($name:literal: $about:literal => $($promise:literal),+ $(except $lacks:literal: $note:literal)?;)+) => {
        /// Every ability, in the order of the report.
        pub const ABILITIES: &[Ability] = &[$(Ability {
            name: $name,
            about: $about,
            promises: &[$($promise),+],
            except: &[$(($lacks, $note))?],
        },)+];
    };
}

impl Ability {
    /// Tests it in its own directory below `directory`, which exists and belongs to this process.
    /// The files that it creates stay. The thread must end afterwards: see [`Promise::keep`].
    pub fn attempt(&self, directory: &Path, longest: Duration) -> Verdict {
        let own = directory.join(self.name);
        if let Err(undecided) = made(&own) {
            return undecided;
        }
        let keep = |name: &str| {
            let promise = super::all().chain(OWN).find(|known| known.name == name);
            let verdict = promise.map(|promise| promise.keep(&own, 0, longest, &|| false));
            verdict.unwrap_or_else(|| Verdict::LeftOut(format!("there is no promise {name}")))
        };
        let mut note = String::new();
        for name in self.promises {
            match keep(name) {
                Verdict::Holds(noted) => note = noted,
                // The directory is broken, which shows nothing about an ability.
                Verdict::Broken(seen) if matches!(seen.errno, Some(Errno::EIO | Errno::ESTALE)) => {
                    return Verdict::Undecided(seen);
                }
                // Then reading is at fault, and nothing is known of the ability.
                Verdict::Broken(seen)
                    if seen.errno.is_none()
                        && seen.call.starts_with("pread")
                        && matches!(keep(READ_BACK), Verdict::Broken(_)) =>
                {
                    return Verdict::Undecided(Evidence {
                        expected: String::new(),
                        seen: WRONG_READ.to_owned(),
                        ..seen
                    });
                }
                verdict => return verdict,
            }
        }
        if let [(name, lacking)] = self.except
            && !matches!(keep(name), Verdict::Holds(_))
        {
            note = (*lacking).to_owned();
        }
        Verdict::Holds(note)
    }
}

abilities! {
    "direct": "direct I/O, without the page cache (O_DIRECT)" => "ability.direct";
    "mmap-shared": "writing through a shared memory mapping" => "content.mmap.read-sees", "content.mmap.closed";
    "random-write": "writes at any offset, in any order" => "content.backwards", "size.hole.zeros";
    "overwrite": "overwriting a file that was closed" => "content.overwrite";
    "append": "appending from two descriptors (O_APPEND)" => "open.append.two";
    "truncate": "truncating and extending files" => "size.truncate.longer", "size.truncate.cut-is-gone";
    "fsync": "fsync and fdatasync of files, fsync of directories" => "ability.fsync"
        except "open.sync.directory": "files only: fsync of a directory fails";
    "fallocate": "reserving space" => "space.reserve.size";
    "punch-hole": "punching holes (deallocating space inside a file)" => "space.punch.zeros";
    "zero-range": "zeroing a range without writing data" => "space.zero.zeros";
    "sparse": "holes take no space" => "ability.sparse";
    "seek-hole": "finding holes (SEEK_DATA, SEEK_HOLE)" => "ability.seek-hole";
    "copy-file-range": "copying inside the file system (copy_file_range)" => "content.copy.fresh";
    "unlinked-open": "use of an open file after unlink" => "links.unnamed.content", "links.unnamed.writes"
        except "links.unnamed.hidden": "kept under another name while it is open";
    "tmpfile": "unnamed files (O_TMPFILE)" => "open.tmpfile.hidden"
        except "open.tmpfile.named": "linkat cannot give them a name";
    "exclusive": "exclusive creation (O_EXCL)" => "names.exists.create";
    "rename-over": "rename over an existing file" => "rename.over-existing.keeps-one";
    "rename-directory": "rename of a non-empty directory" => "rename.directory.content";
    "rename-noreplace": "rename only to a free name (RENAME_NOREPLACE)" => "rename.noreplace.refuses", "rename.noreplace.renames";
    "rename-exchange": "rename that exchanges two names (RENAME_EXCHANGE)" => "rename.exchange.files";
    "link": "hard links" => "links.hard.one-file", "links.hard.count";
    "symlink": "symbolic links" => "links.symbolic.target", "links.symbolic.follows";
    "fifo": "special files (named pipes)" => "ability.fifo";
    "xattr": "extended attributes (user.)" => "xattr.several", "xattr.remove";
    "chmod": "setting permissions (chmod)" => "owners.chmod.file";
    "times": "setting times, and their granularity" => "ability.times";
    "entry-types": "types in directory entries" => "ability.entry-types";
    "name-length": "names of 255 bytes" => "ability.name-length";
    "path-length": "paths of 4095 bytes" => "ability.path-length";
    "any-bytes": "names of any bytes" => "names.bytes.any";
    "case-sensitive": "case-sensitive names" => "ability.case-sensitive";
    "flock": "whole-file locks (flock)" => "locks.flock.once", "locks.flock.unlock";
    "fcntl-lock": "byte-range locks owned by a process (fcntl, POSIX)" => "locks.posix.once", "locks.posix.unlock";
    "ofd-lock": "byte-range locks owned by an open file (fcntl, OFD)" => "locks.ofd.once", "locks.ofd.unlock";
}

/// Tests the abilities with these names in a new directory at `path`, which is removed again.
/// Returns the verdict on each, in this order. If the directory cannot be created, all are
/// undecided.
pub fn try_in(path: &Path, names: &[&str], longest: Duration) -> Vec<Verdict> {
    if let Err(undecided) = made(path) {
        return vec![undecided; names.len()];
    }
    let attempt = |name: &&str| {
        let ability = ABILITIES.iter().find(|ability| ability.name == *name);
        let verdict = ability.map(|ability| ability.attempt(path, longest));
        verdict.unwrap_or_else(|| Verdict::LeftOut(format!("there is no ability {name}")))
    };
    let verdicts = names.iter().map(attempt).collect();
    // It was just created by this process; if files remain, its name shows their owner.
    let _ = std::fs::remove_dir_all(path);
    verdicts
}

/// Creates a file with this content, for other hosts to see.
pub fn put(path: &Path, content: &[u8]) -> Result<(), Errno> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let fd = open(path, flags, Mode::from_bits_truncate(0o644))?;
    pwrite(&fd, content, 0)?;
    nix::unistd::close(fd)
}

/// Returns true if a file has this content; `None` if it cannot be read.
pub fn holds(path: &Path, content: &[u8]) -> Option<bool> {
    std::fs::read(path).ok().map(|found| found == content)
}

/// Returns true if the name exists.
pub fn is_there(path: &Path) -> bool {
    nix::sys::stat::stat(path).is_ok()
}

/// The promise without which no content shows anything.
const READ_BACK: &str = "ability.read-back";

/// Promises that `rbench check` does not test: an ability that a file system may lack, or a limit.
const OWN: &[Promise] = &[
    promise(READ_BACK)
        .says("a new file has the data that was written")
        .test(|g| {
            let content = pattern(10_000);
            g.put("a", &content)?;
            g.holds("a", &content)
        }),
    promise("ability.direct").says("O_DIRECT").test(direct),
    promise("ability.fsync")
        .says("fsync and fdatasync of a file succeed")
        .test(|g| {
            let fd = g.file("a")?;
            g.write("a", &fd, b"x", 0).ready()?;
            g.fsync("a", &fd).ok()?;
            g.did("fdatasync", "a", fdatasync(&fd)).ok()
        }),
    promise("ability.sparse")
        .says("a hole takes no space")
        .test(|g| {
            let fd = mostly_hole(g)?;
            let used = g.fstat("a", &fd).ready()?.st_blocks * 512;
            let full = "a file of 16 MiB with one byte of data uses the full 16 MiB";
            g.is("fstat", "a", used < 8 << 20, ("less", full))
        }),
    promise("ability.seek-hole")
        .says("SEEK_DATA skips a hole")
        .test(|g| {
            let fd = mostly_hole(g)?;
            let data = g.did("lseek", "a", lseek(&fd, 0, Whence::SeekData)).ok()?;
            g.did("lseek", "a", lseek(&fd, 0, Whence::SeekHole)).ok()?;
            let words = ("a hole", "all of it counts as data");
            g.is("lseek", "a", data > 0, words)
        }),
    promise("ability.fifo")
        .says("mkfifo creates a named pipe")
        .test(|g| g.mkfifo("a", 0o600).ok()),
    promise("ability.times")
        .says("times are kept with a known granularity")
        .test(times),
    promise("ability.entry-types")
        .says("directory entries have a type")
        .test(|g| {
            drop(g.file("a")?);
            let typed = |all: Vec<Listed>| all.iter().all(|entry| entry.kind.is_some());
            let unknown = "unknown types: programs must stat every entry to learn them";
            g.list(".").shows(typed, ("types", unknown))
        }),
    promise("ability.name-length")
        .says("a name of 255 bytes")
        .test(name_length),
    promise("ability.path-length")
        .says("a path of 4095 bytes")
        .test(path_length),
    promise("ability.case-sensitive")
        .says("case-sensitive names")
        .test(|g| {
            drop(g.file("Case")?);
            let other = g.lstat("cASE").result.is_ok();
            let words = ("no such entry", "'Case' is found as 'cASE'");
            g.is("stat", "cASE", !other, words)
        }),
];

const KIB: usize = 1024;

/// Alignments that `O_DIRECT` may require.
const ALIGNMENTS: [usize; 8] = [1, 512, 1024, 2048, 4096, 8192, 16384, 65536];

fn direct(g: &Ground) -> Kept {
    let fd = g.file("a")?;
    g.ftruncate("a", &fd, 256 * 1024).ready()?;
    drop(fd);
    let fd = g.open("a", OFlag::O_RDWR | OFlag::O_DIRECT).ok()?;
    let mut memory = g.did("mmap", "", AlignedBuffer::new(256 * KIB)).ready()?;
    let mut last = Errno::EINVAL;
    // First with memory of any required alignment, then with less aligned memory.
    let mut try_each = |from: usize, shift: Option<usize>| {
        ALIGNMENTS.into_iter().find_map(|step| {
            let (size, at) = shift.map_or((step, 0), |_| (from, step));
            match transfer(&fd, &mut memory, size, at) {
                Ok(right) => Some((step, right)),
                Err(errno) => {
                    last = errno;
                    None
                }
            }
        })
    };
    let Some((size, right)) = try_each(0, None) else {
        return Err(g.refused("pwrite64", last, String::new()));
    };
    let words = ("what was written", "other data than written");
    g.is("pread64", "a", right, words)?;
    let length = match size {
        1 => "of any length".to_owned(),
        size => format!("in steps of {size} bytes"),
    };
    g.note(match try_each(size.max(512), Some(0)) {
        Some((1, true)) => format!("{length}, memory anywhere"),
        Some((at, true)) => format!("{length}, memory at multiples of {at}"),
        _ => length,
    });
    Ok(())
}

/// Writes and reads `size` bytes at offset `size`, from memory that starts `shift` bytes after a
/// multiple of 4096. Returns true if the data is the same.
fn transfer(
    fd: &OwnedFd,
    memory: &mut AlignedBuffer,
    size: usize,
    shift: usize,
) -> Result<bool, Errno> {
    let place = &mut memory[shift..shift + size];
    let wanted = pattern(size);
    place.copy_from_slice(&wanted);
    let n = pwrite(fd, place, size as i64)?;
    place.fill(0);
    let m = pread(fd, place, size as i64)?;
    Ok(n == size && m == size && *place == *wanted)
}

/// A file of 16 MiB with data only at its end.
fn mostly_hole(g: &Ground) -> Result<OwnedFd, Breach> {
    let fd = g.file("a")?;
    g.write("a", &fd, b"x", (16 << 20) - 1).ready()?;
    g.fsync("a", &fd).ready()?;
    Ok(fd)
}

/// Possible resolutions of times in a file system in ns, with their names.
const STEPS: [(i64, &str); 7] = [
    (1, "1 ns"),
    (100, "100 ns"),
    (1_000, "1 us"),
    (1_000_000, "1 ms"),
    (10_000_000, "10 ms"),
    (1_000_000_000, "1 s"),
    (2_000_000_000, "2 s"),
];

fn times(g: &Ground) -> Kept {
    // Only the first resolution divides this number.
    const SECONDS: i64 = 1_600_000_001;
    const NANOS: i64 = 123_456_789;
    drop(g.file("a")?);
    let time = TimeSpec::new(SECONDS, NANOS);
    g.utimens("a", time, time).ok()?;
    let attributes = g.stat("a").ok()?;
    let (wanted, stored) = (
        SECONDS * 1_000_000_000 + NANOS,
        attributes.st_mtime * 1_000_000_000 + attributes.st_mtime_nsec,
    );
    let step = STEPS
        .into_iter()
        .find(|(step, _)| stored == wanted - wanted % step);
    let words = ("the time that was set", "another time");
    g.is("utimensat", "a", step.is_some(), words)?;
    g.note(step.map_or("", |(_, name)| name).to_owned());
    Ok(())
}

fn name_length(g: &Ground) -> Kept {
    let named = |length: usize| {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        g.open("n".repeat(length), flags).result.map(drop)
    };
    let Err(errno) = named(255) else {
        if named(256) != Err(Errno::ENAMETOOLONG) {
            g.note("and longer".to_owned());
        }
        return Ok(());
    };
    // The longest name that can be created, between a possible and an impossible one.
    let (mut can, mut cannot) = (1, 255);
    while cannot - can > 1 {
        let middle = (can + cannot) / 2;
        match named(middle) {
            Ok(()) => can = middle,
            Err(_) => cannot = middle,
        }
    }
    let most = statvfs(&g.at(".")).map_or(0, |all| all.name_max());
    let seen = format!("up to {can} bytes, statvfs reports {most}");
    Err(g.refused("openat", errno, seen))
}

fn path_length(g: &Ground) -> Kept {
    // With its zero byte a path has at most 4096 bytes.
    const LONGEST: usize = 4095;
    let length = |path: &Path| path.as_os_str().len();
    let mut path = super::opening::whole(g)?;
    while length(&path) + 1 + 100 + 1 < LONGEST {
        path.push("d".repeat(100));
        let result = nix::unistd::mkdir(&path, Mode::from_bits_truncate(0o755));
        result.map_err(|errno| g.refused("mkdir", errno, format!("at {} bytes", length(&path))))?;
    }
    path.push("f".repeat(LONGEST - length(&path) - 1));
    put(&path, b"")
        .map_err(|errno| g.refused("openat", errno, format!("at {} bytes", length(&path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(300);

    #[test]
    fn names_are_unique_and_every_one_is_tried_on_a_local_file_system() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut names = std::collections::BTreeSet::new();
        for ability in ABILITIES {
            assert!(names.insert(ability.name), "{} twice", ability.name);
            let verdict = ability.attempt(dir.path(), LONG);
            let decided = !matches!(verdict, Verdict::Undecided(_) | Verdict::LeftOut(_));
            assert!(decided, "{}: {verdict:?}", ability.name);
            // Every local file system of Linux has these.
            let everywhere = ["random-write", "append", "truncate", "rename-over", "flock"];
            if everywhere.contains(&ability.name) {
                assert!(
                    matches!(verdict, Verdict::Holds(_)),
                    "{}: {verdict:?}",
                    ability.name
                );
            }
        }
    }

    #[test]
    fn abilities_consist_of_promises_that_anyone_can_try() {
        for ability in ABILITIES {
            let except = ability.except.iter().map(|(name, _)| name);
            for name in ability.promises.iter().chain(except) {
                let promise = super::super::all().chain(OWN).find(|p| p.name == *name);
                assert!(promise.is_some_and(|p| !p.root), "{}: {name}", ability.name);
            }
        }
    }

    #[test]
    fn what_was_tried_leaves_nothing_behind() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("a");
        let verdicts = try_in(&path, &["symlink", "random-write", "no-such-thing"], LONG);
        assert!(
            matches!(
                &verdicts[..],
                [Verdict::Holds(_), Verdict::Holds(_), Verdict::LeftOut(_)]
            ),
            "{verdicts:?}"
        );
        assert!(!path.exists());
        let verdicts = try_in(&dir.path().join("b/c"), &["symlink"], LONG);
        assert!(
            matches!(&verdicts[..], [Verdict::Undecided(_)]),
            "{verdicts:?}"
        );
    }

    #[test]
    fn a_place_that_takes_nothing_decides_nothing() {
        for ability in ABILITIES {
            let verdict = ability.attempt(Path::new("/proc"), LONG);
            assert!(matches!(verdict, Verdict::Undecided(_)), "{verdict:?}");
        }
    }
}
