//! Data that every rank needs before it resolves the command line: rank 0's argv and environment,
//! the run's id and seed. Also the announcement that each rank sends before that.

use std::ffi::OsString;
use std::time::Duration;

use rbench_cli::Start;
use rbench_cli::fio::Surroundings;
#[cfg(feature = "mpi")]
use rbench_comm::launcher::{launcher, srun_without_pmix, unconnected};
use rbench_comm::{Arrival, CommError, Communicator};
use rbench_core::Rank;
use rbench_core::random::{Stream, key};
use rbench_sys::identity::identity;
use serde::{Deserialize, Serialize};

use crate::console::complain;
#[cfg(feature = "mpi")]
use crate::console::refuse;
use crate::exit::FAILED;
#[cfg(feature = "mpi")]
use crate::exit::USAGE;
use crate::job_files;
use crate::marker;
use crate::version;

/// At the start, missing ranks are listed after this time ...
const NOTICE: Duration = Duration::from_secs(20);

/// ... and after this time all ranks exit.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// This rank's announcement at the start, and its time limit for the others.
pub fn arrival(start: Start) -> Arrival {
    let limit = start.timeout.map_or(START_TIMEOUT, Duration::from);
    let program = version::program();
    Arrival {
        host: identity().node,
        program: format!(
            "rbench {} (commit {})",
            version::VERSION,
            program.commit.as_deref().unwrap_or("unknown")
        ),
        notice: NOTICE,
        limit: (!limit.is_zero()).then_some(limit),
        say: complain,
        end: || rbench_sys::thread::exit_at_once(FAILED),
    }
}

/// The exit code where Slurm's srun speaks no PMIx and the MPI library is Open MPI, which would end
/// every process with a page of its own.
#[cfg(feature = "mpi")]
pub fn refuse_unconnected() -> Option<u8> {
    let env = |name: &str| std::env::var(name).ok();
    let launcher = launcher(env).filter(|_| srun_without_pmix(env))?;
    let open_mpi = rbench_comm::mpi_library()?.starts_with("Open MPI");
    open_mpi.then(|| refuse(USAGE, unconnected(launcher)))
}

/// The parameters of a launch, the same on every rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The command line.
    pub argv: Vec<OsString>,
    /// `RBENCH_DIR`
    pub env_dir: Option<OsString>,
    /// Name of the run: its start time and four random letters.
    pub run_id: String,
    /// Start time: UTC, RFC 3339.
    pub started: String,
    /// Default seed.
    pub seed: u64,
    /// Rank 0's working directory; relative paths start there.
    pub cwd: OsString,
    /// The process of rank 0, for the directory's marker.
    pub origin: String,
    /// The files that the command line names, and other inputs of `rbench fio`.
    pub job_files: Surroundings,
}

impl Launch {
    /// Shares rank 0's launch with all ranks.
    ///
    /// # Errors
    /// When the ranks cannot communicate.
    pub async fn share(comm: &dyn Communicator, argv: &[OsString]) -> Result<Launch, CommError> {
        let mine = (comm.rank() == Rank(0)).then(|| Launch::here(argv));
        let sent = comm.broadcast_value(Rank(0), &mine).await?;
        sent.ok_or(CommError::Garbled(Rank(0)))
    }

    /// The launch of one of several runs with different numbers of ranks, with its own id.
    pub fn with(&self, ranks: u32) -> Launch {
        Launch {
            run_id: format!("{}-{ranks}", self.run_id),
            ..self.clone()
        }
    }

    /// The launch of a cell of a series: its command line, an id of its own, and the current time.
    pub fn of_cell(&self, index: u32, words: &[OsString]) -> Launch {
        let program = self.argv.iter().take(1);
        let argv: Vec<OsString> = program.chain(words).cloned().collect();
        Launch {
            run_id: format!("{}-{}", self.run_id, index + 1),
            started: format!("{:.3}", jiff::Timestamp::now()),
            job_files: job_files::read(&argv),
            argv,
            ..self.clone()
        }
    }

    fn here(argv: &[OsString]) -> Launch {
        let now = jiff::Timestamp::now();
        let entropy = key(&[now.as_nanosecond() as u64, u64::from(std::process::id())]);
        let mut stream = Stream::new(&[entropy]);
        let letters: String = (0..4)
            .map(|_| char::from(b'a' + stream.below(26) as u8))
            .collect();
        Launch {
            argv: argv.to_vec(),
            env_dir: std::env::var_os("RBENCH_DIR"),
            run_id: format!("{}-{letters}", now.strftime("%Y%m%d-%H%M%S")),
            started: format!("{now:.3}"),
            // 53 bits: JSON readers may parse numbers as floating point.
            seed: stream.next_u64() >> 11,
            origin: marker::origin(),
            job_files: job_files::read(argv),
            cwd: std::env::current_dir().map_or_else(|_| OsString::from("/"), OsString::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use rbench_core::message::{decode, encode};

    use super::*;

    #[test]
    fn a_launch_arrives_as_it_was_sent() {
        let sent = Launch {
            argv: ["rbench", "meta", "", "--dir", "/mnt/\u{fc}"]
                .map(OsString::from)
                .to_vec(),
            env_dir: Some(OsString::from_vec(vec![0xff, 1])),
            run_id: "20261121-090000-abcd".to_owned(),
            started: "2026-11-21T09:00:00Z".to_owned(),
            seed: 7,
            cwd: "/tmp".into(),
            origin: "host a\n".to_owned(),
            job_files: Surroundings {
                files: [("a.fio".into(), b"[a]".to_vec())].into(),
                variables: [("A".to_owned(), "b".to_owned())].into(),
                unreadable: [("x".into(), "gone".to_owned())].into(),
                page_size: 4096,
                cpus: 2,
                memory_mib: 1024,
            },
        };
        assert_eq!(decode(&encode(&sent)), Some(sent));
    }
}
