//! Options of fio and mdtest on the command lines of `rbench io` and `rbench meta`: the error names
//! rbench's option. Options of find(1) are accepted as they are.

use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use rbench_core::near::nearest;
use rbench_core::plain::shell_word;
use rbench_plan::{knee, series};

use crate::Mistake;

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
    if error.kind() == ErrorKind::InvalidSubcommand {
        return match word(&error, ContextKind::InvalidSubcommand) {
            Some(word) if word.is_empty() => with_tip(
                error,
                "the name of the directory is empty (an unset variable?)".to_owned(),
            ),
            Some(word) => {
                let all = &super::COMMAND;
                let names = all.get_subcommands().filter(|sub| !sub.is_hide_set());
                let near = nearest(&word, names.map(clap::Command::get_name));
                let near = near.map(|near| format!("a similar command exists: '{near}'"));
                let show = || {
                    format!(
                        "this is a file: rbench show {} prints a result",
                        shell_word(&word)
                    )
                };
                let tip = near.or_else(|| Path::new(&word).is_file().then(show));
                with_tips(error, tip)
            }
            None => error,
        };
    }
    let (Some(typed), ErrorKind::UnknownArgument) =
        (word(&error, ContextKind::InvalidArg), error.kind())
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
        _ => return with_near_name(error, &typed, command),
    };
    let Some((theirs, ours)) = table.iter().find(|(theirs, _)| *theirs == typed) else {
        return with_near_name(error, &typed, command);
    };
    let tip = format!("{tool}'s {theirs} is {ours} here; rbench {tool} takes {tool}'s own options");
    with_tip(error, tip)
}

fn word(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    }
}

/// The unknown word of an error; `None` for other errors.
pub fn mistake(error: &clap::Error) -> Option<Mistake> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            word(error, ContextKind::InvalidSubcommand).map(Mistake::Command)
        }
        ErrorKind::UnknownArgument => {
            let typed = word(error, ContextKind::InvalidArg)?;
            let near = word(error, ContextKind::SuggestedArg);
            Some(Mistake::Option { typed, near })
        }
        _ => None,
    }
}

/// Returns the command's form of the typed option; `None` if there is none.
fn in_another_form(argv: &[OsString], command: &clap::Command, typed: &str) -> Option<String> {
    let name = command.get_name();
    let is_command = |word: &str| super::COMMAND.find_subcommand(word).is_some();
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
        "--duration" if has("time") => Some("use --time".to_owned()),
        "--out" | "--output" if has("html") => Some("use --html FILE".to_owned()),
        "--out" | "--output" if has("trace") => Some("use --trace FILE".to_owned()),
        "--output" if has("out") => Some("use --out".to_owned()),
        "--dir" if positional.is_some_and(names_directory) => Some(format!(
            "the directory comes without --dir: rbench {name} DIR"
        )),
        word if positional.is_some_and(clap::Arg::is_last_set)
            && (word.starts_with("--") || !word.starts_with('-')) =>
        {
            of_the_workload(argv, command, word)
        }
        word if word.starts_with("--") => None,
        // `-bs` is read as `-b -s`.
        letter if letter.starts_with('-') => {
            let words = argv.iter().filter_map(|word| word.to_str());
            let mut longs = words.filter_map(|word| word.strip_prefix(letter).map(|_| &word[1..]));
            let long = longs.find(|long| has(long))?;
            Some(format!("a long option has two dashes: --{long}"))
        }
        word if has("dir") && is_command(word) => {
            Some(format!("{name} and {word} are commands: run one at a time"))
        }
        word if has("dir") => {
            let words: Vec<&str> = argv.iter().filter_map(|word| word.to_str()).collect();
            let given = |word: &&str| *word == "--dir" || word.starts_with("--dir=");
            match words.windows(3).find(|three| three[2] == word) {
                // A value and its unit.
                Some(&[option, number, _])
                    if option.starts_with("--")
                        && number.bytes().all(|b| b.is_ascii_digit())
                        && word.len() <= 3 =>
                {
                    Some(format!(
                        "a unit follows its number without a space: {option} {number}{word}"
                    ))
                }
                _ if words.iter().any(given) => None,
                _ => Some(format!("a directory is given with --dir {word}")),
            }
        }
        _ => None,
    }
}

