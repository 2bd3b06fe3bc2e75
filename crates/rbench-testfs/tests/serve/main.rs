//! Tests of the file system in its own process, as rbench starts it: its end, its traces on the
//! machine, and its messages when it cannot be mounted. This binary contains the tests and,
//! selected by a role in its environment, the processes that they start. It has its own `main`,
//! because serving must start in a process with a single thread.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::mount::MsFlags;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::Pid;
use rbench_core::{Bytes, Nanos};
use rbench_testfs::{Config, FaultRecord, ServeOptions, StatsFile, mount, serve};
use tempfile::TempDir;

/// A budget that no test reaches.
const PLENTY: Bytes = Bytes(256 << 20);

/// Role of a started process; its value is one of the roles below.
const ROLE: &str = "RBENCH_TESTFS_ROLE";

/// An unprivileged user and group.
const NOBODY: u32 = 65534;

/// A timeout that no step here reaches.
const LONG: Duration = Duration::from_secs(300);

/// The tests of a module, with their full names.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub const TESTS: &[(&str, fn())] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),+];
    };
}

mod needs_fuse;

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        return play(&role);
    }
    let wanted = wanted(std::env::args().skip(1));
    let mut failed = 0;
    let all = needs_fuse::TESTS
        .iter()
        .chain(needs_fuse::needs_root::TESTS);
    for (name, test) in all.filter(|(name, _)| wanted.takes(name)) {
        if wanted.lists {
            println!("{name}: test");
            continue;
        }
        let outcome = std::panic::catch_unwind(test);
        println!(
            "test {name} ... {}",
            if outcome.is_ok() { "ok" } else { "FAILED" }
        );
        failed += u8::from(outcome.is_err());
    }
    println!("test result: {failed} failed");
    ExitCode::from(failed)
}

/// Selection of tests, in the options of the usual test programs.
#[derive(Default)]
struct Wanted {
    lists: bool,
    exact: bool,
    names: Vec<String>,
    skipped: Vec<String>,
}

fn wanted(mut arguments: impl Iterator<Item = String>) -> Wanted {
    let mut wanted = Wanted::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => wanted.lists = true,
            "--exact" => wanted.exact = true,
            "--skip" => wanted.skipped.extend(arguments.next()),
            // Options on threads and output have no effect here.
            "--test-threads" | "--color" | "--format" => drop(arguments.next()),
            option if option.starts_with('-') => {}
            _ => wanted.names.push(argument),
        }
    }
    wanted
}

impl Wanted {
    fn takes(&self, name: &str) -> bool {
        let fits = |part: &String| match self.exact {
            true => name == part,
            false => name.contains(part.as_str()),
        };
        (self.names.is_empty() || self.names.iter().any(fits)) && !self.skipped.iter().any(fits)
    }
}

// ---- The roles of the processes that the tests start ----

/// Plays `role` with its own arguments.
fn play(role: &str) -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let point = &arguments[0];
    let outcome = match role {
        "serve" | "watch" | "serve-cached" => serve(
            match role {
                "serve-cached" => cached(config(&arguments)),
                _ => config(&arguments),
            },
            point,
            &ServeOptions {
                stats: arguments.get(1).cloned(),
                parent_watch: role == "watch",
                ..ServeOptions::default()
            },
        )
        .map_err(|e| e.to_string()),
        "starter" => be_a_starter(point),
        "user" => use_a_mount(point),
        "mortal" => die_on_a_mount(point),
        "no-device" => without_device(point),
        "nobody" => as_nobody(point, "user"),
        "mortal-nobody" => as_nobody(point, "mortal"),
        "mortal-nobody-with-list" => {
            leave_the_mounts_of_others();
            let list = "/sys/fs/fuse/connections";
            let kind = Some("fusectl");
            nix::mount::mount(NONE, list, kind, MsFlags::empty(), NONE).expect("root");
            as_nobody(point, "mortal")
        }
        role => Err(format!("there is no role {role}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(1)
        }
    }
}

/// A configuration in memory and uncached. The third argument is its fault, the fourth its fault
/// log; with a log, power can be cut.
fn config(arguments: &[PathBuf]) -> Config {
    let mut config = Config::memory(PLENTY).uncached();
    if let Some(fault) = arguments.get(2).and_then(|fault| fault.to_str()) {
        config.faults = vec![fault.parse().expect("well formed")];
    }
    config.fault_log = arguments.get(3).cloned();
    config.power_cut = config.fault_log.is_some();
    config
}

/// The kernel keeps everything that it has seen.
fn cached(config: Config) -> Config {
    Config {
        attr_timeout: Nanos(LONG.as_nanos() as u64),
        entry_timeout: Nanos(LONG.as_nanos() as u64),
        ..config
    }
}

/// Mounts a file system and lets it die.
fn die_on_a_mount(point: &Path) -> Result<(), String> {
    let fault = "mkdir:die@nth=1".parse().expect("well formed");
    let config = Config {
        faults: vec![fault],
        ..Config::memory(PLENTY)
    };
    let mounted = mount(config, point).map_err(|e| e.to_string())?;
    assert!(fs::create_dir(point.join("d")).is_err());
    let dead = fs::metadata(point).map_err(|e| e.raw_os_error());
    assert_eq!(dead.err(), Some(Some(libc::ENOTCONN)));
    mounted.unmount().map_err(|e| e.to_string())?;
    assert!(!is_mounted(point));
    Ok(())
}

