//! Limits of this process, resources that it has used, and facts of its host.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::time::TimeValLike;
use nix::sys::utsname::uname;
use nix::unistd::Pid;
use rbench_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::proc;

/// Raises the limit of open files to the maximum, and returns it.
pub fn raise_open_files() -> Result<u64, Errno> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

/// Makes writes beyond the user's limit of file sizes (`ulimit -f`) fail with `EFBIG`, like on
/// any full file system. Otherwise SIGXFSZ would end the process. Started programs keep their
/// own action.
pub fn outlive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    let handler = SigHandler::Handler(nothing);
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing. If it cannot be installed, nothing changes.
    let _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
}

/// The user's limit of processes and threads (`RLIMIT_NPROC`); `None` without a limit, like
/// for root.
pub fn processes() -> Result<Option<u64>, Errno> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NPROC)?;
    let unlimited = soft == RLIM_INFINITY || nix::unistd::geteuid().is_root();
    Ok((!unlimited).then_some(soft))
}

/// True if this process may lock any amount of memory: `RLIMIT_MEMLOCK` is unlimited, or the
/// process has `CAP_IPC_LOCK` outside of user namespaces, like the host's root. Unknown counts
/// as false.
pub fn locks_memory_freely() -> bool {
    /// Inode number of the first user namespace, the same on every Linux.
    const FIRST_USER_NAMESPACE: u64 = 0xefff_fffd;
    const CAP_IPC_LOCK: u64 = 1 << 14;
    if getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY) {
        return true;
    }
    let capable = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| u64::from_str_radix(proc::field(&status, "CapEff:")?, 16).ok())
        .is_some_and(|capabilities| capabilities & CAP_IPC_LOCK != 0);
    let first = fs::metadata("/proc/self/ns/user").is_ok_and(|ns| ns.ino() == FIRST_USER_NAMESPACE);
    capable && first
}

/// Memory available without swapping: `MemAvailable` in `/proc/meminfo`. It ignores a smaller
/// limit of a control group.
pub fn available_memory() -> io::Result<Bytes> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let available = proc::kib(&text, "MemAvailable:");
    available.ok_or_else(|| io::Error::other("/proc/meminfo has no line MemAvailable"))
}

/// Facts of the host that a report names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// Number of online processors.
    pub cpus: u32,
}

/// The facts of this host.
pub fn host_facts() -> Result<HostFacts, Errno> {
    let names = uname()?;
    // SAFETY: sysconf returns a number, and touches no memory of this process.
    let cpus = Errno::result(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) })?;
    Ok(HostFacts {
        name: names.nodename().to_string_lossy().into_owned(),
        kernel: names.release().to_string_lossy().into_owned(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    })
}

/// Scope of this process's number: this boot of the kernel, and the process namespace. Host
/// names may not be unique. `None` without /proc.
pub fn process_space() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let numbers = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(format!("{}/{numbers}", boot.trim()))
}

/// The memory of this host in bytes.
pub fn total_memory() -> u64 {
    // SAFETY: sysconf returns a number, and touches no memory of this process.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).unwrap_or(0) * page_size()
}

/// The size of a page in bytes.
pub fn page_size() -> u64 {
    // SAFETY: sysconf returns a number, and touches no memory of this process.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// CPU time (user and system) that all threads of this process have used until now, to the
/// microsecond.
pub fn process_cpu() -> Result<Nanos, Errno> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let spent = usage.user_time() + usage.system_time();
    Ok(Nanos(spent.num_nanoseconds().unsigned_abs()))
}

/// Resources that a thread has used until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time in its own code, to the microsecond.
    pub user: Nanos,
    /// CPU time in the kernel on its behalf, to the microsecond.
    pub system: Nanos,
    /// Number of context switches, voluntary or not.
    pub switches: u64,
    /// Page faults that waited for I/O.
    pub faults_major: u64,
    /// Page faults that did not wait.
    pub faults_minor: u64,
}

impl Usage {
    /// The sum with another thread's usage.
    pub fn with(self, other: Usage) -> Usage {
        Usage {
            user: Nanos(self.user.0.saturating_add(other.user.0)),
            system: Nanos(self.system.0.saturating_add(other.system.0)),
            switches: self.switches.saturating_add(other.switches),
            faults_major: self.faults_major.saturating_add(other.faults_major),
            faults_minor: self.faults_minor.saturating_add(other.faults_minor),
        }
    }

    /// The usage since `earlier`, of the same thread.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            user: self.user.since(earlier.user),
            system: self.system.since(earlier.system),
            switches: self.switches.saturating_sub(earlier.switches),
            faults_major: self.faults_major.saturating_sub(earlier.faults_major),
            faults_minor: self.faults_minor.saturating_sub(earlier.faults_minor),
        }
    }
}

