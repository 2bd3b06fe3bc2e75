//! The rbench program: wiring, progress, signals, files, exit codes. It connects the crates that do
//! the work, and is the only one that writes.

use std::ffi::OsString;
use std::process::ExitCode;

use rbench_cli::{Invocation, Tool};

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
        Ok(Invocation::Tool(tool)) => match tool {
            #[cfg(feature = "testfs")]
            Tool::Testfs(args) => testfs::serve(args),
            #[cfg(feature = "testfs")]
            Tool::Record(args) => record::record(&args),
            #[cfg(not(feature = "testfs"))]
            Tool::Testfs(_) | Tool::Record(_) => fail(USAGE, WITHOUT_TESTFS),
            Tool::HoldLock { kind, path } => check::hold(&kind, &path),
            Tool::Watch { at } => live::watch(&at),
            Tool::Show(what) => show::show(&what),
            Tool::Report(page) => page::write(&page),
            Tool::Completions { shell } => print(&man::completions(shell)),
            Tool::Man { out } => man::man(out.as_deref()),
            Tool::Compare(what) => compare::compare(&what),
            #[cfg(feature = "mpi")]
            Tool::Version => print(&version::text("")),
            #[cfg(not(feature = "mpi"))]
            Tool::Version => print(&version::text(&libexec::programs())),
            Tool::Verify(what) => verify::verify(&what),
            Tool::Fio(tool) => fio::tool(&tool),
            Tool::Probe(_) | Tool::Check(_) | Tool::Clean(_) => pipeline::run(&argv),
        },
        // Workloads, and wrong command lines: rank 0's command line counts, and only rank 0 prints.
        Ok(Invocation::Run(..) | Invocation::Series(_)) | Err(_) => pipeline::run(&argv),
    })
}
