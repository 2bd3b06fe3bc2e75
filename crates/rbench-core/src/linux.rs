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

/// Messages of Go's runtime, and so of JuiceFS, for each errno.
const SENTENCES: [(i32, &str); 131] = [
    (1, "operation not permitted"),
    (2, "no such file or directory"),
    (3, "no such process"),
    (4, "interrupted system call"),
    (5, "input/output error"),
    (6, "no such device or address"),
    (7, "argument list too long"),
    (8, "exec format error"),
    (9, "bad file descriptor"),
    (10, "no child processes"),
    (11, "resource temporarily unavailable"),
    (12, "cannot allocate memory"),
    (13, "permission denied"),
    (14, "bad address"),
    (15, "block device required"),
    (16, "device or resource busy"),
    (17, "file exists"),
    (18, "invalid cross-device link"),
    (19, "no such device"),
    (20, "not a directory"),
    (21, "is a directory"),
    (22, "invalid argument"),
    (23, "too many open files in system"),
    (24, "too many open files"),
    (25, "inappropriate ioctl for device"),
    (26, "text file busy"),
    (27, "file too large"),
    (28, "no space left on device"),
    (29, "illegal seek"),
    (30, "read-only file system"),
    (31, "too many links"),
    (32, "broken pipe"),
    (33, "numerical argument out of domain"),
    (34, "numerical result out of range"),
    (35, "resource deadlock avoided"),
    (36, "file name too long"),
    (37, "no locks available"),
    (38, "function not implemented"),
    (39, "directory not empty"),
    (40, "too many levels of symbolic links"),
    (42, "no message of desired type"),
    (43, "identifier removed"),
    (44, "channel number out of range"),
    (45, "level 2 not synchronized"),
    (46, "level 3 halted"),
    (47, "level 3 reset"),
    (48, "link number out of range"),
    (49, "protocol driver not attached"),
    (50, "no CSI structure available"),
    (51, "level 2 halted"),
    (52, "invalid exchange"),
    (53, "invalid request descriptor"),
    (54, "exchange full"),
    (55, "no anode"),
    (56, "invalid request code"),
    (57, "invalid slot"),
    (59, "bad font file format"),
    (60, "device not a stream"),
    (61, "no data available"),
    (62, "timer expired"),
    (63, "out of streams resources"),
    (64, "machine is not on the network"),
    (65, "package not installed"),
    (66, "object is remote"),
    (67, "link has been severed"),
    (68, "advertise error"),
    (69, "srmount error"),
    (70, "communication error on send"),
    (71, "protocol error"),
    (72, "multihop attempted"),
    (73, "RFS specific error"),
    (74, "bad message"),
    (75, "value too large for defined data type"),
    (76, "name not unique on network"),
    (77, "file descriptor in bad state"),
    (78, "remote address changed"),
    (79, "can not access a needed shared library"),
    (80, "accessing a corrupted shared library"),
    (81, ".lib section in a.out corrupted"),
    (82, "attempting to link in too many shared libraries"),
    (83, "cannot exec a shared library directly"),
    (84, "invalid or incomplete multibyte or wide character"),
    (85, "interrupted system call should be restarted"),
    (86, "streams pipe error"),
    (87, "too many users"),
    (88, "socket operation on non-socket"),
    (89, "destination address required"),
    (90, "message too long"),
    (91, "protocol wrong type for socket"),
    (92, "protocol not available"),
    (93, "protocol not supported"),
    (94, "socket type not supported"),
    (95, "operation not supported"),
    (96, "protocol family not supported"),
    (97, "address family not supported by protocol"),
    (98, "address already in use"),
    (99, "cannot assign requested address"),
    (100, "network is down"),
    (101, "network is unreachable"),
    (102, "network dropped connection on reset"),
    (103, "software caused connection abort"),
    (104, "connection reset by peer"),
    (105, "no buffer space available"),
    (106, "transport endpoint is already connected"),
    (107, "transport endpoint is not connected"),
    (108, "cannot send after transport endpoint shutdown"),
    (109, "too many references: cannot splice"),
    (110, "connection timed out"),
    (111, "connection refused"),
    (112, "host is down"),
    (113, "no route to host"),
    (114, "operation already in progress"),
    (115, "operation now in progress"),
    (116, "stale NFS file handle"),
    (117, "structure needs cleaning"),
    (118, "not a XENIX named type file"),
    (119, "no XENIX semaphores available"),
    (120, "is a named type file"),
    (121, "remote I/O error"),
    (122, "disk quota exceeded"),
    (123, "no medium found"),
    (124, "wrong medium type"),
    (125, "operation canceled"),
    (126, "required key not available"),
    (127, "key has expired"),
    (128, "key has been revoked"),
    (129, "key was rejected by service"),
    (130, "owner died"),
    (131, "state not recoverable"),
    (132, "operation not possible due to RF-kill"),
    (133, "memory page has hardware error"),
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
        for (sentence, number) in [
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
