//! The environment of the run on each host, gathered at rank 0.

use std::path::Path;

use rbench_core::surroundings::{ClientProgram, Surroundings};
use rbench_exec::{ExecError, Group};
use rbench_sys::surroundings::surroundings;

/// The environment of each host, at rank 0; `None` for hosts without an answer.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn gather(
    group: &Group<'_>,
    target: &Path,
    embedded: bool,
) -> Result<Vec<Option<Surroundings>>, ExecError> {
    let all = of_ranks(group, target, embedded, group.is_leader()).await?;
    let mut hosts = vec![None; group.host_names.len()];
    for (found, host) in all.into_iter().zip(&group.host_of) {
        if found.is_some() {
            hosts[*host as usize] = found;
        }
    }
    Ok(hosts)
}

/// The environment of each rank with `looks`, at rank 0; `None` for the others.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn of_ranks(
    group: &Group<'_>,
    target: &Path,
    embedded: bool,
    looks: bool,
) -> Result<Vec<Option<Surroundings>>, ExecError> {
    let mut mine = None;
    if looks {
        let target = target.to_owned();
        let found = group.on_target(move || surroundings(&target), || 0);
        let found = found.await?.ok();
        // The built-in file system is this program.
        mine = found.map(|found| Surroundings {
            client: found.client.filter(|_| !embedded).map(with_version),
            ..found
        });
    }
    let all = group.quietly(group.world.gather_values(&mine)).await?;
    Ok(all.unwrap_or_default())
}

/// Adds this program's version to a client that is this program.
fn with_version(client: ClientProgram) -> ClientProgram {
    let own = std::env::current_exe().is_ok_and(|own| {
        let program = client.program.as_deref();
        program.map(Path::new) == Some(&own)
    });
    let version = client.version.clone();
    ClientProgram {
        version: version.or(own.then(|| env!("CARGO_PKG_VERSION").to_owned())),
        ..client
    }
}
