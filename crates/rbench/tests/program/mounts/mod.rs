//! What the program says of a mount: what a run needs and the file system lacks (`needs`), what a
//! mount can do (`probe`), which promises it keeps (`check`, `promises`, `broken`, `model`); ranks that
//! do not come together (`start`).

mod broken;
mod check;
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

/// Does the work, and all that it starts, on one processor, with the next test on the next one. A
/// file system and its only client take turns: on one processor they need a third of the time.
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

/// Something that is mounted, by a command, until the value goes.
struct Mounted(PathBuf);

impl Mounted {
    /// `arguments` of mount(8), without the mount point.
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
        // What is in use goes from the name space all the same.
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}
