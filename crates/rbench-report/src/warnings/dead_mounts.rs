//! Warnings about mounts that stopped answering: one for each mount.

use rbench_core::units::human_count;

use super::seconds;
use crate::schema::{DeadMountResult, DeadMountRow, Warning};

/// Code of the warning.
pub(super) const CODE: &str = "dead-mount";

/// Maximum number of rows that are named.
const ROWS_NAMED: usize = 4;

/// The warning about a dead mount.
pub(super) fn warning(dead: &DeadMountResult) -> Warning {
    let DeadMountResult {
        host,
        mount,
        answer,
        seen: _,
        phase,
        after_s,
        op,
        path,
        error,
        failed,
        rows,
    } = dead;
    let when = match after_s {
        Some(after) => format!("{} into {phase}", seconds(*after)),
        None => format!("before {phase}"),
    };
    let what = match (failed, rows.is_empty()) {
        (_, true) => "no row has operations on it".to_owned(),
        (1, _) => format!("1 operation failed there: {}", list(rows)),
        (n, _) => format!(
            "{} operations failed there: {}",
            human_count(*n),
            list(rows)
        ),
    };
    let message = format!(
        "The mount {mount} on {host} no longer answered ({answer}), {when}, first seen by {op} {path} ({error}); \
         {what}."
    );
    Warning::new(CODE, message)
}

fn list(rows: &[DeadMountRow]) -> String {
    let of = |row: &DeadMountRow| {
        let again = match row.iteration {
            0 => String::new(),
            more => format!(" in iteration {}", more.saturating_add(1)),
        };
        format!("{}{again} ({})", row.label, human_count(row.failed()))
    };
    let mut all: Vec<String> = rows.iter().take(ROWS_NAMED).map(of).collect();
    if let more @ 1.. = rows.len().saturating_sub(ROWS_NAMED) {
        all.push(format!("{more} more rows"));
    }
    all.join(", ")
}
