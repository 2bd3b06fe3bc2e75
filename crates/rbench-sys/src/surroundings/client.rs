//! Program that serves a FUSE mount: the process that holds its connection open. It is only
//! inspected, never run.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::libc;
use rbench_core::surroundings::ClientProgram;

use super::words::{harmless, has, value};
use crate::standing::Standing;
use crate::{proc, processes};

/// Limit for inspected descriptors, as a host may have any number.
const MOST_DESCRIPTORS: usize = 200_000;

/// Processes that serve a FUSE mount, ascending, if this user may see them.
pub(super) fn serving(below: &Standing) -> Vec<u32> {
    let Some(mount) = &below.mount else {
        return Vec::new();
    };
    let connection = u64::from(libc::minor(below.device));
    let holders = holders(Path::new("/proc"));
    let words = |process| command_line(process).unwrap_or_default();
    choose(&holders, connection, &mount.mount_point, words)
}

/// Client of a FUSE mount, if this user may see it. Processes that inherited the device are
/// later in the list.
pub(super) fn of(below: &Standing) -> Option<ClientProgram> {
    let mount = below.mount.as_ref()?;
    let process = *serving(below).first()?;
    let words = command_line(process)?;
    let program = fs::read_link(format!("/proc/{process}/exe")).ok();
    let text = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).ok();
    let seconds = |names: &[&str]| value(&words, names).and_then(as_seconds);
    Some(ClientProgram {
        process,
        name: text("comm").unwrap_or_default().trim().to_owned(),
        program: program.map(|path| path.display().to_string()),
        command: harmless(&words),
        version: version(&mount.fs_type, &mount.mount_point),
        attr_timeout_s: seconds(&["attr_timeout", "attr_cache", "mfsattrcacheto"]),
        entry_timeout_s: seconds(&["entry_timeout", "entry_cache", "mfsentrycacheto"]),
        writeback_cache: has(&words, &["writeback_cache"]).then_some(true),
    })
}

/// A process that has the FUSE device open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    process: u32,
    /// Connections of its descriptors, if the kernel reports them.
    connections: Vec<u64>,
}

fn holders(dir: &Path) -> Vec<Holder> {
    let mut left = MOST_DESCRIPTORS;
    let mut holders = Vec::new();
    for process in proc::numbers(dir) {
        let open = open_devices(&dir.join(u32::to_string(&process)), &mut left);
        if !open.is_empty() {
            holders.push(Holder {
                process,
                connections: open.into_iter().flatten().collect(),
            });
        }
    }
    holders
}

/// Connection of each FUSE device that a process has open.
fn open_devices(process: &Path, left: &mut usize) -> Vec<Option<u64>> {
    let mut connections = Vec::new();
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
        return connections;
    };
    for descriptor in descriptors.flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let leads = fs::read_link(descriptor.path());
        if leads.is_ok_and(|to| to == Path::new("/dev/fuse")) {
            let facts = process.join("fdinfo").join(descriptor.file_name());
            connections.push(
                fs::read_to_string(facts)
                    .ok()
                    .as_deref()
                    .and_then(connection),
            );
        }
    }
    connections
}

/// Newer kernels have a line `fuse_connection: 53`.
fn connection(facts: &str) -> Option<u64> {
    proc::field(facts, "fuse_connection:")?.parse().ok()
}

/// Processes that serve a connection, ascending: those that the kernel reports, else the
/// only one whose command line names the mount point.
fn choose(
    holders: &[Holder],
    number: u64,
    mount_point: &Path,
    words: impl Fn(u32) -> Vec<String>,
) -> Vec<u32> {
    let serving = holders.iter().filter(|h| h.connections.contains(&number));
    let mut serving: Vec<u32> = serving.map(|h| h.process).collect();
    if !serving.is_empty() {
        serving.sort_unstable();
        return serving;
    }
    let names = |h: &&Holder| {
        let silent = h.connections.is_empty();
        let is_named = |word: &String| Path::new(word) == mount_point;
        // Reads only the command lines of candidates: reading that of another process may
        // block for ever.
        silent && words(h.process).iter().any(is_named)
    };
    let mut named = holders.iter().filter(names);
    match (named.next(), named.next()) {
        (Some(only), None) => vec![only.process],
        _ => Vec::new(),
    }
}

