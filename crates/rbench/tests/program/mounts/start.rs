//! Tests ranks that do not join at the start: missing ranks are reported, and all ranks exit. `rbench-comm`
//! (`mpi/watch.rs`) tests the sentences, `scripts/checks/bed_mounts.py` tests three hosts.

use crate::common::{Place, text};

/// Slurm's own processes are in `scripts/checks/slurm.py`.
#[test]
fn of_processes_that_srun_starts_without_pmix_the_first_says_that_all_are_refused() {
    let place = Place::new();
    let task = |number: &str, more: &str| {
        let slurm = [
            ("SLURM_STEP_ID", "0"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_PROCID", number),
        ];
        let mut command = place.command(&format!("meta --dir target --items 1 --quiet {more}"));
        let output = command.envs(slurm).output().expect("it starts");
        assert!(place.entries("target").is_empty(), "{number}");
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = task("0", "");
    let line = "rbench: Slurm's srun started several processes that know nothing of each other: use srun --mpi=pmix";
    assert!(
        code == Some(2) && said.starts_with(line),
        "{code:?}: {said}"
    );
    assert_eq!(task("3", ""), (Some(2), String::new()));
    assert_eq!(task("3", "--communicator solo"), (Some(0), String::new()));
}

mod needs_mpi {
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    use crate::common::{PATIENCE, Place, install, text, wait_until};

    const PROGRAM: &str = env!("CARGO_BIN_EXE_rbench");

    /// mpirun in a session of its own.
    fn mpirun(place: &Place) -> Command {
        let mut command = Command::new("setsid");
        command
            .args(["timeout", "--signal=KILL"])
            .arg(PATIENCE.as_secs().to_string())
            .args(["mpirun", "--allow-run-as-root", "--oversubscribe"])
            .current_dir(place.path(""))
            .env_remove("RBENCH_DIR");
        command
    }

    /// The names of the session's processes that are still running.
    fn in_session(session: u32) -> Vec<String> {
        let processes = fs::read_dir("/proc").expect("there").flatten();
        let stats = processes.filter_map(|entry| {
            let is_process = entry.file_name().to_str()?.parse::<u32>().is_ok();
            is_process.then(|| fs::read_to_string(entry.path().join("stat")).ok())?
        });
        let names = stats.filter_map(|stat| {
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let runs = fields.first() != Some(&"Z");
            (runs && fields.get(3) == Some(&&*session.to_string())).then(|| name.to_owned())
        });
        names.collect()
    }

    /// Checks that the command fails after at least this many seconds and leaves no process. Returns its messages.
    fn failed(mut command: Command, least_s: u64) -> String {
        let started = Instant::now();
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let session = child.id();
        let output = child.wait_with_output().expect("it ends");
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(started.elapsed() >= Duration::from_secs(least_s), "{said}");
        // 137 means that it was killed because it did not end.
        let code = output.status.code();
        assert!(!matches!(code, Some(0 | 137) | None), "{code:?}: {said}");
        wait_until("no process is left", || in_session(session).is_empty());
        said
    }

    /// Checks that all ranks end because one fails. Returns the messages.
    ///
    /// It does not wait for mpirun, which may hang at its own end if a rank exits while it connects
    /// (PMIx 4.2.2: PMIx_server_finalize waits for a mutex).
    fn ranks_failed(place: &Place, mut command: Command) -> String {
        let messages = place.path("messages");
        let file = fs::File::create(&messages).expect("created");
        command.stdout(file.try_clone().expect("duplicated"));
        let mut timeout = command.stderr(file).spawn().expect("it starts");
        let session = timeout.id();
        let said = || text(&fs::read(&messages).expect("there"));
        wait_until("mpirun reports the failure", || {
            said().contains("Exit code: ")
        });
        let launchers = ["timeout", "mpirun"];
        wait_until("no rank is left", || {
            let running = in_session(session);
            running.iter().all(|name| launchers.contains(&&**name))
        });
        killpg(Pid::from_raw(session.cast_signed()), Signal::SIGKILL).expect("it is ours");
        timeout.wait().expect("it ends");
        said()
    }

    /// The rest of the line after `part`, which it must contain.
    fn behind<'s>(said: &'s str, part: &str) -> &'s str {
        let (_, rest) = said
            .split_once(part)
            .unwrap_or_else(|| panic!("no '{part}' in {said}"));
        rest.lines().next().unwrap_or_default()
    }

    #[test]
    fn a_rank_that_is_never_started_ends_those_that_wait_within_mpi() {
        let place = Place::new();
        let script =
            "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then exec sleep 600; fi; exec \"$0\" \"$@\"";
        let mut command = mpirun(&place);
        command.args(["-np", "2", "sh", "-c", script, PROGRAM]);
        command.args(["meta", "--items", "10", "--start-timeout", "1s"]);
        let started = Instant::now();
        let said = ranks_failed(&place, command);
        assert!(started.elapsed() >= Duration::from_secs(1), "{said}");
        assert_eq!(behind(&said, "Exit code: ").trim(), "1", "{said}");
        let sentence =
            "rbench: not all ranks joined within 1 s (--start-timeout): MPI_Init on host ";
        assert!(
            behind(&said, sentence).contains(" is still waiting"),
            "{said}"
        );
    }

    /// Creates a program whose announcement differs.
    fn other_program(to: &Path) {
        let mut image = fs::read(PROGRAM).expect("it can be read");
        let (from, into) = (b" (commit ", b" (COMMIT ");
        let places: Vec<usize> = image
            .windows(from.len())
            .enumerate()
            .filter_map(|(at, bytes)| (bytes == from).then_some(at))
            .collect();
        assert!(!places.is_empty(), "the program says its commit");
        for at in places {
            image[at..at + into.len()].copy_from_slice(into);
        }
        install(to, &image);
    }

    #[test]
    fn another_program_on_one_rank_is_named() {
        let place = Place::new();
        let other = place.path("rbench");
        other_program(&other);
        let mut command = mpirun(&place);
        command.args(["-np", "2", PROGRAM, "meta", ":", "-np", "1"]);
        command.arg(other).arg("meta");
        let said = failed(command, 0);
        let other = behind(&said, "rbench: rank 2 on host ");
        let (host, programs) = other.split_once(' ').expect("a host");
        assert!(!host.is_empty(), "{said}");
        let (other, own) = programs
            .split_once(", but rank 0 runs rbench ")
            .expect(programs);
        assert!(
            other.starts_with("runs rbench ") && other.contains(" (COMMIT "),
            "{said}"
        );
        assert!(own.contains(" (commit "), "{said}");
        assert!(
            own.ends_with("install the same version on all hosts"),
            "{said}"
        );
    }

    /// The other ranks have to arrive before rank 0's time limit.
    mod timing {
        use super::*;

        /// A library that blocks the last rank between MPI's start and the first message.
        const STUCK: &str = r#"
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int result = PMPI_Init_thread(argc, argv, required, provided), rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) sleep(600);
    return result;
}
"#;

        /// Rank 3 is stuck, and has a longer time limit: rank 0 must report missing ranks, whichever started first.
        /// Checks that it does within these seconds, and returns the message.
        fn stuck(seconds: u32, line: &str) -> String {
            let place = Place::new();
            fs::write(place.path("stuck.c"), STUCK).expect("written");
            let built = Command::new("mpicc")
                .args(["-shared", "-fPIC", "-o", "stuck.so", "stuck.c"])
                .current_dir(place.path(""))
                .output()
                .expect("mpicc starts");
            assert!(built.status.success(), "{}", text(&built.stderr));
            let library = place.path("stuck.so");
            let preload = format!("LD_PRELOAD={}", library.display());
            let (name, more) = line.split_once(' ').unwrap_or((line, ""));
            let mut command = mpirun(&place);
            for (ranks, limit) in [("3", seconds), ("1", 90)] {
                let colon = if ranks == "1" { Some(":") } else { None };
                command.args(colon).args(["-np", ranks, "-x", &preload]);
                command.args([PROGRAM, name, &format!("--start-timeout={limit}s")]);
                command.args(more.split_whitespace());
            }
            let said = failed(command, u64::from(seconds));
            let sentence = format!(
                "not all ranks joined within {seconds} s (--start-timeout): rank 0 has not heard from 1 of 4 ranks: 3; it has heard from "
            );
            assert!(behind(&said, &sentence).contains(" (ranks 0-2)"), "{said}");
            assert!(said.contains("btl_tcp_if_include"), "{said}");
            said
        }

        #[test]
        fn a_rank_that_is_stuck_behind_the_start_of_mpi_is_named_by_each_command() {
            // MPI itself may take some seconds on a busy machine.
            for line in [
                "meta --items 10",
                "mdtest -d target -n 10",
                "fio --name=a --size=1m --ioengine=null",
                "sweep --over n=1,2 -- meta",
                "probe target",
            ] {
                stuck(10, line);
            }
        }

        #[test]
        fn who_is_missing_is_told_on_the_way_too() {
            let said = stuck(23, "meta");
            let sentence =
                "rbench: 20 s after the start: rank 0 has not heard from 1 of 4 ranks: 3; ";
            let rest = behind(&said, sentence);
            assert!(rest.contains("; all ranks exit after 23 s"), "{said}");
        }
    }
}
