//! The way in which a rank waits: other futures go on, and the CPU is left alone.

use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rbench_comm::{CommError, Communicator};
use rbench_core::Rank;

use crate::checks::{Checks, Outcome, ensure};

/// Ticks that go on while a rank waits.
const TICKS: u64 = 20;

/// Wake-ups of a waiting rank beyond one in a millisecond: while its pauses are still short.
const WAKE_UPS: f64 = 200.0;

/// CPU time that a wake-up may take, however slow the machine; a rank that spins
/// sleeps so rarely that this is exceeded many times over.
const CPU_PER_WAKE_UP: Duration = Duration::from_micros(500);

/// CPU time other than that of wake-ups.
const CPU_BESIDE: Duration = Duration::from_millis(30);

pub async fn check_all(comm: &dyn Communicator, checks: &mut Checks<'_>) -> Result<(), CommError> {
    let outcome = others_go_on(comm).await;
    checks
        .record("other futures go on while a rank waits", outcome)
        .await?;
    const QUIET: &str = "timing::a waiting rank leaves the CPU alone";
    if crate::skips(QUIET) {
        return Ok(());
    }
    let outcome = quietness(comm).await;
    checks.record(QUIET, outcome).await
}

fn cpu_time(usage: &Usage) -> Duration {
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
        // Comes when everybody else says that it has gone on.
        for _ in 1..comm.size() {
            comm.next_note().await?;
        }
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
            _ = interval.tick() => {
                ticks += 1;
                if ticks == TICKS {
                    comm.post(late, vec![0]);
                }
            }
        }
    }
    ensure!(ticks >= TICKS, "the barrier was over after {ticks} ticks");
    Ok(format!("{ticks} ticks while it waited"))
}

async fn quietness(comm: &dyn Communicator) -> Outcome {
    if comm.size() == 1 {
        return Ok("skipped: nothing to wait for".to_owned());
    }
    let wait = wait_for_one(comm, Duration::from_secs(2)).await?;
    let often = wait.took.as_secs_f64() * 1000.0 + WAKE_UPS;
    ensure!(
        (wait.wake_ups as f64) < often,
        "woke up {} times in {:?}",
        wait.wake_ups,
        wait.took
    );
    let most = CPU_PER_WAKE_UP * wait.wake_ups as u32 + CPU_BESIDE;
    ensure!(
        wait.cpu < most,
        "used {:?} of CPU, and woke up only {} times in {:?}",
        wait.cpu,
        wait.wake_ups,
        wait.took
    );
    let share = wait.share() * 100.0;
    Ok(format!(
        "rank 0 used {share:.2}% of a core, {} wake-ups in {:.1?}",
        wait.wake_ups, wait.took
    ))
}

/// The cost of a wait to the waiting thread.
pub struct Wait {
    took: Duration,
    cpu: Duration,
    /// Number of times that it had given up the CPU by itself.
    wake_ups: u64,
}

impl Wait {
    /// The part of a core.
    pub fn share(&self) -> f64 {
        self.cpu.as_secs_f64() / self.took.as_secs_f64()
    }
}

/// The last rank sleeps and the others wait in a barrier; what that cost this
/// one.
pub async fn wait_for_one(comm: &dyn Communicator, sleep: Duration) -> Result<Wait, CommError> {
    let usage = || getrusage(UsageWho::RUSAGE_THREAD).expect("getrusage of this thread");
    comm.barrier().await?;
    let (start, before) = (Instant::now(), usage());
    if comm.rank() == Rank(comm.size() - 1) {
        std::thread::sleep(sleep);
    }
    comm.barrier().await?;
    let after = usage();
    let switches = after.voluntary_context_switches() - before.voluntary_context_switches();
    Ok(Wait {
        took: start.elapsed(),
        cpu: cpu_time(&after).saturating_sub(cpu_time(&before)),
        wake_ups: switches.unsigned_abs(),
    })
}
