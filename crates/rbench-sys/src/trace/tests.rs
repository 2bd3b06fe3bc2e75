use std::ffi::CString;
use std::os::fd::RawFd;

use proptest::prelude::*;

use super::*;
use crate::posix::PosixFs;

#[test]
fn a_sequence_of_operations_reads_as_lines() {
    let fs = TraceFs::default();
    let mut buffer = [7; 8192];
    fs.mkdir(c"tree.0.0").expect("a new name");
    fs.mkdir(c"tree.0.0/dir.0.1").expect("a new name");
    let fd = fs
        .open(c"tree.0.0/f", OpenFlags::CREATE_NEW)
        .expect("a new name");
    assert_eq!(fs.write(fd, &buffer[..5000]), Ok(5000));
    assert_eq!(fs.fsync(fd), Ok(()));
    assert_eq!(fs.close(fd), Ok(()));
    let fd = fs
        .open(c"tree.0.0/f", OpenFlags::READ.directly(true))
        .expect("it was made");
    assert_eq!(fs.read(fd, &mut buffer), Ok(5000));
    assert_eq!(buffer[4999..5001], [0, 7]);
    assert_eq!(fs.read(fd, &mut buffer), Ok(0));
    assert_eq!(fs.truncate(fd, 9), Err(Errno::EINVAL));
    assert_eq!(fs.close(fd), Ok(()));
    assert_eq!(fs.stat(c"tree.0.0/f"), Ok(5000));
    assert_eq!(fs.rename(c"tree.0.0", c"t"), Ok(()));
    assert_eq!(fs.list(c"t", &mut []), Ok(2));
    assert_eq!(fs.unlink(c"t/f"), Ok(()));
    assert_eq!(fs.rmdir(c"t"), Err(Errno::ENOTEMPTY));
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
    assert_eq!(fs.mkdir(c"/mnt/x/test-dir.0-0"), Ok(()));
    assert_eq!(fs.mkdir(c"/mnt/x//test-dir.0-0/mdtest_tree.0/"), Ok(()));
    assert_eq!(fs.mknod(c"/mnt/x/test-dir.0-0/mdtest_tree.0/file"), Ok(()));
    let fd = fs.open(
        c"/mnt/x/test-dir.0-0/mdtest_tree.0/file",
        OpenFlags::WRITE_EXISTING,
    );
    assert_eq!(fs.close(fd.expect("it was made")), Ok(()));
    fs.sync();
    assert_eq!(fs.mkdir(c"/elsewhere/d"), Err(Errno::ENOENT));
    assert_eq!(fs.mkdir(c"mnt/x/d"), Err(Errno::ENOENT), "it is relative");
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
    let entries = |path| fs.list(path, &mut []);
    assert_eq!(entries(c"/"), Ok(1));
    assert_eq!(entries(c"/mnt"), Ok(2));
    assert_eq!(entries(c"."), Ok(1));
    assert_eq!(entries(c"here"), Ok(0));
    // As the root user may be told by Linux.
    assert_eq!(fs.rmdir(c"/"), Err(Errno::EBUSY));
    assert_eq!(fs.rename(c"/", c"/mnt/z"), Err(Errno::EBUSY));
    assert_eq!(fs.mkdir(c"/"), Err(Errno::EEXIST));
}

