//! Shell completions and man pages, generated from the options of the commands.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use rbench_core::operations::OPS_ROWS;
use rbench_plan::meta::PHASES;
use rbench_plan::mix::profile;
use rbench_plan::{io500, suite};

use crate::definition::with_options;
use crate::letters::Line as _;
use crate::{args, fio, ior, mdtest};

/// The program's name, as shells know it.
const NAME: &str = "rbench";

/// Names that other crates own and that shells complete.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Engines of `rbench io`.
    pub engines: Vec<String>,
    /// Columns of published figures.
    pub published: Vec<String>,
}

/// The completions of a shell, as the script that it loads.
pub fn completions(shell: Shell, names: &Names) -> String {
    let mut out = Vec::new();
    let mut command = with_values(command(), names);
    clap_complete::generate(shell, &mut command, NAME, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The man pages: file name and text in roff; the program's own comes first.
///
/// # Errors Only if writing to memory failed.
pub fn man_pages() -> std::io::Result<Vec<(String, String)>> {
    let mut program = command();
    program.build();
    let mut pages = vec![page(&program, NAME)?];
    for sub in program.get_subcommands().filter(|s| s.get_name() != "help") {
        pages.push(page(sub, &format!("{NAME}-{}", sub.get_name()))?);
    }
    Ok(pages)
}

fn page(command: &Command, name: &str) -> std::io::Result<(String, String)> {
    let mut out = Vec::new();
    // The page's title; the synopsis keeps the words that are typed.
    let man = clap_mangen::Man::new(command.clone().display_name(name))
        .title(name.to_uppercase())
        .source(concat!("rbench ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    man.render(&mut out)?;
    Ok((
        format!("{name}.1"),
        String::from_utf8_lossy(&out).into_owned(),
    ))
}

/// The commands with the options of mdtest, IOR and fio, which clap does not read.
fn command() -> Command {
    args::command()
        .mut_subcommand("mdtest", |command| {
            with_options(command, mdtest::Line::TABLE.groups)
        })
        .mut_subcommand("ior", |command| {
            with_options(command, ior::Line::TABLE.groups)
        })
        .mut_subcommand("fio", |command| {
            let files = Arg::new("JOBFILE")
                .num_args(0..)
                .value_hint(ValueHint::FilePath)
                .help("Job files");
            with_options(command, fio::GROUPS).arg(files)
        })
}

/// The commands with the values of the options that take a name.
fn with_values(command: Command, names: &Names) -> Command {
    let phases = PHASES.iter().filter(|info| info.native());
    let suites = suite::BUILT_IN.iter().map(|(name, _)| *name);
    let suites: Vec<&str> = suites.chain([io500::NAME]).collect();
    let profiles: Vec<&str> = profile::BUILT_IN.iter().map(|(name, _)| *name).collect();
    let all: [(&str, &str, Vec<String>); 8] = [
        ("io", "engine", names.engines.clone()),
        ("meta", "phases", owned(phases.map(|info| info.name))),
        ("ops", "only", owned(OPS_ROWS.iter().map(|row| row.name))),
        ("mix", "profile", owned(profiles.iter().copied())),
        ("mix", "show", owned(profiles.iter().copied())),
        ("suite", "name", owned(suites.iter().copied())),
        ("suite", "show", owned(suites.iter().copied())),
        ("compare", "published", names.published.clone()),
    ];
    all.into_iter()
        .fold(command, |command, (sub, arg, values)| {
            command.mut_subcommand(sub, |sub| {
                sub.mut_arg(arg, |arg| {
                    arg.value_parser(PossibleValuesParser::new(values))
                })
            })
        })
}

fn owned<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_man_page_and_is_completed() {
        let pages = man_pages().expect("in memory");
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in [
            "rbench.1",
            "rbench-io.1",
            "rbench-mdtest.1",
            "rbench-fio.1",
            "rbench-man.1",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
        for (name, text) in &pages {
            assert!(text.contains(".SH SYNOPSIS"), "{name}: {text}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let names = Names {
                engines: vec!["an_engine".to_owned()],
                published: vec!["a-set/a-column".to_owned()],
            };
            let text = completions(shell, &names);
            for word in "drop-caches print-all-procs iodepth openmetrics an_engine \
                a-set/a-column file-setxattr readdir_10 varmail juicefs-single-node"
                .split(' ')
            {
                assert!(text.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn the_page_of_fio_has_its_options() {
        let pages = man_pages().expect("in memory");
        let page = |name: &str| {
            let found = pages.iter().find(|(known, _)| known == name);
            found
                .map(|(_, text)| text.replace('\\', ""))
                .unwrap_or_default()
        };
        assert!(page("rbench-fio.1").contains("--group_reporting"));
        assert!(page("rbench-mdtest.1").contains("--showRankStatistics"));
    }
}
