//! The help texts of `rbench fio`, generated from the table of options.

use std::fmt::Write as _;

use clap::Arg;
use rbench_plan::spec::fio::Settings;

use super::Line;
use super::table::{self, Does, GROUPS, Opt, Takes};
use crate::definition::{self, Listed, with_value};
use rbench_plan::given::{Base, Given};

/// Start of the second column.
const COLUMN: usize = 31;

/// Longest line of the help.
const WIDTH: usize = 100;

const HEAD: &str = "\
Run fio's command line and job files, with fio's reports

Usage: rbench fio [OPTIONS] [--name=NAME [OPTIONS]]... [JOBFILE]...

Under mpirun, every rank runs numjobs workers of each job. All ranks start together, and there is
one report.

What differs from fio:
  - mistakes are errors before anything runs: a malformed value (1.5m, 1q) or an option that rbench
    does not support (docs/reference/fio.md lists what to use instead)
  - spaces around the = in a job file are ignored, and options before the first --name apply to
    all job files
  - the exit code is 1 if any operation failed
  - notes go to standard error; files are laid out with large writes, in parallel

Options start with one dash or two, take =VALUE or VALUE as the next word, and may be shortened to
any unique prefix. Sizes: k, m, g, t, p are powers of 1024; kib, mib, ... are powers of 1000 (see
kb_base). Times: ns, us, ms, s, m, h, d; a bare number is in the unit given in parentheses.
";

/// The text of `rbench fio --help`.
pub fn help() -> String {
    definition::help(HEAD, GROUPS, COLUMN)
}

impl Listed for Opt {
    fn arg(&self, id: String) -> Arg {
        let value = match self.takes {
            Takes::Nothing => "",
            Takes::Switch => "0|1",
            Takes::Optional(name) | Takes::Value(name) | Takes::ValueOrJob(name) => name,
        };
        let optional = !matches!(self.takes, Takes::Value(_) | Takes::ValueOrJob(_));
        let arg = Arg::new(id).long(self.name).help(self.help);
        with_value(
            arg.visible_aliases(self.aliases.iter().copied()),
            value,
            optional,
        )
    }

    /// `  --bs=SIZE[,SIZE]`, `  --time_based[=0|1]`, `  -h, --help`
    fn names(&self) -> String {
        let letter = Opt::names(self).find(|name| name.len() == 1);
        let letter = letter.map_or(String::new(), |letter| format!("-{letter}, "));
        let value = match self.takes {
            Takes::Nothing => String::new(),
            Takes::Switch => "[=0|1]".to_owned(),
            Takes::Optional(name) => format!("[={name}]"),
            Takes::Value(name) | Takes::ValueOrJob(name) => format!("={name}"),
        };
        format!("  {letter}--{}{value}", self.name)
    }

    /// With ` [default: 4k]`, on a line of its own where there is no room for it.
    fn text(&self) -> String {
        let default = match self.default {
            "" => return self.help.to_owned(),
            default => format!("[default: {default}]"),
        };
        if COLUMN + self.help.len() + 1 + default.len() <= WIDTH {
            format!("{} {default}", self.help)
        } else {
            format!("{}\n{:2$}{default}", self.help, "", COLUMN)
        }
    }
}

/// The text of `rbench fio --cmdhelp=OPTION`.
pub fn command(name: &str) -> Result<String, String> {
    if name.is_empty() || name == "all" {
        let all = table::options().filter(|option| option.in_files());
        return Ok(list(all));
    }
    if let Some(option) = table::exact(name) {
        return Ok(describe(option));
    }
    Err(match (table::refusal(name), table::near(name)) {
        (Some(refused), _) => format!("it {}", refused.sentence()),
        (None, Some(near)) => format!("unknown option; did you mean {near}?"),
        (None, None) => "unknown option".to_owned(),
    })
}

/// Describes an option in the form that fio prints.
fn describe(option: &Opt) -> String {
    let mut text = format!("{:>20}: {}\n", option.name, option.help);
    let mut row = |title: &str, what: &str| {
        let _ = writeln!(text, "{title:>20}: {what}");
    };
    let aliases = option.aliases.join(", ");
    if !aliases.is_empty() {
        row("alias", &aliases);
    }
    row("type", &kind(option));
    row(
        "default",
        match option.default {
            "" => "no default",
            default => default,
        },
    );
    let accepted = valid(option);
    if let Some((least, most)) = accepted.range {
        row("range", &format!("min={least}, max={most}"));
    }
    for (index, word) in accepted.words.iter().enumerate() {
        row(if index == 0 { "valid values" } else { "" }, word);
    }
    text
}

