//! The tests of traced programs on the built-in file system.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::*;

/// Returns true if the call does not reach a file system: it reads a descriptor's path, or closes
/// one opened with O_PATH.
fn asks_nobody(call: &Call, names: &[String]) -> bool {
    let closes = |name: &String| call.text.starts_with(&format!("close({name})"));
    call.text.starts_with("readlink(\"/proc/") || names.iter().any(closes)
}

/// The descriptor that an open with O_PATH returned, in strace's format: `3</path>`.
fn name_only(call: &Call) -> Option<String> {
    let (arguments, result) = call.text.rsplit_once("= ")?;
    let path = arguments.contains("O_PATH") && result.ends_with('>');
    path.then(|| result.to_owned())
}

#[test]
fn within_a_phase_only_its_own_calls_reach_the_mount() {
    let place = place();
    let target = place.path().join("t");
    fs::create_dir(&target).expect("new");
    // Without its counters, which would be read around phases.
    let mut server = Command::new(env!("CARGO_BIN_EXE_rbench"))
        .args("testfs t --watch-parent --stats-file off".split_whitespace())
        .current_dir(place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    let stdout = server.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "ready");
    let arguments = "meta --items 3 --branch 2 --write 1k --quiet";
    let run = traced(place.path(), &target, arguments);
    // It ends when its standard input closes.
    drop(server.stdin.take());
    assert!(server.wait().expect("ends").success());
    let Some(run) = run else {
        return;
    };
    let mount = target.to_str().expect("text");
    let names: Vec<String> = run.calls.iter().filter_map(name_only).collect();
    let reaching = run
        .calls
        .iter()
        .filter(|call| call.text.contains(mount) && !asks_nobody(call, &names));
    let reaching: Vec<&Call> = reaching.collect();
    // From the first call of a phase to the last.
    let in_tree = |call: &&Call| call.text.contains("tree.") && !call.text.contains("ENOENT");
    let first = reaching.iter().position(in_tree).expect("there are phases");
    let last = reaching
        .iter()
        .rposition(in_tree)
        .expect("there are phases");
    let calls: Vec<&str> = reaching[first..=last]
        .iter()
        .map(|call| call.name.as_str())
        .collect();
    let (nodes, items) = (3, 9);
    let expect = [
        vec!["mkdirat"; nodes],
        vec!["mkdirat"; items],
        vec!["newfstatat"; items],
        vec!["renameat"; items],
        ["openat", "getdents64", "getdents64", "close"].repeat(nodes),
        vec!["unlinkat"; items],
        ["openat", "write", "close"].repeat(items),
        vec!["newfstatat"; items],
        ["openat", "read", "close"].repeat(items),
        vec!["renameat"; items],
        vec!["unlinkat"; items],
        vec!["unlinkat"; nodes],
    ]
    .concat();
    assert_eq!(calls, expect);
}
