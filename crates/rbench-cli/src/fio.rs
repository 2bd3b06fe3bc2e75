//! fio's command line and job files, read into a Spec.
//!
//! Defines how options are written and to which job they belong. `table` lists the options and what
//! each sets; the plan checks which options go together. The caller reads the job files, and calls
//! [`files_named`] for their names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rbench_core::plain::{plain, shell_word};
use rbench_plan::spec::{self, Fio, Spec, Workload, fio::Job};

use crate::{FioTool, FioView, Invocation, Mistake, Output, Start, Stop, Tool};
use file::Reader;
use rbench_plan::given::{Given, pattern};
use section::{Named, Section, Sections, Typed, with_values};
use table::{Does, Found, Opt, Takes};

mod file;
mod help;
pub mod listing;
mod section;
mod table;

pub use file::Surroundings;
pub use help::{help, tables};
pub use table::GROUPS;

/// The options read from the words until now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    fio: Fio,
    view: FioView,
    output: Output,
    common: spec::Common,
    /// `--append-terse`
    append_terse: bool,
    /// `--section`: run only these sections of job files.
    sections: Vec<String>,
    /// `--showcmd`
    show_command: bool,
    /// Tool to run instead of jobs; the words after it are not read.
    tool: Option<FioTool>,
    /// Jobs, in the order given.
    jobs: Vec<Named>,
}

/// Returns the words after `rbench fio`, or `None` for other commands.
pub(crate) fn words(argv: &[OsString]) -> Option<&[OsString]> {
    match argv {
        [_, command, words @ ..] if command == "fio" => Some(words),
        _ => None,
    }
}

/// Returns the files that [`read`] needs and that are missing from `known`. They are job files of
/// the command line, files that those in `known` include, and files that patterns name. `-` is
/// standard input. Call it until it returns an empty list. Other commands get an empty list.
pub fn files_named(argv: &[OsString], known: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let Some(words) = words(argv) else {
        return Vec::new();
    };
    let (mut named, mut of_patterns) = (Vec::new(), Vec::new());
    for item in items(words).filter_map(Result::ok) {
        match item {
            Item::File { file, .. } => named.push(file),
            Item::Option { option, value, .. } => {
                of_patterns.extend(named_by(option, value.as_deref().unwrap_or_default()));
            }
        }
    }
    // Only job files include others.
    let mut seen = 0;
    while let Some(file) = named.get(seen).cloned() {
        seen += 1;
        let Some(bytes) = known.get(&file) else {
            continue;
        };
        let included = file::includes(&file, bytes).into_iter();
        let new: BTreeSet<PathBuf> = included.filter(|file| !named.contains(file)).collect();
        named.extend(new);
        of_patterns.extend(file::pattern_files(bytes));
    }
    named.append(&mut of_patterns);
    named.retain(|file| !known.contains_key(file));
    named.sort();
    named.dedup();
    named
}

/// Returns the files that the value of an option names.
fn named_by(option: &Opt, value: &str) -> Vec<PathBuf> {
    match option.name {
        "buffer_pattern" | "verify_pattern" => pattern::quoted_files(value),
        "opendir" => vec![listing::question(value)],
        _ => Vec::new(),
    }
}

/// Returns the environment variables that job files use, `${NAME}`.
pub fn variables_named(files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
    let mut names: Vec<String> = files.values().flat_map(|b| file::variables(b)).collect();
    names.sort();
    names.dedup();
    names
}

/// Reads a command line, `program fio …`, with its job files.
///
/// # Errors
/// [`Stop`] when there is nothing to run.
pub fn read(argv: &[OsString], around: &Surroundings) -> Result<Invocation, Stop> {
    let words = words(argv).unwrap_or_default();
    line(words, around)?.invocation()
}

/// Returns the options of these words on how ranks join.
pub(crate) fn start(words: &[OsString]) -> Start {
    let mut line = Line::default();
    for item in items(words).map_while(Result::ok) {
        if let Item::Option { option, value, .. } = item
            && let Does::Line(set) = option.does
            && set(
                &mut line,
                Given::alone(value.as_deref().unwrap_or_default()),
            )
            .is_err()
        {
            return Start::default();
        }
    }
    line.output.start
}

/// A word of a command line.
enum Item {
    /// An option, how it was typed, and its value.
    Option {
        option: &'static Opt,
        typed: String,
        value: Option<String>,
    },
    /// A job file.
    File {
        file: PathBuf,
        /// True if it follows an invalid option and may be that option's value.
        doubtful: bool,
    },
}

/// An error on a command line or in a job file.
struct Wrong {
    what: String,
    mistake: Option<Mistake>,
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong {
            what,
            mistake: None,
        }
    }
}

/// A command line as options and files.
struct Items<'a> {
    words: std::slice::Iter<'a, OsString>,
    /// True after `--`: all further words are job files.
    files_only: bool,
    /// True if the word before was an invalid option without a value.
    doubt: bool,
}

fn items(words: &[OsString]) -> Items<'_> {
    Items {
        words: words.iter(),
        files_only: false,
        doubt: false,
    }
}

