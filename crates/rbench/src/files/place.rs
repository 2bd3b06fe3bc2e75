//! Where a file of ours may go when its name is in use: only what a run like this
//! one has written is replaced, symbolic links stay as they are, and devices
//! are not files.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::libc;
use tempfile::NamedTempFile;

use super::{file_beside, new_file, put};

/// Bytes at the beginning of a file by which it is recognised.
pub const KNOWN_BY: u64 = 64 << 10;

/// What is at a path where something is to be written.
#[derive(Debug)]
pub enum Place {
    /// Nothing.
    Free(PathBuf),
    /// A file that may be replaced, open for reading and writing.
    Ours(PathBuf, File),
    /// A pipe, a terminal, `/dev/null`, or our own standard output: it is written to as it is.
    Stream(PathBuf),
}

/// What is at `path`. A file that is not empty may be replaced if its
/// beginning is recognised. No symbolic link is followed to a file.
///
/// # Errors
/// Why nothing can be written there, as words that follow the path.
pub fn find(path: &Path, is_ours: impl Fn(&[u8]) -> bool) -> Result<Place, String> {
    let unwritable = |e: io::Error| format!("cannot be written: {e}");
    if is_own_stream(path) {
        return Ok(Place::Stream(path.to_owned()));
    }
    let found = match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => match path.metadata() {
            Ok(end) if end.is_file() || end.is_dir() => {
                return Err("is a symbolic link, which is not followed".to_owned());
            }
            Ok(end) => end,
            Err(_) => return Err("is a dangling symbolic link".to_owned()),
        },
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Place::Free(path.to_owned())),
        Err(e) => return Err(unwritable(e)),
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
    // Something else may have taken its place meanwhile.
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut file = options.open(path).map_err(unwritable)?;
    let mut start = Vec::new();
    let read = match file.metadata().map(|found| found.is_file()) {
        Ok(true) => (&file).take(KNOWN_BY).read_to_end(&mut start),
        Ok(false) => Err(io::Error::other("it is no longer a file")),
        Err(error) => Err(error),
    };
    read.and_then(|_| file.rewind()).map_err(unwritable)?;
    if !(start.is_empty() || is_ours(&start)) {
        return Err("holds other data and is not overwritten".to_owned());
    }
    Ok(Place::Ours(path.to_owned(), file))
}

/// Whether it names a descriptor of this process, whatever that is open on.
fn is_own_stream(path: &Path) -> bool {
    let streams = ["/dev/stdout", "/dev/stderr"];
    streams.iter().any(|name| path == Path::new(name))
        || ["/dev/fd", "/proc/self/fd"]
            .iter()
            .any(|folder| path.starts_with(folder))
}

impl Place {
    /// Whether it can be written; nothing of it is changed.
    ///
    /// # Errors
    /// What the system said.
    pub fn can_be_written(&self) -> io::Result<()> {
        match self {
            Place::Free(path) => {
                new_file(path)?;
                std::fs::remove_file(path)
            }
            Place::Ours(path, _) => file_beside(path).map(drop),
            // To open a pipe may wait for somebody else, and end what reads it.
            Place::Stream(_) => Ok(()),
        }
    }

    /// Opens it as it is: what a file holds stays until it is written over.
    ///
    /// # Errors
    /// What the system said; `AlreadyExists` when the place was free and no longer is.
    pub fn open(self) -> io::Result<File> {
        match self {
            Place::Free(path) => new_file(&path),
            Place::Ours(_, file) => Ok(file),
            // Behind what is there, should it be a file.
            Place::Stream(path) => OpenOptions::new().append(true).open(path),
        }
    }
}

/// A file that was written.
pub struct Written {
    /// Open at its end.
    pub file: File,
    /// Where it is instead, as words that follow the path: something else was there.
    pub moved: Option<String>,
}

/// Writes a new file with `write` and puts it at `path` when it is whole; what was there stays until
/// then, and what is not ours stays for good: the new file then has a different name beside it.
///
/// # Errors
/// Words that follow the path: why it could not be written.
pub fn write_over(
    path: &Path,
    is_ours: impl Fn(&[u8]) -> bool,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<Written, String> {
    let unwritable = |e: io::Error| format!("cannot be written: {e}");
    let place = find(path, is_ours);
    if matches!(place, Ok(Place::Stream(_))) {
        let mut file = place?.open().map_err(unwritable)?;
        write(&mut file).map_err(unwritable)?;
        return Ok(Written { file, moved: None });
    }
    let mut beside = file_beside(path).map_err(unwritable)?;
    let mut buffered = io::BufWriter::new(beside.as_file_mut());
    let written = write(&mut buffered).and_then(|()| buffered.flush());
    drop(buffered);
    written.map_err(unwritable)?;
    let (beside, why) = match place {
        Ok(Place::Ours(_, old)) => {
            beside.as_file().sync_data().map_err(unwritable)?;
            match swap(beside, path, &old).map_err(unwritable)? {
                Ok(file) => return Ok(Written { file, moved: None }),
                Err(beside) => (beside, TAKEN.to_owned()),
            }
        }
        Ok(_) => (beside, TAKEN.to_owned()),
        Err(why) => (beside, why),
    };
    let (name, file) = put(beside, path).map_err(unwritable)?;
    let moved = (name != path).then(|| format!("{why}: its content is in {}", name.display()));
    Ok(Written { file, moved })
}

/// That something else has come where a file was to be replaced.
pub const TAKEN: &str = "appeared during the run and is not overwritten";

/// Puts `new` at `path`, where `old` was recognised, with its owner and permissions; `new` comes back
/// where something else is there by now, which stays.
///
/// # Errors
/// What the system said.
pub fn swap(
    new: NamedTempFile,
    path: &Path,
    old: &File,
) -> io::Result<Result<File, NamedTempFile>> {
    let found = old.metadata()?;
    // Only root can give files away; else it is our own, as a new one is.
    let _ = fchown(new.as_file(), Some(found.uid()), Some(found.gid()));
    let permissions = Permissions::from_mode(found.mode() & 0o777);
    let _ = new.as_file().set_permissions(permissions);
    let is_old = |path: &Path| {
        let there = path.symlink_metadata();
        there.is_ok_and(|there| (there.dev(), there.ino()) == (found.dev(), found.ino()))
    };
    let exchange = |new: &NamedTempFile| {
        let flags = RenameFlags::RENAME_EXCHANGE;
        renameat2(AT_FDCWD, new.path(), AT_FDCWD, path, flags)
    };
    match exchange(&new) {
        // The old one goes with the temporary name, which it has now.
        Ok(()) if is_old(new.path()) => Ok(Ok(new.into_parts().0)),
        Ok(()) => match exchange(&new) {
            Ok(()) => Ok(Err(new)),
            Err(errno) => {
                // What is somebody else's stays under the name that it has now.
                let (_, name) = new.keep().map_err(|e| e.error)?;
                let text = format!(
                    "{}; the file that appeared there is now {}",
                    errno.desc(),
                    name.display()
                );
                Err(io::Error::other(text))
            }
        },
        Err(Errno::ENOENT) => match new.persist_noclobber(path) {
            Ok(file) => Ok(Ok(file)),
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(Err(e.file)),
            Err(e) => Err(e.error),
        },
        // The file system cannot exchange.
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => match is_old(path) {
            true => Ok(Ok(new.persist(path)?)),
            false => Ok(Err(new)),
        },
        Err(errno) => Err(errno.into()),
    }
}
