//! A table of open files for a single thread.
//!
//! If threads share their table, the kernel takes a lock to assign a descriptor, and
//! counts references to the file in each call. A table of a single thread avoids
//! both, like in a program without threads.

use std::fs;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CloneFlags, unshare};

/// The first descriptor after the standard streams.
const FIRST: RawFd = 3;

/// Gives the calling thread its own table of open files while it exists. Files that
/// were open before are open in it under the same numbers. Files opened in it exist
/// for this thread only. At its end, its files and directories are closed. Pipes,
/// sockets and similar objects, by which threads wake each other, stay open until the
/// thread ends.
#[derive(Debug)]
pub struct OwnFiles(());

impl OwnFiles {
    /// Gives the calling thread its own table.
    ///
    /// # Errors
    /// `ENOMEM` or `EMFILE` if there is no room for one, `EPERM` if the system
    /// forbids it.
    pub fn new() -> Result<OwnFiles, Errno> {
        unshare(CloneFlags::CLONE_FILES)?;
        Ok(OwnFiles(()))
    }
}

impl Drop for OwnFiles {
    /// The kernel would close them, too, but at the thread's end, which nobody
    /// notices: a file system must not be kept busy until then.
    fn drop(&mut self) {
        let Ok(open) = fs::read_dir("/proc/thread-self/fd") else {
            // Without /proc they are closed with the thread.
            return;
        };
        let number = |entry: fs::DirEntry| {
            // Not by fstat, which would block on a hanging mount. Objects other than
            // files have names like `pipe:[…]` and `socket:[…]`.
            let called = fs::read_link(entry.path()).ok()?;
            let fd: RawFd = entry.file_name().to_str()?.parse().ok()?;
            (fd >= FIRST && called.is_absolute()).then_some(fd)
        };
        let files: Vec<RawFd> = open.flatten().filter_map(number).collect();
        for fd in files {
            // SAFETY: the table belongs only to this thread, and its owner keeps no
            // file in it that lives on: see the type. The number of the listing
            // itself is not used any more.
            unsafe { libc::close(fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Read as _, Write as _};
    use std::path::Path;

    use super::*;

    /// True if the calling thread has the file open.
    fn has_open(path: &Path) -> bool {
        let open = fs::read_dir("/proc/thread-self/fd").expect("it is always there");
        open.flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == path))
    }

    #[test]
    fn what_a_thread_with_its_own_files_opens_and_closes_is_its_own_business() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        fs::write(&ours, "kept").expect("room for a word");
        let mut kept = File::open(&ours).expect("it was just written");
        let (mut end, mut wake) = std::io::pipe().expect("a pipe is to be had");
        std::thread::scope(|scope| {
            let (here, told) = std::sync::mpsc::channel();
            let (go_on, wait) = std::sync::mpsc::channel();
            let (ours, theirs) = (&ours, &theirs);
            let thread = scope.spawn(move || {
                let own = OwnFiles::new().expect("a table is to be had");
                let opened = File::create(theirs).expect("room for a file");
                here.send((has_open(ours), has_open(theirs)))
                    .expect("heard");
                wait.recv().expect("told to go on");
                drop(opened);
                drop(own);
                wake.write_all(b"!").expect("pipes stay open");
                has_open(ours)
            });
            let inside = told.recv().expect("the thread lives");
            assert_eq!(inside, (true, true), "what was open before, and its own");
            assert!(!has_open(theirs), "nobody else has what it opens");
            go_on.send(()).expect("the thread lives");
            assert!(!thread.join().expect("no panic"), "all is closed");
        });
        let mut word = [0];
        end.read_exact(&mut word).expect("the thread has written");
        let mut text = String::new();
        kept.read_to_string(&mut text).expect("still open here");
        assert_eq!(text, "kept");
    }
}
