//! The help texts of `rbench fio`, made from the table of options.

use std::fmt::Write as _;

use super::table::{self, GROUPS, Opt, REFUSED, Takes};

/// Where the second column begins; the help of an option that reaches into it
/// is on the next line.
const COLUMN: usize = 31;

/// Longest line of the help.
const WIDTH: usize = 100;

const HEAD: &str = "\
fio's command line, job files and reports

Usage: rbench fio [OPTIONS] [--name=NAME [OPTIONS]]... [JOBFILE]...

Under mpirun every rank runs numjobs workers of each job. All start together, and there is one
report.

What differs from fio:
  - mistakes are errors before anything runs: a malformed value (1.5m, 1q), an option that rbench
    does not support (docs/fio.md says what to use instead)
  - spaces around the = in a job file do not matter, and options before the first --name apply to
    all job files
  - the exit code is 1 if any operation failed, however many did
  - notes go to standard error; files are laid out with large writes, in parallel

Options start with one dash or two, take =VALUE or VALUE as the next word, and may be shortened to
any unique prefix. Sizes: k, m, g, t, p are powers of 1024; ki, mi, ... are powers of 1000 (see
kb_base). Times: ns, us, ms, s, m, h, d; a bare number is in the unit given in parentheses.
";

/// The text of `rbench fio --help`.
pub fn help() -> String {
    let mut text = HEAD.to_owned();
    for group in GROUPS {
        let _ = writeln!(text, "\n{}:", group.title);
        for option in group.options {
            let names = format!("  {}", names(option));
            if names.len() + 2 <= COLUMN {
                let _ = write!(text, "{names:COLUMN$}{}", option.help);
            } else {
                let _ = write!(text, "{names}\n{:COLUMN$}{}", "", option.help);
            }
            text.push_str(&default(option));
            text.push('\n');
        }
    }
    text
}

/// ` [default: 4k]`, on a line of its own where there is no room for it.
fn default(option: &Opt) -> String {
    let default = match option.default {
        "" => return String::new(),
        default => format!("[default: {default}]"),
    };
    if COLUMN + option.help.len() + 1 + default.len() <= WIDTH {
        format!(" {default}")
    } else {
        format!("\n{:1$}{default}", "", COLUMN)
    }
}

/// `--bs=SIZE[,SIZE]`, `--time_based[=0|1]`, `-h, --help`
fn names(option: &Opt) -> String {
    let letter = option.names().find(|name| name.len() == 1);
    let letter = letter.map_or(String::new(), |letter| format!("-{letter}, "));
    let value = match option.takes {
        Takes::Nothing => String::new(),
        Takes::Switch => "[=0|1]".to_owned(),
        Takes::Value(name) => format!("={name}"),
    };
    format!("{letter}--{}{value}", option.name)
}

/// The text of `rbench fio --cmdhelp=OPTION`.
pub fn command(name: &str) -> Result<String, String> {
    if name == "all" {
        let all = table::options().filter(|option| option.in_files());
        return Ok(all.fold(String::new(), |mut text, option| {
            let _ = writeln!(text, "{:26}: {}", option.name, option.help);
            text
        }));
    }
    if let Some(option) = table::exact(name) {
        return Ok(describe(option));
    }
    Err(match (table::refusal(name), table::near(name)) {
        (Some(refused), _) => format!("it {}", refused.sentence()),
        (None, Some(near)) => format!("there is no such option; did you mean {near}?"),
        (None, None) => "there is no such option".to_owned(),
    })
}

fn describe(option: &Opt) -> String {
    let mut text = format!("{:>20}: {}\n", option.name, option.help);
    let value = match option.takes {
        Takes::Nothing => "none",
        Takes::Switch => "none, or 0 or 1",
        Takes::Value(name) => name,
    };
    let aliases = option.aliases.join(", ");
    for (title, what) in [
        ("alias", aliases.as_str()),
        ("value", value),
        ("default", option.default),
    ] {
        if !what.is_empty() {
            let _ = writeln!(text, "{title:>20}: {what}");
        }
    }
    text
}

/// The tables of docs/fio.md: every option, and every one that is refused.
pub fn tables() -> String {
    let mut text = String::new();
    for group in GROUPS {
        let _ = writeln!(
            text,
            "\n### {}\n\n| option | value | default | |\n|---|---|---|---|",
            group.title
        );
        for option in group.options {
            let value = match option.takes {
                Takes::Value(name) => name.replace('|', "\\|"),
                Takes::Switch => "\\[0\\|1\\]".to_owned(),
                Takes::Nothing => String::new(),
            };
            let names: Vec<String> = option.names().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(
                text,
                "| {} | {value} | {} | {} |",
                names.join(", "),
                option.default,
                option.help
            );
        }
    }
    let _ = writeln!(
        text,
        "\n### Refused\n\n| option | why it is refused | what to use instead |\n|---|---|---|"
    );
    for refused in REFUSED {
        let names: Vec<String> = refused.each().map(|name| format!("`{name}`")).collect();
        let instead = match refused.instead {
            "" => "–",
            instead => instead,
        };
        let _ = writeln!(
            text,
            "| {} | {} | {instead} |",
            names.join(" "),
            refused.why
        );
    }
    text
}
