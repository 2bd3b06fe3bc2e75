//! System calls in which threads of this process wait. A call that never returns can be named
//! without an earlier report of its thread, so that naming costs nothing on the timed path.

use std::ffi::CString;
use std::fs;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sys::prctl;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use syscalls::Sysno;

use crate::proc::{self, Stat};

/// A thread's call on a file, or its wait for a page of a mapped file. Two samples are equal
/// while the thread stays in the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Name of the call, such as `openat`.
    pub call: &'static str,
    /// The file, if known.
    pub path: Option<PathBuf>,
    /// The kernel's line: arguments, stack pointer, program counter.
    state: String,
}

/// Position of a call's file.
#[derive(Clone, Copy)]
enum File {
    /// The argument is an open file.
    Open(usize),
    /// The argument is a path.
    Path(usize),
    /// A directory and a path relative to it.
    At(usize, usize),
    /// One of two open ones; the other is a pipe.
    Either(usize, usize),
    /// Not in the arguments.
    Unknown,
}

/// Calls in which a thread sleeps or waits for another one; never reported.
const SLEEPS: &str = "futex nanosleep clock_nanosleep restart_syscall poll ppoll select pselect6 epoll_wait \
    epoll_pwait epoll_pwait2 sched_yield rt_sigtimedwait rt_sigsuspend pause wait4 waitid exit";

/// The files of calls that wait for a file system. A call that is missing here, and in which a
/// thread does not sleep, is reported by its name alone.
const CALLS: &[(File, &str)] = &[
    (
        File::Open(0),
        "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 fsync fdatasync close \
         ftruncate fallocate getdents64 fstat fstatfs fsetxattr fgetxattr flistxattr fremovexattr fchown \
         fchmod sync_file_range copy_file_range fadvise64 lseek flock fcntl ioctl syncfs",
    ),
    (
        File::At(0, 1),
        "openat mkdirat unlinkat linkat readlinkat fchmodat utimensat mknodat renameat renameat2 newfstatat \
         statx faccessat faccessat2 fchownat",
    ),
    (File::At(1, 2), "symlinkat"),
    (
        File::Path(0),
        "open stat lstat mkdir rmdir unlink rename mknod truncate statfs setxattr lsetxattr getxattr lgetxattr \
         listxattr llistxattr removexattr lremovexattr",
    ),
    (File::Either(0, 2), "splice"),
    (File::Open(4), "mmap"),
];

fn is_one(name: &str, of: &str) -> bool {
    of.split_whitespace().any(|known| known == name)
}

/// The number by which [`waiting`] knows the calling thread.
pub fn this_thread() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// The call on a file of the thread with that number (of this process); `None` without such a
/// call, or if the kernel does not report it.
pub fn waiting(thread: i32) -> Option<Waiting> {
    let state = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    let (number, arguments) = parse(&state)?;
    if number == NO_CALL {
        return waits_for_a_page(thread).then_some(Waiting {
            call: "page fault",
            path: None,
            state,
        });
    }
    let call = Sysno::new(usize::try_from(number).ok()?)?.name();
    if is_one(call, SLEEPS) {
        return None;
    }
    let known = CALLS.iter().find(|(_, calls)| is_one(call, calls));
    let file = known.map_or(File::Unknown, |(file, _)| *file);
    let argument = |n: usize| arguments.get(n).copied();
    let opened = |fd: i32| opened(thread, fd);
    let path = match file {
        File::Open(n) => argument(n).and_then(|fd| opened(fd as i32)),
        File::Path(n) => argument(n).and_then(text_at).map(|path| {
            let directory = fs::read_link(format!("/proc/self/task/{thread}/cwd"));
            directory.unwrap_or_default().join(path)
        }),
        File::Either(one, other) => [one, other]
            .into_iter()
            .filter_map(|n| argument(n).and_then(|fd| opened(fd as i32)))
            .find(|path| path.is_absolute()),
        File::At(dir, n) => argument(n).and_then(text_at).map(|path| {
            let dir = argument(dir).map(|fd| fd as i32);
            match dir.filter(|fd| *fd != libc::AT_FDCWD && path.is_relative()) {
                Some(fd) => opened(fd).unwrap_or_default().join(path),
                None => path,
            }
        }),
        File::Unknown => None,
    };
    Some(Waiting { call, path, state })
}

/// True if a thread waits for another one.
pub fn waits_for_a_thread(thread: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
    let number = state.ok().and_then(|state| Some(parse(&state)?.0));
    number == Some(libc::SYS_futex)
}

