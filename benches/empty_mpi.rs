//! An empty MPI program: start, barrier, end. Rank 0 prints the time of day after the barrier, in
//! seconds since 1970.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "its results are read there"
)]

use std::process::ExitCode;
use std::time::SystemTime;

use mpi::Threading;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};

fn main() -> ExitCode {
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        return ExitCode::FAILURE;
    };
    let world = universe.world();
    world.barrier();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    if world.rank() == 0 {
        println!("{:.6}", now.unwrap_or_default().as_secs_f64());
    }
    ExitCode::SUCCESS
}
