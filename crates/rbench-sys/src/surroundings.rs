//! Environment of a run on its host, which may affect its results: frequency governors,
//! the kernel's clock and its synchronisation, limits of control groups, and the client
//! of a FUSE mount. Everything is only read, and nothing is changed or started. Unknown
//! values are `None`.

use std::fs;
use std::path::{Path, PathBuf};

use nix::libc;
use rbench_core::surroundings::{FuseSettings, HostMount, NtpState, Surroundings};

use crate::mountinfo;
use crate::standing::{Standing, standing};

mod client;
mod words;

pub use words::without_credentials;

/// Strictest limits that apply to this process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GroupLimits {
    /// CPU time, as a number of processors; `None`: no limit.
    pub cpus: Option<f64>,
    /// Memory including the page cache (bytes); `None`: no limit.
    pub memory_bytes: Option<u64>,
}

/// Environment of this process, which works at `target`.
pub fn surroundings(target: &Path) -> Surroundings {
    let below = standing(target).ok();
    let fuse = below.as_ref().filter(|below| is_fuse(below));
    let limits = own_limits();
    let at = target.ancestors().find(|dir| dir.exists());
    let mount = at.and_then(|at| mountinfo::of(at).ok());
    Surroundings {
        governors: governors(Path::new("/sys/devices/system/cpu")),
        clock_source: line(Path::new(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        )),
        ntp: ntp(),
        cpu_limit: limits.cpus,
        memory_limit_bytes: limits.memory_bytes,
        mount: mount.map(|mount| HostMount {
            fs_type: mount.fs_type,
            source: without_credentials(&mount.source),
            options: mount.options.join(","),
            point: mount.mount_point.display().to_string(),
        }),
        fuse: fuse.map(|below| connection(Path::new("/sys/fs/fuse/connections"), below.device)),
        client: fuse.and_then(client::of),
    }
}

/// Processes that serve the FUSE mount at `target`, ascending. Empty if it is not a
/// FUSE mount, or if this user may not see them.
pub fn serving(target: &Path) -> Vec<u32> {
    let below = standing(target).ok().filter(is_fuse);
    below.map_or(Vec::new(), |below| client::serving(&below))
}

/// True if requests go through a FUSE connection.
fn is_fuse(below: &Standing) -> bool {
    let fs_type = below.mount.as_ref().map_or("", |m| m.fs_type.as_str());
    fs_type == "fuse" || fs_type.starts_with("fuse.")
}

/// First line of a file, unless it is empty.
fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn number(path: &Path) -> Option<u64> {
    line(path)?.parse().ok()
}

