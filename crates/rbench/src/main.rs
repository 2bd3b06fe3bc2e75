//! The rbench program: wiring, progress, signals, files, exit codes. It connects the crates that do
//! the work, and is the only one that writes.

use std::ffi::OsString;
use std::process::ExitCode;

use rbench_cli::Invocation;

use crate::console::print;
#[cfg(not(feature = "testfs"))]
use crate::{console::fail, embedded::WITHOUT_TESTFS, exit::USAGE};

mod check;
mod clean;
mod client_counters;
mod command;
mod compare;
mod console;
mod data_size;
mod dead_mounts;
mod embedded;
mod exit;
mod files;
mod fio;
mod front;
mod hlog;
mod hosts;
mod ior;
mod job_files;
mod launch;
#[cfg(not(feature = "mpi"))]
mod libexec;
mod live;
mod man;
mod marker;
mod marks;
mod mdtest;
mod operations;
mod outside;
mod page;
mod pipeline;
mod probe;
mod profile;
mod progress;
mod publish;
#[cfg(feature = "testfs")]
mod record;
mod recording;
mod refusal;
mod report;
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
mod trouble;
mod verify;
mod version;

fn main() -> ExitCode {
    rbench_sys::limits::outlive_file_size_limit();
    let argv: Vec<OsString> = std::env::args_os().collect();
    let env_dir = std::env::var_os("RBENCH_DIR");
    ExitCode::from(match rbench_cli::parse(&argv, env_dir.as_deref()) {
        #[cfg(feature = "testfs")]
        Ok(Invocation::Testfs(args)) => testfs::serve(args),
        #[cfg(not(feature = "testfs"))]
        Ok(Invocation::Testfs(_)) => fail(USAGE, WITHOUT_TESTFS),
        Ok(Invocation::HoldLock { kind, path }) => check::hold(&kind, &path),
        Ok(Invocation::Watch(at)) => live::watch(&at),
        #[cfg(feature = "testfs")]
        Ok(Invocation::Record(args)) => record::record(&args),
        #[cfg(not(feature = "testfs"))]
        Ok(Invocation::Record(_)) => fail(USAGE, WITHOUT_TESTFS),
        Ok(Invocation::Show(what)) => show::show(&what),
        Ok(Invocation::Report(page)) => page::write(&page),
        Ok(Invocation::Completions(shell)) => print(&man::completions(shell)),
        Ok(Invocation::Man { out }) => man::man(out.as_deref()),
        Ok(Invocation::Compare(what)) => compare::compare(&what),
        #[cfg(feature = "mpi")]
        Ok(Invocation::Version) => print(&version::text("")),
        #[cfg(not(feature = "mpi"))]
        Ok(Invocation::Version) => print(&version::text(&libexec::programs())),
        Ok(Invocation::Verify(what)) => verify::verify(&what),
        Ok(Invocation::Fio(tool)) => fio::tool(&tool),
        // Workloads, and wrong command lines: rank 0's command line counts, and only rank 0 prints.
        Ok(
            Invocation::Run(..)
            | Invocation::Series(_)
            | Invocation::Probe(_)
            | Invocation::Check(_)
            | Invocation::Clean(_),
        )
        | Err(_) => pipeline::run(&argv),
    })
}
