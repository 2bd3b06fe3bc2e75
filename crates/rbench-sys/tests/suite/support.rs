//! Tests in their own processes, and skipping with a notice.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// Environment variable of a child process: the one test that it runs.
const CHILD: &str = "RBENCH_TEST_CHILD";

/// Environment variable of a child process: an empty directory for its files.
const PLACE: &str = "RBENCH_TEST_PLACE";

/// Prints the reason why a test does nothing. With `RBENCH_TEST_NO_SKIP` set, as in
/// CI, this is a failure.
pub fn skip(reason: &str) {
    // Not by a macro: the harness would keep the line of a test that passes.
    writeln!(std::io::stderr(), "skipped: {reason}").expect("stderr takes a line");
    assert!(
        std::env::var_os("RBENCH_TEST_NO_SKIP").is_none(),
        "skipped where nothing may be: {reason}"
    );
}

/// Waits for an event, for minutes, as the machine may be busy.
pub fn wait_until(what: &str, happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Drops the clean pages of a file from the kernel's cache.
pub fn evict(file: &File) {
    let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
    nix::fcntl::posix_fadvise(file, 0, 0, advice).expect("it is a file");
}

/// The full name of the test that it stands in.
macro_rules! this_test {
    () => {{
        fn here() {}
        crate::support::test_around(here)
    }};
}
pub(crate) use this_test;

/// The full name of the test that contains the function `here`.
pub fn test_around<F>(_here: F) -> &'static str {
    let path = std::any::type_name::<F>();
    let (_, path) = path.split_once("::").expect("it begins with this program");
    path.strip_suffix("::here")
        .expect("it ends with the function")
}

/// True if this process is the child that runs `test`.
pub fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|name| name == test)
}

/// The empty directory of a child process; its parent removes it.
pub fn place() -> PathBuf {
    std::env::var_os(PLACE)
        .expect("the parent says where")
        .into()
}

/// Runs `test` (its full name) in a child process, started by the command `wrapper`.
/// In its words, `{place}` is replaced by [`place`]. Returns the output.
pub fn child(test: &str, wrapper: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let own = std::env::current_exe().expect("the test program has a path");
    let test_words = [
        text(&own),
        test,
        "--exact",
        "--nocapture",
        "--test-threads=1",
    ];
    let mut words = wrapper
        .iter()
        .chain(&test_words)
        .map(|word| word.replace("{place}", text(directory.path())));
    let run = Command::new(words.next().expect("there are words"))
        .args(words)
        .env(CHILD, test)
        .env(PLACE, directory.path())
        .output()
        .expect("the wrapper starts");
    let printed = printed(&run);
    assert!(
        run.status.success() && printed.contains("1 passed"),
        "{test} in a child of {wrapper:?}: {printed}"
    );
    printed
}

fn printed(run: &Output) -> String {
    let text = [run.stdout.as_slice(), run.stderr.as_slice()].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// True in a child process that runs `test`; elsewhere runs it as [`child`] does, and
/// returns false.
pub fn in_child(test: &str, wrapper: &[&str]) -> bool {
    if !is_child(test) {
        child(test, wrapper);
        return false;
    }
    true
}

/// Like [`in_child`], in a separate mount namespace in which it is root; its mounts end
/// with it. Returns its [`place`].
pub fn in_own_mounts(test: &str) -> Option<PathBuf> {
    if is_child(test) {
        return Some(place());
    }
    let as_root: &[&str] = &["unshare", "--mount"];
    let as_user: &[&str] = &["unshare", "--mount", "--map-root-user"];
    match [as_root, as_user]
        .into_iter()
        .find(|wrapper| runs(&[wrapper, &["true"][..]].concat()))
    {
        Some(wrapper) => drop(child(test, wrapper)),
        None => skip("unshare may not make a mount namespace"),
    }
    None
}

/// A mount that ends with the value.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a tmpfs with `options` on `path`.
    pub fn tmpfs(path: &Path, options: &str) -> Mounted {
        Mounted::new("tmpfs", path, Some("tmpfs"), MsFlags::empty(), options)
    }

    /// Bind-mounts `source` on `path`.
    pub fn bind(source: &Path, path: &Path) -> Mounted {
        Mounted::new(text(source), path, None, MsFlags::MS_BIND, "")
    }

    /// Mounts with any arguments.
    pub fn new(
        source: &str,
        path: &Path,
        fs_type: Option<&str>,
        flags: MsFlags,
        options: &str,
    ) -> Mounted {
        mount(Some(source), path, fs_type, flags, Some(options)).expect("mounting is permitted");
        Mounted(path.to_owned())
    }
}

/// Makes the root file system read-only in this mount namespace: a bug of the tested
/// code must not destroy the user's files.
pub fn protect_root() {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    let nothing: Option<&str> = None;
    mount(nothing, "/", nothing, flags, nothing).expect("remounting is permitted");
    assert!(std::fs::create_dir("/rbench-test").is_err());
}

impl Drop for Mounted {
    fn drop(&mut self) {
        umount2(&self.0, MntFlags::MNT_DETACH).expect("it was mounted");
    }
}

/// True if the command succeeds.
pub fn runs(words: &[&str]) -> bool {
    Command::new(words[0])
        .args(&words[1..])
        .output()
        .is_ok_and(|run| run.status.success())
}

/// Output of a child under strace.
pub struct Traced {
    /// The child's output.
    pub printed: String,
    /// strace's log.
    pub log: String,
}

/// Runs `test` as [`child`] does, under strace with `options`. In the child, does `work`
/// and returns `None`, like where strace does not work.
pub fn traced(test: &str, options: &[&str], work: impl FnOnce()) -> Option<Traced> {
    if is_child(test) {
        work();
        return None;
    }
    if !runs(&["strace", "-o", "/dev/null", "true"]) {
        skip("strace does not work here");
        return None;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("strace");
    let wrapper = [&["strace", "-f", "-o", text(&path)], options].concat();
    let printed = child(test, &wrapper);
    let log = std::fs::read_to_string(path).expect("strace wrote its log");
    Some(Traced { printed, log })
}

/// A directory on a disk, if the build directory is on one.
pub fn disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory in the build directory")
}

/// A directory in memory, for trees of many files.
pub fn memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").expect("a temporary directory")
}

/// `path` as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}
