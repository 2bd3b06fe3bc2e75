//! Options collected for each job, or for all jobs after them.

use std::cell::RefCell;

use rbench_plan::spec::fio::Settings;

use super::table::{Does, Opt, Takes};
use rbench_plan::given::Contents;
use rbench_plan::given::{Base, Given};

/// The option that `filename` depends on.
const DIRECTORY: &str = "directory";

/// An option as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Its name in the table.
    pub name: &'static str,
    /// Its value; `None`: it was given without one.
    pub value: Option<String>,
}

/// Options of a job, or of a `[global]` section.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// The settings that they result in.
    pub settings: Settings,
    /// The meaning of suffixes.
    base: Base,
    /// Global options that apply here.
    pub inherited: Vec<Typed>,
    /// Its own options. An option given twice is here twice, since `bs=,8k` keeps the read size of
    /// `bs=4k`.
    pub own: Vec<Typed>,
}

impl Section {
    /// Returns a section below this one, which inherits all options.
    fn below(&self) -> Section {
        Section {
            settings: self.settings.clone(),
            base: self.base,
            inherited: self.inherited.iter().chain(&self.own).cloned().collect(),
            own: Vec::new(),
        }
    }
}

/// A job from a file or the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Its name in reports.
    pub name: String,
    /// The prefix of its files' names: the name of its section.
    pub files: String,
    /// True if it waits for the jobs of the files before.
    pub apart: bool,
    /// Its options.
    pub section: Section,
}

/// An option whose value is not read yet.
struct Pending {
    option: &'static Opt,
    /// Place and form in which it was typed, for error messages.
    place: String,
    value: Option<String>,
}

impl Pending {
    /// The text that its value is read from.
    fn text(&self) -> &str {
        match (self.option.takes, self.value.as_deref()) {
            (Takes::ValueOrJob(_), None) => "",
            (_, None) => "1",
            // fio reads a number there, and everything but 0 turns the switch on.
            (Takes::Switch, Some(text)) if text.parse::<i32>().is_ok_and(|n| n != 0) => "1",
            (_, Some(text)) => text,
        }
    }

    /// The error message about its value.
    fn wrong(&self, why: &str) -> String {
        let value = self.value.as_deref().unwrap_or_default();
        format!("invalid value '{value}' for '{}': {why}", self.place)
    }
}

/// The section that options belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Global,
    Job,
}

/// The sections of a command line or of a job file. One at a time is open and takes options.
pub struct Sections<'a> {
    /// Files that values may name.
    files: &'a Contents,
    /// True in a job file: `directory` then also applies to a `filename` before it, like in fio. On
    /// a command line it does not.
    in_file: bool,
    /// Options that apply to the following jobs.
    pub globals: Section,
    /// Jobs, in order.
    pub jobs: Vec<Named>,
    open: Open,
    /// Options of the open section. They are read when all are known: `kb_base` applies to those
    /// before it, too.
    pending: Vec<Pending>,
}

impl<'a> Sections<'a> {
    /// Those of a command line: options before the first job are global.
    pub fn of_line(files: &'a Contents) -> Sections<'a> {
        Sections {
            files,
            in_file: false,
            globals: Section::default(),
            jobs: Vec::new(),
            open: Open::Global,
            pending: Vec::new(),
        }
    }

    /// Those of a file below `globals`, the options of the command line that apply to all jobs.
    pub fn of_file(files: &'a Contents, globals: &Section) -> Sections<'a> {
        Sections {
            in_file: true,
            globals: globals.below(),
            open: Open::Nothing,
            ..Sections::of_line(files)
        }
    }

    /// Returns true once a section has been opened.
    pub fn is_open(&self) -> bool {
        self.open != Open::Nothing
    }

    /// Closes the open section and opens that of a job, or the global one. Returns the errors of
    /// the closed one, like [`Sections::close`].
    pub fn begin(&mut self, job: Option<&str>) -> Vec<String> {
        let wrong = self.close();
        self.open = match job {
            Some(name) => {
                self.jobs.push(Named {
                    name: name.to_owned(),
                    files: name.to_owned(),
                    apart: false,
                    section: self.globals.below(),
                });
                Open::Job
            }
            None => Open::Global,
        };
        wrong
    }

    /// Changes the name of the open job; that of its files stays.
    pub fn rename(&mut self, name: &str) {
        if let (Open::Job, Some(job)) = (self.open, self.jobs.last_mut()) {
            name.clone_into(&mut job.name);
        }
    }

    /// Adds an option to the open section.
    pub fn push(&mut self, option: &'static Opt, place: String, value: Option<&str>) {
        let value = value.map(str::to_owned);
        self.section().own.push(Typed {
            name: option.name,
            value: value.clone(),
        });
        self.pending.push(Pending {
            option,
            place,
            value,
        });
    }

    fn section(&mut self) -> &mut Section {
        match (self.open, self.jobs.last_mut()) {
            (Open::Job, Some(job)) => &mut job.section,
            _ => &mut self.globals,
        }
    }

    /// Reads the values of the open section. Returns a sentence for each error, which names the
    /// option as it was typed.
    pub fn close(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut pending = std::mem::take(&mut self.pending);
        let (files, in_file) = (self.files, self.in_file);
        let Section {
            settings,
            base,
            own,
            ..
        } = self.section();
        if in_file {
            pending.sort_by_key(|option| option.option.name != DIRECTORY);
            // `--showcmd` must print it first as well.
            own.sort_by_key(|typed| typed.name != DIRECTORY);
        }
        for option in &pending {
            if let Does::Base = option.option.does {
                match Base::read(option.value.as_deref().unwrap_or_default()) {
                    Ok(read) => *base = read,
                    Err(why) => wrong.push(option.wrong(&why)),
                }
            }
        }
        // An engine's option is known once the engine is, wherever `ioengine` is given.
        let names_engine = |option: &&Pending| option.option.name == "ioengine";
        let engines = pending.iter().filter(names_engine);
        let others = pending.iter().filter(|option| !names_engine(option));
        for option in engines.chain(others) {
            if let Does::Job(set) = option.option.does {
                let notes = RefCell::default();
                let given = Given {
                    text: option.text(),
                    base: *base,
                    files: Some(files),
                    notes: Some(&notes),
                };
                if let Err(why) = set(settings, given) {
                    wrong.push(option.wrong(&why));
                }
                let Opt { name, engines, .. } = *option.option;
                if !engines.is_empty() {
                    settings.of_engines.push((name, engines));
                }
                let notes = notes.into_inner().into_iter();
                settings
                    .notes
                    .extend(notes.map(|note| format!("{name}: {note}")));
            }
        }
        wrong
    }
}

/// Options whose values add up.
const ADDED: [&str; 2] = ["filename", "opendir"];

/// Returns the options with a value, for the report. Of an option given twice it returns the last,
/// or all where values add up.
pub fn with_values(typed: &[Typed]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for Typed { name, value } in typed {
        let Some(value) = value else { continue };
        match all.iter_mut().find(|known| known.0 == *name) {
            Some(known) if ADDED.contains(name) => {
                known.1.push(':');
                known.1.push_str(value);
            }
            Some(known) => known.1.clone_from(value),
            None => all.push(((*name).to_owned(), value.clone())),
        }
    }
    all
}
