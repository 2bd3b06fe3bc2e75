use std::ffi::CString;
use std::os::fd::RawFd;

use proptest::prelude::*;
use rbench_core::OpenFlags;
use rbench_core::operations::READABLE;

use super::*;
use crate::fs::NO_FILE;
use crate::posix::PosixFs;

#[test]
fn a_sequence_of_operations_reads_as_lines() {
    let fs = TraceFs::default();
    let mut buffer = [7; 8192];
    fs.on_path(Call::MKDIR, c"tree.0.0").expect("a new name");
    fs.on_path(Call::MKDIR, c"tree.0.0/dir.0.1")
        .expect("a new name");
    let fd = fs
        .open(c"tree.0.0/f", OpenFlags::CREATE_NEW)
        .expect("a new name");
    assert_eq!(fs.sending(Call::Write, fd, &buffer[..5000]), Ok(5000));
    assert_eq!(fs.on_file(Call::Fsync, fd), Ok(0));
    assert_eq!(fs.close(fd), Ok(()));
    let fd = fs
        .open(c"tree.0.0/f", OpenFlags::READ.directly(true))
        .expect("it was made");
    assert_eq!(fs.receiving(Call::Read, fd, &mut buffer), Ok(5000));
    assert_eq!(buffer[4999..5001], [0, 7]);
    assert_eq!(fs.receiving(Call::Read, fd, &mut buffer), Ok(0));
    let cut = fs.on_file(Call::Truncate(By::File, 9), fd);
    assert_eq!(cut, Err(Errno::EINVAL));
    assert_eq!(fs.close(fd), Ok(()));
    assert_eq!(fs.on_path(Call::Stat(By::Link), c"tree.0.0/f"), Ok(5000));
    assert_eq!(fs.on_paths(Call::Rename(0), c"tree.0.0", c"t"), Ok(0));
    assert_eq!(fs.on_path(Call::List, c"t"), Ok(2));
    assert_eq!(fs.on_path(Call::Unlink, c"t/f"), Ok(0));
    assert_eq!(fs.on_path(Call::Rmdir, c"t"), Err(Errno::ENOTEMPTY));
    assert_eq!(
        fs.lines(),
        [
            "mkdir tree.0.0",
            "mkdir tree.0.0/dir.0.1",
            "open tree.0.0/f create-new",
            "write tree.0.0/f 5000",
            "fsync tree.0.0/f",
            "close tree.0.0/f",
            "open tree.0.0/f read direct",
            "read tree.0.0/f 8192",
            "read tree.0.0/f 8192",
            "truncate tree.0.0/f 9 = EINVAL",
            "close tree.0.0/f",
            "stat tree.0.0/f",
            "rename tree.0.0 -> t",
            "list t",
            "unlink t/f",
            "rmdir t = ENOTEMPTY",
        ]
    );
}

#[test]
fn absolute_paths_are_recorded_as_given_and_start_from_directories_that_are_told() {
    let fs = TraceFs::with_directories(&["/mnt/x", "/mnt/y", "here"]);
    let mkdir = |path| fs.on_path(Call::MKDIR, path);
    let file = c"/mnt/x/test-dir.0-0/mdtest_tree.0/file";
    assert_eq!(mkdir(c"/mnt/x/test-dir.0-0"), Ok(0));
    assert_eq!(mkdir(c"/mnt/x//test-dir.0-0/mdtest_tree.0/"), Ok(0));
    assert_eq!(fs.on_path(Call::MKNOD, file), Ok(0));
    let fd = fs.open(file, OpenFlags::WRITE_EXISTING);
    assert_eq!(fs.close(fd.expect("it was made")), Ok(()));
    assert_eq!(fs.on_path(Call::Sync, c""), Ok(0));
    assert_eq!(mkdir(c"/elsewhere/d"), Err(Errno::ENOENT));
    assert_eq!(mkdir(c"mnt/x/d"), Err(Errno::ENOENT), "it is relative");
    assert_eq!(
        fs.lines(),
        [
            "mkdir /mnt/x/test-dir.0-0",
            "mkdir /mnt/x//test-dir.0-0/mdtest_tree.0/",
            "mknod /mnt/x/test-dir.0-0/mdtest_tree.0/file",
            "open /mnt/x/test-dir.0-0/mdtest_tree.0/file write-existing",
            "close /mnt/x/test-dir.0-0/mdtest_tree.0/file",
            "sync",
            "mkdir /elsewhere/d = ENOENT",
            "mkdir mnt/x/d = ENOENT",
        ]
    );
    let entries = |path| fs.on_path(Call::List, path);
    assert_eq!(entries(c"/"), Ok(1));
    assert_eq!(entries(c"/mnt"), Ok(2));
    assert_eq!(entries(c"."), Ok(1));
    assert_eq!(entries(c"here"), Ok(0));
    // Linux may give this error to the root user.
    assert_eq!(fs.on_path(Call::Rmdir, c"/"), Err(Errno::EBUSY));
    let moved = fs.on_paths(Call::Rename(0), c"/", c"/mnt/z");
    assert_eq!(moved, Err(Errno::EBUSY));
    assert_eq!(mkdir(c"/"), Err(Errno::EEXIST));
}