fn command_line(process: u32) -> Option<Vec<String>> {
    let bytes = processes::command_line(Path::new(&format!("/proc/{process}")))?;
    let words = bytes.split(|b| *b == 0).filter(|word| !word.is_empty());
    Some(
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
    )
}

/// Reads `1`, `0.5`, `1.5s`, `200ms`.
fn as_seconds(text: &str) -> Option<f64> {
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let value = number.parse::<f64>().ok()? * scale;
    value.is_finite().then_some(value)
}

/// Version that JuiceFS writes into a special file of the mount.
fn version(fs_type: &str, mount_point: &Path) -> Option<String> {
    if fs_type != "fuse.juicefs" {
        return None;
    }
    let path = mount_point.join(".config");
    // The client's own file: users do not get such inode numbers.
    let file = fs::File::open(&path).ok()?;
    file.metadata().ok().filter(|found| found.ino() > 1 << 62)?;
    let mut text = String::new();
    file.take(1 << 20).read_to_string(&mut text).ok()?;
    version_in(&text)
}

/// Value of `"Version"` in a JSON text.
fn version_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("\"Version\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let (version, _) = rest.strip_prefix('"')?.split_once('"')?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (Holder, Vec<String>);

    fn holder(process: u32, connections: &[u64], words: &[&str]) -> Told {
        let holder = Holder {
            process,
            connections: connections.to_vec(),
        };
        (
            holder,
            words.iter().map(|word| (*word).to_owned()).collect(),
        )
    }

    #[test]
    fn the_processes_of_the_connection_are_chosen_or_none() {
        let mnt = Path::new("/mnt/a");
        let check = |table: &[Told], expect: &[u32]| {
            let holders: Vec<Holder> = table.iter().map(|(holder, _)| holder.clone()).collect();
            let words = |process| {
                let mut of = table.iter().filter(|(holder, _)| holder.process == process);
                of.next().map_or_else(Vec::new, |(_, words)| words.clone())
            };
            assert_eq!(choose(&holders, 53, mnt, words), expect);
        };
        let a = holder(7, &[], &["mfsmount", "/mnt/a"]);
        let b = holder(8, &[], &["mfsmount", "/mnt/b"]);
        check(&[], &[]);
        check(&[a.clone(), b.clone()], &[7]);
        check(&[a.clone(), holder(9, &[], &["sshfs", "/mnt/a"])], &[]);
        // The kernel's report counts; the parent comes before its children.
        let holders = [holder(12, &[53], &["x"]), holder(11, &[53], &["x"]), a];
        check(&holders, &[11, 12]);
        check(&[holder(5, &[54], &["x", "/mnt/a"]), b], &[]);
        assert_eq!(connection("pos:\t0\nfuse_connection:\t53\n"), Some(53));
        assert_eq!(connection("pos:\t0\n"), None);
    }

    #[test]
    fn times_have_units_or_are_seconds() {
        for (text, expect) in [
            ("1", Some(1.0)),
            ("0.5", Some(0.5)),
            ("1.5s", Some(1.5)),
            ("200ms", Some(0.2)),
            ("x", None),
            ("inf", None),
        ] {
            assert_eq!(as_seconds(text), expect, "{text}");
        }
    }

    #[test]
    fn a_version_is_found_in_the_clients_own_file() {
        let text = "{\n \"Meta\": {\"Strict\": true},\n \"Version\": \"1.2.3+2025-01-01.abc\"\n}";
        assert_eq!(version_in(text).as_deref(), Some("1.2.3+2025-01-01.abc"));
        assert_eq!(version_in("{}"), None);
        assert_eq!(version("ext4", Path::new("/")), None);
    }
}
