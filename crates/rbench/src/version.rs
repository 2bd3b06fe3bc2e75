//! The identity of this program: version, commit, features, MPI library.

use rbench_report::schema::Program;

/// The version of the project.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The program's build and its libraries.
pub fn program() -> Program {
    let features = [
        ("mpi", cfg!(feature = "mpi")),
        ("testfs", cfg!(feature = "testfs")),
    ];
    let built_in = features.iter().filter(|(_, on)| *on);
    Program {
        commit: option_env!("RBENCH_COMMIT").map(str::to_owned),
        features: built_in.map(|(name, _)| (*name).to_owned()).collect(),
        mpi_library: rbench_comm::mpi_library(),
    }
}

/// The version as text, with the lines about programs for MPI libraries.
pub fn text(programs: &str) -> String {
    let Program {
        commit,
        features,
        mpi_library,
    } = program();
    let features = match features.is_empty() {
        true => "none".to_owned(),
        false => features.join(", "),
    };
    format!(
        "rbench {VERSION}\ncommit       {}\nfeatures     {features}\nMPI library  {}\n{programs}",
        commit.as_deref().unwrap_or("unknown"),
        mpi_library.as_deref().unwrap_or("none"),
    )
}
