//! One client changes something, and another one, which has seen the old state, checks until it
//! sees the new one.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::{By, Call, Clock as _, MonotonicClock, Nanos, or_eio};
use serde::{Deserialize, Serialize};

use super::holding::{Holder, Lock};
use super::{Check, Spot, Step, Trial, changed, closed, done, promise, store_mapped, writable};
use crate::fs::{Fs as _, Operands};
use crate::posix::PosixFs;
use crate::promises::Evidence;

/// Bounds of the pause between two observations: a sixteenth of the time since the first.
const PAUSE_LEAST: Nanos = Nanos(20_000);
const PAUSE_MOST: Nanos = Nanos(5_000_000);
/// Required consecutive observations; a cache may go stale again.
const IN_A_ROW: u32 = 4;

/// Object that the acting client keeps open until the others have checked.
#[derive(Debug)]
pub enum Hand {
    /// None.
    Empty,
    /// An open file, which may be locked.
    File(File),
    /// A process that holds a lock.
    Holder(Holder),
}

/// One client changes something, and the others observe it.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// Set if observations disturb each other. Each object is then observed by one client only,
    /// and its old state must be visible at once.
    pub lock: Option<Lock>,
    prepare: fn(&Spot) -> Step<Hand>,
    /// True if the observers open the file beforehand.
    open: bool,
    act: fn(&Spot, Hand) -> Step<Hand>,
    look: fn(&Spot, Option<&File>) -> Result<String, Errno>,
    /// The state before the change, which may also be seen after it; an error by its name.
    pub old: &'static str,
    /// The state after the change.
    pub new: &'static str,
    /// True if any other state is wrong at any time, not only after the change.
    pub always: bool,
}

/// A client that observes one object.
#[derive(Debug)]
pub struct Looker {
    spot: Spot,
    file: Option<File>,
    early: Option<Nanos>,
}

/// The observations of one item.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Watched {
    /// Start of the observation from which on all had the new state; `None` if none had.
    pub settled: Option<Nanos>,
    /// Start of the last observation of another state, and that state.
    pub other: Option<(Nanos, String)>,
    /// A state that was neither the old nor the new one.
    pub odd: Option<String>,
    /// End of the first observation of the new state.
    pub first: Option<Nanos>,
    /// True if the new state was seen, and then the old one again.
    pub back: bool,
}

/// Common parts of most checks.
const PLAIN: Sight = Sight {
    lock: None,
    prepare: |spot| put(&spot.path(), "old").map(|()| Hand::Empty),
    open: false,
    act: |spot, _| rewrite(spot),
    look: |spot, _| content(&spot.path()),
    old: "old",
    new: "new",
    always: false,
};

const CREATES: Sight = Sight {
    prepare: |_| Ok(Hand::Empty),
    act: |spot, _| put(&spot.path(), "new").map(|()| Hand::Empty),
    look: |spot, _| stat(&spot.path()),
    old: "ENOENT",
    new: "there",
    ..PLAIN
};

const UNLINKS: Sight = Sight {
    act: |spot, _| {
        let path = spot.path();
        done("unlink", &path, std::fs::remove_file(&path)).map(|()| Hand::Empty)
    },
    look: |spot, _| stat(&spot.path()),
    old: "there",
    new: "ENOENT",
    ..PLAIN
};

