//! What traces of Linux programs name, as numbers: the flags of `open`, and errnos. For code that
//! asks no system.

use std::collections::HashMap;
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::libc;

/// The errno with that name (`ENOENT`).
pub fn errno(name: &str) -> Option<i32> {
    let other = match name {
        "EWOULDBLOCK" => Some("EAGAIN"),
        "ENOTSUP" => Some("EOPNOTSUPP"),
        _ => None,
    };
    let name = other.unwrap_or(name);
    static NUMBERS: LazyLock<HashMap<String, i32>> = LazyLock::new(|| numbers(errno_name));
    NUMBERS.get(name).copied()
}

/// The name of an errno (`ENOENT`).
pub fn errno_name(number: i32) -> String {
    match Errno::from_raw(number) {
        Errno::UnknownErrno => number.to_string(),
        known => format!("{known:?}"),
    }
}

/// The errno that has this sentence (`no such file or directory`), whatever its letters' case.
pub fn errno_of_sentence(sentence: &str) -> Option<i32> {
    static NUMBERS: LazyLock<HashMap<String, i32>> =
        LazyLock::new(|| numbers(|number| Errno::from_raw(number).desc().to_lowercase()));
    NUMBERS.get(&sentence.to_lowercase()).copied()
}

/// The errnos by what `told` says of them; of two that it says the same of the first.
fn numbers(told: impl Fn(i32) -> String) -> HashMap<String, i32> {
    let known = (1..=ERRNO_MAX)
        .rev()
        .filter(|number| Errno::from_raw(*number) != Errno::UnknownErrno);
    known.map(|number| (told(number), number)).collect()
}

/// The largest errno of Linux.
const ERRNO_MAX: i32 = 133;

/// The flag of `open` with that name, where it has a meaning for a replay; 0 for others.
pub fn open_flag(name: &str) -> i32 {
    match name {
        "O_WRONLY" => WRONLY,
        "O_RDWR" => RDWR,
        "O_CREAT" => CREAT,
        "O_EXCL" => EXCL,
        "O_TRUNC" => TRUNC,
        "O_APPEND" => APPEND,
        "O_DIRECT" => DIRECT,
        "O_DIRECTORY" => DIRECTORY,
        "O_NOFOLLOW" => NOFOLLOW,
        "O_DSYNC" => DSYNC,
        "O_SYNC" => SYNC,
        "O_PATH" => PATH,
        "O_CLOEXEC" => CLOEXEC,
        _ => 0,
    }
}

/// The access mode: reading, writing, both.
pub const ACCESS: i32 = libc::O_ACCMODE;
/// `O_RDONLY`
pub const RDONLY: i32 = libc::O_RDONLY;
/// `O_WRONLY`
pub const WRONLY: i32 = libc::O_WRONLY;
/// `O_RDWR`
pub const RDWR: i32 = libc::O_RDWR;
/// `O_CREAT`
pub const CREAT: i32 = libc::O_CREAT;
/// `O_EXCL`
pub const EXCL: i32 = libc::O_EXCL;
/// `O_TRUNC`
pub const TRUNC: i32 = libc::O_TRUNC;
/// `O_APPEND`
pub const APPEND: i32 = libc::O_APPEND;
/// `O_DIRECT`
pub const DIRECT: i32 = libc::O_DIRECT;
/// `O_DIRECTORY`
pub const DIRECTORY: i32 = libc::O_DIRECTORY;
/// `O_NOFOLLOW`
pub const NOFOLLOW: i32 = libc::O_NOFOLLOW;
/// `O_DSYNC`
pub const DSYNC: i32 = libc::O_DSYNC;
/// `O_SYNC`
pub const SYNC: i32 = libc::O_SYNC;
/// `O_PATH`
pub const PATH: i32 = libc::O_PATH;
/// Of `renameat2`: the names change places.
pub const RENAME_EXCHANGE: u32 = 2;
/// `renameat2`: the new name must not be there.
pub const RENAME_NOREPLACE: u32 = 1;
/// `O_CLOEXEC`
pub const CLOEXEC: i32 = libc::O_CLOEXEC;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errnos_are_found_by_their_names() {
        for (name, number) in [
            ("ENOENT", 2),
            ("EEXIST", 17),
            ("EAGAIN", 11),
            ("ENODATA", 61),
        ] {
            assert_eq!(errno(name), Some(number));
            assert_eq!(errno_name(number), name);
        }
        assert_eq!(errno("EWOULDBLOCK"), Some(11));
        assert_eq!(errno("ENOSUCH"), None);
        assert_eq!(errno(""), None);
    }
}
