//! The start and the end of communication: chooses the communicator and shuts it down.
//!
//! Without an MPI launcher nothing here calls MPI, so that a run on a single host starts at once
//! and needs no working MPI.

use crate::arrival::Arrival;
use crate::launcher::launcher;
#[cfg(feature = "mpi")]
use crate::launcher::{first_of_host, launched_ranks};
use crate::threads::{ThreadsCommunicator, solo};
use crate::{CommError, Communicator};

/// The communicator to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// MPI if an MPI launcher started this process, otherwise solo.
    #[default]
    Auto,
    /// One rank, even under an MPI launcher.
    Solo,
    /// MPI, even without a launcher: then one rank.
    Mpi,
}

/// The group of all ranks, from the start of communication to its end.
///
/// [`World::finish`] is the ordinary end. A dropped world tries the same for 5 s, because the
/// others may never come. If that fails, or the thread is panicking, MPI is not finalized, and the
/// launcher then ends the other ranks.
#[derive(Debug)]
pub struct World(Inner);

#[derive(Debug)]
enum Inner {
    Solo(ThreadsCommunicator),
    #[cfg(feature = "mpi")]
    Mpi {
        world: Box<crate::mpi::MpiWorld>,
        /// Monitors the start until all ranks have joined.
        watch: Option<crate::mpi::Watch>,
    },
}

/// Starts the communicator of all ranks. Under MPI a collective call, allowed once, on the thread
/// that will make all MPI calls. `env` looks up an environment variable. Until [`World::together`],
/// a thread monitors the start: it reports missing ranks as `arrival` says, and ends the process
/// after the time limit.
///
/// MPI libraries install handlers for some signals (crashes; MPICH also SIGUSR1), but not for
/// SIGINT, SIGTERM or SIGHUP. Handlers installed after this call take precedence.
///
/// # Errors
///
/// [`CommError::Start`] if MPI is needed but was not built in, lacks what this program needs, or
/// does not see the ranks that the launcher started.
pub fn start(
    choice: Choice,
    arrival: Arrival,
    env: impl Fn(&str) -> Option<String>,
) -> Result<World, CommError> {
    let launcher = launcher(&env);
    match (choice, launcher) {
        (Choice::Solo, _) | (Choice::Auto, None) => Ok(World(Inner::Solo(solo()))),
        (Choice::Auto | Choice::Mpi, launcher) => start_mpi(launcher, arrival, env),
    }
}

#[cfg(feature = "mpi")]
fn start_mpi(
    launcher: Option<&str>,
    arrival: Arrival,
    env: impl Fn(&str) -> Option<String>,
) -> Result<World, CommError> {
    crate::mpi::keep_the_processor();
    let watch = crate::mpi::Watch::begin(arrival.clone(), first_of_host(&env));
    let world = crate::mpi::MpiWorld::start((launcher, launched_ranks(&env)), &arrival, &watch)?;
    let (world, watch) = (Box::new(world), Some(watch));
    Ok(World(Inner::Mpi { world, watch }))
}

#[cfg(not(feature = "mpi"))]
fn start_mpi(
    launcher: Option<&str>,
    _arrival: Arrival,
    _env: impl Fn(&str) -> Option<String>,
) -> Result<World, CommError> {
    let why = match launcher {
        Some(launcher) => format!("this process was started by {launcher}"),
        None => "the MPI communicator was requested".to_owned(),
    };
    Err(CommError::Start(format!(
        "{why}, but this program was built without MPI: \
         rebuild it with the feature `mpi`, or use --communicator solo"
    )))
}

impl World {
    /// The group of all ranks.
    pub fn communicator(&self) -> &dyn Communicator {
        match &self.0 {
            Inner::Solo(solo) => solo,
            #[cfg(feature = "mpi")]
            Inner::Mpi { world, .. } => world.communicator(),
        }
    }

    /// Ends the monitoring of the start: all ranks have joined.
    pub fn together(&mut self) {
        #[cfg(feature = "mpi")]
        if let Inner::Mpi { watch, .. } = &mut self.0 {
            *watch = None;
        }
    }

    /// Ends communication; a collective call. Waits with back-off for all ranks and receives unread
    /// notes. Sub-groups cannot be used afterwards.
    ///
    /// # Errors
    ///
    /// If this rank abandoned a collective that the others did not complete, or MPI reports an
    /// error. MPI is then not finalized.
    pub fn finish(self) -> Result<(), CommError> {
        match self.0 {
            Inner::Solo(_) => Ok(()),
            #[cfg(feature = "mpi")]
            Inner::Mpi { world, .. } => world.finish(),
        }
    }

    /// Ends this process and all other ranks at once with the exit code `code`, if others no longer
    /// answer.
    pub fn abort(&self, code: i32) -> ! {
        match &self.0 {
            Inner::Solo(_) => {}
            #[cfg(feature = "mpi")]
            Inner::Mpi { world, .. } => world.abort(code),
        }
        std::process::exit(code)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rbench_core::Rank;

    use super::*;

    fn open_mpi(name: &str) -> Option<String> {
        (name == "OMPI_COMM_WORLD_SIZE").then(|| "4".to_owned())
    }

    fn arrival() -> Arrival {
        Arrival {
            host: "a".to_owned(),
            program: "tests".to_owned(),
            notice: Duration::from_secs(20),
            limit: None,
            say: |_| {},
            end: || std::process::exit(1),
        }
    }

    fn check_solo(choice: Choice, env: impl Fn(&str) -> Option<String>) {
        let world = start(choice, arrival(), env).expect("solo always starts");
        let comm = world.communicator();
        assert_eq!(
            (comm.kind(), comm.rank(), comm.size()),
            ("solo", Rank(0), 1)
        );
        assert_eq!(world.finish(), Ok(()));
    }

    #[test]
    fn without_a_launcher_one_rank_starts_alone() {
        check_solo(Choice::Auto, |_| None);
    }

    #[test]
    fn solo_is_solo_even_under_a_launcher() {
        check_solo(Choice::Solo, open_mpi);
    }

    #[cfg(not(feature = "mpi"))]
    #[test]
    fn a_program_without_mpi_says_so_when_it_is_launched_by_mpi() {
        let error = start(Choice::Auto, arrival(), open_mpi).expect_err("no MPI in here");
        let text = error.to_string();
        assert!(text.contains("started by Open MPI's mpirun"), "{text}");
        assert!(text.contains("built without MPI"), "{text}");
        assert!(start(Choice::Mpi, arrival(), |_| None).is_err());
    }
}
