//! strace looks on: every method makes the system calls that its
//! documentation names, and no others.

use std::collections::HashMap;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use rbench_sys::engine::find;
use rbench_sys::{EngineConfig, Fs, NullFs, OpenMode, PosixFs, Request, Transfer};

use crate::support::{child_under_strace, is_child, place, skip};

/// The calls after [`mark`] belong to `name`.
const MARK: &str = "/rbench-mark/";

/// Leaves a call in the trace that names what comes.
fn mark(name: &str) {
    let path = format!("{MARK}{name}");
    assert_eq!(access(path.as_str(), AccessFlags::F_OK), Err(Errno::ENOENT));
}

/// What strace wrote, each call in one line behind the number of its thread:
/// calls during which another thread was heard of are put together again.
fn whole_lines(log: &str) -> Vec<(&str, String)> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut lines = Vec::new();
    for (thread, line) in log.lines().filter_map(|line| line.split_once(' ')) {
        if let Some(start) = line.strip_suffix("<unfinished ...>") {
            begun.insert(thread, start);
        } else if let Some((_, end)) = line.split_once(" resumed>") {
            let start = begun.remove(thread).expect("it had begun");
            lines.push((thread, format!("{start}{end}")));
        } else {
            lines.push((thread, line.to_owned()));
        }
    }
    lines
}

/// The calls of the marking thread, one line each behind the name of the mark
/// in front of it: `mkdir: mkdirat(<d>, "x", 0775) = 0`.
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

/// A line without what changes from run to run: `3</tmp/x/d>` becomes `<d>`,
/// an address `PTR`, a structure `{}`, and blanks are single.
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
    const TEST: &str = "system_calls::each_method_of_posix_fs_makes_exactly_its_calls";
    if is_child(TEST) {
        return each_method();
    }
    let Some(run) = child_under_strace(TEST, OPTIONS) else {
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
    let ok = Ok(());

    mark("mkdir");
    assert_eq!(fs.mkdir(c"d"), ok);
    mark("create-new");
    let fd = fs
        .open(c"d/f", OpenMode::CreateNew, false)
        .expect("a new name");
    mark("write");
    assert_eq!(fs.write(fd, &buffer), Ok(100));
    mark("fsync");
    assert_eq!(fs.fsync(fd), ok);
    mark("truncate");
    assert_eq!(fs.truncate(fd, 50), ok);
    mark("close");
    assert_eq!(fs.close(fd), ok);
    mark("stat");
    assert_eq!(fs.stat(c"d/f"), Ok(50));
    mark("open");
    let fd = fs.open(c"d/f", OpenMode::Read, false).expect("it is there");
    mark("read");
    assert_eq!(fs.read(fd, &mut buffer), Ok(50));
    assert_eq!(fs.read(fd, &mut buffer), Ok(0));
    mark("open-write");
    let writing = fs.open(c"d/f", OpenMode::Write, false);
    mark("open-write-existing");
    let existing = fs.open(c"d/f", OpenMode::WriteExisting, false);
    mark("open-read-write");
    let direct = fs.open(c"d/f", OpenMode::ReadWrite, true);
    mark("rename");
    assert_eq!(fs.rename(c"d/f", c"d/g"), ok);
    mark("list");
    assert_eq!(fs.list(c"d", &mut buffer), Ok(1));
    mark("mknod");
    assert_eq!(fs.mknod(c"d/n"), ok);
    mark("sync");
    fs.sync();
    mark("unlink");
    assert_eq!(fs.unlink(c"d/g"), ok);
    assert_eq!(fs.unlink(c"d/n"), ok);
    mark("rmdir");
    assert_eq!(fs.rmdir(c"d"), ok);
    mark("failing");
    assert_eq!(fs.mkdir(c"no/d"), Err(Errno::ENOENT));
    mark("absolute");
    assert_eq!(fs.mkdir(c"/dev/null/d"), Err(Errno::ENOTDIR));
    // The operations of nothing.
    mark("null");
    let null = NullFs;
    assert_eq!(null.mkdir(c"d"), ok);
    let nothing = null.open(c"d/f", OpenMode::CreateNew, false);
    let nothing = nothing.expect("every file opens");
    assert_eq!(null.write(nothing, &buffer), Ok(100));
    assert_eq!(null.fsync(nothing), ok);
    assert_eq!(null.close(nothing), ok);
    null.sync();
    mark("end");

    for fd in [Ok(fd), writing, existing, direct] {
        assert_eq!(fs.close(fd.expect("it opened")), ok);
    }
}

