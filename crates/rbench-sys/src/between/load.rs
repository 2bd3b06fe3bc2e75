//! Load beside the checks: files in a separate directory are created, read and removed.

use std::path::Path;

use super::{Step, done};

/// Number of files that exist at a time.
const FILES: u64 = 20;

/// Creates `directory`. Until `stop` returns true, creates, stats, reads, renames and
/// removes files of 16 KiB in it. Returns the number of files.
///
/// # Errors
/// The call that failed.
pub fn load(directory: &Path, stop: &dyn Fn() -> bool) -> Step<u64> {
    super::make(directory)?;
    let data = [7; 16 << 10];
    let mut number = 0;
    while !stop() {
        let (path, to) = (
            directory.join(format!("new-{}", number % FILES)),
            directory.join(format!("file-{}", number % FILES)),
        );
        done("write", &path, std::fs::write(&path, data))?;
        done("stat", &path, std::fs::metadata(&path))?;
        done("read", &path, std::fs::read(&path))?;
        done("rename", &to, std::fs::rename(&path, &to))?;
        if number % 2 == 1 {
            done("unlink", &to, std::fs::remove_file(&to))?;
        }
        number += 1;
    }
    Ok(number)
}