/// The place of a workload's name, option or directory in a command whose workload follows `--`.
fn of_the_workload(argv: &[OsString], command: &clap::Command, typed: &str) -> Option<String> {
    let name = command.get_name();
    let all = &super::COMMAND;
    let is_knee = name == "knee";
    let workloads = if is_knee {
        knee::WORKLOADS
    } else {
        series::WORKLOADS
    };
    if all.find_subcommand(typed).is_some() {
        let takes = workloads
            .split([',', ' '])
            .any(|workload| workload == typed);
        return Some(match takes {
            true => format!("the workload follows --: rbench {name} … -- {typed} …"),
            false => format!("{name} takes the workloads {workloads}, after --"),
        });
    }
    let words: Vec<&str> = argv.iter().filter_map(|word| word.to_str()).collect();
    let is_number = |value: &str| value.starts_with(|c: char| c.is_ascii_digit());
    let (option, value) = match typed.strip_prefix("--") {
        Some("rate" | "steadystate" | "ss") if is_knee => {
            return Some("knee sets the rate and the time of each step".to_owned());
        }
        Some(option) => (option, value_of(&words, typed)),
        None => ("dir", Some(typed)),
    };
    let named = words
        .iter()
        .copied()
        .filter(|word| WORKLOADS.contains(word));
    let (workload, arg) = named.chain(WORKLOADS).find_map(|workload| {
        let mut args = all.find_subcommand(workload)?.get_arguments();
        let arg = args.find(|arg| arg.get_long() == Some(option))?;
        Some((workload, arg))
    })?;
    let value = match value {
        _ if !arg.get_action().takes_values() => String::new(),
        // Other lists are one value, such as that of --phases.
        Some(values) if !is_knee && values.contains(',') && values.split(',').all(is_number) => {
            return Some(format!(
                "values to sweep over are given with --over {option}={values}"
            ));
        }
        Some(value) => format!(" {}", shell_word(value)),
        None => format!(" {}", arg.get_value_names().map_or("…", |names| &names[0])),
    };
    Some(format!(
        "--{option} is an option of the workload, which follows --: rbench {name} … -- {workload} --{option}{value}"
    ))
}

/// The value of an option on a command line.
fn value_of<'w>(words: &[&'w str], option: &str) -> Option<&'w str> {
    let attached = |word: &&'w str| word.strip_prefix(option)?.strip_prefix('=');
    let separate = || {
        let at = words.iter().position(|word| *word == option)?;
        words
            .get(at + 1)
            .copied()
            .filter(|word| !word.starts_with('-'))
    };
    words.iter().find_map(attached).or_else(separate)
}

/// Workloads of `knee` and `sweep` with options of their own.
const WORKLOADS: [&str; 3] = ["meta", "io", "mix"];

/// Returns the error with only this tip: a merely similar name would mislead.
fn with_tip(error: clap::Error, tip: String) -> clap::Error {
    with_tips(error, Some(tip))
}

