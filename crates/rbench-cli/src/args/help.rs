//! The order of help: commands by purpose, and in each command the most common options first. `-h`
//! shows only these, `--help` all.

use clap::{Arg, Command};

/// Commands by purpose, in the order of `rbench --help`.
const GROUPS: &[(&str, &str)] = &[
    ("Start here", "overview"),
    ("Measure", "io meta ops mix replay find"),
    ("Series of runs", "sweep knee suite"),
    ("Command lines of other tools", "fio mdtest ior quick nn"),
    ("Mounts", "probe check verify clean"),
    ("Results", "show compare report watch"),
    ("Other", "record testfs completions man version help"),
];

/// Options that come first in every command that has them.
const FIRST: [&str; 3] = ["dir", "threads", "out"];

/// Options of the plan that the help lists with the output options, before the format.
const BEFORE_FORMAT: [&str; 2] = ["interval", "log"];

/// Options that `-h` shows besides [`FIRST`]; commands missing here have few.
const SHOWN: &[(&str, &str)] = &[
    ("io", "rw bs size direct depth time iterations"),
    (
        "meta",
        "items depth files_only write phases shift iterations",
    ),
    ("ops", "only ops time shift drop_caches iterations"),
    ("mix", "profile profiles ops list files time rate"),
    (
        "replay",
        "traces below copies time_scale as_fast_as_possible iterations",
    ),
    ("find", "start newer size name drop_caches iterations"),
];

/// Sorts the help of the command and its subcommands in this order.
pub fn arranged(command: Command) -> Command {
    let groups = groups(&command);
    command.mut_subcommands(in_order).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

/// The list of commands, one line each.
fn groups(command: &Command) -> String {
    let about = |name: &str| {
        let sub = command.find_subcommand(name);
        match sub.and_then(Command::get_about) {
            Some(about) => about.to_string(),
            None => "Print this list or the help of a command".to_owned(),
        }
    };
    let group = |(title, names): &(&str, &str)| {
        let lines = names
            .split(' ')
            .map(|name| format!("  {name:<11}  {}\n", about(name)));
        format!("{title}:\n{}\n", lines.collect::<String>())
    };
    GROUPS.iter().map(group).collect()
}

/// Names of numeric values: a minus before one is part of the number, not an option.
const NUMBERS: &str = "N SIZE TIME PERCENT OPS X FACTOR N|auto N1,N2,…";

/// Sorts the options of a command, the most common first.
fn in_order(command: Command) -> Command {
    let shown = SHOWN.iter().find(|(name, _)| *name == command.get_name());
    let mut ids: Vec<String> = command
        .get_arguments()
        .map(|arg| arg.get_id().to_string())
        .collect();
    for id in BEFORE_FORMAT {
        let place = |id: &str| ids.iter().position(|known| known == id);
        if let (Some(from), Some(to)) = (place(id), place("format")) {
            ids.insert(to, id.to_owned());
            ids.remove(from);
        }
    }
    let name = command.get_name().to_owned();
    // One pass: `mut_arg` would move all options for each.
    let command = command.mut_args(|arg| {
        let is_number = |name: &clap::builder::Str| has(NUMBERS, name);
        let is_number = arg
            .get_value_names()
            .is_some_and(|names| names.iter().any(is_number));
        let arg = match is_number {
            true => arg.allow_hyphen_values(true),
            false => arg,
        };
        let id = arg.get_id().as_str();
        let hidden = shown.is_some_and(|(_, shown)| !has(shown, id));
        match FIRST.iter().position(|first| *first == id) {
            Some(place) => first(arg, place),
            None => {
                let at = ids.iter().position(|known| known == id);
                let at = FIRST.len() + at.unwrap_or(ids.len());
                arg.display_order(at).hide_short_help(hidden)
            }
        }
    });
    match (shown, command.get_after_help().cloned()) {
        (Some(_), Some(long)) => command
            .after_help(format!("All options, with examples: rbench {name} --help"))
            .after_long_help(long),
        _ => command,
    }
}

/// Returns true if the word is one of `words`, which are separated by blanks.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Moves an option to the top of the list, whatever group declares it.
fn first(arg: Arg, place: usize) -> Arg {
    arg.display_order(place).help_heading(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = command();
        command.build();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.split(' '))
            .collect();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn short_help_shows_at_most_ten_options_that_exist_and_long_help_all() {
        let mut command = command();
        command.build();
        for (name, shown) in SHOWN {
            let sub = command.find_subcommand_mut(name).expect("a command");
            let ids: Vec<String> = sub
                .get_arguments()
                .map(|arg| arg.get_id().to_string())
                .collect();
            let visible: Vec<&str> = FIRST.into_iter().chain(shown.split(' ')).collect();
            for id in &visible {
                assert!(ids.iter().any(|known| known == id), "rbench {name}: {id}");
            }
            assert!(visible.len() <= 10, "rbench {name}");
            let [short, long] = [sub.render_help(), sub.render_long_help()];
            let options =
                |text: String| text.lines().filter(|l| l.trim().starts_with("--")).count();
            assert!(options(short.to_string()) <= 10, "{short}");
            assert!(options(long.to_string()) > 30, "{long}");
            let at = |text: &str, option: &str| text.find(option).expect("an option");
            for text in [short.to_string(), long.to_string()] {
                let places = ["--dir ", "--threads ", "--out "].map(|option| at(&text, option));
                assert!(places.is_sorted(), "{text}");
            }
        }
    }
}
