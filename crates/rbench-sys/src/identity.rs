//! What tells hosts, clocks and caches apart: as this process sees itself.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use nix::sys::utsname::uname;

/// Where this process runs. The texts are for comparing with other processes'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the machine or container; several may have the same.
    pub node: String,
    /// The kernel from one start to the next, as 36 characters. Machines that
    /// were resumed from the same image of memory have the same one.
    pub kernel: String,
    /// What `CLOCK_MONOTONIC` is the same for: the kernel and the namespace of
    /// time with its offset.
    pub clock: String,
}

/// The identity of this process. What the kernel does not tell counts as the
/// same for all processes with this node name.
pub fn identity() -> Identity {
    // uname cannot fail on Linux; without a name it is a host of its own.
    let node = uname().map_or_else(
        |_| format!("unnamed-{}", std::process::id()),
        |names| names.nodename().to_string_lossy().into_owned(),
    );
    let kernel = fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| format!("unknown of {node}"), |id| id.trim().to_owned());
    // Before Linux 5.6 there is one time for all.
    let namespace = fs::metadata("/proc/self/ns/time").map_or(0, |ns| ns.ino());
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    Identity {
        clock: format!("{kernel} {namespace} {}", monotonic_offset(&offsets)),
        node,
        kernel,
    }
}

/// How far the clock is ahead of the kernel's own, as `seconds.nanoseconds`.
fn monotonic_offset(offsets: &str) -> String {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let wanted = words.next() == Some("monotonic");
        let (s, ns) = (words.next()?, words.next()?);
        wanted.then(|| format!("{s}.{ns}"))
    };
    offsets
        .lines()
        .find_map(of_line)
        .unwrap_or_else(|| "0.0".to_owned())
}

/// The file system that holds `path`, or the nearest directory above it that
/// exists, by the number that this kernel gives it; of a block device the
/// device itself. Within one kernel it tells which processes share the cache of
/// its files; another kernel's numbers mean nothing beside it.
///
/// # Errors
/// When the kernel does not tell, for another reason than that it is missing.
pub fn file_system(path: &Path) -> io::Result<String> {
    let mut place = path;
    loop {
        match (fs::metadata(place), place.parent()) {
            (Ok(found), _) if found.file_type().is_block_device() => {
                return Ok(format!("device {}", found.rdev()));
            }
            (Ok(found), _) => return Ok(found.dev().to_string()),
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                // Of a relative path nothing is left but the present directory.
                place = if parent.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    parent
                };
            }
            (Err(error), _) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn output(program: &str, args: &[&str]) -> String {
        let output = Command::new(program).args(args).output();
        let output = output.expect("the program runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn the_identity_is_that_of_uname_and_the_kernels_start() {
        let found = identity();
        assert_eq!(found.node, output("uname", &["-n"]));
        let boot = output("cat", &["/proc/sys/kernel/random/boot_id"]);
        assert_eq!((found.kernel.len(), &found.kernel), (36, &boot));
        assert!(found.clock.starts_with(&boot), "{}", found.clock);
        assert_eq!(identity(), found, "the same every time");
        let other = std::thread::spawn(identity).join().expect("no panic");
        assert_eq!(other, found, "and in every thread");
    }

    #[test]
    fn the_offset_of_a_namespace_of_time_is_read() {
        let text = "monotonic        3600         7\nboottime            0         0\n";
        assert_eq!(monotonic_offset(text), "3600.7");
        assert_eq!(monotonic_offset(""), "0.0");
        assert_eq!(monotonic_offset("boottime 5 0\n"), "0.0");
    }

    #[test]
    fn the_file_system_of_a_path_is_that_of_stat() {
        let there = tempfile::tempdir().expect("a temporary directory");
        let path = there.path().to_string_lossy().into_owned();
        let check = |path: &str, expect: &str| {
            let found = file_system(Path::new(path)).expect("it is told");
            assert_eq!(found, output("stat", &["-c", "%d", expect]), "{path}");
        };
        check(&path, &path);
        check(&format!("{path}/not/yet/there"), &path);
        check("/proc", "/proc");
        check("not/there/at/all", ".");
        assert_ne!(
            file_system(Path::new("/proc")).ok(),
            file_system(there.path()).ok()
        );
        let file = there.path().join("file");
        std::fs::write(&file, "").expect("written");
        let error = file_system(&file.join("below")).expect_err("no directory");
        assert_eq!(error.raw_os_error(), Some(nix::libc::ENOTDIR));
    }
}