fn governors(cpus: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(cpus) else {
        return Vec::new();
    };
    let of = |entry: fs::DirEntry| line(&entry.path().join("cpufreq/scaling_governor"));
    let mut all: Vec<String> = entries.flatten().filter_map(of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn ntp() -> Option<NtpState> {
    // SAFETY: all fields are numbers, for which zero is a value.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is a valid structure, and with no mode set it is only written to.
    let clock_state = unsafe { libc::adjtimex(&mut state) };
    if clock_state < 0 {
        return None;
    }
    let positive = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Some(NtpState {
        synchronised: clock_state != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        max_error_us: positive(state.maxerror),
        estimated_error_us: positive(state.esterror),
        // Parts per million, with 16 fractional bits.
        frequency_ppm: state.freq as f64 / 65536.0,
    })
}

/// Limits of the control groups of this process.
pub(crate) fn own_limits() -> GroupLimits {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups: Vec<(String, String)> = text.lines().filter_map(group).collect();
    group_limits(Path::new("/sys/fs/cgroup"), &groups)
}

/// (controllers, path) of a hierarchy of control groups, from `4:cpu,cpuacct:/path` or
/// `0::/path`; the unified hierarchy has no controllers.
fn group(line: &str) -> Option<(String, String)> {
    let mut fields = line.splitn(3, ':').skip(1);
    Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
}

fn group_limits(root: &Path, groups: &[(String, String)]) -> GroupLimits {
    let mut limits = GroupLimits::default();
    for (controllers, path) in groups {
        let has = |name: &str| controllers.split(',').any(|c| c == name);
        let unified = controllers.is_empty();
        for folder in folders(root, controllers, path) {
            let cpus = if unified {
                line(&folder.join("cpu.max")).and_then(|text| share(&text))
            } else if has("cpu") {
                quota(&folder)
            } else {
                None
            };
            let memory = if unified {
                number(&folder.join("memory.max"))
            } else if has("memory") {
                // Without a limit, it is the largest number of whole pages.
                number(&folder.join("memory.limit_in_bytes")).filter(|n| *n < 1 << 62)
            } else {
                None
            };
            limits.cpus = least(limits.cpus, cpus);
            limits.memory_bytes = least(limits.memory_bytes, memory);
        }
    }
    limits
}

fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Directories of the group and of its ancestors, for all usual mount points.
fn folders(root: &Path, controllers: &str, path: &str) -> Vec<PathBuf> {
    let places = match controllers {
        "" => vec![root.to_owned(), root.join("unified")],
        names => {
            let each = names.split(',').map(|name| root.join(name));
            each.chain([root.join(names)]).collect()
        }
    };
    let path = Path::new(path.trim_start_matches('/'));
    let below = |mount: &PathBuf| {
        let mount = mount.clone();
        path.ancestors().map(move |part| mount.join(part))
    };
    places.iter().flat_map(below).collect()
}

/// Reads `50000 100000` and `max 100000`: us of CPU time per period.
fn share(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    part(quota.parse().ok()?, period.trim().parse().ok()?)
}

fn quota(folder: &Path) -> Option<f64> {
    // Without a limit, it is -1.
    let quota = number(&folder.join("cpu.cfs_quota_us"))?;
    part(
        quota as f64,
        number(&folder.join("cpu.cfs_period_us"))? as f64,
    )
}

fn part(quota: f64, period: f64) -> Option<f64> {
    (period > 0.0).then(|| quota / period)
}

fn connection(root: &Path, device: u64) -> FuseSettings {
    let number_of = u64::from(libc::minor(device));
    let folder = root.join(number_of.to_string());
    FuseSettings {
        connection: number_of,
        max_background: number(&folder.join("max_background")),
        congestion_threshold: number(&folder.join("congestion_threshold")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn each_governor_is_named_once() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (cpu, governor) in [
            ("cpu0", "powersave\n"),
            ("cpu1", "performance\n"),
            ("cpu2", "powersave\n"),
        ] {
            put(
                root.path(),
                &format!("{cpu}/cpufreq/scaling_governor"),
                governor,
            );
        }
        put(root.path(), "online", "0-2");
        assert_eq!(governors(root.path()), ["performance", "powersave"]);
        assert_eq!(governors(&root.path().join("none")), [""; 0]);
    }

    #[test]
    fn the_tightest_limit_of_all_groups_above_holds() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let limits = |lines: &[&str]| {
            let groups: Vec<_> = lines.iter().filter_map(|line| group(line)).collect();
            group_limits(root.path(), &groups)
        };
        assert_eq!(limits(&["0::/a/b"]), GroupLimits::default());
        put(root.path(), "a/cpu.max", "150000 100000\n");
        put(root.path(), "a/b/cpu.max", "max 100000\n");
        put(root.path(), "a/memory.max", "max\n");
        put(root.path(), "a/b/memory.max", "1073741824\n");
        let unified = GroupLimits {
            cpus: Some(1.5),
            memory_bytes: Some(1 << 30),
        };
        assert_eq!(limits(&["0::/a/b"]), unified);
        put(root.path(), "cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
        put(root.path(), "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
        put(
            root.path(),
            "memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        put(root.path(), "memory/job/memory.limit_in_bytes", "4096\n");
        let old = ["5:memory:/job", "4:cpu,cpuacct:/job", "3:pids:/job"];
        let expect = GroupLimits {
            cpus: None,
            memory_bytes: Some(4096),
        };
        assert_eq!(limits(&old), expect);
        put(root.path(), "cpu,cpuacct/job/cpu.cfs_quota_us", "25000\n");
        assert_eq!(limits(&old).cpus, Some(0.25));
        put(root.path(), "a/b/memory.max", "4096\n");
        put(root.path(), "a/b/c/memory.max", "max\n");
        put(root.path(), "a/memory.max", "8192\n");
        let memory = |line| limits(&[line]).memory_bytes;
        assert_eq!(memory("0::/a/b/c"), Some(4096));
        assert_eq!(memory("0::/a"), Some(8192));
        assert_eq!((memory("0::/"), memory("0::/missing")), (None, None));
        let of = |line| group(line).expect("a line");
        assert_eq!(of("7:blkio,x:/a:b"), ("blkio,x".into(), "/a:b".into()));
        assert_eq!(of("4:memory:/"), ("memory".into(), "/".into()));
        assert_eq!(of("0::/user/me"), (String::new(), "/user/me".into()));
    }

    #[test]
    fn a_connection_is_known_by_the_minor_number_of_its_device() {
        let root = tempfile::tempdir().expect("a temporary directory");
        put(root.path(), "53/max_background", "12\n");
        put(root.path(), "53/congestion_threshold", "9\n");
        let expect = FuseSettings {
            connection: 53,
            max_background: Some(12),
            congestion_threshold: Some(9),
        };
        assert_eq!(connection(root.path(), libc::makedev(0, 53)), expect);
        let unknown = connection(root.path(), libc::makedev(0, 54));
        assert_eq!(unknown.max_background, None);
    }

    #[test]
    fn the_clock_of_this_host_is_what_adjtimex_says() {
        let here = surroundings(&std::env::temp_dir());
        let ntp = here.ntp.expect("every kernel tells");
        // rbench's call only reads, so a second reading has the same result.
        let again = surroundings(&std::env::temp_dir()).ntp.expect("told");
        assert_eq!(ntp.frequency_ppm, again.frequency_ppm);
        assert_eq!((here.fuse, here.client), (None, None));
        // Compares with Python's call of libc, if Python is installed.
        let script = "import ctypes; b = ctypes.create_string_buffer(512); \
                      print(ctypes.CDLL(None).adjtimex(b))";
        if let Ok(output) = Command::new("python3").args(["-c", script]).output() {
            let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if let Ok(state) = state.parse::<i32>() {
                let unsynchronised = state == libc::TIME_ERROR;
                assert!(!(ntp.synchronised && unsynchronised), "{ntp:?} {state}");
            }
        }
    }
}
