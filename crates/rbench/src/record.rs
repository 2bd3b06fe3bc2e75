//! `rbench record`: runs a program on a directory that is passed through, and writes its requests
//! as a trace.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::unistd::Pid;
use rbench_cli::Record;
use rbench_core::request::Event;
use rbench_core::units::{counted, human_count};
use rbench_core::{Clock as _, MonotonicClock, Nanos, errno_of};
use rbench_plan::trace::events::Events;
use rbench_plan::trace::names::Names;
use rbench_plan::trace::order::Order;
use rbench_plan::trace::{LeftOut, Out, form};
use rbench_sys::command::unblocked;
use rbench_testfs::{Backing, Config, Mounted, Observer, SUBTYPE, mount, require_nothing_hidden};

use crate::console::{complain, fail};
use crate::exit::{FAILED, USAGE};

/// Default path of the trace.
const DEFAULT: &str = "rbench.trace";

/// Maximum number of requests waiting to be written; above it, the program waits.
const WAITING: usize = 64;

/// Compression level: as fast as zstd's default.
const LEVEL: i32 = 3;

/// A trace that is being written.
type Writer = zstd::Encoder<'static, BufWriter<File>>;

/// Totals of the trace.
struct Written {
    operations: u64,
    left_out: LeftOut,
}

/// Records a program and returns its exit code.
pub fn record(args: &Record) -> u8 {
    match run(args) {
        Ok(code) => code,
        Err((code, message)) => fail(code, message),
    }
}

/// Returns the program's exit code, or an exit code with a message.
fn run(args: &Record) -> Result<u8, (u8, String)> {
    let usage = |message: String| (USAGE, message);
    let failed = |message: String| (FAILED, message);
    let Some((program, words)) = args.command.split_first() else {
        return Err(usage(
            "there is no program to run: name one after --".to_owned(),
        ));
    };
    // Blocked before threads are started, so that they inherit it.
    let signals =
        blocked().map_err(|errno| failed(format!("signals cannot be received: {errno}")))?;
    let backing = Backing::Passthrough(args.folder.clone());
    require_nothing_hidden(&backing, &args.mountpoint).map_err(|error| usage(error.to_string()))?;
    let path = args.trace.as_deref().unwrap_or(Path::new(DEFAULT));
    let writer = begin(path).map_err(|error| {
        usage(format!(
            "--trace {} cannot be created: {error}",
            path.display()
        ))
    })?;
    let discard = |code: (u8, String)| {
        // This run created the file, and it is empty.
        let _ = std::fs::remove_file(path);
        code
    };
    let (sender, receiver) = sync_channel::<Option<Event>>(WAITING);
    let end = sender.clone();
    let mut config = Config::new(backing).uncached();
    config.observer = Some(Observer::new(move |event| {
        // Writing has failed; the error is reported at the end.
        let _ = sender.send(Some(event));
    }));
    let origin = MonotonicClock.now();
    let writing = std::thread::Builder::new()
        .name("rbench-trace".to_owned())
        .spawn(move || write(writer, &receiver, origin))
        .map_err(|error| discard(failed(format!("a thread cannot be started: {error}"))))?;
    let mounted =
        mount(config, &args.mountpoint).map_err(|error| discard(usage(error.to_string())))?;
    let guard = Guard::of(&args.mountpoint)
        .map_err(|error| discard(failed(format!("sh cannot be started: {error}"))))?;
    let child = ends_with_us(unblocked(Command::new(program).args(words))).spawn();
    let ended = match child {
        Ok(mut child) => wait(&mut child, &signals).map_err(|errno| {
            // No child process outlives the run; it may have just ended.
            let _ = child.kill().and_then(|()| child.wait());
            failed(format!("waiting failed: {errno}"))
        }),
        Err(error) => {
            let program = Path::new(program).display();
            Err(discard(usage(format!(
                "{program} cannot be started: {error}"
            ))))
        }
    };
    let unmounted = unmount(mounted);
    guard.release();
    // Requests that still use a detached mount are not recorded. A writer that has failed no longer
    // listens, and reports its error.
    let _ = end.send(None);
    let written = writing.join();
    let written = written.unwrap_or_else(|_| Err("a thread has panicked".to_owned()));
    let status = ended?;
    unmounted.map_err(failed)?;
    let Written {
        operations,
        left_out,
    } = written
        .map_err(|why| failed(format!("the trace {} is incomplete: {why}", path.display())))?;
    let left_out: Vec<String> = left_out
        .0
        .iter()
        .map(|(why, n)| format!("; {} left out: {why}", human_count(*n)))
        .collect();
    complain(&format!(
        "{} {} in {}{}",
        counted(operations, "operation"),
        if operations == 1 { "is" } else { "are" },
        path.display(),
        left_out.concat()
    ));
    Ok(code(status))
}

