//! Suites: named and versioned sequences of runs, written as TOML. A step is a command line
//! with placeholders ([`Step::words`]), and keys to vary like in a sweep.

use std::ffi::OsString;

use crate::document::DocumentError;
use crate::series::{Over, Selection};

mod read;
pub(crate) mod scaled;

pub use read::read;

/// The suite of `rbench DIR`.
pub const OVERVIEW: &str = "overview";

/// The suites that are part of the program: name and text.
pub const BUILT_IN: [(&str, &str); 5] = [
    ("smoke", include_str!("../suites/smoke.toml")),
    (OVERVIEW, include_str!("../suites/overview.toml")),
    (
        "juicefs-metadata-engines",
        include_str!("../suites/juicefs-metadata-engines.toml"),
    ),
    (
        "juicefs-single-node",
        include_str!("../suites/juicefs-single-node.toml"),
    ),
    ("cubefs", include_str!("../suites/cubefs.toml")),
];

/// The commands that have their own built-in file system on each host.
const NATIVE: [&str; 4] = ["meta", "io", "ops", "quick"];

/// The placeholder of the directory.
const DIR: &str = "dir";

/// A suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Its version: figures of different versions are not comparable.
    pub version: u32,
    /// Its purpose, in a line.
    pub title: String,
    /// Its steps, in the order in which they run.
    pub steps: Vec<Step>,
}

/// A command line, with the keys that vary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name, unique in the suite.
    pub name: String,
    /// The command line after the program's name, with its words separated by blanks.
    pub run: String,
    /// The line of `run` in the file, from 1.
    pub line: usize,
    /// The keys that vary, the last one fastest.
    pub over: Vec<Over>,
    /// The ranks that take part in each cell, before `over` selects.
    pub selection: Selection,
}

/// The text of a built-in suite.
pub fn built_in(name: &str) -> Option<&'static str> {
    let suite = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(suite.1)
}

impl Suite {
    /// Name and version, as in results.
    pub fn title_of_results(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// True if a step works in the tested directory.
    pub fn uses_dir(&self) -> bool {
        self.steps.iter().any(|step| step.run.contains("{dir}"))
    }
}

impl Step {
    /// The words of the command line, with placeholders filled in, except for those of `over`.
    /// `{dir}` becomes `dir`. `{N}` and `{N:LEAST}` are a number, a size (`4g`) or a time
    /// (`120s`), multiplied by `scale`. The result is a multiple of LEAST (default: whole
    /// numbers), and at least LEAST. Without `dir`, native commands get none, and so use the
    /// built-in file system of each host.
    ///
    /// # Errors
    /// A placeholder that cannot be filled in.
    pub fn words(&self, dir: Option<&str>, scale: f64) -> Result<Vec<OsString>, DocumentError> {
        let mut words: Vec<OsString> = Vec::new();
        let native = self.run.split_whitespace().next();
        let native = native.is_some_and(|word| NATIVE.contains(&word));
        for word in self.run.split_whitespace() {
            if dir.is_none() && native && word == "{dir}" {
                words.pop_if(|last| last == "--dir");
                continue;
            }
            words.push(self.filled(word, dir, scale)?.into());
        }
        Ok(words)
    }

    fn filled(&self, word: &str, dir: Option<&str>, scale: f64) -> Result<String, DocumentError> {
        let failed = |message: String| DocumentError {
            line: self.line,
            message: format!("step {}: {message}", self.name),
        };
        let mut out = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('{') {
            let (placeholder, behind) = after
                .split_once('}')
                .ok_or_else(|| failed(format!("'{word}' has a {{ without a matching }}")))?;
            out.push_str(before);
            if self.over.iter().any(|over| over.key == placeholder) {
                out.push_str(&format!("{{{placeholder}}}"));
            } else if placeholder == DIR {
                let dir = dir.ok_or_else(|| {
                    failed("it needs a directory that all hosts see: give --dir".to_owned())
                })?;
                out.push_str(dir);
            } else {
                out.push_str(&scaled::part(placeholder, scale).map_err(failed)?);
            }
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(run: &str) -> Step {
        Step {
            name: "a".to_owned(),
            run: run.to_owned(),
            line: 7,
            over: Vec::new(),
            selection: Selection::default(),
        }
    }

    fn line(step: &Step, dir: Option<&str>, scale: f64) -> Result<String, String> {
        let words = step.words(dir, scale).map_err(|e| e.to_string())?;
        Ok(crate::testing::line(&words))
    }

    #[test]
    fn places_are_filled_in() {
        let step =
            step("fio --directory={dir} --size={4g:4m} --runtime={120s} --nrfiles={1000:10}");
        let full = "fio --directory=/mnt --size=4g --runtime=120 --nrfiles=1000";
        assert_eq!(line(&step, Some("/mnt"), 1.0).as_deref(), Ok(full));
        let short = "fio --directory=/mnt --size=40m --runtime=1 --nrfiles=10";
        assert_eq!(line(&step, Some("/mnt"), 0.01).as_deref(), Ok(short));
    }

    #[test]
    fn what_is_varied_is_left_to_the_product() {
        let varied = Step {
            over: vec![Over {
                key: "size".to_owned(),
                values: vec!["4k".to_owned()],
            }],
            ..step("mdtest -w {size} -e {size}")
        };
        let words = line(&varied, None, 1.0);
        assert_eq!(words.as_deref(), Ok("mdtest -w {size} -e {size}"));
    }

    #[test]
    fn without_a_directory_native_commands_have_none_and_others_are_refused() {
        let of = |run: &str| line(&step(run), None, 1.0);
        assert_eq!(of("io --dir {dir} --bs 4k").as_deref(), Ok("io --bs 4k"));
        assert_eq!(of("quick {dir} -p 4").as_deref(), Ok("quick -p 4"));
        check_refused("mdtest -d {dir}/m", "--dir");
    }

    fn check_refused(run: &str, part: &str) {
        let error = line(&step(run), None, 1.0).expect_err("refused");
        let placed = error.contains("line 7: step a");
        assert!(error.contains(part) && placed, "{error}");
    }

    #[test]
    fn what_is_no_place_is_named() {
        check_refused("io --bs {4k", "without a matching }");
        check_refused("io --bs {large}", "'large'");
    }

    #[test]
    fn every_built_in_suite_is_one() {
        for (name, text) in BUILT_IN {
            let suite = read(name, text).unwrap_or_else(|e| panic!("{name}: {e}"));
            for step in &suite.steps {
                for scale in [1.0, 0.01, 1e-9] {
                    let words = step.words(Some("/mnt"), scale);
                    let words = words.unwrap_or_else(|e| panic!("{name}: {e}"));
                    crate::series::product(&step.over, &words)
                        .unwrap_or_else(|e| panic!("{name}: {e}"));
                }
            }
        }
    }
}
