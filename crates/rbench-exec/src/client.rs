//! CPU time and memory of the file system client's processes in a phase. They are read at the
//! leader of each host just before the common start and after all workers have ended, never while a
//! worker works.

use std::path::PathBuf;
use std::time::Duration;

use rbench_core::client::{ClientCost, ClientGap, ClientUse, HostClient, Watch};
use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Bytes, Nanos};
use rbench_sys::limits;
use rbench_sys::processes::{self, Process, ProcessUse};
use rbench_sys::surroundings::serving;

use crate::group::{ExecError, Group};
use crate::meter::is_of_others;
use crate::phase::OpRow;
use crate::sight::Watched;

/// Time limit of a reading: the measurement matters more.
const PATIENCE: Duration = Duration::from_secs(5);

/// From now on watches the processes of `watch` on each host. Without it, watches the processes
/// that serve the FUSE mounts at `dirs`, if any are found on some host. Every rank calls this.
///
/// # Errors
/// When a host has no process that `watch` names, or the ranks cannot communicate.
pub async fn watch(
    group: &Group<'_>,
    watch: Option<Watch>,
    dirs: Vec<PathBuf>,
) -> Result<(), ExecError> {
    let own = std::process::id();
    let ranks = group.quietly(group.host.gather_values(&own)).await?;
    let mut watched = Watched {
        watch,
        dirs,
        ranks: ranks.unwrap_or_default(),
        numbers_shared: numbers_shared(group).await?,
        processes: Vec::new(),
    };
    if group.is_leader() {
        let asked = watched.clone();
        let found = group.within(PATIENCE, move || find(&asked)).await?;
        watched.processes = found.and_then(Result::ok).unwrap_or_default();
    }
    let missing = |watch: &Watch| {
        let host = group.host_name();
        match watch {
            Watch::Process(number) => format!("--watch: no process {number} on {host}"),
            Watch::Name(name) => {
                format!("--watch: no process with the name '{name}' on {host}")
            }
        }
    };
    let missed = watched.watch.as_ref();
    let missed = missed.filter(|_| group.is_leader() && watched.processes.is_empty());
    let there = missed.map_or(Ok(()), |watch| Err(missing(watch)));
    group.agree(there).await.map_err(|e| group.as_usage(e))?;
    let any = group.any(!watched.processes.is_empty()).await?;
    group.probes.sight.client.replace(any.then_some(watched));
    Ok(())
}

/// Returns whether this host's processes have the same numbers on another host of the run: one
/// process would be counted on both.
async fn numbers_shared(group: &Group<'_>) -> Result<bool, ExecError> {
    let mine = match group.is_leader() {
        true => limits::process_space().unwrap_or_default(),
        false => String::new(),
    };
    let all = group.gather(&mine).await?.into_iter();
    let mut spaces: Vec<String> = all.filter(|space| !space.is_empty()).collect();
    let hosts = spaces.len();
    spaces.sort_unstable();
    spaces.dedup();
    // Only rank 0 knows.
    group.any(spaces.len() < hosts).await
}

/// Returns the processes on this host to watch, ascending by number.
fn find(watched: &Watched) -> Vec<Process> {
    let (known, ranks) = (&watched.processes, &watched.ranks);
    let own = |process: &Process| !watched.numbers_shared || processes::is_of_this_host(*process);
    match &watched.watch {
        // A different process that reused the number does not count.
        Some(Watch::Process(_)) if !known.is_empty() => known.clone(),
        Some(Watch::Process(number)) => Process::of(*number).into_iter().filter(own).collect(),
        Some(Watch::Name(name)) => {
            let named = processes::named(name, ranks).into_iter();
            named.filter(own).collect()
        }
        None => {
            let all = watched.dirs.iter().flat_map(|dir| serving(dir));
            let others = all.filter(|number| !ranks.contains(number));
            let mut all: Vec<Process> = others.filter_map(Process::of).collect();
            all.sort_unstable();
            all.dedup();
            all
        }
    }
}

/// Use of each process up to now.
type Reading = Vec<(Process, ProcessUse)>;

/// Reads the use of all processes; `None` if one has ended.
fn read(processes: &[Process]) -> Option<Reading> {
    let each = processes.iter();
    each.map(|process| Some((*process, process.used()?)))
        .collect()
}

/// State of a rank before the phase: the processes and their use, or an error; `None` at ranks that
/// are not leaders, and where nothing is watched.
pub(crate) type Before = Option<Result<Reading, ClientGap>>;

/// State of a rank after the phase, in the same form.
pub(crate) type Seen = Option<Result<ClientUse, ClientGap>>;

