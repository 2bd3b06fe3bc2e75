//! fio's recorded answers: rows of question, command line, standard input and answer, separated by
//! tabs.

use std::fmt;

pub const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/fio/tests/against_fio/fio-3.33.tsv"
);

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Does fio accept it? `yes` or `no`.
    Accepts,
    /// The line about each job that fio prints before it runs.
    Headings,
    /// All of standard output.
    Prints,
    /// The names of options in a help text.
    Options,
}

#[derive(Debug)]
pub struct Question {
    pub kind: Kind,
    /// The command line, separated by blanks.
    pub line: String,
    /// Standard input.
    pub input: &'static str,
}

impl Question {
    pub fn new(kind: Kind, line: impl Into<String>, input: &'static str) -> Question {
        let line = line.into();
        Question { kind, line, input }
    }
}

/// The form of a question in a row.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Accepts => "accepts",
            Kind::Headings => "headings",
            Kind::Prints => "prints",
            Kind::Options => "options",
        };
        write!(
            f,
            "{kind}\t{}\t{}",
            escaped(&self.line),
            escaped(self.input)
        )
    }
}

/// A row of the record.
pub fn row(question: &Question, answer: &str) -> String {
    format!("{question}\t{}\n", escaped(answer))
}

fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\t', "\\t");
    text.replace('\n', "\\n").replace('\r', "\\r")
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\\' => match rest.next().expect("an escaped character") {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            other => other,
        });
    }
    out
}

/// Returns each row as question and answer. The first line describes the file.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = include_str!("fio-3.33.tsv").lines().skip(1);
    rows.map(|row| row.rsplit_once('\t').expect("an answer"))
}

/// Returns the questions in the order of the record.
pub fn asked() -> Vec<&'static str> {
    rows().map(|(question, _)| question).collect()
}

/// Returns fio's recorded answer.
pub fn recorded(question: &Question) -> String {
    let text = question.to_string();
    let mut found = rows().filter(|(asked, _)| *asked == text);
    let (_, answer) = found
        .next()
        .unwrap_or_else(|| panic!("not recorded, run living_fio:: with RBENCH_RECORD=1: {text}"));
    plain(answer)
}
