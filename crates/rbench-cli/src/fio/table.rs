//! The options of `rbench fio`: one record each. Those of jobs are in
//! [`jobs`], [`course`] and [`stats`], those of the command line alone in [`line`]; what
//! fio knows and rbench does not is in [`refused`].

use rbench_plan::jobs::Each;
use rbench_plan::spec::fio::Settings;

use super::Line;
use crate::given::Given;

mod course;
mod engine;
mod jobs;
mod line;
mod process;
mod refused;
mod replay;
mod stats;
mod whole;

pub use refused::{REFUSED, Refused, refusal};

/// An option.
pub struct Opt {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What follows it.
    pub takes: Takes,
    /// The default, as text; empty: none.
    pub default: &'static str,
    /// Its help, one line.
    pub help: &'static str,
    /// What is done with it.
    pub does: Does,
}

/// What follows an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// Nothing, or 0 or 1.
    Switch,
    /// Nothing, or a value behind `=`, by its name in the help.
    Optional(&'static str),
    /// A value, by its name in the help.
    Value(&'static str),
    /// The same; in a job file it may be missing, and the job's name takes its place.
    ValueOrJob(&'static str),
}

/// Sets a value in a job, or says in a clause what is wrong with it.
type Set = fn(&mut Settings, Given<'_>) -> Result<(), String>;

/// What an option does.
#[derive(Clone, Copy)]
pub enum Does {
    /// Sets something of a job.
    Job(Set),
    /// Starts a job, or names the one that a section has started.
    Name,
    /// Says how suffixes of the job's other options are read.
    Base,
    /// Sets something of the whole run; on the command line only.
    Line(fn(&mut Line, &str) -> Result<(), String>),
    /// Prints a text and runs nothing; on the command line only.
    Text(fn(&str) -> Result<String, String>),
}

impl Opt {
    /// Its name and its other names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether it belongs to particular engines: fio knows it only once the engine is
    /// given, so it cannot be shortened.
    pub fn of_engines(&self) -> bool {
        engine::ENGINE_OPTIONS
            .iter()
            .any(|option| option.name == self.name)
    }

    /// Whether it may stand in a job file.
    pub fn in_files(&self) -> bool {
        matches!(self.does, Does::Job(_) | Does::Name | Does::Base)
    }

    const fn job(name: &'static str, value: &'static str, help: &'static str, set: Set) -> Opt {
        Opt {
            name,
            aliases: &[],
            takes: Takes::Value(value),
            default: "",
            help,
            does: Does::Job(set),
        }
    }

    const fn switch(name: &'static str, help: &'static str, set: Set) -> Opt {
        Opt {
            takes: Takes::Switch,
            ..Opt::job(name, "0|1", help, set)
        }
    }

    /// A prefix of names of logs.
    const fn log(name: &'static str, help: &'static str, set: Set) -> Opt {
        Opt {
            takes: Takes::ValueOrJob("PREFIX"),
            default: "no log; without PREFIX the job's name",
            ..Opt::job(name, "PREFIX", help, set)
        }
    }

    const fn or(self, aliases: &'static [&'static str]) -> Opt {
        Opt { aliases, ..self }
    }

    const fn default(self, default: &'static str) -> Opt {
        Opt { default, ..self }
    }
}

/// Options under a heading of the help.
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The options, in the help's order.
    pub options: &'static [Opt],
}

/// Every option.
pub const GROUPS: &[Group] = &[
    Group {
        title: "Jobs",
        options: jobs::JOBS,
    },
    Group {
        title: "Files",
        options: jobs::FILES,
    },
    Group {
        title: "Pattern",
        options: jobs::PATTERN,
    },
    Group {
        title: "Engine",
        options: engine::ENGINE,
    },
    Group {
        title: "Options of engines (io_uring, libaio, pvsync2, filestat)",
        options: engine::ENGINE_OPTIONS,
    },
    Group {
        title: "Buffers",
        options: engine::BUFFERS,
    },
    Group {
        title: "Duration and rate",
        options: course::PACE,
    },
    Group {
        title: "Verification",
        options: course::VERIFY,
    },
    Group {
        title: "Processors, priorities, user",
        options: process::PROCESS,
    },
    Group {
        title: "Statistics and logs of a job",
        options: course::REPORT,
    },
    Group {
        title: "Statistics, and the format of reports and logs",
        options: stats::STATS,
    },
    Group {
        title: "I/O logs",
        options: replay::REPLAY,
    },
    Group {
        title: "Output (command line only)",
        options: line::OUTPUT,
    },
    Group {
        title: "Machine, triggers and tools (command line only)",
        options: whole::WHOLE,
    },
    Group {
        title: "Additions of rbench (command line only)",
        options: line::OWN,
    },
    Group {
        title: "Help (command line only)",
        options: line::HELP,
    },
];

/// Every option, in the help's order.
pub fn options() -> impl Iterator<Item = &'static Opt> {
    GROUPS.iter().flat_map(|group| group.options)
}

/// The option with exactly this name.
pub fn exact(name: &str) -> Option<&'static Opt> {
    options().find(|option| option.names().any(|known| known == name))
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
    let all_refused = || {
        REFUSED
            .iter()
            .flat_map(|r| r.each().map(move |name| (name, r)))
    };
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

/// The name nearest to one that does not exist.
pub fn near(name: &str) -> Option<&'static str> {
    let names = options().flat_map(Opt::names);
    rbench_core::near::nearest(name, names.filter(|known| known.len() > 1))
}

/// Fills a field.
fn put<T>(field: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *field = Some(value?);
    Ok(())
}

/// Fills what was given for reads, writes and trims.
fn put_each<T>(
    field: &mut Each<Option<T>>,
    value: Result<Each<Option<T>>, String>,
) -> Result<(), String> {
    let Each { read, write, trim } = value?;
    for (field, value) in field.all_mut().into_iter().zip([read, write, trim]) {
        if value.is_some() {
            *field = value;
        }
    }
    Ok(())
}

/// A text that is not empty.
fn text(g: Given<'_>) -> Result<String, String> {
    match g.text {
        "" => Err("it must not be empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}
