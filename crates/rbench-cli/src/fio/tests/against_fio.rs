//! Comparison with fio: rbench accepts and refuses the same command lines.
//!
//! Questions and fio's answers are data, a row each in `against_fio/fio-3.33.tsv`. `living_fio`
//! asks fio 3.33, and records its answers with `RBENCH_RECORD=1`; a new question is a row without
//! an answer. Known differences are on the page of differences and not here. fio reads 1q in part,
//! which we refuse. We accept dsync and expressions in parentheses, like later versions of fio.

use super::*;

mod living_fio;
mod record;

use record::{Kind, Row};

/// The questions of this kind, and fio's answers.
fn rows_of(kind: Kind) -> Vec<Row> {
    record::rows().filter(|row| row.kind == kind).collect()
}

/// Reads the command line of a row, with its standard input as a job file.
fn ours(row: &Row) -> Result<Line, Stop> {
    let files = BTreeMap::from([("-".into(), row.input.as_bytes().to_vec())]);
    line(&words(&row.line), &bare(&files))
}

/// Checks that rbench accepts what fio accepts, among the rows about job files or the others.
fn check_accepted(job_files: bool, at_least: usize) {
    let rows = rows_of(Kind::Accepts).into_iter();
    let rows: Vec<Row> = rows.filter(|row| (row.line == "-") == job_files).collect();
    for row in &rows {
        let ours = ours(row).and_then(Line::invocation);
        assert_eq!(ours.is_ok(), row.answer == "yes", "{row}: {:?}", ours.err());
    }
    let accepted = rows.iter().filter(|row| row.answer == "yes").count();
    let refused = rows.len() - accepted;
    assert!(accepted > at_least && refused > at_least, "{accepted}");
}

#[test]
fn command_lines_that_fio_accepts_or_refuses_so_do_we() {
    check_accepted(false, 50);
}

#[test]
fn job_files_that_fio_accepts_or_refuses_so_do_we() {
    check_accepted(true, 10);
}

/// The line about a job that fio prints before it runs.
#[derive(Debug, PartialEq)]
struct Head {
    name: String,
    rw: String,
    /// Smallest and largest block of reads, then of writes, then of trims.
    blocks: [f64; 6],
}

/// `a: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 64.0KiB-64.0KiB, …`
fn heads_of_fio(text: &str) -> Vec<Head> {
    let between = |line: &str, from: &str, to: &str| -> Option<String> {
        let (_, rest) = line.split_once(from)?;
        Some(rest.split_once(to)?.0.to_owned())
    };
    let bytes = |text: &str| {
        let end = text.find(char::is_alphabetic).expect("a unit");
        let scale = match &text[end..] {
            "B" => 1.0,
            "KiB" => 1024.0,
            "kB" => 1000.0,
            "MiB" => 1024.0 * 1024.0,
            unit => panic!("{unit}"),
        };
        text[..end].parse::<f64>().expect("a number") * scale
    };
    let head = |line: &str| {
        let sizes = ["(R) ", "(W) ", "(T) "].map(|way| between(line, way, ",").expect("sizes"));
        let sizes: Vec<f64> = sizes.iter().flat_map(|s| s.split('-')).map(bytes).collect();
        Head {
            name: line.split_once(": (g=").expect("a name").0.to_owned(),
            rw: between(line, "rw=", ",").expect("a direction"),
            blocks: sizes.try_into().expect("six sizes"),
        }
    };
    let lines = text.lines().filter(|line| line.contains(": (g="));
    lines.map(head).collect()
}

fn our_head(job: &Job) -> Head {
    let settings = &job.settings;
    let rw = settings.rw.unwrap_or(Directions::READ);
    let rw = match (rw.read, rw.write, rw.random) {
        _ if rw.trim => match (rw.write, rw.random) {
            (false, false) => "trim",
            (false, true) => "randtrim",
            (true, false) => "trimwrite",
            (true, true) => "randtrimwrite",
        },
        (true, true, false) => "rw",
        (true, true, true) => "randrw",
        (true, _, false) => "read",
        (true, _, true) => "randread",
        (_, _, false) => "write",
        (_, _, true) => "randwrite",
    };
    let of = |size: Option<u64>, range: Option<(u64, u64)>, split: &Option<Vec<_>>| {
        let parts = split.iter().flatten();
        let parts: Vec<u64> = parts.map(|(size, _): &(u64, Option<u32>)| *size).collect();
        let size = size.unwrap_or(4096);
        let one = range.unwrap_or((size, size));
        let least = parts.iter().min().copied().unwrap_or(one.0);
        [least, parts.iter().max().copied().unwrap_or(one.1)]
    };
    let s = settings;
    let [read, write, trim] = [
        of(s.bs.read, s.bsrange.read, &s.bssplit.read),
        of(s.bs.write, s.bsrange.write, &s.bssplit.write),
        of(s.bs.trim, s.bsrange.trim, &s.bssplit.trim),
    ];
    Head {
        name: job.name.clone(),
        rw: rw.to_owned(),
        blocks: [read[0], read[1], write[0], write[1], trim[0], trim[1]].map(|bytes| bytes as f64),
    }
}

#[test]
fn jobs_of_files_are_those_that_fio_makes_of_them() {
    let rows = rows_of(Kind::Headings);
    assert!(rows.len() > 3, "{rows:?}");
    for row in rows {
        let read = ours(&row).unwrap_or_else(|stop| panic!("{}", stop.text));
        let ours: Vec<Head> = read.jobs.into_iter().map(|j| our_head(&job(j))).collect();
        let fios = heads_of_fio(&row.answer);
        assert!(!fios.is_empty(), "fio runs {row}");
        assert_eq!(ours, fios, "{row}");
    }
}

#[test]
fn a_job_file_is_shown_as_fio_shows_it() {
    let rows = rows_of(Kind::Prints);
    assert!(!rows.is_empty());
    for row in rows {
        let read = ours(&row).and_then(Line::invocation);
        let Ok(Invocation::Run(_, output)) = read else {
            panic!("{read:?}")
        };
        let ours = output.fio.and_then(|view| view.show).expect("a line");
        assert_eq!(ours.trim(), row.answer);
    }
}

/// Checks that each option in this help of fio is known, or refused with a reason.
fn known_or_refused(help: &str, at_least: usize) {
    let rows = rows_of(Kind::Options);
    let row = rows.iter().find(|row| row.line == help).expect("recorded");
    let names: Vec<&str> = row.answer.split_whitespace().collect();
    assert!(names.len() > at_least, "{names:?}");
    for name in names {
        let known = table::exact(name).is_some() || table::refusal(name).is_some();
        assert!(known, "{name}");
    }
}

#[test]
fn every_option_of_fios_command_line_is_known_or_refused() {
    known_or_refused("--help", 25);
}

#[test]
fn every_option_of_fio_is_known_or_refused() {
    known_or_refused("--cmdhelp=all", 200);
}

#[test]
fn every_question_of_the_record_has_an_answer_and_is_asked_once() {
    let mut asked: Vec<(String, String)> = Vec::new();
    for row in record::rows() {
        assert!(
            !row.answer.is_empty(),
            "run living_fio:: with RBENCH_RECORD=1: {row}"
        );
        let question = (row.line, row.input);
        assert!(!asked.contains(&question), "{question:?}");
        asked.push(question);
    }
}