#[test]
fn a_fork_shares_the_tree_and_has_a_log_of_its_own() {
    let one = TraceFs::with_directories(&["/mnt/x"]);
    assert_eq!(one.on_path(Call::MKDIR, c"/mnt/x/a"), Ok(0));
    let two = one.fork();
    assert_eq!(two.lines(), [""; 0]);
    assert_eq!(two.on_path(Call::MKDIR, c"/mnt/x/a/b"), Ok(0));
    assert_eq!(one.on_path(Call::Rmdir, c"/mnt/x/a"), Err(Errno::ENOTEMPTY));
    assert_eq!(
        one.lines(),
        ["mkdir /mnt/x/a", "rmdir /mnt/x/a = ENOTEMPTY"]
    );
    assert_eq!(two.lines(), ["mkdir /mnt/x/a/b"]);
    two.clear();
    assert_eq!(one.lines().len(), 2);
}

#[test]
fn recorders_can_share_a_log_without_sharing_a_tree() {
    let log = Log::default();
    let [a, b] = [&log, &log].map(|log| TraceFs::with_log(Arc::clone(log)));
    assert_eq!(a.on_path(Call::MKDIR, c"d"), Ok(0));
    assert_eq!(a.clone().on_path(Call::MKDIR, c"d"), Err(Errno::EEXIST));
    assert_eq!(b.on_path(Call::MKDIR, c"d"), Ok(0));
    assert_eq!(b.lines(), ["mkdir d", "mkdir d = EEXIST", "mkdir d"]);
    a.clear();
    assert_eq!(b.events(), []);
}

#[test]
fn extended_attributes_are_those_of_the_file() {
    let fs = TraceFs::default();
    let mut buffer = [0; 40];
    let fd = fs.open(c"f", OpenFlags::CREATE_NEW);
    let fd = fd.expect("a new name");
    let set = |name, value: &[u8]| fs.sending(Call::Setxattr(By::File, Some(name), 0), fd, value);
    let get = |into: &mut [u8]| fs.receiving(Call::Getxattr(By::File, Some(c"user.b")), fd, into);
    let list = |into: &mut [u8]| fs.receiving(Call::Listxattr(By::File), fd, into);
    let remove = || fs.on_file(Call::Removexattr(By::File, Some(c"user.a")), fd);
    assert_eq!(list(&mut buffer), Ok(0));
    assert_eq!(set(c"user.b", b"value"), Ok(0));
    assert_eq!(set(c"user.a", b""), Ok(0));
    assert_eq!(get(&mut buffer), Ok(5));
    assert_eq!(&buffer[..6], b"value\0");
    assert_eq!(get(&mut []), Err(Errno::ERANGE));
    assert_eq!(list(&mut buffer), Ok(14));
    assert_eq!(&buffer[..14], b"user.a\0user.b\0");
    assert_eq!(remove(), Ok(0));
    assert_eq!(remove(), Err(Errno::ENODATA));
    assert_eq!(fs.sending(Call::WriteAt(7), fd, b"12"), Ok(2));
    assert_eq!(fs.on_path(Call::Chmod(By::Path, 0o600), c"f"), Ok(0));
    assert_eq!(fs.on_path(Call::Utimes(By::Link, Some(1)), c"f"), Ok(0));
    assert_eq!(fs.on_paths(Call::Symlink, c"s", c"f"), Ok(0));
    let told = fs.lines();
    assert_eq!(
        told[told.len() - 6..],
        [
            "removexattr f user.a",
            "removexattr f user.a = ENODATA",
            "write f 2 at 7",
            "chmod f 600",
            "utimes f 1",
            "symlink s -> f",
        ]
    );
}

/// A step of a random program. Files are named by their place among those that are open.
#[derive(Debug, Clone)]
struct Step {
    call: Call,
    path: &'static str,
    other: &'static str,
    file: usize,
    /// Bytes of data.
    length: usize,
}

