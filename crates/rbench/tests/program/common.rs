//! Shared helpers for tests of the program: a directory for each test, the built-in file system in
//! it, and waiting.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rbench_report::RunResult;
use tempfile::TempDir;

use crate::valid;

/// A directory for one test: target, results and temporary files.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().expect("temporary directory");
        fs::create_dir(dir.path().join("target")).expect("made");
        fs::create_dir(dir.path().join("tmp")).expect("made");
        Place { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn target(&self) -> PathBuf {
        self.path("target")
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbench"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.dir.path())
            .env_remove("RBENCH_DIR")
            .env("TMPDIR", self.path("tmp"));
        command
    }

    pub fn run(&self, arguments: &str) -> Output {
        self.command(arguments)
            .output()
            .expect("the program starts")
    }

    pub fn result(&self, name: &str) -> RunResult {
        let text = fs::read_to_string(self.path(name)).expect("a result file");
        valid::check(&text);
        serde_json::from_str(&text).expect("a valid result")
    }

    pub fn entries(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).expect("listing");
        let mut names: Vec<String> = entries
            .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Creates the executable `to` through another process. While this process has a file open for
/// writing, a process that another test starts inherits its descriptor, and until that one
/// executes its own program, this one cannot be executed (`ETXTBSY`).
pub fn install(to: &Path, content: &[u8]) {
    let mut command = Command::new("install");
    command.args(["--mode=755", "/dev/stdin"]).arg(to);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("install");
    let mut pipe = child.stdin.take().expect("piped");
    pipe.write_all(content).expect("all of it is read");
    drop(pipe);
    assert!(child.wait().expect("waited").success(), "{}", to.display());
}

/// The built-in file system, mounted in a test's directory.
pub struct Server {
    pub child: std::process::Child,
    pub mnt: PathBuf,
}

impl Server {
    /// Starts it on `mnt`.
    pub fn start(place: &Place, options: &str) -> Server {
        Server::start_on(place, "mnt", options)
    }

    pub fn start_on(place: &Place, name: &str, options: &str) -> Server {
        let mnt = place.path(name);
        fs::create_dir(&mnt).expect("made");
        let child = place
            .command(&format!("testfs {name} --watch-parent {options}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        wait_until("it is mounted", || mounted_below(&mnt));
        Server { child, mnt }
    }

    pub fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("ends").success());
        assert!(!mounted_below(&self.mnt));
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines of a file that is being written, if it is there, without one that is not complete.
pub fn complete_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.split_inclusive('\n');
    let complete = lines.filter_map(|line| line.strip_suffix('\n'));
    complete.map(str::to_owned).collect()
}

pub fn mounted_below(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/mounts").expect("mounts");
    mounts.contains(&*path.to_string_lossy())
}

/// Anything that takes longer hangs, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until `holds` returns true.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
