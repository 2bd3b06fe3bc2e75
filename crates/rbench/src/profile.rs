//! The file of a profile of `rbench mix`, which rank 0 reads for all.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::{Path, PathBuf};

use rbench_cli::profile_file;

/// Maximum size of a profile, bytes.
const LONGEST: u64 = 1 << 20;

/// The profile's path on the command line, with its content or read error; `None` without a path.
pub fn named(argv: &[OsString]) -> Option<(PathBuf, Result<Vec<u8>>)> {
    let file = profile_file(argv)?;
    let read = read(&file);
    Some((file, read))
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Limits the read: some files have no end.
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