/// The type of its value in fio's words; the form where fio says only "string".
fn kind(option: &Opt) -> String {
    let of_value = |value: &str| match value {
        "0|1" => "boolean value (opt=1)".to_owned(),
        "N" | "PERCENT" => "integer value (opt=100)".to_owned(),
        "SIZE" => "integer value with k/m/g postfix (opt=4k)".to_owned(),
        "TIME" => "string with time postfix (opt=10s)".to_owned(),
        "PERCENT:..." => "list of floating point values separated by ':' (opt=5.9:7.8)".to_owned(),
        form => format!("string ({form})"),
    };
    match option.takes {
        Takes::Nothing => "no argument (opt)".to_owned(),
        Takes::Switch => "empty or boolean value ([0|1])".to_owned(),
        Takes::Optional(value) => format!("empty or {}", of_value(value)),
        Takes::Value(value) | Takes::ValueOrJob(value) => of_value(value),
    }
}

/// The values that an option accepts.
#[derive(Default)]
struct Valid {
    /// Smallest and largest accepted number.
    range: Option<(u64, u64)>,
    /// Accepted words.
    words: Vec<String>,
}

/// Returns the values that an option accepts. It asks the option's own reader, so that help and
/// reader agree.
fn valid(option: &Opt) -> Valid {
    let (takes, does) = (option.takes, option.does);
    let reads = |text: &str| -> Result<(), String> {
        match does {
            Does::Job(set) => set(&mut Settings::default(), Given::alone(text)),
            Does::Base => Base::read(text).map(drop),
            Does::Line(set) => set(&mut Line::default(), Given::alone(text)),
            Does::Name | Does::Text(_) => Ok(()),
        }
    };
    match takes {
        Takes::Value("0|1") => Valid {
            range: Some((0, 1)),
            ..Valid::default()
        },
        Takes::Value("N" | "SIZE" | "PERCENT") => Valid {
            range: range(|number| reads(&number.to_string()).is_ok()),
            ..Valid::default()
        },
        Takes::Value(_) if option.name == "ioengine" => Valid {
            words: ENGINES.map(str::to_owned).to_vec(),
            ..Valid::default()
        },
        Takes::Value(_) => {
            const MARK: &str = " is not one of ";
            // No option has such a word.
            let why = reads("\u{1}").err().unwrap_or_default();
            let list = why.split_once(MARK).map(|(_, list)| list);
            let words = list.iter().flat_map(|list| list.split(", "));
            Valid {
                words: words.map(str::to_owned).collect(),
                ..Valid::default()
            }
        }
        Takes::Nothing | Takes::Switch | Takes::Optional(_) | Takes::ValueOrJob(_) => {
            Valid::default()
        }
    }
}

/// Returns the smallest and largest accepted number; all between them are accepted.
fn range(accepts: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
    let known = [0, 1, 2, 100, 512, 1 << 12, 1 << 16].into_iter();
    let inside = known.into_iter().find(|number| accepts(*number))?;
    let end = |mut good: u64, mut bad: u64| {
        if accepts(bad) {
            return bad;
        }
        while good.abs_diff(bad) > 1 {
            let middle = good / 2 + bad / 2 + (good % 2 + bad % 2) / 2;
            match accepts(middle) {
                true => good = middle,
                false => bad = middle,
            }
        }
        good
    };
    Some((end(inside, 0), end(inside, u64::MAX)))
}

/// All engines, in the form of `ioengine`.
#[rustfmt::skip]
const ENGINES: [&str; 19] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap", "splice",
    "falloc", "ftruncate", "filecreate", "filestat", "filedelete", "dircreate", "dirstat",
    "dirdelete", "null",
];

/// The text of `rbench fio --enghelp`, `--enghelp=ENGINE` and `--enghelp=ENGINE,OPTION`.
pub fn engine(what: &str) -> Result<String, String> {
    let engines = ENGINES;
    let (name, option) = match what.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (what, None),
    };
    if name.is_empty() {
        return Ok(engines
            .iter()
            .fold("Available IO engines:\n".to_owned(), |text, name| {
                text + "\t" + name + "\n"
            }));
    }
    if !engines.contains(&name) {
        return Err(format!(
            "unknown engine; expected one of {}",
            engines.join(", ")
        ));
    }
    let own: Vec<&Opt> = table::options()
        .filter(|option| option.engines.contains(&name))
        .collect();
    match option {
        None if own.is_empty() => Ok(format!("IO engine {name} has no options\n")),
        None => Ok(list(own.into_iter())),
        Some(wanted) => match own.iter().find(|own| own.names().any(|n| n == wanted)) {
            Some(option) => Ok(describe(option)),
            None => Err(format!("the engine {name} has no option {wanted}")),
        },
    }
}

/// Lists the options, one a line.
fn list<'o>(options: impl Iterator<Item = &'o Opt>) -> String {
    options.fold(String::new(), |mut text, option| {
        let _ = writeln!(text, "{:26}: {}", option.name, option.help);
        text
    })
}

/// The tables of docs/reference/fio.md: all supported and all refused options.
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
                Takes::Value(name) | Takes::ValueOrJob(name) => name.replace('|', "\\|"),
                Takes::Switch => "\\[0\\|1\\]".to_owned(),
                Takes::Optional(name) => format!("\\[{name}\\]"),
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
    for refused in table::refused_options() {
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
