//! Tables of the promises between clients: each check and, for broken ones, each pair of clients.

use rbench_core::Nanos;
use rbench_core::plain::plain;

use super::label;
use crate::schema::{BetweenResult, CheckResult, PairResult, PromiseVerdict, SeenAfterResult};
use crate::table::{NONE, Table, left, right};
use crate::view::View;

/// One row per tested check over all clients and, for checks with violations, one per pair. Starts
/// and ends with a newline; empty if there is no row.
pub(super) fn tables(check: &CheckResult, view: View) -> String {
    let mut table = Table::new([
        left("Between clients"),
        right("tries"),
        right("violations"),
        right("least"),
        right("median"),
        right("99 %"),
        right("most"),
        right("resolution"),
    ]);
    let tried = |between: &&BetweenResult| between.promise.verdict != PromiseVerdict::LeftOut;
    if !check.between.iter().any(|between| tried(&between)) {
        return String::new();
    }
    for between in check.between.iter().filter(tried) {
        let name = between.promise.name.clone();
        table.row(row(name, between.tries, between.violations, &between.times));
        if between.violations == 0 {
            continue;
        }
        for pair in &between.pairs {
            let PairResult {
                from,
                to,
                tries,
                violations,
                times,
                worse: _,
                late_ns: _,
            } = pair;
            let client = |number: &usize| {
                let host = check.hosts.get(*number);
                host.map_or_else(String::new, |host| label(check, host))
            };
            let name = format!("  {} → {}", client(from), client(to));
            table.row(row(plain(&name).into_owned(), *tries, *violations, times));
        }
    }
    format!("\n{}", table.render(view))
}

fn row(name: String, tries: u64, violations: u64, times: &Option<SeenAfterResult>) -> Vec<String> {
    let mut row = vec![name, tries.to_string(), violations.to_string()];
    match times {
        Some(times) => row.extend(
            [
                times.min_ns,
                times.median_ns,
                times.p99_ns,
                times.max_ns,
                times.resolution_ns,
            ]
            .map(|ns| Nanos(ns).to_string()),
        ),
        None => row.extend([NONE; 5].map(str::to_owned)),
    }
    row
}
