//! The rbench program: wiring, progress, signals, files, exit codes. The work is
//! done by the crates below; this one connects them and is the only one that
//! writes.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use rbench_cli::Invocation;
use rbench_core::plain::{for_terminal, plain_lines};

mod check;
mod clean;
mod client_counters;
mod compare;
mod data_size;
mod dead_mounts;
mod embedded;
mod files;
mod fio;
mod front;
mod hlog;
mod ior;
mod launch;
mod live;
mod man;
mod marks;
mod mdtest;
mod operations;
mod page;
mod probe;
mod profile;
mod progress;
#[cfg(feature = "testfs")]
mod record;
mod recording;
mod result;
mod round_trip;
mod run;
mod series;
mod show;
mod signals;
mod status;
mod surroundings;
mod target;
#[cfg(feature = "testfs")]
mod testfs;
mod verify;
mod version;

/// All went well.
const SUCCESS: u8 = 0;
/// Usage error: the command line is wrong or cannot be carried out.
const USAGE: u8 = 2;
/// The run failed, or some of its operations did.
const FAILED: u8 = 1;

/// What a program that was built without it says of the built-in file system.
const WITHOUT_TESTFS: &str =
    "this program is built without the built-in file system (feature testfs)";

fn main() -> ExitCode {
    rbench_sys::limits::outlive_file_size_limit();
    let argv: Vec<OsString> = std::env::args_os().collect();
    let env_dir = std::env::var_os("RBENCH_DIR");
    match rbench_cli::parse(&argv, env_dir.as_deref()) {
        #[cfg(feature = "testfs")]
        Ok(Invocation::Testfs(args)) => testfs::serve(args),
        #[cfg(not(feature = "testfs"))]
        Ok(Invocation::Testfs(_)) => {
            complain(WITHOUT_TESTFS);
            ExitCode::from(USAGE)
        }
        Ok(Invocation::HoldLock { kind, path }) => check::hold(&kind, &path),
        Ok(Invocation::Watch(at)) => live::watch(&at),
        #[cfg(feature = "testfs")]
        Ok(Invocation::Record(args)) => record::record(&args),
        #[cfg(not(feature = "testfs"))]
        Ok(Invocation::Record(_)) => {
            complain(WITHOUT_TESTFS);
            ExitCode::from(USAGE)
        }
        Ok(Invocation::Show(what)) => show::show(&what),
        Ok(Invocation::Report(page)) => page::write(&page),
        Ok(Invocation::Completions(shell)) => {
            ExitCode::from(print(&rbench_cli::completions(shell)))
        }
        Ok(Invocation::Man { out }) => man::man(out.as_deref()),
        Ok(Invocation::Compare(what)) => compare::compare(&what),
        Ok(Invocation::Version) => ExitCode::from(print(&version::text())),
        Ok(Invocation::Verify(what)) => verify::verify(&what),
        Ok(Invocation::Fio(tool)) => fio::tool(&tool),
        // Workloads, and mistakes too: rank 0's command line counts, and only
        // rank 0 prints.
        Ok(
            Invocation::Run(..)
            | Invocation::Series(_)
            | Invocation::Probe(_)
            | Invocation::Check(_)
            | Invocation::Clean(_),
        )
        | Err(_) => run::run(&argv),
    }
}

/// Prints one sentence on standard error.
fn complain(message: &str) {
    // Names in it may contain anything.
    to_stderr(&format!("rbench: {}\n", plain_lines(message)));
}

/// Writes to standard error, all of it in one call. A full disk, a reader that has gone or a
/// closed terminal there is no reason to end a run.
fn to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes to standard output; a reader that has gone (as `head` does) is not a
/// failure.
fn print(text: &str) -> u8 {
    let mut out = std::io::stdout().lock();
    // Names in it may contain anything; files and programs get them as they are.
    let text = match out.is_terminal() {
        true => for_terminal(text),
        false => text.into(),
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => SUCCESS,
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => SUCCESS,
        Err(e) => {
            complain(&format!(
                "the report cannot be written to standard output: {e}"
            ));
            FAILED
        }
    }
}