/// Resources that the calling thread has used since its start.
pub fn thread_usage() -> Usage {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("every Linux from 2.6.26 on knows it");
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Usage {
        user: Nanos(usage.user_time().num_nanoseconds().unsigned_abs()),
        system: Nanos(usage.system_time().num_nanoseconds().unsigned_abs()),
        switches: count(usage.voluntary_context_switches())
            + count(usage.involuntary_context_switches()),
        faults_major: count(usage.major_page_faults()),
        faults_minor: count(usage.minor_page_faults()),
    }
}

/// Limits the lateness of the calling thread's wake-ups to `slack`, at least 1 ns. The kernel
/// groups wake-ups; the default is 50 us.
pub fn set_timer_slack(slack: Nanos) -> Result<(), Errno> {
    prctl::set_timerslack(slack.0.max(1))
}

/// The processors that the calling thread may run on, ascending.
pub fn allowed_cpus() -> Result<Vec<usize>, Errno> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let all = 0..CpuSet::count();
    Ok(all.filter(|cpu| set.is_set(*cpu) == Ok(true)).collect())
}

/// Binds the calling thread to one processor.
///
/// # Errors
/// `EINVAL` if the processor does not exist, or the thread may not run on it.
pub fn stay_on(cpu: usize) -> Result<(), Errno> {
    stay_on_any(&[cpu])
}

/// Binds the calling thread to these processors.
///
/// # Errors
/// `EINVAL` if a processor does not exist, or the thread may run on none of them.
pub fn stay_on_any(cpus: &[usize]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// True if the kernel keeps its own time by the processor's counter (the TSC). It has then
/// found that the counter is constant and equal on all processors, and monitors it. Unknown
/// counts as false.
pub fn counter_is_kept() -> bool {
    let source =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::time::{ClockId, clock_gettime};

    use super::*;

    fn output(program: &str, args: &[&str]) -> String {
        let output = Command::new(program)
            .args(args)
            .output()
            .expect("the program runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn available_memory_is_read() {
        let here = available_memory().expect("/proc is mounted");
        assert!(here.0 > 1 << 20, "{here}");
    }

    #[test]
    fn the_facts_of_the_host_are_those_of_uname_and_nproc() {
        let facts = host_facts().expect("uname works");
        assert_eq!(facts.name, output("uname", &["-n"]));
        assert_eq!(facts.kernel, output("uname", &["-r"]));
        assert_eq!(
            facts.cpus.to_string(),
            output("getconf", &["_NPROCESSORS_ONLN"])
        );
    }

    #[test]
    fn cpu_time_is_that_of_the_process_clock() {
        let clock = || {
            let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
            Nanos(now.expect("it exists").num_nanoseconds().unsigned_abs())
        };
        let start = clock();
        while clock().since(start).0 < 200_000_000 {
            std::hint::black_box(0);
        }
        let before = clock();
        let spent = process_cpu().expect("getrusage works");
        let after = clock();
        let tolerance = 50_000_000;
        assert!(spent.0 + tolerance > before.0, "{spent} < {before}");
        assert!(spent.0 < after.0 + tolerance, "{spent} > {after}");
    }

    #[test]
    fn the_usage_of_a_thread_is_its_own() {
        let own_clock = || {
            let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
            Nanos(now.expect("it exists").num_nanoseconds().unsigned_abs())
        };
        let work = move || {
            let before = thread_usage();
            while own_clock().0 < 200_000_000 {
                std::hint::black_box(0);
            }
            for _ in 0..5 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let pages = crate::AlignedBuffer::new(4096).expect("a page is there");
            drop(std::hint::black_box(pages));
            (thread_usage().since(before), own_clock())
        };
        let other = std::thread::spawn(work);
        let before = thread_usage();
        let (used, clock) = other.join().expect("no panic");
        let spent = used.user.0 + used.system.0;
        assert!(spent.abs_diff(clock.0) < 50_000_000, "{used:?}, {clock}");
        assert!(used.switches >= 5, "{used:?}");
        assert!(used.faults_minor >= 1, "{used:?}");
        let here = thread_usage().since(before);
        assert!(here.user.0 + here.system.0 < 100_000_000, "{here:?}");
    }

    #[test]
    fn a_thread_stays_on_the_processor_it_was_given() {
        std::thread::spawn(|| {
            let cpus = allowed_cpus().expect("the kernel tells");
            let last = *cpus.last().expect("there is one");
            stay_on(last).expect("it is allowed");
            assert_eq!(allowed_cpus(), Ok(vec![last]));
            assert_eq!(stay_on(CpuSet::count() - 1), Err(Errno::EINVAL));
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn timer_slack_is_set_for_the_calling_thread() {
        set_timer_slack(Nanos(1234)).expect("the slack can be set");
        assert_eq!(prctl::get_timerslack(), Ok(1234));
        set_timer_slack(Nanos(0)).expect("the slack can be set");
        assert_eq!(prctl::get_timerslack(), Ok(1), "0 would mean the default");
    }
}
