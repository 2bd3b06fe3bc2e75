//! Identity of hosts, clocks and caches, as seen by this process.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use nix::sys::utsname::uname;

/// Place in which this process runs. Its texts are for comparison with other
/// processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the machine or container; it may not be unique.
    pub node: String,
    /// The running kernel: 36 characters, new at each boot. Machines resumed from the
    /// same memory image have the same.
    pub kernel: String,
    /// Scope of `CLOCK_MONOTONIC`: the kernel and the time namespace with its offset.
    pub clock: String,
}

/// The identity of this process. Parts that the kernel does not report count as equal
/// for all processes with this node name.
pub fn identity() -> Identity {
    // uname cannot fail on Linux; without a name this process counts as its own host.
    let node = uname().map_or_else(
        |_| format!("unnamed-{}", std::process::id()),
        |names| names.nodename().to_string_lossy().into_owned(),
    );
    let kernel = fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| format!("unknown of {node}"), |id| id.trim().to_owned());
    // Before Linux 5.6 there are no time namespaces.
    let namespace = fs::metadata("/proc/self/ns/time").map_or(0, |ns| ns.ino());
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    Identity {
        clock: format!("{kernel} {namespace} {}", monotonic_offset(&offsets)),
        node,
        kernel,
    }
}

/// Offset of the clock to the kernel's own, as `seconds.nanoseconds`.
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

/// The file system of `path`, or of its nearest existing parent, by its number in
/// this kernel; for a block device the device itself. Within one kernel, processes
/// with the same number share the cache of its files. Numbers of different kernels
/// are not comparable.
///
/// # Errors
/// Fails for any error except a missing path.
pub fn file_system(path: &Path) -> io::Result<String> {
    let mut ancestor = path;
    loop {
        match (fs::metadata(ancestor), ancestor.parent()) {
            (Ok(found), _) if found.file_type().is_block_device() => {
                return Ok(format!("device {}", found.rdev()));
            }
            (Ok(found), _) => return Ok(found.dev().to_string()),
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                // The rest of a relative path is the current directory.
                ancestor = if parent.as_os_str().is_empty() {
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
        let identity_here = identity();
        assert_eq!(identity_here.node, output("uname", &["-n"]));
        let boot = output("cat", &["/proc/sys/kernel/random/boot_id"]);
        assert_eq!(
            (identity_here.kernel.len(), &identity_here.kernel),
            (36, &boot)
        );
        assert!(
            identity_here.clock.starts_with(&boot),
            "{}",
            identity_here.clock
        );
        assert_eq!(identity(), identity_here, "the same every time");
        let other = std::thread::spawn(identity).join().expect("no panic");
        assert_eq!(other, identity_here, "and in every thread");
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
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().to_string_lossy().into_owned();
        let check = |path: &str, expect: &str| {
            let number = file_system(Path::new(path)).expect("it is told");
            assert_eq!(number, output("stat", &["-c", "%d", expect]), "{path}");
        };
        check(&path, &path);
        check(&format!("{path}/not/yet/there"), &path);
        check("/proc", "/proc");
        check("not/there/at/all", ".");
        assert_ne!(
            file_system(Path::new("/proc")).ok(),
            file_system(directory.path()).ok()
        );
        let file = directory.path().join("file");
        std::fs::write(&file, "").expect("written");
        let error = file_system(&file.join("below")).expect_err("no directory");
        assert_eq!(error.raw_os_error(), Some(nix::libc::ENOTDIR));
    }
}
