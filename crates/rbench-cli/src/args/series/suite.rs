//! `rbench suite`: a named sequence of runs.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_plan::io500;
use rbench_plan::suite::{self, BUILT_IN};
use rbench_plan::values;

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
    /// Directory to test [default: RBENCH_DIR, else a built-in in-memory file system as a
    /// demo]
    #[arg(long, value_name = "DIR", value_parser = values::directory())]
    dir: Option<PathBuf>,
    /// Multiply the numbers, sizes and times that the suite marks as variable by X, such as
    /// 0.1; the result records it
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// io500 only: read settings from this file, in IO500's format (--show io500 prints
    /// all)
    #[arg(long, value_name = "FILE", help_heading = "io500")]
    ini: Option<PathBuf>,
    /// io500 only: duration of phases that write (s) [default: that of --ini, or 300]
    #[arg(long, value_name = "TIME", value_parser = whole_seconds, help_heading = "io500")]
    stonewall: Option<u64>,
    /// Print the cells and an estimate of the time without running anything
    #[arg(long)]
    dry_run: bool,
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
            ("--ini", self.ini.is_some()),
            ("--stonewall", self.stonewall.is_some()),
        ];
        if let Some((option, _)) = others
            .iter()
            .find(|(_, given)| *given && name != io500::NAME)
        {
            let text = format!("error: {option} is only for the suite {}\n", io500::NAME);
            return Err(Stop::misuse(text));
        }
        let of_no_use = |dir: &&OsStr| self.dir.is_some() && dir.is_empty();
        let env_dir = invocation::env_dir(env_dir.filter(|dir| !of_no_use(dir)))?;
        Ok(self.options.with(Course::Suite(Suite {
            name,
            dir: self.dir,
            env_dir,
            ini: self.ini,
            stonewall_s: self.stonewall,
            scale: self.scale,
            dry_run: self.dry_run,
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

fn whole_seconds(text: &str) -> Result<u64, String> {
    let time = values::time(text)?.0;
    match time.is_multiple_of(SECOND) && time > 0 {
        true => Ok(time / SECOND),
        false => Err(format!(
            "'{text}' is not a whole number of seconds (at least 1)"
        )),
    }
}

/// A second, ns.
const SECOND: u64 = 1_000_000_000;

pub(super) fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok();
    scale
        .filter(|scale| *scale > 0.0 && *scale <= 1.0)
        .ok_or_else(|| format!("'{text}' is not a number above 0 and at most 1"))
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

    #[test]
    fn a_scale_is_a_part() {
        assert_eq!(scale("0.01"), Ok(0.01));
        for wrong in ["0", "-1", "1.5", "x", "nan"] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }
}
