//! Options collected for a job, or for all jobs after them.

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
    /// Options read when all are known: `kb_base` applies to those before it, too.
    pending: Vec<Pending>,
    /// True in a job file: `directory` then also applies to a `filename` before it, like in fio. On
    /// a command line it does not.
    in_file: bool,
}

/// An option whose value is not read yet.
#[derive(Clone)]
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
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={:?}", self.place, self.value)
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Pending) -> bool {
        (self.option.name, &self.place, &self.value)
            == (other.option.name, &other.place, &other.value)
    }
}

impl Section {
    /// Returns a section below this one, which inherits all options.
    pub fn below(&self) -> Section {
        let inherited = self.inherited.iter().chain(&self.own).cloned().collect();
        Section {
            settings: self.settings.clone(),
            base: self.base,
            inherited,
            own: Vec::new(),
            pending: Vec::new(),
            in_file: self.in_file,
        }
    }

    /// Returns the same as a section of a job file.
    pub fn in_file(self) -> Section {
        Section {
            in_file: true,
            ..self
        }
    }

    /// Adds an option of a job.
    pub fn push(&mut self, option: &'static Opt, place: String, value: Option<&str>) {
        self.own.push(Typed {
            name: option.name,
            value: value.map(str::to_owned),
        });
        self.pending.push(Pending {
            option,
            place,
            value: value.map(str::to_owned),
        });
    }

    /// Reads the values, which may name `files`. Returns a sentence for each error, which names the
    /// option as it was typed.
    pub fn read(&mut self, files: &Contents) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut pending = std::mem::take(&mut self.pending);
        if self.in_file {
            pending.sort_by_key(|option| option.option.name != DIRECTORY);
            // `--showcmd` must print it first as well.
            self.own.sort_by_key(|typed| typed.name != DIRECTORY);
        }
        let wrong = |option: &Pending, why: String| {
            let value = option.value.as_deref().unwrap_or_default();
            format!("invalid value '{value}' for '{}': {why}", option.place)
        };
        for option in &pending {
            if let Does::Base = option.option.does {
                let text = option.value.as_deref().unwrap_or_default();
                match Base::read(text) {
                    Ok(base) => self.base = base,
                    Err(why) => complaints.push(wrong(option, why)),
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
                    base: self.base,
                    files: Some(files),
                    notes: Some(&notes),
                };
                if let Err(why) = set(&mut self.settings, given) {
                    complaints.push(wrong(option, why));
                }
                let Opt { name, engines, .. } = *option.option;
                if !engines.is_empty() {
                    self.settings.of_engines.push((name, engines));
                }
                let notes = notes.into_inner().into_iter();
                let notes = notes.map(|note| format!("{name}: {note}"));
                self.settings.notes.extend(notes);
            }
        }
        complaints
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
