//! Job files: sections, keys, comments, inclusions, variables.
//!
//! Defines their grammar. The table defines the keys; the section reads their values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::section::{Section, Sections};
use super::table::{self, Does, Opt, Takes};
use rbench_plan::given::{Contents, evaluate};
use serde::{Deserialize, Serialize};

/// Everything that job files may refer to; the same on all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Surroundings {
    /// The content of job files, of files that they include and of files that patterns name. Keys
    /// are the names that [`super::files_named`] returns.
    #[serde(with = "by_path")]
    pub files: Contents,
    /// Reasons why files could not be read, for those missing from `files`.
    #[serde(with = "by_path")]
    pub unreadable: BTreeMap<PathBuf, String>,
    /// Values of environment variables, of those that [`super::variables_named`] returns.
    pub variables: BTreeMap<String, String>,
    /// `$pagesize`, bytes.
    pub page_size: u64,
    /// `$ncpus`
    pub cpus: u64,
    /// `$mb_memory`
    pub memory_mib: u64,
}

/// Maps by paths, which need not be UTF-8, in messages.
mod by_path {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<V: Serialize, S: Serializer>(
        map: &BTreeMap<PathBuf, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(path, value)| (path.as_os_str(), value)))
    }

    pub fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<PathBuf, V>, D::Error> {
        let map = BTreeMap::<OsString, V>::deserialize(deserializer)?;
        let by_path = map.into_iter().map(|(path, value)| (path.into(), value));
        Ok(by_path.collect())
    }
}

/// Deepest inclusion; deeper means that files include each other.
const DEPTH: usize = 16;

/// Most inclusions of one job file, repeated ones counted. Files that include each other several
/// times would add up to millions.
const INCLUDED_MAX: usize = 1000;

/// Most jobs of a file: no more workers can run.
const JOBS_MAX: usize = 4096;

/// A line of a job file that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Saying<'a> {
    /// `[name]`
    Section(&'a str),
    /// `include file`
    Include(&'a str),
    /// `key=value`, or `key` alone.
    Key(&'a str, Option<&'a str>),
}

/// The lines of a text that are not empty, with their numbers from 1.
fn sayings(text: &str) -> impl Iterator<Item = (usize, Result<Saying<'_>, String>)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let end = line.find([';', '#']).unwrap_or(line.len());
        let line = line[..end].trim();
        if line.is_empty() {
            return None;
        }
        Some((index + 1, saying(line)))
    })
}

fn saying(line: &str) -> Result<Saying<'_>, String> {
    if let Some(rest) = line.strip_prefix('[') {
        return match rest.strip_suffix(']').map(str::trim) {
            Some("") => Err("a section needs a name".to_owned()),
            Some(name) => Ok(Saying::Section(name)),
            None => Err(format!("'{line}' does not end with ]")),
        };
    }
    if let Some(file) = line.strip_prefix("include")
        && file.starts_with([' ', '\t'])
        && !file.trim_start().starts_with('=')
    {
        return Ok(Saying::Include(file.trim()));
    }
    Ok(match line.split_once('=') {
        Some((key, value)) => Saying::Key(key.trim(), Some(value.trim())),
        None => Saying::Key(line, None),
    })
}

/// Returns the path of an included file, which is relative to the including file.
fn beside(file: &Path, included: &str) -> PathBuf {
    match file.parent() {
        Some(parent) => parent.join(included),
        None => PathBuf::from(included),
    }
}

/// Returns the files that a job file includes.
pub fn includes(file: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(bytes);
    let named = sayings(&text).filter_map(|(_, saying)| match saying {
        Ok(Saying::Include(included)) => Some(beside(file, included)),
        _ => None,
    });
    named.collect()
}

/// Returns the files that patterns in a job file name, relative to the working directory.
pub fn pattern_files(bytes: &[u8]) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(bytes);
    let named = sayings(&text).filter_map(|(_, saying)| match saying {
        Ok(Saying::Key(key, Some(value))) => {
            table::exact(key).map(|option| super::named_by(option, value))
        }
        _ => None,
    });
    named.flatten().collect()
}

