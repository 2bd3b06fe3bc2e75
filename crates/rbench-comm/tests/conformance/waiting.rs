//! How a rank waits: other futures go on, and the CPU is left alone.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rbench_comm::{CommError, Communicator};
use rbench_core::Rank;

use crate::checks::{Checks, Outcome, ensure};

/// The part of a core that a waiting rank may use.
const QUIET: f64 = 0.02;

pub async fn check_all(comm: &dyn Communicator, checks: &mut Checks<'_>) -> Result<(), CommError> {
    let outcome = others_go_on(comm).await;
    checks
        .record("other futures go on while a rank waits", outcome)
        .await?;
    let outcome = quietness(comm).await;
    checks
        .record("a waiting rank leaves the CPU alone", outcome)
        .await
}

/// CPU time of this process so far.
pub fn cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("getrusage of this process");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros as u64)
}

async fn others_go_on(comm: &dyn Communicator) -> Outcome {
    if comm.size() == 1 {
        return Ok("skipped: nothing to wait for".to_owned());
    }
    let late = Rank(comm.size() - 1);
    comm.barrier().await?;
    if comm.rank() == late {
        std::thread::sleep(Duration::from_millis(400));
        comm.barrier().await?;
        return Ok(String::new());
    }
    let mut ticks = 0;
    let mut interval = tokio::time::interval(Duration::from_millis(5));
    let barrier = comm.barrier();
    tokio::pin!(barrier);
    loop {
        tokio::select! {
            done = &mut barrier => break done?,
            _ = interval.tick() => ticks += 1,
        }
    }
    ensure!(ticks >= 20, "{ticks} ticks of 5 ms in 400 ms");
    Ok(format!("{ticks} ticks of 5 ms in 400 ms"))
}

async fn quietness(comm: &dyn Communicator) -> Outcome {
    if comm.size() == 1 {
        return Ok("skipped: nothing to wait for".to_owned());
    }
    if comm.kind() == "threads" {
        return Ok("skipped: the threads of a process share its CPU time".to_owned());
    }
    let used = wait_for_one(comm, Duration::from_secs(2)).await?;
    ensure!(used < QUIET, "used {:.2}% of a core", used * 100.0);
    Ok(format!("rank 0 used {:.2}% of a core", used * 100.0))
}

/// The last rank sleeps and the others wait in a barrier; the part of a core
/// that this rank used.
pub async fn wait_for_one(comm: &dyn Communicator, sleep: Duration) -> Result<f64, CommError> {
    comm.barrier().await?;
    let (start, cpu_start) = (Instant::now(), cpu_time());
    if comm.rank() == Rank(comm.size() - 1) {
        std::thread::sleep(sleep);
    }
    comm.barrier().await?;
    let cpu = cpu_time().saturating_sub(cpu_start);
    Ok(cpu.as_secs_f64() / start.elapsed().as_secs_f64())
}
