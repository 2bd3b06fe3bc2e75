//! The file of `--saveRankPerformanceDetails`: mdtest's columns, then ours.

use super::measured::{self, Measured, Row, RowOf, Share};
use crate::csv::written;
use crate::schema::RunResult;

/// mdtest's operations in column order. No rank reads directories, but the columns exist.
const OPERATIONS: &[&str] = &[
    "Directory creation",
    "Directory stat",
    "Directory read",
    "Directory rename",
    "Directory removal",
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
];

/// The CSV of `--saveRankPerformanceDetails`.
///
/// For each iteration, a row `all` and a row for each rank. Columns:
///
/// - `rank`;
/// - `items`, the maximum number of operations of one kind that were tried, without the tree;
/// - for each operation `rate-…`, operations without error per second, and `time-…`, seconds; both
///   are empty if there was nothing to do, like in mdtest;
/// - `iteration`, from 0 like in the result file;
/// - `host`, empty for `all`;
/// - `errors`, the failed operations.
pub fn rank_details_csv(result: &RunResult) -> String {
    let mut titles = vec!["rank".to_owned(), "items".to_owned()];
    let operations = OPERATIONS.iter();
    titles.extend(operations.flat_map(|name| [format!("rate-{name}"), format!("time-{name}")]));
    titles.extend(["iteration", "host", "errors"].map(str::to_owned));
    let mut lines = vec![titles];
    let all = measured::all(result);
    let hosts = result.world.hosts.iter();
    let mut ranks: Vec<(u32, &str)> = hosts
        .flat_map(|host| host.ranks.iter().map(|rank| (*rank, host.name.as_str())))
        .collect();
    ranks.sort_unstable();
    for iteration in 0..super::iterations(result) {
        let these: Vec<&Measured> = all
            .iter()
            .filter(|one| one.iteration() == iteration)
            .collect();
        let whole: Vec<(&Row, Share)> = these.iter().map(|one| (one.row, one.whole())).collect();
        lines.push(line("all", &whole, iteration, ""));
        for (rank, host) in &ranks {
            let of_rank = |one: &&Measured| (one.row, one.of_rank(*rank));
            let own: Vec<(&Row, Share)> = these.iter().map(of_rank).collect();
            lines.push(line(&rank.to_string(), &own, iteration, host));
        }
    }
    written(lines.into_iter())
}

fn line(rank: &str, shares: &[(&Row, Share)], iteration: u32, host: &str) -> Vec<String> {
    let items = shares.iter().filter(|(row, _)| row.of != RowOf::Tree);
    let most = items.map(|(_, share)| share.tried).max().unwrap_or(0);
    let mut cells = vec![rank.to_owned(), most.to_string()];
    for name in OPERATIONS {
        let mut done = shares.iter().filter(|(_, share)| share.tried > 0);
        cells.extend(match done.find(|(row, _)| row.label == *name) {
            None => [String::new(), String::new()],
            Some((_, share)) => [share.rate, share.elapsed_s].map(|value| exponential(value, 10)),
        });
    }
    let errors: u64 = shares.iter().map(|(_, share)| share.errors).sum();
    cells.extend([iteration.to_string(), host.to_owned(), errors.to_string()]);
    cells
}

/// Formats like C's `%.Ne` with N decimals: a sign and at least two digits in the exponent.
pub fn exponential(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(negative) => format!("{digits}e-{negative:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        let check = |value: f64, expect: &str| assert_eq!(exponential(value, 10), expect);
        check(0.0, "0.0000000000e+00");
        check(33_681.072_834, "3.3681072834e+04");
        check(0.002_969_026_565_6, "2.9690265656e-03");
        check(1e120, "1.0000000000e+120");
        assert_eq!(exponential(118_203.4, 6), "1.182034e+05");
    }

    #[test]
    fn fields_with_commas_or_quotes_are_quoted() {
        let check = |text: &str, expect: &str| {
            let rows = [vec![text.to_owned()]].into_iter();
            assert_eq!(written(rows), format!("{expect}\n"));
        };
        check("client1", "client1");
        check("a,b", "\"a,b\"");
        check("a\"b", "\"a\"\"b\"");
    }
}