#[test]
fn one_request_of_psync_is_one_call() {
    const TEST: &str = "system_calls::one_request_of_psync_is_one_call";
    if is_child(TEST) {
        return three_requests();
    }
    let Some(run) = child_under_strace(TEST, OPTIONS) else {
        return;
    };
    assert_eq!(
        marked_calls(&run.log),
        [
            r#"write: pwrite64(<f>, "xxxx"..., 4096, 8192) = 4096"#,
            r#"read: pread64(<f>, "xxxx"..., 4096, 8192) = 4096"#,
            "fsync: fsync(<f>) = 0",
        ]
    );
}

fn three_requests() {
    let info = find("psync").expect("it is in the table");
    let mut engine = (info.make)(EngineConfig {
        depth: 1,
        block: 4096,
    })
    .expect("it is always permitted");
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(place().join("f"))
        .expect("a new name");
    let mut done = Vec::with_capacity(1);
    engine.buffer(0).fill(b'x');
    for (name, transfer) in [
        ("write", Transfer::Write),
        ("read", Transfer::Read),
        ("fsync", Transfer::Fsync),
    ] {
        mark(name);
        engine.submit(
            0,
            Request {
                transfer,
                fd: file.as_raw_fd(),
                offset: 8192,
                length: 4096,
                at: 0,
            },
        );
        engine.flush().expect("flushing works");
        engine.wait(&mut done).expect("waiting works");
        mark("end");
    }
    assert_eq!(done.len(), 3);
}

#[test]
fn a_partial_transfer_is_continued_where_it_ended() {
    const TEST: &str = "system_calls::a_partial_transfer_is_continued_where_it_ended";
    if is_child(TEST) {
        return three_requests();
    }
    let options = [
        OPTIONS,
        &["--trace-path={place}/f"],
        &["-e", "inject=pread64,pwrite64:retval=1000:when=1"],
    ]
    .concat();
    let Some(run) = child_under_strace(TEST, &options) else {
        return;
    };
    // Only calls for the file are in this log, hence no marks.
    let calls: Vec<String> = whole_lines(&run.log)
        .into_iter()
        .map(|(_, line)| line)
        .filter(|line| line.contains("pread64") || line.contains("pwrite64"))
        .collect();
    let expect = [
        "4096, 8192) = 1000 (INJECTED)",
        "3096, 9192) = 3096",
        "4096, 8192) = 1000 (INJECTED)",
        "3096, 9192) = 3096",
    ];
    assert_eq!(calls.len(), expect.len(), "{calls:?}");
    for (call, expect) in calls.iter().zip(expect) {
        assert!(plain(call).ends_with(expect), "{call} against {expect}");
    }
}

#[test]
fn a_batch_of_io_uring_is_one_call() {
    const TEST: &str = "system_calls::a_batch_of_io_uring_is_one_call";
    if is_child(TEST) {
        return batches();
    }
    let Some(run) = child_under_strace(TEST, OPTIONS) else {
        return;
    };
    if run.printed.contains("not permitted") {
        return skip("io_uring is not permitted here");
    }
    let calls = marked_calls(&run.log);
    let [flush, wait] = &calls[..] else {
        panic!("two calls, not {calls:?}")
    };
    let start = "io_uring_enter(<anon_inode:[io_uring]>, 8,";
    assert!(flush.starts_with(&format!("flush: {start} 0, ")), "{flush}");
    assert!(wait.starts_with(&format!("wait: {start} 1, ")), "{wait}");
}

/// Submits eight requests and flushes them; then eight that are waited for.
fn batches() {
    let info = find("io_uring").expect("it is in the table");
    let made = (info.make)(EngineConfig {
        depth: 16,
        block: 4096,
    });
    let Ok(mut engine) = made else {
        println!("not permitted");
        return;
    };
    let file = tempfile::tempfile_in("/dev/shm").expect("a temporary file");
    file.set_len(1 << 20).expect("the file is ours");
    let submit = |engine: &mut dyn rbench_sys::Engine, slots: std::ops::Range<usize>| {
        for slot in slots {
            engine.submit(
                slot,
                Request {
                    transfer: Transfer::Read,
                    fd: file.as_raw_fd(),
                    offset: slot as u64 * 4096,
                    length: 4096,
                    at: 0,
                },
            );
        }
    };
    mark("flush");
    submit(&mut *engine, 0..8);
    engine.flush().expect("flushing works");
    mark("wait");
    submit(&mut *engine, 8..16);
    let mut done = Vec::with_capacity(16);
    engine.wait(&mut done).expect("waiting works");
    mark("end");
    while done.len() < 16 {
        engine.wait(&mut done).expect("waiting works");
    }
}
