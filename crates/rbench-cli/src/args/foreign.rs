//! Options of fio and mdtest on the command lines of `rbench io` and `rbench meta`: the error names
//! rbench's option. Options of find(1) are accepted as they are.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use rbench_core::near::nearest;

/// fio's option, and its form in `rbench io`.
const FIO: &[(&str, &str)] = &[
    ("--blocksize", "--bs"),
    ("--bssplit", "--bs-split"),
    ("--buffer_compress_percentage", "--compress"),
    ("--dedupe_percentage", "--dedupe"),
    ("--directory", "--dir"),
    ("--do_verify", "--verify"),
    ("--end_fsync", "--fsync end"),
    ("--filename", "--dir (a directory)"),
    ("--filesize", "--size"),
    ("--ioengine", "--engine"),
    ("--loops", "--iterations"),
    ("--nrfiles", "--files, with --file-size"),
    ("--numjobs", "--threads"),
    ("--output", "--out"),
    ("--output-format", "--format"),
    ("--ramp_time", "--ramp"),
    ("--randseed", "--seed"),
    ("--rate_iops", "--rate"),
    ("--rate_process", "--arrival"),
    ("--readwrite", "--rw"),
    ("--runtime", "--time"),
    ("--rwmixread", "--mix"),
    ("--thinktime", "--think"),
    ("--time_based", "--time"),
    ("--verify_async", "--verify-threads"),
];

/// mdtest's option, and its form in `rbench meta`.
const MDTEST: &[(&str, &str)] = &[
    ("-b", "--branch"),
    ("-C", "--phases"),
    ("-d", "--dir"),
    ("-D", "--dirs-only"),
    ("-e", "--read"),
    ("-E", "--phases"),
    ("-F", "--files-only"),
    ("-i", "--iterations"),
    ("-I", "--items"),
    ("-L", "--leaf-only"),
    ("-n", "--items-per-rank"),
    ("-N", "--shift"),
    ("-r", "--phases"),
    ("-R", "--random-order"),
    ("-T", "--phases"),
    ("-w", "--write"),
    ("-W", "--stonewall"),
    ("-y", "--fsync"),
    ("-z", "--depth"),
];

/// Adds a tip to the error if the command has the option in another form.
///
/// `argv` is the whole command line; `command` is the one that its first word names.
pub fn named(
    argv: &[OsString],
    command: Option<&clap::Command>,
    error: clap::Error,
) -> clap::Error {
    let typed = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(typed)) => Some(typed.clone()),
        _ => None,
    };
    if error.kind() == ErrorKind::InvalidSubcommand {
        return match typed(ContextKind::InvalidSubcommand) {
            Some(word) if word.is_empty() => with_tip(
                error,
                "the name of the directory is empty (an unset variable?)".to_owned(),
            ),
            Some(word) => with_tip(
                error,
                format!("for a directory of that name: rbench ./{word}"),
            ),
            None => error,
        };
    }
    let (Some(typed), ErrorKind::UnknownArgument) = (typed(ContextKind::InvalidArg), error.kind())
    else {
        return error;
    };
    if let Some(tip) = command.and_then(|command| in_another_form(argv, command, &typed)) {
        return with_tip(error, tip);
    }
    let (tool, table) = match command.map(clap::Command::get_name) {
        Some("io") => ("fio", FIO),
        Some("meta") => ("mdtest", MDTEST),
        Some("ops") if matches!(typed.as_str(), "--engine" | "--iodepth") => {
            return with_tip(
                error,
                "rbench ops issues one call at a time per thread; use rbench meta, rbench mdtest or rbench mix for several \
                 in flight"
                    .to_owned(),
            );
        }
        _ => return without_far_names(error, &typed),
    };
    let Some((theirs, ours)) = table.iter().find(|(theirs, _)| *theirs == typed) else {
        return without_far_names(error, &typed);
    };
    let tip = format!("{tool}'s {theirs} is {ours} here; rbench {tool} takes {tool}'s own options");
    with_tip(error, tip)
}

