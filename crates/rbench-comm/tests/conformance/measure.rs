//! The cost of waiting, in numbers to be read rather than checked.

use std::time::{Duration, Instant};

use rbench_comm::{Combine, CommError, Communicator};
use rbench_core::{Clock, MonotonicClock, Rank};

use crate::waiting::wait_for_one;

const ROUNDS: u32 = 50;

pub async fn measure(comm: &dyn Communicator) -> Result<(), CommError> {
    let say = |text: String| {
        if comm.rank() == Rank(0) {
            println!("{} with {}: {text}", comm.kind(), comm.size());
        }
    };
    for what in [
        "barrier",
        "broadcast of 8 bytes",
        "broadcast of 1000000 bytes",
        "gather of 10000 bytes",
        "reduction of 40000 numbers",
        "reduction of 300000 numbers",
    ] {
        let mut took = Vec::new();
        comm.barrier().await?;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            match what {
                "barrier" => comm.barrier().await?,
                "broadcast of 8 bytes" => drop(comm.broadcast(Rank(0), vec![0; 8]).await?),
                "broadcast of 1000000 bytes" => {
                    drop(comm.broadcast(Rank(0), vec![0; 1_000_000]).await?);
                }
                "gather of 10000 bytes" => drop(comm.gather(Rank(0), vec![0; 10_000]).await?),
                "reduction of 40000 numbers" => {
                    drop(comm.reduce(Rank(0), Combine::Sum, vec![1; 40_000]).await?);
                }
                _ => drop(comm.reduce(Rank(0), Combine::Sum, vec![1; 300_000]).await?),
            }
            took.push(start.elapsed());
        }
        took.sort();
        say(format!(
            "{what}: median {:.1?}, p99 {:.1?}, max {:.1?}",
            took[took.len() / 2],
            took[took.len() * 99 / 100],
            took[took.len() - 1]
        ));
    }
    for late_ms in [0, 10, 100, 500, 2000] {
        let latency = latency_after(comm, Duration::from_millis(late_ms)).await?;
        say(format!(
            "barrier with a rank {late_ms} ms late: the last one leaves {latency:.1?} after it"
        ));
    }
    let sleep = Duration::from_secs(4);
    let used = wait_for_one(comm, sleep).await?.share();
    let waits = comm.rank().0 + 1 < comm.size();
    let parts = vec![if waits { (used * 1e6) as u64 } else { 0 }];
    let total = comm.all_reduce(Combine::Sum, parts).await?[0] as f64 / 1e6;
    say(format!(
        "{} ranks wait {sleep:?}: {:.3} core-seconds, {:.2}% of a core each",
        comm.size() - 1,
        total * sleep.as_secs_f64(),
        total * 100.0 / f64::from((comm.size() - 1).max(1))
    ));
    Ok(())
}

/// From the arrival of the last rank to the departure of the last one; the
/// ranks share a machine, hence its clock. The mean of a few.
async fn latency_after(comm: &dyn Communicator, late: Duration) -> Result<Duration, CommError> {
    let rounds = if late > Duration::from_secs(1) { 3 } else { 10 };
    let mut sum = Duration::ZERO;
    for _ in 0..rounds {
        comm.barrier().await?;
        if comm.rank() == Rank(comm.size() - 1) {
            std::thread::sleep(late);
        }
        let came = MonotonicClock.now().0;
        comm.barrier().await?;
        let left = MonotonicClock.now().0;
        let last = comm.all_reduce(Combine::Max, vec![came, left]).await?;
        sum += Duration::from_nanos(last[1] - last[0]);
    }
    Ok(sum / rounds)
}
