//! The round trip to the file system, measured on every host before the first
//! phase: rows may be read as multiples of it.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rbench_cli::Output;
use rbench_exec::thread::in_thread;
use rbench_exec::{ExecError, Group};
use rbench_plan::meta::Backend;
use rbench_plan::pattern::file_path;
use rbench_plan::{Plan, Work};
use rbench_report::schema::RoundTrip;
use rbench_sys::engine;
use rbench_sys::round_trip::round_trip;

/// If the file system answers nothing for this long, the report has no round trip.
/// The thread that waits for it is abandoned.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures at the leader of every host, on the directory `dir` or the nearest
/// existing one above it; by host, at rank 0. Nothing if no result would show it,
/// no data moves, or the user does not want it.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn measure(
    group: &Group<'_>,
    plan: &Plan,
    output: &Output,
    dir: &Path,
) -> Result<Vec<RoundTrip>, ExecError> {
    let Some(place) = place(plan, dir) else {
        return Ok(Vec::new());
    };
    if output.no_round_trip || !has_a_place(output) {
        return Ok(Vec::new());
    }
    let mut mine = None;
    if group.is_leader() {
        group.step("measuring a round trip");
        let answered = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&answered);
        let work = in_thread(move || round_trip(nearest(&place)?, &counted));
        let patient = while_answered(work, &answered, || tokio::time::sleep(PATIENCE));
        let found = group.attend(patient, || 0).await?;
        // The first phase reports a file system that does not answer.
        let found = found.and_then(Result::ok).flatten();
        mine = found.map(|found| RoundTrip {
            host: group.host_name().to_owned(),
            call: found.name().to_owned(),
            median_ns: found.median.0,
            calls: u64::from(found.calls),
            seen: found.seen,
        });
    }
    let all = group.quietly(group.world.gather_values(&mine)).await?;
    Ok(all.into_iter().flatten().flatten().collect())
}

/// Waits for work that counts its answers; `None` when none came during a `pause`.
async fn while_answered<T, P: Future>(
    work: impl Future<Output = T>,
    answered: &AtomicU64,
    pause: impl Fn() -> P,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        let before = answered.load(Ordering::Relaxed);
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            _ = pause() => {}
        }
        if answered.load(Ordering::Relaxed) == before {
            return None;
        }
    }
}

/// Returns true if there is a report of ours, or a result file.
pub fn has_a_place(output: &Output) -> bool {
    output.has_report() || output.out.is_some()
}

/// Returns true if the engine `name` uses a file system.
pub fn moves(name: &str) -> bool {
    engine::find(name).is_some_and(|engine| engine.uses_files)
}

/// Target of operations: `dir`, or the first file of fio's first job; `None` if no operation goes
/// to a file system.
fn place(plan: &Plan, dir: &Path) -> Option<PathBuf> {
    match &plan.work {
        Work::Meta(meta) => (meta.backend == Backend::Posix).then(|| dir.to_owned()),
        Work::Io(io) => moves(&io.job.engine).then(|| dir.to_owned()),
        Work::Find(_) | Work::Mix(_) | Work::Replay(_) => Some(dir.to_owned()),
        Work::Jobs(jobs) => {
            let mut all = jobs.rounds.iter().flatten();
            let job = all.find(|job| moves(&job.engine))?;
            // Both contain the job's directory.
            let below = file_path(job, 0, 0);
            let within = below.strip_prefix(&job.files.directory).unwrap_or(&below);
            Some(dir.join(within))
        }
    }
}

/// The directory `place`, or the nearest existing one above it. A device has no
/// round trip.
fn nearest(place: &Path) -> Option<&Path> {
    let special = place.exists() && !place.is_file() && !place.is_dir();
    let mut above = place.ancestors().filter(|_| !special);
    above.find(|dir| dir.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_waited_for_as_long_as_answers_come() {
        let answered = AtomicU64::new(0);
        let answers = |most| {
            let answered = &answered;
            move || {
                if answered.load(Ordering::Relaxed) < most {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                std::future::ready(())
            }
        };
        let third = std::future::poll_fn(|_| match answered.load(Ordering::Relaxed) {
            3.. => std::task::Poll::Ready("done"),
            _ => std::task::Poll::Pending,
        });
        assert_eq!(
            while_answered(third, &answered, answers(9)).await,
            Some("done")
        );
        let never = std::future::pending::<()>();
        assert_eq!(while_answered(never, &answered, answers(5)).await, None);
        assert_eq!(answered.load(Ordering::Relaxed), 5);
    }
}
