//! Tests that a mount that stopped answering is reported once, with all its failures.

use std::collections::BTreeMap;

use rbench_core::{Failure, FailureKind, OpKind};
use rbench_report::schema::{DeadMountResult, DeadMountRow};
use rbench_report::view::View;
use rbench_report::{Document, RunResult, finish, json, page, text};

use crate::fixtures::{Made, fail, meta_spec, no_space, run};

/// Two hosts and two phases with failures on the second host. In the first phase, `full` operations
/// also failed for lack of space.
fn result(full: u64) -> RunResult {
    let mut phases = Vec::new();
    for (name, label, lost) in [("create", "Creation", 7), ("stat", "Stat", 5)] {
        let mut phase = Made::on(2, 2, 500, 0, 100_000).phase(name, label, OpKind::Create);
        // ENOTCONN
        let gone = Failure::new(OpKind::Create, "0/f", FailureKind::Errno(107));
        fail(&mut phase, 1, lost, gone);
        if full > 0 && name == "create" {
            fail(&mut phase, 0, full, no_space(OpKind::Create, "0/g"));
        }
        phase.first_failed = Some("client2".to_owned());
        phases.push(phase);
    }
    let row = |name: &str, label: &str, count| DeadMountRow {
        iteration: 0,
        name: name.to_owned(),
        label: label.to_owned(),
        errors: BTreeMap::from([("ENOTCONN".to_owned(), count)]),
    };
    let mut result = run(2, 2, meta_spec(), phases);
    result.dead_mounts.push(DeadMountResult {
        host: "client2".to_owned(),
        mount: "/mnt/fs".to_owned(),
        answer: "ENOTCONN".to_owned(),
        seen: "2025-01-02T03:14:16.000Z".to_owned(),
        phase: "Creation".to_owned(),
        after_s: Some(1.25),
        op: "create".to_owned(),
        path: "0/f".to_owned(),
        error: "ECONNABORTED".to_owned(),
        failed: 12,
        rows: vec![row("create", "Creation", 7), row("stat", "Stat", 5)],
    });
    finish(&mut result);
    result
}

fn of<'a>(result: &'a RunResult, code: &str) -> Vec<&'a str> {
    let all = result.warnings.iter().filter(|w| w.code == code);
    all.map(|w| w.message.as_str()).collect()
}

#[test]
fn all_that_failed_there_is_one_warning() {
    let result = result(0);
    let expect = "The mount /mnt/fs on client2 no longer answered (ENOTCONN), 1.25 s into Creation, first seen by \
                  create 0/f (ECONNABORTED); 12 operations failed there: Creation (7), Stat (5).";
    assert_eq!(of(&result, "dead-mount"), [expect]);
    for follows in ["errors", "first-failed", "straggler", "uneven-hosts"] {
        assert_eq!(of(&result, follows), Vec::<&str>::new(), "{follows}");
    }
    let report = text::render(&result, View::default());
    assert!(!report.contains("ERRORS"), "{report}");
    assert_eq!(report.matches("no longer answered").count(), 1, "{report}");
    assert_eq!(text::failures(&result), Vec::<String>::new());
}

#[test]
fn what_failed_for_another_reason_is_told_as_ever() {
    let result = result(3);
    let errors = of(&result, "errors");
    assert!(
        errors.len() == 1 && errors[0].ends_with("Creation (3)."),
        "{errors:?}"
    );
    let failures = text::failures(&result);
    assert!(
        failures.len() == 1 && failures[0].starts_with("Creation: 3 x ENOSPC"),
        "{failures:?}"
    );
}

#[test]
fn it_is_in_the_file_and_on_the_page() {
    let result = result(0);
    let read: RunResult = serde_json::from_str(&json::render(&result)).expect("a result");
    assert_eq!(read.dead_mounts, result.dead_mounts);
    assert_eq!(read.failed_on_dead_mounts(&read.phases[0]), 7);
    let page = page::render(&[Document::Run(Box::new(result))], &[]);
    assert_eq!(page.matches("dead-mount: ").count(), 1);
}

#[test]
fn a_mount_that_died_before_any_operation_has_no_rows() {
    let mut result = result(0);
    result.dead_mounts[0].rows.clear();
    result.dead_mounts[0].after_s = None;
    finish(&mut result);
    let messages = of(&result, "dead-mount");
    assert!(
        messages.len() == 1
            && messages[0].contains("before Creation")
            && messages[0].contains("no row has"),
        "{messages:?}"
    );
}
