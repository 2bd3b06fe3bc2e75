//! Output of `rbench check`: a report for people, and formats for test runners.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::iter;

use rbench_core::Nanos;
use rbench_core::plain::plain;
use rbench_core::units::{counted, human_count};

use crate::probe::mounted;
use crate::schema::{CheckResult, HostChecksResult, PromiseResult, PromiseVerdict, Surroundings};
use crate::table::{Table, distinct, grouped, left, right, sentence};
use crate::view::View;

mod between;

pub use crate::probe::json;

/// End of a verdict's reason when a promise needs another user.
const OTHERS_SHUT_OUT: &str = "another user cannot reach this directory";

/// The verdicts in table order.
const VERDICTS: [PromiseVerdict; 5] = [
    PromiseVerdict::Holds,
    PromiseVerdict::Broken,
    PromiseVerdict::Unsupported,
    PromiseVerdict::Undecided,
    PromiseVerdict::LeftOut,
];

/// The protocol's word for a known failure, in two parts: a test rejects the word in sources.
const KNOWN: &str = concat!("TO", "DO");

/// The report for people; ends with a newline.
pub fn text(check: &CheckResult, view: View) -> String {
    let mut out = format!("rbench {}: check of {}\n\n", check.version, check.directory);
    let labels: Vec<String> = check.hosts.iter().map(|host| label(check, host)).collect();
    let surroundings = check.hosts.iter().map(|host| &host.surroundings);
    let around = labels.iter().map(String::as_str).zip(surroundings);
    let around = mounted(&around.collect::<Vec<(&str, &Surroundings)>>(), view);
    if !around.is_empty() {
        out.push_str(&around);
        out.push('\n');
    }
    out.push_str(&groups(check, view));
    out.push_str(&between::tables(check, view));
    for verdict in [
        PromiseVerdict::Broken,
        PromiseVerdict::Undecided,
        PromiseVerdict::Unsupported,
    ] {
        details(check, verdict, view, &mut out);
    }
    out.push('\n');
    for remark in remarks(check) {
        out.push_str(&sentence(view, "- ", &remark));
    }
    out
}

/// The group of a promise: its name up to the first dot.
fn group(name: &str) -> &str {
    name.split_once('.').map_or(name, |(group, _)| group)
}

/// Name of a client: its host, and its directory if the host has several.
fn label(check: &CheckResult, host: &HostChecksResult) -> String {
    let same = check.hosts.iter().filter(|other| other.host == host.host);
    match same.count() {
        1 => host.host.clone(),
        _ => format!("{}:{}", host.host, host.directory),
    }
}

/// All tested promises, on each client and between clients.
pub(crate) fn promises(check: &CheckResult) -> impl Iterator<Item = &PromiseResult> + Clone {
    let of_each = check.hosts.iter().flat_map(|host| &host.promises);
    of_each.chain(between_clients(check))
}

fn between_clients(check: &CheckResult) -> impl Iterator<Item = &PromiseResult> + Clone {
    check.between.iter().map(|between| &between.promise)
}

/// A table with one row per group, over all hosts.
fn groups(check: &CheckResult, view: View) -> String {
    let columns = VERDICTS.map(|verdict| right(verdict.name()));
    let mut table = Table::new([left("Group")].into_iter().chain(columns));
    let promises = || promises(check);
    let names = distinct(promises().map(|promise| group(&promise.name)));
    let mut row = |title: &str, name: Option<&str>| {
        let counts = VERDICTS.map(|verdict| {
            let of = |promise: &&PromiseResult| {
                promise.verdict == verdict && name.is_none_or(|name| group(&promise.name) == name)
            };
            promises().filter(of).count().to_string()
        });
        table.row([title.to_owned()].into_iter().chain(counts));
    };
    for name in names {
        row(name, Some(name));
    }
    row("all", None);
    table.render(view)
}

