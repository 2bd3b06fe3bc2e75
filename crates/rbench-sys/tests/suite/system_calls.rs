//! Checks with strace that every method makes exactly the system calls that its
//! documentation names.

use std::collections::HashMap;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use rbench_core::operations::READABLE;
use rbench_core::{By, Call, OpenFlags};
use rbench_sys::engine::find;
use rbench_sys::files::Advice;
use rbench_sys::{Data, EngineConfig, Fs, NullFs, Operands, PosixFs, Transfer};

use crate::allocations;
use crate::blocks::{BLOCK, read_at, request};
use crate::support::{is_child, place, skip, this_test, traced};

/// Prefix of a marking path: the calls after [`mark`] belong to `name`.
const MARK: &str = "/rbench-mark/";

/// Adds a call to the trace that names the following calls.
fn mark(name: &str) {
    let path = format!("{MARK}{name}");
    assert_eq!(access(path.as_str(), AccessFlags::F_OK), Err(Errno::ENOENT));
}

/// Lines of strace's log, each call in one line with the number of its thread. Calls
/// that strace splits, because another thread's call came in between, are joined again.
fn whole_lines(log: &str) -> Vec<(&str, String)> {
    let mut unfinished: HashMap<&str, &str> = HashMap::new();
    let mut lines = Vec::new();
    for (thread, line) in log.lines().filter_map(|line| line.split_once(' ')) {
        // Numbers below 10000 are padded.
        let line = line.trim_start();
        if let Some(start) = line.strip_suffix(" <unfinished ...>") {
            unfinished.insert(thread, start);
        } else if let Some((_, end)) = line.split_once(" resumed>") {
            let start = unfinished.remove(thread).expect("it had begun");
            lines.push((thread, format!("{start}{end}")));
        } else {
            lines.push((thread, line.to_owned()));
        }
    }
    lines
}

/// Calls of the marking thread, one per line after the name of the preceding mark:
/// `mkdir: mkdirat(<d>, "x", 0775) = 0`.
fn marked_calls(log: &str) -> Vec<String> {
    let lines = whole_lines(log);
    let marker = lines.iter().find(|(_, line)| line.contains(MARK));
    let (marker, _) = marker.expect("there are marks");
    let mut name = None;
    let mut calls = Vec::new();
    for (_, line) in lines.iter().filter(|(thread, _)| thread == marker) {
        if let Some((_, rest)) = line.split_once(MARK) {
            name = rest.split('"').next();
        } else if let Some(name) = name.filter(|name| *name != "end") {
            calls.push(format!("{name}: {}", plain(line)));
        }
    }
    calls
}

