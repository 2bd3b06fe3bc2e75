//! Tests system calls of the program with strace: within a phase, only calls of its operations reach the target, in
//! their order.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use rbench_core::operations::OPS_ROWS;
use rbench_plan::meta::{PhaseInfo, PhaseKind, with_needed};
use rbench_report::RunResult;
use tempfile::TempDir;

use crate::valid;

mod needs_fuse;

/// One call.
struct Call {
    /// Thread that made it.
    thread: u32,
    name: String,
    /// The text from its name to its result; descriptors are shown with their paths.
    text: String,
}

/// The output of a traced run, and its calls on files and descriptors in order of their starts.
struct Traced {
    printed: String,
    calls: Vec<Call>,
}

/// A directory on the disk of the build, if that is on a disk: user attributes have to work there.
fn place() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

/// Runs the program on `target` under strace, in `dir`. Prints a note and returns `None` if strace does not work.
fn traced(dir: &Path, target: &Path, arguments: &str) -> Option<Traced> {
    let probe = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        // Not by a macro: the harness would capture the line of a passing test.
        writeln!(std::io::stderr(), "skipped: strace does not work here")
            .expect("stderr takes a line");
        let may = std::env::var_os("RBENCH_TEST_NO_SKIP").is_none();
        assert!(
            may,
            "skipped where nothing may be: strace does not work here"
        );
        return None;
    }
    let run = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-y",
            "-e",
            "trace=%file,%desc",
            "-e",
            "signal=none",
            "-o",
            "trace",
        ])
        .arg(env!("CARGO_BIN_EXE_rbench"))
        .args(arguments.split_whitespace())
        .arg("--dir")
        .arg(target)
        .current_dir(dir)
        .env_remove("RBENCH_DIR")
        .output()
        .expect("strace starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{arguments}: {said}");
    let log = fs::read_to_string(dir.join("trace")).expect("a trace");
    Some(Traced {
        printed: String::from_utf8_lossy(&run.stdout).into_owned(),
        calls: calls(&log),
    })
}

/// Parses the calls of a log. The result of an interrupted call is on a line of its own.
fn calls(log: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut unfinished: HashMap<u32, usize> = HashMap::new();
    for line in log.lines() {
        let (thread, text) = line.split_once(' ').expect("the number of a thread");
        let thread = thread.parse().expect("a number");
        let text = text.trim_start();
        if let Some((_, end)) = text.split_once(" resumed>") {
            let start = unfinished.remove(&thread).expect("it started");
            calls[start].text.push_str(end);
            continue;
        }
        let Some((name, _)) = text.split_once('(') else {
            continue;
        };
        if text.ends_with("<unfinished ...>") {
            unfinished.insert(thread, calls.len());
        }
        let text = text.trim_end_matches("<unfinished ...>").trim_end();
        calls.push(Call {
            thread,
            name: name.to_owned(),
            text: text.to_owned(),
        });
    }
    calls
}

/// Phases whose workers make other calls than the timed ones in the table: calls for each item, and calls after the
/// last item. `9*a,b` means `a` and `b`, nine times.
const OTHERS: &[(&str, &str, &str)] = &[
    // Untimed, back to its own name.
    ("dir-rename", "renameat", "renameat"),
    ("file-rename", "renameat", "renameat"),
    ("dir-fill-10", "10*mknodat", ""),
    ("dir-empty-10", "10*unlinkat", ""),
    ("dir-fill-1k", "1000*mknodat", ""),
    ("dir-empty-1k", "1000*unlinkat", ""),
    ("dir-deepen", "4*mkdirat", ""),
    ("dir-flatten", "4*unlinkat", ""),
    ("file-create", "openat close", ""),
];

/// Calls that are repeated until they return nothing.
const AGAIN: [&str; 2] = ["getdents64", "copy_file_range"];

/// A worker of `rbench ops`.
struct Worker {
    /// The phase.
    phase: &'static PhaseInfo,
    /// Its calls for each item.
    each: Vec<&'static str>,
    /// Its calls after the last item.
    last: Vec<&'static str>,
}