/// The call of a thread that the C library started for asynchronous I/O: the thread that
/// requested the I/O waits for it.
pub fn waiting_for_us() -> Option<Waiting> {
    let is_helper = |thread: &i32| {
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status"));
        status.is_ok_and(|status| blocks_all_signals(&status))
    };
    let mut threads = threads();
    threads.find_map(|thread| waiting(thread).filter(|_| is_helper(&thread)))
}

/// The threads of this process.
fn threads() -> impl Iterator<Item = i32> {
    proc::numbers("/proc/self/task")
}

/// Names the calling thread by its number, which it returns. Threads that it starts without a name
/// inherit this one, and form its [`family`].
pub fn start_family() -> i32 {
    let thread = this_thread();
    if let Ok(name) = CString::new(family_name(thread)) {
        // Without the name, nothing is known of the threads that it starts.
        let _ = prctl::set_name(&name);
    }
    thread
}

/// At most 15 bytes, the kernel's limit: a thread's number has at most 7 digits.
fn family_name(founder: i32) -> String {
    format!("rbench-{founder}")
}

/// The thread `founder` and those that it has started, which have not ended.
pub fn family(founder: i32) -> Vec<i32> {
    let name = family_name(founder);
    let is_member = |thread: &i32| {
        let comm = fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
        *thread == founder || comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    threads().filter(is_member).collect()
}

/// The number of times that a thread has slept: it stays the same while the thread waits for one
/// thing, and grows in successive calls. 0 if the kernel does not report it.
pub fn times_slept(thread: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status"));
    status.map_or(0, |status| voluntary_switches(&status))
}

fn voluntary_switches(status: &str) -> u64 {
    let count = proc::field(status, "voluntary_ctxt_switches:");
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The C library blocks all signals in such threads; rbench's threads do not block these.
fn blocks_all_signals(status: &str) -> bool {
    let mask = proc::field(status, "SigBlk:");
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let signals = [libc::SIGCHLD, libc::SIGUSR2, libc::SIGURG, libc::SIGWINCH];
    let all = signals
        .iter()
        .fold(0, |all, signal| all | 1 << (signal - 1));
    mask.is_some_and(|mask| mask & all == all)
}

/// Number reported for a thread that stopped outside any call.
const NO_CALL: libc::c_long = -1;

/// True if a thread sleeps outside any call: it has then accessed mapped memory whose data is not
/// loaded yet.
fn waits_for_a_page(thread: i32) -> bool {
    fs::read_to_string(format!("/proc/self/task/{thread}/stat")).is_ok_and(|text| sleeps(&text))
}

/// The file system determines whether signals can wake the thread (S) or not (D).
fn sleeps(stat: &str) -> bool {
    Stat::read(stat).is_some_and(|stat| stat.is(&["D", "S"]))
}

/// Reads `NUMBER ARGUMENT… SP PC`, or `-1 SP PC` outside any call; "running" gives nothing.
fn parse(text: &str) -> Option<(libc::c_long, Vec<u64>)> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    Some((number, words.map_while(hex).collect()))
}

/// Path of an open file of `thread`, without a request to its file system. The thread may have
/// its own file table.
fn opened(thread: i32, fd: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/task/{thread}/fd/{fd}")).ok()
}

/// Reads the zero-terminated text at `address` of this process. `None` if it no longer exists.
fn text_at(address: u64) -> Option<PathBuf> {
    const PATH_MAX: usize = libc::PATH_MAX as usize;
    let mut text = Vec::new();
    // Does not read past the end of a page, which may be the last one.
    while text.len() < PATH_MAX {
        let at = usize::try_from(address).ok()?.checked_add(text.len())?;
        let mut piece = [0_u8; 64];
        let length = piece.len() - at % piece.len();
        let remote = RemoteIoVec {
            base: at,
            len: length,
        };
        let local = &mut [IoSliceMut::new(&mut piece[..length])];
        let read = process_vm_readv(Pid::this(), local, &[remote]).ok()?;
        let piece = &piece[..read];
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&piece[..end]);
            return Some(Path::new(std::ffi::OsStr::from_bytes(&text)).to_owned());
        }
        if read == 0 {
            break;
        }
        text.extend_from_slice(piece);
    }
    None
}