#[test]
fn a_fork_shares_the_tree_and_has_a_log_of_its_own() {
    let one = TraceFs::with_directories(&["/mnt/x"]);
    assert_eq!(one.mkdir(c"/mnt/x/a"), Ok(()));
    let two = one.fork();
    assert_eq!(two.lines(), [""; 0]);
    assert_eq!(two.mkdir(c"/mnt/x/a/b"), Ok(()));
    assert_eq!(one.rmdir(c"/mnt/x/a"), Err(Errno::ENOTEMPTY));
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
    let (a, b) = (
        TraceFs::with_log(Arc::clone(&log)),
        TraceFs::with_log(Arc::clone(&log)),
    );
    assert_eq!(a.mkdir(c"d"), Ok(()));
    assert_eq!(a.clone().mkdir(c"d"), Err(Errno::EEXIST));
    assert_eq!(b.mkdir(c"d"), Ok(()));
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
    assert_eq!(fs.listxattr(fd, &mut buffer), Ok(0));
    assert_eq!(fs.setxattr(fd, c"user.b", b"value"), Ok(()));
    assert_eq!(fs.setxattr(fd, c"user.a", b""), Ok(()));
    assert_eq!(fs.getxattr(fd, c"user.b", &mut buffer), Ok(5));
    assert_eq!(&buffer[..6], b"value\0");
    assert_eq!(fs.getxattr(fd, c"user.b", &mut []), Err(Errno::ERANGE));
    assert_eq!(fs.listxattr(fd, &mut buffer), Ok(14));
    assert_eq!(&buffer[..14], b"user.a\0user.b\0");
    assert_eq!(fs.removexattr(fd, c"user.a"), Ok(()));
    assert_eq!(fs.removexattr(fd, c"user.a"), Err(Errno::ENODATA));
    assert_eq!(fs.write_at(fd, b"12", 7), Ok(2));
    assert_eq!(fs.chmod(c"f", 0o600), Ok(()));
    assert_eq!(fs.utimes(c"f", 1), Ok(()));
    assert_eq!(fs.symlink(c"f", c"s"), Ok(()));
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

/// One step of a random program. Files are named by their place among those
/// that are open.
#[derive(Debug, Clone)]
enum Step {
    Mkdir(&'static str),
    Rmdir(&'static str),
    Stat(&'static str),
    Rename(&'static str, &'static str),
    Link(&'static str, &'static str),
    List(&'static str),
    Open(&'static str, OpenFlags),
    Close(usize),
    Mknod(&'static str),
    Unlink(&'static str),
    Write(usize, usize),
    Read(usize, usize),
    Fsync(usize),
    Truncate(usize, u64),
    Symlink(&'static str),
    Readlink(&'static str),
    Chmod(&'static str),
    Utimes(&'static str),
    Access(&'static str),
    Lookup(&'static str),
    Getattr(usize),
    WriteAt(usize, usize, u64),
    ReadAt(usize, usize, u64),
}

/// Where symbolic links lead: nothing has the name.
const NOWHERE: &CStr = c"no/where";

fn path() -> impl Strategy<Value = &'static str> {
    // `a-` sorts between `a` and `a/…`.
    prop::sample::select(vec![
        "a", "b", "a-", "a/a", "a/b", "a-/b", "b/a", "a/a/a", "./b", "",
    ])
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop::sample::select(vec![
        OpenFlags::READ,
        OpenFlags::CREATE_NEW,
        OpenFlags::WRITE,
        OpenFlags::WRITE_EXISTING,
        OpenFlags::READ_WRITE,
    ]);
    prop_oneof![
        3 => path().prop_map(Step::Mkdir),
        1 => path().prop_map(Step::Rmdir),
        1 => path().prop_map(Step::Stat),
        2 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => path().prop_map(Step::List),
        3 => (path(), mode).prop_map(|(path, mode)| Step::Open(path, mode)),
        1 => (0..4_usize).prop_map(Step::Close),
        1 => path().prop_map(Step::Mknod),
        1 => path().prop_map(Step::Unlink),
        2 => (0..4_usize, 0..9000_usize).prop_map(|(file, n)| Step::Write(file, n)),
        2 => (0..4_usize, 0..9000_usize).prop_map(|(file, n)| Step::Read(file, n)),
        1 => (0..4_usize).prop_map(Step::Fsync),
        1 => (0..4_usize, 0..9000_u64).prop_map(|(file, n)| Step::Truncate(file, n)),
        2 => path().prop_map(Step::Symlink),
        1 => path().prop_map(Step::Readlink),
        1 => path().prop_map(Step::Chmod),
        1 => path().prop_map(Step::Utimes),
        1 => path().prop_map(Step::Access),
        1 => path().prop_map(Step::Lookup),
        1 => (0..4_usize).prop_map(Step::Getattr),
        1 => (0..4_usize, 0..9000_usize, 0..9000_u64).prop_map(|(file, n, at)| Step::WriteAt(file, n, at)),
        1 => (0..4_usize, 0..9000_usize, 0..9000_u64).prop_map(|(file, n, at)| Step::ReadAt(file, n, at)),
    ]
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
        let file = |i: &usize| files.get(*i).copied();
        let number = |result: Result<u64, Errno>| format!("{result:?}");
        let bytes = |result: Result<usize, Errno>| format!("{result:?}");
        let unit = |result: Result<(), Errno>| format!("{result:?}");
        let answer = match step {
            Step::Mkdir(path) => unit(fs.mkdir(&c(path))),
            Step::Rmdir(path) => unit(fs.rmdir(&c(path))),
            // The size of a directory is the file system's own business.
            Step::Stat(path) if is_directory(path) => unit(fs.stat(&c(path)).map(drop)),
            Step::Stat(path) => number(fs.stat(&c(path))),
            Step::Rename(from, to) => unit(fs.rename(&c(from), &c(to))),
            Step::Link(from, to) => unit(fs.link(&c(from), &c(to))),
            Step::List(path) => number(fs.list(&c(path), &mut buffer)),
            // The one known difference: a directory opens for reading.
            Step::Open(path, OpenFlags::READ) if is_directory(path) => continue,
            Step::Open(path, mode) => {
                let opened = fs.open(&c(path), *mode);
                files.extend(opened);
                unit(opened.map(drop))
            }
            Step::Close(i) if file(i).is_some() => unit(fs.close(files.remove(*i))),
            Step::Mknod(path) => unit(fs.mknod(&c(path))),
            Step::Unlink(path) => unit(fs.unlink(&c(path))),
            Step::Write(i, n) => match file(i) {
                Some(fd) => bytes(fs.write(fd, &buffer[..*n])),
                None => continue,
            },
            Step::Read(i, n) => match file(i) {
                Some(fd) => bytes(fs.read(fd, &mut buffer[..*n])),
                None => continue,
            },
            Step::Fsync(i) => match file(i) {
                Some(fd) => unit(fs.fsync(fd)),
                None => continue,
            },
            Step::Truncate(i, n) => match file(i) {
                Some(fd) => unit(fs.truncate(fd, *n)),
                None => continue,
            },
            Step::Symlink(path) => unit(fs.symlink(NOWHERE, &c(path))),
            Step::Readlink(path) => {
                let length = fs.readlink(&c(path), &mut buffer);
                let target = length.map(|length| String::from_utf8_lossy(&buffer[..length]));
                format!("{target:?}")
            }
            Step::Chmod(path) => unit(fs.chmod(&c(path), 0o700)),
            Step::Utimes(path) => unit(fs.utimes(&c(path), 1_000_000)),
            Step::Access(path) => unit(fs.access(&c(path))),
            Step::Lookup(path) if is_directory(path) => unit(fs.lookup(&c(path)).map(drop)),
            Step::Lookup(path) => number(fs.lookup(&c(path))),
            Step::Getattr(i) => match file(i) {
                Some(fd) => number(fs.getattr(fd)),
                None => continue,
            },
            Step::WriteAt(i, n, at) => match file(i) {
                Some(fd) => bytes(fs.write_at(fd, &buffer[..*n], *at)),
                None => continue,
            },
            Step::ReadAt(i, n, at) => match file(i) {
                Some(fd) => bytes(fs.read_at(fd, &mut buffer[..*n], *at)),
                None => continue,
            },
            Step::Close(_) => continue,
        };
        answers.push(format!("{step:?}: {answer}"));
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