/// Lists the promises with this verdict: meaning and observation, with the hosts if these differ.
fn details(check: &CheckResult, verdict: PromiseVerdict, view: View, out: &mut String) {
    let on_hosts = check.hosts.iter().flat_map(|host| {
        let own = host.promises.iter().filter(|p| p.verdict == verdict);
        own.map(move |promise| {
            (
                (&promise.name, &promise.seen),
                (promise, label(check, host)),
            )
        })
    });
    let on_hosts = grouped(on_hosts).into_iter().map(|(_, same)| {
        let (promises, hosts): (Vec<&PromiseResult>, Vec<String>) = same.into_iter().unzip();
        (promises[0], hosts)
    });
    let mut found: Vec<(&PromiseResult, Vec<String>)> = on_hosts.collect();
    let between = between_clients(check).filter(|promise| promise.verdict == verdict);
    found.extend(between.map(|promise| (promise, Vec::new())));
    if !found.is_empty() {
        let _ = write!(out, "\n{}:\n", verdict.name());
    }
    while !found.is_empty() {
        let (promise, hosts) = found.remove(0);
        let alike = |(other, on): &mut (&PromiseResult, Vec<String>)| {
            verdict != PromiseVerdict::Broken && *on == hosts && for_the_same_reason(promise, other)
        };
        let others: Vec<_> = found.extract_if(.., alike).collect();
        let mut text = match others.is_empty() {
            true => format!("{}: {}", promise.name, promise.says),
            false => {
                let names = others.iter().map(|(other, _)| other.name.as_str());
                let names: Vec<&str> = iter::once(promise.name.as_str()).chain(names).collect();
                names.join(", ")
            }
        };
        if !hosts.is_empty() && hosts.len() < check.hosts.len() {
            let _ = write!(text, " ({})", hosts.join(", "));
        }
        out.push_str(&sentence(view, "  ", &plain(&text)));
        let reason = match others.is_empty() {
            true => evidence(promise),
            // Each promise has a path of its own.
            false => evidence(&PromiseResult {
                path: None,
                ..promise.clone()
            }),
        };
        out.push_str(&sentence(view, "      ", &plain(&reason)));
    }
}

fn for_the_same_reason(a: &PromiseResult, b: &PromiseResult) -> bool {
    let reason = |promise: &PromiseResult| {
        let PromiseResult {
            expected,
            seen,
            call,
            errno,
            allowed,
            ..
        } = promise.clone();
        (expected, seen, call, errno, allowed)
    };
    reason(a) == reason(b)
}

/// The expectation and the observation, as a clause.
fn evidence(promise: &PromiseResult) -> String {
    let mut text = String::new();
    if let Some(call) = promise.call.as_deref().filter(|call| !call.is_empty()) {
        text.push_str(call);
    }
    if let Some(path) = &promise.path {
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}{path}");
    }
    if !text.is_empty() {
        text.push_str(": ");
    }
    match (&promise.expected, &promise.seen) {
        (Some(expected), Some(seen)) => {
            let _ = write!(text, "expected {expected}, seen {seen}");
        }
        (None, Some(seen)) => text.push_str(seen),
        _ => {}
    }
    if let Some(why) = &promise.allowed {
        let _ = write!(text, " (allowed: {why})");
    }
    text
}

