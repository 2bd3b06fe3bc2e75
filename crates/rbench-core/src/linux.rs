//! Names in traces of Linux programs as numbers: flags of `open`, and errnos. For code that makes
//! no system calls.

use std::collections::HashMap;
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::libc;

/// The errno of that name (`ENOENT`).
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

/// The errno of a message (`no such file or directory`, `errno 41`), in any letter case.
pub fn errno_of_sentence(sentence: &str) -> Option<i32> {
    static NUMBERS: LazyLock<HashMap<String, i32>> = LazyLock::new(|| {
        let mut all = numbers(|number| Errno::from_raw(number).desc().to_lowercase());
        let known = SENTENCES.iter();
        all.extend(known.map(|(number, text)| (text.to_lowercase(), *number)));
        all
    });
    let sentence = sentence.to_lowercase();
    if let Some(number) = sentence.strip_prefix("errno ") {
        return number.parse().ok().filter(|number| *number > 0);
    }
    NUMBERS.get(&sentence).copied()
}

/// The errnos by their description; of two with the same one, the smaller.
fn numbers(describe: impl Fn(i32) -> String) -> HashMap<String, i32> {
    let known = (1..=ERRNO_MAX)
        .rev()
        .filter(|number| Errno::from_raw(*number) != Errno::UnknownErrno);
    known.map(|number| (describe(number), number)).collect()
}

/// The largest errno of Linux.
const ERRNO_MAX: i32 = 133;

/// Messages of Go's runtime, and so of JuiceFS, that are not the descriptions of [`Errno::desc`].
const SENTENCES: [(i32, &str); 18] = [
    (5, "input/output error"),
    (9, "bad file descriptor"),
    (11, "resource temporarily unavailable"),
    (12, "cannot allocate memory"),
    (18, "invalid cross-device link"),
    (23, "too many open files in system"),
    (25, "inappropriate ioctl for device"),
    (33, "numerical argument out of domain"),
    (34, "numerical result out of range"),
    (35, "resource deadlock avoided"),
    (37, "no locks available"),
    (40, "too many levels of symbolic links"),
    (74, "bad message"),
    (84, "invalid or incomplete multibyte or wide character"),
    (95, "operation not supported"),
    (102, "network dropped connection on reset"),
    (116, "stale NFS file handle"),
    (122, "disk quota exceeded"),
];

/// The flag of `open` with that name if it matters for a replay; 0 for others.
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

/// Mask of the access mode: reading, writing, both.
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
/// `renameat2`: exchanges the names.
pub const RENAME_EXCHANGE: u32 = 2;
/// `renameat2`: the new name must not exist.
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

    #[test]
    fn every_errno_is_found_by_the_sentence_that_go_prints() {
        for (number, sentence) in SENTENCES {
            assert_eq!(errno_of_sentence(sentence), Some(number), "{sentence}");
        }
        for number in (1..=ERRNO_MAX).filter(|n| Errno::from_raw(*n) != Errno::UnknownErrno) {
            let described = Errno::from_raw(number).desc();
            assert_eq!(errno_of_sentence(described), Some(number), "{described}");
        }
        for (sentence, number) in [
            ("operation not permitted", 1),
            ("no such file or directory", 2),
            ("interrupted system call", 4),
            ("no such device or address", 6),
            ("cannot allocate memory", 12),
            ("permission denied", 13),
            ("device or resource busy", 16),
            ("file exists", 17),
            ("invalid cross-device link", 18),
            ("no such device", 19),
            ("not a directory", 20),
            ("is a directory", 21),
            ("invalid argument", 22),
            ("too many open files", 24),
            ("file too large", 27),
            ("no space left on device", 28),
            ("read-only file system", 30),
            ("too many links", 31),
            ("broken pipe", 32),
            ("file name too long", 36),
            ("function not implemented", 38),
            ("directory not empty", 39),
            ("no data available", 61),
            ("value too large for defined data type", 75),
            ("connection timed out", 110),
            ("structure needs cleaning", 117),
            ("remote I/O error", 121),
            ("operation canceled", 125),
            ("RFS specific error", 73),
            ("transport endpoint is not connected", 107),
            ("memory page has hardware error", 133),
            ("Operation not supported", 95),
            ("bad file descriptor", 9),
            ("inappropriate ioctl for device", 25),
            ("errno 41", 41),
            ("errno 512", 512),
        ] {
            assert_eq!(errno_of_sentence(sentence), Some(number), "{sentence}");
        }
        for other in ["", "errno", "errno 0", "errno x", "all is well"] {
            assert_eq!(errno_of_sentence(other), None, "{other}");
        }
    }
}