fn with_tips(mut error: clap::Error, tip: Option<String>) -> clap::Error {
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Suggested);
    without_typed_usage(&mut error);
    if let Some(tip) = tip {
        let tips = vec![StyledStr::from(tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Removes the usage of an unknown option: clap makes it of the options that were typed.
fn without_typed_usage(error: &mut clap::Error) {
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Usage);
    }
}

/// Suggests the option nearest to the typed one, if it is near. clap also suggests names that are
/// merely similar, and none where two letters changed places.
fn with_near_name(
    mut error: clap::Error,
    typed: &str,
    command: Option<&clap::Command>,
) -> clap::Error {
    let longs = command.into_iter().flat_map(clap::Command::get_arguments);
    let longs = longs.filter(|arg| !arg.is_hide_set());
    let near = nearest(typed, longs.filter_map(clap::Arg::get_long));
    let near = near.map(|near| format!("--{near}"));
    let theirs = word(&error, ContextKind::SuggestedArg);
    without_typed_usage(&mut error);
    // clap offers to read a mistyped option as a value.
    error.remove(ContextKind::Suggested);
    if near != theirs {
        error.remove(ContextKind::SuggestedArg);
        if let Some(near) = near {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
        }
    }
    error
}

/// One sentence for errors that clap spreads over several lines; `None` for all others.
pub fn sentence(argv: &[OsString], error: &clap::Error) -> Option<String> {
    if let (ErrorKind::ValueValidation, Some(why)) = (error.kind(), error.source()) {
        // The reason is the whole sentence.
        let why = why.to_string();
        return why.starts_with("--").then(|| refusal(argv, &why));
    }
    let said = match (error.kind(), error.get(ContextKind::InvalidArg)?) {
        (ErrorKind::UnknownArgument, ContextValue::String(typed))
            if follows(argv, "--slo", typed) =>
        {
            "--slo needs FIGURE=LIMIT, for example p99=10ms".to_owned()
        }
        (ErrorKind::MissingRequiredArgument, ContextValue::Strings(missing)) => {
            let command = argv.get(1)?.to_string_lossy();
            let name = |arg: &String| match arg.as_str() {
                "<WORKLOAD>..." => "a workload after --".to_owned(),
                arg => arg.replace(['<', '>'], "").replace("...", ""),
            };
            let missing: Vec<String> = missing.iter().map(name).collect();
            format!("{command} needs {}", missing.join(" and "))
        }
        (ErrorKind::TooManyValues, ContextValue::String(option)) if !option.contains('<') => {
            format!("{option} takes no value")
        }
        _ => return None,
    };
    Some(refusal(argv, &said))
}

/// Returns true if `option`, a value without `=` and `typed` follow each other.
fn follows(argv: &[OsString], option: &str, typed: &str) -> bool {
    let words: Vec<&str> = argv.iter().filter_map(|word| word.to_str()).collect();
    let mut threes = words.windows(3);
    threes.any(|three| three[0] == option && !three[1].contains('=') && three[2] == typed)
}

fn refusal(argv: &[OsString], said: &str) -> String {
    let help = match argv.get(1) {
        Some(command) => format!("rbench {} --help", command.to_string_lossy()),
        None => "rbench --help".to_owned(),
    };
    format!("error: {said}\n\nFor more information, try '{help}'.\n")
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
        each! { check:
            "rbench io -bs 4k" => "tip: a long option has two dashes: --bs" => "Usage: -b";
            "rbench io meta" => "tip: io and meta are commands: run one at a time" => "--dir meta";
            "rbench io data" => "tip: a directory is given with --dir data" => "commands";
            "rbench io --block-size 4k" => "tip: use --bs" => "--file-size";
            "rbench io --dir m1 --json" => "tip: use --format json" => "Usage";
            "rbench io --duration 5" => "tip: use --time" => "fio's";
            "rbench report run.json --out p.html" => "tip: use --html FILE" => "as a value";
            "rbench knee --objective p99=1ms -- io" => "argument '--objective'" => "as a value";
            "rbench Cargo.toml" => "this is a file: rbench show Cargo.toml" => "similar";
            "rbench io --thread 4" => "a similar argument exists: '--threads'" => "fio's";
            "rbench io --zone 4" => "unexpected argument '--zone'" => "--on-error";
            "rbench " => "the name of the directory is empty" => "rbench ./";
            "rbench help knee2" => "a similar command exists: 'knee'" => "rbench ./";
            "rbench nosuch" => "unrecognized subcommand" => "tip:";
            "rbench meta --dri m1" => "a similar argument exists: '--dir'" => "--drop";
            "rbench io --dir m1 --bs 4 k" =>
                "tip: a unit follows its number without a space: --bs 4k" => "--dir k";
            "rbench knee --dir m1" => "follows --: rbench knee … -- meta --dir m1\n" => "'-- --dir'";
            "rbench sweep --over bs=4k,8k --direct io --dir m1" =>
                "follows --: rbench sweep … -- io --direct\n" => "-- --direct";
            "rbench sweep --over n=1,2 --bs=4k -- io" => "sweep … -- io --bs 4k\n" => "-- --bs";
            "rbench sweep --threads 1,2 -- io" => "given with --over threads=1,2\n" => "-- --threads";
            "rbench sweep -over bs=4k -- io" => "a long option has two dashes: --over" => "workload";
            "rbench sweep --over n=1,2 mix" => "rbench sweep … -- mix …\n" => "takes";
            "rbench sweep --over n=1,2 mdtest" => "rbench sweep … -- mdtest …\n" => "--dir";
            "rbench knee --slo p99=1ms fio" => "rbench knee … -- fio …\n" => "--dir";
            "rbench knee --slo p99=1ms /mnt/fs" => "knee … -- meta --dir /mnt/fs\n" => "-- /mnt/fs";
            "rbench sweep --over n=1,2 --rw read,write -- io" => "io --rw read,write\n" => "over rw";
            "rbench sweep --over n=1,2 compare" => "takes the workloads io, meta, mix, ops, mdtest or fio" => "-- compare";
            "rbench knee --slo p99=1ms ops" => "takes the workloads io, meta, mix or fio" => "-- ops";
            "rbench knee --slo p99=1ms --dir /m* -- io" => "-- io --dir '/m*'\n" => "-- --dir";
            "rbench knee --rate 100 -- io" => "tip: knee sets the rate and the time of each step" => "-- --rate";
            "rbench io --dir m1 data" => "unexpected argument 'data'" => "tip:";
        }
    }

    fn check_sentence(line: &str, expected: &str) {
        let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Args::read(&argv).map(|_| ()).expect_err(line);
        let said = sentence(&argv, &error).unwrap_or_default();
        assert!(said.starts_with(expected), "{line}: {said}");
    }

    #[test]
    fn a_missing_option_and_a_value_too_many_take_one_sentence() {
        each! { check_sentence:
            "rbench report run.json" => "error: report needs --html FILE\n";
            "rbench verify" => "error: verify needs FILE\n";
            "rbench sweep -- meta" => "error: sweep needs --over KEY=V1,V2,…\n";
            "rbench sweep --over bs=4k" => "error: sweep needs a workload after --\n";
            "rbench io --direct=1" => "error: --direct takes no value\n";
            "rbench knee --slo p99=10 -- meta" =>
                "error: --slo p99=10 has no unit: write 10ms or 10s\n";
            "rbench knee --slo p99 10ms -- meta" =>
                "error: --slo needs FIGURE=LIMIT, for example p99=10ms\n";
        }
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
