//! Checks that fio 3.33 still gives the recorded answers. `RBENCH_RECORD=1` records them again.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::record::{self, Kind, Row};
use super::*;

#[expect(
    clippy::disallowed_methods,
    reason = "the test suite is told by the environment what must be there, and what to write"
)]
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

/// Returns true if fio 3.33 is installed. Otherwise the test is skipped with a message, or fails
/// where skipping is not allowed.
fn fio_is_here() -> bool {
    let out = Command::new("fio").arg("--version").output();
    let here = out.is_ok_and(|out| out.stdout.starts_with(b"fio-3.33"));
    if !here {
        writeln!(std::io::stderr(), "skipped: fio 3.33 is not installed")
            .expect("stderr takes a line");
        let needed = is_set("RBENCH_TEST_NO_SKIP") || is_set("RBENCH_RECORD");
        assert!(!needed, "fio 3.33 is not installed");
    }
    here
}

/// Runs fio and returns its output and whether it succeeded.
fn run(words: &[OsString], input: &str) -> (String, bool) {
    let mut child = Command::new("fio")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("fio starts");
    let mut stdin = child.stdin.take().expect("its standard input");
    // fio may end before it has read everything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let out = child.wait_with_output().expect("fio ends");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    (text, out.status.success())
}

fn answer(row: &Row) -> String {
    let line = words(&row.line);
    match row.kind {
        Kind::Accepts => {
            let line: Vec<OsString> = words("--parse-only").into_iter().chain(line).collect();
            let accepted = run(&line, &row.input).1;
            if accepted { "yes" } else { "no" }.to_owned()
        }
        Kind::Headings => {
            let (text, _) = run(&line, &row.input);
            let heads: Vec<&str> = text.lines().filter(|l| l.contains(": (g=")).collect();
            heads.join("\n")
        }
        Kind::Prints => run(&line, &row.input).0.trim().to_owned(),
        Kind::Options => options(&run(&line, "").0).join(" "),
    }
}

/// Names in the lines `  --name=…` of `--help`, or `name : …` of `--cmdhelp`.
fn options(text: &str) -> Vec<&str> {
    let names = text
        .lines()
        .filter_map(|line| match line.strip_prefix("  --") {
            Some(rest) => rest.split(['=', '\t', ' ']).next(),
            None => Some(line.split_once(':')?.0.trim()).filter(|name| !name.contains(' ')),
        });
    names.filter(|name| !name.is_empty()).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "no file of a measurement, but the record of this test"
)]
fn write(rows: impl Iterator<Item = Row>) {
    let head = "What fio-3.33 answers: asked for, command line, standard input, answer\n";
    let rows: String = rows.map(|row| format!("{row}\n")).collect();
    std::fs::write(record::PATH, format!("{head}{rows}")).expect("the record is written");
}

#[test]
fn fio_answers_as_it_is_recorded() {
    if !fio_is_here() {
        return;
    }
    let rows = record::rows();
    if is_set("RBENCH_RECORD") {
        return write(rows.map(|row| Row {
            answer: answer(&row),
            ..row
        }));
    }
    for row in rows {
        assert_eq!(row.answer, answer(&row), "{row}");
    }
}