/// Removes a dead mount if we are killed: a shell that waits until its standard input closes. Only
/// we hold the other end.
struct Guard(Child);

impl Guard {
    /// Checks first that our file system is still mounted there.
    const SCRIPT: &str = "trap '' HUP INT QUIT TERM; read -r _ && exit; \
        awk '$5 == ENVIRON[\"PLACE\"] { last = $0 } END { exit index(last, \" - \" ENVIRON[\"TYPE\"] \" \") == 0 }' \
        /proc/self/mountinfo && { fusermount3 -u -z \"$1\" || umount -l \"$1\"; }";

    fn of(mountpoint: &Path) -> io::Result<Guard> {
        // The process must not hold the user's working directory.
        let mountpoint = mountpoint.canonicalize()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", Guard::SCRIPT, "sh"]).arg(&mountpoint);
        shell.env("PLACE", in_table(&mountpoint));
        shell.env("TYPE", format!("fuse.{SUBTYPE}"));
        shell.stdin(Stdio::piped()).stdout(Stdio::null());
        shell.stderr(Stdio::null()).process_group(0);
        unblocked(&mut shell).spawn().map(Guard)
    }

    /// Ends the shell after a normal unmount.
    fn release(mut self) {
        // If the shell is gone already, nothing is left to do.
        let sent = self.0.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
        drop(sent);
        let _ = self.0.wait();
    }
}

/// Escapes a path like the kernel's table of mounts.
fn in_table(path: &Path) -> OsString {
    let mut text = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => text.extend(format!("\\{byte:03o}").bytes()),
            byte => text.push(*byte),
        }
    }
    OsString::from_vec(text)
}

/// Makes a program end when we are killed.
fn ends_with_us(command: &mut Command) -> &mut Command {
    let ends = || set_pdeathsig(Signal::SIGTERM).map_err(io::Error::from);
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe { command.pre_exec(ends) }
}

/// Blocks the signals of terminals and launchers, so that they can be waited for.
fn blocked() -> Result<SigSet, Errno> {
    let mut set = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGHUP,
    ] {
        set.add(signal);
    }
    set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    Ok(set)
}

/// Waits until the program ends, and forwards signals to it.
fn wait(child: &mut Child, signals: &SigSet) -> Result<ExitStatus, Errno> {
    let pid = Pid::from_raw(child.id() as i32);
    loop {
        let ended = child.try_wait();
        let ended = ended.map_err(|error| errno_of(&error, Errno::ECHILD))?;
        if let Some(status) = ended {
            return Ok(status);
        }
        match signals.wait()? {
            Signal::SIGCHLD => {}
            // The terminal also sends them to the program.
            Signal::SIGINT | Signal::SIGQUIT if has_terminal() => {}
            signal => {
                // The program may have just ended.
                let _ = kill(pid, signal);
            }
        }
    }
}

fn has_terminal() -> bool {
    use std::io::IsTerminal as _;
    io::stdin().is_terminal()
}

/// The exit code of a program in the form that shells use.
fn code(status: ExitStatus) -> u8 {
    let by_signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(by_signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(FAILED)
}

fn unmount(mounted: Mounted) -> Result<(), String> {
    mounted.unmount().map_err(|error| error.to_string())
}

/// Creates the trace file and writes its first line. On errors the file is removed.
fn begin(path: &Path) -> io::Result<Writer> {
    let mut how = OpenOptions::new();
    // Private: the trace holds data that the program writes, even to private files.
    how.write(true).create_new(true).mode(0o600);
    let file = how.open(path)?;
    begun(file).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

fn begun(file: File) -> io::Result<Writer> {
    let mut writer = zstd::Encoder::new(BufWriter::new(file), LEVEL)?;
    writeln!(writer, "{}", form::HEADER)?;
    Ok(writer)
}

/// Writes events until the last one.
fn write(
    mut writer: Writer,
    events: &Receiver<Option<Event>>,
    origin: Nanos,
) -> Result<Written, String> {
    let mut follow = Events::new(&Names::default());
    let (mut order, mut out) = (Order::default(), Out::default());
    let mut operations = 0;
    let mut put = |order: &mut Order, out: &mut Out, ended: bool| -> io::Result<()> {
        for op in out.ops.drain(..) {
            order.push(op);
        }
        while let Some(op) = order.pop(ended) {
            operations += u64::from(!op.implied);
            writer.write_all(&form::line(&op, origin))?;
        }
        Ok(())
    };
    let failed = |error: io::Error| error.to_string();
    while let Ok(Some(event)) = events.recv() {
        follow.take(event, &mut out)?;
        put(&mut order, &mut out, false).map_err(failed)?;
    }
    follow.end(&mut out)?;
    put(&mut order, &mut out, true).map_err(failed)?;
    let file = writer.finish().map_err(failed)?;
    let file = file
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(Written {
        operations,
        left_out: out.left_out,
    })
}
