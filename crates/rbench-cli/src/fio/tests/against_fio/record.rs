//! Questions to fio and its recorded answers: rows of question, command line, standard input and
//! answer, separated by tabs.

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

/// The kinds by their names in the record.
const KINDS: [(&str, Kind); 4] = [
    ("accepts", Kind::Accepts),
    ("headings", Kind::Headings),
    ("prints", Kind::Prints),
    ("options", Kind::Options),
];

#[derive(Debug)]
pub struct Row {
    pub kind: Kind,
    /// The command line, separated by blanks.
    pub line: String,
    /// Standard input.
    pub input: String,
    /// fio's answer.
    pub answer: String,
}

/// The form of the record.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = KINDS.iter().find(|(_, kind)| *kind == self.kind);
        let (name, _) = named.expect("every kind has a name");
        let [line, input, answer] = [&self.line, &self.input, &self.answer].map(|t| escaped(t));
        write!(f, "{name}\t{line}\t{input}\t{answer}")
    }
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

/// Returns the rows in their order. The first line describes the file.
pub fn rows() -> impl Iterator<Item = Row> {
    let lines = include_str!("fio-3.33.tsv").lines().skip(1);
    lines.map(|text| {
        let fields: Vec<&str> = text.split('\t').collect();
        let [name, texts @ ..] = fields.as_slice() else {
            panic!("{text}")
        };
        let kind = KINDS.iter().find(|(known, _)| known == name);
        let texts: Vec<String> = texts.iter().map(|field| plain(field)).collect();
        let [line, input, answer] = texts.try_into().expect("four fields");
        let row = Row {
            kind: kind.expect("a kind of question").1,
            line,
            input,
            answer,
        };
        assert_eq!(row.to_string(), text);
        row
    })
}