#[cfg(test)]
mod tests {
    use rbench_core::operations::{OPERATIONS, WORDS};

    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    /// Waits until a thread that does `work` is seen in this call, in which it stays. Before it,
    /// the thread may wait elsewhere, as for a page of the program.
    fn wait_until_seen(call: &str, path: &Path, work: impl FnOnce() + Send + 'static) {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            sender.send(this_thread()).expect("received");
            work();
        });
        let thread = receiver.recv().expect("sent");
        let start = Instant::now();
        loop {
            let first = waiting(thread);
            let in_it = |seen: &Waiting| seen.call == call && seen.path.as_deref() == Some(path);
            if first.as_ref().is_some_and(in_it) && waiting(thread) == first {
                return;
            }
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "{call}: {first:?}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_thread_that_waits_for_a_file_is_seen_with_call_and_path() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let fifo = dir.path().join("a fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("made");
        let path = fifo.clone();
        // Opening a FIFO for reading waits for a writer.
        wait_until_seen("openat", &fifo, move || drop(fs::File::open(path)));
        let both = fs::File::options()
            .read(true)
            .write(true)
            .open(&fifo)
            .expect("opened");
        let reader = both.try_clone().expect("cloned");
        wait_until_seen("read", &fifo, move || {
            drop(std::io::Read::read(&mut &reader, &mut [0]));
        });
        // Releases both threads.
        std::io::Write::write_all(&mut &both, b"xx").expect("written");
    }

    #[test]
    fn calls_by_path_and_through_pipes_are_seen_too() {
        // Both ends stay open, and no data comes.
        let (from, _to) = std::io::pipe().expect("a pipe");
        let file = tempfile::NamedTempFile::new().expect("a file");
        let out = file.reopen().expect("opened");
        wait_until_seen("splice", file.path(), move || {
            let flags = nix::fcntl::SpliceFFlags::empty();
            let _ = nix::fcntl::splice(from, None, out, None, 4096, flags);
        });
    }

    #[test]
    fn the_place_of_every_call_of_an_operation_on_a_file_is_known() {
        let of_phases = OPERATIONS.iter().flat_map(|operation| operation.timed);
        let of_words = WORDS.iter().map(|word| (word.call)(1));
        let all = of_phases.copied().chain(of_words);
        for name in all.flat_map(|call| call.names().split(' ')) {
            let known = CALLS.iter().any(|(_, calls)| is_one(name, calls));
            assert!(known, "{name}");
        }
        for name in CALLS.iter().flat_map(|(_, calls)| calls.split_whitespace()) {
            assert!(name.parse::<Sysno>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_helper_of_the_library_is_one_that_blocks_all_signals() {
        assert!(blocks_all_signals("Name:\tx\nSigBlk:\tfffffffe7ffbfeff\n"));
        assert!(!blocks_all_signals("Name:\tx\nSigBlk:\t0000000000004003\n"));
        assert!(!blocks_all_signals(""));
    }

    #[test]
    fn a_thread_and_those_that_it_starts_are_a_family() {
        let (sender, receiver) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let founder = std::thread::spawn(move || {
            let (founder, to) = (start_family(), sender.clone());
            sender.send(founder).expect("received");
            let other = std::thread::spawn(move || {
                to.send(this_thread()).expect("received");
                wait.recv().ok();
            });
            other.join().expect("ends");
        });
        let members: Vec<i32> = receiver.iter().take(2).collect();
        let mut found = family(members[0]);
        found.sort_unstable_by_key(|thread| *thread != members[0]);
        assert_eq!(found, members);
        drop(go);
        founder.join().expect("ends");
    }

    #[test]
    fn a_thread_that_sleeps_again_and_again_is_told_from_one_that_sleeps_once() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(voluntary_switches(status), 17);
        assert_eq!(voluntary_switches(""), 0);
        let thread = this_thread();
        let before = times_slept(thread);
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let after = times_slept(thread);
        assert!(after >= before + 3, "{before} {after}");
    }

    #[test]
    fn the_state_of_a_thread_stands_behind_its_name() {
        assert!(sleeps("7 (worker-0) D 1 7 7 0 -1"));
        assert!(sleeps("7 (worker-0) S 1 7 7 0 -1"));
        assert!(!sleeps("7 (a) D) R 1 7 7 0 -1"));
        assert!(!sleeps("7 (a) S) T 1 7 7 0 -1"));
        assert!(!sleeps(""));
    }

    #[test]
    fn a_thread_that_sleeps_waits_for_no_file() {
        let (sender, receiver) = mpsc::channel::<()>();
        let (number, named) = mpsc::channel();
        let handle = std::thread::spawn(move || {
            number.send(this_thread()).expect("received");
            receiver.recv().ok();
        });
        let thread = named.recv().expect("sent");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(waiting(thread), None);
        drop(sender);
        handle.join().expect("ends");
        assert_eq!(waiting(thread), None);
    }

    #[test]
    fn what_the_kernel_may_say_besides_is_no_call() {
        assert_eq!(parse("running\n"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("-1 0x7ff 0x7fe\n").map(|(n, _)| n), Some(-1));
        assert_eq!(parse("0 0x3 0xff\n"), Some((0, vec![3, 255])));
    }
}
