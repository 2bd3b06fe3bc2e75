//! Behaviour of MPI alone: its errors, its signal handlers, its end.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use rbench_comm::{CommError, Communicator, World};
use rbench_core::Rank;

use crate::checks::{Checks, Outcome, ensure, passed};

/// The signals that this program, or a program that started it, relies on.
/// SIGUSR1 is not among them: MPICH catches it.
const OURS: &[Signal] = &[
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGCHLD,
    Signal::SIGPIPE,
];

/// More than an MPI library sends at once to one rank.
const UNREAD_NOTES: u64 = 500;

pub async fn check_all(world: &World, checks: &mut Checks<'_>) -> Result<(), CommError> {
    let comm = world.communicator();
    checks
        .record("an MPI error has a text", errors(comm).await)
        .await?;
    // The end of the world comes next, and must cope with these.
    for _ in 0..UNREAD_NOTES {
        for to in (0..comm.size()).map(Rank) {
            comm.post(to, vec![1; 64]);
        }
    }
    // The first rank drops this wait for the others at its first pause.
    let wait = Duration::from_millis(if comm.rank() == Rank(0) { 0 } else { 50 });
    tokio::time::sleep(wait).await;
    let abandoned = tokio::time::timeout(Duration::ZERO, comm.barrier()).await;
    abandoned.unwrap_or(Ok(()))
}

async fn errors(comm: &dyn Communicator) -> Outcome {
    let nobody = Rank(comm.size());
    match comm.broadcast(nobody, Vec::new()).await {
        Err(CommError::Mpi { call, message }) => {
            ensure!(call == "MPI_Ibcast", "the call is {call}");
            ensure!(message.to_lowercase().contains("root"), "{message}");
            Ok(message.lines().next().unwrap_or_default().to_owned())
        }
        other => Err(format!("a broadcast from nobody gave {other:?}").into()),
    }
}

/// For each mask of signals in the kernel's record of this process (caught,
/// ignored, blocked) its value.
#[allow(
    clippy::disallowed_methods,
    reason = "the kernel's own record of this process, no target"
)]
pub fn handlers() -> BTreeMap<String, u64> {
    let status = fs::read_to_string("/proc/self/status").expect("the record of this process");
    status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| ["SigCgt", "SigIgn", "SigBlk"].contains(name))
        .map(|(name, mask)| {
            let mask = u64::from_str_radix(mask.trim(), 16).expect("a mask");
            (name.to_owned(), mask)
        })
        .collect()
}

/// Checks that MPI left our signals as they were.
pub fn check_handlers(before: &BTreeMap<String, u64>, comm: &dyn Communicator) -> bool {
    let outcome = compare(before, &handlers());
    match outcome {
        Ok(_) => {
            if comm.rank() == Rank(0) {
                println!("mpi with {}: our signals are left alone: ok", comm.size());
            }
            true
        }
        Err(error) => {
            eprintln!("rank {}: our signals: {error}", comm.rank());
            false
        }
    }
}

fn compare(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Outcome {
    ensure!(before.len() == 3, "{before:?}");
    for (mask, value) in before {
        for &signal in OURS {
            let bit = 1 << (signal as i32 - 1);
            let changed = (value ^ after[mask]) & bit != 0;
            ensure!(!changed, "{mask} of {signal} was changed");
        }
    }
    passed()
}
