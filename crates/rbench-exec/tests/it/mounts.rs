//! Private mounts of a host, for ranks that are threads: each thread enters its host's mount
//! namespace.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

const NONE: Option<&str> = None;

/// The mounts of a host; they end with the value and the threads that use it.
#[derive(Clone)]
pub struct Mounts(Arc<File>);

impl Mounts {
    /// The mounts of this process, changed by `change` in a private namespace. Needs root.
    pub fn with(change: impl FnOnce() + Send) -> Mounts {
        let namespace = std::thread::scope(|scope| {
            let make = || {
                unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).expect("root");
                let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                mount(NONE, "/", NONE, private, NONE).expect("root");
                change();
                File::open("/proc/thread-self/ns/mnt").expect("there")
            };
            scope.spawn(make).join().expect("no panic")
        });
        Mounts(Arc::new(namespace))
    }

    /// With an in-memory file system on `at`.
    pub fn with_memory_over(at: &Path, options: &str) -> Mounts {
        Mounts::with(|| {
            mount(
                Some("own"),
                at,
                Some("tmpfs"),
                MsFlags::empty(),
                Some(options),
            )
            .expect("root");
        })
    }

    /// Without the file system that is mounted on `at`.
    pub fn without(at: &Path) -> Mounts {
        Mounts::with(|| umount2(at, MntFlags::MNT_DETACH).expect("mounted"))
    }

    /// The mounts of this process.
    pub fn unchanged() -> Mounts {
        Mounts::with(|| ())
    }

    /// Makes the calling thread, and those that it starts, use these mounts.
    pub fn enter(&self) {
        unshare(CloneFlags::CLONE_FS).expect("always allowed");
        setns(&*self.0, CloneFlags::CLONE_NEWNS).expect("root");
    }

    /// Runs `look` with these mounts.
    pub fn look<T: Send>(&self, look: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let in_namespace = || {
                self.enter();
                look()
            };
            scope.spawn(in_namespace).join().expect("no panic")
        })
    }
}