/// Returns the command's form of the typed option; `None` if there is none.
fn in_another_form(argv: &[OsString], command: &clap::Command, typed: &str) -> Option<String> {
    let name = command.get_name();
    let is_command = |word: &str| super::command().find_subcommand(word).is_some();
    let has = |long: &str| {
        command
            .get_arguments()
            .any(|arg| arg.get_long() == Some(long))
    };
    let positional = command.get_positionals().next();
    let names_directory = |arg: &clap::Arg| ["dir", "path"].contains(&arg.get_id().as_str());
    match typed {
        "--json" if has("format") => Some("use --format json".to_owned()),
        "--block-size" if has("bs") => Some("use --bs".to_owned()),
        "--dir" if positional.is_some_and(names_directory) => Some(format!(
            "the directory comes without --dir: rbench {name} DIR"
        )),
        word if word.starts_with("--") => None,
        // `-bs` is read as `-b -s`.
        letter if letter.starts_with('-') => {
            let words = argv.iter().filter_map(|word| word.to_str());
            let mut longs = words.filter_map(|word| word.strip_prefix(letter).map(|_| &word[1..]));
            let long = longs.find(|long| has(long))?;
            Some(format!("a long option has two dashes: --{long}"))
        }
        word if positional.is_some_and(clap::Arg::is_last_set) => Some(format!(
            "the workload follows --: rbench {name} … -- {word} …"
        )),
        word if has("dir") && is_command(word) => {
            Some(format!("{name} and {word} are commands: run one at a time"))
        }
        word if has("dir") => Some(format!("a directory is given with --dir {word}")),
        _ => None,
    }
}

/// Returns the error with only this tip: a merely similar name would mislead.
fn with_tip(mut error: clap::Error, tip: String) -> clap::Error {
    let tips = vec![StyledStr::from(tip)];
    if error.remove(ContextKind::SuggestedArg).is_some() {
        error.remove(ContextKind::Usage);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    error
}

/// Removes a suggested option that is too different from the typed one.
fn without_far_names(mut error: clap::Error, typed: &str) -> clap::Error {
    let far = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(name)) => {
            nearest(typed, std::iter::once(name.trim_start_matches('-'))).is_none()
        }
        _ => false,
    };
    if far {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
    }
    error
}

/// Turns the tests of `rbench find`, written like in find(1), into long options.
pub fn as_long_options(argv: &[OsString]) -> Vec<OsString> {
    let is_find = argv.get(1).is_some_and(|command| command == "find");
    let long = |word: &OsString| match word.to_str() {
        Some("-newer" | "-size" | "-name") if is_find => {
            let mut long = OsString::from("-");
            long.push(word);
            long
        }
        _ => word.clone(),
    };
    argv.iter().map(long).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, command};

    fn check(line: &str, expected: &str, unexpected: &str) {
        let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let message = Args::read(&argv).map(|_| ()).expect_err(line).to_string();
        assert!(message.contains(expected), "{line}: {message}");
        assert!(!message.contains(unexpected), "{line}: {message}");
    }

    #[test]
    fn tips_name_what_was_meant() {
        check(
            "rbench io -bs 4k",
            "tip: a long option has two dashes: --bs",
            "Usage: -b",
        );
        check(
            "rbench io meta",
            "tip: io and meta are commands: run one at a time",
            "--dir meta",
        );
        check(
            "rbench io data",
            "tip: a directory is given with --dir data",
            "commands",
        );
        check("rbench io --block-size 4k", "tip: use --bs", "--file-size");
        check(
            "rbench io --thread 4",
            "a similar argument exists: '--threads'",
            "fio's",
        );
        check(
            "rbench io --zone 4",
            "unexpected argument '--zone'",
            "--on-error",
        );
        check("rbench ", "the name of the directory is empty", "rbench ./");
    }

    #[test]
    fn every_name_is_an_option_of_the_command_and_the_others_are_none() {
        for (name, table) in [("io", FIO), ("meta", MDTEST)] {
            let mut command = command();
            command.build();
            let command = command.find_subcommand(name).expect("a command");
            let has = |long: &str| {
                let mut names = command.get_arguments().filter_map(|arg| arg.get_long());
                names.any(|name| name == long)
            };
            for (theirs, ours) in table {
                for word in ours.split([' ', ',']) {
                    let is_one = word.strip_prefix("--").is_none_or(has);
                    assert!(is_one, "rbench {name} has no {word}");
                }
                assert!(
                    !has(theirs.trim_start_matches('-')),
                    "{theirs} is one of rbench {name}"
                );
            }
        }
    }
}