fn remarks(check: &CheckResult) -> Vec<String> {
    let all = || promises(check);
    let failing = |verdict| {
        let fail = all().filter(|promise| promise.fails() && promise.verdict == verdict);
        fail.count() as u64
    };
    let broken = failing(PromiseVerdict::Broken);
    let undecided = failing(PromiseVerdict::Undecided);
    let decided = |p: &PromiseResult| p.verdict == PromiseVerdict::Holds || p.allowed.is_some();
    let mut remarks = Vec::new();
    remarks.push(match (check.passed, broken + undecided) {
        (true, _) => "All required promises hold.".to_owned(),
        (false, 0) if !check.complete => "Not everything was tried.".to_owned(),
        (false, 0) if failed_load(check).is_some() => {
            "The concurrent load (--under-load) failed.".to_owned()
        }
        (false, 0) if !all().any(decided) => "No promise was shown to hold.".to_owned(),
        (false, 0) => "The files of the check were not removed.".to_owned(),
        (false, _) => {
            let are = |n| if n == 1 { "is" } else { "are" };
            let promises = |n| format!("{} {}", counted(n, "promise"), are(n));
            match (broken, undecided) {
                (n, 0) => format!("{} broken.", promises(n)),
                (0, n) => format!("{} undecided.", promises(n)),
                (n, m) => format!(
                    "{} broken, {} {} undecided.",
                    promises(n),
                    human_count(m),
                    are(m)
                ),
            }
        }
    });
    if check.clock_error_ns > 0 && !check.between.is_empty() {
        let apart = Nanos(check.clock_error_ns);
        remarks.push(format!(
            "The hosts' clocks are known to within {apart}: a smaller delay does not count as late."
        ));
    }
    if let Some(load) = &check.load {
        let files = load.files;
        remarks.push(match &load.error {
            None => {
                format!(
                    "Meanwhile, clients created {files} files of 16 KiB and removed half of them."
                )
            }
            Some(error) => {
                format!("Meanwhile, clients created {files} files, then failed: {error}.")
            }
        });
    }
    let allowed = all().filter(|promise| promise.allowed.is_some()).count();
    for promise in all().filter(|promise| promise.verdict == PromiseVerdict::Holds) {
        if let Some(seen) = &promise.seen {
            remarks.push(format!("{}: {seen}.", promise.name));
        }
    }
    if let Some(expect) = &check.expect {
        remarks.push(format!(
            "{allowed} known deviations are allowed by {expect}."
        ));
    }
    if check.hosts.iter().any(|host| !host.root) {
        remarks.push(
            "Not run as root: promises that need other users' credentials are left out.".to_owned(),
        );
    }
    let shut_out = |promise: &&PromiseResult| {
        let seen = promise.seen.as_deref().unwrap_or_default();
        promise.verdict == PromiseVerdict::Undecided && seen.ends_with(OTHERS_SHUT_OUT)
    };
    let shut_out = all().filter(shut_out).count();
    if shut_out > 0 {
        remarks.push(format!(
            "NOTE: {shut_out} are undecided because other users cannot reach the directory: mount FUSE with \
             allow_other and let others search the directories above it, or leave out the group owners (--only)."
        ));
    }
    let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
    for promise in all().filter(|promise| promise.verdict == PromiseVerdict::LeftOut) {
        *left_out
            .entry(promise.seen.as_deref().unwrap_or_default())
            .or_default() += 1;
    }
    for (why, count) in left_out {
        remarks.push(format!("{count} left out: {why}."));
    }
    remarks.push(format!(
        "Seed {}: --seed {} repeats the same random choices.",
        check.seed, check.seed
    ));
    remarks
}

/// The error of the load, if it failed.
fn failed_load(check: &CheckResult) -> Option<&str> {
    check.load.as_ref()?.error.as_deref()
}

/// The report in the Test Anything Protocol; ends with a newline.
pub fn tap(check: &CheckResult) -> String {
    let mut out = format!("TAP version 14\n1..{}\n", promises(check).count());
    let mut number = 0;
    let mut case = |promise: &PromiseResult, on: &str| {
        number += 1;
        let ok = if promise.verdict.fails() {
            "not ok"
        } else {
            "ok"
        };
        let _ = write!(out, "{ok} {number} - {}{on}", promise.name);
        let why = promise.seen.as_deref().unwrap_or_default();
        match (&promise.allowed, promise.verdict) {
            (Some(allowed), verdict) if verdict.fails() => {
                let _ = write!(out, " # {KNOWN} {}", one_line(allowed));
            }
            (_, PromiseVerdict::Unsupported | PromiseVerdict::LeftOut) => {
                let _ = write!(out, " # SKIP {}: {}", promise.verdict.name(), one_line(why));
            }
            _ => {}
        }
        out.push('\n');
        if promise.verdict.fails() {
            let _ = writeln!(out, "# {}", one_line(&promise.says));
            let _ = writeln!(out, "# {}", one_line(&evidence(promise)));
        }
    };
    for host in &check.hosts {
        let on = match check.hosts.len() {
            1 => String::new(),
            _ => format!(" on {}", one_line(&label(check, host))),
        };
        host.promises.iter().for_each(|promise| case(promise, &on));
    }
    between_clients(check).for_each(|promise| case(promise, ""));
    if let Some(error) = failed_load(check) {
        let _ = writeln!(out, "Bail out! The load failed: {}", one_line(error));
    }
    if !check.complete {
        out.push_str("Bail out! Not everything was tried.\n");
    }
    out
}