/// Returns the environment variables that a job file uses.
pub fn variables(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut names = Vec::new();
    for (_, saying) in sayings(&text) {
        let Ok(Saying::Key(_, Some(value))) = saying else {
            continue;
        };
        for part in value.split("${").skip(1) {
            if let Some((name, _)) = part.split_once('}') {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Reader of a job file.
pub struct Reader<'a> {
    around: &'a Surroundings,
    sections: Sections<'a>,
    /// Number of files included until now.
    included: usize,
    /// Errors, a sentence each.
    wrong: Vec<String>,
}

impl<'a> Reader<'a> {
    /// A reader of a file below `globals`, the options of the command line that apply to all jobs.
    pub fn new(around: &'a Surroundings, globals: &Section) -> Reader<'a> {
        Reader {
            around,
            sections: Sections::of_file(&around.files, globals),
            included: 0,
            wrong: Vec::new(),
        }
    }

    /// Reads the file. Returns its sections and a sentence for each error, with file, line and
    /// option.
    pub fn read(mut self, file: &Path) -> (Sections<'a>, Vec<String>) {
        // Such an error makes the rest unreadable.
        if let Err(why) = self.lines(file, 0) {
            self.wrong.push(why);
        }
        self.wrong.extend(self.sections.close());
        (self.sections, self.wrong)
    }

    fn lines(&mut self, file: &Path, depth: usize) -> Result<(), String> {
        let shown = file.display();
        let bytes = self.around.files.get(file);
        let bytes = bytes.ok_or_else(|| match self.around.unreadable.get(file) {
            Some(why) => format!("the job file {shown} cannot be read: {why}"),
            None => format!("job file {shown} was not read"),
        })?;
        let text =
            std::str::from_utf8(bytes).map_err(|_| format!("job file {shown} is not UTF-8"))?;
        for (number, saying) in sayings(text) {
            let at = |why: String| format!("{shown}, line {number}: {why}");
            let saying = match saying {
                Ok(saying) => saying,
                Err(why) => {
                    self.wrong.push(at(why));
                    // The keys below it are checked all the same.
                    self.wrong.extend(self.sections.begin(Some("?")));
                    continue;
                }
            };
            if !matches!(saying, Saying::Section(_)) && !self.sections.is_open() {
                let why = "an option stands before the first [section]";
                self.wrong.push(at(why.to_owned()));
                self.wrong.extend(self.sections.begin(None));
            }
            match saying {
                Saying::Section(name) if depth > 0 => {
                    return Err(at(format!(
                        "an included file must not have sections, such as [{name}]"
                    )));
                }
                Saying::Section(_) if self.sections.jobs.len() == JOBS_MAX => {
                    return Err(at(format!("a file may have at most {JOBS_MAX} jobs")));
                }
                Saying::Section(name) => {
                    let is_global = name.to_ascii_lowercase().starts_with("global");
                    let wrong = self.sections.begin((!is_global).then_some(name));
                    self.wrong.extend(wrong);
                }
                Saying::Include(_) if depth == DEPTH => {
                    return Err(at("files include each other".to_owned()));
                }
                Saying::Include(_) if self.included == INCLUDED_MAX => {
                    return Err(at(format!(
                        "more than {INCLUDED_MAX} inclusions, counting repeated ones"
                    )));
                }
                Saying::Include(included) => {
                    self.included += 1;
                    self.lines(&beside(file, included), depth + 1)?;
                }
                Saying::Key(key, value) => {
                    let place = format!("{shown}, line {number}: ");
                    if let Err(why) = self.key(key, value, &place) {
                        self.wrong.push(at(why));
                    }
                }
            }
        }
        Ok(())
    }

    fn key(&mut self, key: &str, value: Option<&str>, place: &str) -> Result<(), String> {
        let option = known(key)?;
        let value = match (option.takes, value) {
            (Takes::Switch, value) => value,
            (Takes::ValueOrJob(_), None) => None,
            (_, Some("") | None) => return Err(format!("'{key}' needs a value")),
            (_, value) => value,
        };
        let value = value.map(|value| self.expand(value)).transpose()?;
        match (option.does, value) {
            // The names of global sections count, as in fio.
            (Does::Name, Some(name)) => self.sections.rename(&name),
            (_, value) => self
                .sections
                .push(option, format!("{place}{key}"), value.as_deref()),
        }
        Ok(())
    }

    /// Substitutes variables: `${NAME}` of the environment, `$pagesize`, `$ncpus`,
    /// `$mb_memory`; with one of the latter, the value may be an expression with any sign.
    fn expand(&self, value: &str) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = value;
        while let Some((before, behind)) = rest.split_once("${") {
            let (name, after) = behind
                .split_once('}')
                .ok_or_else(|| format!("'{value}': ${{ is not closed by }}"))?;
            let found = self.around.variables.get(name);
            text.push_str(before);
            text.push_str(
                found.ok_or_else(|| format!("the environment variable {name} is not set"))?,
            );
            rest = after;
        }
        text.push_str(rest);
        let keywords = [
            ("$pagesize", self.around.page_size),
            ("$ncpus", self.around.cpus),
            ("$mb_memory", self.around.memory_mib),
        ];
        let mut counted = false;
        for (keyword, number) in keywords {
            if text.contains(keyword) {
                counted = true;
                text = text.replace(keyword, &number.to_string());
            }
        }
        let mut digits = |text: &str| text.parse().ok();
        match counted
            .then(|| evaluate(&text, true, &mut digits))
            .flatten()
        {
            Some(number) => Ok(number.to_string()),
            None => Ok(text),
        }
    }
}

/// Returns the option of a key; a file must spell it out.
fn known(key: &str) -> Result<&'static Opt, String> {
    if let Some(option) = table::exact(key) {
        return if option.in_files() {
            Ok(option)
        } else {
            Err(format!("'{key}' is for the command line only"))
        };
    }
    Err(match (table::refusal(key), table::near(key)) {
        (Some(refused), _) => format!("option '{key}' {}", refused.sentence()),
        (None, Some(near)) => format!("unknown option '{key}'; did you mean '{near}'?"),
        (None, None) => format!("unknown option '{key}'"),
    })
}
