//! The environment of the run on each host, gathered at rank 0.

use std::path::Path;

use rbench_exec::thread::in_thread;
use rbench_exec::{ExecError, Group};
use rbench_report::schema::{ClientProgram, FuseSettings, HostMount, NtpState, Surroundings};
use rbench_sys::mountinfo;
use rbench_sys::surroundings::{self as sys, without_credentials};

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
        let found = in_thread(move || look(&target, embedded));
        mine = group.attend(found, || 0).await?.ok();
    }
    let all = group.quietly(group.world.gather_values(&mine)).await?;
    Ok(all.unwrap_or_default())
}

fn look(target: &Path, embedded: bool) -> Surroundings {
    let sys::Surroundings {
        governors,
        clock_source,
        ntp,
        limits,
        fuse,
        client,
    } = sys::surroundings(target);
    let at = target.ancestors().find(|dir| dir.exists());
    let mount = at.and_then(|at| mountinfo::of(at).ok());
    Surroundings {
        governors,
        clock_source,
        ntp: ntp.map(|ntp| NtpState {
            synchronised: ntp.synchronised,
            max_error_us: ntp.max_error_us,
            estimated_error_us: ntp.estimated_error_us,
            frequency_ppm: ntp.frequency_ppm,
        }),
        cpu_limit: limits.cpus,
        memory_limit_bytes: limits.memory_bytes,
        mount: mount.map(|mount| HostMount {
            fs_type: mount.fs_type,
            source: without_credentials(&mount.source),
            options: mount.options.join(","),
            point: mount.mount_point.display().to_string(),
        }),
        fuse: fuse.map(|fuse| FuseSettings {
            connection: fuse.number,
            max_background: fuse.max_background,
            congestion_threshold: fuse.congestion_threshold,
        }),
        // The built-in file system is this program.
        client: client.filter(|_| !embedded).map(program),
    }
}

fn program(client: sys::Client) -> ClientProgram {
    let sys::Client {
        process,
        name,
        program,
        command,
        version,
        attr_timeout_s,
        entry_timeout_s,
        writeback_cache,
    } = client;
    ClientProgram {
        process,
        name,
        program: program.map(|path| path.display().to_string()),
        command,
        version,
        attr_timeout_s,
        entry_timeout_s,
        writeback_cache,
    }
}
