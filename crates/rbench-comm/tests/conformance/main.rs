//! One suite for all communicators.
//!
//! Run plainly, it checks the solo communicator, threads with several numbers
//! of ranks, and MPI without a launcher in a process of its own. Started by an
//! MPI launcher, it checks MPI with that launcher's ranks:
//!
//!     cargo test -p rbench-comm --test conformance
//!     mpirun -np 4 target/debug/deps/conformance-…
//!
//! Rank 0 prints one line per check; any failure makes the exit code 1. `--skip PART`, any number of
//! times, leaves out what is named so, as in other test programs: `needs_mpi::` what is checked of
//! MPI without a launcher, `timing::` what only a clock can tell.
//!
//! Arguments for use under a launcher: `measure` prints what talking and
//! waiting cost, `start` only starts and ends MPI. With `abort`, `panic` and
//! `leave` the last rank ends in that way while the others wait for it; the
//! launcher must then end them all within seconds, with an exit code other
//! than 0 (3 for `abort`).

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

mod checks;
mod collectives;
mod measure;
mod mpi;
mod notes;
mod places;
mod waiting;

use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use rbench_comm::launcher::launcher;
use rbench_comm::{Arrival, Choice, CommError, Communicator, World, start, threads};

use checks::Checks;

/// The suite must never hang, whatever is broken.
const TIME_LIMIT: Duration = Duration::from_secs(570);

/// Sizes of the groups of threads.
const THREADS: &[u32] = &[1, 2, 3, 8, 12];

fn main() -> ExitCode {
    thread::spawn(|| {
        thread::sleep(TIME_LIMIT);
        eprintln!("not done within {TIME_LIMIT:?}");
        std::process::exit(1);
    });
    let argument = std::env::args().nth(1).unwrap_or_default();
    let launched = launcher(env).is_some();
    let passed = match argument.as_str() {
        "measure" => on_mpi(|world| {
            run(measure::measure(world.communicator())).map_err(|error| error.to_string())?;
            Ok(true)
        }),
        "start" => on_mpi(|_| Ok(true)),
        "alone" => on_mpi(check_world),
        "abort" => on_mpi(|world| lose_a_rank(world, || world.abort(3))),
        "panic" => on_mpi(|world| lose_a_rank(world, || panic!("as asked"))),
        "leave" => on_mpi(|world| lose_a_rank(world, || ())),
        _ if launched => on_mpi(check_world),
        _ => check_solo() & check_threads() & (skips("needs_mpi::alone") || check_mpi_alone()),
    };
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "this is the program that passes the environment in"
)]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns true if the arguments leave out the check `name`.
pub fn skips(name: &str) -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut pairs = arguments.windows(2);
    pairs.any(|pair| pair[0] == "--skip" && name.contains(&pair[1]))
}

/// The ranks' messages about themselves at the start.
fn arrival() -> Arrival {
    Arrival {
        host: "a host".to_owned(),
        program: "the suite".to_owned(),
        notice: Duration::from_secs(60),
        limit: Some(TIME_LIMIT),
        say: |text| eprintln!("{text}"),
        end: || std::process::exit(1),
    }
}

/// Drives one rank as the program does.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// All checks that every communicator must pass.
async fn suite(comm: &dyn Communicator, checks: &mut Checks<'_>) -> Result<(), CommError> {
    collectives::check_all(comm, checks).await?;
    notes::check_all(comm, checks).await?;
    places::check_all(comm, checks).await?;
    waiting::check_all(comm, checks).await
}

/// Runs the suite at one rank; whether it passed.
fn check_rank(comm: &dyn Communicator) -> bool {
    let mut checks = Checks::new(comm);
    match run(suite(comm, &mut checks)) {
        Ok(()) => checks.passed(),
        Err(error) => {
            eprintln!("rank {}: the suite broke off: {error}", comm.rank());
            false
        }
    }
}

fn check_solo() -> bool {
    let world = start(Choice::Solo, arrival(), env).expect("solo always starts");
    let passed = check_rank(world.communicator());
    world.finish().is_ok() & passed
}

fn check_threads() -> bool {
    THREADS.iter().fold(true, |passed, &ranks| {
        passed
            & thread::scope(|scope| {
                let handles: Vec<_> = threads::world(ranks)
                    .into_iter()
                    .map(|comm| scope.spawn(move || check_rank(&comm)))
                    .collect();
                handles
                    .into_iter()
                    .fold(true, |passed, rank| passed & rank.join().unwrap_or(false))
            })
    })
}

/// MPI without a launcher, in a process of its own because MPI can only be
/// started once.
fn check_mpi_alone() -> bool {
    if !cfg!(feature = "mpi") {
        println!("mpi: skipped: built without MPI");
        return true;
    }
    let program = std::env::current_exe().expect("the path of this program");
    let mut alone = Command::new(program);
    // Checks that are left out here are left out there.
    let status = alone.arg("alone").args(std::env::args().skip(1)).status();
    status.is_ok_and(|status| status.success())
}

/// Starts MPI, lets `body` work, and ends MPI; whether all went well.
fn on_mpi(body: impl FnOnce(&World) -> Result<bool, String>) -> bool {
    let handlers_before = mpi::handlers();
    let world = match start(Choice::Mpi, arrival(), env) {
        Ok(world) => world,
        Err(error) => {
            eprintln!("{error}");
            return false;
        }
    };
    let handlers_kept = mpi::check_handlers(&handlers_before, world.communicator());
    let passed = body(&world).unwrap_or_else(|error| {
        eprintln!("{error}");
        world.abort(1)
    });
    if !passed {
        drop(world);
        return false;
    }
    let is_first = world.communicator().rank().0 == 0;
    match world.finish() {
        Ok(()) => {
            if is_first {
                println!("mpi: ended with unread notes and an abandoned operation");
            }
            handlers_kept
        }
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

/// The last rank does `end`, if that returns drops its world, and fails; the
/// others wait for it in a barrier, and must not come back.
fn lose_a_rank(world: &World, end: impl FnOnce()) -> Result<bool, String> {
    let comm = world.communicator();
    if comm.rank().0 + 1 == comm.size() {
        end();
        return Ok(false);
    }
    let met = run(comm.barrier());
    Err(format!("rank {} did not wait: {met:?}", comm.rank()))
}

fn check_world(world: &World) -> Result<bool, String> {
    let comm = world.communicator();
    let passed = check_rank(comm);
    let mut checks = Checks::new(comm);
    run(mpi::check_all(world, &mut checks)).map_err(|error| error.to_string())?;
    Ok(passed & checks.passed())
}