/// Reads the use of the processes before a phase; if any are watched, all ranks wait for it.
///
/// # Errors
/// When the ranks cannot communicate.
pub(crate) async fn begin(group: &Group<'_>) -> Result<Before, ExecError> {
    let Some(watched) = group.probes.sight.client.borrow().clone() else {
        return Ok(None);
    };
    let mine = match group.is_leader() {
        true => Some(first(group, watched).await?),
        false => None,
    };
    group.meet().await?;
    Ok(mine)
}

async fn first(
    group: &Group<'_>,
    watched: Watched,
) -> Result<Result<Reading, ClientGap>, ExecError> {
    let look = move || {
        // Processes of a mount are searched again only if they have ended: a search may take long.
        let same = match &watched.watch {
            None => read(&watched.processes).filter(|reading| !reading.is_empty()),
            Some(_) => None,
        };
        same.or_else(|| read(&find(&watched)))
    };
    let Some(Ok(found)) = group.within(PATIENCE, look).await? else {
        return Ok(Err(ClientGap::Silent));
    };
    let Some(reading) = found.filter(|reading| !reading.is_empty()) else {
        return Ok(Err(ClientGap::Absent));
    };
    if let Some(watched) = group.probes.sight.client.borrow_mut().as_mut() {
        watched.processes = reading.iter().map(|(process, _)| *process).collect();
    }
    Ok(Ok(reading))
}

/// Reads the use after a phase; no worker works.
///
/// # Errors
/// When the ranks cannot communicate.
pub(crate) async fn end(group: &Group<'_>, before: Before) -> Result<Seen, ExecError> {
    let before = match before {
        None => return Ok(None),
        Some(Err(gap)) => return Ok(Some(Err(gap))),
        Some(Ok(before)) => before,
    };
    let watched = group.probes.sight.client.borrow().clone();
    let watched = watched.unwrap_or_default();
    let look = move || {
        let after = read(&watched.processes);
        // Processes that started during the phase have done part of its work.
        let named = matches!(watched.watch, Some(Watch::Name(_)));
        let same = !named || find(&watched) == watched.processes;
        after.filter(|_| same)
    };
    Ok(Some(match group.within(PATIENCE, look).await? {
        Some(Ok(Some(after))) => Ok(between(&before, &after)),
        Some(Ok(None)) => Err(ClientGap::Replaced),
        Some(Err(_)) | None => Err(ClientGap::Silent),
    }))
}

/// Computes the use of the same processes between two readings.
fn between(before: &Reading, after: &Reading) -> ClientUse {
    let mut sum = ClientUse::default();
    for ((_, before), (_, after)) in before.iter().zip(after) {
        sum.processes += 1;
        sum.cpu = Nanos(sum.cpu.0 + after.cpu.since(before.cpu).0);
        sum.user = Nanos(sum.user.0 + after.user.since(before.user).0);
        sum.system = Nanos(sum.system.0 + after.system.since(before.system).0);
        sum.resident = Bytes(sum.resident.0 + after.resident.0);
        sum.peak = Bytes(sum.peak.0 + after.peak.0);
    }
    sum
}

/// Combines the results of all hosts at rank 0, and adds them to the rows of the phase; all ranks
/// call this.
///
/// # Errors
/// When the ranks cannot communicate.
pub(crate) async fn gather(
    group: &Group<'_>,
    lanes: &[OpRow],
    seen: Seen,
    rows: &mut [PhaseOutcome],
) -> Result<(), ExecError> {
    let Some(mine) = seen else {
        return Ok(());
    };
    let all = group.quietly(group.leaders.gather_values(&mine)).await?;
    let Some(all) = all else {
        return Ok(());
    };
    let hosts = group.host_names.iter().cloned().zip(all);
    let watched = group.probes.sight.client.borrow();
    let cost = ClientCost {
        watch: watched.as_ref().and_then(|watched| watched.watch.clone()),
        operations: operations(lanes, rows),
        hosts: hosts
            .map(|(host, used)| HostClient { host, used })
            .collect(),
    };
    for row in rows {
        row.client = Some(cost.clone());
    }
    Ok(())
}

/// Returns the operations of all rows, each counted once: without rows set aside, such as closes at
/// the end, and without rows derived from others. `None` if unmeasured operations came before or
/// between them, or workers were given up: those of such a worker are in no row.
fn operations(lanes: &[OpRow], rows: &[PhaseOutcome]) -> Option<u64> {
    let own = |(lane, _): &(&OpRow, &PhaseOutcome)| !lane.aside && !is_of_others(lane.op);
    let own = || lanes.iter().zip(rows).filter(own).map(|(_, row)| row);
    let whole = |row: &PhaseOutcome| {
        row.measured_from == Nanos(0) && row.set_aside == Nanos(0) && row.effort.given_up == 0
    };
    let each = own().map(|row| row.items + row.failures.total());
    own().all(whole).then(|| each.sum())
}