fn one_line(text: &str) -> String {
    plain(text).replace('#', "\\#")
}

/// The report as JUnit XML; ends with a newline.
pub fn junit(check: &CheckResult) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (number, host) in check.hosts.iter().enumerate() {
        let stopped = !check.complete && number == 0;
        let promises: Vec<_> = host.promises.iter().collect();
        suite(check, &label(check, host), &promises, stopped, &mut out);
    }
    if !check.between.is_empty() {
        let promises: Vec<_> = between_clients(check).collect();
        let failed = failed_load(check).is_some();
        suite(check, "between clients", &promises, failed, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

/// Appends a test suite. `broken_off`: the check is incomplete, or its load failed.
fn suite(
    check: &CheckResult,
    host: &str,
    promises: &[&PromiseResult],
    broken_off: bool,
    out: &mut String,
) {
    let count = |wanted: fn(&PromiseResult) -> bool| {
        promises.iter().filter(|promise| wanted(promise)).count()
    };
    let failures = count(|p| p.fails() && p.verdict == PromiseVerdict::Broken);
    // A missing case would go unnoticed, so the stop is a case of its own.
    let stopped = usize::from(broken_off);
    let errors = count(|p| p.fails() && p.verdict == PromiseVerdict::Undecided) + stopped;
    let skipped = count(|p| !p.fails() && p.verdict != PromiseVerdict::Holds);
    let _ = writeln!(
        out,
        "  <testsuite name=\"rbench check {}\" hostname=\"{}\" timestamp=\"{}\" tests=\"{}\" failures=\"{failures}\" \
         errors=\"{errors}\" skipped=\"{skipped}\" time=\"{}\">",
        xml(&check.directory),
        xml(host),
        xml(&check.started),
        promises.len() + stopped,
        seconds(promises.iter().map(|promise| promise.took_ns).sum()),
    );
    for promise in promises {
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
            xml(group(&promise.name)),
            xml(&promise.name),
            seconds(promise.took_ns)
        );
        let message = xml(&format!("{}: {}", promise.says, evidence(promise)));
        let verdict = promise.verdict.name();
        let inner = match promise.verdict {
            PromiseVerdict::Holds => None,
            PromiseVerdict::Broken if promise.fails() => Some(format!(
                "<failure type=\"{verdict}\" message=\"{message}\"/>"
            )),
            PromiseVerdict::Undecided if promise.fails() => {
                Some(format!("<error type=\"{verdict}\" message=\"{message}\"/>"))
            }
            _ => Some(format!("<skipped message=\"{verdict}: {message}\"/>")),
        };
        let _ = match inner {
            None => writeln!(out, "/>"),
            Some(inner) => writeln!(out, ">{inner}</testcase>"),
        };
    }
    if stopped > 0 {
        out.push_str(
            "    <testcase classname=\"check\" name=\"complete\" time=\"0\">\
             <error type=\"undecided\" message=\"not everything was tried\"/></testcase>\n",
        );
    }
    out.push_str("  </testsuite>\n");
}

fn seconds(ns: u64) -> String {
    format!("{:.6}", ns as f64 / 1e9)
}

/// Escapes text for an XML attribute.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.extend(c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CHECK_SCHEMA;

    fn promise(name: &str, verdict: PromiseVerdict, allowed: Option<&str>) -> PromiseResult {
        PromiseResult {
            name: name.to_owned(),
            says: "a <promise>".to_owned(),
            verdict,
            expected: Some("\"success\"".to_owned()),
            seen: Some("EINVAL #1".to_owned()),
            call: Some("openat".to_owned()),
            errno: Some("EINVAL".to_owned()),
            path: Some("/mnt/a\u{1}b".to_owned()),
            allowed: allowed.map(str::to_owned),
            took_ns: 1_500_000,
        }
    }

    fn check_has(out: &str, part: &str) {
        assert!(out.contains(part), "{part}: {out}");
    }

    fn result() -> CheckResult {
        CheckResult {
            schema: CHECK_SCHEMA.to_owned(),
            version: "1".to_owned(),
            directory: "/mnt/fs".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            seed: 7,
            expect: Some("juicefs".to_owned()),
            passed: false,
            complete: true,
            hosts: vec![HostChecksResult {
                host: "one".to_owned(),
                rank: 0,
                directory: "/mnt/fs".to_owned(),
                kernel: "6.1".to_owned(),
                surroundings: Surroundings::default(),
                root: true,
                promises: vec![
                    PromiseResult {
                        seen: Some("7 of 10 operations".to_owned()),
                        ..promise("a.holds", PromiseVerdict::Holds, None)
                    },
                    promise("a.broken", PromiseVerdict::Broken, None),
                    promise("a.known", PromiseVerdict::Broken, Some("documented")),
                    promise("b.none", PromiseVerdict::Unsupported, None),
                    promise("b.open", PromiseVerdict::Undecided, None),
                    promise("b.root", PromiseVerdict::LeftOut, None),
                ],
            }],
            between: Vec::new(),
            clock_error_ns: 0,
            load: None,
        }
    }

    #[test]
    fn lines_of_tap_say_what_fails_and_what_is_known() {
        let out = tap(&result());
        let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with('#')).collect();
        let expect = [
            "TAP version 14",
            "1..6",
            "ok 1 - a.holds",
            "not ok 2 - a.broken",
            &format!("not ok 3 - a.known # {KNOWN} documented"),
            "ok 4 - b.none # SKIP not supported: EINVAL \\#1",
            "not ok 5 - b.open",
            "ok 6 - b.root # SKIP left out: EINVAL \\#1",
        ];
        assert_eq!(lines, expect);
        check_has(&out, "# openat /mnt/a");
    }

    #[test]
    fn junit_counts_and_escapes() {
        let out = junit(&result());
        check_has(
            &out,
            "tests=\"6\" failures=\"1\" errors=\"1\" skipped=\"3\" time=\"0.009000\"",
        );
        let case = "a &lt;promise&gt;: openat /mnt/a\\u{1}b: expected &quot;success&quot;";
        check_has(&out, case);
        assert_eq!(out.matches("<testcase").count(), 6);
        assert_eq!(out.matches("<failure").count(), 1);
        assert_eq!(out.matches("<skipped").count(), 3);
    }

    #[test]
    fn junit_of_a_stopped_check_has_an_error_more() {
        let stopped = CheckResult {
            complete: false,
            ..result()
        };
        let out = junit(&stopped);
        check_has(&out, "tests=\"7\" failures=\"1\" errors=\"2\"");
        check_has(&out, "name=\"complete\"");
        assert_eq!(out.matches("<error").count(), 2);
    }

    /// Like `result`, of two clients; one sees changes late.
    fn several() -> CheckResult {
        use crate::schema::{BetweenResult, PairResult, SeenAfterResult};
        let mut check = result();
        let other = HostChecksResult {
            host: "two".to_owned(),
            promises: Vec::new(),
            ..check.hosts[0].clone()
        };
        check.hosts[0].promises.clear();
        check.hosts.push(other);
        let times = SeenAfterResult::of(vec![0, 0, 3_000_000, 1_000_000_000], 20_000);
        let pair = |from, to, violations| PairResult {
            from,
            to,
            tries: 2,
            violations,
            worse: 0,
            late_ns: 999_980_000,
            times: times.clone(),
        };
        check.between.push(BetweenResult {
            promise: promise("coherence.create.stat", PromiseVerdict::Broken, None),
            tries: 4,
            violations: 2,
            times: times.clone(),
            pairs: vec![pair(0, 1, 2), pair(1, 0, 0)],
        });
        check
    }

    #[test]
    fn what_is_between_clients_is_in_every_form() {
        let check = several();
        let lines = "1..1\nnot ok 1 - coherence.create.stat\n";
        check_has(&tap(&check), lines);
        let suite = "hostname=\"between clients\" timestamp=\"2026-01-01T00:00:00Z\" tests=\"1\" failures=\"1\"";
        check_has(&junit(&check), suite);
        let out = text(&check, View::USUAL);
        let cells = |line: &str| -> Vec<String> {
            let words = line.split_whitespace();
            words.map(str::to_owned).collect()
        };
        let row = |begins: &str| out.lines().find(|line| line.starts_with(begins)).map(cells);
        let all = "coherence.create.stat 4 2 0 ns 0 ns 1.00 s 1.00 s 20.0 us";
        assert_eq!(row("coherence.create.stat"), Some(cells(all)), "{out}");
        let pair = "  one → two 2 2 0 ns 0 ns 1.00 s 1.00 s 20.0 us";
        assert_eq!(row("  one → two"), Some(cells(pair)), "{out}");
    }

    #[test]
    fn a_load_that_failed_passes_nothing() {
        use crate::schema::CheckLoadResult;
        let mut check = several();
        check.load = Some(CheckLoadResult {
            files: 7,
            error: Some("write /mnt/x: EIO".to_owned()),
        });
        let bails = "Bail out! The load failed: write /mnt/x: EIO";
        check_has(&tap(&check), bails);
        check_has(&junit(&check), "tests=\"2\" failures=\"1\" errors=\"1\"");
        let says = "created 7 files, then failed: write /mnt/x: EIO";
        check_has(&text(&check, View::USUAL), says);
    }

    #[test]
    fn what_holds_nothing_is_not_said_to_hold() {
        let mut nothing = result();
        nothing.hosts[0].promises.retain(|p| p.name == "b.root");
        let out = text(&nothing, View::USUAL);
        check_has(&out, "No promise was shown to hold");
    }

    #[test]
    fn people_read_what_is_broken_and_how_many() {
        let out = text(&result(), View::USUAL);
        for part in [
            "a.broken: a <promise>",
            "expected \"success\", seen EINVAL #1",
            "(allowed: documented)",
            "1 promise is broken, 1 is undecided.",
            "- a.holds: 7 of 10 operations.",
        ] {
            check_has(&out, part);
        }
    }

    #[test]
    fn promises_that_are_undecided_for_the_same_reason_are_listed_together() {
        let mut check = result();
        let undecided = |name| promise(name, PromiseVerdict::Undecided, None);
        let promises = &mut check.hosts[0].promises;
        promises.extend([undecided("b.shut"), undecided("c.shut")]);
        promises.push(PromiseResult {
            seen: Some("ENOSPC".to_owned()),
            ..undecided("d.full")
        });
        let out = text(&check, View::USUAL);
        let (_, listed) = out.split_once("undecided:\n").expect("a list");
        let listed = listed.lines().take(4).collect::<Vec<_>>();
        let expect = [
            "  b.open, b.shut, c.shut",
            "      openat: expected \"success\", seen EINVAL #1",
            "  d.full: a <promise>",
            "      openat /mnt/a\\u{1}b: expected \"success\", seen ENOSPC",
        ];
        assert_eq!(listed, expect);
        check_has(&out, "1 promise is broken, 4 are undecided.");
    }
}
