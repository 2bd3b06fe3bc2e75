//! The program built for an MPI library. Under a launcher, the single-host program replaces itself
//! with it. Nothing here calls MPI.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rbench_comm::launcher::{Family, MPICH, OPEN_MPI, family, launcher, unconnected};

use crate::console::{fail, refuse};
use crate::exit::{FAILED, USAGE};

/// Environment variable: the first directory to search for programs for MPI libraries.
const LIBEXEC: &str = "RBENCH_LIBEXEC";

/// Environment variable: where the dynamic linker looks for libraries first.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// The program for an MPI library.
#[derive(Debug)]
pub struct Found {
    /// Path of the program.
    pub path: PathBuf,
    /// True if the libraries that it needs are on this host.
    pub starts: bool,
    /// The value of `LD_LIBRARY_PATH` with which it starts; `None` for the present one.
    libraries: Option<OsString>,
}

/// Replaces this process with the program for the launcher's MPI library. Returns the exit code if
/// that fails; `None` without a launcher.
pub fn replace_process(argv: &[OsString]) -> Option<u8> {
    let env = |name: &str| std::env::var(name).ok();
    let launcher = launcher(env)?;
    let Some(family) = family(env) else {
        return Some(refuse(USAGE, unconnected(launcher)));
    };
    Some(match find(family) {
        None => refuse(
            FAILED,
            format!(
                "{launcher} started this process, and {} is neither beside {} nor in \
                 ../libexec/rbench nor in {LIBEXEC}: install it there, or run on one host without \
                 a launcher",
                family.program,
                this_program().display(),
            ),
        ),
        Some(Found {
            path,
            starts: false,
            ..
        }) => refuse(
            FAILED,
            format!(
                "{} does not start: {} is missing on this host; install it ({}) or extend \
                 LD_LIBRARY_PATH",
                path.display(),
                family.library,
                family.package,
            ),
        ),
        Some(Found {
            path, libraries, ..
        }) => {
            let mut command = program(&path, libraries.as_deref());
            if let [own, words @ ..] = argv {
                command.arg0(own).args(words);
            }
            let error = command.exec();
            fail(
                FAILED,
                format!("{} does not start: {error}", path.display()),
            )
        }
    })
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("rbench"))
}

/// Finds the program for an MPI library.
pub fn find(family: &Family) -> Option<Found> {
    let own = this_program();
    let beside = own.parent().unwrap_or(Path::new("."));
    let given = std::env::var_os(LIBEXEC).map(PathBuf::from);
    let folders = given
        .into_iter()
        .chain([beside.to_owned(), beside.join("../libexec/rbench")]);
    let mut files = folders.map(|folder| folder.join(family.program));
    let path = files.find(|file| file.is_file())?;
    if starts(&path, None) {
        return Some(Found {
            path,
            starts: true,
            libraries: None,
        });
    }
    let libraries = family.stand_in.and_then(|name| and_in(&path, name));
    Some(Found {
        starts: libraries.is_some() && starts(&path, libraries.as_deref()),
        path,
        libraries,
    })
}

/// `LD_LIBRARY_PATH`, followed by a directory beside the program.
fn and_in(program: &Path, name: &str) -> Option<OsString> {
    let folder = program.parent()?.join(name);
    let present = std::env::var_os(LIBRARIES).filter(|value| !value.is_empty());
    let first = present.iter().flat_map(std::env::split_paths);
    std::env::join_paths(first.chain([folder])).ok()
}

/// The command that starts a program, with another `LD_LIBRARY_PATH` if one is given.
fn program(path: &Path, libraries: Option<&OsStr>) -> Command {
    let mut command = Command::new(path);
    if let Some(libraries) = libraries {
        command.env(LIBRARIES, libraries);
    }
    command
}

/// Returns true if the dynamic linker finds the program's libraries.
fn starts(path: &Path, libraries: Option<&OsStr>) -> bool {
    let mut command = program(path, libraries);
    command
        .arg("version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// For `rbench version`: the program for each family of MPI libraries.
pub fn programs() -> String {
    [&OPEN_MPI, &MPICH].into_iter().map(program_for).collect()
}

/// The line about the program for a launcher of this family.
fn program_for(family: &Family) -> String {
    let state = match find(family) {
        None => "not installed".to_owned(),
        Some(found) if found.starts => found.path.display().to_string(),
        Some(found) => {
            let path = found.path.display();
            format!("{path} (does not start: {} is missing)", family.library)
        }
    };
    format!(
        "{}  {state}\n",
        family.program.trim_start_matches("rbench-")
    )
}
