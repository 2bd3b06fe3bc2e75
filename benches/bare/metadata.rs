//! Metadata and small files: the calls of `rbench meta` and of `rbench io` with small files,
//! relative to a directory, and those of `rbench mdtest`, with absolute paths. All paths are
//! generated before the time starts.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use rbench_core::Rank;
use rbench_core::random::DataStream;
use rbench_plan::tree::{Forest, ItemKind, NATIVE, Paths, Private, Shape};
use rbench_sys::AlignedBuffer;

use crate::{Failed, Figure};

const FILE_BYTES: usize = 4096;
const CREATE: c_int =
    libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const WRITE: c_int = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const MDTEST_CREATE: c_int = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const READ: c_int = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const MODE: libc::mode_t = 0o664;

/// The default tree of `rbench meta`, with `items` items in each of its 4 directories.
fn tree(items: u64) -> Shape {
    Shape {
        branch: 3,
        depth: 1,
        items_per_node: items,
        leaf_only: false,
    }
}

/// A directory of this process with a tree in it; removed on drop.
struct Place {
    path: PathBuf,
    directory: OwnedFd,
    forest: Arc<Forest>,
}

impl Place {
    fn new(dir: &str, shape: Shape) -> Result<Place, Failed> {
        let path = PathBuf::from(format!("{dir}/bare.{}", std::process::id()));
        fs::create_dir(&path)?;
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let place = Place {
            directory: open(&path, flags, Mode::empty())?,
            path,
            forest: Arc::new(Forest {
                shape,
                naming: NATIVE,
                prefixes: vec!["0".to_owned()],
                numbered: None,
                private: Some(Private { ahead: 0, ranks: 1 }),
            }),
        };
        fs::create_dir(place.path.join("0"))?;
        let mut paths = place.paths(ItemKind::Dir);
        for node in 0..shape.nodes().unwrap_or(0) {
            fs::create_dir(place.path.join(paths.node(node).to_str()?))?;
        }
        Ok(place)
    }

    fn paths(&self, kind: ItemKind) -> Paths {
        Paths::new(Arc::clone(&self.forest), Rank(0), kind)
    }

    fn items(&self, kind: ItemKind) -> Arena {
        let mut paths = self.paths(kind);
        let mut arena = Arena::default();
        for index in 0..self.forest.shape.items().unwrap_or(0) {
            arena.push(paths.item(index));
        }
        arena
    }

    fn at(&self) -> RawFd {
        self.directory.as_raw_fd()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The caller who named the parent directory sees leftovers.
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Consecutive paths in one buffer.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Arena {
    fn push(&mut self, path: &CStr) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(path.to_bytes_with_nul());
    }

    /// Times `act` on each path; `act` returns true on success.
    fn time(
        &self,
        name: &str,
        mut act: impl FnMut(*const c_char) -> bool,
    ) -> Result<Figure, Failed> {
        let started = Instant::now();
        for start in &self.starts {
            if !act(self.bytes[*start..].as_ptr().cast()) {
                return Err(format!("{name}: {}", Errno::last()).into());
            }
        }
        Ok(Figure {
            name: name.to_owned(),
            ops: self.starts.len() as u64,
            took: started.elapsed(),
        })
    }
}

/// Runs the named phases of `rbench meta` in this order.
pub fn phases(dir: &str, items: u64, names: &[&str]) -> Result<(), Failed> {
    let place = Place::new(dir, tree(items))?;
    let (files, dirs) = (place.items(ItemKind::File), place.items(ItemKind::Dir));
    for name in names {
        phase(place.at(), name, &files, &dirs, CREATE)?.print();
    }
    Ok(())
}

/// Runs the named phases of `rbench mdtest`: one directory with all items, without data.
pub fn mdtest(dir: &str, items: u64, names: &[&str]) -> Result<(), Failed> {
    // The same depth and length of names as in rbench.
    let tree = Shape {
        branch: 1,
        depth: 0,
        items_per_node: 0,
        leaf_only: false,
    };
    let place = Place::new(dir, tree)?;
    let parent = place.path.join("mdtest_tree.0");
    fs::create_dir(&parent)?;
    let parent = parent.to_str().ok_or("the directory is not UTF-8")?;
    let named = |kind: &str| -> Result<Arena, Failed> {
        let mut arena = Arena::default();
        for number in 0..items {
            arena.push(&CString::new(format!("{parent}/{kind}.mdtest.0.{number}"))?);
        }
        Ok(arena)
    };
    let (files, dirs) = (named("file")?, named("dir")?);
    for name in names {
        phase(place.at(), name, &files, &dirs, MDTEST_CREATE)?.print();
    }
    Ok(())
}

fn phase(
    at: RawFd,
    name: &str,
    files: &Arena,
    dirs: &Arena,
    create: c_int,
) -> Result<Figure, Failed> {
    // Every path ends with NUL, and the directory is open.
    match name {
        // SAFETY: see above.
        "dir-create" => dirs.time(name, |path| unsafe { libc::mkdirat(at, path, 0o775) } == 0),
        "dir-stat" => dirs.time(name, |path| stat(at, path)),
        "dir-remove" => dirs.time(name, |path| remove(at, path, libc::AT_REMOVEDIR)),
        "file-create" => files.time(name, |path| open_close(at, path, create)),
        "file-stat" => files.time(name, |path| stat(at, path)),
        "file-read" => files.time(name, |path| open_close(at, path, READ)),
        "file-remove" => files.time(name, |path| remove(at, path, 0)),
        _ => Err(format!("there is no bare loop for {name}").into()),
    }
}

/// Creates files of 4 KiB like `rbench meta --write 4k` (`meta`, ITEMS in each directory) or like
/// `rbench io --files` (`io`). The content is constant.
pub fn files(dir: &str, items: u64, form: &str) -> Result<Figure, Failed> {
    let (shape, flags) = match form {
        "meta" => (tree(items), CREATE),
        "io" => (Shape::flat(items), WRITE),
        _ => return Err(format!("files are made by meta or io, not by {form}").into()),
    };
    let place = Place::new(dir, shape)?;
    let paths = place.items(ItemKind::File);
    let mut buffer = AlignedBuffer::new(FILE_BYTES)?;
    DataStream::new(&[1]).fill(&mut buffer);
    let start = buffer.as_ptr().cast();
    let at = place.at();
    paths.time(form, |path| {
        // SAFETY: the path ends with NUL, the directory is open, and `start` points to that many
        // bytes.
        unsafe {
            let fd = libc::openat(at, path, flags, MODE);
            let written = if form == "io" {
                libc::pwrite(fd, start, FILE_BYTES, 0)
            } else {
                libc::write(fd, start, FILE_BYTES)
            };
            written == FILE_BYTES as isize && libc::close(fd) == 0
        }
    })
}

#[inline]
fn open_close(at: RawFd, path: *const c_char, flags: c_int) -> bool {
    // SAFETY: the path ends with NUL; only the descriptor opened here is closed.
    unsafe {
        let fd = libc::openat(at, path, flags, MODE);
        fd >= 0 && libc::close(fd) == 0
    }
}

#[inline]
fn stat(at: RawFd, path: *const c_char) -> bool {
    let mut buffer = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path ends with NUL, and `buffer` has room for a stat.
    unsafe { libc::fstatat(at, path, buffer.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW) == 0 }
}

#[inline]
fn remove(at: RawFd, path: *const c_char, flags: c_int) -> bool {
    // SAFETY: the path ends with NUL.
    unsafe { libc::unlinkat(at, path, flags) == 0 }
}
