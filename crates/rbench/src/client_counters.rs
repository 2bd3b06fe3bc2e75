//! Counters that the file system's clients keep of their own work: read before the first phase and
//! after the last, once for each cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rbench_cli::Output;
use rbench_exec::thread::in_thread;
use rbench_exec::{ExecError, Group};
use rbench_report::schema::ClientCounters;
use rbench_sys::residency::client_counters;

/// Time limit of a client's answer: a slow client must not delay the results.
const PATIENCE: Duration = Duration::from_secs(5);

/// The readings before the first phase.
pub struct Watched {
    dir: PathBuf,
    /// Counters of this rank's client; `None` if the client reports none or another rank asks it.
    before: Option<BTreeMap<String, f64>>,
}

/// Reads the counters of the clients that serve `dir`, if requested.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn begin(
    group: &Group<'_>,
    output: &Output,
    dir: &Path,
) -> Result<Option<Watched>, ExecError> {
    if !output.client_counters {
        return Ok(None);
    }
    let before = read(group, dir).await?;
    let dir = dir.to_owned();
    Ok(Some(Watched { dir, before }))
}

impl Watched {
    /// The counters' increase since `begin`, at rank 0. Clients without counters are absent.
    ///
    /// # Errors
    /// When the ranks cannot communicate.
    pub async fn end(self, group: &Group<'_>) -> Result<Vec<ClientCounters>, ExecError> {
        let mut mine = None;
        if let Some(before) = self.before
            && let Some(after) = read(group, &self.dir).await?
        {
            let host = group.host_name_of(group.rank());
            mine = ClientCounters::between(host, &before, &after);
        }
        let all = group.quietly(group.world.gather_values(&mine)).await?;
        Ok(all.into_iter().flatten().flatten().collect())
    }
}

async fn read(group: &Group<'_>, dir: &Path) -> Result<Option<BTreeMap<String, f64>>, ExecError> {
    if !group.is_cache_leader() {
        return Ok(None);
    }
    let dir = dir.to_owned();
    let asked = tokio::time::timeout(PATIENCE, in_thread(move || client_counters(&dir)));
    let answer = group.attend(asked, || 0).await?;
    Ok(answer.ok().and_then(Result::ok).flatten())
}