/// The workers of `rbench ops`, in their order.
fn workers() -> Vec<Worker> {
    let asked: Vec<PhaseKind> = OPS_ROWS.iter().filter_map(|row| row.phase).collect();
    let of_items = with_needed(&asked).into_iter();
    let of_items = of_items.filter(|phase| phase.items.is_some());
    let worker = |phase: &'static PhaseInfo| {
        let other = OTHERS.iter().find(|(name, ..)| *name == phase.name);
        if let Some((_, each, last)) = other {
            let (each, last) = (written_out(each), written_out(last));
            return Worker { phase, each, last };
        }
        let opened = phase.opens.is_some();
        let timed = phase.timed.iter().flat_map(|call| call.names().split(' '));
        let timed = timed.flat_map(|name| vec![name; 1 + usize::from(AGAIN.contains(&name))]);
        let open = opened.then_some("openat").into_iter();
        let close = opened.then_some("close");
        let each = open.chain(timed).chain(close).collect();
        Worker {
            phase,
            each,
            last: Vec::new(),
        }
    };
    of_items.map(worker).collect()
}

/// Expands calls in the syntax of [`OTHERS`].
fn written_out(calls: &str) -> Vec<&str> {
    let words = calls.split_whitespace().flat_map(|word| {
        let (times, calls) = word.split_once('*').unwrap_or(("1", word));
        let calls: Vec<&str> = calls.split(',').collect();
        calls.repeat(times.parse().expect("a number"))
    });
    words.collect()
}

/// Returns true for a call on an item: the tree's own directory is created and removed outside the rows.
fn is_on_an_item(call: &Call) -> bool {
    let numbered = |kind: &str| {
        let mut places = call
            .text
            .match_indices(kind)
            .map(|(at, _)| &call.text[at + kind.len()..]);
        places.any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    numbered("dir.0.") || numbered("file.0.")
}

#[test]
fn each_worker_of_the_per_operation_table_makes_the_calls_of_its_row_and_no_others() {
    const ITEMS: usize = 2;
    let place = place();
    let target = place.path().join("t");
    fs::create_dir(&target).expect("new");
    let arguments = format!("ops --ops {ITEMS} --quiet --no-round-trip --out out.json");
    let Some(run) = traced(place.path(), &target, &arguments) else {
        return;
    };
    let main = run.calls.first().expect("calls").thread;
    let mut workers: Vec<(u32, Vec<&str>)> = Vec::new();
    for call in run
        .calls
        .iter()
        .filter(|call| call.thread != main && is_on_an_item(call))
    {
        match workers
            .iter_mut()
            .find(|(thread, _)| *thread == call.thread)
        {
            Some((_, calls)) => calls.push(&call.name),
            None => workers.push((call.thread, vec![&call.name])),
        }
    }
    let expected = self::workers();
    for (worker, (_, found)) in expected.iter().zip(&workers) {
        let expect = [worker.each.repeat(ITEMS), worker.last.clone()].concat();
        assert_eq!(found, &expect, "{}", worker.phase.name);
    }
    assert_eq!(workers.len(), expected.len());
    check_printed(&run.printed, ITEMS);
    let text = fs::read_to_string(place.path().join("out.json")).expect("a result file");
    valid::check(&text);
    let result: RunResult = serde_json::from_str(&text).expect("a valid result");
    assert!(result.complete);
    for phase in &result.phases {
        let done = (phase.items, phase.error_count());
        assert_eq!(done, (ITEMS as u64, 0), "{}", phase.name);
    }
}

/// The lines of a table, each with the rest of its system calls: where figures are wide, these take several lines.
fn whole_lines(printed: &str) -> Vec<String> {
    let mut lines: Vec<Vec<&str>> = Vec::new();
    for line in printed.lines() {
        let words = line.split_whitespace();
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(above) => {
                let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
                let end = above.iter().position(is_number).unwrap_or(above.len());
                drop(above.splice(end..end, words));
            }
            None => lines.push(words.collect()),
        }
    }
    lines.iter().map(|words| words.join(" ")).collect()
}

/// Checks that the table prints each row with its timed calls.
fn check_printed(printed: &str, items: usize) {
    let lines = whole_lines(printed);
    for row in OPS_ROWS.iter().filter(|row| row.phase.is_some()) {
        let calls = row.calls();
        assert!(!calls.is_empty(), "{}", row.name);
        let expect = format!("{} {calls} {items} ", row.name);
        let found = lines.iter().filter(|line| line.starts_with(&expect));
        assert_eq!(found.count(), 1, "{expect}: {printed}");
    }
    assert!(printed.contains("newchunk: n/a, "), "{printed}");
}
