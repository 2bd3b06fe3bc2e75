//! Processes of this host: search by name, and used resources.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use rbench_core::{Bytes, Nanos};

use crate::proc::{Stat, kib, numbers};

/// A process, distinct from a later one of the same number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its number.
    pub number: u32,
    /// Its start, in the kernel's ticks since boot.
    pub started: u64,
}

/// Resources that a process has used since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessUse {
    /// CPU time of all its threads, to the nanosecond.
    pub cpu: Nanos,
    /// CPU time in its own code, in whole ticks (usually 10 ms).
    pub user: Nanos,
    /// CPU time in the kernel on its behalf, in whole ticks.
    pub system: Nanos,
    /// Current resident memory.
    pub resident: Bytes,
    /// Peak of the resident memory.
    pub peak: Bytes,
}

impl Process {
    /// The process with this number, unless it has ended or is not visible.
    pub fn of(number: u32) -> Option<Process> {
        Some(Times::of(number)?.process)
    }

    /// This process.
    pub fn this() -> Process {
        let (number, started) = (std::process::id(), 0);
        Process::of(number).unwrap_or(Process { number, started })
    }

    /// True if it has not ended yet.
    pub fn is_running(self) -> bool {
        Process::of(self.number) == Some(self)
    }

    /// CPU time of all its threads until now, to the nanosecond; `None` if it has ended or is not
    /// visible. It never blocks, whatever the process does.
    pub fn cpu(self) -> Option<Nanos> {
        let pid = Pid::from_raw(i32::try_from(self.number).ok()?);
        let clock = ClockId::pid_cpu_clock_id(pid).ok()?;
        let cpu = clock_gettime(clock).ok()?;
        // Checked last: the values read before belong to the process that exists now.
        Times::of(self.number).filter(|times| times.process == self)?;
        let whole = u64::try_from(cpu.tv_sec()).ok()? * 1_000_000_000;
        Some(Nanos(whole + u64::try_from(cpu.tv_nsec()).ok()?))
    }

    /// Resources that it has used until now; `None` if it has ended or is not visible.
    pub fn used(self) -> Option<ProcessUse> {
        let pid = Pid::from_raw(i32::try_from(self.number).ok()?);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        // Checked last: the values read before belong to the process that exists now.
        let cpu = self.cpu()?;
        let times = Times::of(self.number).filter(|times| times.process == self)?;
        let tick_ns = tick_ns();
        Some(ProcessUse {
            cpu,
            user: Nanos(times.user_ticks * tick_ns),
            system: Nanos(times.system_ticks * tick_ns),
            resident: kib(&status, "VmRSS:")?,
            peak: kib(&status, "VmHWM:")?,
        })
    }
}

/// True if a process has the same UTS namespace (uts_namespaces(7)) as this one. Hosts that are
/// namespaces of one machine may share process numbers: this decides to which host a process
/// belongs.
pub fn is_of_this_host(process: Process) -> bool {
    let space = |whose: &str| fs::metadata(format!("/proc/{whose}/ns/uts")).map(|m| m.ino());
    match (space(&process.number.to_string()), space("self")) {
        (Ok(its), Ok(own)) => its == own,
        _ => false,
    }
}

/// The processes with that name, ascending by number, except those with the numbers `besides`.
/// The name is that of the process, or the file name of the first word of its command line.
pub fn named(name: &str, besides: &[u32]) -> Vec<Process> {
    let has_name = |number: &u32| has_name(&Path::new("/proc").join(number.to_string()), name);
    let others = numbers("/proc").filter(|number| !besides.contains(number));
    let named = others.filter(has_name);
    let mut processes: Vec<Process> = named.filter_map(Process::of).collect();
    processes.sort_unstable();
    processes
}

fn has_name(process: &Path, name: &str) -> bool {
    let comm = fs::read_to_string(process.join("comm")).unwrap_or_default();
    if comm.trim_end_matches('\n') == name {
        return true;
    }
    let command = command_line(process).unwrap_or_default();
    let first = command.split(|byte| *byte == 0).next().unwrap_or_default();
    first.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
}

/// Time limit for reading a process's command line.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// The command line of the process with this directory in `/proc`, each word followed by a zero.
/// It lies in the memory of the process, and reading it may block on the memory's lock. This
/// happens, for example, while a thread waits for a hanging file system. `None` if it takes too
/// long.
pub(crate) fn command_line(process: &Path) -> Option<Vec<u8>> {
    read_within(process.join("cmdline"), READ_WITHIN)
}