/// A line without parts that change from run to run: `3</tmp/x/d>` becomes `<d>`, an
/// address `PTR`, a structure `{}`, and blanks are single.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim();
    while let Some(c) = rest.chars().next() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if rest.starts_with("0x") {
            out.push_str("PTR");
            rest = rest[2..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
        } else if digits > 0 && rest[digits..].starts_with('<') {
            let (path, after) = rest[digits + 1..].split_once('>').expect("it is closed");
            let name = path.rsplit('/').next().unwrap_or(path);
            let name = if name.starts_with("pipe:") {
                "pipe"
            } else {
                name
            };
            out.push_str(&format!("<{name}>"));
            rest = after;
        } else if digits > 0 {
            out.push_str(&rest[..digits]);
            rest = &rest[digits..];
        } else if c == '{' {
            out.push_str("{}");
            rest = rest.split_once('}').expect("it is closed").1;
        } else {
            if c != ' ' || !out.ends_with(' ') {
                out.push(c);
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

const OPTIONS: &[&str] = &["-y", "-s", "4", "-e", "signal=none"];

#[test]
fn each_method_of_posix_fs_makes_exactly_its_calls() {
    let Some(run) = traced(this_test!(), OPTIONS, each_method) else {
        return;
    };
    assert_eq!(
        marked_calls(&run.log),
        [
            r#"mkdir: mkdirat(<top>, "d", 0775) = 0"#,
            r#"create-new: openat(<top>, "d/f", O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0664) = <f>"#,
            r#"write: write(<f>, "xxxx"..., 100) = 100"#,
            "fsync: fsync(<f>) = 0",
            "truncate: ftruncate(<f>, 50) = 0",
            "close: close(<f>) = 0",
            r#"stat: newfstatat(<top>, "d/f", {}, AT_SYMLINK_NOFOLLOW) = 0"#,
            r#"open: openat(<top>, "d/f", O_RDONLY|O_NOFOLLOW|O_CLOEXEC) = <f>"#,
            r#"read: read(<f>, "xxxx"..., 100) = 50"#,
            r#"read: read(<f>, "", 100) = 0"#,
            r#"open-write: openat(<top>, "d/f", O_WRONLY|O_CREAT|O_NOFOLLOW|O_CLOEXEC, 0664) = <f>"#,
            r#"open-write-existing: openat(<top>, "d/f", O_WRONLY|O_NOFOLLOW|O_CLOEXEC) = <f>"#,
            r#"open-read-write: openat(<top>, "d/f", O_RDWR|O_CREAT|O_DIRECT|O_NOFOLLOW|O_CLOEXEC, 0664) = <f>"#,
            r#"rename: renameat(<top>, "d/f", <top>, "d/g") = 0"#,
            r#"list: openat(<top>, "d", O_RDONLY|O_NOFOLLOW|O_CLOEXEC|O_DIRECTORY) = <d>"#,
            "list: getdents64(<d>, PTR /* 3 entries */, 100) = 72",
            "list: getdents64(<d>, PTR /* 0 entries */, 100) = 0",
            "list: close(<d>) = 0",
            r#"mknod: mknodat(<top>, "d/n", S_IFREG|0664) = 0"#,
            "sync: sync() = 0",
            r#"unlink: unlinkat(<top>, "d/g", 0) = 0"#,
            r#"unlink: unlinkat(<top>, "d/n", 0) = 0"#,
            r#"rmdir: unlinkat(<top>, "d", AT_REMOVEDIR) = 0"#,
            r#"failing: mkdirat(<top>, "no/d", 0775) = -1 ENOENT (No such file or directory)"#,
            r#"absolute: mkdirat(<top>, "/dev/null/d", 0775) = -1 ENOTDIR (Not a directory)"#,
        ]
    );
}

fn each_method() {
    let temporary = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let top = temporary.path().join("top");
    std::fs::create_dir(&top).expect("a new name");
    let fs = PosixFs::open_directory(&top).expect("it was made");
    let mut buffer = [b'x'; 100];
    let ok = Ok(0);

    mark("mkdir");
    assert_eq!(fs.on_path(Call::MKDIR, c"d"), ok);
    mark("create-new");
    let fd = fs.open(c"d/f", OpenFlags::CREATE_NEW).expect("a new name");
    mark("write");
    assert_eq!(fs.sending(Call::Write, fd, &buffer), Ok(100));
    mark("fsync");
    assert_eq!(fs.on_file(Call::Fsync, fd), ok);
    mark("truncate");
    assert_eq!(fs.on_file(Call::Truncate(By::File, 50), fd), ok);
    mark("close");
    assert_eq!(fs.close(fd), Ok(()));
    mark("stat");
    assert_eq!(fs.on_path(Call::Stat(By::Link), c"d/f"), Ok(50));
    mark("open");
    let fd = fs.open(c"d/f", OpenFlags::READ).expect("it is there");
    mark("read");
    assert_eq!(fs.receiving(Call::Read, fd, &mut buffer), Ok(50));
    assert_eq!(fs.receiving(Call::Read, fd, &mut buffer), Ok(0));
    mark("open-write");
    let writing = fs.open(c"d/f", OpenFlags::WRITE);
    mark("open-write-existing");
    let existing = fs.open(c"d/f", OpenFlags::WRITE_EXISTING);
    mark("open-read-write");
    let direct = fs.open(c"d/f", OpenFlags::READ_WRITE.directly(true));
    mark("rename");
    assert_eq!(fs.on_paths(Call::Rename(0), c"d/f", c"d/g"), ok);
    mark("list");
    assert_eq!(
        fs.call(&Call::List, Operands::path(c"d").receiving(&mut buffer)),
        Ok(1)
    );
    mark("mknod");
    assert_eq!(fs.on_path(Call::MKNOD, c"d/n"), ok);
    mark("sync");
    assert_eq!(fs.on_path(Call::Sync, c""), Ok(0));
    mark("unlink");
    assert_eq!(fs.on_path(Call::Unlink, c"d/g"), ok);
    assert_eq!(fs.on_path(Call::Unlink, c"d/n"), ok);
    mark("rmdir");
    assert_eq!(fs.on_path(Call::Rmdir, c"d"), ok);
    mark("failing");
    assert_eq!(fs.on_path(Call::MKDIR, c"no/d"), Err(Errno::ENOENT));
    mark("absolute");
    assert_eq!(fs.on_path(Call::MKDIR, c"/dev/null/d"), Err(Errno::ENOTDIR));
    // The operations of nothing.
    mark("null");
    let null = NullFs;
    assert_eq!(null.on_path(Call::MKDIR, c"d"), ok);
    let nothing = null.open(c"d/f", OpenFlags::CREATE_NEW);
    let nothing = nothing.expect("every file opens");
    assert_eq!(null.sending(Call::Write, nothing, &buffer), Ok(100));
    assert_eq!(null.on_file(Call::Fsync, nothing), ok);
    assert_eq!(null.close(nothing), Ok(()));
    assert_eq!(null.on_path(Call::Sync, c""), Ok(0));
    mark("end");

    for fd in [Ok(fd), writing, existing, direct] {
        assert_eq!(fs.close(fd.expect("it opened")), Ok(()));
    }
}

#[test]
fn links_and_attributes_are_one_call_each() {
    let Some(run) = traced(this_test!(), OPTIONS, each_attribute) else {
        return;
    };
    // Removes strace's details of times and of nested structures.
    let mut calls = marked_calls(&run.log);
    for call in &mut calls {
        if let Some(at) = call.find("{} /*").or(call.find("{}, f_")) {
            call.truncate(at);
        }
    }
    assert_eq!(
        calls,
        [
            r#"symlink: symlinkat("f", <top>, "s") = 0"#,
            r#"readlink: readlinkat(<top>, "s", "f", 100) = 1"#,
            r#"chmod: fchmodat(<top>, "f", 0600) = 0"#,
            r#"utimes: utimensat(<top>, "f", ["#,
            r#"access: faccessat(<top>, "f", R_OK) = 0"#,
            r#"lookup: statx(<top>, "f", AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, {}) = 0"#,
            r#"getattr: statx(<f>, "", AT_STATX_FORCE_SYNC|AT_EMPTY_PATH, STATX_BASIC_STATS, {}) = 0"#,
            r#"statfs: fstatfs(<f>, "#,
            r#"write-at: pwrite64(<f>, "xxxx"..., 100, 7) = 100"#,
            r#"read-at: pread64(<f>, "xxxx"..., 100, 7) = 100"#,
            // Without a file, as not every file system has user attributes.
            r#"xattr: fsetxattr(-1, "user"..., "v", 1, 0) = -1 EBADF (Bad file descriptor)"#,
            r#"xattr: fgetxattr(-1, "user"..., PTR, 100) = -1 EBADF (Bad file descriptor)"#,
            "xattr: flistxattr(-1, PTR, 100) = -1 EBADF (Bad file descriptor)",
            r#"xattr: fremovexattr(-1, "user"...) = -1 EBADF (Bad file descriptor)"#,
        ]
    );
}

fn each_attribute() {
    let temporary = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let top = temporary.path().join("top");
    std::fs::create_dir(&top).expect("a new name");
    let fs = PosixFs::open_directory(&top).expect("it was made");
    let fd = fs.open(c"f", OpenFlags::READ_WRITE);
    let fd = fd.expect("a new name");
    let mut buffer = [b'x'; 100];
    let ok = Ok(0);

    mark("symlink");
    assert_eq!(fs.on_paths(Call::Symlink, c"s", c"f"), ok);
    mark("readlink");
    assert_eq!(
        fs.call(&Call::Readlink, Operands::path(c"s").receiving(&mut buffer)),
        Ok(1)
    );
    mark("chmod");
    assert_eq!(fs.on_path(Call::Chmod(By::Path, 0o600), c"f"), ok);
    mark("utimes");
    assert_eq!(fs.on_path(Call::Utimes(By::Link, Some(5)), c"f"), ok);
    mark("access");
    assert_eq!(fs.on_path(Call::Access(READABLE), c"f"), ok);
    mark("lookup");
    assert_eq!(fs.on_path(Call::LOOKUP, c"f"), Ok(0));
    mark("getattr");
    assert_eq!(fs.on_file(Call::Getattr, fd), Ok(0));
    mark("statfs");
    assert!(
        fs.on_file(Call::Statfs(By::File), fd)
            .is_ok_and(|block| block > 0)
    );
    buffer.fill(b'x');
    mark("write-at");
    assert_eq!(fs.sending(Call::WriteAt(7), fd, &buffer), Ok(100));
    mark("read-at");
    assert_eq!(fs.receiving(Call::ReadAt(7), fd, &mut buffer), Ok(100));
    mark("xattr");
    let bad = Errno::EBADF;
    assert_eq!(
        fs.sending(Call::Setxattr(By::File, Some(c"user.a"), 0), -1, b"v"),
        Err(bad)
    );
    assert_eq!(
        fs.receiving(Call::Getxattr(By::File, Some(c"user.a")), -1, &mut buffer),
        Err(bad)
    );
    assert_eq!(
        fs.receiving(Call::Listxattr(By::File), -1, &mut buffer),
        Err(bad)
    );
    assert_eq!(
        fs.on_file(Call::Removexattr(By::File, Some(c"user.a")), -1),
        Err(bad)
    );
    mark("end");
    let metadata = std::fs::metadata(top.join("f")).expect("it is there");
    let second = std::time::Duration::from_secs(1);
    assert_eq!(metadata.len(), 107);
    assert!(
        metadata
            .accessed()
            .is_ok_and(|at| at >= std::time::UNIX_EPOCH + second * 5)
    );
    assert_eq!(fs.close(fd), Ok(()));
}

/// Calls with parameters that only traces use.
const OF_TRACES: &[Call] = &[
    Call::Stat(By::Path),
    Call::Stat(By::Link),
    Call::Stat(By::File),
    Call::Chmod(By::Path, 0o600),
    Call::Chmod(By::File, 0o600),
    Call::Chown(By::Path, u32::MAX, u32::MAX),
    Call::Chown(By::Link, u32::MAX, u32::MAX),
    Call::Chown(By::File, u32::MAX, u32::MAX),
    Call::Utimes(By::Path, None),
    Call::Utimes(By::File, None),
    Call::Truncate(By::Path, 7),
    Call::Truncate(By::File, 7),
    Call::Statfs(By::Path),
    Call::Statfs(By::File),
    Call::Setxattr(By::Path, None, 1),
    Call::Setxattr(By::Link, None, 1),
    Call::Setxattr(By::File, None, 1),
    Call::Getxattr(By::Path, None),
    Call::Getxattr(By::Link, None),
    Call::Getxattr(By::File, None),
    Call::Listxattr(By::Path),
    Call::Listxattr(By::Link),
    Call::Listxattr(By::File),
    Call::Removexattr(By::Path, None),
    Call::Removexattr(By::Link, None),
    Call::Removexattr(By::File, None),
    Call::Seek(3, 0),
    Call::Readdir,
    // To itself: nothing changes.
    Call::Rename(0),
    Call::Rename(2),
];

#[test]
fn a_call_by_a_path_a_link_or_a_file_is_the_one_that_its_name_says() {
    let Some(run) = traced(this_test!(), OPTIONS, of_traces) else {
        return;
    };
    let calls = marked_calls(&run.log);
    assert_eq!(calls.len(), 2 * OF_TRACES.len(), "{calls:#?}");
    for (call, line) in OF_TRACES.iter().chain(OF_TRACES).zip(calls) {
        let name = call.names();
        // Some C libraries read the attributes of a descriptor with this call.
        let other = name.replace("fstat", "newfstatat");
        let is = |name: &str| line.contains(&format!(": {name}("));
        assert!(is(name) || is(&other), "{call:?}: {line}");
        let by_descriptor = line.contains("/proc/self/fd/") || line.contains("\"/pro");
        assert!(line.starts_with("descriptor") || !by_descriptor, "{line}");
    }
}

fn of_traces() {
    let temporary = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    std::fs::create_dir(temporary.path().join("top")).expect("a new name");
    let parent = std::fs::File::open(temporary.path()).expect("it was made");
    let plain = PosixFs::below(&parent, "top").expect("it was made");
    let fd = plain.open(c"f", OpenFlags::READ_WRITE);
    let fd = fd.expect("a new name");
    let mut buffer = [b'x'; 100];
    let mut each = |fs: &PosixFs, from: &str| {
        for call in OF_TRACES {
            let path = fs.path(*call, b"f").expect("no byte 0");
            mark(from);
            let result = fs.call(
                call,
                Operands {
                    path: &path,
                    other: if matches!(call, Call::Rename(_)) {
                        c"f"
                    } else {
                        c"user.a"
                    },
                    fd,
                    data: Data::Into(&mut buffer),
                },
            );
            mark("end");
            let refused = matches!(result, Err(Errno::ENOENT | Errno::EBADF));
            assert!(!refused, "{call:?}: {result:?}");
        }
    };
    each(&plain, "descriptor");
    each(&plain.clone().entered(), "working directory");
    assert_eq!(plain.on_path(Call::Stat(By::Link), c"f"), Ok(7));
    assert_eq!(plain.close(fd), Ok(()));
}

/// Names of the engines that make a system call for each request.
const ONE_BY_ONE: [&str; 8] = [
    "psync",
    "sync",
    "vsync",
    "pvsync",
    "pvsync2",
    "splice",
    "falloc",
    "ftruncate",
];

#[test]
fn one_request_of_a_synchronous_engine_is_its_calls_and_no_more() {
    let Some(run) = traced(this_test!(), OPTIONS, || {
        ONE_BY_ONE.into_iter().for_each(each_transfer)
    }) else {
        return;
    };
    assert_eq!(
        marked_calls(&run.log),
        [
            r#"psync-write: pwrite64(<psync>, "xxxx"..., 4096, 8192) = 4096"#,
            r#"psync-read: pread64(<psync>, "xxxx"..., 4096, 8192) = 4096"#,
            "psync-fsync: fsync(<psync>) = 0",
            "psync-datasync: fdatasync(<psync>) = 0",
            "psync-trim: fallocate(<psync>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 8192, 4096) = 0",
            "sync-write: lseek(<sync>, 8192, SEEK_SET) = 8192",
            r#"sync-write: write(<sync>, "xxxx"..., 4096) = 4096"#,
            "sync-read: lseek(<sync>, 8192, SEEK_SET) = 8192",
            r#"sync-read: read(<sync>, "xxxx"..., 4096) = 4096"#,
            "sync-fsync: fsync(<sync>) = 0",
            "sync-datasync: fdatasync(<sync>) = 0",
            "sync-trim: fallocate(<sync>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 8192, 4096) = 0",
            "vsync-write: lseek(<vsync>, 8192, SEEK_SET) = 8192",
            "vsync-write: writev(<vsync>, [{}], 1) = 4096",
            "vsync-read: lseek(<vsync>, 8192, SEEK_SET) = 8192",
            "vsync-read: readv(<vsync>, [{}], 1) = 4096",
            "vsync-fsync: fsync(<vsync>) = 0",
            "vsync-datasync: fdatasync(<vsync>) = 0",
            "vsync-trim: fallocate(<vsync>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 8192, 4096) = 0",
            "pvsync-write: pwritev(<pvsync>, [{}], 1, 8192) = 4096",
            "pvsync-read: preadv(<pvsync>, [{}], 1, 8192) = 4096",
            "pvsync-fsync: fsync(<pvsync>) = 0",
            "pvsync-datasync: fdatasync(<pvsync>) = 0",
            "pvsync-trim: fallocate(<pvsync>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 8192, 4096) = 0",
            "pvsync2-write: pwritev2(<pvsync2>, [{}], 1, 8192, 0) = 4096",
            "pvsync2-read: preadv2(<pvsync2>, [{}], 1, 8192, 0) = 4096",
            "pvsync2-fsync: fsync(<pvsync2>) = 0",
            "pvsync2-datasync: fdatasync(<pvsync2>) = 0",
            "pvsync2-trim: fallocate(<pvsync2>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 8192, 4096) = 0",
            "splice-write: vmsplice(<pipe>, [{}], 1, SPLICE_F_NONBLOCK) = 4096",
            "splice-write: splice(<pipe>, NULL, <splice>, [8192], 4096, 0) = 4096",
            "splice-read: splice(<splice>, [8192], <pipe>, NULL, 4096, 0) = 4096",
            "splice-read: vmsplice(<pipe>, [{}], 1, 0) = 4096",
            "splice-fsync: fsync(<splice>) = 0",
            "splice-datasync: fdatasync(<splice>) = 0",
            "splice-trim: fallocate(<splice>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 8192, 4096) = 0",
            "falloc-write: fallocate(<falloc>, 0, 8192, 4096) = 0",
            "falloc-read: fallocate(<falloc>, FALLOC_FL_KEEP_SIZE, 8192, 4096) = 0",
            "falloc-trim: fallocate(<falloc>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 8192, 4096) = 0",
            "ftruncate-write: ftruncate(<ftruncate>, 8192) = 0",
        ]
    );
}

fn synchronous(name: &str) -> Box<dyn rbench_sys::Engine> {
    let config = EngineConfig::new(1, 4096);
    (find(name).expect("it is in the table").make)(config).expect("it is always permitted")
}

/// A new file of three blocks in the directory of the test.
fn three_blocks(name: &str) -> std::fs::File {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(place().join(name))
        .expect("a new name");
    file.set_len(3 * 4096).expect("the file is ours");
    file
}

fn one(engine: &mut dyn rbench_sys::Engine, file: &impl AsRawFd, transfer: Transfer, offset: u64) {
    let mut done = Vec::with_capacity(1);
    engine.submit(0, request(transfer, file, offset, BLOCK));
    engine.flush().expect("flushing works");
    engine.wait(&mut done).expect("waiting works");
    assert_eq!(done.len(), 1);
}

/// Submits one request of each kind for the third block of a file.
fn each_transfer(name: &str) {
    let mut engine = synchronous(name);
    let file = three_blocks(name);
    engine.buffer(0).fill(b'x');
    for (kind, transfer) in [
        ("write", Transfer::Write),
        ("read", Transfer::Read),
        ("fsync", Transfer::Fsync),
        ("datasync", Transfer::DataSync),
        ("trim", Transfer::Trim),
    ] {
        mark(&format!("{name}-{kind}"));
        one(&mut *engine, &file, transfer, 8192);
        mark("end");
    }
}

#[test]
fn sync_seeks_in_an_attached_file_only_where_it_has_to() {
    let work = || {
        let mut engine = synchronous("sync");
        let file = three_blocks("f");
        engine.attach(file.as_raw_fd(), None);
        for offset in [0, 4096, 4096, 8192] {
            mark(&format!("at-{offset}"));
            one(&mut *engine, &file, Transfer::Read, offset);
        }
        mark("end");
    };
    let options = [OPTIONS, &["-e", "trace=lseek,read,access"]].concat();
    let Some(run) = traced(this_test!(), &options, work) else {
        return;
    };
    let calls: Vec<String> = marked_calls(&run.log)
        .into_iter()
        .map(|line| line.split_once('(').expect("it is a call").0.to_owned())
        .collect();
    let expect = [
        "at-0: lseek",
        "at-0: read",
        "at-4096: read",
        "at-4096: lseek",
        "at-4096: read",
        "at-8192: read",
    ];
    assert_eq!(calls, expect);
}

#[test]
fn mmap_maps_an_attached_file_once_and_syncs_the_mapping_and_the_file() {
    let work = || {
        let mut engine = synchronous("mmap");
        let file = three_blocks("f");
        engine.attach(file.as_raw_fd(), Some(Advice::Random));
        mark("write");
        one(&mut *engine, &file, Transfer::Write, 4096);
        mark("read");
        one(&mut *engine, &file, Transfer::Read, 8192);
        mark("fsync");
        one(&mut *engine, &file, Transfer::Fsync, 0);
        mark("datasync");
        one(&mut *engine, &file, Transfer::DataSync, 0);
        mark("detach");
        engine.detach(file.as_raw_fd());
        mark("end");
    };
    let Some(run) = traced(this_test!(), OPTIONS, work) else {
        return;
    };
    assert_eq!(
        marked_calls(&run.log),
        [
            "write: mmap(NULL, 12288, PROT_READ|PROT_WRITE, MAP_SHARED, <f>, 0) = PTR",
            "write: madvise(PTR, 12288, MADV_RANDOM) = 0",
            "fsync: msync(PTR, 12288, MS_SYNC) = 0",
            "fsync: fsync(<f>) = 0",
            "datasync: msync(PTR, 12288, MS_SYNC) = 0",
            "datasync: fdatasync(<f>) = 0",
            "detach: munmap(PTR, 12288) = 0",
        ]
    );
}

#[test]
fn a_partial_transfer_is_continued_where_it_ended() {
    let test = this_test!();
    if is_child(test) {
        return ONE_BY_ONE.into_iter().for_each(each_transfer);
    }
    // (engine, its calls, arguments of the first call and of the call after its partial
    // transfer)
    let check = |name: &str, calls: [&str; 2], expect: [&str; 2]| {
        let path = format!("--trace-path={{place}}/{name}");
        let inject = format!("inject={},{}:retval=1000:when=1", calls[0], calls[1]);
        let options = [OPTIONS, &[&path, "-e", &inject]].concat();
        let Some(run) = traced(test, &options, || ()) else {
            return;
        };
        // This log only has calls for the file, hence no marks.
        let lines: Vec<String> = whole_lines(&run.log)
            .into_iter()
            .map(|(_, line)| line)
            .filter(|line| {
                calls
                    .iter()
                    .any(|call| line.starts_with(&format!("{call}(")))
            })
            .collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        for (line, expect) in lines.iter().zip([expect, expect].concat()) {
            assert!(line.contains(expect), "{name}: {line} against {expect}");
        }
    };
    let vectors = ["iov_len=4096}], 1, 8192", "iov_len=3096}], 1, 9192"];
    check(
        "psync",
        ["pread64", "pwrite64"],
        ["4096, 8192)", "3096, 9192)"],
    );
    check("sync", ["read", "write"], ["4096)", "3096)"]);
    check(
        "vsync",
        ["readv", "writev"],
        ["iov_len=4096}], 1)", "iov_len=3096}], 1)"],
    );
    check("pvsync", ["preadv", "pwritev"], vectors);
    check("pvsync2", ["preadv2", "pwritev2"], vectors);
}

#[test]
fn a_batch_of_requests_is_one_call() {
    let Some(run) = traced(this_test!(), OPTIONS, || {
        ["io_uring", "libaio"].into_iter().for_each(batches)
    }) else {
        return;
    };
    let calls = marked_calls(&run.log);
    let (rings, rest): (Vec<_>, Vec<_>) = calls.iter().partition(|c| c.starts_with("io_uring"));
    if run.printed.contains("io_uring is not permitted") {
        skip("io_uring is not permitted here");
    } else {
        let [flush, wait] = rings[..] else {
            panic!("two calls, not {rings:?}")
        };
        let start = "io_uring_enter(<anon_inode:[io_uring]>, 8,";
        assert!(
            flush.starts_with(&format!("io_uring-flush: {start} 0, ")),
            "{flush}"
        );
        assert!(
            wait.starts_with(&format!("io_uring-wait: {start} 1, ")),
            "{wait}"
        );
    }
    let [flush, handed_over, waited] = rest[..] else {
        panic!("three calls, not {rest:?}")
    };
    let checks = [
        (flush, "libaio-flush: io_submit(", ", 8, ["),
        (handed_over, "libaio-wait: io_submit(", ", 8, ["),
        (waited, "libaio-wait: io_getevents(", ", 1, 16, ["),
    ];
    for (line, start, batch) in checks {
        assert!(line.starts_with(start) && line.contains(batch), "{line}");
    }
}

/// Submits eight requests and flushes them; then eight that are waited for.
fn batches(name: &str) {
    let info = find(name).expect("it is in the table");
    let engine = (info.make)(EngineConfig::new(16, 4096));
    let Ok(mut engine) = engine else {
        println!("{name} is not permitted");
        return;
    };
    let file = tempfile::tempfile_in("/dev/shm").expect("a temporary file");
    file.set_len(1 << 20).expect("the file is ours");
    let submit = |engine: &mut dyn rbench_sys::Engine, slots: std::ops::Range<usize>| {
        for slot in slots {
            engine.submit(slot, read_at(&file, (slot * BLOCK) as u64, BLOCK));
        }
    };
    mark(&format!("{name}-flush"));
    submit(&mut *engine, 0..8);
    engine.flush().expect("flushing works");
    mark(&format!("{name}-wait"));
    submit(&mut *engine, 8..16);
    let mut done = Vec::with_capacity(16);
    engine.wait(&mut done).expect("waiting works");
    mark("end");
    while done.len() < 16 {
        engine.wait(&mut done).expect("waiting works");
    }
}

#[test]
fn one_request_of_an_engine_of_names_is_one_call_and_fails_as_that_does() {
    let Some(run) = traced(this_test!(), OPTIONS, names) else {
        return;
    };
    let missing = |call: &str| format!("missing-{call} = -1 ENOENT (No such file or directory)");
    let calls = marked_calls(&run.log);
    let names = calls.iter().map(|call| without_place(call));
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            r#"filecreate: openat(AT_FDCWD, "f", O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC, 0600) = <f>"#,
            r#"filestat: newfstatat(AT_FDCWD, "f", {}, 0) = 0"#,
            r#"lstat: newfstatat(AT_FDCWD, "f", {}, AT_SYMLINK_NOFOLLOW) = 0"#,
            r#"statx: statx(AT_FDCWD, "f", AT_STATX_SYNC_AS_STAT, STATX_ALL, {}) = 0"#,
            r#"filedelete: unlinkat(AT_FDCWD, "f", 0) = 0"#,
            r#"dircreate: mkdirat(AT_FDCWD, "f", 0700) = 0"#,
            r#"dirstat: newfstatat(AT_FDCWD, "f", {}, 0) = 0"#,
            r#"again-dircreate: mkdirat(AT_FDCWD, "f", 0700) = -1 EEXIST (File exists)"#,
            r#"dirdelete: unlinkat(AT_FDCWD, "f", AT_REMOVEDIR) = 0"#,
            &missing(r#"filestat: newfstatat(AT_FDCWD, "f", PTR, 0)"#),
            &missing(r#"filedelete: unlinkat(AT_FDCWD, "f", 0)"#),
            &missing(r#"dirdelete: unlinkat(AT_FDCWD, "f", AT_REMOVEDIR)"#),
        ]
    );
}

/// A call without the path of the working directory, which differs in every run.
fn without_place(call: &str) -> String {
    match call.split_once("AT_FDCWD<") {
        Some((before, rest)) => {
            let (_, after) = rest.split_once('>').expect("it is closed");
            format!("{before}AT_FDCWD{after}")
        }
        None => call.to_owned(),
    }
}

/// Submits one request to each engine of names, in their order.
fn names() {
    std::env::set_current_dir(place()).expect("the place is there");
    let ok = Ok(4096);
    let missing = Err(Errno::ENOENT);
    let (link, fields) = (Call::Stat(By::Link), Call::STATX_ALL);
    let statx = Call::Lookup(By::Path, fields);
    for (label, engine, stat, expect) in [
        ("filecreate", "filecreate", None, ok),
        ("filestat", "filestat", None, ok),
        ("lstat", "filestat", Some(link), ok),
        ("statx", "dirstat", Some(statx), ok),
        ("filedelete", "filedelete", None, ok),
        ("dircreate", "dircreate", None, ok),
        ("dirstat", "dirstat", None, ok),
        ("again-dircreate", "dircreate", None, Err(Errno::EEXIST)),
        ("dirdelete", "dirdelete", None, ok),
        ("missing-filestat", "filestat", None, missing),
        ("missing-filedelete", "filedelete", None, missing),
        ("missing-dirdelete", "dirdelete", None, missing),
    ] {
        let mut config = EngineConfig::new(1, 4096);
        config.options.stat_type = stat;
        let info = find(engine).expect("it is in the table");
        let mut engine = (info.make)(config).expect("it needs nothing");
        let paths = ["other", "f"].map(std::path::Path::new);
        engine
            .name_files(&mut paths.into_iter())
            .expect("plain names");
        // The second one of the names.
        let read = read_at(&1, 0, BLOCK);
        let mut room = Vec::with_capacity(1);
        mark(label);
        let mut done = Ok(Ok(0));
        let allocated = allocations::calls(|| done = engine.perform(read, &mut room));
        mark("end");
        assert_eq!(allocated, 0, "{label}");
        assert_eq!(done, Ok(expect), "{label}");
        let opened = engine.take_opened();
        assert_eq!(opened.is_some(), label == "filecreate", "{label}");
        assert!(engine.take_opened().is_none(), "it is given away once");
        engine.submit(0, request(Transfer::Fsync, &1, 0, BLOCK));
        engine.wait(&mut room).expect("nothing can fail");
        let synced = room.pop().map(|done| done.result);
        assert_eq!(synced, Some(Err(Errno::EINVAL)), "{label}: no data");
        assert_eq!(engine.counts().submits[1], 2, "{label}");
        let odd = std::path::Path::new("a\0b");
        let named = engine.name_files(&mut std::iter::once(odd));
        assert_eq!(named, Err(Errno::EINVAL));
    }
}
