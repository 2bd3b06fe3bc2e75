//! A test bed: a file system whose power can be cut, runs on it, and a place for journals outside
//! it.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rbench_exec::ack::{Audit, audit};
use serde_json::Value;
use tempfile::TempDir;

/// Time limit of every wait, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The mounted file system, and two directories outside it.
pub struct Bed {
    dir: TempDir,
    server: Child,
    cuts: Cell<usize>,
    /// While this exists, the server may run, for [`PATIENCE`].
    _watched: Sender<()>,
}

fn program(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rbench"));
    command
        .args(arguments.split_whitespace())
        .env_remove("RBENCH_DIR");
    command
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Waits until `there` returns true.
pub fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Waits for the end of a process.
fn end(child: &mut Child, what: &str) -> ExitStatus {
    let mut status = None;
    wait_for(what, || {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    status.expect("ended")
}

impl Bed {
    /// Mounts the file system with these options of `rbench testfs`.
    pub fn new(options: &str) -> Bed {
        let dir = tempfile::tempdir().expect("temporary directory");
        for name in ["target", "outside"] {
            fs::create_dir(dir.path().join(name)).expect("made");
        }
        let arguments =
            format!("testfs target --memory 64m --watch-parent --fault-log faults {options}");
        let server = program(&arguments)
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        // If the server is killed, processes that wait for its mount get an error.
        let (watched, watcher) = mpsc::channel::<()>();
        let server_pid = pid(&server);
        std::thread::spawn(move || {
            if watcher.recv_timeout(2 * PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // The server may have ended already.
                let _ = kill(server_pid, Signal::SIGKILL);
            }
        });
        let bed = Bed {
            dir,
            server,
            cuts: Cell::new(0),
            _watched: watched,
        };
        wait_for("mounting", || bed.is_mounted());
        bed
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        mounts.contains(&*self.target().to_string_lossy())
    }

    /// The directory to test.
    pub fn target(&self) -> PathBuf {
        self.dir.path().join("target")
    }

    /// The directory of the only run.
    pub fn run_directory(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.target()).expect("listing");
        entries.next().expect("a run").expect("an entry").path()
    }

    /// All journals, in order.
    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path().join("outside")).expect("listing");
        let mut all: Vec<PathBuf> = entries.map(|e| e.expect("entry").path()).collect();
        all.sort();
        all
    }

    /// Starts `rbench io` on the file system, with a journal.
    pub fn start(&self, options: &str) -> Running {
        self.begin(&format!(
            "io --dir target --verify --ack-journal outside/acks --quiet --progress off {options}"
        ))
    }

    /// Starts jobs of `rbench fio` on the file system, with a journal.
    pub fn start_jobs(&self, options: &str) -> Running {
        self.begin(&format!(
            "fio --ack-journal outside/acks --quiet --output=outside.report --directory=target {options}"
        ))
    }

    fn begin(&self, arguments: &str) -> Running {
        let child = program(arguments)
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        Running(child)
    }

    /// Cuts the power and waits until that is complete.
    pub fn cut(&self) {
        let cuts = self.cuts.get() + 1;
        self.cuts.set(cuts);
        kill(pid(&self.server), Signal::SIGPWR).expect("it lives");
        let done = |fault: &Value| fault["kind"] == "power_cut" && fault["action"] == "done";
        wait_for("a power cut", || {
            self.faults().iter().filter(|fault| done(fault)).count() == cuts
        });
    }

    /// The lines of the fault log.
    pub fn faults(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.dir.path().join("faults")).unwrap_or_default();
        let lines = log.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    /// Audits the data with the journals.
    pub fn audit(&self) -> Audit {
        audit(&self.journals(), None).expect("journals")
    }

    /// Audits with `rbench verify`: its exit code and output.
    pub fn verify(&self, options: &str) -> (Option<i32>, String) {
        let mut command = program(&format!("verify {options}"));
        let output = command.args(self.journals()).output().expect("starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said)
    }
}

impl Bed {
    /// Waits until the server ends; kills it after the time limit.
    fn wait_for_the_server(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.server.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.server.kill();
                let _ = self.server.wait();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        self.wait_for_the_server();
        if self.is_mounted() {
            let _ = umount2(&self.target(), MntFlags::MNT_DETACH);
        }
    }
}

/// A run of `rbench io` or `rbench fio`.
pub struct Running(Child);

impl Running {
    /// Waits until it has started to write, or has ended: a short run may finish unnoticed.
    pub fn begun(&mut self, bed: &Bed) {
        wait_for("a run's beginning", || {
            !bed.journals().is_empty() || self.0.try_wait().is_ok_and(|s| s.is_some())
        });
    }

    /// Sends a signal, unless it has ended.
    pub fn signal(&mut self, signal: Signal) {
        if self.0.try_wait().is_ok_and(|status| status.is_none()) {
            kill(pid(&self.0), signal).expect("it is there");
        }
    }

    /// Waits for its end.
    pub fn end(mut self) -> ExitStatus {
        end(&mut self.0, "a run")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Collects the files below a directory and their content.
pub fn contents(folder: &Path, into: &mut Vec<(PathBuf, Vec<u8>)>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            contents(&path, into);
        } else {
            let bytes = fs::read(&path).expect("reads");
            into.push((path, bytes));
        }
    }
    into.sort();
}