/// The content of a file, unless reading it takes too long; the reading thread is then abandoned.
fn read_within(path: PathBuf, patience: Duration) -> Option<Vec<u8>> {
    let (sender, content) = channel();
    let read = move || {
        // The receiver may be gone.
        let _ = sender.send(fs::read(path).ok());
    };
    let thread = std::thread::Builder::new().name("rbench-proc".to_owned());
    thread.spawn(read).ok()?;
    content.recv_timeout(patience).ok().flatten()
}

/// A process and the times that it has used.
struct Times {
    process: Process,
    user_ticks: u64,
    system_ticks: u64,
}

impl Times {
    fn of(number: u32) -> Option<Times> {
        let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        Times::read(number, &text)
    }

    /// Parses the fields; `None` also for a process that has ended but was not waited for.
    fn read(number: u32, text: &str) -> Option<Times> {
        let stat = Stat::read(text).filter(|stat| !stat.has_ended())?;
        let started = stat.field(22)?;
        Some(Times {
            process: Process { number, started },
            user_ticks: stat.field(14)?,
            system_ticks: stat.field(15)?,
        })
    }
}

/// Length of a tick of the kernel's accounting.
fn tick_ns() -> u64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    let ticks = ticks.ok().flatten().and_then(|n| u64::try_from(n).ok());
    1_000_000_000 / ticks.filter(|n| *n > 0).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;
    use crate::limits::process_cpu;

    /// A process of this test with its own name.
    fn sleeper(name: &str) -> std::process::Child {
        let mut command = Command::new("bash");
        let script = format!("exec -a /opt/{name} sleep 300");
        command.args(["-c", &script]).spawn().expect("bash")
    }

    /// Waits until it holds: a busy machine may read a command line too late for a single look.
    fn wait_until(holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed().as_secs() < 300, "in vain");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_command_line_that_cannot_be_read_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("temporary directory");
        // Like a process whose memory is locked: no writer comes to release the reader.
        let process = dir.path().join("7");
        fs::create_dir(&process).expect("made");
        let path = process.join("cmdline");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("made");
        assert_eq!(read_within(path.clone(), Duration::from_millis(20)), None);
        assert_eq!(command_line(&process), None);
        fs::remove_file(&path).expect("removed");
        fs::write(&path, b"a\0b\0").expect("written");
        wait_until(|| command_line(&process).as_deref() == Some(&b"a\0b\0"[..]));
    }

    #[test]
    fn a_process_has_used_what_the_kernel_tells_itself() {
        let me = Process::of(std::process::id()).expect("this process");
        let before = me.used().expect("used");
        let start = Instant::now();
        while start.elapsed().as_millis() < 50 {
            std::hint::spin_loop();
        }
        let cpu_before = process_cpu().expect("getrusage");
        let after = me.used().expect("used");
        let later = process_cpu().expect("getrusage");
        // getrusage counts in whole microseconds.
        assert!(after.cpu.0 + 1000 >= cpu_before.0 && after.cpu.0 <= later.0 + 1000);
        assert!(after.cpu > before.cpu);
        let parts = after.user.0 + after.system.0;
        assert!(parts <= later.0 + 1000, "{parts} {later:?}");
        assert!(after.resident.0 > 0 && after.peak >= after.resident);
    }

    #[test]
    fn names_are_those_of_processes_and_of_their_commands() {
        let name = format!("rbench-named-{}", std::process::id());
        assert_eq!(named(&name, &[]), []);
        let mut child = sleeper(&name);
        let number = child.id();
        let process = Process::of(number).expect("it runs");
        wait_until(|| named(&name, &[]) == [process]);
        assert_eq!(named(&name, &[number]), []);
        wait_until(|| named("sleep", &[]).contains(&process));
        assert!(!named("leep", &[]).contains(&process));
        child.kill().expect("killed");
        // Until it is waited for it still has a number. Its memory is freed first.
        wait_until(|| process.used().is_none() && Process::of(number).is_none());
        child.wait().expect("waited for");
        assert_eq!(named(&name, &[]), []);
    }

    #[test]
    fn a_name_with_parentheses_is_read_over() {
        let rest = "R 1 1 1 0 -1 4194304 1 0 0 0 11 12 0 0 20 0 1 0 77 1 1";
        let times = Times::read(5, &format!("5 (a) R 9) {rest}")).expect("read");
        assert_eq!((times.user_ticks, times.system_ticks), (11, 12));
        assert_eq!(times.process.started, 77);
        let ended = rest.replacen('R', "Z", 1);
        assert!(Times::read(5, &format!("5 (a) {ended}")).is_none());
        assert!(Times::read(5, "5 (a) R 1").is_none());
    }
}