/// Starts a watched file system, prints its process number, and waits to be killed.
fn be_a_starter(point: &Path) -> Result<(), String> {
    let mut child = role("watch", &[point]).spawn().expect("this program");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("readable");
    print!("{} {line}", child.id());
    std::io::stdout().flush().expect("writable");
    std::thread::sleep(LONG);
    drop(child.stdin.take());
    child.wait().expect("a child");
    Err("not killed".to_owned())
}

/// Mounts, uses the mount and unmounts in one process.
fn use_a_mount(point: &Path) -> Result<(), String> {
    let mounted = mount(Config::memory(PLENTY), point).map_err(|e| e.to_string())?;
    let file = point.join("file");
    fs::write(&file, "text").map_err(|e| e.to_string())?;
    let text = fs::read_to_string(&file).map_err(|e| e.to_string())?;
    assert_eq!(text, "text");
    assert!(is_mounted(point));
    mounted.unmount().map_err(|e| e.to_string())?;
    assert!(!is_mounted(point));

    // A file in use makes the unmount a detachment.
    let mounted = mount(Config::memory(PLENTY), point).map_err(|e| e.to_string())?;
    let mut open = File::create(&file).map_err(|e| e.to_string())?;
    mounted.unmount().map_err(|e| e.to_string())?;
    assert!(!is_mounted(point));
    open.write_all(b"still").map_err(|e| e.to_string())
}

/// Moves this process to its own mount namespace.
fn leave_the_mounts_of_others() {
    unshare(CloneFlags::CLONE_NEWNS).expect("root");
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    nix::mount::mount(NONE, "/", NONE, private, NONE).expect("root");
}

const NONE: Option<&str> = None;

/// Tries to mount without /dev/fuse.
fn without_device(point: &Path) -> Result<(), String> {
    leave_the_mounts_of_others();
    let fresh = Some("tmpfs");
    nix::mount::mount(NONE, "/dev", fresh, MsFlags::empty(), NONE).expect("root");
    use_a_mount(point)
}

/// Becomes the user nobody and plays `role`. /dev/fuse is open to all, as on most systems.
fn as_nobody(point: &Path, role: &str) -> Result<(), String> {
    leave_the_mounts_of_others();
    let device = point.with_file_name("fuse");
    let mode = Mode::from_bits_truncate(0o666);
    let number = fs::metadata("/dev/fuse").expect("there").rdev();
    mknod(&device, SFlag::S_IFCHR, mode, number).expect("root");
    fs::set_permissions(&device, fs::Permissions::from_mode(0o666)).expect("own");
    let over = "/dev/fuse";
    nix::mount::mount(Some(&device), over, NONE, MsFlags::MS_BIND, NONE).expect("root");
    let error = Command::new(std::env::current_exe().expect("known"))
        .arg(point)
        .env(ROLE, role)
        .uid(NOBODY)
        .gid(NOBODY)
        .exec();
    Err(error.to_string())
}

// ---- What the tests have in common ----

/// A process of this program with the role `role`.
fn role(role: &str, arguments: &[&Path]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command
        .env(ROLE, role)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn is_mounted(point: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    table
        .lines()
        .any(|line| line.split(' ').nth(4).map(Path::new) == Some(point))
}

/// Waits until `done`.
fn await_that(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A started file system, which removes everything that a test leaves.
struct Served {
    child: Child,
    point: PathBuf,
    _folder: TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let flags = nix::mount::MntFlags::MNT_DETACH;
        let _ = nix::mount::umount2(&self.point, flags);
    }
}

impl Served {
    fn start(name: &str, arguments: &[&Path]) -> Served {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let point = folder.path().canonicalize().expect("there");
        let mut all = vec![point.as_path()];
        all.extend(arguments);
        let mut child = role(name, &all).spawn().expect("this program");
        if name == "watch" {
            let mut line = String::new();
            let out = child.stdout.as_mut().expect("piped");
            BufReader::new(out).read_line(&mut line).expect("readable");
            assert_eq!(line, "ready\n");
            assert!(is_mounted(&point), "ready before it is mounted");
        }
        let served = Served {
            child,
            point,
            _folder: folder,
        };
        await_that("the mount", || is_mounted(&served.point));
        served
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it lives");
    }

    /// True if the signal was sent and not yet received.
    fn is_pending(&self, signal: Signal) -> bool {
        let status = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(status).expect("it lives");
        let mask = status.lines().find_map(|l| l.strip_prefix("ShdPnd:"));
        let mask = u64::from_str_radix(mask.expect("its signals").trim(), 16);
        mask.expect("a mask") & (1 << (signal as i32 - 1)) != 0
    }

    /// Waits until it has handled all earlier events and still runs. It must write its statistics
    /// to `file` twice on SIGUSR1; at its end it would write them once. Signals are received by
    /// their numbers, those above SIGUSR1 after it.
    fn still_listens(&self, file: &Path) {
        for _ in 0..2 {
            await_that("earlier statistics", || fs::remove_file(file).is_ok());
            self.signal(Signal::SIGUSR1);
            await_that("statistics", || file.exists());
        }
    }

    /// Waits for the end. Returns true for success, and the messages.
    fn end(&mut self) -> (bool, String) {
        let mut status = None;
        await_that("the end", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        let mut message = String::new();
        let err = self.child.stderr.as_mut().expect("piped");
        err.read_to_string(&mut message).expect("readable");
        (status.is_some_and(|status| status.success()), message)
    }

    /// Waits for a successful end that leaves no mount.
    fn end_well(&mut self) {
        assert_eq!(self.end(), (true, String::new()));
        assert!(!is_mounted(&self.point), "a mount is left");
    }
}

fn stats(path: &Path) -> StatsFile {
    let text = fs::read(path).expect("written");
    serde_json::from_slice(&text).expect("the schema")
}