impl Iterator for Items<'_> {
    type Item = Result<Item, Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut word = self.words.next()?;
        if !self.files_only && word == "--" {
            self.files_only = true;
            word = self.words.next()?;
        }
        let body = match word.as_bytes() {
            _ if self.files_only => None,
            [b'-', b'-', body @ ..] => Some(body),
            [b'-', body @ ..] if !body.is_empty() => Some(body),
            _ => None,
        };
        let doubtful = std::mem::take(&mut self.doubt);
        Some(match body {
            Some(body) => {
                let item = self.option(body);
                self.doubt = item.is_err() && !body.contains(&b'=');
                item
            }
            None => Ok(Item::File {
                file: PathBuf::from(word),
                doubtful,
            }),
        })
    }
}

impl Items<'_> {
    fn option(&mut self, body: &[u8]) -> Result<Item, Wrong> {
        let body = std::str::from_utf8(body)
            .map_err(|_| format!("'--{}' is not UTF-8", String::from_utf8_lossy(body)))?;
        let (name, attached) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let typed = format!("--{name}");
        let option = match table::find(name) {
            Found::Known(option) => option,
            Found::Refused(name, refused) => {
                let why = refused.sentence();
                return Err(format!("option '--{name}' {why}").into());
            }
            Found::Ambiguous(names) => {
                let names = names.join(", --");
                return Err(format!("'{typed}' is ambiguous: it may be --{names}").into());
            }
            Found::Nothing => {
                let near = table::near(name).map(|near| format!("--{near}"));
                return Err(Wrong {
                    what: format!("unexpected option '{typed}' found"),
                    mistake: Some(Mistake::Option { typed, near }),
                });
            }
        };
        let value = match (option.takes, attached) {
            (Takes::Nothing, Some(value)) => {
                let what = format!("unexpected value '{value}' for '{typed}': it takes none");
                return Err(what.into());
            }
            (Takes::Nothing, None) => None,
            (Takes::Switch | Takes::Optional(_), value) => value.map(str::to_owned),
            (Takes::Value(_) | Takes::ValueOrJob(_), Some(value)) => Some(value.to_owned()),
            (Takes::Value(name) | Takes::ValueOrJob(name), None) => {
                Some(self.next_word(&typed, name)?)
            }
        };
        if let (Takes::Value(name) | Takes::ValueOrJob(name), Some("")) =
            (option.takes, value.as_deref())
        {
            return Err(missing(&typed, name));
        }
        Ok(Item::Option {
            option,
            typed,
            value,
        })
    }

    /// Returns the next word as a value, even if it looks like an option.
    fn next_word(&mut self, typed: &str, name: &str) -> Result<String, Wrong> {
        let word = self.words.next().ok_or_else(|| missing(typed, name))?;
        match word.to_str() {
            Some(value) => Ok(value.to_owned()),
            None => Err(format!(
                "invalid value '{}' for '{typed}': it is not UTF-8",
                word.display()
            )
            .into()),
        }
    }
}

fn missing(typed: &str, name: &str) -> Wrong {
    format!("a value is required for '{typed}=<{name}>' but none was supplied").into()
}

/// Reads all words and job files and reports all errors together: a job file written for fio often
/// has several unsupported options.
fn line(words: &[OsString], around: &Surroundings) -> Result<Line, Stop> {
    let mut line = Line::default();
    let mut files = Vec::new();
    let mut sections = Sections::of_line(&around.files);
    let mut wrong: Vec<Wrong> = Vec::new();
    for item in items(words) {
        let (option, typed, value) = match item {
            Err(what) => {
                wrong.push(what);
                continue;
            }
            Ok(Item::File { file, doubtful }) => {
                files.push((file, doubtful));
                continue;
            }
            Ok(Item::Option {
                option,
                typed,
                value,
            }) => (option, typed, value),
        };
        let given = value.as_deref();
        match option.does {
            Does::Text(text) if wrong.is_empty() => {
                return Err(stop(text(given.unwrap_or_default()), &typed, given));
            }
            Does::Text(_) => {}
            Does::Line(set) => {
                if let Err(why) = set(&mut line, Given::alone(given.unwrap_or_default())) {
                    wrong.push(invalid(&typed, given, &why).into());
                } else if line.tool.is_some() && wrong.is_empty() {
                    return Ok(line);
                }
            }
            Does::Name => {
                // Like in fio, by the beginning of the name.
                let job = given.filter(|name| !name.starts_with("global"));
                wrong.extend(sections.begin(job).into_iter().map(Wrong::from));
                if job.is_some() {
                    sections.push(option, typed, given);
                }
            }
            Does::Job(_) | Does::Base => sections.push(option, typed, given),
        }
    }
    wrong.extend(sections.close().into_iter().map(Wrong::from));
    line.fio.globals = with_values(&sections.globals.own);
    line.jobs = sections.jobs;
    line.take_files(&files, &sections.globals, around, &mut wrong);
    if wrong.is_empty() {
        return Ok(line);
    }
    Err(misuse(&wrong))
}

fn invalid(typed: &str, value: Option<&str>, why: &str) -> String {
    let value = value.unwrap_or_default();
    format!("invalid value '{value}' for '{typed}': {why}")
}