pub(super) const CHECKS: &[Check] = &[
    promise("coherence.create.stat")
        .says("another client that had looked up the missing name sees a file that one client creates")
        .sight(CREATES),
    promise("coherence.create.open")
        .says("another client whose open had failed can open and read a file that one client creates")
        .sight(Sight {
            look: |spot, _| content(&spot.path()),
            new: "new",
            ..CREATES
        }),
    promise("coherence.create.listed")
        .says("another client that had listed the directory sees a new file in its next listing")
        .sight(Sight {
            look: |spot, _| listed(spot),
            ..CREATES
        }),
    promise("coherence.mkdir.stat")
        .says("another client that had looked up the missing name sees a directory that one client creates")
        .sight(Sight {
            act: |spot, _| super::make(&spot.path()).map(|()| Hand::Empty),
            ..CREATES
        }),
    promise("coherence.close.open")
        .says("a client that opens a file after another client closed it reads what that client wrote")
        .sight(PLAIN),
    promise("coherence.fsync.open-file")
        .says("another client with the file open reads what one client wrote and synced")
        .sight(Sight {
            open: true,
            act: |spot, _| {
                let path = spot.path();
                let file = writable(&path)?;
                done("write", &path, file.write_all_at(b"new", 0))?;
                done("fsync", &path, file.sync_all())?;
                Ok(Hand::File(file))
            },
            look: |_, file| opened(file),
            ..PLAIN
        }),
    promise("coherence.mmap.read")
        .says("another client that opens the file reads what one client stored in a mapping and synced")
        .sight(Sight {
            act: |spot, _| {
                let path = spot.path();
                let file = writable(&path)?;
                store_mapped(&path, &file, 3, b"new")?;
                Ok(Hand::File(file))
            },
            ..PLAIN
        }),
    promise("coherence.unlink.stat")
        .says("a file that one client unlinks is gone for another client that had looked it up")
        .sight(UNLINKS),
    promise("coherence.unlink.open")
        .says("a file that one client unlinks cannot be opened by another client that had read it")
        .sight(Sight {
            look: |spot, _| content(&spot.path()),
            old: "old",
            ..UNLINKS
        }),
    promise("coherence.unlink.listed")
        .says("a file that one client unlinks is not in another client's next listing")
        .sight(Sight {
            look: |spot, _| listed(spot),
            ..UNLINKS
        }),
    promise("coherence.recreate.content")
        .says("if one client unlinks a file and creates it again, another client reads the new file")
        .sight(Sight {
            act: |spot, _| {
                let path = spot.path();
                done("unlink", &path, std::fs::remove_file(&path))?;
                put(&path, "new").map(|()| Hand::Empty)
            },
            ..PLAIN
        }),
    promise("coherence.rename-over.content")
        .says("while one client renames over a file, another client finds the old file or the new one")
        .sight(Sight {
            prepare: |spot| {
                put(&spot.path(), "old")?;
                put(&spot.other(), "new").map(|()| Hand::Empty)
            },
            act: |spot, _| {
                let (from, to) = (spot.other(), spot.path());
                done("rename", &to, std::fs::rename(from, &to)).map(|()| Hand::Empty)
            },
            always: true,
            ..PLAIN
        }),
    promise("coherence.truncate.size")
        .says("another client sees the size to which one client truncates a file")
        .sight(Sight {
            act: |spot, _| changed(&spot.path(), "ftruncate", |file| file.set_len(1)),
            look: |spot, _| Ok(metadata(&spot.path())?.len().to_string()),
            old: "3",
            new: "1",
            always: true,
            ..PLAIN
        }),
    promise("coherence.append.size")
        .says("another client sees the size of a file that one client appends to, and it never shrinks")
        .sight(Sight {
            act: |spot, _| append(spot),
            look: |spot, _| Ok(metadata(&spot.path())?.len().to_string()),
            old: "3",
            new: "6",
            always: true,
            ..PLAIN
        }),
    promise("coherence.append.read")
        .says("another client reads what one client appends")
        .sight(Sight {
            act: |spot, _| append(spot),
            new: "oldnew",
            always: true,
            ..PLAIN
        }),
    promise("coherence.chmod.stat")
        .says("another client sees the mode that one client sets")
        .sight(Sight {
            prepare: |spot| {
                put(&spot.path(), "old")?;
                mode(spot, 0o640)
            },
            act: |spot, _| mode(spot, 0o600),
            look: |spot, _| Ok(format!("{:o}", metadata(&spot.path())?.mode() & 0o777)),
            old: "640",
            new: "600",
            always: true,
            ..PLAIN
        }),
    promise("coherence.times.stat")
        .says("another client sees the time that one client sets")
        .sight(Sight {
            prepare: |spot| {
                put(&spot.path(), "old")?;
                times(spot, 1_000_000)
            },
            act: |spot, _| times(spot, 2_000_000),
            look: |spot, _| Ok(metadata(&spot.path())?.mtime().to_string()),
            old: "1000000",
            new: "2000000",
            always: true,
            ..PLAIN
        }),
    promise("coherence.xattr.get")
        .says("another client sees the extended attribute that one client sets")
        .sight(Sight {
            prepare: |spot| {
                put(&spot.path(), "old")?;
                set_attribute(spot, "old")
            },
            act: |spot, _| set_attribute(spot, "new"),
            look: |spot, _| attribute(&spot.path()),
            always: true,
            ..PLAIN
        }),
    promise("coherence.append.records")
        .says("if all clients append records to one file, no record is lost or torn")
        .trial(Trial::Append),
    promise("coherence.listing.stays")
        .says("entries that stay are listed exactly once while another client creates and removes others")
        .trial(Trial::Listing),
];

