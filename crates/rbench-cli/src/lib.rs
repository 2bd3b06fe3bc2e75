//! Every command line of rbench, read into an [`Invocation`].
//!
//! Pure: nothing here reads the environment, the file system or the terminal. The caller passes
//! them in and prints the result.

use std::ffi::OsString;
use std::path::PathBuf;

pub use args::{is_series, profile_file};
pub use clap_complete::Shell;
pub use completions::{Names, completions, man_pages};
pub use invocation::{
    Check, CheckFormat, Clean, Compare, CompareFormat, FioTool, Invocation, Page, PowerCut, Probe,
    Record, Show, ShowFormat, Testfs, Tool, Verify, value_name,
};
pub use output::{
    Communicator, FioView, Format, IdleReport, IorSummary, IorView, MdtestView, Mistake, Output,
    Print, Progress, Start, Stop,
};
use rbench_core::plain::plain_lines;

/// Samples of options: each as typed, and the fields that it changes.
#[cfg(test)]
macro_rules! samples {
    ($($text:literal $(: $($($field:ident).+ = $value:expr),+)?;)*) => {
        &[$(($text, |_all| { $($(_all.$($field).+ = $value;)+)? })),*]
    };
}

#[cfg(test)]
#[macro_use(each)]
extern crate rbench_core;

#[macro_use]
mod letters;

mod args;
mod completions;
mod definition;
mod field;
pub mod fio;
mod invocation;
pub mod ior;
pub mod live;
mod mdtest;
mod output;
pub mod series;

/// Reads a command line, the program's name first. `env_dir` is the value of `RBENCH_DIR`, the
/// default of `--dir` and of mdtest's `-d`. It cannot read job files of `rbench fio`: see
/// [`fio::read`].
///
/// # Errors [`Stop`] when there is nothing to run.
pub fn parse(argv: &[OsString], env_dir: Option<&std::ffi::OsStr>) -> Result<Invocation, Stop> {
    if let Some(words) = words_of("mdtest", argv) {
        return mdtest::read(words, env_dir);
    }
    if let Some(words) = words_of("ior", argv) {
        return ior::read(words);
    }
    // `rbench check` starts this process; users do not type it, and no help lists it.
    if let Some([kind, path]) = words_of("hold-lock", argv) {
        return Ok(Invocation::Tool(Tool::HoldLock {
            kind: kind.to_string_lossy().into_owned(),
            path: PathBuf::from(path),
        }));
    }
    if fio::words(argv).is_some() {
        let around = fio::Surroundings {
            page_size: 4096,
            cpus: 1,
            memory_mib: 1024,
            ..fio::Surroundings::default()
        };
        return fio::read(argv, &around);
    }
    let args = args::Args::read(argv).map_err(|error| Stop {
        text: {
            let text = args::sentence(argv, &error);
            let text = text.unwrap_or_else(|| error.render().to_string());
            numbers_named(&plain_lines(&text))
        },
        code: if error.use_stderr() { 2 } else { 0 },
        mistake: args::mistake(&error),
    })?;
    args.invocation(env_dir)
}

/// Replaces the standard library's messages about numbers with ours.
fn numbers_named(text: &str) -> String {
    const SAID: [(&str, &str); 5] = [
        ("invalid digit found in string", "not a whole number"),
        ("invalid float literal", "not a number"),
        (
            "cannot parse integer from empty string",
            "not a whole number",
        ),
        ("number too large to fit in target type", "too large"),
        (
            " is not in 0..=4294967295",
            " is not a number from 0 to 4294967295",
        ),
    ];
    let each = SAID.iter();
    each.fold(text.to_owned(), |text, (theirs, ours)| {
        text.replace(theirs, ours)
    })
}

/// Returns the options on how ranks join, which are needed before rank 0's command line is known.
/// Errors in it are reported later.
pub fn start(argv: &[OsString]) -> Start {
    if let Some(words) = words_of("mdtest", argv) {
        return letters::start::<mdtest::Line>(words);
    }
    if let Some(words) = words_of("ior", argv) {
        return letters::start::<ior::Line>(words);
    }
    match fio::words(argv) {
        Some(words) => fio::start(words),
        None => args::Args::read(argv).map_or(Start::default(), |args| args.start),
    }
}

/// Returns the words after `rbench` and this command.
fn words_of<'a>(name: &str, argv: &'a [OsString]) -> Option<&'a [OsString]> {
    match argv {
        [_, command, words @ ..] if command == name => Some(words),
        _ => None,
    }
}

/// Returns the help texts of the program and each command, for checks of the docs.
pub fn help_texts() -> Vec<(String, String)> {
    let mut command = args::command();
    command.build();
    let mut all = vec![("rbench".to_owned(), command.render_long_help().to_string())];
    for sub in command
        .get_subcommands_mut()
        .filter(|s| s.get_name() != "help")
    {
        all.push((
            sub.get_name().to_owned(),
            sub.render_long_help().to_string(),
        ));
    }
    all
}

#[cfg(test)]
mod tests;
