//! Recognises reports and logs of fio, which a later run may replace. The whole beginning is
//! parsed: single words could be quoted in a note.

use rbench_report::fio::compressed;

use crate::files::KNOWN_BY;

/// Lines that fio writes before a report.
const NOTES: [&str; 3] = ["fio: ", "note: ", "hint: "];

/// Minimum number of fields in a terse line.
const TERSE_FIELDS: usize = 40;

/// Minimum number of fields in a line of version 2.
const FIELDS_OF_2: usize = 161;

/// Minimum number of histogram columns in a log line: the coarsest histogram has 29.
const COLUMNS: usize = 29;

/// Returns true if a file starts like a report of fio, in any format.
pub(super) fn is_report(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let mut lines = text.lines().skip_while(|line| {
        line.trim().is_empty() || NOTES.iter().any(|note| line.starts_with(note)) || is_told(line)
    });
    let Some(first) = lines.next() else {
        return false;
    };
    if first == "{" {
        let second = lines.next().unwrap_or_default().trim_start();
        return second.starts_with("\"fio version\" : \"fio-");
    }
    if is_terse(first) || numbers_in(first, ": (groupid=", ", jobs=", "): err=") {
        return true;
    }
    // Lines of jobs, the version, the number of jobs that start.
    let mut lines = std::iter::once(first).chain(lines);
    let after = lines.find(|line| !(is_job(line) || *line == "..."));
    is_job(first)
        && match after {
            Some(version) if version.starts_with("fio-") => {
                let starting = lines.next().unwrap_or_default();
                starting.starts_with("Starting ")
            }
            // The list of jobs is longer than what was read.
            _ => start.len() as u64 >= KNOWN_BY && lines.next().is_none(),
        }
}

/// Returns true for a line of `--debug`: its kind in 8 columns, and the process number.
fn is_told(line: &str) -> bool {
    let Some((kind, rest)) = line.split_at_checked(8) else {
        return false;
    };
    let process = rest.split_ascii_whitespace().next().unwrap_or_default();
    let kind = kind.trim_end();
    !kind.is_empty()
        && kind.bytes().all(|byte| byte.is_ascii_lowercase())
        && rest.starts_with(' ')
        && process.parse::<u32>().is_ok()
}

/// `NAME: (g=0): rw=write, bs=(R) …, ioengine=psync, iodepth=1`
fn is_job(line: &str) -> bool {
    numbers_in(line, ": (g=", "", "): rw=")
        && [", bs=(R) ", ", (W) ", ", (T) ", ", ioengine=", ", iodepth="]
            .iter()
            .all(|part| line.contains(part))
}

/// Returns true if `line` has in a row: `before`, a number, `between`, a second number (unless
/// `between` is empty), and `after`.
fn numbers_in(line: &str, before: &str, between: &str, after: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    line.match_indices(before).any(|(at, _)| {
        let rest = &line[at + before.len()..];
        let Some((numbers, _)) = rest.split_once(after) else {
            return false;
        };
        match between {
            "" => digits(numbers),
            _ => numbers
                .split_once(between)
                .is_some_and(|(first, second)| digits(first) && digits(second)),
        }
    })
}

/// `3;fio-3.33;NAME;GROUP;ERROR;…`
fn is_terse(line: &str) -> bool {
    let fields: Vec<&str> = line.split(';').collect();
    let versioned = match fields[0] {
        // Lines of version 2 name percentiles, not a version.
        "2" => fields.len() >= FIELDS_OF_2 && fields[16].contains("%="),
        "3" | "4" | "5" => fields
            .get(1)
            .is_some_and(|version| version.starts_with("fio-")),
        _ => false,
    };
    let number = |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit());
    versioned && fields.len() >= TERSE_FIELDS && fields.iter().skip(3).take(8).all(number)
}