/// A trial of a lock that is held at first, and free after the change.
pub(super) const fn freed(
    lock: Lock,
    prepare: fn(&Spot) -> Step<Hand>,
    act: fn(&Spot, Hand) -> Step<Hand>,
    look: fn(&Spot, Option<&File>) -> Result<String, Errno>,
) -> Trial {
    Trial::Sight(Sight {
        lock: Some(lock),
        prepare,
        open: true,
        act,
        look,
        old: "taken",
        new: "free",
        always: true,
    })
}

impl Sight {
    /// Prepares the object.
    ///
    /// # Errors
    /// The error.
    pub fn prepare(&self, spot: &Spot) -> Step<Hand> {
        (self.prepare)(spot)
    }

    /// Makes the change. Returns its start, and the return of its last call.
    ///
    /// # Errors
    /// The error.
    pub fn act(&self, spot: &Spot, hand: Hand) -> Step<(Hand, Nanos, Nanos)> {
        let start = MonotonicClock.now();
        let hand = (self.act)(spot, hand)?;
        Ok((hand, start, MonotonicClock.now()))
    }

    /// Observes the object before the change, for at most `within`, until its old state is
    /// seen. Returns the observer with its open file. For a lock, it also has the time at which
    /// the lock was already free.
    ///
    /// # Errors
    /// The state that was seen instead.
    pub fn meet(&self, spot: Spot, within: Duration, stop: &dyn Fn() -> bool) -> Step<Looker> {
        let start = MonotonicClock.now();
        let patience = match self.lock {
            Some(_) => Nanos(0),
            None => Nanos(within.as_nanos() as u64),
        };
        loop {
            let late = MonotonicClock.now().since(start) >= patience || stop();
            let file = match self.open {
                true => match writable(&spot.path()) {
                    Err(_) if !late => {
                        std::thread::sleep(PAUSE_MOST.into());
                        continue;
                    }
                    opened => Some(opened?),
                },
                false => None,
            };
            let seen = self.seen(&spot, file.as_ref());
            let early = self.lock.is_some() && seen == self.new;
            if seen == self.old || early {
                let early = early.then(|| MonotonicClock.now());
                return Ok(Looker { spot, file, early });
            }
            if late {
                return Err(Evidence {
                    expected: self.old.to_owned(),
                    seen,
                    path: spot.path(),
                    ..Evidence::default()
                });
            }
            std::thread::sleep(PAUSE_MOST.into());
        }
    }

