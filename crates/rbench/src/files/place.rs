//! The place of an output file whose name may be in use. Only outputs of earlier runs are replaced.
//! Symbolic links stay, and devices are written as streams.

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

/// Bytes at the start of a file that are read to recognise it.
pub const KNOWN_BY: u64 = 64 << 10;

/// The entry at the path of an output.
#[derive(Debug)]
pub enum Place {
    /// No entry.
    Free(PathBuf),
    /// A file that may be replaced, open for reading and writing.
    Ours(PathBuf, File),
    /// A pipe, a terminal, `/dev/null`, or our own standard output: written without replacing it.
    Stream(PathBuf),
}

/// Finds the entry at `path`. A file may be replaced if it is empty or its start is recognised.
/// Symbolic links to files are not followed.
///
/// # Errors
/// The reason, as words that follow the path.
pub fn find(path: &Path, is_ours: impl Fn(&[u8]) -> bool) -> Result<Place, String> {
    let unwritable = |e: io::Error| format!("cannot be written: {e}");
    if is_own_stream(path) {
        return Ok(Place::Stream(path.to_owned()));
    }
    let metadata = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => match path.metadata() {
            Ok(end) if end.is_file() || end.is_dir() => {
                return Err("is a symbolic link, which is not followed".to_owned());
            }
            Ok(end) => end,
            Err(_) => return Err("is a dangling symbolic link".to_owned()),
        },
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Place::Free(path.to_owned())),
        Err(e) => return Err(unwritable(e)),
    };
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err("is a directory".to_owned());
    }
    if kind.is_block_device() {
        return Err("is a block device and is not overwritten".to_owned());
    }
    if !kind.is_file() {
        return Ok(Place::Stream(path.to_owned()));
    }
    // Another file may have replaced it meanwhile.
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut file = options.open(path).map_err(unwritable)?;
    let mut start = Vec::new();
    let read = match file.metadata().map(|metadata| metadata.is_file()) {
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

/// Returns true if the path names a descriptor of this process.
fn is_own_stream(path: &Path) -> bool {
    let streams = ["/dev/stdout", "/dev/stderr"];
    streams.iter().any(|name| path == Path::new(name))
        || ["/dev/fd", "/proc/self/fd"]
            .iter()
            .any(|folder| path.starts_with(folder))
}

impl Place {
    /// Checks that it can be written, without changing it.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn can_be_written(&self) -> io::Result<()> {
        match self {
            Place::Free(path) => {
                new_file(path)?;
                std::fs::remove_file(path)
            }
            Place::Ours(path, _) => file_beside(path).map(drop),
            // Opening a pipe may block, and would end its reader.
            Place::Stream(_) => Ok(()),
        }
    }

    /// Opens it. A file keeps its content until that is overwritten.
    ///
    /// # Errors
    /// The error of the system call; `AlreadyExists` if a free name is in use by now.
    pub fn open(self) -> io::Result<File> {
        match self {
            Place::Free(path) => new_file(&path),
            Place::Ours(_, file) => Ok(file),
            // If it is a file after all, its content stays.
            Place::Stream(path) => OpenOptions::new().append(true).open(path),
        }
    }
}

/// An output file that was written.
pub struct Written {
    /// Open, positioned at its end.
    pub file: File,
    /// The file's other location, as words that follow the path, if the path was taken.
    pub moved: Option<String>,
}

/// Writes a new file with `write` and moves it to `path` when complete. The old file stays until
/// then. A file that is not ours stays for good; the new file then gets another name next to it.
///
/// # Errors
/// The reason, as words that follow the path.
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

/// Reason why a file was not replaced: another one appeared at its path.
pub const TAKEN: &str = "appeared during the run and is not overwritten";

/// Puts `new` at `path` in place of `old`, with the owner and permissions of `old`. Returns `new`
/// if another file is at `path` by now; that file stays.
///
/// # Errors
/// The error of the system call.
pub fn swap(
    new: NamedTempFile,
    path: &Path,
    old: &File,
) -> io::Result<Result<File, NamedTempFile>> {
    let old_metadata = old.metadata()?;
    // Only root can change the owner; otherwise the file stays ours, like any new file.
    let _ = fchown(
        new.as_file(),
        Some(old_metadata.uid()),
        Some(old_metadata.gid()),
    );
    let permissions = Permissions::from_mode(old_metadata.mode() & 0o777);
    let _ = new.as_file().set_permissions(permissions);
    let is_old = |path: &Path| {
        let now = path.symlink_metadata();
        now.is_ok_and(|now| (now.dev(), now.ino()) == (old_metadata.dev(), old_metadata.ino()))
    };
    let exchange = |new: &NamedTempFile| {
        let flags = RenameFlags::RENAME_EXCHANGE;
        renameat2(AT_FDCWD, new.path(), AT_FDCWD, path, flags)
    };
    match exchange(&new) {
        // The old file now has the temporary name and is removed with it.
        Ok(()) if is_old(new.path()) => Ok(Ok(new.into_parts().0)),
        Ok(()) => match exchange(&new) {
            Ok(()) => Ok(Err(new)),
            Err(errno) => {
                // A foreign file stays under the name that it has now.
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
        // The file system does not support RENAME_EXCHANGE.
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => match is_old(path) {
            true => Ok(Ok(new.persist(path)?)),
            false => Ok(Err(new)),
        },
        Err(errno) => Err(errno.into()),
    }
}