/// Returns true if all complete lines at the start of a file are lines of a log.
pub(super) fn is_log(start: &[u8]) -> bool {
    if compressed::is_stored(start) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(start) else {
        return false;
    };
    // The last line may be cut off.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    !whole.is_empty() && whole.lines().all(is_log_line)
}

/// `ms, value, [value,] direction, bs, …`, or `ms, direction, bs, COLUMNS`.
fn is_log_line(line: &str) -> bool {
    let fields: Vec<&str> = line.split(", ").collect();
    let number = |field: &&str| {
        let digits = field.strip_prefix("0x");
        let known = |byte: u8| match digits {
            Some(_) => byte.is_ascii_hexdigit(),
            None => byte.is_ascii_digit(),
        };
        let digits = digits.unwrap_or(field);
        !digits.is_empty() && digits.bytes().all(known)
    };
    let direction = |at: usize| matches!(fields.get(at), Some(&("0" | "1" | "2")));
    let form = match fields.len() {
        4..=8 => direction(2) || direction(3),
        count => count >= COLUMNS + 3 && direction(1),
    };
    form && fields.iter().all(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "a: (g=0): rw=write, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1";

    #[test]
    fn only_what_begins_as_a_report_of_fio_is_written_over() {
        let terse = format!(
            "3;fio-3.33;a;{}0.000000;{}",
            "0;".repeat(8),
            "1%=0;".repeat(60)
        );
        let normal = format!("{JOB}\nfio-3.33\nStarting 1 process\n");
        let several = format!(
            "{JOB}\n...\nb: {}\nfio-3.33\nStarting 3 processes\n",
            &JOB[3..]
        );
        let with_debug = format!("parse    4711  x: rw=write\nio       4711  x: a file\n{normal}");
        let mut second = vec!["0"; FIELDS_OF_2];
        (second[0], second[16]) = ("2", "1.000000%=7");
        let second = second.join(";");
        for ours in [
            &with_debug,
            &second,
            "{\n  \"fio version\" : \"fio-3.33\",\n",
            "note: both iodepth >= 1 and\n{\n  \"fio version\" : \"fio-3.33\"",
            &terse,
            &normal,
            &several,
            "\na: (groupid=0, jobs=1): err= 0: pid=1: Sun",
        ] {
            assert!(is_report(ours.as_bytes()), "{ours}");
        }
        let quoted = format!("Notes of Monday\n\n{normal}");
        let answer = format!("> {JOB}\n> fio-3.33\nYou should use direct=1 here.\n");
        for other in [
            "My thesis",
            "{\"fio\": 1}",
            "a;fio;b",
            "What does (groupid=0, jobs=1) mean in fio's output?\n",
            "fio prints a: (g=0): rw=write and I wonder\n",
            "int a;fio-=1;\n",
            "{\n  \"mine\": 1,\n  \"fio version\" : \"fio-3.33\"\n}",
            "3;fio-3.33;a;0;0;",
            &quoted,
            &answer,
            JOB,
        ] {
            assert!(!is_report(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn only_what_is_a_log_of_fio_in_every_line_is_written_over() {
        let histogram = format!("1000, 0, 4096{}\n", ", 0".repeat(29 * 64));
        for ours in [
            "0, 117, 0, 4096, 0\n1, 2",
            "500, 12, 40, 0, 4096, 1\n",
            "0, 1, 1, 4096, 0x1f\n",
            "12, 100, 2, 0\n",
            &histogram,
        ] {
            assert!(is_log(ours.as_bytes()), "{ours}");
        }
        for other in [
            "time,value\n0, 1\n",
            "3\n",
            "[1, 2]\n",
            "",
            "\n1, 2\n",
            "1,2,0,4\n",
            "2024, 1, 17, 3\n",
            "0, 117, 0, 4096, 0\nhere my own notes begin\n",
            "0, 117, 0, 4096, 0",
        ] {
            assert!(!is_log(other.as_bytes()), "{other}");
        }
    }
}
