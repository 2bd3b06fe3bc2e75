//! `rbench suite`: a named sequence of runs.

use std::ffi::OsStr;

use clap::Args as ClapArgs;
use rbench_plan::io500;
use rbench_plan::suite::{self, BUILT_IN};

use super::SeriesOptions;
use crate::series::{Course, Suite, is_file};
use crate::{Invocation, Stop, args, invocation};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A suite is a fixed sequence of commands with their options. --show prints one, and you can \
    write your own in the same format (docs/reference/suites.md). Cells that need more hosts or ranks than \
    were launched are left out, and the report lists them.\n\nExamples:\n  rbench suite smoke\n  mpirun -np 12 \
    --hostfile myhost rbench suite cubefs --dir /mnt/fs --scale 0.01 --out cubefs.json\n  mpirun -np 12 \
    --hostfile myhost rbench suite cubefs --dir /mnt/fs --dry-run\n  mpirun -np 12 --hostfile myhost rbench \
    suite io500 --dir /mnt/fs --stonewall 30 --out io500.json"
)]
pub struct SuiteArgs {
    /// Suite to run: a name that --list prints, or a file NAME.toml
    name: Option<String>,
    /// Print the built-in suites
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Print the text of a built-in suite
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "list"])]
    show: Option<String>,
    #[command(flatten)]
    suite: Suite,
    #[command(flatten)]
    pub options: SeriesOptions,
}

impl SuiteArgs {
    /// Converts the options into an invocation.
    ///
    /// # Errors The text to print when there is nothing to run.
    pub fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        if self.list {
            return Err(Stop::print(list()));
        }
        if let Some(name) = &self.show {
            let text = text(name).ok_or_else(|| Stop::misuse(unknown(name)))?;
            return Err(Stop::print(text));
        }
        let Some(name) = self.name else {
            let text = "error: the name of a suite is missing; rbench suite --list prints all\n";
            return Err(Stop::misuse(text.to_owned()));
        };
        if !is_file(&name) && text(&name).is_none() {
            return Err(Stop::misuse(unknown(&name)));
        }
        let others = [
            ("--ini", self.suite.ini.is_some()),
            ("--stonewall", self.suite.stonewall.is_some()),
        ];
        if let Some((option, _)) = others
            .iter()
            .find(|(_, given)| *given && name != io500::NAME)
        {
            let text = format!("error: {option} is only for the suite {}\n", io500::NAME);
            return Err(Stop::misuse(text));
        }
        let of_no_use = |dir: &&OsStr| self.suite.dir.is_some() && dir.is_empty();
        let env_dir = invocation::env_dir(env_dir.filter(|dir| !of_no_use(dir)))?;
        Ok(self.options.with(Course::Suite(Suite {
            name,
            env_dir,
            ..self.suite
        })))
    }
}

fn unknown(name: &str) -> String {
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    let names = names.chain([io500::NAME]);
    args::unknown("suite", name, names, "rbench suite --list")
}

/// Lists the suites, one a line.
fn list() -> String {
    let line = |(name, text): &(&str, &str)| {
        let suite = suite::read(name, text).ok()?;
        let named = suite.title_of_results();
        Some(format!("{named:<27} {}\n", suite.title))
    };
    let mut out: String = BUILT_IN.iter().filter_map(line).collect();
    let named = format!("{} {}", io500::NAME, io500::VERSION);
    out.push_str(&format!("{named:<27} {}\n", io500::TITLE));
    out
}

/// Returns the text of a built-in suite, or the settings of `io500`.
fn text(name: &str) -> Option<String> {
    match name {
        io500::NAME => Some(io500::Settings::text()),
        _ => suite::built_in(name).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_suite_is_listed() {
        assert_eq!(list().lines().count(), BUILT_IN.len() + 1);
    }

    #[test]
    fn a_suite_that_does_not_exist_has_a_near_one() {
        assert!(unknown("cubfs").contains("(nearest: cubefs)"));
    }
}
