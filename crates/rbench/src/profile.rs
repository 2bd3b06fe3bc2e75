//! The file of a profile of `rbench mix`, as rank 0 reads it for all.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::{Path, PathBuf};

use rbench_cli::profile_file;

/// Bytes of the longest profile.
const LONGEST: u64 = 1 << 20;

/// The file that a command line names, and what it says or why it could not be read; `None`:
/// it names none.
pub fn named(argv: &[OsString]) -> Option<(PathBuf, Result<Vec<u8>>)> {
    let file = profile_file(argv)?;
    let read = read(&file);
    Some((file, read))
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Files without an end are read no further.
    File::open(file)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LONGEST {
        true => Err(Error::new(
            ErrorKind::FileTooLarge,
            "it is larger than 1 MiB",
        )),
        false => Ok(bytes),
    }
}
