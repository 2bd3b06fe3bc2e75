//! Attributes of the calling thread in the kernel: processors, memory nodes, priorities,
//! user. Changes do not affect other threads.

use std::ffi::CString;
use std::fs;

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;
use rbench_core::IoPriority;

/// Limit for the number of memory nodes in a policy.
const NODES_MAX: usize = 1024;
const WORD: usize = usize::BITS as usize;

/// Names the thread; bytes after the 15th are cut off.
///
/// # Errors
/// `EINVAL` if the name contains a zero byte.
pub fn set_name(name: &str) -> Result<(), Errno> {
    prctl::set_name(&CString::new(name).map_err(|_| Errno::EINVAL)?)
}

/// Checks that this host has these processors.
///
/// # Errors
/// A clause that names the missing processor.
pub fn are_there(cpus: &[u32]) -> Result<(), String> {
    // SAFETY: sysconf only reads.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    match cpus.iter().find(|cpu| i64::from(**cpu) >= count) {
        Some(cpu) => Err(format!(
            "there is no processor {cpu}: valid are 0 to {}",
            count - 1
        )),
        None => Ok(()),
    }
}

/// Pins the thread to these processors.
///
/// # Errors
/// A clause that names the missing processor, or says why it may not be used.
pub fn stay_on_any(cpus: &[u32]) -> Result<(), String> {
    are_there(cpus)?;
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize)
            .map_err(|_| format!("processor {cpu} is beyond the limit of the kernel's call"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| errno.desc().to_owned())
}

/// The processors of a memory node.
///
/// # Errors
/// A clause that names the missing node.
pub fn cpus_of_node(node: u32) -> Result<Vec<u32>, String> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let text = fs::read_to_string(path).map_err(|_| format!("there is no memory node {node}"))?;
    Ok(list(text.trim()))
}

/// The memory nodes of this machine.
pub fn nodes() -> Vec<u32> {
    let online = fs::read_to_string("/sys/devices/system/node/online");
    online.map_or_else(|_| vec![0], |text| list(text.trim()))
}

/// Reads the kernel's form `0-2,5`.
fn list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Sets the memory policy of the thread: one of the kernel's `MPOL_` modes and its nodes.
///
/// # Errors
/// The kernel's error.
pub fn set_memory_policy(mode: i32, nodes: &[u32]) -> Result<(), Errno> {
    let mut mask = [0_usize; NODES_MAX / WORD];
    for node in nodes {
        let node = *node as usize;
        let word = mask.get_mut(node / WORD).ok_or(Errno::EINVAL)?;
        *word |= 1 << (node % WORD);
    }
    let mask = match nodes {
        [] => std::ptr::null(),
        _ => mask.as_ptr(),
    };
    // The kernel reads one bit less than the given number.
    let bits = if nodes.is_empty() { 0 } else { NODES_MAX + 1 };
    // SAFETY: the mask has NODES_MAX bits, or is not read.
    Errno::result(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) }).map(drop)
}

/// Adds to the thread's niceness; it stays within -20 to 19.
///
/// # Errors
/// `EACCES` if it may not decrease.
pub fn add_nice(more: i32) -> Result<(), Errno> {
    Errno::clear();
    // SAFETY: it only reads; 0 is the calling thread.
    let now = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    if now == -1 && Errno::last_raw() != 0 {
        return Err(Errno::last());
    }
    let wanted = now.saturating_add(more).clamp(-20, 19);
    // SAFETY: no memory is involved.
    Errno::result(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, wanted) }).map(drop)
}

/// Sets the thread's I/O priority.
///
/// # Errors
/// The kernel's error: `EPERM` if it needs root.
pub fn set_io_priority(priority: IoPriority) -> Result<(), Errno> {
    const WHO_PROCESS: libc::c_int = 1;
    let value = libc::c_int::from(priority.0);
    // SAFETY: no memory is involved; 0 is the calling thread.
    Errno::result(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) }).map(drop)
}

/// Changes the thread's group and user permanently. The C library's functions would change
/// the whole process.
///
/// # Errors
/// `EPERM` if it needs root.
pub fn become_user(user: Option<u32>, group: Option<u32>) -> Result<(), Errno> {
    let set = |call: libc::c_long, id: u32| {
        // SAFETY: no memory is involved.
        Errno::result(unsafe { libc::syscall(call, id, id, id) }).map(drop)
    };
    group.map_or(Ok(()), |group| set(libc::SYS_setresgid, group))?;
    user.map_or(Ok(()), |user| set(libc::SYS_setresuid, user))
}

/// Ends the process without its exit handlers and those of its libraries. Some of these
/// may wait for other processes for ever.
pub fn exit_at_once(code: u8) -> ! {
    // SAFETY: takes a number and does not return; nothing of the process is used after it.
    unsafe { libc::_exit(i32::from(code)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in a separate thread, which keeps the changes to itself.
    fn apart<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(act).join().expect("it ends"))
    }

    fn status(key: &str) -> String {
        let all = fs::read_to_string("/proc/thread-self/status").expect("status");
        let line = all.lines().find(|line| line.starts_with(key));
        line.expect("a line").to_owned()
    }

    #[test]
    fn lists_are_those_of_the_kernel() {
        assert_eq!(list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(list("3"), [3]);
        assert!(list("").is_empty());
    }

    #[test]
    fn only_the_calling_thread_changes() {
        let cpus = crate::limits::allowed_cpus().expect("processors");
        let last = *cpus.last().expect("one") as u32;
        let before = (
            status("Uid:"),
            status("Cpus_allowed_list:"),
            status("Name:"),
        );
        apart(|| {
            set_name("worker").expect("named");
            stay_on_any(&[last]).expect("kept there");
            add_nice(3).expect("nicer");
            set_io_priority(IoPriority::new(3, 0, 0)).expect("idle class");
            assert_eq!(status("Name:"), "Name:\tworker");
            assert_eq!(
                status("Cpus_allowed_list:"),
                format!("Cpus_allowed_list:\t{last}")
            );
            // SAFETY: it only reads.
            let class = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) };
            assert_eq!(class >> 13, 3);
            if nix::unistd::geteuid().is_root() {
                become_user(Some(1234), Some(1235)).expect("somebody else");
                assert_eq!(status("Uid:"), "Uid:\t1234\t1234\t1234\t1234");
                assert_eq!(status("Gid:"), "Gid:\t1235\t1235\t1235\t1235");
                assert_eq!(become_user(Some(0), None), Err(Errno::EPERM));
            }
        });
        let after = (
            status("Uid:"),
            status("Cpus_allowed_list:"),
            status("Name:"),
        );
        assert_eq!(before, after);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let wrong = apart(|| stay_on_any(&[0, 100_000])).expect_err("no such processor");
        assert!(wrong.contains("100000"), "{wrong}");
        let wrong = cpus_of_node(4000).expect_err("no such node");
        assert!(wrong.contains("4000"), "{wrong}");
        assert!(nodes().contains(&0));
        assert!(apart(|| set_memory_policy(libc::MPOL_BIND, &[5000])).is_err());
    }
}
