//! The options of `rbench fio`: one row each, in the form that [`row`] describes. The parser, the
//! help, the options page and the checks of engine options use these rows. [`refused`] lists
//! options of fio that rbench does not have.

use rbench_core::Nanos;
use rbench_plan::spec::fio::Settings;

use super::Line;
use crate::definition::Group;
use rbench_plan::given::Given;

#[macro_use]
mod row;

#[macro_use]
mod refused;

mod course;
mod engine;
mod jobs;
mod line;
mod process;
mod replay;
mod stats;
mod whole;

pub use refused::Refused;

/// An option.
pub struct Opt {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The engines that have it; empty: it does not belong to particular engines.
    pub engines: &'static [&'static str],
    /// The kind of value it takes.
    pub takes: Takes,
    /// The default, as text; empty: none.
    pub default: &'static str,
    /// Its help, one line.
    pub help: &'static str,
    /// Its kind, after the name of its field where the row has one.
    #[cfg(test)]
    pub kind: &'static str,
    /// Its effect.
    pub does: Does,
}

/// The value that follows an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// Nothing, or 0 or 1.
    Switch,
    /// Nothing, or a value after `=`; the help shows this name for it.
    Optional(&'static str),
    /// A value; the help shows this name for it.
    Value(&'static str),
    /// Like `Value`; in a job file it may be missing, and the job's name takes its place.
    ValueOrJob(&'static str),
}

/// Sets a value in a job, or returns a clause that describes the error.
type Set = fn(&mut Settings, Given<'_>) -> Result<(), String>;

/// The effect of an option.
#[derive(Clone, Copy)]
pub enum Does {
    /// Sets a value of a job.
    Job(Set),
    /// Starts a job, or names the job that a section started.
    Name,
    /// Sets how suffixes of the job's other options are read.
    Base,
    /// Sets a value of the whole run; only on the command line.
    Line(fn(&mut Line, Given<'_>) -> Result<(), String>),
    /// Prints a text and runs nothing; only on the command line.
    Text(fn(&str) -> Result<String, String>),
}

impl Opt {
    /// Its name and its other names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns true for options of particular engines. fio knows them only once the engine is
    /// given, so they cannot be shortened.
    pub fn of_engines(&self) -> bool {
        !self.engines.is_empty()
    }

    /// Returns true if a job file may have it.
    pub fn in_files(&self) -> bool {
        matches!(self.does, Does::Job(_) | Does::Name | Does::Base)
    }
}

/// Every option.
pub const GROUPS: &[Group<Opt>] = &[
    Group::new("Jobs", jobs::JOBS),
    Group::new("Files", jobs::FILES),
    Group::new("Pattern", jobs::PATTERN),
    Group::new("Engine", engine::ENGINE),
    Group::new(
        "Options of engines (io_uring, libaio, pvsync2, filestat)",
        engine::ENGINE_OPTIONS,
    ),
    Group::new(
        "Priorities of requests (libaio, io_uring)",
        engine::REQUEST_PRIORITIES,
    ),
    Group::new("Buffers", engine::BUFFERS),
    Group::new("Duration and rate", course::PACE),
    Group::new("Verification", course::VERIFY),
    Group::new("Processors, priorities, user", process::PROCESS),
    Group::new("Statistics and logs of a job", course::REPORT),
    Group::new(
        "Statistics, and the format of reports and logs",
        stats::STATS,
    ),
    Group::new("I/O logs", replay::REPLAY),
    Group::new("Output (command line only)", line::OUTPUT),
    Group::new(
        "Machine, triggers and tools (command line only)",
        whole::WHOLE,
    ),
    Group::new("Additions of rbench (command line only)", line::OWN),
    Group::new("Help (command line only)", line::HELP),
];

/// Every option, in the help's order.
pub fn options() -> impl Iterator<Item = &'static Opt> {
    GROUPS.iter().flat_map(|group| group.options)
}

/// The option with exactly this name.
pub fn exact(name: &str) -> Option<&'static Opt> {
    options().find(|option| option.names().any(|known| known == name))
}

/// Every option that is refused, in the order of the documentation.
pub fn refused_options() -> impl Iterator<Item = &'static Refused> {
    refused::REFUSED.iter().chain(engine::REFUSED)
}

/// The entry of an option of fio that is not supported.
pub fn refusal(name: &str) -> Option<&'static Refused> {
    refused_options().find(|refused| refused.each().any(|known| known == name))
}

/// The meaning of a name on the command line.
pub enum Found {
    /// An option.
    Known(&'static Opt),
    /// A name of fio that rbench does not support.
    Refused(&'static str, &'static Refused),
    /// A prefix of several names.
    Ambiguous(Vec<&'static str>),
    /// No option.
    Nothing,
}

/// The option with this name, or the only one whose name starts with it.
pub fn find(name: &str) -> Found {
    if let Some(option) = exact(name) {
        return Found::Known(option);
    }
    let all_refused = || refused_options().flat_map(|r| r.each().map(move |name| (name, r)));
    if let Some((name, refused)) = all_refused().find(|(known, _)| *known == name) {
        return Found::Refused(name, refused);
    }
    let known: Vec<(&str, &Opt)> = options()
        .flat_map(|option| option.names().map(move |known| (known, option)))
        .filter(|(known, option)| {
            known.starts_with(name) && known.len() > 1 && !option.of_engines()
        })
        .collect();
    let refused: Vec<(&str, &Refused)> = all_refused()
        .filter(|(known, refused)| known.starts_with(name) && !refused.of_engines)
        .collect();
    match (known.as_slice(), refused.as_slice()) {
        _ if name.is_empty() => Found::Nothing,
        ([], []) => Found::Nothing,
        ([], [(one, refused)]) => Found::Refused(one, refused),
        ([(_, option), others @ ..], []) if others.iter().all(|(_, o)| o.name == option.name) => {
            Found::Known(option)
        }
        _ => Found::Ambiguous(
            known
                .into_iter()
                .map(|(name, _)| name)
                .chain(refused.into_iter().map(|(name, _)| name))
                .collect(),
        ),
    }
}

/// Returns the known name nearest to an unknown one.
pub fn near(name: &str) -> Option<&'static str> {
    let names = options().flat_map(Opt::names);
    rbench_core::near::nearest(name, names.filter(|known| known.len() > 1))
}

/// Calls the reader of a row, which may be a closure.
fn call<A, T>(read: impl FnOnce(A) -> T, of: A) -> T {
    read(of)
}

/// A text that is not empty.
fn text(g: Given<'_>) -> Result<String, String> {
    match g.text {
        "" => Err("it must not be empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Reads a time; a bare number is in milliseconds.
fn milliseconds(g: Given<'_>) -> Result<Nanos, String> {
    g.time(Nanos::MILLISECOND)
}
