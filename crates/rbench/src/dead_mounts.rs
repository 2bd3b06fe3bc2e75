//! Mounts that stopped answering, as the result file holds them.

use rbench_core::{Clock as _, FailureKind, MonotonicClock, Nanos};
use rbench_exec::mounts::{DeadMount, RowErrors};
use rbench_report::schema::{DeadMountResult, DeadMountRow};

/// Results of the dead mounts that were found, at rank 0.
pub fn results(found: Vec<DeadMount>) -> Vec<DeadMountResult> {
    found.into_iter().map(result).collect()
}

fn result(dead: DeadMount) -> DeadMountResult {
    let DeadMount {
        host,
        mount,
        answer,
        phase,
        after,
        first: [op, path, error],
        at,
        rows,
    } = dead;
    let rows: Vec<DeadMountRow> = rows.into_iter().map(row).collect();
    DeadMountResult {
        host,
        mount,
        answer,
        seen: time_of_day(at),
        phase,
        after_s: after.map(Nanos::as_secs_f64),
        op,
        path,
        error,
        failed: rows.iter().map(DeadMountRow::failed).sum(),
        rows,
    }
}

fn row(errors: RowErrors) -> DeadMountRow {
    let RowErrors {
        iteration,
        name,
        label,
        kinds,
    } = errors;
    let named = |(kind, count): (FailureKind, u64)| (kind.name(), count);
    DeadMountRow {
        iteration,
        name,
        label,
        errors: kinds.into_iter().map(named).collect(),
    }
}

/// Converts a past instant of this process's clock to UTC, RFC 3339.
fn time_of_day(at: Nanos) -> String {
    let ago = MonotonicClock.now().since(at);
    let now = jiff::Timestamp::now();
    let then = i64::try_from(ago.0).map(jiff::SignedDuration::from_nanos);
    let then = then.ok().and_then(|ago| now.checked_sub(ago).ok());
    format!("{:.3}", then.unwrap_or(now))
}
