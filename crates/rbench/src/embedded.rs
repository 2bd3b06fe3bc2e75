//! The built-in file system of a host: a child process that serves a private temporary directory.
//! The child ends whenever and however this process ends.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::mount::MntFlags;
use rbench_core::Bytes;
use rbench_sys::command::unblocked;
use tempfile::TempDir;

/// Message of a program that was built without the built-in file system.
pub const WITHOUT_TESTFS: &str =
    "this program is built without the built-in file system (feature testfs)";

/// Time limit of the child's mount and unmount.
const PATIENCE: Duration = Duration::from_secs(10);

/// A mounted built-in file system; unmounted when dropped.
pub struct Embedded {
    child: Child,
    mountpoint: TempDir,
}

impl Embedded {
    /// Mounts a file system with room for `cap`.
    ///
    /// # Errors
    /// One sentence.
    pub fn mount(cap: Bytes) -> Result<Embedded, String> {
        let failed = |what: &str, e: &dyn std::fmt::Display| {
            format!(
                "the built-in file system cannot be mounted: {what}: {e}; give a directory with --dir"
            )
        };
        let mountpoint = tempfile::Builder::new()
            .prefix("rbench-")
            .tempdir()
            .map_err(|e| failed("temporary directory", &e))?;
        let program = std::env::current_exe().map_err(|e| failed("this program", &e))?;
        let child = unblocked(&mut Command::new(program))
            .arg("testfs")
            .arg(mountpoint.path())
            .args(["--memory", &cap.0.to_string(), "--watch-parent"])
            // The child removes the mount point even if we are killed.
            .arg("--remove-mountpoint")
            // Launchers signal whole process groups. The child ends when its standard input closes
            // instead.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed("its process", &e))?;
        // From here on, dropping it unmounts, even if the child never reports.
        let mut served = Embedded { child, mountpoint };
        if ready(&mut served.child) {
            return Ok(served);
        }
        let mut words = String::new();
        drop(served.child.stdin.take());
        if let Some(mut stderr) = served.child.stderr.take() {
            let _ = stderr.read_to_string(&mut words);
        }
        Err(match words.trim().trim_start_matches("rbench: ") {
            "" => failed("its process", &"it ended before it was ready"),
            words => failed("it says", &words),
        })
    }

    /// Path of its mount point.
    pub fn path(&self) -> &Path {
        self.mountpoint.path()
    }
}

/// Waits until the child reports that the mount answers.
fn ready(child: &mut Child) -> bool {
    let Some(stdout) = child.stdout.take() else {
        return false;
    };
    let mut line = String::new();
    // The child reports within its own time limit, or ends.
    BufReader::new(stdout).read_line(&mut line).is_ok() && line.trim() == "ready"
}

impl Drop for Embedded {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Ok(Some(status)) if status.success() => return,
                // The child was killed and has left a dead mount.
                Ok(Some(_)) | Err(_) => break,
            }
        }
        // The child hangs: kill it and detach its mount by name.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let place = self.mountpoint.path();
        let flags = MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW;
        if nix::mount::umount2(place, flags) == Err(Errno::EPERM) {
            // An ordinary user detaches by fusermount3; if that fails too, the mount stays.
            let mut detach = Command::new("fusermount3");
            let detach = detach.args(["-u", "-z", "--"]).arg(place);
            let _ = detach.stdin(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}