fn path() -> impl Strategy<Value = &'static str> {
    // `a-` sorts between `a` and `a/…`.
    prop::sample::select(vec![
        "a", "b", "a-", "a/a", "a/b", "a-/b", "b/a", "a/a/a", "./b", "",
    ])
}

fn call() -> impl Strategy<Value = Call> {
    let mode = prop::sample::select(vec![
        OpenFlags::READ,
        OpenFlags::CREATE_NEW,
        OpenFlags::WRITE,
        OpenFlags::WRITE_EXISTING,
        OpenFlags::READ_WRITE,
    ]);
    let once = [
        Call::Rmdir,
        Call::Stat(By::Link),
        Call::List,
        Call::Close,
        Call::MKNOD,
        Call::Unlink,
        Call::Fsync,
        Call::Readlink,
        Call::Chmod(By::Path, 0o700),
        Call::Utimes(By::Link, Some(1_000_000)),
        Call::Access(READABLE),
        Call::LOOKUP,
        Call::Getattr,
    ];
    let twice = [
        Call::Rename(0),
        Call::Link,
        Call::Write,
        Call::Read,
        Call::Symlink,
    ];
    prop_oneof![
        3 => Just(Call::MKDIR),
        13 => prop::sample::select(once.to_vec()),
        10 => prop::sample::select(twice.to_vec()),
        3 => mode.prop_map(Call::Open),
        1 => (0..9000_u64).prop_map(|length| Call::Truncate(By::File, length)),
        1 => (0..9000_u64).prop_map(Call::WriteAt),
        1 => (0..9000_u64).prop_map(Call::ReadAt),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let all = (call(), path(), path(), 0..4_usize, 0..9000_usize);
    all.prop_map(|(call, path, other, file, length)| Step {
        call,
        path,
        other,
        file,
        length,
    })
}

/// The path of `path`, unless it is empty, in the directory `top`: absolute
/// where that is.
fn below(top: &str, path: &str) -> String {
    if top.is_empty() || path.is_empty() {
        return path.to_owned();
    }
    format!("{top}/{path}")
}

/// Runs a program below `top` and writes down every answer.
fn run(fs: &dyn Fs, top: &str, steps: &[Step], is_directory: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut buffer = vec![0; 9000];
    let mut files: Vec<RawFd> = Vec::new();
    let mut answers = Vec::new();
    let c = |path: &str| CString::new(below(top, path)).expect("no NUL in it");
    for step in steps {
        let (call, fd) = (step.call, files.get(step.file).copied());
        let has_size = !is_directory(step.path);
        if call.needs_open() && fd.is_none() || call == Call::Open(OpenFlags::READ) && !has_size {
            // The one known difference: a directory opens for reading.
            continue;
        }
        let length = match call {
            Call::List | Call::Readlink => buffer.len(),
            _ => step.length,
        };
        let other = match call {
            // Symbolic links lead to what has no name.
            Call::Symlink => c"no/where".to_owned(),
            _ => c(step.other),
        };
        let path = c(step.path);
        let on = Operands {
            fd: fd.unwrap_or(NO_FILE),
            ..Operands::paths(&path, &other)
        };
        let mut answer = fs.call(&call, on.receiving(&mut buffer[..length]));
        match (call, answer) {
            (Call::Open(_), Ok(fd)) => {
                files.push(fd as RawFd);
                answer = Ok(0);
            }
            (Call::Close, _) => drop(files.remove(step.file)),
            // The size of a directory is the file system's own business.
            (Call::Stat(_) | Call::LOOKUP, Ok(_)) if !has_size => answer = Ok(0),
            _ => {}
        }
        let target = match (call, answer) {
            (Call::Readlink, Ok(length)) => &buffer[..length as usize],
            _ => &[],
        };
        answers.push(format!("{step:?}: {answer:?} {target:?}"));
    }
    for fd in files {
        answers.push(format!("close: {:?}", fs.close(fd)));
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_model_answers_as_linux_does(
        steps in prop::collection::vec(step(), 1..60),
        absolute: bool,
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let posix = PosixFs::open_directory(directory.path()).expect("it exists");
        let top = directory.path().to_str().expect("the path is text");
        let trace = TraceFs::with_directories(&[top]);
        let top = if absolute { top } else { "" };
        let expect = run(&posix, top, &steps, &|path| {
            !path.is_empty() && directory.path().join(path).is_dir()
        });
        let told = run(&trace, top, &steps, &|path| {
            // `list` on a clone would be recorded: ask the model itself.
            lock(&trace.model).list(&below(top, path)).is_ok()
        });
        prop_assert_eq!(told, expect);
    }
}
