//! Where a file of ours may go when its name is in use: only what a run like this
//! one has written is overwritten, symbolic links stay as they are, and devices
//! are not files.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::{new_file, new_file_beside};

/// Bytes at the beginning of a file by which it is recognised.
const KNOWN_BY: u64 = 64 << 10;

/// What is at a path where something is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Free(PathBuf),
    /// A file that may be overwritten, with symbolic links followed.
    Ours(PathBuf),
    /// A pipe, a terminal, `/dev/null`: it is written to as it is.
    Stream(PathBuf),
}

/// What is at `path`. A file that is not empty may be overwritten if its
/// beginning is recognised.
///
/// # Errors
/// Why nothing can be written there, as words that follow the path.
pub fn find(path: &Path, is_ours: impl Fn(&[u8]) -> bool) -> Result<Place, String> {
    let unreadable = |e: io::Error| format!("cannot be written: {e}");
    let found = match path.metadata() {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return match path.symlink_metadata() {
                Ok(_) => Err("is a dangling symbolic link".to_owned()),
                Err(_) => Ok(Place::Free(path.to_owned())),
            };
        }
        Err(e) => return Err(unreadable(e)),
    };
    let kind = found.file_type();
    if kind.is_dir() {
        return Err("is a directory".to_owned());
    }
    if kind.is_block_device() {
        return Err("is a block device and is not overwritten".to_owned());
    }
    if !kind.is_file() {
        return Ok(Place::Stream(path.to_owned()));
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(KNOWN_BY).read_to_end(&mut start));
    read.map_err(unreadable)?;
    if !(start.is_empty() || is_ours(&start)) {
        return Err("holds something else and is not overwritten".to_owned());
    }
    path.canonicalize().map(Place::Ours).map_err(unreadable)
}

impl Place {
    /// Whether it can be opened for writing; nothing of it is changed.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn can_be_opened(&self) -> io::Result<()> {
        match self {
            Place::Free(path) => {
                new_file(path)?;
                std::fs::remove_file(path)
            }
            Place::Ours(path) => OpenOptions::new().append(true).open(path).map(drop),
            // To open a pipe may wait for somebody else, and end what reads it.
            Place::Stream(_) => Ok(()),
        }
    }

    /// Opens it for writing; a file that exists is emptied.
    ///
    /// # Errors
    /// What the system said; `AlreadyExists` when the place was free and no longer
    /// is.
    pub fn open(&self) -> io::Result<File> {
        match self {
            Place::Free(path) => new_file(path),
            Place::Ours(path) => OpenOptions::new().write(true).truncate(true).open(path),
            Place::Stream(path) => OpenOptions::new().write(true).open(path),
        }
    }
}

/// Writes to `path` with `write`; if something else has appeared there, to a new
/// file beside it.
///
/// # Errors
/// Words that follow the path: why it could not be written, or where it is.
pub fn write_over(
    path: &Path,
    is_ours: impl Fn(&[u8]) -> bool,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<(), String> {
    let unwritable = |e: io::Error| format!("cannot be written: {e}");
    let opened = find(path, is_ours).and_then(|place| place.open().map_err(unwritable));
    let (file, moved) = match opened {
        Ok(file) => (file, None),
        Err(why) => {
            let (name, file) = new_file_beside(path).map_err(|e| format!("{why} ({e})"))?;
            let moved = format!("{why}: its content is in {}", name.display());
            (file, Some(moved))
        }
    };
    let mut file = io::BufWriter::new(file);
    write(&mut file)
        .and_then(|()| file.flush())
        .map_err(unwritable)?;
    moved.map_or(Ok(()), Err)
}
