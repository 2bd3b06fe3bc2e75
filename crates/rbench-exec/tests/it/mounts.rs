//! Mounts of a host's own, for ranks that are threads: each thread enters the
//! mount name space of its host.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

const NONE: Option<&str> = None;

/// What a host has mounted; gone with the value and the threads in it.
#[derive(Clone)]
pub struct Mounts(Arc<File>);

impl Mounts {
    /// Those of this process, changed by `change`, which is nobody else's
    /// affair. Needs root.
    pub fn with(change: impl FnOnce() + Send) -> Mounts {
        let made = std::thread::scope(|scope| {
            let make = || {
                unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).expect("root");
                let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                mount(NONE, "/", NONE, private, NONE).expect("root");
                change();
                File::open("/proc/thread-self/ns/mnt").expect("there")
            };
            scope.spawn(make).join().expect("no panic")
        });
        Mounts(Arc::new(made))
    }

    /// With a file system in memory over `at`.
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

    /// Without what is mounted on `at`.
    pub fn without(at: &Path) -> Mounts {
        Mounts::with(|| umount2(at, MntFlags::MNT_DETACH).expect("mounted"))
    }

    /// As this process has them.
    pub fn unchanged() -> Mounts {
        Mounts::with(|| ())
    }

    /// Lets the calling thread and those that it starts see them.
    pub fn enter(&self) {
        unshare(CloneFlags::CLONE_FS).expect("always allowed");
        setns(&*self.0, CloneFlags::CLONE_NEWNS).expect("root");
    }

    /// What `look` gives there.
    pub fn look<T: Send>(&self, look: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let there = || {
                self.enter();
                look()
            };
            scope.spawn(there).join().expect("no panic")
        })
    }
}