/// Returns the text that an option prints, or the error.
fn stop(text: Result<String, String>, typed: &str, value: Option<&str>) -> Stop {
    match text {
        Ok(text) => Stop::print(text),
        Err(why) => misuse(&[invalid(typed, value, &why).into()]),
    }
}

impl Line {
    /// Reads job files below `globals`. Ignores a missing file whose name may be the value of an
    /// invalid option.
    fn take_files(
        &mut self,
        files: &[(PathBuf, bool)],
        globals: &Section,
        around: &Surroundings,
        wrong: &mut Vec<Wrong>,
    ) {
        let there = files
            .iter()
            .filter(|(file, doubtful)| !doubtful || around.files.contains_key(file));
        for (index, (file, _)) in there.enumerate() {
            let (content, complaints) = Reader::new(around, globals).read(file);
            wrong.extend(complaints.into_iter().map(Wrong::from));
            self.take(content, index > 0);
        }
    }

    /// Takes the jobs of a file; `later` is true for all files but the first.
    fn take(&mut self, content: Sections<'_>, later: bool) {
        let asked = |job: &Named| self.sections.is_empty() || self.sections.contains(&job.files);
        let mut jobs: Vec<Named> = content.jobs.into_iter().filter(asked).collect();
        if let Some(first) = jobs.first_mut() {
            first.apart = later;
        }
        self.jobs.append(&mut jobs);
        for option in with_values(&content.globals.own) {
            let known = self.fio.globals.iter_mut();
            match known.into_iter().find(|known| known.0 == option.0) {
                Some(known) => *known = option,
                None => self.fio.globals.push(option),
            }
        }
    }

    fn invocation(self) -> Result<Invocation, Stop> {
        let Line {
            mut fio,
            mut view,
            mut output,
            common,
            append_terse,
            show_command,
            jobs,
            sections: _,
            tool,
        } = self;
        if let Some(tool) = tool {
            return Ok(Invocation::Tool(Tool::Fio(tool)));
        }
        if jobs.is_empty() {
            let what = "no job is given: start one with --name, or with [name] in a job file";
            return Err(misuse(&[what.to_owned().into()]));
        }
        view.show = show_command.then(|| command_line(&jobs));
        if view.formats.is_empty() {
            view.formats.push("normal");
        }
        if append_terse && !view.formats.contains(&"terse") {
            view.formats.push("terse");
        }
        output.progress = output.progress.unless(output.quiet);
        output.fio = Some(view);
        fio.jobs = jobs.into_iter().map(job).collect();
        let workload = Workload::Fio(Box::new(fio));
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}

fn job(
    Named {
        name,
        files,
        apart,
        section,
    }: Named,
) -> Job {
    Job {
        name,
        files,
        apart,
        options: with_values(&section.own),
        settings: section.settings,
    }
}

/// The jobs as a command line, for `--showcmd`.
fn command_line(jobs: &[Named]) -> String {
    let mut text = "fio".to_owned();
    let inherited = jobs.first().map(|job| &job.section.inherited);
    let shared = jobs.iter().all(|job| {
        let known = &job.section.inherited;
        Some(known) == inherited && !known.iter().any(takes_the_name)
    });
    if shared {
        inherited
            .into_iter()
            .flatten()
            .for_each(|typed| show(&mut text, typed, ""));
    }
    for job in jobs {
        let _ = write!(text, " --name={}", shell_word(&job.name));
        if job.apart {
            text.push_str(" --stonewall");
        }
        if !shared {
            job.section
                .inherited
                .iter()
                .for_each(|typed| show(&mut text, typed, &job.name));
        }
        let own = job.section.own.iter().filter(|typed| typed.name != "name");
        own.for_each(|typed| show(&mut text, typed, &job.name));
    }
    text.push('\n');
    text
}

/// Returns true for an option without a value that takes the job's name in a job file.
fn takes_the_name(typed: &Typed) -> bool {
    let option = table::exact(typed.name).map(|option| option.takes);
    typed.value.is_none() && matches!(option, Some(Takes::ValueOrJob(_)))
}

fn show(text: &mut String, typed: &Typed, job: &str) {
    let _ = match &typed.value {
        Some(value) => write!(text, " --{}={}", typed.name, shell_word(value)),
        // On a command line the value cannot be omitted.
        None if takes_the_name(typed) => write!(text, " --{}={}", typed.name, shell_word(job)),
        None => write!(text, " --{}", typed.name),
    };
}

/// Formats all errors like the native commands do: one line each.
fn misuse(all: &[Wrong]) -> Stop {
    let mut text = String::new();
    for Wrong { what, mistake } in all {
        let _ = writeln!(text, "error: {}", plain(what));
        if let Some(Mistake::Option {
            near: Some(near), ..
        }) = mistake
        {
            let _ = writeln!(text, "\n  tip: a similar option exists: '{}'", plain(near));
        }
    }
    text.push_str("\nFor more information, try 'rbench fio --help'.\n");
    Stop {
        mistake: all.first().and_then(|wrong| wrong.mistake.clone()),
        ..Stop::misuse(text)
    }
}

#[cfg(test)]
mod tests;
