//! fio 3.33 itself, with numbers that nobody has seen before.

use std::io::{ErrorKind, Write as _};
use std::process::Command;
use std::thread;

use super::*;

/// Whether fio is here. Without it the test says so and does nothing, or fails where nothing may
/// be skipped or something is to be recorded.
fn fio_is_here() -> bool {
    match Command::new("fio").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Not by a macro: the harness would keep the line of a test that passes.
            writeln!(std::io::stderr(), "skipped: fio is not installed")
                .expect("stderr takes a line");
            let needed = ["RBENCH_TEST_NO_SKIP", "RBENCH_RECORD"];
            let needed = needed.iter().any(|name| std::env::var_os(name).is_some());
            assert!(!needed, "fio is not installed");
            false
        }
        done => {
            let version = String::from_utf8(done.expect("fio runs").stdout);
            assert_eq!(version.expect("a version").trim(), "fio-3.33");
            true
        }
    }
}

/// What fio prints in all forms, in a folder of its own.
fn printed(options: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fio = Command::new("fio")
        .arg(FORMS)
        .args(options.split_whitespace())
        .current_dir(&folder)
        .output()
        .expect("fio runs");
    let text = String::from_utf8_lossy(&fio.stdout).into_owned();
    assert!(text.contains("fio-3.33"), "fio {options}: {fio:?}");
    text
}

#[test]
fn what_fio_measures_now_is_what_it_prints() {
    if !fio_is_here() {
        return;
    }
    let record = std::env::var_os("RBENCH_RECORD").is_some();
    // Most runs wait for their time to pass.
    thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || {
                for (name, options) in RUNS.iter().skip(first).step_by(4) {
                    let text = printed(options);
                    compare_run(options, &text);
                    if record {
                        let text = format!("{}{text}", command(options));
                        fs::write(path_of(name), text).expect("the record is written");
                    }
                }
            });
        }
    });
}