    /// Observes the object repeatedly from the instant `from` on until the new state is seen,
    /// for at most `within`.
    pub fn watch(
        &self,
        looker: &Looker,
        (from, within): (Nanos, Nanos),
        stop: &dyn Fn() -> bool,
    ) -> Watched {
        let Looker { spot, file, early } = looker;
        let mut watched = Watched {
            first: *early,
            ..Watched::default()
        };
        let mut in_a_row = 0;
        super::wait_until(from, stop);
        loop {
            let start = MonotonicClock.now();
            let seen = self.seen(spot, file.as_ref());
            let ended = MonotonicClock.now();
            if seen == self.new {
                watched.settled.get_or_insert(start);
                watched.first.get_or_insert(ended);
                in_a_row += 1;
            } else {
                watched.back |= watched.settled.take().is_some() && seen == self.old;
                // A permitted intermediate state must not hide a wrong one.
                let mild = |odd: &String| odd.is_empty() || odd == "ENOENT";
                if seen != self.old && watched.odd.as_ref().is_none_or(mild) {
                    watched.odd = Some(seen.clone());
                }
                watched.other = Some((start, seen));
                in_a_row = 0;
            }
            let since = ended.since(from);
            if in_a_row >= IN_A_ROW || since > within || stop() {
                return watched;
            }
            let pause = Nanos(since.0 / 16).clamp(PAUSE_LEAST, PAUSE_MOST);
            std::thread::sleep(pause.into());
        }
    }

    /// Makes one observation.
    fn seen(&self, spot: &Spot, file: Option<&File>) -> String {
        (self.look)(spot, file).unwrap_or_else(|errno| format!("{errno:?}"))
    }
}

fn put(path: &Path, text: &str) -> Step<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = done("open", path, file)?;
    done("write", path, file.write_all(text.as_bytes()))?;
    closed(path, file)
}

/// Overwrites the whole content, and closes the file.
fn rewrite(spot: &Spot) -> Step<Hand> {
    changed(&spot.path(), "write", |file| file.write_all_at(b"new", 0))
}

fn append(spot: &Spot) -> Step<Hand> {
    let path = spot.path();
    let file = OpenOptions::new().append(true).open(&path);
    let mut file = done("open", &path, file)?;
    done("write", &path, file.write_all(b"new"))?;
    closed(&path, file).map(|()| Hand::Empty)
}

fn mode(spot: &Spot, mode: u32) -> Step<Hand> {
    let path = spot.path();
    let set = std::fs::set_permissions(&path, Permissions::from_mode(mode));
    done("chmod", &path, set).map(|()| Hand::Empty)
}

fn times(spot: &Spot, seconds: u64) -> Step<Hand> {
    let at = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
    changed(&spot.path(), "futimens", |file| file.set_modified(at))
}

const ATTRIBUTE: Option<&std::ffi::CStr> = Some(c"user.rbench");

fn set_attribute(spot: &Spot, value: &str) -> Step<Hand> {
    let set = Call::Setxattr(By::File, ATTRIBUTE, 0);
    changed(&spot.path(), "fsetxattr", |file| {
        Ok(PosixFs::here().sending(set, file.as_raw_fd(), value.as_bytes())?)
    })
}

fn attribute(path: &Path) -> Result<String, Errno> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    let mut value = [0; 16];
    let on = Operands::path(&path).receiving(&mut value);
    let length = PosixFs::here().call(&Call::Getxattr(By::Path, ATTRIBUTE), on)?;
    let length = value.len().min(length as usize);
    Ok(String::from_utf8_lossy(&value[..length]).into_owned())
}

fn metadata(path: &Path) -> Result<std::fs::Metadata, Errno> {
    std::fs::symlink_metadata(path).map_err(or_eio)
}

fn stat(path: &Path) -> Result<String, Errno> {
    metadata(path).map(|_| "there".to_owned())
}

fn listed(spot: &Spot) -> Result<String, Errno> {
    let wanted = spot.number.to_string();
    for entry in std::fs::read_dir(&spot.directory).map_err(or_eio)? {
        if entry.map_err(or_eio)?.file_name() == wanted.as_str() {
            return Ok("there".to_owned());
        }
    }
    Ok("ENOENT".to_owned())
}

/// The first bytes of a file, which is opened to read them.
fn content(path: &Path) -> Result<String, Errno> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(or_eio)?;
    file.take(64).read_to_end(&mut text).map_err(or_eio)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The first bytes of an open file.
fn opened(file: Option<&File>) -> Result<String, Errno> {
    let mut bytes = [0; 3];
    let file = file.ok_or(Errno::EBADF)?;
    let length = file.read_at(&mut bytes, 0).map_err(or_eio)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}
