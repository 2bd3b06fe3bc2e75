//! Tests statements about a mount: requirements of a run that the file system lacks (`needs`), abilities (`probe`),
//! promises (`check`, `promises`, `broken`, `model`); mounts that hang (`hangs`) or die
//! (`dies`), and ranks that do not join (`start`).

mod broken;
mod check;
mod dies;
mod hangs;
mod model;
mod needs;
mod probe;
mod promises;
mod start;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Runs the work, and all processes that it starts, on one processor; the next test uses the next one. A file system
/// and its only client alternate: on one processor they take a third of the time.
fn on_one_processor<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).expect("always allowed");
    let allowed = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false));
    let allowed: Vec<usize> = allowed.collect();
    let mut one = CpuSet::new();
    let next = NEXT.fetch_add(1, Ordering::Relaxed) % allowed.len();
    one.set(allowed[next]).expect("it is allowed");
    let work = move || {
        sched_setaffinity(this, &one).expect("it is allowed");
        work()
    };
    std::thread::scope(|scope| {
        let done = scope.spawn(work).join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A mount made by a command, until dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts with these `arguments` of mount(8), without the mount point.
    fn new(arguments: &[&str], at: PathBuf) -> Mounted {
        let done = Command::new("mount").args(arguments).arg(&at).output();
        let done = done.expect("mount starts");
        assert!(
            done.status.success(),
            "{}",
            crate::common::text(&done.stderr)
        );
        Mounted(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A mount that is in use disappears from the namespace anyway.
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}
